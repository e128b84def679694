//! `tandem bench vector`: every operation on both curves, and what it refuses.

mod support;

use support::{refused_in, run_in};

const OPERATIONS: [&str; 10] = [
    "batch-inverse",
    "prefix-product",
    "evaluate",
    "divide",
    "gather",
    "add-scaled",
    "combined",
    "gate-rows",
    "permuted-rows",
    "quotient-rows",
];

#[test]
fn bench_measures_what_it_has_checked() {
    let folder = tempfile::tempdir().unwrap();
    for (device, curve, in_json) in [("cpu", "bn254", "bn128"), ("sim:2", "bls12-381", "bls12381")] {
        let args = ["bench", "vector", "--log-n", "0..5", "--runs", "2", "--device", device, "--curve", curve];
        let (stdout, stderr) = run_in(folder.path(), 0, &[&args[..], &["--json", "-", "--plot", "p.svg"]].concat());
        for operation in OPERATIONS {
            let has = |row: &&str| row.contains(&format!("\"op\":\"{operation}\"")) && row.contains(in_json);
            assert_eq!(stdout.lines().filter(has).count(), 6, "{operation}: {stdout}");
        }
        assert!(stderr.contains("results checked") && stderr.contains("million/s"), "{stderr}");
        let plot = std::fs::read_to_string(folder.path().join("p.svg")).unwrap();
        assert!(OPERATIONS.iter().all(|operation| plot.contains(operation)), "{plot}");
    }
    let args = ["bench", "vector", "--op", "divide,gather", "--log-n", "12", "--runs", "1", "--device", "cpu"];
    let (stdout, _) = run_in(folder.path(), 0, &args);
    assert!(stdout.contains("divide") && stdout.contains("gather") && !stdout.contains("evaluate"), "{stdout}");
}

#[test]
fn bad_options_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bench = ["bench", "vector", "--device", "cpu"];
    refused_in(folder.path(), &[&bench[..], &["--log-n", "32"]].concat(), &["--log-n", "up to 31"]);
    let (_, stderr) = run_in(folder.path(), 2, &[&bench[..], &["--op", "multiply"]].concat());
    assert!(stderr.contains("multiply") && stderr.contains("batch-inverse"), "{stderr}");
}

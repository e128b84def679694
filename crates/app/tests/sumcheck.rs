//! `tandem bench sumcheck`: every field and degree, on one lane and on several, and what it refuses.

mod support;

use support::{refused_in, run_in};

#[test]
fn bench_measures_what_it_has_checked() {
    let folder = tempfile::tempdir().unwrap();
    for (device, lanes) in [("cpu", 1), ("sim:4", 4), ("sim:3", 2)] {
        for field in ["bn254", "bls12-381", "goldilocks"] {
            let args = ["bench", "sumcheck", "--log-n", "3..4", "--runs", "2", "--device", device, "--field", field];
            let more = ["--degree", "1,2,3,4", "--host-rows", "4", "--json", "-", "--plot", "p.svg"];
            let (stdout, stderr) = run_in(folder.path(), 0, &[&args[..], &more].concat());
            assert_eq!(stdout.lines().count(), 8, "{stdout}");
            for part in [format!("\"field\":\"{field}\""), format!("\"lanes\":{lanes}"), "\"what\":\"sumcheck\"".into()]
            {
                assert!(stdout.lines().all(|row| row.contains(&part)), "{part}: {stdout}");
            }
            assert!(stdout.contains("\"degree\":4") && stdout.contains("\"host_rows\":4"), "{stdout}");
            assert!(stderr.contains("results checked") && stderr.contains("million/s"), "{stderr}");
            let plot = std::fs::read_to_string(folder.path().join("p.svg")).unwrap();
            assert!(plot.contains("degree 3"), "{plot}");
        }
    }
    // Of one element there are no rounds, and lanes that it is not dealt to.
    let args = ["bench", "sumcheck", "--log-n", "0..1", "--runs", "1", "--device", "sim:8", "--json", "-"];
    let (stdout, _) = run_in(folder.path(), 0, &args);
    assert!(stdout.contains("\"lanes\":1,") && stdout.contains("\"lanes\":2,"), "{stdout}");
    let one = ["bench", "sumcheck", "--log-n", "10", "--runs", "1", "--device", "sim:8", "--lanes", "4", "--json", "-"];
    let (stdout, _) = run_in(folder.path(), 0, &one);
    assert!(stdout.contains("\"lanes\":4,") && !stdout.contains("host_rows"), "{stdout}");
}

#[test]
fn bad_options_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bench = ["bench", "sumcheck", "--device", "cpu"];
    refused_in(folder.path(), &[&bench[..], &["--log-n", "32"]].concat(), &["--log-n", "up to 31"]);
    for (option, value, expected) in
        [("--degree", "5", "1..=4"), ("--degree", "0", "1..=4"), ("--field", "baby-bear", "goldilocks")]
    {
        let (_, stderr) = run_in(folder.path(), 2, &[&bench[..], &[option, value]].concat());
        assert!(stderr.contains(expected), "{stderr}");
    }
}

//! `tandem bench lagrange`: both curves, on the CPU and on pretend GPUs, and what it refuses.

mod support;

use support::{refused_in, run_in};

#[test]
fn bench_measures_what_it_has_checked() {
    let folder = tempfile::tempdir().unwrap();
    for (device, curve, in_json) in [("cpu", "bn254", "bn128"), ("sim:2", "bls12-381", "bls12381")] {
        let args = ["bench", "lagrange", "--log-n", "0..6", "--runs", "2", "--device", device, "--curve", curve];
        let (stdout, stderr) = run_in(folder.path(), 0, &[&args[..], &["--json", "-", "--plot", "p.svg"]].concat());
        let has = |row: &&str| row.contains("\"what\":\"lagrange\"") && row.contains(in_json);
        assert_eq!(stdout.lines().filter(has).count(), 7, "{stdout}");
        assert!(stderr.contains("results checked") && stderr.contains("million/s"), "{stderr}");
        assert!(std::fs::read_to_string(folder.path().join("p.svg")).unwrap().contains("million points/s"));
    }
}

#[test]
fn sizes_that_no_key_has_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bench = ["bench", "lagrange", "--device", "cpu", "--log-n", "27"];
    refused_in(folder.path(), &bench, &["--log-n", "up to 26"]);
}

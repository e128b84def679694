//! `tandem bench fft`: both precisions, on one lane and on several, and what it refuses.

mod support;

use support::{refused_in, run_in};

#[test]
fn bench_measures_what_it_has_checked() {
    let folder = tempfile::tempdir().unwrap();
    for (device, lanes) in [("cpu", 1), ("sim:4", 4), ("sim:3", 2)] {
        for precision in ["f32", "f64"] {
            let args = ["bench", "fft", "--log-n", "4..6", "--runs", "2", "--device", device, "--precision", precision];
            let (stdout, stderr) = run_in(folder.path(), 0, &[&args[..], &["--json", "-", "--plot", "p.svg"]].concat());
            assert_eq!(stdout.lines().count(), 3, "{stdout}");
            let parts =
                [format!("\"precision\":\"{precision}\""), format!("\"lanes\":{lanes}"), "\"what\":\"fft\"".into()];
            assert!(parts.iter().all(|part| stdout.lines().all(|row| row.contains(part))), "{stdout}");
            assert!(stdout.contains("\"log_n\":5") && stdout.contains("\"runs\":2"), "{stdout}");
            assert!(stderr.contains("results checked") && stderr.contains("million/s"), "{stderr}");
            assert!(std::fs::read_to_string(folder.path().join("p.svg")).unwrap().contains("<svg"));
        }
    }
    // One number is on one lane; where there are more lanes than asked for, the others have none.
    let args = ["bench", "fft", "--log-n", "0..1", "--runs", "1", "--device", "sim:8", "--json", "-"];
    let (stdout, _) = run_in(folder.path(), 0, &args);
    assert!(stdout.contains("\"lanes\":1,") && stdout.contains("\"lanes\":2,"), "{stdout}");
    let args = ["bench", "fft", "--log-n", "10", "--runs", "1", "--device", "sim:8", "--lanes", "4", "--json", "-"];
    assert!(run_in(folder.path(), 0, &args).0.contains("\"lanes\":4,"));
}

#[test]
fn arrays_are_dealt_to_as_many_lanes_as_have_planes_and_columns() {
    let folder = tempfile::tempdir().unwrap();
    for (device, lanes, sent) in [("cpu", [1, 1, 1], [0; 3]), ("sim:4", [4, 2, 4], [6144, 128, 6144])] {
        let args = ["bench", "fft", "--sides", "32x16,2x8,8x16x4", "--runs", "2", "--device", device, "--json", "-"];
        let (stdout, stderr) = run_in(folder.path(), 0, &args);
        for (((row, sides), lanes), sent) in stdout.lines().zip(["32x16", "2x8", "8x16x4"]).zip(lanes).zip(sent) {
            let sent = sent / lanes * usize::from(lanes > 1);
            let parts = [
                "\"what\":\"fft_grid\"".to_string(),
                format!("\"sides\":\"{sides}\""),
                format!("\"lanes\":{lanes},"),
                format!("\"sent_bytes\":{sent}"),
            ];
            assert!(parts.iter().all(|part| row.contains(part)), "{row}, {parts:?}");
        }
        assert!(stdout.lines().count() == 3 && stderr.contains("32x16") && stderr.contains("MB sent"), "{stderr}");
    }
}

#[test]
fn bad_options_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bench = ["bench", "fft", "--device", "cpu"];
    refused_in(folder.path(), &[&bench[..], &["--lanes", "3"]].concat(), &["--lanes 3", "power of two"]);
    for (option, value, expected) in [
        ("--log-n", "33", "from 0 to 32"),
        ("--precision", "f16", "f32"),
        ("--lanes", "17", "1..=16"),
        ("--sides", "8x6", "powers of two such as 4096x4096"),
        ("--sides", "131072x65536", "together 2^32"),
    ] {
        let (_, stderr) = run_in(folder.path(), 2, &[&bench[..], &[option, value]].concat());
        assert!(stderr.contains(expected), "{stderr}");
    }
}

//! `tandem bench porep`: partitions of every shape, scaled, on the CPU and on pretend GPUs.

mod support;

use serde_json::Value;
use support::{run, run_in};

#[test]
fn each_shape_is_proved_and_measured() {
    let folder = tempfile::tempdir().unwrap();
    for (shape, device, more) in [
        ("porep-32g", "cpu", ["-c", "2", "-j", "1"]),
        ("text", "sim:3", ["-c", "3", "-j", "2"]),
        ("window", "sim:2", ["-c", "1", "-j", "1"]),
        ("winning", "cpu", ["-c", "1", "-j", "3"]),
        ("snap", "cpu", ["-c", "1", "-j", "1"]),
    ] {
        let args = ["bench", "porep", "--shape", shape, "--device", device, "--log-n", "9", "--partitions", "2"];
        let (stdout, stderr) = run_in(folder.path(), 0, &[&args[..], &more, &["--json", "-"]].concat());
        let rows: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let proofs: usize = more[1].parse().unwrap();
        let (all, partitions) = rows.split_last().unwrap();
        assert_eq!(partitions.len(), 2 * proofs, "{stdout}");
        for (i, row) in partitions.iter().enumerate() {
            assert!(row["what"] == "porep_partition" && row["shape"] == shape && row["log_n"] == 9, "{row}");
            assert!(row["proof"] == i / 2 && row["partition"] == i % 2 && row["ahead"] == true, "{row}");
            let ms = |name: &str| row[name].as_f64().unwrap();
            assert!(ms("ntt_msm_h_ms") > 0.0 && ms("batch_add_ms") > 0.0 && ms("prove_ms") > 0.0, "{row}");
            if device == "cpu" {
                assert!(ms("ntt_msm_h_ms") + ms("batch_add_ms") <= ms("gpu_total_ms") * 1.01, "{row}");
            }
        }
        assert!(all["what"] == "porep" && all["proofs"] == proofs && all["partitions"] == 2, "{all}");
        let share = |name: &str| all[name].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&share("idle_share")) && share("copy_wait_share") <= share("idle_share"), "{all}");
        assert!(share("s_per_partition") > 0.0 && all["bound_ms"].is_null(), "{all}");
        assert!(stderr.contains("every proof verified") && stderr.contains("gpu_total "), "{stderr}");
        assert!(stderr.contains("s a partition"), "{stderr}");
    }
}

/// Pretend GPUs plan as if they had so much.
#[test]
fn points_come_in_pieces_where_memory_is_short() {
    let bench = ["bench", "porep", "--log-n", "14", "--partitions", "1", "--device", "sim:2"];
    let (_, stderr) = run(0, &[&bench[..], &["--gpu-memory", "3MiB"]].concat());
    assert!(stderr.contains("pieces, 3 MiB at most") && stderr.contains("sums over the witness"), "{stderr}");
    let (_, stderr) = run(0, &[&bench[..], &["--gpu-memory", "1GiB"]].concat());
    assert!(stderr.contains("points stay there"), "{stderr}");
    let (_, stderr) = run(3, &[&bench[..], &["--gpu-memory", "1MiB"]].concat());
    assert!(stderr.contains("1048576"), "{stderr}");
    let (_, stderr) = run(2, &[&bench[..], &["--gpu-memory", "1K"]].concat());
    assert!(stderr.contains("from 1 MiB"), "{stderr}");
}

#[test]
fn wrong_options_are_refused() {
    for (args, says) in [
        (["--shape", "nothing"], "porep-32g"),
        (["--log-n", "7"], "8..=28"),
        (["-c", "0"], "1..=10000"),
        (["-j", "0"], "1..=64"),
        (["--partitions", "0"], "1..=1000"),
    ] {
        let (_, stderr) = run(2, &[&["bench", "porep", "--device", "cpu"][..], &args].concat());
        assert!(stderr.contains(says), "{stderr}");
    }
}

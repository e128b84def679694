//! `--gpu-memory` with keys of PLONK and FFLONK: what does not fit is made or brought by each proof, and below the least a key is refused.

mod support;

use serde_json::Value;
use support::{run, run_in};

/// Inspects a key: its JSON.
fn inspected(key: &str) -> Value {
    let (stdout, _) = run(0, &["inspect", key, "--json"]);
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn keys_that_do_not_fit_prove_within_what_they_may_take() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    for (protocol, log_n) in [("plonk", "13"), ("fflonk", "11")] {
        let keep = folder.path().to_str().unwrap();
        run(0, &["bench", protocol, "--log-n", log_n, "--runs", "1", "--device", "cpu", "--keep", keep]);
        let key = file(&format!("{protocol}{log_n}.zkey"));
        let witness = key.replace(".zkey", ".wtns");
        run(0, &["export-vkey", &key, &file("vkey.json")]);
        let of_key = inspected(&key);
        let mib = |name: &str| of_key[name].as_u64().unwrap_or_else(|| panic!("{name} of {of_key}")).div_ceil(1 << 20);
        let (least, all) = (mib("memory_of_gpu_least"), mib("memory_of_gpus"));
        assert!(least < all, "{of_key}");
        let prove = |device: &str, limit: u64, status: i32| {
            let (limit, proof, public) = (format!("{limit}MiB"), file("proof.json"), file("public.json"));
            let args = ["prove", &key, &witness, &proof, &public, "--explain", "--device", device];
            run_in(folder.path(), status, &[&args[..], &["--gpu-memory", &limit]].concat()).1
        };
        for device in ["sim:1", "sim:2"] {
            for (limit, says) in [(100 * all, "all of the key stays"), (least, "polynomials come from the host")] {
                let stderr = prove(device, limit, 0);
                assert!(
                    stderr.contains(says) && stderr.contains("memory of lane 0: key"),
                    "{protocol} {limit} {stderr}"
                );
                run(0, &["verify", &file("vkey.json"), &file("public.json"), &file("proof.json")]);
            }
        }
        let stderr = prove("sim:1", least - 1, 3);
        assert!(
            stderr.contains("needs") && stderr.contains(&format!("{} bytes are free", (least - 1) << 20)),
            "{stderr}"
        );
    }
}

#[test]
fn a_bench_says_what_stays() {
    let bench = ["bench", "plonk", "--log-n", "13", "--runs", "1", "--device", "sim:1", "--json", "-", "--gpu-memory"];
    let plan = |limit: &str| {
        let (stdout, _) = run(0, &[&bench[..], &[limit]].concat());
        let row: Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
        row["plan"].as_str().unwrap().to_string()
    };
    assert!(plan("4GiB").contains("all of the key stays"));
    let cut = plan("20MiB");
    assert!(cut.contains("values on cosets are made by each proof"), "{cut}");
}

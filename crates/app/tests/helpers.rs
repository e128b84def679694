//! `tandem plan --helpers idle`: who helps where NVML says so, with a stand-in for it (fake/nvml.c).

mod support;

use std::path::Path;
use std::process::Command;
use support::{expect, root, tandem};

/// A folder with the stand-in, compiled.
fn fake() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let source = root().join("crates/app/tests/fake/nvml.c");
    let mut command = Command::new(&compiler);
    command.args([
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unused-parameter",
        "-D_GNU_SOURCE",
        "-shared",
        "-fPIC",
    ]);
    let status = command.arg("-o").arg(folder.path().join("libnvidia-ml.so.1")).arg(source).status();
    assert!(status.unwrap_or_else(|e| panic!("cannot run the C compiler {compiler}: {e}")).success());
    folder
}

/// The addresses of the GPUs of the DGX-1 whose topology NCCL wrote, in their order.
const PCI: [&str; 8] = ["16", "17", "1a", "1b", "96", "97", "9a", "9b"];

/// The plan of GPUs 0 and 1 with idle helpers, where the others do `states`: its helpers, and what is said of the rest.
#[track_caller]
fn planned(library: &Path, status: i32, states: &str) -> (String, String) {
    let machine = root().join("crates/fabric-topology/tests/data/dgx1v-nccl.xml");
    let args =
        ["plan", "broadcast", "--gpus", "0,1", "--helpers", "idle", "--json", "--from", machine.to_str().unwrap()];
    let output = tandem().env("LD_LIBRARY_PATH", library).env("FAKE_NVML", states).args(args).output();
    let (stdout, stderr) = expect(status, output.unwrap(), &args);
    if status != 0 {
        assert!(stdout.is_empty() && stderr.lines().count() == 1, "{stdout}{stderr}");
        return (stdout, stderr);
    }
    let plan: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    (plan["helpers"].to_string(), stderr)
}

/// What the GPUs from 2 on do.
fn states(of: [&str; 6]) -> String {
    let one = |(pci, state): (&&str, &str)| format!("0000:{pci}:00.0 {state}");
    PCI[2..].iter().zip(of).map(one).collect::<Vec<_>>().join(",")
}

#[test]
fn only_gpus_that_nobody_uses_help() {
    let library = fake();
    let found = |of: [&str; 6]| planned(library.path(), 0, &states(of));
    // Nothing keeps them from it: an old GPU knows no MIG, and this process's own memory is no use by another.
    assert_eq!(found(["idle", "old", "idle", "idle", "own", "idle"]), ("[2,3,4,5,6,7]".into(), String::new()));
    let cases = [
        ("computes", "process 4242 uses it"),
        ("stranger", "process 4343 uses it"),
        ("draws", "process 4444 uses it"),
        ("mps", "process 4545 uses it"),
        ("busy", "busy for 40 % of the time"),
        ("hidden", "900 MiB of its memory are in use"),
        ("mig", "divided into instances (MIG)"),
        ("refused", "nvmlDeviceGetComputeRunningProcesses_v3: Insufficient Permissions, status 4"),
        ("crowded", "more than 1024"),
        ("lost", "nvmlDeviceGetUtilizationRates: GPU is lost, status 15"),
    ];
    for (state, why) in cases {
        let (helpers, said) = found(["idle", state, "idle", state, "idle", "idle"]);
        assert_eq!(helpers, "[2,4,6,7]", "{state}");
        for gpu in [3, 5] {
            let line = said.lines().find(|line| line.contains(&format!("GPU{gpu} does not help: ")));
            assert!(line.is_some_and(|line| line.contains(why)), "{state}: {said}");
        }
        assert_eq!(said.lines().count(), 2, "{state}: {said}");
    }
    // One that NVML does not know is of another machine.
    let (helpers, said) = planned(library.path(), 0, "0000:1a:00.0 idle");
    assert!(helpers == "[2]" && said.contains("GPU7 does not help: NVML knows no GPU at 0000:9b:00.0"), "{said}");
    // Where none is idle, the plan is that without helpers.
    assert_eq!(found(["computes"; 6]).0, "[]");
}

#[test]
fn nobody_helps_where_nvml_cannot_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libnvidia-ml.so.1"), "").unwrap();
    let (_, said) = planned(folder.path(), 2, "");
    for part in ["error: --helpers idle: ", "NVML", "cannot be used", "libnvidia-ml.so.1", "name the GPUs"] {
        assert!(said.contains(part), "{said}");
    }
    let (_, said) = planned(fake().path(), 2, "broken");
    assert!(said.contains("nvmlInit_v2 failed with status 9"), "{said}");
    // A preset is of no machine that can be asked.
    let args = ["plan", "broadcast", "--gpus", "0,1", "--helpers", "idle", "--preset", "dgx1-v100"];
    let (_, said) = expect(2, tandem().args(args).output().unwrap(), &args);
    assert!(said.contains("GPU2 of dgx1-v100 has no PCI address (busid)"), "{said}");
}

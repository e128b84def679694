//! Who uses a GPU, as a stand-in for NVML says it (fake/nvml.c).

use std::path::{Path, PathBuf};
use std::process::Command;
use tandem_cuda::nvml::Nvml;

/// A folder with the stand-in, compiled, for one test.
fn fake(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-D_GNU_SOURCE", "-shared"]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/nvml.c");
    let status = command.arg("-fPIC").arg("-o").arg(folder.join("libnvidia-ml.so.1")).arg(source).status();
    assert!(status.unwrap_or_else(|e| panic!("cannot run the C compiler {compiler}: {e}")).success());
    folder
}

/// What a process says that finds its NVML in this folder.
fn told(folder: &Path, states: &str) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--ignored", "--exact", "child", "--nocapture"]);
    let output = child.env("LD_LIBRARY_PATH", folder).env("FAKE_NVML", states).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Says who uses the GPUs of the variable, and those of other machines.
#[test]
#[ignore = "other tests run it as a process of its own"]
fn child() {
    let nvml = match Nvml::load() {
        Ok(nvml) => nvml,
        Err(why) => return println!("\nno NVML: {why}"),
    };
    let states = std::env::var("FAKE_NVML").unwrap_or_default();
    for address in states.split(',').filter_map(|one| one.split(' ').next()).chain(["0000:99:00.0"]) {
        let idle = nvml.gpu(address).map(|gpu| gpu.usage().idle(std::process::id()));
        println!("\n{address} {idle:?}");
    }
}

#[test]
fn only_gpus_that_nobody_uses_are_idle() {
    let library = fake("fake-nvml");
    let idle = "Some(Ok(()))";
    // An old GPU knows no MIG, and this process's own memory is no use by another.
    let cases = [
        ("idle", idle),
        ("old", idle),
        ("own", idle),
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
    let address = |i: usize| format!("0000:{:02x}:00.0", i + 1);
    let states: Vec<String> = (0..cases.len()).map(|i| format!("{} {}", address(i), cases[i].0)).collect();
    let said = told(&library, &states.join(","));
    for (i, (state, wanted)) in cases.into_iter().enumerate() {
        let line = said.lines().find(|line| line.starts_with(&address(i))).unwrap();
        assert!(line.contains(wanted) && (wanted == idle || line.contains("Some(Err(")), "{state}: {line}");
    }
    assert!(said.contains("0000:99:00.0 None"), "{said}");
}

#[test]
fn a_library_that_cannot_be_used_is_named() {
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty-nvml");
    std::fs::create_dir_all(&empty).unwrap();
    std::fs::write(empty.join("libnvidia-ml.so.1"), "").unwrap();
    let said = told(&empty, "");
    assert!(said.contains("no NVML: libnvidia-ml.so.1: ") && said.contains("file too short"), "{said}");
    let said = told(&fake("broken-nvml"), "broken");
    assert!(said.contains("no NVML: nvmlInit_v2 failed with status 9"), "{said}");
}

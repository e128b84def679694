//! The program needs no CUDA library to start, and works where there is no driver. `TANDEM_BINARY` names another
//! binary than the one that was built for the tests, such as that of a release.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn binary() -> PathBuf {
    std::env::var_os("TANDEM_BINARY").map_or(env!("CARGO_BIN_EXE_tandem").into(), PathBuf::from)
}

/// Runs the program as on a machine with no GPU: with none visible.
fn tandem(args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(args).env("CUDA_VISIBLE_DEVICES", "");
    command.output().unwrap_or_else(|e| panic!("{}: {e}", binary().display()))
}

fn stdout(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out.into_owned()
}

fn doctor() -> Value {
    serde_json::from_str(&stdout(&tandem(&["doctor", "--json"]))).unwrap()
}

#[test]
fn needs_only_the_c_and_cxx_libraries() {
    let output = Command::new("readelf").arg("-d").arg(binary()).output().expect("readelf, of binutils");
    let text = stdout(&output);
    let needed: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(|line| line.split(['[', ']']).nth(1))
        .collect();
    assert!(needed.iter().any(|name| name.starts_with("libc.so")), "{text}");
    let common = [
        "libc",
        "libm",
        "libgcc_s",
        "libstdc++",
        "libdl",
        "librt",
        "libpthread",
        "ld-linux-x86-64",
        "ld-linux-aarch64",
    ];
    for name in &needed {
        let stem = name.split(".so").next().unwrap_or(name);
        assert!(common.contains(&stem), "the program needs {name}, of {needed:?}");
    }
}

#[test]
fn says_what_was_built_in_and_why_there_is_no_gpu() {
    let text = stdout(&tandem(&["doctor"]));
    assert!(text.contains("GPUs") && text.contains("none: "), "{text}");
    let report = doctor();
    let reason = report["no_gpu"].as_str().unwrap_or_default();
    match report["nvcc"].as_str() {
        None => {
            assert_ne!(std::env::var("TANDEM_REQUIRE_NVCC").as_deref(), Ok("1"), "built without CUDA");
            assert!(reason.contains("built without CUDA"), "{report}");
        }
        Some(version) => {
            assert!(version.contains('.') && report["architectures"].is_string(), "{report}");
            // Which of the two depends on whether the machine has a driver.
            assert!(reason.contains("no NVIDIA driver") || reason.contains("no NVIDIA GPU"), "{report}");
        }
    }
    assert_eq!(report["gpus"], Value::Array(Vec::new()));
}

#[test]
fn proves_without_a_gpu() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo");
    let folder = tempfile::tempdir().unwrap();
    let at = |dir: &Path, name: &str| dir.join(name).display().to_string();
    let (key, witness) = (at(&demo, "membership.zkey"), at(&demo, "membership.wtns"));
    let (proof, public) = (at(folder.path(), "proof.json"), at(folder.path(), "public.json"));
    stdout(&tandem(&["prove", &key, &witness, &proof, &public]));
    let vkey = at(&demo, "membership.vkey.json");
    assert!(stdout(&tandem(&["verify", &vkey, &public, &proof])).contains("OK"));
}

#[test]
fn refuses_a_gpu_that_is_not_there() {
    let output = tandem(&["doctor", "--device", "cuda:0"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("NVIDIA") || text.contains("CUDA"), "{text}");
}

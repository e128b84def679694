//! Programs of C++ that run the device's code on the host.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn native() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("native")
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Compiles `native/tests/SOURCE` with the C++ compiler (CXX, or c++), every warning an error, to a program of this name.
pub(crate) fn compile(source: &str, name: &str, arguments: &[&str]) -> PathBuf {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let folders = [native().join("include"), native().join("src"), native().join("../../cuda/native/include")];
    let run = Command::new(&compiler)
        .args(["-x", "c++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror"])
        .args(folders.iter().flat_map(|folder| [Path::new("-I"), folder]))
        .args(arguments)
        .arg(native().join("tests").join(source))
        .arg("-o")
        .arg(scratch(name))
        .output()
        .unwrap_or_else(|e| panic!("cannot run the C++ compiler {compiler}: {e}; install g++ or set CXX"));
    assert!(run.status.success(), "{source}:\n{}", String::from_utf8_lossy(&run.stderr));
    scratch(name)
}

/// Runs a program on a file of these bytes, which has this name.
pub(crate) fn run(program: &Path, bytes: &[u8], name: &str) -> Output {
    let file = scratch(name);
    std::fs::write(&file, bytes).unwrap();
    let output = Command::new(program).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    output
}

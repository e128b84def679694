//! Every native header compiles alone: with the C++ compiler, and with nvcc where there is one. The C headers of the
//! border compile as C too.

use std::path::{Path, PathBuf};
use std::process::Command;

fn headers(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            headers(&path, out);
        } else if path.extension().is_some_and(|e| e == "h" || e == "cuh") {
            out.push(path);
        }
    }
}

/// Compiles a file that includes `header` and nothing else; the message of the compiler if it fails.
fn alone(compiler: &Path, args: &[&str], kind: &str, header: &Path, folders: &[PathBuf]) -> Option<String> {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let stem = header.file_name().unwrap().to_string_lossy().replace('.', "_");
    let source = work.join(format!("alone_{stem}.{kind}"));
    std::fs::write(&source, format!("#include \"{}\"\n", header.display())).unwrap();
    let output = Command::new(compiler)
        .args(args)
        .args(folders.iter().map(|dir| format!("-I{}", dir.display())))
        .args([Path::new("-c"), Path::new("-o"), &source.with_extension(format!("{kind}.o")), &source])
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}", compiler.display()));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then(|| format!("{} alone, as {kind}:\n{message}", header.display()))
}

fn check(compile: impl Fn(&Path, &[PathBuf]) -> Option<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["native/include", "../cuda/native/include", "../fabric/native/include"].map(|dir| root.join(dir));
    let mut found = Vec::new();
    for folder in &folders {
        headers(folder, &mut found);
    }
    assert!(found.len() > 5, "the headers are found: {found:?}");
    let failed: Vec<String> = found.iter().filter_map(|header| compile(header, &folders)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn with_the_host_compiler() {
    let (cxx, cc) = (Path::new("c++"), Path::new("cc"));
    let flags = ["-Wall", "-Wextra", "-Werror", "-Wno-pragma-once-outside-header", "-Wno-unknown-warning-option"];
    check(|header, folders| {
        let as_cxx = alone(cxx, &[&flags[..], &["-std=c++17"]].concat(), "cpp", header, folders);
        if header.extension().is_some_and(|e| e == "cuh") {
            return as_cxx;
        }
        as_cxx.or_else(|| alone(cc, &[&flags[..], &["-std=c11"]].concat(), "c", header, folders))
    });
}

#[test]
fn with_nvcc() {
    let toolkit = match tandem_cuda_build::toolkit::find(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(toolkit) => toolkit,
        Err(reason) => {
            assert_ne!(std::env::var("TANDEM_REQUIRE_NVCC").as_deref(), Ok("1"), "{reason}");
            tandem_cuda::testing::skipped(&format!("no nvcc: {reason}"));
            return;
        }
    };
    let flags = ["-std=c++17", "-arch=sm_90", "-Werror=all-warnings"];
    check(|header, folders| alone(&toolkit.nvcc, &flags, "cu", header, folders));
}

//! Compiles peer.cu once per curve and small.cu once per small field, for sm_90, and links each into its own program.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let out = PathBuf::from(variable("OUT_DIR"));
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=../../../crates/ops-cuda/native/include");
    for (name, feature, source) in [
        ("bn254", "FEATURE_BN254", "src/peer.cu"),
        ("bls12_381", "FEATURE_BLS12_381", "src/peer.cu"),
        ("goldilocks", "FEATURE_GOLDILOCKS", "src/small.cu"),
        ("baby_bear", "FEATURE_BABY_BEAR", "src/small.cu"),
    ] {
        let object = out.join(format!("{name}.o"));
        let status = Command::new(std::env::var("NVCC").unwrap_or_else(|_| "nvcc".into()))
            .args(["-std=c++17", "-O3", "-gencode", "arch=compute_90,code=sm_90", "-c", "-Xcompiler", "-fPIC"])
            .args(["-D", feature, "-D", "TAKE_RESPONSIBILITY_FOR_ERROR_MESSAGE", "-diag-suppress", "177"])
            .args(["-I", &variable("DEP_SPPARK_ROOT"), "-I", &variable("DEP_BLST_C_SRC")])
            .args(["-I", "../../../crates/ops-cuda/native/include", "-o"])
            .arg(&object)
            .arg(source)
            .status()
            .expect("cannot run nvcc: put it on PATH or set NVCC");
        assert!(status.success(), "nvcc failed for {name}");
        println!("cargo:rustc-link-arg-bin=sppark-{name}={}", object.display());
    }
    // After the objects that need them.
    for library in ["sppark_cuda", "blst", "cudart_static", "stdc++", "rt", "dl", "pthread"] {
        println!("cargo:rustc-link-arg-bins=-l{library}");
    }
}

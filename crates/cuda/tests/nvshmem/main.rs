//! NVSHMEM before it is started: stand-ins for its library, made with the C++ compiler, and the layouts of its structures against its headers.

use std::path::{Path, PathBuf};
use std::process::Command;
use tandem_cuda::nvshmem::{Nvshmem, ID_BYTES};

fn compile(name: &str, source: &str, arguments: &[&str]) -> PathBuf {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let run = Command::new(&compiler)
        .args(["-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fPIC"])
        .args(arguments)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvshmem").join(source))
        .arg("-o")
        .arg(&made)
        .output()
        .unwrap_or_else(|e| panic!("cannot run the C++ compiler {compiler}: {e}; install g++ or set CXX"));
    assert!(run.status.success(), "{source} {arguments:?}:\n{}", String::from_utf8_lossy(&run.stderr));
    made
}

/// A library that says that it is of this version, with a function left out.
fn stand_in(name: &str, (major, minor): (u32, u32), without: Option<&str>) -> PathBuf {
    let version = [format!("-DMAJOR={major}"), format!("-DMINOR={minor}")];
    let renamed = without.map(|without| format!("-D{without}=renamed"));
    let mut arguments: Vec<&str> = vec!["-shared", &version[0], &version[1]];
    arguments.extend(renamed.as_deref());
    compile(name, "stand_in.cpp", &arguments)
}

#[test]
fn versions_whose_interface_is_not_known_are_refused() {
    for (major, minor) in [(3, 3), (2, 11), (4, 0)] {
        let library = stand_in(&format!("libnvshmem_{major}_{minor}.so"), (major, minor), None);
        let reason = Nvshmem::load(Some(&library)).unwrap_err();
        assert!(reason.contains(&format!("is NVSHMEM {major}.{minor}.7, expected 3.4 or a later 3")), "{reason}");
        assert!(reason.contains(library.to_str().unwrap()), "{reason}");
    }
    for (major, minor) in [(3, 4), (3, 8)] {
        let library = stand_in(&format!("libnvshmem_{major}_{minor}.so"), (major, minor), None);
        assert_eq!(Nvshmem::load(Some(&library)).unwrap().version(), format!("{major}.{minor}.7"));
    }
}

#[test]
fn a_function_that_is_missing_is_named() {
    let functions = [
        "nvshmemx_vendor_get_version_info",
        "nvshmemx_get_uniqueid",
        "nvshmemx_set_attr_uniqueid_args",
        "nvshmemx_hostlib_init_attr",
        "nvshmemx_init_status",
        "nvshmem_my_pe",
        "nvshmem_n_pes",
        "nvshmem_align",
        "nvshmem_free",
        "nvshmem_ptr",
        "nvshmemx_putmem_on_stream",
        "nvshmemx_getmem_on_stream",
        "nvshmemx_signal_op_on_stream",
        "nvshmemx_signal_wait_until_on_stream",
        "nvshmemx_quiet_on_stream",
    ];
    for function in functions {
        let library = stand_in(&format!("libnvshmem_without_{function}.so"), (3, 8), Some(function));
        let reason = Nvshmem::load(Some(&library)).unwrap_err();
        assert!(reason.contains(&format!("has no {function}:")) && reason.contains("3.4 or later"), "{reason}");
    }
}

/// The stand-in's id tells the version of the structure that it was given, and fails where that is another.
#[test]
fn an_id_comes_whole_and_a_failure_says_where() {
    let good = Nvshmem::load(Some(&stand_in("libnvshmem_id.so", (3, 4), None))).unwrap();
    let id = good.unique_id().unwrap();
    assert_eq!(id[..4], ((1i32 << 16) + ID_BYTES as i32).to_ne_bytes());
    assert!(id[4..].iter().enumerate().all(|(i, &byte)| byte == (7 * i % 251) as u8));
    let library = compile("libnvshmem_fails.so", "stand_in.cpp", &["-shared", "-DMAJOR=3", "-DMINOR=8", "-DFAILS"]);
    let reason = Nvshmem::load(Some(&library)).unwrap().unique_id().unwrap_err();
    assert!(reason.contains("nvshmemx_get_uniqueid of NVSHMEM 3.8.7 failed (7)"), "{reason}");
}

/// The one that TANDEM_NVSHMEM names: ids are made without a GPU, and each is another.
#[test]
fn the_real_library_makes_ids() {
    let Some(library) = std::env::var_os("TANDEM_NVSHMEM") else {
        return println!("SKIPPED, as TANDEM_NVSHMEM names no library");
    };
    let nvshmem = Nvshmem::load(Some(Path::new(&library))).unwrap();
    let id = nvshmem.unique_id().unwrap();
    assert_eq!(id[..4], ((1i32 << 16) + ID_BYTES as i32).to_ne_bytes());
    assert!(id[4..].iter().any(|&byte| byte != 0) && id != nvshmem.unique_id().unwrap(), "{id:?}");
}

/// Against the headers beside the library that TANDEM_NVSHMEM names, as the wheels have them.
#[test]
fn layouts_are_those_of_the_headers() {
    let named = std::env::var_os("TANDEM_NVSHMEM").map(PathBuf::from);
    let include = named.as_deref().and_then(|library| Some(library.parent()?.parent()?.join("include")));
    let Some(include) = include.filter(|include| include.join("device_host/nvshmem_types.h").exists()) else {
        return println!("SKIPPED, as TANDEM_NVSHMEM names no library with headers beside it");
    };
    compile("nvshmem_layouts.o", "layouts.cpp", &["-c", "-isystem", include.to_str().unwrap()]);
}

//! Has the C++ library, of which the kernels' launchers take a few functions, linked into the program where the compiler has it as an archive:
//! to load it at each start takes longer than to read a command line.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CXX");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".into());
    let found = Command::new(compiler).arg("-print-file-name=libstdc++.a").output();
    let found = found.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_string()).unwrap_or_default();
    let (archive, folder) = (Path::new(&found), std::env::var("OUT_DIR").unwrap_or_default());
    // A compiler that has none prints the name alone. Then the shared library is linked.
    if !archive.is_absolute() {
        return;
    }
    // A folder that has the archive and not the shared library beside it, which linkers prefer; it is looked in first.
    let link = Path::new(&folder).join("libstdc++.a");
    _ = std::fs::remove_file(&link);
    if std::os::unix::fs::symlink(archive, &link).is_ok() {
        println!("cargo:rustc-link-search=native={folder}");
    }
}

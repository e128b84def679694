//! The functions of C from C, on pretend PEs. scripts/fabric-c.sh builds the library first.

use std::path::Path;
use std::process::Command;

#[test]
fn from_c() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = tmp.ancestors().nth(1).unwrap().join("debug");
    assert!(library.join("libtandem_fabric_c.so").exists(), "{library:?} lacks the library: run scripts/fabric-c.sh");
    let program = tmp.join("fabric_c");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread", "-I"]);
    command.arg(root.join("include")).arg(root.join("tests/c/fabric.c"));
    command.arg("-L").arg(&library).args(["-ltandem_fabric_c", "-o"]).arg(&program);
    let run = command.output().unwrap_or_else(|e| panic!("cannot run the C compiler {compiler}: {e}"));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let run = Command::new(&program).env("LD_LIBRARY_PATH", &library).output().unwrap();
    let (out, told) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n", "{}: {out}{told}", run.status);
}

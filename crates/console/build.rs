//! Puts the commit of the sources into the program, for `doctor` and the rows of benches.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=TANDEM_COMMIT");
    // The log of HEAD grows with every commit and checkout. Cargo would rebuild always if a file were missing.
    let log = Path::new("../../.git/logs/HEAD");
    if log.exists() {
        println!("cargo:rerun-if-changed={}", log.display());
    }
    let commit = std::env::var("TANDEM_COMMIT").ok().or_else(|| {
        let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    });
    println!("cargo:rustc-env=TANDEM_COMMIT_BUILT={}", commit.unwrap_or_else(|| "unknown".into()));
}

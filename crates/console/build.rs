//! Puts the commit of the sources into the program, for `--version`, `doctor` and the rows of benches.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=TANDEM_COMMIT");
    println!("cargo:rustc-env=TANDEM_COMMIT_BUILT={}", commit().unwrap_or_else(|| "unknown".into()));
}

/// None where the sources are no checkout, or there is no git.
fn commit() -> Option<String> {
    if let Ok(commit) = std::env::var("TANDEM_COMMIT") {
        return Some(commit);
    }
    let root = Path::new("../..").canonicalize().ok()?;
    // Sources may be unpacked within a checkout of something else.
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    // The log of HEAD grows with every commit and checkout. Cargo would rebuild always if a file were missing.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

//! The repository's own commands: `cargo xtask <command>`.
#![forbid(unsafe_code)]

mod bindgen;
mod command_line;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <command>

  bindgen [--check]   make the Rust bindings of the native headers, or check that they are up to date
  tidy                check the rules of the house
  fuzz-command-line SECONDS
                      run the program with damaged files and odd options (scripts/fuzz.sh SECONDS command_line)
  replay FOLDER       run one case of these again";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["bindgen"] => bindgen::run(&root(), false),
        ["bindgen", "--check"] => bindgen::run(&root(), true),
        ["fuzz-command-line", seconds] => command_line::run(&root(), seconds),
        ["replay", folder] => command_line::replay(&root(), folder),
        ["tidy"] => tidy::run(&root()),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

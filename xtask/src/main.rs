//! The repository's own commands: `cargo xtask <command>`.
#![forbid(unsafe_code)]

mod bindgen;
mod command_line;
mod deny;
mod edits;
mod layers;
mod packages;
mod requests;
mod tidy;
mod tiers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <command>

  bindgen [--check]   make the Rust bindings of the native headers, or check that they are up to date
  deny                check licences and sources of all packages against deny.toml
  tidy                check the rules of the house
  edits CRATE SECONDS
                      make single edits to a copy of crates/CRATE: which of them does no test of it notice?
  fuzz-command-line SECONDS
                      run the program with damaged files and odd options (scripts/fuzz.sh SECONDS command_line)
  replay FOLDER       run one case of these again
  fuzz-requests SECONDS
                      send a running service damaged requests (scripts/fuzz.sh SECONDS requests)
  replay-request FILE send one of these again
  test TIER           run the tests of a tier
  test --list TIER    print the names of its test programs; tiers:
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["bindgen"] => bindgen::run(&root(), false),
        ["bindgen", "--check"] => bindgen::run(&root(), true),
        ["deny"] => deny::run(&root()),
        ["edits", name, seconds] => edits::run(&root(), name, seconds),
        ["fuzz-command-line", seconds] => command_line::run(&root(), seconds),
        ["fuzz-requests", seconds] => requests::run(&root(), seconds),
        ["replay-request", file] => requests::replay(&root(), file),
        ["replay", folder] => command_line::replay(&root(), folder),
        ["test", "--list", tier] => tiers::list(tier),
        ["test", tier] => tiers::run(&root(), tier),
        ["tidy"] => tidy::run(&root()),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}{}", tiers::names());
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}{}", tiers::names());
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

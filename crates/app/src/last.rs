//! What holds even where the program itself fails: no file is left half written, no memory is written to disk, and one line says
//! what to do.

use nix::sys::resource::{setrlimit, Resource};
use std::io::Write;

/// The exit status of a program that fails itself, as of a device that does.
const STATUS: u8 = 3;

/// What is said where the program aborts. Which of the two it is stands above, in a line of the standard library's.
const ABORTED: &str =
    "error: out of memory, or a fault of tandem: nothing was written; give it more memory, or report it with the command line\n";

/// To be called before anything else.
pub(crate) fn install() {
    keep_memory_off_the_disk();
    std::panic::set_hook(Box::new(|panic| {
        tandem_formats::output::abandon();
        // Not what it says: that may hold a value of a witness.
        let at = panic.location().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()));
        let _ = writeln!(
            std::io::stderr(),
            "error: a fault of tandem{at}: nothing was written; report it with the command line"
        );
        std::process::exit(STATUS.into());
    }));
    // Without it, an abort leaves hidden files, which the next run in their folder removes.
    let _ = tandem_formats::on_abort(STATUS.into(), ABORTED);
}

/// Memory holds witnesses. The limit is what the system looks at where it writes core files itself; where it hands them to a
/// program, only the other counts, which also keeps the user's other programs from reading this one's memory.
fn keep_memory_off_the_disk() {
    let limit = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let dumpable = nix::sys::prctl::set_dumpable(false);
    if let Err(error) = limit.and(dumpable) {
        tandem_console::report::note(&format!("warning: a core file of this program could hold a witness: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Output};

    /// Set in a second run of one of these tests, which is to end badly; names the folder of its output.
    const FOLDER: &str = "TANDEM_TEST_FOLDER";

    /// Runs this test again in a program of its own, which begins a file, calls `install` and then `fails`. Returns how it ended.
    fn ends(test: &str, fails: impl FnOnce()) -> Option<Output> {
        if let Some(folder) = std::env::var_os(FOLDER) {
            install();
            let path = std::path::Path::new(&folder).join("x");
            let mut output = tandem_formats::Output::create(path).unwrap();
            output.write_all(&[1; 1 << 21]).unwrap();
            assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
            fails();
            std::process::exit(77);
        }
        let folder = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let args = [&format!("last::tests::{test}"), "--exact", "--nocapture", "--test-threads=1"];
        let output =
            Command::new(program).args(args).env(FOLDER, folder.path()).env_remove("RUST_BACKTRACE").output().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        Some(output)
    }

    fn is_told(output: Output, lines: &[&str]) {
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        let said: Vec<&str> = stderr.lines().filter(|line| !line.is_empty()).collect();
        // Between the first and the last stands what the standard library says of backtraces.
        assert!(said.len() <= lines.len().pow(2), "{stderr}");
        assert!(said.first().unwrap().contains(lines[0]), "{stderr}");
        assert!(said.last().unwrap().contains(lines[lines.len() - 1]), "{stderr}");
    }

    #[test]
    fn a_panic_in_any_thread_leaves_nothing() {
        let fails = || {
            let _ = std::thread::spawn(|| panic!("a secret")).join();
        };
        if let Some(output) = ends("a_panic_in_any_thread_leaves_nothing", fails) {
            assert!(!String::from_utf8_lossy(&output.stderr).contains("secret"));
            is_told(output, &["error: a fault of tandem at crates/app/src/last.rs:"]);
        }
    }

    #[test]
    fn exhausted_memory_leaves_nothing() {
        let fails = || drop(std::hint::black_box(Vec::<u8>::with_capacity(isize::MAX as usize)));
        if let Some(output) = ends("exhausted_memory_leaves_nothing", fails) {
            is_told(output, &["memory allocation of", "error: out of memory, or a fault of tandem"]);
        }
    }

    #[test]
    fn a_stack_that_overflows_leaves_nothing() {
        fn deeper(depth: u64) -> u64 {
            let room = std::hint::black_box([depth; 64]);
            if std::hint::black_box(depth) == u64::MAX {
                0
            } else {
                deeper(depth + 1) + room[7]
            }
        }
        let fails = || assert!(std::hint::black_box(deeper(0)) > 0);
        if let Some(output) = ends("a_stack_that_overflows_leaves_nothing", fails) {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code() == Some(3) && stderr.contains("fault of tandem"), "{stderr}");
        }
    }

    #[test]
    fn memory_stays_off_the_disk() {
        keep_memory_off_the_disk();
        assert_eq!(nix::sys::resource::getrlimit(Resource::RLIMIT_CORE).unwrap(), (0, 0));
        assert!(!nix::sys::prctl::get_dumpable().unwrap());
    }
}

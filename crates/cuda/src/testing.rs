//! For tests that need GPUs.

use crate::{probe, Device};
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many usable GPUs `TANDEM_REQUIRE_GPU` says that there must be; none where it is not set.
///
/// # Panics
/// It is no number.
pub fn required() -> usize {
    match std::env::var("TANDEM_REQUIRE_GPU") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("TANDEM_REQUIRE_GPU={text}: expected a number of GPUs")),
        Err(_) => 0,
    }
}

/// The usable GPUs, or none on a machine without, where the test counts as [`skipped`]. A machine with fewer than
/// [`required`] fails the test instead. With `TANDEM_TEST_PES` the first GPU so many times: what is written for several GPUs then runs on
/// one.
///
/// # Panics
/// There are fewer usable GPUs than `TANDEM_REQUIRE_GPU` says.
pub fn gpus() -> Vec<Device> {
    at_least(1)
}

/// The usable GPUs if there are so many; else none, and the test counts as [`skipped`].
///
/// # Panics
/// There are fewer usable GPUs than `TANDEM_REQUIRE_GPU` says.
pub fn at_least(wanted: usize) -> Vec<Device> {
    let (usable, reason) = match probe() {
        Ok(found) => {
            let usable: Vec<Device> = found.iter().filter_map(|f| f.usable.clone().ok()).collect();
            (usable, found.into_iter().filter_map(|f| f.usable.err()).collect::<Vec<_>>().join("; "))
        }
        Err(reason) => (Vec::new(), reason),
    };
    let (found, required) = (usable.len(), required());
    assert!(found >= required, "{required} GPUs are required, {found} can be used: {reason}");
    let pes = std::env::var("TANDEM_TEST_PES").ok().map(|text| match text.parse::<usize>() {
        Ok(pes) if pes > 0 => pes,
        _ => panic!("TANDEM_TEST_PES={text}: expected a number of PEs"),
    });
    let usable = match (pes, usable.first()) {
        (Some(pes), Some(first)) => vec![*first; pes],
        _ => usable,
    };
    let found = usable.len();
    if found >= wanted {
        return usable;
    }
    match found {
        0 => skipped("no GPU"),
        _ => skipped(&format!("{found} of {wanted} GPUs")),
    }
    Vec::new()
}

/// Held by a test whose kernels wait for the host: whatever another one allocates, frees or loads meanwhile may wait for them too, and
/// they for it.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says on stderr, once for each test, that the test or a part of it was passed over: `skipped: PROGRAM::TEST: REASON`. It is
/// written past what libtest captures of tests that pass; scripts/test.sh counts these lines.
pub fn skipped(reason: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let line = skip_line(reason);
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        // A line that nobody can read is no reason to fail.
        std::io::stderr().write_all(line.as_bytes()).unwrap_or_default();
    }
}

/// The line for the test that this thread runs: libtest names its threads after the tests.
fn skip_line(reason: &str) -> String {
    let program = std::env::current_exe().ok().and_then(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let program = program.unwrap_or_default();
    // Without the hash that cargo appends.
    let program = program.rsplit_once('-').map_or(program.as_str(), |(name, _)| name);
    let thread = std::thread::current();
    format!("skipped: {program}::{}: {reason}\n", thread.name().unwrap_or("unnamed"))
}

#[cfg(test)]
mod tests {
    /// In a process of its own, which is told to have more GPUs than any machine.
    #[test]
    fn fewer_gpus_than_are_required_fail_and_a_skip_is_told_once() {
        const CHILD: &str = "TANDEM_TEST_CHILD";
        if std::env::var_os(CHILD).is_some() {
            super::skipped("twice");
            super::skipped("twice");
            super::gpus();
            return;
        }
        let run = |required| {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "testing::tests::fewer_gpus_than_are_required_fail_and_a_skip_is_told_once"]);
            child.env(CHILD, "1").env("TANDEM_REQUIRE_GPU", required).output().unwrap()
        };
        let output = run("1000");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success() && out.contains("1000 GPUs are required"), "{out}");
        assert_eq!(err.lines().filter(|line| line.ends_with(": twice")).count(), 1, "{err}");
        assert!(run("0").status.success());
    }

    #[test]
    fn a_skip_names_program_and_test() {
        let line = super::skip_line("no GPU");
        assert_eq!(line, "skipped: tandem_cuda::testing::tests::a_skip_names_program_and_test: no GPU\n");
    }
}

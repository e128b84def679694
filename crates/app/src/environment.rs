//! The variables of the environment that the program reads, in one place; a name that looks like one of them and is none is told.

use tandem_console::report;
use tandem_service::SETTINGS;

/// Variables that a user sets: the name, the option that does the same, and what it is for.
pub(crate) const VARIABLES: [(&str, &str, &str); 18] = [
    ("TANDEM_DEVICE", "--device", "where to compute: auto, cpu, cuda, cuda:0,1 or sim:N"),
    ("TANDEM_SCHEDULE", "--schedule", "how several GPUs share the work: auto, roles, split, each or blueprint"),
    ("TANDEM_GPU_MEMORY", "--gpu-memory", "memory to take of each GPU, at most, such as 16GiB"),
    ("TANDEM_THREADS", "--threads", "threads of the CPU; all processors unless set"),
    ("TANDEM_COLOR", "--color", "auto, always or never"),
    ("TANDEM_MAX_STEPS", "--max-steps", "millions of steps of a circuit's program"),
    ("TANDEM_MAX_SECONDS", "--max-seconds", "seconds of a circuit's program"),
    ("TANDEM_MAX_MEMORY", "--max-memory", "MiB for a circuit's program, its inputs and the witness"),
    ("TANDEM_RECORDINGS", "--recordings", "which runs of circuits are recorded: auto, all or off"),
    ("TANDEM_AVX512", "", "0: the CPU does without AVX-512, with the same results"),
    (
        "TANDEM_CACHE_DIR",
        "",
        "folder of checked keys and recordings; else $XDG_CACHE_HOME/tandem, else ~/.cache/tandem",
    ),
    (
        "TANDEM_SERVER",
        "--server",
        "address of the service that submit, batch, status, wait, cancel, trace and keys call",
    ),
    ("TANDEM_TOKEN", "", "token to show to the service, unless --token-file has one"),
    ("TANDEM_SERVER_CA", "--ca", "file of the authorities by which the service's certificate is trusted"),
    ("TANDEM_SERVE_CONFIG", "--config", "file of settings of the service"),
    ("TANDEM_MEET", "", "where processes of a team meet: a folder or tcp:HOST:PORT"),
    ("TANDEM_NODES_SECRET", "", "what lets processes into a team over several nodes; 16 characters at least"),
    ("NO_COLOR", "", "if not empty: no colour, unless --color says so (https://no-color.org)"),
];

/// All that users set: also the settings of the service.
fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    VARIABLES.into_iter().chain(SETTINGS.map(|(_, variable, what)| (variable, "", what)))
}

/// Names that builds, tests, scripts and crates in integrations/ use, and which a shell, or cargo where it runs the program, may have.
const OTHERS: [&str; 49] = [
    "TANDEM_BINARY",
    "TANDEM_BUNDLE_MIB",
    "TANDEM_BUNDLE_REAL",
    "TANDEM_COMMIT",
    "TANDEM_COMMIT_BUILT",
    "TANDEM_CONFORMANCE_LOG_N",
    "TANDEM_CONFORMANCE_SHARE",
    "TANDEM_CUDA_ARCHS",
    "TANDEM_CUDA_ARCHS_BUILT",
    "TANDEM_CUDA_INCLUDE",
    "TANDEM_CUDA_QUICK",
    "TANDEM_DRILL_JOBS",
    "TANDEM_EDIT",
    "TANDEM_EDITS_SECONDS",
    "TANDEM_FABRIC_CHECKS",
    "TANDEM_FILECOIN",
    "TANDEM_FILECOIN_PROVER",
    "TANDEM_FUZZ_SECONDS",
    "TANDEM_FUZZ_SEED",
    "TANDEM_HOG_LEAVES",
    "TANDEM_KEY_MEMORY",
    "TANDEM_NCCL",
    "TANDEM_NCCL_INCLUDE",
    "TANDEM_NCCL_LIBRARIES",
    "TANDEM_NCCL_LIBRARY",
    "TANDEM_NODES",
    "TANDEM_NODES_AT",
    "TANDEM_NVCC",
    "TANDEM_NVCC_VERSION",
    "TANDEM_NVSHMEM",
    "TANDEM_PROOFS",
    "TANDEM_RANK",
    "TANDEM_REQUIRE_GPU",
    "TANDEM_REQUIRE_GRPC",
    "TANDEM_REQUIRE_NVCC",
    "TANDEM_REQUIRE_S3",
    "TANDEM_SIZE",
    "TANDEM_TEST_CHILD",
    "TANDEM_TEST_DEVICE",
    "TANDEM_TEST_PES",
    "TANDEM_TEST_FOLDER",
    "TANDEM_TEST_LIMITED",
    "TANDEM_TEST_LIMITED_COEFFICIENTS",
    "TANDEM_TEST_NODES",
    "TANDEM_TEST_NO_THREADS",
    "TANDEM_TEST_PIECES",
    "TANDEM_TEST_ROUNDS",
    "TANDEM_TEST_SECONDS",
    "TANDEM_WRITE_PARAMS",
];

/// Takes away variables that are empty, as if they were not set. To be called before there are other threads.
pub(crate) fn forget_empty() {
    for (name, ..) in all() {
        if std::env::var_os(name).is_some_and(|value| value.is_empty()) {
            std::env::remove_var(name);
        }
    }
}

/// Warns of variables that begin as ours do and mean nothing.
pub(crate) fn check() {
    for (name, _) in std::env::vars_os() {
        if let Some(warning) = name.to_str().and_then(warning) {
            report::warn(&warning);
        }
    }
}

/// How our variables begin.
const PREFIX: &str = "TANDEM_";

fn warning(name: &str) -> Option<String> {
    let known = || all().map(|(name, ..)| name);
    if !name.starts_with(PREFIX) || known().chain(OTHERS).any(|other| other == name) {
        return None;
    }
    let nearest = known().map(|other| (distance(name, other), other)).min()?;
    // Beyond a third of what is behind the prefix it is no slip, unless the end was left out.
    let is_slip = nearest.0 * 3 <= name.len() - PREFIX.len() || nearest.1.starts_with(name);
    let meant = if is_slip { format!(", did you mean {}?", nearest.1) } else { ";".into() };
    Some(format!("{name} is no variable of tandem{meant} 'tandem help environment' lists them"))
}

/// Letters to put in, take out or change to make one text of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The variable that gives an option its value, where the environment has it.
pub(crate) fn of_option(option: &str) -> Option<&'static str> {
    let (name, ..) = VARIABLES.iter().find(|(_, of, _)| !of.is_empty() && *of == option)?;
    std::env::var_os(name).map(|_| *name)
}

/// The list, for `tandem help environment`.
pub(crate) fn help() -> String {
    let mut text = "Variables of the environment; an option on the command line comes first.\n\n".to_string();
    for (name, option, what) in all() {
        let option = if option.is_empty() { String::new() } else { format!("as {option}: ") };
        text += &report::row(28, name, &format!("{option}{what}"));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_told_with_the_nearest() {
        let says = |name: &str| warning(name).unwrap_or_default();
        assert!(says("TANDEM_DEVISE").contains("did you mean TANDEM_DEVICE?"));
        assert!(says("TANDEM_THREAD").contains("did you mean TANDEM_THREADS?"));
        assert!(says("TANDEM_CACHE").contains("TANDEM_CACHE_DIR") || says("TANDEM_CACHE").contains("did you mean"));
        for short in ["TANDEM_FOO", "TANDEM_X", "TANDEM_"] {
            let far = says(short);
            assert!(far.contains("no variable of tandem; ") || short == "TANDEM_", "{far}");
        }
        let far = says("TANDEM_SOMETHING_ELSE_ALTOGETHER");
        assert!(far.contains("no variable of tandem; ") && !far.contains("did you mean"), "{far}");
        for name in ["TANDEM_DEVICE", "TANDEM_NVCC", "TANDEMS", "PATH", "NO_COLOUR"] {
            assert_eq!(warning(name), None);
        }
    }

    /// The names that sources and scripts ask the environment for, or set in it: `var("NAME")` and the like, `$NAME`, `NAME=`.
    #[test]
    fn the_names_of_builds_and_tests_are_those_in_use() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (mut folders, mut found) = (vec![root], std::collections::BTreeSet::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                let is_ours = !["target", "node_modules", "docs"].contains(&&*name) && !name.starts_with('.');
                let is_read = [".rs", ".sh"].iter().any(|end| name.ends_with(end)) || name == "Makefile";
                if path.is_dir() && is_ours {
                    folders.push(path);
                } else if is_read && path.is_file() && !path.ends_with("app/src/environment.rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    for (at, _) in text.match_indices("TANDEM_") {
                        let rest = &text[at..];
                        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
                        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
                        let before = &text[..at];
                        let is_quoted =
                            before.ends_with('"') && after.starts_with('"') && path.extension().unwrap() == "rs";
                        let is_shell = before.ends_with('$') || before.ends_with("${") || after.starts_with('=');
                        if is_quoted || is_shell && path.extension().is_none_or(|end| end == "sh") {
                            found.insert(name.to_string());
                        }
                    }
                }
            }
        }
        // A slip that a test makes, and what all begin with.
        found.retain(|name| name != "TANDEM_DEVISE" && name != "TANDEM_");
        let known: std::collections::BTreeSet<String> =
            all().map(|(name, ..)| name).chain(OTHERS).filter(|n| *n != "NO_COLOR").map(String::from).collect();
        let missing: Vec<_> = found.difference(&known).collect();
        let gone: Vec<_> = known.difference(&found).collect();
        assert!(missing.is_empty() && gone.is_empty(), "not listed: {missing:?}; listed and unused: {gone:?}");
    }

    #[test]
    fn distances_are_those_of_letters() {
        for (a, b, expected) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("ab", "ba", 2), ("x", "x", 0)] {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }
}

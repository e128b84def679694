//! Checks the rules of the house that a program can check (ARCHITECTURE.md has all of them).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Lines that a file may have.
const MOST_LINES: usize = 650;
/// Beginnings of comments that cannot be read alone, unless they name an item.
const LEANING: [&str; 6] = ["The same", "Likewise", "As above", "As below", "Ditto", "So too"];
/// Words that stand for work that is not done. Written in pieces, so that this file passes.
const UNDONE: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X "),
    concat!("unimplement", "ed!"),
    concat!("to", "do!("),
    concat!("#[ign", "ore"),
];
/// Where `unsafe` may stand: three crates, the parts of the fabric that call native code, the memory of pretend PEs, the requests to the
/// operating system that have no safe form, and the programs around other people's code.
const UNSAFE: [&str; 16] = [
    "crates/cuda/",
    "crates/ops-cuda/",
    "crates/fabric/src/cuda/",
    "crates/fabric/src/exec/",
    "crates/fabric/src/host/",
    "crates/fabric/src/kernels/",
    "crates/fabric/src/process/launch.rs",
    "crates/fabric/src/process/lent.rs",
    "crates/fabric/src/sim/shared.rs",
    "crates/fabric/src/sim/range.rs",
    "crates/fabric/tests/",
    "crates/fabric-examples/",
    "crates/field-simd/src/",
    "integrations/",
    "crates/formats/src/system.rs",
    "bench/peers/",
];
/// What a launcher never does: allocate, wait, choose a device, print, throw.
const NO_LAUNCHER: [&str; 14] = [
    "cudaMalloc",
    "cudaHostAlloc",
    "cudaFree",
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaSetDevice",
    "cudaStreamCreate",
    "cudaMemcpy(",
    "cudaMemset(",
    "cudaMallocManaged",
    "printf",
    "std::cout",
    "throw ",
];
/// Which packages of ours a crate may depend on, outside its tests.
const DEPENDENCIES: [(&str, &[&str]); 20] = [
    ("cuda-build", &[]),
    ("cuda", &["cuda-build"]),
    ("field-simd", &[]),
    ("ops", &["field-simd"]),
    ("ops-cuda", &["cuda", "cuda-build", "fabric", "ops"]),
    ("conformance", &["ops"]),
    ("formats", &["ops"]),
    ("witness", &["formats", "ops"]),
    ("proof", &["ops"]),
    ("groth16", &["ops", "proof"]),
    ("plonk", &["ops", "proof"]),
    ("engine", &["formats", "groth16", "ops", "ops-cuda", "plonk", "proof"]),
    ("console", &["engine", "fabric-topology", "formats", "ops"]),
    ("bench", &["console", "cuda", "engine", "fabric", "formats", "groth16", "ops", "ops-cuda", "proof", "service"]),
    ("service", &["engine", "formats", "ops", "witness"]),
    ("app", &["bench", "console", "cuda", "engine", "fabric", "formats", "ops", "service", "witness"]),
    ("fabric-topology", &[]),
    ("fabric-plan", &["fabric-topology"]),
    ("fabric", &["cuda", "cuda-build", "fabric-plan", "fabric-topology"]),
    ("fabric-examples", &["cuda", "cuda-build", "fabric"]),
];

/// Reports every broken rule.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let files = files(root)?;
    let mut broken = Vec::new();
    for (path, text) in &files {
        broken.extend(file(path, text).into_iter().map(|reason| format!("{path}: {reason}")));
    }
    broken.extend(dependencies(&files));
    broken.extend(code_map(&files));
    broken.extend(records(&files));
    broken.extend(primitives(&files));
    broken.extend(crate::layers::check(&files));
    broken.extend(crate::tiers::check(&files));
    broken.extend(crate::packages::check(&files));
    if broken.is_empty() {
        return Ok(());
    }
    Err(broken.join("\n"))
}

/// Every text file that belongs to the repository, by its path from the root.
fn files(root: &Path) -> Result<BTreeMap<String, String>, String> {
    const KINDS: [&str; 15] =
        ["rs", "cu", "cuh", "h", "cpp", "c", "toml", "md", "sh", "py", "js", "mjs", "yml", "yaml", "circom"];
    let mut out = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let at = root.join(&folder);
        for entry in std::fs::read_dir(&at).map_err(|e| format!("{}: {e}", at.display()))? {
            let entry = entry.map_err(|e| format!("{}: {e}", at.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            let kind = entry.file_type().map_err(|e| format!("{}: {e}", path.display()))?;
            if kind.is_dir() {
                if !["target", "node_modules", "corpus", "artifacts"].contains(&name.as_str()) && !name.starts_with('.')
                {
                    folders.push(path);
                }
            } else if kind.is_file() && path.extension().is_some_and(|e| KINDS.iter().any(|k| e == *k)) {
                // A file that someone removes meanwhile, or that is no text, is none of ours.
                if let Ok(text) = std::fs::read_to_string(root.join(&path)) {
                    out.insert(path.display().to_string(), text);
                }
            }
        }
    }
    Ok(out)
}

/// The rules for one file.
fn file(path: &str, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let is_code =
        [".rs", ".cu", ".cuh", ".h", ".cpp", ".c", ".sh", ".py", ".js", ".mjs"].iter().any(|e| path.ends_with(e));
    let is_generated = path.ends_with("/ffi.rs") || path == "crates/service/src/proto/tandem.v1.rs";
    let lines = text.lines().count();
    if is_code && !is_generated && lines > MOST_LINES {
        broken.push(format!("{lines} lines; no file has more than {MOST_LINES}"));
    }
    for word in UNDONE.iter().filter(|word| text.contains(**word)) {
        broken.push(format!("{word:?} stands for work that is not done"));
    }
    broken.extend(
        leaning(text).map(|n| format!("line {n}: say what it is, or name what it is like: comments stand alone")),
    );
    if path.ends_with(".rs") {
        rust(path, text, is_generated, &mut broken);
    }
    let launchers = ["crates/ops-cuda/native/", "crates/fabric/native/", "crates/fabric-examples/native/"];
    if launchers.iter().any(|l| ["src/", "include/"].iter().any(|f| path.starts_with(&format!("{l}{f}")))) {
        for (number, line) in code(text) {
            for word in NO_LAUNCHER.iter().filter(|word| line.contains(**word)) {
                broken.push(format!("line {number}: a launcher does not call {word:?}"));
            }
        }
    }
    broken
}

/// Lines at which a documentation comment, or a part of it, begins by pointing at one that it does not name.
fn leaning(text: &str) -> impl Iterator<Item = usize> + '_ {
    let doc = |line: &'_ str| line.trim_start().strip_prefix("///").map(|rest| rest.trim().to_string());
    let begins = |before: Option<String>| before.is_none_or(|b| b.is_empty() || b.starts_with("# "));
    let before = std::iter::once("").chain(text.lines());
    text.lines().zip(before).enumerate().filter_map(move |(i, (line, before))| {
        let said = doc(line)?;
        let leans = LEANING.iter().any(|word| said.starts_with(word)) && !said.contains('`');
        (leans && begins(doc(before))).then_some(i + 1)
    })
}

fn rust(path: &str, text: &str, is_generated: bool, broken: &mut Vec<String>) {
    let in_crates = path.starts_with("crates/");
    if in_crates && !path.starts_with("crates/cuda/") && !is_generated {
        for (number, line) in code(text) {
            if let Some(name) = runtime_name(line) {
                broken.push(format!("line {number}: {name} belongs into crates/cuda or under native/"));
            }
        }
    }
    if is_generated || UNSAFE.iter().any(|allowed| path.starts_with(allowed)) || path.starts_with("xtask/") {
        return;
    }
    for (number, line) in code(text) {
        if line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe") {
            broken.push(format!("line {number}: unsafe is for crates/cuda, crates/ops-cuda, crates/field-simd, integrations, what the fabric calls, the mapping of files and the system's calls"));
        }
    }
    let is_root = in_crates && (path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"));
    let forbids = text.contains("#![forbid(unsafe_code)]");
    let denies = ["crates/formats/", "crates/fabric/"].iter().any(|k| path.starts_with(k))
        && text.contains("#![deny(unsafe_code)]");
    if is_root && !forbids && !denies {
        broken.push("has no #![forbid(unsafe_code)]".into());
    }
}

/// The lines of a source without what follows `//`.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, line)| (i + 1, line.split("//").next().unwrap_or("")))
}

/// A name of the CUDA runtime's functions and types, such as cudaMalloc, as a word outside a string.
fn runtime_name(line: &str) -> Option<&str> {
    // What lies between quotes is at the odd places.
    let outside = line.split('"').step_by(2);
    outside
        .flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .find(|word| word.strip_prefix("cuda").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase())))
}

/// Dependencies point one way, and every version stands in the root manifest.
fn dependencies(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in files {
        let Some(name) = path.strip_prefix("crates/").and_then(|p| p.strip_suffix("/Cargo.toml")) else { continue };
        let Some((_, allowed)) = DEPENDENCIES.iter().find(|(known, _)| *known == name) else {
            broken.push(format!("{path}: xtask/src/tidy.rs does not say what crates/{name} may depend on"));
            continue;
        };
        let mut section = "";
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.starts_with('[') {
                section = line;
                continue;
            }
            if !section.contains("dependencies") {
                continue;
            }
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or("");
            // Tests may use a crate of ours that depends on theirs: by its path alone, so that both can be published.
            let for_tests = section == "[dev-dependencies]" && line.contains("{ path = \"../");
            if !line.contains("workspace = true") && !for_tests {
                broken.push(format!("{path}: the version of {dependency} belongs into the root Cargo.toml"));
            }
            let ours = dependency.strip_prefix("tandem-");
            if section != "[dev-dependencies]" && ours.is_some_and(|ours| !allowed.contains(&ours)) {
                broken.push(format!("{path}: crates/{name} does not depend on {dependency}"));
            }
        }
    }
    broken
}

/// The code map of ARCHITECTURE.md has a row for each crate, which says what of ours the crate uses.
fn code_map(files: &BTreeMap<String, String>) -> Vec<String> {
    let map = files.get("ARCHITECTURE.md").map_or("", String::as_str);
    let mut broken = Vec::new();
    for (path, text) in files {
        let Some(name) = path.strip_prefix("crates/").and_then(|p| p.strip_suffix("/Cargo.toml")) else { continue };
        let mut section = "";
        let mut used = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                section = line;
            } else if section.ends_with("dependencies]") && section != "[dev-dependencies]" {
                used.extend(line.strip_prefix("tandem-").and_then(|rest| rest.split('.').next()));
            }
        }
        used.sort_unstable();
        used.dedup();
        let used = if used.is_empty() { "nothing".into() } else { used.join(", ") };
        let row = map.lines().find_map(|line| line.strip_prefix(&format!("| `{name}` |")));
        let said = row.and_then(|row| row.trim_end_matches([' ', '|']).rsplit('|').next());
        if said.map(str::trim) != Some(&used) {
            broken.push(format!("ARCHITECTURE.md: the code map's row of `{name}` ends with what it uses: {used}"));
        }
    }
    broken
}

/// Every decision record is numbered, and no number is used twice.
fn records(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut broken = Vec::new();
    let mut seen = BTreeMap::new();
    for (path, text) in files {
        let Some(name) = path.strip_prefix("docs/decisions/") else { continue };
        let number = name.split('-').next().unwrap_or("");
        if number.len() != 4 || !number.bytes().all(|b| b.is_ascii_digit()) {
            broken.push(format!("{path}: the name of a record begins with four digits and a dash"));
        } else if !text.starts_with(&format!("# {number}: ")) {
            broken.push(format!("{path}: the first line of a record is \"# {number}: \" and its title"));
        } else if let Some(other) = seen.insert(number.to_string(), path) {
            broken.push(format!("{path}: {other} has the same number"));
        }
    }
    broken
}

/// A primitive has one name everywhere.
fn primitives(files: &BTreeMap<String, String>) -> Vec<String> {
    let folders = |prefix: &str| {
        let mut names: Vec<&str> =
            files.keys().filter_map(|p| p.strip_prefix(prefix)?.split_once('/').map(|(name, _)| name)).collect();
        names.dedup();
        names
    };
    let mut broken = Vec::new();
    let mut names = folders("crates/ops-cuda/src/");
    names.extend(folders("crates/ops-cuda/native/src/"));
    names.sort_unstable();
    names.dedup();
    for name in names {
        for place in ["crates/ops/src", "crates/ops-cuda/src", "crates/ops-cuda/native/src", "crates/conformance/src"] {
            let exists =
                files.keys().any(|p| p.starts_with(&format!("{place}/{name}/")) || *p == format!("{place}/{name}.rs"));
            if !exists {
                broken.push(format!("{place}/{name} is missing: a primitive has one name everywhere"));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn house_is_tidy() {
        if let Err(broken) = run(&crate::root()) {
            panic!("{broken}");
        }
    }

    /// Every kind of rule is among those that are checked.
    #[test]
    fn a_house_that_breaks_every_rule_is_told_so() {
        let root = std::env::temp_dir().join(format!("tandem-xtask-tidy-{}", std::process::id()));
        let fine = ["ARCHITECTURE.md", "docs/decisions/0001-a.md", "crates/ops/Cargo.toml"];
        for (path, text) in [
            (fine[0], "| `ops` | does | never | nothing |"),
            (fine[1], "# 0001: A"),
            (fine[2], ""),
            ("crates/ops/src/a.rs", "unsafe"),
            ("crates/cuda/Cargo.toml", "[dependencies]\ntandem-ops.workspace = true"),
            ("docs/decisions/0002-b.md", "B"),
            ("crates/fabric/src/machine.rs", "use crate::team::Team;"),
            ("crates/ops-cuda/src/sort/mod.rs", ""),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let broken = run(&root).unwrap_err();
        for part in [
            "a.rs: line 1: unsafe",
            "does not depend on tandem-ops",
            "row of `cuda`",
            "# 0002: ",
            "`machine` names `team`",
            "src/sort is missing",
            "there is no crates/*/tests/e2e.rs",
        ] {
            assert!(broken.contains(part), "{part}: {broken}");
        }
        for path in
            ["crates/ops/src/a.rs", "crates/cuda", "crates/fabric", "docs/decisions/0002-b.md", "crates/ops-cuda"]
        {
            let path = root.join(path);
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
        }
        // What is left is for want of files that this house never had.
        let left = run(&root).unwrap_err();
        let of_this = |line: &&str| {
            ["ops/src/a.rs", "tandem-ops", "`cuda`", "0002", "src/sort"].iter().any(|part| line.contains(part))
        };
        assert_eq!(left.lines().find(of_this), None);
        std::fs::remove_dir_all(root).unwrap();
    }

    fn tree(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect()
    }

    #[test]
    fn finds_what_is_wrong_with_a_file() {
        let cases = [
            ("crates/ops/src/a.rs", "x\n".repeat(651), "651 lines"),
            ("crates/ops/src/a.rs", format!("// {}: later", UNDONE[0]), "not done"),
            ("crates/ops/src/a.rs", "let x = unsafe { f() };".into(), "line 1: unsafe is for"),
            ("crates/ops-cuda/src/a.rs", "\nlet x = cudaMalloc(8);".into(), "line 2: cudaMalloc belongs"),
            ("crates/ops/src/lib.rs", "//! x".into(), "forbid"),
            ("crates/ops-cuda/native/src/a.cu", "    cudaDeviceSynchronize();".into(), "a launcher does not"),
            ("crates/ops/src/a.rs", "/// A.\nfn a() {}\n    /// The same of b.".into(), "line 3: say what it is"),
            (
                "crates/ops/native/include/a.h",
                "/// B.\n///\n/// # Errors\n/// Likewise.".into(),
                "line 4: say what it is",
            ),
        ];
        for (path, text, expected) in cases {
            let broken = file(path, &text);
            assert!(broken.len() == 1 && broken[0].contains(expected), "{path}: {broken:?}");
        }
        let fine = [
            ("crates/cuda/src/a.rs", "unsafe { cudaMalloc(8) }"),
            ("crates/ops/src/a.rs", "// unsafe cudaMalloc\nlet a = \"cudaErrorNoDevice\"; let cuda = 1; cuda_x();"),
            ("crates/ops-cuda/native/src/a.cu", "cudaMemsetAsync(p, 0, n, s); // no cudaMalloc"),
            ("crates/ops/src/lib.rs", "#![forbid(unsafe_code)]"),
            ("crates/ops/src/a.rs", "/// The same as [`b`].\n// Likewise.\n/// Words that go on:\n/// The same words."),
        ];
        for (path, text) in fine {
            assert!(file(path, text).is_empty(), "{path}: {:?}", file(path, text));
        }
    }

    #[test]
    fn finds_dependencies_that_point_back() {
        let wrong = tree(&[
            ("crates/ops/Cargo.toml", "[dependencies]\ntandem-cuda.workspace = true\n"),
            ("crates/groth16/Cargo.toml", "[dev-dependencies]\ntandem-cuda.workspace = true\nrand = \"1\"\n"),
            ("crates/other/Cargo.toml", ""),
        ]);
        let broken = dependencies(&wrong);
        assert_eq!(broken.len(), 3, "{broken:?}");
        assert!(broken[0].contains("version of rand"), "{broken:?}");
        assert!(broken[1].contains("crates/ops does not depend on tandem-cuda"), "{broken:?}");
        assert!(broken[2].contains("crates/other"), "{broken:?}");
    }

    #[test]
    fn finds_what_the_code_map_leaves_out() {
        let manifest =
            "[dependencies]\ntandem-ops.workspace = true\n[dev-dependencies]\ntandem-cuda.workspace = true\n\
                        [build-dependencies]\ntandem-cuda-build.workspace = true\n";
        let broken = |map: &str| code_map(&tree(&[("crates/a/Cargo.toml", manifest), ("ARCHITECTURE.md", map)])).len();
        assert_eq!(broken("| `a` | does | never | cuda-build, ops |"), 0);
        for wrong in ["", "| `a` | does | never | ops |", "| `b` | does | never | cuda-build, ops |"] {
            assert_eq!(broken(wrong), 1, "{wrong}");
        }
    }

    #[test]
    fn finds_records_and_primitives_out_of_order() {
        let records_wrong = tree(&[
            ("docs/decisions/0001-a.md", "# 0001: A"),
            ("docs/decisions/0001-b.md", "# 0001: B"),
            ("docs/decisions/0002-c.md", "# C"),
            ("docs/decisions/notes.md", "# Notes"),
        ]);
        assert_eq!(records(&records_wrong).len(), 3);
        let half = tree(&[("crates/ops-cuda/src/sort/mod.rs", ""), ("crates/ops/src/sort.rs", "")]);
        let broken = primitives(&half);
        assert_eq!(broken.len(), 2, "{broken:?}");
    }
}

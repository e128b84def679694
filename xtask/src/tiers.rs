//! Tests by what they need: `cargo xtask test TIER` runs a tier, and `tidy` sees that every file of tests belongs to one.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Tests that need the same.
struct Tier {
    name: &'static str,
    /// What a machine must have, for people.
    needs: &'static str,
    /// Programs of tests, `crates/*/tests/NAME.rs` or `crates/*/tests/NAME/main.rs`, between spaces.
    files: &'static str,
    /// What runs them.
    runs: Runs,
}

enum Runs {
    /// One `cargo test` of these files, with more arguments, and another command if there is one.
    Cargo { more: &'static str, then: &'static str },
    /// The bundle for machines with a GPU (scripts/gpu-bundle.sh), built and run here.
    Bundle,
}

const TIERS: [Tier; 8] = [
    Tier {
        name: "host-math",
        needs: "g++",
        files: "host_fields host_ntt host_points host_poseidon host_scalars host_sumcheck",
        runs: Runs::Cargo { more: "", then: "" },
    },
    Tier {
        name: "cpu",
        needs: "nothing",
        files: "binary circuits cpu damage engine fflonk field files fourier graphs groth16 hostile interrupted json limit mutation params plonk points poseidon \
                properties replays service wiped witness",
        // Unit tests need nothing either, whichever crate they are of.
        runs: Runs::Cargo { more: "--lib --bins", then: "cargo test --workspace --locked --doc" },
    },
    Tier {
        name: "plan",
        needs: "nothing",
        files: "budget drawings exec_check exec_schedule levels nccl oracle plan plan_check random topology",
        runs: Runs::Cargo { more: "--example trees", then: "" },
    },
    Tier {
        name: "sim",
        needs: "g++",
        files: "array collectives_inside contexts device_host examples exec exec_dropped exec_faults exec_model exec_run exec_trial heap heap_faults heap_programs host \
                nvshmem processes small",
        runs: Runs::Cargo { more: "", then: "" },
    },
    Tier {
        name: "binary",
        needs: "nvcc",
        files: "bad_input beside builds check exit_status fabric fft generators hash headers helpers hostile_keys lagrange little newcomer outputs pictures porep program prove \
                recordings reduce run serve sort sumcheck vector wait",
        runs: Runs::Cargo { more: "", then: "cargo xtask bindgen --check" },
    },
    Tier { name: "e2e", needs: "node, Chromium", files: "e2e", runs: Runs::Cargo { more: "", then: "" } },
    Tier {
        name: "gpu",
        needs: "a GPU, nvcc",
        // Some are of other tiers too: they run on pretend PEs or the CPU, and on GPUs where there are any.
        files: "all_gather array backend collectives collectives_inside conformance contexts device_cuda examples exec exec_dropped exec_faults gpu gpu_faults \
                gpu_proofs guide heap heap_cuda heap_faults host launch operations small witness",
        runs: Runs::Bundle,
    },
    Tier {
        name: "sanitizer",
        needs: "a GPU, nvcc, compute-sanitizer",
        files: "backend conformance gpu",
        runs: Runs::Bundle,
    },
];

/// Libraries that have unit tests for GPUs.
const GPU_LIBRARIES: &str = "tandem_cuda tandem_fabric tandem_ops_cuda";

/// One line for each tier: its name and what it needs.
pub(crate) fn names() -> String {
    TIERS.iter().map(|tier| format!("      {:<10} needs {}\n", tier.name, tier.needs)).collect()
}

fn named(name: &str) -> Result<&'static Tier, String> {
    let found = TIERS.iter().find(|tier| tier.name == name);
    found.ok_or_else(|| format!("there is no tier {name}; there are:\n{}", names()))
}

/// Prints the names of a tier's test programs, one a line.
pub(crate) fn list(name: &str) -> Result<(), String> {
    let tier = named(name)?;
    let libraries = if tier.name == "gpu" { GPU_LIBRARIES } else { "" };
    tier.files.split_whitespace().chain(libraries.split_whitespace()).for_each(|program| println!("{program}"));
    Ok(())
}

/// Runs all tests of a tier.
pub(crate) fn run(root: &Path, name: &str) -> Result<(), String> {
    let mut failed = Vec::new();
    for command in commands(named(name)?) {
        println!("{command}");
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default();
        let status = Command::new(program).args(words).current_dir(root).status();
        if !status.map_err(|e| format!("{program}: {e}"))?.success() {
            failed.push(command);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("failed:\n{}", failed.join("\n")))
}

fn commands(tier: &Tier) -> Vec<String> {
    match tier.runs {
        Runs::Cargo { more, then } => {
            let files: String = tier.files.split_whitespace().map(|file| format!(" --test {file}")).collect();
            // The whole workspace: a part of it would build arkworks anew, with other features.
            let mut out = vec![format!("cargo test --workspace --locked --no-fail-fast {more}{files}")];
            if !then.is_empty() {
                out.push(then.into());
            }
            out
        }
        Runs::Bundle => {
            vec!["sh scripts/gpu-bundle.sh".into(), format!("sh .build/gpu-bundle/run.sh {}", tier.name)]
        }
    }
}

/// Files of tests that no tier runs, files that tiers name and nobody wrote, and tiers that ARCHITECTURE.md leaves out.
pub(crate) fn check(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut broken = Vec::new();
    let mut tests = BTreeMap::new();
    for path in files.keys().filter(|path| path.starts_with("crates/")) {
        let name =
            path.split_once("/tests/").and_then(|(_, file)| file.strip_suffix("/main.rs").or(file.strip_suffix(".rs")));
        if let Some(name) = name.filter(|name| !name.contains('/')) {
            tests.insert(name, path);
        }
    }
    for (name, path) in &tests {
        if !TIERS.iter().any(|tier| tier.files.split_whitespace().any(|file| file == *name)) {
            broken.push(format!("{path}: belongs to no tier of xtask/src/tiers.rs"));
        }
    }
    let map = files.get("ARCHITECTURE.md").map_or("", String::as_str);
    for Tier { name, needs, files, .. } in &TIERS {
        for file in files.split_whitespace().filter(|file| !tests.contains_key(file)) {
            broken.push(format!("xtask/src/tiers.rs: {name} names {file}: there is no crates/*/tests/{file}.rs"));
        }
        if !map.contains(&format!("| `{name}` | {needs} |")) {
            broken.push(format!("ARCHITECTURE.md: the table of tests has no row of `{name}`, which needs {needs}"));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with every file that the tiers name.
    fn whole() -> BTreeMap<String, String> {
        let path = |file| (format!("crates/a/tests/{file}.rs"), String::new());
        let mut files: BTreeMap<_, _> = TIERS.iter().flat_map(|tier| tier.files.split_whitespace().map(path)).collect();
        let table = TIERS.iter().map(|tier| format!("| `{}` | {} |\n", tier.name, tier.needs)).collect();
        files.insert("ARCHITECTURE.md".into(), table);
        for part in ["support/mod.rs", "service/http.rs"] {
            files.insert(format!("crates/a/tests/{part}"), String::new());
        }
        files
    }

    #[test]
    fn what_no_tier_runs_is_found() {
        assert!(check(&whole()).is_empty(), "{:?}", check(&whole()));
        let mut files = whole();
        files.insert("crates/a/tests/latest.rs".into(), String::new());
        files.insert("crates/a/tests/newest/main.rs".into(), String::new());
        files.remove("crates/a/tests/e2e.rs");
        files.insert("ARCHITECTURE.md".into(), files["ARCHITECTURE.md"].replace("`plan`", "`plans`"));
        let broken = check(&files);
        assert_eq!(broken.len(), 4, "{broken:?}");
        let expected = [
            "latest.rs: belongs to no tier",
            "newest/main.rs: belongs to no tier",
            "no row of `plan`",
            "e2e names e2e",
        ];
        assert!(broken.iter().zip(expected).all(|(broken, part)| broken.contains(part)), "{broken:?}");
    }

    #[test]
    fn a_tier_runs_its_files() {
        let of = |name: &str| commands(named(name).unwrap());
        assert_eq!(of("plan")[0].matches("--test ").count(), 11);
        assert!(of("cpu")[0].contains(" --lib --bins --test binary --test circuits "), "{:?}", of("cpu"));
        assert!(of("cpu")[1].ends_with("--doc"));
        assert_eq!(of("sanitizer")[1], "sh .build/gpu-bundle/run.sh sanitizer");
        assert!(named("t0").is_err());
    }
}

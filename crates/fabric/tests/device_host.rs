//! The device API on its host path, with threads for PEs: compiled with the C++ compiler alone, against naive models and
//! under ThreadSanitizer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Compiles one of the programs of native/tests with every warning an error.
fn compile(source: &str, name: &str, arguments: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let run = Command::new(&compiler)
        .args(["-x", "c++", "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg("-I")
        .arg(root.join("native/include"))
        .arg("-I")
        .arg(root.join("../cuda/native/include"))
        .args(arguments)
        .arg(root.join("native/tests").join(source))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap_or_else(|e| panic!("cannot run the C++ compiler {compiler}: {e}; install g++ or set CXX"));
    assert!(run.status.success(), "{source}:\n{}", String::from_utf8_lossy(&run.stderr));
    program
}

fn run(program: &Path, arguments: &[String]) -> Output {
    Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{}: {e}", program.display()))
}

/// Runs the program, which has to succeed; the number of checks by section.
fn checks(program: &Path, arguments: &[String]) -> BTreeMap<String, u64> {
    let output = run(program, arguments);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{} {arguments:?}:\n{errors}", program.display());
    let line = |line: &str| line.split_once(' ').map(|(name, count)| (name.to_string(), count.parse().unwrap()));
    text.lines().filter_map(line).collect()
}

fn words(words: &[&dyn std::fmt::Display]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// Every operation against the naive model, for 1 to 8 PEs.
fn models(name: &str, arguments: &[&str]) {
    let program = compile("models.cpp", name, arguments);
    for pes in 1..=8 {
        let counts = checks(&program, &words(&[&(100 + pes), &pes]));
        let sections = [
            ("transfers", 6),
            ("strided", 4),
            ("single", 2000),
            ("atomics", 2000),
            ("signals", 8000),
            ("arrays", 50_000),
            ("regions", 1000),
        ];
        for (section, least) in sections {
            assert!(counts[section] >= least, "{pes} PEs: only {} checks in {section}", counts[section]);
        }
    }
    let output = run(&program, &words(&[&1, &3, &"corrupt"]));
    assert_eq!(output.status.code(), Some(1), "a wrong bit passed");
}

#[test]
fn operations_agree_with_naive_models() {
    models("device_models", &[]);
}

#[test]
fn operations_agree_with_naive_models_where_bounds_are_checked() {
    models("device_models_checked", &["-DTANDEM_FABRIC_CHECKS", "-fsanitize=undefined"]);
}

/// Every collective against sums over all inputs, for 1 to 8 PEs and crews of 1 to 3 threads.
fn collectives(name: &str, arguments: &[&str], kinds: u64, rounds: u32) {
    let program = compile("collectives.cpp", name, arguments);
    for pes in 1..=8 {
        let counts = checks(&program, &words(&[&(40 + pes), &pes, &rounds]));
        // Two for each round, kind and thread, of crews of 1, 2 and 3; then of two parts.
        let wanted = 2 * kinds * u64::from(rounds);
        assert_eq!(counts["all"], wanted * 6 * pes, "{pes} PEs");
        assert!(counts["parts"] >= 3 * wanted && counts["faults"] >= 12 && counts["numbers"] > 500_000, "{counts:?}");
    }
    let output = run(&program, &words(&[&1, &3, &rounds, &"corrupt"]));
    assert_eq!(output.status.code(), Some(1), "a wrong bit passed");
}

#[test]
fn collectives_agree_with_naive_models() {
    collectives("device_collectives", &[], 14, 30);
}

#[test]
fn collectives_without_races() {
    collectives("device_collectives_tsan", &["-fsanitize=thread", "-DFEW_KINDS"], 5, 6);
}

#[test]
fn collectives_where_bounds_are_checked() {
    let arguments = ["-DTANDEM_FABRIC_CHECKS", "-fsanitize=undefined", "-DFEW_KINDS"];
    collectives("device_collectives_checked", &arguments, 5, 20);
}

fn threads(program: &Path, rounds: u32) {
    for pes in 1..=8 {
        let counts = checks(program, &words(&[&(7 * pes), &pes, &rounds]));
        for (section, &count) in &counts {
            let needs_two = ["messages", "fences", "buffering"].contains(&section.as_str());
            assert!(count > 0 || (pes == 1 && needs_two), "{pes} PEs: nothing checked in {section}");
        }
        assert_eq!(counts.len(), 8);
    }
}

#[test]
fn threads_as_pes() {
    threads(&compile("threads.cpp", "device_threads", &[]), 300);
}

#[test]
fn threads_as_pes_where_bounds_are_checked() {
    threads(&compile("threads.cpp", "device_threads_checked", &["-DTANDEM_FABRIC_CHECKS"]), 40);
}

#[test]
fn threads_as_pes_without_races() {
    let program = compile("threads.cpp", "device_threads_tsan", &["-fsanitize=thread"]);
    threads(&program, 30);
    // What is sent without an order is found.
    let output = run(&program, &words(&[&1, &2, &30, &"broken"]));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("data race"), "a message without its order passed: {errors}");
}

//! Programs in C that call NCCL, with this library before a stand-in for NCCL that writes down what it gets, and with pretend PEs for GPUs. Run by
//! scripts/nccl.sh, which builds the library that way first.
#![cfg(feature = "pretend")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Compiles a program, or with `-shared` a library, as C that has to be free of warnings.
fn compile(source: &str, name: &str, more: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let include = std::env::var_os("TANDEM_NCCL_INCLUDE").map_or_else(|| root.clone(), PathBuf::from);
    let program = built(name);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]).arg(include);
    if let Some(cuda) = std::env::var_os("TANDEM_CUDA_INCLUDE") {
        command.arg("-isystem").arg(cuda);
    }
    let run = command.arg(root.join(source)).args(more).arg("-o").arg(&program).output();
    let run = run.unwrap_or_else(|e| panic!("cannot run the C compiler {compiler}: {e}; install gcc or set CC"));
    assert!(run.status.success(), "{source}:\n{}", String::from_utf8_lossy(&run.stderr));
    program
}

/// This library.
fn library() -> PathBuf {
    let target = built("").ancestors().nth(1).unwrap().join("debug");
    let library = target.join("libtandem_nccl.so");
    assert!(library.exists(), "{} is not built: run scripts/nccl.sh", library.display());
    library
}

/// A program under this library, in its own folder, with what the stand-in has got.
struct Run {
    folder: PathBuf,
    stand_in: PathBuf,
    program: PathBuf,
}

impl Run {
    fn new(source: &str, test: &str) -> Self {
        let folder = built(test);
        std::fs::create_dir_all(&folder).unwrap();
        let stand_in =
            compile("stand_in.c", &format!("{test}/libnccl.so.2"), &["-shared", "-fPIC", "-Wl,-soname,libnccl.so.2"]);
        let linked = stand_in.to_str().unwrap();
        let program = compile(source, &format!("{test}/program"), &[linked]);
        Run { folder, stand_in, program }
    }

    /// With this library loaded first.
    fn preloaded(&self, arguments: &[&str], mode: &str) -> Output {
        let command = &mut self.command(arguments, mode);
        command.env("LD_PRELOAD", library()).env("LD_LIBRARY_PATH", &self.folder);
        command.output().unwrap()
    }

    /// With this library under the name of NCCL.
    fn in_place(&self, arguments: &[&str]) -> Output {
        let place = self.folder.join("place");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::copy(library(), place.join("libnccl.so.2")).unwrap();
        let command = &mut self.command(arguments, "log");
        command.env("LD_LIBRARY_PATH", &place).env("TANDEM_NCCL_LIBRARY", &self.stand_in);
        command.output().unwrap()
    }

    fn command(&self, arguments: &[&str], mode: &str) -> Command {
        let log = self.folder.join("log");
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new(&self.program);
        command.args(arguments).env("STAND_IN_LOG", log).env("TANDEM_NCCL", mode).env_remove("TANDEM_NCCL_LIBRARY");
        command
    }
}

fn text(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[track_caller]
fn succeeded(output: &Output) -> (String, String) {
    let (out, told) = text(output);
    let end: String = told.lines().rev().take(12).collect::<Vec<_>>().join("\n");
    assert!(output.status.success(), "{}: {out}{end}", output.status);
    (out, told)
}

/// Every operation that is taken over, at every border of the table, against naive results.
#[test]
fn results() {
    let run = Run::new("sweep.c", "results");
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().to_string();
    for ranks in ["2", "3", "4", "5", "8"] {
        let (out, _) = succeeded(&run.preloaded(&[&seed, ranks], "on"));
        let checks: u64 = out.trim().parse().unwrap();
        println!("seed {seed}, {ranks} ranks: {checks} checks");
        assert!(checks > 2000, "{checks}");
    }
}

#[test]
fn calls_that_belong_together() {
    let run = Run::new("calls.c", "calls");
    for part in ["starts", "others", "groups", "captures", "missing", "levels", "many", "errors", "faults", "ends"] {
        let (out, told) = succeeded(&run.preloaded(&[part], "log"));
        assert_eq!(out, "right\n", "{part}");
        let is_told = part == "others"
            || part == "errors"
            || told.contains("tandem-nccl: taken over: all-reduce of 400 bytes, 3 ranks")
            || part == "faults";
        assert!(is_told, "{part}: {told}");
    }
    let (_, told) = succeeded(&run.preloaded(&["off"], "off"));
    assert_eq!(told, "");
    let (_, told) = succeeded(&run.preloaded(&["off"], "nonsense"));
    assert!(told.contains("TANDEM_NCCL=\"nonsense\": expected on, off or log"), "{told}");
    // Nothing is told that was not asked for.
    let (_, told) = succeeded(&run.preloaded(&["groups"], "on"));
    assert_eq!(told, "");
}

/// Under the name of NCCL, which it then has to be told of.
#[test]
fn in_place_of_the_library() {
    let run = Run::new("calls.c", "place");
    for part in ["starts", "others", "groups", "errors", "faults"] {
        assert_eq!(succeeded(&run.in_place(&[part])).0, "right\n", "{part}");
    }
    // It must not take itself for NCCL.
    let place = run.folder.join("place");
    let mut command = run.command(&["others"], "log");
    let (_, told) = text(&command.env("LD_LIBRARY_PATH", &place).output().unwrap());
    assert!(told.contains("NCCL is not found") && told.contains("set TANDEM_NCCL_LIBRARY"), "{told}");
    let mut command = run.command(&["others"], "log");
    command.env("LD_LIBRARY_PATH", &place).env("TANDEM_NCCL_LIBRARY", "/nowhere/libnccl.so.2");
    let (_, told) = text(&command.output().unwrap());
    assert!(told.contains("TANDEM_NCCL_LIBRARY: /nowhere/libnccl.so.2"), "{told}");
}

/// It has every function that NCCL's versions 2.20 to 2.28 export: TANDEM_NCCL_LIBRARIES names some, separated by colons.
#[test]
fn every_function_is_there() {
    let names = |library: &Path| -> Vec<String> {
        let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let is_function = |name: &&str| name.starts_with("nccl") || name.starts_with("pnccl");
        text.lines().filter_map(|line| line.split_whitespace().nth(2)).filter(is_function).map(String::from).collect()
    };
    let own = names(&library());
    assert!(own.len() > 100, "{own:?}");
    for real in std::env::var("TANDEM_NCCL_LIBRARIES").unwrap_or_default().split(':').filter(|path| !path.is_empty()) {
        let missing: Vec<String> = names(Path::new(real)).into_iter().filter(|name| !own.contains(name)).collect();
        assert!(missing.is_empty(), "{real} has more: {missing:?}");
    }
}

//! Runs the program with damaged files and odd options together, and judges what an operator would see: the exit status, the one
//! line, and what is left in the folder. The program is a black box: coverage is how many different messages it gives, and a case
//! that brings a new one is kept as a start for others.

pub(crate) mod case;

use case::{Case, Random};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The files of a folder with their contents; folders and what is neither have none.
type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// What one run may take: far more than small files need.
const MOST_TIME: Duration = Duration::from_secs(30);
/// Address space, in KiB. Threads reserve some of it.
const MOST_MEMORY_KIB: u64 = 12 << 20;
/// Done, not valid, bad input, device, interrupted, terminated.
const STATUSES: [i32; 6] = [0, 1, 2, 3, 130, 143];

/// What a run of the program left behind.
struct Ended {
    status: ExitStatus,
    stderr: String,
    is_late: bool,
    after: Tree,
}

/// `seconds` of cases made from the repository's small files and from those kept in fuzz/corpus/command_line.
pub(crate) fn run(root: &Path, seconds: &str) -> Result<(), String> {
    let seconds: u64 = seconds.parse().map_err(|_| format!("{seconds}: expected a number of seconds"))?;
    let corpus = root.join("fuzz/corpus/command_line");
    let artifacts = root.join("fuzz/artifacts/command_line");
    let work = Work::new(root)?;
    let mut cases = case::seeds(root)?;
    cases.extend(folders(&corpus).iter().filter_map(|folder| Case::load(folder).ok()));
    let all_files: Vec<(String, Vec<u8>)> = cases.iter().flat_map(|case| case.files.clone()).collect();
    let (seed, mut random) = Random::seeded()?;
    let (begun, mut runs, mut seen, mut findings) = (Instant::now(), 0u64, BTreeSet::new(), BTreeMap::new());
    let mut fresh: Vec<Case> = cases.clone();
    while begun.elapsed() < Duration::from_secs(seconds) || !fresh.is_empty() && runs < cases.len() as u64 {
        // Each start as it is, then changes of them.
        let case = fresh.pop().unwrap_or_else(|| cases[random.below(cases.len())].changed(&mut random, &all_files));
        let (before, ended) = work.run(&case)?;
        runs += 1;
        if let Some(fault) = fault(&case, &before, &ended) {
            let kind = format!("{}: {}", case.command(), normal(&fault));
            if let Entry::Vacant(finding) = findings.entry(kind) {
                let folder = artifacts.join(format!("{seed:x}-{runs}"));
                case.save(&folder)?;
                fs::write(folder.join("fault"), &fault).map_err(|e| e.to_string())?;
                eprintln!("command_line: {fault}\n  {}", folder.display());
                finding.insert(folder);
            }
            continue;
        }
        let message = format!("{} {:?} {}", case.command(), ended.status.code(), normal(&ended.stderr));
        if seen.insert(message) && cases.len() < 4000 {
            case.save(&corpus.join(format!("{seed:x}-{runs}")))?;
            cases.push(case);
        }
    }
    println!("command_line: {runs} runs, {} different messages, {} findings", seen.len(), findings.len());
    if runs == 0 || seen.len() < 10 {
        return Err(format!("{runs} runs with {} messages are no test", seen.len()));
    }
    if findings.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = findings.iter().map(|(kind, folder)| format!("{kind}\n  {}", folder.display())).collect();
    Err(format!("command_line: {} kinds of faults:\n{}", lines.len(), lines.join("\n")))
}

/// Runs one case that was kept, and says what is wrong with it.
pub(crate) fn replay(root: &Path, folder: &str) -> Result<(), String> {
    let case = Case::load(Path::new(folder))?;
    let (before, ended) = Work::new(root)?.run(&case)?;
    println!("tandem {}\n{:?}\n{}", case.args.join(" "), ended.status, ended.stderr);
    fault(&case, &before, &ended).map_or(Ok(()), Err)
}

/// What is wrong with how it ended.
fn fault(case: &Case, before: &Tree, ended: &Ended) -> Option<String> {
    // Which device it is may be told first, and of several witnesses those that were proved before the one that fails.
    let is_more = case.args.iter().any(|a| a.starts_with("--more"));
    let is_told = |line: &&str| line.starts_with("device: ") || is_more && line.contains(": proved and verified in ");
    let said: Vec<&str> = ended.stderr.lines().filter(|line| !is_told(line)).collect();
    let said = said.join("\n");
    if ended.is_late {
        return Some(format!("it runs longer than {} s", MOST_TIME.as_secs()));
    }
    if let Some(signal) = ended.status.signal() {
        return Some(format!("signal {signal}: {said}"));
    }
    let status = ended.status.code().unwrap_or(-1);
    if !STATUSES.contains(&status) || said.contains("panicked at") {
        return Some(format!("exit status {status}: {said}"));
    }
    if let Some(part) = ended.after.keys().find(|path| path.to_string_lossy().ends_with(".part")) {
        return Some(format!("{} is left", part.display()));
    }
    // A verdict is said on stdout.
    if status == 0 || status == 1 && said.is_empty() {
        let empty =
            ended.after.iter().find(|(p, bytes)| before.get(*p) != Some(bytes) && bytes.as_deref() == Some(&[]));
        return empty.map(|(path, _)| format!("{} is written and empty", path.display()));
    }
    if said.is_empty() || said.contains('\n') || said.chars().any(|c| c.is_control()) {
        return Some(format!("exit status {status} with {} lines: {said}", said.lines().count()));
    }
    // Proofs before the one that fails are written; a trace tells of what failed, too.
    if is_more || case.args.iter().any(|a| a.starts_with("--trace")) {
        return None;
    }
    (*before != ended.after).then(|| {
        let changed = before.keys().chain(ended.after.keys()).find(|&p| before.get(p) != ended.after.get(p));
        format!("exit status {status}, and {changed:?} is changed: {said}")
    })
}

/// A message without what differs from case to case: numbers, and names between them.
fn normal(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace().take(14) {
        // Names of files and values; words of the message stay.
        let is_word = word.chars().all(|c| c.is_ascii_lowercase() || ",;:".contains(c));
        out.push_str(if is_word { word } else { "_" });
        out.push(' ');
    }
    out
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(of).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found
}

/// The program as it is released.
pub(crate) fn program(root: &Path) -> Result<PathBuf, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let program = std::env::var_os("TANDEM_BINARY").map_or_else(|| target.join("release/tandem"), PathBuf::from);
    match program.is_file() {
        true => Ok(program),
        false => Err(format!("{}: build it first: cargo build --release -p tandem-prover", program.display())),
    }
}

/// A folder for runs, removed at the end, and the program.
struct Work {
    folder: PathBuf,
    program: PathBuf,
}

impl Work {
    fn new(root: &Path) -> Result<Self, String> {
        let program = program(root)?;
        let folder = std::env::temp_dir().join(format!("tandem-command-line-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Work { folder, program })
    }

    /// Runs a case in a fresh folder; gives the files before, too.
    fn run(&self, case: &Case) -> Result<(Tree, Ended), String> {
        let here = self.folder.join("case");
        let fail = |e: std::io::Error| format!("{}: {e}", here.display());
        if here.exists() {
            fs::remove_dir_all(&here).map_err(fail)?;
        }
        case.write(&here).map_err(fail)?;
        let before = tree(&here).map_err(fail)?;
        let mut child = Command::new("sh")
            .args(["-c", &format!("ulimit -c 0 && ulimit -v {MOST_MEMORY_KIB} && exec \"$0\" \"$@\"")])
            .arg(&self.program)
            .args(&case.args)
            .current_dir(&here)
            .env("TANDEM_CACHE_DIR", self.folder.join("cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.folder.join("stderr")).map_err(fail)?)
            .process_group(0)
            .spawn()
            .map_err(fail)?;
        let (status, is_late) = waited(&mut child).map_err(fail)?;
        let stderr = String::from_utf8_lossy(&fs::read(self.folder.join("stderr")).map_err(fail)?).into_owned();
        Ok((before, Ended { status, stderr, is_late, after: tree(&here).map_err(fail)? }))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// Waits for the program, and ends it if it takes too long.
fn waited(child: &mut Child) -> std::io::Result<(ExitStatus, bool)> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, false));
        }
        if begun.elapsed() > MOST_TIME {
            child.kill()?;
            return Ok((child.wait()?, true));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All that a folder holds, folders and links without content.
fn tree(folder: &Path) -> std::io::Result<Tree> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at)? {
            let (path, kind) = entry.map(|e| (e.path(), e.file_type()))?;
            let kind = kind?;
            let content = if kind.is_file() { Some(fs::read(&path)?) } else { None };
            if kind.is_dir() {
                open.push(path.clone());
            }
            found.insert(path.strip_prefix(folder).unwrap_or(&path).to_path_buf(), content);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: i32, stderr: &str, after: &[(&str, &str)]) -> Ended {
        let after = after.iter().map(|(name, bytes)| (PathBuf::from(name), Some(bytes.as_bytes().to_vec()))).collect();
        Ended { status: ExitStatus::from_raw(status), stderr: stderr.into(), is_late: false, after }
    }

    #[test]
    fn what_an_operator_must_not_see_is_a_fault() {
        let case = Case { args: vec!["prove".into()], ..Case::default() };
        let before = ended(0, "", &[("k.zkey", "key")]).after;
        let is_fault =
            |status, stderr, after: &[(&str, &str)]| fault(&case, &before, &ended(status, stderr, after)).is_some();
        let same = &[("k.zkey", "key")];
        let with = |name, bytes| [("k.zkey", "key"), (name, bytes)];
        assert!(!is_fault(0, "", same));
        assert!(!is_fault(0, "progress\nmore\n", &with("proof.json", "{}")));
        assert!(!is_fault(2 << 8, "device: CPU\nerror: what\n", same));
        assert!(!is_fault(1 << 8, "", same));
        assert!(!is_fault(2 << 8, "error: what\n", same));
        assert!(is_fault(0, "", &with("proof.json", "")));
        assert!(is_fault(2 << 8, "", same));
        assert!(is_fault(2 << 8, "error: what\nmore\n", same));
        assert!(is_fault(2 << 8, "error: \u{1b}[2J\n", same));
        let proved = "w.wtns: proved and verified in 0.003 s on CPU, 2 threads\nerror: empty: this is an empty file\n";
        assert!(is_fault(2 << 8, proved, same));
        let more =
            Case { args: vec!["prove".into(), "--more".into(), "empty p2.json u2.json".into()], ..Case::default() };
        assert!(fault(&more, &before, &ended(2 << 8, proved, &with("proof.json", "{}"))).is_none());
        assert!(fault(&more, &before, &ended(2 << 8, &format!("{proved}more\n"), same)).is_some());
        assert!(is_fault(2 << 8, "error: what\n", &with("proof.json", "{}")));
        assert!(is_fault(2 << 8, "error: what\n", &[("k.zkey", "kex")]));
        assert!(is_fault(0, "", &with(".proof.json.1-0.part", "{}")));
        assert!(is_fault(101 << 8, "error: what\n", same));
        assert!(is_fault(3 << 8, "thread panicked at src/main.rs", same));
        for signal in [6, 7, 9, 11, 25] {
            assert!(is_fault(signal, "error: what\n", same));
        }
        let late = Ended { is_late: true, ..ended(9, "", same) };
        assert!(fault(&case, &before, &late).unwrap().contains("longer than"));
    }
}

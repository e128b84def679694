//! Single edits to a crate that its tests must notice: `cargo xtask edits CRATE SECONDS`.
//!
//! Conditions become false, or true, and statements are left out. All edits are compiled at once into a copy of the
//! crate, each behind a switch that an environment variable turns on, so that one build serves for all of them and an edit costs no more
//! than a run of the tests. Which edits come first differs from day to day.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// The variable that says which edit is on, by its number.
const SWITCH: &str = "TANDEM_EDIT";
/// An edit with which the tests take longer is noticed: they do not end.
const LONGEST: Duration = Duration::from_secs(60);

/// Words with which no statement begins that may be left out.
const KEPT: [&str; 17] = [
    "let ",
    "fn ",
    "return",
    "break",
    "continue",
    "assert",
    "debug_assert",
    "unreachable",
    "panic",
    "use ",
    "mod ",
    "pub ",
    "const ",
    "static ",
    "struct ",
    "enum ",
    "type ",
];

/// A place and what is done to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    line: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The condition never holds.
    Never,
    /// The condition always holds.
    Always,
    /// The statement is left out.
    Without,
}

/// Tries edits for so many seconds, and names those that no test noticed. They do not make it fail: which edits a day brings says
/// nothing of the change that is tested.
pub(crate) fn run(root: &Path, name: &str, seconds: &str) -> Result<(), String> {
    let begun = Instant::now();
    let end = begun + seconds.parse().map(Duration::from_secs).map_err(|e| format!("{seconds} seconds: {e}"))?;
    let (copy, edits) = edited_copy(root, name)?;
    let programs = build(root, &copy, name)?;
    let built = begun.elapsed().as_secs();
    if let Some(failed) = noticed(&copy, name, &programs, None)? {
        return Err(format!("edits: without any edit {failed} fails"));
    }
    let day = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() / 86_400);
    let (mut tried, mut survived) = (0, 0);
    for number in order(edits.len(), day) {
        if Instant::now() >= end {
            break;
        }
        let (file, edit) = &edits[number];
        tried += 1;
        if noticed(&copy, name, &programs, Some(number))?.is_none() {
            survived += 1;
            println!("survived: {file}:{} {:?}", edit.line, edit.kind);
        }
    }
    println!(
        "edits: {tried} of {} tried in {} s, {built} s of them to build; {survived} survived",
        edits.len(),
        begun.elapsed().as_secs()
    );
    if tried == 0 {
        // Not a fault of what is tested, and no pass either: it counts as a skip (scripts/count-tests.awk).
        println!("skipped: edits::{name}: no edit was tried in {seconds} s");
    }
    Ok(())
}

/// The numbers below `count` in an order that looks random, another one for each `day`.
fn order(count: usize, day: u64) -> Vec<usize> {
    let mix = |i: usize| {
        (i as u64 + 1 + day * 1_000_003)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
            .wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let mut numbers: Vec<usize> = (0..count).collect();
    numbers.sort_by_key(|&i| mix(i));
    numbers
}

/// A copy of the workspace in which the crate has all edits, and the edits, each with its file.
fn edited_copy(root: &Path, name: &str) -> Result<(PathBuf, Vec<(String, Edit)>), String> {
    let copy = root.join(".build/edits");
    let source = format!("crates/{name}/src");
    for part in ["crates", "xtask", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml"] {
        mirror(&root.join(part), &copy.join(part), &root.join(&source))?;
    }
    let mut files = Vec::new();
    sources(&root.join(&source), &mut files)?;
    let mut all = Vec::new();
    for path in files {
        let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let mut text = read(&path)?;
        let edits = if file.ends_with("tests.rs") { Vec::new() } else { edits(&text) };
        text = apply(&text, &edits, all.len());
        if path.ends_with("src/lib.rs") {
            text.push_str(&switch());
        }
        write(&copy.join(&file), text.as_bytes())?;
        all.extend(edits.into_iter().map(|edit| (file.clone(), edit)));
    }
    if all.is_empty() {
        return Err(format!("edits: {source} has no place for an edit"));
    }
    Ok((copy, all))
}

/// What the edited code asks whether an edit is on.
fn switch() -> String {
    format!(
        "\n#[allow(missing_docs, unreachable_pub)]\npub fn is_edited(number: usize) -> bool {{\n    \
         static ON: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();\n    \
         *ON.get_or_init(|| std::env::var({SWITCH:?}).ok()?.parse().ok()) == Some(number)\n}}\n"
    )
}

/// The edits of a file, its tests left out.
fn edits(text: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    // What goes on from the line before is no statement.
    let mut begins = true;
    for (i, line) in text.lines().enumerate() {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        let kinds: &[Kind] = match parts(line) {
            Some((_, _, _, true)) => &[Kind::Never, Kind::Always],
            Some((_, _, _, false)) if begins => &[Kind::Without],
            _ => &[],
        };
        edits.extend(kinds.iter().map(|&kind| Edit { line: i + 1, kind }));
        begins = line.ends_with([';', '{', '}']) || line.trim_start().starts_with("//");
    }
    edits
}

/// What is before, within and behind the part of a line that edits change, and whether that is a condition.
fn parts(line: &str) -> Option<(&str, &str, &str, bool)> {
    let code = line.trim_start();
    let indent = &line[..line.len() - code.len()];
    if code.contains("//") || code.contains('"') && code.matches('"').count() % 2 == 1 {
        return None;
    }
    for start in ["if ", "} else if "] {
        let condition = code.strip_prefix(start).and_then(|rest| rest.strip_suffix(" {"));
        if let Some(condition) = condition.filter(|c| !c.starts_with("let ") && !c.contains('{')) {
            return Some((&line[..indent.len() + start.len()], condition, " {", true));
        }
    }
    let is_call = code.ends_with(");") || code.ends_with(")?;");
    let begins = code.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && !KEPT.iter().any(|word| code.starts_with(word));
    let is_balanced = code.matches('(').count() == code.matches(')').count()
        && code.matches('{').count() == code.matches('}').count();
    let is_whole = !code.contains(" = ") || code.contains("|| ");
    (is_call && begins && is_balanced && is_whole && !indent.is_empty()).then_some((indent, code, "", false))
}

/// The text with the edits, which are numbered from `first` on.
fn apply(text: &str, edits: &[Edit], first: usize) -> String {
    let mut edited = String::with_capacity(text.len() * 2);
    for (i, line) in text.lines().enumerate() {
        let numbers: Vec<usize> = (0..edits.len()).filter(|&e| edits[e].line == i + 1).map(|e| first + e).collect();
        match (&numbers[..], parts(line)) {
            (&[never, always], Some((before, condition, behind, _))) => edited.push_str(&format!(
                "{before}crate::is_edited({always}) || !crate::is_edited({never}) && ({condition}){behind}"
            )),
            (&[without], Some((before, statement, ..))) => {
                edited.push_str(&format!("{before}if !crate::is_edited({without}) {{ {statement} }}"));
            }
            _ => edited.push_str(line),
        }
        edited.push('\n');
    }
    edited
}

/// The test programs of the crate, built where the workspace's own are, so that outside crates are there.
fn build(root: &Path, copy: &Path, name: &str) -> Result<Vec<PathBuf>, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut tests = Vec::new();
    sources(&copy.join("crates").join(name).join("tests"), &mut tests)?;
    let depth = |path: &Path| path.components().count();
    let least = tests.iter().map(|path| depth(path)).min();
    let names = tests.iter().filter(|path| Some(depth(path)) == least).filter_map(|path| path.file_stem());
    // Of the workspace, whose features the outside crates have that are built already; without unit tests, which would be those of all.
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["test", "--workspace", "--locked", "--no-run", "--message-format=json"])
        .args(names.flat_map(|name| ["--test".into(), name.to_os_string()]))
        .env("CARGO_TARGET_DIR", root.join(target))
        .current_dir(copy)
        .stderr(Stdio::piped())
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("edits: the edited crate does not compile\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let programs = said.lines().filter_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        rest.split_once('"').map(|(path, _)| PathBuf::from(path))
    });
    Ok(programs.collect())
}

/// The first program that fails, or does not end, with this edit.
fn noticed(copy: &Path, name: &str, programs: &[PathBuf], edit: Option<usize>) -> Result<Option<String>, String> {
    for program in programs {
        let mut command = Command::new(program);
        command.current_dir(copy.join("crates").join(name)).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(number) = edit {
            command.env(SWITCH, number.to_string());
        }
        let begun = Instant::now();
        let mut running = command.spawn().map_err(|e| format!("{}: {e}", program.display()))?;
        let is_well = loop {
            match running.try_wait().map_err(|e| e.to_string())? {
                Some(status) => break status.success(),
                None if begun.elapsed() > LONGEST => {
                    running.kill().and_then(|()| running.wait()).map_err(|e| e.to_string())?;
                    break false;
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        if !is_well {
            return Ok(Some(program.display().to_string()));
        }
    }
    Ok(None)
}

/// Copies what is new or differs, so that cargo builds nothing again that is the same, but for a folder; what is gone stays.
fn mirror(from: &Path, to: &Path, but_for: &Path) -> Result<(), String> {
    if from == but_for {
        return Ok(());
    }
    if from.is_dir() {
        for entry in fs::read_dir(from).map_err(|e| format!("{}: {e}", from.display()))? {
            let name = entry.map_err(|e| format!("{}: {e}", from.display()))?.file_name();
            if name != "target" {
                mirror(&from.join(&name), &to.join(&name), but_for)?;
            }
        }
        return Ok(());
    }
    write(to, &fs::read(from).map_err(|e| format!("{}: {e}", from.display()))?)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|known| known == bytes) {
        return Ok(());
    }
    let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes));
    made.map_err(|e| format!("{}: {e}", path.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
fn f(&mut self) -> Result<()> {
    if self.a > 1 && b() {
        self.wipe();
    } else if let Some(x) = y {
        check(\"a\", x)?;
    } else if !c {
        return Err(x());
    }
    let y = g();
    // if commented {
    self.sum += g();
    let z =
        long(name);
    self.call(
        1);
    Ok(())
}
#[cfg(test)]
mod tests {
    if tested {
";

    #[test]
    fn conditions_and_statements_are_edited_one_by_one() {
        let all = edits(TEXT);
        let said: Vec<(usize, Kind)> = all.iter().map(|edit| (edit.line, edit.kind)).collect();
        let expected = [
            (2, Kind::Never),
            (2, Kind::Always),
            (3, Kind::Without),
            (5, Kind::Without),
            (6, Kind::Never),
            (6, Kind::Always),
            (11, Kind::Without),
        ];
        assert_eq!(said, expected);
        let edited = apply(TEXT, &all, 10);
        for line in [
            "    if crate::is_edited(11) || !crate::is_edited(10) && (self.a > 1 && b()) {",
            "        if !crate::is_edited(12) { self.wipe(); }",
            "        if !crate::is_edited(13) { check(\"a\", x)?; }",
            "    } else if crate::is_edited(15) || !crate::is_edited(14) && (!c) {",
            "    if tested {",
        ] {
            assert!(edited.lines().any(|found| found == line), "{line}\n{edited}");
        }
        assert_eq!(edited.lines().count(), TEXT.lines().count());
    }

    #[test]
    fn every_edit_has_its_turn_and_days_differ() {
        let (one, other) = (order(100, 20_000), order(100, 20_001));
        let mut sorted = one.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..100) && one != other && one[..50] != *(0..50).collect::<Vec<_>>());
    }
}

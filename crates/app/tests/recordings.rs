//! Runs of circuits that are recorded in the cache folder, and replayed.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use support::tandem;

const CIRCUIT: &[u8] = include_bytes!("../../witness/tests/data/branches.wasm");

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.at("circuit.wasm"), CIRCUIT).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What is told of a run on these inputs, and its witness.
    fn witness(&self, inputs: &str, options: &[&str]) -> (String, Vec<u8>) {
        fs::write(self.at("input.json"), inputs).unwrap();
        let mut command = tandem();
        command.current_dir(self.0.path()).env("TANDEM_CACHE_DIR", self.at("cache"));
        let done =
            command.args(["-v", "witness", "circuit.wasm", "input.json", "out.wtns"]).args(options).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        (String::from_utf8_lossy(&done.stderr).into_owned(), fs::read(self.at("out.wtns")).unwrap())
    }

    fn cache(&self, what: &str) -> serde_json::Value {
        let mut command = tandem();
        let done = command.env("TANDEM_CACHE_DIR", self.at("cache")).args(["cache", what, "--json"]).output().unwrap();
        serde_json::from_slice(&done.stdout).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let folder: &Path = &self.at("cache/recordings");
        fs::read_dir(folder).map_or(Vec::new(), |files| files.map(|file| file.unwrap().path()).collect())
    }
}

const FIRST: &str = r#"{"a": 3, "b": 9}"#;
const OTHER: &str = r#"{"a": 5, "b": 9}"#;
const ALL: &[&str] = &["--recordings", "all"];
/// a is not less than b.
const ELSEWHERE: &str = r#"{"a": 50, "b": 9}"#;

#[test]
fn later_runs_replay_the_first() {
    let place = Place::new();
    let (_, expected) = place.witness(OTHER, &["--recordings", "off"]);
    let (_, elsewhere) = place.witness(ELSEWHERE, &["--recordings", "off"]);
    assert!(place.files().is_empty());
    // The circuit branches on its inputs: only who asks for it keeps how.
    let (told, _) = place.witness(FIRST, &[]);
    assert!(told.contains("circuit.wasm: not recorded: it branches on its inputs"), "{told}");
    assert_eq!(fs::read(&place.files()[0]).unwrap().len(), "branches".len());
    assert!(place.witness(FIRST, ALL).0.contains("circuit.wasm: recorded this run"));
    assert_eq!(place.files().len(), 1);
    let (told, found) = place.witness(OTHER, ALL);
    assert!(told.contains("replayed the recording of an earlier run"), "{told}");
    assert!(found == expected);
    let (told, found) = place.witness(ELSEWHERE, ALL);
    assert!(told.contains("these inputs take another way than the recorded run"), "{told}");
    assert!(found == elsewhere);
    assert!(!place.witness(OTHER, &["--recordings", "off"]).0.contains("record"));
    // A damaged one is replaced.
    let whole = fs::read(&place.files()[0]).unwrap();
    fs::write(&place.files()[0], &whole[..whole.len() / 2]).unwrap();
    let (told, found) = place.witness(OTHER, ALL);
    assert!(told.contains("recorded this run") && found == expected, "{told}");

    let listed = place.cache("list");
    assert_eq!(listed["recordings"].as_array().unwrap().len(), 1);
    assert_eq!(listed["bytes"].as_u64().unwrap(), fs::metadata(&place.files()[0]).unwrap().len());
    place.cache("clear");
    assert!(place.files().is_empty());
}

/// All of a program counts, however it is read: also what lies behind the first of its pieces.
#[test]
fn each_byte_of_a_program_counts() {
    let place = Place::new();
    // A section of a name and bytes that nobody reads.
    let mut longer = CIRCUIT.to_vec();
    longer.extend([0, 0x80, 0x80, 0x10, 1, b'x']);
    longer.resize(longer.len() + (1 << 18) - 2, 7);
    fs::write(place.at("circuit.wasm"), &longer).unwrap();
    let told = |place: &Place| place.witness(FIRST, ALL).0;
    assert!(told(&place).contains("recorded this run"));
    assert!(told(&place).contains("replayed the recording"));
    for at in [longer.len() - 1, longer.len() - (1 << 17)] {
        longer[at] ^= 1;
        fs::write(place.at("circuit.wasm"), &longer).unwrap();
        assert!(told(&place).contains("recorded this run"));
    }
}

/// What is open already can be read but once.
#[test]
fn a_program_on_stdin_is_recorded_and_replayed() {
    let place = Place::new();
    let (_, expected) = place.witness(FIRST, &["--recordings", "off"]);
    for told in ["recorded this run", "replayed the recording"] {
        fs::remove_file(place.at("out.wtns")).unwrap();
        let mut command = tandem();
        command.current_dir(place.0.path()).env("TANDEM_CACHE_DIR", place.at("cache"));
        command.stdin(fs::File::open(place.at("circuit.wasm")).unwrap());
        let done = command.args(["-v", "witness", "-", "input.json", "out.wtns"]).args(ALL).output().unwrap();
        let text = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && text.contains(told), "{text}");
        assert!(fs::read(place.at("out.wtns")).unwrap() == expected);
    }
}

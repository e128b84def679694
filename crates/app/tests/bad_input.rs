//! Hostile and mistaken input: exit status 2, one line that names the file, nothing written.

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::files::{self, element, patched, sections, squarings, wtns, BLS12_381_R, BN254_R};
use support::{demo, expect, interrupted, names, root, run_in, tandem, text};

/// A folder with the demo's files and room for outputs.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["membership.zkey", "membership.wtns", "membership.vkey.json", "membership.input.json"] {
            fs::copy(demo(name), folder.path().join(name.replace("membership.", "good."))).unwrap();
        }
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join(name), bytes).unwrap();
    }

    /// Runs a command that must be refused with one line that has `parts`, and must leave the folder as it was.
    #[track_caller]
    fn refused(&self, args: &[&str], parts: &[&str]) {
        self.fails(2, args, parts);
    }

    #[track_caller]
    fn fails(&self, status: i32, args: &[&str], parts: &[&str]) {
        let before = names(self.path());
        let (stdout, stderr) = run_in(self.path(), status, args);
        assert_eq!(stdout, "", "{args:?}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.len() < 1000, "{args:?}: {stderr}");
        for part in parts {
            assert!(stderr.contains(part), "{args:?}: expected {part:?} in: {stderr}");
        }
        assert_eq!(names(self.path()), before, "{args:?}: {stderr}");
    }

    #[track_caller]
    fn prove_refused(&self, zkey: &str, wtns: &str, parts: &[&str]) {
        self.refused(&["prove", zkey, wtns, "p.json", "u.json", "--device", "cpu"], parts);
    }
}

fn good(name: &str) -> Vec<u8> {
    fs::read(demo(&format!("membership.{name}"))).unwrap()
}

#[test]
fn files_cut_at_every_section_border() {
    let place = Place::new();
    let borders = |file: &[u8]| {
        let all = sections(file).into_iter().flat_map(|(_, head, start, length)| {
            [head, head + 4, start, start + length / 2, (start + length).saturating_sub(1)]
        });
        all.chain([0, 3, 4, 8, 11]).filter(|&cut| cut < file.len()).collect::<Vec<_>>()
    };
    let zkey = good("zkey");
    for cut in borders(&zkey) {
        place.write("cut", &zkey[..cut]);
        place.prove_refused("cut", "good.wtns", &["cut: "]);
    }
    let witness = good("wtns");
    for cut in borders(&witness) {
        place.write("cut", &witness[..cut]);
        place.prove_refused("good.zkey", "cut", &["cut: "]);
    }
    let r1cs = fs::read(root().join("crates/app/tests/data/multiplier.r1cs")).unwrap();
    for cut in borders(&r1cs) {
        // Without the last section, the map to labels, it would still be a circuit, but the head counts three.
        place.write("cut", &r1cs[..cut]);
        place.refused(&["setup", "cut", "new.zkey"], &["cut: "]);
    }
}

#[test]
fn tables_of_sections_that_lie() {
    let place = Place::new();
    let zkey = good("zkey");
    let (_, head, _, length) = sections(&zkey)[3];
    for wrong in [u64::MAX, u64::MAX - 11, 1 << 63, length as u64 + 1, length as u64 - 1, 0, zkey.len() as u64] {
        let mut bytes = zkey.clone();
        bytes[head + 4..head + 12].copy_from_slice(&wrong.to_le_bytes());
        place.write("bad", &bytes);
        place.prove_refused("bad", "good.wtns", &["bad: "]);
    }
    // A number of a section that occurs twice, one that is missing, and counts that no file has.
    for (at, value) in [(head, 3u32), (head, 99), (8, 0), (8, 1), (8, u32::MAX), (4, 77)] {
        let mut bytes = zkey.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        place.write("bad", &bytes);
        place.prove_refused("bad", "good.wtns", &["bad: "]);
    }
    let longer = [&zkey[..], b"more"].concat();
    place.write("bad", &longer);
    place.prove_refused("bad", "good.wtns", &["bad: "]);
}

#[test]
fn witnesses_that_do_not_belong() {
    let place = Place::new();
    let witness = good("wtns");
    place.write("bad", &wtns(&BN254_R, &[element(1), element(2)]));
    place.prove_refused("good.zkey", "bad", &["bad: "]);

    let mut other_field = witness.clone();
    let at = sections(&witness)[0].2 + 4;
    other_field[at..at + 32].copy_from_slice(&BLS12_381_R);
    place.write("bad", &other_field);
    place.prove_refused("good.zkey", "bad", &["bn254", "bls12-381"]);
    other_field[at..at + 32].copy_from_slice(&element(97));
    place.write("bad", &other_field);
    place.prove_refused("good.zkey", "bad", &["bad: ", "modulus"]);

    place.write("bad", &patched(&witness, 2, 5 * 32, &BN254_R));
    place.prove_refused("good.zkey", "bad", &["bad: ", "5"]);
    place.write("bad", &patched(&witness, 2, 5 * 32, &[0xff; 32]));
    place.prove_refused("good.zkey", "bad", &["bad: "]);
    place.write("bad", &patched(&witness, 2, 0, &element(2)));
    place.prove_refused("good.zkey", "bad", &["bad: "]);
}

#[test]
fn a_witness_that_does_not_satisfy_the_circuit() {
    let place = Place::new();
    let witness = good("wtns");
    let count = sections(&witness)[1].3 / 32;
    // A public value, one in the middle and the last one.
    for wire in [1, count / 2, count - 1] {
        place.write("bad", &patched(&witness, 2, wire * 32, &element(12_345)));
        place.prove_refused("good.zkey", "bad", &["does not satisfy"]);
    }
}

#[test]
fn files_of_the_wrong_kind_in_every_position() {
    let place = Place::new();
    let wasm = root().join("crates/witness/tests/data/multiplier.wasm");
    fs::copy(wasm, place.path().join("good.wasm")).unwrap();
    place.write("empty", b"");
    place.write("noise", &[0x5a; 5000]);
    let r1cs = root().join("crates/app/tests/data/multiplier.r1cs");
    fs::copy(r1cs, place.path().join("good.r1cs")).unwrap();
    let all =
        ["good.zkey", "good.wtns", "good.vkey.json", "good.wasm", "good.r1cs", "good.input.json", "empty", "noise"];
    let others = |good: &'static str| all.into_iter().filter(move |name| *name != good);
    for wrong in others("good.zkey") {
        place.prove_refused(wrong, "good.wtns", &[wrong]);
        place.refused(&["export-vkey", wrong, "v.json"], &[wrong]);
    }
    for wrong in others("good.wtns") {
        place.prove_refused("good.zkey", wrong, &[wrong]);
    }
    for wrong in others("good.wasm") {
        place.refused(&["witness", wrong, "good.input.json", "w.wtns"], &[wrong]);
    }
    for wrong in others("good.input.json") {
        place.refused(&["witness", "good.wasm", wrong, "w.wtns"], &[wrong]);
    }
    for wrong in others("good.r1cs") {
        place.refused(&["setup", wrong, "new.zkey"], &[wrong]);
    }
    for wrong in others("good.vkey.json") {
        place.refused(&["verify", wrong, "good.input.json", "good.input.json"], &[wrong]);
    }
    for wrong in all.into_iter().filter(|name| !["good.zkey", "good.vkey.json"].contains(name)) {
        place.refused(&["export-solidity", wrong, "v.sol"], &[wrong]);
    }
    for wrong in all {
        place.refused(&["verify", "good.vkey.json", wrong, wrong], &[wrong]);
    }
    for wrong in ["empty", "noise", "good.wasm", "good.input.json"] {
        place.refused(&["inspect", wrong], &[wrong]);
    }
}

#[test]
fn keys_with_wrong_numbers_and_points() {
    let place = Place::new();
    let zkey = good("zkey");
    // Header of BN254: u32 n8 | p | u32 n8 | r | u32 variables | u32 publics | u32 domain | points.
    let (variables, publics, domain, alpha) = (72, 76, 80, 84);
    let word = |value: u32| value.to_le_bytes();
    for (what, section, offset, bytes) in [
        ("base field", 2, 4, &[0x55; 32][..]),
        ("scalar field", 2, 40, &[0x55; 32]),
        ("size of the base field", 2, 0, &word(48)),
        ("variables", 2, variables, &word(u32::MAX)),
        ("variables", 2, variables, &word(0)),
        ("publics", 2, publics, &word(u32::MAX)),
        ("publics", 2, publics, &word(5075)),
        ("domain", 2, domain, &word(8191)),
        ("domain", 2, domain, &word(0)),
        ("domain", 2, domain, &word(1 << 14)),
        ("domain above the 2-adicity", 2, domain, &word(1 << 29)),
        ("domain", 2, domain, &word(u32::MAX)),
        ("protocol", 1, 0, &word(7)),
        ("coordinate above p", 2, alpha, &[0xff; 32]),
        ("coordinate above p", 5, 64 * 9, &[0xff; 32]),
        ("number of coefficients", 4, 0, &word(u32::MAX)),
        ("matrix of a coefficient", 4, 4, &word(2)),
        ("row of a coefficient", 4, 8, &word(1 << 13)),
        ("wire of a coefficient", 4, 12, &word(u32::MAX)),
        ("value of a coefficient", 4, 16, &BN254_R),
        ("alpha off the curve", 2, alpha, &element(5)),
        ("IC point off the curve", 3, 0, &element(5)),
        ("A point off the curve", 5, 64 * 70, &element(5)),
        ("B1 point off the curve", 6, 64 * 70, &element(5)),
        ("B2 point off the curve", 7, 128 * 70, &element(5)),
        ("C point off the curve", 8, 64 * 70, &element(5)),
        ("H point off the curve", 9, 64 * 70, &element(5)),
    ] {
        let bad = patched(&zkey, section, offset, bytes);
        assert!(bad != zkey, "{what}");
        place.write("bad", &bad);
        place.prove_refused("bad", "good.wtns", &["bad: "]);
    }
}

#[test]
fn files_that_are_missing_or_unreadable() {
    let place = Place::new();
    place.prove_refused("none.zkey", "good.wtns", &["none.zkey: "]);
    place.prove_refused("good.zkey", "none.wtns", &["none.wtns: "]);
    place.refused(&["verify", "none", "none", "none"], &["none: "]);
    place.refused(&["inspect", "none"], &["none: "]);
    // A file that opens and cannot be read, whoever asks.
    let unreadable = "/proc/self/mem";
    place.prove_refused(unreadable, "good.wtns", &[unreadable]);
    place.prove_refused("good.zkey", unreadable, &[unreadable]);
    place.refused(&["witness", unreadable, "good.input.json", "w"], &[unreadable]);
    fs::create_dir(place.path().join("folder")).unwrap();
    place.prove_refused("folder", "good.wtns", &["folder: "]);
    place.prove_refused("good.zkey", "folder", &["folder: "]);
    place.refused(&["setup", "folder", "new.zkey"], &["folder: "]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let place = Place::new();
    let prove = |proof: &str, public: &str, parts: &[&str]| {
        place.refused(&["prove", "good.zkey", "good.wtns", proof, public, "--device", "cpu"], parts);
    };
    prove("none/p.json", "u.json", &["none/p.json: "]);
    prove("p.json", "none/u.json", &["none/u.json: "]);
    prove("p.json", "p.json", &["p.json: ", "two outputs"]);
    prove("p.json", "./p.json", &["p.json: ", "two outputs"]);
    prove("good.zkey", "u.json", &["good.zkey: ", "replace the input"]);
    prove("p.json", "./good.wtns", &["good.wtns: ", "replace the input"]);
    let traced = |command: &[&str], trace: &str, part: &str| {
        place.refused(&[command, &["--trace", trace]].concat(), &[trace, part]);
    };
    let one = ["prove", "good.zkey", "good.wtns", "p.json", "u.json"];
    for trace in ["p.json", "./u.json"] {
        traced(&one, trace, "two outputs");
    }
    for trace in ["./good.zkey", "good.wtns"] {
        traced(&one, trace, "replace the input");
        traced(&["inspect", trace], trace, "replace the input");
    }
    let two = [&one[..], &["--more", "w", "p2.json", "u2.json"]].concat();
    traced(&two, "./p2.json", "two outputs");
    traced(&two, "./u2.json", "two outputs");
    traced(&["export-vkey", "good.zkey", "v.json"], "./v.json", "two outputs");
    traced(&["setup", "good.r1cs", "new.zkey"], "good.r1cs", "replace the input");
    traced(&["setup", "good.r1cs", "new.zkey"], "new.zkey", "two outputs");
    traced(&["witness", "good.wasm", "good.input.json", "w"], "good.input.json", "replace the input");
    fs::create_dir(place.path().join("folder")).unwrap();
    prove("folder", "u.json", &["folder: "]);
    prove("", "u.json", &[]);
    // A full disk: nothing of the pair appears, and what was there stays.
    place.write("u.json", b"old");
    prove("/dev/full", "u.json", &["/dev/full: ", "No space left"]);
    assert_eq!(fs::read(place.path().join("u.json")).unwrap(), b"old");
    place.refused(&["export-vkey", "good.zkey", "/dev/full"], &["/dev/full: "]);
    place.refused(&["export-solidity", "good.zkey", "/dev/full"], &["/dev/full: "]);
    place.refused(&["export-solidity", "good.zkey", "./good.zkey"], &["replace the input"]);
}

#[test]
fn a_disk_that_fills_up_half_way() {
    let place = Place::new();
    let (r1cs, _) = squarings(2000);
    place.write("big.r1cs", &r1cs);
    let before = names(place.path());
    // 8 blocks of 1 KiB for each file; writing more fails as on a full disk.
    let script = "ulimit -f 8; exec \"$@\"";
    let program = support::binary();
    let args = ["-c", script, "bash", text(&program), "setup", "big.r1cs", "new.zkey"];
    let output = Command::new("bash").current_dir(place.path()).args(args).output().unwrap();
    let (_, stderr) = expect(2, output, &args);
    assert!(stderr.contains("new.zkey: ") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(names(place.path()), before);
}

#[test]
fn circuits_that_cannot_be_set_up() {
    let place = Place::new();
    let r1cs = fs::read(root().join("crates/app/tests/data/multiplier.r1cs")).unwrap();
    // Header: u32 n8 | r | u32 wires | u32 outputs | u32 inputs | u32 private | u64 labels | u32 constraints.
    let word = |value: u32| value.to_le_bytes();
    for (offset, bytes) in [
        (0, &word(48)[..]),
        (4, &[0x55; 32]),
        (36, &word(0)),
        (36, &word(1)),
        (40, &word(u32::MAX)),
        (44, &word(4)),
        (60, &word(u32::MAX)),
        (60, &word(2)),
    ] {
        place.write("bad", &patched(&r1cs, 1, offset, bytes));
        place.refused(&["setup", "bad", "new.zkey"], &["bad: "]);
    }
    // The first constraint: u32 terms | u32 wire | 32 bytes of value.
    for (offset, bytes) in [(0, &word(u32::MAX)[..]), (4, &word(4)), (8, &BN254_R)] {
        place.write("bad", &patched(&r1cs, 2, offset, bytes));
        place.refused(&["setup", "bad", "new.zkey"], &["bad: "]);
    }
}

#[test]
fn proofs_and_public_signals_that_are_malformed() {
    let place = Place::new();
    let args = ["prove", "good.zkey", "good.wtns", "p.json", "u.json", "--device", "cpu", "--quiet"];
    run_in(place.path(), 0, &args);
    let (stdout, _) = run_in(place.path(), 0, &["verify", "good.vkey.json", "u.json", "p.json"]);
    assert_eq!(stdout, "OK\n");
    let proof = fs::read_to_string(place.path().join("p.json")).unwrap();
    for (from, to) in [("groth16", "plonk"), ("bn128", "bls12381"), ("\"pi_b\"", "\"pi_x\""), ("[", "{")] {
        assert!(proof.contains(from));
        place.write("bad", proof.replace(from, to).as_bytes());
        place.refused(&["verify", "good.vkey.json", "u.json", "bad"], &["bad: "]);
    }
    // More than 384 bits, more than any field has.
    let huge = format!("[\"{}\"]", "9".repeat(117));
    for publics in ["", "[", "{}", "[null]", "[\"x\"]", "[\"-1\"]", "[]", "[\"1\", \"2\"]", &huge] {
        place.write("bad", publics.as_bytes());
        place.refused(&["verify", "good.vkey.json", "bad", "p.json"], &["bad"]);
    }
}

/// A file that snarkjs made.
fn snarkjs(name: &str) -> Vec<u8> {
    fs::read(root().join("crates/formats/tests/data").join(name)).unwrap()
}

/// A file without these sections.
fn without(file: &[u8], ids: &[u32]) -> Vec<u8> {
    let mut rest = file[..12].to_vec();
    let kept: Vec<_> = sections(file).into_iter().filter(|(id, ..)| !ids.contains(id)).collect();
    rest[8..].copy_from_slice(&(kept.len() as u32).to_le_bytes());
    kept.iter().for_each(|(_, head, start, length)| rest.extend(&file[*head..start + length]));
    rest
}

/// A point of a section.
fn point(file: &[u8], section: u32, size: usize, number: usize) -> Vec<u8> {
    let (_, _, start, _) = sections(file).into_iter().find(|s| s.0 == section).unwrap();
    file[start + number * size..][..size].to_vec()
}

/// What the first key of a ceremony is made of.
#[test]
fn powers_of_tau_that_no_ceremony_can_go_on_with() {
    let place = Place::new();
    for name in ["mul.r1cs", "bn128.prepared.ptau", "bls12-381.prepared.ptau", "bn128.ptau"] {
        place.write(name, &snarkjs(name));
    }
    let ptau = snarkjs("bn128.prepared.ptau");
    let setup = |ptau: &str, more: &[&str], parts: &[&str]| {
        place.refused(&[&["setup", "--ptau", ptau, "mul.r1cs", "new.zkey"][..], more].concat(), parts);
    };
    setup("bn128.prepared.ptau", &["--seed", "x"], &["--seed is for test keys"]);
    setup("bls12-381.prepared.ptau", &[], &["powers of tau for bls12-381, expected those for bn254"]);
    setup("mul.r1cs", &[], &["mul.r1cs: "]);
    place.write("unprepared", &without(&ptau, &[12, 13, 14, 15]));
    setup("unprepared", &[], &["unprepared: ", "not prepared for phase 2", "powersoftau prepare phase2"]);
    for (_, head, start, length) in sections(&ptau) {
        for cut in [head, head + 4, start, start + length / 2, (start + length).saturating_sub(1)] {
            place.write("cut", &ptau[..cut]);
            setup("cut", &[], &["cut: "]);
        }
    }
    // Points of their group, at the wrong place: the circuit has eight rows, whose bases follow those of one to four. Of sections 4 and 5 the
    // first point is used.
    const ROWS: usize = 8;
    let [one, tau] = [0, 1].map(|i| [point(&ptau, 2, 64, i), point(&ptau, 3, 128, i)]);
    for (section, at, bytes, what) in [
        (2, 64 * 6, &one[0], "the powers of tau are not those of one tau"),
        (3, 128, &one[1], "the powers of tau are not those of one tau"),
        (4, 0, &tau[0], "Lagrange basis times alpha"),
        (5, 0, &tau[0], "beta is not the same"),
        (6, 0, &tau[1], "beta is not the same"),
        (12, 64 * (ROWS - 1), &tau[0], "Lagrange basis in G1"),
        (12, 64 * (2 * ROWS), &tau[0], "Lagrange basis of the doubled domain"),
        (13, 128 * (2 * ROWS - 2), &tau[1], "Lagrange basis in G2"),
        (14, 64 * ROWS, &tau[0], "Lagrange basis times alpha"),
        (15, 64 * ROWS, &tau[0], "Lagrange basis times beta"),
    ] {
        place.write("bad", &patched(&ptau, section, at, bytes));
        setup("bad", &[], &["bad: ", what]);
    }
    // The modulus as a coordinate.
    let p = ptau[12 + 12 + 4..][..32].to_vec();
    place.write("bad", &patched(&ptau, 13, 128 * ROWS, &p));
    setup("bad", &[], &["bad: section 13 (Lagrange basis in G2)", "below the base field modulus"]);
}

#[test]
fn keys_that_no_contract_can_be_made_of() {
    let place = Place::new();
    let export = ["export-solidity", "key", "new.sol"];
    for name in ["mul_bls.zkey", "mul_bls.vkey.json", "mul_bls.plonk.zkey", "mul_bls.plonk.vkey.json"] {
        place.write("key", &snarkjs(name));
        place.refused(&export, &["key: verifier contracts are for keys over bn254, found bls12-381"]);
    }
    // A point off its curve, and a root of unity that is none.
    for (name, member, part) in [
        ("mul.vkey.json", "/vk_alpha_1/0", "alpha is not on the curve"),
        ("mul.vkey.json", "/IC/1/1", "is not on the curve"),
        ("mul.plonk.vkey.json", "/S2/0", "S2 is not on the curve"),
        ("mul.plonk.vkey.json", "/w", "w is not the root of unity"),
        ("mul.fflonk.vkey.json", "/C0/0", "C0 is not on the curve"),
        ("mul.fflonk.vkey.json", "/w8", "w8 and wr are not the roots of unity"),
    ] {
        let mut key: serde_json::Value = serde_json::from_slice(&snarkjs(name)).unwrap();
        *key.pointer_mut(member).unwrap() = "5".into();
        place.write("key", key.to_string().as_bytes());
        place.refused(&export, &["key: ", part]);
    }
    for name in ["mul.zkey", "mul.plonk.zkey", "mul.fflonk.zkey"] {
        place.write("key", snarkjs(name).split_last().unwrap().1);
        place.refused(&export, &["key: "]);
    }
}

#[test]
fn plonk_files_that_are_damaged_or_do_not_belong_together() {
    let place = Place::new();
    for name in
        ["mul.plonk.zkey", "mul.wtns", "mul.r1cs", "bn128.prepared.ptau", "bls12-381.prepared.ptau", "bn128.ptau"]
    {
        place.write(name, &snarkjs(name));
    }
    let setup = ["setup", "--protocol", "plonk", "--ptau"];
    let (key, ptau) = (snarkjs("mul.plonk.zkey"), snarkjs("bn128.prepared.ptau"));
    // Every section border, and inside of each head.
    for (file, is_key) in [(&key, true), (&ptau, false)] {
        for (_, head, start, length) in sections(file) {
            for cut in [head, head + 4, start, start + length / 2, (start + length).saturating_sub(1)] {
                place.write("cut", &file[..cut]);
                if is_key {
                    place.prove_refused("cut", "mul.wtns", &["cut: "]);
                    place.refused(&["export-vkey", "cut", "v.json"], &["cut: "]);
                } else {
                    place.refused(&[&setup[..], &["cut", "mul.r1cs", "new.zkey"]].concat(), &["cut: "]);
                }
            }
        }
    }
    let refused_key = |key: Vec<u8>, parts: &[&str]| {
        place.write("bad", &key);
        place.prove_refused("bad", "mul.wtns", parts);
    };
    refused_key(patched(&key, 4, 8, &u32::MAX.to_le_bytes()), &["bad: section 4 (A signals)", "gate 2"]);
    refused_key(patched(&key, 3, 0, &6u32.to_le_bytes()), &["bad: section 3 (additions)", "addition 0"]);
    refused_key(patched(&key, 9, 32, &BN254_R), &["bad: section 9 (Qr)", "element 1"]);
    refused_key(patched(&key, 14, 64 * 3, &[1]), &["bad: the power 3 of tau is not on the curve"]);
    // Its sections are none of an FFLONK key.
    refused_key(patched(&key, 1, 0, &[10]), &["bad: section "]);
    // k1 as k2, which lies behind it.
    let k1 = 4 + 32 + 4 + 32 + 20;
    let header = sections(&key).into_iter().find(|s| s.0 == 2).unwrap().2;
    let k2 = key[header + k1 + 32..][..32].to_vec();
    refused_key(patched(&key, 2, k1, &k2), &["k1 and k2 do not keep the columns apart"]);
    place.prove_refused("mul.plonk.zkey", "good.wtns", &["good.wtns"]);
    let refused_setup = |ptau: &str, r1cs: &str, parts: &[&str]| {
        place.refused(&[&setup[..], &[ptau, r1cs, "new.zkey"]].concat(), parts);
    };
    refused_setup("bls12-381.prepared.ptau", "mul.r1cs", &["powers of tau for bls12-381, expected those for bn254"]);
    refused_setup("bn128.ptau", "mul.r1cs", &["use a file of power 3 or more"]);
    place.write("bad", &patched(&ptau, 2, 64 * 5, &[1]));
    refused_setup("bad", "mul.r1cs", &["bad: the power 5 of tau is not on the curve"]);
    place.refused(&["setup", "--protocol", "plonk", "mul.r1cs", "new.zkey"], &["--ptau"]);
    place
        .refused(&[&setup[..], &["bn128.ptau", "mul.r1cs", "k", "--seed", "x"]].concat(), &["--seed is for test keys"]);
    place.refused(&[&setup[..], &["bn128.ptau", "mul.r1cs", "bn128.ptau"]].concat(), &["replace the input"]);
    place.refused(&["ptau", "4", "new.ptau"], &["--test"]);
    for power in ["0", "28", "-1", "x"] {
        place.refused(&["ptau", "--test", "new.ptau", power], &[]);
        place.refused(&["ptau", "--test", power, "new.ptau"], &[]);
    }

    // Proofs and keys of one system for those of the other.
    let (proof, vkey) = (snarkjs("mul.plonk.proof.json"), snarkjs("mul.plonk.vkey.json"));
    for name in ["mul.public.json", "mul.proof.json", "mul.vkey.json", "mul.plonk.proof.json", "mul.plonk.vkey.json"] {
        place.write(name, &snarkjs(name));
    }
    let verify = ["verify", "mul.plonk.vkey.json", "mul.public.json"];
    place.refused(&[&verify[..], &["mul.proof.json"]].concat(), &["expected a PLONK proof (JSON)"]);
    place.refused(
        &["verify", "mul.vkey.json", "mul.public.json", "mul.plonk.proof.json"],
        &["this is a PLONK proof (JSON), expected a Groth16 proof (JSON)", "use files of one proof system"],
    );
    let text = String::from_utf8(proof).unwrap();
    for (from, to) in [("\"plonk\"", "\"groth16\""), ("bn128", "bls12381"), ("\"Wxi\"", "\"Wxj\""), ("[", "{")] {
        place.write("bad", text.replacen(from, to, 1).as_bytes());
        place.refused(&[&verify[..], &["bad"]].concat(), &["bad: "]);
    }
    let text = String::from_utf8(vkey).unwrap();
    for (from, to, part) in [
        ("\"power\": 3", "\"power\": 4", "w is not the root of unity"),
        ("\"k2\": \"3\"", "\"k2\": \"2\"", "k1 and k2"),
        ("\"w\": \"1", "\"w\": \"2", "w"),
        ("\"nPublic\": 2", "\"nPublic\": 1", "2 public values; the verification key has 1"),
    ] {
        assert!(text.contains(from));
        place.write("bad", text.replacen(from, to, 1).as_bytes());
        place.refused(&["verify", "bad", "mul.public.json", "mul.plonk.proof.json"], &[part]);
    }
}

#[test]
fn usage_errors_are_one_line() {
    let place = Place::new();
    for (args, part) in [
        (&[][..], "--help"),
        (&["prov"], "prov"),
        (&["prove"], "required"),
        (&["prove", "a", "b", "c"], "required"),
        (&["prove", "a", "b", "c", "d", "e"], "unexpected"),
        (&["verify", "a", "b", "c", "--fast"], "--fast"),
        (&["doctor", "--device", "gpu"], "no such kind"),
        (&["doctor", "--device", "sim:0"], "must be 1 to"),
        (&["bench", "ntt", "--log-n", "20..18"], "expected a number"),
        (&["bench", "ntt", "--curve", "p256"], "p256"),
        (&["bench", "groth16", "only.zkey"], "required"),
        (&["witness", "a", "b", "c", "--max-memory", "0"], "--max-memory"),
    ] {
        place.refused(args, &[part]);
    }
    let trace = ["export-vkey", "good.zkey", "v.json", "--trace", "none/t.json"];
    place.refused(&trace, &["none/t.json: "]);
}

#[test]
fn circuits_and_inputs_of_the_witness_command() {
    let place = Place::new();
    let wasm = fs::read(root().join("crates/witness/tests/data/multiplier.wasm")).unwrap();
    place.write("good.wasm", &wasm);
    for (json, part) in [
        ("", "an empty file, expected the inputs of a circuit (JSON)"),
        ("[]", "public values (JSON), expected the inputs of a circuit (JSON)"),
        ("{", "not JSON"),
        (r#"{"a": 1}"#, "1 value of 2 is missing; given: a (1 value)"),
        (r#"{"a": 1, "b": 2, "c": 3}"#, "signal c"),
        (r#"{"a": [1, 2], "b": 2}"#, "signal a: too many"),
        (r#"{"a": "one", "b": 2}"#, "signal a"),
        (r#"{"a": 1.5, "b": 2}"#, "signal a"),
        (r#"{"a": 9007199254740993, "b": 2}"#, "write it as a string"),
    ] {
        place.write("bad", json.as_bytes());
        place.refused(&["witness", "good.wasm", "bad", "w.wtns"], &["bad: ", part]);
    }
    place.write("in.json", br#"{"a": 3, "b": 5}"#);
    place.write("bad", &wasm[..wasm.len() / 2]);
    place.refused(&["witness", "bad", "in.json", "w.wtns"], &["bad: ", "not a circuit"]);
    let args = ["fullprove", "in.json", "good.wasm", "good.zkey", "p.json", "u.json", "--device", "cpu"];
    place.refused(&args, &["4 values", "5075"]);
    // `/dev/stdout` takes a witness, too.
    let args = ["witness", "good.wasm", "in.json", "/dev/stdout", "--quiet"];
    let output = tandem().current_dir(place.path()).args(args).output().unwrap();
    assert!(output.stdout == files::wtns(&BN254_R, &[element(1), element(15), element(3), element(5)]));
}

/// A module whose `getVersion` does not end.
const ENDLESS: &[u8] = b"\0asm\x01\0\0\0\x01\x05\x01\x60\0\x01\x7f\x03\x02\x01\0\x07\x0e\x01\x0agetVersion\0\0\
    \x0a\x0b\x01\x09\0\x03\x40\x0c\0\x0b\x41\x02\x0b";

#[test]
fn limits_of_a_circuit_name_their_option() {
    let place = Place::new();
    place.write("endless", ENDLESS);
    place.write("in.json", br#"{"a": 3, "b": 5}"#);
    let wasm = root().join("crates/witness/tests/data/multiplier.wasm");
    fs::copy(wasm, place.path().join("good.wasm")).unwrap();
    let witness = ["witness", "endless", "in.json", "w.wtns"];
    let prove = ["fullprove", "in.json", "endless", "good.zkey", "p.json", "u.json", "--device", "cpu"];
    for command in [&witness[..], &prove] {
        let limited = |option: &'static str, parts: &[&str]| {
            place.refused(&[command, &[option, "1"]].concat(), &[&["endless: "], parts].concat());
        };
        limited("--max-steps", &["stopped after 1000000 steps", "--max-steps sets the limit"]);
        limited("--max-seconds", &["stopped after 1 s", "--max-seconds sets the limit"]);
    }
    let args = ["witness", "good.wasm", "in.json", "w.wtns", "--max-memory", "1", "--recordings", "off"];
    place.refused(&args, &["good.wasm: ", "1 MiB of memory", "--max-memory sets the limit"]);
    place.refused(&[&witness[..], &["--max-seconds", "0"]].concat(), &["--max-seconds"]);
    // Ctrl-C ends it.
    let before = names(place.path());
    let (status, took) =
        interrupted(place.path(), "-INT", &witness, |names| names.iter().any(|name| name.ends_with(".part")));
    assert_eq!(status, Some(130));
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(names(place.path()), before);
}

#[test]
fn interrupts_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().into();
    let (r1cs, witness) = squarings((1 << 16) - 10);
    fs::File::create(path.join("a.r1cs")).unwrap().write_all(&r1cs).unwrap();
    fs::write(path.join("a.wtns"), witness).unwrap();
    let under_way = |names: &[String]| names.iter().any(|name| name.ends_with(".part"));

    for (signal, expected) in
        [("-INT", 130), ("-TERM", 143), ("-HUP", 129), ("-QUIT", 131), ("-XCPU", 152), ("-ABRT", 3)]
    {
        let (status, took) = interrupted(&path, signal, &["setup", "a.r1cs", "a.zkey"], under_way);
        assert_eq!(status, Some(expected));
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert_eq!(names(&path), ["a.r1cs", "a.wtns"]);
    }
    run_in(&path, 0, &["setup", "a.r1cs", "a.zkey", "--seed", "a test", "--quiet"]);
    let args = ["prove", "a.zkey", "a.wtns", "p.json", "u.json", "--device", "cpu"];
    let (status, took) = interrupted(&path, "-INT", &args, under_way);
    assert_eq!(status, Some(130));
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(names(&path), ["a.r1cs", "a.wtns", "a.zkey"]);
    // Left alone, the same command proves.
    run_in(&path, 0, &[&args[..], &["--quiet"]].concat());
    assert!(!text(&path.join("p.json")).is_empty());
}

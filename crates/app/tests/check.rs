//! `tandem check`: a witness against its circuit, constraint by constraint.

mod support;

use std::fs;
use std::path::Path;
use support::files::{element, patched, squarings, wtns, BLS12_381_R, BN254_R};
use support::{refused_in, root, run_in};

fn data(name: &str) -> Vec<u8> {
    fs::read(root().join("crates/formats/tests/data").join(name)).unwrap()
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn json(at: &Path, status: i32, args: &[&str]) -> serde_json::Value {
    let (stdout, _) = run_in(at, status, &[args, &["--json"]].concat());
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn witnesses_of_circom_satisfy_their_circuits() {
    for name in ["mul", "mul_bls", "nopub"] {
        let (r1cs, witness) = (data(&format!("{name}.r1cs")), data(&format!("{name}.wtns")));
        let at = folder(&[("c.r1cs", &r1cs), ("w.wtns", &witness)]);
        assert_eq!(run_in(at.path(), 0, &["check", "c.r1cs", "w.wtns"]).0, "OK\n");
        let found = json(at.path(), 0, &["check", "c.r1cs", "w.wtns"]);
        assert_eq!(found["satisfied"], true);
        assert!(found["constraints"].as_u64().unwrap() > 0 && found["first"].as_array().unwrap().is_empty());
    }
}

#[test]
fn each_wrong_value_is_found_where_it_stands() {
    // Wire i + 2 is the square of wire i + 1; another value of wire w breaks the constraints w - 2 and w - 1.
    let n = 5000;
    let (r1cs, witness) = squarings(n);
    for wire in [1, 2, 3, 4097, 4098, 4999, 5000, 5001] {
        let wrong = patched(&witness, 2, wire * 32, &element(7));
        let at = folder(&[("c.r1cs", &r1cs), ("w.wtns", &wrong)]);
        let found = json(at.path(), 1, &["check", "c.r1cs", "w.wtns"]);
        let expected: Vec<usize> = [wire.checked_sub(2), Some(wire - 1)].into_iter().flatten().collect();
        let expected: Vec<usize> = expected.into_iter().filter(|&i| i < n as usize).collect();
        let first = found["first"].as_array().unwrap();
        let told: Vec<usize> = first.iter().map(|f| f["constraint"].as_u64().unwrap() as usize).collect();
        assert_eq!((told, found["unsatisfied"].as_u64().unwrap() as usize), (expected.clone(), expected.len()));
        let i = expected[0];
        let formula = format!("(wire {}) * (wire {}) = wire {}", i + 1, i + 1, i + 2);
        assert_eq!(first[0]["formula"], formula);
    }
}

#[test]
fn no_more_than_ten_are_told_and_all_are_counted() {
    let (r1cs, witness) = squarings(40);
    let mut wrong = witness;
    for wire in 1..42 {
        wrong = patched(&wrong, 2, wire * 32, &element(100 + wire as u64));
    }
    let at = folder(&[("c.r1cs", &r1cs), ("w.wtns", &wrong)]);
    let (stdout, stderr) = run_in(at.path(), 1, &["check", "c.r1cs", "w.wtns"]);
    assert_eq!((stdout.as_str(), stderr.lines().count()), ("NOT SATISFIED\n", 11), "{stderr}");
    assert!(stderr.ends_with("40 of 40 constraints do not hold\n"), "{stderr}");
    // No value of the witness is shown.
    assert!(!stderr.contains("101") && !stderr.contains("141"), "{stderr}");
}

#[test]
fn wires_have_the_names_of_the_symbol_file() {
    let (r1cs, witness) = squarings(3);
    let wrong = patched(&witness, 2, 4 * 32, &element(9));
    let symbols = "1,1,0,main.x[0]\n2,2,0,main.x[1]\n3,3,0,main.x[2]\n4,4,0,main.x[3]\n5,-1,0,main.gone\n";
    let at = folder(&[("c.r1cs", &r1cs), ("w.wtns", &wrong), ("c.sym", symbols.as_bytes()), ("bad.sym", b"1,1\n")]);
    let (_, stderr) = run_in(at.path(), 1, &["check", "c.r1cs", "w.wtns", "--sym", "c.sym"]);
    assert_eq!(stderr, "constraint 2 of 3: (main.x[2]) * (main.x[2]) = main.x[3] does not hold\n");
    refused_in(at.path(), &["check", "c.r1cs", "w.wtns", "--sym", "bad.sym"], &["bad.sym: line 1: ", "circom --sym"]);
    refused_in(at.path(), &["check", "c.r1cs", "w.wtns", "--sym", "none.sym"], &["none.sym: cannot open"]);
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let (r1cs, witness) = squarings(3);
    let short = wtns(&BN254_R, &[element(1); 4]);
    let other = wtns(&BLS12_381_R, &[element(1); 5]);
    let at = folder(&[("c.r1cs", &r1cs), ("w.wtns", &witness), ("short.wtns", &short), ("other.wtns", &other)]);
    let refused = |args: &[&str], parts: &[&str]| refused_in(at.path(), &[&["check"], args].concat(), parts);
    refused(&["c.r1cs", "short.wtns"], &["short.wtns: ", "4 values", "expected the 5", "c.r1cs"]);
    refused(&["c.r1cs", "other.wtns"], &["other.wtns: ", "bls12-381", "bn254"]);
    refused(&["w.wtns", "c.r1cs"], &["w.wtns: this is a wtns file, expected an r1cs file"]);
}

//! The first key of a Groth16 ceremony: snarkjs makes the same of the same powers of tau, and goes on with ours.

use super::plonk::powers;
use super::{compile, node, packages};
use crate::support::{root, run, text};
use serde_json::{json, Value};
use std::fs;
use std::path::Path;

/// A circuit, and powers of tau that serve just as many rows as it has, or more.
fn check(name: &str, (source, curve): (&str, &str), power: u32, input: &Value) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e-ceremony").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| text(&folder.join(name)).to_string();
    let (r1cs, wasm) = compile(source, curve);
    let (r1cs, wasm, ptau) = (text(&r1cs), text(&wasm), powers(curve, power));
    let (_, stderr) = run(0, &["setup", "--ptau", text(&ptau), r1cs, &file("ours.zkey")]);
    assert!(stderr.contains("a ceremony's first key") && stderr.contains("not for production yet"), "{stderr}");
    run(0, &["groth16", "setup", r1cs, text(&ptau), &file("words.zkey")]);
    assert!(
        fs::read(file("ours.zkey")).unwrap() == fs::read(file("words.zkey")).unwrap(),
        "{name}: not the same twice"
    );
    let jobs = json!([["groth16Setup", r1cs, text(&ptau), file("theirs.zkey")]]);
    node(&[text(&root().join("tests/e2e/reference.mjs")), &jobs.to_string()]);
    assert!(fs::read(file("ours.zkey")).unwrap() == fs::read(file("theirs.zkey")).unwrap(), "{name}: the keys differ");

    // A contribution to ours is one that snarkjs verifies, and the key proves.
    let snarkjs = packages().join("snarkjs/build/cli.cjs");
    let mine = ["--name=me", "-e=some entropy"];
    node(&[&[text(&snarkjs), "zkey", "contribute", &file("ours.zkey"), &file("key.zkey")][..], &mine].concat());
    let verified = node(&[text(&snarkjs), "zkey", "verify", r1cs, text(&ptau), &file("key.zkey")]);
    assert!(verified.contains("ZKey Ok!"), "{verified}");
    fs::write(file("input.json"), input.to_string()).unwrap();
    let made = [file("proof.json"), file("public.json")];
    let prove = ["fullprove", &file("input.json"), wasm, &file("key.zkey"), &made[0], &made[1], "--device", "cpu"];
    run(0, &prove);
    run(0, &["export-vkey", &file("key.zkey"), &file("vkey.json")]);
    run(0, &["verify", &file("vkey.json"), &made[1], &made[0]]);
    let script = root().join("tests/e2e/reference.mjs");
    match curve {
        "bn128" => {
            let theirs = node(&[text(&script), &json!([["calldata", made[0], made[1]]]).to_string()]);
            let theirs: Value = serde_json::from_str(&theirs).unwrap();
            for words in [&["calldata"][..], &["zkey", "export", "soliditycalldata"]] {
                let (ours, _) = run(0, &[words, &[&made[1], &made[0]]].concat());
                assert_eq!(json!([ours.trim_end()]), theirs);
            }
        }
        _ => {
            let (_, stderr) = run(2, &["calldata", &made[1], &made[0]]);
            assert!(stderr.contains("proof.json: ") && stderr.contains("bn"), "{stderr}");
        }
    }
}

const MULTIPLIER: &str = "tests/e2e/circuits/multiplier.circom";

#[test]
fn multiplier() {
    let input = json!({"a": "123456789012345678901234567890", "b": "7"});
    // As few as serve it: the largest basis of the file lacks a power.
    check("multiplier-least", (MULTIPLIER, "bn128"), 2, &input);
    check("multiplier", (MULTIPLIER, "bn128"), 4, &input);
}

#[test]
fn multiplier_on_bls12_381() {
    check("multiplier-bls12381", (MULTIPLIER, "bls12381"), 4, &json!({"a": -3, "b": "11"}));
}

#[test]
fn no_public_signal() {
    check("private", ("tests/e2e/circuits/private.circom", "bn128"), 4, &json!({"x": 3}));
}

#[test]
fn eddsa_poseidon() {
    let input = super::input_file("tests/e2e/circuits/eddsa.input.json");
    check("eddsa", ("tests/e2e/circuits/eddsa.circom", "bn128"), 15, &input);
}

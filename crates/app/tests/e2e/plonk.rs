//! PLONK: snarkjs makes the same keys, accepts our proofs, and its proofs are accepted here.

use super::{compile, flip, input_file, node, packages, read_json};
use crate::support::{root, run, text};
use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// Powers of tau whose secret is known, made once for each curve.
pub(crate) fn powers(curve: &str, power: u32) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{curve}.{power}.ptau"));
    if !file.is_file() {
        let (_, stderr) = run(0, &["ptau", "--test", &power.to_string(), text(&file), "--curve", curve]);
        assert!(stderr.contains("not for production"), "{stderr}");
    }
    file
}

/// Whether snarkjs makes proofs of a circuit: it fails where there is no public signal.
#[derive(PartialEq)]
enum Theirs {
    Proves,
    Fails,
}

fn check(name: &str, (source, curve): (&str, &str), power: u32, input: &Value, theirs: Theirs) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e-plonk").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| text(&folder.join(name)).to_string();
    let (r1cs, wasm) = compile(source, curve);
    let (r1cs, wasm, ptau) = (text(&r1cs), text(&wasm), powers(curve, power));
    fs::write(file("input.json"), input.to_string()).unwrap();

    // Ours: key, witness, and a proof on each device.
    let setup = ["setup", "--protocol", "plonk", "--ptau", text(&ptau), r1cs];
    run(0, &[&setup[..], &[&file("ours.zkey")]].concat());
    run(0, &["export-vkey", &file("ours.zkey"), &file("ours.vkey.json")]);
    run(0, &["witness", wasm, &file("input.json"), &file("ours.wtns")]);
    let devices = ["cpu", "sim:1", "sim:2", "sim:3", "sim:4"];
    let proof = |device: &str| file(&format!("{}.proof.json", device.replace(':', "")));
    let verify = |status, public: &str, proof: &str| {
        let (stdout, _) = run(status, &["verify", &file("ours.vkey.json"), public, proof]);
        assert_eq!(stdout, if status == 0 { "OK\n" } else { "INVALID\n" });
    };
    for device in devices {
        let files = [&file("ours.zkey"), &file("ours.wtns"), &proof(device), &file("public.json")];
        run(0, &[&["prove", "--device", device][..], &files.map(String::as_str)].concat());
        verify(0, &file("public.json"), &proof(device));
    }
    let args = [wasm, &file("ours.zkey"), &proof("full"), &file("full.public.json"), "--device", "cpu"];
    run(0, &[&["fullprove", &file("input.json")][..], &args].concat());
    assert_eq!(read_json(Path::new(&file("full.public.json"))), read_json(Path::new(&file("public.json"))));

    // Theirs.
    let mut jobs = vec![
        json!(["plonkSetup", r1cs, text(&ptau), file("theirs.zkey")]),
        json!(["vkey", file("theirs.zkey"), file("theirs.vkey.json")]),
    ];
    let checked = devices.iter().copied().chain(["full"]);
    jobs.extend(checked.map(|d| json!(["plonkVerify", file("theirs.vkey.json"), file("public.json"), proof(d)])));
    let mut expected = vec![Value::Null, Value::Null];
    expected.resize(jobs.len(), json!(true));
    if theirs == Theirs::Proves {
        let made = [file("theirs.proof.json"), file("theirs.public.json")];
        jobs.push(json!(["plonkProve", file("ours.zkey"), file("ours.wtns"), made[0], made[1]]));
        expected.push(Value::Null);
    }
    if curve == "bn128" {
        jobs.push(json!(["calldata", proof("cpu"), file("public.json")]));
        let (ours, _) = run(0, &["calldata", &file("public.json"), &proof("cpu")]);
        expected.push(json!(ours.trim_end()));
    }
    let script = root().join("tests/e2e/reference.mjs");
    let results: Value = serde_json::from_str(&node(&[text(&script), &json!(jobs).to_string()])).unwrap();
    assert_eq!(results, json!(expected), "{name}");
    assert!(fs::read(file("ours.zkey")).unwrap() == fs::read(file("theirs.zkey")).unwrap(), "{name}: the keys differ");
    assert_eq!(read_json(&folder.join("ours.vkey.json")), read_json(&folder.join("theirs.vkey.json")));

    // Their proof is accepted, ours and theirs are refused after a change of one bit.
    let mut given = vec![(proof("cpu"), file("public.json"))];
    if theirs == Theirs::Proves {
        assert_eq!(read_json(&folder.join("public.json")), read_json(&folder.join("theirs.public.json")));
        given.push((file("theirs.proof.json"), file("theirs.public.json")));
    }
    for (proof, public) in given {
        verify(0, &public, &proof);
        let good = read_json(Path::new(&proof));
        for place in ["/A/0", "/Z/1", "/T3/0", "/Wxi/0", "/Wxiw/1", "/eval_a", "/eval_s2", "/eval_zw"] {
            let mut changed = good.clone();
            flip(changed.pointer_mut(place).unwrap());
            fs::write(file("changed.json"), changed.to_string()).unwrap();
            verify(1, &public, &file("changed.json"));
        }
        // A point of the curve, but the wrong one.
        let mut swapped = good.clone();
        swapped["T1"] = good["T2"].clone();
        fs::write(file("changed.json"), swapped.to_string()).unwrap();
        verify(1, &public, &file("changed.json"));
        let publics = read_json(Path::new(&public));
        let count = publics.as_array().unwrap().len();
        for i in if count == 0 { vec![] } else { vec![0, count - 1] } {
            let mut changed = publics.clone();
            flip(&mut changed[i]);
            fs::write(file("changed.json"), changed.to_string()).unwrap();
            verify(1, &file("changed.json"), &proof);
        }
    }
}

const MULTIPLIER: &str = "tests/e2e/circuits/multiplier.circom";

#[test]
fn multiplier() {
    let input = json!({"a": "123456789012345678901234567890", "b": "0xfedcba9876543210fedcba9876543210"});
    check("multiplier", (MULTIPLIER, "bn128"), 4, &input, Theirs::Proves);
}

#[test]
fn multiplier_on_bls12_381() {
    check("multiplier-bls12381", (MULTIPLIER, "bls12381"), 4, &json!({"a": -3, "b": "11"}), Theirs::Proves);
}

#[test]
fn no_public_signal() {
    check("private", ("tests/e2e/circuits/private.circom", "bn128"), 4, &json!({"x": 3}), Theirs::Fails);
}

#[test]
fn eddsa_poseidon() {
    let input = input_file("tests/e2e/circuits/eddsa.input.json");
    check("eddsa", ("tests/e2e/circuits/eddsa.circom", "bn128"), 15, &input, Theirs::Proves);
}

/// FFLONK: snarkjs makes the same keys, accepts our proofs, and its proofs are accepted here.
#[test]
fn fflonk() {
    let field = json!({"a": "123456789012345678901234567890", "b": "0xfedcba9876543210fedcba9876543210"});
    let circuits = [
        ("multiplier", field),
        ("private", json!({"x": 3})),
        ("log", json!({"a": "12345678901234567890", "b": [5, -6]})),
    ];
    for (name, input) in circuits {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e-fflonk").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str| text(&folder.join(name)).to_string();
        let (r1cs, wasm) = compile(&format!("tests/e2e/circuits/{name}.circom"), "bn128");
        let (r1cs, wasm, ptau) = (text(&r1cs), text(&wasm), powers("bn128", 7));
        fs::write(file("input.json"), input.to_string()).unwrap();
        run(0, &["setup", "--protocol", "fflonk", "--ptau", text(&ptau), r1cs, &file("ours.zkey")]);
        run(0, &["export-vkey", &file("ours.zkey"), &file("ours.vkey.json")]);
        run(0, &["witness", wasm, &file("input.json"), &file("ours.wtns")]);
        let proof = |device: &str| file(&format!("{}.proof.json", device.replace(':', "")));
        let devices = ["cpu", "sim:2", "sim:3"];
        for device in devices {
            let files = [&file("ours.zkey"), &file("ours.wtns"), &proof(device), &file("ours.public.json")];
            run(0, &[&["fflonk", "prove", "--device", device][..], &files.map(String::as_str)].concat());
        }
        let mut jobs = vec![
            json!(["fflonkSetup", r1cs, text(&ptau), file("theirs.zkey")]),
            json!(["vkey", file("ours.zkey"), file("theirs.vkey.json")]),
            json!(["fflonkProve", file("ours.zkey"), file("ours.wtns"), file("proof.json"), file("public.json")]),
            json!(["calldata", proof("cpu"), file("ours.public.json")]),
        ];
        let verified = |d| json!(["fflonkVerify", file("theirs.vkey.json"), file("ours.public.json"), proof(d)]);
        jobs.extend(devices.map(verified));
        let script = root().join("tests/e2e/reference.mjs");
        let results: Value = serde_json::from_str(&node(&[text(&script), &json!(jobs).to_string()])).unwrap();
        let (ours, _) = run(0, &["calldata", &file("ours.public.json"), &proof("cpu")]);
        assert_eq!(results, json!([null, null, null, ours.trim_end(), true, true, true]), "{name}");
        assert_eq!(read_json(&folder.join("ours.public.json")), read_json(&folder.join("public.json")));
        assert!(fs::read(file("ours.zkey")).unwrap() == fs::read(file("theirs.zkey")).unwrap(), "{name}");
        assert_eq!(read_json(&folder.join("ours.vkey.json")), read_json(&folder.join("theirs.vkey.json")));
        let verify =
            |status, proof: &str| run(status, &["verify", &file("ours.vkey.json"), &file("public.json"), proof]);
        assert_eq!(verify(0, &file("proof.json")).0, "OK\n", "{name}");
        let mut changed = read_json(&folder.join("proof.json"));
        flip(changed.pointer_mut("/evaluations/t2w").unwrap());
        fs::write(file("changed.json"), changed.to_string()).unwrap();
        assert_eq!(verify(1, &file("changed.json")).0, "INVALID\n", "{name}");
    }
}

/// The powers of tau that we make are those that snarkjs reads and prepares: its own phase 2 of them gives the same bases.
#[test]
fn powers_of_tau_are_prepared_as_snarkjs_does() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e-plonk-ptau");
    fs::create_dir_all(&folder).unwrap();
    for curve in ["bn128", "bls12381"] {
        let ours = powers(curve, 5);
        let theirs = folder.join(format!("{curve}.ptau"));
        let snarkjs = packages().join("snarkjs/build/cli.cjs");
        node(&[text(&snarkjs), "powersoftau", "prepare", "phase2", text(&ours), text(&theirs)]);
        assert!(fs::read(&ours).unwrap() == fs::read(&theirs).unwrap(), "{curve}");
    }
}

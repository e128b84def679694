//! End to end with other people's tools: circom makes the circuits, snarkjs finds the same witnesses, accepts our proofs,
//! proves with our keys, and its proofs are accepted here. On the CPU and on two and four pretend GPUs.
//!
//! Needs node and the packages of tests/e2e (`npm ci --prefix tests/e2e --ignore-scripts`), and Chromium for the service's status page
//! (`sh scripts/install-chromium.sh`). Without them it fails.

#[path = "e2e/ceremony.rs"]
mod ceremony;
#[path = "e2e/page.rs"]
mod page;
#[path = "e2e/plonk.rs"]
mod plonk;
#[path = "e2e/solidity.rs"]
mod solidity;
mod support;

use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use support::{expect, root, run, text};

/// Where a circuit's key comes from.
enum Key {
    /// `tandem setup`, of a circuit that circom compiles.
    Setup { source: &'static str, curve: &'static str },
    /// A zkey and a wasm of a package.
    Ready { zkey: String, wasm: String },
}

fn packages() -> PathBuf {
    let folder = root().join("tests/e2e/node_modules");
    let hint = "run: npm ci --prefix tests/e2e --ignore-scripts";
    assert!(folder.join("snarkjs").is_dir(), "{} has no snarkjs; {hint}", folder.display());
    folder
}

/// Runs node; fails the test unless it succeeds. Returns the last line of stdout.
#[track_caller]
fn node(args: &[&str]) -> String {
    let output =
        Command::new("node").current_dir(root()).args(args).output().expect("node cannot be started; install it");
    let (stdout, _) = expect(0, output, args);
    stdout.trim_end().lines().last().unwrap_or_default().to_string()
}

/// Compiles a circuit into the target folder, once for each content of its source. Returns the r1cs and the wasm.
fn compile(source: &str, curve: &str) -> (PathBuf, PathBuf) {
    // Tests of the same circuit run beside each other.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let stem = Path::new(source).file_stem().unwrap().to_str().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("circuits").join(curve);
    let text_of = |file: &Path| fs::read_to_string(file).unwrap();
    let compiler = packages().join("circom2/package.json");
    let stamp = format!("{}\n{}", text_of(&root().join(source)), text_of(&compiler));
    let (r1cs, wasm) = (folder.join(format!("{stem}.r1cs")), folder.join(format!("{stem}_js/{stem}.wasm")));
    let stamp_file = folder.join(format!("{stem}.stamp"));
    if fs::read_to_string(&stamp_file).ok().as_ref() != Some(&stamp) {
        fs::create_dir_all(&folder).unwrap();
        let circom = packages().join("circom2/cli.js");
        let include = "tests/e2e/node_modules";
        let args = [text(&circom), source, "--r1cs", "--wasm", "--O2", "-p", curve, "-l", include, "-o", text(&folder)];
        node(&args);
        assert!(r1cs.is_file() && wasm.is_file(), "circom made no {stem}");
        fs::write(stamp_file, stamp).unwrap();
    }
    (r1cs, wasm)
}

/// A decimal number with its lowest bit changed: an even last digit goes up by one, an odd one down.
fn flip(number: &mut Value) {
    let mut digits = number.as_str().unwrap().as_bytes().to_vec();
    *digits.last_mut().unwrap() ^= 1;
    *number = json!(String::from_utf8(digits).unwrap());
}

fn read_json(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn check(name: &str, key: Key, input: Value) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| text(&folder.join(name)).to_string();

    let (zkey, wasm) = match key {
        Key::Setup { source, curve } => {
            let (r1cs, wasm) = compile(source, curve);
            let (_, stderr) = run(0, &["setup", text(&r1cs), &file("circuit.zkey")]);
            assert!(stderr.contains("not for production"), "{stderr}");
            (file("circuit.zkey"), text(&wasm).to_string())
        }
        Key::Ready { zkey, wasm } => {
            let of_package = |path: String| text(&packages().join(path)).to_string();
            let zkey = of_package(zkey);
            // The folder then has what `make gpu-bundle` takes along: key, witness and verification key.
            std::os::unix::fs::symlink(&zkey, file("circuit.zkey")).unwrap();
            (zkey, of_package(wasm))
        }
    };
    fs::write(file("input.json"), input.to_string()).unwrap();

    // Ours: witness, key, and a proof on each device.
    run(0, &["witness", &wasm, &file("input.json"), &file("ours.wtns")]);
    run(0, &["export-vkey", &zkey, &file("ours.vkey.json")]);
    let devices = ["cpu", "sim:2", "sim:4"];
    let proof = |device: &str| file(&format!("{}.proof.json", device.replace(':', "")));
    for device in devices {
        let how = ["--device", device, "--schedule", "roles"];
        run(0, &[&["prove", &zkey, &file("ours.wtns"), &proof(device), &file("public.json")][..], &how].concat());
        let (stdout, _) = run(0, &["verify", &file("ours.vkey.json"), &file("public.json"), &proof(device)]);
        assert_eq!(stdout, "OK\n");
    }
    let args = ["fullprove", &file("input.json"), &wasm, &zkey, &proof("full"), &file("full.public.json")];
    run(0, &[&args[..], &["--device", "cpu"]].concat());
    assert_eq!(read_json(Path::new(&file("full.public.json"))), read_json(Path::new(&file("public.json"))));

    // Theirs.
    let mut jobs = vec![
        json!(["witness", wasm, file("input.json"), file("theirs.wtns")]),
        json!(["vkey", zkey, file("theirs.vkey.json")]),
        json!(["prove", zkey, file("theirs.wtns"), file("theirs.proof.json"), file("theirs.public.json")]),
        json!(["verify", file("theirs.vkey.json"), file("theirs.public.json"), file("theirs.proof.json")]),
        json!(["verify", file("theirs.vkey.json"), file("public.json"), proof("full")]),
    ];
    jobs.extend(devices.map(|d| json!(["verify", file("theirs.vkey.json"), file("public.json"), proof(d)])));
    let script = root().join("tests/e2e/reference.mjs");
    let results: Value = serde_json::from_str(&node(&[text(&script), &json!(jobs).to_string()])).unwrap();
    assert_eq!(results, json!([null, null, null, true, true, true, true, true]), "{name}");

    assert!(fs::read(file("ours.wtns")).unwrap() == fs::read(file("theirs.wtns")).unwrap(), "the witnesses differ");
    for (ours, theirs) in [("ours.vkey.json", "theirs.vkey.json"), ("public.json", "theirs.public.json")] {
        assert_eq!(read_json(&folder.join(ours)), read_json(&folder.join(theirs)), "{ours}");
    }

    // Their proof is accepted here, and no longer after a change of one bit.
    let verify = |status, public: &str, proof: &str| {
        let (stdout, _) = run(status, &["verify", &file("ours.vkey.json"), public, proof]);
        assert_eq!(stdout, if status == 0 { "OK\n" } else { "INVALID\n" });
    };
    verify(0, &file("theirs.public.json"), &file("theirs.proof.json"));
    for place in ["/pi_a/0", "/pi_b/0/1", "/pi_c/1"] {
        let mut changed = read_json(&folder.join("theirs.proof.json"));
        flip(changed.pointer_mut(place).unwrap());
        fs::write(file("changed.json"), changed.to_string()).unwrap();
        verify(1, &file("theirs.public.json"), &file("changed.json"));
    }
    // A point of the curve, but the wrong one.
    let mut swapped = read_json(&folder.join("theirs.proof.json"));
    swapped["pi_a"] = swapped["pi_c"].clone();
    fs::write(file("changed.json"), swapped.to_string()).unwrap();
    verify(1, &file("theirs.public.json"), &file("changed.json"));
    let publics = read_json(&folder.join("theirs.public.json"));
    let count = publics.as_array().unwrap().len();
    for i in if count == 0 { vec![] } else { vec![0, count - 1] } {
        let mut changed = publics.clone();
        flip(&mut changed[i]);
        fs::write(file("changed.json"), changed.to_string()).unwrap();
        verify(1, &file("changed.json"), &file("theirs.proof.json"));
    }
}

/// `n` bits from a fixed linear congruential sequence.
fn bits(n: usize) -> Value {
    let mut state = 0x2545_f491u32;
    let mut bit = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 31
    };
    (0..n).map(|_| json!(bit())).collect()
}

fn input_file(path: &str) -> Value {
    read_json(&root().join(path))
}

fn compiled(source: &'static str, curve: &'static str) -> Key {
    Key::Setup { source, curve }
}

fn cipher(name: &str, key_bits: usize) {
    let folder = format!("@reclaimprotocol/circom-symmetric-crypto/resources/{name}");
    let key = Key::Ready { zkey: format!("{folder}/circuit_final.zkey"), wasm: format!("{folder}/circuit.wasm") };
    check(name, key, json!({"key": bits(key_bits), "nonce": bits(96), "counter": bits(32), "in": bits(512)}));
}

fn semaphore(depth: usize) {
    let stem = format!("@zk-kit/semaphore-artifacts/semaphore-{depth}");
    let siblings: Value = (0..depth).map(|i| json!((i + 7).to_string())).collect();
    let input = json!({
        "secret": "0x1234567890abcdef1234567890abcdef", "merkleProofLength": depth, "merkleProofIndex": 1,
        "merkleProofSiblings": siblings, "message": "42", "scope": "-2",
    });
    check(
        &format!("semaphore-{depth}"),
        Key::Ready { zkey: format!("{stem}.zkey"), wasm: format!("{stem}.wasm") },
        input,
    );
}

/// What a circuit logs is what snarkjs prints, also before an assertion fails.
#[test]
fn logs_of_a_circuit() {
    let (_, wasm) = compile("tests/e2e/circuits/log.circom", "bn128");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (input, status) in
        [(json!({"a": "123456789012345678901234567890", "b": [5, -6]}), 0), (json!({"a": 0, "b": [0, 1]}), 2)]
    {
        fs::write(at.join("input.json"), input.to_string()).unwrap();
        let file = |name: &str| text(&at.join(name)).to_string();
        let (_, stderr) = run(status, &["witness", text(&wasm), &file("input.json"), &file("ours.wtns")]);
        let ours: Vec<&str> = stderr.lines().filter_map(|line| line.strip_prefix("circuit: ")).collect();
        let snarkjs = packages().join("snarkjs/build/cli.cjs");
        let args = [text(&snarkjs), "wtns", "calculate", text(&wasm), &file("input.json"), &file("theirs.wtns")];
        let output = Command::new("node").args(args).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let theirs: Vec<&str> =
            stdout.lines().filter(|line| !line.contains("snarkJS") && !line.starts_with("    at ")).collect();
        assert_eq!(ours.len(), if status == 0 { 5 } else { 4 }, "{stderr}");
        assert!(theirs.len() >= ours.len() && theirs[..ours.len()] == ours[..], "{ours:?}\n{theirs:?}");
        assert!(status != 0 || theirs == ours, "{ours:?}\n{theirs:?}");
    }
}

#[test]
fn multiplier() {
    let input = json!({"a": "123456789012345678901234567890", "b": "0xfedcba9876543210fedcba9876543210"});
    check("multiplier", compiled("tests/e2e/circuits/multiplier.circom", "bn128"), input);
}

#[test]
fn multiplier_on_bls12_381() {
    let input = json!({"a": -3, "b": "11"});
    check("multiplier-bls12381", compiled("tests/e2e/circuits/multiplier.circom", "bls12381"), input);
}

#[test]
fn no_public_signal() {
    check("private", compiled("tests/e2e/circuits/private.circom", "bn128"), json!({"x": 3}));
}

#[test]
fn membership_of_depth_20() {
    check("membership", compiled("demo/membership.circom", "bn128"), input_file("demo/membership.input.json"));
}

#[test]
fn eddsa_poseidon() {
    check(
        "eddsa",
        compiled("tests/e2e/circuits/eddsa.circom", "bn128"),
        input_file("tests/e2e/circuits/eddsa.input.json"),
    );
}

#[test]
fn sha256_of_512_bits() {
    check("sha256_512", compiled("tests/e2e/circuits/sha256_512.circom", "bn128"), json!({"in": bits(512)}));
}

#[test]
fn sha256_of_256_bits_on_bls12_381() {
    check(
        "sha256_256-bls12381",
        compiled("tests/e2e/circuits/sha256_256.circom", "bls12381"),
        json!({"in": bits(256)}),
    );
}

#[test]
fn chacha20() {
    cipher("chacha20", 256);
}

#[test]
fn aes_128_ctr() {
    cipher("aes-128-ctr", 128);
}

#[test]
fn aes_256_ctr() {
    cipher("aes-256-ctr", 256);
}

#[test]
fn semaphore_10() {
    semaphore(10);
}

#[test]
fn semaphore_20() {
    semaphore(20);
}

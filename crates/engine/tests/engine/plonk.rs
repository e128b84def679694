//! PLONK through the engine: snarkjs's keys byte for byte, its proofs, damaged files, devices, and many callers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;
use tandem_conformance::{Step, Stepped};
use tandem_engine::*;

/// A file that snarkjs made.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/data").join(name)
}

const CIRCUITS: [(&str, &str); 3] =
    [("mul", "bn128.prepared.ptau"), ("nopub", "bn128.prepared.ptau"), ("mul_bls", "bls12-381.prepared.ptau")];

#[test]
fn keys_are_those_of_snarkjs() {
    let folder = tempfile::tempdir().unwrap();
    let zkey = folder.path().join("ours.zkey");
    for (name, ptau) in CIRCUITS {
        let made = setup_plonk(&data(&format!("{name}.r1cs")), &data(ptau), &zkey, &Silent).unwrap();
        let theirs = data(&format!("{name}.plonk.zkey"));
        assert!(fs::read(&zkey).unwrap() == fs::read(&theirs).unwrap(), "{name}");
        let info = key_info(&theirs).unwrap();
        assert_eq!((made.key.clone(), info.protocol), (info, Protocol::Plonk));
        assert_eq!(made.gates, Some(if name == "nopub" { 2 } else { 6 }));
        let vkey = fs::read_to_string(data(&format!("{name}.plonk.vkey.json"))).unwrap();
        assert_eq!(export_vkey(&theirs).unwrap(), vkey);
        assert_eq!(export_vkey_bytes(&fs::read(&theirs).unwrap()).unwrap(), vkey);
    }
}

#[test]
fn proofs_are_values_that_verify_on_every_device() {
    crate::support::cache();
    for (name, _) in CIRCUITS {
        let file = data(&format!("{name}.plonk.zkey"));
        let verifier = Verifier::from_json(export_vkey(&file).unwrap().as_bytes()).unwrap();
        assert_eq!(verifier.protocol(), Protocol::Plonk);
        for (device, schedule) in [
            (DeviceChoice::Cpu, Schedule::default()),
            (DeviceChoice::Sim(2), Schedule::default()),
            (DeviceChoice::Sim(4), Schedule::default()),
            (DeviceChoice::Sim(3), Schedule::Each),
        ] {
            let engine = Engine::open_as(&device, schedule).unwrap();
            let key = engine.load_key(&file, KeyCheck::Always, &Silent).unwrap();
            assert_eq!(key.info().protocol, Protocol::Plonk);
            let witness = Witness::read_for(&data(&format!("{name}.wtns")), key.info()).unwrap();
            let proved = engine.prove(&key, &witness, &Silent).unwrap();
            assert!(proved.fallback.is_none() && proved.remark.is_none());
            verifier.verify(&proved.publics, &proved.proof).unwrap();
            let (curve, proof) = (proved.proof.curve(), &proved.proof);
            assert_eq!(proof.protocol(), Protocol::Plonk);
            assert_eq!(&Proof::from_bytes(curve, proof.as_bytes()).unwrap(), proof);
            assert_eq!(&Proof::from_json(curve, proof.to_json().as_bytes()).unwrap(), proof);
            assert!(proved.stages.iter().any(|stage| stage.name == "MSM Wxiw" && stage.lane.is_some()));
            assert!(proved.stages.iter().any(|stage| stage.name == "grand product" && stage.lane.is_some()));
            // A witness that is staged is proved with all the same.
            let staged = engine.stage(&key, witness, &Silent).unwrap();
            assert!(!staged.is_on_device());
            let proved = engine.prove_staged(&key, staged, &Silent).unwrap();
            verifier.verify(&proved.publics, &proved.proof).unwrap();
        }
    }
}

#[test]
fn proofs_of_snarkjs_and_of_other_systems() {
    let text = |name: &str| fs::read(data(name)).unwrap();
    for (name, curve) in [("mul", CurveId::Bn254), ("mul_bls", CurveId::Bls12_381)] {
        let verifier = Verifier::from_json(&text(&format!("{name}.plonk.vkey.json"))).unwrap();
        let publics = Publics::from_json(curve, &text(&format!("{name}.public.json"))).unwrap();
        let proof = Proof::from_json(curve, &text(&format!("{name}.plonk.proof.json"))).unwrap();
        verifier.verify(&publics, &proof).unwrap();
        let other = Proof::from_json(curve, &text(&format!("{name}.proof.json"))).unwrap();
        assert_eq!(other.protocol(), Protocol::Groth16);
        let error = verifier.verify(&publics, &other).unwrap_err();
        assert!(matches!(error, Error::BadInput(_)) && error.to_string().contains("a Groth16 proof"), "{error}");
        // Each bit of a byte of each number.
        let size = proof.as_bytes().len();
        for at in (0..size).step_by(32) {
            let mut bytes = proof.as_bytes().to_vec();
            bytes[at] ^= 1 << (at / 32 % 8);
            match Proof::from_bytes(curve, &bytes) {
                Ok(changed) => assert!(matches!(verifier.verify(&publics, &changed), Err(Error::InvalidProof(_)))),
                Err(error) => assert!(error.to_string().contains("not below"), "{error}"),
            }
        }
        let mut bytes = proof.as_bytes().to_vec();
        bytes[size - 32..].fill(0xff);
        assert!(Proof::from_bytes(curve, &bytes).unwrap_err().to_string().contains("value 5 of the proof"));
        let short = Proof::from_bytes(curve, &bytes[1..]).unwrap_err().to_string();
        assert!(short.contains("for PLONK"), "{short}");
    }
}

/// What a set-up refuses; nothing is written.
#[test]
fn powers_of_tau_that_are_no_good() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let refused = |r1cs: &Path, ptau: &Path, parts: &[&str]| {
        let error = setup_plonk(r1cs, ptau, &at("key.zkey"), &Silent).unwrap_err();
        assert_eq!(error.exit_status(), 2, "{error}");
        for part in parts {
            assert!(error.to_string().contains(part), "expected {part:?} in: {error}");
        }
        assert!(!at("key.zkey").exists());
    };
    let (mul, good) = (data("mul.r1cs"), data("bn128.prepared.ptau"));
    refused(&mul, &data("bls12-381.prepared.ptau"), &["powers of tau for bls12-381, expected those for bn254"]);
    refused(&mul, &data("mul.zkey"), &["this is a zkey file, expected a powers of tau file"]);
    refused(&good, &good, &["this is a powers of tau file (ptau), expected an r1cs file"]);
    refused(&data("gate.r1cs"), &good, &["custom gates"]);
    refused(&mul, &data("bn128.ptau"), &["powers of tau for 2^1 rows", "6 gates and needs 2^3"]);
    let bytes = fs::read(&good).unwrap();
    // The first power in G1 begins behind the header of 44 bytes.
    let first = 12 + 12 + 44 + 12;
    let damaged = |change: &dyn Fn(&mut Vec<u8>), parts: &[&str]| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        fs::write(at("pot.ptau"), bytes).unwrap();
        refused(&mul, &at("pot.ptau"), &[&["pot.ptau"], parts].concat());
    };
    damaged(&|b| b[first + 3 * 64] ^= 1, &["the power 3 of tau is not on the curve"]);
    damaged(&|b| b.copy_within(first + 4 * 64..first + 5 * 64, first + 3 * 64), &["not those of one tau"]);
    damaged(&|b| b[first + 13 * 64..first + 14 * 64].fill(0), &["the power 13 of tau is the point at infinity"]);
    damaged(&|b| b.copy_within(first + 64..first + 128, first), &["the power 0 of tau is not the generator"]);
    damaged(&|b| b.truncate(b.len() - 1), &["section 15"]);
}

/// A key whose commitments do not belong to its polynomials makes no proof that leaves.
#[test]
fn keys_that_are_wrong_are_told() {
    crate::support::cache();
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    let good = fs::read(data("mul.plonk.zkey")).unwrap();
    let witness = Witness::read(&data("mul.wtns")).unwrap();
    // Two commitments of the header change places, which ends the file: the one of S1 and the one of S2.
    let header = good.len() - 796;
    let s1 = header + 4 + 32 + 4 + 32 + 20 + 64 + 5 * 64;
    let mut bytes = good.clone();
    let (one, other) = (good[s1..s1 + 64].to_vec(), good[s1 + 64..s1 + 128].to_vec());
    bytes[s1..s1 + 64].copy_from_slice(&other);
    bytes[s1 + 64..s1 + 128].copy_from_slice(&one);
    let key = engine.load_key_bytes(bytes, KeyCheck::Always, &Silent).unwrap();
    let error = engine.prove(&key, &witness, &Silent).unwrap_err();
    assert!(matches!(error, Error::Unsatisfied(_)), "{error}");
    // The permutation does not belong to the gates: column A names another signal in one gate.
    let map = 12 + (12 + 144) + 12;
    let mut bytes = good.clone();
    bytes[map + 8] ^= 1;
    let key = engine.load_key_bytes(bytes, KeyCheck::Always, &Silent).unwrap();
    let error = engine.prove(&key, &witness, &Silent).unwrap_err();
    assert!(matches!(error, Error::Unsatisfied(_)), "{error}");
    // The power of tau that blinds is infinity.
    let powers = good.len() - 796 - 12 - 4 - 12 - 14 * 64;
    let mut bytes = good.clone();
    bytes[powers + 8 * 64..powers + 9 * 64].fill(0);
    let error = engine.load_key_bytes(bytes, KeyCheck::Always, &Silent).err().unwrap();
    assert!(error.to_string().contains("the power 8 of tau is the point at infinity"), "{error}");
    // A witness of another circuit.
    let other = Witness::read(&data("nopub.wtns")).unwrap();
    let key = engine.load_key_bytes(good, KeyCheck::Always, &Silent).unwrap();
    let error = engine.prove(&key, &other, &Silent).unwrap_err();
    assert!(error.to_string().contains("the key's circuit has 6 wires"), "{error}");
}

/// A device of which one step has one end, and that stays broken until it is opened again.
#[derive(Clone, Default)]
struct Fails {
    at: Arc<AtomicU64>,
    opened: Arc<AtomicU64>,
    broken: Arc<AtomicBool>,
    step: Option<(u64, Step)>,
}

impl Fails {
    fn engine(&self, auto: bool) -> Engine {
        let fails = self.clone();
        let open = move || {
            let opened = fails.opened.fetch_add(1, SeqCst) + 1;
            fails.broken.store(false, SeqCst);
            let fails = fails.clone();
            let script = move |_: &'static str| {
                let at = fails.at.fetch_add(1, SeqCst);
                if fails.broken.load(SeqCst) || opened < fails.opened.load(SeqCst) {
                    return Step::Broken;
                }
                match fails.step {
                    Some((step, end)) if step == at => {
                        fails.broken.store(end == Step::Broken, SeqCst);
                        end
                    }
                    _ => Step::Right,
                }
            };
            Ok(Stepped::new(Arc::new(script)))
        };
        Engine::on_backends(open, auto).unwrap().with_patience(Duration::ZERO)
    }
}

/// Steps of loading a key and of two proofs fail in turn, in every way: there is always a right proof in the end.
/// snarkjs 0.7.5 made keys with a wrong sign, of circuits where a side of a constraint is a constant: no proof of a good witness is good.
#[test]
fn wrong_keys_of_older_snarkjs_are_told() {
    crate::support::cache();
    let folder = tempfile::tempdir().unwrap();
    let (ptau, zkey) = (folder.path().join("t.ptau"), folder.path().join("new.zkey"));
    let (r1cs, wtns) = (data("constants.r1cs"), data("constants.wtns"));
    test_ptau(CurveId::Bn254, 6, Some("fflonk"), &ptau, &Silent).unwrap();
    check_witness(&r1cs, &wtns, None, &Silent).unwrap();
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    let prove = |zkey: &Path| {
        let key = engine.load_key(zkey, KeyCheck::Always, &Silent).unwrap();
        let witness = engine.read_witness_for(&wtns, &key).unwrap();
        engine.prove(&key, &witness, &Silent)
    };
    for system in ["plonk", "fflonk"] {
        let old = data(&format!("constants.old.{system}.zkey"));
        let error = prove(&old).unwrap_err();
        assert!(matches!(error, Error::Unsatisfied(_)), "{system}: {error:?}");
        let text = error.to_string();
        for part in ["constants.wtns: ", "snarkjs before 0.7.6", "tandem check circuit.r1cs", "make the key again"] {
            assert!(text.contains(part), "{system}: expected {part:?} in: {text}");
        }
        match system {
            "plonk" => setup_plonk(&r1cs, &ptau, &zkey, &Silent).unwrap(),
            _ => setup_fflonk(&r1cs, &ptau, &zkey, &Silent).unwrap(),
        };
        assert!(fs::read(&zkey).unwrap() != fs::read(&old).unwrap(), "{system}");
        let proved = prove(&zkey).unwrap();
        Verifier::from_json(export_vkey(&zkey).unwrap().as_bytes())
            .unwrap()
            .verify(&proved.publics, &proved.proof)
            .unwrap();
    }
    // Groth16's keys were right.
    let zkey = folder.path().join("groth16.zkey");
    setup(&r1cs, &zkey, &SetupOptions::default(), &Silent).unwrap();
    prove(&zkey).unwrap();
}

#[test]
fn a_device_may_fail_at_any_step() {
    crate::support::cache();
    let _bound = crate::support::Watchdog::new("every step", Duration::from_secs(500));
    let file = data("mul.plonk.zkey");
    let verifier = Verifier::from_json(export_vkey(&file).unwrap().as_bytes()).unwrap();
    let witness = Witness::read(&data("mul.wtns")).unwrap();
    let none = Fails::default();
    let engine = none.engine(false);
    let key = engine.load_key(&file, KeyCheck::Once, &Silent).unwrap();
    let loading = none.at.load(SeqCst);
    engine.prove(&key, &witness, &Silent).unwrap();
    let all = none.at.load(SeqCst);
    assert!(loading > 50 && all > loading + 100, "{loading} {all}");
    let (mut wrong, mut reopened) = (0, 0);
    for (offset, end) in [Step::OutOfMemory, Step::Broken, Step::Wrong].into_iter().enumerate() {
        for first in (offset as u64..all).step_by(3) {
            let fails = Fails { step: Some((first, end)), ..Fails::default() };
            let engine = fails.engine(first % 2 == 0);
            let key = engine.load_key(&file, KeyCheck::Once, &Silent).unwrap();
            for _ in 0..2 {
                let proved = engine.prove(&key, &witness, &Silent).unwrap_or_else(|e| panic!("step {first}: {e}"));
                verifier.verify(&proved.publics, &proved.proof).unwrap();
                assert_eq!(proved.device.contains("cuda:7"), proved.fallback.is_none(), "step {first}");
            }
            wrong += engine.wrong_proofs();
            reopened += fails.opened.load(SeqCst) - 1;
        }
    }
    // The faults did strike.
    assert!(wrong > 20 && reopened > all / 6, "{wrong} {reopened} of {all}");
}

#[test]
fn powers_of_tau_for_tests() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for curve in [CurveId::Bn254, CurveId::Bls12_381] {
        for power in [1, 3, 4] {
            let bytes = test_ptau(curve, power, None, &at("a.ptau"), &Silent).unwrap();
            assert_eq!(fs::metadata(at("a.ptau")).unwrap().len(), bytes);
            test_ptau(curve, power, None, &at("b.ptau"), &Silent).unwrap();
            assert!(fs::read(at("a.ptau")).unwrap() == fs::read(at("b.ptau")).unwrap());
            test_ptau(curve, power, Some("another"), &at("b.ptau"), &Silent).unwrap();
            assert!(fs::read(at("a.ptau")).unwrap() != fs::read(at("b.ptau")).unwrap());
        }
        let r1cs = data(if curve == CurveId::Bn254 { "mul.r1cs" } else { "mul_bls.r1cs" });
        setup_plonk(&r1cs, &at("a.ptau"), &at("key.zkey"), &Silent).unwrap();
    }
    for power in [0, 28, 32, u32::MAX] {
        let error = test_ptau(CurveId::Bn254, power, None, &at("c.ptau"), &Silent).unwrap_err();
        assert!(error.to_string().contains("expected 2^1 to 2^27") && !at("c.ptau").exists(), "{error}");
    }
}

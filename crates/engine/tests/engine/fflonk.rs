//! FFLONK: the keys that snarkjs makes, and its proofs, of which every change is refused.

use serde_json::{json, Value};
use std::fs;
use std::path::PathBuf;
use tandem_engine::{Error, Silent, Verifier};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/data").join(name)
}

fn read(name: &str) -> Value {
    serde_json::from_slice(&fs::read(data(name)).unwrap()).unwrap()
}

/// Another number: one bit of it is turned.
fn flipped(number: &Value) -> Value {
    let digits = number.as_str().unwrap();
    let (head, last) = digits.split_at(digits.len() - 1);
    json!(format!("{head}{}", last.parse::<u8>().unwrap() ^ 1))
}

/// `None` if the proof is good, and else why it is not.
fn verdict(vkey: &Value, public: &Value, proof: &Value) -> Option<Error> {
    let folder = tempfile::tempdir().unwrap();
    let [v, u, p] = [("v", vkey), ("u", public), ("p", proof)].map(|(name, value)| {
        let path = folder.path().join(name);
        fs::write(&path, value.to_string()).unwrap();
        path
    });
    tandem_engine::verify(&v, &u, &p).err()
}

#[test]
fn keys_are_those_of_snarkjs() {
    let folder = tempfile::tempdir().unwrap();
    let (ptau, zkey) = (folder.path().join("t.ptau"), folder.path().join("k.zkey"));
    let bn254 = tandem_engine::CurveId::Bn254;
    tandem_engine::test_ptau(bn254, 6, Some("fflonk"), &ptau, &Silent).unwrap();
    for (name, publics, gates) in [("mul", 2, 6), ("nopub", 0, 2)] {
        let r1cs = data(&format!("{name}.r1cs"));
        let made = tandem_engine::setup_fflonk(&r1cs, &ptau, &zkey, &Silent).unwrap();
        assert_eq!((made.key.publics, made.gates, made.key.domain), (publics, Some(gates), 8));
        let theirs = fs::read(data(&format!("{name}.fflonk.zkey"))).unwrap();
        assert!(fs::read(&zkey).unwrap() == theirs, "{name}");
        assert_eq!(made.key.file_bytes, theirs.len() as u64);
        let vkey = fs::read_to_string(data(&format!("{name}.fflonk.vkey.json"))).unwrap();
        assert_eq!(tandem_engine::export_vkey(&zkey).unwrap(), vkey);
        assert_eq!(tandem_engine::export_vkey_bytes(&theirs).unwrap(), vkey);
    }
    fs::remove_file(&zkey).unwrap();
    // Powers that are too few, and a curve that FFLONK has not.
    tandem_engine::test_ptau(bn254, 5, None, &ptau, &Silent).unwrap();
    let few = tandem_engine::setup_fflonk(&data("mul.r1cs"), &ptau, &zkey, &Silent).unwrap_err().to_string();
    assert!(few.contains("t.ptau: powers of tau for 2^5 rows") && few.contains("power 6 or more"), "{few}");
    tandem_engine::test_ptau(tandem_engine::CurveId::Bls12_381, 6, None, &ptau, &Silent).unwrap();
    let curve = tandem_engine::setup_fflonk(&data("mul_bls.r1cs"), &ptau, &zkey, &Silent).unwrap_err().to_string();
    assert!(curve.contains("mul_bls.r1cs: a circuit over bls12-381; FFLONK is for bn254 alone"), "{curve}");
    assert!(!zkey.exists());
}

#[test]
fn every_change_of_a_proof_is_refused() {
    let cases = [("mul.fflonk", "mul.public.json"), ("nopub.fflonk", "nopub.public.json")];
    for (name, public) in cases {
        let (vkey, proof) = (read(&format!("{name}.vkey.json")), read(&format!("{name}.proof.json")));
        let public = read(public);
        assert!(verdict(&vkey, &public, &proof).is_none(), "{name}");
        let points = ["C1", "C2", "W1", "W2"].iter().flat_map(|p| [0, 1].map(|i| format!("/polynomials/{p}/{i}")));
        let names: Vec<&str> = proof["evaluations"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names.len(), 16);
        for place in points.chain(names.iter().map(|name| format!("/evaluations/{name}"))) {
            let mut changed = proof.clone();
            let number = changed.pointer_mut(&place).unwrap();
            *number = flipped(number);
            let error = verdict(&vkey, &public, &changed);
            assert!(matches!(error, Some(Error::InvalidProof(_))), "{name} {place}: {error:?}");
        }
        // Points of the curve, and each a wrong one: another, and infinity.
        for (one, other) in [("C1", "C2"), ("C2", "W1"), ("W1", "W2"), ("W2", "W1")] {
            for wrong in [proof["polynomials"][other].clone(), json!(["0", "1", "0"])] {
                let mut changed = proof.clone();
                changed["polynomials"][one] = wrong;
                let error = verdict(&vkey, &public, &changed);
                assert!(matches!(error, Some(Error::InvalidProof(_))), "{name} {one}: {error:?}");
            }
        }
        for i in 0..public.as_array().unwrap().len() {
            let mut changed = public.clone();
            changed[i] = flipped(&changed[i]);
            assert!(matches!(verdict(&vkey, &changed, &proof), Some(Error::InvalidProof(_))), "{name} {i}");
        }
        let mut more = public.clone();
        more.as_array_mut().unwrap().push(json!("1"));
        assert!(matches!(verdict(&vkey, &more, &proof), Some(Error::BadInput { .. })), "{name}");
    }
    // A proof of another circuit.
    let error = verdict(&read("mul.fflonk.vkey.json"), &read("mul.public.json"), &read("nopub.fflonk.proof.json"));
    assert!(matches!(error, Some(Error::InvalidProof(_))), "{error:?}");
}

#[test]
fn every_number_of_a_key_is_checked() {
    let (vkey, public, proof) = (read("mul.fflonk.vkey.json"), read("mul.public.json"), read("mul.fflonk.proof.json"));
    for (name, says) in [
        ("w", "roots of unity"),
        ("w3", "roots of unity"),
        ("w4", "roots of unity"),
        ("w8", "roots of unity"),
        ("wr", "roots of unity"),
    ] {
        let mut changed = vkey.clone();
        changed[name] = flipped(&changed[name]);
        let error = verdict(&changed, &public, &proof).unwrap().to_string();
        assert!(error.contains(says), "{name}: {error}");
    }
    let with = |name: &str, value: Value| {
        let mut changed = vkey.clone();
        changed[name] = value;
        verdict(&changed, &public, &proof).unwrap()
    };
    assert!(with("k2", json!("2")).to_string().contains("do not keep the columns apart"));
    assert!(matches!(with("k1", json!("5")), Error::InvalidProof(_)));
    assert!(with("C0", json!(["1", "3", "1"])).to_string().contains("point C0"));
    assert!(matches!(with("C0", proof["polynomials"]["C1"].clone()), Error::InvalidProof(_)));
    let infinity = json!([["0", "0"], ["1", "0"], ["0", "0"]]);
    assert!(with("X_2", infinity).to_string().contains("point X_2"));
    assert!(matches!(with("power", json!(4)), Error::BadInput { .. }));
}

#[test]
fn proofs_on_every_device_are_good() {
    use tandem_engine::{DeviceChoice, Engine, KeyCheck, Publics};
    for name in ["mul", "nopub"] {
        let (zkey, wtns) = (data(&format!("{name}.fflonk.zkey")), data(&format!("{name}.wtns")));
        let vkey = fs::read(data(&format!("{name}.fflonk.vkey.json"))).unwrap();
        let verifier = Verifier::from_json(&vkey).unwrap();
        for choice in [DeviceChoice::Cpu, DeviceChoice::Sim(1), DeviceChoice::Sim(2), DeviceChoice::Sim(3)] {
            let engine = Engine::open(&choice).unwrap();
            let key = engine.load_key(&zkey, KeyCheck::Once, &Silent).unwrap();
            let witness = engine.read_witness_for(&wtns, &key).unwrap();
            let made = engine.prove(&key, &witness, &Silent).unwrap();
            assert_eq!((made.fallback, made.proof.protocol().to_string()), (None, "FFLONK".into()));
            verifier.verify(&made.publics, &made.proof).unwrap();
            let text = made.proof.to_json();
            let again = tandem_engine::Proof::from_json(verifier.curve(), text.as_bytes()).unwrap();
            assert!(again == made.proof);
            let publics = Publics::from_json(verifier.curve(), made.publics.to_json().as_bytes()).unwrap();
            verifier.verify(&publics, &again).unwrap();
        }
        let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
        let of_bytes = engine.load_key_bytes(fs::read(&zkey).unwrap(), KeyCheck::Always, &Silent).unwrap();
        let witness = engine.read_witness(&wtns).unwrap();
        verifier
            .verify(
                &engine.prove(&of_bytes, &witness, &Silent).unwrap().publics,
                &engine.prove(&of_bytes, &witness, &Silent).unwrap().proof,
            )
            .unwrap();
    }
}

#[test]
fn keys_and_witnesses_that_are_no_good_are_told() {
    use tandem_engine::{DeviceChoice, Engine, KeyCheck};
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.zkey");
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    let key = fs::read(data("mul.fflonk.zkey")).unwrap();
    // Sections by their number: where each begins and its length.
    let mut at = 12;
    let mut sections = std::collections::HashMap::new();
    while at < key.len() {
        let id = u32::from_le_bytes(key[at..at + 4].try_into().unwrap());
        let len = u64::from_le_bytes(key[at + 4..at + 12].try_into().unwrap()) as usize;
        sections.insert(id, (at + 12, len));
        at += 12 + len;
    }
    let refused = |id: u32, place: usize, new: &[u8], parts: &[&str]| {
        let mut wrong = key.clone();
        let at = sections[&id].0 + place;
        wrong[at..at + new.len()].copy_from_slice(new);
        fs::write(&bad, wrong).unwrap();
        let error = engine.load_key(&bad, KeyCheck::Always, &Silent).err().unwrap().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "expected {parts:?} in: {error}");
    };
    refused(3, 0, &6u32.to_le_bytes(), &["section 3 (additions)", "addition 0", "expected signals below 6"]);
    refused(3, 8, &[0xff; 32], &["section 3 (additions)", "below the scalar field modulus"]);
    refused(5, 4, &8u32.to_le_bytes(), &["section 5 (B signals)", "gate 1", "expected a signal below 8"]);
    refused(16, 64 * 3, &[1], &["the power 3 of tau is not on the curve"]);
    // A point of the curve, and not this power.
    let (powers, _) = sections[&16];
    refused(16, 64 * 5, &key[powers..powers + 64], &["powers of tau"]);
    refused(17, 32 * 9, &[0xff; 32], &["section 17 (C0)", "element 9"]);
    let header = 4 + 32 + 4 + 32 + 20;
    refused(2, header + 64, &[1; 8], &["w3, w4, w8 and wr are not the roots of unity"]);
    refused(2, header + 32, &key[sections[&2].0 + header..][..32], &["do not keep the columns apart"]);
    // C0 is not what its commitment says: no proof is good.
    let mut wrong = key.clone();
    wrong[sections[&17].0 + 32] ^= 1;
    fs::write(&bad, wrong).unwrap();
    let loaded = engine.load_key(&bad, KeyCheck::Always, &Silent).unwrap();
    let witness = engine.read_witness(&data("mul.wtns")).unwrap();
    let error = engine.prove(&loaded, &witness, &Silent).unwrap_err();
    assert!(matches!(error, Error::Unsatisfied(_)), "{error:?}");
    // A witness of another circuit, and one that does not satisfy its own.
    let good = engine.load_key(&data("mul.fflonk.zkey"), KeyCheck::Once, &Silent).unwrap();
    let other = engine.read_witness_for(&data("nopub.wtns"), &good).err().unwrap().to_string();
    assert!(other.contains("the witness has 4 values"), "{other}");
    let mut values = fs::read(data("mul.wtns")).unwrap();
    let last = values.len() - 32;
    values[last] ^= 1;
    fs::write(folder.path().join("wtns"), values).unwrap();
    let witness = engine.read_witness(&folder.path().join("wtns")).unwrap();
    assert!(matches!(engine.prove(&good, &witness, &Silent), Err(Error::Unsatisfied(_))));
}

#[test]
fn a_contract_is_the_same_of_either_key() {
    let [zkey, vkey] = ["mul.fflonk.zkey", "mul.fflonk.vkey.json"].map(|name| {
        let contract = tandem_engine::export_solidity(&data(name)).unwrap();
        assert!(contract.remarks.is_empty(), "{:?}", contract.remarks);
        contract.text
    });
    assert!(zkey.contains("contract FflonkVerifier") && zkey.contains("N = 2;"), "{zkey}");
    assert_eq!(zkey, vkey);
}

#[test]
fn arguments_of_a_contract_are_those_of_snarkjs() {
    let theirs = fs::read_to_string(data("mul.fflonk.calldata.txt")).unwrap();
    let ours = tandem_engine::calldata(&data("mul.public.json"), &data("mul.fflonk.proof.json")).unwrap();
    assert_eq!(ours, theirs.trim_end());
    let verifier = Verifier::from_json(&fs::read(data("mul.fflonk.vkey.json")).unwrap()).unwrap();
    assert_eq!((verifier.publics(), verifier.protocol().to_string()), (2, "FFLONK".into()));
}

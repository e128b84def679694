//! Keys, witnesses, verification keys and proofs as values and bytes: no file is needed, and JSON is one form of a proof.

use crate::support::Files;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use tandem_conformance::{Step, Stepped};
use tandem_engine::{
    export_vkey_bytes, CurveId, DeviceChoice, Engine, Error, ErrorCode, KeyCheck, Proof, Publics, Silent, Verifier,
    Witness,
};

fn read(files: &Files, name: &str) -> Vec<u8> {
    std::fs::read(files.at(name)).unwrap()
}

#[test]
fn a_proof_goes_from_bytes_to_bytes() {
    let files = Files::new(3);
    let (zkey, wtns) = (read(&files, "zkey"), read(&files, "wtns"));
    let engine = Engine::open(&DeviceChoice::Sim(2)).unwrap();
    let key = engine.load_key_bytes(zkey.as_slice(), KeyCheck::Once, &Silent).unwrap();
    assert_eq!(key.info().file_bytes, zkey.len() as u64);
    let witness = Witness::from_bytes(&wtns).unwrap();
    let proved = engine.prove(&key, &witness, &Silent).unwrap();
    files.check(&proved, "from bytes");

    let vkey = export_vkey_bytes(&zkey).unwrap();
    assert_eq!(vkey.as_bytes(), read(&files, "vkey"));
    let verifier = Verifier::from_json(vkey.as_bytes()).unwrap();
    assert_eq!((verifier.curve(), verifier.publics()), (CurveId::Bn254, key.info().publics));
    verifier.verify(&proved.publics, &proved.proof).unwrap();

    // Each form leads back to the same value.
    let (proof, publics) = (&proved.proof, &proved.publics);
    assert_eq!(Proof::from_bytes(proof.curve(), proof.as_bytes()).unwrap(), *proof);
    assert_eq!(Proof::from_json(proof.curve(), proof.to_json().as_bytes()).unwrap(), *proof);
    assert_eq!(Publics::from_json(publics.curve(), publics.to_json().as_bytes()).unwrap(), *publics);
    let values: Vec<_> = publics.values().collect();
    assert_eq!(Publics::new(publics.curve(), &values).unwrap(), *publics);
    assert_eq!(values.len(), key.info().publics);

    // Another proof of the same values is another value, and A alone makes no proof of the two.
    let other = engine.prove(&key, &witness, &Silent).unwrap();
    assert!(other.proof != *proof && other.publics == *publics);
    let mut mixed = proof.as_bytes().to_vec();
    mixed[..64].copy_from_slice(&other.proof.as_bytes()[..64]);
    let mixed = Proof::from_bytes(proof.curve(), &mixed).unwrap();
    let code = |error: Error| error.code();
    assert_eq!(verifier.verify(publics, &mixed).map_err(code), Err(ErrorCode::InvalidProof));
    let mut wrong = values.clone();
    wrong[0][0] ^= 1;
    let wrong = Publics::new(publics.curve(), &wrong).unwrap();
    assert_eq!(verifier.verify(&wrong, proof).map_err(code), Err(ErrorCode::InvalidProof));
    let more = Publics::new(publics.curve(), &[values.clone(), values].concat()).unwrap();
    assert_eq!(verifier.verify(&more, proof).map_err(code), Err(ErrorCode::BadInput));
    let elsewhere = Publics::new(CurveId::Bls12_381, &[[1, 0, 0, 0]]).unwrap();
    assert_eq!(verifier.verify(&elsewhere, proof).map_err(code), Err(ErrorCode::BadInput));
}

#[test]
fn bytes_that_are_no_value_are_refused() {
    let refused = |result: Result<(), Error>, code: ErrorCode, said: &str| {
        let error = result.unwrap_err();
        assert!(error.code() == code && error.to_string().contains(said), "{error}");
    };
    for (curve, bytes) in [(CurveId::Bn254, 256), (CurveId::Bls12_381, 384)] {
        let expected = format!("has {bytes} bytes");
        for len in [0, 1, bytes - 1, bytes + 1] {
            refused(Proof::from_bytes(curve, &vec![0; len]).map(drop), ErrorCode::BadInput, &expected);
        }
        // Infinity everywhere is formed well.
        let zeros = vec![0; bytes];
        assert_eq!(Proof::from_bytes(curve, &zeros).unwrap().curve(), curve);
        for at in [0, bytes / 2, bytes - 1] {
            let mut above = zeros.clone();
            let width = bytes / 8;
            above[at / width * width..][..width].fill(0xff);
            let said = format!("coordinate {} of the proof is not below", at / width);
            refused(Proof::from_bytes(curve, &above).map(drop), ErrorCode::BadInput, &said);
        }
        let above = Publics::new(curve, &[[1, 0, 0, 0], [u64::MAX; 4]]);
        refused(above.map(drop), ErrorCode::InvalidProof, "public value 1 is not below");
        refused(Proof::from_json(curve, b"[]").map(drop), ErrorCode::BadInput, "public values");
        refused(Publics::from_json(curve, b"{}").map(drop), ErrorCode::BadInput, "");
    }
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    for bytes in [&b""[..], b"zkey", b"wtns\x02\0\0\0\0\0\0\0"] {
        let key = engine.load_key_bytes(bytes, KeyCheck::Once, &Silent).map(drop);
        refused(key, ErrorCode::BadInput, "the key: ");
        refused(export_vkey_bytes(bytes).map(drop), ErrorCode::BadInput, "the key: ");
        refused(Witness::from_bytes(bytes).map(drop), ErrorCode::BadInput, "the witness: ");
        refused(Verifier::from_json(bytes).map(drop), ErrorCode::BadInput, "expected");
    }
    let files = Files::new(3);
    let zkey = read(&files, "zkey");
    for len in [zkey.len() - 1, zkey.len() / 2, 100] {
        let key = engine.load_key_bytes(&zkey[..len], KeyCheck::Once, &Silent).map(drop);
        refused(key, ErrorCode::BadInput, "the key: ");
    }
}

/// A key from bytes comes back where the device failed, as one from a file does.
#[test]
fn a_key_from_bytes_is_loaded_again() {
    let files = Files::new(3);
    let broken = Arc::new(AtomicBool::new(false));
    let steps = broken.clone();
    let open = move || {
        let broken = steps.clone();
        let step = move |_: &str| if broken.swap(false, SeqCst) { Step::Broken } else { Step::Right };
        Ok(Stepped::new(Arc::new(step)))
    };
    let engine = Engine::on_backends(open, false).unwrap();
    let key = engine.load_key_bytes(read(&files, "zkey"), KeyCheck::Once, &Silent).unwrap();
    std::fs::remove_file(files.at("zkey")).unwrap();
    broken.store(true, SeqCst);
    let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
    assert!(proved.remark.as_ref().unwrap().contains("opened the device again"));
    files.check(&proved, "again");
}

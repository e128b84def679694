//! A verification key or proof of PLONK or FFLONK is refused, or what is written of it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::{json, FflonkProof, FflonkVerificationKey, PlonkProof, PlonkVerificationKey};
use tandem_ops::{Bls12_381, Bn254, Curve};

fuzz_target!(|bytes: &[u8]| {
    _ = json::plonk_curve(bytes);
    read::<Bn254>(bytes);
    read::<Bls12_381>(bytes);
    read_fflonk(bytes);
});

fn read_fflonk(bytes: &[u8]) {
    match FflonkVerificationKey::parse(bytes) {
        Ok(key) => {
            let written = key.to_json();
            let again = FflonkVerificationKey::parse(written.as_bytes()).expect("our own text");
            assert_eq!(again.to_json(), written);
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
    match FflonkProof::parse(bytes) {
        Ok(proof) => {
            let written = proof.to_json();
            assert_eq!(FflonkProof::parse(written.as_bytes()).expect("our own text"), proof);
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
}

fn read<C: Curve>(bytes: &[u8]) {
    match PlonkVerificationKey::<C>::parse(bytes) {
        Ok(key) => {
            let written = key.to_json();
            let again = PlonkVerificationKey::<C>::parse(written.as_bytes()).expect("our own text");
            assert_eq!(again.to_json(), written);
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
    match PlonkProof::<C>::parse(bytes) {
        Ok(proof) => {
            let written = proof.to_json();
            assert_eq!(PlonkProof::<C>::parse(written.as_bytes()).expect("our own text"), proof);
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
}

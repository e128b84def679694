//! A verification key is refused, or what is written of it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::{json, VerificationKey};
use tandem_ops::{Bls12_381, Bn254, Curve, CurveId};

fuzz_target!(|bytes: &[u8]| match json::curve(bytes) {
    Ok(CurveId::Bn254) => read::<Bn254>(bytes),
    Ok(CurveId::Bls12_381) => read::<Bls12_381>(bytes),
    Err(error) => assert!(!error.to_string().contains(char::is_control)),
});

fn read<C: Curve>(bytes: &[u8]) {
    let Ok(key) = VerificationKey::<C>::parse(bytes) else { return };
    let written = key.to_json();
    let again = VerificationKey::<C>::parse(written.as_bytes()).expect("our own text");
    assert_eq!(again.to_json(), written);
}

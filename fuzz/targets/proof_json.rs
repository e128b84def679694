//! A proof is refused, or what is written of it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::Proof;
use tandem_ops::{Bls12_381, Bn254, Curve};

fuzz_target!(|bytes: &[u8]| {
    read::<Bn254>(bytes);
    read::<Bls12_381>(bytes);
});

fn read<C: Curve>(bytes: &[u8]) {
    match Proof::<C>::parse(bytes) {
        Ok(proof) => {
            let written = proof.to_json();
            let again = Proof::<C>::parse(written.as_bytes()).expect("our own text");
            assert_eq!(again.to_json(), written);
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
}

//! Public values are refused, or what is written of them reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::json;
use tandem_ops::CurveId;

fuzz_target!(|bytes: &[u8]| {
    for curve in [CurveId::Bn254, CurveId::Bls12_381] {
        let Ok(values) = json::parse_public(bytes, curve) else { continue };
        let written = json::public_to_json(&values);
        assert_eq!(json::parse_public(written.as_bytes(), curve).expect("our own text"), values);
    }
});

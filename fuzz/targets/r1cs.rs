//! A constraint system is refused, or all of it can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::R1cs;

fuzz_target!(|bytes: &[u8]| {
    let Ok(r1cs) = R1cs::parse(bytes) else { return };
    assert!(r1cs.header.n_public() < r1cs.header.n_vars);
    assert_eq!(r1cs.constraints().count(), r1cs.header.n_constraints as usize);
    for constraint in r1cs.constraints() {
        for lc in [constraint.a, constraint.b, constraint.c] {
            assert!(lc.iter().all(|(wire, _)| wire < r1cs.header.n_vars));
        }
    }
});

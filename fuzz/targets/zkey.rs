//! A key is refused, or all of it can be used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::{zkey, Zkey};
use tandem_ops::{Bls12_381, Bn254, Curve, CurveId};

fuzz_target!(|bytes: &[u8]| match zkey::curve(bytes) {
    Ok(CurveId::Bn254) => read::<Bn254>(bytes),
    Ok(CurveId::Bls12_381) => read::<Bls12_381>(bytes),
    Err(error) => assert!(!error.to_string().contains(char::is_control)),
});

fn read<C: Curve>(bytes: &[u8]) {
    let Ok(key) = Zkey::<C>::parse(bytes) else { return };
    let n = key.header.n_vars as usize;
    assert_eq!((key.a.len(), key.b1.len(), key.b2.len(), key.c.len() + key.ic.len()), (n, n, n, n));
    let Ok(matrices) = key.coefs.matrices() else { return };
    for matrix in [&matrices.a, &matrices.b] {
        matrix.check().expect("checked by the reader");
        assert!(matrix.columns == n && matrix.rows() <= key.h.len());
    }
    assert_eq!(matrices.a.column.len() + matrices.b.column.len(), key.coefs.len());
}

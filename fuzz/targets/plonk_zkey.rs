//! A key of PLONK or FFLONK is refused, or all of it can be used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::{plonk, FflonkZkey, PlonkZkey};
use tandem_ops::{Bls12_381, Bn254, Curve, CurveId};

fuzz_target!(|bytes: &[u8]| {
    match plonk::curve(bytes) {
        Ok(CurveId::Bn254) => read::<Bn254>(bytes),
        Ok(CurveId::Bls12_381) => read::<Bls12_381>(bytes),
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
    match FflonkZkey::parse(bytes) {
        Ok(FflonkZkey { header, additions, maps, .. }) => {
            assert!(header.n_constraints + 2 <= header.domain_size && header.witness_values() > 0);
            assert!(maps.iter().all(|map| map.iter().all(|signal| signal < header.n_vars)));
            let known = |i: usize| header.witness_values() + i as u32;
            assert!(additions.iter().enumerate().all(|(i, a)| a.signals.iter().all(|signal| *signal < known(i))));
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
});

fn read<C: Curve>(bytes: &[u8]) {
    let Ok(key) = PlonkZkey::<C>::parse(bytes) else { return };
    let (n, own) = (key.header.domain_size as usize, key.header.n_vars - key.header.n_additions);
    assert!(key.maps.iter().all(|map| map.len() <= n && map.iter().all(|signal| signal < key.header.n_vars)));
    for (i, addition) in key.additions.iter().enumerate() {
        assert!(addition.signals.iter().all(|signal| *signal < own + i as u32));
    }
    let polynomials = key.selectors.iter().chain(&key.permutation).chain(&key.lagrange);
    assert!(polynomials.clone().all(|p| p.coefficients.len() == n && p.values.len() == 4 * n));
    assert_eq!((polynomials.count(), key.powers.len()), (8 + key.header.n_public.max(1) as usize, n + 6));
}

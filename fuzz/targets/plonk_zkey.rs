//! A key of PLONK or FFLONK is refused, or all of it can be used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::{plonk, FflonkZkey, PlonkOutline, PlonkZkey};
use tandem_ops::{Bls12_381, Bn254, Curve, CurveId, Outside};

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

struct Whole<'a>(&'a [u8]);

impl Outside for Whole<'_> {
    fn read(&self, at: usize, into: &mut [u8]) -> tandem_ops::Result<()> {
        into.copy_from_slice(&self.0[at..][..into.len()]);
        Ok(())
    }
    fn block_bytes(&self) -> usize {
        1 << 20
    }
}

fn read<C: Curve>(bytes: &[u8]) {
    let Ok(key) = PlonkZkey::<C>::parse(bytes) else { return };
    let (n, own) = (key.header.domain_size as usize, key.header.n_vars - key.header.n_additions);
    assert!(key.maps.iter().all(|map| map.len() <= n && map.iter().all(|signal| signal < key.header.n_vars)));
    for (i, addition) in key.additions.iter().enumerate() {
        assert!(addition.signals.iter().all(|signal| *signal < own + i as u32));
    }
    assert!(key.selectors.iter().chain(&key.permutation).all(|coefficients| coefficients.len() == n));
    assert_eq!(key.powers.len(), n + 6);
    // Read piece by piece it is the same.
    let file = Whole(bytes);
    let mut outline = PlonkOutline::<C>::read(&bytes).unwrap();
    outline.load(&bytes).unwrap();
    let other = outline.key(&file).unwrap();
    for (one, other) in key.selectors.iter().zip(&other.selectors).chain(key.permutation.iter().zip(&other.permutation)) {
        assert!(one.as_bytes() == other.as_bytes());
    }
    assert!(key.maps.iter().zip(&other.maps).all(|(one, other)| one.as_bytes() == other.as_bytes()));
    assert!(key.additions.as_bytes() == other.additions.as_bytes());
}

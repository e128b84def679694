//! Circuits made up at random, and powers of a tau that is known.

pub(crate) mod fflonk;

use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tandem_ops::cpu::Cpu;
use tandem_ops::{Curve, Group};
use tandem_plonk::setup::{setup, OwnedKey};
use tandem_plonk::{Blinding, Gates, Result, Silent, Witness, P1, P2};
use tandem_proof::circuit::{Circuit, Constraint, Terms};
use zeroize::Zeroizing;

/// A circuit with a witness. Each constraint defines a wire of its own.
pub(crate) struct Random<C: Curve> {
    pub(crate) rows: Vec<Constraint<C>>,
    values: Vec<C::Fr>,
    publics: usize,
}

impl<C: Curve> Random<C> {
    pub(crate) fn new(constraints: usize, publics: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut values = vec![C::Fr::ONE];
        values.extend((0..publics.max(2)).map(|_| C::Fr::rand(&mut rng)));
        let mut rows = Vec::with_capacity(constraints);
        for row in 0..constraints {
            let mut terms = |least: u32| -> Terms<C> {
                // None, the constant alone, one wire, and many.
                let count = match rng.next_u32() % 8 {
                    0 => least,
                    1 => return vec![(0, C::Fr::rand(&mut rng))],
                    2 | 3 => 1,
                    4 => 2,
                    more => more,
                };
                let mut wires: Vec<u32> = (0..count).map(|_| rng.next_u32() % values.len() as u32).collect();
                wires.sort_unstable();
                wires.dedup();
                wires.into_iter().map(|wire| (wire, C::Fr::rand(&mut rng))).collect()
            };
            // An empty side makes C = 0, which the new wire must satisfy too.
            let (a, b, mut c) = (terms(0), terms(0), terms(1));
            let sum = |terms: &Terms<C>| -> C::Fr { terms.iter().map(|(wire, k)| *k * values[*wire as usize]).sum() };
            let k = C::Fr::rand(&mut rng);
            let new = (sum(&a) * sum(&b) - sum(&c)) / k;
            c.push((values.len() as u32, k));
            values.push(new);
            // The order of terms does not matter.
            if row % 2 == 1 {
                c.reverse();
            }
            rows.push(Constraint { a, b, c });
        }
        Self { rows, values, publics }
    }

    pub(crate) fn witness(&self) -> Witness<C> {
        Witness::new(Zeroizing::new(self.values.iter().map(|value| C::canonical(*value)).collect::<Vec<_>>())).unwrap()
    }
}

impl<C: Curve> Circuit<C> for Random<C> {
    fn constraints(&self) -> usize {
        self.rows.len()
    }
    fn variables(&self) -> usize {
        self.values.len()
    }
    fn publics(&self) -> usize {
        self.publics
    }
    fn walk(&self, row: &mut dyn FnMut(&Constraint<C>) -> Result<()>) -> Result<()> {
        self.rows.iter().try_for_each(row)
    }
}

/// So many powers of tau in G1, and tau in G2.
pub(crate) fn powers<C: Curve>(tau: C::Fr, count: usize) -> (Vec<P1<C>>, P2<C>) {
    let mut power = C::Fr::ONE;
    let mut g1 = Vec::with_capacity(count);
    for _ in 0..count {
        g1.push(<C::G1 as Group>::Ark::generator() * power);
        power *= tau;
    }
    let g1 = <C::G1 as Group>::Ark::normalize_batch(&g1).iter().map(C::G1::from_ark).collect();
    (g1, C::G2::from_ark(&(<C::G2 as Group>::Ark::generator() * tau).into_affine()))
}

/// The key of a circuit.
pub(crate) fn owned<C: Curve>(circuit: &Random<C>) -> OwnedKey<C> {
    let gates = Gates::of(circuit, &Silent).unwrap();
    let tau = C::Fr::rand(&mut ChaCha8Rng::seed_from_u64(0));
    assert!(tau != C::Fr::ZERO);
    let (g1, x_2) = powers::<C>(tau, gates.shape().powers());
    let mut key = OwnedKey::default();
    setup(&Cpu::new(1), &gates, (&g1, &x_2), &mut key, &Silent).unwrap();
    key
}

/// Blinding that is known.
pub(crate) fn blinding<C: Curve>() -> Blinding<C> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    Blinding::fixed(std::array::from_fn(|_| C::Fr::rand(&mut rng)))
}

//! How many digits the sums of a proof have, for bounds of what a proof takes.
//!
//! A sum of k P over many points adds a multiple of P for each digit of k that is not 0. Odd digits with a sign, of windows that begin
//! wherever a bit is left (the w-NAF), are as few as digits of so many bits can be (docs/design/msm.md). As on a device, a k above r/2
//! counts as -(r - k).

use crate::{Error, KeyView, PowersView, Result, Witness};
use ark_ff::{BigInt, BigInteger, PrimeField, UniformRand};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use std::ops::RangeInclusive;
use tandem_ops::{Canonical, Curve, Group, Stored};

/// Bits of a window, its sign among them. Others are best for sums of less than ten points, or of more than 2^28.
pub const WINDOW_BITS: RangeInclusive<u32> = 6..=30;
const WIDTHS: usize = 25;

/// Digits that are not 0, for windows of each of [`WINDOW_BITS`].
pub type Counts = [u64; WIDTHS];

/// Scalars of the quotient are as random ones: those of so many are counted.
const SAMPLE: u64 = 1 << 12;
/// Wires that one thread counts at a time.
const GRAIN: usize = 1 << 14;

/// The digits of a proof's sums, without those of points at infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofDigits {
    /// Of the sum A.
    pub a: Counts,
    /// Of B in G1, and as many in G2.
    pub b: Counts,
    /// Of the sum over the private wires.
    pub l: Counts,
    /// Of the sum over the quotient; expected, as its scalars are known only when they are made.
    pub h: Counts,
}

impl ProofDigits {
    /// Counts those of `witness`, on all cores.
    ///
    /// # Errors
    /// [`Error::Witness`] if it is not of the key's circuit.
    pub fn count<C: Curve>(key: &KeyView<'_, C>, witness: &Witness<C>) -> Result<Self> {
        let (values, expected) = (witness.values(), key.shape.variables);
        if values.len() != expected {
            return Err(Error::Witness(format!(
                "the witness has {} values; the key's circuit has {expected} wires",
                values.len()
            )));
        }
        let private = values.get(key.shape.publics + 1..).unwrap_or_default();
        Ok(Self {
            a: of_sum::<C, C::G1>(values, key.a)?,
            b: of_sum::<C, C::G1>(values, key.b1)?,
            l: of_sum::<C, C::G1>(private, key.l)?,
            h: of_quotient::<C>(key.shape.domain),
        })
    }

    /// As [`ProofDigits::count`], with a key without matrices: the wires of A and B come with the witness.
    ///
    /// # Errors
    /// [`Error::Witness`] if it is not of the key's circuit, or comes without its evaluations.
    pub fn count_picked<C: Curve>(key: &PowersView<'_, C>, witness: &Witness<C>) -> Result<Self> {
        let values = witness.values();
        let of_wires = |wires: &[u32]| {
            let value = |wire: &u32| values.get(*wire as usize).copied();
            let of_chunk = |wires: &[u32]| counts::<C>(wires.iter().filter_map(value));
            wires.par_chunks(GRAIN).map(of_chunk).reduce(Counts::default, both)
        };
        let Some(evaluations) = witness.evaluations().filter(|_| values.len() == key.shape.variables) else {
            return Err(Error::Witness("the witness is not of the key's circuit, or lacks the sides of it".into()));
        };
        let private = values.get(key.shape.publics + 1..).unwrap_or_default();
        let of_chunk = |scalars: &[Canonical]| counts::<C>(scalars.iter().copied());
        Ok(Self {
            a: of_wires(evaluations.named_in_a()),
            b: of_wires(evaluations.named_in_b()),
            l: private.par_chunks(GRAIN).map(of_chunk).reduce(Counts::default, both),
            h: of_quotient::<C>(key.h.len()),
        })
    }
}

/// Expected digits of a sum over so many random scalars.
fn of_quotient<C: Curve>(scalars: usize) -> Counts {
    let mut rng = ChaCha12Rng::seed_from_u64(0);
    let h = counts::<C>((0..SAMPLE).map(|_| C::canonical(C::Fr::rand(&mut rng))));
    h.map(|count| (count as f64 / SAMPLE as f64 * scalars as f64) as u64)
}

fn counts<C: Curve>(scalars: impl Iterator<Item = Canonical>) -> Counts {
    let mut counts = Counts::default();
    scalars.for_each(|k| add_digits::<C>(&mut counts, k));
    counts
}

fn both(a: Counts, b: Counts) -> Counts {
    std::array::from_fn(|i| a[i] + b[i])
}

/// Of scalars whose points are not infinity.
fn of_sum<C: Curve, G: Group>(scalars: &[Canonical], points: Stored<'_, G::Point>) -> Result<Counts> {
    let of_chunk = |(chunk, scalars): (usize, &[Canonical])| -> Result<Counts> {
        let mut counts = Counts::default();
        let points = points.slice(chunk * GRAIN..chunk * GRAIN + scalars.len()).load()?;
        for (&k, point) in scalars.iter().zip(points.values().iter()) {
            if bytemuck::bytes_of(&point).iter().any(|&byte| byte != 0) {
                add_digits::<C>(&mut counts, k);
            }
        }
        Ok(counts)
    };
    scalars.par_chunks(GRAIN).enumerate().map(of_chunk).try_reduce(Counts::default, |a, b| Ok(both(a, b)))
}

fn add_digits<C: Curve>(counts: &mut Counts, k: Canonical) {
    let mut least = C::Fr::MODULUS;
    least.sub_with_borrow(&BigInt(k.0));
    let least = least.min(BigInt(k.0)).0;
    if least != [0; 4] {
        counts.iter_mut().zip(WINDOW_BITS).for_each(|(count, bits)| *count += digits(&least, bits));
    }
}

/// Windows of `bits` bits, each of which begins at the lowest bit that differs from the carry of those below. What is above half a
/// window's range is a negative digit and carries.
fn digits(k: &[u64; 4], bits: u32) -> u64 {
    let word = |i: u32| k.get(i as usize).copied().unwrap_or(0);
    let (mut count, mut at, mut carry) = (0, 0, false);
    while at < 256 || carry {
        let left = (if carry { !word(at / 64) } else { word(at / 64) }) >> (at % 64);
        if left == 0 {
            at = (at / 64 + 1) * 64;
            continue;
        }
        count += 1;
        at += left.trailing_zeros() + bits;
        carry = word((at - 1) / 64) >> ((at - 1) % 64) & 1 == 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{setup, Circuit, Secret};
    use crate::{synthetic::Synthetic, OwnedKey, Silent};
    use tandem_ops::{Bls12_381, Bn254};
    use zeroize::Zeroizing;

    fn of(counts: &Counts, bits: u32) -> u64 {
        counts[(bits - WINDOW_BITS.start()) as usize]
    }

    /// The fewest odd digits below 2^(bits - 1) that add up to k, by trying all.
    fn fewest(k: i64, bits: u32) -> u64 {
        match k {
            0 => 0,
            k if k % 2 == 0 => fewest(k / 2, bits),
            k if k.abs() < 1 << (bits - 1) => 1,
            k => {
                let half = 1 << (bits - 1);
                let odd = (1 - half..half).step_by(2);
                // No more than one bit longer than k: a digit that leads away from 0 does not end.
                1 + odd
                    .map(|digit| k - digit)
                    .filter(|rest| rest.abs() < 2 * k.abs())
                    .map(|rest| fewest(rest / 2, bits))
                    .min()
                    .unwrap()
            }
        }
    }

    #[test]
    fn no_digits_are_fewer() {
        for bits in 2..=4 {
            for k in 0..200 {
                assert_eq!(digits(&[k as u64, 0, 0, 0], bits), fewest(k, bits), "{k} in windows of {bits} bits");
            }
        }
    }

    #[test]
    fn windows_are_found_across_words() {
        let top = |bit: u32| std::array::from_fn(|i| if i as u32 == bit / 64 { 1 << (bit % 64) } else { 0 });
        for bits in WINDOW_BITS {
            assert_eq!(digits(&[0; 4], bits), 0);
            for bit in 0..256 {
                assert_eq!(digits(&top(bit), bits), 1, "2^{bit} in windows of {bits} bits");
            }
            // 2^256 - 1, and 2^64 - 1 with 2^192 on top of it.
            assert_eq!(digits(&[u64::MAX; 4], bits), 2);
            assert_eq!(digits(&[u64::MAX, 0, 0, 1], bits), 3);
        }
    }

    /// What a scalar has on average, as docs/design/msm.md has it and as the plan of sums on a GPU takes it.
    fn random_scalars_have<C: Curve>(bits: f64) {
        let mut rng = ChaCha12Rng::seed_from_u64(7);
        let mut counts = Counts::default();
        (0..2000).for_each(|_| add_digits::<C>(&mut counts, C::canonical(C::Fr::rand(&mut rng))));
        for c in WINDOW_BITS {
            let (counted, expected) = (of(&counts, c) as f64 / 2000.0, bits / f64::from(c + 1) + 0.5);
            assert!((counted - expected).abs() < 0.25, "{counted} digits of {c} bits, not {expected}");
        }
    }

    #[test]
    fn random_scalars_have_a_digit_for_each_window_and_a_bit() {
        random_scalars_have::<Bn254>(253.0);
        random_scalars_have::<Bls12_381>(254.0);
    }

    fn proofs_have<C: Curve>() {
        let circuit = Synthetic { constraints: 1000, publics: 3, dense: 0.25 };
        let mut key = OwnedKey::<C>::default();
        setup(&circuit, &Secret::from_seed([0; 32]), &mut key, &Silent).unwrap();
        let mut values = circuit.witness::<C>(1).unwrap();
        assert_eq!(values.len(), Circuit::<C>::variables(&circuit));
        let mut view = key.view().unwrap();
        let count = |view: &_, values: &Vec<Canonical>| {
            ProofDigits::count(view, &Witness::<C>::new(Zeroizing::new(values.clone())).unwrap())
        };
        let all = count(&view, &values).unwrap();
        // 249 wires of full size, the seed and, in A and B, three outputs have about 12.5 digits each; half of the others are 1.
        assert!((3300..3800).contains(&of(&all.l, 20)), "{all:?}");
        assert!(of(&all.a, 20) >= of(&all.l, 20) && of(&all.a, 20) < of(&all.l, 20) + 60, "{all:?}");
        assert!((12_000..13_500).contains(&of(&all.h, 20)), "{all:?}");
        // A negative number is as small as it is without its sign.
        let ones = |values: &mut [Canonical], of: u64| values[1..].fill(Canonical([of, 0, 0, 0]));
        ones(&mut values, 1);
        let small = count(&view, &values).unwrap();
        values[5] = C::canonical(-C::Fr::from(1u64));
        assert_eq!(count(&view, &values).unwrap(), small);
        let points =
            view.l.in_memory().unwrap().iter().filter(|p| bytemuck::bytes_of(p).iter().any(|&b| b != 0)).count();
        assert_eq!(small.l, [points as u64; WIDTHS]);
        ones(&mut values, 0);
        assert_eq!(count(&view, &values).unwrap().l, [0; WIDTHS]);
        // Points at infinity cost nothing.
        let none = vec![bytemuck::Zeroable::zeroed(); view.b1.len()];
        view.b1 = none.as_slice().into();
        ones(&mut values, 1);
        assert_eq!(count(&view, &values).unwrap(), ProofDigits { b: [0; WIDTHS], ..small });
        values.pop();
        let refused = count(&view, &values).unwrap_err().to_string();
        assert!(refused.contains("1001 values") && refused.contains("has 1002"), "{refused}");
    }

    #[test]
    fn digits_of_a_proof_are_those_of_its_wires_with_points() {
        proofs_have::<Bn254>();
        proofs_have::<Bls12_381>();
    }
}

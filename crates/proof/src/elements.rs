//! Elements that a caller hands over: copied and checked in one pass, while they are in the processor's cache.

use ark_ff::PrimeField;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_ops::cpu::wrong_product;
use tandem_ops::{Curve, HostBuf, Mont};

/// Scalars in Montgomery form, each below the modulus. Wiped when dropped.
pub struct Elements<C: Curve> {
    values: HostBuf<Mont>,
    of: PhantomData<fn() -> C>,
}

/// What is wrong with rows: the first that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFault {
    /// A factor of this row is not below the modulus.
    NotBelow(usize),
    /// The product of this row is not that of its factors.
    Product(usize),
}

/// Elements that one task takes: 64 KiB, so that all that it works on stays in its cache.
const GRAIN: usize = 1 << 11;

impl<C: Curve> Elements<C> {
    /// Takes the values as they are.
    ///
    /// # Errors
    /// The place of the first that is not below the modulus.
    pub fn check(values: HostBuf<Mont>) -> Result<Self, usize> {
        let above = First::default();
        values
            .par_chunks(GRAIN)
            .enumerate()
            .for_each(|(chunk, values)| above.note(chunk * GRAIN, not_below::<C>(values)));
        above.none_or(Self { values, of: PhantomData })
    }

    /// Copies the values of `parts`, one part behind the other, to `room`, which has as many. On all threads.
    ///
    /// # Errors
    /// The place of the first that is not below the modulus.
    ///
    /// # Panics
    /// Where the room is for another number.
    pub fn copied(parts: &[&[[u64; 4]]], mut room: HostBuf<Mont>) -> Result<Self, usize> {
        assert_eq!(room.len(), parts.iter().map(|part| part.len()).sum::<usize>());
        let (above, mut rest, mut first) = (First::default(), &mut room[..], 0);
        for part in parts {
            let (to, others) = rest.split_at_mut(part.len());
            to.par_chunks_mut(GRAIN).zip(part.par_chunks(GRAIN)).enumerate().for_each(|(chunk, (to, from))| {
                to.copy_from_slice(bytemuck::cast_slice(from));
                above.note(first + chunk * GRAIN, not_below::<C>(to));
            });
            (rest, first) = (others, first + part.len());
        }
        above.none_or(Self { values: room, of: PhantomData })
    }

    /// Copies the left and the right factors of rows to room for as many of each, and compares their products with `c`. On all threads.
    ///
    /// # Errors
    /// What is wrong with the first row that is wrong.
    ///
    /// # Panics
    /// Where there are not as many of all.
    pub fn rows([a, b, c]: [&[[u64; 4]]; 3], [mut to_a, mut to_b]: [HostBuf<Mont>; 2]) -> Result<[Self; 2], RowFault> {
        assert!([a, b, c].iter().all(|side| side.len() == to_a.len()) && to_a.len() == to_b.len());
        let (above, wrong) = (First::default(), First::default());
        let to = to_a.par_chunks_mut(GRAIN).zip(to_b.par_chunks_mut(GRAIN));
        let from = a.par_chunks(GRAIN).zip(b.par_chunks(GRAIN)).zip(c.par_chunks(GRAIN));
        to.zip(from).enumerate().for_each(|(chunk, ((to_a, to_b), ((a, b), c)))| {
            to_a.copy_from_slice(bytemuck::cast_slice(a));
            to_b.copy_from_slice(bytemuck::cast_slice(b));
            // What is checked is what was copied: nobody else can change it.
            let first_above = not_below::<C>(to_a).into_iter().chain(not_below::<C>(to_b)).min();
            above.note(chunk * GRAIN, first_above);
            let good = first_above.unwrap_or(to_a.len());
            let (a, b, c) = (&to_a[..good], &to_b[..good], bytemuck::cast_slice(&c[..good]));
            wrong.note(chunk * GRAIN, wrong_product::<C>(a, b, c));
        });
        match (above.get(), wrong.get()) {
            (Some(row), None) => Err(RowFault::NotBelow(row)),
            (Some(row), Some(other)) if row < other => Err(RowFault::NotBelow(row)),
            (_, Some(row)) => Err(RowFault::Product(row)),
            (None, None) => Ok([to_a, to_b].map(|values| Self { values, of: PhantomData })),
        }
    }

    /// The values.
    pub fn into_inner(self) -> HostBuf<Mont> {
        self.values
    }

    /// The values.
    pub fn values(&self) -> &[Mont] {
        &self.values
    }
}

/// The place of the first value that is not below the modulus.
fn not_below<C: Curve>(values: &[Mont]) -> Option<usize> {
    let modulus = C::Fr::MODULUS.0;
    // The uppermost words alone say it in nearly all cases, several at a time.
    if values.iter().fold(0, |most, x| x.0[3].max(most)) < modulus[3] {
        return None;
    }
    values.iter().position(|x| x.0.iter().rev().cmp(modulus.iter().rev()).is_ge())
}

/// The lowest place that any thread has found.
struct First(AtomicUsize);

impl Default for First {
    fn default() -> Self {
        First(AtomicUsize::new(usize::MAX))
    }
}

impl First {
    fn note(&self, from: usize, found: Option<usize>) {
        found.into_iter().for_each(|at| _ = self.0.fetch_min(from + at, Ordering::Relaxed));
    }

    fn get(&self) -> Option<usize> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&at| at != usize::MAX)
    }

    fn none_or<T>(&self, value: T) -> Result<T, usize> {
        self.get().map_or(Ok(value), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, Field, UniformRand};
    use rand_chacha::rand_core::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use tandem_ops::{Bls12_381, Bn254};

    fn room(len: usize) -> HostBuf<Mont> {
        HostBuf::zeros(len).unwrap()
    }

    fn limbs<C: Curve>(x: C::Fr) -> [u64; 4] {
        C::mont(x).0
    }

    /// Sizes around a task's, and around the eight that a processor takes at a time.
    const SIZES: [usize; 9] = [0, 1, 7, 8, 65, GRAIN - 1, GRAIN, GRAIN + 1, 3 * GRAIN + 5];

    fn random<C: Curve>(len: usize, rng: &mut ChaCha8Rng) -> Vec<C::Fr> {
        let edges = [C::Fr::ZERO, C::Fr::ONE, -C::Fr::ONE];
        (0..len).map(|i| if i % 5 == 4 { edges[i % 3] } else { C::Fr::rand(rng) }).collect()
    }

    fn copies_are_checked<C: Curve>() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let modulus = C::Fr::MODULUS.0;
        let less = |k: usize| std::array::from_fn(|i| if i == k { modulus[i] - 1 } else { modulus[i] });
        for len in SIZES {
            let values: Vec<[u64; 4]> = random::<C>(len, &mut rng).into_iter().map(limbs::<C>).collect();
            for cut in [0, len / 3, len] {
                let parts = [&values[..cut], &values[cut..]];
                let good = Elements::<C>::copied(&parts, room(len)).ok().unwrap();
                assert!(good.values().iter().map(|x| x.0).eq(values.iter().copied()));
                assert!(Elements::<C>::check(good.into_inner()).is_ok());
                // The modulus, more in each of its words, and less than it.
                for at in [0, cut.min(len.saturating_sub(1)), len.saturating_sub(1)].into_iter().filter(|_| len > 0) {
                    for (bad, is_good) in [
                        (modulus, false),
                        ([u64::MAX; 4], false),
                        ([0, 0, 0, modulus[3] + 1], false),
                        ([0, 0, modulus[2] + 1, modulus[3]], false),
                        ([modulus[0] + 1, modulus[1], modulus[2], modulus[3]], false),
                        (less(0), true),
                        ([u64::MAX, u64::MAX, modulus[2] - 1, modulus[3]], true),
                    ] {
                        let mut values = values.clone();
                        values[at] = bad;
                        let parts = [&values[..cut], &values[cut..]];
                        let found = Elements::<C>::copied(&parts, room(len)).err();
                        assert_eq!(found, (!is_good).then_some(at), "{bad:x?} at {at} of {len}");
                        let mut copy = room(len);
                        copy.copy_from_slice(bytemuck::cast_slice(&values));
                        assert_eq!(Elements::<C>::check(copy).err(), found);
                        // The first is told.
                        values[len - 1] = modulus;
                        let parts = [&values[..cut], &values[cut..]];
                        let first = if is_good { len - 1 } else { at };
                        assert_eq!(Elements::<C>::copied(&parts, room(len)).err(), Some(first));
                    }
                }
            }
        }
    }

    #[test]
    fn values_below_the_modulus_are_copied() {
        copies_are_checked::<Bn254>();
        copies_are_checked::<Bls12_381>();
    }

    fn products_are_checked<C: Curve>() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for len in SIZES {
            let (a, b) = (random::<C>(len, &mut rng), random::<C>(len, &mut rng));
            let c = a.iter().zip(&b).map(|(a, b)| limbs::<C>(*a * b)).collect::<Vec<_>>();
            let [a, b] = [a, b].map(|side| side.into_iter().map(limbs::<C>).collect::<Vec<_>>());
            let rows = |a: &[_], b: &[_], c: &[_]| Elements::<C>::rows([a, b, c], [room(len), room(len)]);
            let [to_a, to_b] = rows(&a, &b, &c).ok().unwrap();
            assert!(to_a.values().iter().map(|x| x.0).eq(a.iter().copied()));
            assert!(to_b.values().iter().map(|x| x.0).eq(b.iter().copied()));
            for at in (0..len).filter(|at| at % 61 == 0 || at + 1 == len) {
                let wrong = |side: &[[u64; 4]], limb: usize| {
                    let mut side = side.to_vec();
                    side[at][limb] ^= 1;
                    side
                };
                for limb in 0..4 {
                    assert_eq!(rows(&a, &b, &wrong(&c, limb)).err(), Some(RowFault::Product(at)));
                }
                // The same value and another word for it is no element.
                let mut more = c.clone();
                let (mut carry, modulus) = (0u128, C::Fr::MODULUS.0);
                for (limb, m) in more[at].iter_mut().zip(modulus) {
                    carry += u128::from(*limb) + u128::from(m);
                    (*limb, carry) = (carry as u64, carry >> 64);
                }
                assert_eq!(rows(&a, &b, &more).err(), Some(RowFault::Product(at)));
                let above = |side: &[[u64; 4]]| {
                    let mut side = side.to_vec();
                    side[at] = modulus;
                    side
                };
                assert_eq!(rows(&above(&a), &b, &c).err(), Some(RowFault::NotBelow(at)));
                assert_eq!(rows(&a, &above(&b), &c).err(), Some(RowFault::NotBelow(at)));
                // The first fault of two kinds is told.
                let mut last = c.clone();
                last[len - 1][0] ^= 1;
                assert_eq!(rows(&above(&a), &b, &last).err(), Some(RowFault::NotBelow(at)));
                let first = wrong(&c, 0);
                let mut far = b.clone();
                far[len - 1] = modulus;
                let expected = if at + 1 == len { RowFault::NotBelow(at) } else { RowFault::Product(at) };
                assert_eq!(rows(&a, &far, &first).err(), Some(expected));
            }
        }
    }

    #[test]
    fn rows_have_the_products_of_their_factors() {
        products_are_checked::<Bn254>();
        products_are_checked::<Bls12_381>();
    }
}

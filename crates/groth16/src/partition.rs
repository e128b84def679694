//! Made-up proofs of the sizes of Filecoin's, for measurements: a key of few points that repeat, and assignments that it verifies.
//!
//! The key is no circuit's. Each of its points is a multiple of the generator by a factor that is known, and a proof is one of
//! nothing. But it passes its check only where the sums over A, B, L and H and the quotient are all right:
//!
//! tau has a small odd order K, so that its powers repeat. With T\[i\] = (tau^n - 1) / delta tau^i for n rows, H is T\[i\], as in a key of a
//! circuit; L, A and B are T\[i + 1\], T\[i + 2\] and T\[i + 3\]. All are one table of K points, read again and again. A proof without
//! blinding, which cancels out, verifies where
//!
//! ```text
//! (alpha + A) (beta + B) = alpha beta + IC_0 + sum p_j IC_j + delta L + a(tau) b(tau) - c(tau)
//! ```
//!
//! with A, B and L for the factors of their sums, gamma = 1, and a, b, c the polynomials through the sides of the rows. The assignment is random,
//! but for its last public value p: it is in one row alone, whose other factor is zero, and in A, so that the equation is linear in it.
//! What is solved for p here takes neither sums over points nor transforms.

use crate::powers::root;
use crate::setup::{invert, single_points, Secret, OP};
use crate::{Error, KeyPoints, PowersView, Progress, Result, Shape, P1, P2};
use ark_ec::PrimeGroup;
use ark_ff::{AdditiveGroup, BigInteger, FftField, Field, PrimeField, UniformRand};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tandem_ops::memory::Pages;
use tandem_ops::{memory, Bls12_381, Curve, Group, Mont, Outside, Stored, Wire};
use tandem_proof::fixed_base::Table;
use zeroize::Zeroizing;

type Fr = <Bls12_381 as Curve>::Fr;
type G1 = <Bls12_381 as Curve>::G1;
type G2 = <Bls12_381 as Curve>::G2;

/// The order of tau, a prime that divides r - 1: so many points of G1 take 87 MB.
const PERIOD: u64 = 906_349;
/// Where in the table the points of L, A and B begin.
const FIRST_OF_L: usize = 1;
const FIRST_OF_A: usize = 2;
const FIRST_OF_B: usize = 3;
/// Elements that one task makes.
const GRAIN: usize = 1 << 14;

/// The sizes of a partition, and what its values are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Partition {
    /// Binary logarithm of the domain's rows.
    pub log_domain: u32,
    /// Rows that are used, those that bind the inputs among them.
    pub rows: usize,
    /// Public values, the constant 1 among them.
    pub inputs: usize,
    /// Private values.
    pub aux: usize,
    /// Private wires with a point in A, which has points of all inputs besides.
    pub in_a: usize,
    /// Private wires with a point in B, which has a point of the constant besides.
    pub in_b: usize,
    /// Share of the private values that are 1.
    pub ones: f64,
    /// Share of the private values of full size. The others are 0.
    pub dense: f64,
}

impl Partition {
    /// This partition with all counts scaled to a domain of 2^`log_domain` rows.
    #[must_use]
    pub fn scaled(self, log_domain: u32) -> Self {
        let factor = (f64::from(log_domain) - f64::from(self.log_domain)).exp2();
        let of = |count: usize| ((count as f64 * factor) as usize).max(2);
        let (rows, inputs, aux) = (of(self.rows), of(self.inputs), of(self.aux));
        Partition {
            log_domain,
            rows: rows.max(inputs + 1),
            inputs,
            aux,
            in_a: of(self.in_a).min(aux),
            in_b: of(self.in_b).min(aux),
            ..self
        }
    }

    /// Points of A.
    pub fn a_points(&self) -> usize {
        self.inputs + self.in_a
    }

    /// Points of B, in either group.
    pub fn b_points(&self) -> usize {
        1 + self.in_b
    }

    fn shape(&self) -> Shape {
        Shape { variables: self.inputs + self.aux, publics: self.inputs - 1, domain: 1 << self.log_domain }
    }

    fn check(&self) -> Result<()> {
        let Self { log_domain, rows, inputs, aux, in_a, in_b, ones, dense } = *self;
        let most = (<Fr as FftField>::TWO_ADICITY - 1).min(30);
        let shares = [ones, dense, ones + dense].iter().all(|share| (0.0..=1.0).contains(share));
        if (1..=most).contains(&log_domain)
            && inputs >= 2
            && aux >= 1
            && rows > inputs
            && rows <= 1 << log_domain
            && in_a <= aux
            && in_b <= aux
            && inputs + aux <= u32::MAX as usize
            && shares
        {
            return Ok(());
        }
        Err(Error::Circuit(format!(
            "no partition of {rows} rows of 2^{log_domain}, {inputs} inputs, {aux} private wires, of which {in_a} in A and {in_b} in B, \
             {ones} ones, {dense} dense"
        )))
    }
}

/// The number of members below `wire`, and whether it is one, of a set of `of` wires of `all`, evenly spread.
fn rank(wire: usize, of: usize, all: usize) -> (usize, bool) {
    // Both are below 2^32.
    let below = |wire: usize| (wire as u64 * of as u64 / all as u64) as usize;
    (below(wire), below(wire + 1) > below(wire))
}

/// A table of points, read again and again. Where they wait, each sum reads its own.
#[derive(Clone)]
struct Cycle {
    table: Arc<Vec<u8>>,
    waits: bool,
}

impl Cycle {
    /// The multiples of the generator by `factors`.
    fn of<G: Group<Curve = Bls12_381>>(factors: &[Fr], progress: &dyn Progress) -> Result<Cycle> {
        let table = Table::<G>::new(<G::Ark as PrimeGroup>::generator(), factors.len())?;
        let mut bytes = memory::reserve(OP, factors.len() * size_of::<G::Point>())?;
        table.multiply(factors, progress, |points| {
            bytes.extend_from_slice(bytemuck::cast_slice(points));
            Ok(())
        })?;
        Ok(Cycle { table: Arc::new(bytes), waits: false })
    }

    /// `count` points from number `first` on.
    fn points<T: Wire>(&self, first: usize, count: usize) -> Result<Stored<'_, T>> {
        let range = first * size_of::<T>()..(first + count) * size_of::<T>();
        let none = || Error::Circuit("a partition has no whole points".into());
        Stored::outside(self, range).ok_or_else(none)
    }
}

impl Outside for Cycle {
    fn read(&self, at: usize, mut into: &mut [u8]) -> tandem_ops::Result<()> {
        let (bytes, mut at) = (&self.table, at);
        while !into.is_empty() {
            let from = &bytes[at % bytes.len()..];
            let (now, rest) = into.split_at_mut(from.len().min(into.len()));
            now.copy_from_slice(&from[..now.len()]);
            (at, into) = (at + now.len(), rest);
        }
        Ok(())
    }

    fn block_bytes(&self) -> usize {
        1 << 20
    }

    fn later(&self) -> Option<Arc<dyn Outside>> {
        self.waits.then(|| Arc::new(self.clone()) as _)
    }
}

/// The key of a partition, and the secret of it.
pub struct PartitionKey {
    partition: Partition,
    secret: Secret<Bls12_381>,
    points: KeyPoints<Bls12_381>,
    /// Factors of the points of the constant and of each public value.
    ic_factors: Vec<Fr>,
    ic: Vec<P1<Bls12_381>>,
    g1: Cycle,
    g2: Cycle,
}

impl PartitionKey {
    /// Makes it, on all cores: a table of points, and no more.
    ///
    /// # Errors
    /// [`Error::Circuit`] for sizes that no partition has; [`Error::Interrupted`]; [`Error::Backend`] where there is not enough memory.
    pub fn make(partition: Partition, progress: &dyn Progress) -> Result<Self> {
        Self::with_period(partition, PERIOD, progress)
    }

    /// As [`PartitionKey::make`], with powers of tau that repeat after `period`, an odd divisor of r - 1 above 1.
    ///
    /// # Errors
    /// As [`PartitionKey::make`].
    pub fn with_period(partition: Partition, period: u64, progress: &dyn Progress) -> Result<Self> {
        partition.check()?;
        let secret = Secret { tau: Zeroizing::new(of_order(period)), ..Secret::<Bls12_381>::from_seed([7; 32]) };
        let shape = partition.shape();
        // Enough that no section reads past the end, where it does not repeat.
        let count = (period as usize).min(shape.domain.max(shape.variables) + FIRST_OF_B);
        let first = (secret.tau.pow([shape.domain as u64]) - Fr::ONE) * invert(*secret.delta)?;
        let factors: Vec<Fr> =
            std::iter::successors(Some(first), |factor| Some(*factor * *secret.tau)).take(count).collect();
        progress.start("points", 2 * count as u64);
        let (g1, g2) = (Cycle::of::<G1>(&factors, progress)?, Cycle::of::<G2>(&factors, progress)?);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let ic_factors: Vec<Fr> = (0..partition.inputs).map(|_| Fr::rand(&mut rng)).collect();
        let table = Table::<G1>::new(<<G1 as Group>::Ark as PrimeGroup>::generator(), partition.inputs)?;
        let mut ic = memory::reserve(OP, partition.inputs)?;
        table.multiply(&ic_factors, progress, |points| {
            ic.extend_from_slice(points);
            Ok(())
        })?;
        let points = single_points(&secret);
        Ok(Self { partition, secret, points, ic_factors, ic, g1, g2 })
    }

    /// This key with points that may wait until a sum takes them.
    #[must_use]
    pub fn waiting(self) -> Self {
        let waiting = |cycle| Cycle { waits: true, ..cycle };
        Self { g1: waiting(self.g1), g2: waiting(self.g2), ..self }
    }

    /// Its sizes.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The key as a view. Its points are no more than the table that they are read from.
    ///
    /// # Errors
    /// None for a key that was made.
    pub fn view(&self) -> Result<PowersView<'_, Bls12_381>> {
        let shape = self.partition.shape();
        let g1 = |first, count| self.g1.points::<P1<Bls12_381>>(first, count);
        Ok(PowersView {
            shape,
            points: self.points.clone(),
            ic: self.ic.as_slice().into(),
            a: g1(FIRST_OF_A, self.partition.a_points())?,
            b1: g1(FIRST_OF_B, self.partition.b_points())?,
            b2: self.g2.points::<P2<Bls12_381>>(FIRST_OF_B, self.partition.b_points())?,
            l: g1(FIRST_OF_L, self.partition.aux)?,
            h: g1(0, shape.domain - 1)?,
        })
    }

    /// An assignment that the key verifies, drawn from `seed`.
    ///
    /// # Errors
    /// [`Error::Backend`] where there is not enough memory.
    pub fn assignment(&self, seed: u64) -> Result<PartitionAssignment> {
        let Partition { rows, inputs, aux, in_a, in_b, ones, dense, .. } = self.partition;
        let mut made = PartitionAssignment {
            inputs: Elements::zeros(inputs)?,
            aux: Elements::zeros(aux)?,
            a: Elements::zeros(rows)?,
            b: Elements::zeros(rows)?,
            c: Elements::zeros(rows)?,
            a_aux: set(aux, in_a)?,
            b_inputs: memory::filled(OP, inputs.div_ceil(64), 0u64)?,
            b_aux: set(aux, in_b)?,
        };
        made.b_inputs[0] = 1;
        let one = Bls12_381::mont(Fr::ONE).0;
        // Of 2^32.
        let (full, one_or_full) = ((dense * 2f64.powi(32)) as u64, ((dense + ones) * 2f64.powi(32)) as u64);
        let rng = |stream: u64, chunk: usize| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(stream << 40 | chunk as u64);
            rng
        };
        made.aux.par_chunks_mut(GRAIN).enumerate().for_each(|(chunk, values)| {
            let mut rng = rng(0, chunk);
            for value in values {
                match u64::from(rng.next_u32()) {
                    draw if draw < full => *value = random(&mut rng),
                    draw if draw < one_or_full => *value = one,
                    _ => {}
                }
            }
        });
        let constraints = rows - inputs;
        let [a, b, c] = [&mut made.a, &mut made.b, &mut made.c].map(|side| side[..constraints].par_chunks_mut(GRAIN));
        a.zip(b).zip(c).enumerate().for_each(|(chunk, ((a, b), c))| {
            let mut rng = rng(1, chunk);
            for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
                (*a, *b) = (random(&mut rng), random(&mut rng));
                *c = Bls12_381::mont(element(a) * element(b)).0;
            }
        });
        made.inputs[0] = one;
        let mut rng = rng(2, 0);
        made.inputs[1..inputs - 1].iter_mut().for_each(|value| *value = random(&mut rng));
        made.a[constraints..].copy_from_slice(&made.inputs);
        let last = Bls12_381::mont(self.last_input(&made)?).0;
        (made.inputs[inputs - 1], made.a[rows - 1]) = (last, last);
        Ok(made)
    }

    /// The last public value, which is 0 in `made`.
    fn last_input(&self, made: &PartitionAssignment) -> Result<Fr> {
        let Partition { log_domain, rows, inputs, aux, in_a, in_b, .. } = self.partition;
        let Secret { tau, alpha, beta, delta } = &self.secret;
        let domain = 1usize << log_domain;
        let vanishing = tau.pow([domain as u64]) - Fr::ONE;
        let first = vanishing * invert(**delta)?;
        let factor = |number: usize| first * tau.pow([number as u64]);
        // The sum over wires of a set of so many.
        let sum = |first: usize, of: usize| -> Fr {
            let of_chunk = |(chunk, values): (usize, &[[u64; 4]])| {
                let from = chunk * GRAIN;
                let (mut power, mut sum) = (factor(first + rank(from, of, aux).0), Fr::ZERO);
                for (wire, value) in (from..).zip(values) {
                    if rank(wire, of, aux).1 {
                        sum += element(value) * power;
                        power *= **tau;
                    }
                }
                sum
            };
            made.aux.par_chunks(GRAIN).enumerate().map(of_chunk).sum()
        };
        let of_inputs: Fr = made.inputs.iter().enumerate().map(|(i, x)| element(x) * factor(FIRST_OF_A + i)).sum();
        let a0 = **alpha + of_inputs + sum(FIRST_OF_A + inputs, in_a);
        let b0 = **beta + factor(FIRST_OF_B) + sum(FIRST_OF_B + 1, in_b);
        let l = sum(FIRST_OF_L, aux);
        let ic: Fr = made.inputs.iter().zip(&self.ic_factors).map(|(x, factor)| element(x) * factor).sum();

        // Lagrange's basis at tau: (tau^n - 1) / n * w^i / (tau - w^i).
        let root = root::<Bls12_381>(domain)?;
        let scale = vanishing * invert(Fr::from(domain as u64))?;
        let basis = |from: usize, len: usize| {
            let points: Vec<Fr> =
                std::iter::successors(Some(root.pow([from as u64])), |x| Some(*x * root)).take(len).collect();
            let mut basis: Vec<Fr> = points.iter().map(|x| **tau - x).collect();
            ark_ff::batch_inversion(&mut basis);
            basis.iter_mut().zip(points).for_each(|(value, x)| *value *= scale * x);
            basis
        };
        let sides = made.a.par_chunks(GRAIN).zip(made.b.par_chunks(GRAIN)).zip(made.c.par_chunks(GRAIN));
        type Side<'a> = &'a [[u64; 4]];
        let of_chunk = |(chunk, ((a, b), c)): (usize, ((Side<'_>, Side<'_>), Side<'_>))| {
            let basis = basis(chunk * GRAIN, a.len());
            [a, b, c].map(|side| side.iter().zip(&basis).map(|(x, l)| element(x) * l).sum::<Fr>())
        };
        let both = |x: [Fr; 3], y: [Fr; 3]| [x[0] + y[0], x[1] + y[1], x[2] + y[2]];
        let [a, b, c] = sides.enumerate().map(of_chunk).reduce(|| [Fr::ZERO; 3], both);

        let right = **alpha * **beta + ic + **delta * l + a * b - c;
        let of_last = factor(FIRST_OF_A + inputs - 1) * b0 - self.ic_factors[inputs - 1] - basis(rows - 1, 1)[0] * b;
        Ok((right - a0 * b0) * invert(of_last)?)
    }
}

/// Elements in pages of their own, which are made when they are first written: on all cores, and large ones where the system has them.
pub struct Elements {
    pages: Pages,
    len: usize,
}

impl Elements {
    fn zeros(len: usize) -> Result<Self> {
        let bytes = len * size_of::<[u64; 4]>();
        memory::check(OP, bytes as u64)?;
        let pages = Pages::zeros(bytes).ok_or_else(|| memory::refused(OP, bytes as u64))?;
        Ok(Self { pages, len })
    }
}

impl Deref for Elements {
    type Target = [[u64; 4]];
    fn deref(&self) -> &[[u64; 4]] {
        bytemuck::cast_slice(&self.pages[..self.len * size_of::<[u64; 4]>()])
    }
}

impl DerefMut for Elements {
    fn deref_mut(&mut self) -> &mut [[u64; 4]] {
        let bytes = self.len * size_of::<[u64; 4]>();
        bytemuck::cast_slice_mut(&mut self.pages[..bytes])
    }
}

/// What bellperson's prover would compute of a partition. Values are four limbs in Montgomery form. They are made up, and no secret.
pub struct PartitionAssignment {
    /// The constant 1 and the public values.
    pub inputs: Elements,
    /// The private values.
    pub aux: Elements,
    /// Left factors of the rows.
    pub a: Elements,
    /// Right factors.
    pub b: Elements,
    /// Products.
    pub c: Elements,
    /// Private wires with a point in A, a bit each.
    pub a_aux: Vec<u64>,
    /// Public wires with a point in B.
    pub b_inputs: Vec<u64>,
    /// Private wires with a point in B.
    pub b_aux: Vec<u64>,
}

/// Bits of a set of `of` wires of `all`, evenly spread.
fn set(all: usize, of: usize) -> Result<Vec<u64>> {
    let mut words = memory::filled(OP, all.div_ceil(64), 0u64)?;
    words.par_iter_mut().enumerate().for_each(|(word, bits)| {
        let wires = word * 64..all.min(word * 64 + 64);
        *bits = wires.filter(|&wire| rank(wire, of, all).1).fold(0, |bits, wire| bits | 1 << (wire % 64));
    });
    Ok(words)
}

fn element(limbs: &[u64; 4]) -> Fr {
    Bls12_381::from_mont(Mont(*limbs))
}

/// Limbs below 2^254, and so below the modulus.
fn random(rng: &mut ChaCha8Rng) -> [u64; 4] {
    let mut limbs = [0; 4];
    rng.fill_bytes(bytemuck::bytes_of_mut(&mut limbs));
    limbs[3] >>= 2;
    limbs
}

/// An element of order `order`, a divisor of r - 1: the generator to the power (r - 1) / `order`.
fn of_order(order: u64) -> Fr {
    let mut exponent = Fr::MODULUS;
    exponent.sub_with_borrow(&1u64.into());
    let mut rest = 0u128;
    for limb in exponent.0.iter_mut().rev() {
        let part = rest << 64 | u128::from(*limb);
        (*limb, rest) = ((part / u128::from(order)) as u64, part % u128::from(order));
    }
    Fr::GENERATOR.pow(exponent)
}

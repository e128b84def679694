//! Keys for tests and measurements, made by one party that could know their secret.
//!
//! The equations are snarkjs's: the circuit's rows, then one row for the constant and each public wire that has this
//! wire alone on its left side; gamma is 1; H is the Lagrange basis of the doubled domain at its odd points, over
//! delta. delta is drawn here, as the first contribution of a ceremony would.

use crate::{Error, KeyPoints, Progress, Result, Shape, P1, P2};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, FftField, Field, PrimeField, UniformRand};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use tandem_ops::{memory, Curve, Group, Mont2};
use tandem_proof::fixed_base::Table;

pub use tandem_proof::circuit::{Circuit, Constraint, Terms};
use zeroize::Zeroizing;

/// What memory is taken for, in messages.
pub(crate) const OP: &str = "setup";

/// An entry of matrix A (0) or B (1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// 0 for A, 1 for B.
    pub matrix: u32,
    /// Its row.
    pub row: u32,
    /// Its wire.
    pub wire: u32,
    /// The coefficient.
    pub value: Mont2,
}

/// Parts of a key, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Entries of A and B by rows.
    Entries {
        /// How many will come.
        count: u32,
    },
    /// Points of the constant and the public wires.
    Ic,
    /// Points of the quotient.
    H,
    /// Points of the private wires.
    L,
    /// A in G1.
    A,
    /// B in G1.
    B1,
    /// B in G2.
    B2,
}

/// Where a key goes, piece by piece.
pub trait KeySink<C: Curve> {
    /// The sizes, and the points that belong to no wire. Comes first.
    ///
    /// # Errors
    /// [`Error::Output`].
    fn header(&mut self, shape: Shape, points: &KeyPoints<C>) -> Result<()>;
    /// The pieces that follow belong to `part`.
    ///
    /// # Errors
    /// [`Error::Output`].
    fn begin(&mut self, part: Part) -> Result<()>;
    /// Entries, in order.
    ///
    /// # Errors
    /// [`Error::Output`].
    fn entries(&mut self, entries: &[Entry]) -> Result<()>;
    /// Points of a part in G1, in order.
    ///
    /// # Errors
    /// [`Error::Output`].
    fn points1(&mut self, points: &[P1<C>]) -> Result<()>;
    /// Points of the part in G2, in order.
    ///
    /// # Errors
    /// [`Error::Output`].
    fn points2(&mut self, points: &[P2<C>]) -> Result<()>;
}

/// The secret of a key. Wiped when dropped.
pub struct Secret<C: Curve> {
    pub(crate) tau: Zeroizing<C::Fr>,
    pub(crate) alpha: Zeroizing<C::Fr>,
    pub(crate) beta: Zeroizing<C::Fr>,
    pub(crate) delta: Zeroizing<C::Fr>,
}

impl<C: Curve> Secret<C> {
    /// Draws it from the operating system's randomness.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn random() -> Result<Self> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed).map_err(|e| Error::Random(e.to_string()))?;
        Ok(Self::from_seed(*seed))
    }

    /// Draws it from a seed: for keys that can be made again.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let mut rng = ChaCha20Rng::from_seed(seed);
        let mut draw = || loop {
            let x = C::Fr::rand(&mut rng);
            // Zero would make parts of the key infinite, and a tau in a domain would divide by zero.
            if x.pow([1u64 << <C::Fr as FftField>::TWO_ADICITY]) != C::Fr::ONE && x != C::Fr::ZERO {
                return Zeroizing::new(x);
            }
        };
        Self { tau: draw(), alpha: draw(), beta: draw(), delta: draw() }
    }
}

/// The shape of the key of a circuit.
///
/// # Errors
/// [`Error::Circuit`] for sizes that no key can have.
pub fn shape<C: Curve>(circuit: &dyn Circuit<C>) -> Result<Shape> {
    let (constraints, variables, publics) = (circuit.constraints(), circuit.variables(), circuit.publics());
    if constraints == 0 {
        return Err(Error::Circuit("the circuit has no constraint".into()));
    }
    if publics >= variables || variables > u32::MAX as usize {
        return Err(Error::Circuit(format!("the circuit has {publics} public wires of {variables} wires")));
    }
    let rows = constraints.saturating_add(publics).saturating_add(1);
    // The doubled domain must be one of the field's.
    let most = (<C::Fr as FftField>::TWO_ADICITY - 1).min(31);
    match rows.checked_next_power_of_two() {
        Some(domain) if domain <= 1 << most => Ok(Shape { variables, publics, domain }),
        _ => Err(Error::Circuit(format!("the circuit needs {rows} rows; a key for {} has at most 2^{most}", C::ID))),
    }
}

/// Makes the key of `circuit` and hands it to `sink`. Holds about 32 bytes for each row and 160 for each wire.
///
/// # Errors
/// [`Error::Circuit`]; [`Error::Output`]; [`Error::Interrupted`]; [`Error::Backend`] where there is not enough memory.
pub fn setup<C: Curve>(
    circuit: &dyn Circuit<C>,
    secret: &Secret<C>,
    sink: &mut dyn KeySink<C>,
    progress: &dyn Progress,
) -> Result<Shape> {
    let shape = shape(circuit)?;
    let Shape { variables, publics, domain } = shape;
    let products = 3 * variables + domain;
    room::<C>(shape, products)?;
    let g1 = Table::<C::G1>::new(<C::G1 as Group>::Ark::generator(), products)?;
    let g2 = Table::<C::G2>::new(<C::G2 as Group>::Ark::generator(), variables)?;
    sink.header(shape, &single_points(secret))?;

    let root = root::<C>(domain.ilog2())?;
    let (mut values, count) = evaluate(circuit, shape, root, secret, progress)?;
    write_entries(circuit, publics, count, sink, progress)?;

    // beta a + alpha b + c, over gamma = 1 for public wires and over delta for the others.
    let Values { a, b, c } = &mut values;
    let over_delta = invert(*secret.delta)?;
    c.par_iter_mut().zip(a.par_iter()).zip(b.par_iter()).enumerate().for_each(|(i, ((c, a), b))| {
        *c += *secret.beta * a + *secret.alpha * b;
        if i > publics {
            *c *= over_delta;
        }
    });
    let mut g1_part = |part, task, scalars: &[C::Fr]| {
        progress.start(task, scalars.len() as u64);
        sink.begin(part)?;
        g1.multiply(scalars, progress, |points| sink.points1(points))
    };
    g1_part(Part::Ic, "points IC", &c[..=publics])?;
    g1_part(Part::H, "points H", &quotient_basis(secret, domain)?)?;
    g1_part(Part::L, "points L", &c[publics + 1..])?;
    g1_part(Part::A, "points A", a)?;
    g1_part(Part::B1, "points B1", b)?;
    progress.start("points B2", variables as u64);
    sink.begin(Part::B2)?;
    g2.multiply(b, progress, |points| sink.points2(points))?;
    Ok(shape)
}

/// Fails where the host has not the memory that a setup takes: not all of it can be asked for as it is needed.
fn room<C: Curve>(shape: Shape, products: usize) -> Result<()> {
    /// Products that are under way, each with its digits, its sum twice and what is added to it.
    const AT_ONCE: u64 = 1 << 16;
    /// Pieces of vectors on all threads, and what grows beside.
    const BESIDE: u64 = 8 << 20;
    let Shape { variables, domain, .. } = shape;
    let (variables, domain) = (variables as u64, domain as u64);
    let tables = Table::<C::G1>::bytes(products) + Table::<C::G2>::bytes(shape.variables);
    let product = 5 * size_of::<P2<C>>() as u64 + 128;
    let bytes = 160 * variables + 32 * domain + tables + AT_ONCE.min(variables.max(domain)) * product + BESIDE;
    if bytes > memory::host().free {
        return Err(memory::refused(OP, bytes).into());
    }
    Ok(())
}

pub(crate) fn single_points<C: Curve>(secret: &Secret<C>) -> KeyPoints<C> {
    let g1 = |k: C::Fr| C::G1::from_ark(&(<C::G1 as Group>::Ark::generator() * k).into_affine());
    let g2 = |k: C::Fr| C::G2::from_ark(&(<C::G2 as Group>::Ark::generator() * k).into_affine());
    KeyPoints {
        alpha1: g1(*secret.alpha),
        beta1: g1(*secret.beta),
        beta2: g2(*secret.beta),
        gamma2: g2(C::Fr::ONE),
        delta1: g1(*secret.delta),
        delta2: g2(*secret.delta),
    }
}

pub(crate) fn invert<F: Field>(x: F) -> Result<F> {
    x.inverse().ok_or_else(|| Error::Circuit("the key's secret lies in the domain".into()))
}

/// The polynomials of each wire at tau. They tell of the secret: wiped when dropped.
pub(crate) struct Values<F: PrimeField> {
    pub(crate) a: Zeroizing<Vec<F>>,
    pub(crate) b: Zeroizing<Vec<F>>,
    pub(crate) c: Zeroizing<Vec<F>>,
}

/// The values of all wires' polynomials at tau, rows being the powers of a root of unity, and the number of entries of A and B.
pub(crate) fn evaluate<C: Curve>(
    circuit: &dyn Circuit<C>,
    shape: Shape,
    root: C::Fr,
    secret: &Secret<C>,
    progress: &dyn Progress,
) -> Result<(Values<C::Fr>, u32)> {
    let Shape { variables, publics, domain } = shape;
    progress.start("evaluate circuit", circuit.constraints() as u64);
    let zeros = || memory::filled(OP, variables, C::Fr::ZERO).map(Zeroizing::new);
    let mut values = Values { a: zeros()?, b: zeros()?, c: zeros()? };
    let basis = lagrange(*secret.tau, C::Fr::ONE, root, domain, C::Fr::ONE)?;
    let (mut row, mut count) = (0, 0usize);
    circuit.walk(&mut |constraint| {
        let at = *basis.get(row).ok_or_else(|| Error::Circuit("more constraints than the circuit says".into()))?;
        for (terms, values) in
            [(&constraint.a, &mut values.a), (&constraint.b, &mut values.b), (&constraint.c, &mut values.c)]
        {
            for (wire, coefficient) in terms {
                let value = values.get_mut(*wire as usize).ok_or_else(|| {
                    Error::Circuit(format!("constraint {row} has wire {wire}; the circuit has {variables} wires"))
                })?;
                *value += at * coefficient;
            }
        }
        count += constraint.a.len() + constraint.b.len();
        row += 1;
        tick(row, progress)
    })?;
    if row != circuit.constraints() {
        let expected = circuit.constraints();
        return Err(Error::Circuit(format!("{row} constraints; the circuit says {expected}")));
    }
    for wire in 0..=publics {
        values.a[wire] += basis[row + wire];
    }
    let count = u32::try_from(count + publics + 1)
        .map_err(|_| Error::Circuit("the circuit has more than 2^32 coefficients".into()))?;
    Ok((values, count))
}

/// Reports rows in steps that cost nothing, and asks whether to stop.
pub(crate) fn tick(row: usize, progress: &dyn Progress) -> Result<()> {
    const STEP: usize = 1 << 14;
    if row.is_multiple_of(STEP) {
        progress.advance(STEP as u64);
        if progress.cancelled() {
            return Err(Error::Interrupted);
        }
    }
    Ok(())
}

pub(crate) fn write_entries<C: Curve>(
    circuit: &dyn Circuit<C>,
    publics: usize,
    count: u32,
    sink: &mut dyn KeySink<C>,
    progress: &dyn Progress,
) -> Result<()> {
    const PIECE: usize = 1 << 14;
    progress.start("write coefficients", circuit.constraints() as u64);
    sink.begin(Part::Entries { count })?;
    let r = C::r();
    // The Montgomery limbs of x * R are those of x * R^2 as a plain integer.
    let mont2 = |x: C::Fr| Mont2(C::mont(x * r).0);
    let mut piece = Vec::with_capacity(PIECE);
    let mut row = 0u32;
    circuit.walk(&mut |constraint| {
        for (matrix, terms) in [(0, &constraint.a), (1, &constraint.b)] {
            piece.extend(terms.iter().map(|&(wire, x)| Entry { matrix, row, wire, value: mont2(x) }));
        }
        if piece.len() >= PIECE {
            sink.entries(&piece)?;
            piece.clear();
        }
        row += 1;
        tick(row as usize, progress)
    })?;
    let one = mont2(C::Fr::ONE);
    piece.extend((0..=publics as u32).map(|wire| Entry { matrix: 0, row: row + wire, wire, value: one }));
    sink.entries(&piece)
}

fn root<C: Curve>(log: u32) -> Result<C::Fr> {
    C::root_of_unity(log).ok_or_else(|| Error::Circuit(format!("{} has no domain of 2^{log} rows", C::ID)))
}

/// The Lagrange basis of the doubled domain at tau, at its odd points, over delta.
fn quotient_basis<C: Curve>(secret: &Secret<C>, domain: usize) -> Result<Zeroizing<Vec<C::Fr>>> {
    let odd = root::<C>(domain.ilog2() + 1)?;
    let half = invert(C::Fr::from(2u64))?;
    // Of all 2n points, those are odd * (odd^2)^i. The doubled domain's vanishing polynomial at tau is
    // (tau^n - 1)(tau^n + 1), the odd points' own tau^n + 1: the former stays as a factor.
    let factor = (secret.tau.pow([domain as u64]) - C::Fr::ONE) * half * invert(*secret.delta)?;
    lagrange(*secret.tau, odd, odd.square(), domain, -factor)
}

/// `factor` * L_i(tau) for the points x_i = g step^i, i below n, that are the roots of X^n - g^n:
/// L_i(tau) = (tau^n - g^n) / (n g^n) * x_i / (tau - x_i). They tell of tau: wiped when dropped.
fn lagrange<F: PrimeField>(tau: F, g: F, step: F, n: usize, factor: F) -> Result<Zeroizing<Vec<F>>> {
    const PIECE: usize = 1 << 12;
    let gn = g.pow([n as u64]);
    let scale = factor * (tau.pow([n as u64]) - gn) * invert(F::from(n as u64) * gn)?;
    let mut basis = Zeroizing::new(memory::filled(OP, n, F::ZERO)?);
    basis.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
        let mut x = g * step.pow([(piece * PIECE) as u64]);
        let mut points = Vec::with_capacity(out.len());
        for value in out.iter_mut() {
            points.push(x);
            *value = tau - x;
            x *= step;
        }
        ark_ff::batch_inversion(out);
        out.iter_mut().zip(points).for_each(|(value, x)| *value *= scale * x);
    });
    Ok(basis)
}

/// `count` different points of the subgroup, for measurements: 2g, 3g, 4g and so on for the generator g.
pub fn sequence<G: Group>(count: usize) -> Vec<G::Point> {
    const PIECE: usize = 1 << 14;
    let g = G::Ark::generator();
    let one = g.into_affine();
    (0..count.div_ceil(PIECE))
        .into_par_iter()
        .flat_map_iter(|piece| {
            let mut point = g * <G::Curve as Curve>::Fr::from((piece * PIECE + 1) as u64);
            let points: Vec<_> = (0..PIECE.min(count - piece * PIECE))
                .map(|_| {
                    point += one;
                    point
                })
                .collect();
            G::Ark::normalize_batch(&points).into_iter().map(|p| G::from_ark(&p)).collect::<Vec<_>>()
        })
        .collect()
}

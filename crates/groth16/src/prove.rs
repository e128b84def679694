//! The proof.

use crate::plan::{Chains, Sum};
use crate::{Error, ProvingKey, Result, P1, P2};
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, PrimeField};
use rayon::prelude::*;
use tandem_ops::{
    Backend, Buffer, Canonical, Coset, Curve, Digits, Direction, Group, Lane, Mont, Msm, NttOp, Order, Pending,
    ProofBackend, Scalars,
};
use zeroize::Zeroize;

/// A proof.
#[derive(Debug, Clone, Copy)]
pub struct Proof<C: Curve> {
    /// A in G1.
    pub a: P1<C>,
    /// B in G2.
    pub b: P2<C>,
    /// C in G1.
    pub c: P1<C>,
}

impl<C: Curve> PartialEq for Proof<C> {
    fn eq(&self, other: &Self) -> bool {
        self.a == other.a && self.b == other.b && self.c == other.c
    }
}

/// The two random scalars that keep a proof from telling anything of its witness. Wiped when dropped.
pub struct Blinding<C: Curve> {
    r: C::Fr,
    s: C::Fr,
}

impl<C: Curve> Blinding<C> {
    /// Draws both from the operating system.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn random() -> Result<Self> {
        Ok(Self { r: random_scalar::<C>()?, s: random_scalar::<C>()? })
    }

    /// Takes these two. A proof with known blinding gives its witness away: for tests that compare proofs only.
    #[doc(hidden)]
    pub fn fixed(r: C::Fr, s: C::Fr) -> Self {
        Self { r, s }
    }
}

impl<C: Curve> Drop for Blinding<C> {
    fn drop(&mut self) {
        self.r.zeroize();
        self.s.zeroize();
    }
}

/// A scalar of which all values are equally likely: bits of the modulus's length are drawn until they are below it.
fn random_scalar<C: Curve>() -> Result<C::Fr> {
    let bits = C::Fr::MODULUS_BIT_SIZE;
    let mut limbs = [0u64; 4];
    loop {
        getrandom::fill(bytemuck::bytes_of_mut(&mut limbs)).map_err(|e| Error::Random(e.to_string()))?;
        limbs[3] &= u64::MAX >> (256 - bits);
        let scalar = C::from_canonical(Canonical(limbs));
        limbs.zeroize();
        if let Some(scalar) = scalar {
            return Ok(scalar);
        }
    }
}

/// Makes a proof. It is not verified here, and a witness that does not satisfy the circuit is not noticed: whoever
/// returns proofs calls [`crate::PreparedKey::verify`] on each.
///
/// # Errors
/// [`Error::Witness`] for one of another length, without its leading 1, or with a value that is not below the
/// modulus; [`Error::Backend`].
pub fn prove<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    witness: &[Canonical],
    blinding: &Blinding<C>,
) -> Result<Proof<C>> {
    check_witness::<C>(witness, key.shape.variables)?;
    let Chains { a, b, c_inverse, c_forward } = key.schedule.chains;
    let on_a = timed(backend, a, "upload witness", || backend.upload(a, witness))?;
    let on_b = if a == b { None } else { Some(backend.copy(&on_a, 0..witness.len(), b)?) };

    // The sums over the witness first, G2 before G1: what is left of them for the host is done while the lanes
    // transform, and their digits are gone before the vectors of the transforms are made.
    let mut sums: Vec<PendingSum<C>> = Vec::new();
    for part in &key.witness {
        let (lane, range) = (part.share.lane, part.share.range.clone());
        let own;
        let scalars = if lane == a && range.len() == witness.len() {
            &on_a
        } else {
            own = backend.copy(&on_a, range, lane)?;
            &own
        };
        let digits = timed(backend, lane, "witness digits", || {
            Digits::<C>::digits(backend, &part.plan, Scalars::Canonical(scalars))
        })?;
        if let Some(bases) = &part.b2 {
            let sum = timed(backend, lane, "MSM B2", || Msm::<C::G2>::msm(backend, bases, &digits))?;
            sums.push(PendingSum::G2(sum));
        }
        for (sum, bases) in &part.g1 {
            let pending = timed(backend, lane, name(*sum), || Msm::<C::G1>::msm(backend, bases, &digits))?;
            sums.push(PendingSum::G1(Some(*sum), pending));
        }
    }

    let n = key.shape.domain;
    let mut va = backend.alloc::<Mont>(a, n)?;
    let mut vb = backend.alloc::<Mont>(b, n)?;
    timed(backend, a, "sparse product A", || backend.spmv(&key.matrix_a, &on_a, &mut va))?;
    timed(backend, b, "sparse product B", || backend.spmv(&key.matrix_b, on_b.as_ref().unwrap_or(&on_a), &mut vb))?;
    drop((on_a, on_b));

    // On the rows c = a*b, for any witness that satisfies the circuit.
    let mut vc = backend.copy(&va, 0..n, c_inverse)?;
    let copy_of_b = if b == c_inverse { None } else { Some(backend.copy(&vb, 0..n, c_inverse)?) };
    timed(backend, c_inverse, "a*b", || backend.mul(&mut vc, copy_of_b.as_ref().unwrap_or(&vb)))?;
    drop(copy_of_b);

    let (rows, odd) = (Coset::Subgroup, key.coset);
    let (natural, reversed) = (Order::Natural, Order::BitReversed);
    let to_coefficients = NttOp { direction: Direction::Inverse, coset: rows, input: natural, output: reversed };
    let to_odd_coset = NttOp { direction: Direction::Forward, coset: odd, input: reversed, output: natural };
    let transform = |v: &mut B::Buf<Mont>, name, op| timed(backend, v.lane(), name, || backend.ntt(v, op));
    transform(&mut va, "inverse NTT a", to_coefficients)?;
    transform(&mut vb, "inverse NTT b", to_coefficients)?;
    transform(&mut vc, "inverse NTT c", to_coefficients)?;
    if c_inverse != c_forward {
        vc = backend.copy(&vc, 0..n, c_forward)?;
    }
    transform(&mut va, "coset NTT a", to_odd_coset)?;
    transform(&mut vb, "coset NTT b", to_odd_coset)?;
    transform(&mut vc, "coset NTT c", to_odd_coset)?;

    for part in &key.quotient {
        let (lane, range) = (part.share.lane, part.share.range.clone());
        let values = if range.len() == n && [a, b, c_forward].iter().all(|&l| l == lane) {
            timed(backend, lane, "a*b - c", || backend.mul_sub(&mut va, &vb, &vc))?;
            None
        } else {
            let mut pa = backend.copy(&va, range.clone(), lane)?;
            let pb = backend.copy(&vb, range.clone(), lane)?;
            let pc = backend.copy(&vc, range, lane)?;
            timed(backend, lane, "a*b - c", || backend.mul_sub(&mut pa, &pb, &pc))?;
            Some(pa)
        };
        let digits = timed(backend, lane, "quotient digits", || {
            Digits::<C>::digits(backend, &part.plan, Scalars::Mont(values.as_ref().unwrap_or(&va)))
        })?;
        let pending = timed(backend, lane, "MSM H", || Msm::<C::G1>::msm(backend, &part.bases, &digits))?;
        sums.push(PendingSum::G1(None, pending));
    }
    drop((va, vb, vc));

    let mut total = Totals::zero();
    for sum in sums {
        match sum {
            PendingSum::G2(part) => add(&mut total.b2, part)?,
            PendingSum::G1(Some(Sum::A), part) => add(&mut total.a, part)?,
            PendingSum::G1(Some(Sum::B1), part) => add(&mut total.b1, part)?,
            PendingSum::G1(_, part) => add(&mut total.c, part)?,
        }
    }
    backend.synchronize()?;
    Ok(total.finish(key, blinding))
}

/// Checks what can be checked of a witness without the circuit.
fn check_witness<C: Curve>(witness: &[Canonical], variables: usize) -> Result<()> {
    if witness.len() != variables {
        let has = witness.len();
        return Err(Error::Witness(format!("the witness has {has} values; the key's circuit has {variables} wires")));
    }
    if witness.first() != Some(&Canonical([1, 0, 0, 0])) {
        return Err(Error::Witness("value 0 of the witness is not 1, as that of every circuit is".into()));
    }
    let below = |x: &Canonical| x.0.iter().rev().cmp(C::Fr::MODULUS.0.iter().rev()).is_lt();
    match witness.par_iter().position_first(|x| !below(x)) {
        Some(at) => Err(Error::Witness(format!("value {at} of the witness is not below the modulus of {}", C::ID))),
        None => Ok(()),
    }
}

/// Runs `work` within a span on the lane's timeline.
fn timed<B: Backend, T>(
    backend: &B,
    lane: Lane,
    name: &'static str,
    work: impl FnOnce() -> tandem_ops::Result<T>,
) -> Result<T> {
    let span = backend.begin(lane, name);
    let result = work();
    backend.end(span);
    Ok(result?)
}

fn add<A: CurveGroup>(total: &mut A, part: Pending<A>) -> Result<()> {
    let part: A = part.wait()?;
    *total += part;
    Ok(())
}

fn name(sum: Sum) -> &'static str {
    match sum {
        Sum::B2 => "MSM B2",
        Sum::A => "MSM A",
        Sum::B1 => "MSM B1",
        Sum::L => "MSM L",
    }
}

/// A lane's part of a sum; `None` is the sum over H.
enum PendingSum<C: Curve> {
    G1(Option<Sum>, Pending<<C::G1 as Group>::Ark>),
    G2(Pending<<C::G2 as Group>::Ark>),
}

/// The sums over all lanes. That over H only ever occurs with that over L: `c` is both.
struct Totals<C: Curve> {
    a: <C::G1 as Group>::Ark,
    b1: <C::G1 as Group>::Ark,
    b2: <C::G2 as Group>::Ark,
    c: <C::G1 as Group>::Ark,
}

impl<C: Curve> Totals<C> {
    fn zero() -> Self {
        let (g1, g2) = (AdditiveGroup::ZERO, AdditiveGroup::ZERO);
        Self { a: g1, b1: g1, b2: g2, c: g1 }
    }

    /// A = alpha + sum A + r delta; B = beta + sum B + s delta; C = sum L + sum H + s A + r B - r s delta.
    fn finish<B: ProofBackend<C>>(self, key: &ProvingKey<C, B>, blinding: &Blinding<C>) -> Proof<C> {
        let (r, s) = (blinding.r, blinding.s);
        let points = &key.points;
        let delta1 = C::G1::to_ark(&points.delta1);
        let a = self.a + C::G1::to_ark(&points.alpha1) + delta1 * r;
        let b1 = self.b1 + C::G1::to_ark(&points.beta1) + delta1 * s;
        let b2 = self.b2 + C::G2::to_ark(&points.beta2) + C::G2::to_ark(&points.delta2) * s;
        let c = self.c + a * s + b1 * r - delta1 * (r * s);
        Proof {
            a: C::G1::from_ark(&a.into_affine()),
            b: C::G2::from_ark(&b2.into_affine()),
            c: C::G1::from_ark(&c.into_affine()),
        }
    }
}

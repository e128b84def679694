//! Test keys without matrices, as bellperson makes them, and what its prover computes of a circuit for a proof with one.
//!
//! The circuit's rows are followed by one for the constant and each public wire that has this wire alone on its left side, as in
//! [`crate::setup`]. Row i is the i-th power of bellperson's root of unity, which is arkworks's too: 7^((r - 1) / n) on BLS12-381, where
//! snarkjs has 5. A and B have points for the wires that are named there alone; H is tau^i (tau^n - 1) / delta.

use crate::setup::{evaluate, invert, shape, single_points, Secret, Values, OP};
use crate::{Error, Evaluations, KeyPoints, PowersView, Progress, Result, Shape, P1, P2};
use ark_ec::PrimeGroup;
use ark_ff::{AdditiveGroup, FftField, Field, Zero};
use rayon::prelude::*;
use tandem_ops::{memory, Canonical, Curve, Group, HostBuf, Mont};
use tandem_proof::circuit::Circuit;
use tandem_proof::fixed_base::Table;
use zeroize::Zeroizing;

/// The root of unity whose powers are the rows.
pub(crate) fn root<C: Curve>(domain: usize) -> Result<C::Fr> {
    let none = || Error::Key(format!("{} has no domain of {domain} rows", C::ID));
    C::Fr::get_root_of_unity(domain as u64).ok_or_else(none)
}

/// Which row each point of the backend's domain is: w^i = root^(m i), where w is the backend's root of unity ([`tandem_ops::NttField`]).
/// `None` where the roots are the same.
pub(crate) fn rows_of<C: Curve>(domain: usize) -> Result<Option<Vec<u32>>> {
    let log = domain.ilog2();
    let (root, none) = (root::<C>(domain)?, || Error::Key(format!("{} has no domain of {domain} rows", C::ID)));
    let target = C::root_of_unity(log).ok_or_else(none)?;
    // The exponent bit by bit, the lowest first: root^m is to agree with the target in ever larger quotients of the group.
    let (mut m, mut rest) = (0u64, target);
    let inverse = root.inverse().ok_or_else(none)?;
    for bit in 0..log {
        if rest.pow([1u64 << (log - 1 - bit)]) != C::Fr::ONE {
            m |= 1 << bit;
            rest *= inverse.pow([1u64 << bit]);
        }
    }
    if m == 1 || domain == 1 {
        return Ok(None);
    }
    let mut rows = memory::filled(OP, domain, 0u32)?;
    let mask = domain as u64 - 1;
    // Below 2^32, as the domain has at most 2^31 rows.
    rows.par_iter_mut().enumerate().for_each(|(i, row)| *row = (m.wrapping_mul(i as u64) & mask) as u32);
    Ok(Some(rows))
}

/// A key without matrices, in host memory.
pub struct OwnedPowers<C: Curve> {
    /// Its sizes.
    pub shape: Shape,
    /// Points that belong to no wire.
    pub points: KeyPoints<C>,
    /// Points of the constant and the public wires.
    pub ic: Vec<P1<C>>,
    /// The quotient's points.
    pub h: Vec<P1<C>>,
    /// Those of the private wires.
    pub l: Vec<P1<C>>,
    /// A.
    pub a: Vec<P1<C>>,
    /// B in G1.
    pub b1: Vec<P1<C>>,
    /// B in G2.
    pub b2: Vec<P2<C>>,
}

impl<C: Curve> OwnedPowers<C> {
    /// Makes the key of `circuit`, all of it in memory.
    ///
    /// # Errors
    /// [`Error::Circuit`], also where a private wire is in no constraint: it would have no point; [`Error::Interrupted`];
    /// [`Error::Backend`] where there is not enough memory.
    pub fn make(circuit: &dyn Circuit<C>, secret: &Secret<C>, progress: &dyn Progress) -> Result<Self> {
        let shape = shape(circuit)?;
        let Shape { variables, publics, domain } = shape;
        let (mut values, _) = evaluate(circuit, shape, root::<C>(domain)?, secret, progress)?;
        let over_delta = invert(*secret.delta)?;
        let Values { a, b, c } = &mut values;
        for (wire, ((c, a), b)) in c.iter_mut().zip(a.iter()).zip(b.iter()).enumerate() {
            *c += *secret.beta * a + *secret.alpha * b;
            if wire > publics {
                *c *= over_delta;
                if c.is_zero() {
                    return Err(Error::Circuit(format!("wire {wire} is in no constraint, and would have no point")));
                }
            }
        }
        let mut power = (secret.tau.pow([domain as u64]) - C::Fr::ONE) * over_delta;
        let mut h = Zeroizing::new(memory::filled(OP, domain - 1, C::Fr::ZERO)?);
        for value in h.iter_mut() {
            *value = power;
            power *= *secret.tau;
        }
        let named =
            |values: &[C::Fr]| Zeroizing::new(values.iter().copied().filter(|x| !x.is_zero()).collect::<Vec<_>>());
        let (a, b) = (named(a), named(b));
        let g1 = Table::<C::G1>::new(<C::G1 as Group>::Ark::generator(), 3 * variables + domain)?;
        let g2 = Table::<C::G2>::new(<C::G2 as Group>::Ark::generator(), variables)?;
        let of_g1 = |task, scalars: &[C::Fr]| {
            progress.start(task, scalars.len() as u64);
            let mut points = Vec::with_capacity(scalars.len());
            g1.multiply(scalars, progress, |part| {
                points.extend_from_slice(part);
                Ok(())
            })?;
            Result::Ok(points)
        };
        let mut b2 = Vec::with_capacity(b.len());
        progress.start("points B2", b.len() as u64);
        g2.multiply(&b, progress, |part| {
            b2.extend_from_slice(part);
            Ok(())
        })?;
        Ok(Self {
            shape,
            points: single_points(secret),
            ic: of_g1("points IC", &c[..=publics])?,
            h: of_g1("points H", &h)?,
            l: of_g1("points L", &c[publics + 1..])?,
            a: of_g1("points A", &a)?,
            b1: of_g1("points B1", &b)?,
            b2,
        })
    }

    /// The key as a view.
    pub fn view(&self) -> PowersView<'_, C> {
        PowersView {
            shape: self.shape,
            points: self.points.clone(),
            ic: self.ic.as_slice().into(),
            a: self.a.as_slice().into(),
            b1: self.b1.as_slice().into(),
            b2: self.b2.as_slice().into(),
            l: self.l.as_slice().into(),
            h: self.h.as_slice().into(),
        }
    }
}

/// What bellperson's prover computes of a circuit at a witness.
///
/// # Errors
/// [`Error::Circuit`]; [`Error::Witness`] for a witness of another circuit; [`Error::Backend`] where there is not enough memory.
pub fn evaluations<C: Curve>(circuit: &dyn Circuit<C>, witness: &[Canonical]) -> Result<Evaluations<C>> {
    let Shape { variables, publics, .. } = shape(circuit)?;
    if witness.len() != variables {
        let has = witness.len();
        return Err(Error::Witness(format!("the witness has {has} values; the circuit has {variables} wires")));
    }
    let value = |wire: u32| {
        let value = witness.get(wire as usize).and_then(|&x| C::from_canonical(x));
        value.ok_or_else(|| Error::Circuit(format!("wire {wire} is none of the circuit's {variables}")))
    };
    let rows = circuit.constraints() + publics + 1;
    let mut sides = [HostBuf::<Mont>::zeros(rows)?, HostBuf::zeros(rows)?];
    let mut named = [memory::filled(OP, variables, false)?, memory::filled(OP, variables, false)?];
    let mut row = 0;
    circuit.walk(&mut |constraint| {
        for ((side, named), terms) in sides.iter_mut().zip(&mut named).zip([&constraint.a, &constraint.b]) {
            let mut sum = Zeroizing::new(C::Fr::ZERO);
            for (wire, coefficient) in terms {
                *sum += value(*wire)? * coefficient;
                named[*wire as usize] |= !coefficient.is_zero();
            }
            let more = || Error::Circuit("more constraints than the circuit says".into());
            *side.get_mut(row).ok_or_else(more)? = C::mont(*sum);
        }
        row += 1;
        Ok(())
    })?;
    for wire in 0..=publics {
        sides[0][rows - publics - 1 + wire] = C::mont(value(wire as u32)?);
        named[0][wire] = true;
    }
    let wires = |named: &[bool]| (0u32..).zip(named).filter_map(|(wire, &is)| is.then_some(wire)).collect::<Vec<_>>();
    let ([a, b], [in_a, in_b]) = (sides, named.each_ref().map(|named| wires(named)));
    Evaluations::check(a, b, in_a, in_b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops::{Bls12_381, Bn254};

    fn rows_are_those_of_the_root<C: Curve>() -> bool {
        let mut same = true;
        for log in 0..12 {
            let (domain, root) = (1usize << log, root::<C>(1 << log).unwrap());
            let w = C::root_of_unity(log).unwrap();
            let Some(rows) = rows_of::<C>(domain).unwrap() else {
                assert!(root == w || domain == 1);
                continue;
            };
            same = false;
            for (i, row) in rows.iter().enumerate() {
                assert_eq!(root.pow([u64::from(*row)]), w.pow([i as u64]), "row {i} of {domain}");
            }
        }
        same
    }

    #[test]
    fn rows_have_their_points() {
        assert!(!rows_are_those_of_the_root::<Bls12_381>());
        assert!(rows_are_those_of_the_root::<Bn254>());
    }
}

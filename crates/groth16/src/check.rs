//! Whether the points of a key are what they must be.
//!
//! Those that belong to no wire are checked whenever a key is loaded: a proof hides its witness as long as delta is
//! no infinity (docs/design/key-trust.md). Those of the sections are many, so that their check is asked for.

mod absent;
mod sections;

use crate::{Error, KeyPoints, KeyView, Progress, Result};
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{Field, PrimeField, Zero};
use sections::Sections;
use tandem_ops::{Curve, Group};

/// What is wrong with a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A coordinate that is not below the modulus.
    Range,
    /// It does not satisfy the curve's equation.
    Curve,
    /// It does not lie in the subgroup of prime order.
    Subgroup,
    /// It is the point at infinity, where that would undo what the point is for.
    Infinity,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fault::Range => "has a coordinate that is not below the modulus",
            Fault::Curve => "is not on the curve",
            Fault::Subgroup => "is not in the subgroup of prime order",
            Fault::Infinity => "is the point at infinity",
        })
    }
}

/// Checks one point in full. Infinity is a point as any other.
///
/// # Errors
/// What is wrong with it.
pub fn check_point<G: Group>(point: &G::Point) -> std::result::Result<(), Fault> {
    check_curve::<G>(point)?;
    if G::is_in_subgroup(point) {
        Ok(())
    } else {
        Err(Fault::Subgroup)
    }
}

/// Checks one point in full that must not be infinity.
pub(crate) fn check_finite<G: Group>(point: &G::Point) -> std::result::Result<(), Fault> {
    check_point::<G>(point)?;
    if G::to_ark(point).is_zero() {
        return Err(Fault::Infinity);
    }
    Ok(())
}

/// Checks that a point's coordinates are below the modulus and satisfy the curve's equation.
pub(crate) fn check_curve<G: Group>(point: &G::Point) -> std::result::Result<(), Fault> {
    type Base<G> = <<<G as Group>::Ark as CurveGroup>::BaseField as Field>::BasePrimeField;
    let modulus = Base::<G>::MODULUS;
    let modulus: &[u64] = modulus.as_ref();
    let limbs: &[u64] = bytemuck::cast_slice(bytemuck::bytes_of(point));
    if limbs.chunks(modulus.len()).any(|c| c.iter().rev().cmp(modulus.iter().rev()).is_ge()) {
        return Err(Fault::Range);
    }
    if G::is_on_curve(point) {
        Ok(())
    } else {
        Err(Fault::Curve)
    }
}

/// Whether two points are the same multiple of their groups' generators.
fn same_multiple<C: Curve>(p: <C::G1 as Group>::Ark, q: <C::G2 as Group>::Ark) -> bool {
    let (g1, g2) = (<C::G1 as Group>::Ark::generator(), <C::G2 as Group>::Ark::generator());
    C::Pairing::multi_pairing([p, -g1], [g2, q]).is_zero()
}

/// Checks the points that belong to no wire in full, that none is infinity, and that beta and delta are the same in
/// both groups. Takes a few milliseconds.
///
/// # Errors
/// [`Error::Key`] that names the point.
pub(crate) fn check_single_points<C: Curve>(points: &KeyPoints<C>) -> Result<()> {
    for (name, point) in [("alpha", &points.alpha1), ("beta", &points.beta1), ("delta", &points.delta1)] {
        check_finite::<C::G1>(point).map_err(|fault| Error::Key(format!("point {name} in G1 {fault}")))?;
    }
    for (name, point) in [("beta", &points.beta2), ("gamma", &points.gamma2), ("delta", &points.delta2)] {
        check_finite::<C::G2>(point).map_err(|fault| Error::Key(format!("point {name} in G2 {fault}")))?;
    }
    let same = |p, q| same_multiple::<C>(C::G1::to_ark(p).into_group(), C::G2::to_ark(q).into_group());
    let (beta, delta) = rayon::join(|| same(&points.beta1, &points.beta2), || same(&points.delta1, &points.delta2));
    for (name, is_same) in [("beta", beta), ("delta", delta)] {
        if !is_same {
            return Err(Error::Key(format!(
                "point {name} in G1 and point {name} in G2 do not belong together; take the key again from where it was made"
            )));
        }
    }
    Ok(())
}

/// Checks all points of a key: that each is below the modulus, on its curve and in its subgroup, that those of no wire
/// are as each load asks for, that B is the same in both groups, and that points are infinity where the matrices say so and nowhere
/// else.
///
/// # Errors
/// [`Error::Key`] that names the point; [`Error::Interrupted`].
pub fn check_points<C: Curve>(key: &KeyView<'_, C>, progress: &dyn Progress) -> Result<()> {
    key.check_sizes()?;
    let total = key.ic.len() + key.a.len() + key.b1.len() + key.b2.len() + key.l.len() + key.h.len();
    progress.start("check points", total as u64);
    check_single_points(&key.points)?;
    let sections = Sections::new(progress)?;
    sections.check::<C::G1>("IC (3)", key.ic)?;
    sections.check::<C::G1>("A (5)", key.a)?;
    sections.check_both::<C>(("B1 (6)", key.b1), ("B2 (7)", key.b2))?;
    sections.check::<C::G1>("C (8)", key.l)?;
    sections.check::<C::G1>("H (9)", key.h)?;
    absent::check(key)
}

#[cfg(test)]
mod tests;

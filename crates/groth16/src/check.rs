//! Whether the points of a key are what they must be.
//!
//! Those that belong to no wire are checked whenever a key is loaded: a proof hides its witness as long as delta is
//! no infinity (docs/design/key-trust.md). Those of the sections are many, so that their check is asked for.

mod absent;
mod lanes;
mod sections;

use crate::{Error, KeyPoints, KeyView, PowersView, Progress, Result};
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, PrimeGroup};
use ark_ff::Zero;
use sections::Sections;
use tandem_ops::{Curve, Group};
use tandem_proof::points::{check_curve, check_finite};

pub use lanes::{points_pass, powers_pass};
pub use tandem_proof::points::{check_point, Fault};

/// A point of each group, the same multiple of some generators that nobody need know.
#[derive(Clone, Copy)]
pub(crate) struct Bases<C: Curve>(<C::G1 as Group>::Ark, <C::G2 as Group>::Ark);

impl<C: Curve> Bases<C> {
    /// The generators themselves.
    pub(crate) fn generators() -> Self {
        Bases(<C::G1 as Group>::Ark::generator(), <C::G2 as Group>::Ark::generator())
    }

    /// delta in both groups: bellperson's setup draws generators, and keeps none.
    pub(crate) fn delta(points: &KeyPoints<C>) -> Self {
        Bases(C::G1::to_ark(&points.delta1).into_group(), C::G2::to_ark(&points.delta2).into_group())
    }

    /// Whether two points are the same multiple of these.
    fn same_multiple(self, p: <C::G1 as Group>::Ark, q: <C::G2 as Group>::Ark) -> bool {
        C::Pairing::multi_pairing([p, -self.0], [self.1, q]).is_zero()
    }
}

/// Checks the points that belong to no wire in full, that none is infinity, and that beta and delta are the same in
/// both groups. Takes a few milliseconds.
///
/// # Errors
/// [`Error::Key`] that names the point.
pub(crate) fn check_single_points<C: Curve>(points: &KeyPoints<C>) -> Result<()> {
    check_each_single_point(points)?;
    let bases = Bases::<C>::generators();
    let same = |p, q| bases.same_multiple(C::G1::to_ark(p).into_group(), C::G2::to_ark(q).into_group());
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

/// As [`check_single_points`], for a key whose generators are not known: that beta is the same multiple of delta in both groups.
///
/// # Errors
/// [`Error::Key`] that names the point.
pub(crate) fn check_powers_single_points<C: Curve>(points: &KeyPoints<C>) -> Result<()> {
    check_each_single_point(points)?;
    let (beta1, beta2) = (C::G1::to_ark(&points.beta1).into_group(), C::G2::to_ark(&points.beta2).into_group());
    if !Bases::<C>::delta(points).same_multiple(beta1, beta2) {
        let problem =
            "points beta and delta in G1 and in G2 do not belong together; take the key again from where it was made";
        return Err(Error::Key(problem.into()));
    }
    Ok(())
}

/// Checks the points that belong to no wire in full, and that none is infinity.
fn check_each_single_point<C: Curve>(points: &KeyPoints<C>) -> Result<()> {
    for (name, point) in [("alpha", &points.alpha1), ("beta", &points.beta1), ("delta", &points.delta1)] {
        check_finite::<C::G1>(point).map_err(|fault| Error::Key(format!("point {name} in G1 {fault}")))?;
    }
    for (name, point) in [("beta", &points.beta2), ("gamma", &points.gamma2), ("delta", &points.delta2)] {
        check_finite::<C::G2>(point).map_err(|fault| Error::Key(format!("point {name} in G2 {fault}")))?;
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
    sections.check::<C::G1>("IC (3)", key.ic.into())?;
    sections.check::<C::G1>("A (5)", key.a)?;
    sections.check_both::<C>(Bases::generators(), ("B1 (6)", key.b1), ("B2 (7)", key.b2))?;
    sections.check::<C::G1>("C (8)", key.l)?;
    sections.check::<C::G1>("H (9)", key.h)?;
    absent::check(key)
}

/// Checks all points of a key without matrices as [`check_points`] does. None of them may be infinity: each belongs to a wire that the
/// circuit names there.
///
/// # Errors
/// As [`check_points`].
pub fn check_powers_points<C: Curve>(key: &PowersView<'_, C>, progress: &dyn Progress) -> Result<()> {
    key.check_sizes()?;
    let total = key.ic.len() + key.a.len() + key.b1.len() + key.b2.len() + key.l.len() + key.h.len();
    progress.start("check points", total as u64);
    check_powers_single_points(&key.points)?;
    let sections = Sections::new(progress)?;
    sections.check::<C::G1>("IC", key.ic.into())?;
    sections.check::<C::G1>("H", key.h)?;
    sections.check::<C::G1>("L", key.l)?;
    sections.check::<C::G1>("A", key.a)?;
    sections.check_both::<C>(Bases::delta(&key.points), ("B1", key.b1), ("B2", key.b2))?;
    absent::none(key)
}

#[cfg(test)]
mod tests;

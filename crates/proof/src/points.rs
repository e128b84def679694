//! Whether single points are what they must be.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{Field, PrimeField};
use tandem_ops::Group;

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
///
/// # Errors
/// What is wrong with it.
pub fn check_finite<G: Group>(point: &G::Point) -> std::result::Result<(), Fault> {
    check_point::<G>(point)?;
    if G::to_ark(point).is_zero() {
        return Err(Fault::Infinity);
    }
    Ok(())
}

/// Checks that a point's coordinates are below the modulus and satisfy the curve's equation.
///
/// # Errors
/// What is wrong with it.
pub fn check_curve<G: Group>(point: &G::Point) -> std::result::Result<(), Fault> {
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

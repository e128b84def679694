//! Element-wise arithmetic over the scalar field.

use crate::{Backend, Canonical, Curve, Error, Lane, Mont, Result};

/// Most terms of [`VecOps::combined`].
pub const TERMS_MAX: usize = 16;

/// Element-wise arithmetic on vectors on one lane, of equal length but for [`VecOps::add_scaled`] and [`VecOps::combined`].
///
/// # Errors
/// Every operation: lengths or lanes differ; the device failed.
#[allow(clippy::missing_errors_doc)]
pub trait VecOps<C: Curve>: Backend {
    /// a_i += b_i
    fn add(&self, a: &mut Self::Buf<Mont>, b: &Self::Buf<Mont>) -> Result<()>;
    /// a_i -= b_i
    fn sub(&self, a: &mut Self::Buf<Mont>, b: &Self::Buf<Mont>) -> Result<()>;
    /// a_i *= b_i
    fn mul(&self, a: &mut Self::Buf<Mont>, b: &Self::Buf<Mont>) -> Result<()>;
    /// a_i *= k
    fn scale(&self, a: &mut Self::Buf<Mont>, k: Mont) -> Result<()>;
    /// a_i = a_i * b_i - c_i
    fn mul_sub(&self, a: &mut Self::Buf<Mont>, b: &Self::Buf<Mont>, c: &Self::Buf<Mont>) -> Result<()>;
    /// a_(first + i step) += k b_i for each element of b, the others stay: adds a polynomial to some of the coefficients of a longer one.
    /// The step is at least 1, and a reaches as far as b asks; where b is empty, nothing happens.
    fn add_scaled(
        &self,
        a: &mut Self::Buf<Mont>,
        first: usize,
        step: usize,
        b: &Self::Buf<Mont>,
        k: Mont,
    ) -> Result<()>;
    /// New memory of `len` elements, the sum of k_j times vector j over all `terms`, as of polynomials: a vector that is shorter than `len`
    /// goes on with zeros. There are one to [`TERMS_MAX`] terms, none longer than `len`, all on one lane, which is the result's.
    fn combined(&self, len: usize, terms: &[(&Self::Buf<Mont>, Mont)]) -> Result<Self::Buf<Mont>>;
    /// out_i = a_i as an integer
    fn to_canonical(&self, a: &Self::Buf<Mont>, out: &mut Self::Buf<Canonical>) -> Result<()>;
    /// out_i = a_i in Montgomery form
    fn to_mont(&self, a: &Self::Buf<Canonical>, out: &mut Self::Buf<Mont>) -> Result<()>;
}

/// Fails unless `a`, of this lane and length, has the places `first`, `first + step`, .. for all elements of `b`.
///
/// # Errors
/// [`Error::Invalid`] with what does not fit.
pub fn check_add_scaled(a: (Lane, usize), first: usize, step: usize, b: (Lane, usize)) -> Result<()> {
    const OP: &str = "add_scaled";
    if a.0 != b.0 {
        return Err(Error::invalid(OP, format!("vectors on lanes {} and {}", a.0 .0, b.0 .0)));
    }
    let last = b.1.checked_sub(1).map(|last| last.checked_mul(step).and_then(|steps| steps.checked_add(first)));
    if step == 0 || last.is_some_and(|last| last.is_none_or(|last| last >= a.1)) {
        let reason = format!("{} elements, one for every {step} from {first} on, of a vector of {}", b.1, a.1);
        return Err(Error::invalid(OP, reason));
    }
    Ok(())
}

/// The lane of a combination of vectors with these lanes and lengths.
///
/// # Errors
/// [`Error::Invalid`] with what does not fit.
pub fn check_combined(len: usize, terms: &[(Lane, usize)]) -> Result<Lane> {
    const OP: &str = "combined";
    let Some(&(lane, _)) = terms.first().filter(|_| terms.len() <= TERMS_MAX) else {
        return Err(Error::invalid(OP, format!("{} terms; expected 1 to {TERMS_MAX}", terms.len())));
    };
    match terms.iter().find(|term| term.0 != lane || term.1 > len) {
        Some(term) => {
            let (other, lane, has) = (term.0 .0, lane.0, term.1);
            Err(Error::invalid(OP, format!("a vector of {has} elements on lane {other} for {len} on lane {lane}")))
        }
        None => Ok(lane),
    }
}

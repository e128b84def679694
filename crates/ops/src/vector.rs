//! Element-wise arithmetic over the scalar field.

use crate::{Backend, Canonical, Curve, Mont, Result};

/// Element-wise arithmetic on vectors of equal length on one lane.
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
    /// out_i = a_i as an integer
    fn to_canonical(&self, a: &Self::Buf<Mont>, out: &mut Self::Buf<Canonical>) -> Result<()>;
    /// out_i = a_i in Montgomery form
    fn to_mont(&self, a: &Self::Buf<Canonical>, out: &mut Self::Buf<Mont>) -> Result<()>;
}

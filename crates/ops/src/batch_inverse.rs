//! Inverses of many elements of the scalar field at once.

use crate::{Backend, Curve, Mont, Result};

/// Inverses by Montgomery's trick: one inversion of a product serves many elements, at three products each (P. L. Montgomery,
/// Mathematics of Computation 48, 1987, page 243, section 10.3.1).
pub trait BatchInverse<C: Curve>: Backend {
    /// Replaces every element of `data` by its inverse. Zero has none and stays zero: no other element is changed by it. Whoever divides
    /// by what may be zero sees to that itself, since only the device knows and nobody waits for it.
    ///
    /// # Errors
    /// Not enough memory for as many elements again; the device failed.
    fn batch_inverse(&self, data: &mut Self::Buf<Mont>) -> Result<()>;
}

//! Circuits as sets of constraints.

use crate::Result;
use tandem_ops::Curve;

/// A linear combination of wires.
pub type Terms<C> = Vec<(u32, <C as Curve>::Fr)>;

/// One constraint: the product of `a` and `b` is `c`.
#[derive(Debug, Clone)]
pub struct Constraint<C: Curve> {
    /// Left factor.
    pub a: Terms<C>,
    /// Right factor.
    pub b: Terms<C>,
    /// Product.
    pub c: Terms<C>,
}

/// A circuit that can be walked through, row by row, more than once.
pub trait Circuit<C: Curve> {
    /// Number of constraints.
    fn constraints(&self) -> usize;
    /// Number of wires, the constant 1 among them.
    fn variables(&self) -> usize;
    /// Number of public outputs and inputs: wires 1 to this.
    fn publics(&self) -> usize;
    /// Calls `row` with each constraint in order. The walk ends at the first error, which it returns.
    ///
    /// # Errors
    /// [`crate::Error::Circuit`] where the circuit cannot be read; those of `row`.
    fn walk(&self, row: &mut dyn FnMut(&Constraint<C>) -> Result<()>) -> Result<()>;
}

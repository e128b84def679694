//! Scans over vectors of scalars: prefix products, and Horner's scheme, which evaluates and divides polynomials.

use crate::{Backend, Curve, Error, Mont, Pending, Result};

/// Prefix products, and polynomials given by their coefficients, the one of X^0 first. Each is a scan: element i follows from what the
/// elements on one side of it make together. Backends cut a vector into chunks, find what each makes, scan that, and then each
/// chunk goes on from what is before it (G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990).
pub trait Scan<C: Curve>: Backend {
    /// Replaces element i of `data` by the product of the elements before it, the first one by 1, and gives the product of all; that of
    /// none is 1.
    ///
    /// Of a vector in pieces on several lanes, piece by piece: the elements of a piece times the products of the pieces before it
    /// ([`crate::VecOps::scale`]) are those of the whole.
    ///
    /// # Errors
    /// Not enough memory for a fifteenth of `data`; the device failed.
    fn prefix_product(&self, data: &mut Self::Buf<Mont>) -> Result<Pending<Mont>>;

    /// The value at `x` of the polynomial with these coefficients; that of none is 0.
    ///
    /// # Errors
    /// As [`Scan::prefix_product`].
    fn evaluate(&self, coefficients: &Self::Buf<Mont>, x: Mont) -> Result<Pending<Mont>>;

    /// Divides the polynomial with these coefficients by X^m - b. The first m elements become the remainder's coefficients, the others
    /// the quotient's: element i becomes the sum of c_(i + k m) b^k over k from 0 on. Where there are no more than m, nothing changes.
    ///
    /// # Errors
    /// m is 0; as [`Scan::prefix_product`].
    fn divide(&self, coefficients: &mut Self::Buf<Mont>, m: usize, b: Mont) -> Result<()>;
}

/// Fails unless X^m - b is a divisor.
///
/// # Errors
/// m is 0.
pub fn check_divisor(m: usize) -> Result<()> {
    if m == 0 {
        return Err(Error::invalid("divide", "the divisor X^m - b has m = 0; expected at least 1"));
    }
    Ok(())
}

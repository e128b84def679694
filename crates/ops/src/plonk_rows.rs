//! What the gates and the permutation of PLONK say, row by row: of values on the domain, or on a coset of it.

use crate::{Backend, Curve, Error, Lane, Mont, Result};

/// Rows of PLONK. All vectors are of one length and lie on one lane; the result is new memory of that lane.
pub trait PlonkRows<C: Curve>: Backend {
    /// qm a b + ql a + qr b + qo c + qc for the columns a, b, c and the selectors qm, ql, qr, qo, qc: zero where the gate of a row holds.
    ///
    /// # Errors
    /// Lengths or lanes differ; not enough memory; the device failed.
    fn gate_rows(&self, columns: [&Self::Buf<Mont>; 3], selectors: [&Self::Buf<Mont>; 5]) -> Result<Self::Buf<Mont>>;

    /// The product of column_j + factor_j place_j + gamma over the three columns: what a row gives to one side of the grand product. For the
    /// rows themselves a place is the row's root of unity and the factors are beta, beta k1 and beta k2; for what is permuted a place is
    /// where the column's value comes from, and all factors are beta.
    ///
    /// # Errors
    /// As [`PlonkRows::gate_rows`].
    fn permuted_rows(
        &self,
        columns: [&Self::Buf<Mont>; 3],
        places: [&Self::Buf<Mont>; 3],
        factors: [Mont; 3],
        gamma: Mont,
    ) -> Result<Self::Buf<Mont>>;
}

/// The lane and the length that all of these vectors have.
///
/// # Errors
/// [`Error::Invalid`] with two that differ.
pub fn common(op: &'static str, vectors: &[(Lane, usize)]) -> Result<(Lane, usize)> {
    let first = vectors.first().copied().unwrap_or((Lane(0), 0));
    match vectors.iter().find(|vector| **vector != first) {
        Some((lane, len)) => {
            let reason = format!("vectors of {} and {len} elements on lanes {} and {}", first.1, first.0 .0, lane.0);
            Err(Error::invalid(op, reason))
        }
        None => Ok(first),
    }
}

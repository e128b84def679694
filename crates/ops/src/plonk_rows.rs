//! What the gates and the permutation of PLONK say, row by row: of values on the domain, or on a coset of it.

use crate::{Backend, Curve, Error, Lane, Mont, Result};

/// Vectors whose rows make PLONK's quotient on a coset, times what the domain's polynomial is there.
#[derive(Debug)]
pub struct QuotientRows<'a, V> {
    /// a, b and c.
    pub columns: [&'a V; 3],
    /// z, and z one row on.
    pub product: [&'a V; 2],
    /// qm, ql, qr, qo and qc.
    pub selectors: [&'a V; 5],
    /// s1, s2 and s3.
    pub permutation: [&'a V; 3],
    /// x: each row's point.
    pub x: &'a V,
    /// l1: the polynomial that is one on the domain's first row and zero on the others.
    pub first: &'a V,
}

impl<'a, V> QuotientRows<'a, V> {
    /// All of them, in the order of the fields.
    pub fn vectors(&self) -> [&'a V; 15] {
        let ([a, b, c], [z, zw]) = (self.columns, self.product);
        let ([qm, ql, qr, qo, qc], [s1, s2, s3]) = (self.selectors, self.permutation);
        [a, b, c, z, zw, qm, ql, qr, qo, qc, s1, s2, s3, self.x, self.first]
    }

    /// With another in place of each.
    pub fn map<W>(&self, f: impl Fn(&'a V) -> &'a W) -> QuotientRows<'a, W> {
        QuotientRows {
            columns: self.columns.map(&f),
            product: self.product.map(&f),
            selectors: self.selectors.map(&f),
            permutation: self.permutation.map(&f),
            x: f(self.x),
            first: f(self.first),
        }
    }
}

/// The numbers that PLONK's quotient is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotientAt {
    /// What keeps the three conditions apart.
    pub alpha: Mont,
    /// What stands before a place.
    pub beta: Mont,
    /// What is added to each factor of the grand product.
    pub gamma: Mont,
    /// k1 and k2: what takes the domain to the cosets of the second and the third column.
    pub k: [Mont; 2],
    /// By what l1 is multiplied for the public values.
    pub public: Mont,
}

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

    /// What must vanish on the domain, on the rows of a coset:
    ///
    /// qm a b + ql a + qr b + qo c + qc + public l1
    /// + alpha ((a + beta x + gamma)(b + beta k1 x + gamma)(c + beta k2 x + gamma) z
    ///   - (a + beta s1 + gamma)(b + beta s2 + gamma)(c + beta s3 + gamma) zw) + alpha^2 (z - 1) l1
    ///
    /// # Errors
    /// As [`PlonkRows::gate_rows`].
    fn quotient_rows(&self, of: &QuotientRows<'_, Self::Buf<Mont>>, at: &QuotientAt) -> Result<Self::Buf<Mont>>;
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

//! What a caller has computed of a circuit that the prover does not know.

use crate::{Error, Result};
use ark_ff::PrimeField;
use rayon::prelude::*;
use std::sync::Arc;
use tandem_ops::{Curve, HostBuf, Mont};
use zeroize::Zeroizing;

/// The sides of a circuit's constraints at a witness, row by row, and the wires that they name: for keys that hold no matrices. The right
/// side's product is not among them: the rows of a witness that satisfies the circuit have it. Wiped when dropped.
pub struct Evaluations<C: Curve> {
    a: Arc<HostBuf<Mont>>,
    b: Arc<HostBuf<Mont>>,
    named_in_a: Arc<Vec<u32>>,
    named_in_b: Arc<Vec<u32>>,
    blinding: Option<[Zeroizing<C::Fr>; 2]>,
}

impl<C: Curve> Evaluations<C> {
    /// Takes the values of the left and of the right factors, one a row, and the wires that have points in A and in B, each in ascending
    /// order.
    ///
    /// # Errors
    /// [`Error::Witness`] where there are more rows of one side than of the other, a value is not below the modulus, or wires are not in
    /// ascending order.
    pub fn new(
        a: HostBuf<Mont>,
        b: HostBuf<Mont>,
        named_in_a: impl Into<Arc<Vec<u32>>>,
        named_in_b: impl Into<Arc<Vec<u32>>>,
    ) -> Result<Self> {
        let (named_in_a, named_in_b) = (named_in_a.into(), named_in_b.into());
        if a.len() != b.len() {
            return Err(Error::Witness(format!("a has {} rows, b has {}; expected as many", a.len(), b.len())));
        }
        let below = |x: &Mont| x.0.iter().rev().cmp(C::Fr::MODULUS.0.iter().rev()).is_lt();
        for (name, side) in [("a", &a), ("b", &b)] {
            if let Some(row) = side.par_iter().position_first(|x| !below(x)) {
                let problem = format!("row {row} of {name} is not below the modulus of {}", C::ID);
                return Err(Error::Witness(problem));
            }
        }
        for (name, wires) in [("A", &named_in_a), ("B", &named_in_b)] {
            if let Some(at) = wires.par_windows(2).position_first(|pair| pair[0] >= pair[1]) {
                let problem = format!("wires with points in {name}: number {} is not above the one before", at + 1);
                return Err(Error::Witness(problem));
            }
        }
        let (a, b) = (Arc::new(a), Arc::new(b));
        Ok(Self { a, b, named_in_a, named_in_b, blinding: None })
    }

    /// These evaluations with the random scalars r and s of its one proof, which the caller has drawn. Whoever knows them learns of the witness from the
    /// proof, and so does who sees two proofs of different witnesses with the same.
    #[must_use]
    pub fn with_blinding(self, r: C::Fr, s: C::Fr) -> Self {
        Self { blinding: Some([Zeroizing::new(r), Zeroizing::new(s)]), ..self }
    }

    /// r and s, where the caller has drawn them.
    pub fn blinding(&self) -> Option<&[Zeroizing<C::Fr>; 2]> {
        self.blinding.as_ref()
    }

    /// The left factors, one a row.
    pub fn a(&self) -> &[Mont] {
        &self.a
    }

    /// The right factors, one a row.
    pub fn b(&self) -> &[Mont] {
        &self.b
    }

    /// Both factors as they are uploaded.
    pub fn shared(&self) -> [&Arc<HostBuf<Mont>>; 2] {
        [&self.a, &self.b]
    }

    /// Wires with points in A, ascending.
    pub fn named_in_a(&self) -> &Arc<Vec<u32>> {
        &self.named_in_a
    }

    /// Wires with points in B, ascending.
    pub fn named_in_b(&self) -> &Arc<Vec<u32>> {
        &self.named_in_b
    }
}

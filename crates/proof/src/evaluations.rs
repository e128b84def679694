//! What a caller has computed of a circuit that the prover does not know.

use crate::{Elements, Error, Result};
use rayon::prelude::*;
use std::sync::Arc;
use tandem_ops::{Curve, HostBuf, Mont};
use zeroize::Zeroizing;

/// Numbers of wires, in ascending order. Clones are the same.
#[derive(Clone)]
pub struct Wires(Arc<Vec<u32>>);

impl Wires {
    /// Takes them.
    ///
    /// # Errors
    /// [`Error::Witness`] where one is not above the one before.
    pub fn new(wires: Vec<u32>) -> Result<Self> {
        match wires.par_windows(2).position_first(|pair| pair[0] >= pair[1]) {
            Some(at) => Err(Error::Witness(format!("number {} is not above the one before", at + 1))),
            None => Ok(Wires(Arc::new(wires))),
        }
    }
}

/// The sides of a circuit's constraints at a witness, row by row, and the wires that they name: for keys that hold no matrices. The right
/// side's product is not among them: the rows of a witness that satisfies the circuit have it. Wiped when dropped.
pub struct Evaluations<C: Curve> {
    a: Arc<HostBuf<Mont>>,
    b: Arc<HostBuf<Mont>>,
    named_in_a: Wires,
    named_in_b: Wires,
    blinding: Option<[Zeroizing<C::Fr>; 2]>,
}

impl<C: Curve> Evaluations<C> {
    /// Takes the values of the left and of the right factors, one a row, and the wires that have points in A and in B.
    ///
    /// # Errors
    /// [`Error::Witness`] where there are more rows of one side than of the other.
    pub fn new(a: Elements<C>, b: Elements<C>, named_in_a: Wires, named_in_b: Wires) -> Result<Self> {
        let (a, b) = (Arc::new(a.into_inner()), Arc::new(b.into_inner()));
        if a.len() != b.len() {
            return Err(Error::Witness(format!("a has {} rows, b has {}; expected as many", a.len(), b.len())));
        }
        Ok(Self { a, b, named_in_a, named_in_b, blinding: None })
    }

    /// As [`Evaluations::new`], of values that nobody has checked.
    ///
    /// # Errors
    /// As [`Evaluations::new`]; [`Error::Witness`] where a value is not below the modulus, or wires are not in ascending order.
    pub fn check(a: HostBuf<Mont>, b: HostBuf<Mont>, named_in_a: Vec<u32>, named_in_b: Vec<u32>) -> Result<Self> {
        let side = |name, values| {
            let problem = |row| format!("row {row} of {name} is not below the modulus of {}", C::ID);
            Elements::check(values).map_err(|row| Error::Witness(problem(row)))
        };
        let wires =
            |name, wires| Wires::new(wires).map_err(|e| Error::Witness(format!("wires with points in {name}: {e}")));
        Self::new(side("a", a)?, side("b", b)?, wires("A", named_in_a)?, wires("B", named_in_b)?)
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
        &self.named_in_a.0
    }

    /// Wires with points in B, ascending.
    pub fn named_in_b(&self) -> &Arc<Vec<u32>> {
        &self.named_in_b.0
    }
}

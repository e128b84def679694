//! Witnesses.

use crate::{Error, Evaluations, Result};
use ark_ff::PrimeField;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::sync::Arc;
use tandem_ops::{Canonical, Curve, HostBuf};

/// The values of a circuit's wires. They are checked here, once, and not again by each proof. Wiped when dropped.
pub struct Witness<C: Curve> {
    values: Arc<HostBuf<Canonical>>,
    evaluations: Option<Arc<Evaluations<C>>>,
    of: PhantomData<fn() -> C>,
}

/// Shares the values, and copies none.
impl<C: Curve> Clone for Witness<C> {
    fn clone(&self) -> Self {
        Witness { values: self.values.clone(), evaluations: self.evaluations.clone(), of: PhantomData }
    }
}

impl<C: Curve> Witness<C> {
    /// Takes the values of all wires, the constant 1 first.
    ///
    /// # Errors
    /// [`Error::Witness`] if there is no leading 1, or a value is not below the modulus.
    pub fn new(values: impl Into<HostBuf<Canonical>>) -> Result<Self> {
        let values = values.into();
        if values.first() != Some(&Canonical([1, 0, 0, 0])) {
            return Err(Error::Witness("value 0 of the witness is not 1, as that of every circuit is".into()));
        }
        let below = |x: &Canonical| x.0.iter().rev().cmp(C::Fr::MODULUS.0.iter().rev()).is_lt();
        match values.par_iter().position_first(|x| !below(x)) {
            Some(at) => Err(Error::Witness(format!("value {at} of the witness is not below the modulus of {}", C::ID))),
            None => Ok(Self { values: Arc::new(values), evaluations: None, of: PhantomData }),
        }
    }

    /// This witness with the sides of the constraints at it, for keys that hold no matrices.
    #[must_use]
    pub fn with_evaluations(self, evaluations: Evaluations<C>) -> Self {
        Self { evaluations: Some(Arc::new(evaluations)), ..self }
    }

    /// The sides of the constraints, where the caller has given them.
    pub fn evaluations(&self) -> Option<&Evaluations<C>> {
        self.evaluations.as_deref()
    }

    /// The values.
    pub fn values(&self) -> &[Canonical] {
        &self.values
    }

    /// The values as they are uploaded.
    pub fn shared(&self) -> &Arc<HostBuf<Canonical>> {
        &self.values
    }
}

//! Witnesses.

use crate::{Elements, Error, Evaluations, Result};
use ark_ff::{One, PrimeField};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use tandem_ops::{Canonical, Curve, HostBuf, Mont};

/// The values of a circuit's wires. They are checked here, once, and not again by each proof. Wiped when dropped.
pub struct Witness<C: Curve> {
    /// Where they came so.
    elements: Option<Arc<HostBuf<Mont>>>,
    /// As integers: from the start, or when somebody has asked for them.
    values: Arc<OnceLock<Arc<HostBuf<Canonical>>>>,
    evaluations: Option<Arc<Evaluations<C>>>,
    of: PhantomData<fn() -> C>,
}

/// Values of wires as they came.
#[derive(Clone, Copy)]
pub enum Form<'a> {
    /// As integers.
    Canonical(&'a Arc<HostBuf<Canonical>>),
    /// In Montgomery form.
    Mont(&'a Arc<HostBuf<Mont>>),
}

/// Shares the values, and copies none.
impl<C: Curve> Clone for Witness<C> {
    fn clone(&self) -> Self {
        let (elements, values) = (self.elements.clone(), self.values.clone());
        Witness { elements, values, evaluations: self.evaluations.clone(), of: PhantomData }
    }
}

impl<C: Curve> Witness<C> {
    /// Takes the values of all wires, the constant 1 first.
    ///
    /// # Errors
    /// [`Error::Witness`] if there is no leading 1, or a value is not below the modulus.
    pub fn new(values: impl Into<HostBuf<Canonical>>) -> Result<Self> {
        let values = values.into();
        check_constant(values.first() == Some(&Canonical([1, 0, 0, 0])))?;
        let below = |x: &Canonical| x.0.iter().rev().cmp(C::Fr::MODULUS.0.iter().rev()).is_lt();
        match values.par_iter().position_first(|x| !below(x)) {
            Some(at) => Err(Error::Witness(format!("value {at} of the witness is not below the modulus of {}", C::ID))),
            None => {
                let values = Arc::new(OnceLock::from(Arc::new(values)));
                Ok(Self { elements: None, values, evaluations: None, of: PhantomData })
            }
        }
    }

    /// As [`Witness::new`], of values in Montgomery form, which are uploaded as they are.
    ///
    /// # Errors
    /// [`Error::Witness`] if there is no leading 1.
    pub fn of_elements(values: Elements<C>) -> Result<Self> {
        let values = values.into_inner();
        check_constant(values.first() == Some(&C::mont(C::Fr::one())))?;
        let elements = Some(Arc::new(values));
        Ok(Self { elements, values: Arc::default(), evaluations: None, of: PhantomData })
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

    /// How many values there are, the constant among them.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self.form() {
            Form::Canonical(values) => values.len(),
            Form::Mont(values) => values.len(),
        }
    }

    /// The first `count` values behind the constant, or as many as there are.
    pub fn publics(&self, count: usize) -> Vec<Canonical> {
        let range = 1..self.len().min(count.saturating_add(1)).max(1);
        match self.form() {
            Form::Canonical(values) => values[range].to_vec(),
            Form::Mont(values) => values[range].iter().map(|x| C::canonical(C::from_mont(*x))).collect(),
        }
    }

    /// The values as they came, which is how they are uploaded.
    pub fn form(&self) -> Form<'_> {
        match &self.elements {
            Some(elements) => Form::Mont(elements),
            None => Form::Canonical(self.shared()),
        }
    }

    /// The values as integers. Those that came in Montgomery form are converted the first time, and kept; where there is no memory for that
    /// there are none, as of no circuit's witness.
    pub fn values(&self) -> &[Canonical] {
        self.shared()
    }

    /// [`Witness::values`] as they are uploaded.
    pub fn shared(&self) -> &Arc<HostBuf<Canonical>> {
        self.values.get_or_init(|| {
            let elements: &[Mont] = self.elements.as_deref().map_or(&[], |elements| elements);
            let mut values = HostBuf::zeros(elements.len()).unwrap_or_else(|_| zeroize::Zeroizing::new(vec![]).into());
            let convert = |(to, from): (&mut Canonical, &Mont)| *to = C::canonical(C::from_mont(*from));
            values.par_iter_mut().zip(elements).for_each(convert);
            Arc::new(values)
        })
    }
}

fn check_constant(is_one: bool) -> Result<()> {
    match is_one {
        true => Ok(()),
        false => Err(Error::Witness("value 0 of the witness is not 1, as that of every circuit is".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::Field;
    use tandem_ops::{Bls12_381, Bn254};
    use zeroize::Zeroizing;

    fn forms_are_of_the_same_values<C: Curve>() {
        let values: Vec<C::Fr> =
            (1..50u64).map(|i| if i == 1 { C::Fr::one() } else { C::Fr::from(i).pow([77]) }).collect();
        let canonical: Vec<Canonical> = values.iter().map(|x| C::canonical(*x)).collect();
        let mont: Vec<Mont> = values.iter().map(|x| C::mont(*x)).collect();
        let of =
            |mont: Vec<Mont>| Witness::<C>::of_elements(Elements::check(Zeroizing::new(mont).into()).ok().unwrap());
        let came = [Witness::<C>::new(Zeroizing::new(canonical.clone())).unwrap(), of(mont.clone()).unwrap()];
        assert!(matches!(came[0].form(), Form::Canonical(values) if values[..] == canonical));
        assert!(matches!(came[1].form(), Form::Mont(values) if values[..] == mont));
        for witness in came {
            let other = witness.clone();
            assert_eq!(witness.len(), 49);
            for count in [0, 1, 7, 48, 49, usize::MAX] {
                assert_eq!(witness.publics(count), canonical[1..count.min(48) + 1]);
            }
            assert!(witness.values() == canonical && other.values().as_ptr() == witness.values().as_ptr());
        }
        for wrong in [vec![], vec![mont[1]], vec![Mont::default(), mont[0]]] {
            assert!(matches!(of(wrong), Err(Error::Witness(_))));
        }
    }

    #[test]
    fn elements_are_a_witness_too() {
        forms_are_of_the_same_values::<Bn254>();
        forms_are_of_the_same_values::<Bls12_381>();
    }
}

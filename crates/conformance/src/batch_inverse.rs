//! Inverses of many elements.

use crate::{samples, Outcome, Suite};
use ark_ff::{AdditiveGroup, UniformRand};
use tandem_ops::{naive, Backend, BatchInverse, Curve, Lane, Mont};

impl<B: Backend> Suite<'_, B> {
    /// Inverses of many elements.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn batch_inverse<C: Curve>(&mut self) -> Outcome
    where
        B: BatchInverse<C>,
    {
        for lane in self.lanes() {
            for n in [0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 127, 128, 129, 255, 256, 257] {
                let x = samples::elements::<C>(n, &mut samples::rng(n as u64));
                self.inverses_by_definition::<C>(lane, &x, format_args!("batch_inverse of {n}"))?;
            }
            // Where zeros are, and nothing but zeros.
            for zeros in [&[0][..], &[39], &[0, 1, 2, 20, 38, 39]] {
                let mut x: Vec<_> = (0..40u64).map(|i| C::Fr::rand(&mut samples::rng(i))).collect();
                zeros.iter().for_each(|&i| x[i] = C::Fr::ZERO);
                self.inverses_by_definition::<C>(lane, &x, format_args!("batch_inverse with zeros at {zeros:?}"))?;
            }
            self.inverses_by_definition::<C>(lane, &[C::Fr::ZERO; 33], "batch_inverse of zeros")?;
        }
        let large = 1 << self.log_n;
        for n in [large - 1, large, large + 1] {
            let x = samples::wire::<C>(&samples::elements::<C>(n, &mut samples::rng(n as u64)));
            let mut expected = self.reference.upload(Lane(0), &x)?;
            BatchInverse::<C>::batch_inverse(&self.reference, &mut expected)?;
            self.inverses::<C>(Lane(0), &x, expected.as_slice(), format_args!("batch_inverse of {n}"))?;
        }
        Ok(())
    }

    fn inverses_by_definition<C: Curve>(&mut self, lane: Lane, x: &[C::Fr], what: impl std::fmt::Display) -> Outcome
    where
        B: BatchInverse<C>,
    {
        let expected: Vec<C::Fr> = x.iter().map(|&x| naive::inverse(x)).collect();
        self.inverses::<C>(lane, &samples::wire::<C>(x), &samples::wire::<C>(&expected), what)
    }

    fn inverses<C: Curve>(&mut self, lane: Lane, x: &[Mont], expected: &[Mont], what: impl std::fmt::Display) -> Outcome
    where
        B: BatchInverse<C>,
    {
        let mut buf = self.backend.upload(lane, x)?;
        BatchInverse::<C>::batch_inverse(self.backend, &mut buf)?;
        self.holds(&buf, expected, &what)?;
        // The inverse of an inverse.
        BatchInverse::<C>::batch_inverse(self.backend, &mut buf)?;
        self.holds(&buf, x, format_args!("{what}, twice"))
    }
}

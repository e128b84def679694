//! Prefix products; values and quotients of polynomials.

use crate::{samples, Outcome, Suite};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use std::fmt::Display;
use tandem_ops::{naive, Backend, Curve, Lane, Mont, Scan};

/// Lengths about those at which kernels and the CPU take one more level.
const LENGTHS: [usize; 17] = [0, 1, 2, 3, 8, 9, 15, 16, 17, 31, 32, 33, 100, 255, 256, 257, 300];

impl<B: Backend> Suite<'_, B> {
    /// Prefix products; values and quotients of polynomials.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn scan<C: Curve>(&mut self) -> Outcome
    where
        B: Scan<C>,
    {
        let rng = &mut samples::rng(3);
        for lane in self.lanes() {
            for n in LENGTHS {
                // A zero makes all products after it zero: there are some without.
                let products: [Vec<C::Fr>; 2] =
                    [(0..n).map(|_| C::Fr::rand(rng)).collect(), samples::elements::<C>(n, rng)];
                for x in products {
                    let expected = samples::wire::<C>(&naive::prefix_product(&x));
                    let total = C::mont(x.iter().product());
                    self.prefix_products::<C>(lane, &samples::wire::<C>(&x), &expected, total)?;
                }
                let c = samples::elements::<C>(n, rng);
                for (i, x) in [C::Fr::rand(rng), C::Fr::ZERO, C::Fr::ONE, -C::Fr::ONE].into_iter().enumerate() {
                    let value = C::mont(naive::value(&c, x));
                    self.polynomial_value::<C>(lane, &samples::wire::<C>(&c), C::mont(x), value)?;
                    let all = [1, 2, 3, 4, 8, n / 2, n.saturating_sub(1), n, n + 1];
                    let some = if i == 0 { &all[..] } else { &[1] };
                    for &m in some.iter().filter(|&&m| m > 0) {
                        let expected = samples::wire::<C>(&naive::divide(&c, m, x));
                        self.quotient::<C>(lane, &samples::wire::<C>(&c), (m, C::mont(x)), &expected)?;
                    }
                }
            }
            let mut coefficients = self.backend.upload(lane, &[Mont::default(); 3])?;
            let refused = Scan::<C>::divide(self.backend, &mut coefficients, 0, C::mont(C::Fr::ONE));
            self.refused(refused, "a division by X^0 - 1")?;
        }
        self.large_scans::<C>()
    }

    fn large_scans<C: Curve>(&mut self) -> Outcome
    where
        B: Scan<C>,
    {
        let large = 1usize << self.log_n;
        for n in [large - 1, large, large + 1] {
            let rng = &mut samples::rng(n as u64);
            let c: Vec<C::Fr> = (0..n).map(|_| C::Fr::rand(rng)).collect();
            let (c, b) = (samples::wire::<C>(&c), C::mont(C::Fr::rand(rng)));
            let mut expected = self.reference.upload(Lane(0), &c)?;
            let total = Scan::<C>::prefix_product(&self.reference, &mut expected)?.wait()?;
            self.prefix_products::<C>(Lane(0), &c, expected.as_slice(), total)?;
            let coefficients = self.reference.upload(Lane(0), &c)?;
            let value = Scan::<C>::evaluate(&self.reference, &coefficients, b)?.wait()?;
            self.polynomial_value::<C>(Lane(0), &c, b, value)?;
            for m in [1, 3, 7, 1000, 1024, n / 4, n / 4 + 1] {
                let mut expected = self.reference.upload(Lane(0), &c)?;
                Scan::<C>::divide(&self.reference, &mut expected, m, b)?;
                self.quotient::<C>(Lane(0), &c, (m, b), expected.as_slice())?;
            }
        }
        Ok(())
    }

    fn prefix_products<C: Curve>(&mut self, lane: Lane, x: &[Mont], expected: &[Mont], total: Mont) -> Outcome
    where
        B: Scan<C>,
    {
        let mut buf = self.backend.upload(lane, x)?;
        let product = Scan::<C>::prefix_product(self.backend, &mut buf)?;
        self.holds(&buf, expected, format_args!("prefix_product of {}", x.len()))?;
        self.is(product.wait()?, total, format_args!("product of {}", x.len()))
    }

    fn polynomial_value<C: Curve>(&mut self, lane: Lane, c: &[Mont], x: Mont, expected: Mont) -> Outcome
    where
        B: Scan<C>,
    {
        let buf = self.backend.upload(lane, c)?;
        let value = Scan::<C>::evaluate(self.backend, &buf, x)?.wait()?;
        self.is(value, expected, format_args!("value of {} coefficients", c.len()))?;
        self.holds(&buf, c, "coefficients afterwards")
    }

    fn quotient<C: Curve>(&mut self, lane: Lane, c: &[Mont], (m, b): (usize, Mont), expected: &[Mont]) -> Outcome
    where
        B: Scan<C>,
    {
        let mut buf = self.backend.upload(lane, c)?;
        Scan::<C>::divide(self.backend, &mut buf, m, b)?;
        self.holds(&buf, expected, format_args!("{} coefficients divided by X^{m} - b", c.len()))
    }

    fn is(&mut self, got: Mont, expected: Mont, what: impl Display) -> Outcome {
        self.that(got == expected, format_args!("{what}: wrong"))
    }
}

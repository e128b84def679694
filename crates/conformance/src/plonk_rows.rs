//! Rows of PLONK.

use crate::{samples, Dual, Outcome, Stepped, Suite};
use ark_ff::{AdditiveGroup, UniformRand};
use tandem_ops::{naive, Backend, Curve, Lane, Mont, PlonkRows, QuotientAt, QuotientRows, Result};

impl<B: Backend> Suite<'_, B> {
    /// Rows of PLONK.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn plonk_rows<C: Curve>(&mut self) -> Outcome
    where
        B: PlonkRows<C>,
    {
        for lane in self.lanes() {
            for n in [0, 1, 2, 3, 255, 256, 257, (1 << self.log_n) - 1, 1 << self.log_n] {
                self.rows::<C>(lane, n)?;
                self.quotient_rows::<C>(lane, n)?;
            }
        }
        self.rows_that_differ::<C>()
    }

    fn rows<C: Curve>(&mut self, lane: Lane, n: usize) -> Outcome
    where
        B: PlonkRows<C>,
    {
        let (backend, rng) = (self.backend, &mut samples::rng(n as u64));
        let vectors: [Vec<C::Fr>; 8] = std::array::from_fn(|_| samples::elements::<C>(n, rng));
        let on = vectors.iter().map(|x| backend.upload(lane, &samples::wire::<C>(x)));
        let on = on.collect::<Result<Vec<_>>>()?;
        let [a, b, c, qm, ql, qr, qo, qc] = &on[..] else { return self.that(false, "eight vectors") };

        let row = |i: usize| vectors.each_ref().map(|vector| vector[i]);
        let rows = backend.gate_rows([a, b, c], [qm, ql, qr, qo, qc])?;
        let expected: Vec<C::Fr> = (0..n)
            .map(|i| {
                let [a, b, c, selectors @ ..] = row(i);
                naive::gate_row([a, b, c], selectors)
            })
            .collect();
        self.holds(&rows, &samples::wire::<C>(&expected), format_args!("gate_rows of {n}"))?;

        let random: [C::Fr; 4] = std::array::from_fn(|_| C::Fr::rand(rng));
        for [k0, k1, k2, gamma] in [random, [C::Fr::ZERO; 4]] {
            // A vector may be the place of several columns, as the row's own root of unity is.
            for (places, at) in [([qm, ql, qr], [3, 4, 5]), ([qm; 3], [3; 3])] {
                let factors = [k0, k1, k2];
                let rows = backend.permuted_rows([a, b, c], places, factors.map(C::mont), C::mont(gamma))?;
                let expected: Vec<C::Fr> = (0..n)
                    .map(|i| {
                        let row = row(i);
                        naive::permuted_row([row[0], row[1], row[2]], at.map(|place| row[place]), factors, gamma)
                    })
                    .collect();
                self.holds(&rows, &samples::wire::<C>(&expected), format_args!("permuted_rows of {n}"))?;
            }
        }
        self.holds(a, &samples::wire::<C>(&vectors[0]), "a column afterwards")
    }

    fn quotient_rows<C: Curve>(&mut self, lane: Lane, n: usize) -> Outcome
    where
        B: PlonkRows<C>,
    {
        let (backend, rng) = (self.backend, &mut samples::rng(n as u64 + 1));
        let vectors: [Vec<C::Fr>; 15] = std::array::from_fn(|_| samples::elements::<C>(n, rng));
        let on = vectors.iter().map(|x| backend.upload(lane, &samples::wire::<C>(x)));
        let on = on.collect::<Result<Vec<_>>>()?;
        let of = of_vectors(std::array::from_fn(|i| &on[i]));
        let random: [C::Fr; 6] = std::array::from_fn(|_| C::Fr::rand(rng));
        let [alpha, beta, gamma, ..] = random;
        let [two, three] = [2u64, 3].map(C::Fr::from);
        let all = [
            random,
            // Each number counts, and each condition alone is seen.
            [C::Fr::ZERO, beta, gamma, beta, gamma, alpha],
            [C::Fr::ZERO; 6],
            // Keys have 2 and 3, which a backend may know; and one of them alone.
            [alpha, beta, gamma, two, three, random[5]],
            [alpha, beta, gamma, two, gamma, random[5]],
            [alpha, beta, gamma, gamma, three, random[5]],
        ];
        for numbers in all {
            let rows = backend.quotient_rows(&of, &at::<C>(numbers))?;
            let row = |i: usize| naive::quotient_row(vectors.each_ref().map(|vector| vector[i]), numbers);
            let expected: Vec<C::Fr> = (0..n).map(row).collect();
            self.holds(&rows, &samples::wire::<C>(&expected), format_args!("quotient_rows of {n}"))?;
        }
        Ok(())
    }

    fn rows_that_differ<C: Curve>(&mut self) -> Outcome
    where
        B: PlonkRows<C>,
    {
        let (backend, last) = (self.backend, Lane(self.backend.lanes() - 1));
        let ok = backend.alloc::<Mont>(Lane(0), 5)?;
        let mut others = vec![(Lane(0), 4), (Lane(0), 0), (Lane(0), 6)];
        if last != Lane(0) {
            others.push((last, 5));
        }
        for (lane, n) in others {
            let other = backend.alloc::<Mont>(lane, n)?;
            for place in 0..8 {
                let of = |i: usize| if i == place { &other } else { &ok };
                let columns = [of(0), of(1), of(2)];
                let rows = backend.gate_rows(columns, [of(3), of(4), of(5), of(6), of(7)]);
                self.refused(rows, format_args!("gate_rows with {n} elements of lane {} for 5 of lane 0", lane.0))?;
                let rows = of_vectors(std::array::from_fn(|i| of(i % 8)));
                let rows = backend.quotient_rows(&rows, &at::<C>([C::Fr::ZERO; 6]));
                self.refused(rows, format_args!("quotient_rows with {n} elements of lane {} for 5", lane.0))?;
                if place < 6 {
                    let rows =
                        backend.permuted_rows(columns, [of(3), of(4), of(5)], [Mont::default(); 3], Mont::default());
                    self.refused(rows, format_args!("permuted_rows with {n} elements of lane {} for 5", lane.0))?;
                }
            }
        }
        Ok(())
    }
}

/// Vectors in the order of [`QuotientRows::vectors`].
fn of_vectors<V>([a, b, c, z, zw, qm, ql, qr, qo, qc, s1, s2, s3, x, first]: [&V; 15]) -> QuotientRows<'_, V> {
    QuotientRows {
        columns: [a, b, c],
        product: [z, zw],
        selectors: [qm, ql, qr, qo, qc],
        permutation: [s1, s2, s3],
        x,
        first,
    }
}

fn at<C: Curve>(numbers: [C::Fr; 6]) -> QuotientAt {
    let [alpha, beta, gamma, k1, k2, public] = numbers.map(C::mont);
    QuotientAt { alpha, beta, gamma, k: [k1, k2], public }
}

impl<C: Curve, L: PlonkRows<C>, R: PlonkRows<C>> PlonkRows<C> for Dual<L, R> {
    fn gate_rows(&self, columns: [&Self::Buf<Mont>; 3], selectors: [&Self::Buf<Mont>; 5]) -> Result<Self::Buf<Mont>> {
        let left = self.left.gate_rows(columns.map(|of| &of.0), selectors.map(|of| &of.0));
        let right = self.right.gate_rows(columns.map(|of| &of.1), selectors.map(|of| &of.1));
        self.made("gate_rows", left, right)
    }
    fn permuted_rows(
        &self,
        columns: [&Self::Buf<Mont>; 3],
        places: [&Self::Buf<Mont>; 3],
        factors: [Mont; 3],
        gamma: Mont,
    ) -> Result<Self::Buf<Mont>> {
        let left = self.left.permuted_rows(columns.map(|of| &of.0), places.map(|of| &of.0), factors, gamma);
        let right = self.right.permuted_rows(columns.map(|of| &of.1), places.map(|of| &of.1), factors, gamma);
        self.made("permuted_rows", left, right)
    }
    fn quotient_rows(&self, of: &QuotientRows<'_, Self::Buf<Mont>>, at: &QuotientAt) -> Result<Self::Buf<Mont>> {
        let left = self.left.quotient_rows(&of.map(|of| &of.0), at);
        let right = self.right.quotient_rows(&of.map(|of| &of.1), at);
        self.made("quotient_rows", left, right)
    }
}

impl<C: Curve> PlonkRows<C> for Stepped {
    fn gate_rows(&self, columns: [&Self::Buf<Mont>; 3], selectors: [&Self::Buf<Mont>; 5]) -> Result<Self::Buf<Mont>> {
        let is_wrong = self.step("gate_rows")?;
        self.spoiled(is_wrong, PlonkRows::<C>::gate_rows(&self.cpu, columns, selectors)?)
    }
    fn permuted_rows(
        &self,
        columns: [&Self::Buf<Mont>; 3],
        places: [&Self::Buf<Mont>; 3],
        factors: [Mont; 3],
        gamma: Mont,
    ) -> Result<Self::Buf<Mont>> {
        let is_wrong = self.step("permuted_rows")?;
        self.spoiled(is_wrong, PlonkRows::<C>::permuted_rows(&self.cpu, columns, places, factors, gamma)?)
    }
    fn quotient_rows(&self, of: &QuotientRows<'_, Self::Buf<Mont>>, at: &QuotientAt) -> Result<Self::Buf<Mont>> {
        let is_wrong = self.step("quotient_rows")?;
        self.spoiled(is_wrong, PlonkRows::<C>::quotient_rows(&self.cpu, of, at)?)
    }
}

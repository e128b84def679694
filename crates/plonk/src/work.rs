//! What provers of both protocols do: columns of a witness, polynomials as vectors of coefficients on the first lane, and their commitments.
//!
//! Nothing is waited for but commitments, evaluations and a few coefficients: what the transcript takes. What belongs to the witness is
//! overwritten when its memory is dropped, on the host and on the lanes.

use crate::coset::Publics;
use crate::key::{op, Core, FIRST};
use crate::{Blinding, HostSpan, PlonkBackend, Request, Result, Witness, P1};
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, Field};
use std::sync::Arc;
use tandem_ops::{
    memory, BatchInverse, Buffer, Canonical, Coset, Curve, Direction, Group, Mont, Ntt, PlonkRows, Scan, VecOps,
};

const OP: &str = "prove";

/// A proof under way, of either protocol.
pub(crate) struct Work<'a, C: Curve, B: PlonkBackend<C>> {
    pub(crate) backend: &'a B,
    pub(crate) key: &'a Core<C, B>,
    pub(crate) blinding: &'a Blinding<C>,
    pub(crate) request: &'a Request<'a>,
    pub(crate) host: &'a mut Vec<HostSpan>,
}

impl<C: Curve, B: PlonkBackend<C>> Work<'_, C, B> {
    /// Work of the host with its time.
    pub(crate) fn span<T>(&mut self, name: &'static str, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        self.request.check()?;
        let begun = std::time::Instant::now();
        let result = work(self);
        self.host.push(HostSpan { name, begun, seconds: begun.elapsed().as_secs_f64() });
        result
    }

    /// A random scalar of the proof, by its number.
    pub(crate) fn blinding(&self, number: usize) -> C::Fr {
        self.blinding.b(number)
    }

    /// The domain's root of unity.
    pub(crate) fn root(&self) -> C::Fr {
        self.key.root()
    }

    /// The signals in the three columns: those of the witness, signal 0 as zero, and those of the additions; zeros in the rows behind the
    /// gates.
    pub(crate) fn columns(&mut self, witness: &Witness<C>) -> Result<[B::Buf<Mont>; 3]> {
        let signals = self.signals(witness)?;
        let column = |map: &B::Map| {
            let mut column = self.backend.alloc(FIRST, self.key.shape.domain)?;
            self.backend.gather(map, &signals, &mut column)?;
            Ok(column)
        };
        let [a, b, c] = self.key.maps.each_ref();
        self.request.enqueue(FIRST, "columns", || Ok([column(a)?, column(b)?, column(c)?]))
    }

    /// All signals. The host makes those of the additions while the witness is on its way.
    fn signals(&mut self, witness: &Witness<C>) -> Result<B::Buf<Mont>> {
        let (backend, timeline, variables) = (self.backend, &self.request.timeline, self.key.shape.variables);
        let first =
            |mut of: Vec<B::Buf<Canonical>>| of.pop().ok_or_else(|| tandem_ops::Error::invalid(OP, "no upload"));
        let own = self.request.enqueue(FIRST, "upload witness", || {
            let values = first(backend.upload_to_all(&[FIRST], witness.shared(), timeline)?)?;
            let mut own = backend.alloc(FIRST, variables)?;
            VecOps::<C>::to_mont(backend, &values, &mut own)?;
            backend.write(&mut own, 0, &[Mont::default()])?;
            Ok(own)
        })?;
        if self.key.additions.len() == 0 {
            return Ok(own);
        }
        let made = self.span("additions", |of| {
            let mut made = of.backend.host_buf::<Mont>(of.key.additions.len())?;
            of.key.additions.apply::<C>(witness.values(), &mut made);
            Ok(Arc::new(made))
        })?;
        self.request.enqueue(FIRST, "upload additions", || {
            let made = backend.upload_to_all(&[FIRST], &made, timeline)?;
            let mut signals = self.combined(variables + self.key.additions.len(), &[(&own, C::Fr::ONE)])?;
            for made in &made {
                VecOps::<C>::add_scaled(backend, &mut signals, variables, 1, made, C::mont(C::Fr::ONE))?;
            }
            Ok(signals)
        })
    }

    /// A vector of few elements.
    pub(crate) fn few(&self, elements: &[C::Fr]) -> tandem_ops::Result<B::Buf<Mont>> {
        let wire: zeroize::Zeroizing<Vec<Mont>> = elements.iter().map(|&x| C::mont(x)).collect::<Vec<_>>().into();
        self.backend.upload(FIRST, &wire)
    }

    /// A polynomial of `len` coefficients that are zero.
    pub(crate) fn zeros(&self, len: usize) -> tandem_ops::Result<B::Buf<Mont>> {
        self.backend.alloc(FIRST, len)
    }

    /// The sum of multiples of polynomials, as one of `len` coefficients.
    pub(crate) fn combined(&self, len: usize, terms: &[(&B::Buf<Mont>, C::Fr)]) -> tandem_ops::Result<B::Buf<Mont>> {
        let terms: Vec<_> = terms.iter().map(|&(of, k)| (of, C::mont(k))).collect();
        VecOps::<C>::combined(self.backend, len, &terms)
    }

    /// Adds `k` times a polynomial that is no longer.
    pub(crate) fn add(&self, sum: &mut B::Buf<Mont>, p: &B::Buf<Mont>, k: C::Fr) -> tandem_ops::Result<()> {
        VecOps::<C>::add_scaled(self.backend, sum, 0, 1, p, C::mont(k))
    }

    /// Adds to few coefficients from number `first` on.
    pub(crate) fn add_few(&self, sum: &mut B::Buf<Mont>, first: usize, few: &[C::Fr]) -> tandem_ops::Result<()> {
        VecOps::<C>::add_scaled(self.backend, sum, first, 1, &self.few(few)?, C::mont(C::Fr::ONE))
    }

    /// The polynomial with these values on the domain.
    pub(crate) fn interpolated(&self, values: &B::Buf<Mont>) -> Result<B::Buf<Mont>> {
        self.request.enqueue(FIRST, "inverse NTT", || {
            let mut polynomial = self.backend.copy(values, 0..values.len(), FIRST)?;
            Ntt::<C>::ntt(self.backend, &mut polynomial, op(Direction::Inverse, Coset::Subgroup))?;
            Ok(polynomial)
        })
    }

    /// The polynomial with these values on the domain, and beside it `blinding` times X^n - 1; its first coefficient first.
    pub(crate) fn blinded(&self, values: &B::Buf<Mont>, blinding: &[C::Fr]) -> Result<B::Buf<Mont>> {
        let (n, polynomial) = (values.len(), self.interpolated(values)?);
        self.request.enqueue(FIRST, "blind", || {
            let few = self.few(blinding)?;
            let mut blinded = self.combined(n + blinding.len(), &[(&polynomial, C::Fr::ONE), (&few, -C::Fr::ONE)])?;
            VecOps::<C>::add_scaled(self.backend, &mut blinded, n, 1, &few, C::mont(C::Fr::ONE))?;
            Ok(blinded)
        })
    }

    /// Commitments to polynomials, each by a sum of this name.
    pub(crate) fn commit(&self, polynomials: &[&B::Buf<Mont>], names: &[&'static str]) -> Result<Vec<P1<C>>> {
        let pending = polynomials.iter().zip(names).map(|(polynomial, &name)| {
            let sum = || self.key.sums.sum_of(self.backend, polynomial, &self.request.timeline);
            self.request.enqueue(FIRST, name, sum)
        });
        let pending = pending.collect::<Result<Vec<_>>>()?;
        let mut sums = Vec::with_capacity(pending.len());
        for (sum, name) in pending.into_iter().zip(names) {
            self.request.check()?;
            sums.push(sum.wait()?);
            self.request.progress.finished(name);
            self.request.progress.advance(1);
        }
        let affine = <C::G1 as Group>::Ark::normalize_batch(&sums);
        Ok(affine.iter().map(C::G1::from_ark).collect())
    }

    /// The values of the grand product: the first is 1, each next one is the last times what its row gives.
    pub(crate) fn grand_product(&self, columns: &[B::Buf<Mont>; 3], beta: C::Fr, gamma: C::Fr) -> Result<B::Buf<Mont>> {
        let columns = columns.each_ref();
        let x = &self.key.rows;
        let [k1, k2] = self.key.k;
        let [own, of_k1, of_k2] = [beta, beta * k1, beta * k2].map(C::mont);
        let (beta, gamma) = (C::mont(beta), C::mont(gamma));
        self.request.enqueue(FIRST, "grand product", || {
            let places = self.key.sigma.each_ref();
            let mut product = PlonkRows::<C>::permuted_rows(self.backend, columns, places, [beta; 3], gamma)?;
            BatchInverse::<C>::batch_inverse(self.backend, &mut product)?;
            let above = PlonkRows::<C>::permuted_rows(self.backend, columns, [x; 3], [own, of_k1, of_k2], gamma)?;
            VecOps::<C>::mul(self.backend, &mut product, &above)?;
            // The product of all is 1, unless the permutation does not belong to the gates, or a device erred when it was loaded: the verifier
            // notices, and which of them it was shows when the proof is made again.
            drop(Scan::<C>::prefix_product(self.backend, &mut product)?);
            Ok(product)
        })
    }

    /// The polynomial of the public values.
    pub(crate) fn publics(&self, publics: &[C::Fr]) -> Result<Publics<C, B>> {
        if publics.len() <= 1 {
            return Ok(Publics::First(-publics.iter().sum::<C::Fr>()));
        }
        let mut values = memory::filled(OP, self.key.shape.domain, Mont::default())?;
        values.iter_mut().zip(publics).for_each(|(value, x)| *value = C::mont(-*x));
        let values = self.backend.upload(FIRST, &values)?;
        Ok(Publics::Coefficients(self.interpolated(&values)?))
    }

    /// Values of polynomials, each at its point.
    pub(crate) fn evaluations<const N: usize>(&self, of: [(&B::Buf<Mont>, C::Fr); N]) -> Result<[C::Fr; N]> {
        let evaluate = |(polynomial, x): (&B::Buf<Mont>, C::Fr)| {
            let evaluate = || Scan::<C>::evaluate(self.backend, polynomial, C::mont(x));
            self.request.enqueue(FIRST, "evaluate", evaluate)
        };
        let pending = of.into_iter().map(evaluate).collect::<Result<Vec<_>>>()?;
        let mut values = [C::Fr::ZERO; N];
        for (to, value) in values.iter_mut().zip(pending) {
            *to = C::from_mont(value.wait()?);
        }
        Ok(values)
    }

    /// The quotient of a polynomial by X^m - `b`, what is left over aside.
    pub(crate) fn divided(&self, mut polynomial: B::Buf<Mont>, m: usize, b: C::Fr) -> Result<B::Buf<Mont>> {
        self.request.enqueue(FIRST, "divide", || {
            Scan::<C>::divide(self.backend, &mut polynomial, m, C::mont(b))?;
            self.backend.copy(&polynomial, m.min(polynomial.len())..polynomial.len(), FIRST)
        })
    }
}

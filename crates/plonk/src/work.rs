//! What provers of both protocols do: columns of a witness, polynomials as vectors of coefficients on the first lane, and their commitments.
//!
//! Nothing is waited for but commitments, evaluations and a few coefficients: what the transcript takes. What belongs to the witness is
//! overwritten when its memory is dropped, on the host and on the lanes.

use crate::additions::Additions;
use crate::basis::BLINDED;
use crate::coset::Publics;
use crate::key::{op, Core, FIRST};
use crate::spread::Polynomial;
use crate::sums::{DealtSums, Sums};
use crate::{Blinding, HostSpan, PlonkBackend, Request, Result, Shape, Witness, P1};
use ark_ec::CurveGroup;
use ark_ff::Field;
use std::sync::Arc;
use tandem_ops::{
    memory, BatchInverse, Buffer, Coset, Curve, Direction, Group, HostBuf, Lane, Mont, Ntt, Pending, PlonkRows, Scan,
    VecOps, Wire,
};

const OP: &str = "prove";

/// Commitments that are waited for, by the names of their sums.
pub(crate) struct Committing<C: Curve>(Vec<(&'static str, Pending<<C::G1 as Group>::Ark>)>);

/// Vectors that were dealt, and what sums them up.
type Dealt<'s, 'p, C, B> = (&'s Sums<C, B>, DealtSums<'p, B>);

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

    /// All signals: those of the witness, and those that additions make of them.
    fn signals(&mut self, witness: &Witness<C>) -> Result<B::Buf<Mont>> {
        let (backend, request, Shape { variables, additions, .. }) = (self.backend, self.request, self.key.shape);
        let mut signals = request.enqueue(FIRST, "upload witness", || {
            let values = self.uploaded(witness.shared())?;
            let mut own = backend.alloc(FIRST, variables)?;
            VecOps::<C>::to_mont(backend, &values, &mut own)?;
            backend.write(&mut own, 0, &[Mont::default()])?;
            match additions {
                0 => Ok(own),
                _ => self.combined(variables + additions, &[(&own, C::Fr::ONE)]),
            }
        })?;
        match &self.key.additions {
            Additions::OnLane(levels) => {
                for level in levels {
                    request.enqueue(FIRST, "additions", || level.apply::<C>(backend, &mut signals))?;
                }
            }
            Additions::OnHost(additions) => {
                // The host makes them while the witness is on its way.
                let made = self.span("additions", |of| {
                    let mut made = of.backend.host_buf::<Mont>(additions.len())?;
                    additions.apply::<C>(witness.values(), &mut made);
                    Ok(Arc::new(made))
                })?;
                request.enqueue(FIRST, "upload additions", || {
                    let made = self.uploaded(&made)?;
                    VecOps::<C>::add_scaled(backend, &mut signals, variables, 1, &made, C::mont(C::Fr::ONE))
                })?;
            }
        }
        Ok(signals)
    }

    /// Elements of the host on the first lane.
    fn uploaded<T: Wire>(&self, values: &Arc<HostBuf<T>>) -> tandem_ops::Result<B::Buf<T>> {
        let mut of_lanes = self.backend.upload_to_all(&[FIRST], values, &self.request.timeline)?;
        of_lanes.pop().ok_or_else(|| tandem_ops::Error::invalid(OP, "no upload"))
    }

    /// A vector of few elements on a lane.
    pub(crate) fn few_on(&self, lane: Lane, elements: &[C::Fr]) -> tandem_ops::Result<B::Buf<Mont>> {
        let wire: zeroize::Zeroizing<Vec<Mont>> = elements.iter().map(|&x| C::mont(x)).collect::<Vec<_>>().into();
        self.backend.upload(lane, &wire)
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

    /// Adds to few coefficients from number `first` on.
    pub(crate) fn add_few(&self, sum: &mut B::Buf<Mont>, first: usize, few: &[C::Fr]) -> tandem_ops::Result<()> {
        let few = self.few_on(sum.lane(), few)?;
        VecOps::<C>::add_scaled(self.backend, sum, first, 1, &few, C::mont(C::Fr::ONE))
    }

    /// The polynomial with these values on the domain, in their place.
    pub(crate) fn interpolated(&self, mut values: B::Buf<Mont>) -> Result<B::Buf<Mont>> {
        self.request.enqueue(values.lane(), "inverse NTT", || {
            Ntt::<C>::ntt(self.backend, &mut values, op(Direction::Inverse, Coset::Subgroup))?;
            Ok(values)
        })
    }

    /// The polynomial with these values on the domain, and beside it `blinding` times X^n - 1; its first coefficient first. And the same for
    /// cosets: at the rows nothing of the blinding is left over.
    pub(crate) fn blinded(&self, values: B::Buf<Mont>, blinding: &[C::Fr]) -> Result<(B::Buf<Mont>, Polynomial<C, B>)> {
        let (n, lane, polynomial) = (values.len(), values.lane(), self.interpolated(values)?);
        self.request.enqueue(lane, "blind", || {
            let few = self.few_on(lane, blinding)?;
            let mut blinded = self.combined(n + blinding.len(), &[(&polynomial, C::Fr::ONE), (&few, -C::Fr::ONE)])?;
            VecOps::<C>::add_scaled(self.backend, &mut blinded, n, 1, &few, C::mont(C::Fr::ONE))?;
            Ok((blinded, Polynomial::new(polynomial, Some(few))))
        })
    }

    /// A polynomial or a column once more.
    pub(crate) fn copied(&self, of: &B::Buf<Mont>) -> Result<B::Buf<Mont>> {
        self.request.copied(self.backend, of, 0..of.len(), FIRST)
    }

    /// Commitments to polynomials of one length, each by a sum of this name. What is enqueued before they are waited for keeps the lanes at work
    /// meanwhile.
    pub(crate) fn commit<const N: usize>(
        &self,
        polynomials: [&B::Buf<Mont>; N],
        names: &[&'static str],
    ) -> Result<Committing<C>> {
        self.sums(self.deal(polynomials)?, names)
    }

    /// Deals polynomials of one length to the lanes that commit to them. What lanes are told until [`Work::sums`] does not hold the copies up.
    pub(crate) fn deal<'p, const N: usize>(&self, polynomials: [&'p B::Buf<Mont>; N]) -> Result<Dealt<'_, 'p, C, B>> {
        self.request.check()?;
        Ok((&self.key.sums, self.key.sums.deal(self.backend, &polynomials, &self.request.timeline)?))
    }

    /// The sums of what was dealt, by these names.
    pub(crate) fn sums(&self, (sums, dealt): Dealt<'_, '_, C, B>, names: &[&'static str]) -> Result<Committing<C>> {
        self.request.check()?;
        let pending = sums.sums_of(self.backend, dealt, names, &self.request.timeline)?;
        names.iter().for_each(|name| self.request.progress.enqueued(name, FIRST));
        Ok(Committing(names.iter().copied().zip(pending).collect()))
    }

    /// Columns with what blinds each behind its values, which belongs to the points behind its rows: what commits to them by their values, where the
    /// key has points for that.
    pub(crate) fn column_values(
        &self,
        columns: &[B::Buf<Mont>; 3],
        blinding: &[[C::Fr; BLINDED]; 3],
    ) -> Result<Option<[B::Buf<Mont>; 3]>> {
        if self.key.basis.is_none() {
            return Ok(None);
        }
        let values = |number: usize| {
            let (column, blinding) = (&columns[number], &blinding[number]);
            self.request.enqueue(FIRST, "columns", || {
                let mut values = self.combined(column.len() + BLINDED, &[(column, C::Fr::ONE)])?;
                self.add_few(&mut values, column.len(), blinding)?;
                Ok(values)
            })
        };
        Ok(Some([values(0)?, values(1)?, values(2)?]))
    }

    /// Deals such values.
    pub(crate) fn deal_values<'p>(&self, values: Option<&'p [B::Buf<Mont>; 3]>) -> Result<Option<Dealt<'_, 'p, C, B>>> {
        let (Some(basis), Some(values)) = (&self.key.basis, values) else { return Ok(None) };
        self.request.check()?;
        Ok(Some((basis, basis.deal(self.backend, &values.each_ref(), &self.request.timeline)?)))
    }

    /// Waits for commitments.
    pub(crate) fn committed(&self, Committing(pending): Committing<C>) -> Result<Vec<P1<C>>> {
        let mut sums = Vec::with_capacity(pending.len());
        for (name, sum) in pending {
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
        let [k1, k2] = self.key.k;
        let [own, of_k1, of_k2] = [beta, beta * k1, beta * k2].map(C::mont);
        let (beta, gamma) = (C::mont(beta), C::mont(gamma));
        let sigma = self.sigma()?;
        let mut product = self.request.enqueue(FIRST, "grand product", || {
            let places = sigma.each_ref().map(|of| &**of);
            PlonkRows::<C>::permuted_rows(self.backend, columns, places, [beta; 3], gamma)
        })?;
        drop(sigma);
        let x = self.rows()?;
        self.request.enqueue(FIRST, "grand product", || {
            BatchInverse::<C>::batch_inverse(self.backend, &mut product)?;
            let above = PlonkRows::<C>::permuted_rows(self.backend, columns, [&x; 3], [own, of_k1, of_k2], gamma)?;
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
        let values = self.request.enqueue(FIRST, "upload publics", || self.backend.upload(FIRST, &values))?;
        let publics = Polynomial::new(self.interpolated(values)?, None);
        Ok(Publics::Many(self.spread(publics, &[])?.arrived(self)?))
    }

    /// Enqueues the values of polynomials, each at its point.
    pub(crate) fn evaluate<const N: usize>(&self, of: [(&B::Buf<Mont>, C::Fr); N]) -> Result<Vec<Pending<Mont>>> {
        let evaluate = |(polynomial, x): (&B::Buf<Mont>, C::Fr)| {
            let evaluate = || Scan::<C>::evaluate(self.backend, polynomial, C::mont(x));
            self.request.enqueue(FIRST, "evaluate", evaluate)
        };
        of.into_iter().map(evaluate).collect()
    }

    /// Waits for values.
    pub(crate) fn evaluated(&self, pending: Vec<Pending<Mont>>) -> Result<Vec<C::Fr>> {
        self.request.check()?;
        pending.into_iter().map(|value| Ok(C::from_mont(value.wait()?))).collect()
    }

    /// The value of a polynomial at `b`, and the quotient by X - `b` of the polynomial less that value.
    pub(crate) fn opened(&self, mut polynomial: B::Buf<Mont>, b: C::Fr) -> Result<(Pending<Mont>, B::Buf<Mont>)> {
        let (value, quotient) = self.request.enqueue(FIRST, "divide", || {
            Scan::<C>::divide(self.backend, &mut polynomial, 1, C::mont(b))?;
            let value = self.backend.download(&self.backend.copy(&polynomial, 0..1, FIRST)?)?;
            Ok((value, self.backend.copy(&polynomial, 1..polynomial.len(), FIRST)?))
        })?;
        let first = || Ok(zeroize::Zeroizing::new(value.wait()?).first().copied().unwrap_or_default());
        Ok((Pending::new(first), quotient))
    }

    /// The quotient of a polynomial by X^m - `b`, what is left over aside.
    pub(crate) fn divided(&self, mut polynomial: B::Buf<Mont>, m: usize, b: C::Fr) -> Result<B::Buf<Mont>> {
        self.request.enqueue(FIRST, "divide", || {
            Scan::<C>::divide(self.backend, &mut polynomial, m, C::mont(b))?;
            self.backend.copy(&polynomial, m.min(polynomial.len())..polynomial.len(), FIRST)
        })
    }
}

//! What the host does while the lanes work and when they are done: it waits for the sums, puts the proof together,
//! and verifies it part by part as the parts come in.

use crate::blinding::Terms;
use crate::{Blinding, HostSpan, PreparedKey, Proof, Refusal, Request, Result, P1};
use ark_ec::CurveGroup;
use std::sync::OnceLock;
use tandem_ops::{Canonical, Curve, Group, Pending, ProofBackend};

/// A lane's part of a sum, on its way.
pub(crate) struct Part<G> {
    sum: Pending<G>,
    /// What it counts in the proof's progress when it has been waited for.
    units: u64,
}

impl<G: Send + 'static> Part<G> {
    /// One that counts `units`: now, if nothing is left to wait for.
    pub(crate) fn new(sum: Pending<G>, units: u64, request: &Request<'_>) -> Self {
        let units = match sum.is_ready() {
            true => {
                request.progress.advance(units);
                0
            }
            false => units,
        };
        Part { sum, units }
    }
}

type PartOf<G> = Part<<G as Group>::Ark>;

/// A sum in G1.
type Sum<C> = <<C as Curve>::G1 as Group>::Ark;

/// What makes C of A, B1 and all else that is in it.
pub(crate) type Join<'a, C> = Box<dyn Fn(&Sum<C>, &Sum<C>, Sum<C>) -> Result<Sum<C>> + Send + Sync + 'a>;

/// What of a proof's end does not come from the lanes' sums.
pub(crate) struct Ending<'a, C: Curve> {
    pub(crate) terms: Terms<C>,
    pub(crate) blinding: &'a Blinding<C>,
    /// Who joins C, if not the host.
    pub(crate) join: Option<Join<'a, C>>,
}

/// The lanes' parts of the sums, on their way. That over H only ever occurs with that over L: `c` is both.
pub(crate) struct Sums<C: Curve> {
    pub(crate) a: Vec<PartOf<C::G1>>,
    pub(crate) b1: Vec<PartOf<C::G1>>,
    pub(crate) b2: Vec<PartOf<C::G2>>,
    pub(crate) c: Vec<PartOf<C::G1>>,
}

impl<C: Curve> Default for Sums<C> {
    fn default() -> Self {
        Self { a: Vec::new(), b1: Vec::new(), b2: Vec::new(), c: Vec::new() }
    }
}

/// Waits for the parts of one sum, unless the request was cancelled meanwhile.
fn total<G: CurveGroup>(terms: G, parts: Vec<Part<G>>, sum: &'static str, request: &Request<'_>) -> Result<G> {
    let mut total = terms;
    for Part { sum, units } in parts {
        request.check()?;
        let part: G = sum.wait()?;
        total += part;
        if units > 0 {
            request.progress.advance(units);
        }
    }
    request.progress.finished(sum);
    Ok(total)
}

impl<C: Curve> Sums<C> {
    /// A = alpha + sum A + r delta; B = beta + sum B + s delta; C = sum L + sum H + s A + r B - r s delta.
    ///
    /// `ab` gets A and B as soon as they are there, while the lanes may still work on C. Of C nothing but an addition is
    /// left to do when its last sum arrives: the products with r and s are other threads' work.
    fn proof(
        self,
        Ending { terms, blinding, join }: Ending<'_, C>,
        request: &Request<'_>,
        host: &mut Vec<HostSpan>,
        ab: impl FnOnce(P1<C>, crate::P2<C>),
    ) -> Result<Proof<C>> {
        let (with_a, with_b) = (OnceLock::new(), OnceLock::new());
        // Where a lane joins, it multiplies too.
        let times = |point: Sum<C>, k: &C::Fr| if join.is_some() { point } else { point * k };
        let (a, b, c) = rayon::in_place_scope(|scope| {
            let (with_a, with_b) = (&with_a, &with_b);
            let (terms_b1, b1) = (terms.b1, self.b1);
            scope.spawn(move |_| {
                let mut host = Vec::new();
                let b1 = HostSpan::of(&mut host, "wait for B1", || total(terms_b1, b1, "MSM B1", request));
                _ = with_b.set((b1.map(|b1| times(b1, &blinding.r)), host));
            });
            let b2 = HostSpan::of(host, "wait for B2", || total(terms.b2, self.b2, "MSM B2", request))?;
            let b = C::G2::from_ark(&b2.into_affine());
            let a1 = HostSpan::of(host, "wait for A", || total(terms.a, self.a, "MSM A", request))?;
            let a = C::G1::from_ark(&a1.into_affine());
            ab(a, b);
            scope.spawn(move |_| _ = with_a.set(times(a1, &blinding.s)));
            let c = HostSpan::of(host, "wait for L and H", || total(terms.c, self.c, "MSM L and H", request))?;
            Result::Ok((a, b, c))
        })?;
        let (Some(with_a), Some((with_b, waited))) = (with_a.into_inner(), with_b.into_inner()) else {
            unreachable!("the scope ended before its tasks")
        };
        // Two threads waited side by side.
        host.extend(waited);
        host.sort_by_key(|span| span.begun);
        let c = match join {
            Some(join) => HostSpan::of(host, "wait for C", || join(&with_a, &with_b?, c))?,
            None => c + with_a + with_b?,
        };
        Ok(Proof { a, b, c: C::G1::from_ark(&c.into_affine()) })
    }

    /// The proof alone.
    pub(crate) fn finish(
        self,
        ending: Ending<'_, C>,
        request: &Request<'_>,
        host: &mut Vec<HostSpan>,
    ) -> Result<Proof<C>> {
        self.proof(ending, request, host, |_, _| ())
    }

    /// The proof and what `verifier` says of it. What it says of the public values, A and B is computed while the lanes
    /// work. The lanes have done all when this returns.
    pub(crate) fn finish_verified<B: ProofBackend<C>>(
        self,
        backend: &B,
        ending: Ending<'_, C>,
        (verifier, publics): (&PreparedKey<C>, &[Canonical]),
        request: &Request<'_>,
        host: &mut Vec<HostSpan>,
    ) -> Result<(Proof<C>, std::result::Result<(), Refusal>)> {
        let (of_inputs, of_ab, synchronized, checked) =
            (OnceLock::new(), OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (proof, of_c) = rayon::in_place_scope(|scope| {
            let (of_inputs, of_ab, synchronized, checked) = (&of_inputs, &of_ab, &synchronized, &checked);
            scope.spawn(move |_| _ = of_inputs.set(verifier.of_inputs(publics)));
            let proof = self.proof(ending, request, host, |a, b| {
                scope.spawn(move |_| _ = of_ab.set(verifier.of_ab(&a, &b)));
            })?;
            request.check()?;
            scope.spawn(move |_| _ = synchronized.set(backend.synchronize()));
            scope.spawn(move |_| _ = checked.set(PreparedKey::<C>::check_c(&proof.c)));
            let of_c = HostSpan::of(host, "verify C", || verifier.of_c(&proof.c));
            Result::Ok((proof, of_c))
        })?;
        // The scope has waited for all four.
        let (Some(of_inputs), Some(of_ab), Some(synchronized), Some(checked)) =
            (of_inputs.into_inner(), of_ab.into_inner(), synchronized.into_inner(), checked.into_inner())
        else {
            unreachable!("the scope ended before its tasks")
        };
        synchronized?;
        let verdict = HostSpan::of(host, "verify", || verifier.conclude(of_inputs, of_ab, checked.and(of_c)));
        request.check()?;
        request.progress.finished("verify");
        Ok((proof, verdict))
    }

    /// Takes the parts of `other` too.
    pub(crate) fn append(&mut self, other: Self) {
        self.a.extend(other.a);
        self.b1.extend(other.b1);
        self.b2.extend(other.b2);
        self.c.extend(other.c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::G1Projective;
    use ark_ff::AdditiveGroup;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tandem_ops::Timeline;

    #[derive(Default)]
    struct Counts(AtomicU64);

    impl crate::Progress for Counts {
        fn advance(&self, units: u64) {
            self.0.fetch_add(units, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_part_counts_once_when_its_sum_is_there() {
        let counts = Counts::default();
        let request = Request::new(Timeline::none(), &counts);
        let done = || counts.0.load(Ordering::SeqCst);
        let ready = Part::new(Pending::ready(G1Projective::ZERO), 5, &request);
        assert_eq!(done(), 5);
        let later = Part::new(Pending::new(|| Ok(G1Projective::ZERO)), 7, &request);
        assert_eq!(done(), 5);
        assert_eq!(total(G1Projective::ZERO, vec![ready, later], "MSM A", &request).unwrap(), G1Projective::ZERO);
        assert_eq!(done(), 12);
    }
}

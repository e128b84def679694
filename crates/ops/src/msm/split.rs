//! One sum split over lanes by points: each lane adds up a share of the points, of scalars that lie there, and the host
//! adds up what comes back. No lane needs anything of another.

use super::{Msm, MsmRequest, MsmSet, ScalarRecoding, Scalars};
use crate::{Arriving, Backend, Buffer, Canonical, Curve, Error, Group, Lane, Mont, Pending, Result, Stored, Timeline};
use ark_ff::AdditiveGroup;
use rayon::prelude::*;
use std::ops::Range;

const OP: &str = "split sum";

/// Points of one sum on one or more lanes, to be summed any number of times. Over how many lanes a sum is fastest says
/// [`Msm::msm_lanes`].
///
/// ```
/// use tandem_ops::{cpu::Cpu, Bn254, Canonical, Curve, Group, Msm, SplitMsm};
/// type G = <Bn254 as Curve>::G1;
///
/// # fn main() -> tandem_ops::Result<()> {
/// let generator = <<G as Group>::Ark as ark_ec::PrimeGroup>::generator();
/// let points = vec![<G as Group>::from_ark(&generator.into()); 1000];
/// let scalars = vec![Canonical([2, 0, 0, 0]); 1000];
///
/// let backend = Cpu::new(2);
/// let lanes = Msm::<G>::msm_lanes(&backend, points.len());
/// let split = SplitMsm::<G, _>::load(&backend, lanes, points[..].into(), 1)?;
/// let scalars = split.upload(&backend, &scalars)?;
/// let sum = split.sum(&backend, &scalars)?.wait()?;
/// assert_eq!(sum, generator * <Bn254 as Curve>::Fr::from(2000));
/// # Ok(())
/// # }
/// ```
pub struct SplitMsm<G: Group, B: Msm<G>> {
    points: usize,
    shares: Vec<Share<G, B>>,
}

/// What one lane has.
struct Share<G: Group, B: Msm<G>> {
    lane: Lane,
    /// Its points among all.
    range: Range<usize>,
    plan: <B as ScalarRecoding<G::Curve>>::Plan,
    bases: B::Bases,
}

/// Vectors of scalars on their way to the lanes that sum them up ([`SplitMsm::deal`]).
pub struct DealtScalars<'a, B: Backend>(Vec<Dealt<'a, B>>);

/// A vector of scalars.
enum Dealt<'a, B: Backend> {
    /// It lies where its sum is made.
    Here(&'a B::Buf<Mont>),
    /// A share for each lane.
    Shares(Vec<Arriving<B::Buf<Mont>>>),
}

/// What a lane has of a vector of scalars.
enum ScalarShare<'a, B: Backend> {
    Here(&'a B::Buf<Mont>),
    Coming(Arriving<B::Buf<Mont>>),
}

/// What a lane has of several vectors, by their numbers.
type OfLane<'a, B> = Vec<(usize, ScalarShare<'a, B>)>;

/// The sum of a share of the points, and its digits.
type SumOfShare<G, B> = (Pending<<G as Group>::Ark>, <B as ScalarRecoding<<G as Group>::Curve>>::Entries);

impl<G: Group, B: Msm<G>> Share<G, B> {
    fn sum(&self, backend: &B, scalars: ScalarShare<'_, B>, timeline: &Timeline) -> Result<SumOfShare<G, B>> {
        let digits = match scalars {
            ScalarShare::Here(scalars) => backend.recode(&self.plan, Scalars::Mont(scalars))?,
            ScalarShare::Coming(scalars) => {
                let scalars = timeline.waiting(self.lane, || backend.arrived(scalars))?;
                backend.recode(&self.plan, Scalars::Mont(&scalars))?
            }
        };
        Ok((backend.msm(&self.bases, &digits, timeline)?, digits))
    }
}

impl<G: Group, B: Msm<G>> SplitMsm<G, B> {
    /// Loads `points` into the first `lanes` lanes, in shares that differ by a point at most, for about `uses` sums. Where there
    /// are fewer points than lanes, as many lanes get one each. The points may take three quarters of what is free beside the
    /// scalars; the rest is for digits and buckets.
    ///
    /// # Errors
    /// No lanes, or more than the backend has; a share does not fit; [`Error::Unread`].
    pub fn load(backend: &B, lanes: usize, points: Stored<'_, G::Point>, uses: u64) -> Result<Self> {
        let free = backend.info().free_bytes;
        let request = |lane: usize, request: MsmRequest| {
            let scalars = request.scalars as u64 * size_of::<Canonical>() as u64;
            let memory_bytes = free.get(lane).copied().unwrap_or(0).saturating_sub(scalars) / 4 * 3;
            MsmRequest { memory_bytes, uses, ..request }
        };
        Self::load_as(backend, lanes, points, request)
    }

    /// As [`SplitMsm::load`], for sums that follow one another and other work, as in a proof: over as many lanes as `memory_bytes` names, and the
    /// points may take so many bytes on each.
    ///
    /// # Errors
    /// As there.
    pub fn load_within(backend: &B, memory_bytes: &[u64], points: Stored<'_, G::Point>, uses: u64) -> Result<Self> {
        let request =
            |lane: usize, request| MsmRequest { memory_bytes: memory_bytes[lane], uses, pipelined: true, ..request };
        Self::load_as(backend, memory_bytes.len(), points, request)
    }

    fn load_as(
        backend: &B,
        lanes: usize,
        points: Stored<'_, G::Point>,
        request: impl Fn(usize, MsmRequest) -> MsmRequest,
    ) -> Result<Self> {
        if !(1..=backend.lanes()).contains(&lanes) {
            return Err(Error::invalid(OP, format!("{lanes} lanes; expected 1 to {}", backend.lanes())));
        }
        let (n, lanes) = (points.len(), lanes.min(points.len()));
        let mut shares = Vec::with_capacity(lanes);
        for lane in 0..lanes {
            let range = n * lane / lanes..n * (lane + 1) / lanes;
            let set = MsmSet { g2: G::NAME == <G::Curve as Curve>::G2::NAME, first: 0, points: range.len() };
            let of_share =
                MsmRequest { scalars: range.len(), sets: vec![set], memory_bytes: 0, uses: 1, pipelined: false };
            let plan = backend.plan(Lane(lane), &request(lane, of_share))?;
            let bases = backend.load(Lane(lane), &plan, 0, points.slice(range.clone()))?;
            shares.push(Share { lane: Lane(lane), range, plan, bases });
        }
        Ok(SplitMsm { points: n, shares })
    }

    /// Over how many lanes it is split; none where there are no points.
    pub fn lanes(&self) -> usize {
        self.shares.len()
    }

    /// Puts to each lane the scalars of its points: what [`SplitMsm::sum`] takes. `scalars[i]` belongs to point i.
    ///
    /// # Errors
    /// There are not as many scalars as points; not enough memory.
    pub fn upload(&self, backend: &B, scalars: &[Canonical]) -> Result<Vec<B::Buf<Canonical>>> {
        if scalars.len() != self.points {
            return Err(Error::invalid(OP, format!("{} scalars for {} points", scalars.len(), self.points)));
        }
        self.shares.iter().map(|share| backend.upload(share.lane, &scalars[share.range.clone()])).collect()
    }

    /// The sum of scalars in Montgomery form that one lane has: scalar i is that of point i, and points behind the last scalar do not count.
    /// The other lanes get copies of theirs. What of it runs beside the lanes' own order has spans in `timeline`.
    ///
    /// # Errors
    /// There are more scalars than points; not enough memory; the device failed.
    pub fn sum_of(&self, backend: &B, scalars: &B::Buf<Mont>, timeline: &Timeline) -> Result<Pending<G::Ark>> {
        let dealt = self.deal(backend, &[scalars], timeline)?;
        let mut sums = self.sums_of(backend, dealt, &[OP], timeline)?;
        sums.pop().ok_or_else(|| Error::invalid(OP, "no sum"))
    }

    /// Deals vectors of scalars, of one length, to the lanes of the points that they belong to, for [`SplitMsm::sums_of`]. Copies run beside what
    /// the lanes do, and begin when all is done that the lanes of the vectors were told before: what these are told until the sums does not
    /// hold them up. Each vector is copied on its lane first, so that it stays. A lane that has all of the points and of the scalars takes
    /// no copies.
    ///
    /// # Errors
    /// The vectors differ in length, or there are more scalars than points; not enough memory; the device failed.
    pub fn deal<'a>(
        &self,
        backend: &B,
        vectors: &[&'a B::Buf<Mont>],
        timeline: &Timeline,
    ) -> Result<DealtScalars<'a, B>> {
        let Some(len) = vectors.first().map(|vector| vector.len()) else { return Ok(DealtScalars(Vec::new())) };
        if let Some(other) = vectors.iter().find(|vector| vector.len() != len) {
            return Err(Error::invalid(OP, format!("vectors of {len} and of {} scalars", other.len())));
        }
        if len > self.points {
            return Err(Error::invalid(OP, format!("{len} scalars for {} points", self.points)));
        }
        let shares: Vec<(Range<usize>, Lane)> = self.shares_of(len).map(|(range, share)| (range, share.lane)).collect();
        match shares[..] {
            [] => return Ok(DealtScalars(vectors.iter().map(|_| Dealt::Shares(Vec::new())).collect())),
            [(_, lane)] if vectors.iter().all(|vector| vector.lane() == lane) => {
                return Ok(DealtScalars(vectors.iter().map(|&vector| Dealt::Here(vector)).collect()));
            }
            _ => {}
        }
        let copies: Vec<_> = vectors.iter().map(|vector| (vector.lane(), vec![(*vector, 0..len)])).collect();
        let dealt = backend.deal(backend.join(&copies)?, &shares, timeline)?;
        Ok(DealtScalars(dealt.into_iter().map(Dealt::Shares).collect()))
    }

    /// The sums of vectors of scalars that were dealt for it, in the order of each lane. Each has a span of its name on each lane.
    ///
    /// # Errors
    /// They were dealt by other points; not enough memory; the device failed.
    pub fn sums_of(
        &self,
        backend: &B,
        DealtScalars(vectors): DealtScalars<'_, B>,
        names: &[&'static str],
        timeline: &Timeline,
    ) -> Result<Vec<Pending<G::Ark>>> {
        let names: Vec<&'static str> = names.iter().copied().chain(std::iter::repeat(OP)).take(vectors.len()).collect();
        // For each lane its shares of all vectors, so that a thread tells each lane of its sums: none waits until the others have been told.
        let mut lanes: Vec<OfLane<'_, B>> = self.shares.iter().map(|_| Vec::new()).collect();
        for (number, vector) in vectors.into_iter().enumerate() {
            let shares = match vector {
                Dealt::Here(vector) => vec![ScalarShare::Here(vector)],
                Dealt::Shares(shares) => shares.into_iter().map(ScalarShare::Coming).collect(),
            };
            if shares.len() > lanes.len() {
                return Err(Error::invalid(OP, "scalars that were dealt by other points"));
            }
            lanes.iter_mut().zip(shares).for_each(|(lane, share)| lane.push((number, share)));
        }
        let of_lane = |(share, vectors): (&Share<G, B>, OfLane<'_, B>)| {
            let mut sums = Vec::with_capacity(vectors.len());
            for (number, scalars) in vectors {
                let span = timeline.begin(share.lane, names[number]);
                let sum = share.sum(backend, scalars, timeline);
                timeline.end(span);
                sums.push((number, sum?));
            }
            Ok(sums)
        };
        let mut told = self.shares.iter().zip(lanes).filter(|(_, vectors)| !vectors.is_empty());
        let of_lanes: Vec<Result<Vec<_>>> = match (told.next(), told.next()) {
            (None, _) => Vec::new(),
            (Some(only), None) => vec![of_lane(only)],
            (Some(first), Some(second)) => {
                let lanes: Vec<_> = [first, second].into_iter().chain(told).collect();
                lanes.into_par_iter().map(of_lane).collect()
            }
        };
        let mut parts: Vec<(Vec<_>, Vec<_>)> = names.iter().map(|_| (Vec::new(), Vec::new())).collect();
        for (number, (part, digits)) in of_lanes.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            parts[number].0.push(part);
            parts[number].1.push(digits);
        }
        Ok(parts.into_iter().map(|(parts, digits)| added(parts, digits)).collect())
    }

    /// The shares that the first so many points are in, with their ranges of these.
    fn shares_of(&self, len: usize) -> impl Iterator<Item = (Range<usize>, &Share<G, B>)> {
        let shares = self.shares.iter().filter(move |share| share.range.start < len);
        shares.map(move |share| (share.range.start..share.range.end.min(len), share))
    }

    /// The sum, of scalars where [`SplitMsm::upload`] put them.
    ///
    /// # Errors
    /// The scalars are not one buffer for each lane, or not as many as the lane has points; not enough memory; the device failed.
    pub fn sum(&self, backend: &B, scalars: &[B::Buf<Canonical>]) -> Result<Pending<G::Ark>> {
        if scalars.len() != self.shares.len() {
            let reason = format!("scalars on {} lanes, points on {}", scalars.len(), self.shares.len());
            return Err(Error::invalid(OP, reason));
        }
        // All lanes are told of their digits first: the last one does not wait until the others have been told of their sums.
        let of_share = |(share, scalars): (&Share<G, B>, _)| backend.recode(&share.plan, Scalars::Canonical(scalars));
        let digits = self.shares.iter().zip(scalars).map(of_share).collect::<Result<Vec<_>>>()?;
        let of_share = |(share, digits): (&Share<G, B>, _)| backend.msm(&share.bases, digits, &Timeline::none());
        let parts = self.shares.iter().zip(&digits).map(of_share).collect::<Result<Vec<_>>>()?;
        Ok(added(parts, digits))
    }
}

/// The sum of what comes back from the lanes.
fn added<S: AdditiveGroup + Send, E: Send + 'static>(parts: Vec<Pending<S>>, digits: Vec<E>) -> Pending<S> {
    Pending::new(move || {
        let sum = parts.into_iter().try_fold(S::ZERO, |sum, part| Ok(sum + part.wait()?));
        // Only now, or the digits' memory would be overwritten beside the end of the sum.
        drop(digits);
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Cpu;
    use crate::{Bls12_381, Bn254};
    use ark_ec::{CurveGroup, VariableBaseMSM};
    use ark_ff::UniformRand;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    type Affine<G> = <<G as Group>::Ark as CurveGroup>::Affine;
    type Fr<G> = <<G as Group>::Curve as Curve>::Fr;

    fn sums_are_those_of_arkworks<G: Group>()
    where
        G::Ark: VariableBaseMSM,
        Cpu: Msm<G>,
    {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let points: Vec<Affine<G>> =
            G::Ark::normalize_batch(&(0..129).map(|_| G::Ark::rand(&mut rng)).collect::<Vec<_>>());
        let scalars: Vec<Fr<G>> = (0..129).map(|_| UniformRand::rand(&mut rng)).collect();
        let wire: Vec<_> = points.iter().map(G::from_ark).collect();
        let canonical: Vec<_> = scalars.iter().map(|&k| G::Curve::canonical(k)).collect();
        for n in [0, 1, 2, 3, 7, 31, 32, 33, 127, 129] {
            let expected = G::Ark::msm(&points[..n], &scalars[..n]).unwrap();
            for lanes in 1..=8 {
                let backend = Cpu::new(lanes);
                let split = SplitMsm::<G, _>::load(&backend, lanes, wire[..n].into(), 1).unwrap();
                assert_eq!(split.lanes(), lanes.min(n));
                let on_lanes = split.upload(&backend, &canonical[..n]).unwrap();
                for _ in 0..2 {
                    assert_eq!(split.sum(&backend, &on_lanes).unwrap().wait().unwrap(), expected, "{n} on {lanes}");
                }
                // Those of one lane, all of them or the first ones.
                for (few, lane) in [(n, 0), (n, lanes - 1), (n / 2, 0), (n.min(1), 0), (0, lanes - 1)] {
                    let expected = G::Ark::msm(&points[..few], &scalars[..few]).unwrap();
                    let mont: Vec<_> = scalars[..few].iter().map(|&k| G::Curve::mont(k)).collect();
                    let of_lane = backend.upload(Lane(lane), &mont).unwrap();
                    let sum = split.sum_of(&backend, &of_lane, &Timeline::none()).unwrap().wait().unwrap();
                    assert_eq!(sum, expected, "the first {few} of {n} on {lanes}");
                }
            }
        }
    }

    /// Of vectors on several lanes, which stay as they are.
    fn sums_of_several_vectors_are_those_of_arkworks<G: Group>()
    where
        G::Ark: VariableBaseMSM,
        Cpu: Msm<G>,
    {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        const POINTS: usize = 33;
        let points = G::Ark::normalize_batch(&(0..POINTS).map(|_| G::Ark::rand(&mut rng)).collect::<Vec<_>>());
        let wire: Vec<_> = points.iter().map(G::from_ark).collect();
        for lanes in 1..=4 {
            let backend = Cpu::new(4);
            let split = SplitMsm::<G, _>::load(&backend, lanes, wire[..].into(), 1).unwrap();
            for (len, homes) in [(33, [0, 0, 0]), (31, [1, 2, 3]), (7, [3, 0, 3]), (0, [2, 1, 0])] {
                let vectors = homes.map(|home| {
                    let scalars: Vec<Fr<G>> = (0..len).map(|_| UniformRand::rand(&mut rng)).collect();
                    let mont: Vec<_> = scalars.iter().map(|&k| G::Curve::mont(k)).collect();
                    (scalars, backend.upload(Lane(home), &mont).unwrap(), mont)
                });
                let none = Timeline::none();
                let dealt = split.deal(&backend, &vectors.each_ref().map(|(_, buf, _)| buf), &none).unwrap();
                let sums = split.sums_of(&backend, dealt, &["first", "second", "third"], &none).unwrap();
                assert_eq!(sums.len(), 3);
                for (sum, (scalars, buf, mont)) in sums.into_iter().zip(&vectors) {
                    assert_eq!(sum.wait().unwrap(), G::Ark::msm(&points[..len], scalars).unwrap(), "{len} on {lanes}");
                    assert_eq!(&backend.download(buf).unwrap().wait().unwrap(), mont);
                }
            }
        }
    }

    #[test]
    fn several_sums_are_those_of_arkworks() {
        sums_of_several_vectors_are_those_of_arkworks::<<Bn254 as Curve>::G1>();
        sums_of_several_vectors_are_those_of_arkworks::<<Bls12_381 as Curve>::G2>();
    }

    /// No lane is told of two sums by two names, nor one of none.
    #[test]
    fn every_lane_has_a_span_for_each_sum() {
        type G = <Bn254 as Curve>::G1;
        let backend = Cpu::new(3);
        let points = [G::from_ark(&Affine::<G>::default()); 9];
        let split = SplitMsm::<G, _>::load(&backend, 3, points[..].into(), 1).unwrap();
        let scalars = backend.upload(Lane(0), &[Mont::default(); 9]).unwrap();
        let timeline = backend.timeline();
        let dealt = split.deal(&backend, &[&scalars, &scalars], &timeline).unwrap();
        split.sums_of(&backend, dealt, &["one", "two"], &timeline).unwrap();
        let spans = timeline.take().unwrap();
        for name in ["one", "two"] {
            let mut lanes: Vec<_> = spans.iter().filter(|span| span.name == name).map(|span| span.lane.0).collect();
            lanes.sort_unstable();
            assert_eq!(lanes, [0, 1, 2]);
        }
    }

    #[test]
    fn split_sums_are_those_of_arkworks() {
        sums_are_those_of_arkworks::<<Bn254 as Curve>::G1>();
        sums_are_those_of_arkworks::<<Bn254 as Curve>::G2>();
        sums_are_those_of_arkworks::<<Bls12_381 as Curve>::G1>();
        sums_are_those_of_arkworks::<<Bls12_381 as Curve>::G2>();
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        type G = <Bn254 as Curve>::G1;
        let backend = Cpu::new(2);
        let points = [G::from_ark(&Affine::<G>::default()); 3];
        for lanes in [0, 3] {
            let error = SplitMsm::<G, _>::load(&backend, lanes, points[..].into(), 1).err().unwrap();
            assert!(error.to_string().contains("expected 1 to 2"), "{error}");
        }
        let split = SplitMsm::<G, _>::load(&backend, 2, points[..].into(), 1).unwrap();
        let error = split.upload(&backend, &[Canonical([1, 0, 0, 0]); 2]).err().unwrap();
        assert!(error.to_string().contains("2 scalars for 3 points"), "{error}");
        let mut scalars = split.upload(&backend, &[Canonical([1, 0, 0, 0]); 3]).unwrap();
        scalars.swap(0, 1);
        assert!(split.sum(&backend, &scalars).is_err());
        let more = backend.upload(Lane(1), &[Mont::default(); 4]).unwrap();
        let error = split.sum_of(&backend, &more, &Timeline::none()).err().unwrap();
        assert!(error.to_string().contains("4 scalars for 3 points"), "{error}");
        let few = backend.upload(Lane(1), &[Mont::default(); 2]).unwrap();
        let error = split.deal(&backend, &[&few, &more], &Timeline::none()).err().unwrap();
        assert!(error.to_string().contains("vectors of 2 and of 4 scalars"), "{error}");
        let one = SplitMsm::<G, _>::load(&backend, 1, points[..].into(), 1).unwrap();
        let dealt = split.deal(&backend, &[&few], &Timeline::none()).unwrap();
        let error = one.sums_of(&backend, dealt, &["sum"], &Timeline::none()).err().unwrap();
        assert!(error.to_string().contains("by other points"), "{error}");
        scalars.pop();
        let error = split.sum(&backend, &scalars).err().unwrap();
        assert!(error.to_string().contains("scalars on 1 lanes, points on 2"), "{error}");
    }

    /// Pretend lanes are all used: there is nothing that splitting would cost there.
    #[test]
    fn pretend_lanes_are_all_used() {
        for lanes in 1..=8 {
            let backend = Cpu::new(lanes);
            assert_eq!(backend.lanes(), lanes);
            for points in [0, 1, 5, 1 << 20] {
                let advised = Msm::<<Bn254 as Curve>::G1>::msm_lanes(&backend, points);
                assert_eq!(advised, lanes.min(points).max(1));
            }
        }
    }
}

//! One sum split over lanes by points: each lane adds up a share of the points, of scalars that lie there, and the host
//! adds up what comes back. No lane needs anything of another.

use super::{Msm, MsmRequest, MsmSet, ScalarRecoding, Scalars};
use crate::{Buffer, Canonical, Curve, Error, Group, Lane, Mont, Pending, Result, Stored, Timeline};
use ark_ff::AdditiveGroup;
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
        if scalars.len() > self.points {
            return Err(Error::invalid(OP, format!("{} scalars for {} points", scalars.len(), self.points)));
        }
        let mut digits = Vec::with_capacity(self.shares.len());
        for share in self.shares.iter().filter(|share| share.range.start < scalars.len()) {
            let range = share.range.start..share.range.end.min(scalars.len());
            let copy = match share.lane == scalars.lane() && range.len() == scalars.len() {
                true => None,
                false => Some(backend.copy(scalars, range, share.lane)?),
            };
            digits.push((share, backend.recode(&share.plan, Scalars::Mont(copy.as_ref().unwrap_or(scalars)))?));
        }
        let of_share = |(share, digits): &(&Share<G, B>, _)| backend.msm(&share.bases, digits, timeline);
        let parts = digits.iter().map(of_share).collect::<Result<Vec<_>>>()?;
        let digits: Vec<_> = digits.into_iter().map(|(_, digits)| digits).collect();
        Ok(added(parts, digits))
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
    use crate::{Backend, Bls12_381, Bn254};
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

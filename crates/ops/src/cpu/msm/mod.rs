//! Multi-scalar multiplication.
//!
//! A scalar k above r/2 counts as -(r - k), so that the small negative numbers of circuits are small; zeros are
//! dropped, and +-1 is summed apart, once a vector for all sets of points.

mod buckets;
mod points;
mod reused;
pub mod trits;

use super::held::Holding;
use super::Cpu;
use crate::curve::BaseField;
use crate::timeline::Ends;
use crate::{
    memory, naive, threads, Buffer, Canonical, Curve, Error, Group, Lane, Msm, MsmRequest, Pending, Result,
    ScalarRecoding, Scalars, Timeline,
};
use crate::{Later, MsmSet, Stored, Wire};
use ark_ff::{BigInt, BigInteger, PrimeField, Zero};
use buckets::{Term, Xy, OP};
pub use points::all_on_curve;
use points::Points;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Scalars or points that one task takes at least.
const GRAIN: usize = 1 << 12;

/// A request that was checked.
#[derive(Debug, Clone)]
pub struct Plan(Arc<MsmRequest>);

/// Scalars taken apart: those that are +-1, and those that are not, each by ascending index.
#[derive(Debug)]
pub struct SplitScalars {
    plan: Plan,
    lane: Lane,
    parts: Parts,
}

struct Parts {
    units: Zeroizing<Vec<Term>>,
    others: Zeroizing<Vec<Term>>,
    /// The absolute values of `others`.
    magnitudes: Zeroizing<Vec<[u64; 4]>>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parts(..)")
    }
}

/// The points of one set.
pub struct Bases<G: Group> {
    plan: Plan,
    set: usize,
    points: Held<G>,
    /// Those of the points, for as long as they are loaded.
    _bytes: Holding,
}

/// Where points are between the sums over them.
enum Held<G: Group> {
    Here(Points<G>),
    /// Where they came from: each sum brings them here for as long as it takes, piece by piece where memory is short.
    There(Later<G::Point>),
}

/// Points of a piece, at least.
const LEAST_PIECE: usize = GRAIN;

/// Points that a sum of `all` of them, of `bytes` each, brings here at a time where `free` bytes of memory are left. Each piece has buckets of
/// its own to add up, so that they are large: an eighth of the memory, as digits, buckets and points on their way take the rest.
fn piece(all: usize, bytes: usize, free: u64) -> usize {
    let whole = (all as u64).saturating_mul(bytes as u64);
    if whole <= free / 4 {
        return all.max(1);
    }
    usize::try_from(free / 8 / bytes as u64).unwrap_or(usize::MAX).max(LEAST_PIECE)
}

impl Parts {
    /// At sizes that hold what may come, so that none leaves a copy behind by growing.
    fn of_sizes(units: usize, others: usize) -> Result<Self> {
        const OP: &str = "digits";
        Ok(Parts {
            units: Zeroizing::new(memory::reserve(OP, units)?),
            others: Zeroizing::new(memory::reserve(OP, others)?),
            magnitudes: Zeroizing::new(memory::reserve(OP, others)?),
        })
    }
}

fn split<C: Curve>(first: usize, scalars: impl ExactSizeIterator<Item = Canonical>) -> Result<Parts> {
    let mut parts = Parts::of_sizes(scalars.len(), scalars.len())?;
    for (i, k) in scalars.enumerate() {
        // A scalar that is not below the modulus breaks its type's promise; it is reduced like any other integer.
        let k = if BigInt(k.0) < C::Fr::MODULUS { k } else { naive::reduce::<C>(k.0) };
        let mut magnitude = C::Fr::MODULUS;
        magnitude.sub_with_borrow(&BigInt(k.0));
        let negative = magnitude < BigInt(k.0);
        if !negative {
            magnitude = BigInt(k.0);
        }
        let term = Term::new(first + i, negative);
        match magnitude.0 {
            [0, 0, 0, 0] => {}
            [1, 0, 0, 0] => parts.units.push(term),
            magnitude => {
                parts.others.push(term);
                parts.magnitudes.push(magnitude);
            }
        }
    }
    Ok(parts)
}

fn split_all<C: Curve, T: Wire>(scalars: &[T], canonical: impl Fn(T) -> Canonical + Sync) -> Result<Parts> {
    // What the parts take, before and after they are put together.
    memory::check("digits", (2 * scalars.len() * (size_of::<[u64; 4]>() + size_of::<Term>())) as u64)?;
    let chunks = scalars.par_chunks(GRAIN).enumerate();
    let split: Vec<Parts> =
        chunks.map(|(i, chunk)| split::<C>(i * GRAIN, chunk.iter().map(|&k| canonical(k)))).collect::<Result<_>>()?;
    let total = |len: fn(&Parts) -> usize| split.iter().map(len).sum();
    let mut all = Parts::of_sizes(total(|p| p.units.len()), total(|p| p.others.len()))?;
    for part in &split {
        all.units.extend_from_slice(&part.units);
        all.others.extend_from_slice(&part.others);
        all.magnitudes.extend_from_slice(&part.magnitudes);
    }
    Ok(all)
}

impl<C: Curve> ScalarRecoding<C> for Cpu {
    type Plan = Plan;
    type Entries = SplitScalars;

    fn plan(&self, lane: Lane, request: &MsmRequest) -> Result<Plan> {
        self.check_lane("plan", lane)?;
        if request.scalars > Term::MAX_INDEX {
            let reason = format!("{} scalars, at most {} are possible", request.scalars, Term::MAX_INDEX);
            return Err(Error::invalid("plan", reason));
        }
        let mut bytes = 0u64;
        for (i, set) in request.sets.iter().enumerate() {
            if set.first.checked_add(set.points).is_none_or(|end| end > request.scalars) {
                let MsmSet { first, points, .. } = set;
                let reason = format!("set {i}: {points} points from {first} on, {} scalars", request.scalars);
                return Err(Error::invalid("plan", reason));
            }
            let point = if set.g2 { size_of::<Xy<BaseField<C::G2>>>() } else { size_of::<Xy<BaseField<C::G1>>>() };
            bytes = bytes.saturating_add((set.points as u64).saturating_mul(point as u64));
        }
        if bytes > request.memory_bytes {
            let (device, free) = ("the CPU".into(), request.memory_bytes);
            return Err(Error::OutOfMemory { op: "plan", device, wanted: bytes, free });
        }
        Ok(Plan(Arc::new(request.clone())))
    }

    fn recode(&self, plan: &Plan, scalars: Scalars<'_, Self>) -> Result<SplitScalars> {
        let (lane, len) = match &scalars {
            Scalars::Canonical(buf) => (buf.lane(), buf.len()),
            Scalars::Mont(buf) => (buf.lane(), buf.len()),
        };
        if len > plan.0.scalars {
            return Err(Error::invalid("digits", format!("{len} scalars, the plan is for {} at most", plan.0.scalars)));
        }
        let parts = match scalars {
            Scalars::Canonical(buf) => split_all::<C, _>(buf.as_slice(), |k| k)?,
            Scalars::Mont(buf) => split_all::<C, _>(buf.as_slice(), |k| C::canonical(C::from_mont(k)))?,
        };
        Ok(SplitScalars { plan: plan.clone(), lane, parts })
    }
}

impl<G: Group> Msm<G> for Cpu {
    type Bases = Bases<G>;

    fn load(&self, lane: Lane, plan: &Plan, set: usize, points: Stored<'_, G::Point>) -> Result<Bases<G>> {
        self.check_lane("load", lane)?;
        let Some(spec) = plan.0.sets.get(set) else {
            return Err(Error::invalid("load", format!("set {set} of a plan with {}", plan.0.sets.len())));
        };
        if spec.g2 != (G::NAME == "G2") {
            return Err(Error::invalid("load", format!("points of {} for set {set}, which is of the other", G::NAME)));
        }
        if spec.points != points.len() {
            return Err(Error::invalid("load", format!("{} points, the plan has {}", points.len(), spec.points)));
        }
        let bytes = points.bytes() as u64;
        let points = match points.later() {
            Some(later) => Held::There(later),
            None => Held::Here(Points::load("load", self.simd, points)?),
        };
        self.count(Ends::Up(lane), bytes as usize);
        let _bytes = Holding::of(&self.points[lane.0], bytes);
        Ok(Bases { plan: plan.clone(), set, points, _bytes })
    }

    fn msm(&self, bases: &Bases<G>, digits: &SplitScalars, _: &Timeline) -> Result<Pending<G::Ark>> {
        if bases.plan.0 != digits.plan.0 {
            return Err(Error::invalid("msm", "points and digits of different plans"));
        }
        let first = bases.plan.0.sets[bases.set].first;
        let sum = match &bases.points {
            Held::Here(points) => sum::<G>(points, first, &digits.parts),
            Held::There(later) => {
                let points = later.stored();
                let piece = piece(points.len(), size_of::<Xy<BaseField<G>>>(), memory::host().free);
                self.sum_in_pieces::<G>(points, piece, first, &digits.parts)
            }
        };
        Ok(self.handed(digits.lane, size_of::<G::Point>(), sum?))
    }
}

impl Cpu {
    /// The sum over points of which `piece` are brought here at a time.
    fn sum_in_pieces<G: Group>(
        &self,
        points: Stored<'_, G::Point>,
        piece: usize,
        first: usize,
        digits: &Parts,
    ) -> Result<G::Ark> {
        let mut all = G::Ark::zero();
        for start in (0..points.len()).step_by(piece) {
            let some = points.slice(start..points.len().min(start.saturating_add(piece)));
            all += sum::<G>(&Points::load(OP, self.simd, some)?, first + start, digits)?;
        }
        Ok(all)
    }
}

/// The sum over `points`, the first of which belongs to scalar number `first`.
fn sum<G: Group>(points: &Points<G>, first: usize, digits: &Parts) -> Result<G::Ark> {
    let Parts { units, others, magnitudes } = digits;
    let finite = |t: &Term| !points.is_infinity(t.index() - first);
    let own = |terms: &[Term]| -> Range<usize> {
        let before = |index| terms.partition_point(|t| t.index() < index);
        before(first)..before(first + points.len())
    };
    let range = own(units);
    let mut unit_terms = Zeroizing::new(memory::reserve(OP, range.len())?);
    unit_terms.extend(units[range].iter().filter(|t| finite(t)).map(|t| t.relative_to(first)));
    let range = own(others);
    let (terms, values) = (&others[range.clone()], &magnitudes[range.clone()]);
    let are_as_they_are = first == 0 && terms.iter().all(finite);
    // Each window that is worked on holds digits, their order and the points that it adds up.
    let of_window = size_of::<u32>() + size_of::<Term>() + size_of::<Xy<BaseField<G>>>();
    let of_copy = if are_as_they_are { 0 } else { size_of::<Term>() + size_of::<[u64; 4]>() };
    memory::check(OP, (range.len() as u64).saturating_mul((of_copy + threads::count() * of_window) as u64))?;
    let mut copies = (Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new()));
    let (terms, values) = if are_as_they_are {
        (terms, values)
    } else {
        *copies.0 = memory::reserve(OP, range.len())?;
        *copies.1 = memory::reserve(OP, range.len())?;
        for (term, magnitude) in terms.iter().zip(values).filter(|(t, _)| finite(t)) {
            copies.0.push(term.relative_to(first));
            copies.1.push(*magnitude);
        }
        (&copies.0[..], &copies.1[..])
    };

    let (one, other) = rayon::join(
        || buckets::sum_of_units::<G>(points, &unit_terms),
        || buckets::sum_of_products::<G>(points, terms, values),
    );
    Ok(one? + other?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, Bls12_381, Bn254};
    use ark_ec::{CurveGroup, PrimeGroup};
    use ark_ff::{AdditiveGroup, Field, UniformRand};
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn sum<G: Group>(points: &[G::Point], scalars: &[Canonical]) -> G::Ark {
        let [eight, plain] = [Cpu::new(1), Cpu::plain(1)].map(|cpu| sum_on::<G>(&cpu, points, scalars));
        assert_eq!(eight, plain);
        eight
    }

    fn sum_on<G: Group>(cpu: &Cpu, points: &[G::Point], scalars: &[Canonical]) -> G::Ark {
        let sets = vec![MsmSet { g2: G::NAME == "G2", first: 0, points: points.len() }];
        let request = MsmRequest { scalars: scalars.len(), sets, memory_bytes: u64::MAX, uses: 1, pipelined: false };
        let plan = ScalarRecoding::<G::Curve>::plan(cpu, Lane(0), &request).unwrap();
        let bases = Msm::<G>::load(cpu, Lane(0), &plan, 0, Stored::from(points)).unwrap();
        let scalars = cpu.upload(Lane(0), scalars).unwrap();
        let digits = ScalarRecoding::<G::Curve>::recode(cpu, &plan, Scalars::Canonical(&scalars)).unwrap();
        Msm::<G>::msm(cpu, &bases, &digits, &Timeline::none()).unwrap().wait().unwrap()
    }

    /// Points with known logarithms make a sum of any size checkable by one multiplication.
    fn agrees_with_logarithms<G: Group>(n: usize) {
        type Fr<G> = <<G as Group>::Curve as Curve>::Fr;
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (start, step) = (Fr::<G>::rand(&mut rng), Fr::<G>::rand(&mut rng));
        let (mut log, mut point) = (start, G::Ark::generator() * start);
        let step_point = G::Ark::generator() * step;
        let (mut logs, mut points) = (Vec::new(), Vec::new());
        for i in 0..n {
            // Infinities, repetitions and opposites among them.
            match i % 16 {
                3 => (logs.push(Fr::<G>::ZERO), points.push(G::Ark::ZERO)),
                7 => (logs.push(logs[i - 1]), points.push(points[i - 1])),
                9 => (logs.push(-logs[i - 1]), points.push(-points[i - 1])),
                _ => (logs.push(log), points.push(point)),
            };
            log += step;
            point += step_point;
        }
        let points: Vec<_> = G::Ark::normalize_batch(&points).iter().map(G::from_ark).collect();
        let half = Fr::<G>::from(2u64).inverse().unwrap();
        type Choice<'a, F> = (&'a str, Box<dyn FnMut(usize) -> F + 'a>);
        let choices: [Choice<'_, Fr<G>>; 7] = [
            ("random", Box::new(|_| Fr::<G>::rand(&mut rng))),
            ("ones", Box::new(|_| Fr::<G>::ONE)),
            ("minus ones", Box::new(|_| -Fr::<G>::ONE)),
            ("equal", Box::new(|_| start)),
            ("bits", Box::new(|i| Fr::<G>::from(i as u64 % 2))),
            ("small", Box::new(|i| Fr::<G>::from(i as u64 % 11) - Fr::<G>::from(5u64))),
            ("about r/2", Box::new(|i| half + Fr::<G>::from(i as u64 % 5) - Fr::<G>::from(2u64))),
        ];
        for (name, mut scalar) in choices {
            let scalars: Vec<_> = (0..n).map(&mut scalar).collect();
            let expected: Fr<G> = scalars.iter().zip(&logs).map(|(k, l)| *k * l).sum();
            let wire: Vec<_> = scalars.iter().map(|&k| <G::Curve as Curve>::canonical(k)).collect();
            assert_eq!(sum::<G>(&points, &wire), G::Ark::generator() * expected, "{name}, {n} points of {}", G::NAME);
        }
    }

    /// Bytes outside memory, which may be read later, and how many have been read.
    #[derive(Clone)]
    struct Bytes(Arc<Vec<u8>>, bool, Arc<AtomicUsize>);

    impl crate::Outside for Bytes {
        fn read(&self, at: usize, into: &mut [u8]) -> Result<()> {
            self.2.fetch_add(into.len(), Ordering::SeqCst);
            into.copy_from_slice(&self.0[at..at + into.len()]);
            Ok(())
        }
        fn block_bytes(&self) -> usize {
            100
        }
        fn later(&self) -> Option<Arc<dyn crate::Outside>> {
            self.1.then(|| Arc::new(self.clone()) as _)
        }
    }

    /// Points that are read piece by piece are in their places, and those that may be read later are read by the sum.
    #[test]
    fn points_outside_memory() {
        type G = crate::G2<Bls12_381>;
        let one = <<G as Group>::Ark as PrimeGroup>::generator();
        for (n, cpu) in [0, 1, 5, 6, 100].into_iter().flat_map(|n| [(n, Cpu::new(1)), (n, Cpu::plain(1))]) {
            let all: Vec<_> = std::iter::successors(Some(one), |p| Some(*p + one)).take(n).collect();
            let points: Vec<_> = <G as Group>::Ark::normalize_batch(&all).iter().map(G::from_ark).collect();
            let bytes = Arc::new([&[0; 7], bytemuck::cast_slice(&points)].concat());
            let [now, later] = [false, true].map(|later| Bytes(bytes.clone(), later, Arc::default()));
            let [there, waits] = [&now, &later].map(|of| Stored::outside(of, 7..bytes.len()).unwrap());
            let sets = vec![MsmSet { g2: true, first: 0, points: n }];
            let request = MsmRequest { scalars: n, sets, memory_bytes: u64::MAX, uses: 1, pipelined: false };
            let plan = ScalarRecoding::<Bls12_381>::plan(&cpu, Lane(0), &request).unwrap();
            let all = [points[..].into(), there, waits].map(|p| Msm::<G>::load(&cpu, Lane(0), &plan, 0, p).unwrap());
            let was_read = || [&now, &later].map(|bytes| bytes.2.load(Ordering::SeqCst));
            assert_eq!(was_read(), [bytes.len() - 7, 0]);
            let scalars: Vec<_> = (0..n as u64).map(|i| Canonical([i * i + 2, i, 0, 0])).collect();
            let scalars = cpu.upload(Lane(0), &scalars).unwrap();
            let digits = ScalarRecoding::<Bls12_381>::recode(&cpu, &plan, Scalars::Canonical(&scalars)).unwrap();
            let [here, there, waited] =
                all.map(|bases| Msm::<G>::msm(&cpu, &bases, &digits, &Timeline::none()).unwrap().wait().unwrap());
            assert!(here == there && here == waited && was_read() == [bytes.len() - 7; 2], "{n}");
            for piece in [1, 2, 33, 99, 100, 101, usize::MAX] {
                let waits = Stored::outside(&later, 7..bytes.len()).unwrap();
                assert!(cpu.sum_in_pieces::<G>(waits, piece, 0, &digits.parts).unwrap() == here, "{n} by {piece}");
            }
        }
    }

    /// The points that belong to scalars behind others are found, whichever piece they are in.
    #[test]
    fn pieces_of_points_have_their_scalars() {
        type G = crate::G1<Bn254>;
        let one = <<G as Group>::Ark as PrimeGroup>::generator();
        let all: Vec<_> = std::iter::successors(Some(one), |p| Some(*p + one)).take(40).collect();
        let points: Vec<_> = <G as Group>::Ark::normalize_batch(&all).iter().map(G::from_ark).collect();
        // Units, zeros and others, of which the first ten have no points.
        let scalars: Vec<_> = (0..50u64).map(|i| Canonical([i % 3, 0, i % 2, 0])).collect();
        let parts = split::<Bn254>(0, scalars.iter().copied()).unwrap();
        let of = |k: Canonical| <Bn254 as Curve>::Fr::from_le_bytes_mod_order(bytemuck::bytes_of(&k));
        let expected: <G as Group>::Ark = scalars.iter().skip(10).zip(&all).map(|(&k, point)| *point * of(k)).sum();
        for piece in [1, 7, 39, 40] {
            let stored = Stored::from(&points[..]);
            assert_eq!(Cpu::new(1).sum_in_pieces::<G>(stored, piece, 10, &parts).unwrap(), expected, "{piece}");
        }
    }

    #[test]
    fn pieces_fit_into_memory() {
        assert_eq!(piece(0, 64, 1 << 30), 1);
        assert_eq!(piece(1 << 22, 64, 1 << 30), 1 << 22);
        assert_eq!(piece((1 << 22) + 1, 64, 1 << 30), 1 << 21);
        assert_eq!(piece(1 << 40, 192, u64::MAX), 1 << 40);
        assert_eq!(piece(1 << 22, 64, 0), LEAST_PIECE);
    }

    /// Those that break their type's promise count as what they are modulo r.
    #[test]
    fn scalars_that_are_not_below_the_modulus_are_reduced() {
        type G = crate::G1<Bn254>;
        let g = <<G as Group>::Ark as PrimeGroup>::generator();
        let point = G::from_ark(&g.into());
        for limbs in [<Bn254 as Curve>::Fr::MODULUS.0, [u64::MAX; 4], [9, 0, 0, 1 << 63]] {
            let expected = <Bn254 as Curve>::Fr::from_le_bytes_mod_order(bytemuck::bytes_of(&limbs));
            assert_eq!(
                sum::<G>(&[point; 2], &[Canonical(limbs), Canonical([2, 0, 0, 0])]),
                g * (expected + <Bn254 as Curve>::Fr::from(2))
            );
        }
    }

    #[test]
    fn more_scalars_than_can_be_counted_are_refused() {
        let of = |scalars| {
            let request = MsmRequest { scalars, sets: vec![], memory_bytes: u64::MAX, uses: 1, pipelined: false };
            ScalarRecoding::<Bn254>::plan(&Cpu::new(1), Lane(0), &request).map(drop)
        };
        of(1 << 31).unwrap();
        assert!(of((1 << 31) + 1).unwrap_err().to_string().contains("at most 2147483648 are possible"));
    }

    /// Keys are loaded without a look at each point. What they sum to is some number.
    fn sums_of_what_is_no_point<G: Group>() {
        let mut points = vec![<G::Point as bytemuck::Zeroable>::zeroed(); 100];
        bytemuck::cast_slice_mut::<_, u8>(&mut points).fill(0xff);
        let scalars: Vec<Canonical> = (1..=100).map(|k| Canonical([k, 0, 0, 0])).collect();
        for cpu in [Cpu::new(1), Cpu::plain(1)] {
            sum_on::<G>(&cpu, &points, &scalars);
        }
    }

    #[test]
    fn coordinates_beyond_the_modulus_end_nothing() {
        sums_of_what_is_no_point::<crate::G1<Bn254>>();
        sums_of_what_is_no_point::<crate::G2<Bn254>>();
        sums_of_what_is_no_point::<crate::G1<Bls12_381>>();
        sums_of_what_is_no_point::<crate::G2<Bls12_381>>();
    }

    #[test]
    fn bn254() {
        for n in [0, 1, 2, 3, 17, 1000] {
            agrees_with_logarithms::<crate::G1<Bn254>>(n);
        }
        agrees_with_logarithms::<crate::G1<Bn254>>(20_001);
        agrees_with_logarithms::<crate::G2<Bn254>>(9_001);
    }

    #[test]
    fn bls12_381() {
        for n in [0, 1, 2, 3, 17, 1000] {
            agrees_with_logarithms::<crate::G2<Bls12_381>>(n);
        }
        agrees_with_logarithms::<crate::G1<Bls12_381>>(9_001);
    }
}

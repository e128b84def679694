//! Multi-scalar multiplication.

use crate::samples::{self, Fr, POINTS, SCALARS};
use crate::{Failure, Outcome, Suite};
use ark_ec::{AdditiveGroup, PrimeGroup};
use tandem_ops::{
    naive, Backend, Canonical, Curve, DeviceKind, Error, Group, Lane, Msm, MsmRequest, MsmSet, ScalarRecoding,
};
use tandem_ops::{Outside, ProofBackend, Scalars, SplitMsm, Stored, Timeline};

/// What a plan may take: all memory that there is, for points that are summed again and again.
const ALL: Room = Room { times: None, uses: 1_000_000 };

/// What a plan may take.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Memory for so many times the points; `None` for half of what is free.
    times: Option<u64>,
    /// How often the points will be summed.
    uses: u64,
}

/// Bytes outside memory, one of which cannot be read.
struct Blocks {
    bytes: Vec<u8>,
    block: usize,
    lost: usize,
}

impl Outside for Blocks {
    fn read(&self, at: usize, into: &mut [u8]) -> tandem_ops::Result<()> {
        if (at..at + into.len()).contains(&self.lost) {
            return Err(Error::Unread { reason: "a test".into() });
        }
        into.copy_from_slice(&self.bytes[at..at + into.len()]);
        Ok(())
    }
    fn block_bytes(&self) -> usize {
        self.block
    }
}

/// Points of one set, and their logarithms.
struct Set<G: Group> {
    first: usize,
    points: Vec<G::Point>,
    logs: Vec<Fr<G>>,
}

type P1<C> = <<C as Curve>::G1 as Group>::Point;
type P2<C> = <<C as Curve>::G2 as Group>::Point;

impl<G: Group> Set<G> {
    fn new(kind: &str, first: usize, n: usize, seed: u64) -> Self {
        let (points, logs) = samples::points::<G>(kind, n, &mut samples::rng(seed));
        Set { first, points, logs }
    }

    fn spec(&self) -> MsmSet {
        MsmSet { g2: G::NAME == "G2", first: self.first, points: self.points.len() }
    }

    fn own<'s, T>(&self, scalars: &'s [T]) -> &'s [T] {
        &scalars[self.first..self.first + self.points.len()]
    }
}

impl<B: Backend> Suite<'_, B> {
    /// Sums over both groups.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn msm<C: Curve>(&mut self) -> Outcome
    where
        B: ProofBackend<C>,
    {
        // Every distribution over every sequence, against the definition; in a small suite over one of them.
        for (p, points) in POINTS.into_iter().enumerate() {
            for (i, scalars) in SCALARS.into_iter().enumerate() {
                if self.is_small() && i % POINTS.len() != p {
                    continue;
                }
                let n = [1, 2, 3, 9, 17][i % 5];
                self.sums::<C>(points, scalars, n, true, ALL)?;
            }
        }
        for n in [0, 1, 2, 3, 31, 32, 33, 255, 256, 257] {
            self.sums::<C>("different", "random", n, false, ALL)?;
            self.sums::<C>("with infinities", "like a witness", n, false, ALL)?;
        }
        // All of these were met above in sums of a few points; a small suite has one of them here.
        let larger = if self.is_small() { &SCALARS[SCALARS.len() - 1..] } else { &SCALARS };
        for &scalars in larger {
            self.sums::<C>("different", scalars, 600, false, ALL)?;
        }
        // Without a table, with tables of a few levels, with one level for each window, and for each bit.
        for (i, times) in [1, 3, 13, 40, 300].into_iter().enumerate() {
            let uses = if i == 2 { 1000 } else { 1_000_000 };
            let (points, scalars) = [("different", "random"), ("opposites", "like a witness")][i % 2];
            self.sums::<C>(points, scalars, [300, 40, 700][i % 3], false, Room { times: Some(times), uses })?;
        }
        self.sums::<C>("different", "random", 500, false, Room { times: Some(300), uses: 1 })?;
        let n = 1 << self.log_n;
        let large =
            [("different", "random"), ("different", "like a witness"), ("equal", "equal"), ("opposites", "one")];
        for (i, (points, scalars)) in large.into_iter().enumerate() {
            let room = Room { times: [None, Some(1), Some(20), None][i], ..ALL };
            self.sums::<C>(points, scalars, [n, n - 1, n / 2 + 1, n / 2][i], false, room)?;
        }
        self.every_plan::<C>()?;
        for parts in 1..=8 {
            if self.takes() {
                self.split::<C>(1000, parts)?;
            }
        }
        for n in [1, 2, 33, 1 << self.log_n] {
            if self.takes() {
                self.outside::<C>(n)?;
            }
        }
        for lanes in 1..=self.backend.lanes() {
            if self.takes() {
                self.split_over::<C::G1>(1000 + lanes, lanes)?;
            }
            if self.takes() {
                self.split_over::<C::G2>(100 + lanes, lanes)?;
            }
        }
        if !self.takes() {
            return Ok(());
        }
        self.advised::<C::G1>()?;
        self.advised::<C::G2>()?;
        self.prefixes::<C>()?;
        for n in [1, 10, 1 << self.log_n] {
            self.far::<C::G1>(n)?;
            self.far::<C::G2>(n / 4)?;
        }
        self.mismatches::<C>()
    }

    /// Each lane sums over points in the memory of each other one, which are dropped, and their memory used again, while it does.
    fn far<G: Group>(&mut self, n: usize) -> Outcome
    where
        B: ProofBackend<G::Curve> + Msm<G>,
    {
        let backend = self.backend;
        let set = Set::<G>::new("with infinities", 0, n, n as u64);
        let values = samples::scalars::<G::Curve>("like a witness", n, &mut samples::rng(n as u64));
        let canonical = samples::canonical::<G::Curve>(&values);
        let pairs = self.lanes().flat_map(|home| self.lanes().map(move |lane| (home, lane)));
        for (home, lane) in pairs.filter(|(home, lane)| home != lane).collect::<Vec<_>>() {
            let memory_bytes = backend.info().free_bytes[home.0] / 16;
            let request = MsmRequest { scalars: n, sets: vec![set.spec()], memory_bytes, uses: 1000, pipelined: true };
            let plan = ScalarRecoding::<G::Curve>::plan(backend, lane, &request)?;
            let scalars = backend.upload(lane, &canonical)?;
            let digits = ScalarRecoding::<G::Curve>::recode(backend, &plan, Scalars::Canonical(&scalars))?;
            let load = |points: &[G::Point]| Msm::<G>::load(backend, home, &plan, 0, Stored::from(points));
            let sum = {
                let bases = load(&set.points)?;
                match Msm::<G>::msm(backend, &bases, &digits, &Timeline::none()) {
                    // The GPUs have no way to each other's memory.
                    Err(Error::Invalid { .. }) if backend.info().kind == DeviceKind::Cuda => continue,
                    sum => sum?,
                }
            };
            let mut others = set.points.clone();
            others.rotate_left(n.min(1));
            let others = load(&others)?;
            let what = format!("{n} points of {} on lane {}, summed by lane {}", G::NAME, home.0, lane.0);
            self.sum(&set, &canonical, &values, sum.wait()?, false, &what)?;
            drop(others);
        }
        Ok(())
    }

    /// Sums in both groups by every plan that the backend may choose: windows of all widths, tables of many sizes, rounds of affine
    /// additions. Points are equal, or opposite, or infinite, or a few, once with scalars of many buckets and once with those that
    /// bring all points to one or two: additions that are doublings, and those that cancel, happen in each form of a sum.
    /// A small suite has one kind of points and of scalars for each plan, in turn.
    fn every_plan<C: Curve>(&mut self) -> Outcome
    where
        B: ProofBackend<C>,
    {
        const N: usize = 70;
        // Odd numbers of them: where every other plan has rounds, those still meet all.
        const SPREAD: [&str; 7] =
            ["random", "about r/2", "-1", "powers of two", "small of both signs", "one window", "like a witness"];
        const TOGETHER: [&str; 3] = ["equal", "two values", "one bucket"];
        const MEETING: [&str; 4] = ["equal", "opposites", "few distinct", "with infinities"];
        let (backend, lane) = (self.backend, Lane(self.backend.lanes() - 1));
        let g1 = MEETING.map(|kind| Set::<C::G1>::new(kind, 0, N, 5));
        // Neighbours in a bucket are added two by two: opposites from an even place on meet, others from an odd one on as well.
        let g2: [_; 4] = std::array::from_fn(|k| Set::<C::G2>::new(MEETING[k], 1 + k % 2, N - 1 - k % 2, 6));
        let sets = g1.iter().map(Set::spec).chain(g2.iter().map(Set::spec)).collect();
        let memory_bytes = backend.info().free_bytes[lane.0] / 2;
        let request = MsmRequest { scalars: N, sets, memory_bytes, uses: 1, pipelined: false };
        let plans = ScalarRecoding::<C>::plans(backend, lane, &request, (2 * self.log_n).saturating_sub(4))?;
        if plans.is_empty() {
            return self.that(false, "no plan");
        }
        for (i, plan) in plans.iter().enumerate() {
            if !self.takes() {
                continue;
            }
            let kinds = [TOGETHER[i % TOGETHER.len()], SPREAD[i % SPREAD.len()]];
            let kinds = if self.is_small() { &kinds[i % 3 % 2..][..1] } else { &kinds[..] };
            for kind in kinds {
                let values = samples::scalars::<C>(kind, N, &mut samples::rng(i as u64));
                let canonical = samples::canonical::<C>(&values);
                let scalars = backend.upload(lane, &canonical)?;
                let digits = ScalarRecoding::<C>::recode(backend, plan, Scalars::Canonical(&scalars))?;
                for (k, (g1, g2)) in g1.iter().zip(&g2).enumerate() {
                    if self.is_small() && k != i / 2 % MEETING.len() {
                        continue;
                    }
                    let what = format!("{N} {kind} scalars, {} points by {plan:?}", MEETING[k]);
                    let points = (Stored::from(&g1.points[..]), Stored::from(&g2.points[..]));
                    let g1_bases = Msm::<C::G1>::load(backend, lane, plan, k, points.0)?;
                    let g2_bases = Msm::<C::G2>::load(backend, lane, plan, MEETING.len() + k, points.1)?;
                    let sums = (
                        Msm::<C::G1>::msm(backend, &g1_bases, &digits, &Timeline::none())?,
                        Msm::<C::G2>::msm(backend, &g2_bases, &digits, &Timeline::none())?,
                    );
                    self.sum(g1, &canonical, &values, sums.0.wait()?, false, &what)?;
                    self.sum(g2, &canonical, &values, sums.1.wait()?, false, &what)?;
                    // A sum of most buckets takes gigabytes, which a GPU shared by many tests overwrites and frees later than the next
                    // sum asks for as much; and what a backend once had it keeps.
                    backend.synchronize()?;
                }
            }
        }
        Ok(())
    }

    /// A sum in so many parts, each with scalars and points of its own, on the lanes in turn.
    fn split<C: Curve>(&mut self, n: usize, parts: usize) -> Outcome
    where
        B: ProofBackend<C>,
    {
        let backend = self.backend;
        let whole = Set::<C::G1>::new("with infinities", 0, n, parts as u64);
        let values = samples::scalars::<C>("like a witness", n, &mut samples::rng(parts as u64));
        let canonical = samples::canonical::<C>(&values);
        let mut pending = vec![];
        for part in 0..parts {
            let (lane, range) = (Lane(part % backend.lanes()), n * part / parts..n * (part + 1) / parts);
            let scalars = backend.upload(lane, &canonical[range.clone()])?;
            let sets = vec![MsmSet { g2: false, first: 0, points: range.len() }];
            let memory_bytes = backend.info().free_bytes[lane.0] / 16;
            let request = MsmRequest { scalars: range.len(), sets, memory_bytes, uses: 100, pipelined: false };
            let plan = ScalarRecoding::<C>::plan(backend, lane, &request)?;
            let bases = Msm::<C::G1>::load(backend, lane, &plan, 0, Stored::from(&whole.points[range]))?;
            let digits = ScalarRecoding::<C>::recode(backend, &plan, Scalars::Canonical(&scalars))?;
            pending.push(Msm::<C::G1>::msm(backend, &bases, &digits, &Timeline::none())?);
        }
        let mut sum = <C::G1 as Group>::Ark::ZERO;
        for part in pending {
            sum += part.wait()?;
        }
        self.sum(&whole, &canonical, &values, sum, false, &format!("{n} scalars in {parts} parts"))
    }

    /// Points that are read on their way are those in memory. Where one cannot be read that is the error, and the lane works on.
    fn outside<C: Curve>(&mut self, n: usize) -> Outcome
    where
        B: ProofBackend<C>,
    {
        let backend = self.backend;
        let whole = Set::<C::G1>::new("with infinities", 0, n, 5);
        let values = samples::scalars::<C>("like a witness", n, &mut samples::rng(5));
        let canonical = samples::canonical::<C>(&values);
        let bytes: &[u8] = bytemuck::cast_slice(&whole.points);
        for lane in self.lanes() {
            let memory_bytes = backend.info().free_bytes[lane.0] / 16;
            let request = MsmRequest { scalars: n, sets: vec![whole.spec()], memory_bytes, uses: 1, pipelined: false };
            let plan = ScalarRecoding::<C>::plan(backend, lane, &request)?;
            let scalars = backend.upload(lane, &canonical)?;
            for (before, block) in [(0, 64), (5, 1000), (4097, 1 << 20), ((1 << 20) - 3, 1 << 20)] {
                let what = format!("{n} points at {before} of blocks of {block}");
                let end = before + bytes.len();
                let mut blocks = Blocks { bytes: vec![0x5a; before], block, lost: usize::MAX };
                blocks.bytes.extend_from_slice(bytes);
                for lost in [before, before + bytes.len() / 2, end - 1, end] {
                    blocks.lost = lost;
                    let points = Stored::outside(&blocks, before..end).ok_or_else(|| Failure(what.clone()))?;
                    let bases = Msm::<C::G1>::load(backend, lane, &plan, 0, points);
                    if lost < end {
                        let is_told = matches!(&bases, Err(Error::Unread { reason }) if reason == "a test");
                        self.that(is_told, format_args!("{what}, without byte {lost}"))?;
                        continue;
                    }
                    let digits = ScalarRecoding::<C>::recode(backend, &plan, Scalars::Canonical(&scalars))?;
                    let sum = Msm::<C::G1>::msm(backend, &bases?, &digits, &Timeline::none())?.wait()?;
                    self.sum(&whole, &canonical, &values, sum, false, &what)?;
                }
            }
        }
        Ok(())
    }

    /// A sum split over so many lanes, twice with the same points, and one of fewer points than lanes.
    fn split_over<G: Group>(&mut self, n: usize, lanes: usize) -> Outcome
    where
        B: Msm<G>,
    {
        let backend = self.backend;
        for n in [n, lanes - 1] {
            let whole = Set::<G>::new("with infinities", 0, n, lanes as u64);
            let points = Stored::from(&whole.points[..]);
            // With no more memory than the points take, too.
            let least = vec![size_of_val(&whole.points[..]) as u64; lanes];
            let loaded = [
                SplitMsm::<G, B>::load(backend, lanes, points, 100)?,
                SplitMsm::<G, B>::load_within(backend, &least, points, 100)?,
            ];
            for split in loaded {
                self.that(split.lanes() == lanes.min(n), format_args!("{n} points over {} lanes", split.lanes()))?;
                for (seed, scalars) in ["like a witness", "random"].into_iter().enumerate() {
                    let values = samples::scalars::<G::Curve>(scalars, n, &mut samples::rng(seed as u64));
                    let canonical = samples::canonical::<G::Curve>(&values);
                    let sum = split.sum(backend, &split.upload(backend, &canonical)?)?.wait()?;
                    self.sum(&whole, &canonical, &values, sum, false, &format!("{n} scalars over {lanes} lanes"))?;
                }
            }
        }
        Ok(())
    }

    /// Over how many lanes sums should be split: one at least, and no more than there are.
    fn advised<G: Group>(&mut self) -> Outcome
    where
        B: Msm<G>,
    {
        let lanes = self.backend.lanes();
        let mut last = 1;
        for points in (0..32).map(|k| 1 << k) {
            let advised = Msm::<G>::msm_lanes(self.backend, points);
            let fits = (last..=lanes).contains(&advised) && advised <= points;
            self.that(fits, format_args!("{points} points of {} over {advised} of {lanes} lanes", G::NAME))?;
            last = advised;
        }
        Ok(())
    }

    /// Four sets that share their scalars: one of all, one without the first, one in the middle, in both groups, and
    /// one of no points; in both forms of scalars, on every lane. Their digits are taken once, and the first set is summed
    /// once more when all others have been.
    fn sums<C: Curve>(&mut self, points: &str, scalars: &str, n: usize, by_definition: bool, room: Room) -> Outcome
    where
        B: ProofBackend<C>,
    {
        if !self.takes() {
            return Ok(());
        }
        let what = format!("{n} {scalars} scalars, {points} points, {room:?}");
        let values = samples::scalars::<C>(scalars, n, &mut samples::rng(n as u64));
        let (canonical, mont) = (samples::canonical::<C>(&values), samples::wire::<C>(&values));
        let all = Set::<C::G1>::new(points, 0, n, 1);
        let rest = Set::<C::G1>::new(points, n.min(1), n - n.min(1), 2);
        let middle = Set::<C::G2>::new(points, n / 3, n / 2, 3);
        let none = Set::<C::G2>::new(points, n, 0, 4);
        let sets = vec![all.spec(), rest.spec(), middle.spec(), none.spec()];
        let backend = self.backend;
        let free = backend.info().free_bytes;
        let once = ((all.points.len() + rest.points.len()) * size_of::<P1<C>>()
            + middle.points.len() * size_of::<P2<C>>()) as u64;
        for lane in self.lanes() {
            let memory_bytes = room.times.map_or(free[lane.0] / 2, |times| once * times);
            // A plan may differ where sums follow one another: every second size.
            let pipelined = n % 2 == 1;
            let request = MsmRequest { scalars: n, sets: sets.clone(), memory_bytes, uses: room.uses, pipelined };
            let plan = ScalarRecoding::<C>::plan(backend, lane, &request)?;
            let all_bases = Msm::<C::G1>::load(backend, lane, &plan, 0, Stored::from(&all.points[..]))?;
            let rest_bases = Msm::<C::G1>::load(backend, lane, &plan, 1, Stored::from(&rest.points[..]))?;
            let middle_bases = Msm::<C::G2>::load(backend, lane, &plan, 2, Stored::from(&middle.points[..]))?;
            let none_bases = Msm::<C::G2>::load(backend, lane, &plan, 3, Stored::from(&none.points[..]))?;
            let (as_integers, as_mont) = (backend.upload(lane, &canonical)?, backend.upload(lane, &mont)?);
            for form in [Scalars::Canonical(&as_integers), Scalars::Mont(&as_mont)] {
                let digits = ScalarRecoding::<C>::recode(backend, &plan, form)?;
                // All are enqueued before any is waited for.
                let sums = (
                    Msm::<C::G1>::msm(backend, &all_bases, &digits, &Timeline::none())?,
                    Msm::<C::G1>::msm(backend, &rest_bases, &digits, &Timeline::none())?,
                    Msm::<C::G2>::msm(backend, &middle_bases, &digits, &Timeline::none())?,
                    Msm::<C::G2>::msm(backend, &none_bases, &digits, &Timeline::none())?,
                    Msm::<C::G1>::msm(backend, &all_bases, &digits, &Timeline::none())?,
                );
                drop(digits);
                self.sum(&all, &canonical, &values, sums.0.wait()?, by_definition, &what)?;
                self.sum(&rest, &canonical, &values, sums.1.wait()?, by_definition, &what)?;
                self.sum(&middle, &canonical, &values, sums.2.wait()?, by_definition, &what)?;
                self.sum(&none, &canonical, &values, sums.3.wait()?, by_definition, &what)?;
                self.sum(&all, &canonical, &values, sums.4.wait()?, false, &what)?;
            }
        }
        Ok(())
    }

    fn sum<G: Group>(
        &mut self,
        set: &Set<G>,
        canonical: &[Canonical],
        values: &[Fr<G>],
        got: G::Ark,
        by_definition: bool,
        what: &str,
    ) -> Outcome {
        let what = format!("{what}: set of {} from {} on in {}", set.points.len(), set.first, G::NAME);
        let log: Fr<G> = set.own(values).iter().zip(&set.logs).map(|(k, l)| *k * l).sum();
        self.that(got == G::Ark::generator() * log, &what)?;
        if by_definition {
            let expected = naive::msm::<G>(&set.points, set.own(canonical));
            self.that(got == expected, format_args!("{what}, by doubling and adding"))?;
        }
        Ok(())
    }

    /// Sums over the first points of a set, by the same plan: with fewer scalars than points, and with fewer than come before a set.
    fn prefixes<C: Curve>(&mut self) -> Outcome
    where
        B: ProofBackend<C>,
    {
        const N: usize = 40;
        let (backend, lane) = (self.backend, Lane(0));
        let memory_bytes = backend.info().free_bytes[0] / 2;
        let sets = [(false, 0), (false, 7), (true, 0)].map(|(g2, first)| MsmSet { g2, first, points: N - first });
        let request = MsmRequest { scalars: N, sets: sets.to_vec(), memory_bytes, uses: 1, pipelined: false };
        let g1 = Set::<C::G1>::new("different", 0, N, 1).points;
        let g2 = Set::<C::G2>::new("different", 0, N, 1).points;
        let plan = ScalarRecoding::<C>::plan(backend, lane, &request)?;
        let whole = Msm::<C::G1>::load(backend, lane, &plan, 0, Stored::from(&g1[..]))?;
        let later = Msm::<C::G1>::load(backend, lane, &plan, 1, Stored::from(&g1[7..]))?;
        let of_g2 = Msm::<C::G2>::load(backend, lane, &plan, 2, Stored::from(&g2[..]))?;
        let values = samples::scalars::<C>("random", N + 1, &mut samples::rng(1));
        let canonical = samples::canonical::<C>(&values);
        let mont: Vec<_> = values.iter().map(|&k| C::mont(k)).collect();
        for n in [0, 1, 6, 7, 8, N - 1, N] {
            let own = 7.min(n);
            let expected = (
                naive::msm::<C::G1>(&g1[..n], &canonical[..n]),
                naive::msm::<C::G1>(&g1[own..n], &canonical[own..n]),
                naive::msm::<C::G2>(&g2[..n], &canonical[..n]),
            );
            let canonical_buf = backend.upload(lane, &canonical[..n])?;
            let mont_buf = backend.upload(lane, &mont[..n])?;
            for scalars in [Scalars::Canonical(&canonical_buf), Scalars::Mont(&mont_buf)] {
                let digits = ScalarRecoding::<C>::recode(backend, &plan, scalars)?;
                let none = Timeline::none();
                let sums = (
                    Msm::<C::G1>::msm(backend, &whole, &digits, &none)?,
                    Msm::<C::G1>::msm(backend, &later, &digits, &none)?,
                    Msm::<C::G2>::msm(backend, &of_g2, &digits, &none)?,
                );
                self.that(sums.0.wait()? == expected.0, format_args!("a sum of {n} scalars over {N} points"))?;
                self.that(sums.1.wait()? == expected.1, format_args!("a sum of {n} scalars over a set from 7 on"))?;
                self.that(sums.2.wait()? == expected.2, format_args!("a sum of {n} scalars over {N} points of G2"))?;
            }
        }
        let more = backend.upload(lane, &canonical)?;
        let refused = ScalarRecoding::<C>::recode(backend, &plan, Scalars::Canonical(&more));
        self.refused(refused, format_args!("{} scalars for a plan of {N}", N + 1))
    }

    fn mismatches<C: Curve>(&mut self) -> Outcome
    where
        B: ProofBackend<C>,
    {
        let backend = self.backend;
        let memory_bytes = backend.info().free_bytes[0] / 2;
        let (first, last) = (Lane(0), Lane(backend.lanes() - 1));
        let ask = |scalars, sets: &[(bool, usize, usize)]| {
            let sets = sets.iter().map(|&(g2, first, points)| MsmSet { g2, first, points }).collect();
            MsmRequest { scalars, sets, memory_bytes, uses: 1, pipelined: false }
        };
        let plan = |request: &MsmRequest| ScalarRecoding::<C>::plan(backend, first, request);
        for (start, points) in [(0, 11), (1, 10), (11, 0), (usize::MAX, 1), (1, usize::MAX)] {
            let what = format_args!("a plan for {points} points from {start} on of 10");
            self.refused(plan(&ask(10, &[(false, 0, 10), (true, start, points)])), what)?;
        }
        let tight = MsmRequest { memory_bytes: 10, ..ask(10, &[(false, 0, 10)]) };
        self.that(plan(&tight).is_err(), "a plan for 10 points in 10 bytes was accepted")?;
        let nowhere = ScalarRecoding::<C>::plan(backend, Lane(backend.lanes()), &ask(1, &[]));
        self.refused(nowhere, "a plan for a lane that is not there")?;

        let this = plan(&ask(10, &[(false, 0, 10), (true, 0, 10)]))?;
        let other = plan(&ask(10, &[(false, 1, 9)]))?;
        let g1 = Set::<C::G1>::new("different", 0, 10, 1).points;
        let g2 = Set::<C::G2>::new("different", 0, 10, 1).points;
        let load = |lane, set, n| Msm::<C::G1>::load(backend, lane, &this, set, Stored::from(&g1[..n]));
        self.refused(load(first, 0, 9), "9 points for a set of 10")?;
        self.refused(load(first, 2, 10), "points for a set that is not there")?;
        self.refused(load(first, 1, 10), "points of G1 for a set of G2")?;
        self.refused(load(Lane(backend.lanes()), 0, 10), "points for a lane that is not there")?;
        let swapped = Msm::<C::G2>::load(backend, first, &this, 0, Stored::from(&g2[..]));
        self.refused(swapped, "points of G2 for a set of G1")?;
        let bases = load(first, 0, 10)?;

        let scalars = samples::canonical::<C>(&samples::scalars::<C>("random", 11, &mut samples::rng(1)));
        let many = backend.upload(first, &scalars[..11])?;
        let refused = ScalarRecoding::<C>::recode(backend, &this, Scalars::Canonical(&many));
        self.refused(refused, "11 scalars for a plan of 10")?;
        let full = backend.upload(first, &scalars[..10])?;
        let foreign = ScalarRecoding::<C>::recode(backend, &other, Scalars::Canonical(&full))?;
        self.refused(
            Msm::<C::G1>::msm(backend, &bases, &foreign, &Timeline::none()),
            "points and digits of different plans",
        )?;
        if first != last {
            let there = backend.upload(last, &scalars[..10])?;
            let foreign = ScalarRecoding::<C>::recode(backend, &other, Scalars::Canonical(&there))?;
            self.refused(
                Msm::<C::G1>::msm(backend, &bases, &foreign, &Timeline::none()),
                "points and digits of different plans and lanes",
            )?;
        }
        // After all that was refused, the same objects still work.
        let digits = ScalarRecoding::<C>::recode(backend, &this, Scalars::Canonical(&full))?;
        let got = Msm::<C::G1>::msm(backend, &bases, &digits, &Timeline::none())?.wait()?;
        let same = got == naive::msm::<C::G1>(&g1, &scalars[..10]);
        self.that(same, "a sum after refused operations")
    }
}

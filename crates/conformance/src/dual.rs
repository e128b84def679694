//! Two backends as one.

mod fft;
mod sumcheck;

use std::ops::Range;
use std::sync::Arc;
use tandem_ops::{
    reduce::ReducePlan, Arriving, Backend, Buffer, Canonical, Curve, Dealt, Element, Error, Gather, Group, HostBuf,
    HostData, Info, Lane, Mont, Msm, MsmRequest, Ntt, NttField, NttOp, NttProducts, NttSpread, Pending, Pieces,
    Poseidon, PoseidonParams, Reduce, ReduceOp, ReduceWay, Result, ScalarRecoding, Scalars, Sort, SortKey, SortOptions,
    SpMv, SparseRows, Stored, SumBytes, Timeline, Unaligned, Wire,
};

/// Does every operation on two backends and compares what it wrote, element by element: any program on a backend
/// becomes a search for the first operation that goes wrong. It blocks at every operation.
///
/// It is of the first backend's kind and has its spans; it has the lanes that both have.
pub struct Dual<L, R> {
    pub(crate) left: L,
    pub(crate) right: R,
}

/// Whether two values have the same bytes: of floating-point numbers even those that are none.
fn is_same<T: Wire>(a: &T, b: &T) -> bool {
    bytemuck::bytes_of(a) == bytemuck::bytes_of(b)
}

/// A value of each of the two.
#[derive(Debug, Clone)]
pub struct Pair<A, B>(pub(crate) A, pub(crate) B);

impl<T: Wire, A: Buffer<T>, B: Buffer<T>> Buffer<T> for Pair<A, B> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn lane(&self) -> Lane {
        self.0.lane()
    }
}

type Bufs<L, R, T> = Pair<<L as Backend>::Buf<T>, <R as Backend>::Buf<T>>;

impl<L: Backend, R: Backend> Dual<L, R> {
    /// The two as one.
    pub fn new(left: L, right: R) -> Self {
        Dual { left, right }
    }

    fn check_lane(&self, op: &'static str, lane: Lane) -> Result<()> {
        if lane.0 >= self.lanes() {
            return Err(Error::invalid(op, format!("lane {} of a device with {}", lane.0, self.lanes())));
        }
        Ok(())
    }

    fn disagree(&self, op: &'static str, index: usize) -> Error {
        let name = |info: Info| info.lane_names.first().cloned().unwrap_or_default();
        Error::Disagree { op, left: name(self.left.info()), right: name(self.right.info()), index }
    }

    /// Both results. To refuse what the other accepts is to disagree; where a device failed, that is the error.
    pub(crate) fn both<A, B>(&self, op: &'static str, left: Result<A>, right: Result<B>) -> Result<Pair<A, B>> {
        match (left, right) {
            (Ok(left), Ok(right)) => Ok(Pair(left, right)),
            (Err(error), Err(_)) => Err(error),
            (Err(Error::Invalid { .. }), Ok(_)) | (Ok(_), Err(Error::Invalid { .. })) => Err(self.disagree(op, 0)),
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        }
    }

    pub(crate) fn compare<T: Wire>(&self, op: &'static str, buf: &Bufs<L, R, T>) -> Result<Vec<T>> {
        let (left, right) = (self.left.download(&buf.0)?.wait()?, self.right.download(&buf.1)?.wait()?);
        let differ = left.iter().zip(&right).position(|(a, b)| !is_same(a, b));
        match differ.or((left.len() != right.len()).then_some(left.len().min(right.len()))) {
            Some(index) => Err(self.disagree(op, index)),
            None => Ok(left),
        }
    }

    /// The buffer that both made.
    pub(crate) fn made<T: Wire>(
        &self,
        op: &'static str,
        l: Result<L::Buf<T>>,
        r: Result<R::Buf<T>>,
    ) -> Result<Bufs<L, R, T>> {
        let buf = self.both(op, l, r)?;
        if buf.0.lane() != buf.1.lane() {
            return Err(self.disagree(op, 0));
        }
        self.compare(op, &buf)?;
        Ok(buf)
    }

    /// The value that both found.
    pub(crate) fn same_result<T: Wire>(&self, op: &'static str, l: Result<T>, r: Result<T>) -> Result<T> {
        let Pair(l, r) = self.both(op, l, r)?;
        if is_same(&l, &r) {
            Ok(l)
        } else {
            Err(self.disagree(op, 0))
        }
    }

    /// What both did to `buf`.
    fn done<T: Wire>(&self, op: &'static str, l: Result<()>, r: Result<()>, buf: &Bufs<L, R, T>) -> Result<()> {
        self.both(op, l, r)?;
        self.compare(op, buf).map(drop)
    }
}

impl<L: Backend, R: Backend> Backend for Dual<L, R> {
    type Buf<T: Wire> = Bufs<L, R, T>;

    fn info(&self) -> Info {
        let (mut left, right) = (self.left.info(), self.right.info());
        left.lane_names = left.lane_names.iter().zip(&right.lane_names).map(|(l, r)| format!("{l} | {r}")).collect();
        left.free_bytes = left.free_bytes.iter().zip(&right.free_bytes).map(|(l, r)| *l.min(r)).collect();
        left
    }

    fn lanes(&self) -> usize {
        self.left.lanes().min(self.right.lanes())
    }

    fn alloc<T: Wire>(&self, lane: Lane, len: usize) -> Result<Self::Buf<T>> {
        self.check_lane("alloc", lane)?;
        self.made("alloc", self.left.alloc(lane, len), self.right.alloc(lane, len))
    }

    fn write<T: Wire>(&self, dst: &mut Self::Buf<T>, at: usize, src: &[T]) -> Result<()> {
        let (l, r) = (self.left.write(&mut dst.0, at, src), self.right.write(&mut dst.1, at, src));
        self.done("write", l, r, dst)
    }

    fn upload<T: Wire>(&self, lane: Lane, src: &[T]) -> Result<Self::Buf<T>> {
        self.check_lane("upload", lane)?;
        self.made("upload", self.left.upload(lane, src), self.right.upload(lane, src))
    }

    fn upload_to_all<T: Wire>(
        &self,
        lanes: &[Lane],
        src: &Arc<HostBuf<T>>,
        timeline: &Timeline,
    ) -> Result<Vec<Self::Buf<T>>> {
        const OP: &str = "upload_to_all";
        lanes.iter().try_for_each(|&lane| self.check_lane(OP, lane))?;
        let left = self.left.upload_to_all(lanes, src, timeline);
        let Pair(left, right) = self.both(OP, left, self.right.upload_to_all(lanes, src, &Timeline::none()))?;
        if left.len() != right.len() {
            return Err(self.disagree(OP, left.len().min(right.len())));
        }
        left.into_iter().zip(right).map(|(l, r)| self.made(OP, Ok(l), Ok(r))).collect()
    }

    fn upload_beside<T: Wire>(&self, lane: Lane, src: &Arc<HostBuf<T>>, len: usize) -> Result<Arriving<Self::Buf<T>>> {
        const OP: &str = "upload_beside";
        self.check_lane(OP, lane)?;
        let (left, right) = (self.left.upload_beside(lane, src, len), self.right.upload_beside(lane, src, len));
        let Pair(left, right) = self.both(OP, left, right)?;
        Ok(Arriving::new(Pair(left.into_inner(), right.into_inner())))
    }

    fn arrived<T: Wire>(&self, arriving: Arriving<Self::Buf<T>>) -> Result<Self::Buf<T>> {
        let Pair(left, right) = arriving.into_inner();
        self.made("arrived", self.left.arrived(Arriving::new(left)), self.right.arrived(Arriving::new(right)))
    }

    fn copy<T: Wire>(&self, src: &Self::Buf<T>, range: Range<usize>, lane: Lane) -> Result<Self::Buf<T>> {
        self.check_lane("copy", lane)?;
        self.made("copy", self.left.copy(&src.0, range.clone(), lane), self.right.copy(&src.1, range, lane))
    }

    fn join<T: Wire>(&self, joins: &[(Lane, Pieces<'_, Self::Buf<T>>)]) -> Result<Vec<Self::Buf<T>>> {
        const OP: &str = "join";
        joins.iter().try_for_each(|(lane, _)| self.check_lane(OP, *lane))?;
        let left: Vec<(Lane, Pieces<'_, _>)> = joins
            .iter()
            .map(|(lane, pieces)| (*lane, pieces.iter().map(|(buf, range)| (&buf.0, range.clone())).collect()))
            .collect();
        let right: Vec<(Lane, Pieces<'_, _>)> = joins
            .iter()
            .map(|(lane, pieces)| (*lane, pieces.iter().map(|(buf, range)| (&buf.1, range.clone())).collect()))
            .collect();
        let Pair(left, right) = self.both(OP, self.left.join(&left), self.right.join(&right))?;
        if left.len() != right.len() {
            return Err(self.disagree(OP, left.len().min(right.len())));
        }
        left.into_iter().zip(right).map(|(l, r)| self.made(OP, Ok(l), Ok(r))).collect()
    }

    fn deal<T: Wire>(
        &self,
        sources: Vec<Self::Buf<T>>,
        shares: &[(Range<usize>, Lane)],
        timeline: &Timeline,
    ) -> Result<Dealt<Self::Buf<T>>> {
        const OP: &str = "deal";
        shares.iter().try_for_each(|(_, lane)| self.check_lane(OP, *lane))?;
        let (left, right) = sources.into_iter().map(|Pair(left, right)| (left, right)).unzip();
        let left = self.left.deal(left, shares, timeline);
        let Pair(left, right) = self.both(OP, left, self.right.deal(right, shares, &Timeline::none()))?;
        let pair = |(left, right): (Arriving<_>, Arriving<_>)| Pair(left.into_inner(), right.into_inner());
        let pairs =
            |(left, right): (Vec<_>, Vec<_>)| left.into_iter().zip(right).map(pair).map(Arriving::new).collect();
        Ok(left.into_iter().zip(right).map(pairs).collect())
    }

    fn download<T: Wire>(&self, src: &Self::Buf<T>) -> Result<Pending<Vec<T>>> {
        self.compare("download", src).map(Pending::ready)
    }

    fn synchronize(&self) -> Result<()> {
        self.both("synchronize", self.left.synchronize(), self.right.synchronize()).map(drop)
    }

    fn timeline(&self) -> Timeline {
        self.left.timeline()
    }
}

impl<F: NttField, L: Ntt<F>, R: Ntt<F>> Ntt<F> for Dual<L, R> {
    fn ntt_batch(&self, data: &mut Self::Buf<F::Element>, count: usize, op: NttOp<F::Element>) -> Result<()> {
        let (l, r) = (self.left.ntt_batch(&mut data.0, count, op), self.right.ntt_batch(&mut data.1, count, op));
        self.done("ntt", l, r, data)
    }
}

impl<C: Curve, L: NttProducts<C>, R: NttProducts<C>> NttProducts<C> for Dual<L, R> {
    fn ntt_of_product(&self, a: &Self::Buf<Mont>, b: &Self::Buf<Mont>, op: NttOp) -> Result<Self::Buf<Mont>> {
        let l = NttProducts::<C>::ntt_of_product(&self.left, &a.0, &b.0, op);
        let r = NttProducts::<C>::ntt_of_product(&self.right, &a.1, &b.1, op);
        self.made("ntt of product", l, r)
    }

    fn product_less_ntt(
        &self,
        a: &Self::Buf<Mont>,
        b: &Self::Buf<Mont>,
        c: Self::Buf<Mont>,
        op: NttOp,
    ) -> Result<Self::Buf<Mont>> {
        let l = NttProducts::<C>::product_less_ntt(&self.left, &a.0, &b.0, c.0, op);
        let r = NttProducts::<C>::product_less_ntt(&self.right, &a.1, &b.1, c.1, op);
        self.made("product less ntt", l, r)
    }
}

impl<F: NttField, L: NttSpread<F>, R: NttSpread<F>> NttSpread<F> for Dual<L, R> {
    fn ntt_spread(&self, shards: &mut [&mut Self::Buf<F::Element>], op: NttOp<F::Element>) -> Result<()> {
        let both = shards.iter_mut().map(|shard| (&mut shard.0, &mut shard.1));
        let (mut left, mut right): (Vec<_>, Vec<_>) = both.unzip();
        let (l, r) = (
            NttSpread::<F>::ntt_spread(&self.left, &mut left, op),
            NttSpread::<F>::ntt_spread(&self.right, &mut right, op),
        );
        self.both("ntt", l, r)?;
        shards.iter().try_for_each(|shard| self.compare("ntt", shard).map(drop))
    }

    fn ntt_lanes(&self, log_n: u32) -> usize {
        NttSpread::<F>::ntt_lanes(&self.left, log_n).min(NttSpread::<F>::ntt_lanes(&self.right, log_n))
    }
}

impl<L: Gather, R: Gather> Gather for Dual<L, R> {
    type Map = Pair<L::Map, R::Map>;

    fn load_map(&self, lane: Lane, map: &[u32], bound: usize) -> Result<Self::Map> {
        self.check_lane("load_map", lane)?;
        self.both("load_map", self.left.load_map(lane, map, bound), self.right.load_map(lane, map, bound))
    }

    fn gather<T: Wire>(&self, map: &Self::Map, from: &Self::Buf<T>, to: &mut Self::Buf<T>) -> Result<()> {
        let (l, r) = (self.left.gather(&map.0, &from.0, &mut to.0), self.right.gather(&map.1, &from.1, &mut to.1));
        self.done("gather", l, r, to)
    }
}

impl<C: Curve, L: SpMv<C>, R: SpMv<C>> SpMv<C> for Dual<L, R> {
    type Matrix = Pair<L::Matrix, R::Matrix>;

    fn load_matrix(&self, lane: Lane, matrix: &SparseRows) -> Result<Self::Matrix> {
        self.check_lane("load_matrix", lane)?;
        let op = "load_matrix";
        self.both(op, self.left.load_matrix(lane, matrix), self.right.load_matrix(lane, matrix))
    }

    fn spmv(&self, matrix: &Self::Matrix, x: &Self::Buf<Canonical>, out: &mut Self::Buf<Mont>) -> Result<()> {
        let l = self.left.spmv(&matrix.0, &x.0, &mut out.0);
        let r = self.right.spmv(&matrix.1, &x.1, &mut out.1);
        self.done("spmv", l, r, out)
    }
}

impl<C: Curve, L: ScalarRecoding<C>, R: ScalarRecoding<C>> ScalarRecoding<C> for Dual<L, R> {
    type Plan = Pair<L::Plan, R::Plan>;
    type Entries = Pair<L::Entries, R::Entries>;

    fn plan(&self, lane: Lane, request: &MsmRequest) -> Result<Self::Plan> {
        self.check_lane("plan", lane)?;
        self.both("plan", self.left.plan(lane, request), self.right.plan(lane, request))
    }

    fn sum_bytes(&self, scalars: usize, g2: bool, memory_bytes: u64) -> SumBytes {
        let left = ScalarRecoding::<C>::sum_bytes(&self.left, scalars, g2, memory_bytes);
        let right = ScalarRecoding::<C>::sum_bytes(&self.right, scalars, g2, memory_bytes);
        let least = left.least.max(right.least);
        SumBytes { least, faster: left.all().max(right.all()) - least }
    }

    fn recode(&self, plan: &Self::Plan, scalars: Scalars<'_, Self>) -> Result<Self::Entries> {
        let (left, right) = match scalars {
            Scalars::Canonical(k) => (Scalars::Canonical(&k.0), Scalars::Canonical(&k.1)),
            Scalars::Mont(k) => (Scalars::Mont(&k.0), Scalars::Mont(&k.1)),
        };
        self.both("recode", self.left.recode(&plan.0, left), self.right.recode(&plan.1, right))
    }
}

impl<G: Group, L: Msm<G>, R: Msm<G>> Msm<G> for Dual<L, R> {
    type Bases = Pair<L::Bases, R::Bases>;

    fn load(&self, lane: Lane, plan: &Self::Plan, set: usize, points: Stored<'_, G::Point>) -> Result<Self::Bases> {
        self.check_lane("load", lane)?;
        let left = self.left.load(lane, &plan.0, set, points);
        self.both("load", left, self.right.load(lane, &plan.1, set, points))
    }

    fn msm(&self, bases: &Self::Bases, digits: &Self::Entries, timeline: &Timeline) -> Result<Pending<G::Ark>> {
        let left = self.left.msm(&bases.0, &digits.0, timeline);
        let right = self.right.msm(&bases.1, &digits.1, &Timeline::none());
        let Pair(left, right) = self.both("msm", left, right)?;
        let (left, right) = (left.wait()?, right.wait()?);
        if left != right {
            return Err(self.disagree("msm", 0));
        }
        Ok(Pending::ready(left))
    }

    fn msm_lanes(&self, points: usize) -> usize {
        Msm::<G>::msm_lanes(&self.left, points).min(Msm::<G>::msm_lanes(&self.right, points))
    }
}

impl<C: Curve, L: Poseidon<C>, R: Poseidon<C>> Poseidon<C> for Dual<L, R> {
    type Hasher = Pair<L::Hasher, R::Hasher>;

    fn hasher(&self, params: PoseidonParams) -> Result<Self::Hasher> {
        self.both("hasher", self.left.hasher(params), self.right.hasher(params))
    }

    fn poseidon(&self, hasher: &Self::Hasher, input: &Self::Buf<Mont>, out: &mut Self::Buf<Mont>) -> Result<()> {
        let l = self.left.poseidon(&hasher.0, &input.0, &mut out.0);
        let r = self.right.poseidon(&hasher.1, &input.1, &mut out.1);
        self.done("poseidon", l, r, out)
    }

    fn poseidon_columns(
        &self,
        hasher: &Self::Hasher,
        input: Unaligned<'_, Canonical>,
        out: &mut [Canonical],
    ) -> Result<()> {
        let mut other = out.to_vec();
        let l = self.left.poseidon_columns(&hasher.0, input, out);
        let r = self.right.poseidon_columns(&hasher.1, input, &mut other);
        self.both("poseidon_columns", l, r)?;
        match out.iter().zip(&other).position(|(a, b)| a != b) {
            Some(index) => Err(self.disagree("poseidon_columns", index)),
            None => Ok(()),
        }
    }
}

impl<L: Reduce, R: Reduce> Reduce for Dual<L, R> {
    fn reduce_plan<E: Element>(&self, parts: &[(Lane, usize)], way: Option<ReduceWay>) -> Result<ReducePlan> {
        parts.iter().try_for_each(|(lane, _)| self.check_lane("reduce", *lane))?;
        self.left.reduce_plan::<E>(parts, way)
    }

    fn reduce<E: Element>(
        &self,
        op: ReduceOp,
        parts: &[&Self::Buf<E::Wire>],
        way: Option<ReduceWay>,
    ) -> Result<Pending<E::Wire>> {
        let left: Vec<_> = parts.iter().map(|part| &part.0).collect();
        let right: Vec<_> = parts.iter().map(|part| &part.1).collect();
        let l = self.left.reduce::<E>(op, &left, way).and_then(Pending::wait);
        let r = self.right.reduce::<E>(op, &right, way).and_then(Pending::wait);
        self.same_result("reduce", l, r).map(Pending::ready)
    }

    fn reduce_host_plan(&self, data: HostData<'_>) -> ReducePlan {
        self.left.reduce_host_plan(data)
    }

    fn reduce_host<E: Element>(&self, op: ReduceOp, data: HostData<'_>) -> Result<E::Wire> {
        let (l, r) = (self.left.reduce_host::<E>(op, data), self.right.reduce_host::<E>(op, data));
        self.same_result("reduce_host", l, r)
    }
}

impl<K: SortKey, L: Sort<K>, R: Sort<K>> Sort<K> for Dual<L, R> {
    fn sort(&self, keys: &mut [&mut Self::Buf<K>], options: SortOptions) -> Result<()> {
        let (mut left, mut right): (Vec<_>, Vec<_>) = keys.iter_mut().map(|buf| (&mut buf.0, &mut buf.1)).unzip();
        let (l, r) = (self.left.sort(&mut left, options), self.right.sort(&mut right, options));
        self.both("sort", l, r)?;
        keys.iter().try_for_each(|buf| self.compare("sort", buf).map(drop))
    }

    fn sort_pairs(
        &self,
        keys: &mut [&mut Self::Buf<K>],
        values: &mut [&mut Self::Buf<K>],
        options: SortOptions,
    ) -> Result<()> {
        let (mut left, mut right): (Vec<_>, Vec<_>) = keys.iter_mut().map(|buf| (&mut buf.0, &mut buf.1)).unzip();
        let (mut lv, mut rv): (Vec<_>, Vec<_>) = values.iter_mut().map(|buf| (&mut buf.0, &mut buf.1)).unzip();
        let l = self.left.sort_pairs(&mut left, &mut lv, options);
        let r = self.right.sort_pairs(&mut right, &mut rv, options);
        self.both("sort_pairs", l, r)?;
        keys.iter().chain(values.iter()).try_for_each(|buf| self.compare("sort_pairs", buf).map(drop))
    }
}

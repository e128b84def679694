//! A backend that is wrong in one way, to show that the suite and [`Dual`](crate::Dual) notice.

mod ntt;
mod points;
mod poseidon;
mod rows;
mod sort;
mod sumcheck;

use ark_ec::PrimeGroup;
use std::ops::Range;
use std::sync::Arc;
use tandem_ops::{
    cpu::{self, Cpu},
    reduce::ElementKind,
    reduce::ReducePlan,
    timeline::{Moved, Recorder},
    Arriving, Backend, BatchInverse, Buffer, Canonical, Curve, Dealt, Element, Error, Gather, Group, HostBuf, HostData,
    Info, Lane, Mont, Msm, MsmRequest, Pending, Pieces, Reduce, ReduceOp, ReduceWay, Result, ScalarRecoding, Scalars,
    Scan, SpMv, Span, SpanId, SparseRows, Stored, Timeline, VecOps, Wire,
};

/// Makes [`Fault`] of the faults that each part of the suite is to notice.
macro_rules! faults {
    ($($part:ident { $($(#[$doc:meta])* $fault:ident,)* })*) => {
        /// What is wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault {
            /// Nothing.
            None,
            $($($(#[$doc])* $fault,)*)*
        }

        impl Fault {
            /// All but [`Fault::None`], each with the part of the suite that is to notice it.
            pub const ALL: &'static [(Fault, &'static str)] = &[$($((Fault::$fault, stringify!($part)),)*)*];
        }
    };
}

faults! {
    memory {
        /// Fresh memory is not zero.
        Alloc,
        /// `write` changes a bit.
        Write,
        /// `copy` changes a bit.
        Copy,
        /// `copy` to another lane stays on the lane.
        CopyLane,
        /// `download` changes a bit.
        Download,
        /// `copy` gives an element less.
        CopyShort,
        /// `join` changes a bit of the last buffer.
        Join,
        /// `join` puts pieces one behind the other from the last to the first.
        JoinOrder,
        /// `join` takes the first piece's range for all of a buffer.
        JoinRange,
        /// `join` leaves a buffer on the lane of its first piece.
        JoinLane,
        /// `join` takes what there is of a piece past the end.
        JoinPastTheEnd,
        /// `upload_to_all` changes a bit for the last lane.
        UploadToAll,
        /// `upload_beside` changes a bit.
        UploadBeside,
        /// `deal` changes a bit of the last source's last share.
        Deal,
        /// `deal` takes the same range for all shares.
        DealRange,
        /// A past-the-end write is accepted and ignored.
        PastTheEnd,
        /// It is refused as if the device had failed.
        RefusedAsBroken,
        /// Spans are lost.
        Spans,
    }
    vector {
        /// `add` changes a bit.
        Add,
        /// `sub` changes a bit.
        Sub,
        /// `mul` changes a bit.
        Mul,
        /// `scale` changes a bit.
        Scale,
        /// `mul_sub` changes a bit.
        MulSub,
        /// `add_scaled` changes a bit.
        AddScaled,
        /// `add_scaled` takes no notice of the step.
        AddScaledStep,
        /// `add_scaled` past the end is accepted and ignored.
        AddScaledPastTheEnd,
        /// `combined` changes a bit.
        Combined,
        /// `combined` leaves the last term out.
        CombinedLast,
        /// `combined` of a vector that is too long takes what has room.
        CombinedTooLong,
        /// `to_canonical` changes a bit.
        ToCanonical,
        /// `to_mont` changes a bit.
        ToMont,
        /// Vectors of different lengths are added as far as both go.
        VectorLengths,
    }
    plonk_rows {
        /// `gate_rows` changes a bit.
        GateRows,
        /// `permuted_rows` changes a bit.
        PermutedRows,
        /// `permuted_rows` takes the first factor for all columns.
        PermutedFactors,
        /// `permuted_rows` takes the first place for all columns.
        PermutedPlaces,
        /// `quotient_rows` changes a bit.
        QuotientRows,
        /// `quotient_rows` takes z for z one row on.
        QuotientNext,
        /// `quotient_rows` leaves the public values out.
        QuotientPublic,
        /// `quotient_rows` takes k1 for k2.
        QuotientK,
    }
    batch_inverse {
        /// `batch_inverse` changes a bit.
        BatchInverse,
        /// One zero makes all inverses zero.
        BatchInverseOfZero,
    }
    point_ntt {
        /// `lagrange_points` changes a bit.
        PointNtt,
        /// It takes any number of points and leaves them.
        PointNttLength,
        /// It leaves points where one of them is infinity.
        PointNttInfinity,
        /// A sum of two equal points is infinity.
        PointNttDoubling,
    }
    scan {
        /// `prefix_product` changes a bit of the last element.
        PrefixProduct,
        /// The product of all lacks the last element.
        PrefixProductTotal,
        /// `evaluate` changes a bit where there is more than one chunk of a GPU's thread.
        Evaluate,
        /// `divide` changes a bit of the last element.
        Divide,
        /// `divide` takes X^m + b for X^m - b.
        DivideSign,
        /// A divisor of X^0 - b is accepted.
        DivideByNothing,
    }
    sumcheck {
        /// The first round's values are wrong, of three tables.
        SumcheckSums,
        /// A table of one element has a round.
        SumcheckShort,
        /// Binding tables changes a bit of the last element.
        SumcheckBind,
        /// Binding columns changes a bit of the last live element.
        SumcheckFold,
        /// It gives wrong values, of more than four elements of each column.
        SumcheckFoldValues,
        /// What is taken comes in the wrong order.
        SumcheckTake,
    }
    gather {
        /// `gather` changes a bit of the last element.
        Gather,
        /// `gather` leaves what is beyond the map as it was.
        GatherTail,
        /// An index past the bound is taken for 0.
        GatherBound,
        /// A vector shorter than the bound is accepted.
        GatherShort,
    }
    ntt {
        /// Every transform changes a bit.
        Ntt,
        /// Only the inverse over the odd coset, both orders bit-reversed, of 2^12 elements changes a bit.
        NttOneForm,
        /// Transforms of lengths that are no power of two are accepted.
        NttLength,
        /// The last vector of a batch is wrong.
        NttBatch,
        /// Transforms over a coset of zero are accepted.
        NttCosetOfZero,
    }
    ntt_products {
        /// A transform of a product changes a bit.
        NttOfProduct,
        /// A product less a transform changes a bit.
        ProductLessNtt,
    }
    ntt_spread {
        /// `ntt_spread` changes a bit of the last shard, where it has more than one element.
        NttSpread,
        /// `ntt_spread` takes shards that are not of one length.
        NttShards,
    }
    fft {
        /// The exponents have the other sign: what is transformed are the conjugates.
        FftSign,
        /// The inverse has a factor of 2/n.
        FftScale,
        /// The last value is an eighth too large.
        FftValue,
        /// What is not finite becomes 1.
        FftFinite,
        /// Transforms of lengths that are no power of two are accepted.
        FftLength,
        /// The first value of the last shard is an eighth too large.
        FftSpread,
        /// `fft_spread` takes shards that are not of one length.
        FftShards,
    }
    spmv {
        /// `spmv` changes a bit.
        Spmv,
        /// `spmv` leaves what is beyond the rows as it was.
        SpmvTail,
        /// A matrix that is none is loaded as one without rows.
        SpmvMatrix,
    }
    msm {
        /// Sums in G1 have a point too much.
        MsmG1,
        /// Sums in G2 have a point too much.
        MsmG2,
        /// A sum in G1 over exactly 256 points has a point too much.
        MsmOneSize,
        /// A plan accepts sets that reach past the scalars.
        Plan,
        /// More scalars than the plan's are accepted, and the last one is left out.
        DigitsLength,
    }
    poseidon {
        /// `poseidon` changes a bit of the last hash.
        Poseidon,
        /// Only `poseidon_columns` does, and only of 11 elements.
        PoseidonColumns,
        /// A hash of more elements than are given is accepted.
        PoseidonLength,
    }
    reduce {
        /// Sums on lanes are one too much, where there are several parts.
        Reduce,
        /// Numbers of 32 bits from host memory are added from the first to the last.
        ReduceOrder,
        /// The least of nothing is the greatest element.
        ReduceNothing,
        /// What is not below the modulus is taken.
        ReduceTooLarge,
    }
    sort {
        /// Sorts by merging change a bit of the last key.
        Sort,
        /// Of two equal keys side by side, the values come in the wrong order.
        SortOrder,
        /// Values on another lane than their keys are taken.
        SortLane,
    }
}

/// The CPU with a fault.
pub struct Faulty {
    cpu: Cpu,
    fault: Fault,
}

/// Points of a set, and how many.
pub struct Counted<T>(T, usize);

impl Faulty {
    /// A device of so many lanes with this fault.
    pub fn new(lanes: usize, fault: Fault) -> Self {
        Faulty { cpu: Cpu::new(lanes), fault }
    }

    /// Changes the lowest bit of the last element, if this is the fault.
    fn flip<T: Wire>(&self, fault: Fault, buf: &mut cpu::Buf<T>) -> Result<()> {
        if self.fault == fault && !buf.is_empty() {
            let mut last = buf.as_slice()[buf.len() - 1];
            bytemuck::bytes_of_mut(&mut last)[0] ^= 1;
            self.cpu.write(buf, buf.len() - 1, &[last])?;
        }
        Ok(())
    }
}

impl Backend for Faulty {
    type Buf<T: Wire> = cpu::Buf<T>;

    fn info(&self) -> Info {
        self.cpu.info()
    }
    fn lanes(&self) -> usize {
        self.cpu.lanes()
    }
    fn alloc<T: Wire>(&self, lane: Lane, len: usize) -> Result<cpu::Buf<T>> {
        let mut buf = self.cpu.alloc(lane, len)?;
        self.flip(Fault::Alloc, &mut buf)?;
        Ok(buf)
    }
    fn write<T: Wire>(&self, dst: &mut cpu::Buf<T>, at: usize, src: &[T]) -> Result<()> {
        let done = self.cpu.write(dst, at, src);
        self.flip(Fault::Write, dst)?;
        match (self.fault, done) {
            (Fault::PastTheEnd, _) => Ok(()),
            (Fault::RefusedAsBroken, Err(_)) => {
                let (device, code_name) = ("the CPU".into(), "cudaErrorInvalidValue".into());
                Err(Error::Device { op: "write", device, code: 1, code_name, text: String::new() })
            }
            (_, done) => done,
        }
    }
    fn upload_to_all<T: Wire>(
        &self,
        lanes: &[Lane],
        src: &Arc<HostBuf<T>>,
        timeline: &Timeline,
    ) -> Result<Vec<cpu::Buf<T>>> {
        let mut bufs = self.cpu.upload_to_all(lanes, src, timeline)?;
        bufs.last_mut().map_or(Ok(()), |last| self.flip(Fault::UploadToAll, last))?;
        Ok(bufs)
    }
    fn upload_beside<T: Wire>(&self, lane: Lane, src: &Arc<HostBuf<T>>, len: usize) -> Result<Arriving<cpu::Buf<T>>> {
        let mut buf = self.cpu.upload_beside(lane, src, len)?.into_inner();
        self.flip(Fault::UploadBeside, &mut buf)?;
        Ok(Arriving::new(buf))
    }
    fn copy<T: Wire>(&self, src: &cpu::Buf<T>, range: Range<usize>, lane: Lane) -> Result<cpu::Buf<T>> {
        let lane = if self.fault == Fault::CopyLane { src.lane() } else { lane };
        let mut buf = self.cpu.copy(src, range.clone(), lane)?;
        if self.fault == Fault::CopyShort && !buf.is_empty() {
            buf = self.cpu.copy(src, range.start..range.end - 1, lane)?;
        }
        self.flip(Fault::Copy, &mut buf)?;
        Ok(buf)
    }
    fn join<T: Wire>(&self, joins: &[(Lane, Pieces<'_, cpu::Buf<T>>)]) -> Result<Vec<cpu::Buf<T>>> {
        let mut joins = joins.to_vec();
        for (lane, pieces) in &mut joins {
            match (self.fault, pieces.first().cloned()) {
                (Fault::JoinOrder, _) => pieces.reverse(),
                (Fault::JoinRange, Some((_, first))) => pieces
                    .iter_mut()
                    .for_each(|(buf, range)| *range = first.start.min(buf.len())..first.end.min(buf.len())),
                (Fault::JoinLane, Some((buf, _))) => *lane = buf.lane(),
                (Fault::JoinPastTheEnd, _) => pieces
                    .iter_mut()
                    .for_each(|(buf, range)| *range = range.start.min(buf.len())..range.end.min(buf.len())),
                _ => {}
            }
        }
        let mut joined = self.cpu.join(&joins)?;
        joined.last_mut().map_or(Ok(()), |last| self.flip(Fault::Join, last))?;
        Ok(joined)
    }
    fn deal<T: Wire>(
        &self,
        sources: Vec<cpu::Buf<T>>,
        shares: &[(Range<usize>, Lane)],
        timeline: &Timeline,
    ) -> Result<Dealt<cpu::Buf<T>>> {
        let mut shares = shares.to_vec();
        if let (Fault::DealRange, Some((first, _))) = (self.fault, shares.first().cloned()) {
            shares.iter_mut().for_each(|(range, _)| *range = first.clone());
        }
        let mut dealt = self.cpu.deal(sources, &shares, timeline)?;
        if let Some(of_last) = dealt.last_mut() {
            if let Some(mut last) = of_last.pop().map(Arriving::into_inner) {
                self.flip(Fault::Deal, &mut last)?;
                of_last.push(Arriving::new(last));
            }
        }
        Ok(dealt)
    }
    fn download<T: Wire>(&self, src: &cpu::Buf<T>) -> Result<Pending<Vec<T>>> {
        let mut changed = self.cpu.copy(src, 0..src.len(), src.lane())?;
        self.flip(Fault::Download, &mut changed)?;
        self.cpu.download(&changed)
    }
    fn synchronize(&self) -> Result<()> {
        self.cpu.synchronize()
    }
    fn timeline(&self) -> Timeline {
        match self.fault {
            Fault::Spans => Timeline::new(self.cpu.id(), NoEnds(self.cpu.recorder())),
            _ => self.cpu.timeline(),
        }
    }
}

/// A timeline whose spans never end.
struct NoEnds<R>(R);

impl<R: Recorder> Recorder for NoEnds<R> {
    fn begin(&self, lane: Lane, queue: usize, name: &'static str) -> SpanId {
        self.0.begin(lane, queue, name)
    }
    fn end(&self, _: SpanId, _: Moved) {}
    fn take(&self) -> Result<Vec<Span>> {
        self.0.take()
    }
}

impl<C: Curve> VecOps<C> for Faulty {
    fn add(&self, a: &mut cpu::Buf<Mont>, b: &cpu::Buf<Mont>) -> Result<()> {
        if self.fault == Fault::VectorLengths && a.len() != b.len() {
            return Ok(());
        }
        VecOps::<C>::add(&self.cpu, a, b).and_then(|()| self.flip(Fault::Add, a))
    }
    fn sub(&self, a: &mut cpu::Buf<Mont>, b: &cpu::Buf<Mont>) -> Result<()> {
        VecOps::<C>::sub(&self.cpu, a, b).and_then(|()| self.flip(Fault::Sub, a))
    }
    fn mul(&self, a: &mut cpu::Buf<Mont>, b: &cpu::Buf<Mont>) -> Result<()> {
        VecOps::<C>::mul(&self.cpu, a, b).and_then(|()| self.flip(Fault::Mul, a))
    }
    fn scale(&self, a: &mut cpu::Buf<Mont>, k: Mont) -> Result<()> {
        VecOps::<C>::scale(&self.cpu, a, k).and_then(|()| self.flip(Fault::Scale, a))
    }
    fn mul_sub(&self, a: &mut cpu::Buf<Mont>, b: &cpu::Buf<Mont>, c: &cpu::Buf<Mont>) -> Result<()> {
        VecOps::<C>::mul_sub(&self.cpu, a, b, c).and_then(|()| self.flip(Fault::MulSub, a))
    }
    fn add_scaled(&self, a: &mut cpu::Buf<Mont>, first: usize, step: usize, b: &cpu::Buf<Mont>, k: Mont) -> Result<()> {
        let step = if self.fault == Fault::AddScaledStep { step.min(1) } else { step };
        let done = VecOps::<C>::add_scaled(&self.cpu, a, first, step, b, k);
        if self.fault == Fault::AddScaledPastTheEnd && done.is_err() && a.lane() == b.lane() {
            return Ok(());
        }
        done.and_then(|()| self.flip(Fault::AddScaled, a))
    }
    fn combined(&self, len: usize, terms: &[(&cpu::Buf<Mont>, Mont)]) -> Result<cpu::Buf<Mont>> {
        let of = match terms {
            [first @ .., _] if self.fault == Fault::CombinedLast && !first.is_empty() => first,
            all => all,
        };
        let mut made = match VecOps::<C>::combined(&self.cpu, len, of) {
            Err(_) if self.fault == Fault::CombinedTooLong && of.iter().any(|of| of.0.len() > len) => {
                self.cpu.alloc(of[0].0.lane(), len)?
            }
            made => made?,
        };
        self.flip(Fault::Combined, &mut made).map(|()| made)
    }
    fn to_canonical(&self, a: &cpu::Buf<Mont>, out: &mut cpu::Buf<Canonical>) -> Result<()> {
        VecOps::<C>::to_canonical(&self.cpu, a, out).and_then(|()| self.flip(Fault::ToCanonical, out))
    }
    fn to_mont(&self, a: &cpu::Buf<Canonical>, out: &mut cpu::Buf<Mont>) -> Result<()> {
        VecOps::<C>::to_mont(&self.cpu, a, out).and_then(|()| self.flip(Fault::ToMont, out))
    }
}

impl<C: Curve> BatchInverse<C> for Faulty {
    fn batch_inverse(&self, data: &mut cpu::Buf<Mont>) -> Result<()> {
        // A product with a factor of zero has no inverse.
        if self.fault == Fault::BatchInverseOfZero && data.as_slice().contains(&Mont::default()) {
            return self.cpu.write(data, 0, &vec![Mont::default(); data.len()]);
        }
        BatchInverse::<C>::batch_inverse(&self.cpu, data).and_then(|()| self.flip(Fault::BatchInverse, data))
    }
}

impl<C: Curve> Scan<C> for Faulty {
    fn prefix_product(&self, data: &mut cpu::Buf<Mont>) -> Result<Pending<Mont>> {
        let total = Scan::<C>::prefix_product(&self.cpu, data)?;
        self.flip(Fault::PrefixProduct, data)?;
        match (self.fault, data.as_slice().last()) {
            (Fault::PrefixProductTotal, Some(&last)) => Ok(Pending::ready(last)),
            _ => Ok(total),
        }
    }
    fn evaluate(&self, coefficients: &cpu::Buf<Mont>, x: Mont) -> Result<Pending<Mont>> {
        let value = Scan::<C>::evaluate(&self.cpu, coefficients, x)?;
        let is_wrong = self.fault == Fault::Evaluate && coefficients.len() > 16;
        Ok(if is_wrong { value.map(changed) } else { value })
    }
    fn divide(&self, coefficients: &mut cpu::Buf<Mont>, m: usize, b: Mont) -> Result<()> {
        if self.fault == Fault::DivideByNothing && m == 0 {
            return Ok(());
        }
        let b = if self.fault == Fault::DivideSign { C::mont(-C::from_mont(b)) } else { b };
        Scan::<C>::divide(&self.cpu, coefficients, m, b).and_then(|()| self.flip(Fault::Divide, coefficients))
    }
}

impl Gather for Faulty {
    type Map = Counted<<Cpu as Gather>::Map>;

    fn load_map(&self, lane: Lane, map: &[u32], bound: usize) -> Result<Self::Map> {
        let taken: Vec<u32> = match self.fault {
            Fault::GatherBound => map.iter().map(|&i| if i as usize >= bound { 0 } else { i }).collect(),
            _ => map.to_vec(),
        };
        Ok(Counted(self.cpu.load_map(lane, &taken, bound)?, map.len()))
    }
    fn gather<T: Wire>(&self, map: &Self::Map, from: &cpu::Buf<T>, to: &mut cpu::Buf<T>) -> Result<()> {
        let before = to.as_slice().to_vec();
        let done = self.cpu.gather(&map.0, from, to);
        if self.fault == Fault::GatherShort && done.is_err() && to.len() >= map.1 {
            return Ok(());
        }
        done?;
        if self.fault == Fault::GatherTail {
            self.cpu.write(to, map.1, &before[map.1..])?;
        }
        self.flip(Fault::Gather, to)
    }
}

impl<C: Curve> SpMv<C> for Faulty {
    type Matrix = Counted<<Cpu as SpMv<C>>::Matrix>;

    fn load_matrix(&self, lane: Lane, matrix: &SparseRows) -> Result<Self::Matrix> {
        let none = SparseRows { starts: vec![0], ..SparseRows::default() };
        let is_taken = self.fault == Fault::SpmvMatrix && matrix.check().is_err();
        let matrix = if is_taken { &none } else { matrix };
        Ok(Counted(SpMv::<C>::load_matrix(&self.cpu, lane, matrix)?, matrix.rows()))
    }
    fn spmv(&self, matrix: &Self::Matrix, x: &cpu::Buf<Canonical>, out: &mut cpu::Buf<Mont>) -> Result<()> {
        let before = out.as_slice().to_vec();
        SpMv::<C>::spmv(&self.cpu, &matrix.0, x, out)?;
        if self.fault == Fault::SpmvTail {
            self.cpu.write(out, matrix.1, &before[matrix.1..])?;
        }
        self.flip(Fault::Spmv, out)
    }
}

impl<C: Curve> ScalarRecoding<C> for Faulty {
    type Plan = <Cpu as ScalarRecoding<C>>::Plan;
    type Entries = <Cpu as ScalarRecoding<C>>::Entries;

    fn plan(&self, lane: Lane, request: &MsmRequest) -> Result<Self::Plan> {
        let plan = ScalarRecoding::<C>::plan(&self.cpu, lane, request);
        match self.fault {
            Fault::Plan if plan.is_err() => {
                ScalarRecoding::<C>::plan(&self.cpu, lane, &MsmRequest { sets: vec![], ..request.clone() })
            }
            _ => plan,
        }
    }
    fn recode(&self, plan: &Self::Plan, scalars: Scalars<'_, Self>) -> Result<Self::Entries> {
        let scalars = match scalars {
            Scalars::Canonical(k) => Scalars::Canonical(k),
            Scalars::Mont(k) => Scalars::Mont(k),
        };
        if let (Fault::DigitsLength, Scalars::Canonical(k)) = (self.fault, &scalars) {
            let shorter = self.cpu.copy(k, 0..k.len().saturating_sub(1), k.lane())?;
            let accepted = |k| ScalarRecoding::<C>::recode(&self.cpu, plan, Scalars::Canonical(k));
            return accepted(k).or_else(|_| accepted(&shorter));
        }
        ScalarRecoding::<C>::recode(&self.cpu, plan, scalars)
    }
}

impl<G: Group> Msm<G> for Faulty {
    type Bases = Counted<<Cpu as Msm<G>>::Bases>;

    fn load(&self, lane: Lane, plan: &Self::Plan, set: usize, points: Stored<'_, G::Point>) -> Result<Self::Bases> {
        Ok(Counted(Msm::<G>::load(&self.cpu, lane, plan, set, points)?, points.len()))
    }
    fn msm(&self, bases: &Self::Bases, digits: &Self::Entries, timeline: &Timeline) -> Result<Pending<G::Ark>> {
        let mut sum = Msm::<G>::msm(&self.cpu, &bases.0, digits, timeline)?.wait()?;
        let wrong = match self.fault {
            Fault::MsmG1 => G::NAME == "G1",
            Fault::MsmG2 => G::NAME == "G2",
            Fault::MsmOneSize => G::NAME == "G1" && bases.1 == 256,
            _ => false,
        };
        if wrong {
            sum += G::Ark::generator();
        }
        Ok(Pending::ready(sum))
    }
}

/// `x` with its lowest bit changed.
fn changed<T: Wire>(mut x: T) -> T {
    bytemuck::bytes_of_mut(&mut x)[0] ^= 1;
    x
}

impl Reduce for Faulty {
    fn reduce_plan<E: Element>(&self, parts: &[(Lane, usize)], way: Option<ReduceWay>) -> Result<ReducePlan> {
        self.cpu.reduce_plan::<E>(parts, way)
    }
    fn reduce<E: Element>(
        &self,
        op: ReduceOp,
        parts: &[&cpu::Buf<E::Wire>],
        way: Option<ReduceWay>,
    ) -> Result<Pending<E::Wire>> {
        let n: usize = parts.iter().map(|part| part.len()).sum();
        if self.fault == Fault::ReduceNothing && n == 0 {
            return Ok(Pending::ready(E::neutral(op)));
        }
        let result = self.cpu.reduce::<E>(op, parts, way)?.wait()?;
        let is_wrong = self.fault == Fault::Reduce && parts.len() > 1 && op == ReduceOp::Sum;
        Ok(Pending::ready(if is_wrong { changed(result) } else { result }))
    }
    fn reduce_host_plan(&self, data: HostData<'_>) -> ReducePlan {
        self.cpu.reduce_host_plan(data)
    }
    fn reduce_host<E: Element>(&self, op: ReduceOp, data: HostData<'_>) -> Result<E::Wire> {
        let result = self.cpu.reduce_host::<E>(op, data);
        match self.fault {
            Fault::ReduceOrder if E::KIND == ElementKind::F32 && op == ReduceOp::Sum => {
                let mut elements = vec![E::neutral(op); data.elements(size_of::<E::Wire>())?];
                data.read(0, bytemuck::cast_slice_mut(&mut elements))?;
                Ok(elements.into_iter().fold(E::neutral(op), |a, b| E::combine(op, a, b)))
            }
            Fault::ReduceTooLarge if result.is_err() && matches!(E::KIND, ElementKind::Scalar(_)) => Ok(E::neutral(op)),
            _ => result,
        }
    }
}

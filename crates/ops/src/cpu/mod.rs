//! The CPU: the specification of every primitive.
//!
//! [`Cpu`] does each operation at once, on rayon's pool, before it returns; its `Pending`s are ready. With several
//! lanes it is the `sim` device: pretend GPUs whose buffers may not be mixed, so that schedules for several lanes
//! run where there is no GPU.

mod batch_inverse;
#[cfg(all(debug_assertions, not(fuzzing), not(test)))]
mod compiled;
mod gather;
mod held;
mod msm;
mod ntt;
mod plonk_rows;
mod point_ntt;
mod poseidon;
mod reduce;
mod scan;
mod simd;
mod sort;
mod spmv;
mod sumcheck;
mod timeline;
mod vector;

pub use gather::IndexMap;
pub use msm::{all_on_curve, trits, Bases, Plan, SplitScalars};
pub use simd::wrong_product;
pub use spmv::Matrix;

use crate::backend::{check_pieces, check_range};
use crate::timeline::{self as spans, BackendId, Ends, Moved, Recorder};
use crate::{
    memory, threads, Backend, Buffer, DeviceKind, Error, HostBuf, Info, Lane, Pending, Pieces, Result, Timeline, Wire,
};
use held::Held;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tandem_field_simd::Avx512;
use zeroize::Zeroize;

/// Whether sums and transforms go eight at a time, by AVX-512, unless the environment forbids it: each thread then takes more memory.
pub fn is_wide() -> bool {
    simd::default().is_some()
}

/// A backend in host memory.
#[derive(Debug)]
pub struct Cpu {
    id: BackendId,
    lanes: usize,
    epoch: Instant,
    roots: ntt::Roots,
    simd: Option<Avx512>,
    /// What all lanes together say that they have.
    memory_bytes: u64,
    /// What the buffers and the matrices of each lane take.
    held: Vec<Arc<Held>>,
    /// What the points that were loaded onto each lane take.
    points: Vec<Arc<Held>>,
    /// What copies moved.
    moved: Mutex<Moved>,
}

/// Elements in host memory that belong to a lane.
pub struct Buf<T: Wire> {
    lane: Lane,
    data: Vec<T>,
    held: Arc<Held>,
}

impl<T: Wire> Buf<T> {
    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        &self.data
    }
}

impl<T: Wire> Buffer<T> for Buf<T> {
    fn len(&self) -> usize {
        self.data.len()
    }
    fn lane(&self) -> Lane {
        self.lane
    }
}

impl<T: Wire> Drop for Buf<T> {
    fn drop(&mut self) {
        self.data.iter_mut().zeroize();
        self.held.remove(size_of_val(self.data.as_slice()) as u64);
    }
}

impl Cpu {
    /// A backend of `lanes` lanes (at least one): the CPU itself with one, the `sim` device with more.
    pub fn new(lanes: usize) -> Self {
        let lanes = lanes.max(1);
        let [held, points] = [(); 2].map(|()| (0..lanes).map(|_| Arc::default()).collect());
        let (epoch, roots, simd) = (Instant::now(), ntt::Roots::default(), simd::default());
        Cpu {
            id: BackendId::fresh(),
            lanes,
            epoch,
            roots,
            simd,
            memory_bytes: u64::MAX,
            held,
            points,
            moved: Mutex::default(),
        }
    }

    /// As [`Cpu::new`], without the instructions that only some processors have.
    pub fn plain(lanes: usize) -> Self {
        Cpu { simd: None, ..Self::new(lanes) }
    }

    /// As [`Cpu::new`], with lanes that say that they have so many bytes each: for what is decided by that.
    pub fn with_memory(lanes: usize, bytes: u64) -> Self {
        Cpu { memory_bytes: bytes.saturating_mul(lanes.max(1) as u64), ..Self::new(lanes) }
    }

    /// The most bytes that buffers and matrices of `lane` took at once since the last call, those counted that are there now: what a schedule takes of a
    /// GPU's memory beside what primitives work with. 0 where there is no such lane.
    pub fn take_most_bytes(&self, lane: Lane) -> u64 {
        self.held.get(lane.0).map_or(0, |held| held.take_most())
    }

    /// Bytes of the points that are loaded onto `lane`, as they came. 0 where there is no such lane.
    pub fn point_bytes(&self, lane: Lane) -> u64 {
        self.points.get(lane.0).map_or(0, |points| points.now())
    }

    /// What all copies moved since the last call, whoever enqueued them: what comes from the host and goes to it, as if it were not the lanes'
    /// own memory, and what goes between lanes.
    pub fn take_moved(&self) -> Moved {
        std::mem::take(&mut *self.moved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Which of all backends it is.
    pub fn id(&self) -> BackendId {
        self.id
    }

    /// What a timeline of this backend notes spans by.
    pub fn recorder(&self) -> impl Recorder + 'static {
        timeline::Recorded::new(self.epoch)
    }

    /// Counts a copy.
    fn count(&self, ends: Ends, bytes: usize) {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner) += ends.moved(bytes);
        spans::count(self.id, ends, bytes);
    }

    /// A result that a lane hands to the host, as GPUs do by a copy of so many bytes.
    fn handed<T: Send + 'static>(&self, lane: Lane, bytes: usize, result: T) -> Pending<T> {
        self.count(Ends::Down(lane), bytes);
        Pending::ready(result)
    }

    /// A buffer of a lane that there is.
    fn buf<T: Wire>(&self, lane: Lane, data: Vec<T>) -> Buf<T> {
        let held = self.held.get(lane.0).cloned().unwrap_or_default();
        held.add(size_of_val(data.as_slice()) as u64);
        Buf { lane, data, held }
    }

    fn check_lane(&self, op: &'static str, lane: Lane) -> Result<()> {
        if lane.0 >= self.lanes {
            return Err(Error::invalid(op, format!("lane {} of a device with {}", lane.0, self.lanes)));
        }
        Ok(())
    }
}

/// Fails unless all `lanes` are the first one, which it returns.
fn one_lane(op: &'static str, lanes: &[Lane]) -> Result<Lane> {
    match lanes.iter().find(|&&l| l != lanes[0]) {
        Some(other) => Err(Error::invalid(op, format!("buffers of lane {} and lane {}", lanes[0].0, other.0))),
        None => Ok(lanes[0]),
    }
}

fn equal_lengths(op: &'static str, a: usize, b: usize) -> Result<()> {
    if a != b {
        return Err(Error::invalid(op, format!("vectors of {a} and {b} elements")));
    }
    Ok(())
}

/// Fails if `at..at + count` is not within `len` elements.
fn within(op: &'static str, at: usize, count: usize, len: usize) -> Result<()> {
    if at.checked_add(count).is_none_or(|end| end > len) {
        return Err(Error::invalid(op, format!("{count} elements from {at} on, of a buffer of {len}")));
    }
    Ok(())
}

impl Backend for Cpu {
    type Buf<T: Wire> = Buf<T>;

    fn info(&self) -> Info {
        let threads = threads::count();
        let free = memory::host().free.min(self.memory_bytes);
        let (kind, lane_names) = match self.lanes {
            1 => (DeviceKind::Cpu, vec![format!("CPU, {threads} threads")]),
            n => (DeviceKind::Sim, (0..n).map(|i| format!("pretend GPU (sim:{i})")).collect()),
        };
        Info { kind, lane_names, free_bytes: vec![free / self.lanes as u64; self.lanes] }
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn alloc<T: Wire>(&self, lane: Lane, len: usize) -> Result<Buf<T>> {
        self.check_lane("alloc", lane)?;
        Ok(self.buf(lane, memory::filled("alloc", len, T::zeroed())?))
    }

    fn write<T: Wire>(&self, dst: &mut Buf<T>, at: usize, src: &[T]) -> Result<()> {
        within("write", at, src.len(), dst.data.len())?;
        dst.data[at..at + src.len()].copy_from_slice(src);
        self.count(Ends::Up(dst.lane), size_of_val(src));
        Ok(())
    }

    /// As pretend GPUs have it.
    fn host_copy<T: Wire>(&self, len: usize) -> Option<HostBuf<T>> {
        HostBuf::zeros(len).ok()
    }

    fn upload<T: Wire>(&self, lane: Lane, src: &[T]) -> Result<Buf<T>> {
        self.check_lane("upload", lane)?;
        let buf = self.buf(lane, memory::copied("upload", src)?);
        self.count(Ends::Up(lane), size_of_val(src));
        Ok(buf)
    }

    fn copy<T: Wire>(&self, src: &Buf<T>, range: Range<usize>, lane: Lane) -> Result<Buf<T>> {
        self.check_lane("copy", lane)?;
        check_range("copy", &range, src.data.len())?;
        let part = &src.data[range];
        let buf = self.buf(lane, memory::copied("copy", part)?);
        self.count(Ends::Across(src.lane, lane), size_of_val(part));
        Ok(buf)
    }

    fn join<T: Wire>(&self, joins: &[(Lane, Pieces<'_, Buf<T>>)]) -> Result<Vec<Buf<T>>> {
        const OP: &str = "join";
        let length = |(lane, pieces): &(Lane, Pieces<'_, Buf<T>>)| {
            self.check_lane(OP, *lane)?;
            check_pieces(OP, pieces)
        };
        let lengths = joins.iter().map(length).collect::<Result<Vec<_>>>()?;
        let joined = |((lane, pieces), len): (&(Lane, Pieces<'_, Buf<T>>), usize)| {
            let mut data = memory::reserve(OP, len)?;
            for (from, range) in pieces {
                let piece = &from.data[range.clone()];
                data.extend_from_slice(piece);
                self.count(Ends::Across(from.lane, *lane), size_of_val(piece));
            }
            Ok(self.buf(*lane, data))
        };
        joins.iter().zip(lengths).map(joined).collect()
    }

    fn download<T: Wire>(&self, src: &Buf<T>) -> Result<Pending<Vec<T>>> {
        let copied = memory::copied("download", &src.data)?;
        Ok(self.handed(src.lane, size_of_val(src.as_slice()), copied))
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn timeline(&self) -> Timeline {
        Timeline::new(self.id, self.recorder())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mont;

    #[test]
    fn the_most_that_buffers_took_is_known() {
        let cpu = Cpu::new(2);
        let [first, second] = [Lane(0), Lane(1)];
        let kept = cpu.alloc::<Mont>(first, 10).unwrap();
        drop(cpu.copy(&kept, 2..9, second).unwrap());
        let sum = crate::VecOps::<crate::Bn254>::combined(&cpu, 11, &[(&kept, Mont::default())]).unwrap();
        drop((sum, cpu.upload(first, &[1u32; 3]).unwrap()));
        assert_eq!([first, second, Lane(2)].map(|lane| cpu.take_most_bytes(lane)), [21 * 32 + 12, 7 * 32, 0]);
        assert_eq!([first, second].map(|lane| cpu.take_most_bytes(lane)), [10 * 32, 0]);
    }

    #[test]
    fn refuses_more_memory_than_there_is() {
        let cpu = Cpu::new(1);
        for len in [1 << 45, usize::MAX / 32, usize::MAX] {
            assert!(matches!(cpu.alloc::<Mont>(Lane(0), len), Err(Error::OutOfMemory { .. })), "{len}");
        }
    }

    /// What an operation takes in all is compared with what is free before it takes the first of it.
    #[test]
    fn all_that_an_operation_takes_has_to_be_free() {
        use crate::{Msm, MsmRequest, MsmSet, ScalarRecoding, Scalars, Sort, SortOptions};
        use memory::with_free;
        type G = <crate::Bn254 as crate::Curve>::G1;
        const N: u64 = 1000;
        let mut unchecked = Vec::new();
        let mut expect = |what, result: Result<()>, free: u64| {
            if !matches!(result, Err(Error::OutOfMemory { wanted, .. }) if wanted > free) {
                unchecked.push(what);
            }
        };
        let cpu = Cpu::new(1);
        let values: Vec<crate::Canonical> = (0..N).map(|i| crate::Canonical([i + 2, i, 3, 4])).collect();
        let scalars = cpu.upload(Lane(0), &values).unwrap();
        let sets = vec![MsmSet { g2: false, first: 0, points: N as usize }];
        let request = MsmRequest { scalars: N as usize, sets, memory_bytes: u64::MAX, uses: 1, pipelined: false };
        let plan = ScalarRecoding::<crate::Bn254>::plan(&cpu, Lane(0), &request).unwrap();
        let recode = || ScalarRecoding::<crate::Bn254>::recode(&cpu, &plan, Scalars::Canonical(&scalars));
        // Each vector by itself has room.
        let free = 40 * N;
        expect("digits", with_free(free, || recode().map(drop)), free);
        let digits = with_free(100 * N, recode).unwrap();
        let one = <G as crate::Group>::from_ark(&<<G as crate::Group>::Ark as ark_ec::PrimeGroup>::generator().into());
        let points = vec![one; N as usize];
        let bases = Msm::<G>::load(&cpu, Lane(0), &plan, 0, points[..].into()).unwrap();
        let sum = || Msm::<G>::msm(&cpu, &bases, &digits, &Timeline::none()).map(drop);
        expect("sum", with_free(free, sum), free);
        with_free(u64::MAX, sum).unwrap();
        let keys: Vec<u64> = (0..N).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let sort = |free| {
            let [mut keys, mut values] = [(); 2].map(|()| cpu.upload(Lane(0), &keys).unwrap());
            with_free(free, || Sort::sort_pairs(&cpu, &mut [&mut keys], &mut [&mut values], SortOptions::default()))
        };
        // The pairs once, and not half as much again.
        expect("sort", sort(16 * N), 16 * N);
        sort(24 * N).unwrap();
        assert!(unchecked.is_empty(), "{unchecked:?}");
    }

    /// The allocator keeps what is freed for the next one, and so would what it holds be there to read.
    #[test]
    fn buffers_are_wiped_when_they_are_dropped() {
        use std::io::{Read, Seek, SeekFrom};
        const SECRET: u64 = 0x6b1f_93d2_a05c_77e9;
        let cpu = Cpu::new(1);
        let buf = cpu.upload(Lane(0), &[SECRET; 1000]).unwrap();
        let address = buf.as_slice().as_ptr().addr() as u64;
        // Taken before, or it would be given what is freed.
        let mut bytes = vec![0u8; 8000];
        let mut memory = std::fs::File::open("/proc/self/mem").unwrap();
        let mut there = || {
            memory.seek(SeekFrom::Start(address)).unwrap();
            memory.read_exact(&mut bytes).unwrap();
            bytes.chunks_exact(8).filter(|word| **word == SECRET.to_ne_bytes()).count()
        };
        assert_eq!(there(), 1000);
        drop(buf);
        assert_eq!(there(), 0);
    }

    #[test]
    fn spans_are_taken_once_and_in_order_of_their_ends() {
        let cpu = Cpu::new(2);
        let timeline = cpu.timeline();
        let a = timeline.begin(Lane(0), "a");
        let b = timeline.begin(Lane(1), "b");
        timeline.end(b);
        timeline.end(a);
        timeline.end(a);
        let spans = timeline.take().unwrap();
        assert_eq!(spans.iter().map(|s| s.name).collect::<Vec<_>>(), ["b", "a"]);
        assert!(spans[1].start_us <= spans[0].start_us && spans[1].duration_us >= spans[0].duration_us);
        assert!(timeline.take().unwrap().is_empty());
    }
}

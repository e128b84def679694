//! Host memory through all GPUs at once: each takes the next group of elements over its own link, as soon as it is done with one.
//!
//! A worker is a thread with a stream of its own and room for one group. While one worker's group is reduced, those of the others
//! are on their way. From page-locked memory the GPU copies groups itself. All other memory, and files, pass through two page-locked
//! slots of the worker: one is filled while the other is copied.

use super::{launcher, number, NONE_TOO_LARGE, OP};
use crate::backend::Cuda;
use crate::ffi;
use crate::lane::LaneCtx;
use crate::tuning::reduce::{PAGED_WORKERS, PINNED_WORKERS, SLOT_BYTES};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tandem_cuda::{ffi as ffi_cuda, DeviceBuffer, Event, Pinned, Stream};
use tandem_ops::reduce::{combine_groups, too_large, Element, HostData, ReduceOp, GROUP_BYTES, GROUP_TILES};
use tandem_ops::{Backend, Error, Lane, Result};

/// Bytes of the largest element.
const MOST_ELEMENT: usize = 32;
/// A worker's result: an element, then the index of the first that is none.
const RESULT_BYTES: usize = MOST_ELEMENT + 8;

/// A thread's part of the work on one GPU.
struct Worker {
    stream: Arc<Stream>,
    group: DeviceBuffer<u8>,
    scratch: DeviceBuffer<u8>,
    result: DeviceBuffer<u8>,
    /// Where the result arrives.
    arrived: Pinned,
    /// Made when they are first needed.
    slots: [Slot; 2],
}

#[derive(Default)]
struct Slot {
    memory: Option<Pinned>,
    /// Happens when the slot's contents have been copied.
    copied: Option<Event>,
}

/// What the workers of a call have in common.
struct Job<'a> {
    op: ReduceOp,
    data: HostData<'a>,
    is_pinned: bool,
    groups: u64,
    next: AtomicU64,
    /// No group is begun any more.
    is_over: AtomicBool,
}

/// Whether the GPUs copy from it themselves.
pub(super) fn is_pinned(cuda: &Cuda, data: HostData<'_>) -> bool {
    let HostData::Memory(memory) = data else { return false };
    // The runtime would else start the first device to answer.
    cuda.lane(OP, Lane(0)).is_ok_and(|lane| lane.device.make_current().is_ok()) && tandem_cuda::is_pinned(memory)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for an event without going to sleep: waking up costs more than a slot.
fn wait(event: &Event) -> tandem_cuda::Result<()> {
    while !event.is_done()? {
        std::thread::yield_now();
    }
    Ok(())
}

pub(super) fn run<E: Element>(cuda: &Cuda, op: ReduceOp, data: HostData<'_>) -> Result<E::Wire> {
    data.elements(size_of::<E::Wire>())?;
    let is_pinned = is_pinned(cuda, data);
    let groups = data.bytes().div_ceil(GROUP_BYTES as u64);
    let job = Job { op, data, is_pinned, groups, next: AtomicU64::new(0), is_over: AtomicBool::new(false) };
    let lanes: Vec<&Arc<LaneCtx>> = (0..cuda.lanes()).map(|i| cuda.lane(OP, Lane(i))).collect::<Result<_>>()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from) / lanes.len();
    let per_lane = if is_pinned { PINNED_WORKERS } else { PAGED_WORKERS.min(threads).max(1) };
    let most = usize::try_from(groups).unwrap_or(usize::MAX);
    let kept: Vec<Arc<Mutex<Vec<Worker>>>> = lanes.iter().map(|lane| lane.cache.of()).collect();
    // Locked lane by lane in one order, so that no two callers wait for each other.
    let mut of_lanes: Vec<MutexGuard<'_, Vec<Worker>>> = kept.iter().map(|workers| lock(workers)).collect();
    for (lane, workers) in lanes.iter().zip(&mut of_lanes) {
        while workers.len() < per_lane.min(most) {
            workers.push(Worker::new(lane)?);
        }
    }
    let mut team: Vec<(usize, &LaneCtx, &mut Worker)> = Vec::new();
    for (lane, workers) in lanes.iter().zip(&mut of_lanes) {
        team.extend(workers.iter_mut().take(per_lane).enumerate().map(|(number, worker)| (number, &***lane, worker)));
    }
    // As many as there are groups, from all lanes.
    team.sort_by_key(|(number, lane, _)| (*number, lane.lane.0));
    team.truncate(most);
    let job = &job;
    let done: Vec<Result<Vec<Done<E>>>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            team.into_iter().map(|(_, lane, worker)| scope.spawn(move || worker.run::<E>(lane, job))).collect();
        let failed = || Err(Error::invalid(OP, "a thread of the host panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
    });
    let mut all: Vec<Done<E>> = done.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    all.sort_by_key(|done| done.group);
    if let Some(index) = all.iter().map(|done| done.too_large).find(|&index| index != NONE_TOO_LARGE) {
        return Err(too_large(index));
    }
    combine_groups::<E>(op, all.into_iter().map(|done| done.result))
}

/// The result of a group.
struct Done<E: Element> {
    group: u64,
    result: E::Wire,
    too_large: u64,
}

impl Worker {
    fn new(lane: &LaneCtx) -> Result<Self> {
        let make = || {
            let stream = Arc::new(Stream::new(lane.device)?);
            let alloc = |bytes, wipe| lane.pool().alloc(&stream, bytes, wipe);
            Ok(Worker {
                group: alloc(GROUP_BYTES, true)?,
                scratch: alloc(GROUP_TILES * MOST_ELEMENT, true)?,
                result: alloc(RESULT_BYTES, true)?,
                arrived: Pinned::new(lane.device, RESULT_BYTES)?,
                slots: Default::default(),
                stream,
            })
        };
        make().map_err(|e| lane.error_of(OP, e, (GROUP_BYTES + 2 * SLOT_BYTES) as u64))
    }

    /// Takes groups until none is left.
    fn run<E: Element>(&mut self, lane: &LaneCtx, job: &Job<'_>) -> Result<Vec<Done<E>>> {
        let mut all = Vec::new();
        let mut done = Ok(());
        while done.is_ok() && !job.is_over.load(Ordering::Relaxed) {
            let group = job.next.fetch_add(1, Ordering::Relaxed);
            if group >= job.groups {
                break;
            }
            done = self.group::<E>(lane, job, group).map(|done| {
                if done.too_large != NONE_TOO_LARGE {
                    // All groups before this one have been begun.
                    job.is_over.store(true, Ordering::Relaxed);
                }
                all.push(done);
            });
        }
        if done.is_err() {
            job.is_over.store(true, Ordering::Relaxed);
        }
        // Nothing may read the caller's memory or the slots any more; what they held may be secret.
        let idle = self.stream.synchronize().map_err(|e| lane.error(OP, e));
        for slot in &mut self.slots {
            slot.copied = None;
            slot.memory.iter_mut().filter(|_| !job.is_pinned).for_each(|memory| memory.bytes().fill(0));
        }
        self.arrived.bytes().fill(0);
        let wiped = self.group.zero(0..GROUP_BYTES).map_err(|e| lane.error(OP, e));
        done.and(idle).and(wiped).map(|()| all)
    }

    fn group<E: Element>(&mut self, lane: &LaneCtx, job: &Job<'_>, group: u64) -> Result<Done<E>> {
        let start = group * GROUP_BYTES as u64;
        let bytes = usize::try_from(job.data.bytes() - start).unwrap_or(GROUP_BYTES).min(GROUP_BYTES);
        match job.data {
            HostData::Memory(memory) if job.is_pinned => {
                let start = start as usize;
                self.copy(0, &memory[start..start + bytes]).map_err(|e| lane.error(OP, e))?;
            }
            _ => self.through_slots(lane, job, start, bytes)?,
        }
        self.reduce::<E>(job.op, start, bytes).map_err(|e| lane.error(OP, e))?;
        let arrived = self.arrived.bytes();
        let mut index = [0; 8];
        index.copy_from_slice(&arrived[MOST_ELEMENT..]);
        let result = bytemuck::pod_read_unaligned(&arrived[..size_of::<E::Wire>()]);
        Ok(Done { group, result, too_large: u64::from_le_bytes(index) })
    }

    /// Starts the copy of bytes to `at` in the group. They stay as they are until it is done.
    fn copy(&self, at: usize, from: &[u8]) -> tandem_cuda::Result<()> {
        assert!(at + from.len() <= self.group.len(), "a copy within the group");
        let to = self.group.ptr().offset(at).raw();
        // SAFETY: the target lies in this worker's buffer, which its stream orders. The source is page-locked, and its owner keeps it:
        // `run` waits for the stream before it returns, and a slot is not touched before its event has happened.
        self.stream.call(OP, |raw| unsafe { ffi_cuda::tandem_cuda_copy_to_device(to, from.as_ptr(), from.len(), raw) })
    }

    /// Fills the group through the slots.
    fn through_slots(&mut self, lane: &LaneCtx, job: &Job<'_>, start: u64, bytes: usize) -> Result<()> {
        for (turn, at) in (0..bytes).step_by(SLOT_BYTES).enumerate() {
            let which = turn % self.slots.len();
            let slot = &mut self.slots[which];
            if let Some(copied) = slot.copied.take() {
                wait(&copied).map_err(|e| lane.error(OP, e))?;
            }
            let mut memory = match slot.memory.take() {
                Some(memory) => memory,
                None => Pinned::new(lane.device, SLOT_BYTES).map_err(|e| lane.error_of(OP, e, SLOT_BYTES as u64))?,
            };
            let part = &mut memory.bytes()[..SLOT_BYTES.min(bytes - at)];
            let copied = job.data.read(start + at as u64, part).and_then(|()| {
                self.copy(at, part).and_then(|()| self.stream.record()).map_err(|e| {
                    // Without an event, only the end of all work says that the slot is free.
                    let _ = self.stream.synchronize();
                    lane.error(OP, e)
                })
            });
            self.slots[which].memory = Some(memory);
            self.slots[which].copied = Some(copied?);
        }
        Ok(())
    }

    /// Reduces the group, of which `bytes` bytes are elements, and waits for the result.
    fn reduce<E: Element>(&mut self, op: ReduceOp, start: u64, bytes: usize) -> tandem_cuda::Result<()> {
        self.result.fill(MOST_ELEMENT..RESULT_BYTES, NONE_TOO_LARGE as u8)?;
        let (group, result, scratch) = (self.group.ptr(), self.result.ptr(), self.scratch.ptr());
        let size = size_of::<E::Wire>() as u64;
        let args = ffi::tandem_reduce_args {
            data: group.raw(),
            groups: result.raw(),
            too_large: result.offset(MOST_ELEMENT).cast().raw(),
            n: bytes as u64 / size,
            first: start / size,
            op: number(op),
        };
        let (_, launch) = launcher(E::KIND);
        let (arrived, scratch_bytes) = (self.arrived.address(), self.scratch.len());
        self.stream.call(OP, |stream| {
            // SAFETY: the group holds these elements, the result has room for one and an index, scratch for a value of each tile; all are
            // buffers of this stream.
            unsafe { launch(&args, scratch.cast().raw(), scratch_bytes, stream) }
        })?;
        self.stream.call(OP, |stream| {
            // SAFETY: both are this worker's and as long; the stream is waited for below, and by `run` if that fails.
            unsafe { ffi_cuda::tandem_cuda_copy_to_host(arrived, result.raw(), RESULT_BYTES, stream) }
        })?;
        wait(&self.stream.record()?)
    }
}

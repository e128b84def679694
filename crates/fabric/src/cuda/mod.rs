//! PEs that are GPUs: streams for queues, windows of virtual memory that every GPU of the world has mapped.

mod stream_queue;

use crate::bound::{bound, drop_after, PATIENCE};
use crate::fault::Record;
use crate::heap::ALIGN;
use crate::machine::{self, Links, RegionOwner, Seat, MAX_REGIONS};
use crate::{ffi, Error, Memory, Result};
use bytemuck::Pod;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tandem_cuda::{Device, Pinned, Reserved, Stream};

/// Pieces that the host's reads and writes go in.
const STAGING: usize = 4 << 20;
/// Bytes that a heap grows by at least: a mapping takes as long for 2 MiB.
const LEAST_GROWTH: u64 = 32 << 20;
/// Hardware queues of a GPU that has several PEs: as many as there can be.
const CONNECTIONS: u32 = 32;
/// Bytes of an address.
const WORD: u64 = size_of::<u64>() as u64;
/// Bytes of a table of regions, rounded to what addresses are aligned to.
const TABLE: u64 = (size_of::<ffi::tandem_region>() * MAX_REGIONS) as u64;

/// GPUs and their windows.
pub(crate) struct Machine {
    devices: Arc<[Device]>,
    window: u64,
    granule: u64,
    /// By PE: the devices that reach its memory, its own among them, each once.
    users: Vec<Vec<Device>>,
    reserved: Reserved,
    /// By PE: what the host reads and writes through.
    host: Vec<Mutex<HostPath>>,
    /// By PE: the table of regions, in a mapping of its own behind the windows.
    tables: Vec<u64>,
    /// Where allocations end, if that is kept.
    ends: Option<Ends>,
}

/// A word for each [`ALIGN`] bytes of a window, on each PE, behind the tables of regions. Grows with the heap.
struct Ends {
    /// Where the first PE's begins in what is reserved, and from there to the next PE's.
    at: u64,
    step: u64,
    /// By PE: bytes that have memory.
    mapped: Vec<Mutex<u64>>,
}

/// A stream that nothing else uses, and page-locked memory to go through.
struct HostPath {
    stream: Stream,
    /// `None` once a copy was late, which may still use it.
    slot: Option<Pinned>,
}

impl HostPath {
    /// Waits for what was told to the stream, `bytes` bytes, as long as that may take. After that the path is of no use.
    fn settle(&mut self, op: &'static str, bytes: u64) -> Result<()> {
        let begun = Instant::now();
        let end = self.stream.record()?;
        if end.synchronize_until(begun + bound(PATIENCE, bytes))? {
            return Ok(());
        }
        drop_after((end, self.slot.take()), |(end, _)| _ = end.synchronize());
        Err(self.late(op, bytes, begun))
    }

    fn late(&self, op: &'static str, bytes: u64, begun: Instant) -> Error {
        Error::Late { op, device: self.stream.device().to_string(), bytes, waited: begun.elapsed() }
    }

    /// What went through may be secret.
    fn wipe(&mut self, bytes: usize) {
        self.slot.iter_mut().for_each(|slot| slot.bytes()[..bytes.min(STAGING)].fill(0));
    }

    /// The memory to go through.
    fn slot(&mut self, op: &'static str, bytes: usize) -> Result<(&Stream, &mut Pinned)> {
        let late = self.late(op, bytes as u64, Instant::now());
        self.slot.as_mut().map(|slot| (&self.stream, slot)).ok_or(late)
    }
}

impl Machine {
    /// Reserves windows of at least `window` bytes, and writes into `links` what the driver does not let PEs do.
    /// `checks` keeps where allocations end.
    pub(crate) fn new(devices: &[Device], window: u64, checks: bool, links: &mut Links) -> Result<Self> {
        let op = "open a team of GPUs";
        enough_connections(op, devices)?;
        let mut granule = 1;
        for &device in devices {
            let step = device.map_granularity()?;
            granule = granule.max(step.max(1).next_power_of_two());
            preload(device)?;
        }
        peers(devices, links)?;
        let window = window.next_multiple_of(granule);
        let table = TABLE.next_multiple_of(granule);
        let pes = devices.len() as u64;
        // Tables lie behind the windows, so that a window is all heap.
        let step = if checks { (window / ALIGN * WORD).next_multiple_of(granule) } else { 0 };
        let reserved = Reserved::new(pes * (window + table + step))?;
        let users = |pe: usize| {
            let mut users: Vec<Device> = Vec::new();
            let reaching = (0..devices.len()).filter(|&u| links.apart(u, pe).is_none()).map(|u| devices[u]);
            reaching.for_each(|device| {
                if !users.contains(&device) {
                    users.push(device)
                }
            });
            users
        };
        let mut tables = Vec::new();
        let mut host = Vec::new();
        for (pe, &device) in devices.iter().enumerate() {
            let at = pes * window + pe as u64 * table;
            reserved.map(at..at + table, device, &[device])?;
            tables.push(reserved.address() + at);
            host.push(Mutex::new(HostPath { stream: Stream::new(device)?, slot: Some(Pinned::new(device, STAGING)?) }));
        }
        let users = (0..devices.len()).map(users).collect();
        let mapped = devices.iter().map(|_| Mutex::new(0)).collect();
        let ends = checks.then_some(Ends { at: pes * (window + table), step, mapped });
        Ok(Machine { devices: devices.into(), window, granule, users, reserved, host, tables, ends })
    }

    /// Memory, all zero, at these places of what is reserved.
    fn zeroed(&self, pe: usize, range: std::ops::Range<u64>, users: &[Device]) -> Result<()> {
        self.reserved.map(range.clone(), self.devices[pe], users)?;
        let mut path = self.path(pe);
        path.slot("fill memory", 0)?;
        let zeroed = path.stream.call("fill memory", |raw| {
            let at = (self.reserved.address() + range.start) as *mut u8;
            // SAFETY: the bytes have just been mapped and nobody else knows of them.
            unsafe { tandem_cuda::ffi::tandem_cuda_memset(at, 0, (range.end - range.start) as usize, raw) }
        });
        let zeroed = zeroed.map_err(Error::from).and_then(|()| path.settle("fill memory", range.end - range.start));
        // What is still written to stays mapped.
        if zeroed.as_ref().is_err_and(|error| !matches!(error, Error::Late { .. })) {
            let _ = self.reserved.unmap(range);
        }
        zeroed
    }

    /// Gives the words for the first `heap` bytes of a window memory. What is there stays when the heap shrinks again.
    fn grow_ends(&self, pe: usize, heap: u64) -> Result<()> {
        let Some(ends) = &self.ends else { return Ok(()) };
        let mut mapped = ends.mapped[pe].lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = (heap / ALIGN * WORD).next_multiple_of(self.granule).min(ends.step);
        if wanted > *mapped {
            let at = ends.at + pe as u64 * ends.step;
            self.zeroed(pe, at + *mapped..at + wanted, &[self.devices[pe]])?;
            *mapped = wanted;
        }
        Ok(())
    }

    /// Bytes from one window to the next, which may be more than was asked for.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    fn range(&self, pe: usize, from: u64, to: u64) -> std::ops::Range<u64> {
        let start = pe as u64 * self.window;
        start + from..start + to
    }

    fn path(&self, pe: usize) -> MutexGuard<'_, HostPath> {
        self.host[pe].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// PEs of one GPU wait for each other in kernels, each in a queue of its own. Where two of these queues share one of the GPU's hardware
/// queues, a kernel that waits holds up the one that it waits for. The driver makes 8 hardware queues unless it is told otherwise.
fn enough_connections(op: &'static str, devices: &[Device]) -> Result<()> {
    const NAME: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
    let Some(shared) = devices.iter().find(|device| devices.iter().filter(|other| other == device).count() > 1) else {
        return Ok(());
    };
    let connections = std::env::var(NAME).ok().and_then(|text| text.trim().parse::<u32>().ok());
    if connections.unwrap_or(8) >= CONNECTIONS {
        return Ok(());
    }
    let problem =
        format!("{shared} is named twice: several PEs of one GPU need {NAME}={CONNECTIONS} in the environment");
    Err(Error::invalid(op, problem))
}

/// Loads the kernels of queues, because loading one later could wait for another that waits for it.
fn preload(device: Device) -> Result<()> {
    device.make_current()?;
    let mut kernels = 0;
    // SAFETY: `kernels` is valid to write to; the device is current.
    let status = unsafe { ffi::tandem_fabric_preload(&mut kernels) };
    match status {
        tandem_cuda::ffi::TANDEM_OK => Ok(()),
        code => Err(tandem_cuda::Error::new("load kernels", Some(device), code).into()),
    }
}

/// Says of each pair of devices that is not apart yet what the driver lets one do with the other's memory.
fn peers(devices: &[Device], links: &mut Links) -> Result<()> {
    for (i, &from) in devices.iter().enumerate() {
        for (j, &to) in devices.iter().enumerate() {
            if from == to || links.apart(i, j).is_some() {
                continue;
            }
            if !from.can_access(to)? {
                links.part(i, j, format!("the driver offers {from} no peer access to {to}"));
            } else if !from.peer_attributes(to)?.1 {
                links.without_atomics(i, j);
            }
        }
    }
    Ok(())
}

impl machine::Machine for Machine {
    fn heap(&self) -> u64 {
        self.reserved.address()
    }

    fn granule(&self) -> u64 {
        self.granule.max(LEAST_GROWTH).min(self.window)
    }

    fn name(&self, pe: usize) -> String {
        self.devices[pe].to_string()
    }

    fn device(&self, pe: usize) -> Option<Device> {
        Some(self.devices[pe])
    }

    fn sharing(&self, pe: usize) -> usize {
        self.devices.iter().filter(|&&device| device == self.devices[pe]).count()
    }

    fn map(&self, pe: usize, from: u64, to: u64) -> Result<Option<OwnedFd>> {
        let device = self.devices[pe];
        let given = self.grow_ends(pe, to).and_then(|()| self.zeroed(pe, self.range(pe, from, to), &self.users[pe]));
        match given {
            Err(Error::Device(error)) if error.is_out_of_memory() => {
                let free = device.memory_info().map_or(0, |(free, _)| free);
                let reason = format!("the device has {free} bytes free");
                Err(Error::OutOfMemory { pe, device: device.to_string(), wanted: to - from, reason })
            }
            given => given.map(|()| None),
        }
    }

    fn unmap(&self, pe: usize, from: u64, to: u64) {
        // Called to undo: what failed is reported.
        let _ = self.reserved.unmap(self.range(pe, from, to));
    }

    fn write(&self, pe: usize, to: u64, from: &[u8]) -> Result<()> {
        let mut path = self.path(pe);
        for (i, piece) in from.chunks(STAGING).enumerate() {
            let (stream, slot) = path.slot("copy to device", piece.len())?;
            slot.bytes()[..piece.len()].copy_from_slice(piece);
            let (at, memory) = ((to as usize + i * STAGING) as *mut u8, slot.address());
            // SAFETY: the caller has checked the range; the slot is as long as a piece, and is not touched before the
            // stream has been waited for.
            stream.call("copy to device", |raw| unsafe {
                tandem_cuda::ffi::tandem_cuda_copy_to_device(at, memory, piece.len(), raw)
            })?;
            path.settle("copy to device", piece.len() as u64)?;
        }
        path.wipe(from.len());
        Ok(())
    }

    fn read(&self, pe: usize, from: u64, to: &mut [u8]) -> Result<()> {
        let mut path = self.path(pe);
        let (op, bytes) = ("copy to host", to.len());
        for (i, piece) in to.chunks_mut(STAGING).enumerate() {
            let (stream, slot) = path.slot(op, piece.len())?;
            let (at, memory) = ((from as usize + i * STAGING) as *const u8, slot.address());
            let copy = |raw| {
                // SAFETY: as in `write`.
                unsafe { tandem_cuda::ffi::tandem_cuda_copy_to_host(memory, at, piece.len(), raw) }
            };
            stream.call(op, copy)?;
            path.settle(op, piece.len() as u64)?;
            piece.copy_from_slice(&path.slot(op, piece.len())?.1.bytes()[..piece.len()]);
        }
        path.wipe(bytes);
        Ok(())
    }

    fn faults(&self, places: &[u64]) -> Result<Arc<dyn machine::Faults>> {
        let size = places.len();
        let memory = Pinned::new(self.devices[0], size * size_of::<ffi::tandem_fault>())?;
        Ok(Arc::new(Faults { memory, size }))
    }

    fn command_queue(&self, pe: usize, seat: Option<Arc<dyn Seat>>) -> Result<Arc<dyn machine::CommandQueue>> {
        let stream = Arc::new(Stream::new(self.devices[pe])?);
        Ok(Arc::new(stream_queue::StreamQueue::new(stream, seat, &self.devices)))
    }

    fn command_queue_on(&self, stream: Arc<Stream>, seat: Arc<dyn Seat>) -> Result<Arc<dyn machine::CommandQueue>> {
        Ok(Arc::new(stream_queue::StreamQueue::new(stream, Some(seat), &self.devices)))
    }

    fn regions(&self, slots: &[ffi::tandem_region]) -> Result<()> {
        let mut bytes = Vec::with_capacity(TABLE as usize);
        for slot in slots {
            bytes.extend(slot.bytes.to_ne_bytes());
            bytes.extend(slot.at.iter().flat_map(|at| at.to_ne_bytes()));
        }
        self.tables.iter().enumerate().try_for_each(|(pe, &at)| self.write(pe, at, &bytes))
    }

    fn region_table(&self, pe: usize) -> Option<u64> {
        Some(self.tables[pe])
    }

    fn mark(&self, pe: usize, from: u64, bytes: u64, end: u64) -> Result<()> {
        let Some(ends) = &self.ends else { return Ok(()) };
        let mut at = self.reserved.address() + ends.at + pe as u64 * ends.step + from / ALIGN * WORD;
        let mut left = bytes.div_ceil(ALIGN).max(1) * WORD;
        let words = vec![end; left.min(STAGING as u64) as usize / WORD as usize];
        while left > 0 {
            let piece = left.min(STAGING as u64);
            self.write(pe, at, &bytemuck::cast_slice(&words)[..piece as usize])?;
            (at, left) = (at + piece, left - piece);
        }
        Ok(())
    }

    fn ends(&self, pe: usize) -> Option<u64> {
        self.ends.as_ref().map(|ends| self.reserved.address() + ends.at + pe as u64 * ends.step)
    }
}

/// Records in page-locked memory, one a PE, written by kernels.
struct Faults {
    memory: Pinned,
    size: usize,
}

impl Faults {
    /// The words of 32 bits of a record.
    fn words(&self, pe: usize) -> [&AtomicU32; WORDS] {
        std::array::from_fn(|i| {
            debug_assert!(pe < self.size);
            let at = self.memory.address() as usize + pe * size_of::<ffi::tandem_fault>() + i * size_of::<u32>();
            // SAFETY: the record lies in this value's memory, aligned to 8 as its size is a multiple of that, and lives
            // as long as `self`. The host accesses it through these atomics alone; the device writes whole words.
            unsafe { AtomicU32::from_ptr(at as *mut u32) }
        })
    }
}

const WORDS: usize = size_of::<ffi::tandem_fault>() / size_of::<u32>();
// The order of the words below.
const _: () = {
    assert!(std::mem::offset_of!(ffi::tandem_fault, what) == 0 && std::mem::offset_of!(ffi::tandem_fault, waiter) == 4);
    assert!(std::mem::offset_of!(ffi::tandem_fault, peer) == 8 && std::mem::offset_of!(ffi::tandem_fault, place) == 16);
    assert!(
        std::mem::offset_of!(ffi::tandem_fault, seen) == 24 && std::mem::offset_of!(ffi::tandem_fault, wanted) == 32
    );
};

impl machine::Faults for Faults {
    fn get(&self, pe: usize) -> Option<Record> {
        let words = self.words(pe);
        let what = words[0].load(Ordering::Acquire);
        if what == ffi::TANDEM_FAULT_NONE as u32 {
            return None;
        }
        let one = |i: usize| words[i].load(Ordering::Relaxed);
        let two = |i: usize| u64::from(one(i)) | u64::from(one(i + 1)) << 32;
        Some(Record { what, waiter: one(1), peer: one(2), place: two(4), seen: two(6), wanted: two(8) })
    }

    fn put(&self, pe: usize, record: Record) {
        if self.get(pe).is_some() {
            return;
        }
        let words = self.words(pe);
        words[1].store(record.waiter, Ordering::Relaxed);
        words[2].store(record.peer, Ordering::Relaxed);
        for (i, value) in [(4, record.place), (6, record.seen), (8, record.wanted)] {
            words[i].store(value as u32, Ordering::Relaxed);
            words[i + 1].store((value >> 32) as u32, Ordering::Relaxed);
        }
        words[0].store(record.what, Ordering::Release);
    }

    fn address(&self, pe: usize) -> usize {
        self.memory.address() as usize + pe * size_of::<ffi::tandem_fault>()
    }
}

/// The addresses of a user's buffers, each on its PE's device and open to all of the team.
pub(crate) fn register<T: Pod>(
    machine: &dyn machine::Machine,
    links: &Links,
    members: &[usize],
    buffers: Vec<Memory<T>>,
) -> Result<([u64; 32], RegionOwner)> {
    let op = "register memory";
    let mut at = [0; 32];
    let mut held = Vec::with_capacity(buffers.len());
    for (&pe, buffer) in members.iter().zip(buffers) {
        let Memory::Device(buffer) = buffer else {
            return Err(Error::invalid(op, format!("host memory for PE {pe}, which is a GPU")));
        };
        let here = buffer.stream().device();
        if machine.device(pe) != Some(here) {
            return Err(Error::invalid(op, format!("memory of {here} for PE {pe}, which is {}", machine.name(pe))));
        }
        for &other in members.iter().filter(|&&other| other != pe && links.apart(other, pe).is_none()) {
            if let Some(device) = machine.device(other) {
                buffer.pool().share(device)?;
            }
        }
        // The buffer may still be on its way to be allocated or written in the order of its stream.
        buffer.stream().synchronize()?;
        at[pe] = buffer.ptr().raw() as u64;
        held.push(buffer);
    }
    Ok((at, Box::new(held) as RegionOwner))
}

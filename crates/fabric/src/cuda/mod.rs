//! PEs that are GPUs: streams for queues, windows of virtual memory that every GPU of the world has mapped.

mod far;
mod far_queue;
mod faults;
mod shared;
mod stream_queue;
mod windows;

use crate::bound::{bound, drop_after, PATIENCE};
use crate::heap::ALIGN;
use crate::machine::{self, Links, RegionOwner, Seat, MAX_REGIONS};
use crate::process::Group;
use crate::{ffi, Error, Memory, Result};
use bytemuck::Pod;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tandem_cuda::{Device, Pinned, Reserved, Stream};

pub(crate) use far::{Far, WINDOW as FAR_WINDOW};
use faults::Faults;
use shared::Shared;

const OPEN: &str = "open a team of GPUs";

/// Pieces that the host's reads and writes go in.
const STAGING: usize = 4 << 20;
/// Bytes that a heap grows by at least: a mapping takes as long for 2 MiB.
const LEAST_GROWTH: u64 = 32 << 20;
/// Hardware queues that the driver makes for a process on a GPU, and that a PE may have work in at a time.
const CONNECTIONS: usize = 8;
/// Hardware queues that it can be told to make.
const MOST_CONNECTIONS: usize = 32;
/// Bytes of an address.
const WORD: u64 = size_of::<u64>() as u64;
/// Bytes of a table of regions, rounded to what addresses are aligned to.
const TABLE: u64 = (size_of::<ffi::tandem_region>() * MAX_REGIONS) as u64;

/// GPUs and their windows.
pub(crate) struct Machine {
    /// By PE: its device. Those of other processes are reached through the first of this one.
    devices: Arc<[Device]>,
    /// The PEs of this process.
    local: Range<usize>,
    window: u64,
    granule: u64,
    /// By PE of this process: the devices of this process that reach its memory, its own among them, each once.
    users: Vec<Vec<Device>>,
    reserved: Reserved,
    /// By PE of this process: what the host reads and writes through.
    host: Vec<Mutex<HostPath>>,
    /// By PE of this process: the table of regions, in a mapping of its own behind the windows.
    tables: Vec<u64>,
    /// The other processes, if the world has several.
    shared: Option<Shared>,
    /// Where allocations end, if that is kept.
    ends: Option<Ends>,
    /// The GPUs of other nodes, if the world has such: then the windows are in NVSHMEM's memory.
    far: Option<Arc<Far>>,
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
    /// `checks` keeps where allocations end. With a group, `devices` are the PEs of this process.
    pub(crate) fn new(
        devices: &[Device],
        window: u64,
        checks: bool,
        links: &mut Links,
        group: Option<&Arc<Group>>,
        far: Option<Arc<Far>>,
    ) -> Result<Self> {
        enough_connections(OPEN, devices)?;
        let local = group.map_or(0..devices.len(), |group| group.local());
        let all = group.map_or(devices.len(), |group| group.count());
        let mut granule = 1;
        for &device in devices {
            let step = device.map_granularity()?;
            granule = granule.max(step.max(1).next_power_of_two());
            preload(device)?;
        }
        peers(devices, local.start, links)?;
        let window = far.as_ref().map_or(window.next_multiple_of(granule), |far| far.windows.window);
        let table = TABLE.next_multiple_of(granule);
        let pes = all as u64;
        // Tables lie behind the windows, so that a window is all heap.
        let step = if checks { (window / ALIGN * WORD).next_multiple_of(granule) } else { 0 };
        // Where the windows have addresses and memory of NVSHMEM's, what else there is begins at once.
        let windows = if far.is_some() { 0 } else { pes * window };
        let reserved = Reserved::new(windows + pes * (table + step))?;
        let terms = format!("GPUs with windows of {window} bytes in steps of {granule}, checks {checks}");
        let near = group.filter(|_| far.is_none());
        let shared = near.map(|group| Shared::join(group, devices, &terms, reserved.address())).transpose()?;
        let users = |pe: usize| {
            let reaching = local.clone().filter(|&user| links.apart(user, pe).is_none());
            each_once(reaching.map(|user| devices[user - local.start]))
        };
        let mut tables = Vec::new();
        let mut host = Vec::new();
        for (pe, &device) in local.clone().zip(devices) {
            let at = windows + pe as u64 * table;
            reserved.map(at..at + table, device, &[device])?;
            tables.push(reserved.address() + at);
            host.push(Mutex::new(HostPath { stream: Stream::new(device)?, slot: Some(Pinned::new(device, STAGING)?) }));
        }
        let users = local.clone().map(users).collect();
        let mapped = devices.iter().map(|_| Mutex::new(0)).collect();
        let ends = checks.then_some(Ends { at: windows + pes * table, step, mapped });
        let near = |pe: usize| devices[if local.contains(&pe) { pe - local.start } else { 0 }];
        let devices = (0..all).map(near).collect();
        Ok(Machine { devices, local, window, granule, users, reserved, host, tables, shared, ends, far })
    }

    /// The place of PE `pe` among those of this process; 0 for one of another process.
    fn own(&self, pe: usize) -> usize {
        if self.local.contains(&pe) {
            pe - self.local.start
        } else {
            0
        }
    }

    /// Memory, all zero, at these places of what is reserved; other processes get it by what is returned, where they are to.
    fn zeroed(&self, pe: usize, range: Range<u64>, users: &[Device], is_given: bool) -> Result<Option<OwnedFd>> {
        let device = self.devices[pe];
        let given = match is_given {
            true => Some(self.reserved.map_to_share(range.clone(), device, users)?),
            false => self.reserved.map(range.clone(), device, users).map(|()| None)?,
        };
        let zeroed = self.zero(pe, self.reserved.address() + range.start, range.end - range.start);
        // What is still written to stays mapped.
        if zeroed.as_ref().is_err_and(|error| !matches!(error, Error::Late { .. })) {
            let _ = self.reserved.unmap(range);
        }
        zeroed.map(|()| given)
    }

    /// Overwrites bytes at an address of PE `pe`'s memory, which nobody else knows of yet.
    fn zero(&self, pe: usize, at: u64, bytes: u64) -> Result<()> {
        const OP: &str = "fill memory";
        let mut path = self.path(pe);
        path.slot(OP, 0)?;
        path.stream.call(OP, |raw| {
            // SAFETY: the bytes have memory, and nobody else knows of them.
            unsafe { tandem_cuda::ffi::tandem_cuda_memset(at as *mut u8, 0, bytes as usize, raw) }
        })?;
        path.settle(OP, bytes)
    }

    /// Who reaches an address of another node's PE, with that PE and the same place in this one's window; `None` for memory that is here.
    fn abroad(&self, at: u64) -> Option<(&Far, usize, u64)> {
        let far = self.far.as_deref()?;
        far.windows.far(at).map(|(pe, there)| (far, pe, there))
    }

    /// Gives the words for the first `heap` bytes of a window memory. What is there stays when the heap shrinks again.
    fn grow_ends(&self, pe: usize, heap: u64) -> Result<()> {
        let Some(ends) = &self.ends else { return Ok(()) };
        let mut mapped = ends.mapped[self.own(pe)].lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = (heap / ALIGN * WORD).next_multiple_of(self.granule).min(ends.step);
        if wanted > *mapped {
            let at = ends.at + pe as u64 * ends.step;
            self.zeroed(pe, at + *mapped..at + wanted, &[self.devices[pe]], false)?;
            *mapped = wanted;
        }
        Ok(())
    }

    /// Bytes from one window to the next, which may be more than was asked for.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    fn range(&self, pe: usize, from: u64, to: u64) -> Range<u64> {
        let start = pe as u64 * self.window;
        start + from..start + to
    }

    fn path(&self, pe: usize) -> MutexGuard<'_, HostPath> {
        self.host[self.own(pe)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// PEs of one GPU wait for each other in kernels, each in queues of its own. Where two of these share one of the GPU's hardware queues, a
/// kernel that waits holds up the one that it waits for. So a process needs as many for each of its PEs as the driver makes for one, or as
/// many as there can be. More would leave none for the other processes of an MPS server.
fn enough_connections(op: &'static str, devices: &[Device]) -> Result<()> {
    const NAME: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
    let pes = |device: &Device| devices.iter().filter(|other| *other == device).count();
    let Some((pes, shared)) = devices.iter().map(|device| (pes(device), device)).max_by_key(|(pes, _)| *pes) else {
        return Ok(());
    };
    let needed = (pes * CONNECTIONS).min(MOST_CONNECTIONS);
    let connections = std::env::var(NAME).ok().and_then(|text| text.trim().parse::<usize>().ok());
    if pes < 2 || connections.unwrap_or(CONNECTIONS) >= needed {
        return Ok(());
    }
    let problem = format!(
        "{shared} is named {pes} times: so many PEs of one GPU in a process need {NAME}={needed} in the environment"
    );
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

fn each_once(devices: impl Iterator<Item = Device>) -> Vec<Device> {
    let mut each = Vec::new();
    devices.for_each(|device| {
        if !each.contains(&device) {
            each.push(device)
        }
    });
    each
}

/// Says of each pair of devices that is not apart yet what the driver lets one do with the other's memory. The first is PE `first`.
fn peers(devices: &[Device], first: usize, links: &mut Links) -> Result<()> {
    for (i, &from) in (first..).zip(devices) {
        for (j, &to) in (first..).zip(devices) {
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
        self.far.as_ref().map_or(self.reserved.address(), |far| far.windows.heap)
    }

    fn granule(&self) -> u64 {
        self.granule.max(LEAST_GROWTH).min(self.window)
    }

    fn name(&self, pe: usize) -> String {
        match (&self.shared, &self.far) {
            (Some(shared), _) => shared.name(pe),
            (None, Some(far)) => far.name(pe),
            (None, None) => self.devices[pe].to_string(),
        }
    }

    fn device(&self, pe: usize) -> Option<Device> {
        self.local.contains(&pe).then(|| self.devices[pe])
    }

    fn sharing(&self, pe: usize) -> usize {
        match &self.shared {
            Some(shared) => shared.sharing(pe),
            None if self.far.is_some() => 1,
            None => self.devices.iter().filter(|&&device| device == self.devices[pe]).count(),
        }
    }

    fn map(&self, pe: usize, from: u64, to: u64) -> Result<Option<OwnedFd>> {
        if let Some(far) = &self.far {
            // All of the window has memory.
            return self
                .grow_ends(pe, to)
                .and_then(|()| self.zero(pe, far.windows.base() + from, to - from))
                .map(|()| None);
        }
        let device = self.devices[pe];
        let (range, users, is_given) = (self.range(pe, from, to), &self.users[self.own(pe)], self.shared.is_some());
        match self.grow_ends(pe, to).and_then(|()| self.zeroed(pe, range, users, is_given)) {
            Err(Error::Device(error)) if error.is_out_of_memory() => {
                let free = device.memory_info().map_or(0, |(free, _)| free);
                let reason = format!("the device has {free} bytes free");
                Err(Error::OutOfMemory { pe, device: device.to_string(), wanted: to - from, reason })
            }
            given => given,
        }
    }

    fn import(&self, pe: usize, from: u64, to: u64, memory: OwnedFd) -> Result<()> {
        let users = each_once(self.local.clone().map(|pe| self.devices[pe]));
        Ok(self.reserved.map_shared(self.range(pe, from, to), &memory, &users)?)
    }

    fn unmap(&self, pe: usize, from: u64, to: u64) {
        if self.far.is_some() {
            return;
        }
        // Called to undo: what failed is reported.
        let _ = self.reserved.unmap(self.range(pe, from, to));
    }

    fn write(&self, pe: usize, to: u64, from: &[u8]) -> Result<()> {
        let (op, abroad) = ("copy to device", self.abroad(to));
        let mut path = self.path(pe);
        for (i, piece) in from.chunks(STAGING).enumerate() {
            let (stream, slot) = path.slot(op, piece.len())?;
            slot.bytes()[..piece.len()].copy_from_slice(piece);
            let at = abroad.map_or(to + (i * STAGING) as u64, |(far, ..)| far.staging);
            let memory = slot.address();
            // SAFETY: the caller has checked the range, which may be host memory of a team; the slot, and the memory before another node, are as
            // long as a piece, and are not touched before the stream has been waited for.
            stream.call(op, |raw| unsafe {
                tandem_cuda::ffi::tandem_cuda_copy(at as *mut u8, memory, piece.len(), raw)
            })?;
            if let Some((far, peer, there)) = abroad {
                far.send_staged(op, stream, (peer, there + (i * STAGING) as u64), piece.len())?;
            }
            let settled = path.settle(op, piece.len() as u64);
            settled.map_err(|error| abroad.map_or(error.clone(), |(far, peer, _)| far.late(op, error, peer)))?;
        }
        path.wipe(from.len());
        Ok(())
    }

    fn read(&self, pe: usize, from: u64, to: &mut [u8]) -> Result<()> {
        let (op, bytes, abroad) = ("copy to host", to.len(), self.abroad(from));
        let mut path = self.path(pe);
        for (i, piece) in to.chunks_mut(STAGING).enumerate() {
            let (stream, slot) = path.slot(op, piece.len())?;
            if let Some((far, peer, there)) = abroad {
                far.fetch_staged(op, stream, (peer, there + (i * STAGING) as u64), piece.len())?;
            }
            let at = abroad.map_or(from + (i * STAGING) as u64, |(far, ..)| far.staging);
            let memory = slot.address();
            let copy = |raw| {
                // SAFETY: as in `write`.
                unsafe { tandem_cuda::ffi::tandem_cuda_copy(memory, at as *const u8, piece.len(), raw) }
            };
            stream.call(op, copy)?;
            let settled = path.settle(op, piece.len() as u64);
            settled.map_err(|error| abroad.map_or(error.clone(), |(far, peer, _)| far.late(op, error, peer)))?;
            piece.copy_from_slice(&path.slot(op, piece.len())?.1.bytes()[..piece.len()]);
        }
        path.wipe(bytes);
        Ok(())
    }

    fn faults(&self, places: &[u64]) -> Result<Arc<dyn machine::Faults>> {
        match &self.shared {
            Some(shared) => shared.faults(self.devices[self.local.start], places, self.window),
            // Of several nodes each has its own, and is told the others'.
            None => Ok(Arc::new(Faults::new(self.devices[self.local.start], places.len())?)),
        }
    }

    fn command_queue(&self, pe: usize, seat: Option<Arc<dyn Seat>>) -> Result<Arc<dyn machine::CommandQueue>> {
        let stream = Arc::new(Stream::new(self.devices[pe])?);
        Ok(Arc::new(stream_queue::StreamQueue::new(stream, seat, &self.devices, self.far.as_ref())))
    }

    fn command_queue_on(&self, stream: Arc<Stream>, seat: Arc<dyn Seat>) -> Result<Arc<dyn machine::CommandQueue>> {
        Ok(Arc::new(stream_queue::StreamQueue::new(stream, Some(seat), &self.devices, self.far.as_ref())))
    }

    fn regions(&self, slots: &[ffi::tandem_region]) -> Result<()> {
        let mut bytes = Vec::with_capacity(TABLE as usize);
        for slot in slots {
            bytes.extend(slot.bytes.to_ne_bytes());
            bytes.extend(slot.at.iter().flat_map(|at| at.to_ne_bytes()));
        }
        self.local.clone().zip(&self.tables).try_for_each(|(pe, &at)| self.write(pe, at, &bytes))
    }

    fn region_table(&self, pe: usize) -> Option<u64> {
        self.tables.get(self.own(pe)).copied()
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

/// Page-locked memory of the host for each of these PEs: its addresses, and what keeps it.
pub(crate) fn host_memory(
    machine: &dyn machine::Machine,
    members: &[usize],
    bytes: usize,
) -> Result<([u64; 32], RegionOwner)> {
    let mut at = [0; 32];
    let mut held = Vec::with_capacity(members.len());
    for &pe in members {
        let none = || Error::invalid("allocate host memory", format!("PE {pe} is no GPU of this process"));
        let memory = Pinned::new(machine.device(pe).ok_or_else(none)?, bytes)?;
        at[pe] = memory.address() as u64;
        held.push(memory);
    }
    Ok((at, Box::new(held) as RegionOwner))
}

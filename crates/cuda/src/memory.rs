//! Device memory, allocated and freed in the order of a stream.

use crate::error::{check, Error, Result};
use crate::{ffi, traffic, Device, Event, Stream};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// An address in a device's memory. It can be passed to launchers and computed with; it is never read on the host.
#[derive(Debug)]
pub struct DevicePtr<T> {
    address: usize,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for DevicePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for DevicePtr<T> {}

impl<T> DevicePtr<T> {
    /// The address that means nothing.
    pub const NULL: Self = DevicePtr { address: 0, of: PhantomData };

    /// Whether it is [`DevicePtr::NULL`].
    pub fn is_null(self) -> bool {
        self.address == 0
    }

    /// The address `count` elements further on. Nothing is checked; the launcher's lengths decide what is used.
    #[must_use]
    pub fn offset(self, count: usize) -> Self {
        let bytes = count.wrapping_mul(size_of::<T>());
        DevicePtr { address: self.address.wrapping_add(bytes), of: PhantomData }
    }

    /// This address as one of another type.
    #[must_use]
    pub fn cast<U>(self) -> DevicePtr<U> {
        DevicePtr { address: self.address, of: PhantomData }
    }

    /// For an argument that a launcher writes to. Never to be dereferenced.
    pub fn raw(self) -> *mut T {
        self.address as *mut T
    }
}

/// A device's memory as this program uses it: what is freed is kept for the next allocation. One pool serves all users of a device: each takes
/// more addresses than the device has memory, and a process has enough for some 500 pools of all devices together.
#[derive(Debug)]
pub struct Pool {
    raw: ffi::tandem_pool,
    device: Device,
    /// Devices that reach it.
    peers: Mutex<Vec<Device>>,
}

// SAFETY: the runtime's functions on a pool may be called from any thread, and from several at once.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// How much a pool holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolInfo {
    /// Bytes taken from the device.
    pub reserved: u64,
    /// Those of them that are in use.
    pub used: u64,
}

impl Pool {
    /// A new, empty pool.
    ///
    /// # Errors
    /// The device failed.
    pub fn new(device: Device) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is valid to write to.
        check("create memory pool", Some(device), unsafe { ffi::tandem_cuda_pool_create(device.raw(), &mut raw) })?;
        Ok(Pool { raw, device, peers: Mutex::default() })
    }

    /// How much it holds.
    ///
    /// # Errors
    /// The device failed.
    pub fn info(&self) -> Result<PoolInfo> {
        let mut info = PoolInfo { reserved: 0, used: 0 };
        // SAFETY: the pool is alive, both numbers are valid to write to.
        check("memory pool info", Some(self.device), unsafe {
            ffi::tandem_cuda_pool_info(self.raw, &mut info.reserved, &mut info.used)
        })?;
        Ok(info)
    }

    /// Lets kernels and copies of `peer` reach this pool's memory; those of the pool's own device do anyway.
    ///
    /// # Errors
    /// The driver refuses it, as where the two devices have no way to each other.
    pub fn share(&self, peer: Device) -> Result<()> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peer != self.device && !peers.contains(&peer) {
            // SAFETY: the pool is alive.
            check("share memory pool", Some(self.device), unsafe {
                ffi::tandem_cuda_pool_share(self.raw, peer.raw())
            })?;
            peers.push(peer);
        }
        Ok(())
    }

    /// Bytes that could still be allocated: what no process holds and what the pool keeps unused.
    ///
    /// # Errors
    /// The device failed.
    pub fn free_bytes(&self) -> Result<u64> {
        let info = self.info()?;
        Ok(self.device.memory_info()?.0 + info.reserved.saturating_sub(info.used))
    }

    /// Memory for `len` elements with undefined contents. `wipe` overwrites them with zeros before they are freed.
    ///
    /// Where the pool cannot grow, this waits for `stream`, gives the pool's unused memory back to the device, and
    /// tries once more: freed memory may lie in pieces.
    ///
    /// # Errors
    /// More than the address space or the device has; the device failed.
    pub fn alloc<T: Pod>(self: &Arc<Self>, stream: &Arc<Stream>, len: usize, wipe: bool) -> Result<DeviceBuffer<T>> {
        let too_large = || Error::new("allocate memory", Some(self.device), ffi::TANDEM_CUDA_OUT_OF_MEMORY);
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        let wiped = if wipe { bytes } else { 0 };
        let mut buffer = DeviceBuffer { ptr: DevicePtr::NULL, len, wiped, stream: stream.clone(), pool: self.clone() };
        if bytes == 0 {
            return Ok(buffer);
        }
        let mut address = std::ptr::null_mut();
        let mut attempt = || {
            // SAFETY: pool and stream are alive and of one device; `address` is valid to write to.
            stream.call("allocate memory", |raw| unsafe { ffi::tandem_cuda_alloc(self.raw, bytes, raw, &mut address) })
        };
        if let Err(error) = attempt() {
            if !error.is_out_of_memory() {
                return Err(error);
            }
            stream.synchronize()?;
            // SAFETY: the pool is alive.
            check("trim memory pool", Some(self.device), unsafe { ffi::tandem_cuda_pool_trim(self.raw) })?;
            attempt()?;
        }
        buffer.ptr = DevicePtr { address: address as usize, of: PhantomData };
        Ok(buffer)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: every buffer holds the pool, so all have been freed; the runtime waits for frees that are queued.
        let _ = unsafe { ffi::tandem_cuda_pool_destroy(self.raw) };
    }
}

/// Elements in a device's memory. All work on them goes to the stream that they were allocated on, or to one that was
/// made to wait for it; they are freed when that stream gets to where the buffer was dropped.
#[derive(Debug)]
pub struct DeviceBuffer<T: Pod> {
    ptr: DevicePtr<T>,
    len: usize,
    /// Bytes to overwrite before they are freed: all that were allocated, or none.
    wiped: usize,
    stream: Arc<Stream>,
    pool: Arc<Pool>,
}

/// Elements of a buffer, of any stream and device.
pub type Piece<'a, T> = (&'a DeviceBuffer<T>, Range<usize>);

/// The order in which pieces of targets, so many of each, are copied: one of each target in each round, by which target i begins with its piece i. Where
/// each target has a piece from each of as many sources, a source so sends to another target than all others in each round, and none has to receive
/// from all at once.
fn in_turn(counts: &[usize]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let rounds = 0..counts.iter().copied().max().unwrap_or(0);
    rounds.flat_map(move |round| {
        let of_target =
            move |(target, &count): (usize, &usize)| (round < count).then(|| (target, (target + round) % count));
        counts.iter().enumerate().filter_map(of_target)
    })
}

impl<T: Pod> DeviceBuffer<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Their number of bytes.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Address of the first element; null where there are none.
    pub fn ptr(&self) -> DevicePtr<T> {
        self.ptr
    }

    /// The stream whose order they follow.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// The pool that they come from.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Leaves out all elements from `len` on. They are overwritten and freed with the others.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes `stream`, of the same device, the one whose order the elements follow: it waits for all that the old one was told.
    ///
    /// # Errors
    /// A stream of another device; the device failed.
    pub fn follow(&mut self, stream: &Arc<Stream>) -> Result<()> {
        let told = self.stream.record()?;
        self.follow_behind(stream, &told)
    }

    /// As [`DeviceBuffer::follow`], where all that was done with the elements is done when `event` happens: the new stream waits for that, and for
    /// nothing else that the old one was told.
    ///
    /// # Errors
    /// As there.
    pub fn follow_behind(&mut self, stream: &Arc<Stream>, event: &Event) -> Result<()> {
        if stream.device() != self.stream.device() {
            return Err(self.invalid("follow another stream"));
        }
        stream.wait(event)?;
        self.stream = stream.clone();
        Ok(())
    }

    /// Overwrites the elements of `range` with zero bytes.
    ///
    /// # Errors
    /// The range is past the end; the device failed.
    pub fn zero(&mut self, range: Range<usize>) -> Result<()> {
        self.fill(range, 0)
    }

    /// Overwrites every byte of the elements of `range` with `value`.
    ///
    /// # Errors
    /// The range is past the end; the device failed.
    pub fn fill(&mut self, range: Range<usize>, value: u8) -> Result<()> {
        let (to, bytes) = self.span("fill memory", &range)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the bytes lie in this buffer; the stream is the one that orders it.
        self.stream.call("fill memory", |raw| unsafe { ffi::tandem_cuda_memset(to, value.into(), bytes, raw) })
    }

    /// Copies `from[range]` to the elements from `at` on. Where the buffers are of two streams, the copy runs on that
    /// of `from`, after what this one's had been told, and this one's stream waits for it.
    ///
    /// # Errors
    /// A range is past an end; the device failed.
    pub fn copy_from(&mut self, at: usize, from: &DeviceBuffer<T>, range: Range<usize>) -> Result<()> {
        let op = "copy on devices";
        let (source, bytes) = from.span(op, &range)?;
        let end = at.checked_add(range.len()).ok_or_else(|| self.invalid(op))?;
        let (target, _) = self.span(op, &(at..end))?;
        if bytes == 0 {
            return Ok(());
        }
        if Arc::ptr_eq(&self.stream, &from.stream) {
            // SAFETY: both spans lie in buffers of this stream; two buffers do not overlap.
            return self.stream.call(op, |raw| unsafe { ffi::tandem_cuda_copy_on_device(target, source, bytes, raw) });
        }
        from.stream.wait(&self.stream.record()?)?;
        let (to, here) = (self.stream.device().raw(), from.stream.device().raw());
        // SAFETY: both spans lie in live buffers. The target's stream has been waited for and waits below, so that
        // neither buffer is changed or freed before the copy is done.
        from.stream.call(op, |raw| unsafe { ffi::tandem_cuda_copy_peer(target, to, source, here, bytes, raw) })?;
        self.stream.wait(&from.stream.record()?)
    }

    /// Fills each of `targets` with the pieces of the same number, one behind the other from its first element on, all at once: the copies wait for
    /// what all streams had been told before, and not for each other.
    ///
    /// # Errors
    /// There are not as many targets as lists of pieces; a range is past an end, or pieces are past that of their target: nothing was copied. The
    /// device failed.
    pub fn join_all(targets: &mut [DeviceBuffer<T>], pieces: &[Vec<Piece<'_, T>>]) -> Result<()> {
        let pieces: Vec<_> = pieces.iter().map(Vec::as_slice).collect();
        Self::started(targets, &pieces, |_| Ok(()))
    }

    /// As [`DeviceBuffer::join_all`] of one piece for each target. Gives for each the event that happens when it is done, also while those behind it
    /// are not.
    ///
    /// # Errors
    /// As there.
    pub fn copy_each(targets: &mut [DeviceBuffer<T>], pieces: &[Piece<'_, T>]) -> Result<Vec<Event>> {
        let mut events = Vec::with_capacity(pieces.len());
        let pieces: Vec<_> = pieces.iter().map(std::slice::from_ref).collect();
        Self::started(targets, &pieces, |stream| {
            events.push(stream.record()?);
            Ok(())
        })?;
        Ok(events)
    }

    /// Starts copies, and tells `behind` of the stream behind each.
    fn started(
        targets: &mut [DeviceBuffer<T>],
        pieces: &[&[Piece<'_, T>]],
        behind: impl FnMut(&Arc<Stream>) -> Result<()>,
    ) -> Result<()> {
        let copied = Self::start_all(targets, pieces, behind);
        if copied.is_err() {
            // The targets may be freed now, before those copies that were started are done.
            pieces.iter().copied().flatten().for_each(|(from, _)| drop(from.stream.synchronize()));
        }
        copied
    }

    fn start_all(
        targets: &mut [DeviceBuffer<T>],
        pieces: &[&[Piece<'_, T>]],
        mut behind: impl FnMut(&Arc<Stream>) -> Result<()>,
    ) -> Result<()> {
        let op = "copy on devices";
        let Some(first) = targets.first() else {
            // Without a target there is no device to name, and nothing to do.
            return if pieces.is_empty() { Ok(()) } else { Err(Error::new(op, None, ffi::TANDEM_INVALID)) };
        };
        if targets.len() != pieces.len() {
            return Err(first.invalid(op));
        }
        // Of each piece where it goes and where it comes from, before the first is copied.
        let mut places = Vec::with_capacity(targets.len());
        for (to, pieces) in targets.iter().zip(pieces) {
            let mut end = 0usize;
            let place = |(from, range): &Piece<'_, T>| {
                let (source, bytes) = from.span(op, range)?;
                let at = end;
                end = at.checked_add(range.len()).ok_or_else(|| to.invalid(op))?;
                let (target, _) = to.span(op, &(at..end))?;
                Ok((target, source, bytes))
            };
            places.push(pieces.iter().map(place).collect::<Result<Vec<_>>>()?);
        }
        // An event of each stream, once.
        let events = |streams: &mut dyn Iterator<Item = &Arc<Stream>>| {
            let mut events: Vec<(Arc<Stream>, Event)> = Vec::new();
            for stream in streams {
                if !events.iter().any(|(known, _)| Arc::ptr_eq(known, stream)) {
                    events.push((stream.clone(), stream.record()?));
                }
            }
            Ok(events)
        };
        let wait = |stream: &Arc<Stream>, of: &Arc<Stream>, events: &[(Arc<Stream>, Event)]| {
            let event = events.iter().find(|(known, _)| Arc::ptr_eq(known, of) && !Arc::ptr_eq(of, stream));
            event.map_or(Ok(()), |(_, event)| stream.wait(event))
        };
        let ready = events(&mut targets.iter().map(|to| &to.stream))?;
        for (number, piece) in in_turn(&places.iter().map(Vec::len).collect::<Vec<_>>()) {
            let (to, from, (target, source, bytes)) =
                (&targets[number], pieces[number][piece].0, places[number][piece]);
            let stream = &from.stream;
            wait(stream, &to.stream, &ready)?;
            if bytes > 0 {
                let (there, here) = (to.stream.device().raw(), stream.device().raw());
                let copy = |raw| {
                    // SAFETY: both spans lie in live buffers, which do not overlap: targets are borrowed for this alone, and their pieces lie one
                    // behind the other. The target's stream has been waited for and waits below, or `started` waits after an error, so that neither
                    // buffer is changed or freed before the copy is done.
                    unsafe { ffi::tandem_cuda_copy_peer(target, there, source, here, bytes, raw) }
                };
                stream.call(op, copy)?;
            }
            behind(stream)?;
        }
        let done = events(&mut pieces.iter().copied().flatten().map(|(from, _)| &from.stream))?;
        let all = targets.iter().zip(pieces).flat_map(|(to, pieces)| pieces.iter().map(move |(from, _)| (to, from)));
        all.into_iter().try_for_each(|(to, from)| wait(&to.stream, &from.stream, &done))
    }

    /// Tells the stream to copy all elements to the host; the event happens when they are there.
    ///
    /// # Safety
    /// `memory` has room for them, and is neither freed nor used otherwise before the event has happened, or the stream has been waited for where this
    /// fails.
    ///
    /// # Errors
    /// The device failed.
    pub unsafe fn copy_to_host(&self, memory: *mut u8) -> Result<Event> {
        let (source, bytes) = self.span("copy to host", &(0..self.len))?;
        if bytes > 0 {
            // SAFETY: the caller's promise; the source is a live buffer of this stream.
            let copy = |raw| unsafe { ffi::tandem_cuda_copy_to_host(memory, source, bytes, raw) };
            self.stream.call("copy to host", copy)?;
            traffic::to_host(bytes);
        }
        self.stream.record()
    }

    /// The address and the number of bytes of the elements of `range`.
    pub(crate) fn span(&self, op: &'static str, range: &Range<usize>) -> Result<(*mut u8, usize)> {
        if range.start > range.end || range.end > self.len {
            return Err(self.invalid(op));
        }
        Ok((self.ptr.offset(range.start).cast().raw(), range.len() * size_of::<T>()))
    }

    pub(crate) fn invalid(&self, op: &'static str) -> Error {
        Error::new(op, Some(self.stream.device()), ffi::TANDEM_INVALID)
    }

    /// An event that happens when all work so far on the buffer is done.
    ///
    /// # Errors
    /// The device failed.
    pub fn record(&self) -> Result<Event> {
        self.stream.record()
    }
}

impl<T: Pod> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if self.ptr.is_null() {
            return;
        }
        let (memory, bytes) = (self.ptr.cast().raw(), self.wiped);
        // A failure here is one of the device, which the next call reports.
        if bytes > 0 {
            // SAFETY: the bytes are this buffer's; the stream orders the wipe after all use and before the free.
            let _ = self.stream.call("wipe memory", |raw| unsafe { ffi::tandem_cuda_memset(memory, 0, bytes, raw) });
        }
        self.stream.note_free();
        // SAFETY: the memory is this buffer's own and not used after this.
        let _ = self.stream.call("free memory", |raw| unsafe { ffi::tandem_cuda_free(memory, raw) });
    }
}

#[cfg(test)]
mod tests {
    use super::in_turn;

    #[test]
    fn each_piece_has_its_turn_and_no_target_waits_for_all() {
        for counts in [&[][..], &[0], &[3], &[1; 5], &[4; 4], &[8; 8], &[3, 0, 2, 5], &[2; 7]] {
            let mut all: Vec<_> = in_turn(counts).collect();
            if counts.iter().all(|&count| count == counts.len()) {
                for round in all.chunks(counts.len().max(1)) {
                    let mut sources: Vec<_> = round.iter().map(|&(_, piece)| piece).collect();
                    sources.sort_unstable();
                    assert!(sources.iter().copied().eq(0..counts.len()), "{counts:?}: {round:?}");
                }
            }
            all.sort_unstable();
            let expected =
                counts.iter().enumerate().flat_map(|(target, &count)| (0..count).map(move |piece| (target, piece)));
            assert!(all.iter().copied().eq(expected), "{counts:?}: {all:?}");
        }
        // One piece each: in the order of the targets.
        assert!(in_turn(&[1; 4]).map(|(target, _)| target).eq(0..4));
    }
}

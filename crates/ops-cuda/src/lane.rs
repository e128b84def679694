//! One GPU with its stream and its memory, as the primitives use it.

#[path = "down.rs"]
mod down;

use crate::cache::Cache;
use crate::outside::Outside;
use std::ffi::c_void;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, OnceLock};
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::{Device, DeviceBuffer, Downloads, Pool, Properties, Source, Staging, Stream, Upload};
use tandem_ops::timeline::{count, BackendId, Ends};
use tandem_ops::{threads, Error, Lane, Result, Stored, Unaligned, Wire};

/// Uploads go through this many slots of [`SLOT_BYTES`].
const SLOTS: usize = 32;
/// PCIe moves it in 20 us: large enough that the fixed cost of a copy is lost in it, small enough that the first one
/// starts soon.
const SLOT_BYTES: usize = 1 << 20;
/// Threads that fill slots: more fill them no faster.
const MOST_FILLERS: usize = 16;

/// One GPU of the team, with a memory pool of its own and five streams: one for work in order, one for reductions, which leave most of
/// the GPU idle, one for what is uploaded beside both, one for what lanes send each other meanwhile, and one for what nobody waits for.
pub(crate) struct LaneCtx {
    /// The team's.
    pub(crate) backend: BackendId,
    pub(crate) lane: Lane,
    pub(crate) device: Device,
    pub(crate) properties: Properties,
    /// No allocation is larger: what the GPU has.
    pub(crate) most_bytes: u64,
    /// Lanes on this GPU, this one among them: each plans with its share of the memory.
    sharing: u64,
    /// What all buffers together may take.
    limit: u64,
    /// Transforms take no fewer passes, as far as their sizes allow: 1.
    pub(crate) least_passes: u32,
    stream: Arc<Stream>,
    /// Its kernels start before those of `stream` that wait, and so run beside them.
    reduce_stream: Arc<Stream>,
    /// Its copies wait for no kernel.
    upload_stream: Arc<Stream>,
    /// Its copies go to other lanes, and wait for no kernel but those that made what they copy.
    deal_stream: Arc<Stream>,
    /// Its kernels start where those of the others leave room.
    cleanup_stream: Arc<Stream>,
    pool: Arc<Pool>,
    staging: Staging,
    downloads: Downloads,
    /// What primitives keep in the GPU's memory.
    pub(crate) cache: Cache,
}

impl LaneCtx {
    /// A lane on a GPU that has `sharing` lanes in all.
    pub(crate) fn new(lane: Lane, device: Device, sharing: u64) -> tandem_cuda::Result<Self> {
        let mut properties = device.properties()?;
        properties.memory_bytes /= sharing;
        Ok(LaneCtx {
            backend: BackendId::fresh(),
            lane,
            device,
            most_bytes: properties.memory_bytes,
            sharing,
            limit: u64::MAX,
            least_passes: 1,
            properties,
            stream: Arc::new(Stream::with_raised_priority(device)?),
            reduce_stream: Arc::new(Stream::with_high_priority(device)?),
            upload_stream: Arc::new(Stream::new(device)?),
            deal_stream: Arc::new(Stream::new(device)?),
            cleanup_stream: Arc::new(Stream::new(device)?),
            pool: Arc::new(Pool::new(device)?),
            staging: Staging::new(SLOTS, SLOT_BYTES, on_threads),
            downloads: Downloads::default(),
            cache: Cache::default(),
        })
    }

    /// Plans as on a GPU of so many bytes, and takes no more.
    pub(crate) fn limit_to(&mut self, bytes: u64) {
        self.limit = bytes;
        self.properties.memory_bytes = self.properties.memory_bytes.min(bytes);
    }

    /// What the limit leaves.
    fn left(&self) -> u64 {
        let used = self.pool.info().map_or(0, |info| info.used);
        self.limit.saturating_sub(used)
    }

    /// Whether the limit leaves less than that. What was freed behind a stream's work may count until that is done: it is waited for first.
    fn is_beyond_limit(&self, wanted: u64) -> bool {
        let leaves = || wanted <= self.left();
        self.limit < u64::MAX && !leaves() && (self.synchronize().is_err() || !leaves())
    }

    /// The device in words, for errors and reports.
    pub(crate) fn name(&self) -> String {
        format!("{} ({})", self.properties.name, self.device)
    }

    pub(crate) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The stream of reductions, which run beside the rest.
    pub(crate) fn reduce_stream(&self) -> &Arc<Stream> {
        &self.reduce_stream
    }

    /// The stream of uploads beside the rest.
    pub(crate) fn upload_stream(&self) -> &Arc<Stream> {
        &self.upload_stream
    }

    /// The stream of copies to other lanes beside the rest.
    pub(crate) fn deal_stream(&self) -> &Arc<Stream> {
        &self.deal_stream
    }

    /// Bytes of memory that could still be handed out; where lanes share the GPU, this one's share of them.
    pub(crate) fn free_bytes(&self) -> u64 {
        (self.pool.free_bytes().unwrap_or(0) / self.sharing).min(self.left())
    }

    /// Memory with undefined contents for what may be secret: it is overwritten when it is dropped.
    pub(crate) fn alloc<T: Wire>(&self, op: &'static str, len: usize) -> Result<DeviceBuffer<T>> {
        self.alloc_on(op, &self.stream, len, true)
    }

    /// As [`LaneCtx::alloc`], for what is used on the reduce stream alone.
    pub(crate) fn alloc_on_reduce_stream<T: Wire>(&self, op: &'static str, len: usize) -> Result<DeviceBuffer<T>> {
        self.alloc_on(op, &self.reduce_stream, len, true)
    }

    /// As [`LaneCtx::alloc`], for what is written on the upload stream before [`LaneCtx::move_to_stream`].
    pub(crate) fn alloc_on_upload_stream<T: Wire>(&self, op: &'static str, len: usize) -> Result<DeviceBuffer<T>> {
        self.alloc_on(op, &self.upload_stream, len, true)
    }

    /// As [`LaneCtx::alloc`], for what comes from other lanes before [`LaneCtx::move_to_stream`].
    pub(crate) fn alloc_on_deal_stream<T: Wire>(&self, op: &'static str, len: usize) -> Result<DeviceBuffer<T>> {
        self.alloc_on(op, &self.deal_stream, len, true)
    }

    /// All that is done with a buffer from here on is done in the lane's order, which waits for what was done with it before.
    pub(crate) fn move_to_stream<T: Wire>(&self, op: &'static str, buffer: &mut DeviceBuffer<T>) -> Result<()> {
        buffer.follow(&self.stream).map_err(|e| self.error(op, e))
    }

    /// All that is done with a buffer from here on is done on the reduce stream, after what was enqueued on the lane before.
    pub(crate) fn move_to_reduce_stream<T: Wire>(&self, op: &'static str, buffer: &mut DeviceBuffer<T>) -> Result<()> {
        buffer.follow(&self.reduce_stream).map_err(|e| self.error(op, e))
    }

    /// Drops a buffer whose memory nobody waits for: it is overwritten last.
    pub(crate) fn free_on_cleanup_stream<T: Wire>(&self, op: &'static str, mut buffer: DeviceBuffer<T>) -> Result<()> {
        buffer.follow(&self.cleanup_stream).map_err(|e| self.error(op, e))
    }

    /// Memory with undefined contents for what everyone may know, such as points of a key or roots of unity.
    pub(crate) fn alloc_public<T: Wire>(&self, op: &'static str, len: usize) -> Result<DeviceBuffer<T>> {
        self.alloc_on(op, &self.stream, len, false)
    }

    /// As [`LaneCtx::alloc_public`], for what is written on the upload stream before [`LaneCtx::move_to_stream`].
    pub(crate) fn alloc_public_on_upload_stream<T: Wire>(
        &self,
        op: &'static str,
        len: usize,
    ) -> Result<DeviceBuffer<T>> {
        self.alloc_on(op, &self.upload_stream, len, false)
    }

    fn alloc_on<T: Wire>(
        &self,
        op: &'static str,
        stream: &Arc<Stream>,
        len: usize,
        wipe: bool,
    ) -> Result<DeviceBuffer<T>> {
        let wanted = (len as u64).saturating_mul(size_of::<T>() as u64);
        if wanted > self.most_bytes || self.is_beyond_limit(wanted) {
            return Err(Error::OutOfMemory { op, device: self.name(), wanted, free: self.free_bytes() });
        }
        self.pool.alloc(stream, len, wipe).map_err(|e| self.error_of(op, e, wanted))
    }

    /// Copies values of any alignment to `to` from element `at` on; they may be reused when this returns.
    pub(crate) fn upload<T: Wire>(
        &self,
        op: &'static str,
        to: &mut DeviceBuffer<T>,
        at: usize,
        from: Unaligned<'_, T>,
    ) -> Result<()> {
        self.prepare(op, to, at, from).and_then(|upload| Upload::run(&[upload]).map_err(|e| self.error(op, e)))
    }

    /// As [`LaneCtx::upload`]; values outside memory are read into the slots that they are copied from.
    pub(crate) fn upload_stored<T: Wire>(
        &self,
        op: &'static str,
        to: &mut DeviceBuffer<T>,
        from: Stored<'_, T>,
    ) -> Result<()> {
        if let Some(values) = from.in_memory() {
            return self.upload(op, to, 0, values);
        }
        count(self.backend, Ends::Up(self.lane), from.bytes());
        let outside = Outside::new(from);
        let upload = self.staging.upload_pieces(to, 0, &outside).map_err(|e| self.error(op, e))?;
        let done = Upload::run(&[upload]);
        // What could not be read is the cause of what came after.
        match outside.failed() {
            Some(failed) => Err(failed),
            None => done.map_err(|e| self.error(op, e)),
        }
    }

    /// An upload for [`Upload::run`], which makes several at once.
    pub(crate) fn prepare<'a, T: Wire>(
        &'a self,
        op: &'static str,
        to: &'a mut DeviceBuffer<T>,
        at: usize,
        from: Unaligned<'a, T>,
    ) -> Result<Upload<'a>> {
        count(self.backend, Ends::Up(self.lane), from.as_bytes().len());
        self.staging.upload(to, at, from.as_bytes()).map_err(|e| self.error(op, e))
    }

    /// Queues the copy of bytes of `from` to `to` from element `at` on, if they are page-locked: whether they are.
    pub(crate) fn queue_upload<T: Wire>(
        &self,
        op: &'static str,
        (to, at): (&mut DeviceBuffer<T>, usize),
        from: &Arc<dyn Source>,
        bytes: Range<usize>,
    ) -> Result<bool> {
        let len = bytes.len();
        let is_queued = self.staging.queue(to, at, from, bytes).map_err(|e| self.error(op, e))?;
        count(self.backend, Ends::Up(self.lane), if is_queued { len } else { 0 });
        Ok(is_queued)
    }

    /// Whether the GPU copies from these bytes as they are, and not through slots.
    pub(crate) fn is_locked(&self, bytes: &[u8]) -> bool {
        // The runtime would else start the first device to answer.
        self.device.make_current().is_ok() && tandem_cuda::is_pinned(bytes)
    }

    /// Lets the GPU of `peer` reach this lane's memory, where there is a way: copies between the two then take it, and do
    /// not pass through the host.
    pub(crate) fn share(&self, peer: &LaneCtx) -> tandem_cuda::Result<()> {
        if peer.device.can_access(self.device)? {
            self.pool.share(peer.device)?;
        }
        Ok(())
    }

    /// Blocks until the lane has done all that it was told, and overwrites what was uploaded.
    pub(crate) fn synchronize(&self) -> Result<()> {
        // Every stream is waited for, even where one has failed.
        let done = [&self.stream, &self.reduce_stream, &self.upload_stream, &self.deal_stream, &self.cleanup_stream]
            .map(|stream| stream.synchronize())
            .into_iter()
            .collect::<tandem_cuda::Result<()>>();
        let done = done.map_err(|e| self.error("synchronize", e));
        self.staging.wipe();
        done
    }

    /// Calls a launcher that needs no scratch memory. `f` gets the lane's stream, whose device is current, and returns
    /// the launcher's status.
    pub(crate) fn launch(&self, op: &'static str, f: impl FnOnce(tandem_stream) -> i32) -> Result<()> {
        self.stream.call(op, f).map_err(|e| self.error(op, e))
    }

    /// As [`LaneCtx::launch`], on the reduce stream.
    pub(crate) fn launch_on_reduce_stream(&self, op: &'static str, f: impl FnOnce(tandem_stream) -> i32) -> Result<()> {
        self.reduce_stream.call(op, f).map_err(|e| self.error(op, e))
    }

    /// Calls a launcher that needs scratch memory: asks `query` how many bytes, allocates them, and gives them to `f`. To drop
    /// what is returned overwrites and frees them.
    pub(crate) fn launch_with_scratch(
        &self,
        op: &'static str,
        query: impl FnOnce(&mut usize) -> i32,
        f: impl FnOnce(*mut c_void, usize, tandem_stream) -> i32,
    ) -> Result<DeviceBuffer<u8>> {
        let mut bytes = 0;
        self.stream.call(op, |_| query(&mut bytes)).map_err(|e| self.error(op, e))?;
        let scratch = self.alloc::<u8>(op, bytes)?;
        self.launch(op, |stream| f(scratch.ptr().raw().cast(), bytes, stream))?;
        Ok(scratch)
    }

    /// The error of a backend for one of the device's.
    pub(crate) fn error(&self, op: &'static str, error: tandem_cuda::Error) -> Error {
        self.error_of(op, error, 0)
    }

    /// The error of a backend for one of the fabric's.
    pub(crate) fn fabric_error(&self, op: &'static str, error: tandem_fabric::Error) -> Error {
        fabric_error(op, self.name(), error, || self.free_bytes(), |error| self.error(op, error))
    }

    /// The error of a backend for one of the device's, in an operation that needed `wanted` bytes.
    pub(crate) fn error_of(&self, op: &'static str, error: tandem_cuda::Error, wanted: u64) -> Error {
        // A device that does not say what is free has failed.
        if let (true, true, Ok(free)) = (error.is_out_of_memory(), wanted > 0, self.pool.free_bytes()) {
            return Error::OutOfMemory { op, device: self.name(), wanted, free };
        }
        if error.code == tandem_cuda::ffi::TANDEM_INVALID {
            return Error::invalid(op, format!("{} was given sizes that do not fit", error.op));
        }
        Error::Device { op, device: self.name(), code: error.code, code_name: error.name, text: error.text }
    }
}

/// The status of a fabric that has failed, which no device has: it is usable again when it is opened again.
pub(crate) const FABRIC_FAILED: i32 = i32::MIN;

/// The error of a backend for one of the fabric's, on `device` with so many bytes free. What a caller did wrong is told from what
/// failed, and the text is kept.
fn fabric_error(
    op: &'static str,
    device: String,
    error: tandem_fabric::Error,
    free: impl FnOnce() -> u64,
    of_device: impl FnOnce(tandem_cuda::Error) -> Error,
) -> Error {
    use tandem_fabric::Error as E;
    let text = error.to_string();
    match error {
        E::Device(error) => of_device(error),
        E::OutOfMemory { wanted, device, .. } => Error::OutOfMemory { op, device, wanted, free: free() },
        E::Fault(_) | E::Late { .. } | E::NoPeer { .. } | E::NotResident(_) | E::Plan(_) | E::WrongSchedule(_) => {
            Error::Device { op, device, code: FABRIC_FAILED, code_name: "fabric".into(), text }
        }
        E::Topology(_) | E::Job(_) | E::Invalid { .. } | E::Processes { .. } => Error::invalid(op, text),
    }
}

/// Runs `work` on several threads at once: one alone copies memory at a fraction of PCIe's rate.
///
/// Who calls holds the ring's lock, so that it may take up nothing else while it waits, which a thread of a pool does in rayon's own
/// scopes: that could be the next copy through the same ring.
pub(crate) fn on_threads(work: &(dyn Fn() + Sync)) {
    let (running, ended) = channel::<()>();
    let all = Ended(ended);
    // SAFETY: what is lent is used by the tasks below only, each of which drops its sender after its last use of it; this function
    // neither returns nor unwinds before `all` has seen all of them dropped.
    let lent = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
    if let Some(fillers) = fillers() {
        for _ in 0..fillers.current_num_threads() {
            let running = running.clone();
            fillers.spawn(move || {
                if std::panic::catch_unwind(AssertUnwindSafe(lent)).is_err() {
                    _ = running.send(());
                }
                drop(running);
            });
        }
    }
    drop(running);
    work();
    // Ends when all have.
    assert!(all.0.iter().next().is_none(), "a thread that filled slots panicked");
}

/// Waits in the end until all senders are dropped.
struct Ended(Receiver<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        while self.0.recv().is_ok() {}
    }
}

/// Threads that help to fill slots, started when they are first needed; `None` where the system starts none.
fn fillers() -> Option<&'static rayon::ThreadPool> {
    static FILLERS: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let helpers = || match threads::count().min(MOST_FILLERS) - 1 {
        0 => None,
        helpers => threads::pool(helpers).ok(),
    };
    FILLERS.get_or_init(helpers).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    /// On a pool of one thread, whatever is taken up while it waits would run before it is done.
    #[test]
    fn who_waits_for_fillers_takes_up_nothing_else() {
        let (copies, others) = (AtomicUsize::new(0), AtomicUsize::new(0));
        threads::pool(1).unwrap().install(|| {
            rayon::in_place_scope(|scope| {
                (0..8).for_each(|_| scope.spawn(|_| _ = others.fetch_add(1, SeqCst)));
                for _ in 0..100 {
                    on_threads(&|| {
                        std::thread::sleep(std::time::Duration::from_micros(100));
                        copies.fetch_add(1, SeqCst);
                    });
                    assert_eq!(others.load(SeqCst), 0);
                }
            });
        });
        let fillers = fillers().map_or(0, |pool| pool.current_num_threads());
        assert_eq!((copies.load(SeqCst), others.load(SeqCst)), (100 * (1 + fillers), 8));
    }

    #[test]
    fn a_filler_that_panics_is_heard_of() {
        let caller = std::thread::current().id();
        for who in [true, false] {
            if who || fillers().is_some() {
                let work = || assert!((std::thread::current().id() == caller) != who, "a test");
                assert!(std::panic::catch_unwind(|| on_threads(&work)).is_err());
            }
        }
    }

    #[test]
    fn errors_of_the_fabric_keep_their_text_and_their_kind() {
        use tandem_fabric::Error as E;
        let device =
            tandem_cuda::Error { op: "copy", device: None, code: 700, name: "cudaErrorX".into(), text: "why".into() };
        let kept = |error| {
            let of_device = |e: tandem_cuda::Error| Error::Device {
                op: "gather",
                device: "GPU".into(),
                code: e.code,
                code_name: e.name,
                text: e.text,
            };
            fabric_error("gather", "GPU".into(), error, || 7, of_device)
        };
        assert_eq!(kept(E::Device(device)).to_string(), "gather on GPU failed: cudaErrorX (700), why");
        let wait = kept(E::NotResident("the kernel needs 200 blocks, 132 fit".into()));
        assert!(matches!(&wait, Error::Device { code: FABRIC_FAILED, text, .. } if text.contains("132 fit")), "{wait}");
        let late = E::Late { op: "read", device: "GPU 1".into(), bytes: 9, waited: std::time::Duration::from_secs(11) };
        let late = kept(late);
        assert!(matches!(&late, Error::Device { code: FABRIC_FAILED, text, .. } if text.contains("11.0s")), "{late}");
        let full = E::OutOfMemory { pe: 1, device: "GPU 1".into(), wanted: 9, reason: "full".into() };
        assert!(matches!(kept(full), Error::OutOfMemory { wanted: 9, free: 7, .. }));
        let wrong = kept(E::Invalid { op: "gather", problem: "3 buffers for 2 PEs".into() });
        assert!(matches!(&wrong, Error::Invalid { reason, .. } if reason.contains("3 buffers")), "{wrong}");
    }

    /// The context of the first GPU. Where there is none the test is passed over.
    fn ctx() -> Option<Arc<LaneCtx>> {
        let &device = tandem_cuda::testing::gpus().first()?;
        Some(Arc::new(LaneCtx::new(Lane(0), device, 1).unwrap()))
    }

    #[test]
    fn errors_of_the_device_keep_their_kind() {
        let Some(ctx) = ctx() else { return };
        let error = |code| tandem_cuda::Error::new("copy", Some(ctx.device), code);
        let full = tandem_cuda::ffi::TANDEM_CUDA_OUT_OF_MEMORY;
        assert!(matches!(ctx.error_of("x", error(full), 9), Error::OutOfMemory { wanted: 9, free, .. } if free > 0));
        // What asked for no memory of the GPU did not find too little of it.
        assert!(matches!(ctx.error("x", error(full)), Error::Device { code, .. } if code == full));
        let invalid = ctx.error("x", error(tandem_cuda::ffi::TANDEM_INVALID));
        assert!(matches!(&invalid, Error::Invalid { reason, .. } if reason.contains("copy")), "{invalid}");
        let all = ctx.alloc::<u64>("x", usize::MAX).unwrap_err();
        assert!(matches!(all, Error::OutOfMemory { wanted: u64::MAX, .. }), "{all}");
        // More than the GPU has is refused before its memory is looked through for it.
        let wanted = ctx.properties.memory_bytes + 1;
        let kept = ctx.alloc::<u8>("x", 1 << 30).map(drop).and_then(|()| ctx.synchronize());
        assert!(kept.is_ok());
        let reserved = ctx.pool.info().unwrap().reserved;
        let more = ctx.alloc::<u8>("x", wanted as usize).unwrap_err();
        assert!(matches!(more, Error::OutOfMemory { .. }), "{more}");
        assert_eq!(ctx.pool.info().unwrap().reserved, reserved, "the pool was emptied in vain");
    }

    /// Work of some ten milliseconds, and an event that happens after it.
    fn busy(ctx: &LaneCtx, stream: &Arc<Stream>) -> tandem_cuda::Event {
        let mut buffer = ctx.pool.alloc::<u8>(stream, 1 << 28, false).unwrap();
        (0..100).for_each(|value| buffer.fill(0..1 << 28, value).unwrap());
        stream.record().unwrap()
    }

    #[test]
    fn every_stream_is_waited_for() {
        let Some(ctx) = ctx() else { return };
        for stream in [&ctx.stream, &ctx.reduce_stream, &ctx.upload_stream, &ctx.deal_stream, &ctx.cleanup_stream] {
            // A host that is late finds the work done, and sees nothing: it tries again.
            let is_awaited = || {
                let done = busy(&ctx, stream);
                let is_early = !done.is_done().unwrap();
                ctx.synchronize().unwrap();
                assert!(done.is_done().unwrap());
                is_early
            };
            assert!(std::iter::repeat_with(is_awaited).take(50).any(|early| early), "the work was always done");
        }
    }

    #[test]
    fn moved_buffers_wait_for_what_came_before() {
        let Some(ctx) = ctx() else { return };
        for to_reduce in [false, true] {
            let len = 1 << 20;
            let from = if to_reduce { &ctx.stream } else { &ctx.upload_stream };
            let mut buffer = ctx.pool.alloc::<u8>(from, len, true).unwrap();
            busy(&ctx, from);
            buffer.fill(0..len, 7).unwrap();
            match to_reduce {
                false => ctx.move_to_stream("test", &mut buffer).unwrap(),
                true => ctx.move_to_reduce_stream("test", &mut buffer).unwrap(),
            }
            assert!(Arc::ptr_eq(buffer.stream(), if to_reduce { &ctx.reduce_stream } else { &ctx.stream }));
            assert!(ctx.download("test", &buffer).unwrap().wait().unwrap().iter().all(|byte| *byte == 7));
        }
    }

    /// Slots are made before all threads wait for them.
    #[test]
    fn the_first_upload_may_be_longer_than_the_ring() {
        let Some(ctx) = ctx() else { return };
        let bytes: Vec<u8> = (0..3 * SLOTS * SLOT_BYTES + 5).map(|i| (i % 251) as u8).collect();
        let mut buffer = ctx.alloc::<u8>("test", bytes.len()).unwrap();
        ctx.upload("test", &mut buffer, 0, bytes[..].into()).unwrap();
        assert!(ctx.download("test", &buffer).unwrap().wait().unwrap() == bytes);
    }

    #[test]
    fn what_is_uploaded_does_not_stay_in_slots() {
        let Some(ctx) = ctx() else { return };
        for by_download in [false, true] {
            let secret = vec![0xa5_u8; 3 * SLOT_BYTES / 2];
            let mut buffer = ctx.alloc::<u8>("test", secret.len()).unwrap();
            ctx.upload("test", &mut buffer, 0, secret[..].into()).unwrap();
            assert!(!ctx.staging.is_wiped());
            ctx.stream.synchronize().unwrap();
            match by_download {
                true => assert!(ctx.download("test", &buffer).unwrap().wait().unwrap() == secret),
                false => ctx.synchronize().unwrap(),
            }
            assert!(ctx.staging.is_wiped());
        }
    }

    /// The pool gives the same memory again, as it was left.
    #[test]
    fn secrets_are_overwritten_whichever_stream_has_them() {
        let Some(ctx) = ctx() else { return };
        let len = 1 << 20;
        for (name, stream) in
            [("lane", &ctx.stream), ("reductions", &ctx.reduce_stream), ("uploads", &ctx.upload_stream)]
        {
            let mut found = 0;
            for _ in 0..8 {
                let mut secret = match name {
                    "lane" => ctx.alloc::<u8>("test", len).unwrap(),
                    "reductions" => ctx.alloc_on_reduce_stream("test", len).unwrap(),
                    _ => ctx.alloc_on_upload_stream("test", len).unwrap(),
                };
                assert!(Arc::ptr_eq(secret.stream(), stream), "{name}");
                let place = secret.ptr().raw();
                secret.fill(0..len, 0xa5).unwrap();
                drop(secret);
                ctx.synchronize().unwrap();
                let next = ctx.pool.alloc::<u8>(stream, len, false).unwrap();
                if next.ptr().raw() == place {
                    found += 1;
                    let left = ctx.download("test", &next).unwrap().wait().unwrap();
                    assert!(left.iter().all(|byte| *byte == 0), "{name}");
                }
            }
            assert!(found > 0, "{name}: never the same memory again");
        }
    }

    #[test]
    fn what_is_dropped_last_is_overwritten_and_freed() {
        let Some(ctx) = ctx() else { return };
        let mut found = 0;
        for round in 0..8 {
            let mut secret = ctx.alloc::<u64>("test", (8 << 20) + round).unwrap();
            let (len, place) = (secret.len(), secret.ptr().raw());
            secret.fill(0..len, 0xa5).unwrap();
            secret.follow(&ctx.reduce_stream).unwrap();
            ctx.free_on_cleanup_stream("test", secret).unwrap();
            ctx.synchronize().unwrap();
            assert_eq!(ctx.pool.info().unwrap().used, 0, "round {round}");
            // Undefined contents: those that were left there.
            let next = ctx.alloc_public::<u64>("test", len).unwrap();
            if next.ptr().raw() == place {
                let left = ctx.download("test", &next).unwrap().wait().unwrap();
                assert!(left.iter().all(|word| *word == 0), "round {round}");
                found += 1;
            }
        }
        assert!(found > 0, "never the same memory again");
    }
}

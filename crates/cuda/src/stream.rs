//! Ordered queues of work, and points in them.

use crate::error::{check, Error, Result};
use crate::{ffi, Device};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A queue of work of one device. What it is told is done in order; streams run beside each other.
#[derive(Debug)]
pub struct Stream {
    raw: ffi::tandem_stream,
    device: Device,
    is_borrowed: bool,
    /// Whether it was told to free memory of a pool.
    frees: AtomicBool,
}

// SAFETY: the runtime's functions on a stream may be called from any thread, and from several at once.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new stream.
    ///
    /// # Errors
    /// The device failed.
    pub fn new(device: Device) -> Result<Self> {
        Self::with(device, 0)
    }

    /// A new stream whose kernels take multiprocessors that get free before those of [`Stream::new`]'s streams.
    ///
    /// # Errors
    /// The device failed.
    pub fn with_raised_priority(device: Device) -> Result<Self> {
        Self::with(device, 1)
    }

    /// A new stream whose kernels take them before those of all others.
    ///
    /// # Errors
    /// The device failed.
    pub fn with_high_priority(device: Device) -> Result<Self> {
        Self::with(device, 2)
    }

    fn with(device: Device, rank: i32) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is valid to write to.
        check("create stream", Some(device), unsafe { ffi::tandem_cuda_stream_create(device.raw(), rank, &mut raw) })?;
        Ok(Stream { raw, device, is_borrowed: false, frees: AtomicBool::new(false) })
    }

    /// A stream that somebody else made of this device, such as another library of this process. It is not destroyed with this value.
    ///
    /// # Safety
    /// `raw` is a stream of `device` and of this process, which lives longer than this value; null is the legacy default stream.
    pub unsafe fn borrowed(device: Device, raw: ffi::tandem_stream) -> Self {
        Stream { raw, device, is_borrowed: true, frees: AtomicBool::new(false) }
    }

    /// The device it belongs to.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The handle, for a launcher. It must not be destroyed, and not be used when the stream is gone.
    pub fn raw(&self) -> ffi::tandem_stream {
        self.raw
    }

    /// Runs `f` with the stream's device current and makes a `Result` of the status that it returns.
    ///
    /// # Errors
    /// The one that the status stands for.
    pub fn call(&self, op: &'static str, f: impl FnOnce(ffi::tandem_stream) -> i32) -> Result<()> {
        self.device.make_current()?;
        check(op, Some(self.device), f(self.raw))
    }

    /// Blocks until all work that it was told is done.
    ///
    /// # Errors
    /// The failure of any of that work.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        self.call("synchronize stream", |raw| unsafe { ffi::tandem_cuda_stream_synchronize(raw) })
    }

    /// Blocks until all work that it was told is done, or until `end`: whether it is done.
    ///
    /// # Errors
    /// As for [`Stream::synchronize`].
    pub fn synchronize_until(&self, end: Instant) -> Result<bool> {
        self.record()?.synchronize_until(end)
    }

    /// Work that it is told after this starts when `event` has happened; the event may be of another device.
    ///
    /// # Errors
    /// The device failed.
    pub fn wait(&self, event: &Event) -> Result<()> {
        // SAFETY: stream and event are alive; the runtime keeps what it needs of the event.
        self.call("wait for event", |raw| unsafe { ffi::tandem_cuda_stream_wait(raw, event.raw) })
    }

    /// An event that happens when all work that the stream was told before is done.
    ///
    /// # Errors
    /// The device failed.
    pub fn record(&self) -> Result<Event> {
        self.record_new(0)
    }

    /// Records an event that also keeps the time at which the stream gets there.
    ///
    /// # Errors
    /// The device failed.
    pub fn record_timed(&self) -> Result<Event> {
        self.record_new(1)
    }

    fn record_new(&self, timed: i32) -> Result<Event> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is valid to write to.
        check("create event", Some(self.device), unsafe {
            ffi::tandem_cuda_event_create(self.device.raw(), timed, &mut raw)
        })?;
        let event = Event { raw, device: self.device };
        // SAFETY: stream and event are alive and of one device.
        self.call("record event", |stream| unsafe { ffi::tandem_cuda_event_record(event.raw, stream) })?;
        Ok(event)
    }
}

impl Stream {
    /// The stream is told to free memory of a pool.
    pub(crate) fn note_free(&self) {
        self.frees.store(true, Ordering::Relaxed);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.is_borrowed {
            return;
        }
        // Work that is queued still runs. But where a stream goes while its frees are on their way, and their pool behind it, a thread of the driver
        // faults, as with three and more GPUs. An error of earlier work has been or will be reported elsewhere.
        if *self.frees.get_mut() {
            let _ = self.synchronize();
        }
        // SAFETY: the handle is this value's own and not used after this.
        let _ = unsafe { ffi::tandem_cuda_stream_destroy(self.raw) };
    }
}

/// How long an event is asked again and again before its thread sleeps between looks: waking up takes longer than a small copy.
const SPIN: Duration = Duration::from_millis(2);
/// Between two looks.
const LOOK: Duration = Duration::from_micros(50);

/// A point in a stream that has been recorded.
#[derive(Debug)]
pub struct Event {
    raw: ffi::tandem_event,
    device: Device,
}

// SAFETY: the runtime's functions on an event may be called from any thread, and from several at once.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Whether the stream has got there.
    ///
    /// # Errors
    /// The failure of work before it.
    pub fn is_done(&self) -> Result<bool> {
        // SAFETY: the event is alive.
        match unsafe { ffi::tandem_cuda_event_query(self.raw) } {
            ffi::TANDEM_OK => Ok(true),
            ffi::TANDEM_CUDA_NOT_READY => Ok(false),
            code => Err(Error::new("query event", Some(self.device), code)),
        }
    }

    /// Blocks until the stream has got there.
    ///
    /// # Errors
    /// The failure of work before it.
    pub fn synchronize(&self) -> Result<()> {
        self.device.make_current()?;
        // SAFETY: the event is alive.
        check("wait for work", Some(self.device), unsafe { ffi::tandem_cuda_event_synchronize(self.raw) })
    }

    /// Blocks until the stream has got there, without going to sleep for up to `awake`: a thread that sleeps notices some 0.1 ms late.
    ///
    /// # Errors
    /// As [`Event::synchronize`].
    pub fn synchronize_awake(&self, awake: Duration) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < awake {
            if self.is_done()? {
                return Ok(());
            }
            std::thread::yield_now();
        }
        self.synchronize()
    }

    /// Blocks until the stream has got there, or until `end`: whether it has.
    ///
    /// # Errors
    /// As for [`Event::synchronize`].
    pub fn synchronize_until(&self, end: Instant) -> Result<bool> {
        let begun = Instant::now();
        loop {
            // Before the look: what has come by then counts, also if this thread was held up itself.
            let now = Instant::now();
            if self.is_done()? {
                return Ok(true);
            }
            if now >= end {
                return Ok(false);
            }
            if now - begun < SPIN {
                std::hint::spin_loop();
                std::thread::yield_now();
            } else {
                std::thread::sleep(LOOK.min(end - now));
            }
        }
    }

    /// Milliseconds from this event to `later`; both must be timed, of one device, and done.
    ///
    /// # Errors
    /// They are not.
    pub fn elapsed_ms(&self, later: &Event) -> Result<f32> {
        let mut ms = 0.0;
        // SAFETY: both events are alive, `ms` is valid to write to.
        check("elapsed time", Some(self.device), unsafe {
            ffi::tandem_cuda_event_elapsed(self.raw, later.raw, &mut ms)
        })?;
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's own and not used after this.
        let _ = unsafe { ffi::tandem_cuda_event_destroy(self.raw) };
    }
}

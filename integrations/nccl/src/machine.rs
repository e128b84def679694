//! What is asked of the driver beside the fabric: which stream a handle means, whether it is being captured, and the context of the
//! calling thread, which must be afterwards what it was before.

/// A thread in a call: its context and its way to look at captures are as before once this goes.
#[cfg(not(feature = "pretend"))]
pub(crate) struct Visit {
    driver: Option<&'static Driver>,
    context: *mut libc::c_void,
    capture_mode: libc::c_int,
}

#[cfg(not(feature = "pretend"))]
type Code = libc::c_int;

/// Functions of libcuda.so.1.
#[cfg(not(feature = "pretend"))]
struct Driver {
    get_current: unsafe extern "C" fn(*mut *mut libc::c_void) -> Code,
    set_current: unsafe extern "C" fn(*mut libc::c_void) -> Code,
    is_capturing: unsafe extern "C" fn(*mut libc::c_void, *mut libc::c_int) -> Code,
    get_id: unsafe extern "C" fn(*mut libc::c_void, *mut u64) -> Code,
    exchange_mode: unsafe extern "C" fn(*mut libc::c_int) -> Code,
    synchronize: unsafe extern "C" fn() -> Code,
}

/// A function of an open library.
///
/// # Safety
/// `F` is a pointer to a function of its type, and the library stays open.
#[cfg(not(feature = "pretend"))]
unsafe fn find<F: Copy>(library: *mut libc::c_void, name: &std::ffi::CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut libc::c_void>()) };
    // SAFETY: the library is open; the name ends with a zero byte.
    let at = unsafe { libc::dlsym(library, name.as_ptr()) };
    // SAFETY: the sizes are alike; the rest is the caller's promise.
    (!at.is_null()).then(|| unsafe { std::mem::transmute_copy(&at) })
}

#[cfg(not(feature = "pretend"))]
fn driver() -> Option<&'static Driver> {
    static DRIVER: std::sync::OnceLock<Option<Driver>> = std::sync::OnceLock::new();
    let load = || {
        // SAFETY: the driver's library sets up its own state; the name ends with a zero byte.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return None;
        }
        // SAFETY: the types are those of cuda.h, and the library stays open.
        unsafe {
            Some(Driver {
                get_current: find(library, c"cuCtxGetCurrent")?,
                set_current: find(library, c"cuCtxSetCurrent")?,
                is_capturing: find(library, c"cuStreamIsCapturing")?,
                get_id: find(library, c"cuStreamGetId")?,
                exchange_mode: find(library, c"cuThreadExchangeStreamCaptureMode")?,
                synchronize: find(library, c"cuCtxSynchronize")?,
            })
        }
    };
    DRIVER.get_or_init(load).as_ref()
}

#[cfg(not(feature = "pretend"))]
impl Visit {
    pub(crate) fn begin() -> Self {
        let mut visit = Visit { driver: driver(), context: std::ptr::null_mut(), capture_mode: 2 };
        if let Some(driver) = visit.driver {
            // SAFETY: both places are valid to write to. CU_STREAM_CAPTURE_MODE_RELAXED is 2: to make tables while another thread captures
            // takes nothing from what it captures.
            unsafe {
                (driver.get_current)(&mut visit.context);
                (driver.exchange_mode)(&mut visit.capture_mode);
            }
        }
        visit
    }

    /// What the stream is, now and for ever; `None` for one whose calls are forwarded: it is being captured, or means another one on each
    /// thread.
    pub(crate) fn stream(&self, raw: usize) -> Option<u64> {
        let driver = self.driver?;
        match raw {
            // The legacy default stream, which cannot be captured.
            0 | 1 => return Some(0),
            2 => return None,
            _ => {}
        }
        let (mut state, mut id) = (1, 0);
        let raw = raw as *mut libc::c_void;
        // SAFETY: the caller's stream, as NCCL would get it; both places are valid to write to.
        let is_known = unsafe { (driver.is_capturing)(raw, &mut state) == 0 && (driver.get_id)(raw, &mut id) == 0 };
        (is_known && state == 0).then_some(id)
    }

    /// Waits for all that these devices were told.
    pub(crate) fn wait_for(&self, devices: &[tandem_cuda::Device]) {
        for device in devices {
            if let (Some(driver), Ok(())) = (self.driver, device.make_current()) {
                // SAFETY: takes nothing.
                unsafe { (driver.synchronize)() };
            }
        }
    }
}

#[cfg(not(feature = "pretend"))]
impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(driver) = self.driver {
            // SAFETY: the context was current when the visit began, or there was none.
            unsafe {
                (driver.set_current)(self.context);
                (driver.exchange_mode)(&mut self.capture_mode);
            }
        }
    }
}

/// Where ranks are pretend PEs a stream is null, or the address of a word: 0, 1 while it is being captured, or 2 for one on which kernels fail.
#[cfg(feature = "pretend")]
pub(crate) struct Visit;

#[cfg(feature = "pretend")]
impl Visit {
    pub(crate) fn begin() -> Self {
        Visit
    }

    pub(crate) fn stream(&self, raw: usize) -> Option<u64> {
        (word(raw) != 1).then_some(raw as u64)
    }
}

#[cfg(feature = "pretend")]
fn word(raw: usize) -> u32 {
    // SAFETY: the test's programs make such streams.
    unsafe { (raw as *const u32).as_ref().copied().unwrap_or(0) }
}

#[cfg(feature = "pretend")]
pub(crate) fn is_faulty(raw: usize) -> bool {
    word(raw) == 2
}

//! The library that all else goes to.

use crate::settings::warn;
use libc::{c_char, c_void};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// Where functions are looked up: a library, or what comes after this one.
struct Real(*mut c_void);

// SAFETY: dlsym may be called with it from any thread, and it is never closed.
unsafe impl Send for Real {}
// SAFETY: as above.
unsafe impl Sync for Real {}

thread_local! {
    /// Whether this thread is in the real library: what that calls of NCCL's functions is its own.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn is_inside() -> bool {
    IS_INSIDE.get()
}

/// Calls the real library.
pub(crate) fn inside<T>(f: impl FnOnce() -> T) -> T {
    let before = IS_INSIDE.replace(true);
    let out = f();
    IS_INSIDE.set(before);
    out
}

/// Something of this library that has no name outside.
static HERE: u8 = 0;

/// Where the library begins that has this address.
fn library_of(address: *const c_void) -> *const c_void {
    // SAFETY: the struct is plain pointers, and dladdr fills it or says that it has not.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        match libc::dladdr(address, &mut info) {
            0 => std::ptr::null(),
            _ => info.dli_fbase,
        }
    }
}

/// Whether NCCL's functions are found there, and are not this library's own.
fn has_functions(handle: *mut c_void) -> bool {
    // SAFETY: the handle is open, or RTLD_NEXT; the name ends with a zero byte.
    let at = unsafe { libc::dlsym(handle, c"ncclGetVersion".as_ptr()) };
    !at.is_null() && library_of(at) != library_of((&raw const HERE).cast())
}

fn open(name: &CStr) -> Result<Real, String> {
    // SAFETY: the user names the library, as one names a program to run, or the system finds NCCL; the name ends with a zero byte.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: dlerror returns a text, or null where there was no error.
        let text = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text).to_string_lossy().into_owned()) };
        return Err(text.unwrap_or_else(|| format!("{name:?} cannot be opened")));
    }
    match has_functions(handle) {
        true => Ok(Real(handle)),
        false => Err(format!("{} is Tandem's own or has no ncclGetVersion", name.to_string_lossy())),
    }
}

fn find() -> Result<Real, String> {
    if let Some(path) = std::env::var_os("TANDEM_NCCL_LIBRARY").filter(|path| !path.is_empty()) {
        let path = CString::new(path.into_encoded_bytes()).map_err(|_| "TANDEM_NCCL_LIBRARY has a zero byte")?;
        return open(&path).map_err(|reason| format!("TANDEM_NCCL_LIBRARY: {reason}"));
    }
    if has_functions(libc::RTLD_NEXT) {
        return Ok(Real(libc::RTLD_NEXT));
    }
    open(c"libnccl.so.2").map_err(|reason| format!("{reason}; set TANDEM_NCCL_LIBRARY to NCCL's file"))
}

/// A function of the real library; null where there is none.
pub(crate) fn function(name: &CStr) -> *const c_void {
    static REAL: OnceLock<Real> = OnceLock::new();
    static IS_TOLD: OnceLock<()> = OnceLock::new();
    let real = match REAL.get() {
        Some(real) => real,
        // Where it fails it is tried again: a program may load NCCL later.
        None => match find() {
            Ok(real) => REAL.get_or_init(|| real),
            Err(reason) => {
                IS_TOLD.get_or_init(|| warn(&format!("NCCL is not found: {reason}")));
                return std::ptr::null();
            }
        },
    };
    // SAFETY: the handle is open, or RTLD_NEXT; the name ends with a zero byte.
    unsafe { libc::dlsym(real.0, name.as_ptr() as *const c_char) }
}

/// Declares a function of the real library: looked up once, called with the mark that this thread is inside; `$missing` where it is not there.
macro_rules! real {
    ($($name:ident($($argument:ident: $type:ty),*) -> $returned:ty = $missing:expr;)*) => {$(
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub(crate) fn $name($($argument: $type),*) -> $returned {
            static AT: std::sync::atomic::AtomicPtr<libc::c_void> = std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
            let mut at = AT.load(std::sync::atomic::Ordering::Relaxed);
            if at.is_null() {
                const NAME: &str = concat!(stringify!($name), "\0");
                at = CStr::from_bytes_with_nul(NAME.as_bytes()).map_or(std::ptr::null_mut(), |name| function(name).cast_mut());
                if at.is_null() {
                    return $missing;
                }
                AT.store(at, std::sync::atomic::Ordering::Relaxed);
            }
            // SAFETY: the type is that of nccl.h; what is handed on is what a program has given, by NCCL's rules.
            inside(|| unsafe {
                let f = std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $returned>(at);
                f($($argument),*)
            })
        }
    )*};
}

/// `ncclUniqueId`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UniqueId(pub(crate) [u8; 128]);

pub(crate) type Comm = *mut c_void;
pub(crate) type Stream = *mut c_void;
use crate::{Status, SYSTEM_ERROR};

real! {
    ncclCommInitRank(comm: *mut Comm, ranks: i32, id: UniqueId, rank: i32) -> Status = SYSTEM_ERROR;
    ncclCommInitRankConfig(comm: *mut Comm, ranks: i32, id: UniqueId, rank: i32, config: *mut c_void) -> Status = SYSTEM_ERROR;
    ncclCommInitAll(comms: *mut Comm, count: i32, devices: *const i32) -> Status = SYSTEM_ERROR;
    ncclCommFinalize(comm: Comm) -> Status = SYSTEM_ERROR;
    ncclCommDestroy(comm: Comm) -> Status = SYSTEM_ERROR;
    ncclCommAbort(comm: Comm) -> Status = SYSTEM_ERROR;
    ncclCommRevoke(comm: Comm, flags: i32) -> Status = SYSTEM_ERROR;
    ncclCommCuDevice(comm: Comm, device: *mut i32) -> Status = SYSTEM_ERROR;
    ncclCommGetAsyncError(comm: Comm, error: *mut Status) -> Status = SYSTEM_ERROR;
    ncclGetLastError(comm: Comm) -> *const c_char = c"NCCL is not found".as_ptr();
    ncclGetErrorString(status: Status) -> *const c_char = c"NCCL is not found".as_ptr();
    ncclGroupStart() -> Status = SYSTEM_ERROR;
    ncclGroupEnd() -> Status = SYSTEM_ERROR;
    ncclGroupSimulateEnd(info: *mut c_void) -> Status = SYSTEM_ERROR;
    ncclAllReduce(send: usize, receive: usize, count: usize, dtype: i32, op: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
    ncclBroadcast(send: usize, receive: usize, count: usize, dtype: i32, root: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
    ncclBcast(buffer: usize, count: usize, dtype: i32, root: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
    ncclReduce(send: usize, receive: usize, count: usize, dtype: i32, op: i32, root: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
    ncclAllGather(send: usize, receive: usize, count: usize, dtype: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
    ncclReduceScatter(send: usize, receive: usize, count: usize, dtype: i32, op: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
    ncclAlltoAll(send: usize, receive: usize, count: usize, dtype: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
    ncclGather(send: usize, receive: usize, count: usize, dtype: i32, root: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
    ncclScatter(send: usize, receive: usize, count: usize, dtype: i32, root: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
    ncclSend(send: usize, count: usize, dtype: i32, peer: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
    ncclRecv(receive: usize, count: usize, dtype: i32, peer: i32, comm: Comm, stream: Stream) -> Status = SYSTEM_ERROR;
}

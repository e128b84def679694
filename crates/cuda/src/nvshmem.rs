//! NVSHMEM, loaded at run time: memory that other nodes' GPUs have too, and steps of streams that reach it. Each process is one of its PEs,
//! with one GPU.
//!
//! It is started once in a process and not ended: its farewell (`nvshmemx_hostlib_finalize`) waits for all PEs without a bound, and one of
//! them may be gone. The end of the process gives back what it has.

use crate::{ffi, Device};
use libloading::{Library, Symbol};
use std::ffi::{c_int, c_uint, c_void};
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a unique id.
pub const ID_BYTES: usize = 128;
/// The versions whose headers the signatures and layouts below were compared with: this major one, from this minor one on.
const LEAST: (c_int, c_int) = (3, 4);
/// The name that the system's search path has it under.
const NAME: &str = "libnvshmem_host.so.3";
/// The part that makes unique ids, which it loads by name alone.
const UID_PLUGIN: (&str, &str) = ("NVSHMEM_BOOTSTRAP_UID_PLUGIN", "nvshmem_bootstrap_uid.so.3");

/// `NVSHMEMX_INIT_WITH_UNIQUEID`
const WITH_UNIQUE_ID: c_uint = 1 << 3;
/// `NVSHMEM_STATUS_IS_INITIALIZED`; those above are the same with several PEs on a GPU, or no status.
const IS_INITIALIZED: c_int = 2;
const FULL_MPG: c_int = 4;
/// `NVSHMEM_STATUS_LIMITED_MPG`: it ends the process where a stream is to wait.
const LIMITED_MPG: c_int = 3;
/// `NVSHMEM_CMP_GE`
const CMP_GE: c_int = 5;
/// `NVSHMEM_SIGNAL_SET` and `NVSHMEM_SIGNAL_ADD`
const SIGNAL_SET: c_int = 9;
const SIGNAL_ADD: c_int = 10;

/// The first version of a structure of `T`'s size, as its headers number them.
const fn version_of<T>() -> c_int {
    (1 << 16) + size_of::<T>() as c_int
}

/// `nvshmemx_uniqueid_v1`
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId {
    version: c_int,
    internal: [u8; 124],
}

/// `nvshmemx_uniqueid_args_v1`
#[repr(C)]
struct UniqueIdArgs {
    version: c_int,
    id: *mut UniqueId,
    rank: c_int,
    ranks: c_int,
}

/// `nvshmemx_init_args_v1`
#[repr(C)]
struct InitArgs {
    version: c_int,
    id_args: UniqueIdArgs,
    content: [u8; 96],
}

/// `nvshmemx_init_attr_v1`
#[repr(C)]
struct InitAttr {
    version: c_int,
    mpi_comm: *mut c_void,
    args: InitArgs,
}

const _: () = assert!(size_of::<UniqueId>() == ID_BYTES && size_of::<UniqueIdArgs>() == 24);
const _: () = assert!(size_of::<InitArgs>() == 128 && size_of::<InitAttr>() == 144);
// The numbers that tests/nvshmem/layouts.cpp compares with the headers.
const _: () = {
    assert!(offset_of!(UniqueId, internal) == 4 && offset_of!(UniqueIdArgs, id) == 8);
    assert!(offset_of!(UniqueIdArgs, rank) == 16 && offset_of!(UniqueIdArgs, ranks) == 20);
    assert!(offset_of!(InitArgs, id_args) == 8 && offset_of!(InitArgs, content) == 32);
    assert!(offset_of!(InitAttr, mpi_comm) == 8 && offset_of!(InitAttr, args) == 16);
};

type Raw = ffi::tandem_stream;
type Move = unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int, Raw);

/// What is called, looked up once.
struct Functions {
    get_version: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int),
    get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> c_int,
    set_unique_id: unsafe extern "C" fn(c_int, c_int, *const UniqueId, *mut InitAttr) -> c_int,
    init: unsafe extern "C" fn(c_uint, *mut InitAttr) -> c_int,
    status: unsafe extern "C" fn() -> c_int,
    my_pe: unsafe extern "C" fn() -> c_int,
    pes: unsafe extern "C" fn() -> c_int,
    align: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    peer: unsafe extern "C" fn(*const c_void, c_int) -> *mut c_void,
    put: Move,
    get: Move,
    signal: unsafe extern "C" fn(*mut u64, u64, c_int, c_int, Raw),
    wait: unsafe extern "C" fn(*mut u64, c_int, u64, Raw),
    quiet: unsafe extern "C" fn(Raw),
}

/// The library, which is not started.
pub struct Nvshmem {
    functions: Functions,
    version: (c_int, c_int, c_int),
    path: PathBuf,
    /// Keeps the functions where they are.
    _library: Library,
}

impl std::fmt::Debug for Nvshmem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Nvshmem({})", self.version())
    }
}

/// A function of NVSHMEM.
///
/// # Safety
/// `T` is the type of the function that its headers declare with this name, which ends with a zero byte.
unsafe fn symbol<T: Copy>(library: &Library, path: &Path, name: &'static [u8]) -> Result<T, String> {
    let text = String::from_utf8_lossy(&name[..name.len() - 1]);
    // SAFETY: the caller's promise.
    let found: Result<Symbol<'_, T>, _> = unsafe { library.get(name) };
    found.map(|symbol| *symbol).map_err(|_| {
        format!("{} has no {text}: it is not NVSHMEM's host library, {NAME}, of version 3.4 or later", path.display())
    })
}

/// Whether a version is one whose interface is known.
fn is_known(version: (c_int, c_int, c_int)) -> bool {
    version.0 == LEAST.0 && version.1 >= LEAST.1
}

fn set_unless_set(name: &str, value: impl AsRef<std::ffi::OsStr>) {
    if std::env::var_os(name).is_none() {
        std::env::set_var(name, value);
    }
}

impl Nvshmem {
    /// Loads NVSHMEM from a file, or by its name where the system finds it. NVLink multicast is switched off for this process, unless
    /// `NVSHMEM_DISABLE_NVLS` is set: a program that is killed while it uses multicast can leave the GPUs of a machine unusable.
    ///
    /// # Errors
    /// In words, why it cannot be used: no such file, none of its kind, a function that is missing, another version.
    pub fn load(path: Option<&Path>) -> Result<Self, String> {
        set_unless_set("NVSHMEM_DISABLE_NVLS", "1");
        let path = path.unwrap_or(Path::new(NAME)).to_path_buf();
        if let Some(plugin) = path.parent().map(|folder| folder.join(UID_PLUGIN.1)).filter(|plugin| plugin.exists()) {
            set_unless_set(UID_PLUGIN.0, plugin);
        }
        // SAFETY: the user names the library, as one names a program to run; its initialisers set up its own state.
        let library = unsafe { Library::new(&path) }.map_err(|error| {
            format!("NVSHMEM cannot be loaded from {} ({error}); install it, and name {NAME}", path.display())
        })?;
        // SAFETY: the signatures are those of the headers of 3.4 and 3.8.
        let functions = unsafe {
            Functions {
                get_version: symbol(&library, &path, b"nvshmemx_vendor_get_version_info\0")?,
                get_unique_id: symbol(&library, &path, b"nvshmemx_get_uniqueid\0")?,
                set_unique_id: symbol(&library, &path, b"nvshmemx_set_attr_uniqueid_args\0")?,
                init: symbol(&library, &path, b"nvshmemx_hostlib_init_attr\0")?,
                status: symbol(&library, &path, b"nvshmemx_init_status\0")?,
                my_pe: symbol(&library, &path, b"nvshmem_my_pe\0")?,
                pes: symbol(&library, &path, b"nvshmem_n_pes\0")?,
                align: symbol(&library, &path, b"nvshmem_align\0")?,
                free: symbol(&library, &path, b"nvshmem_free\0")?,
                peer: symbol(&library, &path, b"nvshmem_ptr\0")?,
                put: symbol(&library, &path, b"nvshmemx_putmem_on_stream\0")?,
                get: symbol(&library, &path, b"nvshmemx_getmem_on_stream\0")?,
                signal: symbol(&library, &path, b"nvshmemx_signal_op_on_stream\0")?,
                wait: symbol(&library, &path, b"nvshmemx_signal_wait_until_on_stream\0")?,
                quiet: symbol(&library, &path, b"nvshmemx_quiet_on_stream\0")?,
            }
        };
        let mut version = (0, 0, 0);
        // SAFETY: the numbers are valid to write to.
        unsafe { (functions.get_version)(&mut version.0, &mut version.1, &mut version.2) };
        let nvshmem = Nvshmem { functions, version, path, _library: library };
        if is_known(version) {
            return Ok(nvshmem);
        }
        let (found, (major, minor)) = (nvshmem.version(), LEAST);
        Err(format!("{} is NVSHMEM {found}, expected {major}.{minor} or a later {major}", nvshmem.path.display()))
    }

    /// Its version, such as 3.8.0.
    pub fn version(&self) -> String {
        let (major, minor, patch) = self.version;
        format!("{major}.{minor}.{patch}")
    }

    /// A new id, by which PEs find each other: one process makes it, and tells it to all.
    ///
    /// # Errors
    /// What NVSHMEM says.
    pub fn unique_id(&self) -> Result<[u8; ID_BYTES], String> {
        let mut id = UniqueId { version: version_of::<UniqueId>(), internal: [0; 124] };
        // SAFETY: the id is valid to write to, and says its version.
        let status = unsafe { (self.functions.get_unique_id)(&mut id) };
        self.check("nvshmemx_get_uniqueid", status)?;
        let mut bytes = [0; ID_BYTES];
        bytes[..4].copy_from_slice(&id.version.to_ne_bytes());
        bytes[4..].copy_from_slice(&id.internal);
        Ok(bytes)
    }

    fn check(&self, what: &str, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        Err(format!("{what} of NVSHMEM {} failed ({status}); NVSHMEM_DEBUG=WARN makes it say why", self.version()))
    }

    /// Starts it as PE `rank` of `ranks`, on `device`, with the id that all have. All call this, and wait for each other, `within` at most.
    /// A process can do so once.
    ///
    /// # Errors
    /// It was started before, also in vain; what NVSHMEM says; the others do not come in time.
    pub fn start(
        self,
        device: Device,
        (rank, ranks): (usize, usize),
        id: [u8; ID_BYTES],
        within: Duration,
    ) -> Result<&'static Pes, String> {
        let (rank, ranks) = (narrow(rank)?, narrow(ranks)?);
        let mut state = lock(&STATE);
        if !matches!(*state, State::No) {
            return Err("NVSHMEM was started in this process before; start the processes anew".into());
        }
        *state = State::InVain;
        let pes: &'static Pes = Box::leak(Box::new(Pes { nvshmem: self, device, rank, ranks, one: Mutex::new(()) }));
        bounded(device, "to start NVSHMEM", within, move || pes.init(id))?;
        *state = State::Is(pes);
        Ok(pes)
    }
}

fn narrow(number: usize) -> Result<c_int, String> {
    c_int::try_from(number).map_err(|_| format!("{number} is no number of a PE"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What has become of NVSHMEM in this process.
enum State {
    No,
    InVain,
    Is(&'static Pes),
}

static STATE: Mutex<State> = Mutex::new(State::No);

/// Calls `f`, which waits for other processes, with `device` current. After `within` it is left to a thread of its own.
fn bounded<T: Send + 'static>(
    device: Device,
    what: &str,
    within: Duration,
    f: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (done, result) = channel();
    let work = move || {
        let current = device.make_current().map_err(|error| error.to_string());
        // Who has waited too long listens no more.
        let _ = done.send(current.and_then(|()| f()));
    };
    let thread = std::thread::Builder::new().name("nvshmem".into()).spawn(work);
    thread.map_err(|error| format!("no thread {what}: {error}"))?;
    let late = || format!("the other processes have not come in {within:.1?} {what}; look at what they say");
    result.recv_timeout(within).unwrap_or_else(|_| Err(late()))
}

/// NVSHMEM as it runs in this process. Its calls are made one at a time, and wait for nothing unless they say so.
pub struct Pes {
    nvshmem: Nvshmem,
    device: Device,
    rank: c_int,
    ranks: c_int,
    one: Mutex<()>,
}

impl std::fmt::Debug for Pes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PE {} of {} of NVSHMEM {}", self.rank, self.ranks, self.version())
    }
}

impl Pes {
    /// NVSHMEM in this process, if it was started.
    ///
    /// # Errors
    /// That was in vain.
    pub fn running() -> Result<Option<&'static Pes>, String> {
        match *lock(&STATE) {
            State::No => Ok(None),
            State::InVain => Err("NVSHMEM did not start in this process; start the processes anew".into()),
            State::Is(pes) => Ok(Some(pes)),
        }
    }

    /// Its version, such as 3.8.0.
    pub fn version(&self) -> String {
        self.nvshmem.version()
    }

    /// Its GPU.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Which PE this process is, and how many there are.
    pub fn place(&self) -> (usize, usize) {
        (self.rank as usize, self.ranks as usize)
    }

    fn f(&self) -> &Functions {
        &self.nvshmem.functions
    }

    fn init(&'static self, id: [u8; ID_BYTES]) -> Result<(), String> {
        let [a, b, c, d, internal @ ..] = id;
        // It keeps the address.
        let id: &'static mut UniqueId =
            Box::leak(Box::new(UniqueId { version: c_int::from_ne_bytes([a, b, c, d]), internal }));
        let id_args = UniqueIdArgs { version: version_of::<UniqueIdArgs>(), id, rank: self.rank, ranks: self.ranks };
        let args = InitArgs { version: version_of::<InitArgs>(), id_args, content: [0; 96] };
        let attr: &'static mut InitAttr =
            Box::leak(Box::new(InitAttr { version: version_of::<InitAttr>(), mpi_comm: std::ptr::null_mut(), args }));
        let f = self.f();
        // SAFETY: id and attributes live on, and say their versions.
        let status = unsafe { (f.set_unique_id)(self.rank, self.ranks, attr.args.id_args.id, attr) };
        self.nvshmem.check("nvshmemx_set_attr_uniqueid_args", status)?;
        // SAFETY: as above; the device is current.
        let status = unsafe { (f.init)(WITH_UNIQUE_ID, attr) };
        self.nvshmem.check("nvshmemx_hostlib_init_attr", status)?;
        // SAFETY: takes nothing.
        let status = unsafe { (f.status)() };
        if status == LIMITED_MPG {
            return Err("several PEs share a GPU: NVSHMEM needs an MPS server then, with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE of 100 in all at most".into());
        }
        if !(IS_INITIALIZED..=FULL_MPG).contains(&status) {
            return Err(format!(
                "NVSHMEM {} did not start (status {status}); NVSHMEM_DEBUG=WARN makes it say why, and where no network is needed \
                 NVSHMEM_REMOTE_TRANSPORT=none leaves it out",
                self.version()
            ));
        }
        // SAFETY: it is started.
        let found = unsafe { ((f.my_pe)(), (f.pes)()) };
        if found != (self.rank, self.ranks) {
            let (rank, ranks) = found;
            return Err(format!("NVSHMEM says PE {rank} of {ranks}, expected PE {} of {}", self.rank, self.ranks));
        }
        Ok(())
    }

    /// `bytes` bytes at a multiple of `alignment`, at one offset of each PE's memory, with undefined contents: the address here. All call this
    /// with the same arguments, and wait for each other, `within` at most.
    ///
    /// # Errors
    /// Too little memory; the others do not come in time.
    pub fn allocate(&'static self, bytes: usize, alignment: usize, within: Duration) -> Result<u64, String> {
        bounded(self.device, "to allocate memory of NVSHMEM", within, move || {
            let _one = lock(&self.one);
            // SAFETY: it is started, and the device current.
            let at = unsafe { (self.f().align)(alignment, bytes) };
            let none =
                || format!("NVSHMEM has no {bytes} bytes on {}: take a smaller window (Options::window)", self.device);
            (!at.is_null()).then_some(at as u64).ok_or_else(none)
        })
    }

    /// Gives back what [`Pes::allocate`] has returned. All call this, in the same order, and wait for each other, `within` at most.
    ///
    /// # Safety
    /// The address is from `allocate`, and neither a PE nor a stream uses the memory any more.
    ///
    /// # Errors
    /// The others do not come in time.
    pub unsafe fn free(&'static self, at: u64, within: Duration) -> Result<(), String> {
        bounded(self.device, "to free memory of NVSHMEM", within, move || {
            let _one = lock(&self.one);
            // SAFETY: the caller's promise.
            unsafe { (self.f().free)(at as *mut c_void) };
            Ok(())
        })
    }

    /// Whether all PEs' memory at the address of this one's is mapped here: then no network is between them.
    pub fn is_mapped(&self, at: u64) -> bool {
        // SAFETY: takes an address, which it only looks up.
        (0..self.ranks).all(|pe| unsafe { !(self.f().peer)(at as *const c_void, pe).is_null() })
    }

    /// Tells a stream to copy `bytes` bytes from `from` here to `to` of `pe`; [`Pes::quiet`] waits until they are there. Addresses, here and
    /// below, are those of this PE's memory, of which `pe` has its own.
    ///
    /// # Safety
    /// Both ranges lie in memory of [`Pes::allocate`] that lives until the stream has got past this; `pe` is a PE, and the stream is one of
    /// this PE's device, which is current.
    pub unsafe fn put(&self, to: u64, from: u64, bytes: usize, pe: usize, stream: Raw) {
        let _one = lock(&self.one);
        // SAFETY: the caller's promise.
        unsafe { (self.f().put)(to as *mut c_void, from as *const c_void, bytes, pe as c_int, stream) }
    }

    /// Tells a stream to copy `bytes` bytes from `from` of `pe` to `to` here.
    ///
    /// # Safety
    /// As for [`Pes::put`].
    pub unsafe fn get(&self, to: u64, from: u64, bytes: usize, pe: usize, stream: Raw) {
        let _one = lock(&self.one);
        // SAFETY: the caller's promise.
        unsafe { (self.f().get)(to as *mut c_void, from as *const c_void, bytes, pe as c_int, stream) }
    }

    /// Tells a stream to set the word of 64 bits of `pe` to `value`, or to add it.
    ///
    /// # Safety
    /// As for [`Pes::put`]; the word's address is a multiple of 8.
    pub unsafe fn signal(&self, word: u64, value: u64, is_added: bool, pe: usize, stream: Raw) {
        let _one = lock(&self.one);
        let op = if is_added { SIGNAL_ADD } else { SIGNAL_SET };
        // SAFETY: the caller's promise.
        unsafe { (self.f().signal)(word as *mut u64, value, op, pe as c_int, stream) }
    }

    /// Tells a stream to wait until all that it was told before, and other streams, is done at the other PEs.
    ///
    /// # Safety
    /// The stream is one of this PE's device, which is current.
    pub unsafe fn quiet(&self, stream: Raw) {
        let _one = lock(&self.one);
        // SAFETY: the caller's promise.
        unsafe { (self.f().quiet)(stream) }
    }

    /// Tells a stream to make visible here what other PEs have written by a network before a word that the stream has seen: NVSHMEM's own wait, for
    /// the word to be 0 or more, which it always is.
    ///
    /// # Safety
    /// As for [`Pes::put`]; `word` is the address of one of 64 bits.
    pub unsafe fn settle(&self, word: u64, stream: Raw) {
        let _one = lock(&self.one);
        // SAFETY: the caller's promise.
        unsafe { (self.f().wait)(word as *mut u64, CMP_GE, 0, stream) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_refused() {
        let reason = Nvshmem::load(Some(Path::new("/nowhere/libnvshmem_host.so.3"))).unwrap_err();
        assert!(reason.contains("/nowhere/libnvshmem_host.so.3") && reason.contains("install it"), "{reason}");
        let program = std::env::current_exe().unwrap();
        let reason = Nvshmem::load(Some(&program)).unwrap_err();
        assert!(reason.contains(program.to_str().unwrap()), "{reason}");
        // A library that is another.
        let reason = Nvshmem::load(Some(Path::new("libm.so.6"))).unwrap_err();
        assert!(reason.contains("libm.so.6 has no nvshmemx_vendor_get_version_info"), "{reason}");
        assert_eq!(std::env::var("NVSHMEM_DISABLE_NVLS").as_deref(), Ok("1"));
    }

    #[test]
    fn versions_whose_interface_is_not_known_are_refused() {
        let known = [(3, 4, 0), (3, 4, 5), (3, 8, 0), (3, 99, 1)];
        let unknown = [(2, 11, 0), (3, 3, 24), (3, 0, 6), (4, 0, 0), (4, 8, 0), (0, 0, 0), (-1, 4, 0)];
        assert!(known.into_iter().all(is_known) && !unknown.into_iter().any(is_known));
    }
}

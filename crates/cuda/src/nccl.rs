//! NCCL, loaded at run time, as a peer to measure against. No path of Tandem's own uses it.

use crate::{Device, DeviceBuffer, Stream};
use bytemuck::Pod;
use libloading::{Library, Symbol};
use std::ffi::{c_char, c_int, c_void, CStr};
use std::path::Path;
use std::sync::Arc;

type Comm = *mut c_void;
type Status = c_int;

/// An element type of NCCL.
pub trait Element: Pod {
    /// Its `ncclDataType_t`.
    const KIND: c_int;
}

impl Element for u8 {
    const KIND: c_int = 1;
}
impl Element for u32 {
    const KIND: c_int = 3;
}
impl Element for u64 {
    const KIND: c_int = 5;
}
impl Element for f32 {
    const KIND: c_int = 7;
}

/// `ncclSum`
const SUM: c_int = 0;

/// The collective operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collective {
    /// From the root to all.
    Broadcast,
    /// The sum of all to the root.
    Reduce,
    /// The sum of all to all.
    AllReduce,
    /// The parts of all to all.
    AllGather,
    /// The sum of all, a part to each.
    ReduceScatter,
    /// A part of each to each.
    AllToAll,
    /// From the first rank to the second.
    Send,
    /// From each rank to the next one, at once.
    Exchange,
}

type RawStream = crate::ffi::tandem_stream;
type Group = unsafe extern "C" fn() -> Status;
/// Broadcast, with the root; all-reduce and reduce-scatter have the same form with the operation in its place.
type Rooted = unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, RawStream) -> Status;
type RootedSum =
    unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, c_int, Comm, RawStream) -> Status;
type Gather = unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, Comm, RawStream) -> Status;
type Sends = unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, RawStream) -> Status;
type Receives = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, RawStream) -> Status;

/// What calls need, looked up once: a call of NCCL is timed without that.
struct Functions {
    group_start: Group,
    group_end: Group,
    broadcast: Rooted,
    all_reduce: Rooted,
    reduce_scatter: Rooted,
    reduce: RootedSum,
    all_gather: Gather,
    send: Sends,
    receive: Receives,
}

/// The library.
pub struct Nccl {
    functions: Functions,
    library: Library,
    version: c_int,
}

impl std::fmt::Debug for Nccl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Nccl({})", self.version())
    }
}

/// What a call to the library needs where it is one of many forms.
struct Call<'a> {
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    kind: c_int,
    comm: Comm,
    stream: &'a Stream,
    rank: usize,
    ranks: usize,
}

impl Nccl {
    /// Loads NCCL from a file, or by its name where the system finds it. NVLink multicast is switched off for this process: a
    /// program that is killed while it uses multicast can leave the GPUs of a machine unusable.
    ///
    /// # Errors
    /// In words, why it cannot be used.
    pub fn load(path: Option<&Path>) -> Result<Arc<Self>, String> {
        std::env::set_var("NCCL_NVLS_ENABLE", "0");
        let name = path.unwrap_or(Path::new("libnccl.so.2"));
        // SAFETY: the user names the library, as one names a program to run; its initialisers set up its own state.
        let library = unsafe { Library::new(name) }.map_err(|e| format!("{}: {e}", name.display()))?;
        // SAFETY: the signatures are those of nccl.h.
        let functions = unsafe {
            Functions {
                group_start: *symbol(&library, b"ncclGroupStart\0")?,
                group_end: *symbol(&library, b"ncclGroupEnd\0")?,
                broadcast: *symbol(&library, b"ncclBroadcast\0")?,
                all_reduce: *symbol(&library, b"ncclAllReduce\0")?,
                reduce_scatter: *symbol(&library, b"ncclReduceScatter\0")?,
                reduce: *symbol(&library, b"ncclReduce\0")?,
                all_gather: *symbol(&library, b"ncclAllGather\0")?,
                send: *symbol(&library, b"ncclSend\0")?,
                receive: *symbol(&library, b"ncclRecv\0")?,
            }
        };
        let mut nccl = Nccl { functions, library, version: 0 };
        let mut version = 0;
        // SAFETY: the signature is that of nccl.h; the number is valid to write to.
        let status =
            unsafe { nccl.symbol::<unsafe extern "C" fn(*mut c_int) -> Status>(b"ncclGetVersion\0")?(&mut version) };
        nccl.check("ncclGetVersion", status)?;
        nccl.version = version;
        Ok(Arc::new(nccl))
    }

    /// Its version, such as 2.28.9.
    pub fn version(&self) -> String {
        format!("{}.{}.{}", self.version / 10_000, self.version % 10_000 / 100, self.version % 100)
    }

    /// # Safety
    /// As for [`symbol`].
    unsafe fn symbol<T>(&self, name: &[u8]) -> Result<Symbol<'_, T>, String> {
        // SAFETY: the caller's promise.
        unsafe { symbol(&self.library, name) }
    }

    fn check(&self, what: &str, status: Status) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        type F = unsafe extern "C" fn(Status) -> *const c_char;
        // SAFETY: the function returns a text of the library's own for any status.
        let text = unsafe {
            self.symbol::<F>(b"ncclGetErrorString\0").ok().map(|f| CStr::from_ptr(f(status)).to_string_lossy())
        };
        Err(format!("{what} failed: {} ({status})", text.as_deref().unwrap_or("no text")))
    }

    /// One rank for each device, all in this process.
    ///
    /// # Errors
    /// What NCCL says.
    pub fn start(self: &Arc<Self>, devices: &[Device]) -> Result<Ranks, String> {
        type F = unsafe extern "C" fn(*mut Comm, c_int, *const c_int) -> Status;
        let numbers: Vec<c_int> = devices.iter().map(|d| d.raw()).collect();
        let mut ranks = Ranks { nccl: self.clone(), comms: Vec::new() };
        let mut comms = vec![std::ptr::null_mut(); devices.len()];
        // SAFETY: the signature is that of nccl.h; both arrays have a place for each device.
        let status = unsafe {
            self.symbol::<F>(b"ncclCommInitAll\0")?(comms.as_mut_ptr(), numbers.len() as c_int, numbers.as_ptr())
        };
        self.check("ncclCommInitAll", status)?;
        ranks.comms = comms;
        Ok(ranks)
    }

    fn group(&self, f: Group) -> Result<(), String> {
        // SAFETY: ncclGroupStart and ncclGroupEnd take no arguments.
        self.check("NCCL's group", unsafe { f() })
    }
}

/// NCCL's communicators of one process.
#[derive(Debug)]
pub struct Ranks {
    nccl: Arc<Nccl>,
    comms: Vec<Comm>,
}

impl Ranks {
    /// Queues an operation on the streams of `send`, which those of `receive` have to be too. `count` is that of nccl-tests: elements
    /// that each rank sends for all-gather, receives for reduce-scatter, and exchanges with each rank for all-to-all.
    ///
    /// # Errors
    /// A buffer is missing or too short; what NCCL says.
    pub fn run<T: Element>(
        &self,
        what: Collective,
        send: &[DeviceBuffer<T>],
        receive: &mut [DeviceBuffer<T>],
        count: usize,
    ) -> Result<(), String> {
        let ranks = self.comms.len();
        let (sent, received) = match what {
            Collective::AllGather => (count, count.saturating_mul(ranks)),
            Collective::ReduceScatter => (count.saturating_mul(ranks), count),
            Collective::AllToAll => (count.saturating_mul(ranks), count.saturating_mul(ranks)),
            _ => (count, count),
        };
        let fits = |buffers: &[DeviceBuffer<T>], len| buffers.len() == ranks && buffers.iter().all(|b| b.len() >= len);
        let same = send.iter().zip(receive.iter()).all(|(a, b)| Arc::ptr_eq(a.stream(), b.stream()));
        if !fits(send, sent) || !fits(receive, received) || !same {
            return Err(format!("NCCL {what:?}: a buffer is missing, too short, or of another stream"));
        }
        self.nccl.group(self.nccl.functions.group_start)?;
        let mut done = Ok(());
        for (rank, (send, receive)) in send.iter().zip(receive.iter_mut()).enumerate() {
            let call = Call {
                send: send.ptr().raw().cast(),
                receive: receive.ptr().raw().cast(),
                count,
                kind: T::KIND,
                comm: self.comms[rank],
                stream: send.stream(),
                rank,
                ranks,
            };
            done = done.and(self.queue(what, &call));
        }
        let ended = self.nccl.group(self.nccl.functions.group_end);
        done.and(ended)
    }

    fn queue(&self, what: Collective, c: &Call<'_>) -> Result<(), String> {
        let (f, stream) = (&self.nccl.functions, c.stream.raw());
        // SAFETY: the buffers are live, of the stream's device, and have as many elements as `run` has checked; all work on them follows
        // their stream.
        let status = unsafe {
            match what {
                Collective::Broadcast => (f.broadcast)(c.send, c.receive, c.count, c.kind, 0, c.comm, stream),
                Collective::Reduce => (f.reduce)(c.send, c.receive, c.count, c.kind, SUM, 0, c.comm, stream),
                Collective::AllReduce => (f.all_reduce)(c.send, c.receive, c.count, c.kind, SUM, c.comm, stream),
                Collective::ReduceScatter => {
                    (f.reduce_scatter)(c.send, c.receive, c.count, c.kind, SUM, c.comm, stream)
                }
                Collective::AllGather => (f.all_gather)(c.send, c.receive, c.count, c.kind, c.comm, stream),
                Collective::AllToAll => return self.pairs(c, |_| true, |_| true, true),
                Collective::Send => {
                    return self.pairs(c, |peer| c.rank == 0 && peer == 1, |peer| c.rank == 1 && peer == 0, false)
                }
                Collective::Exchange => {
                    let (next, before) = ((c.rank + 1) % c.ranks, (c.rank + c.ranks - 1) % c.ranks);
                    return self.pairs(c, |peer| peer == next, |peer| peer == before, false);
                }
            }
        };
        self.nccl.check("NCCL", status)
    }

    /// Sends and receives of one rank; `spread` where each peer has its own part of the buffers.
    fn pairs(
        &self,
        c: &Call<'_>,
        sends: impl Fn(usize) -> bool,
        receives: impl Fn(usize) -> bool,
        spread: bool,
    ) -> Result<(), String> {
        let (f, stream) = (&self.nccl.functions, c.stream.raw());
        let width = match c.kind {
            1 => 1,
            5 => 8,
            _ => 4,
        };
        for peer in 0..c.ranks {
            let at = if spread { peer * c.count * width } else { 0 };
            if sends(peer) {
                // SAFETY: as in `queue`; the part of each peer lies in the buffer.
                let status = unsafe { (f.send)(c.send.byte_add(at), c.count, c.kind, peer as c_int, c.comm, stream) };
                self.nccl.check("NCCL", status)?;
            }
            if receives(peer) {
                // SAFETY: likewise.
                let status =
                    unsafe { (f.receive)(c.receive.byte_add(at), c.count, c.kind, peer as c_int, c.comm, stream) };
                self.nccl.check("NCCL", status)?;
            }
        }
        Ok(())
    }
}

/// A function of NCCL.
///
/// # Safety
/// `T` is the type of the function that nccl.h declares with this name, which ends with a zero byte.
unsafe fn symbol<'a, T>(library: &'a Library, name: &[u8]) -> Result<Symbol<'a, T>, String> {
    // SAFETY: the caller's promise.
    unsafe { library.get(name) }.map_err(|e| e.to_string())
}

impl Drop for Ranks {
    fn drop(&mut self) {
        type F = unsafe extern "C" fn(Comm) -> Status;
        for &comm in &self.comms {
            // SAFETY: the communicator is this value's own and not used after this.
            let _ = unsafe { self.nccl.symbol::<F>(b"ncclCommDestroy\0").map(|f| f(comm)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_refused() {
        let reason = Nccl::load(Some(Path::new("/nowhere/libnccl.so.2"))).unwrap_err();
        assert!(reason.contains("/nowhere/libnccl.so.2"), "{reason}");
        let file = std::env::current_exe().unwrap();
        assert!(Nccl::load(Some(&file)).is_err());
        assert_eq!(std::env::var("NCCL_NVLS_ENABLE").as_deref(), Ok("0"));
    }
}

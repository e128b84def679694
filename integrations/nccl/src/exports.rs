//! The functions of NCCL that this library looks at, with the types of nccl.h. Nothing panics across them.
//!
//! # Safety
//! Of each function, all that nccl.h asks for.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments, missing_docs, non_snake_case)]

use crate::call::{Buffers, Call, What};
use crate::group::{self, Birth};
use crate::real::{self, Comm, Stream, UniqueId};
use crate::{clique, settings, Status, INTERNAL_ERROR, INVALID_ARGUMENT, SUCCESS};
use libc::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};

fn guarded(f: impl FnOnce() -> Status) -> Status {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or(INTERNAL_ERROR)
}

/// A call with all that one may have; what it has not is 0.
fn call(
    what: What,
    (send, receive): (*const c_void, *mut c_void),
    count: usize,
    dtype: i32,
    (op, root): (i32, i32),
    comm: Comm,
    stream: Stream,
) -> Status {
    let buffers = Buffers { send: send as usize, receive: receive as usize, stream: stream as usize };
    guarded(|| group::call(Call { what, count, dtype, op, root }, buffers, comm))
}

#[no_mangle]
pub unsafe extern "C" fn ncclAllReduce(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    dtype: i32,
    op: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::AllReduce, (send, receive), count, dtype, (op, 0), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclBroadcast(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    dtype: i32,
    root: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::Broadcast, (send, receive), count, dtype, (0, root), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclBcast(
    buffer: *mut c_void,
    count: usize,
    dtype: i32,
    root: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::Bcast, (buffer, buffer), count, dtype, (0, root), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclReduce(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    dtype: i32,
    op: i32,
    root: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::Reduce, (send, receive), count, dtype, (op, root), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclAllGather(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    dtype: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::AllGather, (send, receive), count, dtype, (0, 0), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclReduceScatter(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    dtype: i32,
    op: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::ReduceScatter, (send, receive), count, dtype, (op, 0), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclAlltoAll(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    dtype: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::AllToAll, (send, receive), count, dtype, (0, 0), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclGather(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    dtype: i32,
    root: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::Gather, (send, receive), count, dtype, (0, root), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclScatter(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    dtype: i32,
    root: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::Scatter, (send, receive), count, dtype, (0, root), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclSend(
    send: *const c_void,
    count: usize,
    dtype: i32,
    peer: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::Send, (send, std::ptr::null_mut()), count, dtype, (0, peer), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclRecv(
    receive: *mut c_void,
    count: usize,
    dtype: i32,
    peer: i32,
    comm: Comm,
    stream: Stream,
) -> Status {
    call(What::Receive, (std::ptr::null(), receive), count, dtype, (0, peer), comm, stream)
}

#[no_mangle]
pub unsafe extern "C" fn ncclGroupStart() -> Status {
    guarded(group::start)
}

#[no_mangle]
pub unsafe extern "C" fn ncclGroupEnd() -> Status {
    guarded(|| group::end(real::ncclGroupEnd))
}

#[no_mangle]
pub unsafe extern "C" fn ncclGroupSimulateEnd(info: *mut c_void) -> Status {
    guarded(|| match group::flush() {
        SUCCESS => group::end(|| real::ncclGroupSimulateEnd(info)),
        status => {
            group::end(|| real::ncclGroupSimulateEnd(info));
            status
        }
    })
}

/// Notes a communicator that was asked for, if that went well.
fn asked(status: Status, comm: *mut Comm, id: [u8; 128], ranks: i32, rank: i32) -> Status {
    if let (SUCCESS, false, Ok(ranks), Ok(rank)) =
        (status, comm.is_null(), usize::try_from(ranks), usize::try_from(rank))
    {
        group::birth(Birth { comm, id, ranks, rank });
    }
    status
}

#[no_mangle]
pub unsafe extern "C" fn ncclCommInitRank(comm: *mut Comm, ranks: i32, id: UniqueId, rank: i32) -> Status {
    guarded(|| asked(real::ncclCommInitRank(comm, ranks, id, rank), comm, id.0, ranks, rank))
}

/// The first members of `ncclConfig_t`, as they are since it exists.
#[repr(C)]
struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: i32,
}

#[no_mangle]
pub unsafe extern "C" fn ncclCommInitRankConfig(
    comm: *mut Comm,
    ranks: i32,
    id: UniqueId,
    rank: i32,
    config: *mut c_void,
) -> Status {
    guarded(|| {
        let status = real::ncclCommInitRankConfig(comm, ranks, id, rank, config);
        // SAFETY: null, or a configuration of the caller's, which the real library has just read.
        let blocks = unsafe { config.cast::<Config>().as_ref().is_none_or(|config| config.blocking != 0) };
        // One that does not block is not made yet.
        if blocks {
            asked(status, comm, id.0, ranks, rank)
        } else {
            status
        }
    })
}

#[no_mangle]
pub unsafe extern "C" fn ncclCommInitAll(comms: *mut Comm, count: i32, devices: *const i32) -> Status {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    guarded(|| {
        let status = real::ncclCommInitAll(comms, count, devices);
        // Ids of NCCL are random, and none has so many zero bytes.
        let mut id = [0; 128];
        id[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        for rank in 0..count.max(0) {
            asked(status, comms.wrapping_add(rank as usize), id, count, rank);
        }
        status
    })
}

#[no_mangle]
pub unsafe extern "C" fn ncclCommFinalize(comm: Comm) -> Status {
    guarded(|| {
        clique::close(comm as usize, "a rank is finalized");
        real::ncclCommFinalize(comm)
    })
}

#[no_mangle]
pub unsafe extern "C" fn ncclCommRevoke(comm: Comm, flags: i32) -> Status {
    guarded(|| {
        clique::close(comm as usize, "a rank is revoked");
        real::ncclCommRevoke(comm, flags)
    })
}

#[no_mangle]
pub unsafe extern "C" fn ncclCommDestroy(comm: Comm) -> Status {
    guarded(|| {
        clique::leave(comm as usize, false);
        real::ncclCommDestroy(comm)
    })
}

#[no_mangle]
pub unsafe extern "C" fn ncclCommAbort(comm: Comm) -> Status {
    guarded(|| {
        clique::leave(comm as usize, true);
        real::ncclCommAbort(comm)
    })
}

#[no_mangle]
pub unsafe extern "C" fn ncclCommGetAsyncError(comm: Comm, error: *mut Status) -> Status {
    guarded(|| {
        if settings::is_off() || clique::fault_of(comm as usize).is_none() {
            return real::ncclCommGetAsyncError(comm, error);
        }
        if error.is_null() {
            return INVALID_ARGUMENT;
        }
        // SAFETY: the caller's place for the error.
        unsafe { *error = INTERNAL_ERROR };
        SUCCESS
    })
}

#[no_mangle]
pub unsafe extern "C" fn ncclGetLastError(comm: Comm) -> *const c_char {
    let own = catch_unwind(|| clique::fault_of(comm as usize)).ok().flatten();
    own.unwrap_or_else(|| real::ncclGetLastError(comm))
}

#[no_mangle]
pub unsafe extern "C" fn ncclGetErrorString(status: Status) -> *const c_char {
    real::ncclGetErrorString(status)
}

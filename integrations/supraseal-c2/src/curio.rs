//! What Curio's fork of the crate adds: proofs in two steps, and memory that a GPU copies from.

use crate::cuda::Error;
use crate::{hand_over, of_equal_circuits, prove, told, Proof, SRS};
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Proofs that were made and not yet fetched, by their handles. A handle is a number and no address, so that one that nobody gave, or that
/// was used before, is an error.
static PENDING: Mutex<Option<HashMap<usize, Vec<Proof>>>> = Mutex::new(None);
static NEXT: AtomicUsize = AtomicUsize::new(1);

fn pending() -> MutexGuard<'static, Option<HashMap<usize, Vec<Proof>>>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mutex for the callers' bookkeeping. The prover takes turns by itself, and locks none.
pub fn alloc_gpu_mutex() -> *mut c_void {
    static NONE: u8 = 0;
    (&raw const NONE).cast_mut().cast()
}

/// Gives back what [`alloc_gpu_mutex`] gave: there is nothing to do.
///
/// # Safety
/// None is asked for.
pub unsafe fn free_gpu_mutex(_: *mut c_void) {}

of_equal_circuits! {
    /// Proves circuits of the same sizes and densities, and keeps the proofs for [`finish_groth16_proof`]. All that was given may be freed when
    /// it returns.
    ///
    /// # Panics
    /// Where it fails, with the reason; there is then no handle to release.
    fn start_groth16_proof<S, D>(
        r_s: &[S],
        s_s: &[S],
        srs: &SRS,
        _gpu_mtx: *mut c_void,
        _gpu_index: i32,
    ) -> *mut c_void {
        |provers| keep(told(provers.and_then(|provers| prove(&provers, r_s, s_s, srs))))
    }
}

/// A handle of these proofs.
pub(crate) fn keep(proofs: Vec<Proof>) -> *mut c_void {
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    pending().get_or_insert_default().insert(handle, proofs);
    std::ptr::without_provenance_mut(handle)
}

/// The proofs of a handle, which is released.
pub(crate) fn take(handle: *mut c_void) -> Result<Vec<Proof>, Error> {
    let made = pending().as_mut().and_then(|pending| pending.remove(&handle.addr()));
    made.ok_or_else(|| Error::input("no such pending proof: it was finished or dropped, or never started"))
}

/// Writes the proofs of a handle, which is released, whatever becomes of it.
///
/// # Errors
/// There is no such handle, or it has another number of proofs.
pub fn try_finish_groth16_proof<PR>(handle: *mut c_void, proofs: &mut [PR]) -> Result<(), Error> {
    hand_over(&take(handle)?, proofs)
}

/// As [`try_finish_groth16_proof`].
///
/// # Panics
/// Where it fails, with the reason.
pub fn finish_groth16_proof<PR>(handle: *mut c_void, proofs: &mut [PR]) {
    told(try_finish_groth16_proof(handle, proofs));
}

/// Releases a handle whose proofs are not wanted. One that is unknown, or null, is left alone.
///
/// # Safety
/// None is asked for.
pub unsafe fn drop_pending_proof(handle: *mut c_void) {
    drop(pending().as_mut().and_then(|pending| pending.remove(&handle.addr())));
}

/// Bytes before what [`cudaHostAlloc`] gives, which hold its length.
const HEAD: usize = 4096;

fn layout(len: usize) -> Option<Layout> {
    Layout::from_size_align(len.checked_add(HEAD)?, HEAD).ok()
}

/// `cudaErrorMemoryAllocation` and `cudaErrorInvalidValue`.
const NO_MEMORY: c_int = 2;
const INVALID: c_int = 1;

/// Ordinary memory under the name of CUDA's call for memory that a GPU copies from, which cuzk makes.
///
/// # Safety
/// `to` is null or may be written to.
#[no_mangle]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cudaHostAlloc(to: *mut *mut c_void, len: usize, _: c_uint) -> c_int {
    let Some(layout) = layout(len).filter(|_| !to.is_null()) else { return INVALID };
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return NO_MEMORY;
    }
    // SAFETY: there are HEAD bytes, aligned for a usize, and then `len`; the caller lets `to` be written to.
    unsafe {
        start.cast::<usize>().write(len);
        to.write(start.add(HEAD).cast());
    }
    0
}

/// Gives back what [`cudaHostAlloc`] gave.
///
/// # Safety
/// `at` is null or comes from [`cudaHostAlloc`], and was not given back before.
#[no_mangle]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cudaFreeHost(at: *mut c_void) -> c_int {
    if at.is_null() {
        return 0;
    }
    // SAFETY: it comes from `cudaHostAlloc`, so that its length stands before it, and it was allocated with that layout.
    unsafe {
        let start = at.cast::<u8>().sub(HEAD);
        let Some(layout) = layout(start.cast::<usize>().read()) else { return INVALID };
        dealloc(start, layout);
    }
    0
}

//! The symbols that the native code of the crate which this one stands for exports, for programs that call them without its Rust functions.
//!
//! ```text
//! typedef struct { int code; char* message; } RustError;   // message: from malloc, or null; the caller frees it
//! typedef struct { void* ptr; } SRS;
//! RustError create_SRS(SRS* to, const char* path, bool cache);
//! SRS       clone_SRS(const SRS* of);
//! void      evict_SRS(const SRS* of);
//! void      drop_SRS(SRS* of);                             // ptr is null afterwards
//! RustError generate_groth16_proofs_c(const Assignment* provers, size_t circuits, const fr_t* r_s, const fr_t* s_s, groth16_proof* proofs, SRS* srs);
//! ```
//!
//! With the feature `curio`, `generate_groth16_proofs_c` has the two more arguments of Curio's fork, and [`curio`] its other symbols.
#![allow(non_snake_case)]

use crate::cuda::Error;
use crate::srs::Loaded;
use crate::{try_generate_groth16_proofs, Assignment, Proof, MAX_CIRCUITS, SRS};
use std::ffi::{c_char, c_int, CStr};
use std::mem::ManuallyDrop;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;

/// What went wrong; the code is 0 where nothing did.
#[repr(C)]
pub struct RustError {
    /// [`Error::code`].
    pub code: c_int,
    /// One line that ends in 0, to be given to `free`; null where there is none.
    pub message: *mut c_char,
}

/// Parameters as C has them.
#[repr(C)]
pub struct Handle {
    ptr: *const Loaded,
}

type Scalar = [u64; 4];

extern "C" {
    fn malloc(bytes: usize) -> *mut u8;
}

impl RustError {
    fn of(error: &Error) -> Self {
        let text = error.to_string();
        // No line of ours has a 0 in it, but for names of files.
        let line = text.split('\0').next().unwrap_or_default();
        // SAFETY: so many bytes are asked for, written, and the last of them is 0; the caller gives them back.
        let message = unsafe {
            let to = malloc(line.len() + 1);
            if !to.is_null() {
                std::ptr::copy_nonoverlapping(line.as_ptr(), to, line.len());
                to.add(line.len()).write(0);
            }
            to
        };
        RustError { code: error.code, message: message.cast() }
    }
}

/// Neither an error nor a panic leaves as anything else.
fn guarded(work: impl FnOnce() -> Result<(), Error>) -> RustError {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => RustError { code: 0, message: std::ptr::null_mut() },
        Ok(Err(error)) => RustError::of(&error),
        Err(_) => RustError::of(&Error::input("the prover panicked; what it said is on stderr")),
    }
}

impl Handle {
    fn of(SRS(loaded): SRS) -> Self {
        Handle { ptr: loaded.map_or(std::ptr::null(), Arc::into_raw) }
    }

    /// The parameters, of which the handle stays an owner.
    ///
    /// # Safety
    /// It is null or comes from [`Handle::of`], and was not dropped.
    unsafe fn srs(&self) -> ManuallyDrop<SRS> {
        // SAFETY: the caller's promise; the count of owners is as it was when this is gone.
        ManuallyDrop::new(SRS((!self.ptr.is_null()).then(|| unsafe { Arc::from_raw(self.ptr) })))
    }
}

/// Loads parameters ([`SRS::try_new`]). `to` is written to in any case: null where they are not loaded.
///
/// # Safety
/// `to` may be written to; `path` is null or ends in 0.
#[no_mangle]
pub unsafe extern "C" fn create_SRS(to: *mut Handle, path: *const c_char, cache: bool) -> RustError {
    guarded(|| {
        if to.is_null() || path.is_null() {
            return Err(Error::input("create_SRS: a null pointer; expected room for parameters, and a path"));
        }
        // SAFETY: the caller's promise.
        unsafe { to.write(Handle { ptr: std::ptr::null() }) };
        // SAFETY: as above.
        let path = unsafe { CStr::from_ptr(path) };
        let path = std::os::unix::ffi::OsStrExt::from_bytes(path.to_bytes());
        let path: &std::ffi::OsStr = path;
        let srs = SRS::try_new(PathBuf::from(path), cache)?;
        // SAFETY: as above.
        unsafe { to.write(Handle::of(srs)) };
        Ok(())
    })
}

/// Another handle of the same parameters.
///
/// # Safety
/// `of` is null or leads to a handle that was made here and not dropped.
#[no_mangle]
pub unsafe extern "C" fn clone_SRS(of: *const Handle) -> Handle {
    // SAFETY: the caller's promise.
    unsafe { of.as_ref().map_or(Handle { ptr: std::ptr::null() }, |of| Handle::of(SRS::clone(&of.srs()))) }
}

/// [`SRS::evict`].
///
/// # Safety
/// As for [`clone_SRS`].
#[no_mangle]
pub unsafe extern "C" fn evict_SRS(of: *const Handle) {
    _ = guarded(|| {
        // SAFETY: the caller's promise.
        if let Some(of) = unsafe { of.as_ref() } {
            // SAFETY: as above.
            unsafe { of.srs() }.evict();
        }
        Ok(())
    });
}

/// Gives a handle back, which is null afterwards.
///
/// # Safety
/// As for [`clone_SRS`]; `of` may be written to.
#[no_mangle]
pub unsafe extern "C" fn drop_SRS(of: *mut Handle) {
    // SAFETY: the caller's promise.
    if let Some(of) = unsafe { of.as_mut() } {
        let ptr = std::mem::replace(&mut of.ptr, std::ptr::null());
        // SAFETY: as above. This handle's share is what is dropped.
        let own = unsafe { Handle { ptr }.srs() };
        _ = guarded(|| {
            drop(ManuallyDrop::into_inner(own));
            Ok(())
        });
    }
}

/// A proof's room.
type Room = [u64; size_of::<Proof>() / 8];

/// What a call names: as many circuits, r and s, and the parameters; no pointer may be null.
///
/// # Safety
/// All pointers are null or lead to as many elements as said, and what they lead to is as [`Assignment`] asks; `srs` as for [`clone_SRS`].
unsafe fn given<'a>(
    name: &str,
    circuits: usize,
    (provers, r_s, s_s): (*const Assignment<Scalar>, *const Scalar, *const Scalar),
    srs: *const Handle,
    has_room: bool,
) -> Result<(&'a [Assignment<Scalar>], &'a [Scalar], &'a [Scalar], ManuallyDrop<SRS>), Error> {
    if circuits == 0 || circuits > MAX_CIRCUITS {
        return Err(Error::input(format!("{circuits} circuits; expected 1 to {MAX_CIRCUITS}")));
    }
    if provers.is_null() || r_s.is_null() || s_s.is_null() || srs.is_null() || !has_room {
        return Err(Error::input(format!("{name}: a null pointer; expected none")));
    }
    // SAFETY: none is null, and the caller promises the rest.
    unsafe {
        Ok((
            std::slice::from_raw_parts(provers, circuits),
            std::slice::from_raw_parts(r_s, circuits),
            std::slice::from_raw_parts(s_s, circuits),
            (*srs).srs(),
        ))
    }
}

/// [`try_generate_groth16_proofs`] of as many circuits, of as many r and s, into as many places of a proof's size.
///
/// # Safety
/// All pointers are null or lead to as many elements as said, and what they lead to is as [`Assignment`] asks; `srs` as for [`clone_SRS`].
#[no_mangle]
#[cfg_attr(feature = "curio", allow(clippy::too_many_arguments))]
pub unsafe extern "C" fn generate_groth16_proofs_c(
    provers: *const Assignment<Scalar>,
    circuits: usize,
    r_s: *const Scalar,
    s_s: *const Scalar,
    proofs: *mut Room,
    srs: *const Handle,
    #[cfg(feature = "curio")] _gpu_mtx: *mut std::ffi::c_void,
    #[cfg(feature = "curio")] _gpu_index: c_int,
) -> RustError {
    guarded(|| {
        let has_room = !proofs.is_null();
        // SAFETY: the caller's promise.
        let (provers, r_s, s_s, srs) =
            unsafe { given("generate_groth16_proofs_c", circuits, (provers, r_s, s_s), srs, has_room)? };
        // SAFETY: it is not null, and the caller promises the rest.
        let proofs = unsafe { std::slice::from_raw_parts_mut(proofs, circuits) };
        try_generate_groth16_proofs(provers, r_s, s_s, proofs, &srs)
    })
}

/// The symbols that Curio's fork exports besides.
///
/// ```text
/// void*     create_gpu_mutex(void);
/// void      destroy_gpu_mutex(void* mutex);
/// RustError generate_groth16_proofs_start_c(const Assignment* provers, size_t circuits, const fr_t* r_s, const fr_t* s_s, SRS* srs,
///                                           void* gpu_mutex, int gpu_index, void** pending);
/// RustError finalize_groth16_proof_c(void* pending, groth16_proof* proofs);   // as many as were started; the handle is released
/// void      destroy_pending_proof(void* pending);
/// ```
#[cfg(feature = "curio")]
pub mod curio {
    use super::{c_int, given, guarded, Assignment, Error, Handle, Room, RustError, Scalar};
    use crate::curio::{alloc_gpu_mutex, drop_pending_proof, keep, take};
    use crate::{hand_over, prove};
    use std::ffi::c_void;

    /// [`alloc_gpu_mutex`].
    #[no_mangle]
    pub extern "C" fn create_gpu_mutex() -> *mut c_void {
        alloc_gpu_mutex()
    }

    /// [`crate::free_gpu_mutex`].
    #[no_mangle]
    pub extern "C" fn destroy_gpu_mutex(_: *mut c_void) {}

    /// Proves, and writes a handle of the proofs to `pending`: null where it fails. All that was given may be freed when it returns.
    ///
    /// # Safety
    /// As for [`super::generate_groth16_proofs_c`]; `pending` is null or may be written to.
    #[no_mangle]
    #[allow(clippy::too_many_arguments)]
    pub unsafe extern "C" fn generate_groth16_proofs_start_c(
        provers: *const Assignment<Scalar>,
        circuits: usize,
        r_s: *const Scalar,
        s_s: *const Scalar,
        srs: *const Handle,
        _gpu_mtx: *mut c_void,
        _gpu_index: c_int,
        pending: *mut *mut c_void,
    ) -> RustError {
        guarded(|| {
            if !pending.is_null() {
                // SAFETY: the caller's promise.
                unsafe { pending.write(std::ptr::null_mut()) };
            }
            let all = (provers, r_s, s_s);
            // SAFETY: as above.
            let (provers, r_s, s_s, srs) =
                unsafe { given("generate_groth16_proofs_start_c", circuits, all, srs, !pending.is_null())? };
            let proofs = prove(provers, r_s, s_s, &srs)?;
            // SAFETY: it is not null, and the caller lets it be written to.
            unsafe { pending.write(keep(proofs)) };
            Ok(())
        })
    }

    /// Writes the proofs of a handle, which is released, whatever becomes of it.
    ///
    /// # Safety
    /// `proofs` is null or has room for as many proofs as circuits were started.
    #[no_mangle]
    pub unsafe extern "C" fn finalize_groth16_proof_c(pending: *mut c_void, proofs: *mut Room) -> RustError {
        guarded(|| {
            let made = take(pending)?;
            if proofs.is_null() {
                return Err(Error::input("finalize_groth16_proof_c: a null pointer; expected room for the proofs"));
            }
            // SAFETY: the caller's promise.
            hand_over(&made, unsafe { std::slice::from_raw_parts_mut(proofs, made.len()) })
        })
    }

    /// [`drop_pending_proof`].
    #[no_mangle]
    pub extern "C" fn destroy_pending_proof(pending: *mut c_void) {
        // SAFETY: it asks for nothing.
        unsafe { drop_pending_proof(pending) };
    }
}

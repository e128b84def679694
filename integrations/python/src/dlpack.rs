//! DLPack: an array of this library as a `DLManagedTensor` in a capsule, as dlpack.h (version 1.0) lays it out.

use crate::errors;
use crate::life::View;
use crate::open::near;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_char, c_void};
use tandem_cuda::Stream;
use tandem_fabric::{Error, Queue, Symmetric, Team};

/// kDLCPU
pub(crate) const CPU: i32 = 1;
/// kDLCUDA
pub(crate) const CUDA: i32 = 2;

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct Versioned {
    version: (u32, u32),
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

const UNUSED: &std::ffi::CStr = c"dltensor";
const UNUSED_VERSIONED: &std::ffi::CStr = c"dltensor_versioned";

/// What a capsule is made of.
pub(crate) struct Tensor {
    pub(crate) at: u64,
    pub(crate) device: (i32, i32),
    pub(crate) dtype: (u8, u8),
    pub(crate) shape: Vec<i64>,
    /// Lives as long as the tensor does.
    pub(crate) keep: (Symmetric<u8>, View),
}

/// What a tensor's context points to.
struct Context {
    shape: Vec<i64>,
    strides: Vec<i64>,
    _keep: (Symmetric<u8>, View),
}

impl Tensor {
    fn split(self) -> (DlTensor, *mut c_void) {
        let mut strides = vec![1i64; self.shape.len()];
        for axis in (1..self.shape.len()).rev() {
            strides[axis - 1] = strides[axis] * self.shape[axis];
        }
        let ndim = self.shape.len() as i32;
        let mut context = Box::new(Context { shape: self.shape, strides, _keep: self.keep });
        let tensor = DlTensor {
            data: self.at as *mut c_void,
            device_type: self.device.0,
            device_id: self.device.1,
            ndim,
            code: self.dtype.0,
            bits: self.dtype.1,
            lanes: 1,
            shape: context.shape.as_mut_ptr(),
            strides: context.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        (tensor, Box::into_raw(context).cast())
    }

    /// A capsule for `from_dlpack`; of version 1 where the consumer knows that.
    pub(crate) fn capsule(self, py: Python<'_>, is_versioned: bool) -> PyResult<Bound<'_, PyAny>> {
        let (tensor, context) = self.split();
        let (raw, name): (*mut c_void, _) = if is_versioned {
            let deleter = Some(delete_versioned as unsafe extern "C" fn(_));
            let managed = Versioned { version: (1, 0), context, deleter, flags: 0, tensor };
            (Box::into_raw(Box::new(managed)).cast(), UNUSED_VERSIONED)
        } else {
            let deleter = Some(delete as unsafe extern "C" fn(_));
            (Box::into_raw(Box::new(Managed { tensor, context, deleter })).cast(), UNUSED)
        };
        // SAFETY: the pointer is not null, the name is static, and the destructor takes capsules of this function.
        let capsule = unsafe { ffi::PyCapsule_New(raw, name.as_ptr(), Some(unused)) };
        if capsule.is_null() {
            // SAFETY: nobody else has the tensor.
            unsafe { free(raw, is_versioned) };
            return Err(PyErr::fetch(py));
        }
        // SAFETY: a new reference to an object.
        Ok(unsafe { Bound::from_owned_ptr(py, capsule) })
    }
}

/// # Safety
/// `raw` is what [`Tensor::capsule`] made, and is not used after this.
unsafe fn free(raw: *mut c_void, is_versioned: bool) {
    if is_versioned {
        // SAFETY: the caller's promise.
        unsafe { delete_versioned(raw.cast()) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { delete(raw.cast()) }
    }
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: the consumer of a tensor calls this once, and both were boxed.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Context>()));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    // SAFETY: the consumer of a tensor calls this once, and both were boxed.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Context>()));
    }
}

/// Frees the tensor of a capsule that nobody has consumed: a consumer renames it.
unsafe extern "C" fn unused(capsule: *mut ffi::PyObject) {
    for (name, is_versioned) in [(UNUSED, false), (UNUSED_VERSIONED, true)] {
        let name: *const c_char = name.as_ptr();
        // SAFETY: Python calls this with the capsule, and the pointer of one with such a name is a tensor's.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, name) == 1 {
                free(ffi::PyCapsule_GetPointer(capsule, name), is_versioned);
            }
        }
    }
}

/// Makes the consumer's stream wait for what PE `pe`'s queue was told. `stream` is as DLPack numbers streams of CUDA: 1 the
/// legacy default one, 2 the one of each thread, -1 for no order.
pub(crate) fn order(team: &Team, pe: usize, stream: Option<i64>) -> PyResult<()> {
    let Some(own) = near(team, pe).and_then(Queue::stream) else {
        if stream.is_some() {
            return Err(PyBufferError::new_err(format!("{} has no streams", errors::named(team, pe))));
        }
        return Ok(());
    };
    let raw = match stream {
        Some(-1) => return Ok(()),
        Some(0) => {
            return Err(PyBufferError::new_err(
                "stream 0 is ambiguous: 1 is the legacy default stream, 2 that of a thread",
            ))
        }
        None => 1,
        Some(raw) => raw,
    };
    // SAFETY: the consumer's stream, which lives at least as long as this call.
    let theirs = unsafe { Stream::borrowed(own.device(), raw as *mut _) };
    let told = own.record().and_then(|event| theirs.wait(&event));
    told.map_err(|e| errors::of(team, Error::Device(e)))
}

//! What stands for the functions of a build without nvcc: tandem_cuda.h, made by `cargo xtask bindgen`. Not to be edited.
#![allow(missing_docs, non_camel_case_types, dead_code, unreachable_pub, clippy::missing_safety_doc)]

/// Done.
pub const TANDEM_OK: i32 = 0;

/// The program was built without nvcc.
pub const TANDEM_NOT_BUILT: i32 = -1;

/// An argument is outside what the function's description allows.
pub const TANDEM_INVALID: i32 = -2;

/// The scratch memory is smaller than the function's query said.
pub const TANDEM_SCRATCH_TOO_SMALL: i32 = -3;

/// cudaErrorMemoryAllocation
pub const TANDEM_CUDA_OUT_OF_MEMORY: i32 = 2;

/// cudaErrorNotReady
pub const TANDEM_CUDA_NOT_READY: i32 = 600;

#[repr(C)]
pub struct CUstream_st {
    _opaque: [u8; 0],
}
/// A cudaStream_t.
pub type tandem_stream = *mut CUstream_st;

#[repr(C)]
pub struct CUevent_st {
    _opaque: [u8; 0],
}
/// A cudaEvent_t.
pub type tandem_event = *mut CUevent_st;

#[repr(C)]
pub struct CUmemPoolHandle_st {
    _opaque: [u8; 0],
}
/// A cudaMemPool_t.
pub type tandem_pool = *mut CUmemPoolHandle_st;

#[repr(C)]
pub struct CUgraphExec_st {
    _opaque: [u8; 0],
}
/// A cudaGraphExec_t.
pub type tandem_graph = *mut CUgraphExec_st;

#[repr(C)]
pub struct tandem_kernel_st {
    _opaque: [u8; 0],
}
/// The address of a __global__ function of this program, as the runtime's launch functions take it.
pub type tandem_kernel = *mut tandem_kernel_st;

/// What a device is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_cuda_properties {
    /// Name, ended by 0.
    pub name: [core::ffi::c_char; 256],
    /// PCI address such as 0000:3b:00.0, ended by 0.
    pub pci: [core::ffi::c_char; 32],
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Compute capability before the point.
    pub major: i32,
    /// Compute capability after the point.
    pub minor: i32,
    pub multiprocessors: i32,
    pub threads_per_multiprocessor: i32,
    pub registers_per_multiprocessor: i32,
    /// Bytes of second-level cache.
    pub l2_bytes: i32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_multiprocessor: i32,
    /// Bytes of shared memory that one block can be given.
    pub shared_per_block: i32,
    /// Engines that copy beside kernels.
    pub copy_engines: i32,
    /// 1 if memory can be allocated in the order of a stream.
    pub memory_pools: i32,
}

pub unsafe extern "C" fn tandem_cuda_versions(_driver: *mut i32, _runtime: *mut i32) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_device_count(_count: *mut i32) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_device_properties(_device: i32, _properties: *mut tandem_cuda_properties) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_set_device(_device: i32) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_memory_info(_device: i32, _free_bytes: *mut u64, _total_bytes: *mut u64) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_can_access_peer(_device: i32, _peer: i32, _can: *mut i32) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_peer_attributes(
    _device: i32,
    _peer: i32,
    _rank: *mut i32,
    _atomics: *mut i32,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_error_name(_status: i32) -> *const core::ffi::c_char {
    c"not built".as_ptr()
}

pub unsafe extern "C" fn tandem_cuda_error_text(_status: i32) -> *const core::ffi::c_char {
    c"not built".as_ptr()
}

pub unsafe extern "C" fn tandem_cuda_stream_create(_device: i32, _urgent: i32, _stream: *mut tandem_stream) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_stream_destroy(_stream: tandem_stream) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_stream_synchronize(_stream: tandem_stream) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_stream_wait(_stream: tandem_stream, _event: tandem_event) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_event_create(_device: i32, _timed: i32, _event: *mut tandem_event) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_event_destroy(_event: tandem_event) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_event_record(_event: tandem_event, _stream: tandem_stream) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_event_query(_event: tandem_event) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_event_synchronize(_event: tandem_event) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_event_elapsed(
    _start: tandem_event,
    _end: tandem_event,
    _milliseconds: *mut f32,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_pool_create(_device: i32, _pool: *mut tandem_pool) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_pool_destroy(_pool: tandem_pool) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_pool_info(
    _pool: tandem_pool,
    _reserved_bytes: *mut u64,
    _used_bytes: *mut u64,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_pool_trim(_pool: tandem_pool) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_pool_share(_pool: tandem_pool, _device: i32) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_alloc(
    _pool: tandem_pool,
    _bytes: usize,
    _stream: tandem_stream,
    _memory: *mut *mut u8,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_free(_memory: *mut u8, _stream: tandem_stream) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_host_alloc(_bytes: usize, _memory: *mut *mut u8) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_host_free(_memory: *mut u8) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_host_is_locked(_memory: *const u8, _locked: *mut i32) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_memset(
    _memory: *mut u8,
    _value: i32,
    _bytes: usize,
    _stream: tandem_stream,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_copy_to_device(
    _to: *mut u8,
    _from: *const u8,
    _bytes: usize,
    _stream: tandem_stream,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_copy_to_host(
    _to: *mut u8,
    _from: *const u8,
    _bytes: usize,
    _stream: tandem_stream,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_copy_on_device(
    _to: *mut u8,
    _from: *const u8,
    _bytes: usize,
    _stream: tandem_stream,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_copy_peer(
    _to: *mut u8,
    _to_device: i32,
    _from: *const u8,
    _from_device: i32,
    _bytes: usize,
    _stream: tandem_stream,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_capture_begin(_stream: tandem_stream) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_capture_end(_stream: tandem_stream, _graph: *mut tandem_graph) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_graph_launch(_graph: tandem_graph, _stream: tandem_stream) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_graph_destroy(_graph: tandem_graph) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_granularity(_device: i32, _bytes: *mut u64) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_reserve(_bytes: u64, _address: *mut u64) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_unreserve(_address: u64, _bytes: u64) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_map(
    _address: u64,
    _bytes: u64,
    _device: i32,
    _users: *const i32,
    _user_count: i32,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_unmap(_address: u64, _bytes: u64) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_resident_blocks(
    _device: i32,
    _kernel: tandem_kernel,
    _threads: i32,
    _shared_bytes: usize,
    _blocks: *mut u64,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_cuda_launch_cooperative(
    _kernel: tandem_kernel,
    _blocks: i32,
    _threads: i32,
    _shared_bytes: usize,
    _arguments: *mut *mut u8,
    _stream: tandem_stream,
) -> i32 {
    NOT_BUILT
}

/// TANDEM_NOT_BUILT of tandem_cuda.h.
const NOT_BUILT: i32 = -1;

const _: () = {
    assert!(size_of::<tandem_cuda_properties>() == 336);
    assert!(core::mem::offset_of!(tandem_cuda_properties, name) == 0);
    assert!(core::mem::offset_of!(tandem_cuda_properties, pci) == 256);
    assert!(core::mem::offset_of!(tandem_cuda_properties, memory_bytes) == 288);
    assert!(core::mem::offset_of!(tandem_cuda_properties, major) == 296);
    assert!(core::mem::offset_of!(tandem_cuda_properties, minor) == 300);
    assert!(core::mem::offset_of!(tandem_cuda_properties, multiprocessors) == 304);
    assert!(core::mem::offset_of!(tandem_cuda_properties, threads_per_multiprocessor) == 308);
    assert!(core::mem::offset_of!(tandem_cuda_properties, registers_per_multiprocessor) == 312);
    assert!(core::mem::offset_of!(tandem_cuda_properties, l2_bytes) == 316);
    assert!(core::mem::offset_of!(tandem_cuda_properties, shared_per_multiprocessor) == 320);
    assert!(core::mem::offset_of!(tandem_cuda_properties, shared_per_block) == 324);
    assert!(core::mem::offset_of!(tandem_cuda_properties, copy_engines) == 328);
    assert!(core::mem::offset_of!(tandem_cuda_properties, memory_pools) == 332);
};

//! The declarations of tandem_cuda.h, made by `cargo xtask bindgen`. Not to be edited.
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

crate::native! {
    /// The CUDA version that the driver supports and the one of this runtime, 1000 * major + 10 * minor. A machine
    /// without a driver gives 0 for the driver.
    pub fn tandem_cuda_versions(driver: *mut i32, runtime: *mut i32) -> i32;
    /// Number of devices. Not to be read after an error.
    pub fn tandem_cuda_device_count(count: *mut i32) -> i32;
    pub fn tandem_cuda_device_properties(device: i32, properties: *mut tandem_cuda_properties) -> i32;
    /// Makes `device` the calling thread's current one.
    pub fn tandem_cuda_set_device(device: i32) -> i32;
    /// Bytes of the device's memory that no process holds, and all of them.
    pub fn tandem_cuda_memory_info(device: i32, free_bytes: *mut u64, total_bytes: *mut u64) -> i32;
    /// Whether kernels and copies on `device` reach the memory of `peer` without the host.
    pub fn tandem_cuda_can_access_peer(device: i32, peer: i32, can: *mut i32) -> i32;
    /// What the runtime says of the way from `device` to `peer`: its performance rank (0 is the fastest of the machine), and
    /// whether atomic operations work over it.
    pub fn tandem_cuda_peer_attributes(device: i32, peer: i32, rank: *mut i32, atomics: *mut i32) -> i32;
    /// Name of a status such as cudaErrorMemoryAllocation; never null.
    pub fn tandem_cuda_error_name(status: i32) -> *const core::ffi::c_char;
    /// What a status means, in words; never null.
    pub fn tandem_cuda_error_text(status: i32) -> *const core::ffi::c_char;
    /// A stream that does not wait for the default stream. Where blocks of several streams' kernels wait for a multiprocessor, those of
    /// the stream of the highest `rank` start first: 0, as all streams are by default, 1, or 2.
    pub fn tandem_cuda_stream_create(device: i32, rank: i32, stream: *mut tandem_stream) -> i32;
    pub fn tandem_cuda_stream_destroy(stream: tandem_stream) -> i32;
    /// Blocks until the stream has done all it was told.
    pub fn tandem_cuda_stream_synchronize(stream: tandem_stream) -> i32;
    /// Work that the stream is told after this starts when the event has happened.
    pub fn tandem_cuda_stream_wait(stream: tandem_stream, event: tandem_event) -> i32;
    /// `timed` is 1 for an event that tandem_cuda_event_elapsed can use.
    pub fn tandem_cuda_event_create(device: i32, timed: i32, event: *mut tandem_event) -> i32;
    pub fn tandem_cuda_event_destroy(event: tandem_event) -> i32;
    /// The event happens when the stream has done all it was told before. Both belong to one device.
    pub fn tandem_cuda_event_record(event: tandem_event, stream: tandem_stream) -> i32;
    /// 0 if the event has happened, else TANDEM_CUDA_NOT_READY.
    pub fn tandem_cuda_event_query(event: tandem_event) -> i32;
    /// Blocks, without spinning, until the event has happened.
    pub fn tandem_cuda_event_synchronize(event: tandem_event) -> i32;
    pub fn tandem_cuda_event_elapsed(start: tandem_event, end: tandem_event, milliseconds: *mut f32) -> i32;
    /// A pool that keeps what is freed for the next allocation.
    pub fn tandem_cuda_pool_create(device: i32, pool: *mut tandem_pool) -> i32;
    pub fn tandem_cuda_pool_destroy(pool: tandem_pool) -> i32;
    /// Bytes that the pool has taken from the device, and those of them that are in use.
    pub fn tandem_cuda_pool_info(pool: tandem_pool, reserved_bytes: *mut u64, used_bytes: *mut u64) -> i32;
    /// Gives memory that is not in use back to the device.
    pub fn tandem_cuda_pool_trim(pool: tandem_pool) -> i32;
    /// Lets kernels and copies of `device` reach the pool's memory, what it holds and what it will hold.
    pub fn tandem_cuda_pool_share(pool: tandem_pool, device: i32) -> i32;
    /// The contents are undefined.
    pub fn tandem_cuda_alloc(pool: tandem_pool, bytes: usize, stream: tandem_stream, memory: *mut *mut u8) -> i32;
    /// Frees when the stream gets there.
    pub fn tandem_cuda_free(memory: *mut u8, stream: tandem_stream) -> i32;
    /// Page-locked host memory that every device can copy from and to. The contents are undefined.
    pub fn tandem_cuda_host_alloc(bytes: usize, memory: *mut *mut u8) -> i32;
    pub fn tandem_cuda_host_free(memory: *mut u8) -> i32;
    /// Locks pages of the caller's, for every device, until tandem_cuda_host_unregister.
    pub fn tandem_cuda_host_register(memory: *mut u8, bytes: usize) -> i32;
    pub fn tandem_cuda_host_unregister(memory: *mut u8) -> i32;
    /// 1 if the byte at `memory` is page-locked, by tandem_cuda_host_alloc or by whoever owns it.
    pub fn tandem_cuda_host_is_locked(memory: *const u8, locked: *mut i32) -> i32;
    pub fn tandem_cuda_memset(memory: *mut u8, value: i32, bytes: usize, stream: tandem_stream) -> i32;
    /// `from` is host memory; where it is page-locked, it must stay as it is until the stream has got there.
    pub fn tandem_cuda_copy_to_device(to: *mut u8, from: *const u8, bytes: usize, stream: tandem_stream) -> i32;
    /// `to` is page-locked host memory.
    pub fn tandem_cuda_copy_to_host(to: *mut u8, from: *const u8, bytes: usize, stream: tandem_stream) -> i32;
    /// The driver finds out where each of the two is.
    pub fn tandem_cuda_copy(to: *mut u8, from: *const u8, bytes: usize, stream: tandem_stream) -> i32;
    pub fn tandem_cuda_copy_on_device(to: *mut u8, from: *const u8, bytes: usize, stream: tandem_stream) -> i32;
    pub fn tandem_cuda_copy_peer(
        to: *mut u8,
        to_device: i32,
        from: *const u8,
        from_device: i32,
        bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    /// What the stream is told from here on is written down and not done. The thread may do anything meanwhile.
    pub fn tandem_cuda_capture_begin(stream: tandem_stream) -> i32;
    /// Ends that; the graph can be launched.
    pub fn tandem_cuda_capture_end(stream: tandem_stream, graph: *mut tandem_graph) -> i32;
    pub fn tandem_cuda_graph_launch(graph: tandem_graph, stream: tandem_stream) -> i32;
    /// A graph that is running is freed when it is done.
    pub fn tandem_cuda_graph_destroy(graph: tandem_graph) -> i32;
    /// What the sizes and places of the functions below are multiples of. Makes `device` current, which starts it.
    /// cudaErrorNotSupported where the device or the driver has no virtual memory management.
    pub fn tandem_cuda_granularity(device: i32, bytes: *mut u64) -> i32;
    /// Addresses that have no memory yet.
    pub fn tandem_cuda_reserve(bytes: u64, address: *mut u64) -> i32;
    pub fn tandem_cuda_unreserve(address: u64, bytes: u64) -> i32;
    /// Puts memory of `device` behind reserved addresses, for kernels and copies of the `user_count` devices in `users`.
    /// Leaves nothing behind where it fails. The contents are undefined. Where `shared` is not null, it gets a file descriptor, by which other
    /// processes map the memory too, and which the caller closes.
    pub fn tandem_cuda_map(
        address: u64,
        bytes: u64,
        device: i32,
        users: *const i32,
        user_count: i32,
        shared: *mut i32,
    ) -> i32;
    /// The same with memory that another process has made, of the file descriptor `shared`, which stays the caller's.
    pub fn tandem_cuda_map_shared(address: u64, bytes: u64, shared: i32, users: *const i32, user_count: i32) -> i32;
    /// Takes away what one call of tandem_cuda_map or tandem_cuda_map_shared has put there.
    pub fn tandem_cuda_unmap(address: u64, bytes: u64) -> i32;
    /// Blocks of the kernel that are on the device at once when it is otherwise idle. Also loads the kernel's code.
    pub fn tandem_cuda_resident_blocks(
        device: i32,
        kernel: tandem_kernel,
        threads: i32,
        shared_bytes: usize,
        blocks: *mut u64,
    ) -> i32;
    /// Launches so that all blocks are on the device at once, or fails. `arguments` are the addresses of the kernel's
    /// arguments, which are copied.
    pub fn tandem_cuda_launch_cooperative(
        kernel: tandem_kernel,
        blocks: i32,
        threads: i32,
        shared_bytes: usize,
        arguments: *mut *mut u8,
        stream: tandem_stream,
    ) -> i32;
}

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

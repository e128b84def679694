/// Devices, streams, events and memory, over the CUDA runtime.
///
/// This header is the truth: `cargo xtask bindgen` makes src/ffi.rs and native/src/layout.cu from it. It is written in
/// the subset of C that crates/xtask reads: fixed-width integers, typed pointers, plain structs, no macros with
/// arguments.
///
/// Every function that returns int32_t returns 0, or a cudaError_t (> 0), or one of the codes below (< 0), and leaves
/// no error behind for the next call. No function throws, prints or ends the process.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Done.
#define TANDEM_OK 0
/// The program was built without nvcc.
#define TANDEM_NOT_BUILT -1
/// An argument is outside what the function's description allows.
#define TANDEM_INVALID -2
/// The scratch memory is smaller than the function's query said.
#define TANDEM_SCRATCH_TOO_SMALL -3

/// cudaErrorMemoryAllocation
#define TANDEM_CUDA_OUT_OF_MEMORY 2
/// cudaErrorNotReady
#define TANDEM_CUDA_NOT_READY 600

/// A cudaStream_t.
typedef struct CUstream_st* tandem_stream;
/// A cudaEvent_t.
typedef struct CUevent_st* tandem_event;
/// A cudaMemPool_t.
typedef struct CUmemPoolHandle_st* tandem_pool;

/// A cudaGraphExec_t.
typedef struct CUgraphExec_st* tandem_graph;
/// The address of a __global__ function of this program, as the runtime's launch functions take it.
typedef struct tandem_kernel_st* tandem_kernel;

/// What a device is.
typedef struct tandem_cuda_properties {
    /// Name, ended by 0.
    char name[256];
    /// PCI address such as 0000:3b:00.0, ended by 0.
    char pci[32];
    /// Bytes of memory.
    uint64_t memory_bytes;
    /// Compute capability before the point.
    int32_t major;
    /// Compute capability after the point.
    int32_t minor;
    int32_t multiprocessors;
    int32_t threads_per_multiprocessor;
    int32_t registers_per_multiprocessor;
    /// Bytes of second-level cache.
    int32_t l2_bytes;
    /// Bytes of shared memory of a multiprocessor.
    int32_t shared_per_multiprocessor;
    /// Bytes of shared memory that one block can be given.
    int32_t shared_per_block;
    /// Engines that copy beside kernels.
    int32_t copy_engines;
    /// 1 if memory can be allocated in the order of a stream.
    int32_t memory_pools;
} tandem_cuda_properties;

/// The CUDA version that the driver supports and the one of this runtime, 1000 * major + 10 * minor. A machine
/// without a driver gives 0 for the driver.
int32_t tandem_cuda_versions(int32_t* driver, int32_t* runtime);
/// Number of devices. Not to be read after an error.
int32_t tandem_cuda_device_count(int32_t* count);
int32_t tandem_cuda_device_properties(int32_t device, tandem_cuda_properties* properties);
/// Makes `device` the calling thread's current one.
int32_t tandem_cuda_set_device(int32_t device);
/// Bytes of the device's memory that no process holds, and all of them.
int32_t tandem_cuda_memory_info(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes);
/// Whether kernels and copies on `device` reach the memory of `peer` without the host.
int32_t tandem_cuda_can_access_peer(int32_t device, int32_t peer, int32_t* can);
/// What the runtime says of the way from `device` to `peer`: its performance rank (0 is the fastest of the machine), and
/// whether atomic operations work over it.
int32_t tandem_cuda_peer_attributes(int32_t device, int32_t peer, int32_t* rank, int32_t* atomics);

/// Name of a status such as cudaErrorMemoryAllocation; never null.
const char* tandem_cuda_error_name(int32_t status);
/// What a status means, in words; never null.
const char* tandem_cuda_error_text(int32_t status);

/// A stream that does not wait for the default stream. Where blocks of several streams' kernels wait for a multiprocessor, those of
/// the stream of the highest `rank` start first: 0, as all streams are by default, 1, or 2.
int32_t tandem_cuda_stream_create(int32_t device, int32_t rank, tandem_stream* stream);
int32_t tandem_cuda_stream_destroy(tandem_stream stream);
/// Blocks until the stream has done all it was told.
int32_t tandem_cuda_stream_synchronize(tandem_stream stream);
/// Work that the stream is told after this starts when the event has happened.
int32_t tandem_cuda_stream_wait(tandem_stream stream, tandem_event event);

/// `timed` is 1 for an event that tandem_cuda_event_elapsed can use.
int32_t tandem_cuda_event_create(int32_t device, int32_t timed, tandem_event* event);
int32_t tandem_cuda_event_destroy(tandem_event event);
/// The event happens when the stream has done all it was told before. Both belong to one device.
int32_t tandem_cuda_event_record(tandem_event event, tandem_stream stream);
/// 0 if the event has happened, else TANDEM_CUDA_NOT_READY.
int32_t tandem_cuda_event_query(tandem_event event);
/// Blocks, without spinning, until the event has happened.
int32_t tandem_cuda_event_synchronize(tandem_event event);
int32_t tandem_cuda_event_elapsed(tandem_event start, tandem_event end, float* milliseconds);

/// A pool that keeps what is freed for the next allocation.
int32_t tandem_cuda_pool_create(int32_t device, tandem_pool* pool);
int32_t tandem_cuda_pool_destroy(tandem_pool pool);
/// Bytes that the pool has taken from the device, and those of them that are in use.
int32_t tandem_cuda_pool_info(tandem_pool pool, uint64_t* reserved_bytes, uint64_t* used_bytes);
/// Gives memory that is not in use back to the device.
int32_t tandem_cuda_pool_trim(tandem_pool pool);
/// Lets kernels and copies of `device` reach the pool's memory, what it holds and what it will hold.
int32_t tandem_cuda_pool_share(tandem_pool pool, int32_t device);
/// The contents are undefined.
int32_t tandem_cuda_alloc(tandem_pool pool, size_t bytes, tandem_stream stream, uint8_t** memory);
/// Frees when the stream gets there.
int32_t tandem_cuda_free(uint8_t* memory, tandem_stream stream);

/// Page-locked host memory that every device can copy from and to. The contents are undefined.
int32_t tandem_cuda_host_alloc(size_t bytes, uint8_t** memory);
int32_t tandem_cuda_host_free(uint8_t* memory);
/// Locks pages of the caller's, for every device, until tandem_cuda_host_unregister.
int32_t tandem_cuda_host_register(uint8_t* memory, size_t bytes);
int32_t tandem_cuda_host_unregister(uint8_t* memory);
/// 1 if the byte at `memory` is page-locked, by tandem_cuda_host_alloc or by whoever owns it.
int32_t tandem_cuda_host_is_locked(const uint8_t* memory, int32_t* locked);

int32_t tandem_cuda_memset(uint8_t* memory, int32_t value, size_t bytes, tandem_stream stream);
/// `from` is host memory; where it is page-locked, it must stay as it is until the stream has got there.
int32_t tandem_cuda_copy_to_device(uint8_t* to, const uint8_t* from, size_t bytes, tandem_stream stream);
/// `to` is page-locked host memory.
int32_t tandem_cuda_copy_to_host(uint8_t* to, const uint8_t* from, size_t bytes, tandem_stream stream);
/// The driver finds out where each of the two is.
int32_t tandem_cuda_copy(uint8_t* to, const uint8_t* from, size_t bytes, tandem_stream stream);
int32_t tandem_cuda_copy_on_device(uint8_t* to, const uint8_t* from, size_t bytes, tandem_stream stream);
int32_t tandem_cuda_copy_peer(uint8_t* to, int32_t to_device, const uint8_t* from, int32_t from_device, size_t bytes,
                              tandem_stream stream);

/// What the stream is told from here on is written down and not done. The thread may do anything meanwhile.
int32_t tandem_cuda_capture_begin(tandem_stream stream);
/// Ends that; the graph can be launched.
int32_t tandem_cuda_capture_end(tandem_stream stream, tandem_graph* graph);
int32_t tandem_cuda_graph_launch(tandem_graph graph, tandem_stream stream);
/// A graph that is running is freed when it is done.
int32_t tandem_cuda_graph_destroy(tandem_graph graph);

/// What the sizes and places of the functions below are multiples of. Makes `device` current, which starts it.
/// cudaErrorNotSupported where the device or the driver has no virtual memory management.
int32_t tandem_cuda_granularity(int32_t device, uint64_t* bytes);
/// Addresses that have no memory yet.
int32_t tandem_cuda_reserve(uint64_t bytes, uint64_t* address);
int32_t tandem_cuda_unreserve(uint64_t address, uint64_t bytes);
/// Puts memory of `device` behind reserved addresses, for kernels and copies of the `user_count` devices in `users`.
/// Leaves nothing behind where it fails. The contents are undefined. Where `shared` is not null, it gets a file descriptor, by which other
/// processes map the memory too, and which the caller closes.
int32_t tandem_cuda_map(uint64_t address, uint64_t bytes, int32_t device, const int32_t* users, int32_t user_count,
                        int32_t* shared);
/// The same with memory that another process has made, of the file descriptor `shared`, which stays the caller's.
int32_t tandem_cuda_map_shared(uint64_t address, uint64_t bytes, int32_t shared, const int32_t* users,
                               int32_t user_count);
/// Takes away what one call of tandem_cuda_map or tandem_cuda_map_shared has put there.
int32_t tandem_cuda_unmap(uint64_t address, uint64_t bytes);

/// Blocks of the kernel that are on the device at once when it is otherwise idle. Also loads the kernel's code.
int32_t tandem_cuda_resident_blocks(int32_t device, tandem_kernel kernel, int32_t threads, size_t shared_bytes,
                                    uint64_t* blocks);
/// Launches so that all blocks are on the device at once, or fails. `arguments` are the addresses of the kernel's
/// arguments, which are copied.
int32_t tandem_cuda_launch_cooperative(tandem_kernel kernel, int32_t blocks, int32_t threads, size_t shared_bytes,
                                       uint8_t** arguments, tandem_stream stream);

#ifdef __cplusplus
}
#endif

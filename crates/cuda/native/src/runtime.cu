// The functions of tandem_cuda.h, each one call of the CUDA runtime or a few.
#include "tandem_cuda.h"

#include <cuda_runtime.h>

#include <cstring>

namespace {

// Takes the thread's last error away, so that a launcher that asks for it afterwards sees its own.
int32_t status(cudaError_t error) {
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
    }
    return static_cast<int32_t>(error);
}

// Runs f with `device` current.
template <class F>
int32_t on_device(int32_t device, F f) {
    cudaError_t error = cudaSetDevice(device);
    return status(error != cudaSuccess ? error : f());
}

int32_t attribute(cudaDeviceAttr name, int32_t device, int32_t* value) {
    return status(cudaDeviceGetAttribute(value, name, device));
}

}  // namespace

extern "C" {

int32_t tandem_cuda_versions(int32_t* driver, int32_t* runtime) {
    cudaError_t error = cudaDriverGetVersion(driver);
    return status(error != cudaSuccess ? error : cudaRuntimeGetVersion(runtime));
}

int32_t tandem_cuda_device_count(int32_t* count) { return status(cudaGetDeviceCount(count)); }

int32_t tandem_cuda_device_properties(int32_t device, tandem_cuda_properties* out) {
    cudaDeviceProp own = {};
    cudaError_t error = cudaGetDeviceProperties(&own, device);
    if (error != cudaSuccess) {
        return status(error);
    }
    std::memset(out, 0, sizeof *out);
    std::strncpy(out->name, own.name, sizeof out->name - 1);
    error = cudaDeviceGetPCIBusId(out->pci, sizeof out->pci, device);
    if (error != cudaSuccess) {
        return status(error);
    }
    out->memory_bytes = own.totalGlobalMem;
    out->major = own.major;
    out->minor = own.minor;
    out->multiprocessors = own.multiProcessorCount;
    out->threads_per_multiprocessor = own.maxThreadsPerMultiProcessor;
    out->registers_per_multiprocessor = own.regsPerMultiprocessor;
    out->l2_bytes = own.l2CacheSize;
    out->shared_per_multiprocessor = static_cast<int32_t>(own.sharedMemPerMultiprocessor);
    out->shared_per_block = static_cast<int32_t>(own.sharedMemPerBlockOptin);
    out->copy_engines = own.asyncEngineCount;
    return attribute(cudaDevAttrMemoryPoolsSupported, device, &out->memory_pools);
}

int32_t tandem_cuda_set_device(int32_t device) { return status(cudaSetDevice(device)); }

int32_t tandem_cuda_memory_info(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
    return on_device(device, [=] {
        size_t free = 0, total = 0;
        cudaError_t error = cudaMemGetInfo(&free, &total);
        *free_bytes = free;
        *total_bytes = total;
        return error;
    });
}

int32_t tandem_cuda_can_access_peer(int32_t device, int32_t peer, int32_t* can) {
    return status(cudaDeviceCanAccessPeer(can, device, peer));
}

int32_t tandem_cuda_peer_attributes(int32_t device, int32_t peer, int32_t* rank, int32_t* atomics) {
    cudaError_t error = cudaDeviceGetP2PAttribute(rank, cudaDevP2PAttrPerformanceRank, device, peer);
    if (error == cudaSuccess) {
        error = cudaDeviceGetP2PAttribute(atomics, cudaDevP2PAttrNativeAtomicSupported, device, peer);
    }
    return status(error);
}

const char* tandem_cuda_error_name(int32_t code) {
    switch (code) {
        case TANDEM_NOT_BUILT: return "TANDEM_NOT_BUILT";
        case TANDEM_INVALID: return "TANDEM_INVALID";
        case TANDEM_SCRATCH_TOO_SMALL: return "TANDEM_SCRATCH_TOO_SMALL";
        default: return cudaGetErrorName(static_cast<cudaError_t>(code));
    }
}

const char* tandem_cuda_error_text(int32_t code) {
    switch (code) {
        case TANDEM_NOT_BUILT: return "built without CUDA";
        case TANDEM_INVALID: return "an argument is outside the function's contract";
        case TANDEM_SCRATCH_TOO_SMALL: return "the scratch memory is too small";
        default: return cudaGetErrorString(static_cast<cudaError_t>(code));
    }
}

int32_t tandem_cuda_stream_create(int32_t device, int32_t rank, tandem_stream* stream) {
    if (rank < 0 || rank > 2) return TANDEM_INVALID;
    return on_device(device, [=] {
        int least = 0, greatest = 0;
        cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
        if (error != cudaSuccess) return error;
        // Lower numbers go first; a device has at least two of them.
        return cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, least + (greatest - least) * rank / 2);
    });
}

int32_t tandem_cuda_stream_destroy(tandem_stream stream) { return status(cudaStreamDestroy(stream)); }

int32_t tandem_cuda_stream_synchronize(tandem_stream stream) { return status(cudaStreamSynchronize(stream)); }

int32_t tandem_cuda_stream_wait(tandem_stream stream, tandem_event event) {
    return status(cudaStreamWaitEvent(stream, event, 0));
}

int32_t tandem_cuda_event_create(int32_t device, int32_t timed, tandem_event* event) {
    unsigned flags = cudaEventBlockingSync | (timed ? 0 : cudaEventDisableTiming);
    return on_device(device, [=] { return cudaEventCreateWithFlags(event, flags); });
}

int32_t tandem_cuda_event_destroy(tandem_event event) { return status(cudaEventDestroy(event)); }

int32_t tandem_cuda_event_record(tandem_event event, tandem_stream stream) {
    return status(cudaEventRecord(event, stream));
}

int32_t tandem_cuda_event_query(tandem_event event) { return status(cudaEventQuery(event)); }

int32_t tandem_cuda_event_synchronize(tandem_event event) { return status(cudaEventSynchronize(event)); }

int32_t tandem_cuda_event_elapsed(tandem_event start, tandem_event end, float* milliseconds) {
    return status(cudaEventElapsedTime(milliseconds, start, end));
}

int32_t tandem_cuda_pool_create(int32_t device, tandem_pool* pool) {
    return on_device(device, [=] {
        cudaMemPoolProps props = {};
        props.allocType = cudaMemAllocationTypePinned;
        props.location.type = cudaMemLocationTypeDevice;
        props.location.id = device;
        cudaError_t error = cudaMemPoolCreate(pool, &props);
        if (error != cudaSuccess) {
            return error;
        }
        uint64_t keep_all = UINT64_MAX;
        error = cudaMemPoolSetAttribute(*pool, cudaMemPoolAttrReleaseThreshold, &keep_all);
        if (error != cudaSuccess) {
            (void)cudaMemPoolDestroy(*pool);
        }
        return error;
    });
}

int32_t tandem_cuda_pool_destroy(tandem_pool pool) { return status(cudaMemPoolDestroy(pool)); }

int32_t tandem_cuda_pool_info(tandem_pool pool, uint64_t* reserved_bytes, uint64_t* used_bytes) {
    cudaError_t error = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, reserved_bytes);
    if (error != cudaSuccess) {
        return status(error);
    }
    return status(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, used_bytes));
}

int32_t tandem_cuda_pool_trim(tandem_pool pool) { return status(cudaMemPoolTrimTo(pool, 0)); }

int32_t tandem_cuda_pool_share(tandem_pool pool, int32_t device) {
    cudaMemAccessDesc access = {};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = device;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    return status(cudaMemPoolSetAccess(pool, &access, 1));
}

int32_t tandem_cuda_alloc(tandem_pool pool, size_t bytes, tandem_stream stream, uint8_t** memory) {
    void* out = nullptr;
    cudaError_t error = cudaMallocFromPoolAsync(&out, bytes, pool, stream);
    *memory = static_cast<uint8_t*>(out);
    return status(error);
}

int32_t tandem_cuda_free(uint8_t* memory, tandem_stream stream) { return status(cudaFreeAsync(memory, stream)); }

int32_t tandem_cuda_host_alloc(size_t bytes, uint8_t** memory) {
    void* out = nullptr;
    cudaError_t error = cudaHostAlloc(&out, bytes, cudaHostAllocPortable);
    *memory = static_cast<uint8_t*>(out);
    return status(error);
}

int32_t tandem_cuda_host_free(uint8_t* memory) { return status(cudaFreeHost(memory)); }

int32_t tandem_cuda_host_register(uint8_t* memory, size_t bytes) {
    return status(cudaHostRegister(memory, bytes, cudaHostRegisterPortable));
}

int32_t tandem_cuda_host_unregister(uint8_t* memory) { return status(cudaHostUnregister(memory)); }

int32_t tandem_cuda_host_is_locked(const uint8_t* memory, int32_t* locked) {
    cudaPointerAttributes attributes = {};
    cudaError_t error = cudaPointerGetAttributes(&attributes, memory);
    *locked = attributes.type == cudaMemoryTypeHost;
    return status(error);
}

int32_t tandem_cuda_memset(uint8_t* memory, int32_t value, size_t bytes, tandem_stream stream) {
    return status(cudaMemsetAsync(memory, value, bytes, stream));
}

int32_t tandem_cuda_copy_to_device(uint8_t* to, const uint8_t* from, size_t bytes, tandem_stream stream) {
    return status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
}

int32_t tandem_cuda_copy_to_host(uint8_t* to, const uint8_t* from, size_t bytes, tandem_stream stream) {
    return status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream));
}

int32_t tandem_cuda_copy(uint8_t* to, const uint8_t* from, size_t bytes, tandem_stream stream) {
    return status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

int32_t tandem_cuda_copy_on_device(uint8_t* to, const uint8_t* from, size_t bytes, tandem_stream stream) {
    return status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

int32_t tandem_cuda_copy_peer(uint8_t* to, int32_t to_device, const uint8_t* from, int32_t from_device, size_t bytes,
                              tandem_stream stream) {
    return status(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream));
}

}  // extern "C"

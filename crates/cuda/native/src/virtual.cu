// Virtual memory, graphs and cooperative launches of tandem_cuda.h.
#include "tandem_cuda.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

namespace {

// Takes the thread's last error away, so that a launcher that asks for it afterwards sees its own.
int32_t status(cudaError_t error) {
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
    }
    return static_cast<int32_t>(error);
}

// A function of the driver, found at run time: the program starts without one. Null where the driver does not have it.
template <class F> F find(const char* name) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    // All of them are as they were in CUDA 11.2.
    const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, 11020, cudaEnableDefault, &found);
    if (status(error) != 0 || found != cudaDriverEntryPointSuccess) {
        return nullptr;
    }
    return reinterpret_cast<F>(function);
}

struct Driver {
    decltype(&cuMemGetAllocationGranularity) granularity = find<decltype(granularity)>("cuMemGetAllocationGranularity");
    decltype(&cuMemAddressReserve) reserve = find<decltype(reserve)>("cuMemAddressReserve");
    decltype(&cuMemAddressFree) unreserve = find<decltype(unreserve)>("cuMemAddressFree");
    decltype(&cuMemCreate) create = find<decltype(create)>("cuMemCreate");
    decltype(&cuMemRelease) release = find<decltype(release)>("cuMemRelease");
    decltype(&cuMemMap) map = find<decltype(map)>("cuMemMap");
    decltype(&cuMemUnmap) unmap = find<decltype(unmap)>("cuMemUnmap");
    decltype(&cuMemSetAccess) set_access = find<decltype(set_access)>("cuMemSetAccess");
    decltype(&cuDeviceGetAttribute) attribute = find<decltype(attribute)>("cuDeviceGetAttribute");
    decltype(&cuMemExportToShareableHandle) give = find<decltype(give)>("cuMemExportToShareableHandle");
    decltype(&cuMemImportFromShareableHandle) take = find<decltype(take)>("cuMemImportFromShareableHandle");

    bool is_whole() const {
        return granularity && reserve && unreserve && create && release && map && unmap && set_access && attribute &&
               give && take;
    }
};

const Driver& driver() {
    static const Driver once;
    return once;
}

// The numbers of CUresult are those of cudaError_t wherever both have the error.
int32_t status(CUresult result) { return static_cast<int32_t>(result); }

CUmemAllocationProp pinned_on(int32_t device) {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    return prop;
}

constexpr int32_t NOT_SUPPORTED = static_cast<int32_t>(cudaErrorNotSupported);
constexpr int32_t MOST_USERS = 32;

// Puts memory behind addresses, for kernels and copies of these devices. The mapping keeps the memory; the handle is given back in any case.
CUresult place(uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle memory, const int32_t* users,
               int32_t user_count) {
    CUresult result = driver().map(address, bytes, 0, memory, 0);
    if (result == CUDA_SUCCESS) {
        CUmemAccessDesc access[MOST_USERS] = {};
        for (int32_t i = 0; i < user_count; i++) {
            access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
            access[i].location.id = users[i];
            access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        }
        result = driver().set_access(address, bytes, access, user_count);
        if (result != CUDA_SUCCESS) {
            (void)driver().unmap(address, bytes);
        }
    }
    (void)driver().release(memory);
    return result;
}

// Dynamic shared memory that every kernel may have without asking.
constexpr size_t UNASKED_BYTES = 48 * 1024;

// Lets the kernel have all the dynamic shared memory that the device has: the same limit whoever asks, since a smaller one would meet launches
// with more that other threads make.
cudaError_t allow_all_shared(int32_t device, const void* kernel) {
    cudaFuncAttributes its = {};
    int most = 0;
    cudaError_t error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess) {
        error = cudaFuncGetAttributes(&its, kernel);
    }
    const int dynamic = most - static_cast<int>(its.sharedSizeBytes);
    if (error == cudaSuccess && its.maxDynamicSharedSizeBytes < dynamic) {
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic);
    }
    return error;
}

}  // namespace

extern "C" {

int32_t tandem_cuda_capture_begin(tandem_stream stream) {
    return status(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

int32_t tandem_cuda_capture_end(tandem_stream stream, tandem_graph* graph) {
    cudaGraph_t steps = nullptr;
    cudaError_t error = cudaStreamEndCapture(stream, &steps);
    if (error == cudaSuccess) {
        error = cudaGraphInstantiate(graph, steps, 0);
    }
    if (steps != nullptr) {
        (void)cudaGraphDestroy(steps);
    }
    return status(error);
}

int32_t tandem_cuda_graph_launch(tandem_graph graph, tandem_stream stream) {
    return status(cudaGraphLaunch(graph, stream));
}

int32_t tandem_cuda_graph_destroy(tandem_graph graph) { return status(cudaGraphExecDestroy(graph)); }

int32_t tandem_cuda_granularity(int32_t device, uint64_t* bytes) {
    const cudaError_t error = cudaSetDevice(device);
    if (error != cudaSuccess) {
        return status(error);
    }
    if (!driver().is_whole()) {
        return NOT_SUPPORTED;
    }
    int supported = 0;
    CUresult result = driver().attribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device);
    if (result != CUDA_SUCCESS || supported == 0) {
        return result != CUDA_SUCCESS ? status(result) : NOT_SUPPORTED;
    }
    const CUmemAllocationProp prop = pinned_on(device);
    size_t granularity = 0;
    result = driver().granularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    *bytes = granularity;
    return status(result);
}

int32_t tandem_cuda_reserve(uint64_t bytes, uint64_t* address) {
    if (!driver().is_whole()) {
        return NOT_SUPPORTED;
    }
    CUdeviceptr start = 0;
    const CUresult result = driver().reserve(&start, bytes, 0, 0, 0);
    *address = start;
    return status(result);
}

int32_t tandem_cuda_unreserve(uint64_t address, uint64_t bytes) {
    return driver().is_whole() ? status(driver().unreserve(address, bytes)) : NOT_SUPPORTED;
}

int32_t tandem_cuda_map(uint64_t address, uint64_t bytes, int32_t device, const int32_t* users, int32_t user_count,
                        int32_t* shared) {
    if (user_count < 1 || user_count > MOST_USERS) {
        return TANDEM_INVALID;
    }
    if (!driver().is_whole()) {
        return NOT_SUPPORTED;
    }
    const cudaError_t error = cudaSetDevice(device);
    if (error != cudaSuccess) {
        return status(error);
    }
    CUmemAllocationProp prop = pinned_on(device);
    if (shared != nullptr) {
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    }
    CUmemGenericAllocationHandle memory = 0;
    CUresult result = driver().create(&memory, bytes, &prop, 0);
    if (result != CUDA_SUCCESS) {
        return status(result);
    }
    int descriptor = -1;
    if (shared != nullptr) {
        result = driver().give(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        if (result != CUDA_SUCCESS) {
            (void)driver().release(memory);
            return status(result);
        }
    }
    result = place(address, bytes, memory, users, user_count);
    if (shared != nullptr) {
        *shared = descriptor;
        if (result != CUDA_SUCCESS) {
            (void)close(descriptor);
        }
    }
    return status(result);
}

int32_t tandem_cuda_map_shared(uint64_t address, uint64_t bytes, int32_t shared, const int32_t* users,
                               int32_t user_count) {
    if (user_count < 1 || user_count > MOST_USERS) {
        return TANDEM_INVALID;
    }
    if (!driver().is_whole()) {
        return NOT_SUPPORTED;
    }
    const cudaError_t error = cudaSetDevice(users[0]);
    if (error != cudaSuccess) {
        return status(error);
    }
    CUmemGenericAllocationHandle memory = 0;
    void* descriptor = reinterpret_cast<void*>(static_cast<uintptr_t>(shared));
    const CUresult result = driver().take(&memory, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    return status(result != CUDA_SUCCESS ? result : place(address, bytes, memory, users, user_count));
}

int32_t tandem_cuda_unmap(uint64_t address, uint64_t bytes) {
    return driver().is_whole() ? status(driver().unmap(address, bytes)) : NOT_SUPPORTED;
}

int32_t tandem_cuda_resident_blocks(int32_t device, tandem_kernel kernel, int32_t threads, size_t shared_bytes,
                                    uint64_t* blocks) {
    cudaError_t error = cudaSetDevice(device);
    int cooperative = 0, multiprocessors = 0, each = 0;
    if (error == cudaSuccess) {
        error = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device);
    }
    if (error == cudaSuccess && cooperative == 0) {
        error = cudaErrorNotSupported;
    }
    if (error == cudaSuccess) {
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    }
    if (error == cudaSuccess && shared_bytes > UNASKED_BYTES) {
        error = allow_all_shared(device, static_cast<const void*>(kernel));
    }
    if (error == cudaSuccess) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, static_cast<const void*>(kernel), threads,
                                                              shared_bytes);
    }
    *blocks = static_cast<uint64_t>(each) * static_cast<uint64_t>(multiprocessors);
    return status(error);
}

int32_t tandem_cuda_launch_cooperative(tandem_kernel kernel, int32_t blocks, int32_t threads, size_t shared_bytes,
                                       uint8_t** arguments, tandem_stream stream) {
    return status(cudaLaunchCooperativeKernel(static_cast<const void*>(kernel), dim3(blocks), dim3(threads),
                                              reinterpret_cast<void**>(arguments), shared_bytes, stream));
}

}  // extern "C"

#pragma once
// What lets one header compile for the device with nvcc and for the host with any C++17 compiler, and the groups of
// threads that an operation can be shared by.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tandem_fabric.h"

#if defined(__CUDA_ARCH__)
#define TANDEM_FABRIC_FN __host__ __device__ __forceinline__
#define TANDEM_FABRIC_RARE __host__ __device__ __noinline__
#elif defined(__CUDACC__)
#define TANDEM_FABRIC_FN __host__ __device__ inline
#define TANDEM_FABRIC_RARE __host__ __device__ inline
#else
#define TANDEM_FABRIC_FN inline
#define TANDEM_FABRIC_RARE inline
#endif

namespace tandem {
namespace fabric {

/// How an access is ordered with the accesses before and after it; between PEs and the host, so always at system
/// scope. The words are those of C++.
enum class Order { relaxed, acquire, release, acq_rel };

/// One thread on its own. Every operation takes a group as its last argument; this is the default.
struct Thread {
    /// Threads that read and write neighbouring addresses together.
    static constexpr uint32_t LANES = 1;
    TANDEM_FABRIC_FN uint32_t rank() const { return 0; }
    TANDEM_FABRIC_FN uint32_t size() const { return 1; }
    TANDEM_FABRIC_FN void sync() const {}
    TANDEM_FABRIC_FN bool all(bool mine) const { return mine; }
    /// What the first thread has, for all.
    TANDEM_FABRIC_FN uint64_t broadcast(uint64_t mine) const { return mine; }
};

#if defined(__CUDACC__)

/// The 32 threads of a warp, which call together with the same arguments.
struct Warp {
    static constexpr uint32_t LANES = 32;
    __device__ __forceinline__ uint32_t rank() const {
        uint32_t warp_lane;
        asm("mov.u32 %0, %%laneid;" : "=r"(warp_lane));
        return warp_lane;
    }
    __device__ __forceinline__ uint32_t size() const { return 32; }
    __device__ __forceinline__ void sync() const { __syncwarp(); }
    __device__ __forceinline__ bool all(bool mine) const {
        const bool all = __all_sync(0xffffffffu, mine);
        // A vote orders no memory.
        __syncwarp();
        return all;
    }
    __device__ __forceinline__ uint64_t broadcast(uint64_t mine) const {
        const uint64_t first = __shfl_sync(0xffffffffu, static_cast<unsigned long long>(mine), 0);
        __syncwarp();
        return first;
    }
};

/// The threads of a block, which call together with the same arguments.
struct Block {
    static constexpr uint32_t LANES = 32;
    __device__ __forceinline__ uint32_t rank() const {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    __device__ __forceinline__ uint32_t size() const { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ __forceinline__ void sync() const { __syncthreads(); }
    __device__ __forceinline__ bool all(bool mine) const { return __syncthreads_and(mine); }
    __device__ __forceinline__ uint64_t broadcast(uint64_t mine) const {
        __shared__ uint64_t first;
        // All have read what the call before this one left.
        __syncthreads();
        if (rank() == 0) first = mine;
        __syncthreads();
        return first;
    }
};

#else

/// On the host a PE is one thread, and so are its warps and blocks.
using Warp = Thread;
using Block = Thread;

#endif

}  // namespace fabric
}  // namespace tandem

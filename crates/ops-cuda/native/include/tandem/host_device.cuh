#pragma once
// What lets one header compile for the device with nvcc and for the host with any C++17 compiler.
#include <cstddef>
#include <cstdint>
#include <cstring>

// Everything is inlined on the device, where calls cost registers; the host compiler is left to choose.
#if defined(__CUDA_ARCH__)
#define TANDEM_HD __host__ __device__ __forceinline__
#define TANDEM_HD_NOINLINE __host__ __device__ __noinline__
#define TANDEM_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__)
#define TANDEM_HD __host__ __device__ inline
#define TANDEM_HD_NOINLINE __host__ __device__ inline
#define TANDEM_UNROLL
#else
#define TANDEM_HD inline
#define TANDEM_HD_NOINLINE inline
#define TANDEM_UNROLL
#endif

namespace tandem {

#if defined(__CUDACC__)
/// Reads a value from memory in vectors of 16 bytes. T must be aligned to 16 bytes.
template <class T> __device__ __forceinline__ T load16(const T* from) {
    static_assert(alignof(T) % 16 == 0 && sizeof(T) % 16 == 0, "needs 16-byte vectors");
    T value;
    uint4* to = reinterpret_cast<uint4*>(&value);
#pragma unroll
    for (size_t i = 0; i < sizeof(T) / 16; i++) to[i] = reinterpret_cast<const uint4*>(from)[i];
    return value;
}

/// Loads 16 bytes at a time through the read-only path, for memory that no one writes while the kernel runs.
template <class T> __device__ __forceinline__ T load16_readonly(const T* from) {
    static_assert(alignof(T) % 16 == 0 && sizeof(T) % 16 == 0, "needs 16-byte vectors");
    T value;
    uint4* to = reinterpret_cast<uint4*>(&value);
#pragma unroll
    for (size_t i = 0; i < sizeof(T) / 16; i++) to[i] = __ldg(reinterpret_cast<const uint4*>(from) + i);
    return value;
}

/// Writes a value to memory in vectors of 16 bytes.
template <class T> __device__ __forceinline__ void store16(T* to, const T& value) {
    static_assert(alignof(T) % 16 == 0 && sizeof(T) % 16 == 0, "needs 16-byte vectors");
    const uint4* from = reinterpret_cast<const uint4*>(&value);
#pragma unroll
    for (size_t i = 0; i < sizeof(T) / 16; i++) reinterpret_cast<uint4*>(to)[i] = from[i];
}
#endif

}  // namespace tandem

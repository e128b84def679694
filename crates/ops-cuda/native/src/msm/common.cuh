#pragma once
// What the kernels of the sum share: the shape, the names of parts of an entry, scratch memory, launch sizes.
//
// A scalar is taken apart into signed digits of `window_bits` bits. Window j belongs to bucket set j % bucket_sets and
// to level j / bucket_sets of the table of points, which holds 2^(window_bits * bucket_sets * level) * P. A non-zero
// digit becomes an entry (32 bits: sign, level, index of the scalar) in the bucket |digit| - 1 of its set. Entries of
// one bucket lie side by side, and offsets[k] is where those of bucket k begin.
#include "tandem/curve.cuh"
#include "tandem_ops.h"

namespace tandem {
namespace msm {

constexpr uint32_t ENTRY_NEGATIVE = 0x80000000u;
/// The key of a slot that holds nothing; above every bucket.
constexpr uint32_t NO_BUCKET = 0xffffffffu;

inline uint32_t bucket_count(const tandem_msm_shape& s) { return s.bucket_sets << (s.window_bits - 1); }

/// Bounds within which no index of the kernels overflows.
inline bool valid(const tandem_msm_shape& s) {
    if (s.window_bits < 2 || s.window_bits > 24 || s.bucket_sets < 1 || s.bucket_sets > 128) return false;
    if (s.windows < 1 || s.windows > 128 || s.scalars < 1 || s.index_bits > 30) return false;
    if (s.scalars > uint64_t(1) << s.index_bits || s.levels > 1u << (31 - s.index_bits)) return false;
    return (s.windows + s.bucket_sets - 1) / s.bucket_sets <= s.levels && s.scalars * s.windows < 0xffff0000u &&
           uint64_t(s.bucket_sets) << (s.window_bits - 1) <= uint64_t(1) << 24;
}

/// Cuts arrays out of the caller's scratch memory; with no memory it only counts.
class Arena {
  public:
    explicit Arena(void* base) : base_(static_cast<char*>(base)) {}
    template <class T> T* take(size_t count) {
        T* at = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
        used_ += (count * sizeof(T) + 255) / 256 * 256;
        return at;
    }
    size_t used() const { return used_; }

  private:
    char* base_;
    size_t used_ = 0;
};

/// *to += *with. One function for all kernels but the one that adds most, since its code is long. `to` and `with` may
/// be in any memory.
template <class F> __device__ __noinline__ void add_into(Xyzz<F>* to, const Xyzz<F>* with) {
    Xyzz<F> own = load16(to);
    own.add(load16(with));
    store16(to, own);
}

/// Returns from the caller with the status of the first CUDA call that fails.
#define TANDEM_TRY(call)                                                                                               \
    do {                                                                                                               \
        cudaError_t status_ = (call);                                                                                  \
        if (status_ != cudaSuccess) return int32_t(status_);                                                           \
    } while (0)

/// Threads of one full wave of `kernel` on the current device.
template <class Kernel> cudaError_t wave(Kernel kernel, int block, size_t shared, uint32_t* threads) {
    int device = 0, sms = 0, blocks = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (status == cudaSuccess) status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block, shared);
    *threads = uint32_t(sms) * uint32_t(blocks > 0 ? blocks : 1) * uint32_t(block);
    return status;
}

/// Lets the kernel have that much dynamic shared memory. The limit is always set to all that a block can have: it belongs
/// to the kernel, not to the launch, and a host thread that needs less must not lower it between another's call and launch.
template <class Kernel> cudaError_t allow_shared(Kernel kernel, size_t bytes) {
    if (bytes <= 48 * 1024) return cudaSuccess;
    int device = 0, most = 0;
    cudaFuncAttributes attributes;
    if (cudaError_t e = cudaGetDevice(&device)) return e;
    if (cudaError_t e = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device)) return e;
    if (cudaError_t e = cudaFuncGetAttributes(&attributes, kernel)) return e;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                most - int(attributes.sharedSizeBytes));
}

inline uint32_t div_up(uint64_t a, uint64_t b) { return uint32_t((a + b - 1) / b); }

}  // namespace msm
}  // namespace tandem

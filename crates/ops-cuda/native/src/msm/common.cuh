#pragma once
// What the kernels of the sum share: the shape, the names of parts of an entry, scratch memory, launch sizes.
//
// A scalar is taken apart into signed digits, windows of `window_bits` bits, each at a place: a multiple of step_bits.
// That is window_bits for windows that follow one another, or 1. With 1, a window begins at the lowest bit that is left
// (w-NAF): digits are odd, which needs half the buckets, and on average window_bits + 1 bits apart. Place j belongs to
// bucket set j % bucket_sets and to level j / bucket_sets of the table of points, which holds
// 2^(step_bits * bucket_sets * level) * P. A non-zero digit becomes an entry (32 bits: sign, level, index of the scalar)
// in the bucket |digit| - 1 of its set, or (|digit| - 1) / 2 where digits are odd. Entries of one bucket lie side by
// side, and offsets[k] is where those of bucket k begin.
//
// Where the table has d = `levels_per_window` levels for a place, of P, 2P, 4P and so on, a digit 2^v * odd with v < d needs no bucket: it
// goes to that of its odd part, with the point of level v. What 2^d divides has the buckets behind those. That is half the buckets
// and one more in 2^d, with which windows can be wider (docs/design/msm.md).
//
// Where the last place has no bits of the scalar and would take a carry alone, an even digit above half its range at one of the
// `carry_free_windows` places below it may stay as it is: half of it goes to the level of 2P, and most scalars have a digit less.
#include "tandem/curve.cuh"
#include "tandem_ops.h"

namespace tandem {
namespace msm {

constexpr uint32_t ENTRY_NEGATIVE = 0x80000000u;
/// The key of a slot that holds nothing; above every bucket.
constexpr uint32_t NO_BUCKET = 0xffffffffu;

/// 1 if all digits are odd, so that bucket k of a set has the digit 2k + 1; else 0, and bucket k has the digit k + 1.
TANDEM_HD uint32_t odd_digits(const tandem_msm_shape& s) { return s.step_bits == 1; }

/// Buckets whose digits follow one rule: 2^bits in each of so many sets. Bucket k of a set has the digit (2k + 1) * 2^shift if they are
/// odd, or (k + 1) * 2^shift.
struct BucketRange {
    uint32_t sets, bits, odd, shift;

    TANDEM_HD uint32_t buckets() const { return sets << bits; }
};
/// First or second part of the buckets; the second one has no sets where there is one part.
TANDEM_HD BucketRange bucket_range(const tandem_msm_shape& s, bool second) {
    if (s.levels_per_window == 1)
        return {second ? 0 : s.bucket_sets, second ? 0 : s.window_bits - 1 - odd_digits(s), odd_digits(s), 0};
    return second ? BucketRange{s.bucket_sets, s.window_bits - 1 - s.levels_per_window, 0, s.levels_per_window}
                  : BucketRange{s.bucket_sets, s.window_bits - 2, 1, 0};
}
inline uint32_t bucket_count(const tandem_msm_shape& s) {
    return bucket_range(s, false).buckets() + bucket_range(s, true).buckets();
}

/// Bounds within which no index of the kernels overflows.
inline bool valid(const tandem_msm_shape& s) {
    if (s.step_bits != s.window_bits && s.step_bits != 1) return false;
    if (s.window_bits < 2 + odd_digits(s) || s.window_bits > 24 || s.bucket_sets < 1 || s.bucket_sets > 128)
        return false;
    if (s.levels_per_window < 1 ||
        (s.levels_per_window > 1 && (odd_digits(s) || s.bucket_sets > 1 || s.levels_per_window + 2 > s.window_bits)))
        return false;
    if (s.carry_free_windows > TANDEM_MSM_CARRY_FREE_WINDOWS ||
        (s.carry_free_windows && (odd_digits(s) || s.bucket_sets > 1 || s.carry_free_windows >= s.window_positions)))
        return false;
    if (s.windows < 1 || s.windows > 128 || s.window_positions < s.windows || s.window_positions > 256) return false;
    if (s.scalars < 1 || s.index_bits > 30 || s.scalars > uint64_t(1) << s.index_bits) return false;
    // An entry has 31 bits for level and index, a digit 8 for the level (digits.cuh); rounds need a row's number that stands for none (pairs.cuh).
    if (s.table_levels > 256 || s.table_levels > 1u << (31 - s.index_bits) ||
        s.table_levels * s.scalars >= uint64_t(1) << 31)
        return false;
    const uint32_t of_doubles = s.levels_per_window == 1 ? s.carry_free_windows : 0;
    if (s.table_levels <= of_doubles || s.table_levels % s.levels_per_window) return false;
    return uint64_t((s.table_levels - of_doubles) / s.levels_per_window) * s.bucket_sets >= s.window_positions &&
           s.scalars * s.windows < 0xffff0000u &&
           uint64_t(s.bucket_sets) << (s.window_bits - 1 - odd_digits(s)) <= uint64_t(1) << 24;
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

/// The value of lane `from` of the four neighbours that a lane belongs to. To be called by a whole warp.
template <class F> __device__ __forceinline__ F of_lane(F value, uint32_t from) {
    uint32_t* word = reinterpret_cast<uint32_t*>(&value);
#pragma unroll
    for (size_t k = 0; k < sizeof(F) / 4; k++) word[k] = __shfl_sync(0xffffffffu, word[k], int(from), 4);
    return value;
}

/// a or b, in registers.
template <class F> __device__ __forceinline__ F pick(bool first, F a, F b) {
    const uint32_t* word = reinterpret_cast<const uint32_t*>(&b);
    uint32_t* to = reinterpret_cast<uint32_t*>(&a);
#pragma unroll
    for (size_t k = 0; k < sizeof(F) / 4; k++) to[k] = first ? to[k] : word[k];
    return a;
}

/// *to += *with by four neighbouring lanes, for where there are too few additions for all lanes: four products in a row
/// instead of fourteen (add-2008-s, as in curve.cuh). To be called by a whole warp; four lanes have the same arguments,
/// and do nothing if not `active`. Where this returns true, which is for one lane of four, nothing is done yet: the sum
/// is a doubling, or infinity.
template <class F> __device__ __noinline__ bool start_add_by_four(Xyzz<F>* to, const Xyzz<F>* with, bool active) {
    if (!__any_sync(0xffffffffu, active)) return false;
    const uint32_t lane = threadIdx.x % 4, half = lane / 2;
    const bool odd = lane % 2;
    F* own = reinterpret_cast<F*>(to);
    const F* other = reinterpret_cast<const F*>(with);
    F own_zz = F::zero(), other_zz = F::zero(), factor = F::zero();
    if (active) {
        own_zz = load16(&own[2 + half]);  // or zzz
        other_zz = load16(&other[2 + half]);
        factor = load16(odd ? &other[half] : &own[half]);
    }
    const bool empty = own_zz.is_zero(), nothing = other_zz.is_zero();
    // u and u + dx, s and s + dy.
    const F scaled = factor * pick(odd, own_zz, other_zz);
    const F u = of_lane(scaled, 0), s = of_lane(scaled, 2);
    const F right = of_lane(scaled, 2 * half + 1);
    const F d = right - pick(half, s, u);  // dx, dx, dy, dy
    const bool special = __shfl_sync(0xffffffffu, d.is_zero(), 0, 4);
    const F second = pick(odd, own_zz, d) * pick(odd, other_zz, d);  // dx^2, zz zz', dy^2, zzz zzz'
    const F pp = of_lane(second, 0);
    const F third = pick(lane == 0, d, pick(lane == 1, second, u)) * pp;  // ppp, zz, q
    const F ppp = of_lane(third, 0), q = of_lane(third, 2);
    const F x = of_lane(second, 2) - ppp - q.dbl();
    // s ppp, -, dy (q - x), zzz
    const F fourth = pick(lane == 0, s, pick(lane == 2, d, second)) * pick(lane == 2, q - x, ppp);
    const F y = fourth - of_lane(fourth, 0);
    __syncwarp();
    if (!active || nothing) return false;
    if (empty) {
        store16(&own[lane], load16(&other[lane]));
    } else if (!special) {
        const uint32_t at = lane == 1 ? 2 : lane == 2 ? 1 : lane;
        store16(&own[at], pick(lane == 0, x, pick(lane == 1, third, pick(lane == 2, y, fourth))));
    }
    return !empty && special && lane == 0;
}
/// *to += *with by four neighbouring lanes, in all cases.
template <class F> __device__ __forceinline__ void add_by_four(Xyzz<F>* to, const Xyzz<F>* with, bool active) {
    if (start_add_by_four(to, with, active)) add_into(to, with);
    __syncwarp();
}

/// Lets the next kernel of the stream start, if it was launched to start early, when every block has called this or has ended.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// For a kernel that was launched to start early: waits until the one before has ended, so that its own end is that of both.
__device__ __forceinline__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Returns from the caller with the status of the first CUDA call that fails.
#define TANDEM_TRY(call)                                     \
    do {                                                     \
        cudaError_t status_ = (call);                        \
        if (status_ != cudaSuccess) return int32_t(status_); \
    } while (0)

/// Multiprocessors of the current device, and blocks of `kernel` that each has room for, at least one.
template <class Kernel> cudaError_t room(Kernel kernel, uint32_t block, size_t shared, uint32_t* multiprocessors,
                                         uint32_t* blocks) {
    int device = 0, all = 0, each = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&all, cudaDevAttrMultiProcessorCount, device);
    if (status == cudaSuccess)
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, int(block), shared);
    *multiprocessors = uint32_t(all);
    *blocks = each > 0 ? uint32_t(each) : 1;
    return status;
}

/// Threads of one full wave of `kernel` on the current device.
template <class Kernel> cudaError_t wave(Kernel kernel, uint32_t block, size_t shared, uint32_t* threads) {
    uint32_t multiprocessors, blocks;
    const cudaError_t status = room(kernel, block, shared, &multiprocessors, &blocks);
    *threads = multiprocessors * blocks * block;
    return status;
}

/// One block on each multiprocessor, of `groups` groups of `threads` threads. The warps of a block take turns; of several blocks
/// the oldest goes first, and the last one runs alone in the end (docs/design/msm.md).
struct OneBlockPerSm {
    uint32_t multiprocessors = 0, groups = 0, threads = 0;

    uint32_t block() const { return groups * threads; }
    uint32_t all() const { return multiprocessors * block(); }
    /// No more groups than `useful` threads need.
    OneBlockPerSm for_threads(uint64_t useful) const {
        const uint64_t needed = (useful + threads - 1) / threads,
                       each = (needed + multiprocessors - 1) / multiprocessors;
        if (each >= groups) return *this;
        return {uint32_t(needed < multiprocessors ? needed : multiprocessors), each ? uint32_t(each) : 1, threads};
    }
};

/// As many groups as fit, up to `most`, each with `shared` bytes of shared memory.
template <class Kernel>
cudaError_t one_block_per_sm(Kernel kernel, uint32_t threads, uint32_t most, size_t shared, OneBlockPerSm* to) {
    uint32_t multiprocessors, fit;
    const cudaError_t status = room(kernel, threads, shared, &multiprocessors, &fit);
    *to = {multiprocessors, fit < most ? fit : most, threads};
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

#pragma once
// Kernels and launchers of sumcheck.cuh.
#include "../reduce/reduce.cuh"
#include "sumcheck.cuh"

#include <algorithm>
#include <atomic>

namespace tandem {
namespace sumcheck {

constexpr uint32_t THREADS = 128;
/// Blocks of a multiprocessor that registers are planned for: fewer warps do not keep its multipliers busy, and more blocks spill.
constexpr int RESIDENT = 4;
/// Most blocks of a multiprocessor: kernels of small fields have room for more than bring memory's full rate.
constexpr int RESIDENT_MOST = 16;

/// A thread's part of a round's polynomial in shared memory, a column for each thread: sums of products of a scalar field take 17 registers each.
template <class F, int D, bool ALL> struct SharedTotals;
template <class P, int D, bool ALL> struct SharedTotals<Fp<P>, D, ALL> {
    using Total = ProductsSum<Fp<P>>;
    static constexpr bool HAS_ONE = ALL;
    static constexpr bool LOOPS = true;
    static constexpr int QUADS = P::N / 2;
    /// Without a place 1 the others move up.
    static constexpr int PLACES = ALL ? D + 1 : D;

    struct Memory {
        uint4 quad[PLACES][QUADS][THREADS];
        uint32_t top[PLACES][THREADS];
    };
    static __device__ __forceinline__ Memory& memory() {
        __shared__ Memory memory;
        return memory;
    }
    static __device__ __forceinline__ int index(int t) { return ALL || t == 0 ? t : t - 1; }

    static __device__ __forceinline__ Total load(int t) {
        Total r;
        TANDEM_UNROLL for (int q = 0; q < QUADS; q++) {
            const uint4 x = memory().quad[index(t)][q][threadIdx.x];
            memcpy(r.limb + 4 * q, &x, sizeof x);
        }
        r.limb[4 * QUADS] = memory().top[index(t)][threadIdx.x];
        return r;
    }
    static __device__ __forceinline__ void store(int t, const Total& total) {
        TANDEM_UNROLL for (int q = 0; q < QUADS; q++) {
            uint4 x;
            memcpy(&x, total.limb + 4 * q, sizeof x);
            memory().quad[index(t)][q][threadIdx.x] = x;
        }
        memory().top[index(t)][threadIdx.x] = total.limb[4 * QUADS];
    }
    static __device__ __forceinline__ SharedTotals zero() {
        TANDEM_UNROLL for (int t = 0; t <= D; t++) {
            if (t != 1 || ALL) store(t, Total::zero());
        }
        return {};
    }
    __device__ __forceinline__ void add(int t, Fp<P> x, Fp<P> y) {
        const Wide<P> product = Wide<P>::mul(x, y);
        Total total = load(t);
        total.add(product);
        store(t, total);
    }
    __device__ __forceinline__ Sums<Fp<P>, D, ALL> sums() const {
        auto r = Sums<Fp<P>, D, ALL>::zero();
        TANDEM_LOOP for (int t = 0; t <= D; t++) {
            if (t == 1 && !ALL) continue;
            const Fp<P> x = load(t).value();
            TANDEM_UNROLL for (int to = 0; to <= D; to++) {
                if (to == t) r.at[to] = x;
            }
        }
        return r;
    }
};

/// Where a thread keeps its totals: two products of a scalar field fit registers beside what makes them.
template <class F, int D, bool ALL>
using Kept = std::conditional_t<(D > 2 && sizeof(F) > 16), SharedTotals<F, D, ALL>, Totals<F, D, ALL>>;

/// How the trees of reduce.cuh add values.
template <class V> struct Added {
    using Value = V;
    static __device__ __forceinline__ V combine(V a, V b) {
        TANDEM_UNROLL for (uint32_t i = 0; i < sizeof(a.at) / sizeof(a.at[0]); i++) a.at[i] += b.at[i];
        return a;
    }
};

/// Where blocks put their values, by which they find the last one, and where that one tells the host.
template <class S, int D, bool ALL> struct Outcome {
    using Value = Sums<std::conditional_t<ALL, typename S::Base, typename S::Ext>, D, ALL>;
    Value* partial;
    uint32_t* done;
    typename S::Ext* values;
    uint32_t* told;
};

/// Adds the values of all blocks, in the block that comes last, and writes them. `done` counts blocks; it and `partial`, which tells of the
/// tables, are zero afterwards.
template <class S, int D, bool ALL>
__device__ __forceinline__ void finish(typename Outcome<S, D, ALL>::Value sums, const Outcome<S, D, ALL>& to) {
    using V = typename Outcome<S, D, ALL>::Value;
    sums = reduce::block_tree<Added<V>, THREADS>(sums);
    if (gridDim.x > 1) {
        __shared__ bool is_last;
        if (threadIdx.x == 0) {
            to.partial[blockIdx.x] = sums;
            // Whoever sees the count sees what was written before.
            __threadfence();
            is_last = atomicInc(to.done, gridDim.x - 1) == gridDim.x - 1;
        }
        __syncthreads();
        if (!is_last) return;
        __threadfence();
        sums = V::zero();
        for (uint32_t i = threadIdx.x; i < gridDim.x; i += THREADS) {
            sums = Added<V>::combine(sums, to.partial[i]);
            to.partial[i] = V::zero();
        }
        sums = reduce::block_tree<Added<V>, THREADS>(sums);
    }
    if (threadIdx.x != 0) return;
    TANDEM_UNROLL for (int t = 0; t < TANDEM_SUMCHECK_VALUES; t++) to.values[t] = value<S>(sums, t);
    // Whoever sees the word, on the host too, sees the values.
    __threadfence_system();
    *static_cast<volatile uint32_t*>(to.told) = 1;
}

template <class S, int D>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    sums_kernel(const Tables<S, D> tables, const Outcome<S, D, true> to) {
    const uint64_t stride = uint64_t(gridDim.x) * THREADS;
    auto totals = Kept<typename S::Base, D, true>::zero();
    for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < tables.n / 2; i += stride) {
        add_pair(tables, i, totals);
    }
    finish(totals.sums(), to);
}

template <class S, int D, class From>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    bind_kernel(const From from, const Columns<S, D> columns, const typename S::Ext r, const Outcome<S, D, false> to) {
    using Ext = typename S::Ext;
    const uint64_t pairs = from.n / 4;
    if constexpr (IS_SHARED<S, D>) {
        const uint64_t stride = uint64_t(gridDim.x) * (THREADS / 2);
        // The two halves of a warp share pairs.
        const bool second = threadIdx.x % 32 / 16;
        auto totals = HalfTotals<Ext>::zero();
        // A warp goes on as one, since its threads exchange what they have.
        for (uint64_t first = uint64_t(blockIdx.x) * (THREADS / 2) + threadIdx.x / 32 * 16; first < pairs;
             first += stride) {
            const uint64_t i = first + threadIdx.x % 16;
            auto half = Half<Ext>::zero();
            if (i < pairs) half = bind_half<S>(from, columns, r, i, second);
            TANDEM_UNROLL for (auto& x : half.others) x = reduce::shuffle(x, 16);
            totals.add(half.mine, half.others);
        }
        finish(totals.sums(second), to);
    } else {
        const uint64_t stride = uint64_t(gridDim.x) * THREADS;
        auto totals = Kept<Ext, D, false>::zero();
        for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < pairs; i += stride) {
            bind_pair(from, columns, r, i, totals);
        }
        finish(totals.sums(), to);
    }
}

/// Copies what lives, and tells the host when the last block has.
template <class S, int D>
__global__ void __launch_bounds__(THREADS)
    take_kernel(const Columns<S, D> columns, typename S::Ext* to, uint32_t* done, uint32_t* told) {
    const uint64_t stride = uint64_t(gridDim.x) * THREADS;
    for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < columns.n; i += stride) {
        TANDEM_UNROLL for (int j = 0; j < D; j++) to[j * columns.n + i] = columns.element(i, j);
    }
    // Whoever sees the word, on the host too, sees what all threads wrote.
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0 && atomicInc(done, gridDim.x - 1) == gridDim.x - 1) {
        __threadfence_system();
        *static_cast<volatile uint32_t*>(told) = 1;
    }
}

/// Devices that facts are kept of: to ask the runtime again takes a share of a short round.
constexpr int DEVICES = 64;

inline cudaError_t multiprocessors(int* device, int* count) {
    static std::atomic<int> known[DEVICES];
    cudaError_t status = cudaGetDevice(device);
    if (status != cudaSuccess) return status;
    std::atomic<int>& kept = known[*device % DEVICES];
    *count = kept.load(std::memory_order_relaxed);
    if (*count > 0) return cudaSuccess;
    status = cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, *device);
    if (status == cudaSuccess) kept.store(*count, std::memory_order_relaxed);
    return status;
}

/// Blocks go on from pair to pair, so that their sums are few: there are as many as run at once.
template <auto KERNEL, class... Args> int32_t start(uint64_t threads, tandem_stream stream, Args... args) {
    static std::atomic<int> known[DEVICES];
    int device, count;
    cudaError_t status = multiprocessors(&device, &count);
    if (status != cudaSuccess) return int32_t(status);
    std::atomic<int>& kept = known[device % DEVICES];
    int resident = kept.load(std::memory_order_relaxed);
    if (resident == 0) {
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, KERNEL, THREADS, 0);
        if (status != cudaSuccess) return int32_t(status);
        resident = std::clamp(resident, 1, RESIDENT_MOST);
        kept.store(resident, std::memory_order_relaxed);
    }
    const uint64_t needed = (threads + THREADS - 1) / THREADS;
    KERNEL<<<uint32_t(std::min(needed, uint64_t(count) * resident)), THREADS, 0, stream>>>(args...);
    return int32_t(cudaGetLastError());
}

template <class S, int D> int32_t launch_of(const tandem_sumcheck_args* args, void* scratch, tandem_stream stream) {
    using Base = typename S::Base;
    using Ext = typename S::Ext;
    Ext* values = reinterpret_cast<Ext*>(args->values);
    const uint64_t count = pairs(args->op, args->n);
    Tables<S, D> tables;
    for (int j = 0; j < D; j++) tables.table[j] = reinterpret_cast<const Base*>(args->table[j]);
    tables.n = args->n;
    if (args->op == TANDEM_SUMCHECK_SUMS) {
        using To = Outcome<S, D, true>;
        const To to = {static_cast<typename To::Value*>(scratch), args->done, values, args->told};
        return start<sums_kernel<S, D>>(count, stream, tables, to);
    }
    const Columns<S, D> columns = {reinterpret_cast<Ext*>(args->columns), args->stride, args->n};
    if (args->op == TANDEM_SUMCHECK_TAKE) {
        return start<take_kernel<S, D>>(args->n, stream, columns, values, args->done, args->told);
    }
    Ext r;
    std::memcpy(&r, args->r, sizeof r);
    using To = Outcome<S, D, false>;
    const To to = {static_cast<typename To::Value*>(scratch), args->done, values, args->told};
    const uint64_t threads = IS_SHARED<S, D> ? 2 * count : count;
    if (args->op == TANDEM_SUMCHECK_BIND) {
        return start<bind_kernel<S, D, Tables<S, D>>>(threads, stream, tables, columns, r, to);
    }
    return start<bind_kernel<S, D, Columns<S, D>>>(threads, stream, columns, columns, r, to);
}

/// Whether there is such a round. The pointers are not looked at.
inline bool is_round(const tandem_sumcheck_args* args) {
    if (args->op > TANDEM_SUMCHECK_TAKE) return false;
    if (args->tables < 1 || args->tables > TANDEM_SUMCHECK_TABLES) return false;
    if (args->n & (args->n - 1) || args->n > uint64_t(1) << 40) return false;
    const uint64_t least[] = {2, 4, 4, 1};
    if (args->n < least[args->op]) return false;
    const uint64_t of_each = args->op == TANDEM_SUMCHECK_BIND ? args->n / 2 : args->n;
    return args->op == TANDEM_SUMCHECK_SUMS || args->stride >= of_each;
}

/// Scratch: the values of each block, of this round or any other.
template <class S> int32_t scratch(const tandem_sumcheck_args* args, size_t* bytes) {
    if (!is_round(args)) return TANDEM_INVALID;
    int device, count;
    const cudaError_t status = multiprocessors(&device, &count);
    if (status != cudaSuccess) return int32_t(status);
    *bytes = size_t(count) * RESIDENT_MOST * TANDEM_SUMCHECK_VALUES * sizeof(typename S::Ext);
    return TANDEM_OK;
}

template <class S>
int32_t launch(const tandem_sumcheck_args* args, void* memory, size_t scratch_bytes, tandem_stream stream) {
    size_t needed;
    const int32_t status = scratch<S>(args, &needed);
    if (status != TANDEM_OK) return status;
    if (!memory || scratch_bytes < needed || !args->done || !args->values || !args->told) return TANDEM_INVALID;
    if (args->op != TANDEM_SUMCHECK_SUMS && !args->columns) return TANDEM_INVALID;
    for (uint32_t j = 0; args->op <= TANDEM_SUMCHECK_BIND && j < args->tables; j++) {
        if (!args->table[j]) return TANDEM_INVALID;
    }
    switch (args->tables) {
        case 1: return launch_of<S, 1>(args, memory, stream);
        case 2: return launch_of<S, 2>(args, memory, stream);
        case 3: return launch_of<S, 3>(args, memory, stream);
        default: return launch_of<S, 4>(args, memory, stream);
    }
}

}  // namespace sumcheck
}  // namespace tandem

#pragma once
// Kernels and launchers of sumcheck.cuh.
#include "../reduce/reduce.cuh"
#include "sumcheck.cuh"

namespace tandem {
namespace sumcheck {

using reduce::THREADS;
/// Blocks go on from pair to pair: eight for each multiprocessor of the largest GPU that kernels are tuned for, so that their sums are few.
constexpr uint32_t BLOCKS = 8 * 132;

inline uint32_t blocks(uint64_t pairs) {
    const uint64_t needed = (pairs + THREADS - 1) / THREADS;
    return uint32_t(needed < BLOCKS ? needed : BLOCKS);
}

/// How the trees of reduce.cuh add values.
template <class V> struct Added {
    using Value = V;
    static __device__ __forceinline__ V combine(V a, V b) {
        TANDEM_UNROLL for (uint32_t i = 0; i < sizeof(a.at) / sizeof(a.at[0]); i++) a.at[i] += b.at[i];
        return a;
    }
};

/// Adds the values of all blocks, in the block that comes last, and writes them; `done` counts blocks and is zero again afterwards.
template <class S, int D, bool ALL, class F>
__device__ __forceinline__ void finish(Sums<F, D, ALL> sums, Sums<F, D, ALL>* partial, uint32_t* done,
                                       typename S::Ext* values) {
    using V = Sums<F, D, ALL>;
    sums = reduce::block_tree<Added<V>>(sums);
    if (gridDim.x > 1) {
        __shared__ bool is_last;
        if (threadIdx.x == 0) {
            partial[blockIdx.x] = sums;
            // Whoever sees the count sees what was written before.
            __threadfence();
            is_last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
        }
        __syncthreads();
        if (!is_last) return;
        __threadfence();
        sums = V::zero();
        for (uint32_t i = threadIdx.x; i < gridDim.x; i += THREADS) {
            sums = Added<V>::combine(sums, const_cast<const V*>(partial)[i]);
        }
        sums = reduce::block_tree<Added<V>>(sums);
    }
    if (threadIdx.x != 0) return;
    TANDEM_UNROLL for (int t = 0; t < TANDEM_SUMCHECK_VALUES; t++) values[t] = value<S>(sums, t);
}

/// Blocks of a multiprocessor that registers are planned for: eight warps do not keep its multipliers busy, and more blocks spill.
constexpr int RESIDENT = 2;

template <class S, int D>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    sums_kernel(const Tables<S, D> tables, Sums<typename S::Base, D, true>* partial, uint32_t* done,
                typename S::Ext* values) {
    const uint64_t stride = uint64_t(gridDim.x) * THREADS;
    auto sums = Sums<typename S::Base, D, true>::zero();
    for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < tables.n / 2; i += stride) {
        add_pair(tables, i, sums);
    }
    finish<S>(sums, partial, done, values);
}

template <class S, int D, class From>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    bind_kernel(const From from, typename S::Ext* rows, const typename S::Ext r,
                Sums<typename S::Ext, D, false>* partial, uint32_t* done, typename S::Ext* values) {
    const uint64_t stride = uint64_t(gridDim.x) * THREADS;
    auto sums = Sums<typename S::Ext, D, false>::zero();
    for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < from.n / 4; i += stride) {
        bind_rows<S, D>(from, rows, r, i, sums);
    }
    finish<S>(sums, partial, done, values);
}

template <class S, int D> int32_t launch_of(const tandem_sumcheck_args* args, void* scratch, tandem_stream stream) {
    using Base = typename S::Base;
    using Ext = typename S::Ext;
    Ext* rows = reinterpret_cast<Ext*>(args->rows);
    Ext* values = reinterpret_cast<Ext*>(args->values);
    Tables<S, D> tables;
    for (int j = 0; j < D; j++) tables.table[j] = reinterpret_cast<const Base*>(args->table[j]);
    tables.n = args->n;
    const uint32_t grid = blocks(pairs(args->op, args->n));
    if (args->op == TANDEM_SUMCHECK_SUMS) {
        auto* partial = static_cast<Sums<Base, D, true>*>(scratch);
        sums_kernel<S, D><<<grid, THREADS, 0, stream>>>(tables, partial, args->done, values);
        return int32_t(cudaGetLastError());
    }
    Ext r;
    std::memcpy(&r, args->r, sizeof r);
    auto* partial = static_cast<Sums<Ext, D, false>*>(scratch);
    if (args->op == TANDEM_SUMCHECK_BIND) {
        bind_kernel<S, D><<<grid, THREADS, 0, stream>>>(tables, rows, r, partial, args->done, values);
    } else {
        const Rows<S, D> from{rows, args->n};
        bind_kernel<S, D><<<grid, THREADS, 0, stream>>>(from, rows, r, partial, args->done, values);
    }
    return int32_t(cudaGetLastError());
}

/// Whether there is such a round. The pointers are not looked at.
inline bool is_round(const tandem_sumcheck_args* args) {
    if (args->op > TANDEM_SUMCHECK_FOLD) return false;
    if (args->tables < 1 || args->tables > TANDEM_SUMCHECK_TABLES) return false;
    if (args->n & (args->n - 1) || args->n > uint64_t(1) << 40) return false;
    return args->n >= (args->op == TANDEM_SUMCHECK_SUMS ? 2 : 4);
}

/// Scratch: the values of each block.
template <class S> int32_t scratch(const tandem_sumcheck_args* args, size_t* bytes) {
    if (!is_round(args)) return TANDEM_INVALID;
    *bytes = size_t(blocks(pairs(args->op, args->n))) * TANDEM_SUMCHECK_VALUES * sizeof(typename S::Ext);
    return TANDEM_OK;
}

template <class S>
int32_t launch(const tandem_sumcheck_args* args, void* memory, size_t scratch_bytes, tandem_stream stream) {
    size_t needed;
    if (scratch<S>(args, &needed) != TANDEM_OK) return TANDEM_INVALID;
    if (!memory || scratch_bytes < needed || !args->done || !args->values) return TANDEM_INVALID;
    if (args->op != TANDEM_SUMCHECK_SUMS && !args->rows) return TANDEM_INVALID;
    for (uint32_t j = 0; args->op != TANDEM_SUMCHECK_FOLD && j < args->tables; j++) {
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

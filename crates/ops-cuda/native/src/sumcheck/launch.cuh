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

/// Registers for two blocks of a multiprocessor, or for one where a thread holds more tables.
template <int D> constexpr int RESIDENT = D <= 2 ? 2 : 1;

template <class S, int D>
__global__ void __launch_bounds__(THREADS, RESIDENT<D>)
    sums_kernel(const Tables<S, D> tables, Sums<typename S::Base, D, true>* partial) {
    using V = Sums<typename S::Base, D, true>;
    V sums = V::zero();
    const uint64_t stride = uint64_t(gridDim.x) * THREADS;
    for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < tables.n / 2; i += stride) {
        add_pair(tables, i, sums);
    }
    sums = reduce::block_tree<Added<V>>(sums);
    if (threadIdx.x == 0) partial[blockIdx.x] = sums;
}

template <class S, int D, class From>
__global__ void __launch_bounds__(THREADS, RESIDENT<D>)
    bind_kernel(const From from, typename S::Ext* to, const typename S::Ext r,
                Sums<typename S::Ext, D, false>* partial) {
    using V = Sums<typename S::Ext, D, false>;
    V sums = V::zero();
    const uint64_t stride = uint64_t(gridDim.x) * THREADS;
    for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < from.n / 4; i += stride) {
        bind_rows<S, D>(from, to, r, i, sums);
    }
    sums = reduce::block_tree<Added<V>>(sums);
    if (threadIdx.x == 0) partial[blockIdx.x] = sums;
}

/// One block: the values of all blocks together.
template <class S, int D, bool ALL, class F>
__global__ void __launch_bounds__(THREADS)
    values_kernel(const Sums<F, D, ALL>* partial, uint32_t count, typename S::Ext* values) {
    using V = Sums<F, D, ALL>;
    V sums = V::zero();
    for (uint32_t i = threadIdx.x; i < count; i += THREADS) sums = Added<V>::combine(sums, partial[i]);
    sums = reduce::block_tree<Added<V>>(sums);
    if (threadIdx.x != 0) return;
    TANDEM_UNROLL for (int t = 0; t < TANDEM_SUMCHECK_VALUES; t++) values[t] = value<S>(sums, t);
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
        sums_kernel<S, D><<<grid, THREADS, 0, stream>>>(tables, partial);
        values_kernel<S, D, true><<<1, THREADS, 0, stream>>>(partial, grid, values);
        return int32_t(cudaGetLastError());
    }
    Ext r;
    std::memcpy(&r, args->r, sizeof r);
    auto* partial = static_cast<Sums<Ext, D, false>*>(scratch);
    if (args->op == TANDEM_SUMCHECK_BIND) {
        bind_kernel<S, D><<<grid, THREADS, 0, stream>>>(tables, rows, r, partial);
    } else {
        bind_kernel<S, D><<<grid, THREADS, 0, stream>>>(Rows<S, D>{rows, args->n}, rows, r, partial);
    }
    values_kernel<S, D, false><<<1, THREADS, 0, stream>>>(partial, grid, values);
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
    if (!memory || scratch_bytes < needed || !args->values) return TANDEM_INVALID;
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

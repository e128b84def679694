#pragma once
// Combining and copying with all threads of a group of blocks: dst[*][i] = src[0][i] op src[1][i] op ...
#include <cstdint>

#include "tandem_fabric.h"

namespace tandem {
namespace exec {

constexpr int THREADS = 512;

template <class T, int HOW> __device__ __forceinline__ T combined(T a, T b) {
    if constexpr (HOW == TANDEM_EXEC_SUM) return a + b;
    if constexpr (HOW == TANDEM_EXEC_MIN) return b < a ? b : a;
    return a < b ? b : a;
}

/// 16 bytes of numbers.
template <class T> union Vector {
    uint4 raw;
    T lane[16 / sizeof(T)];
};

template <class T, int HOW> __device__ __forceinline__ uint4 combined_vector(uint4 a, uint4 b) {
    Vector<T> x, y;
    x.raw = a;
    y.raw = b;
#pragma unroll
    for (int i = 0; i < int(16 / sizeof(T)); i++) x.lane[i] = combined<T, HOW>(x.lane[i], y.lane[i]);
    return x.raw;
}

/// UNROLL vectors from i on in steps of `threads`, all on their way at a time; where some are past the end, those are left out.
template <class T, int HOW, int UNROLL, bool WHOLE, class Source, class Target>
__device__ __forceinline__ void move_some(Source source, uint32_t sources, Target target, uint32_t targets,
                                          uint64_t count, uint64_t i, uint64_t threads) {
    uint4 sum[UNROLL];
    const uint4* from = reinterpret_cast<const uint4*>(source(0));
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        if (WHOLE || i + u * threads < count) sum[u] = from[i + u * threads];
    }
    for (uint32_t s = 1; s < sources; s++) {
        const uint4* other = reinterpret_cast<const uint4*>(source(s));
        uint4 more[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (WHOLE || i + u * threads < count) more[u] = other[i + u * threads];
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (WHOLE || i + u * threads < count) sum[u] = combined_vector<T, HOW>(sum[u], more[u]);
        }
    }
    // A PE's own memory is the first target: what has further to go leaves before it.
    for (uint32_t t = targets; t-- > 0;) {
        uint4* to = reinterpret_cast<uint4*>(target(t));
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (WHOLE || i + u * threads < count) to[i + u * threads] = sum[u];
        }
    }
}

/// Vectors [thread, count) in steps of `threads`.
template <class T, int HOW, int UNROLL, class Source, class Target>
__device__ __forceinline__ void move_vectors(Source source, uint32_t sources, Target target, uint32_t targets,
                                             uint64_t count, uint64_t thread, uint64_t threads) {
    uint64_t i = thread;
    for (; i + (UNROLL - 1) * threads < count; i += UNROLL * threads) {
        move_some<T, HOW, UNROLL, true>(source, sources, target, targets, count, i, threads);
    }
    if (i < count) move_some<T, HOW, UNROLL, false>(source, sources, target, targets, count, i, threads);
}

/// `source(s)` and `target(t)` are addresses. Vectors where all of them are aligned to 16 bytes, else elements.
template <class T, int HOW, class Source, class Target>
__device__ __forceinline__ void move(Source source, uint32_t sources, Target target, uint32_t targets, uint64_t bytes,
                                     uint64_t thread, uint64_t threads) {
    uint64_t mixed = 0;
    for (uint32_t s = 0; s < sources; s++) mixed |= source(s);
    for (uint32_t t = 0; t < targets; t++) mixed |= target(t);
    uint64_t done = 0;
    if (mixed % 16 == 0) {
        done = bytes / 16 * 16;
        move_vectors<T, HOW, 4>(source, sources, target, targets, bytes / 16, thread, threads);
    }
    for (uint64_t i = done + thread * sizeof(T); i < bytes; i += threads * sizeof(T)) {
        T sum = *reinterpret_cast<const T*>(source(0) + i);
        for (uint32_t s = 1; s < sources; s++) {
            sum = combined<T, HOW>(sum, *reinterpret_cast<const T*>(source(s) + i));
        }
        for (uint32_t t = 0; t < targets; t++) *reinterpret_cast<T*>(target(t) + i) = sum;
    }
}

/// A way to combine, as a type.
template <int HOW> struct How {
    static constexpr int value = HOW;
};

// Called by the host to launch and by the device to move: what `f` may do is its own affair.
#pragma nv_exec_check_disable
template <class T, class F> __host__ __device__ __forceinline__ void with_how(int32_t how, F f) {
    if (how == TANDEM_EXEC_MIN) return f(T(), How<TANDEM_EXEC_MIN>());
    if (how == TANDEM_EXEC_MAX) return f(T(), How<TANDEM_EXEC_MAX>());
    f(T(), How<TANDEM_EXEC_SUM>());
}

/// Calls `f` with a number of the kind and with the way to combine, for their types. What is only copied is bytes.
#pragma nv_exec_check_disable
template <class F> __host__ __device__ __forceinline__ void with_kind(int32_t kind, int32_t how, F f) {
    // Sums of signed and unsigned numbers are the same bits.
    const bool is_sum = how == TANDEM_EXEC_SUM;
    switch (kind) {
        case TANDEM_EXEC_U32: return with_how<uint32_t>(how, f);
        case TANDEM_EXEC_I32: return is_sum ? with_how<uint32_t>(how, f) : with_how<int32_t>(how, f);
        case TANDEM_EXEC_U64: return with_how<uint64_t>(how, f);
        case TANDEM_EXEC_I64: return is_sum ? with_how<uint64_t>(how, f) : with_how<int64_t>(how, f);
        case TANDEM_EXEC_F32: return with_how<float>(how, f);
        case TANDEM_EXEC_F64: return with_how<double>(how, f);
        default: return f(uint8_t(), How<TANDEM_EXEC_SUM>());
    }
}

}  // namespace exec
}  // namespace tandem

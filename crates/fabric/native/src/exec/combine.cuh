#pragma once
// Combining and copying with all threads of a group of blocks: dst[*][i] = src[0][i] op src[1][i] op ...
#include <cstdint>

#include "tandem/fabric/number.cuh"
#include "tandem_fabric.h"

namespace tandem {
namespace exec {

constexpr int THREADS = 512;

template <class T, int OP> __device__ __forceinline__ T combined(T a, T b) {
    if constexpr (OP == TANDEM_EXEC_SUM) {
        return fabric::Sum()(a, b);
    } else if constexpr (OP == TANDEM_EXEC_PRODUCT) {
        return fabric::Product()(a, b);
    } else if constexpr (OP == TANDEM_EXEC_MIN) {
        return fabric::Min()(a, b);
    } else if constexpr (OP == TANDEM_EXEC_MAX) {
        return fabric::Max()(a, b);
    } else if constexpr (OP == TANDEM_EXEC_AND) {
        return fabric::And()(a, b);
    } else if constexpr (OP == TANDEM_EXEC_OR) {
        return fabric::Or()(a, b);
    } else {
        return fabric::Xor()(a, b);
    }
}

/// 16 bytes of numbers.
template <class T> union Vector {
    uint4 raw;
    T element[16 / sizeof(T)];
};

template <class T, int OP> __device__ __forceinline__ uint4 combined_vector(uint4 a, uint4 b) {
    Vector<T> x, y;
    x.raw = a;
    y.raw = b;
#pragma unroll
    for (int i = 0; i < int(16 / sizeof(T)); i++) x.element[i] = combined<T, OP>(x.element[i], y.element[i]);
    return x.raw;
}

/// Combines UNROLL vectors from i on in steps of `threads`, all loads in flight at a time. WHOLE: none is past the end.
template <class T, int OP, int UNROLL, bool WHOLE, class Source, class Target>
__device__ __forceinline__ void move_batch(Source source, uint32_t sources, Target target, uint32_t targets,
                                           uint64_t count, uint64_t i, uint64_t threads) {
    uint4 sum[UNROLL];
    const uint4* from = reinterpret_cast<const uint4*>(source(0));
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        if (WHOLE || i + u * threads < count) sum[u] = from[i + u * threads];
    }
    // Two sources at a time: what is far away takes as long for two as for one.
    for (uint32_t s = 1; s < sources; s += 2) {
        const bool has_second = s + 1 < sources;
        const uint4* first = reinterpret_cast<const uint4*>(source(s));
        const uint4* second = has_second ? reinterpret_cast<const uint4*>(source(s + 1)) : first;
        uint4 more[UNROLL], most[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (WHOLE || i + u * threads < count) more[u] = first[i + u * threads];
        }
        if (has_second) {
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                if (WHOLE || i + u * threads < count) most[u] = second[i + u * threads];
            }
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (WHOLE || i + u * threads < count) sum[u] = combined_vector<T, OP>(sum[u], more[u]);
        }
        if (has_second) {
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                if (WHOLE || i + u * threads < count) sum[u] = combined_vector<T, OP>(sum[u], most[u]);
            }
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
template <class T, int OP, int UNROLL, class Source, class Target>
__device__ __forceinline__ void move_vectors(Source source, uint32_t sources, Target target, uint32_t targets,
                                             uint64_t count, uint64_t thread, uint64_t threads) {
    uint64_t i = thread;
    for (; i + (UNROLL - 1) * threads < count; i += UNROLL * threads) {
        move_batch<T, OP, UNROLL, true>(source, sources, target, targets, count, i, threads);
    }
    if (i < count) move_batch<T, OP, UNROLL, false>(source, sources, target, targets, count, i, threads);
}

/// `source(s)` and `target(t)` are addresses. Vectors where all of them are aligned to 16 bytes, else elements.
template <class T, int OP, class Source, class Target>
__device__ __forceinline__ void move(Source source, uint32_t sources, Target target, uint32_t targets, uint64_t bytes,
                                     uint64_t thread, uint64_t threads) {
    uint64_t mixed = 0;
    for (uint32_t s = 0; s < sources; s++) mixed |= source(s);
    for (uint32_t t = 0; t < targets; t++) mixed |= target(t);
    uint64_t done = 0;
    if (mixed % 16 == 0) {
        done = bytes / 16 * 16;
        // What is rare has fewer bytes in flight, and compiles in less time.
        constexpr int UNROLL = OP > TANDEM_EXEC_MAX || (sizeof(T) == 1 && OP != TANDEM_EXEC_SUM) ? 1 : 4;
        move_vectors<T, OP, UNROLL>(source, sources, target, targets, bytes / 16, thread, threads);
    }
    for (uint64_t i = done + thread * sizeof(T); i < bytes; i += threads * sizeof(T)) {
        T sum = *reinterpret_cast<const T*>(source(0) + i);
        for (uint32_t s = 1; s < sources; s++) {
            sum = combined<T, OP>(sum, *reinterpret_cast<const T*>(source(s) + i));
        }
        for (uint32_t t = 0; t < targets; t++) *reinterpret_cast<T*>(target(t) + i) = sum;
    }
}

/// An operation, as a type.
template <int OP> struct ReduceOp {
    static constexpr int value = OP;
};

// Called by the host to launch and by the device to move: what `f` may do is its own affair.
#pragma nv_exec_check_disable
template <class T, class F> __host__ __device__ __forceinline__ void with_op(int32_t op, F f) {
    if (op == TANDEM_EXEC_MIN) return f(T(), ReduceOp<TANDEM_EXEC_MIN>());
    if (op == TANDEM_EXEC_MAX) return f(T(), ReduceOp<TANDEM_EXEC_MAX>());
    f(T(), ReduceOp<TANDEM_EXEC_SUM>());
}

/// Calls `f` with a number of the kind and with the operation, for their types. What is only copied is bytes.
#pragma nv_exec_check_disable
template <class F> __host__ __device__ __forceinline__ void with_kind(int32_t kind, int32_t op, F f) {
    // Sums of signed and unsigned numbers are the same bits.
    const bool is_sum = op == TANDEM_EXEC_SUM;
    switch (kind) {
        case TANDEM_EXEC_U32: return with_op<uint32_t>(op, f);
        case TANDEM_EXEC_I32: return is_sum ? with_op<uint32_t>(op, f) : with_op<int32_t>(op, f);
        case TANDEM_EXEC_U64: return with_op<uint64_t>(op, f);
        case TANDEM_EXEC_I64: return is_sum ? with_op<uint64_t>(op, f) : with_op<int64_t>(op, f);
        case TANDEM_EXEC_F32: return with_op<float>(op, f);
        case TANDEM_EXEC_F64: return with_op<double>(op, f);
        default: return f(uint8_t(), ReduceOp<TANDEM_EXEC_SUM>());
    }
}

/// Floating-point numbers.
#pragma nv_exec_check_disable
template <class T, class F> __host__ __device__ __forceinline__ void with_any_op(int32_t op, F f) {
    if (op == TANDEM_EXEC_PRODUCT) return f(T(), ReduceOp<TANDEM_EXEC_PRODUCT>());
    with_op<T>(op, f);
}

/// Integers: what gives the same bits with a sign and without is done without.
#pragma nv_exec_check_disable
template <class T, class F> __host__ __device__ __forceinline__ void with_integer_op(int32_t op, F f) {
    using U = std::make_unsigned_t<T>;
    switch (op) {
        case TANDEM_EXEC_MIN: return f(T(), ReduceOp<TANDEM_EXEC_MIN>());
        case TANDEM_EXEC_MAX: return f(T(), ReduceOp<TANDEM_EXEC_MAX>());
        case TANDEM_EXEC_PRODUCT: return f(U(), ReduceOp<TANDEM_EXEC_PRODUCT>());
        case TANDEM_EXEC_AND: return f(U(), ReduceOp<TANDEM_EXEC_AND>());
        case TANDEM_EXEC_OR: return f(U(), ReduceOp<TANDEM_EXEC_OR>());
        case TANDEM_EXEC_XOR: return f(U(), ReduceOp<TANDEM_EXEC_XOR>());
        default: return f(U(), ReduceOp<TANDEM_EXEC_SUM>());
    }
}

/// with_kind for all kinds and operations. Kernels that stay have the few of with_kind, as all that they can do is in one kernel.
#pragma nv_exec_check_disable
template <class F> __host__ __device__ __forceinline__ void with_any_kind(int32_t kind, int32_t op, F f) {
    switch (kind) {
        case TANDEM_EXEC_U8: return with_integer_op<uint8_t>(op, f);
        case TANDEM_EXEC_I8: return with_integer_op<int8_t>(op, f);
        case TANDEM_EXEC_U16: return with_integer_op<uint16_t>(op, f);
        case TANDEM_EXEC_I16: return with_integer_op<int16_t>(op, f);
        case TANDEM_EXEC_U32: return with_integer_op<uint32_t>(op, f);
        case TANDEM_EXEC_I32: return with_integer_op<int32_t>(op, f);
        case TANDEM_EXEC_U64: return with_integer_op<uint64_t>(op, f);
        case TANDEM_EXEC_I64: return with_integer_op<int64_t>(op, f);
        case TANDEM_EXEC_F16: return with_any_op<fabric::f16>(op, f);
        case TANDEM_EXEC_BF16: return with_any_op<fabric::bf16>(op, f);
        case TANDEM_EXEC_F32: return with_any_op<float>(op, f);
        case TANDEM_EXEC_F64: return with_any_op<double>(op, f);
        default: return f(uint8_t(), ReduceOp<TANDEM_EXEC_SUM>());
    }
}

}  // namespace exec
}  // namespace tandem

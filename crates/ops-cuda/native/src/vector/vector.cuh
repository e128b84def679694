#pragma once
// Element-wise arithmetic, generic over the scalar field. One thread for each element, in a loop over the grid.
#include "tandem/field.cuh"
#include "tandem/params.cuh"
#include "tandem_ops.h"

namespace tandem {

/// The sum of multiples of vectors.
template <class F> struct Combined {
    F* out;
    const F* vectors[TANDEM_COMBINED_TERMS];
    uint64_t lengths[TANDEM_COMBINED_TERMS];
    F factors[TANDEM_COMBINED_TERMS];
    uint64_t n;
    uint32_t terms;

    /// Element i of a vector, 0 behind its end.
    TANDEM_HD F at(uint32_t vector, uint64_t i) const {
        return vector < terms && i < lengths[vector] ? vectors[vector][i] : F::zero();
    }
    TANDEM_HD F element(uint64_t i) const {
        ProductSum<typename F::Params> sum;
        // The next element is on its way while this one is multiplied.
        F next = at(0, i);
        for (uint32_t j = 0; j < terms; j++) {
            const F element = next;
            if (j + 1 < terms) next = at(j + 1, i);
            sum.add(factors[j], element);
        }
        return sum.total();
    }
};

#if defined(__CUDACC__)

constexpr uint32_t VECTOR_THREADS = 256;
/// Fills any GPU several times over; the loop over the grid takes the rest.
constexpr uint64_t VECTOR_BLOCKS = 4096;

template <class F> struct Vector {
    F* out;
    const F* a;
    const F* b;
    const F* c;
    F k;
    uint64_t n;
    uint64_t step;
};

template <class F, uint32_t OP> __global__ void __launch_bounds__(VECTOR_THREADS) vector_kernel(const Vector<F> v) {
    uint64_t step = uint64_t(gridDim.x) * VECTOR_THREADS;
    for (uint64_t i = uint64_t(blockIdx.x) * VECTOR_THREADS + threadIdx.x; i < v.n; i += step) {
        uint64_t at = OP == TANDEM_VECTOR_ADD_SCALED ? i * v.step : i;
        F a = v.a[at], r;
        if constexpr (OP == TANDEM_VECTOR_ADD) r = a + v.b[i];
        if constexpr (OP == TANDEM_VECTOR_SUB) r = a - v.b[i];
        if constexpr (OP == TANDEM_VECTOR_MUL) r = a * v.b[i];
        if constexpr (OP == TANDEM_VECTOR_SCALE) r = a * v.k;
        if constexpr (OP == TANDEM_VECTOR_MUL_SUB) r = a * v.b[i] - v.c[i];
        if constexpr (OP == TANDEM_VECTOR_TO_CANONICAL) r = a.to_canonical();
        if constexpr (OP == TANDEM_VECTOR_TO_MONT) r = F::from_canonical(a);
        if constexpr (OP == TANDEM_VECTOR_ADD_SCALED) r = a + v.k * v.b[i];
        v.out[at] = r;
    }
}

template <class F> int32_t vector_launch(const tandem_vector_args* args, tandem_stream stream) {
    static_assert(sizeof(F) == sizeof(tandem_scalar), "one layout on both sides");
    using Kernel = void (*)(Vector<F>);
    struct Operation {
        Kernel kernel;
        int operands;
    };
    // In the order of TANDEM_VECTOR_ADD and the names after it.
    static const Operation operations[] = {
        {vector_kernel<F, TANDEM_VECTOR_ADD>, 2},     {vector_kernel<F, TANDEM_VECTOR_SUB>, 2},
        {vector_kernel<F, TANDEM_VECTOR_MUL>, 2},     {vector_kernel<F, TANDEM_VECTOR_SCALE>, 1},
        {vector_kernel<F, TANDEM_VECTOR_MUL_SUB>, 3}, {vector_kernel<F, TANDEM_VECTOR_TO_CANONICAL>, 1},
        {vector_kernel<F, TANDEM_VECTOR_TO_MONT>, 1}, {vector_kernel<F, TANDEM_VECTOR_ADD_SCALED>, 2},
    };
    if (args->op >= sizeof operations / sizeof *operations) return TANDEM_INVALID;
    if (args->n == 0) return TANDEM_OK;
    const Operation& operation = operations[args->op];
    if (!args->out || !args->a || (operation.operands > 1 && !args->b) || (operation.operands > 2 && !args->c)) {
        return TANDEM_INVALID;
    }
    Vector<F> v;
    v.out = reinterpret_cast<F*>(args->out);
    v.a = reinterpret_cast<const F*>(args->a);
    v.b = reinterpret_cast<const F*>(args->b);
    v.c = reinterpret_cast<const F*>(args->c);
    std::memcpy(&v.k, &args->k, sizeof v.k);
    v.n = args->n;
    v.step = args->step;
    uint64_t blocks = (args->n + VECTOR_THREADS - 1) / VECTOR_THREADS;
    if (blocks > VECTOR_BLOCKS) blocks = VECTOR_BLOCKS;
    operation.kernel<<<uint32_t(blocks), VECTOR_THREADS, 0, stream>>>(v);
    return int32_t(cudaGetLastError());
}

template <class F> __global__ void __launch_bounds__(VECTOR_THREADS) combined_kernel(const Combined<F> of) {
    const uint64_t step = uint64_t(gridDim.x) * VECTOR_THREADS;
    for (uint64_t i = uint64_t(blockIdx.x) * VECTOR_THREADS + threadIdx.x; i < of.n; i += step)
        of.out[i] = of.element(i);
}

template <class F> int32_t combined_launch(const tandem_combined_args* args, tandem_stream stream) {
    static_assert(sizeof(F) == sizeof(tandem_scalar), "one layout on both sides");
    static_assert(sizeof args->lengths == TANDEM_COMBINED_TERMS * sizeof(uint64_t), "as many places as terms");
    Combined<F> of;
    of.out = reinterpret_cast<F*>(args->out);
    of.n = args->n;
    of.terms = args->terms;
    if (of.terms > TANDEM_COMBINED_TERMS || (!of.out && of.n)) return TANDEM_INVALID;
    for (uint32_t j = 0; j < of.terms; j++) {
        of.vectors[j] = reinterpret_cast<const F*>(args->vectors[j]);
        of.lengths[j] = args->lengths[j];
        std::memcpy(&of.factors[j], &args->factors[j], sizeof(F));
        if (of.lengths[j] > of.n || (!of.vectors[j] && of.lengths[j])) return TANDEM_INVALID;
    }
    if (of.n == 0) return TANDEM_OK;
    uint64_t blocks = (of.n + VECTOR_THREADS - 1) / VECTOR_THREADS;
    if (blocks > VECTOR_BLOCKS) blocks = VECTOR_BLOCKS;
    combined_kernel<<<uint32_t(blocks), VECTOR_THREADS, 0, stream>>>(of);
    return int32_t(cudaGetLastError());
}
#endif

}  // namespace tandem

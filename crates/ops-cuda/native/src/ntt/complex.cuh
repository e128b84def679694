#pragma once
// What discrete Fourier transforms have beside the passes of small.cuh: those of fewer numbers than a pass takes.
#include "small_launch.cuh"
#include "tandem/complex.cuh"

namespace tandem {
namespace ntt_small {

/// The definition, in doubles. A thread does a number of the output.
template <class F> __global__ void sum_kernel(const tandem_ntt_small_sum_args args) {
    typedef typename F::Stored Stored;
    const uint32_t bits = args.log_n - args.log_shards;
    const uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x;
    if (at >> bits >= args.count) return;
    const uint64_t vector = at >> bits << bits;
    const uint64_t k = (at - vector) << args.log_shards | args.shard;
    typename F::Power sum{0, 0};
    for (uint32_t j = 0; j < 1u << args.log_n; j++) {
        const Stored* shard = reinterpret_cast<const Stored*>(args.shards[j & ((1u << args.log_shards) - 1)]) + vector;
        const Stored x = shard[j >> args.log_shards];
        const auto term =
            F::product(typename F::Power{x.x, x.y}, kept_power<F>(args, j * k << (args.order_bits - args.log_n)));
        sum = {sum.x + term.x, sum.y + term.y};
    }
    elements<F>(args.output)[at] = F::reduce(F::product(sum, F::argument(args.scale)));
}

template <class F> int32_t sum(const tandem_ntt_small_sum_args* args, tandem_stream stream) {
    const tandem_ntt_small_sum_args& a = *args;
    if (a.log_shards > ntt::MAX_LOG_SHARDS || a.log_n > TANDEM_NTT_MAX_LOG_TINY || a.log_n < a.log_shards)
        return TANDEM_INVALID;
    if (!a.output || a.shard >> a.log_shards || (a.log_shards && a.count != 1)) return TANDEM_INVALID;
    if (!valid_batch(a.count, a.log_n) || !valid_powers(a.powers, a.order_bits, a.split, a.log_n))
        return TANDEM_INVALID;
    for (uint32_t i = 0; i < 1u << a.log_shards; i++)
        if (!a.shards[i] || a.shards[i] == a.output) return TANDEM_INVALID;
    sum_kernel<F><<<blocks(a.count << (a.log_n - a.log_shards), 128), 128, 0, stream>>>(a);
    return status();
}

}  // namespace ntt_small
}  // namespace tandem

/// The function of tandem_ops_ntt_small.h that is of complex numbers alone.
#define TANDEM_NTT_SMALL_DEFINE_SUM(name, numbers)                                                     \
    int32_t tandem_ntt_small_sum_##name(const tandem_ntt_small_sum_args* args, tandem_stream stream) { \
        return tandem::ntt_small::sum<tandem::numbers>(args, stream);                                  \
    }

#pragma once
// The tables of twiddles, made on the device from a root of unity; transforms of no more than two stages; scaling.
#include "pass.cuh"

namespace tandem {
namespace ntt {

template <class P> __device__ inline Fp<P> power(Fp<P> base, uint64_t exponent) {
    Fp<P> r = Fp<P>::one();
    for (; exponent; exponent >>= 1, base = base.sqr())
        if (exponent & 1) r = r * base;
    return r;
}

template <class P> __device__ inline Fp<P> scalar(const tandem_scalar& s) {
    Fp<P> x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x.limb[2 * i] = uint32_t(s.limb[i]);
        x.limb[2 * i + 1] = uint32_t(s.limb[i] >> 32);
    }
    return x;
}

/// first * base^i for i below 2^split, then base^(i * 2^split).
template <class P> __global__ void powers_kernel(const tandem_ntt_powers_args args) {
    const uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x, count = uint64_t(1) << args.split;
    if (i >= 2 * count) return;
    const uint64_t exponent = i < count ? i : (i - count) << args.split;
    Fp<P> x = power(scalar<P>(args.base), exponent);
    if (i < count) x = x * scalar<P>(args.first);
    reinterpret_cast<Twiddle<P>*>(args.powers)[i] = make_twiddle(x);
}

/// A power of the root of order 2^order_bits in Montgomery form.
template <class P>
__device__ inline Fp<P> root_power(const tandem_ntt_twiddle* powers, uint32_t split, uint64_t exponent) {
    return reduce(multiply_power(Fp<P>::one(), reinterpret_cast<const Twiddle<P>*>(powers), split, exponent));
}

template <class P> __global__ void stages_kernel(const tandem_ntt_stages_args args) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t node = i / STAGE_BLOCKS + 1, block = i % STAGE_BLOCKS;
    if (node > STAGE_NODES) return;
    const uint32_t level = 31 - __clz(node);
    const uint32_t number = block << level | (node - (1u << level));
    uint64_t exponent = uint64_t(reverse_bits(number, MAX_LOG_ROWS - 1)) << (args.order_bits - MAX_LOG_ROWS);
    if (args.inverse) exponent = 0 - exponent;
    const Twiddle<P> f = make_twiddle(root_power<P>(args.powers, args.split, exponent));
    uint4* stages = reinterpret_cast<uint4*>(args.stages);
#pragma unroll
    for (uint32_t k = 0; k < 4; k++)
        stages[((node - 1) * 4 + k) * STAGE_BLOCKS + block] = reinterpret_cast<const uint4*>(&f)[k];
}

template <class P> __global__ void twiddles_kernel(const tandem_ntt_twiddles_args args) {
    const uint64_t place = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x;
    if (place >> args.bits) return;
    const uint32_t bits = args.bits + args.known_bits;
    const uint64_t whole = with_known(place, args.bits, args.reversed, args.known_bits, args.known);
    uint64_t exponent = twiddle_exponent(whole, bits, args.log_rows, args.reversed, args.odd)
                        << (args.order_bits - bits - args.odd);
    if (args.inverse) exponent = 0 - exponent;
    const Fp<P> w = root_power<P>(args.powers, args.split, exponent) * scalar<P>(args.scale);
    store16(reinterpret_cast<Twiddle<P>*>(args.twiddles) + place, make_twiddle(w));
}

/// The definition, for up to 4 elements.
template <class P> __global__ void tiny_kernel(const tandem_ntt_tiny_args args) {
    const uint32_t n = 1u << args.log_n, i = threadIdx.x;
    Fp<P>* data = reinterpret_cast<Fp<P>*>(args.data);
    Fp<P> sum = Fp<P>::zero();
    if (i < n) {
        const Fp<P> x = power(scalar<P>(args.root), i);
        Fp<P> at = scalar<P>(args.scale);
        for (uint32_t j = 0; j < n; j++, at = at * x)
            sum += at * data[args.input_reversed ? reverse_bits(j, args.log_n) : j];
    }
    __syncthreads();
    if (i < n) data[args.output_reversed ? reverse_bits(i, args.log_n) : i] = sum;
}

/// The definition, for one shard of a vector of which all are within reach; a thread for each element of the output.
template <class P> __global__ void tiny_spread_kernel(const tandem_ntt_tiny_spread_args args) {
    const uint32_t bits = args.log_n - args.log_shards, t = threadIdx.x;
    if (t >> bits) return;
    const Fp<P> x = power(scalar<P>(args.root), t << args.log_shards | args.shard);
    Fp<P> sum = Fp<P>::zero(), at = scalar<P>(args.scale);
    for (uint32_t j = 0; j < 1u << args.log_n; j++, at = at * x) {
        const Fp<P>* shard = reinterpret_cast<const Fp<P>*>(args.shards[j & ((1u << args.log_shards) - 1)]);
        const uint32_t i = j >> args.log_shards;
        sum += at * shard[args.input_reversed ? reverse_bits(i, bits) : i];
    }
    reinterpret_cast<Fp<P>*>(args.output)[args.output_reversed ? reverse_bits(t, bits) : t] = sum;
}

/// data[i] *= base^i, where element i stands at place i or bitrev(i).
template <class P> __global__ void scale_kernel(const tandem_ntt_scale_args args) {
    const uint64_t place = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x;
    if (place >> args.log_n) return;
    const uint64_t i = args.reversed ? reverse_bits(uint32_t(place), args.log_n) : place;
    Fp<P>* at = reinterpret_cast<Fp<P>*>(args.data) + place;
    Fp<P> x = multiply_power(load16(at), reinterpret_cast<const Twiddle<P>*>(args.powers), args.split, i);
    store16(at, reduce(x));
}

}  // namespace ntt
}  // namespace tandem

#pragma once
// What transforms over small fields need beside their passes; checks of the arguments and launches.
#include "small.cuh"

namespace tandem {
namespace ntt_small {

template <class F> __device__ inline typename F::Stored power(typename F::Stored base, uint64_t exponent) {
    typename F::Stored r = F::ONE;
    for (; exponent; exponent >>= 1, base = F::product(base, base))
        if (exponent & 1) r = F::product(r, base);
    return r;
}

template <class F> __device__ __forceinline__ typename F::Stored* elements(uint32_t* words) {
    return reinterpret_cast<typename F::Stored*>(words);
}

template <class F> __global__ void powers_kernel(const tandem_ntt_small_powers_args args) {
    const uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x;
    if (i < args.count) elements<F>(args.out)[i] = F::reduce(power<F>(typename F::Stored(args.base), i * args.step));
}

template <class F> __global__ void twiddles_kernel(const tandem_ntt_small_twiddles_args args) {
    const uint64_t place = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x;
    if (place >> args.bits) return;
    uint64_t exponent = ntt::twiddle_exponent(place, args.bits, args.log_rows, args.reversed, false)
                        << (args.order_bits - args.bits);
    if (args.inverse) exponent = 0 - exponent;
    const auto* powers = reinterpret_cast<const typename F::Power*>(args.powers);
    const uint32_t mask = (1u << args.split) - 1;
    const auto low = powers[uint32_t(exponent) & mask],
               high = powers[(1u << args.split) + (uint32_t(exponent >> args.split) & mask)];
    elements<F>(args.out)[place] = F::reduce(F::product(low, high));
}

/// The definition. A thread does a vector.
template <class F> __global__ void tiny_kernel(const tandem_ntt_small_tiny_args args) {
    typedef typename F::Stored Stored;
    const uint64_t vector = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x;
    if (vector >= args.count) return;
    const uint32_t n = 1u << args.log_n;
    Stored* data = elements<F>(args.data) + (vector << args.log_n);
    Stored in[8], root = F::ONE, factor = F::ONE, after = Stored(args.scale);
#pragma unroll
    for (uint32_t j = 0; j < 8; j++) {
        if (j < n) in[j] = F::product(data[args.input_reversed ? reverse_bits(j, args.log_n) : j], factor);
        factor = F::product(factor, Stored(args.before));
    }
    for (uint32_t i = 0; i < n; i++) {
        // Horner's rule, at root^i.
        Stored sum = 0;
#pragma unroll
        for (int j = 7; j >= 0; j--)
            if (j < int(n)) sum = F::sum(F::product(sum, root), in[j]);
        data[args.output_reversed ? reverse_bits(i, args.log_n) : i] = F::reduce(F::product(sum, after));
        root = F::product(root, Stored(args.root));
        after = F::product(after, Stored(args.after));
    }
}

/// The transform of one shard of a vector of which all shards are within reach; a thread for each element of the output.
template <class F> __global__ void tiny_spread_kernel(const tandem_ntt_small_tiny_spread_args args) {
    typedef typename F::Stored Stored;
    const uint32_t bits = args.log_n - args.log_shards, t = threadIdx.x;
    if (t >> bits) return;
    const uint32_t i = t << args.log_shards | args.shard;
    const Stored step = F::product(power<F>(Stored(args.root), i), Stored(args.before));
    Stored sum = 0, at = F::product(Stored(args.scale), power<F>(Stored(args.after), i));
    for (uint32_t j = 0; j < 1u << args.log_n; j++, at = F::product(at, step)) {
        const Stored* shard = reinterpret_cast<const Stored*>(args.shards[j & ((1u << args.log_shards) - 1)]);
        const uint32_t k = j >> args.log_shards;
        sum = F::sum(sum, F::product(at, shard[args.input_reversed ? reverse_bits(k, bits) : k]));
    }
    elements<F>(args.output)[args.output_reversed ? reverse_bits(t, bits) : t] = F::reduce(sum);
}

template <class F> __global__ void scale_kernel(const tandem_ntt_small_scale_args args) {
    typedef typename F::Stored Stored;
    const uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x;
    if (at >> args.log_n >= args.count) return;
    const uint32_t place = uint32_t(at & ((uint64_t(1) << args.log_n) - 1));
    const uint32_t i = args.reversed ? reverse_bits(place, args.log_n) : place;
    const Stored* powers = reinterpret_cast<const Stored*>(args.powers);
    const Stored low = __ldg(powers + (i & ((1u << args.split) - 1)));
    const Stored high = __ldg(powers + (uint64_t(1) << args.split) + (i >> args.split));
    Stored* x = elements<F>(args.data) + at;
    *x = F::reduce(F::product(*x, F::product(low, high)));
}

constexpr uint32_t MAX_LOG_N = 32;
/// Elements of a batch; so are all numbers of blocks below 2^31.
constexpr uint64_t MAX_ELEMENTS = uint64_t(1) << 38;

inline bool valid_batch(uint64_t count, uint32_t log_n) {
    return log_n <= MAX_LOG_N && count > 0 && count <= MAX_ELEMENTS >> log_n;
}

inline uint32_t blocks(uint64_t threads, uint32_t block) { return uint32_t((threads + block - 1) / block); }

inline int32_t status() { return int32_t(cudaGetLastError()); }

inline bool valid_spread(const tandem_ntt_small_pass_args&) { return true; }
/// As in launch.cuh.
inline bool valid_spread(const tandem_ntt_small_spread_args& a) {
    const tandem_ntt_small_pass_args& p = a.pass;
    if (p.count != 1 || a.log_shards > ntt::MAX_LOG_SHARDS || a.log_shards > p.log_n || a.known_bits > a.log_shards)
        return false;
    if (a.known >> a.known_bits || a.scatter > TANDEM_NTT_BY_LOW_BITS || p.log_n + a.known_bits > p.order_bits)
        return false;
    // A table is of a vector that is on one lane.
    if (p.twiddles && a.known_bits) return false;
    if (a.sections_in && (p.reversed || (p.input == p.output && p.log_rows < p.log_n))) return false;
    if (a.scatter == TANDEM_NTT_STAY) return true;
    for (uint32_t i = 0; i < 1u << a.log_shards; i++)
        if (!a.targets[i]) return false;
    return !p.last && !p.reorder;
}

template <class F, int LOG_ROWS, class Args> int32_t launch_pass(const Args& all, cudaStream_t stream) {
    typedef Form<F, LOG_ROWS> S;
    const tandem_ntt_small_pass_args& a = pass_of(all);
    if (S::TILE_BYTES > 48 << 10) {
        const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
        const cudaError_t set = cudaFuncSetAttribute(pass_kernel<F, LOG_ROWS, Args>, attribute, S::TILE_BYTES);
        if (set != cudaSuccess) return int32_t(set);
    }
    const uint64_t columns = a.count << (a.log_n - LOG_ROWS);
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks(columns, C);
    config.blockDim = S::THREADS;
    config.dynamicSmemBytes = S::TILE_BYTES;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = a.follows ? 1 : 0;
    return int32_t(cudaLaunchKernelEx(&config, pass_kernel<F, LOG_ROWS, Args>, all));
}

inline bool valid_powers(const uint32_t* powers, uint32_t order_bits, uint32_t split, uint32_t bits) {
    return powers && split <= 16 && order_bits <= 2 * split && bits <= order_bits;
}

template <class F, class Args> int32_t pass(const Args* args, tandem_stream stream) {
    const tandem_ntt_small_pass_args& a = pass_of(*args);
    if (!a.input || !a.output || !a.stages || !valid_batch(a.count, a.log_n) || !valid_spread(*args))
        return TANDEM_INVALID;
    if (a.log_rows > a.log_n || a.low + a.log_rows > a.log_n) return TANDEM_INVALID;
    // A block that holds whole vectors has read them before it writes.
    if (a.reorder && a.input == a.output && a.log_n != a.log_rows) return TANDEM_INVALID;
    if (a.reorder && a.low != (a.reversed ? a.log_n - a.log_rows : 0)) return TANDEM_INVALID;
    if (!valid_powers(a.powers, a.order_bits, a.split, a.log_n)) return TANDEM_INVALID;
    switch (a.log_rows) {
        case 4: return launch_pass<F, 4>(*args, stream);
        case 5: return launch_pass<F, 5>(*args, stream);
        case 6: return launch_pass<F, 6>(*args, stream);
        case 7: return launch_pass<F, 7>(*args, stream);
        case 8: return launch_pass<F, 8>(*args, stream);
        case 9: return launch_pass<F, 9>(*args, stream);
        default: return TANDEM_INVALID;
    }
}

template <class F> int32_t twiddles(const tandem_ntt_small_twiddles_args* args, tandem_stream stream) {
    const tandem_ntt_small_twiddles_args& a = *args;
    if (!a.out || a.bits > MAX_LOG_N || a.log_rows > a.bits) return TANDEM_INVALID;
    if (!valid_powers(a.powers, a.order_bits, a.split, a.bits)) return TANDEM_INVALID;
    twiddles_kernel<F><<<blocks(uint64_t(1) << a.bits, 128), 128, 0, stream>>>(a);
    return status();
}

template <class F> int32_t powers(const tandem_ntt_small_powers_args* args, tandem_stream stream) {
    if (!args->out || args->count == 0 || args->count > MAX_ELEMENTS) return TANDEM_INVALID;
    powers_kernel<F><<<blocks(args->count, 128), 128, 0, stream>>>(*args);
    return status();
}

template <class F> int32_t tiny(const tandem_ntt_small_tiny_args* args, tandem_stream stream) {
    if (!args->data || args->log_n > 3 || !valid_batch(args->count, args->log_n)) return TANDEM_INVALID;
    tiny_kernel<F><<<blocks(args->count, 128), 128, 0, stream>>>(*args);
    return status();
}

template <class F> int32_t tiny_spread(const tandem_ntt_small_tiny_spread_args* args, tandem_stream stream) {
    const tandem_ntt_small_tiny_spread_args& a = *args;
    if (a.log_shards > ntt::MAX_LOG_SHARDS || a.log_n > TANDEM_NTT_MAX_LOG_TINY || a.log_n < a.log_shards)
        return TANDEM_INVALID;
    if (!a.output || a.shard >> a.log_shards) return TANDEM_INVALID;
    for (uint32_t i = 0; i < 1u << a.log_shards; i++)
        if (!a.shards[i] || a.shards[i] == a.output) return TANDEM_INVALID;
    const uint32_t elements = 1u << (a.log_n - a.log_shards);
    // The tool takes this launch for two comparisons.
    // clang-format off
    tiny_spread_kernel<F><<<1, elements < 32 ? 32 : elements, 0, stream>>>(a);
    // clang-format on
    return status();
}

template <class F> int32_t scale(const tandem_ntt_small_scale_args* args, tandem_stream stream) {
    const tandem_ntt_small_scale_args& a = *args;
    if (!a.data || !a.powers || !valid_batch(a.count, a.log_n)) return TANDEM_INVALID;
    if (a.split > 16 || a.log_n > 2 * a.split) return TANDEM_INVALID;
    scale_kernel<F><<<blocks(a.count << a.log_n, 256), 256, 0, stream>>>(a);
    return status();
}

}  // namespace ntt_small
}  // namespace tandem

/// The functions of tandem_ops_ntt_small.h for every kind of numbers under the name `name`.
#define TANDEM_NTT_SMALL_DEFINE_PASSES(name, field)                                                              \
    int32_t tandem_ntt_small_twiddles_##name(const tandem_ntt_small_twiddles_args* args, tandem_stream stream) { \
        return tandem::ntt_small::twiddles<tandem::field>(args, stream);                                         \
    }                                                                                                            \
    int32_t tandem_ntt_small_pass_##name(const tandem_ntt_small_pass_args* args, tandem_stream stream) {         \
        return tandem::ntt_small::pass<tandem::field>(args, stream);                                             \
    }                                                                                                            \
    int32_t tandem_ntt_small_spread_##name(const tandem_ntt_small_spread_args* args, tandem_stream stream) {     \
        return tandem::ntt_small::pass<tandem::field>(args, stream);                                             \
    }

/// The others for `field`.
#define TANDEM_NTT_SMALL_DEFINE_OVER_FIELD(name, field)                                                                \
    int32_t tandem_ntt_small_powers_##name(const tandem_ntt_small_powers_args* args, tandem_stream stream) {           \
        return tandem::ntt_small::powers<tandem::field>(args, stream);                                                 \
    }                                                                                                                  \
    int32_t tandem_ntt_small_tiny_##name(const tandem_ntt_small_tiny_args* args, tandem_stream stream) {               \
        return tandem::ntt_small::tiny<tandem::field>(args, stream);                                                   \
    }                                                                                                                  \
    int32_t tandem_ntt_small_tiny_spread_##name(const tandem_ntt_small_tiny_spread_args* args, tandem_stream stream) { \
        return tandem::ntt_small::tiny_spread<tandem::field>(args, stream);                                            \
    }                                                                                                                  \
    int32_t tandem_ntt_small_scale_##name(const tandem_ntt_small_scale_args* args, tandem_stream stream) {             \
        return tandem::ntt_small::scale<tandem::field>(args, stream);                                                  \
    }

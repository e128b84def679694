#pragma once
// Checks of the arguments and launches.
#include "tables.cuh"

namespace tandem {
namespace ntt {

constexpr uint32_t MAX_LOG_N = 32;

inline uint32_t blocks(uint64_t threads, uint32_t block) { return uint32_t((threads + block - 1) / block); }

inline int32_t status() { return int32_t(cudaGetLastError()); }

/// `bits` index bits below a root of order 2^order_bits whose powers are split in two tables.
inline bool valid_powers(const tandem_ntt_twiddle* powers, uint32_t order_bits, uint32_t split, uint32_t bits) {
    return powers && split <= 16 && order_bits <= 2 * split && bits <= order_bits;
}

inline uint32_t known_bits(const tandem_ntt_pass_args&) { return 0; }
inline uint32_t known_bits(const tandem_ntt_product_args&) { return 0; }
inline uint32_t known_bits(const tandem_ntt_spread_args& a) { return a.known_bits; }

inline bool valid_kind(const tandem_ntt_pass_args&) { return true; }
/// Only what comes in at first, and what goes out at last, is below the modulus.
inline bool valid_kind(const tandem_ntt_product_args& a) { return !a.a == !a.b && (!a.a || a.pass.last); }
/// Sections are of 2^(log_n - log_shards) places, and are told apart by bits of the row.
inline bool valid_kind(const tandem_ntt_spread_args& a) {
    const tandem_ntt_pass_args& p = a.pass;
    if (a.log_shards > MAX_LOG_SHARDS || a.log_shards > p.log_n) return false;
    if (a.known_bits > a.log_shards || a.known >> a.known_bits || a.scatter > TANDEM_NTT_BY_LOW_BITS) return false;
    // Those of the lowest bits are of the row if it has these bits.
    const bool low = a.sections_in || a.scatter == TANDEM_NTT_BY_LOW_BITS;
    if (low && (p.low != 0 || a.log_shards > p.log_rows)) return false;
    if (a.sections_in && (p.reversed || (p.input == p.output && p.log_rows < p.log_n))) return false;
    if (a.scatter == TANDEM_NTT_STAY) return true;
    for (uint32_t i = 0; i < 1u << a.log_shards; i++)
        if (!a.targets[i]) return false;
    return !p.last && !p.reorder;
}

template <class Args> bool valid_pass(const Args& args) {
    const tandem_ntt_pass_args& a = pass_of(args);
    if (!valid_kind(args)) return false;
    if (!a.input || !a.output || !a.stages || a.log_n > MAX_LOG_N) return false;
    if (a.log_rows < MIN_LOG_N || a.log_rows > MAX_LOG_ROWS || a.low + a.log_rows > a.log_n) return false;
    // A block that holds the whole transform has read everything before it writes.
    if (a.reorder && a.input == a.output && a.log_rows < a.log_n) return false;
    if (a.reorder && a.low != (a.reversed ? a.log_n - a.log_rows : 0)) return false;
    const uint32_t bits = (a.reversed ? a.low + a.log_rows : a.log_n - a.low) + known_bits(args);
    return !a.multiply || a.twiddles || valid_powers(a.powers, a.order_bits, a.split, bits + a.odd);
}

/// log2 of a block's elements: fewer than the usual where a vector has not that many.
inline uint32_t log_elements(uint32_t log_n) { return log_n < LOG_BLOCK + LOG_HELD ? log_n : LOG_BLOCK + LOG_HELD; }

template <class P, class Args> int32_t pass(const Args* args, tandem_stream stream) {
    if (!valid_pass(*args)) return TANDEM_INVALID;
    const uint32_t log_n = pass_of(*args).log_n, log = log_elements(log_n);
    pass_kernel<P, Args><<<1u << (log_n - log), 1u << (log - LOG_HELD), 32u << log, stream>>>(*args);
    return status();
}

template <class P> int32_t batch(const tandem_ntt_batch_args* args, tandem_stream stream) {
    if (!valid_pass(args->pass) || args->count >> (40 - args->pass.log_n)) return TANDEM_INVALID;
    const uint32_t log_n = args->pass.log_n, log = log_elements(log_n);
    // Vectors of one launch: the most that a grid has in its second dimension.
    constexpr uint64_t MOST = 0xffff;
    tandem_ntt_pass_args some = args->pass;
    for (uint64_t left = args->count; left > 0;) {
        const uint64_t now = left < MOST ? left : MOST;
        const dim3 grid(1u << (log_n - log), uint32_t(now));
        batch_kernel<P><<<grid, 1u << (log - LOG_HELD), 32u << log, stream>>>(some);
        some.input += now << log_n;
        some.output += now << log_n;
        left -= now;
    }
    return status();
}

template <class P> int32_t powers(const tandem_ntt_powers_args* args, tandem_stream stream) {
    if (!args->powers || args->split > 16) return TANDEM_INVALID;
    powers_kernel<P><<<blocks(uint64_t(2) << args->split, 128), 128, 0, stream>>>(*args);
    return status();
}

template <class P> int32_t stages(const tandem_ntt_stages_args* args, tandem_stream stream) {
    if (!args->stages) return TANDEM_INVALID;
    if (!valid_powers(args->powers, args->order_bits, args->split, MAX_LOG_ROWS)) return TANDEM_INVALID;
    stages_kernel<P><<<blocks(STAGE_NODES * STAGE_BLOCKS, 128), 128, 0, stream>>>(*args);
    return status();
}

template <class P> int32_t twiddles(const tandem_ntt_twiddles_args* args, tandem_stream stream) {
    const tandem_ntt_twiddles_args& a = *args;
    if (!a.twiddles || a.bits > MAX_LOG_N || a.log_rows > a.bits || a.known_bits > MAX_LOG_SHARDS)
        return TANDEM_INVALID;
    if (a.known >> a.known_bits) return TANDEM_INVALID;
    if (!valid_powers(a.powers, a.order_bits, a.split, a.bits + a.known_bits + a.odd)) return TANDEM_INVALID;
    twiddles_kernel<P><<<blocks(uint64_t(1) << a.bits, 128), 128, 0, stream>>>(a);
    return status();
}

template <class P> int32_t tiny(const tandem_ntt_tiny_args* args, tandem_stream stream) {
    if (!args->data || args->log_n > 2) return TANDEM_INVALID;
    tiny_kernel<P><<<1, 32, 0, stream>>>(*args);
    return status();
}

template <class P> int32_t tiny_spread(const tandem_ntt_tiny_spread_args* args, tandem_stream stream) {
    const tandem_ntt_tiny_spread_args& a = *args;
    if (a.log_shards > MAX_LOG_SHARDS || a.log_n > TANDEM_NTT_MAX_LOG_TINY || a.log_n < a.log_shards)
        return TANDEM_INVALID;
    if (!a.output || a.shard >> a.log_shards) return TANDEM_INVALID;
    for (uint32_t i = 0; i < 1u << a.log_shards; i++)
        if (!a.shards[i] || a.shards[i] == a.output) return TANDEM_INVALID;
    const uint32_t elements = 1u << (a.log_n - a.log_shards);
    // The tool takes this launch for two comparisons.
    // clang-format off
    tiny_spread_kernel<P><<<1, elements < 32 ? 32 : elements, 0, stream>>>(a);
    // clang-format on
    return status();
}

template <class P> int32_t scale(const tandem_ntt_scale_args* args, tandem_stream stream) {
    if (!args->data || !valid_powers(args->powers, 2 * args->split, args->split, args->log_n)) return TANDEM_INVALID;
    scale_kernel<P><<<blocks(uint64_t(1) << args->log_n, 256), 256, 0, stream>>>(*args);
    return status();
}

}  // namespace ntt
}  // namespace tandem

/// The functions of tandem_ops.h for the scalar field `field` under the name `curve`.
#define TANDEM_NTT_DEFINE(curve, field)                                                                     \
    int32_t tandem_ntt_powers_##curve(const tandem_ntt_powers_args* args, tandem_stream stream) {           \
        return tandem::ntt::powers<tandem::field>(args, stream);                                            \
    }                                                                                                       \
    int32_t tandem_ntt_stages_##curve(const tandem_ntt_stages_args* args, tandem_stream stream) {           \
        return tandem::ntt::stages<tandem::field>(args, stream);                                            \
    }                                                                                                       \
    int32_t tandem_ntt_twiddles_##curve(const tandem_ntt_twiddles_args* args, tandem_stream stream) {       \
        return tandem::ntt::twiddles<tandem::field>(args, stream);                                          \
    }                                                                                                       \
    int32_t tandem_ntt_pass_##curve(const tandem_ntt_pass_args* args, tandem_stream stream) {               \
        return tandem::ntt::pass<tandem::field>(args, stream);                                              \
    }                                                                                                       \
    int32_t tandem_ntt_spread_##curve(const tandem_ntt_spread_args* args, tandem_stream stream) {           \
        return tandem::ntt::pass<tandem::field>(args, stream);                                              \
    }                                                                                                       \
    int32_t tandem_ntt_product_##curve(const tandem_ntt_product_args* args, tandem_stream stream) {         \
        return tandem::ntt::pass<tandem::field>(args, stream);                                              \
    }                                                                                                       \
    int32_t tandem_ntt_batch_##curve(const tandem_ntt_batch_args* args, tandem_stream stream) {             \
        return tandem::ntt::batch<tandem::field>(args, stream);                                             \
    }                                                                                                       \
    int32_t tandem_ntt_tiny_##curve(const tandem_ntt_tiny_args* args, tandem_stream stream) {               \
        return tandem::ntt::tiny<tandem::field>(args, stream);                                              \
    }                                                                                                       \
    int32_t tandem_ntt_tiny_spread_##curve(const tandem_ntt_tiny_spread_args* args, tandem_stream stream) { \
        return tandem::ntt::tiny_spread<tandem::field>(args, stream);                                       \
    }                                                                                                       \
    int32_t tandem_ntt_scale_##curve(const tandem_ntt_scale_args* args, tandem_stream stream) {             \
        return tandem::ntt::scale<tandem::field>(args, stream);                                             \
    }

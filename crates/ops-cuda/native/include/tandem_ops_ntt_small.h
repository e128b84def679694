/// Transforms over small fields and of complex numbers. A part of tandem_ops.h, which says what holds for all launchers.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tandem_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

// An element is one 32-bit word of BabyBear, in Montgomery form, or two of Goldilocks, least significant first; as an argument it is a uint64_t. A
// complex number is its real part, then its imaginary one, each of one word or of two; as an argument it is real: the bits of a double. Vectors of a
// batch follow each other.

/// out[i] = base^(i * step) for i below count.
typedef struct tandem_ntt_small_powers_args {
    uint32_t* out;
    uint64_t base;
    uint64_t step;
    uint64_t count;
} tandem_ntt_small_powers_args;

/// Fewest and most bits that a pass goes over.
#define TANDEM_NTT_SMALL_MIN_LOG_ROWS 4
#define TANDEM_NTT_SMALL_MAX_LOG_ROWS 9

/// The 2^bits twiddles before a pass, in the order of the places: bits is low + log_rows of the pass if it is reversed, else
/// log_n - low.
typedef struct tandem_ntt_small_twiddles_args {
    uint32_t* out;
    const uint32_t* powers;
    uint32_t order_bits;
    uint32_t split;
    uint32_t bits;
    uint32_t log_rows;
    uint32_t reversed;
    uint32_t inverse;
} tandem_ntt_small_twiddles_args;

/// A pass over the bits low .. low + log_rows of the places of the 2^log_n elements of each of `count` vectors, as in
/// tandem_ntt_pass_args.
typedef struct tandem_ntt_small_pass_args {
    const uint32_t* input;
    uint32_t* output;
    /// The first 2^split powers of the root of unity of order 2^order_bits, then its 2^split-th powers, as many; of complex numbers in doubles.
    const uint32_t* powers;
    /// The twiddles between the two rounds of a pass of this log_rows and direction, of which the first is over the upper bits of
    /// the row (native/src/ntt/small.cuh says over how many): w^(bitrev(upper bits) * lower bits) at the place of which those are the
    /// lower bits, for the root w of order 2^log_rows or its inverse.
    const uint32_t* stages;
    /// What tandem_ntt_small_twiddles_* made for this pass, or null to compute the twiddles before it from the powers.
    const uint32_t* twiddles;
    /// Null, or the 2^log_rows powers g^(row * 2^(bits of the index below the row)) for a forward transform over g times the subgroup.
    const uint32_t* coset;
    /// All elements are multiplied by it, if `multiply` and there is no table of twiddles.
    uint64_t scale;
    uint64_t count;
    uint32_t order_bits;
    uint32_t split;
    uint32_t log_n;
    uint32_t low;
    uint32_t log_rows;
    uint32_t reversed;
    uint32_t inverse;
    /// Whether there are twiddles before this pass: it is not the first, or there is a coset or a scale.
    uint32_t multiply;
    uint32_t reorder;
    uint32_t last;
    /// Whether what was launched before on the stream is the pass before this one, or another one that writes none of the
    /// tables: blocks may then start while it ends.
    uint32_t follows;
} tandem_ntt_small_pass_args;

/// A pass over a shard, as tandem_ntt_spread_args: count is 1.
typedef struct tandem_ntt_small_spread_args {
    tandem_ntt_small_pass_args pass;
    uint32_t* targets[16];
    uint32_t log_shards;
    uint32_t sections_in;
    uint32_t scatter;
    uint32_t known_bits;
    uint32_t known;
} tandem_ntt_small_spread_args;

/// Vectors of up to 8 elements: out_i = scale * after^i * sum of in_j * before^j * root^(i j), in place.
typedef struct tandem_ntt_small_tiny_args {
    uint32_t* data;
    uint64_t root;
    uint64_t scale;
    uint64_t before;
    uint64_t after;
    uint64_t count;
    uint32_t log_n;
    uint32_t input_reversed;
    uint32_t output_reversed;
} tandem_ntt_small_tiny_args;

/// The part of one of 2^log_shards shards in the transform of a vector of up to 2^TANDEM_NTT_MAX_LOG_TINY elements, all of which this
/// device can reach: out_i = scale * after^i * sum of in_j * before^j * root^(i j).
typedef struct tandem_ntt_small_tiny_spread_args {
    const uint32_t* shards[16];
    /// In other memory.
    uint32_t* output;
    uint64_t root;
    uint64_t scale;
    uint64_t before;
    uint64_t after;
    uint32_t log_n;
    uint32_t log_shards;
    uint32_t shard;
    uint32_t input_reversed;
    uint32_t output_reversed;
} tandem_ntt_small_tiny_spread_args;

/// Element i of each of `count` vectors of 2^log_n elements times base^i, by the first 2^split powers of base and its 2^split-th powers.
typedef struct tandem_ntt_small_scale_args {
    uint32_t* data;
    const uint32_t* powers;
    uint64_t count;
    uint32_t split;
    uint32_t log_n;
    uint32_t reversed;
} tandem_ntt_small_scale_args;

/// Of complex numbers the parts of 2^log_shards shards in transforms of 2^log_n numbers, at most 2^TANDEM_NTT_MAX_LOG_TINY, all of which this device can
/// reach: out_k = scale * sum of in_j * root^(j k), or of the inverse root. Where there is one shard, it may have `count` vectors.
typedef struct tandem_ntt_small_sum_args {
    const uint32_t* shards[16];
    /// In other memory.
    uint32_t* output;
    /// As in tandem_ntt_small_pass_args.
    const uint32_t* powers;
    uint64_t scale;
    uint64_t count;
    uint32_t order_bits;
    uint32_t split;
    uint32_t log_n;
    uint32_t log_shards;
    uint32_t shard;
    uint32_t inverse;
} tandem_ntt_small_sum_args;

// The launchers of what is over every kind of numbers: goldilocks, baby_bear, complex32 and complex64.
#define TANDEM_NTT_SMALL_PASSES(name)                                                                           \
    int32_t tandem_ntt_small_twiddles_##name(const tandem_ntt_small_twiddles_args* args, tandem_stream stream); \
    int32_t tandem_ntt_small_pass_##name(const tandem_ntt_small_pass_args* args, tandem_stream stream);         \
    int32_t tandem_ntt_small_spread_##name(const tandem_ntt_small_spread_args* args, tandem_stream stream)

// The others over fields.
#define TANDEM_NTT_SMALL_OVER_FIELD(name)                                                                             \
    int32_t tandem_ntt_small_powers_##name(const tandem_ntt_small_powers_args* args, tandem_stream stream);           \
    int32_t tandem_ntt_small_tiny_##name(const tandem_ntt_small_tiny_args* args, tandem_stream stream);               \
    int32_t tandem_ntt_small_tiny_spread_##name(const tandem_ntt_small_tiny_spread_args* args, tandem_stream stream); \
    int32_t tandem_ntt_small_scale_##name(const tandem_ntt_small_scale_args* args, tandem_stream stream)

TANDEM_NTT_SMALL_PASSES(goldilocks);
TANDEM_NTT_SMALL_OVER_FIELD(goldilocks);
TANDEM_NTT_SMALL_PASSES(baby_bear);
TANDEM_NTT_SMALL_OVER_FIELD(baby_bear);
TANDEM_NTT_SMALL_PASSES(complex32);
TANDEM_NTT_SMALL_PASSES(complex64);

int32_t tandem_ntt_small_sum_complex32(const tandem_ntt_small_sum_args* args, tandem_stream stream);
int32_t tandem_ntt_small_sum_complex64(const tandem_ntt_small_sum_args* args, tandem_stream stream);

#ifdef __cplusplus
}
#endif

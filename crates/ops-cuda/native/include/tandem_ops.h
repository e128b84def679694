/// The primitives on a GPU: what is launched on a stream.
///
/// This header is the truth: `cargo xtask bindgen` makes src/ffi.rs and native/src/layout.cu from it (the subset of C it
/// reads is described in tandem_cuda.h, as are the codes that functions return).
///
/// Every launcher computes a grid and launches on `stream`, whose device is the current one. It allocates nothing,
/// waits for nothing and keeps nothing. Pointers are device memory unless a description says host; memory is read and
/// written when the stream gets there. Where a function needs scratch memory, `<name>_scratch` with the same
/// arguments says how many bytes; the pointers in its arguments may be null. Scratch is aligned to 256 bytes, its
/// contents are undefined before and after.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tandem_cuda.h"
#include "tandem_ops_ntt_small.h"
#include "tandem_ops_sort.h"
#include "tandem_ops_sumcheck.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An element of a scalar field: little-endian limbs, least significant first, below the modulus.
typedef struct tandem_scalar {
    uint64_t limb[4];
} tandem_scalar;

// Functions that differ in their names alone: `what` is one of the first three.
#define TANDEM_LAUNCHER(name, type) int32_t name(const type* args, tandem_stream stream)
#define TANDEM_SCRATCH(name, type) int32_t name##_scratch(const type* args, size_t* bytes)
#define TANDEM_IN_SCRATCH(name, type) \
    int32_t name(const type* args, void* scratch, size_t scratch_bytes, tandem_stream stream)
#define TANDEM_EACH_CURVE(what, name, type) \
    what(name##_bn254, type);               \
    what(name##_bls12_381, type)
#define TANDEM_EACH_GROUP(what, name, type) \
    what(name##_bn254_g1, type);            \
    what(name##_bn254_g2, type);            \
    what(name##_bls12_381_g1, type);        \
    what(name##_bls12_381_g2, type)

// ---- vector: element-wise arithmetic

/// out = a + b
#define TANDEM_VECTOR_ADD 0
/// out = a - b
#define TANDEM_VECTOR_SUB 1
/// out = a * b
#define TANDEM_VECTOR_MUL 2
/// out = a * k
#define TANDEM_VECTOR_SCALE 3
/// out = a * b - c
#define TANDEM_VECTOR_MUL_SUB 4
/// out = the integer that a is
#define TANDEM_VECTOR_TO_CANONICAL 5
/// out = a, an integer, in Montgomery form
#define TANDEM_VECTOR_TO_MONT 6
/// Every `step`-th element: out[i * step] = a[i * step] + k * b[i]
#define TANDEM_VECTOR_ADD_SCALED 7

/// One operation on vectors of n elements in Montgomery form, except where it says otherwise. `out` may be any of the
/// inputs. What the operation does not name may be null.
typedef struct tandem_vector_args {
    tandem_scalar* out;
    const tandem_scalar* a;
    const tandem_scalar* b;
    const tandem_scalar* c;
    tandem_scalar k;
    uint64_t n;
    /// Of the operations that name it; at least 1.
    uint64_t step;
    uint32_t op;
} tandem_vector_args;

TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_vector, tandem_vector_args);

/// Most terms of a combination.
#define TANDEM_COMBINED_TERMS 16

/// out[i] = the sum of factors[j] vectors[j][i] over the first `terms` vectors that have an element i, for i below n. Vector j has
/// lengths[j] elements, n at most. `out` is none of the vectors.
typedef struct tandem_combined_args {
    tandem_scalar* out;
    const tandem_scalar* vectors[16];
    uint64_t lengths[16];
    tandem_scalar factors[16];
    uint64_t n;
    uint32_t terms;
} tandem_combined_args;

TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_combined, tandem_combined_args);

// ---- plonk_rows: what the gates and the permutation of PLONK say, row by row

/// out = qm a b + ql a + qr b + qo c + qc on n rows, for columns a, b and c and selectors qm, ql, qr, qo and qc. `out` is none of them.
typedef struct tandem_gate_rows_args {
    tandem_scalar* out;
    const tandem_scalar* columns[3];
    const tandem_scalar* selectors[5];
    uint64_t n;
} tandem_gate_rows_args;

TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_gate_rows, tandem_gate_rows_args);

/// out = the product of columns[j] + factors[j] places[j] + gamma over the three columns, on n rows. `out` is no column and no place.
typedef struct tandem_permuted_rows_args {
    tandem_scalar* out;
    const tandem_scalar* columns[3];
    const tandem_scalar* places[3];
    tandem_scalar factors[3];
    tandem_scalar gamma;
    uint64_t n;
} tandem_permuted_rows_args;

TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_permuted_rows, tandem_permuted_rows_args);

/// What must vanish on the domain, on n rows of a coset:
/// out = qm a b + ql a + qr b + qo c + qc + public_factor l1
///     + alpha ((a + beta x + gamma)(b + beta k1 x + gamma)(c + beta k2 x + gamma) z
///              - (a + beta s1 + gamma)(b + beta s2 + gamma)(c + beta s3 + gamma) zw) + alpha^2 (z - 1) l1
/// `vectors` are a, b, c, z, zw, qm, ql, qr, qo, qc, s1, s2, s3, x and l1; `numbers` are alpha, beta, gamma, k1, k2 and public_factor.
/// `out` is none of the vectors.
typedef struct tandem_quotient_rows_args {
    tandem_scalar* out;
    const tandem_scalar* vectors[15];
    tandem_scalar numbers[6];
    uint64_t n;
} tandem_quotient_rows_args;

TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_quotient_rows, tandem_quotient_rows_args);

// ---- batch_inverse: inverses of many elements

/// Most threads that share the elements.
#define TANDEM_BATCH_INVERSE_THREADS 16777216

/// n elements in Montgomery form become their inverses; zeros stay zero. `threads`, 1 to n and to TANDEM_BATCH_INVERSE_THREADS, make an
/// inversion each.
typedef struct tandem_batch_inverse_args {
    tandem_scalar* data;
    uint64_t n;
    uint64_t threads;
} tandem_batch_inverse_args;

TANDEM_EACH_CURVE(TANDEM_SCRATCH, tandem_batch_inverse, tandem_batch_inverse_args);
TANDEM_EACH_CURVE(TANDEM_IN_SCRATCH, tandem_batch_inverse, tandem_batch_inverse_args);

// ---- scan: prefix products, and Horner's scheme

/// Rows that a thread takes.
#define TANDEM_SCAN_CHUNK 16

/// What precedes an element is the product of those before it.
#define TANDEM_SCAN_PRODUCT 0
/// It is the value at `factor` of the polynomial whose coefficients are the elements behind it, the nearest one first.
#define TANDEM_SCAN_HORNER 1

/// One level of a scan of the columns of a table of n elements in Montgomery form, the last row of which may be short
/// (native/src/scan/scan.cuh). tandem_scan_totals_* makes `chunks` of `data`: an element for each column of each TANDEM_SCAN_CHUNK rows.
/// tandem_scan_apply_* scans `data` in place, once `chunks` says what precedes each chunk; null: there is one, and nothing does.
typedef struct tandem_scan_args {
    tandem_scalar* data;
    tandem_scalar* chunks;
    tandem_scalar factor;
    uint64_t n;
    /// 1 to n.
    uint64_t columns;
    uint32_t op;
    /// Whether an element becomes what precedes it, and not what it makes with that.
    uint32_t exclusive;
} tandem_scan_args;

TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_scan_totals, tandem_scan_args);
TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_scan_apply, tandem_scan_args);

// ---- point_ntt: inverse transforms of points

/// Most points of a transform, as a power of two.
#define TANDEM_POINT_NTT_MAX_LOG_N 28

/// 2^log_n affine points of G1, in the limbs of the wire, become (1/n) sum_i w^(-i j) points[i] for j below n = 2^log_n, in natural order.
/// factors[0] is 1/n. factors[i] is, for i from 1 to n/2 - 1, the power of 1/w whose number is i with its log_n - 1 bits in reverse. All are
/// integers plus 8 (1 + 16 + .. + 16^63), so that each hexadecimal digit less 8 is a signed one.
typedef struct tandem_point_ntt_args {
    uint64_t* points;
    const tandem_scalar* factors;
    uint32_t log_n;
} tandem_point_ntt_args;

TANDEM_EACH_CURVE(TANDEM_SCRATCH, tandem_point_ntt, tandem_point_ntt_args);
TANDEM_EACH_CURVE(TANDEM_IN_SCRATCH, tandem_point_ntt, tandem_point_ntt_args);

// ---- gather: elements picked by a map of indices

/// `to[i] = from[map[i]]` for i below n, of elements of a multiple of 4 bytes. Indices are taken as they are.
typedef struct tandem_gather_args {
    const uint8_t* from;
    uint8_t* to;
    const uint32_t* map;
    uint64_t n;
    uint32_t element_bytes;
} tandem_gather_args;

int32_t tandem_gather(const tandem_gather_args* args, tandem_stream stream);

// ---- ntt: number-theoretic transforms

/// An element w of a scalar field as an integer, then the limbs of floor(w * 2^256 / modulus).
typedef struct tandem_ntt_twiddle {
    uint64_t limb[8];
} tandem_ntt_twiddle;

/// powers[i] = first * base^i for i < 2^split, powers[2^split + i] = base^(i * 2^split); split is at most 16.
typedef struct tandem_ntt_powers_args {
    tandem_ntt_twiddle* powers;
    tandem_scalar first;
    tandem_scalar base;
    uint32_t split;
} tandem_ntt_powers_args;

/// Fewest and most bits that a pass goes over.
#define TANDEM_NTT_MIN_LOG_ROWS 3
#define TANDEM_NTT_MAX_LOG_ROWS 9
/// Number of the twiddles inside of passes.
#define TANDEM_NTT_STAGE_TWIDDLES 384

/// The twiddles inside of passes, TANDEM_NTT_STAGE_TWIDDLES of them, of the root of unity of order 2^order_bits whose powers are given,
/// or of its inverse.
typedef struct tandem_ntt_stages_args {
    tandem_ntt_twiddle* stages;
    const tandem_ntt_twiddle* powers;
    uint32_t order_bits;
    uint32_t split;
    uint32_t inverse;
} tandem_ntt_stages_args;

/// The 2^bits twiddles before a pass, times `scale`. Bits is low + log_rows of the pass if it is reversed, else
/// log_n - low. Where the pass is over a shard, the places of all elements have `known_bits` more: `known`, above the
/// 2^bits, or below them if the pass is reversed.
typedef struct tandem_ntt_twiddles_args {
    tandem_ntt_twiddle* twiddles;
    const tandem_ntt_twiddle* powers;
    tandem_scalar scale;
    uint32_t order_bits;
    uint32_t split;
    uint32_t bits;
    uint32_t log_rows;
    uint32_t reversed;
    uint32_t odd;
    uint32_t inverse;
    uint32_t known_bits;
    uint32_t known;
} tandem_ntt_twiddles_args;

/// A pass over the bits low .. low + log_rows of the places of 2^log_n elements. Passes go from the
/// upper bits to the lower ones, or, reversed, the other way; the input is in natural order, or, reversed, in
/// bit-reversed order, and the output in the other one, unless the last pass has `reorder`, which needs `output` to be
/// other memory than `input` where there is more than one pass. Only the output of the pass with `last` is below the modulus.
typedef struct tandem_ntt_pass_args {
    const tandem_scalar* input;
    tandem_scalar* output;
    const tandem_ntt_twiddle* stages;
    /// What tandem_ntt_twiddles_* made for this pass, or null to compute them from the powers.
    const tandem_ntt_twiddle* twiddles;
    const tandem_ntt_twiddle* powers;
    uint32_t order_bits;
    uint32_t split;
    uint32_t log_n;
    uint32_t low;
    uint32_t log_rows;
    uint32_t reversed;
    uint32_t odd;
    uint32_t inverse;
    /// Whether there are twiddles before this pass.
    uint32_t multiply;
    uint32_t reorder;
    uint32_t last;
} tandem_ntt_pass_args;

/// Most shards of a vector.
#define TANDEM_NTT_MAX_SHARDS 16

/// What a pass over a shard writes stays in the shard.
#define TANDEM_NTT_STAY 0
/// It goes to the section of its place's upper bits.
#define TANDEM_NTT_BY_HIGH_BITS 1
/// It goes to the section of its place's lowest bits, to the place without these.
#define TANDEM_NTT_BY_LOW_BITS 2

/// A pass over a shard of a transform that is spread over 2^log_shards lanes (native/src/ntt/spread.cuh), whose places have
/// log_n bits. A section is 2^(log_n - log_shards) elements.
typedef struct tandem_ntt_spread_args {
    tandem_ntt_pass_args pass;
    /// Where the sections of the output go, in this or another lane's memory, if they do not stay.
    tandem_scalar* targets[16];
    uint32_t log_shards;
    /// Whether the input is in sections: its element of a place lies in the section of the place's lowest bits.
    uint32_t sections_in;
    uint32_t scatter;
    /// The bits of all elements' places that tell the shard, and how many they are: none before they are known.
    uint32_t known_bits;
    uint32_t known;
} tandem_ntt_spread_args;

/// A pass with pointwise products: what is read is first multiplied by the elements of `times` at the same places, in the first pass, and
/// instead of x goes out a * b - x, of the elements of `a` and `b` at the places that are written to, in the last one. Null: not so.
typedef struct tandem_ntt_product_args {
    tandem_ntt_pass_args pass;
    const tandem_scalar* times;
    const tandem_scalar* a;
    const tandem_scalar* b;
} tandem_ntt_product_args;

/// A pass over `count` vectors that lie one behind the other, the first where `pass` says.
typedef struct tandem_ntt_batch_args {
    tandem_ntt_pass_args pass;
    uint64_t count;
} tandem_ntt_batch_args;

/// Up to 4 elements: out_i = scale * sum of in_j * root^(i j), in place.
typedef struct tandem_ntt_tiny_args {
    tandem_scalar* data;
    tandem_scalar root;
    tandem_scalar scale;
    uint32_t log_n;
    uint32_t input_reversed;
    uint32_t output_reversed;
} tandem_ntt_tiny_args;

/// Greatest log_n of tandem_ntt_tiny_spread.
#define TANDEM_NTT_MAX_LOG_TINY 7

/// One of 2^log_shards shards of a vector of 2^log_n elements, at most 2^TANDEM_NTT_MAX_LOG_TINY, all of which this device can reach:
/// out_i = scale * sum of in_j * root^(i j).
typedef struct tandem_ntt_tiny_spread_args {
    const tandem_scalar* shards[16];
    /// The shard's part of the output, in other memory.
    tandem_scalar* output;
    tandem_scalar root;
    tandem_scalar scale;
    uint32_t log_n;
    uint32_t log_shards;
    uint32_t shard;
    uint32_t input_reversed;
    uint32_t output_reversed;
} tandem_ntt_tiny_spread_args;

/// Element i of 2^log_n times first * base^i, by the powers of base with 2 * split >= log_n.
typedef struct tandem_ntt_scale_args {
    tandem_scalar* data;
    const tandem_ntt_twiddle* powers;
    uint32_t split;
    uint32_t log_n;
    uint32_t reversed;
} tandem_ntt_scale_args;

TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_ntt_powers, tandem_ntt_powers_args);
TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_ntt_stages, tandem_ntt_stages_args);
TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_ntt_twiddles, tandem_ntt_twiddles_args);
TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_ntt_pass, tandem_ntt_pass_args);
TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_ntt_spread, tandem_ntt_spread_args);
TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_ntt_product, tandem_ntt_product_args);
TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_ntt_batch, tandem_ntt_batch_args);
TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_ntt_tiny, tandem_ntt_tiny_args);
TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_ntt_tiny_spread, tandem_ntt_tiny_spread_args);
TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_ntt_scale, tandem_ntt_scale_args);

// ---- spmv: a sparse matrix times a vector

/// The matrix by rows: row i has the entries starts[i] .. starts[i + 1], each a column and an index into values, which
/// are in Montgomery form times 2^256. `order` holds the numbers of all rows: first those that one thread each does,
/// then those that one warp each does, then those that one block each does. output[i] = row i times x, whose elements
/// are integers; output[rows .. output_length] = 0.
typedef struct tandem_spmv_args {
    const uint32_t* starts;
    const uint32_t* column;
    const uint32_t* value;
    const tandem_scalar* values;
    const uint32_t* order;
    uint64_t rows;
    uint64_t thread_rows;
    uint64_t warp_rows;
    const tandem_scalar* x;
    tandem_scalar* output;
    uint64_t output_length;
} tandem_spmv_args;

TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_spmv, tandem_spmv_args);

// ---- poseidon: hashes of columns

/// Hashes of `width` - 1 elements each, which lie side by side in `input`. `table` is the sequence of elements that
/// crates/ops/src/poseidon/tables.rs describes; with `integers`, input and output are integers below the modulus, else in
/// Montgomery form.
typedef struct tandem_poseidon_args {
    const tandem_scalar* input;
    tandem_scalar* output;
    const tandem_scalar* table;
    uint64_t hashes;
    /// 2 to 12.
    uint32_t width;
    uint32_t full_rounds;
    uint32_t partial_rounds;
    /// Partial rounds of a block, 1 to 8.
    uint32_t block;
    uint32_t integers;
} tandem_poseidon_args;

TANDEM_EACH_CURVE(TANDEM_LAUNCHER, tandem_poseidon, tandem_poseidon_args);

// ---- reduce: one element of many

/// The sum: of integers modulo 2^32 or 2^64, of field elements modulo the modulus.
#define TANDEM_REDUCE_SUM 0
/// The least element.
#define TANDEM_REDUCE_MIN 1
/// The greatest element.
#define TANDEM_REDUCE_MAX 2
/// Bytes of a tile, and tiles of a group.
#define TANDEM_REDUCE_TILE 65536
#define TANDEM_REDUCE_GROUP 256

/// n elements of the launcher's type from `data` on, which is aligned to 16 bytes and may be another GPU's memory that this one
/// reaches. `groups` gets one element for each group. Elements of a field are integers; where one is not below the modulus, the index
/// of the first such, counted from `first`, becomes the value of `too_large` if that is greater. For numbers it may be null.
typedef struct tandem_reduce_args {
    const uint8_t* data;
    uint8_t* groups;
    uint64_t* too_large;
    uint64_t n;
    uint64_t first;
    uint32_t op;
} tandem_reduce_args;

int32_t tandem_reduce_u32(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes, tandem_stream stream);
int32_t tandem_reduce_u32_scratch(const tandem_reduce_args* args, size_t* bytes);
int32_t tandem_reduce_u64(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes, tandem_stream stream);
int32_t tandem_reduce_u64_scratch(const tandem_reduce_args* args, size_t* bytes);
int32_t tandem_reduce_f32(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes, tandem_stream stream);
int32_t tandem_reduce_f32_scratch(const tandem_reduce_args* args, size_t* bytes);
int32_t tandem_reduce_f64(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes, tandem_stream stream);
int32_t tandem_reduce_f64_scratch(const tandem_reduce_args* args, size_t* bytes);
TANDEM_EACH_CURVE(TANDEM_IN_SCRATCH, tandem_reduce, tandem_reduce_args);
TANDEM_EACH_CURVE(TANDEM_SCRATCH, tandem_reduce, tandem_reduce_args);

// ---- msm: multi-scalar multiplication

/// Places, below one that would take a carry alone, of which a digit may do without (tandem_msm_shape.carry_free_windows).
#define TANDEM_MSM_CARRY_FREE_WINDOWS 3

/// How scalars are taken apart and how points are held. A window of `window_bits` bits at place j, which is bit step_bits * j, belongs to
/// bucket set j % bucket_sets and to level d * (j / bucket_sets) of a table of points, whose level d * k + v, v < d, holds
/// 2^(step_bits * bucket_sets * k + v) times the points, one level after the other; d is levels_per_window.
typedef struct tandem_msm_shape {
    /// Scalars of a vector.
    uint64_t scalars;
    /// 2 to 24, or 3 to 24 for windows that begin anywhere.
    uint32_t window_bits;
    /// Digits that a scalar has at most: enough for the scalar field's bits.
    uint32_t windows;
    /// Bits from one place where a window may begin to the next: window_bits, or 1 for windows that begin anywhere.
    uint32_t step_bits;
    /// Those places: enough for the scalar field's bits.
    uint32_t window_positions;
    uint32_t bucket_sets;
    uint32_t table_levels;
    /// Levels of a place: 1, or up to window_bits - 2 for windows that follow one another in one bucket set. With more than 1 a digit
    /// 2^v * odd with v below them takes level v of its place and the bucket of its odd part.
    uint32_t levels_per_window;
    /// At so many places below the last one, up to TANDEM_MSM_CARRY_FREE_WINDOWS and in one bucket set, an even digit above half its range may stay, so
    /// that nothing is carried to the last place: half of it goes to the level of 2P. With more levels per window than 1 there is one; with 1 each of
    /// these places has two levels, of P and of 2P, behind those of the places below and before that of the last place.
    uint32_t carry_free_windows;
    /// Bits of an entry that hold the index of a scalar; those between them and the sign hold the level.
    uint32_t index_bits;
} tandem_msm_shape;

/// Scalars to `entries` ordered by bucket, of which those of bucket k begin at offsets[k].
typedef struct tandem_msm_digits_args {
    tandem_msm_shape shape;
    const tandem_scalar* scalars;
    /// 1 if the scalars are in Montgomery form.
    uint32_t montgomery;
    /// Room for scalars * windows.
    uint32_t* entries;
    /// Room for one more than there are buckets.
    uint32_t* offsets;
} tandem_msm_digits_args;

/// Level 0 of `table` to all levels. Points are affine, in the limbs of the wire.
typedef struct tandem_msm_table_args {
    tandem_msm_shape shape;
    uint64_t points;
    uint64_t* table;
} tandem_msm_table_args;

#define TANDEM_MSM_ROUNDS 8

/// The sum over points of which number i belongs to scalar first + i, as partial sums, of which each bucket set has one
/// more than the numbers of its buckets have bits, or with more levels per window than 1 those of odd digits first and then the others:
/// first tandem_msm_accumulate_*, which takes all entries to buckets, then tandem_msm_reduce_* with the same scratch memory,
/// for which much of a GPU has no use: it may go to another stream, which waits for the first. Only it writes `sums`, and it
/// needs no entries, offsets and points any more.
typedef struct tandem_msm_sum_args {
    tandem_msm_shape shape;
    uint64_t first;
    uint64_t points;
    const uint64_t* table;
    const uint32_t* entries;
    const uint32_t* offsets;
    /// Room for as many points of four coordinates, x, y, zz, zzz, set after set: the sum of all its buckets, then for bit 0, bit 1 and so
    /// on that of the buckets whose number has it.
    uint64_t* sums;
    /// Rounds of affine additions before those in XYZZ coordinates, up to TANDEM_MSM_ROUNDS. And the entries,
    /// 2^8 to 2^30, that they are made for at a time: scratch memory grows with as many points.
    uint32_t rounds;
    uint32_t chunk;
} tandem_msm_sum_args;

TANDEM_EACH_CURVE(TANDEM_SCRATCH, tandem_msm_digits, tandem_msm_digits_args);
TANDEM_EACH_CURVE(TANDEM_IN_SCRATCH, tandem_msm_digits, tandem_msm_digits_args);

TANDEM_EACH_GROUP(TANDEM_SCRATCH, tandem_msm_table, tandem_msm_table_args);
TANDEM_EACH_GROUP(TANDEM_IN_SCRATCH, tandem_msm_table, tandem_msm_table_args);
TANDEM_EACH_GROUP(TANDEM_SCRATCH, tandem_msm_sum, tandem_msm_sum_args);
TANDEM_EACH_GROUP(TANDEM_IN_SCRATCH, tandem_msm_accumulate, tandem_msm_sum_args);
TANDEM_EACH_GROUP(TANDEM_IN_SCRATCH, tandem_msm_reduce, tandem_msm_sum_args);

#ifdef __cplusplus
}
#endif

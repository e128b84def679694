//! The declarations of tandem_ops.h, made by `cargo xtask bindgen`. Not to be edited.
#![allow(missing_docs, non_camel_case_types, dead_code, unreachable_pub, clippy::missing_safety_doc)]

pub use tandem_cuda::ffi::tandem_stream;

/// An element of a scalar field: little-endian limbs, least significant first, below the modulus.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_scalar {
    pub limb: [u64; 4],
}

/// out = a + b
pub const TANDEM_VECTOR_ADD: i32 = 0;

/// out = a - b
pub const TANDEM_VECTOR_SUB: i32 = 1;

/// out = a * b
pub const TANDEM_VECTOR_MUL: i32 = 2;

/// out = a * k
pub const TANDEM_VECTOR_SCALE: i32 = 3;

/// out = a * b - c
pub const TANDEM_VECTOR_MUL_SUB: i32 = 4;

/// out = the integer that a is
pub const TANDEM_VECTOR_TO_CANONICAL: i32 = 5;

/// out = a, an integer, in Montgomery form
pub const TANDEM_VECTOR_TO_MONT: i32 = 6;

/// Every `step`-th element: out[i * step] = a[i * step] + k * b[i]
pub const TANDEM_VECTOR_ADD_SCALED: i32 = 7;

/// One operation on vectors of n elements in Montgomery form, except where it says otherwise. `out` may be any of the
/// inputs. What the operation does not name may be null.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_vector_args {
    pub out: *mut tandem_scalar,
    pub a: *const tandem_scalar,
    pub b: *const tandem_scalar,
    pub c: *const tandem_scalar,
    pub k: tandem_scalar,
    pub n: u64,
    /// Of the operations that name it; at least 1.
    pub step: u64,
    pub op: u32,
}

/// Most terms of a combination.
pub const TANDEM_COMBINED_TERMS: i32 = 16;

/// out[i] = the sum of factors[j] vectors[j][i] over the first `terms` vectors that have an element i, for i below n. Vector j has
/// lengths[j] elements, n at most. `out` is none of the vectors.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_combined_args {
    pub out: *mut tandem_scalar,
    pub vectors: [*const tandem_scalar; 16],
    pub lengths: [u64; 16],
    pub factors: [tandem_scalar; 16],
    pub n: u64,
    pub terms: u32,
}

/// out = qm a b + ql a + qr b + qo c + qc on n rows, for columns a, b and c and selectors qm, ql, qr, qo and qc. `out` is none of them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_gate_rows_args {
    pub out: *mut tandem_scalar,
    pub columns: [*const tandem_scalar; 3],
    pub selectors: [*const tandem_scalar; 5],
    pub n: u64,
}

/// out = the product of columns[j] + factors[j] places[j] + gamma over the three columns, on n rows. `out` is no column and no place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_permuted_rows_args {
    pub out: *mut tandem_scalar,
    pub columns: [*const tandem_scalar; 3],
    pub places: [*const tandem_scalar; 3],
    pub factors: [tandem_scalar; 3],
    pub gamma: tandem_scalar,
    pub n: u64,
}

/// What must vanish on the domain, on n rows of a coset:
/// out = qm a b + ql a + qr b + qo c + qc + public_factor l1
///     + alpha ((a + beta x + gamma)(b + beta k1 x + gamma)(c + beta k2 x + gamma) z
///              - (a + beta s1 + gamma)(b + beta s2 + gamma)(c + beta s3 + gamma) zw) + alpha^2 (z - 1) l1
/// `vectors` are a, b, c, z, zw, qm, ql, qr, qo, qc, s1, s2, s3, x and l1; `numbers` are alpha, beta, gamma, k1, k2 and public_factor.
/// `out` is none of the vectors.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_quotient_rows_args {
    pub out: *mut tandem_scalar,
    pub vectors: [*const tandem_scalar; 15],
    pub numbers: [tandem_scalar; 6],
    pub n: u64,
}

/// Most threads that share the elements.
pub const TANDEM_BATCH_INVERSE_THREADS: i32 = 16777216;

/// n elements in Montgomery form become their inverses; zeros stay zero. `threads`, 1 to n and to TANDEM_BATCH_INVERSE_THREADS, make an
/// inversion each.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_batch_inverse_args {
    pub data: *mut tandem_scalar,
    pub n: u64,
    pub threads: u64,
}

/// Rows that a thread takes.
pub const TANDEM_SCAN_CHUNK: i32 = 16;

/// What precedes an element is the product of those before it.
pub const TANDEM_SCAN_PRODUCT: i32 = 0;

/// It is the value at `factor` of the polynomial whose coefficients are the elements behind it, the nearest one first.
pub const TANDEM_SCAN_HORNER: i32 = 1;

/// One level of a scan of the columns of a table of n elements in Montgomery form, the last row of which may be short
/// (native/src/scan/scan.cuh). tandem_scan_totals_* makes `chunks` of `data`: an element for each column of each TANDEM_SCAN_CHUNK rows.
/// tandem_scan_apply_* scans `data` in place, once `chunks` says what precedes each chunk; null: there is one, and nothing does.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_scan_args {
    pub data: *mut tandem_scalar,
    pub chunks: *mut tandem_scalar,
    pub factor: tandem_scalar,
    pub n: u64,
    /// 1 to n.
    pub columns: u64,
    pub op: u32,
    /// Whether an element becomes what precedes it, and not what it makes with that.
    pub exclusive: u32,
}

/// Most points of a transform, as a power of two.
pub const TANDEM_POINT_NTT_MAX_LOG_N: i32 = 28;

/// 2^log_n affine points of G1, in the limbs of the wire, become (1/n) sum_i w^(-i j) points[i] for j below n = 2^log_n, in natural order.
/// factors[0] is 1/n. factors[i] is, for i from 1 to n/2 - 1, the power of 1/w whose number is i with its log_n - 1 bits in reverse. All are
/// integers plus 8 (1 + 16 + .. + 16^63), so that each hexadecimal digit less 8 is a signed one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_point_ntt_args {
    pub points: *mut u64,
    pub factors: *const tandem_scalar,
    pub log_n: u32,
}

/// `to[i] = from[map[i]]` for i below n, of elements of a multiple of 4 bytes. Indices are taken as they are.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_gather_args {
    pub from: *const u8,
    pub to: *mut u8,
    pub map: *const u32,
    pub n: u64,
    pub element_bytes: u32,
}

/// An element w of a scalar field as an integer, then the limbs of floor(w * 2^256 / modulus).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_twiddle {
    pub limb: [u64; 8],
}

/// powers[i] = first * base^i for i < 2^split, powers[2^split + i] = base^(i * 2^split); split is at most 16.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_powers_args {
    pub powers: *mut tandem_ntt_twiddle,
    pub first: tandem_scalar,
    pub base: tandem_scalar,
    pub split: u32,
}

/// Fewest and most bits that a pass goes over.
pub const TANDEM_NTT_MIN_LOG_ROWS: i32 = 3;

pub const TANDEM_NTT_MAX_LOG_ROWS: i32 = 9;

/// Number of the twiddles inside of passes.
pub const TANDEM_NTT_STAGE_TWIDDLES: i32 = 384;

/// The twiddles inside of passes, TANDEM_NTT_STAGE_TWIDDLES of them, of the root of unity of order 2^order_bits whose powers are given,
/// or of its inverse.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_stages_args {
    pub stages: *mut tandem_ntt_twiddle,
    pub powers: *const tandem_ntt_twiddle,
    pub order_bits: u32,
    pub split: u32,
    pub inverse: u32,
}

/// The 2^bits twiddles before a pass, times `scale`. Bits is low + log_rows of the pass if it is reversed, else
/// log_n - low. Where the pass is over a shard, the places of all elements have `known_bits` more: `known`, above the
/// 2^bits, or below them if the pass is reversed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_twiddles_args {
    pub twiddles: *mut tandem_ntt_twiddle,
    pub powers: *const tandem_ntt_twiddle,
    pub scale: tandem_scalar,
    pub order_bits: u32,
    pub split: u32,
    pub bits: u32,
    pub log_rows: u32,
    pub reversed: u32,
    pub odd: u32,
    pub inverse: u32,
    pub known_bits: u32,
    pub known: u32,
}

/// A pass over the bits low .. low + log_rows of the places of 2^log_n elements. Passes go from the
/// upper bits to the lower ones, or, reversed, the other way; the input is in natural order, or, reversed, in
/// bit-reversed order, and the output in the other one, unless the last pass has `reorder`, which needs `output` to be
/// other memory than `input` where there is more than one pass. Only the output of the pass with `last` is below the modulus.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_pass_args {
    pub input: *const tandem_scalar,
    pub output: *mut tandem_scalar,
    pub stages: *const tandem_ntt_twiddle,
    /// What tandem_ntt_twiddles_* made for this pass, or null to compute them from the powers.
    pub twiddles: *const tandem_ntt_twiddle,
    pub powers: *const tandem_ntt_twiddle,
    pub order_bits: u32,
    pub split: u32,
    pub log_n: u32,
    pub low: u32,
    pub log_rows: u32,
    pub reversed: u32,
    pub odd: u32,
    pub inverse: u32,
    /// Whether there are twiddles before this pass.
    pub multiply: u32,
    pub reorder: u32,
    pub last: u32,
}

/// Most shards of a vector.
pub const TANDEM_NTT_MAX_SHARDS: i32 = 16;

/// What a pass over a shard writes stays in the shard.
pub const TANDEM_NTT_STAY: i32 = 0;

/// It goes to the section of its place's upper bits.
pub const TANDEM_NTT_BY_HIGH_BITS: i32 = 1;

/// It goes to the section of its place's lowest bits, to the place without these.
pub const TANDEM_NTT_BY_LOW_BITS: i32 = 2;

/// A pass over a shard of a transform that is spread over 2^log_shards lanes (native/src/ntt/spread.cuh), whose places have
/// log_n bits. A section is 2^(log_n - log_shards) elements.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_spread_args {
    pub pass: tandem_ntt_pass_args,
    /// Where the sections of the output go, in this or another lane's memory, if they do not stay.
    pub targets: [*mut tandem_scalar; 16],
    pub log_shards: u32,
    /// Whether the input is in sections: its element of a place lies in the section of the place's lowest bits.
    pub sections_in: u32,
    pub scatter: u32,
    /// The bits of all elements' places that tell the shard, and how many they are: none before they are known.
    pub known_bits: u32,
    pub known: u32,
}

/// A pass with pointwise products: what is read is first multiplied by the elements of `times` at the same places, in the first pass, and
/// instead of x goes out a * b - x, of the elements of `a` and `b` at the places that are written to, in the last one. Null: not so.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_product_args {
    pub pass: tandem_ntt_pass_args,
    pub times: *const tandem_scalar,
    pub a: *const tandem_scalar,
    pub b: *const tandem_scalar,
}

/// A pass over `count` vectors that lie one behind the other, the first where `pass` says.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_batch_args {
    pub pass: tandem_ntt_pass_args,
    pub count: u64,
}

/// Up to 4 elements: out_i = scale * sum of in_j * root^(i j), in place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_tiny_args {
    pub data: *mut tandem_scalar,
    pub root: tandem_scalar,
    pub scale: tandem_scalar,
    pub log_n: u32,
    pub input_reversed: u32,
    pub output_reversed: u32,
}

/// Greatest log_n of tandem_ntt_tiny_spread.
pub const TANDEM_NTT_MAX_LOG_TINY: i32 = 7;

/// One of 2^log_shards shards of a vector of 2^log_n elements, at most 2^TANDEM_NTT_MAX_LOG_TINY, all of which this device can reach:
/// out_i = scale * sum of in_j * root^(i j).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_tiny_spread_args {
    pub shards: [*const tandem_scalar; 16],
    /// The shard's part of the output, in other memory.
    pub output: *mut tandem_scalar,
    pub root: tandem_scalar,
    pub scale: tandem_scalar,
    pub log_n: u32,
    pub log_shards: u32,
    pub shard: u32,
    pub input_reversed: u32,
    pub output_reversed: u32,
}

/// Element i of 2^log_n times first * base^i, by the powers of base with 2 * split >= log_n.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_scale_args {
    pub data: *mut tandem_scalar,
    pub powers: *const tandem_ntt_twiddle,
    pub split: u32,
    pub log_n: u32,
    pub reversed: u32,
}

/// The matrix by rows: row i has the entries starts[i] .. starts[i + 1], each a column and an index into values, which
/// are in Montgomery form times 2^256. `order` holds the numbers of all rows: first those that one thread each does,
/// then those that one warp each does, then those that one block each does. output[i] = row i times x, whose elements
/// are integers; output[rows .. output_length] = 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_spmv_args {
    pub starts: *const u32,
    pub column: *const u32,
    pub value: *const u32,
    pub values: *const tandem_scalar,
    pub order: *const u32,
    pub rows: u64,
    pub thread_rows: u64,
    pub warp_rows: u64,
    pub x: *const tandem_scalar,
    pub output: *mut tandem_scalar,
    pub output_length: u64,
}

/// Hashes of `width` - 1 elements each, which lie side by side in `input`. `table` is the sequence of elements that
/// crates/ops/src/poseidon/tables.rs describes; with `integers`, input and output are integers below the modulus, else in
/// Montgomery form.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_poseidon_args {
    pub input: *const tandem_scalar,
    pub output: *mut tandem_scalar,
    pub table: *const tandem_scalar,
    pub hashes: u64,
    /// 2 to 12.
    pub width: u32,
    pub full_rounds: u32,
    pub partial_rounds: u32,
    /// Partial rounds of a block, 1 to 8.
    pub block: u32,
    pub integers: u32,
}

/// The sum: of integers modulo 2^32 or 2^64, of field elements modulo the modulus.
pub const TANDEM_REDUCE_SUM: i32 = 0;

/// The least element.
pub const TANDEM_REDUCE_MIN: i32 = 1;

/// The greatest element.
pub const TANDEM_REDUCE_MAX: i32 = 2;

/// Bytes of a tile, and tiles of a group.
pub const TANDEM_REDUCE_TILE: i32 = 65536;

pub const TANDEM_REDUCE_GROUP: i32 = 256;

/// n elements of the launcher's type from `data` on, which is aligned to 16 bytes and may be another GPU's memory that this one
/// reaches. `groups` gets one element for each group. Elements of a field are integers; where one is not below the modulus, the index
/// of the first such, counted from `first`, becomes the value of `too_large` if that is greater. For numbers it may be null.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_reduce_args {
    pub data: *const u8,
    pub groups: *mut u8,
    pub too_large: *mut u64,
    pub n: u64,
    pub first: u64,
    pub op: u32,
}

/// Places, below one that would take a carry alone, of which a digit may do without (tandem_msm_shape.carry_free_windows).
pub const TANDEM_MSM_CARRY_FREE_WINDOWS: i32 = 3;

/// How scalars are taken apart and how points are held. A window of `window_bits` bits at place j, which is bit step_bits * j, belongs to
/// bucket set j % bucket_sets and to level d * (j / bucket_sets) of a table of points, whose level d * k + v, v < d, holds
/// 2^(step_bits * bucket_sets * k + v) times the points, one level after the other; d is levels_per_window.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_msm_shape {
    /// Scalars of a vector.
    pub scalars: u64,
    /// 2 to 24, or 3 to 24 for windows that begin anywhere.
    pub window_bits: u32,
    /// Digits that a scalar has at most: enough for the scalar field's bits.
    pub windows: u32,
    /// Bits from one place where a window may begin to the next: window_bits, or 1 for windows that begin anywhere.
    pub step_bits: u32,
    /// Those places: enough for the scalar field's bits.
    pub window_positions: u32,
    pub bucket_sets: u32,
    pub table_levels: u32,
    /// Levels of a place: 1, or up to window_bits - 2 for windows that follow one another in one bucket set. With more than 1 a digit
    /// 2^v * odd with v below them takes level v of its place and the bucket of its odd part.
    pub levels_per_window: u32,
    /// At so many places below the last one, up to TANDEM_MSM_CARRY_FREE_WINDOWS and in one bucket set, an even digit above half its range may stay, so
    /// that nothing is carried to the last place: half of it goes to the level of 2P. With more levels per window than 1 there is one; with 1 each of
    /// these places has two levels, of P and of 2P, behind those of the places below and before that of the last place.
    pub carry_free_windows: u32,
    /// Bits of an entry that hold the index of a scalar; those between them and the sign hold the level.
    pub index_bits: u32,
}

/// Scalars to `entries` ordered by bucket, of which those of bucket k begin at offsets[k].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_msm_digits_args {
    pub shape: tandem_msm_shape,
    pub scalars: *const tandem_scalar,
    /// 1 if the scalars are in Montgomery form.
    pub montgomery: u32,
    /// Room for scalars * windows.
    pub entries: *mut u32,
    /// Room for one more than there are buckets.
    pub offsets: *mut u32,
}

/// Level 0 of `table` to all levels. Points are affine, in the limbs of the wire.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_msm_table_args {
    pub shape: tandem_msm_shape,
    pub points: u64,
    pub table: *mut u64,
}

pub const TANDEM_MSM_ROUNDS: i32 = 8;

/// The sum over points of which number i belongs to scalar first + i, as partial sums, of which each bucket set has one
/// more than the numbers of its buckets have bits, or with more levels per window than 1 those of odd digits first and then the others:
/// first tandem_msm_accumulate_*, which takes all entries to buckets, then tandem_msm_reduce_* with the same scratch memory,
/// for which much of a GPU has no use: it may go to another stream, which waits for the first. Only it writes `sums`, and it
/// needs no entries, offsets and points any more.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_msm_sum_args {
    pub shape: tandem_msm_shape,
    pub first: u64,
    pub points: u64,
    pub table: *const u64,
    pub entries: *const u32,
    pub offsets: *const u32,
    /// Room for as many points of four coordinates, x, y, zz, zzz, set after set: the sum of all its buckets, then for bit 0, bit 1 and so
    /// on that of the buckets whose number has it.
    pub sums: *mut u64,
    /// Rounds of affine additions before those in XYZZ coordinates, up to TANDEM_MSM_ROUNDS. And the entries,
    /// 2^8 to 2^30, that they are made for at a time: scratch memory grows with as many points.
    pub rounds: u32,
    pub chunk: u32,
}

/// out[i] = base^(i * step) for i below count.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_small_powers_args {
    pub out: *mut u32,
    pub base: u64,
    pub step: u64,
    pub count: u64,
}

/// Fewest and most bits that a pass goes over.
pub const TANDEM_NTT_SMALL_MIN_LOG_ROWS: i32 = 4;

pub const TANDEM_NTT_SMALL_MAX_LOG_ROWS: i32 = 9;

/// The 2^bits twiddles before a pass, in the order of the places: bits is low + log_rows of the pass if it is reversed, else
/// log_n - low.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_small_twiddles_args {
    pub out: *mut u32,
    pub powers: *const u32,
    pub order_bits: u32,
    pub split: u32,
    pub bits: u32,
    pub log_rows: u32,
    pub reversed: u32,
    pub inverse: u32,
}

/// A pass over the bits low .. low + log_rows of the places of the 2^log_n elements of each of `count` vectors, as in
/// tandem_ntt_pass_args.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_small_pass_args {
    pub input: *const u32,
    pub output: *mut u32,
    /// The first 2^split powers of the root of unity of order 2^order_bits, then its 2^split-th powers, as many; of complex numbers in doubles.
    pub powers: *const u32,
    /// The twiddles between the two rounds of a pass of this log_rows and direction, of which the first is over the upper bits of
    /// the row (native/src/ntt/small.cuh says over how many): w^(bitrev(upper bits) * lower bits) at the place of which those are the
    /// lower bits, for the root w of order 2^log_rows or its inverse.
    pub stages: *const u32,
    /// What tandem_ntt_small_twiddles_* made for this pass, or null to compute the twiddles before it from the powers.
    pub twiddles: *const u32,
    /// Null, or the 2^log_rows powers g^(row * 2^(bits of the index below the row)) for a forward transform over g times the subgroup.
    pub coset: *const u32,
    /// All elements are multiplied by it, if `multiply` and there is no table of twiddles.
    pub scale: u64,
    pub count: u64,
    pub order_bits: u32,
    pub split: u32,
    pub log_n: u32,
    pub low: u32,
    pub log_rows: u32,
    pub reversed: u32,
    pub inverse: u32,
    /// Whether there are twiddles before this pass: it is not the first, or there is a coset or a scale.
    pub multiply: u32,
    pub reorder: u32,
    pub last: u32,
    /// Whether what was launched before on the stream is the pass before this one, or another one that writes none of the
    /// tables: blocks may then start while it ends.
    pub follows: u32,
}

/// A pass over a shard, as tandem_ntt_spread_args: count is 1.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_small_spread_args {
    pub pass: tandem_ntt_small_pass_args,
    pub targets: [*mut u32; 16],
    pub log_shards: u32,
    pub sections_in: u32,
    pub scatter: u32,
    pub known_bits: u32,
    pub known: u32,
}

/// Vectors of up to 8 elements: out_i = scale * after^i * sum of in_j * before^j * root^(i j), in place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_small_tiny_args {
    pub data: *mut u32,
    pub root: u64,
    pub scale: u64,
    pub before: u64,
    pub after: u64,
    pub count: u64,
    pub log_n: u32,
    pub input_reversed: u32,
    pub output_reversed: u32,
}

/// The part of one of 2^log_shards shards in the transform of a vector of up to 2^TANDEM_NTT_MAX_LOG_TINY elements, all of which this
/// device can reach: out_i = scale * after^i * sum of in_j * before^j * root^(i j).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_small_tiny_spread_args {
    pub shards: [*const u32; 16],
    /// In other memory.
    pub output: *mut u32,
    pub root: u64,
    pub scale: u64,
    pub before: u64,
    pub after: u64,
    pub log_n: u32,
    pub log_shards: u32,
    pub shard: u32,
    pub input_reversed: u32,
    pub output_reversed: u32,
}

/// Element i of each of `count` vectors of 2^log_n elements times base^i, by the first 2^split powers of base and its 2^split-th powers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_small_scale_args {
    pub data: *mut u32,
    pub powers: *const u32,
    pub count: u64,
    pub split: u32,
    pub log_n: u32,
    pub reversed: u32,
}

/// Of complex numbers the parts of 2^log_shards shards in transforms of 2^log_n numbers, at most 2^TANDEM_NTT_MAX_LOG_TINY, all of which this device can
/// reach: out_k = scale * sum of in_j * root^(j k), or of the inverse root. Where there is one shard, it may have `count` vectors.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_small_sum_args {
    pub shards: [*const u32; 16],
    /// In other memory.
    pub output: *mut u32,
    /// As in tandem_ntt_small_pass_args.
    pub powers: *const u32,
    pub scale: u64,
    pub count: u64,
    pub order_bits: u32,
    pub split: u32,
    pub log_n: u32,
    pub log_shards: u32,
    pub shard: u32,
    pub inverse: u32,
}

pub const TANDEM_SORT_LANES: i32 = 8;

/// Elements that one block sorts.
pub const TANDEM_SORT_BLOCK: i32 = 6144;

/// Takes samples. The lanes' scratch memory exists.
pub const TANDEM_SORT_SAMPLE: i32 = 0;

/// Counts. All lanes have sampled.
pub const TANDEM_SORT_COUNT: i32 = 1;

/// Moves every key to the lane that sorts it. All lanes have counted.
pub const TANDEM_SORT_EXCHANGE: i32 = 2;

/// Sorts what has come. All lanes have exchanged; afterwards all must be waited for before any lane's keys are used.
pub const TANDEM_SORT_FINISH: i32 = 3;

/// All of it, for one lane: at most TANDEM_SORT_BLOCK keys, or of 32-bit keys any number. Those have no other step there.
pub const TANDEM_SORT_WHOLE: i32 = 4;

/// A lane would receive more keys than it has room for: the keys are as they were. Another seed gives another sample.
pub const TANDEM_SORT_CROWDED: i32 = 1;

/// Not all keys were sorted: an error of this code.
pub const TANDEM_SORT_UNFINISHED: i32 = 2;

/// One step of a sort on one lane; every lane does the same steps. The lanes' keys are one sequence of which lane i has
/// those from first[i] to first[i + 1]; first[0] is 0, first[lanes] is not. All pointers of one array must be reachable
/// from this lane's GPU.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_sort_args {
    pub first: [u64; 9],
    /// Keys of every lane, and values in the functions for pairs.
    pub keys: [*mut u8; 8],
    pub values: [*mut u8; 8],
    /// Memory of every lane, as many bytes as the lane's _room says, aligned to 256 bytes.
    pub scratch: [*mut u8; 8],
    /// A number of the lane: 0 when all went well.
    pub failed: *mut u32,
    pub seed: u64,
    pub lane: u32,
    pub lanes: u32,
    pub descending: u32,
    pub step: u32,
}

/// Merges two sorted runs; of equal keys those of the first come first. Keys, and values if there are any, of 4 or 8 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_sort_merge_args {
    pub keys: [*const u8; 2],
    pub values: [*const u8; 2],
    pub length: [u64; 2],
    pub out_keys: *mut u8,
    pub out_values: *mut u8,
    pub key_bytes: u32,
    pub descending: u32,
}

/// Where to cut sorted runs: cuts[8 i + r] is how many elements of run r are among the first rank[i] of all, for i from 0
/// to `runs`; of equal keys those of earlier runs come first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_sort_cuts_args {
    pub keys: [*const u8; 8],
    pub length: [u64; 8],
    pub rank: [u64; 9],
    pub cuts: *mut u64,
    pub runs: u32,
    pub key_bytes: u32,
    pub descending: u32,
}

/// Most tables of a product.
pub const TANDEM_SUMCHECK_TABLES: i32 = 4;

/// Places for what is found of a round's polynomial of degree d: its values at 0 to d - 1 and in place d its leading coefficient; of degree 1 the
/// values at 0 and at 1.
pub const TANDEM_SUMCHECK_VALUES: i32 = 5;

/// All values of the first round, of tables of n elements, at least 2.
pub const TANDEM_SUMCHECK_SUMS: i32 = 0;

/// The columns become n / 2 numbers each: tables of n elements, at least 4, whose first variable is bound to r.
pub const TANDEM_SUMCHECK_BIND: i32 = 1;

/// The first n numbers of each column, at least 4, become n / 2 that are bound to r, in place.
pub const TANDEM_SUMCHECK_FOLD: i32 = 2;

/// `values` gets the first n numbers of each column, one column behind the other, and nothing is bound.
pub const TANDEM_SUMCHECK_TAKE: i32 = 3;

/// A round (native/src/sumcheck/sumcheck.cuh) over 1 to TANDEM_SUMCHECK_TABLES tables, n a power of two. Memory is in words: an element of a
/// table is a scalar's four, of Goldilocks one; a number of a column, a value and r are four, of Goldilocks two, those of its extension.
/// Each table has a column: that of table j begins at number j * `stride` of `columns`. `values` gets TANDEM_SUMCHECK_VALUES numbers, but for TANDEM_SUMCHECK_TAKE; but
/// for TANDEM_SUMCHECK_SUMS that in place 1 is zero, as are those behind the number of tables. `told` gets a 1 behind them. Both may be
/// page-locked memory of the host. `done` is a word in the device's memory for launches of one stream: it is zero before and after.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_sumcheck_args {
    pub table: [*const u64; 4],
    pub columns: *mut u64,
    pub stride: u64,
    pub values: *mut u64,
    pub done: *mut u32,
    pub told: *mut u32,
    pub r: [u64; 4],
    pub n: u64,
    pub tables: u32,
    pub op: u32,
}

tandem_cuda::native! {
    pub fn tandem_vector_bn254(args: *const tandem_vector_args, stream: tandem_stream) -> i32;
    pub fn tandem_vector_bls12_381(args: *const tandem_vector_args, stream: tandem_stream) -> i32;
    pub fn tandem_combined_bn254(args: *const tandem_combined_args, stream: tandem_stream) -> i32;
    pub fn tandem_combined_bls12_381(args: *const tandem_combined_args, stream: tandem_stream) -> i32;
    pub fn tandem_gate_rows_bn254(args: *const tandem_gate_rows_args, stream: tandem_stream) -> i32;
    pub fn tandem_gate_rows_bls12_381(args: *const tandem_gate_rows_args, stream: tandem_stream) -> i32;
    pub fn tandem_permuted_rows_bn254(args: *const tandem_permuted_rows_args, stream: tandem_stream) -> i32;
    pub fn tandem_permuted_rows_bls12_381(args: *const tandem_permuted_rows_args, stream: tandem_stream) -> i32;
    pub fn tandem_quotient_rows_bn254(args: *const tandem_quotient_rows_args, stream: tandem_stream) -> i32;
    pub fn tandem_quotient_rows_bls12_381(args: *const tandem_quotient_rows_args, stream: tandem_stream) -> i32;
    pub fn tandem_batch_inverse_bn254_scratch(args: *const tandem_batch_inverse_args, bytes: *mut usize) -> i32;
    pub fn tandem_batch_inverse_bls12_381_scratch(args: *const tandem_batch_inverse_args, bytes: *mut usize) -> i32;
    pub fn tandem_batch_inverse_bn254(
        args: *const tandem_batch_inverse_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_batch_inverse_bls12_381(
        args: *const tandem_batch_inverse_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_scan_totals_bn254(args: *const tandem_scan_args, stream: tandem_stream) -> i32;
    pub fn tandem_scan_totals_bls12_381(args: *const tandem_scan_args, stream: tandem_stream) -> i32;
    pub fn tandem_scan_apply_bn254(args: *const tandem_scan_args, stream: tandem_stream) -> i32;
    pub fn tandem_scan_apply_bls12_381(args: *const tandem_scan_args, stream: tandem_stream) -> i32;
    pub fn tandem_point_ntt_bn254_scratch(args: *const tandem_point_ntt_args, bytes: *mut usize) -> i32;
    pub fn tandem_point_ntt_bls12_381_scratch(args: *const tandem_point_ntt_args, bytes: *mut usize) -> i32;
    pub fn tandem_point_ntt_bn254(
        args: *const tandem_point_ntt_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_point_ntt_bls12_381(
        args: *const tandem_point_ntt_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_gather(args: *const tandem_gather_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_powers_bn254(args: *const tandem_ntt_powers_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_powers_bls12_381(args: *const tandem_ntt_powers_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_stages_bn254(args: *const tandem_ntt_stages_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_stages_bls12_381(args: *const tandem_ntt_stages_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_twiddles_bn254(args: *const tandem_ntt_twiddles_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_twiddles_bls12_381(args: *const tandem_ntt_twiddles_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_pass_bn254(args: *const tandem_ntt_pass_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_pass_bls12_381(args: *const tandem_ntt_pass_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_spread_bn254(args: *const tandem_ntt_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_spread_bls12_381(args: *const tandem_ntt_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_product_bn254(args: *const tandem_ntt_product_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_product_bls12_381(args: *const tandem_ntt_product_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_batch_bn254(args: *const tandem_ntt_batch_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_batch_bls12_381(args: *const tandem_ntt_batch_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_tiny_bn254(args: *const tandem_ntt_tiny_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_tiny_bls12_381(args: *const tandem_ntt_tiny_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_tiny_spread_bn254(args: *const tandem_ntt_tiny_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_tiny_spread_bls12_381(args: *const tandem_ntt_tiny_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_scale_bn254(args: *const tandem_ntt_scale_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_scale_bls12_381(args: *const tandem_ntt_scale_args, stream: tandem_stream) -> i32;
    pub fn tandem_spmv_bn254(args: *const tandem_spmv_args, stream: tandem_stream) -> i32;
    pub fn tandem_spmv_bls12_381(args: *const tandem_spmv_args, stream: tandem_stream) -> i32;
    pub fn tandem_poseidon_bn254(args: *const tandem_poseidon_args, stream: tandem_stream) -> i32;
    pub fn tandem_poseidon_bls12_381(args: *const tandem_poseidon_args, stream: tandem_stream) -> i32;
    pub fn tandem_reduce_u32(
        args: *const tandem_reduce_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_reduce_u32_scratch(args: *const tandem_reduce_args, bytes: *mut usize) -> i32;
    pub fn tandem_reduce_u64(
        args: *const tandem_reduce_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_reduce_u64_scratch(args: *const tandem_reduce_args, bytes: *mut usize) -> i32;
    pub fn tandem_reduce_f32(
        args: *const tandem_reduce_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_reduce_f32_scratch(args: *const tandem_reduce_args, bytes: *mut usize) -> i32;
    pub fn tandem_reduce_f64(
        args: *const tandem_reduce_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_reduce_f64_scratch(args: *const tandem_reduce_args, bytes: *mut usize) -> i32;
    pub fn tandem_reduce_bn254(
        args: *const tandem_reduce_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_reduce_bls12_381(
        args: *const tandem_reduce_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_reduce_bn254_scratch(args: *const tandem_reduce_args, bytes: *mut usize) -> i32;
    pub fn tandem_reduce_bls12_381_scratch(args: *const tandem_reduce_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_digits_bn254_scratch(args: *const tandem_msm_digits_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_digits_bls12_381_scratch(args: *const tandem_msm_digits_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_digits_bn254(
        args: *const tandem_msm_digits_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_digits_bls12_381(
        args: *const tandem_msm_digits_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_table_bn254_g1_scratch(args: *const tandem_msm_table_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_table_bn254_g2_scratch(args: *const tandem_msm_table_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_table_bls12_381_g1_scratch(args: *const tandem_msm_table_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_table_bls12_381_g2_scratch(args: *const tandem_msm_table_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_table_bn254_g1(
        args: *const tandem_msm_table_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_table_bn254_g2(
        args: *const tandem_msm_table_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_table_bls12_381_g1(
        args: *const tandem_msm_table_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_table_bls12_381_g2(
        args: *const tandem_msm_table_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_sum_bn254_g1_scratch(args: *const tandem_msm_sum_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_sum_bn254_g2_scratch(args: *const tandem_msm_sum_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_sum_bls12_381_g1_scratch(args: *const tandem_msm_sum_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_sum_bls12_381_g2_scratch(args: *const tandem_msm_sum_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_accumulate_bn254_g1(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_accumulate_bn254_g2(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_accumulate_bls12_381_g1(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_accumulate_bls12_381_g2(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_reduce_bn254_g1(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_reduce_bn254_g2(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_reduce_bls12_381_g1(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_reduce_bls12_381_g2(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_ntt_small_twiddles_goldilocks(
        args: *const tandem_ntt_small_twiddles_args,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_ntt_small_pass_goldilocks(args: *const tandem_ntt_small_pass_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_spread_goldilocks(args: *const tandem_ntt_small_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_powers_goldilocks(args: *const tandem_ntt_small_powers_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_tiny_goldilocks(args: *const tandem_ntt_small_tiny_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_tiny_spread_goldilocks(
        args: *const tandem_ntt_small_tiny_spread_args,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_ntt_small_scale_goldilocks(args: *const tandem_ntt_small_scale_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_twiddles_baby_bear(
        args: *const tandem_ntt_small_twiddles_args,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_ntt_small_pass_baby_bear(args: *const tandem_ntt_small_pass_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_spread_baby_bear(args: *const tandem_ntt_small_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_powers_baby_bear(args: *const tandem_ntt_small_powers_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_tiny_baby_bear(args: *const tandem_ntt_small_tiny_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_tiny_spread_baby_bear(
        args: *const tandem_ntt_small_tiny_spread_args,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_ntt_small_scale_baby_bear(args: *const tandem_ntt_small_scale_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_twiddles_complex32(
        args: *const tandem_ntt_small_twiddles_args,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_ntt_small_pass_complex32(args: *const tandem_ntt_small_pass_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_spread_complex32(args: *const tandem_ntt_small_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_twiddles_complex64(
        args: *const tandem_ntt_small_twiddles_args,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_ntt_small_pass_complex64(args: *const tandem_ntt_small_pass_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_spread_complex64(args: *const tandem_ntt_small_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_sum_complex32(args: *const tandem_ntt_small_sum_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_small_sum_complex64(args: *const tandem_ntt_small_sum_args, stream: tandem_stream) -> i32;
    pub fn tandem_sort_u32_room(args: *const tandem_sort_args, bytes: *mut usize) -> i32;
    pub fn tandem_sort_u32(args: *const tandem_sort_args, stream: tandem_stream) -> i32;
    pub fn tandem_sort_u64_room(args: *const tandem_sort_args, bytes: *mut usize) -> i32;
    pub fn tandem_sort_u64(args: *const tandem_sort_args, stream: tandem_stream) -> i32;
    pub fn tandem_sort_u32_pairs_room(args: *const tandem_sort_args, bytes: *mut usize) -> i32;
    pub fn tandem_sort_u32_pairs(args: *const tandem_sort_args, stream: tandem_stream) -> i32;
    pub fn tandem_sort_u64_pairs_room(args: *const tandem_sort_args, bytes: *mut usize) -> i32;
    pub fn tandem_sort_u64_pairs(args: *const tandem_sort_args, stream: tandem_stream) -> i32;
    pub fn tandem_sort_merge(args: *const tandem_sort_merge_args, stream: tandem_stream) -> i32;
    pub fn tandem_sort_cuts(args: *const tandem_sort_cuts_args, stream: tandem_stream) -> i32;
    pub fn tandem_sumcheck_bn254_scratch(args: *const tandem_sumcheck_args, bytes: *mut usize) -> i32;
    pub fn tandem_sumcheck_bn254(
        args: *const tandem_sumcheck_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_sumcheck_bls12_381_scratch(args: *const tandem_sumcheck_args, bytes: *mut usize) -> i32;
    pub fn tandem_sumcheck_bls12_381(
        args: *const tandem_sumcheck_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_sumcheck_goldilocks_scratch(args: *const tandem_sumcheck_args, bytes: *mut usize) -> i32;
    pub fn tandem_sumcheck_goldilocks(
        args: *const tandem_sumcheck_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
}

const _: () = {
    assert!(size_of::<tandem_scalar>() == 32);
    assert!(core::mem::offset_of!(tandem_scalar, limb) == 0);
};

const _: () = {
    assert!(size_of::<tandem_vector_args>() == 88);
    assert!(core::mem::offset_of!(tandem_vector_args, out) == 0);
    assert!(core::mem::offset_of!(tandem_vector_args, a) == 8);
    assert!(core::mem::offset_of!(tandem_vector_args, b) == 16);
    assert!(core::mem::offset_of!(tandem_vector_args, c) == 24);
    assert!(core::mem::offset_of!(tandem_vector_args, k) == 32);
    assert!(core::mem::offset_of!(tandem_vector_args, n) == 64);
    assert!(core::mem::offset_of!(tandem_vector_args, step) == 72);
    assert!(core::mem::offset_of!(tandem_vector_args, op) == 80);
};

const _: () = {
    assert!(size_of::<tandem_combined_args>() == 792);
    assert!(core::mem::offset_of!(tandem_combined_args, out) == 0);
    assert!(core::mem::offset_of!(tandem_combined_args, vectors) == 8);
    assert!(core::mem::offset_of!(tandem_combined_args, lengths) == 136);
    assert!(core::mem::offset_of!(tandem_combined_args, factors) == 264);
    assert!(core::mem::offset_of!(tandem_combined_args, n) == 776);
    assert!(core::mem::offset_of!(tandem_combined_args, terms) == 784);
};

const _: () = {
    assert!(size_of::<tandem_gate_rows_args>() == 80);
    assert!(core::mem::offset_of!(tandem_gate_rows_args, out) == 0);
    assert!(core::mem::offset_of!(tandem_gate_rows_args, columns) == 8);
    assert!(core::mem::offset_of!(tandem_gate_rows_args, selectors) == 32);
    assert!(core::mem::offset_of!(tandem_gate_rows_args, n) == 72);
};

const _: () = {
    assert!(size_of::<tandem_permuted_rows_args>() == 192);
    assert!(core::mem::offset_of!(tandem_permuted_rows_args, out) == 0);
    assert!(core::mem::offset_of!(tandem_permuted_rows_args, columns) == 8);
    assert!(core::mem::offset_of!(tandem_permuted_rows_args, places) == 32);
    assert!(core::mem::offset_of!(tandem_permuted_rows_args, factors) == 56);
    assert!(core::mem::offset_of!(tandem_permuted_rows_args, gamma) == 152);
    assert!(core::mem::offset_of!(tandem_permuted_rows_args, n) == 184);
};

const _: () = {
    assert!(size_of::<tandem_quotient_rows_args>() == 328);
    assert!(core::mem::offset_of!(tandem_quotient_rows_args, out) == 0);
    assert!(core::mem::offset_of!(tandem_quotient_rows_args, vectors) == 8);
    assert!(core::mem::offset_of!(tandem_quotient_rows_args, numbers) == 128);
    assert!(core::mem::offset_of!(tandem_quotient_rows_args, n) == 320);
};

const _: () = {
    assert!(size_of::<tandem_batch_inverse_args>() == 24);
    assert!(core::mem::offset_of!(tandem_batch_inverse_args, data) == 0);
    assert!(core::mem::offset_of!(tandem_batch_inverse_args, n) == 8);
    assert!(core::mem::offset_of!(tandem_batch_inverse_args, threads) == 16);
};

const _: () = {
    assert!(size_of::<tandem_scan_args>() == 72);
    assert!(core::mem::offset_of!(tandem_scan_args, data) == 0);
    assert!(core::mem::offset_of!(tandem_scan_args, chunks) == 8);
    assert!(core::mem::offset_of!(tandem_scan_args, factor) == 16);
    assert!(core::mem::offset_of!(tandem_scan_args, n) == 48);
    assert!(core::mem::offset_of!(tandem_scan_args, columns) == 56);
    assert!(core::mem::offset_of!(tandem_scan_args, op) == 64);
    assert!(core::mem::offset_of!(tandem_scan_args, exclusive) == 68);
};

const _: () = {
    assert!(size_of::<tandem_point_ntt_args>() == 24);
    assert!(core::mem::offset_of!(tandem_point_ntt_args, points) == 0);
    assert!(core::mem::offset_of!(tandem_point_ntt_args, factors) == 8);
    assert!(core::mem::offset_of!(tandem_point_ntt_args, log_n) == 16);
};

const _: () = {
    assert!(size_of::<tandem_gather_args>() == 40);
    assert!(core::mem::offset_of!(tandem_gather_args, from) == 0);
    assert!(core::mem::offset_of!(tandem_gather_args, to) == 8);
    assert!(core::mem::offset_of!(tandem_gather_args, map) == 16);
    assert!(core::mem::offset_of!(tandem_gather_args, n) == 24);
    assert!(core::mem::offset_of!(tandem_gather_args, element_bytes) == 32);
};

const _: () = {
    assert!(size_of::<tandem_ntt_twiddle>() == 64);
    assert!(core::mem::offset_of!(tandem_ntt_twiddle, limb) == 0);
};

const _: () = {
    assert!(size_of::<tandem_ntt_powers_args>() == 80);
    assert!(core::mem::offset_of!(tandem_ntt_powers_args, powers) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_powers_args, first) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_powers_args, base) == 40);
    assert!(core::mem::offset_of!(tandem_ntt_powers_args, split) == 72);
};

const _: () = {
    assert!(size_of::<tandem_ntt_stages_args>() == 32);
    assert!(core::mem::offset_of!(tandem_ntt_stages_args, stages) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_stages_args, powers) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_stages_args, order_bits) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_stages_args, split) == 20);
    assert!(core::mem::offset_of!(tandem_ntt_stages_args, inverse) == 24);
};

const _: () = {
    assert!(size_of::<tandem_ntt_twiddles_args>() == 88);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, twiddles) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, powers) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, scale) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, order_bits) == 48);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, split) == 52);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, bits) == 56);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, log_rows) == 60);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, reversed) == 64);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, odd) == 68);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, inverse) == 72);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, known_bits) == 76);
    assert!(core::mem::offset_of!(tandem_ntt_twiddles_args, known) == 80);
};

const _: () = {
    assert!(size_of::<tandem_ntt_pass_args>() == 88);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, input) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, output) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, stages) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, twiddles) == 24);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, powers) == 32);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, order_bits) == 40);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, split) == 44);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, log_n) == 48);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, low) == 52);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, log_rows) == 56);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, reversed) == 60);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, odd) == 64);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, inverse) == 68);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, multiply) == 72);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, reorder) == 76);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, last) == 80);
};

const _: () = {
    assert!(size_of::<tandem_ntt_spread_args>() == 240);
    assert!(core::mem::offset_of!(tandem_ntt_spread_args, pass) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_spread_args, targets) == 88);
    assert!(core::mem::offset_of!(tandem_ntt_spread_args, log_shards) == 216);
    assert!(core::mem::offset_of!(tandem_ntt_spread_args, sections_in) == 220);
    assert!(core::mem::offset_of!(tandem_ntt_spread_args, scatter) == 224);
    assert!(core::mem::offset_of!(tandem_ntt_spread_args, known_bits) == 228);
    assert!(core::mem::offset_of!(tandem_ntt_spread_args, known) == 232);
};

const _: () = {
    assert!(size_of::<tandem_ntt_product_args>() == 112);
    assert!(core::mem::offset_of!(tandem_ntt_product_args, pass) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_product_args, times) == 88);
    assert!(core::mem::offset_of!(tandem_ntt_product_args, a) == 96);
    assert!(core::mem::offset_of!(tandem_ntt_product_args, b) == 104);
};

const _: () = {
    assert!(size_of::<tandem_ntt_batch_args>() == 96);
    assert!(core::mem::offset_of!(tandem_ntt_batch_args, pass) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_batch_args, count) == 88);
};

const _: () = {
    assert!(size_of::<tandem_ntt_tiny_args>() == 88);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, data) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, root) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, scale) == 40);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, log_n) == 72);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, input_reversed) == 76);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, output_reversed) == 80);
};

const _: () = {
    assert!(size_of::<tandem_ntt_tiny_spread_args>() == 224);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_spread_args, shards) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_spread_args, output) == 128);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_spread_args, root) == 136);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_spread_args, scale) == 168);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_spread_args, log_n) == 200);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_spread_args, log_shards) == 204);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_spread_args, shard) == 208);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_spread_args, input_reversed) == 212);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_spread_args, output_reversed) == 216);
};

const _: () = {
    assert!(size_of::<tandem_ntt_scale_args>() == 32);
    assert!(core::mem::offset_of!(tandem_ntt_scale_args, data) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_scale_args, powers) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_scale_args, split) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_scale_args, log_n) == 20);
    assert!(core::mem::offset_of!(tandem_ntt_scale_args, reversed) == 24);
};

const _: () = {
    assert!(size_of::<tandem_spmv_args>() == 88);
    assert!(core::mem::offset_of!(tandem_spmv_args, starts) == 0);
    assert!(core::mem::offset_of!(tandem_spmv_args, column) == 8);
    assert!(core::mem::offset_of!(tandem_spmv_args, value) == 16);
    assert!(core::mem::offset_of!(tandem_spmv_args, values) == 24);
    assert!(core::mem::offset_of!(tandem_spmv_args, order) == 32);
    assert!(core::mem::offset_of!(tandem_spmv_args, rows) == 40);
    assert!(core::mem::offset_of!(tandem_spmv_args, thread_rows) == 48);
    assert!(core::mem::offset_of!(tandem_spmv_args, warp_rows) == 56);
    assert!(core::mem::offset_of!(tandem_spmv_args, x) == 64);
    assert!(core::mem::offset_of!(tandem_spmv_args, output) == 72);
    assert!(core::mem::offset_of!(tandem_spmv_args, output_length) == 80);
};

const _: () = {
    assert!(size_of::<tandem_poseidon_args>() == 56);
    assert!(core::mem::offset_of!(tandem_poseidon_args, input) == 0);
    assert!(core::mem::offset_of!(tandem_poseidon_args, output) == 8);
    assert!(core::mem::offset_of!(tandem_poseidon_args, table) == 16);
    assert!(core::mem::offset_of!(tandem_poseidon_args, hashes) == 24);
    assert!(core::mem::offset_of!(tandem_poseidon_args, width) == 32);
    assert!(core::mem::offset_of!(tandem_poseidon_args, full_rounds) == 36);
    assert!(core::mem::offset_of!(tandem_poseidon_args, partial_rounds) == 40);
    assert!(core::mem::offset_of!(tandem_poseidon_args, block) == 44);
    assert!(core::mem::offset_of!(tandem_poseidon_args, integers) == 48);
};

const _: () = {
    assert!(size_of::<tandem_reduce_args>() == 48);
    assert!(core::mem::offset_of!(tandem_reduce_args, data) == 0);
    assert!(core::mem::offset_of!(tandem_reduce_args, groups) == 8);
    assert!(core::mem::offset_of!(tandem_reduce_args, too_large) == 16);
    assert!(core::mem::offset_of!(tandem_reduce_args, n) == 24);
    assert!(core::mem::offset_of!(tandem_reduce_args, first) == 32);
    assert!(core::mem::offset_of!(tandem_reduce_args, op) == 40);
};

const _: () = {
    assert!(size_of::<tandem_msm_shape>() == 48);
    assert!(core::mem::offset_of!(tandem_msm_shape, scalars) == 0);
    assert!(core::mem::offset_of!(tandem_msm_shape, window_bits) == 8);
    assert!(core::mem::offset_of!(tandem_msm_shape, windows) == 12);
    assert!(core::mem::offset_of!(tandem_msm_shape, step_bits) == 16);
    assert!(core::mem::offset_of!(tandem_msm_shape, window_positions) == 20);
    assert!(core::mem::offset_of!(tandem_msm_shape, bucket_sets) == 24);
    assert!(core::mem::offset_of!(tandem_msm_shape, table_levels) == 28);
    assert!(core::mem::offset_of!(tandem_msm_shape, levels_per_window) == 32);
    assert!(core::mem::offset_of!(tandem_msm_shape, carry_free_windows) == 36);
    assert!(core::mem::offset_of!(tandem_msm_shape, index_bits) == 40);
};

const _: () = {
    assert!(size_of::<tandem_msm_digits_args>() == 80);
    assert!(core::mem::offset_of!(tandem_msm_digits_args, shape) == 0);
    assert!(core::mem::offset_of!(tandem_msm_digits_args, scalars) == 48);
    assert!(core::mem::offset_of!(tandem_msm_digits_args, montgomery) == 56);
    assert!(core::mem::offset_of!(tandem_msm_digits_args, entries) == 64);
    assert!(core::mem::offset_of!(tandem_msm_digits_args, offsets) == 72);
};

const _: () = {
    assert!(size_of::<tandem_msm_table_args>() == 64);
    assert!(core::mem::offset_of!(tandem_msm_table_args, shape) == 0);
    assert!(core::mem::offset_of!(tandem_msm_table_args, points) == 48);
    assert!(core::mem::offset_of!(tandem_msm_table_args, table) == 56);
};

const _: () = {
    assert!(size_of::<tandem_msm_sum_args>() == 104);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, shape) == 0);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, first) == 48);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, points) == 56);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, table) == 64);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, entries) == 72);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, offsets) == 80);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, sums) == 88);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, rounds) == 96);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, chunk) == 100);
};

const _: () = {
    assert!(size_of::<tandem_ntt_small_powers_args>() == 32);
    assert!(core::mem::offset_of!(tandem_ntt_small_powers_args, out) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_small_powers_args, base) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_small_powers_args, step) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_small_powers_args, count) == 24);
};

const _: () = {
    assert!(size_of::<tandem_ntt_small_twiddles_args>() == 40);
    assert!(core::mem::offset_of!(tandem_ntt_small_twiddles_args, out) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_small_twiddles_args, powers) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_small_twiddles_args, order_bits) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_small_twiddles_args, split) == 20);
    assert!(core::mem::offset_of!(tandem_ntt_small_twiddles_args, bits) == 24);
    assert!(core::mem::offset_of!(tandem_ntt_small_twiddles_args, log_rows) == 28);
    assert!(core::mem::offset_of!(tandem_ntt_small_twiddles_args, reversed) == 32);
    assert!(core::mem::offset_of!(tandem_ntt_small_twiddles_args, inverse) == 36);
};

const _: () = {
    assert!(size_of::<tandem_ntt_small_pass_args>() == 112);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, input) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, output) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, powers) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, stages) == 24);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, twiddles) == 32);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, coset) == 40);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, scale) == 48);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, count) == 56);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, order_bits) == 64);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, split) == 68);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, log_n) == 72);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, low) == 76);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, log_rows) == 80);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, reversed) == 84);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, inverse) == 88);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, multiply) == 92);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, reorder) == 96);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, last) == 100);
    assert!(core::mem::offset_of!(tandem_ntt_small_pass_args, follows) == 104);
};

const _: () = {
    assert!(size_of::<tandem_ntt_small_spread_args>() == 264);
    assert!(core::mem::offset_of!(tandem_ntt_small_spread_args, pass) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_small_spread_args, targets) == 112);
    assert!(core::mem::offset_of!(tandem_ntt_small_spread_args, log_shards) == 240);
    assert!(core::mem::offset_of!(tandem_ntt_small_spread_args, sections_in) == 244);
    assert!(core::mem::offset_of!(tandem_ntt_small_spread_args, scatter) == 248);
    assert!(core::mem::offset_of!(tandem_ntt_small_spread_args, known_bits) == 252);
    assert!(core::mem::offset_of!(tandem_ntt_small_spread_args, known) == 256);
};

const _: () = {
    assert!(size_of::<tandem_ntt_small_tiny_args>() == 64);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_args, data) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_args, root) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_args, scale) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_args, before) == 24);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_args, after) == 32);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_args, count) == 40);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_args, log_n) == 48);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_args, input_reversed) == 52);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_args, output_reversed) == 56);
};

const _: () = {
    assert!(size_of::<tandem_ntt_small_tiny_spread_args>() == 192);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, shards) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, output) == 128);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, root) == 136);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, scale) == 144);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, before) == 152);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, after) == 160);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, log_n) == 168);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, log_shards) == 172);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, shard) == 176);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, input_reversed) == 180);
    assert!(core::mem::offset_of!(tandem_ntt_small_tiny_spread_args, output_reversed) == 184);
};

const _: () = {
    assert!(size_of::<tandem_ntt_small_scale_args>() == 40);
    assert!(core::mem::offset_of!(tandem_ntt_small_scale_args, data) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_small_scale_args, powers) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_small_scale_args, count) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_small_scale_args, split) == 24);
    assert!(core::mem::offset_of!(tandem_ntt_small_scale_args, log_n) == 28);
    assert!(core::mem::offset_of!(tandem_ntt_small_scale_args, reversed) == 32);
};

const _: () = {
    assert!(size_of::<tandem_ntt_small_sum_args>() == 184);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, shards) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, output) == 128);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, powers) == 136);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, scale) == 144);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, count) == 152);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, order_bits) == 160);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, split) == 164);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, log_n) == 168);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, log_shards) == 172);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, shard) == 176);
    assert!(core::mem::offset_of!(tandem_ntt_small_sum_args, inverse) == 180);
};

const _: () = {
    assert!(size_of::<tandem_sort_args>() == 296);
    assert!(core::mem::offset_of!(tandem_sort_args, first) == 0);
    assert!(core::mem::offset_of!(tandem_sort_args, keys) == 72);
    assert!(core::mem::offset_of!(tandem_sort_args, values) == 136);
    assert!(core::mem::offset_of!(tandem_sort_args, scratch) == 200);
    assert!(core::mem::offset_of!(tandem_sort_args, failed) == 264);
    assert!(core::mem::offset_of!(tandem_sort_args, seed) == 272);
    assert!(core::mem::offset_of!(tandem_sort_args, lane) == 280);
    assert!(core::mem::offset_of!(tandem_sort_args, lanes) == 284);
    assert!(core::mem::offset_of!(tandem_sort_args, descending) == 288);
    assert!(core::mem::offset_of!(tandem_sort_args, step) == 292);
};

const _: () = {
    assert!(size_of::<tandem_sort_merge_args>() == 72);
    assert!(core::mem::offset_of!(tandem_sort_merge_args, keys) == 0);
    assert!(core::mem::offset_of!(tandem_sort_merge_args, values) == 16);
    assert!(core::mem::offset_of!(tandem_sort_merge_args, length) == 32);
    assert!(core::mem::offset_of!(tandem_sort_merge_args, out_keys) == 48);
    assert!(core::mem::offset_of!(tandem_sort_merge_args, out_values) == 56);
    assert!(core::mem::offset_of!(tandem_sort_merge_args, key_bytes) == 64);
    assert!(core::mem::offset_of!(tandem_sort_merge_args, descending) == 68);
};

const _: () = {
    assert!(size_of::<tandem_sort_cuts_args>() == 224);
    assert!(core::mem::offset_of!(tandem_sort_cuts_args, keys) == 0);
    assert!(core::mem::offset_of!(tandem_sort_cuts_args, length) == 64);
    assert!(core::mem::offset_of!(tandem_sort_cuts_args, rank) == 128);
    assert!(core::mem::offset_of!(tandem_sort_cuts_args, cuts) == 200);
    assert!(core::mem::offset_of!(tandem_sort_cuts_args, runs) == 208);
    assert!(core::mem::offset_of!(tandem_sort_cuts_args, key_bytes) == 212);
    assert!(core::mem::offset_of!(tandem_sort_cuts_args, descending) == 216);
};

const _: () = {
    assert!(size_of::<tandem_sumcheck_args>() == 120);
    assert!(core::mem::offset_of!(tandem_sumcheck_args, table) == 0);
    assert!(core::mem::offset_of!(tandem_sumcheck_args, columns) == 32);
    assert!(core::mem::offset_of!(tandem_sumcheck_args, stride) == 40);
    assert!(core::mem::offset_of!(tandem_sumcheck_args, values) == 48);
    assert!(core::mem::offset_of!(tandem_sumcheck_args, done) == 56);
    assert!(core::mem::offset_of!(tandem_sumcheck_args, told) == 64);
    assert!(core::mem::offset_of!(tandem_sumcheck_args, r) == 72);
    assert!(core::mem::offset_of!(tandem_sumcheck_args, n) == 104);
    assert!(core::mem::offset_of!(tandem_sumcheck_args, tables) == 112);
    assert!(core::mem::offset_of!(tandem_sumcheck_args, op) == 116);
};

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
    pub op: u32,
}

/// An element w of a scalar field as an integer, then the limbs of floor(w * 2^256 / modulus).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_factor {
    pub limb: [u64; 8],
}

/// powers[i] = first * base^i for i < 2^split, powers[2^split + i] = base^(i * 2^split); split is at most 16.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_powers_args {
    pub powers: *mut tandem_ntt_factor,
    pub first: tandem_scalar,
    pub base: tandem_scalar,
    pub split: u32,
}

/// Fewest and most bits that a pass goes over.
pub const TANDEM_NTT_MIN_LOG_ROWS: i32 = 3;

pub const TANDEM_NTT_MAX_LOG_ROWS: i32 = 9;

/// Number of the factors inside of passes.
pub const TANDEM_NTT_STAGE_FACTORS: i32 = 384;

/// The factors inside of passes, TANDEM_NTT_STAGE_FACTORS of them, of the root of unity of order 2^order_bits whose powers are given,
/// or of its inverse.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_stages_args {
    pub stages: *mut tandem_ntt_factor,
    pub powers: *const tandem_ntt_factor,
    pub order_bits: u32,
    pub split: u32,
    pub inverse: u32,
}

/// The 2^bits factors before a pass, times `scale`. Bits is low + log_rows of the pass if it is reversed, else
/// log_n - low. Where the pass is over a shard, the places of all elements have `known_bits` more: `known`, above the
/// 2^bits, or below them if the pass is reversed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_ntt_factors_args {
    pub factors: *mut tandem_ntt_factor,
    pub powers: *const tandem_ntt_factor,
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
    pub stages: *const tandem_ntt_factor,
    /// What tandem_ntt_factors_* made for this pass, or null to compute them from the powers.
    pub factors: *const tandem_ntt_factor,
    pub powers: *const tandem_ntt_factor,
    pub order_bits: u32,
    pub split: u32,
    pub log_n: u32,
    pub low: u32,
    pub log_rows: u32,
    pub reversed: u32,
    pub odd: u32,
    pub inverse: u32,
    /// Whether there are factors before this pass.
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

/// Most bits of the following.
pub const TANDEM_NTT_MAX_LOG_TINY: i32 = 7;

/// The same for one of 2^log_shards shards of a vector of 2^log_n elements, all of which this device can reach.
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
    pub powers: *const tandem_ntt_factor,
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

/// How scalars are taken apart and how points are held. Window j of `window_bits` bits belongs to bucket set
/// j % bucket_sets and to level j / bucket_sets of a table of points, whose level k holds
/// 2^(window_bits * bucket_sets * k) times the points, one level after the other.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_msm_shape {
    /// Scalars of a vector.
    pub scalars: u64,
    /// 2 to 24.
    pub window_bits: u32,
    /// Enough for the scalar field's bits.
    pub windows: u32,
    pub bucket_sets: u32,
    pub levels: u32,
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
    /// Room for bucket_sets * 2^(window_bits - 1) + 1.
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

/// The sum over points of which number i belongs to scalar first + i, as bucket_sets * window_bits partial sums.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_msm_sum_args {
    pub shape: tandem_msm_shape,
    pub first: u64,
    pub points: u64,
    pub table: *const u64,
    pub entries: *const u32,
    pub offsets: *const u32,
    /// Room for bucket_sets * window_bits points of four coordinates, x, y, zz, zzz.
    pub sums: *mut u64,
}

/// Puts the partial sums together, on the host; all pointers are host memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_msm_finish_args {
    pub shape: tandem_msm_shape,
    /// What tandem_msm_sum_* wrote.
    pub sums: *const u64,
    /// An affine point.
    pub point: *mut u64,
}

unsafe extern "C" {
    pub fn tandem_vector_bn254(args: *const tandem_vector_args, stream: tandem_stream) -> i32;
    pub fn tandem_vector_bls12_381(args: *const tandem_vector_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_powers_bn254(args: *const tandem_ntt_powers_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_stages_bn254(args: *const tandem_ntt_stages_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_factors_bn254(args: *const tandem_ntt_factors_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_pass_bn254(args: *const tandem_ntt_pass_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_tiny_bn254(args: *const tandem_ntt_tiny_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_scale_bn254(args: *const tandem_ntt_scale_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_powers_bls12_381(args: *const tandem_ntt_powers_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_stages_bls12_381(args: *const tandem_ntt_stages_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_factors_bls12_381(args: *const tandem_ntt_factors_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_pass_bls12_381(args: *const tandem_ntt_pass_args, stream: tandem_stream) -> i32;
    pub fn tandem_ntt_tiny_bls12_381(args: *const tandem_ntt_tiny_args, stream: tandem_stream) -> i32;
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
    pub fn tandem_reduce_bn254_scratch(args: *const tandem_reduce_args, bytes: *mut usize) -> i32;
    pub fn tandem_reduce_bls12_381(
        args: *const tandem_reduce_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_reduce_bls12_381_scratch(args: *const tandem_reduce_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_digits_bn254_scratch(args: *const tandem_msm_digits_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_digits_bn254(
        args: *const tandem_msm_digits_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_digits_bls12_381_scratch(args: *const tandem_msm_digits_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_digits_bls12_381(
        args: *const tandem_msm_digits_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_table_bn254_g1_scratch(args: *const tandem_msm_table_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_table_bn254_g1(
        args: *const tandem_msm_table_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_sum_bn254_g1_scratch(args: *const tandem_msm_sum_args, bytes: *mut usize) -> i32;
    pub fn tandem_ntt_spread_bn254(args: *const tandem_ntt_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_msm_sum_bn254_g1(
    pub fn tandem_ntt_tiny_spread_bn254(args: *const tandem_ntt_tiny_spread_args, stream: tandem_stream) -> i32;
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_ntt_spread_bls12_381(args: *const tandem_ntt_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_msm_finish_bn254_g1(args: *const tandem_msm_finish_args) -> i32;
    pub fn tandem_ntt_tiny_spread_bls12_381(args: *const tandem_ntt_tiny_spread_args, stream: tandem_stream) -> i32;
    pub fn tandem_msm_table_bn254_g2_scratch(args: *const tandem_msm_table_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_table_bn254_g2(
        args: *const tandem_msm_table_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_sum_bn254_g2_scratch(args: *const tandem_msm_sum_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_sum_bn254_g2(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_finish_bn254_g2(args: *const tandem_msm_finish_args) -> i32;
    pub fn tandem_msm_table_bls12_381_g1_scratch(args: *const tandem_msm_table_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_table_bls12_381_g1(
        args: *const tandem_msm_table_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_sum_bls12_381_g1_scratch(args: *const tandem_msm_sum_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_sum_bls12_381_g1(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_finish_bls12_381_g1(args: *const tandem_msm_finish_args) -> i32;
    pub fn tandem_msm_table_bls12_381_g2_scratch(args: *const tandem_msm_table_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_table_bls12_381_g2(
        args: *const tandem_msm_table_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_sum_bls12_381_g2_scratch(args: *const tandem_msm_sum_args, bytes: *mut usize) -> i32;
    pub fn tandem_msm_sum_bls12_381_g2(
        args: *const tandem_msm_sum_args,
        scratch: *mut core::ffi::c_void,
        scratch_bytes: usize,
        stream: tandem_stream,
    ) -> i32;
    pub fn tandem_msm_finish_bls12_381_g2(args: *const tandem_msm_finish_args) -> i32;
}

const _: () = {
    assert!(size_of::<tandem_scalar>() == 32);
    assert!(core::mem::offset_of!(tandem_scalar, limb) == 0);
};

const _: () = {
    assert!(size_of::<tandem_vector_args>() == 80);
    assert!(core::mem::offset_of!(tandem_vector_args, out) == 0);
    assert!(core::mem::offset_of!(tandem_vector_args, a) == 8);
    assert!(core::mem::offset_of!(tandem_vector_args, b) == 16);
    assert!(core::mem::offset_of!(tandem_vector_args, c) == 24);
    assert!(core::mem::offset_of!(tandem_vector_args, k) == 32);
    assert!(core::mem::offset_of!(tandem_vector_args, n) == 64);
    assert!(core::mem::offset_of!(tandem_vector_args, op) == 72);
};

const _: () = {
    assert!(size_of::<tandem_ntt_factor>() == 64);
    assert!(core::mem::offset_of!(tandem_ntt_factor, limb) == 0);
};

const _: () = {
    assert!(size_of::<tandem_ntt_powers_args>() == 48);
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
    assert!(size_of::<tandem_ntt_factors_args>() == 80);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, factors) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, powers) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, scale) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, order_bits) == 48);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, split) == 52);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, bits) == 56);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, log_rows) == 60);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, reversed) == 64);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, odd) == 68);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, inverse) == 72);
};

const _: () = {
    assert!(size_of::<tandem_ntt_pass_args>() == 88);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, input) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, output) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, stages) == 16);
    assert!(core::mem::offset_of!(tandem_ntt_pass_args, factors) == 24);
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
    assert!(size_of::<tandem_ntt_tiny_args>() == 88);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, data) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, root) == 8);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, scale) == 40);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, log_n) == 72);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, input_reversed) == 76);
    assert!(core::mem::offset_of!(tandem_ntt_tiny_args, output_reversed) == 80);
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
    assert!(size_of::<tandem_msm_shape>() == 32);
    assert!(core::mem::offset_of!(tandem_msm_shape, scalars) == 0);
    assert!(core::mem::offset_of!(tandem_msm_shape, window_bits) == 8);
    assert!(core::mem::offset_of!(tandem_msm_shape, windows) == 12);
    assert!(core::mem::offset_of!(tandem_msm_shape, bucket_sets) == 16);
    assert!(core::mem::offset_of!(tandem_msm_shape, levels) == 20);
    assert!(core::mem::offset_of!(tandem_msm_shape, index_bits) == 24);
};

const _: () = {
    assert!(size_of::<tandem_msm_digits_args>() == 64);
    assert!(core::mem::offset_of!(tandem_msm_digits_args, shape) == 0);
    assert!(core::mem::offset_of!(tandem_msm_digits_args, scalars) == 32);
    assert!(core::mem::offset_of!(tandem_msm_digits_args, montgomery) == 40);
    assert!(core::mem::offset_of!(tandem_msm_digits_args, entries) == 48);
    assert!(core::mem::offset_of!(tandem_msm_digits_args, offsets) == 56);
};

const _: () = {
    assert!(size_of::<tandem_msm_table_args>() == 48);
    assert!(core::mem::offset_of!(tandem_msm_table_args, shape) == 0);
    assert!(core::mem::offset_of!(tandem_msm_table_args, points) == 32);
    assert!(core::mem::offset_of!(tandem_msm_table_args, table) == 40);
};

const _: () = {
    assert!(size_of::<tandem_msm_sum_args>() == 80);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, shape) == 0);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, known_bits) == 76);
    assert!(core::mem::offset_of!(tandem_ntt_factors_args, known) == 80);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, first) == 32);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, points) == 40);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, table) == 48);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, entries) == 56);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, offsets) == 64);
    assert!(core::mem::offset_of!(tandem_msm_sum_args, sums) == 72);
};

const _: () = {
    assert!(size_of::<tandem_msm_finish_args>() == 48);
    assert!(core::mem::offset_of!(tandem_msm_finish_args, shape) == 0);
    assert!(core::mem::offset_of!(tandem_msm_finish_args, sums) == 32);
    assert!(core::mem::offset_of!(tandem_msm_finish_args, point) == 40);
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


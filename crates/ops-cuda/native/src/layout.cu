// The layout that src/ffi.rs asserts too, made by `cargo xtask bindgen`. Not to be edited.
#include "tandem_ops.h"

static_assert(sizeof(tandem_scalar) == 32, "size of tandem_scalar");
static_assert(offsetof(tandem_scalar, limb) == 0, "tandem_scalar.limb");

static_assert(sizeof(tandem_vector_args) == 80, "size of tandem_vector_args");
static_assert(offsetof(tandem_vector_args, out) == 0, "tandem_vector_args.out");
static_assert(offsetof(tandem_vector_args, a) == 8, "tandem_vector_args.a");
static_assert(offsetof(tandem_vector_args, b) == 16, "tandem_vector_args.b");
static_assert(offsetof(tandem_vector_args, c) == 24, "tandem_vector_args.c");
static_assert(offsetof(tandem_vector_args, k) == 32, "tandem_vector_args.k");
static_assert(offsetof(tandem_vector_args, n) == 64, "tandem_vector_args.n");
static_assert(offsetof(tandem_vector_args, op) == 72, "tandem_vector_args.op");

static_assert(sizeof(tandem_msm_shape) == 32, "size of tandem_msm_shape");
static_assert(offsetof(tandem_msm_shape, scalars) == 0, "tandem_msm_shape.scalars");
static_assert(offsetof(tandem_msm_shape, window_bits) == 8, "tandem_msm_shape.window_bits");
static_assert(offsetof(tandem_msm_shape, windows) == 12, "tandem_msm_shape.windows");
static_assert(offsetof(tandem_msm_shape, bucket_sets) == 16, "tandem_msm_shape.bucket_sets");
static_assert(offsetof(tandem_msm_shape, levels) == 20, "tandem_msm_shape.levels");
static_assert(offsetof(tandem_msm_shape, index_bits) == 24, "tandem_msm_shape.index_bits");

static_assert(sizeof(tandem_msm_digits_args) == 64, "size of tandem_msm_digits_args");
static_assert(offsetof(tandem_msm_digits_args, shape) == 0, "tandem_msm_digits_args.shape");
static_assert(offsetof(tandem_msm_digits_args, scalars) == 32, "tandem_msm_digits_args.scalars");
static_assert(offsetof(tandem_msm_digits_args, montgomery) == 40, "tandem_msm_digits_args.montgomery");
static_assert(offsetof(tandem_msm_digits_args, entries) == 48, "tandem_msm_digits_args.entries");
static_assert(offsetof(tandem_msm_digits_args, offsets) == 56, "tandem_msm_digits_args.offsets");

static_assert(sizeof(tandem_msm_table_args) == 48, "size of tandem_msm_table_args");
static_assert(offsetof(tandem_msm_table_args, shape) == 0, "tandem_msm_table_args.shape");
static_assert(offsetof(tandem_msm_table_args, points) == 32, "tandem_msm_table_args.points");
static_assert(offsetof(tandem_msm_table_args, table) == 40, "tandem_msm_table_args.table");

static_assert(sizeof(tandem_msm_sum_args) == 80, "size of tandem_msm_sum_args");
static_assert(offsetof(tandem_msm_sum_args, shape) == 0, "tandem_msm_sum_args.shape");
static_assert(offsetof(tandem_msm_sum_args, first) == 32, "tandem_msm_sum_args.first");
static_assert(offsetof(tandem_msm_sum_args, points) == 40, "tandem_msm_sum_args.points");
static_assert(offsetof(tandem_msm_sum_args, table) == 48, "tandem_msm_sum_args.table");
static_assert(offsetof(tandem_msm_sum_args, entries) == 56, "tandem_msm_sum_args.entries");
static_assert(offsetof(tandem_msm_sum_args, offsets) == 64, "tandem_msm_sum_args.offsets");
static_assert(offsetof(tandem_msm_sum_args, sums) == 72, "tandem_msm_sum_args.sums");

static_assert(sizeof(tandem_msm_finish_args) == 48, "size of tandem_msm_finish_args");
static_assert(offsetof(tandem_msm_finish_args, shape) == 0, "tandem_msm_finish_args.shape");
static_assert(offsetof(tandem_msm_finish_args, sums) == 32, "tandem_msm_finish_args.sums");
static_assert(offsetof(tandem_msm_finish_args, point) == 40, "tandem_msm_finish_args.point");

// The layout that src/ffi.rs asserts too, made by `cargo xtask bindgen`. Not to be edited.
#include "tandem_ops.h"

static_assert(sizeof(tandem_scalar) == 32, "size of tandem_scalar");
static_assert(offsetof(tandem_scalar, limb) == 0, "tandem_scalar.limb");

static_assert(sizeof(tandem_vector_args) == 88, "size of tandem_vector_args");
static_assert(offsetof(tandem_vector_args, out) == 0, "tandem_vector_args.out");
static_assert(offsetof(tandem_vector_args, a) == 8, "tandem_vector_args.a");
static_assert(offsetof(tandem_vector_args, b) == 16, "tandem_vector_args.b");
static_assert(offsetof(tandem_vector_args, c) == 24, "tandem_vector_args.c");
static_assert(offsetof(tandem_vector_args, k) == 32, "tandem_vector_args.k");
static_assert(offsetof(tandem_vector_args, n) == 64, "tandem_vector_args.n");
static_assert(offsetof(tandem_vector_args, step) == 72, "tandem_vector_args.step");
static_assert(offsetof(tandem_vector_args, op) == 80, "tandem_vector_args.op");

static_assert(sizeof(tandem_combined_args) == 792, "size of tandem_combined_args");
static_assert(offsetof(tandem_combined_args, out) == 0, "tandem_combined_args.out");
static_assert(offsetof(tandem_combined_args, vectors) == 8, "tandem_combined_args.vectors");
static_assert(offsetof(tandem_combined_args, lengths) == 136, "tandem_combined_args.lengths");
static_assert(offsetof(tandem_combined_args, factors) == 264, "tandem_combined_args.factors");
static_assert(offsetof(tandem_combined_args, n) == 776, "tandem_combined_args.n");
static_assert(offsetof(tandem_combined_args, terms) == 784, "tandem_combined_args.terms");

static_assert(sizeof(tandem_gate_rows_args) == 80, "size of tandem_gate_rows_args");
static_assert(offsetof(tandem_gate_rows_args, out) == 0, "tandem_gate_rows_args.out");
static_assert(offsetof(tandem_gate_rows_args, columns) == 8, "tandem_gate_rows_args.columns");
static_assert(offsetof(tandem_gate_rows_args, selectors) == 32, "tandem_gate_rows_args.selectors");
static_assert(offsetof(tandem_gate_rows_args, n) == 72, "tandem_gate_rows_args.n");

static_assert(sizeof(tandem_permuted_rows_args) == 192, "size of tandem_permuted_rows_args");
static_assert(offsetof(tandem_permuted_rows_args, out) == 0, "tandem_permuted_rows_args.out");
static_assert(offsetof(tandem_permuted_rows_args, columns) == 8, "tandem_permuted_rows_args.columns");
static_assert(offsetof(tandem_permuted_rows_args, places) == 32, "tandem_permuted_rows_args.places");
static_assert(offsetof(tandem_permuted_rows_args, factors) == 56, "tandem_permuted_rows_args.factors");
static_assert(offsetof(tandem_permuted_rows_args, gamma) == 152, "tandem_permuted_rows_args.gamma");
static_assert(offsetof(tandem_permuted_rows_args, n) == 184, "tandem_permuted_rows_args.n");

static_assert(sizeof(tandem_quotient_rows_args) == 328, "size of tandem_quotient_rows_args");
static_assert(offsetof(tandem_quotient_rows_args, out) == 0, "tandem_quotient_rows_args.out");
static_assert(offsetof(tandem_quotient_rows_args, vectors) == 8, "tandem_quotient_rows_args.vectors");
static_assert(offsetof(tandem_quotient_rows_args, numbers) == 128, "tandem_quotient_rows_args.numbers");
static_assert(offsetof(tandem_quotient_rows_args, n) == 320, "tandem_quotient_rows_args.n");

static_assert(sizeof(tandem_batch_inverse_args) == 24, "size of tandem_batch_inverse_args");
static_assert(offsetof(tandem_batch_inverse_args, data) == 0, "tandem_batch_inverse_args.data");
static_assert(offsetof(tandem_batch_inverse_args, n) == 8, "tandem_batch_inverse_args.n");
static_assert(offsetof(tandem_batch_inverse_args, threads) == 16, "tandem_batch_inverse_args.threads");

static_assert(sizeof(tandem_scan_args) == 72, "size of tandem_scan_args");
static_assert(offsetof(tandem_scan_args, data) == 0, "tandem_scan_args.data");
static_assert(offsetof(tandem_scan_args, chunks) == 8, "tandem_scan_args.chunks");
static_assert(offsetof(tandem_scan_args, factor) == 16, "tandem_scan_args.factor");
static_assert(offsetof(tandem_scan_args, n) == 48, "tandem_scan_args.n");
static_assert(offsetof(tandem_scan_args, columns) == 56, "tandem_scan_args.columns");
static_assert(offsetof(tandem_scan_args, op) == 64, "tandem_scan_args.op");
static_assert(offsetof(tandem_scan_args, exclusive) == 68, "tandem_scan_args.exclusive");

static_assert(sizeof(tandem_point_ntt_args) == 24, "size of tandem_point_ntt_args");
static_assert(offsetof(tandem_point_ntt_args, points) == 0, "tandem_point_ntt_args.points");
static_assert(offsetof(tandem_point_ntt_args, factors) == 8, "tandem_point_ntt_args.factors");
static_assert(offsetof(tandem_point_ntt_args, log_n) == 16, "tandem_point_ntt_args.log_n");

static_assert(sizeof(tandem_gather_args) == 40, "size of tandem_gather_args");
static_assert(offsetof(tandem_gather_args, from) == 0, "tandem_gather_args.from");
static_assert(offsetof(tandem_gather_args, to) == 8, "tandem_gather_args.to");
static_assert(offsetof(tandem_gather_args, map) == 16, "tandem_gather_args.map");
static_assert(offsetof(tandem_gather_args, n) == 24, "tandem_gather_args.n");
static_assert(offsetof(tandem_gather_args, element_bytes) == 32, "tandem_gather_args.element_bytes");

static_assert(sizeof(tandem_ntt_twiddle) == 64, "size of tandem_ntt_twiddle");
static_assert(offsetof(tandem_ntt_twiddle, limb) == 0, "tandem_ntt_twiddle.limb");

static_assert(sizeof(tandem_ntt_powers_args) == 80, "size of tandem_ntt_powers_args");
static_assert(offsetof(tandem_ntt_powers_args, powers) == 0, "tandem_ntt_powers_args.powers");
static_assert(offsetof(tandem_ntt_powers_args, first) == 8, "tandem_ntt_powers_args.first");
static_assert(offsetof(tandem_ntt_powers_args, base) == 40, "tandem_ntt_powers_args.base");
static_assert(offsetof(tandem_ntt_powers_args, split) == 72, "tandem_ntt_powers_args.split");

static_assert(sizeof(tandem_ntt_stages_args) == 32, "size of tandem_ntt_stages_args");
static_assert(offsetof(tandem_ntt_stages_args, stages) == 0, "tandem_ntt_stages_args.stages");
static_assert(offsetof(tandem_ntt_stages_args, powers) == 8, "tandem_ntt_stages_args.powers");
static_assert(offsetof(tandem_ntt_stages_args, order_bits) == 16, "tandem_ntt_stages_args.order_bits");
static_assert(offsetof(tandem_ntt_stages_args, split) == 20, "tandem_ntt_stages_args.split");
static_assert(offsetof(tandem_ntt_stages_args, inverse) == 24, "tandem_ntt_stages_args.inverse");

static_assert(sizeof(tandem_ntt_twiddles_args) == 88, "size of tandem_ntt_twiddles_args");
static_assert(offsetof(tandem_ntt_twiddles_args, twiddles) == 0, "tandem_ntt_twiddles_args.twiddles");
static_assert(offsetof(tandem_ntt_twiddles_args, powers) == 8, "tandem_ntt_twiddles_args.powers");
static_assert(offsetof(tandem_ntt_twiddles_args, scale) == 16, "tandem_ntt_twiddles_args.scale");
static_assert(offsetof(tandem_ntt_twiddles_args, order_bits) == 48, "tandem_ntt_twiddles_args.order_bits");
static_assert(offsetof(tandem_ntt_twiddles_args, split) == 52, "tandem_ntt_twiddles_args.split");
static_assert(offsetof(tandem_ntt_twiddles_args, bits) == 56, "tandem_ntt_twiddles_args.bits");
static_assert(offsetof(tandem_ntt_twiddles_args, log_rows) == 60, "tandem_ntt_twiddles_args.log_rows");
static_assert(offsetof(tandem_ntt_twiddles_args, reversed) == 64, "tandem_ntt_twiddles_args.reversed");
static_assert(offsetof(tandem_ntt_twiddles_args, odd) == 68, "tandem_ntt_twiddles_args.odd");
static_assert(offsetof(tandem_ntt_twiddles_args, inverse) == 72, "tandem_ntt_twiddles_args.inverse");
static_assert(offsetof(tandem_ntt_twiddles_args, known_bits) == 76, "tandem_ntt_twiddles_args.known_bits");
static_assert(offsetof(tandem_ntt_twiddles_args, known) == 80, "tandem_ntt_twiddles_args.known");

static_assert(sizeof(tandem_ntt_pass_args) == 88, "size of tandem_ntt_pass_args");
static_assert(offsetof(tandem_ntt_pass_args, input) == 0, "tandem_ntt_pass_args.input");
static_assert(offsetof(tandem_ntt_pass_args, output) == 8, "tandem_ntt_pass_args.output");
static_assert(offsetof(tandem_ntt_pass_args, stages) == 16, "tandem_ntt_pass_args.stages");
static_assert(offsetof(tandem_ntt_pass_args, twiddles) == 24, "tandem_ntt_pass_args.twiddles");
static_assert(offsetof(tandem_ntt_pass_args, powers) == 32, "tandem_ntt_pass_args.powers");
static_assert(offsetof(tandem_ntt_pass_args, order_bits) == 40, "tandem_ntt_pass_args.order_bits");
static_assert(offsetof(tandem_ntt_pass_args, split) == 44, "tandem_ntt_pass_args.split");
static_assert(offsetof(tandem_ntt_pass_args, log_n) == 48, "tandem_ntt_pass_args.log_n");
static_assert(offsetof(tandem_ntt_pass_args, low) == 52, "tandem_ntt_pass_args.low");
static_assert(offsetof(tandem_ntt_pass_args, log_rows) == 56, "tandem_ntt_pass_args.log_rows");
static_assert(offsetof(tandem_ntt_pass_args, reversed) == 60, "tandem_ntt_pass_args.reversed");
static_assert(offsetof(tandem_ntt_pass_args, odd) == 64, "tandem_ntt_pass_args.odd");
static_assert(offsetof(tandem_ntt_pass_args, inverse) == 68, "tandem_ntt_pass_args.inverse");
static_assert(offsetof(tandem_ntt_pass_args, multiply) == 72, "tandem_ntt_pass_args.multiply");
static_assert(offsetof(tandem_ntt_pass_args, reorder) == 76, "tandem_ntt_pass_args.reorder");
static_assert(offsetof(tandem_ntt_pass_args, last) == 80, "tandem_ntt_pass_args.last");

static_assert(sizeof(tandem_ntt_spread_args) == 240, "size of tandem_ntt_spread_args");
static_assert(offsetof(tandem_ntt_spread_args, pass) == 0, "tandem_ntt_spread_args.pass");
static_assert(offsetof(tandem_ntt_spread_args, targets) == 88, "tandem_ntt_spread_args.targets");
static_assert(offsetof(tandem_ntt_spread_args, log_shards) == 216, "tandem_ntt_spread_args.log_shards");
static_assert(offsetof(tandem_ntt_spread_args, sections_in) == 220, "tandem_ntt_spread_args.sections_in");
static_assert(offsetof(tandem_ntt_spread_args, scatter) == 224, "tandem_ntt_spread_args.scatter");
static_assert(offsetof(tandem_ntt_spread_args, known_bits) == 228, "tandem_ntt_spread_args.known_bits");
static_assert(offsetof(tandem_ntt_spread_args, known) == 232, "tandem_ntt_spread_args.known");

static_assert(sizeof(tandem_ntt_product_args) == 112, "size of tandem_ntt_product_args");
static_assert(offsetof(tandem_ntt_product_args, pass) == 0, "tandem_ntt_product_args.pass");
static_assert(offsetof(tandem_ntt_product_args, times) == 88, "tandem_ntt_product_args.times");
static_assert(offsetof(tandem_ntt_product_args, a) == 96, "tandem_ntt_product_args.a");
static_assert(offsetof(tandem_ntt_product_args, b) == 104, "tandem_ntt_product_args.b");

static_assert(sizeof(tandem_ntt_batch_args) == 96, "size of tandem_ntt_batch_args");
static_assert(offsetof(tandem_ntt_batch_args, pass) == 0, "tandem_ntt_batch_args.pass");
static_assert(offsetof(tandem_ntt_batch_args, count) == 88, "tandem_ntt_batch_args.count");

static_assert(sizeof(tandem_ntt_tiny_args) == 88, "size of tandem_ntt_tiny_args");
static_assert(offsetof(tandem_ntt_tiny_args, data) == 0, "tandem_ntt_tiny_args.data");
static_assert(offsetof(tandem_ntt_tiny_args, root) == 8, "tandem_ntt_tiny_args.root");
static_assert(offsetof(tandem_ntt_tiny_args, scale) == 40, "tandem_ntt_tiny_args.scale");
static_assert(offsetof(tandem_ntt_tiny_args, log_n) == 72, "tandem_ntt_tiny_args.log_n");
static_assert(offsetof(tandem_ntt_tiny_args, input_reversed) == 76, "tandem_ntt_tiny_args.input_reversed");
static_assert(offsetof(tandem_ntt_tiny_args, output_reversed) == 80, "tandem_ntt_tiny_args.output_reversed");

static_assert(sizeof(tandem_ntt_tiny_spread_args) == 224, "size of tandem_ntt_tiny_spread_args");
static_assert(offsetof(tandem_ntt_tiny_spread_args, shards) == 0, "tandem_ntt_tiny_spread_args.shards");
static_assert(offsetof(tandem_ntt_tiny_spread_args, output) == 128, "tandem_ntt_tiny_spread_args.output");
static_assert(offsetof(tandem_ntt_tiny_spread_args, root) == 136, "tandem_ntt_tiny_spread_args.root");
static_assert(offsetof(tandem_ntt_tiny_spread_args, scale) == 168, "tandem_ntt_tiny_spread_args.scale");
static_assert(offsetof(tandem_ntt_tiny_spread_args, log_n) == 200, "tandem_ntt_tiny_spread_args.log_n");
static_assert(offsetof(tandem_ntt_tiny_spread_args, log_shards) == 204, "tandem_ntt_tiny_spread_args.log_shards");
static_assert(offsetof(tandem_ntt_tiny_spread_args, shard) == 208, "tandem_ntt_tiny_spread_args.shard");
static_assert(offsetof(tandem_ntt_tiny_spread_args, input_reversed) == 212, "tandem_ntt_tiny_spread_args.input_reversed");
static_assert(offsetof(tandem_ntt_tiny_spread_args, output_reversed) == 216, "tandem_ntt_tiny_spread_args.output_reversed");

static_assert(sizeof(tandem_ntt_scale_args) == 32, "size of tandem_ntt_scale_args");
static_assert(offsetof(tandem_ntt_scale_args, data) == 0, "tandem_ntt_scale_args.data");
static_assert(offsetof(tandem_ntt_scale_args, powers) == 8, "tandem_ntt_scale_args.powers");
static_assert(offsetof(tandem_ntt_scale_args, split) == 16, "tandem_ntt_scale_args.split");
static_assert(offsetof(tandem_ntt_scale_args, log_n) == 20, "tandem_ntt_scale_args.log_n");
static_assert(offsetof(tandem_ntt_scale_args, reversed) == 24, "tandem_ntt_scale_args.reversed");

static_assert(sizeof(tandem_spmv_args) == 88, "size of tandem_spmv_args");
static_assert(offsetof(tandem_spmv_args, starts) == 0, "tandem_spmv_args.starts");
static_assert(offsetof(tandem_spmv_args, column) == 8, "tandem_spmv_args.column");
static_assert(offsetof(tandem_spmv_args, value) == 16, "tandem_spmv_args.value");
static_assert(offsetof(tandem_spmv_args, values) == 24, "tandem_spmv_args.values");
static_assert(offsetof(tandem_spmv_args, order) == 32, "tandem_spmv_args.order");
static_assert(offsetof(tandem_spmv_args, rows) == 40, "tandem_spmv_args.rows");
static_assert(offsetof(tandem_spmv_args, thread_rows) == 48, "tandem_spmv_args.thread_rows");
static_assert(offsetof(tandem_spmv_args, warp_rows) == 56, "tandem_spmv_args.warp_rows");
static_assert(offsetof(tandem_spmv_args, x) == 64, "tandem_spmv_args.x");
static_assert(offsetof(tandem_spmv_args, output) == 72, "tandem_spmv_args.output");
static_assert(offsetof(tandem_spmv_args, output_length) == 80, "tandem_spmv_args.output_length");

static_assert(sizeof(tandem_poseidon_args) == 56, "size of tandem_poseidon_args");
static_assert(offsetof(tandem_poseidon_args, input) == 0, "tandem_poseidon_args.input");
static_assert(offsetof(tandem_poseidon_args, output) == 8, "tandem_poseidon_args.output");
static_assert(offsetof(tandem_poseidon_args, table) == 16, "tandem_poseidon_args.table");
static_assert(offsetof(tandem_poseidon_args, hashes) == 24, "tandem_poseidon_args.hashes");
static_assert(offsetof(tandem_poseidon_args, width) == 32, "tandem_poseidon_args.width");
static_assert(offsetof(tandem_poseidon_args, full_rounds) == 36, "tandem_poseidon_args.full_rounds");
static_assert(offsetof(tandem_poseidon_args, partial_rounds) == 40, "tandem_poseidon_args.partial_rounds");
static_assert(offsetof(tandem_poseidon_args, block) == 44, "tandem_poseidon_args.block");
static_assert(offsetof(tandem_poseidon_args, integers) == 48, "tandem_poseidon_args.integers");

static_assert(sizeof(tandem_reduce_args) == 48, "size of tandem_reduce_args");
static_assert(offsetof(tandem_reduce_args, data) == 0, "tandem_reduce_args.data");
static_assert(offsetof(tandem_reduce_args, groups) == 8, "tandem_reduce_args.groups");
static_assert(offsetof(tandem_reduce_args, too_large) == 16, "tandem_reduce_args.too_large");
static_assert(offsetof(tandem_reduce_args, n) == 24, "tandem_reduce_args.n");
static_assert(offsetof(tandem_reduce_args, first) == 32, "tandem_reduce_args.first");
static_assert(offsetof(tandem_reduce_args, op) == 40, "tandem_reduce_args.op");

static_assert(sizeof(tandem_msm_shape) == 48, "size of tandem_msm_shape");
static_assert(offsetof(tandem_msm_shape, scalars) == 0, "tandem_msm_shape.scalars");
static_assert(offsetof(tandem_msm_shape, window_bits) == 8, "tandem_msm_shape.window_bits");
static_assert(offsetof(tandem_msm_shape, windows) == 12, "tandem_msm_shape.windows");
static_assert(offsetof(tandem_msm_shape, step_bits) == 16, "tandem_msm_shape.step_bits");
static_assert(offsetof(tandem_msm_shape, window_positions) == 20, "tandem_msm_shape.window_positions");
static_assert(offsetof(tandem_msm_shape, bucket_sets) == 24, "tandem_msm_shape.bucket_sets");
static_assert(offsetof(tandem_msm_shape, table_levels) == 28, "tandem_msm_shape.table_levels");
static_assert(offsetof(tandem_msm_shape, levels_per_window) == 32, "tandem_msm_shape.levels_per_window");
static_assert(offsetof(tandem_msm_shape, carry_free_windows) == 36, "tandem_msm_shape.carry_free_windows");
static_assert(offsetof(tandem_msm_shape, index_bits) == 40, "tandem_msm_shape.index_bits");

static_assert(sizeof(tandem_msm_digits_args) == 80, "size of tandem_msm_digits_args");
static_assert(offsetof(tandem_msm_digits_args, shape) == 0, "tandem_msm_digits_args.shape");
static_assert(offsetof(tandem_msm_digits_args, scalars) == 48, "tandem_msm_digits_args.scalars");
static_assert(offsetof(tandem_msm_digits_args, montgomery) == 56, "tandem_msm_digits_args.montgomery");
static_assert(offsetof(tandem_msm_digits_args, entries) == 64, "tandem_msm_digits_args.entries");
static_assert(offsetof(tandem_msm_digits_args, offsets) == 72, "tandem_msm_digits_args.offsets");

static_assert(sizeof(tandem_msm_table_args) == 64, "size of tandem_msm_table_args");
static_assert(offsetof(tandem_msm_table_args, shape) == 0, "tandem_msm_table_args.shape");
static_assert(offsetof(tandem_msm_table_args, points) == 48, "tandem_msm_table_args.points");
static_assert(offsetof(tandem_msm_table_args, table) == 56, "tandem_msm_table_args.table");

static_assert(sizeof(tandem_msm_sum_args) == 104, "size of tandem_msm_sum_args");
static_assert(offsetof(tandem_msm_sum_args, shape) == 0, "tandem_msm_sum_args.shape");
static_assert(offsetof(tandem_msm_sum_args, first) == 48, "tandem_msm_sum_args.first");
static_assert(offsetof(tandem_msm_sum_args, points) == 56, "tandem_msm_sum_args.points");
static_assert(offsetof(tandem_msm_sum_args, table) == 64, "tandem_msm_sum_args.table");
static_assert(offsetof(tandem_msm_sum_args, entries) == 72, "tandem_msm_sum_args.entries");
static_assert(offsetof(tandem_msm_sum_args, offsets) == 80, "tandem_msm_sum_args.offsets");
static_assert(offsetof(tandem_msm_sum_args, sums) == 88, "tandem_msm_sum_args.sums");
static_assert(offsetof(tandem_msm_sum_args, rounds) == 96, "tandem_msm_sum_args.rounds");
static_assert(offsetof(tandem_msm_sum_args, chunk) == 100, "tandem_msm_sum_args.chunk");

static_assert(sizeof(tandem_ntt_small_powers_args) == 32, "size of tandem_ntt_small_powers_args");
static_assert(offsetof(tandem_ntt_small_powers_args, out) == 0, "tandem_ntt_small_powers_args.out");
static_assert(offsetof(tandem_ntt_small_powers_args, base) == 8, "tandem_ntt_small_powers_args.base");
static_assert(offsetof(tandem_ntt_small_powers_args, step) == 16, "tandem_ntt_small_powers_args.step");
static_assert(offsetof(tandem_ntt_small_powers_args, count) == 24, "tandem_ntt_small_powers_args.count");

static_assert(sizeof(tandem_ntt_small_twiddles_args) == 40, "size of tandem_ntt_small_twiddles_args");
static_assert(offsetof(tandem_ntt_small_twiddles_args, out) == 0, "tandem_ntt_small_twiddles_args.out");
static_assert(offsetof(tandem_ntt_small_twiddles_args, powers) == 8, "tandem_ntt_small_twiddles_args.powers");
static_assert(offsetof(tandem_ntt_small_twiddles_args, order_bits) == 16, "tandem_ntt_small_twiddles_args.order_bits");
static_assert(offsetof(tandem_ntt_small_twiddles_args, split) == 20, "tandem_ntt_small_twiddles_args.split");
static_assert(offsetof(tandem_ntt_small_twiddles_args, bits) == 24, "tandem_ntt_small_twiddles_args.bits");
static_assert(offsetof(tandem_ntt_small_twiddles_args, log_rows) == 28, "tandem_ntt_small_twiddles_args.log_rows");
static_assert(offsetof(tandem_ntt_small_twiddles_args, reversed) == 32, "tandem_ntt_small_twiddles_args.reversed");
static_assert(offsetof(tandem_ntt_small_twiddles_args, inverse) == 36, "tandem_ntt_small_twiddles_args.inverse");

static_assert(sizeof(tandem_ntt_small_pass_args) == 112, "size of tandem_ntt_small_pass_args");
static_assert(offsetof(tandem_ntt_small_pass_args, input) == 0, "tandem_ntt_small_pass_args.input");
static_assert(offsetof(tandem_ntt_small_pass_args, output) == 8, "tandem_ntt_small_pass_args.output");
static_assert(offsetof(tandem_ntt_small_pass_args, powers) == 16, "tandem_ntt_small_pass_args.powers");
static_assert(offsetof(tandem_ntt_small_pass_args, stages) == 24, "tandem_ntt_small_pass_args.stages");
static_assert(offsetof(tandem_ntt_small_pass_args, twiddles) == 32, "tandem_ntt_small_pass_args.twiddles");
static_assert(offsetof(tandem_ntt_small_pass_args, coset) == 40, "tandem_ntt_small_pass_args.coset");
static_assert(offsetof(tandem_ntt_small_pass_args, scale) == 48, "tandem_ntt_small_pass_args.scale");
static_assert(offsetof(tandem_ntt_small_pass_args, count) == 56, "tandem_ntt_small_pass_args.count");
static_assert(offsetof(tandem_ntt_small_pass_args, order_bits) == 64, "tandem_ntt_small_pass_args.order_bits");
static_assert(offsetof(tandem_ntt_small_pass_args, split) == 68, "tandem_ntt_small_pass_args.split");
static_assert(offsetof(tandem_ntt_small_pass_args, log_n) == 72, "tandem_ntt_small_pass_args.log_n");
static_assert(offsetof(tandem_ntt_small_pass_args, low) == 76, "tandem_ntt_small_pass_args.low");
static_assert(offsetof(tandem_ntt_small_pass_args, log_rows) == 80, "tandem_ntt_small_pass_args.log_rows");
static_assert(offsetof(tandem_ntt_small_pass_args, reversed) == 84, "tandem_ntt_small_pass_args.reversed");
static_assert(offsetof(tandem_ntt_small_pass_args, inverse) == 88, "tandem_ntt_small_pass_args.inverse");
static_assert(offsetof(tandem_ntt_small_pass_args, multiply) == 92, "tandem_ntt_small_pass_args.multiply");
static_assert(offsetof(tandem_ntt_small_pass_args, reorder) == 96, "tandem_ntt_small_pass_args.reorder");
static_assert(offsetof(tandem_ntt_small_pass_args, last) == 100, "tandem_ntt_small_pass_args.last");
static_assert(offsetof(tandem_ntt_small_pass_args, follows) == 104, "tandem_ntt_small_pass_args.follows");

static_assert(sizeof(tandem_ntt_small_spread_args) == 264, "size of tandem_ntt_small_spread_args");
static_assert(offsetof(tandem_ntt_small_spread_args, pass) == 0, "tandem_ntt_small_spread_args.pass");
static_assert(offsetof(tandem_ntt_small_spread_args, targets) == 112, "tandem_ntt_small_spread_args.targets");
static_assert(offsetof(tandem_ntt_small_spread_args, log_shards) == 240, "tandem_ntt_small_spread_args.log_shards");
static_assert(offsetof(tandem_ntt_small_spread_args, sections_in) == 244, "tandem_ntt_small_spread_args.sections_in");
static_assert(offsetof(tandem_ntt_small_spread_args, scatter) == 248, "tandem_ntt_small_spread_args.scatter");
static_assert(offsetof(tandem_ntt_small_spread_args, known_bits) == 252, "tandem_ntt_small_spread_args.known_bits");
static_assert(offsetof(tandem_ntt_small_spread_args, known) == 256, "tandem_ntt_small_spread_args.known");

static_assert(sizeof(tandem_ntt_small_tiny_args) == 64, "size of tandem_ntt_small_tiny_args");
static_assert(offsetof(tandem_ntt_small_tiny_args, data) == 0, "tandem_ntt_small_tiny_args.data");
static_assert(offsetof(tandem_ntt_small_tiny_args, root) == 8, "tandem_ntt_small_tiny_args.root");
static_assert(offsetof(tandem_ntt_small_tiny_args, scale) == 16, "tandem_ntt_small_tiny_args.scale");
static_assert(offsetof(tandem_ntt_small_tiny_args, before) == 24, "tandem_ntt_small_tiny_args.before");
static_assert(offsetof(tandem_ntt_small_tiny_args, after) == 32, "tandem_ntt_small_tiny_args.after");
static_assert(offsetof(tandem_ntt_small_tiny_args, count) == 40, "tandem_ntt_small_tiny_args.count");
static_assert(offsetof(tandem_ntt_small_tiny_args, log_n) == 48, "tandem_ntt_small_tiny_args.log_n");
static_assert(offsetof(tandem_ntt_small_tiny_args, input_reversed) == 52, "tandem_ntt_small_tiny_args.input_reversed");
static_assert(offsetof(tandem_ntt_small_tiny_args, output_reversed) == 56, "tandem_ntt_small_tiny_args.output_reversed");

static_assert(sizeof(tandem_ntt_small_tiny_spread_args) == 192, "size of tandem_ntt_small_tiny_spread_args");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, shards) == 0, "tandem_ntt_small_tiny_spread_args.shards");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, output) == 128, "tandem_ntt_small_tiny_spread_args.output");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, root) == 136, "tandem_ntt_small_tiny_spread_args.root");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, scale) == 144, "tandem_ntt_small_tiny_spread_args.scale");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, before) == 152, "tandem_ntt_small_tiny_spread_args.before");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, after) == 160, "tandem_ntt_small_tiny_spread_args.after");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, log_n) == 168, "tandem_ntt_small_tiny_spread_args.log_n");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, log_shards) == 172, "tandem_ntt_small_tiny_spread_args.log_shards");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, shard) == 176, "tandem_ntt_small_tiny_spread_args.shard");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, input_reversed) == 180, "tandem_ntt_small_tiny_spread_args.input_reversed");
static_assert(offsetof(tandem_ntt_small_tiny_spread_args, output_reversed) == 184, "tandem_ntt_small_tiny_spread_args.output_reversed");

static_assert(sizeof(tandem_ntt_small_scale_args) == 40, "size of tandem_ntt_small_scale_args");
static_assert(offsetof(tandem_ntt_small_scale_args, data) == 0, "tandem_ntt_small_scale_args.data");
static_assert(offsetof(tandem_ntt_small_scale_args, powers) == 8, "tandem_ntt_small_scale_args.powers");
static_assert(offsetof(tandem_ntt_small_scale_args, count) == 16, "tandem_ntt_small_scale_args.count");
static_assert(offsetof(tandem_ntt_small_scale_args, split) == 24, "tandem_ntt_small_scale_args.split");
static_assert(offsetof(tandem_ntt_small_scale_args, log_n) == 28, "tandem_ntt_small_scale_args.log_n");
static_assert(offsetof(tandem_ntt_small_scale_args, reversed) == 32, "tandem_ntt_small_scale_args.reversed");

static_assert(sizeof(tandem_ntt_small_sum_args) == 184, "size of tandem_ntt_small_sum_args");
static_assert(offsetof(tandem_ntt_small_sum_args, shards) == 0, "tandem_ntt_small_sum_args.shards");
static_assert(offsetof(tandem_ntt_small_sum_args, output) == 128, "tandem_ntt_small_sum_args.output");
static_assert(offsetof(tandem_ntt_small_sum_args, powers) == 136, "tandem_ntt_small_sum_args.powers");
static_assert(offsetof(tandem_ntt_small_sum_args, scale) == 144, "tandem_ntt_small_sum_args.scale");
static_assert(offsetof(tandem_ntt_small_sum_args, count) == 152, "tandem_ntt_small_sum_args.count");
static_assert(offsetof(tandem_ntt_small_sum_args, order_bits) == 160, "tandem_ntt_small_sum_args.order_bits");
static_assert(offsetof(tandem_ntt_small_sum_args, split) == 164, "tandem_ntt_small_sum_args.split");
static_assert(offsetof(tandem_ntt_small_sum_args, log_n) == 168, "tandem_ntt_small_sum_args.log_n");
static_assert(offsetof(tandem_ntt_small_sum_args, log_shards) == 172, "tandem_ntt_small_sum_args.log_shards");
static_assert(offsetof(tandem_ntt_small_sum_args, shard) == 176, "tandem_ntt_small_sum_args.shard");
static_assert(offsetof(tandem_ntt_small_sum_args, inverse) == 180, "tandem_ntt_small_sum_args.inverse");

static_assert(sizeof(tandem_sort_args) == 296, "size of tandem_sort_args");
static_assert(offsetof(tandem_sort_args, first) == 0, "tandem_sort_args.first");
static_assert(offsetof(tandem_sort_args, keys) == 72, "tandem_sort_args.keys");
static_assert(offsetof(tandem_sort_args, values) == 136, "tandem_sort_args.values");
static_assert(offsetof(tandem_sort_args, scratch) == 200, "tandem_sort_args.scratch");
static_assert(offsetof(tandem_sort_args, failed) == 264, "tandem_sort_args.failed");
static_assert(offsetof(tandem_sort_args, seed) == 272, "tandem_sort_args.seed");
static_assert(offsetof(tandem_sort_args, lane) == 280, "tandem_sort_args.lane");
static_assert(offsetof(tandem_sort_args, lanes) == 284, "tandem_sort_args.lanes");
static_assert(offsetof(tandem_sort_args, descending) == 288, "tandem_sort_args.descending");
static_assert(offsetof(tandem_sort_args, step) == 292, "tandem_sort_args.step");

static_assert(sizeof(tandem_sort_merge_args) == 72, "size of tandem_sort_merge_args");
static_assert(offsetof(tandem_sort_merge_args, keys) == 0, "tandem_sort_merge_args.keys");
static_assert(offsetof(tandem_sort_merge_args, values) == 16, "tandem_sort_merge_args.values");
static_assert(offsetof(tandem_sort_merge_args, length) == 32, "tandem_sort_merge_args.length");
static_assert(offsetof(tandem_sort_merge_args, out_keys) == 48, "tandem_sort_merge_args.out_keys");
static_assert(offsetof(tandem_sort_merge_args, out_values) == 56, "tandem_sort_merge_args.out_values");
static_assert(offsetof(tandem_sort_merge_args, key_bytes) == 64, "tandem_sort_merge_args.key_bytes");
static_assert(offsetof(tandem_sort_merge_args, descending) == 68, "tandem_sort_merge_args.descending");

static_assert(sizeof(tandem_sort_cuts_args) == 224, "size of tandem_sort_cuts_args");
static_assert(offsetof(tandem_sort_cuts_args, keys) == 0, "tandem_sort_cuts_args.keys");
static_assert(offsetof(tandem_sort_cuts_args, length) == 64, "tandem_sort_cuts_args.length");
static_assert(offsetof(tandem_sort_cuts_args, rank) == 128, "tandem_sort_cuts_args.rank");
static_assert(offsetof(tandem_sort_cuts_args, cuts) == 200, "tandem_sort_cuts_args.cuts");
static_assert(offsetof(tandem_sort_cuts_args, runs) == 208, "tandem_sort_cuts_args.runs");
static_assert(offsetof(tandem_sort_cuts_args, key_bytes) == 212, "tandem_sort_cuts_args.key_bytes");
static_assert(offsetof(tandem_sort_cuts_args, descending) == 216, "tandem_sort_cuts_args.descending");

static_assert(sizeof(tandem_sumcheck_args) == 120, "size of tandem_sumcheck_args");
static_assert(offsetof(tandem_sumcheck_args, table) == 0, "tandem_sumcheck_args.table");
static_assert(offsetof(tandem_sumcheck_args, columns) == 32, "tandem_sumcheck_args.columns");
static_assert(offsetof(tandem_sumcheck_args, stride) == 40, "tandem_sumcheck_args.stride");
static_assert(offsetof(tandem_sumcheck_args, values) == 48, "tandem_sumcheck_args.values");
static_assert(offsetof(tandem_sumcheck_args, done) == 56, "tandem_sumcheck_args.done");
static_assert(offsetof(tandem_sumcheck_args, told) == 64, "tandem_sumcheck_args.told");
static_assert(offsetof(tandem_sumcheck_args, r) == 72, "tandem_sumcheck_args.r");
static_assert(offsetof(tandem_sumcheck_args, n) == 104, "tandem_sumcheck_args.n");
static_assert(offsetof(tandem_sumcheck_args, tables) == 112, "tandem_sumcheck_args.tables");
static_assert(offsetof(tandem_sumcheck_args, op) == 116, "tandem_sumcheck_args.op");

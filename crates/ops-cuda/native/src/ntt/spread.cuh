#pragma once
// Transforms of one vector that is spread over 2^m lanes: what their passes have beside those of one lane.
//
// Element i lies on shard i mod 2^m, at the place of number i div 2^m of that shard. Taken together the places have n
// bits, as those of a transform on one lane: from natural order the m lowest of them tell the shard, from bit-reversed
// order the m highest. Passes over the other bits need nothing of other shards. One pass sends what it writes to
// other lanes, so that afterwards the bits that told the shard are bits of places, and the m bits of the output that
// are to tell it do so:
//
// - From natural order it is the last pass but one. The output's shard is that of the m highest bits; a lane
//   receives from each other one section, which the last pass reads as the lowest bits of its rows.
// - From bit-reversed order it is the first pass. The output's shard is that of the m lowest bits, which are its rows'.
//   The number of the lane that they come from becomes the upper bits of their places, and all later passes are those
//   of a vector of 2^(n - m) elements, but for the twiddles, which depend on the shard.
#include "tandem/host_device.cuh"
#include "tandem_ops.h"

#include <type_traits>

namespace tandem {
namespace ntt {

constexpr uint32_t MAX_LOG_SHARDS = 4;
static_assert(1 << MAX_LOG_SHARDS == TANDEM_NTT_MAX_SHARDS, "as the header says");

template <class Args> constexpr bool is_spread = std::is_same<Args, tandem_ntt_spread_args>::value;
template <class Args> constexpr bool has_products = std::is_same<Args, tandem_ntt_product_args>::value;

TANDEM_HD const tandem_ntt_pass_args& pass_of(const tandem_ntt_pass_args& args) { return args; }
TANDEM_HD const tandem_ntt_pass_args& pass_of(const tandem_ntt_spread_args& args) { return args.pass; }
TANDEM_HD const tandem_ntt_pass_args& pass_of(const tandem_ntt_product_args& args) { return args.pass; }

/// The number of `bits` bits with its lowest `by` bits moved above the others.
TANDEM_HD uint64_t rotate_right(uint64_t x, uint32_t bits, uint32_t by) {
    return x >> by | (x & ((uint64_t(1) << by) - 1)) << (bits - by);
}

/// The other way round.
TANDEM_HD uint32_t rotate_left(uint32_t x, uint32_t bits, uint32_t by) {
    return (x << by & ((1u << bits) - 1)) | x >> (bits - by);
}

/// The place among all elements: that of `bits` bits in the shard, and the bits that tell the shard, above it or, in
/// passes that go upwards, below it.
TANDEM_HD uint64_t with_known(uint64_t place, uint32_t bits, bool reversed, uint32_t known_bits, uint32_t known) {
    return reversed ? place << known_bits | known : uint64_t(known) << bits | place;
}

TANDEM_HD uint32_t reverse_bits(uint32_t x, uint32_t bits) {
#if defined(__CUDA_ARCH__)
    return bits == 0 ? 0 : __brev(x) >> (32 - bits);
#else
    uint32_t r = 0;
    for (uint32_t i = 0; i < bits; i++) r |= (x >> i & 1) << (bits - 1 - i);
    return r;
#endif
}

/// The exponent of the root of order 2^(bits of the place), or of order twice that for the odd coset, by which the
/// element at `place` is multiplied before a pass. The place has the row's bits and those of all passes before, which
/// are above the row, or below it if the passes go upwards (`reversed`). The passes before have made their bits the
/// point's, low ones first; the row is still the coefficient's.
TANDEM_HD uint64_t twiddle_exponent(uint64_t place, uint32_t bits, uint32_t log_rows, bool reversed, bool odd) {
    const uint32_t known_bits = bits - log_rows;
    uint32_t row, known;
    if (reversed) {
        known = uint32_t(place & ((uint64_t(1) << known_bits) - 1));
        row = reverse_bits(uint32_t(place >> known_bits), log_rows);
    } else {
        row = uint32_t(place & ((uint64_t(1) << log_rows) - 1));
        known = reverse_bits(uint32_t(place >> log_rows), known_bits);
    }
    return odd ? (2 * uint64_t(known) + 1) * row : uint64_t(known) * row;
}

}  // namespace ntt
}  // namespace tandem

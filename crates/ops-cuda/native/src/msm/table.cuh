#pragma once
// The levels of a table of points: each is the one before, doubled as often as its place or its power of two asks for, and made affine
// again with one inversion for TABLE_BATCH points.
#include "common.cuh"

namespace tandem {
namespace msm {

constexpr uint32_t TABLE_BATCH = 8;
/// Points worked on at a time, which bounds the scratch memory.
constexpr uint32_t TABLE_CHUNK = 1u << 19;

/// Doublings from the level before to this one.
inline uint32_t doublings_to(const tandem_msm_shape& s, uint32_t level) {
    uint32_t of_place = s.levels_per_window, before = level;
    // The first levels are of one place each, then come those of P and 2P, and that of the last place.
    const uint32_t single = s.window_positions - 1 - s.carry_free_windows;
    if (s.levels_per_window == 1 && s.carry_free_windows && level > single) {
        of_place = 2;
        before = level - single;
    }
    return before % of_place ? 1 : s.step_bits * s.bucket_sets - (of_place - 1);
}

template <class F>
__global__ void __launch_bounds__(128) double_points(const Affine<F>* in, Affine<F>* out, uint32_t count,
                                                     uint32_t doublings, Xyzz<F>* doubled, F* before) {
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    F product = F::one();
    for (uint32_t i = t; i < count; i += stride) {
        Xyzz<F> p = Xyzz<F>::from_affine(load16_readonly(&in[i]));
        for (uint32_t k = 0; k < doublings; k++) p = p.dbl();
        store16(&doubled[i], p);
        store16(&before[i], product);
        if (!p.is_infinity()) product *= p.zzz;
    }
    if (t >= count) return;
    F inverse = product.inverse();
    for (uint32_t i = t + (count - 1 - t) / stride * stride;; i -= stride) {
        const Xyzz<F> p = load16(&doubled[i]);
        if (p.is_infinity()) {
            store16(&out[i], Affine<F>::infinity());
        } else {
            const F zzz = inverse * load16(&before[i]);  // 1 / zzz
            const F z = p.zz * zzz;                      // 1 / z, as zz / zzz
            inverse *= p.zzz;
            store16(&out[i], Affine<F>{p.x * z.sqr(), p.y * zzz});
        }
        if (i < stride) break;
    }
}

}  // namespace msm
}  // namespace tandem

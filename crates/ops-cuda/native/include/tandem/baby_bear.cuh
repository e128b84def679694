#pragma once
// The field of p = 15 * 2^27 + 1 elements, in Montgomery form with R = 2^32.
#include "host_device.cuh"

namespace tandem {

struct BabyBear {
    static constexpr uint32_t P = 0x78000001;
    /// -1 / p mod 2^32: (1 + 15 * 2^27)(1 - 15 * 2^27) = 1 there.
    static constexpr uint32_t MINUS_INVERSE_P = 0x77ffffff;

    /// Registers of a transform's threads that hold 16 elements or 32, by measurement.
    static constexpr uint32_t REGISTERS[2] = {40, 64};
    typedef uint32_t Stored;
    static constexpr Stored ONE = uint32_t((uint64_t(1) << 32) % P);
    /// What powers of roots of unity are calculated with.
    typedef Stored Power;
    static constexpr bool ROUNDED_POWERS = false;
    TANDEM_HD static Power argument(uint64_t x) { return Power(x); }
    /// Below p, like what is stored.
    typedef uint32_t Held;

    TANDEM_HD static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

    TANDEM_HD static Held held(Stored x) { return x; }
    TANDEM_HD static Held add(Held a, Held b) { return smaller(a + b, a + b - P); }
    TANDEM_HD static Held subtract(Held a, Held b) { return smaller(a - b, a - b + P); }

    /// a * b / R for a * b < 2^32 p.
    TANDEM_HD static Held multiply(Stored a, Stored b) {
        const uint64_t t = uint64_t(a) * b;
        // The lower half of the sum is zero, and it is below 2^33 p.
        const uint32_t r = uint32_t((t + uint64_t(uint32_t(t) * MINUS_INVERSE_P) * P) >> 32);
        return smaller(r, r - P);
    }
    TANDEM_HD static Stored sum(Stored a, Stored b) { return add(a, b); }
    TANDEM_HD static Stored product(Stored a, Stored b) { return multiply(a, b); }

    /// (a - b) * w^e for 0 <= e < 16 and the root of unity w = 31^((p - 1) / 32).
    TANDEM_HD static Held subtract_turned(Held a, Held b, int e) {
        if (e == 0) return subtract(a, b);
        // In Montgomery form.
        constexpr uint32_t ROOTS[16] = {0x0ffffffe, 0x3f5c39ec, 0x5f06e481, 0x623df940, 0x3d85298f, 0x017194cd,
                                        0x45f62656, 0x4e156d00, 0x1c38d511, 0x1eeb168e, 0x6df1fcdc, 0x3978ae60,
                                        0x7513f80e, 0x02e19099, 0x101fd837, 0x19e5f901};
        return multiply(a - b + P, ROOTS[e]);
    }

    TANDEM_HD static Held raise(Held x) { return x; }
    TANDEM_HD static Stored fold(Held x) { return x; }
    TANDEM_HD static Stored reduce(Stored x) { return x; }
};

}  // namespace tandem

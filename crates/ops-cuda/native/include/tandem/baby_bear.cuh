#pragma once
// The field of p = 15 * 2^27 + 1 elements, in Montgomery form with R = 2^32.
#include "host_device.cuh"

namespace tandem {

struct BabyBear {
    static constexpr uint32_t P = 0x78000001;
    /// 1 / p mod 2^32: (1 + 15 * 2^27)(1 - 15 * 2^27) = 1 there.
    static constexpr uint32_t INVERSE_P = 0x88000001;

    /// Threads of a transform that share a multiprocessor, by measurement.
    static constexpr uint32_t RESIDENT_THREADS = 1536;
    typedef uint32_t Stored;
    static constexpr Stored ONE = uint32_t((uint64_t(1) << 32) % P);
    /// Below p, like what is stored.
    typedef uint32_t Held;

    TANDEM_HD static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

    TANDEM_HD static Held held(Stored x) { return x; }
    TANDEM_HD static Held add(Held a, Held b) { return smaller(a + b, a + b - P); }
    TANDEM_HD static Held subtract(Held a, Held b) { return smaller(a - b, a - b + P); }

    /// a * b / R for a * b < 2^32 p.
    TANDEM_HD static Held multiply(Stored a, Stored b) {
        const uint64_t t = uint64_t(a) * b;
        const uint64_t m = uint64_t(uint32_t(t) * INVERSE_P) * P;
        // The lower halves are equal.
        const uint32_t r = uint32_t(t >> 32) - uint32_t(m >> 32);
        return smaller(r, r + P);
    }
    TANDEM_HD static Stored sum(Stored a, Stored b) { return add(a, b); }
    TANDEM_HD static Stored product(Stored a, Stored b) { return multiply(a, b); }

    /// (a - b) * w^e for 0 <= e < 8 and the root of unity w = 31^((p - 1) / 16).
    TANDEM_HD static Held subtract_turned(Held a, Held b, int e) {
        if (e == 0) return subtract(a, b);
        // In Montgomery form.
        constexpr uint32_t ROOTS[8] = {0x0ffffffe, 0x5f06e481, 0x3d85298f, 0x45f62656,
                                       0x1c38d511, 0x6df1fcdc, 0x7513f80e, 0x101fd837};
        return multiply(a - b + P, ROOTS[e]);
    }

    TANDEM_HD static Held raise(Held x) { return x; }
    TANDEM_HD static Stored fold(Held x) { return x; }
    TANDEM_HD static Stored reduce(Stored x) { return x; }
};

}  // namespace tandem

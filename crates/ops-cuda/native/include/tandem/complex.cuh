#pragma once
// Complex numbers, as what passes of transforms calculate with: a kind of numbers as BabyBear is one, whose root of unity of order n is
// e^(-2 pi i / n).
#include "host_device.cuh"

#if !defined(__CUDACC__)
/// nvcc's own, which it reads in one piece.
struct float2 {
    float x, y;
};
struct double2 {
    double x, y;
};
#endif

namespace tandem {

namespace complex {
template <class Real> struct Pair;
template <> struct Pair<float> {
    typedef float2 Type;
    static constexpr uint32_t REGISTERS[2] = {64, 128};
};
template <> struct Pair<double> {
    typedef double2 Type;
    static constexpr uint32_t REGISTERS[2] = {128, 255};
};
}  // namespace complex

template <class Real> struct Complex {
    /// Registers of a transform's threads that hold 16 numbers or 32, by their sizes; not measured.
    static constexpr uint32_t REGISTERS[2] = {complex::Pair<Real>::REGISTERS[0], complex::Pair<Real>::REGISTERS[1]};
    /// The real part, then the imaginary one.
    typedef typename complex::Pair<Real>::Type Stored;
    typedef Stored Held;
    /// Powers of roots of unity are rounded to floats when all products are done.
    typedef double2 Power;
    /// Whether a product of powers is as inexact as what is multiplied by it.
    static constexpr bool ROUNDED_POWERS = sizeof(Real) == sizeof(double);

    /// A real number, given as the bits of a double.
    TANDEM_HD static Power argument(uint64_t bits) {
        Power r{0, 0};
        memcpy(&r.x, &bits, sizeof bits);
        return r;
    }

    TANDEM_HD static Held held(Stored x) { return x; }
    TANDEM_HD static Held add(Held a, Held b) { return {a.x + b.x, a.y + b.y}; }
    TANDEM_HD static Held subtract(Held a, Held b) { return {a.x - b.x, a.y - b.y}; }
    TANDEM_HD static Stored sum(Stored a, Stored b) { return add(a, b); }

    template <class P> TANDEM_HD static P product(P a, P b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
    /// By a stored number or a power.
    template <class P> TANDEM_HD static Held multiply(Stored a, P b) { return product(a, reduce(b)); }

    /// (a - b) * w^e for 0 <= e < 16 and the root of unity w = e^(-2 pi i / 32).
    TANDEM_HD static Held subtract_turned(Held a, Held b, int e) {
        const Held d = subtract(a, b);
        if (e == 0) return d;
        if (e == 8) return {d.y, -d.x};
        // cos(pi e / 16) for e up to 8, from which all others follow.
        constexpr double COSINES[9] = {1.0,
                                       0.98078528040323044913,
                                       0.92387953251128675613,
                                       0.83146961230254523708,
                                       0.70710678118654752440,
                                       0.55557023301960222474,
                                       0.38268343236508977173,
                                       0.19509032201612826785,
                                       0.0};
        const double re = e < 8 ? COSINES[e] : -COSINES[16 - e];
        const double im = -(e < 8 ? COSINES[8 - e] : COSINES[e - 8]);
        return product(d, Held{Real(re), Real(im)});
    }

    TANDEM_HD static Held raise(Held x) { return x; }
    TANDEM_HD static Stored fold(Held x) { return x; }
    /// Rounded to what is stored.
    template <class P> TANDEM_HD static Stored reduce(P x) { return {Real(x.x), Real(x.y)}; }
};

}  // namespace tandem

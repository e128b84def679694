// Checks the transforms of complex numbers that a thread does in its registers against their definition in numbers of more digits. The host path of the
// device's code.
//
// usage: ntt_complex [wrong]. Prints how many transforms there were; exits with 1 where one is off by more than it may be. With `wrong` one
// value that is expected is another one.
#include <cmath>
#include <cstdio>

#include "ntt/small.cuh"
#include "tandem/complex.cuh"

using namespace tandem;

static int transforms = 0;
static uint64_t state = 1;

/// Between -1 and 1.
static double draw() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return double(int64_t(state) >> 11) / double(int64_t(1) << 52);
}

/// The transform of 2^H numbers is off by less than 6.3 roundings for each level, relative to its values.
template <class Real, int H> static bool right(bool wrong) {
    typedef Complex<Real> F;
    constexpr int N = 1 << H;
    typename F::Held x[N];
    long double in[N][2];
    for (int i = 0; i < N; i++) {
        x[i] = F::held({Real(draw()), Real(draw())});
        in[i][0] = x[i].x;
        in[i][1] = x[i].y;
    }
    ntt_small::transform<F, H>(x);
    const long double turn = 2 * acosl(-1.0L);
    long double off = 0, all = 0;
    for (int k = 0; k < N; k++) {
        long double re = 0, im = 0;
        for (int j = 0; j < N; j++) {
            const long double angle = -turn * ((j * k) % N) / N, c = cosl(angle), s = sinl(angle);
            re += in[j][0] * c - in[j][1] * s;
            im += in[j][0] * s + in[j][1] * c;
        }
        if (wrong && k == 1) im = -im;
        const auto got = F::reduce(F::fold(x[ntt_small::reversed_bits(k, H)]));
        off += (got.x - re) * (got.x - re) + (got.y - im) * (got.y - im);
        all += re * re + im * im;
    }
    transforms++;
    const long double rounding = sizeof(Real) == 4 ? ldexpl(1, -24) : ldexpl(1, -53);
    // Not so where it is no number, either.
    return sqrtl(off / all) <= 6.3L * rounding * H;
}

template <class Real> static bool all_right(bool wrong) {
    return right<Real, 1>(wrong) && right<Real, 2>(wrong) && right<Real, 3>(wrong) && right<Real, 4>(wrong) &&
           right<Real, 5>(wrong);
}

int main(int argc, char**) {
    bool same = true;
    for (int i = 0; i < 100; i++) same = same && all_right<float>(false) && all_right<double>(argc > 1 && i == 99);
    // What an argument is, and what a power becomes that multiplies a number.
    uint64_t bits;
    const double half = 0.5;
    memcpy(&bits, &half, sizeof bits);
    const auto product = Complex<float>::multiply({3, -4}, Complex<float>::argument(bits));
    same = same && product.x == 1.5f && product.y == -2;
    printf("%d\n", transforms);
    return same ? 0 : 1;
}

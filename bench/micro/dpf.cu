// Montgomery products in FP64, on the pipe that is idle beside the integer multiplier: alone, and in some
// of the warps beside IMAD in the others. What came out: docs/design/rejected.md. First checks all of them on the host.
//
// A number is a sum of digits d[k] * 2^(52 k), whole numbers of up to 2^51 in size in doubles (N. Emmart and others, "Faster modular
// exponentiation using double precision floating point arithmetic", with signed digits). The product of two digits is
// h * 2^52 + l by two multiply-adds that round down: c + ab with c = 1.5 * 2^104 keeps the bits from 2^52 up, and
// ab + (c + 2^52 - that) is 2^52 + l. The bits of such doubles are integers plus a constant, so a column of products is a sum of
// 64-bit integers, and one constant undoes all its terms' exponents.
#include "common.cuh"

namespace fp64 {

constexpr double TWO51 = 2251799813685248.0, TWO52 = 2 * TWO51, HIGH = 1.5 * TWO52 * TWO52, LOW = HIGH + TWO52;
/// Upper words of the bits of HIGH and 2^52.
constexpr uint32_t HIGH_WORD = 0x46780000u, LOW_WORD = 0x43300000u;

template <class P> constexpr int DIGITS = (P::BITS + 6 + 51) / 52;

/// d[0..DIGITS] = the digits of w[0..N], from -2^51 up.
template <class P> constexpr void to_digits(double* d, const uint32_t* w) {
    int64_t carry = 0;
    for (int k = 0; k < DIGITS<P>; k++) {
        uint64_t bits = 0;
        for (int b = 52 * k; b < 52 * k + 52 && b < 32 * P::N; b++)
            bits |= uint64_t(w[b / 32] >> b % 32 & 1) << (b - 52 * k);
        const int64_t digit = int64_t(bits) + carry;
        carry = k < DIGITS<P> - 1 && digit >= int64_t(1) << 51;
        d[k] = double(digit - (carry << 52));
    }
}

template <class P> struct Constants {
    double shifted[DIGITS<P>];  // (t p + 1) / 2^52 for the t < 2^52 that makes it whole
    double p[DIGITS<P>];
    double m0;  // -1 / p mod 2^52

    constexpr Constants() : shifted(), p(), m0() {
        constexpr int N = P::N;
        constexpr Limbs<N> modulus = P::modulus();
        constexpr uint64_t t = P::M0_64 & 0xfffffffffffffull;
        uint32_t product[N + 2] = {}, down[N] = {};
        uint64_t carry = 1;
        for (int i = 0; i < N; i++) {
            const uint64_t low = (t & 0xffffffffu) * modulus.limb[i] + (carry & 0xffffffffu);
            carry = (t >> 32) * modulus.limb[i] + (low >> 32) + (carry >> 32);
            product[i] = uint32_t(low);
        }
        product[N] = uint32_t(carry);
        product[N + 1] = uint32_t(carry >> 32);
        for (int i = 0; i < N; i++) down[i] = product[i + 1] >> 20 | product[i + 2] << 12;
        to_digits<P>(shifted, down);
        to_digits<P>(p, modulus.limb);
        m0 = double(int64_t(t << 12) / 4096);
    }
};
__constant__ const Constants<Bn254Fp> bn254_fp;
__constant__ const Constants<Bls12381Fp> bls12_381_fp;

/// What the columns need in their upper words so that exponents cancel, for a product and its reduction. And 2^51, to round the
/// digit, and 2^58, so that no column is negative: it passes on 64 too much, which the next one leaves out of its digit.
template <int L> struct Bias {
    uint32_t at[2 * L];
    constexpr Bias() : at() {
        const auto overlap = [](int i) { return i < 0 || i > 2 * L - 2 ? 0 : i < L ? i + 1 : 2 * L - 1 - i; };
        for (int i = 0; i < 2 * L; i++) {
            int lows = overlap(i), highs = overlap(i - 1);
            for (int step = 0; step < L - 1; step++) {
                lows += i - 1 - step >= 0 && i - 1 - step < L;
                highs += i - 2 - step >= 0 && i - 2 - step < L;
            }
            lows += i > L - 1 && i < 2 * L - 1;  // of the last step, whose lowest product is known
            highs += i >= L;
            at[i] =
                (1u << 19) + (i < 2 * L - 1 ? 1u << 26 : 0) - uint32_t(highs) * HIGH_WORD - uint32_t(lows) * LOW_WORD;
        }
    }
};

/// Two constants that a thread holds in registers, since an instruction takes only one constant that is none: without this, ptxas
/// moves the other one at every use.
struct Held {
    double high;
    uint32_t mask;
    __device__ __forceinline__ Held() {
        uint32_t zero;  // the number of a multiprocessor is below 2^20, which ptxas does not know
        asm volatile("mov.u32 %0, %%smid;" : "=r"(zero));
        zero >>= 20;
        high = __hiloint2double(int(HIGH_WORD + zero), int(zero));
        mask = 0xfffffu + zero;
    }
};

/// low += l, high += h, with the exponents of their doubles. The product of a and b is below 2^103.
__device__ __forceinline__ void product(double c, double a, double b, uint64_t& low, uint64_t& high) {
    const double h = __fma_rz(a, b, c);
    const double l = __fma_rz(a, b, __dsub_rn(LOW, h));
    low += uint64_t(__double_as_longlong(l));
    high += uint64_t(__double_as_longlong(h));
}

/// The lowest 52 bits of a finished column, without the 2^51 and `too_much` that it has too much.
__device__ __forceinline__ double digit(const Held& held, uint64_t column, int too_much) {
    return __dsub_rn(__hiloint2double(int((uint32_t(column >> 32) & held.mask) | LOW_WORD), int(uint32_t(column))),
                     TWO52 + TWO51 + too_much);
}
/// What a finished column carries, together with the next one's bias.
__device__ __forceinline__ uint64_t passed(uint64_t column, uint32_t bias) {
    return uint64_t(bias) << 32 | uint32_t(column >> 32) >> 20;
}

/// r = a * b / 2^(52 L) mod p, within 1.6 p of zero. Each step of the reduction but the last takes a multiple of the modulus that is
/// -1 mod 2^52, so that the lowest digit is its multiplier.
template <class P> __device__ __forceinline__ void mont_mul(const Held& held, const Constants<P>& field, double* r,
                                                            const double* a, const double* b) {
    constexpr int L = DIGITS<P>;
    constexpr Bias<L> bias;
    uint64_t column[2 * L] = {uint64_t(bias.at[0]) << 32};
#pragma unroll
    for (int i = 0; i < L; i++)
#pragma unroll
        for (int j = 0; j < L; j++) product(HIGH, a[i], b[j], column[i + j], column[i + j + 1]);
#pragma unroll
    for (int i = 0; i < L - 1; i++) {
        const double q = digit(held, column[i], i ? 64 : 0);
        column[i + 1] += passed(column[i], bias.at[i + 1]);
#pragma unroll
        for (int j = 0; j < L; j++) product(held.high, q, field.shifted[j], column[i + 1 + j], column[i + 2 + j]);
    }
    const double lowest = digit(held, column[L - 1], 64);
    const double h = __fma_rz(lowest, field.m0, held.high);
    const double q = __dsub_rn(__fma_rz(lowest, field.m0, __dsub_rn(LOW, h)), TWO52);
    // `lowest` and the lower half of q * p[0] are 0 or 2^52 together.
    column[L] += passed(column[L - 1], bias.at[L]) + (lowest > 0 ? 1 : 0);
    column[L] += uint64_t(__double_as_longlong(__fma_rz(q, field.p[0], held.high)));
#pragma unroll
    for (int j = 1; j < L; j++) product(held.high, q, field.p[j], column[L - 1 + j], column[L + j]);
#pragma unroll
    for (int i = L; i < 2 * L - 1; i++) {
        r[i - L] = digit(held, column[i], 64);
        column[i + 1] += passed(column[i], bias.at[i + 1]);
    }
    const uint64_t top = column[2 * L - 1];
    r[L - 1] = __dsub_rn(__hiloint2double(int(uint32_t(top >> 32) + LOW_WORD), int(uint32_t(top))), TWO52 + TWO51 + 64);
}

}  // namespace fp64

/// A way to multiply: what a number is, and how one comes from and to an element on the host.
template <class P> struct Imad {
    using Params = P;
    using Number = Fp<P>;
    static __device__ __forceinline__ Number mul(const fp64::Held&, const Number& a, const Number& b) { return a * b; }
    static Number from(const Fp<P>& a) { return a; }
    static Fp<P> to(const Number& a) { return a; }
    static Fp<P> host_mul(const Fp<P>& a, const Fp<P>& b) { return a * b; }
};
template <class P> struct Fp64 {
    using Params = P;
    static constexpr int L = fp64::DIGITS<P>;
    struct Number {
        double digit[L];
    };
    static __device__ __forceinline__ Number mul(const fp64::Held& held, const Number& a, const Number& b) {
        Number r;
        if constexpr (P::N == 8) fp64::mont_mul<P>(held, fp64::bn254_fp, r.digit, a.digit, b.digit);
        else fp64::mont_mul<P>(held, fp64::bls12_381_fp, r.digit, a.digit, b.digit);
        return r;
    }
    static Number from(const Fp<P>& a) {
        Number r;
        fp64::to_digits<P>(r.digit, a.limb);
        return r;
    }
    static Fp<P> to(const Number& a) {
        Fp<P> sum = Fp<P>::zero();
        for (int k = L - 1; k >= 0; k--) {
            for (int bit = 0; bit < 52; bit++) sum = sum.dbl();
            const int64_t digit = int64_t(a.digit[k]), size = digit < 0 ? -digit : digit;
            Fp<P> x = Fp<P>::zero();
            x.limb[0] = uint32_t(size);
            x.limb[1] = uint32_t(size >> 32);
            sum += digit < 0 ? x.neg() : x;
        }
        return sum;
    }
    /// Montgomery's factor is 2^(52 L) instead of 2^(32 N).
    static Fp<P> host_mul(const Fp<P>& a, const Fp<P>& b) {
        Fp<P> factor = Fp<P>::zero();
        constexpr int BIT = 64 * P::N - 52 * L;
        factor.limb[BIT / 32] = 1u << BIT % 32;
        return a * b * factor;
    }
};

/// x = x y, y = y x, so many times.
template <class A> __global__ void multiply(typename A::Number* numbers, int steps) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const fp64::Held held;
    typename A::Number x = numbers[2 * i], y = numbers[2 * i + 1];
    for (int k = 0; k < steps; k++) {
        x = A::mul(held, x, y);
        y = A::mul(held, y, x);
    }
    numbers[2 * i] = x;
    numbers[2 * i + 1] = y;
}

/// Random elements, a quarter of them from the edges.
template <class P> static std::vector<Fp<P>> elements(size_t n) {
    std::vector<Fp<P>> values(n);
    fill_random<P>(values);
    for (Fp<P>& v : values) {
        const uint64_t kind = random_word() % 16;
        if (kind < 3) v = Fp<P>::zero();
        if (kind == 1) v.limb[0] = 1;
        if (kind == 2) {
            v.limb[0] = 1;
            v = v.neg();  // p - 1
        }
        if (kind == 3) {  // runs of ones and zeros
            for (uint32_t& limb : v.limb) limb = random_word() & 1 ? ~0u : 0;
            v.limb[P::N - 1] %= P::modulus().limb[P::N - 1];
        }
    }
    return values;
}

template <class A> static void check(const char* name) {
    using F = Fp<typename A::Params>;
    for (const int steps : {1, 10}) {
        const size_t n = steps == 1 ? 1 << 16 : 1 << 12;
        std::vector<F> in = elements<typename A::Params>(2 * n);
        std::vector<typename A::Number> numbers;
        for (const F& v : in) numbers.push_back(A::from(v));
        DeviceArray<typename A::Number> device(2 * n);
        CHECK(cudaMemcpy(device.data, numbers.data(), 2 * n * sizeof numbers[0], cudaMemcpyHostToDevice));
        multiply<A><<<n / 128, 128>>>(device.data, steps);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(numbers.data(), device.data, 2 * n * sizeof numbers[0], cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < n; i++) {
            F x = in[2 * i], y = in[2 * i + 1];
            for (int k = 0; k < steps; k++) {
                x = A::host_mul(x, y);
                y = A::host_mul(y, x);
            }
            if (A::to(numbers[2 * i]) != x || A::to(numbers[2 * i + 1]) != y) {
                printf("%s: wrong product %zu after %d steps\n", name, i, steps);
                exit(1);
            }
        }
    }
}

struct Tally {
    unsigned taken, blocks[256], done[2];
};
constexpr int CHUNK = 24;  // steps that a warp takes at a time

template <class A> __device__ __forceinline__ void work(typename A::Number* numbers, Tally* tally, unsigned chunks,
                                                        unsigned* done) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const fp64::Held held;
    typename A::Number x = numbers[2 * i], y = numbers[2 * i + 1];
    for (unsigned mine = 0;; mine++) {
        unsigned chunk = 0;
        if (threadIdx.x % 32 == 0) chunk = atomicAdd(&tally->taken, 1);
        if (__shfl_sync(~0u, chunk, 0) >= chunks) {
            if (threadIdx.x % 32 == 0) atomicAdd(done, mine);
            break;
        }
#pragma unroll 1
        for (int k = 0; k < CHUNK; k++) {
            x = A::mul(held, x, y);
            y = A::mul(held, y, x);
        }
    }
    numbers[2 * i] = x;
    numbers[2 * i + 1] = y;
}
/// BLOCKS blocks of a warp a scheduler on each multiprocessor, `others` of which work by B and the rest by A, on one supply of work.
template <class A, class B, int BLOCKS>
__global__ void __launch_bounds__(128, BLOCKS)
    share(typename A::Number* a, typename B::Number* b, Tally* tally, unsigned chunks, unsigned others) {
    __shared__ unsigned place;
    if (threadIdx.x == 0) {
        unsigned multiprocessor;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        place = atomicAdd(&tally->blocks[multiprocessor], 1);
    }
    __syncthreads();
    if (place < others) work<B>(b, tally, chunks, &tally->done[1]);
    else work<A>(a, tally, chunks, &tally->done[0]);
}

template <class A> static void fill(DeviceArray<typename A::Number>& device, size_t n) {
    std::vector<typename A::Number> numbers;
    for (const auto& v : elements<typename A::Params>(n)) numbers.push_back(A::from(v));
    CHECK(cudaMemcpy(device.data, numbers.data(), n * sizeof numbers[0], cudaMemcpyHostToDevice));
}

/// With 0 to `most` of the blocks at B's way. Rates are compared with the first one measured of a field.
template <class A, class B, int BLOCKS> static void measure(const char* name, unsigned most, double& first) {
    const int blocks = 132 * BLOCKS, numbers = 2 * 128 * blocks;
    const auto kernel = share<A, B, BLOCKS>;
    const int shared = 227 * 1024 / BLOCKS - 2048;  // no more blocks than that
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    DeviceArray<typename A::Number> a(numbers);
    DeviceArray<typename B::Number> b(numbers);
    DeviceArray<Tally> tally(1);
    fill<A>(a, numbers);
    fill<B>(b, numbers);
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (unsigned others = 0; others <= most; others++) {
        constexpr double PRODUCTS = 32 * 2 * CHUNK;  // of a chunk
        unsigned chunks = unsigned(2e8 / PRODUCTS);
        float ms = 0;
        Tally t;
        for (int run = 0; run < 3; run++) {
            CHECK(cudaMemset(tally.data, 0, sizeof(Tally)));
            CHECK(cudaEventRecord(begin));
            kernel<<<blocks, 128, shared>>>(a.data, b.data, tally.data, chunks, others);
            CHECK(cudaGetLastError());
            CHECK(cudaEventRecord(end));
            CHECK(cudaEventSynchronize(end));
            CHECK(cudaEventElapsedTime(&ms, begin, end));
            if (run == 0) chunks = unsigned(chunks * 12 / ms);  // the others take 12 ms
        }
        CHECK(cudaMemcpy(&t, tally.data, sizeof t, cudaMemcpyDeviceToHost));
        const double by_a = t.done[0] * PRODUCTS / ms / 1e6, by_b = t.done[1] * PRODUCTS / ms / 1e6, all = by_a + by_b;
        if (first == 0) first = all;
        printf("%-26s %u/%d blocks  %6.2f G/s = %6.2f + %6.2f  %.3f\n", name, others, BLOCKS, all, by_a, by_b,
               all / first);
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
}

int main() {
    using P = Bn254Fp;
    using Q = Bls12381Fp;
    check<Imad<P>>("BN254, IMAD");
    check<Fp64<P>>("BN254, FP64");
    check<Imad<Q>>("BLS12-381, IMAD");
    check<Fp64<Q>>("BLS12-381, FP64");
    printf("products as the host's\n");
    double bn254 = 0, bls12_381 = 0;
    measure<Imad<P>, Imad<P>, 8>("BN254 Fp, IMAD", 0, bn254);
    measure<Fp64<P>, Fp64<P>, 4>("BN254 Fp, FP64", 0, bn254);
    measure<Imad<P>, Fp64<P>, 5>("BN254 Fp, in FP64", 5, bn254);
    measure<Imad<P>, Fp64<P>, 6>("BN254 Fp, in FP64", 6, bn254);
    measure<Imad<Q>, Imad<Q>, 5>("BLS12-381 Fp, IMAD", 0, bls12_381);
    measure<Fp64<Q>, Fp64<Q>, 4>("BLS12-381 Fp, FP64", 0, bls12_381);
    measure<Imad<Q>, Fp64<Q>, 4>("BLS12-381 Fp, in FP64", 4, bls12_381);
    return 0;
}

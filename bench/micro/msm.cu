// The kernels of the multi-scalar multiplication: right for known logarithms, and how long each stage takes.
//
// Points are k_i * G for known k_i, so that the sum is (sum of k_i * s_i) * G, which the host computes by doubling and
// adding. One program a group: -DBN254_G1, -DBN254_G2, -DBLS12_381_G1 or -DBLS12_381_G2. Then
//   msm small [<i> <n>]                a few sums of some hundred points, for compute-sanitizer, or every n-th of them
//   msm check [<i> <n>]                all distributions over many sizes, windows and tables, or every n-th of these cases;
//                                      exits with 1 if wrong
//   msm bench <log2 size> <c>[+][/sets][xpowers][-uncarried][:rounds[:log2 chunk]]..  times of random scalars, with windows of c bits and so many
//                                      bucket sets; c+ for windows that begin anywhere; with rounds of affine additions
//   msm skew  <log2 size> <the same>   times of all distributions
#include "common.cuh"

#include <cmath>
#include <cstring>
#include <string>

#if defined(BN254_G1) || defined(BN254_G2)
#include "../../crates/ops-cuda/native/src/msm/digits_bn254.cu"
using ScalarParams = Bn254Fr;
using Base = Fp<Bn254Fp>;
#define DIGITS tandem_msm_digits_bn254
#define DIGITS_SCRATCH tandem_msm_digits_bn254_scratch
#else
#include "../../crates/ops-cuda/native/src/msm/digits_bls12_381.cu"
using ScalarParams = Bls12381Fr;
using Base = Fp<Bls12381Fp>;
#define DIGITS tandem_msm_digits_bls12_381
#define DIGITS_SCRATCH tandem_msm_digits_bls12_381_scratch
#endif

// The generators are those of arkworks, in decimal: x and y, or x.c0, x.c1, y.c0, y.c1.
#if defined(BN254_G1)
#include "../../crates/ops-cuda/native/src/msm/bn254_g1.cu"
#define GROUP(f) tandem_msm_##f##_bn254_g1
#define GROUP_SCRATCH(f) tandem_msm_##f##_bn254_g1_scratch
using Field = Base;
static const char* const NAME = "BN254 G1";
static const char* const GENERATOR[] = {"1", "2"};
#elif defined(BN254_G2)
#include "../../crates/ops-cuda/native/src/msm/bn254_g2.cu"
#define GROUP(f) tandem_msm_##f##_bn254_g2
#define GROUP_SCRATCH(f) tandem_msm_##f##_bn254_g2_scratch
using Field = msm::Called<Fp2<Bn254Fp>>;
static const char* const NAME = "BN254 G2";
static const char* const GENERATOR[] = {"10857046999023057135944570762232829481370756359578518086990519993285655852781",
                                        "11559732032986387107991004021392285783925812861821192530917403151452391805634",
                                        "8495653923123431417604973247489272438418190587263600148770280649306958101930",
                                        "4082367875863433681332203403145435568316851327593401208105741076214120093531"};
#elif defined(BLS12_381_G1)
#include "../../crates/ops-cuda/native/src/msm/bls12_381_g1.cu"
#define GROUP(f) tandem_msm_##f##_bls12_381_g1
#define GROUP_SCRATCH(f) tandem_msm_##f##_bls12_381_g1_scratch
using Field = msm::Called<Base>;
static const char* const NAME = "BLS12-381 G1";
static const char* const GENERATOR[] = {
    "368541675371338701678108831518307775796162079578254640989457"
    "8378688607592378376318836054947676345821548104185464507",
    "133950654494447647302047137994192122158493387593834962042654"
    "3736416511423956333506472724655353366534992391756441569"};
#elif defined(BLS12_381_G2)
#include "../../crates/ops-cuda/native/src/msm/bls12_381_g2.cu"
#define GROUP(f) tandem_msm_##f##_bls12_381_g2
#define GROUP_SCRATCH(f) tandem_msm_##f##_bls12_381_g2_scratch
using Field = msm::Called<Fp2<Bls12381Fp>>;
static const char* const NAME = "BLS12-381 G2";
static const char* const GENERATOR[] = {
    "352701069587466618187139116011060144890029952792775240219908"
    "644239793785735715026873347600343865175952761926303160",
    "305914434424421370997125981475378163698647032547664755865937"
    "3206291635324768958432433509563104347017837885763365758",
    "198515060228729193556805452117717163830086897821565573085937"
    "8665066344726373823718423869104263333984641494340347905",
    "927553665492332455747201965776037880757740193453592970025027"
    "978793976877002675564980949289727957565575433344219582"};
#endif

using Scalar = Fp<ScalarParams>;
using Point = Affine<Field>;
using Sum = Xyzz<Field>;

/// What points there are: random ones; some infinite, some repeated, some opposite; all the same; one, its double, their
/// opposites and infinity, so that sums of some are equal and opposite, too.
enum Points { DISTINCT, MIXED, SAME, MEETING };
enum Scalars { RANDOM, ZEROS, ONES, EQUAL, MINUS_ONE, FEW, TWO, ONE_WINDOW, BITS, EDGES, MIX, KINDS };
static const char* const KIND[] = {"random", "zeros",      "ones", "equal", "r-1",  "99% zero",
                                   "two",    "one window", "bits", "edges", "mixed"};

__device__ uint32_t logarithm(uint64_t i, Points points) {
    if (points == SAME) return 9;
    if (points == MEETING) return 5 * ((mix(3 * i + 2) % 5 + 1) / 2);
    if (points == MIXED && i % 7 == 3) return 0;
    if (points == MIXED && i % 5 == 1) return 5;
    return uint32_t(mix(3 * i + 1)) | 1;
}
__device__ bool is_negative(uint64_t i, Points points) { return (points == MIXED || points == MEETING) && mix(i) & 1; }

__global__ void make_points(Point generator, Point* out, uint64_t n, Points points) {
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < n; i += uint64_t(gridDim.x) * blockDim.x) {
        const uint32_t k = logarithm(i, points);
        Sum p = Sum::infinity();
        for (int b = 31; b >= 0; b--) {
            p = p.dbl();
            if (k >> b & 1) p.add(generator);
        }
        Point affine = k ? p.to_affine() : Point::infinity();
        out[i] = is_negative(i, points) ? affine.neg() : affine;
    }
}

/// The first below r among random numbers of as many bits: each as likely as any other.
__device__ Scalar random_scalar(uint64_t seed) {
    const Limbs<8> r = ScalarParams::modulus();
    for (uint64_t draw = 0;; draw++) {
        Scalar x;
        uint32_t less_r[8];
        for (int k = 0; k < 8; k++) x.limb[k] = uint32_t(mix((draw << 40) + 8 * seed + k) >> 16);
        x.limb[7] &= (1u << (ScalarParams::BITS - 224)) - 1;
        if (limbs::sub<8>(less_r, x.limb, r.limb)) return x;
    }
}
/// One of (r-1)/2, (r+1)/2, 2^k, 2^k - 1, r - 2^k.
__device__ Scalar edge_scalar(uint64_t h) {
    Scalar half, one = Scalar::zero(), power = Scalar::zero(), x;
    one.limb[0] = 1;
    const Limbs<8> r = ScalarParams::modulus();
    for (int j = 0; j < 8; j++) half.limb[j] = r.limb[j] >> 1 | (j < 7 ? r.limb[j + 1] << 31 : 0);
    const int k = min(int(h >> 8 & 0xff), ScalarParams::BITS - 2);
    power.limb[k / 32] = 1u << k % 32;
    switch (h % 5) {
        case 0: return half;
        case 1: limbs::add<8>(x.limb, half.limb, one.limb); return x;
        case 2: return power;
        case 3: limbs::sub<8>(x.limb, power.limb, one.limb); return x;
        default: return power.neg();
    }
}
__global__ void make_scalars(Scalar* out, uint64_t n, Scalars kind, bool montgomery) {
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < n; i += uint64_t(gridDim.x) * blockDim.x) {
        const uint64_t h = mix(n + i);
        Scalar x = Scalar::zero(), one = Scalar::zero();
        one.limb[0] = 1;
        if (kind == RANDOM || (kind == FEW && h % 100 == 0)) x = random_scalar(n + i);
        if (kind == ONES) x = one;
        if (kind == EQUAL) x = random_scalar(n);
        if (kind == MINUS_ONE) x = one.neg();
        if (kind == TWO) x = random_scalar(h & 1);
        if (kind == ONE_WINDOW) x.limb[0] = uint32_t(h) & 0x7fff;
        if (kind == BITS) x.limb[0] = h & 1;
        if (kind == EDGES) x = edge_scalar(h);
        // Half 1, a quarter 0, a quarter random, as a witness is.
        if (kind == MIX) x = h & 1 ? one : h & 2 ? random_scalar(n + i) : x;
        out[i] = montgomery ? Scalar::from_canonical(x) : x;
    }
}
/// Each thread's share of the sum of logarithm times scalar, over the points first .. first + points.
__global__ void dot(const Scalar* scalars, uint64_t first, uint64_t count, Points points, bool montgomery,
                    Scalar* out) {
    const uint64_t t = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x;
    Scalar sum = Scalar::zero();
    for (uint64_t i = t; i < count; i += uint64_t(gridDim.x) * blockDim.x) {
        Scalar k = Scalar::zero();
        k.limb[0] = logarithm(i, points);
        k = Scalar::from_canonical(k);
        const Scalar s = montgomery ? scalars[first + i] : Scalar::from_canonical(scalars[first + i]);
        sum += (is_negative(i, points) ? k.neg() : k) * s;
    }
    out[t] = sum;
}

static Base decimal(const char* digits) {
    Base value = Base::zero(), ten = Base::zero();
    ten.limb[0] = 10;
    ten = Base::from_canonical(ten);
    for (; *digits; digits++) {
        Base digit = Base::zero();
        digit.limb[0] = uint32_t(*digits - '0');
        value = value * ten + Base::from_canonical(digit);
    }
    return value;
}
static Point generator() {
    constexpr size_t PARTS = sizeof(Point) / sizeof(Base);
    Base parts[PARTS];
    for (size_t i = 0; i < PARTS; i++) parts[i] = decimal(GENERATOR[i]);
    Point point;
    memcpy(&point, parts, sizeof point);
    return point;
}

/// Milliseconds of what is launched, the median of `runs` after one to warm up.
template <class Launch> static float median_ms(int runs, Launch launch) {
    std::vector<float> times;
    for (int run = 0; run <= runs; run++) {
        cudaEvent_t begin, end;
        float ms;
        CHECK(cudaEventCreate(&begin));
        CHECK(cudaEventCreate(&end));
        CHECK(cudaEventRecord(begin));
        launch();
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        CHECK(cudaEventDestroy(begin));
        CHECK(cudaEventDestroy(end));
        if (run) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

struct Case {
    uint64_t scalars, first, points;
    uint32_t window_bits, bucket_sets;
    bool anywhere;
    Points kind;
    bool montgomery;
    uint32_t rounds, chunk, powers = 1, uncarried = 0;

    tandem_msm_shape shape() const {
        tandem_msm_shape s{};
        s.scalars = scalars;
        s.window_bits = window_bits;
        s.windows = (ScalarParams::BITS - 1) / window_bits + 1;
        s.step_bits = anywhere ? 1 : window_bits;
        s.window_positions = (ScalarParams::BITS - 1) / s.step_bits + 1;
        s.table_levels = (s.window_positions + bucket_sets - 1) / bucket_sets;
        s.bucket_sets = (s.window_positions + s.table_levels - 1) / s.table_levels;
        s.table_levels *= powers;
        s.levels_per_window = powers;
        s.carry_free_windows = s.bucket_sets == 1 && !anywhere ? std::min(uncarried, s.window_positions - 1) : 0;
        if (powers == 1) s.table_levels += s.carry_free_windows;
        while (uint64_t(1) << s.index_bits < scalars) s.index_bits++;
        return s;
    }
};

static int32_t sum_all(const tandem_msm_sum_args& args, void* scratch, size_t bytes) {
    const int32_t status = GROUP(accumulate)(&args, scratch, bytes, nullptr);
    return status ? status : GROUP(reduce)(&args, scratch, bytes, nullptr);
}

/// Entries that n scalars of this kind make: none of a zero, one of a one. -1 where it is not known.
static int64_t expected_entries(Scalars kind, uint64_t n) {
    if (kind == ZEROS) return 0;
    if (kind == ONES || kind == MINUS_ONE) return int64_t(n);
    if (kind != BITS) return -1;
    int64_t ones = 0;
    for (uint64_t i = 0; i < n; i++) ones += mix(n + i) & 1;
    return ones;
}

/// Puts the sums of bucket sets together (crates/ops-cuda/src/msm/finish.rs).
static Point finish(const tandem_msm_shape& shape, const std::vector<Sum>& sums) {
    Sum result = Sum::infinity();
    for (uint32_t weight = shape.step_bits * (shape.bucket_sets - 1) + shape.window_bits; weight-- > 0;) {
        result = result.dbl();
        size_t before = 0;
        for (bool second : {false, true}) {
            const msm::BucketRange part = msm::bucket_range(shape, second);
            for (uint32_t j = 0; j < part.sets; j++, before += part.bits + 1) {
                const uint32_t least = shape.step_bits * j + part.shift,
                               b = weight - least - part.odd;  // wraps to a large number
                if (b < part.bits) result.add(sums[before + 1 + b]);
                if (weight == least) result.add(sums[before]);
            }
        }
    }
    return result.is_infinity() ? Point::infinity() : result.to_affine();
}

/// Checks a case with each kind of scalars; measures if `runs` is not 0. Returns how many sums were wrong.
static int run(const Case& c, const std::vector<Scalars>& kinds, int runs) {
    const tandem_msm_shape shape = c.shape();
    if (!msm::valid(shape)) return 0;
    const Point g = generator();
    const uint32_t buckets = msm::bucket_count(shape);
    size_t sum_count = 0;
    const size_t dot_count = 132 * 1024;
    for (bool second : {false, true}) {
        const msm::BucketRange part = msm::bucket_range(shape, second);
        sum_count += part.sets * (part.bits + 1);
    }
    DeviceArray<Point> table(c.points * shape.table_levels);
    DeviceArray<Scalar> scalars(c.scalars), dots(dot_count);
    DeviceArray<uint32_t> entries(c.scalars * shape.windows), offsets(buckets + 1);
    DeviceArray<Sum> sums(sum_count);
    const tandem_msm_table_args table_args{shape, c.points, reinterpret_cast<uint64_t*>(table.data)};
    const tandem_msm_digits_args digits_args{shape, reinterpret_cast<tandem_scalar*>(scalars.data), c.montgomery,
                                             entries.data, offsets.data};
    const tandem_msm_sum_args sum_args{shape,
                                       c.first,
                                       c.points,
                                       table_args.table,
                                       entries.data,
                                       offsets.data,
                                       reinterpret_cast<uint64_t*>(sums.data),
                                       c.rounds,
                                       c.chunk};
    size_t bytes[3];
    if (GROUP_SCRATCH(table)(&table_args, &bytes[0]) || DIGITS_SCRATCH(&digits_args, &bytes[1]) ||
        GROUP_SCRATCH(sum)(&sum_args, &bytes[2]))
        return 1;
    const size_t most = std::max({bytes[0], bytes[1], bytes[2]});
    DeviceArray<uint8_t> scratch(most);
    make_points<<<1056, 128>>>(g, table.data, c.points, c.kind);
    if (GROUP(table)(&table_args, scratch.data, most, nullptr)) return 1;

    int wrong = 0;
    for (Scalars kind : kinds) {
        make_scalars<<<1024, 128>>>(scalars.data, c.scalars, kind, c.montgomery);
        // What a kernel forgets to write must not be right by chance.
        CHECK(cudaMemset(entries.data, 0xee, c.scalars * shape.windows * 4));
        CHECK(cudaMemset(scratch.data, 0xdd, most));
        const int32_t digits_status = DIGITS(&digits_args, scratch.data, most, nullptr);
        CHECK(cudaMemset(scratch.data, 0xcc, most));
        uint32_t entry_count;
        CHECK(cudaMemcpy(&entry_count, offsets.data + buckets, sizeof entry_count, cudaMemcpyDeviceToHost));
        const int64_t expected_count = expected_entries(kind, c.scalars);
        const bool apart = expected_count < 0 || expected_count == entry_count;
        const int32_t sum_status = sum_all(sum_args, scratch.data, most);
        std::vector<Sum> host(sum_count);
        std::vector<Scalar> shares(dot_count);
        CHECK(cudaMemcpy(host.data(), sums.data, sum_count * sizeof(Sum), cudaMemcpyDeviceToHost));
        Point expected = Point::infinity();
        const Point got = finish(shape, host);

        dot<<<1056, 128>>>(scalars.data, c.first, c.points, c.kind, c.montgomery, dots.data);
        CHECK(cudaMemcpy(shares.data(), dots.data, dot_count * sizeof(Scalar), cudaMemcpyDeviceToHost));
        Scalar k = Scalar::zero();
        for (const Scalar& share : shares) k += share;
        k = k.to_canonical();
        Sum sum = Sum::infinity();
        for (int b = 255; b >= 0; b--) {
            sum = sum.dbl();
            if (k.limb[b / 32] >> (b % 32) & 1) sum.add(g);
        }
        if (!sum.is_infinity()) expected = sum.to_affine();
        const bool right = apart && !digits_status && !sum_status && got == expected;
        wrong += !right;
        if (!right || runs)
            printf("%-12s 2^%-5.2f c %2u%c windows %2u sets %2u levels %3u powers %u uncarried %u rounds %u  %-10s %s",
                   NAME, log2(double(c.scalars)), shape.window_bits, c.anywhere ? '+' : ' ', shape.windows,
                   shape.bucket_sets, shape.table_levels, shape.levels_per_window, shape.carry_free_windows, c.rounds,
                   KIND[kind], right ? "ok" : "WRONG\n");
        if (!right || !runs) continue;

        const float digits = median_ms(runs, [&] { DIGITS(&digits_args, scratch.data, most, nullptr); });
        const float all = median_ms(runs, [&] { sum_all(sum_args, scratch.data, most); });
        const float accumulate = median_ms(runs, [&] { GROUP(accumulate)(&sum_args, scratch.data, most, nullptr); });
        printf("  %.3f ms = digits %.3f + accumulate %.3f + rest %.3f\n", digits + all, digits, accumulate,
               all - accumulate);
    }
    return wrong;
}

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    std::vector<Scalars> all;
    for (int k = 0; k < KINDS; k++) all.push_back(Scalars(k));
    int wrong = 0, cases = 0, number = 0;
    const bool in_parts = (mode == "small" || mode == "check") && argc > 3;
    const int part_number = in_parts ? atoi(argv[2]) : 0, parts = in_parts ? std::max(1, atoi(argv[3])) : 1;
    if (mode == "small") {
        // Racecheck takes up to a second for a launch: some thousand entries and few rounds each. Windows one behind the other and
        // anywhere, some bucket sets and a table, one set, no table; each again with rounds, in three chunks, in one, in one, in two.
        const Case small[] = {
            {100, 30, 60, 5, 3, false, MEETING, true, 0, 0},
            {100, 30, 60, 6, 3, true, MEETING, false, 0, 0},
            {300, 0, 300, 9, 1, false, MIXED, true, 0, 0},
            {64, 0, 64, 4, 100, false, SAME, false, 0, 0},
            {100, 30, 60, 5, 3, false, MEETING, true, 3, 2000},
            {100, 30, 60, 6, 3, true, MEETING, false, 8, 1 << 24},
            {300, 0, 300, 9, 1, false, MIXED, true, 2, 1 << 24},
            {64, 0, 64, 4, 100, false, SAME, false, 4, 3000},
            {100, 30, 60, 7, 1, false, MEETING, true, 0, 0, 3},
            {100, 30, 60, 8, 1, false, MIXED, false, 3, 2000, 2},
            {100, 30, 60, 11, 1, false, MIXED, true, 0, 0, 3, 3},
            {100, 30, 60, 11, 1, false, MIXED, false, 3, 2000, 1, 2},
        };
        for (const Case& one : small) {
            if (number++ % parts != part_number) continue;
            wrong += msm::valid(one.shape()) ? run(one, {RANDOM, EQUAL}, 0) : 1;
            cases++;
        }
        printf("%s: %d cases of 2 kinds of scalars, %d sums wrong\n", NAME, cases, wrong);
    } else if (mode == "check") {
        for (Points points : {DISTINCT, MIXED, SAME, MEETING})
            for (uint64_t n : {1, 2, 33, 257, 1000, 4097, 65537})
                for (uint32_t c : {2, 5, 11, 16, 19, 3, 12, 20})
                    for (uint32_t sets : {1, 3, 100}) {
                        const bool anywhere = c == 3 || c == 12 || c == 20;
                        if ((c <= 3 && n > 1000) || ((points == SAME || points == MEETING) && n > 5000)) continue;
                        const bool part = sets == 3 && n > 2;
                        Case one{n,        part ? n / 3 : 0, part ? n / 2 : n, c, sets,
                                 anywhere, points,           (n + c) % 2 == 1, 0, 0};
                        if (number++ % parts != part_number) continue;
                        wrong += run(one, all, 0);
                        cases++;
                        // One to eight rounds; all entries in one chunk, or in some.
                        one.rounds = 1 + number % 8;
                        one.chunk =
                            uint32_t(number % 3 ? std::max<uint64_t>(256, n * 256 / c / (number % 5 + 2)) : 1 << 24);
                        wrong += run(one, all, 0);
                        cases++;
                        if (sets > 1 || anywhere || c <= 3) continue;
                        // Levels for powers of two, few and as many as go, with rounds and without; and digits that are not carried.
                        for (uint32_t powers : {2u, 3u + number % 3, c - 2, 1u}) {
                            one.powers = std::min(powers, c - 2);
                            for (uint32_t uncarried : {0u, 1 + number % 3u}) {
                                one.uncarried = uncarried;
                                wrong += run(one, all, 0);
                                cases++;
                                one.rounds = 0;
                            }
                        }
                    }
        printf("%s: %d cases of %d kinds of scalars, %d sums wrong\n", NAME, cases, int(KINDS), wrong);
    } else if ((mode == "bench" || mode == "skew") && argc > 3) {
        const uint64_t n = uint64_t(1) << std::min(28, atoi(argv[2]));
        for (int i = 3; i < argc; i++) {
            const char *sets = strchr(argv[i], '/'), *rounds = strchr(argv[i], ':');
            const char *chunk = rounds ? strchr(rounds + 1, ':') : nullptr, *powers = strchr(argv[i], 'x');
            const char* uncarried = strchr(argv[i], '-');
            const Case c{n,
                         0,
                         n,
                         uint32_t(atoi(argv[i])),
                         sets ? uint32_t(atoi(sets + 1)) : 1,
                         strchr(argv[i], '+') != nullptr,
                         DISTINCT,
                         false,
                         rounds ? uint32_t(atoi(rounds + 1)) : 0,
                         1u << (chunk ? atoi(chunk + 1) : 25),
                         powers ? uint32_t(atoi(powers + 1)) : 1,
                         uncarried ? uint32_t(atoi(uncarried + 1)) : 0};
            wrong += run(c, mode == "skew" ? all : std::vector<Scalars>{RANDOM}, 9);
        }
    } else {
        fprintf(
            stderr,
            "usage: msm small [<i> <n>] | msm check [<i> <n>] | msm bench <log2 size> <c>[+][/sets][xpowers][-uncarried][:rounds[:log2 chunk]].. | "
            "msm skew <log2 size> <the same>\n");
        return 2;
    }
    return wrong != 0;
}

// sppark's MSM and NTT: medians of 10 runs after a warm-up, each result checked on the host with our own arithmetic.
//
// MSM: the points are resident (sppark uploads them when its msm_t is made); the scalars come from pinned memory
// ("msm") or are resident too ("msm_resident"). The time is that of the whole call, whose last step runs on the host.
// NTT: in place on resident data, natural order to natural ("NN") or to bit-reversed ("NR"); CUDA events.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#if defined(FEATURE_BN254)
#include <ff/alt_bn128.hpp>
#else
#include <ff/bls12-381.hpp>
#endif
#include <ec/jacobian_t.hpp>
#include <ec/xyzz_t.hpp>

typedef jacobian_t<fp_t> point_t;
typedef xyzz_t<fp_t> bucket_t;
typedef bucket_t::affine_t affine_t;
typedef fr_t scalar_t;

#include <msm/pippenger.cuh>
#include <ntt/ntt.cuh>

#include "tandem/curve.cuh"

#ifndef __CUDA_ARCH__

#if defined(FEATURE_BN254)
typedef tandem::Bn254G1 G1;
static const char* CURVE = "bn254";
#else
typedef tandem::Bls12381G1 G1;
static const char* CURVE = "bls12_381";
#endif
typedef G1::Field Base;
typedef G1::Scalar Scalar;
typedef tandem::Affine<Base> Point;
static_assert(sizeof(Point) == sizeof(affine_t) && sizeof(Scalar) == sizeof(scalar_t), "layouts differ");

constexpr int RUNS = 10;

static void require(bool ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "sppark %s: %s\n", CURVE, what);
    exit(1);
}

static void check(cudaError_t status, const char* what) { require(status == cudaSuccess, what); }

/// splitmix64 of a position in a stream.
static uint64_t random_word(uint64_t i) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/// A random integer below r.
static Scalar random_scalar(uint64_t seed) {
    constexpr tandem::Limbs<8> r = Scalar::Params::modulus();
    Scalar s;
    for (int i = 0; i < 8; i++) s.limb[i] = uint32_t(random_word(8 * seed + i));
    s.limb[7] = uint32_t(uint64_t(s.limb[7]) * r.limb[7] >> 32);
    return s;
}

static Scalar small(uint64_t x) {
    Scalar s = Scalar::zero();
    s.limb[0] = uint32_t(x);
    s.limb[1] = uint32_t(x >> 32);
    return Scalar::from_canonical(s);
}

static void in_parallel(size_t n, const std::function<void(size_t, size_t)>& work) {
    size_t workers = std::max(1u, std::thread::hardware_concurrency());
    size_t share = (n + workers - 1) / workers;
    std::vector<std::thread> threads;
    for (size_t begin = 0; begin < n; begin += share) threads.emplace_back(work, begin, std::min(n, begin + share));
    for (std::thread& t : threads) t.join();
}

static Point generator() {
    // x = 1, y = 2 on y^2 = x^3 + 3; on y^2 = x^3 + 4 the standard generator.
#if defined(FEATURE_BN254)
    Base one = Base::one();
    return {one, one.dbl()};
#else
    Base x = {{0xdb22c6bb, 0xfb3af00a, 0xf97a1aef, 0x6c55e83f, 0x171bac58, 0xa14e3a3f, 0x9774b905, 0xc3688c4f,
               0x4fa9ac0f, 0x2695638c, 0x3197d794, 0x17f1d3a7}};
    Base y = {{0x46c5e7e1, 0x0caa2329, 0xa2888ae4, 0xd03cc744, 0x2c04b3ed, 0x00db18cb, 0xd5d00af6, 0xfcf5e095,
               0x741d8ae4, 0xa09e30ed, 0xe3aaa0f1, 0x08b3f481}};
    return {Base::from_canonical(x), Base::from_canonical(y)};
#endif
}

static tandem::Xyzz<Base> multiple(const Point& p, const Scalar& canonical) {
    auto sum = tandem::Xyzz<Base>::infinity();
    for (int i = 255; i >= 0; i--) {
        sum = sum.dbl();
        if (canonical.limb[i / 32] >> (i % 32) & 1) sum.add(p);
    }
    return sum;
}

/// Point i is (i + 1) * 7919 times the generator: all differ, and a sum of multiples can be known in the scalar field.
constexpr uint64_t STEP = 7919;
static std::vector<Point> make_points(size_t n) {
    std::vector<Point> points(n);
    Point step = multiple(generator(), small(STEP).to_canonical()).to_affine();
    in_parallel(n, [&](size_t begin, size_t end) {
        auto sum = multiple(step, small(begin).to_canonical());
        constexpr size_t BATCH = 256;
        std::vector<tandem::Xyzz<Base>> batch(BATCH);
        std::vector<Base> products(BATCH);
        for (size_t at = begin; at < end; at += BATCH) {
            size_t count = std::min(BATCH, end - at);
            Base product = Base::one();
            for (size_t i = 0; i < count; i++) {
                sum.add(step);
                batch[i] = sum;
                products[i] = product;
                product = product * sum.zzz;
            }
            Base inverse = product.inverse();
            for (size_t i = count; i-- > 0;) {
                Base izzz = inverse * products[i];
                inverse = inverse * batch[i].zzz;
                Base iz = batch[i].zz * izzz;
                points[at + i] = {batch[i].x * iz.sqr(), batch[i].y * izzz};
            }
        }
    });
    return points;
}

static void row(const char* what, const char* order, int log_n, std::vector<double> ms) {
    std::sort(ms.begin(), ms.end());
    double median = (ms[RUNS / 2 - 1] + ms[RUNS / 2]) / 2;
    printf("{\"peer\":\"sppark 0.1.16\",\"what\":\"%s\",\"curve\":\"%s\",", what, CURVE);
    printf("\"log_n\":%d,\"order\":%s,\"ms\":%.4f}\n", log_n, order, median);
    fflush(stdout);
}

static void check_sum(point_t& got, const Point& expected) {
    affine_t affine = got;
    require(!memcmp(&affine, &expected, sizeof expected), "wrong sum");
}

template <class Call> static std::vector<double> wall_times(Call call) {
    std::vector<double> ms;
    for (int run = -1; run < RUNS; run++) {
        auto begin = std::chrono::steady_clock::now();
        call();
        std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
        if (run >= 0) ms.push_back(elapsed.count());
    }
    return ms;
}

static void msm(int log_min, int log_max) {
    size_t max = size_t(1) << log_max;
    std::vector<Point> points = make_points(max);
    scalar_t* scalars;
    check(cudaMallocHost(&scalars, max * sizeof(scalar_t)), "pinned memory");
    Scalar* ours = reinterpret_cast<Scalar*>(scalars);
    in_parallel(max, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++) ours[i] = random_scalar(i);
    });
    for (int log_n = log_min; log_n <= log_max; log_n++) {
        size_t n = size_t(1) << log_n;
        // The sum is known in the scalar field.
        std::vector<Scalar> parts((n + 65535) / 65536, Scalar::zero());
        in_parallel(parts.size(), [&](size_t begin, size_t end) {
            for (size_t k = begin; k < end; k++)
                for (size_t i = k * 65536; i < std::min(n, (k + 1) * 65536); i++)
                    parts[k] += Scalar::mul2(ours[i], small((i + 1) * STEP));
        });
        Scalar total = Scalar::zero();
        // mul2 of a canonical and a Montgomery value is the canonical product, and sums of those stay canonical.
        for (const Scalar& part : parts) total += part;
        Point expected = multiple(generator(), total).to_affine();

        msm_t<bucket_t, point_t, affine_t, scalar_t> msm(reinterpret_cast<affine_t*>(points.data()), n);
        const affine_t* preloaded = nullptr;
        point_t sum;
        auto call = [&] {
            RustError status = msm.invoke(sum, preloaded, n, static_cast<const scalar_t*>(scalars), false);
            require(status.code == 0, "msm failed");
        };
        row("msm", "null", log_n, wall_times(call));
        check_sum(sum, expected);

        scalar_t* device;
        check(cudaMalloc(&device, n * sizeof(scalar_t)), "device memory");
        check(cudaMemcpy(device, scalars, n * sizeof(scalar_t), cudaMemcpyHostToDevice), "upload");
        check(cudaDeviceSynchronize(), "upload");
        gpu_ptr_t<scalar_t> resident(device);  // takes the memory over
        auto resident_call = [&] {
            RustError status = msm.invoke(sum, preloaded, n, resident, false);
            require(status.code == 0, "msm failed");
        };
        sum.inf();
        row("msm_resident", "null", log_n, wall_times(resident_call));
        check_sum(sum, expected);
    }
    check(cudaFreeHost(scalars), "free");
}

static size_t reversed(size_t i, int bits) {
    size_t r = 0;
    for (int b = 0; b < bits; b++) r |= (i >> b & 1) << (bits - 1 - b);
    return r;
}

/// Value of the polynomial with these coefficients (Montgomery form) at a point, by blocks in parallel.
static Scalar evaluate(const std::vector<Scalar>& coefficients, const Scalar& at) {
    constexpr size_t BLOCK = 1 << 12;
    size_t blocks = (coefficients.size() + BLOCK - 1) / BLOCK;
    std::vector<Scalar> partial(blocks);
    in_parallel(blocks, [&](size_t begin, size_t end) {
        for (size_t b = begin; b < end; b++) {
            Scalar sum = Scalar::zero();
            for (size_t i = std::min(coefficients.size(), (b + 1) * BLOCK); i-- > b * BLOCK;)
                sum = sum * at + coefficients[i];
            partial[b] = sum;
        }
    });
    Scalar step = Scalar::one(), sum = Scalar::zero();
    for (size_t i = 0; i < BLOCK; i++) step = step * at;
    for (size_t b = blocks; b-- > 0;) sum = sum * step + partial[b];
    return sum;
}

static void ntt(int log_n) {
    size_t n = size_t(1) << log_n;
    const gpu_t& gpu = select_gpu();
    stream_t& stream = gpu[0];
    fr_t* data;
    check(cudaMalloc(&data, n * sizeof(fr_t)), "device memory");
    std::vector<Scalar> input(n), output(n);
    auto transform = [&](NTT::InputOutputOrder order) {
        NTT::Base_dev_ptr(stream, data, log_n, order, NTT::Direction::forward, NTT::Type::standard);
    };
    // From pageable memory cudaMemcpy may return before the data has arrived, and sppark's streams do not wait for it.
    auto upload = [&] {
        check(cudaMemcpy(data, input.data(), n * sizeof(fr_t), cudaMemcpyHostToDevice), "upload");
        check(cudaDeviceSynchronize(), "upload");
    };
    auto download = [&] {
        check(cudaStreamSynchronize(stream), "transform");
        check(cudaMemcpy(output.data(), data, n * sizeof(fr_t), cudaMemcpyDeviceToHost), "download");
    };

    // The transform of X is the powers of the root of unity that sppark uses; it must have order n.
    std::fill(input.begin(), input.end(), Scalar::zero());
    input[1] = Scalar::one();
    upload();
    transform(NTT::InputOutputOrder::NN);
    download();
    Scalar root = output[1], power = root;
    for (int i = 1; i < log_n; i++) power = power.sqr();
    require(power == Scalar::one().neg(), "not a primitive root of unity");

    in_parallel(n, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++) input[i] = random_scalar(i + 77);
    });
    for (bool natural : {true, false}) {
        auto order = natural ? NTT::InputOutputOrder::NN : NTT::InputOutputOrder::NR;
        upload();
        transform(order);
        download();
        for (int trial = 0; trial < 3; trial++) {
            size_t k = random_word(trial) % n;
            Scalar at = Scalar::one();
            for (int bit = log_n - 1; bit >= 0; bit--) {
                at = at.sqr();
                if (k >> bit & 1) at = at * root;
            }
            require(output[natural ? k : reversed(k, log_n)] == evaluate(input, at), "wrong transform");
        }

        cudaEvent_t begin, end;
        check(cudaEventCreate(&begin), "event");
        check(cudaEventCreate(&end), "event");
        std::vector<double> ms;
        for (int run = -1; run < RUNS; run++) {
            check(cudaEventRecord(begin, stream), "event");
            transform(order);
            check(cudaEventRecord(end, stream), "event");
            check(cudaEventSynchronize(end), "transform");
            float elapsed;
            check(cudaEventElapsedTime(&elapsed, begin, end), "event");
            if (run >= 0) ms.push_back(elapsed);
        }
        row("ntt", natural ? "\"NN\"" : "\"NR\"", log_n, ms);
        check(cudaEventDestroy(begin), "event");
        check(cudaEventDestroy(end), "event");
    }
    check(cudaFree(data), "free");
}

extern "C" int peer_main(int log_min, int log_max) {
    try {
        for (int log_n = log_min; log_n <= log_max; log_n++) ntt(log_n);
        msm(log_min, log_max);
        return 0;
    } catch (const std::exception& e) {
        fprintf(stderr, "sppark %s: %s\n", CURVE, e.what());
        return 3;
    }
}
#endif

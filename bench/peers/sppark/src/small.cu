// sppark's NTT over the small fields: medians of 10 runs after a warm-up, in place on resident data, natural order to
// natural ("NN") or to bit-reversed ("NR"), by CUDA events; a few values of each result are computed on the host.
#include <algorithm>
#include <cstdio>
#include <vector>

#if defined(FEATURE_GOLDILOCKS)
#include <ff/goldilocks.hpp>
#else
#include <ff/baby_bear.hpp>
#endif
#include <ntt/ntt.cuh>

#ifndef __CUDA_ARCH__

#if defined(FEATURE_GOLDILOCKS)
static const char* FIELD = "goldilocks";
constexpr uint64_t P = 0xffffffff00000001, ONE = 1;
typedef uint64_t Word;
#else
static const char* FIELD = "baby-bear";
// In Montgomery form, one is 2^32.
constexpr uint64_t P = 0x78000001, ONE = (uint64_t(1) << 32) % P;
typedef uint32_t Word;
#endif
static_assert(sizeof(Word) == sizeof(fr_t), "layouts differ");

constexpr int RUNS = 10;

static void require(bool ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "sppark %s: %s\n", FIELD, what);
    exit(1);
}

static void check(cudaError_t status, const char* what) { require(status == cudaSuccess, what); }

static uint64_t multiply(uint64_t a, uint64_t b) { return uint64_t(static_cast<unsigned __int128>(a) * b % P); }

static uint64_t power(uint64_t base, uint64_t exponent) {
    uint64_t r = 1;
    for (; exponent; exponent >>= 1, base = multiply(base, base))
        if (exponent & 1) r = multiply(r, base);
    return r;
}

/// splitmix64 of a position in a stream.
static uint64_t random_word(uint64_t i) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static size_t reversed(size_t i, int bits) {
    size_t r = 0;
    for (int b = 0; b < bits; b++) r |= (i >> b & 1) << (bits - 1 - b);
    return r;
}

static void ntt(int log_n) {
    size_t n = size_t(1) << log_n;
    const gpu_t& gpu = select_gpu();
    stream_t& stream = gpu[0];
    fr_t* data;
    check(cudaMalloc(&data, n * sizeof(fr_t)), "device memory");
    std::vector<Word> input(n), output(n);
    auto transform = [&](NTT::InputOutputOrder order) {
        NTT::Base_dev_ptr(stream, data, log_n, order, NTT::Direction::forward, NTT::Type::standard);
    };
    auto upload = [&] {
        check(cudaMemcpy(data, input.data(), n * sizeof(fr_t), cudaMemcpyHostToDevice), "upload");
        check(cudaDeviceSynchronize(), "upload");
    };
    auto download = [&] {
        check(cudaStreamSynchronize(stream), "transform");
        check(cudaMemcpy(output.data(), data, n * sizeof(fr_t), cudaMemcpyDeviceToHost), "download");
    };

    // The transform of X is the powers of the root of unity that sppark uses; it must have order n. A transform is
    // linear, so that Montgomery form stays outside of all sums.
    std::fill(input.begin(), input.end(), Word(0));
    input[1] = Word(ONE);
    upload();
    transform(NTT::InputOutputOrder::NN);
    download();
    const uint64_t root = multiply(output[1], power(ONE, P - 2));
    require(power(root, n / 2) == P - 1, "not a primitive root of unity");

    for (size_t i = 0; i < n; i++) input[i] = Word(random_word(i) % P);
    for (bool natural : {true, false}) {
        auto order = natural ? NTT::InputOutputOrder::NN : NTT::InputOutputOrder::NR;
        upload();
        transform(order);
        download();
        for (int trial = 0; trial < 3; trial++) {
            size_t k = random_word(trial) % n;
            const uint64_t at = power(root, k);
            uint64_t sum = 0;
            for (size_t i = n; i-- > 0;) sum = uint64_t((static_cast<unsigned __int128>(sum) * at + input[i]) % P);
            require(output[natural ? k : reversed(k, log_n)] == sum, "wrong transform");
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
        std::sort(ms.begin(), ms.end());
        printf(
            "{\"peer\":\"sppark 0.1.16\",\"what\":\"ntt\",\"field\":\"%s\",\"log_n\":%d,\"order\":\"%s\",\"ms\":%.4f}\n",
            FIELD, log_n, natural ? "NN" : "NR", (ms[RUNS / 2 - 1] + ms[RUNS / 2]) / 2);
        fflush(stdout);
        check(cudaEventDestroy(begin), "event");
        check(cudaEventDestroy(end), "event");
    }
    check(cudaFree(data), "free");
}

extern "C" int peer_main(int log_min, int log_max) {
    try {
        for (int log_n = log_min; log_n <= log_max; log_n++) ntt(log_n);
        return 0;
    } catch (const std::exception& e) {
        fprintf(stderr, "sppark %s: %s\n", FIELD, e.what());
        return 3;
    }
}
#endif

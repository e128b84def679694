#pragma once
// What the programs share.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tandem/curve.cuh"

using namespace tandem;

#define CHECK(call)                                                                                    \
    do {                                                                                               \
        cudaError_t status = (call);                                                                   \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(3);                                                                                   \
        }                                                                                              \
    } while (0)

/// The last step of splitmix64: any number to one that looks random.
TANDEM_HD uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static uint64_t random_state = 0x9e3779b97f4a7c15ull;

/// splitmix64
[[maybe_unused]] static uint64_t random_word() { return mix(random_state += 0x9e3779b97f4a7c15ull); }

/// Fills values of a type made of field elements with random elements below the modulus.
template <class P, class T> static void fill_random(std::vector<T>& values) {
    constexpr Limbs<P::N> p = P::modulus();
    uint32_t* limb = reinterpret_cast<uint32_t*>(values.data());
    for (size_t i = 0; i < values.size() * sizeof(T) / 4; i += P::N) {
        for (int j = 0; j < P::N; j++) limb[i + j] = uint32_t(random_word());
        limb[i + P::N - 1] %= p.limb[P::N - 1];
    }
}

template <class T> struct DeviceArray {
    T* data = nullptr;
    explicit DeviceArray(size_t n) { CHECK(cudaMalloc(&data, n * sizeof(T))); }
    ~DeviceArray() { cudaFree(data); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
};

/// Median time in ms of 5 runs after one to warm up.
template <class Launch> static float median_ms(Launch launch) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    for (int run = 0; run < 6; run++) {
        CHECK(cudaEventRecord(begin));
        launch();
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        if (run) times.push_back(ms);
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

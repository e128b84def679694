// CUB's reductions beside ours: `cub-reduce LOG_N [RUNS]` prints a row of JSON for sums, least and greatest of 2^LOG_N numbers in the
// memory of one GPU: `ms` of its kernels, `ms_to_host` from the call until the host has the result. Results are checked against
// another order of additions, or exactly.
#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
    exit(3);
}

/// A number that looks random (the finalizer of splitmix64).
__host__ __device__ uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

template <class T> __host__ __device__ T element(uint64_t i) {
    const uint64_t x = mix((i + 1) * 0x9e3779b97f4a7c15);
    return T(1) / T(2) == T(0) ? T(x) : T(int64_t(x)) / T(1 << 30);
}

template <class T> __global__ void fill(T* to, uint64_t n) {
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < n; i += uint64_t(gridDim.x) * blockDim.x) {
        to[i] = element<T>(i);
    }
}

static double median(std::vector<double> ms) {
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2];
}

enum Op { SUM, MIN, MAX };

template <class T> void run(const char* element_name, Op op, uint32_t log_n, int runs) {
    const char* names[] = {"sum", "min", "max"};
    const uint64_t n = uint64_t(1) << log_n;
    T *data, *result, *host;
    check(cudaMalloc(&data, n * sizeof(T)), "memory");
    check(cudaMalloc(&result, sizeof(T)), "memory");
    check(cudaMallocHost(&host, sizeof(T)), "memory");
    fill<<<1024, 256>>>(data, n);
    size_t bytes = 0;
    void* scratch = nullptr;
    const auto reduce = [&] {
        if (op == SUM) return cub::DeviceReduce::Sum(scratch, bytes, data, result, n);
        if (op == MIN) return cub::DeviceReduce::Min(scratch, bytes, data, result, n);
        return cub::DeviceReduce::Max(scratch, bytes, data, result, n);
    };
    check(reduce(), "size of scratch memory");
    check(cudaMalloc(&scratch, bytes), "memory");
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    std::vector<double> kernels, to_host;
    for (int i = 0; i <= runs; i++) {
        check(cudaEventRecord(begin), "event");
        check(reduce(), "reduce");
        check(cudaEventRecord(end), "event");
        check(cudaEventSynchronize(end), "reduce");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin, end), "event");
        const auto from = std::chrono::steady_clock::now();
        check(reduce(), "reduce");
        check(cudaMemcpyAsync(host, result, sizeof(T), cudaMemcpyDeviceToHost), "copy");
        check(cudaStreamSynchronize(nullptr), "reduce");
        const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - from;
        if (i) {
            kernels.push_back(ms);
            to_host.push_back(wall.count());
        }
    }
    // The first 2^22 elements again, on the host.
    const uint64_t some = std::min(n, uint64_t(1) << 22);
    T expected = element<T>(0);
    double sizes = std::fabs(double(expected)), exact = double(expected);
    for (uint64_t i = 1; i < some; i++) {
        const T x = element<T>(i);
        expected = op == SUM ? T(expected + x) : op == MIN ? std::min(expected, x) : std::max(expected, x);
        sizes += std::fabs(double(x));
        exact += double(x);
    }
    const uint64_t whole = n;
    size_t few_bytes = bytes;
    const cudaError_t again = op == SUM   ? cub::DeviceReduce::Sum(scratch, few_bytes, data, result, some)
                              : op == MIN ? cub::DeviceReduce::Min(scratch, few_bytes, data, result, some)
                                          : cub::DeviceReduce::Max(scratch, few_bytes, data, result, some);
    check(again, "reduce");
    check(cudaMemcpy(host, result, sizeof(T), cudaMemcpyDeviceToHost), "copy");
    const bool is_float = T(1) / T(2) != T(0);
    const bool right = is_float && op == SUM ? std::fabs(double(*host) - exact) <= 1e-5 * sizes : *host == expected;
    const double ms = median(kernels);
    printf(
        "{\"peer\":\"CUB %d.%d\",\"what\":\"reduce_%s_%s\",\"log_n\":%u,\"ms\":%.4f,\"ms_to_host\":%.4f,\"gb_per_s\":%.1f,\"right\":%s}\n",
        CUB_MAJOR_VERSION, CUB_MINOR_VERSION, names[op], element_name, log_n, ms, median(to_host),
        whole * sizeof(T) / ms / 1e6, right ? "true" : "false");
    fflush(stdout);
    for (void* memory : {static_cast<void*>(data), static_cast<void*>(result), scratch}) cudaFree(memory);
    cudaFreeHost(host);
    if (!right) exit(1);
}

int main(int argc, char** argv) {
    const uint32_t log_n = argc > 1 ? uint32_t(atoi(argv[1])) : 24;
    const int runs = argc > 2 ? atoi(argv[2]) : 10;
    if (log_n < 4 || log_n > 33 || runs < 1) {
        fprintf(stderr, "usage: cub-reduce LOG_N [RUNS], LOG_N from 4 to 33\n");
        return 2;
    }
    run<uint64_t>("u64", SUM, log_n, runs);
    run<uint64_t>("u64", MIN, log_n, runs);
    run<uint32_t>("u32", SUM, log_n, runs);
    run<float>("f32", SUM, log_n, runs);
    run<float>("f32", MAX, log_n, runs);
    run<double>("f64", SUM, log_n, runs);
}

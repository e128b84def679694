// CUB's radix sort beside ours: `sort LOG_N [RUNS]` prints a row of JSON for keys and pairs of 2^LOG_N elements, resident
// on one GPU. Its result is checked for order.
#include <cub/device/device_radix_sort.cuh>

#include <algorithm>
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

template <class T> __global__ void fill(T* to, uint64_t n) {
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < n; i += uint64_t(gridDim.x) * blockDim.x) {
        to[i] = T(mix((i + 1) * 0x9e3779b97f4a7c15));
    }
}

template <class T> __global__ void disorder(const T* keys, uint64_t n, unsigned long long* count) {
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i + 1 < n;
         i += uint64_t(gridDim.x) * blockDim.x) {
        if (keys[i] > keys[i + 1]) atomicAdd(count, 1ull);
    }
}

template <class K> void run(const char* what, uint32_t log_n, int runs, bool pairs) {
    const uint64_t n = uint64_t(1) << log_n;
    K *in, *out, *values_in = nullptr, *values_out = nullptr;
    unsigned long long *wrong, found = 0;
    check(cudaMalloc(&in, n * sizeof(K)), "memory");
    check(cudaMalloc(&out, n * sizeof(K)), "memory");
    check(cudaMalloc(&wrong, sizeof *wrong), "memory");
    check(cudaMemset(wrong, 0, sizeof *wrong), "memory");
    if (pairs) {
        check(cudaMalloc(&values_in, n * sizeof(K)), "memory");
        check(cudaMalloc(&values_out, n * sizeof(K)), "memory");
        fill<<<1024, 256>>>(values_in, n);
    }
    fill<<<1024, 256>>>(in, n);
    size_t bytes = 0;
    void* scratch = nullptr;
    const auto sort = [&] {
        return pairs ? cub::DeviceRadixSort::SortPairs(scratch, bytes, in, out, values_in, values_out, n)
                     : cub::DeviceRadixSort::SortKeys(scratch, bytes, in, out, n);
    };
    check(sort(), "size of scratch memory");
    check(cudaMalloc(&scratch, bytes), "memory");
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    std::vector<float> ms;
    for (int i = 0; i <= runs; i++) {
        check(cudaEventRecord(begin), "event");
        check(sort(), "sort");
        check(cudaEventRecord(end), "event");
        check(cudaEventSynchronize(end), "sort");
        float of = 0;
        check(cudaEventElapsedTime(&of, begin, end), "event");
        if (i) ms.push_back(of);
    }
    disorder<<<1024, 256>>>(out, n, wrong);
    check(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost), "check");
    std::sort(ms.begin(), ms.end());
    printf(
        "{\"bench\": \"sort\", \"peer\": \"cub\", \"keys\": \"%s\", \"pairs\": %s, \"log_n\": %u, \"median_ms\": %.3f, "
        "\"min_ms\": %.3f, \"gkeys\": %.2f, \"sorted\": %s}\n",
        what, pairs ? "true" : "false", log_n, ms[ms.size() / 2], ms[0], n / ms[ms.size() / 2] / 1e6,
        found ? "false" : "true");
    fflush(stdout);
    for (void* memory : {(void*)in, (void*)out, (void*)values_in, (void*)values_out, (void*)wrong, scratch})
        cudaFree(memory);
    if (found) exit(1);
}

int main(int argc, char** argv) {
    const uint32_t log_n = argc > 1 ? uint32_t(atoi(argv[1])) : 24;
    const int runs = argc > 2 ? atoi(argv[2]) : 5;
    if (log_n < 4 || log_n > 31 || runs < 1) {
        fprintf(stderr, "usage: sort LOG_N [RUNS], LOG_N from 4 to 31\n");
        return 2;
    }
    run<uint64_t>("u64", log_n, runs, false);
    run<uint32_t>("u32", log_n, runs, false);
    run<uint64_t>("u64", log_n - 1, runs, true);
    run<uint32_t>("u32", log_n - 1, runs, true);
}

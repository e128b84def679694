// A sum of 64-bit words by one GPU and by two: is it better to give each GPU its half, or to leave all of it on the first and
// let the second read its half over NVLink? Rows of JSON on stdout; the sums are compared.
//
//   resident: the data is on the GPUs. from host: it is in page-locked host memory and goes over both PCIe slots.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

constexpr int kThreads = 512;
constexpr int kBlocks = 132 * 4;

void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "split: %s: %s\n", what, cudaGetErrorString(error));
        std::exit(3);
    }
}

__global__ void __launch_bounds__(kThreads) sum(const ulonglong2* values, size_t count, unsigned long long* total) {
    unsigned long long own = 0;
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
#pragma unroll 8
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
        const ulonglong2 pair = values[i];
        own += pair.x + pair.y;
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        own += __shfl_xor_sync(0xffffffffu, own, lanes);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(total, own);
    }
}

struct Gpu {
    cudaStream_t stream;
    ulonglong2* data;
    unsigned long long* total;
};

}  // namespace

int main() {
    constexpr size_t kBytes = size_t{1} << 32;  // 2^29 words, as the text that asks has it
    constexpr size_t kPairs = kBytes / 16;
    constexpr size_t kHalf = kPairs / 2;
    int count = 0;
    check(cudaGetDeviceCount(&count), "count");
    if (count < 2) {
        std::fprintf(stderr, "split: needs two GPUs\n");
        return 2;
    }
    Gpu gpus[2];
    for (int d = 0; d < 2; ++d) {
        check(cudaSetDevice(d), "set device");
        check(cudaDeviceEnablePeerAccess(1 - d, 0), "peer access");
        check(cudaStreamCreateWithFlags(&gpus[d].stream, cudaStreamNonBlocking), "stream");
        check(cudaMalloc(&gpus[d].data, kBytes), "memory");
        check(cudaMalloc(&gpus[d].total, 8), "memory");
    }
    uint64_t* host = nullptr;
    check(cudaHostAlloc(&host, kBytes, cudaHostAllocPortable), "host memory");
    uint64_t expected = 0, state = 1;
    for (size_t i = 0; i < kBytes / 8; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        host[i] = state;
        expected += state;
    }
    auto upload = [&](int d, size_t to, size_t from, size_t pairs) {
        check(cudaSetDevice(d), "set device");
        check(cudaMemcpyAsync(gpus[d].data + to, host + 2 * from, pairs * 16, cudaMemcpyHostToDevice, gpus[d].stream), "upload");
    };
    auto launch = [&](int d, const ulonglong2* values, size_t pairs) {
        check(cudaSetDevice(d), "set device");
        check(cudaMemsetAsync(gpus[d].total, 0, 8, gpus[d].stream), "clear");
        if (pairs > 0) {
            sum<<<kBlocks, kThreads, 0, gpus[d].stream>>>(values, pairs, gpus[d].total);
            check(cudaGetLastError(), "launch");
        }
    };
    auto wait = [&] {
        for (Gpu& gpu : gpus) {
            check(cudaStreamSynchronize(gpu.stream), "synchronize");
        }
    };
    struct Way {
        const char* name;
        std::function<void()> place;  // before the clock starts, for resident data
        std::function<void()> run;
        bool from_host;
    };
    cudaEvent_t there;
    check(cudaSetDevice(0), "set device");
    check(cudaEventCreateWithFlags(&there, cudaEventDisableTiming), "event");
    auto halves = [&] { upload(0, 0, 0, kHalf), upload(1, 0, kHalf, kHalf); };
    auto whole = [&] { upload(0, 0, 0, kPairs); };
    auto none = [] {};
    auto one = [&] { launch(0, gpus[0].data, kPairs), launch(1, nullptr, 0); };
    auto own = [&] { launch(0, gpus[0].data, kHalf), launch(1, gpus[1].data, kHalf); };
    auto remote = [&] { launch(0, gpus[0].data, kHalf), launch(1, gpus[0].data + kHalf, kHalf); };
    auto after = [&] {
        // The second GPU begins when the first has all of the data.
        check(cudaEventRecord(there, gpus[0].stream), "record");
        check(cudaStreamWaitEvent(gpus[1].stream, there, 0), "wait");
    };
    auto copied = [&] {
        launch(0, gpus[0].data, kHalf);
        check(cudaSetDevice(1), "set device");
        check(cudaMemcpyPeerAsync(gpus[1].data, 1, gpus[0].data + kHalf, 0, kHalf * 16, gpus[1].stream), "copy");
        launch(1, gpus[1].data, kHalf);
    };
    const Way ways[] = {
        {"one GPU", whole, one, false},
        {"each GPU its half", halves, own, false},
        {"all on GPU 0, GPU 1 reads its half over NVLink", whole, remote, false},
        {"all on GPU 0, GPU 1 copies its half first", whole, copied, false},
        {"one GPU", none, [&] { whole(), one(); }, true},
        {"each GPU its half", none, [&] { halves(), own(); }, true},
        {"all on GPU 0, GPU 1 reads its half over NVLink", none, [&] { whole(), after(), remote(); }, true},
    };
    for (const Way& way : ways) {
        std::vector<double> ms;
        for (int i = 0; i < 4; ++i) {
            way.place();
            wait();
            timespec a, b;
            clock_gettime(CLOCK_MONOTONIC, &a);
            way.run();
            wait();
            clock_gettime(CLOCK_MONOTONIC, &b);
            if (i > 0) {
                ms.push_back((b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6);
            }
            unsigned long long total[2];
            for (int d = 0; d < 2; ++d) {
                check(cudaMemcpy(&total[d], gpus[d].total, 8, cudaMemcpyDeviceToHost), "total");
            }
            if (total[0] + total[1] != expected) {
                std::fprintf(stderr, "split: %s: the sum is wrong\n", way.name);
                return 4;
            }
        }
        std::sort(ms.begin(), ms.end());
        std::printf("{\"what\":\"split\",\"way\":\"%s\",\"from_host\":%s,\"words\":%zu,\"ms\":%.3f}\n", way.name, way.from_host ? "true" : "false",
                    kBytes / 8, ms[ms.size() / 2]);
        std::fflush(stdout);
    }
    return 0;
}

// How eight bytes and their signal can reach another GPU: round trips between one thread on each of two GPUs, as a table on stdout.
//
//   nvcc -std=c++17 -O3 -arch=sm_90 -I crates/fabric/native/include -I crates/cuda/native/include bench/micro/signal.cu -o signal
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tandem/fabric.cuh"

using namespace tandem::fabric;

namespace {

constexpr uint64_t kRounds = 20000;
constexpr uint64_t kBytes = 1 << 20;

void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "signal: %s: %s\n", what, cudaGetErrorString(error));
        std::exit(3);
    }
}

struct Words {
    uint64_t signal;
    alignas(512) uint64_t data;
    alignas(512) Message message;
    alignas(512) uint64_t wrong;
};

enum class Way { signal_alone, release, fence, red_release, atom_acq_rel, message, device_fence };

constexpr const char* kNames[] = {"signal alone, relaxed",
                                  "put, then st.release.sys",
                                  "put, fence.acq_rel.sys, then st.relaxed.sys",
                                  "put, then red.release.sys",
                                  "put, then atom.acq_rel.sys",
                                  "both by one access of 16 bytes",
                                  "put, fence.acq_rel.gpu, then st.relaxed.sys (not enough)"};

template <Way WAY> __global__ void play(const __grid_constant__ tandem_team team, Words* words) {
    using namespace detail;
    const uint32_t peer = 1 - team.me;
    Words* there = remote_ptr(team, words, peer);
    const auto value_of = [](uint64_t round, uint32_t me) { return (2 * round + me) * 0x9e3779b97f4a7c15; };
    const auto hit = [&](uint64_t round) {
        const uint64_t value = value_of(round, team.me);
        if constexpr (WAY == Way::message) return send(team, &words->message, value, round, peer);
        if constexpr (WAY != Way::signal_alone) store<Order::relaxed>(&there->data, value);
        if constexpr (WAY == Way::fence) fence_acq_rel();
        if constexpr (WAY == Way::device_fence) asm volatile("fence.acq_rel.gpu;" ::: "memory");
        if constexpr (WAY == Way::release) {
            store<Order::release>(&there->signal, round);
        } else if constexpr (WAY == Way::red_release) {
            change<Add, Order::release>(&there->signal, uint64_t(1));
        } else if constexpr (WAY == Way::atom_acq_rel) {
            fetch<Add, Order::acq_rel>(&there->signal, uint64_t(1));
        } else {
            store<Order::relaxed>(&there->signal, round);
        }
    };
    uint64_t wrong = 0;
    for (uint64_t round = 1; round <= kRounds; round++) {
        if (team.me == 0) hit(round);
        uint64_t got = value_of(round, peer);
        if constexpr (WAY == Way::message) {
            if (!receive(team, &words->message, Compare::ge, round, &got, peer)) return;
        } else {
            if (!wait_until(team, &words->signal, Compare::ge, round, peer)) return;
            if constexpr (WAY != Way::signal_alone) got = load<Order::relaxed>(&words->data);
        }
        wrong += got != value_of(round, peer);
        if (team.me == 1) hit(round);
    }
    words->wrong = wrong + 1;
}

struct Gpu {
    char* memory;
    cudaStream_t stream;
    tandem_team team;
};

template <Way WAY> void measure(Gpu (&gpus)[2]) {
    cudaEvent_t begin, end;
    check(cudaSetDevice(0), "set device");
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    float best = 1e9f;
    uint64_t wrong = 0;
    for (int run = 0; run < 4; run++) {
        for (int i = 0; i < 2; i++) {
            check(cudaSetDevice(i), "set device");
            check(cudaMemset(gpus[i].memory, 0, kBytes), "memset");
            check(cudaDeviceSynchronize(), "synchronize");
        }
        // The second waits for the first; a game takes longer than a launch.
        play<WAY><<<1, 1, 0, gpus[1].stream>>>(gpus[1].team, reinterpret_cast<Words*>(gpus[1].memory));
        check(cudaGetLastError(), "launch");
        check(cudaSetDevice(0), "set device");
        check(cudaEventRecord(begin, gpus[0].stream), "record");
        play<WAY><<<1, 1, 0, gpus[0].stream>>>(gpus[0].team, reinterpret_cast<Words*>(gpus[0].memory));
        check(cudaGetLastError(), "launch");
        check(cudaEventRecord(end, gpus[0].stream), "record");
        check(cudaEventSynchronize(end), "synchronize");
        check(cudaStreamSynchronize(gpus[1].stream), "synchronize");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin, end), "elapsed");
        best = std::min(best, ms);
        for (const Gpu& gpu : gpus) {
            Words words;
            check(cudaMemcpy(&words, gpu.memory, sizeof words, cudaMemcpyDeviceToHost), "copy");
            if (words.wrong == 0) {
                std::fprintf(stderr, "signal: a game was not finished\n");
                std::exit(3);
            }
            wrong += words.wrong - 1;
        }
    }
    std::printf("%-58s %.3f us, %llu wrong\n", kNames[int(WAY)], best * 1e3 / kRounds, (unsigned long long)wrong);
}

}  // namespace

int main() {
    int count = 0;
    check(cudaGetDeviceCount(&count), "count");
    if (count < 2) {
        std::fprintf(stderr, "signal: needs two GPUs\n");
        return 2;
    }
    Gpu gpus[2] = {};
    tandem_fault* faults;
    check(cudaMallocHost(&faults, 2 * sizeof *faults), "host memory");
    for (int i = 0; i < 2; i++) {
        check(cudaSetDevice(i), "set device");
        check(cudaDeviceEnablePeerAccess(1 - i, 0), "peer access");
        check(cudaMalloc(&gpus[i].memory, kBytes), "memory");
        check(cudaStreamCreateWithFlags(&gpus[i].stream, cudaStreamNonBlocking), "stream");
    }
    for (int i = 0; i < 2; i++) {
        tandem_team& team = gpus[i].team;
        // Two windows that begin where the two allocations do; the distance may be negative.
        team.heap = reinterpret_cast<uint64_t>(gpus[0].memory);
        team.window = reinterpret_cast<uint64_t>(gpus[1].memory) - team.heap;
        team.own = reinterpret_cast<uint64_t>(gpus[i].memory);
        team.mapped = kBytes;
        team.state = kBytes / 2;
        team.timeout_ns = 3000000000;
        team.fault = faults + i;
        team.me = uint32_t(i);
        team.size = 2;
        team.world[1] = 1;
    }
    measure<Way::signal_alone>(gpus);
    measure<Way::release>(gpus);
    measure<Way::fence>(gpus);
    measure<Way::red_release>(gpus);
    measure<Way::atom_acq_rel>(gpus);
    measure<Way::message>(gpus);
    measure<Way::device_fence>(gpus);
    return 0;
}

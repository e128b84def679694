// What NCCL takes for a broadcast and an all-reduce on two GPUs of one process, in the ways in which one may call it and wait for it:
//
//   nvcc -std=c++17 -O2 -cudart static bench/micro/nccl.cu -o nccl && ./nccl libnccl.so.2
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Comm = void*;
constexpr int FLOAT = 7, SUM = 0, SYMMETRIC = 1;
constexpr size_t MOST = size_t(64) << 20;

void check(int status, const char* what) {
    if (status != 0) {
        std::fprintf(stderr, "nccl: %s failed: %d\n", what, status);
        std::exit(3);
    }
}
#define CHECK(call) check(int(call), #call)

/// The signatures of nccl.h.
struct Nccl {
    int (*CommInitAll)(Comm*, int, const int*);
    int (*GroupStart)();
    int (*GroupEnd)();
    int (*Broadcast)(const void*, void*, size_t, int, int, Comm, cudaStream_t);
    int (*AllReduce)(const void*, void*, size_t, int, int, Comm, cudaStream_t);
    int (*MemAlloc)(void**, size_t);
    int (*CommWindowRegister)(Comm, void*, size_t, void**, int);
    int (*GetVersion)(int*);
} nccl;

Comm comms[2];
cudaStream_t streams[2];
void *in[2], *out[2];

double now() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Call {
    bool sums;
    size_t bytes;
    /// One rank's part.
    void rank(int r) const {
        CHECK((sums ? nccl.AllReduce : nccl.Broadcast)(in[r], out[r], bytes / 4, FLOAT, sums ? SUM : 0, comms[r],
                                                       streams[r]));
    }
    void queue() const {
        CHECK(nccl.GroupStart());
        rank(0);
        rank(1);
        CHECK(nccl.GroupEnd());
    }
};

void wait() {
    for (cudaStream_t stream : streams) CHECK(cudaStreamSynchronize(stream));
}

void poll() {
    for (cudaStream_t stream : streams) {
        while (cudaStreamQuery(stream) == cudaErrorNotReady) {}
    }
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Microseconds of `f`: the median of many.
template <class F> double time(int times, F f) {
    std::vector<double> all;
    for (int i = 0; i < times + 10; i++) {
        const double begun = now();
        f();
        if (i >= 10) all.push_back(now() - begun);
    }
    return median(all);
}

/// The call of both ranks as one graph.
cudaGraphExec_t recorded(const Call& call) {
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaSetDevice(1));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaSetDevice(0));
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed));
    CHECK(cudaEventRecord(fork, streams[0]));
    CHECK(cudaStreamWaitEvent(streams[1], fork));
    call.queue();
    CHECK(cudaSetDevice(1));
    CHECK(cudaEventRecord(join, streams[1]));
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamWaitEvent(streams[0], join));
    CHECK(cudaStreamEndCapture(streams[0], &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return ready;
}

/// From one thread's call to the completion of both, where another thread calls and waits for the second rank.
double two_threads(const Call& call, int times) {
    std::atomic<int> begun{0}, done{0};
    std::thread other([&] {
        CHECK(cudaSetDevice(1));
        for (int i = 1; i <= times + 10; i++) {
            while (begun.load() < i) {}
            call.rank(1);
            CHECK(cudaStreamSynchronize(streams[1]));
            done.store(i);
        }
    });
    int i = 0;
    CHECK(cudaSetDevice(0));
    const double us = time(times, [&] {
        begun.store(++i);
        call.rank(0);
        CHECK(cudaStreamSynchronize(streams[0]));
        while (done.load() < i) {}
    });
    other.join();
    return us;
}

void memory(bool is_window) {
    for (int r = 0; r < 2; r++) {
        CHECK(cudaSetDevice(r));
        for (void** memory : {&in[r], &out[r]}) {
            if (is_window) {
                CHECK(nccl.MemAlloc(memory, MOST));
            } else {
                CHECK(cudaMalloc(memory, MOST));
            }
            CHECK(cudaMemset(*memory, 0, MOST));
        }
    }
    for (auto* buffers : {in, out}) {
        if (!is_window) continue;
        void* windows[2];
        CHECK(nccl.GroupStart());
        for (int r = 0; r < 2; r++) CHECK(nccl.CommWindowRegister(comms[r], buffers[r], MOST, &windows[r], SYMMETRIC));
        CHECK(nccl.GroupEnd());
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: nccl libnccl.so.2\n");
        return 2;
    }
    // Never NVLink multicast: a program that is killed while it uses it can leave the GPUs of a machine unusable.
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    void* library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        std::fprintf(stderr, "nccl: %s\n", dlerror());
        return 2;
    }
    const auto load = [&](auto& f, const char* name) {
        f = reinterpret_cast<std::decay_t<decltype(f)>>(dlsym(library, name));
        check(f == nullptr, name);
    };
    load(nccl.CommInitAll, "ncclCommInitAll");
    load(nccl.GroupStart, "ncclGroupStart");
    load(nccl.GroupEnd, "ncclGroupEnd");
    load(nccl.Broadcast, "ncclBroadcast");
    load(nccl.AllReduce, "ncclAllReduce");
    load(nccl.MemAlloc, "ncclMemAlloc");
    load(nccl.CommWindowRegister, "ncclCommWindowRegister");
    load(nccl.GetVersion, "ncclGetVersion");
    int version;
    CHECK(nccl.GetVersion(&version));
    for (int r = 0; r < 2; r++) {
        CHECK(cudaSetDevice(r));
        CHECK(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking));
    }
    const int devices[2] = {0, 1};
    CHECK(nccl.CommInitAll(comms, 2, devices));
    std::printf("NCCL %d, us\n\n", version);
    std::printf(
        "| memory | operation | size | one call, streams synchronized | one call, streams polled | one of 100 queued |"
        " one of 20 in a group | one call as a graph | one call, a thread a rank |\n|---|---|---|---|---|---|---|---|---|\n");
    for (bool is_window : {false, true}) {
        memory(is_window);
        for (bool sums : {false, true}) {
            for (size_t bytes : {size_t(4) << 10, size_t(1) << 20, size_t(16) << 20}) {
                const Call call{sums, bytes};
                const double alone = time(300, [&] { call.queue(), wait(); });
                const double polled = time(300, [&] { call.queue(), poll(); });
                const double queued = time(5, [&] {
                    for (int i = 0; i < 100; i++) call.queue();
                    wait();
                });
                const double grouped = time(5, [&] {
                    CHECK(nccl.GroupStart());
                    for (int i = 0; i < 20; i++) call.rank(0), call.rank(1);
                    CHECK(nccl.GroupEnd());
                    wait();
                });
                cudaGraphExec_t graph = recorded(call);
                const double as_graph = time(300, [&] {
                    CHECK(cudaGraphLaunch(graph, streams[0]));
                    CHECK(cudaStreamSynchronize(streams[0]));
                });
                CHECK(cudaGraphExecDestroy(graph));
                std::printf("| %s | %s | %zu KiB | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n",
                            is_window ? "window" : "plain", sums ? "all-reduce" : "broadcast", bytes >> 10, alone,
                            polled, queued / 100, grouped / 20, as_graph, two_threads(call, 300));
                std::fflush(stdout);
            }
        }
    }
    return 0;
}

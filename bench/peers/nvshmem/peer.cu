// NVSHMEM's put, get and ping-pong between two GPUs of one machine, as rows of JSON on stdout.
//
// One command starts both processes: the first makes the unique id and hands it to the second through a pipe. Bandwidth is that of
// PE 0 alone: a kernel repeats the operation, completes it (quiet), and events around the kernel give the time. The data is checked.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t kMost = size_t{64} << 20;
constexpr int kBlock = 1024;
constexpr int kGridBlocks = 128;
constexpr int kRounds = 2000;

void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "nvshmem peer: %s: %s\n", what, cudaGetErrorString(error));
        _exit(3);
    }
}

enum class Scope { thread, warp, block, grid };

__device__ void move(bool is_put, Scope scope, char* to, const char* from, size_t bytes, int peer) {
    switch (scope) {
        case Scope::thread:
            is_put ? nvshmem_putmem_nbi(to, from, bytes, peer) : nvshmem_getmem_nbi(to, from, bytes, peer);
            break;
        case Scope::warp:
            is_put ? nvshmemx_putmem_nbi_warp(to, from, bytes, peer) : nvshmemx_getmem_nbi_warp(to, from, bytes, peer);
            break;
        default:
            is_put ? nvshmemx_putmem_nbi_block(to, from, bytes, peer)
                   : nvshmemx_getmem_nbi_block(to, from, bytes, peer);
    }
}

// Each block moves its part, `times` times, each time of another place: the caches keep what a kernel has read or written.
__global__ void __launch_bounds__(kBlock)
    repeat(bool is_put, Scope scope, char* to, const char* from, size_t bytes, int peer, int times) {
    const size_t part = bytes / gridDim.x, at = blockIdx.x * part;
    for (int i = 0; i < times; ++i) {
        const size_t turn = i * bytes % kMost;
        move(is_put, scope, to + turn + at, from + turn + at, part, peer);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        nvshmem_quiet();
    }
}

enum class Ball { signal, put_signal, atomic };

__global__ void ping_pong(Ball ball, uint64_t* flag, uint64_t* data, int me, int rounds) {
    const int peer = 1 - me;
    for (int i = 1; i <= rounds; ++i) {
        const uint64_t mine = static_cast<uint64_t>(i);
        if (me == 1) {
            nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, mine);
        }
        switch (ball) {
            case Ball::signal: nvshmemx_signal_op(flag, mine, NVSHMEM_SIGNAL_SET, peer); break;
            case Ball::put_signal:
                nvshmem_uint64_put_signal_nbi(data, data + 1, 1, flag, mine, NVSHMEM_SIGNAL_SET, peer);
                break;
            case Ball::atomic: nvshmem_uint64_atomic_inc(flag, peer); break;
        }
        if (me == 0) {
            nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, mine);
        }
    }
}

struct Timer {
    cudaEvent_t start, end;
    Timer() {
        check(cudaEventCreate(&start), "event");
        check(cudaEventCreate(&end), "event");
    }
    template <class F>
    double microseconds(cudaStream_t stream, F f) {
        check(cudaEventRecord(start, stream), "record");
        f();
        check(cudaEventRecord(end, stream), "record");
        check(cudaEventSynchronize(end), "synchronize");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, start, end), "elapsed");
        return ms * 1e3;
    }
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void row(const char* what, const char* scope, size_t bytes, double us, long wrong) {
    std::printf(
        "{\"peer\":\"NVSHMEM 3.4.5\",\"what\":\"%s\",\"scope\":\"%s\",\"bytes\":%zu,\"us\":%.4f,\"algbw\":%.3f,\"wrong\":%ld}\n",
        what, scope, bytes, us, bytes / us / 1e3, wrong);
    std::fflush(stdout);
}

long count_wrong(const char* device, size_t bytes, uint32_t seed) {
    std::vector<uint32_t> got(bytes / 4);
    check(cudaMemcpy(got.data(), device, bytes, cudaMemcpyDeviceToHost), "copy");
    long wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) {
        wrong += got[i] != static_cast<uint32_t>(i) * 2654435761u + seed;
    }
    return wrong;
}

void fill(char* device, size_t bytes, uint32_t seed) {
    std::vector<uint32_t> values(bytes / 4);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<uint32_t>(i) * 2654435761u + seed;
    }
    check(cudaMemcpy(device, values.data(), bytes, cudaMemcpyHostToDevice), "copy");
}

void bandwidth(int me, bool is_put, Scope scope, const char* name, size_t bytes, char* to, char* from,
               cudaStream_t stream) {
    const int blocks = scope == Scope::grid ? kGridBlocks : 1;
    const int threads = scope == Scope::thread ? 1 : scope == Scope::warp ? 32 : kBlock;
    const double expected = scope == Scope::thread ? 0.5e3 : scope == Scope::grid ? 300e3 : 20e3;
    const int times = static_cast<int>(std::clamp(20e3 * expected / bytes, 4.0, 200.0));
    fill(from, std::min(kMost, times * bytes), me + 1);
    check(cudaMemset(to, 0xff, kMost), "memset");
    check(cudaDeviceSynchronize(), "synchronize");
    nvshmem_barrier_all();
    std::vector<double> us;
    if (me == 0) {
        Timer timer;
        for (int run = 0; run < 6; ++run) {
            const double t = timer.microseconds(stream, [&] {
                repeat<<<blocks, threads, 0, stream>>>(is_put, scope, to, from, bytes, 1, times);
                check(cudaGetLastError(), "launch");
            });
            if (run > 0) {
                us.push_back(t / times);
            }
        }
    }
    nvshmem_barrier_all();
    // A put of PE 0 arrives at PE 1; a get of PE 0 brings PE 1's data. PE 1 tells its count through its own row's absence of errors.
    const size_t moved = std::min(kMost, times * bytes);
    long wrong = is_put ? (me == 1 ? count_wrong(to, moved, 1) : 0) : (me == 0 ? count_wrong(to, moved, 2) : 0);
    if (me == 1 && wrong != 0) {
        std::fprintf(stderr, "nvshmem peer: %ld wrong words\n", wrong);
        _exit(4);
    }
    if (me == 0) {
        row(is_put ? "put" : "get", name, bytes, median(us), wrong);
    }
}

void on_stream(int me, size_t bytes, char* to, char* from, cudaStream_t stream) {
    nvshmem_barrier_all();
    if (me == 0) {
        Timer timer;
        std::vector<double> us;
        const int times = 50;
        for (int run = 0; run < 6; ++run) {
            const double t = timer.microseconds(stream, [&] {
                for (int i = 0; i < times; ++i) {
                    nvshmemx_putmem_on_stream(to, from, bytes, 1, stream);
                }
            });
            if (run > 0) {
                us.push_back(t / times);
            }
        }
        row("put", "stream", bytes, median(us), 0);
    }
    nvshmem_barrier_all();
}

void latency(int me, Ball ball, const char* name, uint64_t* flag, uint64_t* data, cudaStream_t stream) {
    std::vector<double> us;
    Timer timer;
    for (int run = 0; run < 6; ++run) {
        check(cudaMemset(flag, 0, sizeof *flag), "memset");
        check(cudaDeviceSynchronize(), "synchronize");
        nvshmem_barrier_all();
        const double t = timer.microseconds(stream, [&] {
            ping_pong<<<1, 1, 0, stream>>>(ball, flag, data, me, kRounds);
            check(cudaGetLastError(), "launch");
        });
        if (run > 0) {
            us.push_back(t / kRounds);
        }
    }
    if (me == 0) {
        row("pingpong", name, 8, median(us), 0);
    }
}

int run(int me, const nvshmemx_uniqueid_t& id) {
    check(cudaSetDevice(me), "set device");
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_uniqueid_t own = id;
    nvshmemx_set_attr_uniqueid_args(me, 2, &own, &attributes);
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) {
        std::fprintf(stderr, "nvshmem peer: nvshmemx_init_attr failed\n");
        return 3;
    }
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    char* from = static_cast<char*>(nvshmem_malloc(kMost));
    char* to = static_cast<char*>(nvshmem_malloc(kMost));
    uint64_t* words = static_cast<uint64_t*>(nvshmem_calloc(8, sizeof(uint64_t)));
    if (from == nullptr || to == nullptr || words == nullptr) {
        std::fprintf(stderr, "nvshmem peer: no symmetric memory\n");
        return 3;
    }
    for (bool is_put : {true, false}) {
        for (size_t bytes : {4096u, 65536u}) {
            bandwidth(me, is_put, Scope::thread, "thread", bytes, to, from, stream);
        }
        for (size_t bytes : {4096u, 16384u, 65536u, 1u << 20, 16u << 20}) {
            bandwidth(me, is_put, Scope::block, "block", bytes, to, from, stream);
        }
        for (size_t bytes : {65536u, 1u << 20, 16u << 20, 64u << 20}) {
            bandwidth(me, is_put, Scope::grid, "grid", bytes, to, from, stream);
        }
    }
    for (size_t bytes : {4096u, 65536u, 1u << 20, 16u << 20, 64u << 20}) {
        on_stream(me, bytes, to, from, stream);
    }
    latency(me, Ball::signal, "signal", words, words + 2, stream);
    latency(me, Ball::put_signal, "put-signal", words, words + 2, stream);
    latency(me, Ball::atomic, "atomic", words, words + 2, stream);
    nvshmem_free(words);
    nvshmem_free(to);
    nvshmem_free(from);
    nvshmem_finalize();
    return 0;
}

}  // namespace

int main() {
    // No multicast: a program that is killed while it uses it can leave the GPUs of a machine unusable.
    setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
    setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
    setenv("NVSHMEM_SYMMETRIC_SIZE", "512M", 0);
    setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo", 0);
    int ends[2];
    if (pipe(ends) != 0) {
        std::perror("pipe");
        return 3;
    }
    const pid_t child = fork();
    if (child < 0) {
        std::perror("fork");
        return 3;
    }
    alarm(90);
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (child == 0) {
        if (read(ends[0], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) {
            return 3;
        }
        return run(1, id);
    }
    if (nvshmemx_get_uniqueid(&id) != 0 || write(ends[1], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) {
        std::fprintf(stderr, "nvshmem peer: no unique id\n");
        return 3;
    }
    const int own = run(0, id);
    int status = 0;
    waitpid(child, &status, 0);
    return own != 0 ? own : WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

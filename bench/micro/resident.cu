// The kernel that stays (docs/design/fabric.md) and a host that drives it, with nothing else of the fabric: what a broadcast and an all-reduce of
// two GPUs take from the command to the last block's answer, for numbers of blocks and shares of the way through host memory.
//
//   nvcc -std=c++17 -O2 -arch=sm_90 -cudart static -I crates/fabric/native/include -I crates/cuda/native/include -o resident bench/micro/resident.cu
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../../crates/fabric/native/src/exec/resident.cu"

namespace {

constexpr size_t MOST = size_t(16) << 20;
constexpr uint64_t LINGER_NS = 2000000, TIMEOUT_NS = 1000000000;

#define CHECK(call)                                                                                     \
    do {                                                                                                \
        const int status = int(call);                                                                   \
        if (status != 0) {                                                                              \
            std::fprintf(stderr, "resident: %s: %s\n", #call, cudaGetErrorString(cudaError_t(status))); \
            std::exit(3);                                                                               \
        }                                                                                               \
    } while (0)

double now() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class T> volatile T& shared(T& word) { return word; }

struct Gpu {
    tandem_exec_mailbox* mailbox;
    uint8_t* scratch;
    cudaStream_t stream;
    uint32_t last;
    uint64_t launched;
    char *in, *out;
    bool is_running() { return shared(mailbox->ended) < launched; }
} gpus[2];
char* ring;
uint32_t turn;
/// Microseconds that the slowest block took for the last command, by the devices' clocks: over the links, and through host memory.
double took[2];

struct Order {
    int gpu;
    uint64_t words[16];
    int blocks, way_blocks;
};

uint64_t address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

uint64_t what(int sources, int targets, int kind, int blocks, int way_blocks = 0, int way = 0) {
    return uint64_t(sources) | uint64_t(targets) << 8 | uint64_t(kind) << 16 | uint64_t(blocks) << 32 |
           uint64_t(way_blocks) << 48 | uint64_t(way) << 56;
}

struct Case {
    bool sums;
    size_t bytes;
    int blocks, way_blocks;
    double share;
    std::vector<Order> orders() const {
        if (sums) {
            const auto half = [&](int i) {
                Gpu &me = gpus[i], &peer = gpus[1 - i];
                const size_t at = i * bytes / 2;
                return Order{i,
                             {bytes / 2, what(2, 2, TANDEM_EXEC_F32, blocks), address(me.in + at),
                              address(peer.in + at), address(me.out + at), address(peer.out + at)},
                             blocks,
                             0};
            };
            return {half(0), half(1)};
        }
        const uint64_t in = address(gpus[0].in), own = address(gpus[0].out), to = address(gpus[1].out);
        if (way_blocks == 0) return {{0, {bytes, what(1, 2, TANDEM_EXEC_BYTES, blocks), in, own, to}, blocks, 0}};
        turn++;
        const uint64_t first = uint64_t(bytes * (1 - share)) / 4096 * 4096, rest = bytes - first | uint64_t(turn) << 32;
        const uint64_t flags = address(gpus[1].scratch + 8 * TANDEM_EXEC_SCRATCH_WORDS);
        const uint64_t send = what(1, 2, TANDEM_EXEC_BYTES, blocks, way_blocks, TANDEM_EXEC_STAGED_SEND_AND_KEEP);
        const uint64_t receive = what(0, 0, TANDEM_EXEC_BYTES, 0, way_blocks, TANDEM_EXEC_STAGED_RECEIVE);
        return {{0, {first, send, rest, address(ring), flags, in, own, to}, blocks, way_blocks},
                {1, {0, receive, rest, address(ring), flags, to + first}, 0, way_blocks}};
    }
};

void start(int i) {
    Gpu& gpu = gpus[i];
    gpu.launched++;
    CHECK(cudaSetDevice(i));
    CHECK(
        tandem_exec_resident(gpu.mailbox, gpu.scratch, gpu.last - 1, gpu.launched, LINGER_NS, TIMEOUT_NS, gpu.stream));
}

void run(const std::vector<Order>& orders) {
    for (const Order& order : orders) {
        Gpu& gpu = gpus[order.gpu];
        gpu.last++;
        for (int i = 0; i < TANDEM_EXEC_POLLERS * TANDEM_EXEC_COMMAND_WORDS; i++) {
            const int word = i % TANDEM_EXEC_COMMAND_WORDS;
            const uint64_t half = order.words[word / 2] >> 32 * (word % 2) & 0xffffffff;
            shared(gpu.mailbox->command[i]) = half | uint64_t(gpu.last) << 32;
        }
    }
    for (const Order& order : orders) {
        if (!gpus[order.gpu].is_running()) start(order.gpu);
    }
    const double begun = now();
    took[0] = took[1] = 0;
    for (const Order& order : orders) {
        Gpu& gpu = gpus[order.gpu];
        for (int block = 0, looks = 0; block < order.blocks + order.way_blocks;) {
            const uint64_t done = shared(gpu.mailbox->done[block].number);
            if (uint32_t(done) == gpu.last) {
                double& way = took[block >= order.blocks];
                way = std::max(way, double(done >> 32) / 1000);
                block++;
            } else if (++looks % 1024 == 0) {
                // The kernel may have ended just before the command came.
                if (!gpu.is_running() && uint32_t(shared(gpu.mailbox->done[0].number)) != gpu.last) start(order.gpu);
                if (now() - begun > 2e6) {
                    std::fprintf(stderr, "resident: GPU %d does not answer\n", order.gpu);
                    std::exit(1);
                }
            }
        }
    }
}

/// The number of wrong elements.
size_t wrong(const Case& c) {
    std::vector<float> a(c.bytes / 4), b(c.bytes / 4), got(c.bytes / 4);
    for (size_t i = 0; i < a.size(); i++) a[i] = i % 1000, b[i] = i % 777;
    CHECK(cudaMemcpy(gpus[0].in, a.data(), c.bytes, cudaMemcpyDefault));
    CHECK(cudaMemcpy(gpus[1].in, b.data(), c.bytes, cudaMemcpyDefault));
    for (Gpu& gpu : gpus) CHECK(cudaMemset(gpu.out, 0xff, c.bytes));
    for (int i : {0, 1}) {
        CHECK(cudaSetDevice(i));
        CHECK(cudaDeviceSynchronize());
    }
    run(c.orders());
    size_t wrong = 0;
    for (Gpu& gpu : gpus) {
        CHECK(cudaMemcpy(got.data(), gpu.out, c.bytes, cudaMemcpyDefault));
        for (size_t i = 0; i < a.size(); i++) wrong += got[i] != (c.sums ? a[i] + b[i] : a[i]);
    }
    return wrong;
}

}  // namespace

int main() {
    for (int i : {0, 1}) {
        Gpu& gpu = gpus[i];
        CHECK(cudaSetDevice(i));
        CHECK(cudaDeviceEnablePeerAccess(1 - i, 0));
        CHECK(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking));
        for (char** memory : {&gpu.in, &gpu.out}) CHECK(cudaMalloc(memory, MOST));
        CHECK(cudaMalloc(&gpu.scratch, 4096));
        CHECK(cudaMemset(gpu.scratch, 0, 4096));
        CHECK(cudaHostAlloc(&gpu.mailbox, sizeof(tandem_exec_mailbox), cudaHostAllocPortable));
        std::memset(gpu.mailbox, 0, sizeof(tandem_exec_mailbox));
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaHostAlloc(&ring, MOST, cudaHostAllocPortable));
    std::vector<Case> cases;
    for (bool sums : {false, true}) {
        cases.push_back({sums, 4096, 1, 0, 0});
        for (int blocks : {16, 24, 32, 48, 64}) cases.push_back({sums, 1 << 20, blocks, 0, 0});
    }
    for (int blocks : {40, 48}) {
        for (double share : {0.06, 0.07, 0.08, 0.09, 0.1}) cases.push_back({false, MOST, blocks, 32, share});
    }
    std::printf(
        "| operation | KiB | blocks | through host memory | us, median | tenth | nine tenths | of these on GPUs: links | through host memory | wrong |\n|---|---|---|---|---|---|---|---|---|---|\n");
    size_t all_wrong = 0;
    for (const Case& c : cases) {
        const size_t bad = wrong(c);
        all_wrong += bad;
        std::vector<double> us, links, through;
        for (int i = 0; i < 1050; i++) {
            // At random times, so that no place in a look is hit more often than others.
            for (const double until = now() + std::rand() % 2000 / 1000.0; now() < until;) {}
            const double begun = now();
            run(c.orders());
            if (i < 50) continue;
            us.push_back(now() - begun);
            links.push_back(took[0]);
            through.push_back(took[1]);
        }
        for (auto* all : {&us, &links, &through}) std::sort(all->begin(), all->end());
        std::printf("| %s | %zu | %d + %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %zu |\n",
                    c.sums ? "all-reduce" : "broadcast", c.bytes >> 10, c.blocks, c.way_blocks, c.share, us[500],
                    us[100], us[900], links[500], through[500], bad);
        std::fflush(stdout);
    }
    return all_wrong != 0;
}

// What page-locking 2 GiB of host memory takes: cudaHostRegister on pages of 4 KiB, transparent huge pages and MAP_HUGETLB, by one thread and by eight
// with an eighth each; cudaMallocHost; and copies from each to the GPU. What arrives there is summed up and checked. One GPU, 3 GB of host memory, 8 s.
//
//   nvcc -std=c++17 -O3 -gencode arch=compute_90,code=sm_90 -cudart static -I crates/ops-cuda/native/include -o .build/pinning bench/micro/pinning.cu
//   .build/pinning
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>

#include "common.cuh"

namespace {

constexpr size_t BYTES = size_t(2) << 30, HUGE_PAGE = size_t(2) << 20, WORDS = BYTES / 8;
constexpr int RUNS = 3, THREADS = 8;
/// Word i is i times this and the number of the case.
constexpr uint64_t FACTOR = 0x9e3779b97f4a7c15ull;
size_t all_wrong = 0;
uint64_t cases = 0;

/// Linux 5.14 on.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

__global__ void sum(const uint64_t* words, uint64_t n, unsigned long long* total) {
    uint64_t mine = 0;
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += uint64_t(gridDim.x) * blockDim.x)
        mine += mix(words[i]);
    atomicAdd(total, mine);
}

double now() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Calls f for each of so many equal parts, in a thread each. Milliseconds until the last has returned.
template <class F> double in_parts(char* memory, int parts, F f) {
    const double begun = now();
    std::vector<std::thread> threads;
    for (int i = 1; i < parts; i++) threads.emplace_back(f, memory + BYTES / parts * i, BYTES / parts);
    f(memory, BYTES / parts);
    for (std::thread& thread : threads) thread.join();
    return now() - begun;
}

/// Writes all words, by eight threads. The sum of what they become under `mix` is what must arrive.
uint64_t write(char* memory, double* ms) {
    cases++;
    std::vector<uint64_t> sums(THREADS);
    *ms = in_parts(memory, THREADS, [&](char* part, size_t bytes) {
        const uint64_t first = uint64_t(part - memory) / 8;
        auto* words = reinterpret_cast<uint64_t*>(part);
        for (uint64_t i = 0; i < bytes / 8; i++) words[i] = (first + i) * FACTOR + cases;
    });
    in_parts(memory, THREADS, [&](char* part, size_t bytes) {
        const auto* words = reinterpret_cast<const uint64_t*>(part);
        uint64_t total = 0;
        for (uint64_t i = 0; i < bytes / 8; i++) total += mix(words[i]);
        sums[uint64_t(part - memory) / bytes] = total;
    });
    uint64_t total = 0;
    for (uint64_t part : sums) total += part;
    return total;
}

/// Median milliseconds of a copy to the GPU, and whether all of it arrived. What was registered in parts is copied in these, since no copy may reach
/// from one into the next.
double copy(const char* memory, int parts, uint64_t expected, uint64_t* device, unsigned long long* device_total) {
    std::vector<double> ms;
    CHECK(cudaMemset(device, 0, BYTES));
    for (int run = 0; run < RUNS; run++) {
        CHECK(cudaDeviceSynchronize());
        const double begun = now();
        for (size_t at = 0; at < BYTES; at += BYTES / parts)
            CHECK(cudaMemcpyAsync(device + at / 8, memory + at, BYTES / parts, cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
        ms.push_back(now() - begun);
    }
    unsigned long long total = 0;
    CHECK(cudaMemset(device_total, 0, sizeof total));
    sum<<<1024, 256>>>(device, WORDS, device_total);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&total, device_total, sizeof total, cudaMemcpyDeviceToHost));
    all_wrong += total != expected;
    return median(ms);
}

/// MiB of huge pages that the system says it backs this memory with; -1 if it does not say.
long huge_mib(const char* memory) {
    std::ifstream maps("/proc/self/smaps");
    std::string line;
    unsigned long from, to;
    long kib = 0;
    bool inside = false, said = false;
    while (std::getline(maps, line)) {
        if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2)
            inside = from < (unsigned long)memory + BYTES && to > (unsigned long)memory;
        long value;
        for (const char* name : {"AnonHugePages: %ld", "Private_Hugetlb: %ld"}) {
            if (inside && std::sscanf(line.c_str(), name, &value) == 1) kib += value, said = true;
        }
    }
    return said ? kib / 1024 : -1;
}

double rate(double ms) { return double(BYTES) / ms / 1e6; }

/// Rows of a mapping: registered by one thread and by eight.
void registered(const char* name, char* memory, uint64_t* device, unsigned long long* device_total) {
    double written;
    const uint64_t expected = write(memory, &written);
    const long huge = huge_mib(memory);
    for (int parts : {1, THREADS}) {
        std::vector<double> pin, unpin;
        double copied = 0;
        for (int run = 0; run < RUNS; run++) {
            pin.push_back(in_parts(memory, parts, [](char* part, size_t bytes) {
                CHECK(cudaHostRegister(part, bytes, cudaHostRegisterDefault));
            }));
            if (run == 0) copied = copy(memory, parts, expected, device, device_total);
            unpin.push_back(in_parts(memory, parts, [](char* part, size_t) { CHECK(cudaHostUnregister(part)); }));
        }
        const double first = pin[0];
        std::printf("| %s, %d thread%s | %ld | %.0f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", name, parts,
                    parts > 1 ? "s" : "", huge, written, first, median(pin), rate(median(pin)), median(unpin),
                    rate(median(unpin)), rate(copied));
        std::fflush(stdout);
    }
}

/// Memory of pages that the advice asks for. It begins at a huge page.
void advised(const char* name, int advice, uint64_t* device, unsigned long long* device_total) {
    void* mapped = mmap(nullptr, BYTES + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        std::printf("| %s | refused: mmap: %s | | | | | | | |\n", name, std::strerror(errno));
        return;
    }
    char* memory =
        static_cast<char*>(mapped) + (HUGE_PAGE - reinterpret_cast<uintptr_t>(mapped) % HUGE_PAGE) % HUGE_PAGE;
    // A system without huge pages refuses to do without them, too.
    if (madvise(memory, BYTES, advice) != 0 && advice == MADV_HUGEPAGE) {
        std::printf("| %s | refused: madvise: %s | | | | | | | |\n", name, std::strerror(errno));
    } else {
        registered(name, memory, device, device_total);
    }
    munmap(mapped, BYTES + HUGE_PAGE);
}

/// Huge pages that were set aside when the machine started. Where there are fewer than it looks, a write would end the program, so they are asked for first.
void hugetlb(uint64_t* device, unsigned long long* device_total) {
    const char* name = "MAP_HUGETLB";
    void* mapped = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (mapped == MAP_FAILED) {
        std::printf("| %s | refused: mmap: %s | | | | | | | |\n", name, std::strerror(errno));
        return;
    }
    if (madvise(mapped, BYTES, MADV_POPULATE_WRITE) != 0) {
        std::printf("| %s | refused: MADV_POPULATE_WRITE: %s | | | | | | | |\n", name, std::strerror(errno));
    } else {
        registered(name, static_cast<char*>(mapped), device, device_total);
    }
    munmap(mapped, BYTES);
}

/// Pinned memory of the runtime's own.
void allocated(uint64_t* device, unsigned long long* device_total) {
    std::vector<double> pin, unpin;
    double copied = 0, written = 0;
    for (int run = 0; run < RUNS; run++) {
        char* memory;
        const double begun = now();
        CHECK(cudaMallocHost(&memory, BYTES));
        pin.push_back(now() - begun);
        if (run == 0) {
            const uint64_t expected = write(memory, &written);
            copied = copy(memory, 1, expected, device, device_total);
        }
        const double ended = now();
        CHECK(cudaFreeHost(memory));
        unpin.push_back(now() - ended);
    }
    std::printf("| cudaMallocHost | | %.0f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", written, pin[0], median(pin),
                rate(median(pin)), median(unpin), rate(median(unpin)), rate(copied));
    std::fflush(stdout);
}

}  // namespace

int main() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::string huge_pages = "not said";
    std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), huge_pages);
    std::printf("device %s, %u host threads, transparent huge pages: %s\n\n", properties.name,
                std::thread::hardware_concurrency(), huge_pages.c_str());
    DeviceArray<uint64_t> device(WORDS);
    DeviceArray<unsigned long long> total(1);
    std::printf(
        "| 2 GiB | MiB in huge pages | written by 8 threads, ms | first register or allocation, ms | median of 3 | GB/s | unregister or free, ms | GB/s |"
        " copy to the GPU, GB/s |\n|---|---|---|---|---|---|---|---|---|\n");
    advised("4 KiB pages", MADV_NOHUGEPAGE, device.data, total.data);
    advised("transparent huge pages", MADV_HUGEPAGE, device.data, total.data);
    hugetlb(device.data, total.data);
    allocated(device.data, total.data);
    std::printf("\n%zu copies wrong\n", all_wrong);
    return all_wrong != 0;
}

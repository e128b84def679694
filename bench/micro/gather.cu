// How many items a second one GPU reads at random places of tables of 1 to 125 GB (docs/design/msm.md; `table_reach` in ops-cuda/src/tuning.rs):
// a thread an item, as sums read points, with as many warps as fit and with 16 a multiprocessor whose next item is on its way; and 16 bytes a lane, so
// that lanes beside each other read one item. Sums of one thread in 64 are checked on the host. One GPU, 6 s; tables that it has no room for are left out.
//
//   nvcc -std=c++17 -O3 -gencode arch=compute_90,code=sm_90 -cudart static -I crates/ops-cuda/native/include -o .build/gather bench/micro/gather.cu
//   .build/gather
#include "common.cuh"

namespace {

constexpr int THREADS = 256, AHEAD_THREADS = 512;
/// Items read by a launch: 2 GB of 64 bytes each.
constexpr uint64_t ITEMS = 1 << 25;
constexpr uint64_t GB = 1000000000;
constexpr uint64_t SIZES[] = {1 * GB, 8 * GB, 32 * GB, 64 * GB, 80 * GB, 100 * GB, 125 * GB};

/// The 8 bytes at place p of a table are p times this.
constexpr uint64_t FACTOR = 0x9e3779b97f4a7c15ull;

__global__ void fill(ulonglong2* table, uint64_t n) {
    const uint64_t stride = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
        table[i] = {2 * i * FACTOR, (2 * i + 1) * FACTOR};
}

/// The items that one reader takes, one after the other.
struct Places {
    uint64_t state;
    uint32_t items;
    TANDEM_HD Places(uint64_t reader, uint32_t items) : state(mix(reader)), items(items) {}
    TANDEM_HD uint64_t next() {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (state >> 32) * items >> 32;
    }
};

/// LANES lanes read an item of BYTES; one is a thread an item.
template <int BYTES, int LANES> struct Way {
    static constexpr int EACH = BYTES / 16 / LANES;
    struct alignas(16) Part {
        ulonglong2 words[EACH];
        __device__ __forceinline__ uint64_t sum() const {
            uint64_t sum = 0;
#pragma unroll
            for (int i = 0; i < EACH; i++) sum += words[i].x + words[i].y;
            return sum;
        }
    };
    static uint64_t expected(uint64_t thread, uint32_t items, uint32_t times) {
        Places places(thread / LANES, items);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < times; i++) {
            const uint64_t first = (places.next() * LANES + thread % LANES) * EACH * 2;
            for (int k = 0; k < 2 * EACH; k++) sum += (first + k) * FACTOR;
        }
        return sum;
    }
};

extern __shared__ ulonglong2 slots[];

/// AHEAD loads an item while the one before is added up.
template <int BYTES, int LANES, bool AHEAD>
__global__ void __launch_bounds__(AHEAD ? AHEAD_THREADS : THREADS)
    gather(const uint4* table, uint32_t items, uint32_t times, uint64_t* sums) {
    using Part = typename Way<BYTES, LANES>::Part;
    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
    const Part* parts = reinterpret_cast<const Part*>(table);
    Places places(thread / LANES, items);
    uint64_t sum = 0;
    if constexpr (AHEAD) {
        // Into shared memory, a slot of its own for each vector of a thread: ptxas adds up registers before it loads others.
        constexpr int EACH = Way<BYTES, LANES>::EACH;
        const auto fetch = [&](uint32_t i) {
            const Part* from = parts + places.next();
            const uint32_t to =
                uint32_t(__cvta_generic_to_shared(slots + (i & 1) * EACH * AHEAD_THREADS + threadIdx.x));
#pragma unroll
            for (int k = 0; k < EACH; k++)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + 16 * k * AHEAD_THREADS),
                             "l"(from->words + k)
                             : "memory");
            asm volatile("cp.async.commit_group;" ::: "memory");
        };
        const auto add = [&](uint32_t i) {
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                const ulonglong2 words = slots[((i & 1) * EACH + k) * AHEAD_THREADS + threadIdx.x];
                sum += words.x + words.y;
            }
        };
        fetch(0);
#pragma unroll 1
        for (uint32_t i = 1; i < times; i++) {
            fetch(i);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            add(i - 1);
        }
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        add(times - 1);
    } else {
#pragma unroll 1
        for (uint32_t i = 0; i < times; i++)
            sum += load16_readonly(parts + places.next() * LANES + thread % LANES).sum();
    }
    sums[thread] = sum;
}

int multiprocessors;
size_t all_wrong = 0;

/// One cell of a table.
template <int BYTES, int LANES, bool AHEAD> void measure(const uint4* table, uint64_t size) {
    const auto kernel = gather<BYTES, LANES, AHEAD>;
    int blocks = 1;
    const int threads = AHEAD ? AHEAD_THREADS : THREADS, shared = AHEAD ? 2 * BYTES * AHEAD_THREADS : 0;
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    if (!AHEAD) CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0));
    // Whole items: no reader is without some of its lanes.
    const int grid = blocks * multiprocessors / LANES * LANES;
    const uint32_t readers = uint32_t(grid) * threads / LANES, items = uint32_t(size / BYTES),
                   times = uint32_t(ITEMS / readers);
    DeviceArray<uint64_t> sums(size_t(readers) * LANES);
    const float ms = median_ms([&] { kernel<<<grid, threads, shared>>>(table, items, times, sums.data); });
    std::vector<uint64_t> got(size_t(readers) * LANES);
    CHECK(cudaMemcpy(got.data(), sums.data, got.size() * sizeof got[0], cudaMemcpyDeviceToHost));
    for (size_t i = random_word() % 64; i < got.size(); i += 64)
        all_wrong += got[i] != (Way<BYTES, LANES>::expected(i, items, times));
    const double rate = double(readers) * times / ms / 1e6;
    printf(" %.2f (%.2f) |", rate, rate * BYTES / 1e3);
}

template <bool BESIDE, bool AHEAD> void table_of(const char* name, const uint4* table, uint64_t room) {
    printf("\n| %s, GB | 64 B, 1e9/s (TB/s) | 96 B | 128 B | 192 B |\n|---|---|---|---|---|\n", name);
    for (const uint64_t size : SIZES) {
        if (size > room) {
            printf("| %llu | no room | | | |\n", (unsigned long long)(size / GB));
            continue;
        }
        printf("| %llu |", (unsigned long long)(size / GB));
        measure<64, BESIDE ? 4 : 1, AHEAD>(table, size);
        measure<96, BESIDE ? 6 : 1, AHEAD>(table, size);
        measure<128, BESIDE ? 8 : 1, AHEAD>(table, size);
        measure<192, BESIDE ? 12 : 1, AHEAD>(table, size);
        printf("\n");
        fflush(stdout);
    }
}

}  // namespace

int main() {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    multiprocessors = device.multiProcessorCount;
    size_t free, total;
    CHECK(cudaMemGetInfo(&free, &total));
    printf("device %s, %d SMs, %.1f GB free\n", device.name, multiprocessors, double(free) / GB);
    uint64_t room = 0;
    for (const uint64_t size : SIZES)
        if (size + GB / 2 < free) room = size;
    if (room == 0) {
        fprintf(stderr, "gather: the smallest table needs %.1f GB of GPU memory, %.1f are free\n",
                SIZES[0] * 1e-9 + 0.5, double(free) / GB);
        return 3;
    }
    DeviceArray<ulonglong2> table(room / 16);
    fill<<<multiprocessors * 8, 256>>>(table.data, room / 16);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    const uint4* memory = reinterpret_cast<const uint4*>(table.data);
    table_of<false, false>("a thread an item, as many warps as fit", memory, room);
    table_of<false, true>("a thread an item, 16 warps a multiprocessor, one item ahead", memory, room);
    table_of<true, false>("16 bytes a lane, as many warps as fit", memory, room);
    printf("\n%zu sums wrong\n", all_wrong);
    return all_wrong != 0;
}

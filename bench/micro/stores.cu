// Stores to another GPU in pieces of 32, 64, 128 and 512 contiguous bytes at scattered places, by four warps of each multiprocessor, alone and while the
// other twelve warps do nothing but IMAD.WIDE; and what either loses by the other. What the peer received is checked on the host, and the
// products of one thread in 4001. Two GPUs that reach each other, else it says so; 4 s.
//
//   nvcc -std=c++17 -O3 -gencode arch=compute_90,code=sm_90 -cudart static -I crates/ops-cuda/native/include -o .build/stores bench/micro/stores.cu
//   .build/stores
#include "chains.cuh"

using namespace chains;

namespace {

constexpr int THREADS = 512, WARPS = THREADS / 32, STORING = 4, SHARED = 120 * 1024;
/// 20 ms.
constexpr int64_t CLOCKS = 40000000;
/// Vectors of 16 bytes in the peer's memory, 256 MiB; a warp stores 64 times 512 bytes between two looks at the clock.
constexpr int LOG_VECTORS = 24, STEPS = 64, LOG_CHUNKS = LOG_VECTORS - 5 - 6;
constexpr size_t VECTORS = size_t(1) << LOG_VECTORS;

/// A permutation of the numbers of so many bits, in which neighbours lie far apart.
__device__ __forceinline__ uint32_t scattered(uint32_t i, int bits) {
    const uint32_t mask = (1u << bits) - 1;
    i = i * 0x9e3779b1u & mask;
    i ^= i >> (bits / 2);
    return i * 0x85ebca6bu & mask;
}

/// What belongs at a place.
TANDEM_HD uint4 vector_at(uint32_t place) { return {place, ~place, place * 0x9e3779b1u, place ^ 0x85ebca6bu}; }

/// Lap after lap over the peer's memory for so many clocks, the warps' chunks in turns. The record's end is when the peer has all of it.
template <int LANES> __device__ __forceinline__ void store_pieces(uint4* there, Record* record) {
    const uint32_t warp = blockIdx.x * STORING + threadIdx.x / 32, warps = gridDim.x * STORING, lane = threadIdx.x % 32;
    constexpr int PIECES = 32 / LANES, BITS = LOG_VECTORS - (LANES == 2 ? 1 : LANES == 4 ? 2 : LANES == 8 ? 3 : 5);
    const uint64_t from = global_ns();
    const int64_t begun = clock64();
    uint32_t chunks = 0;
    do {
        const uint32_t chunk = (chunks * warps + warp) & ((1u << LOG_CHUNKS) - 1);
#pragma unroll 4
        for (uint32_t step = 0; step < STEPS; step++) {
            const uint32_t piece = (chunk * STEPS + step) * PIECES + lane / LANES;
            const uint32_t place = scattered(piece, BITS) * LANES + lane % LANES;
            there[place] = vector_at(place);
        }
        chunks++;
    } while (__any_sync(~0u, clock64() - begun < CLOCKS) && chunks < MOST_CHUNKS);
    __threadfence_system();
    __syncwarp();
    const int64_t ended = clock64();
    const uint64_t to = global_ns();
    if (lane == 0) *record = {begun, ended, from, to, chunks};
}

template <int LANES> __global__ void __launch_bounds__(THREADS, 1)
    run(uint4* there, bool stores, bool multiplies, Record* records, uint64_t* results) {
    Record* record = records + blockIdx.x * WARPS + threadIdx.x / 32;
    if (threadIdx.x / 32 < STORING) {
        if (stores) store_pieces<LANES>(there, record);
    } else if (multiplies) {
        work<ImadWide>(CLOCKS, record, results);
    }
}

int multiprocessors;
size_t all_wrong = 0;

struct Rates {
    /// Bytes a nanosecond, IMAD.WIDE of one thread a multiprocessor and clock.
    double stored, products;
    size_t wrong;
};

template <int LANES> Rates measure(uint4* there, bool stores, bool multiplies) {
    const size_t warps = size_t(multiprocessors) * WARPS;
    CHECK(cudaSetDevice(1));
    CHECK(cudaMemset(there, 0, VECTORS * sizeof(uint4)));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(0));
    DeviceArray<Record> device(warps);
    DeviceArray<uint64_t> device_results(2 * warps * 32);
    CHECK(cudaMemset(device.data, 0, warps * sizeof(Record)));
    CHECK(cudaFuncSetAttribute(run<LANES>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    // The second launch is the one that counts.
    for (int i = 0; i < 2; i++)
        run<LANES><<<multiprocessors, THREADS, SHARED>>>(there, stores, multiplies, device.data, device_results.data);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::vector<Record> records(warps);
    std::vector<uint64_t> results(2 * warps * 32);
    CHECK(cudaMemcpy(records.data(), device.data, warps * sizeof(Record), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(results.data(), device_results.data, results.size() * sizeof results[0], cudaMemcpyDeviceToHost));

    Rates rates{};
    uint64_t from = ~0ull, to = 0, chunks = 0;
    for (size_t i = 0; i < warps; i++) {
        const Record& r = records[i];
        if (i % WARPS >= STORING) {
            if (multiplies) rates.products += 32.0 * CHUNK * double(r.chunks) / r.clocks() / multiprocessors;
        } else if (stores) {
            from = std::min(from, r.from), to = std::max(to, r.to), chunks += r.chunks;
        }
    }
    if (stores) {
        rates.stored = double(chunks) * STEPS * 512 / double(to - from);
        std::vector<uint4> got(VECTORS);
        CHECK(cudaMemcpy(got.data(), there, VECTORS * sizeof(uint4), cudaMemcpyDefault));
        for (size_t i = 0; i < VECTORS; i++) {
            const uint4 want = vector_at(uint32_t(i));
            rates.wrong += memcmp(&got[i], &want, sizeof want) != 0;
        }
    }
    for (size_t thread = 0; multiplies && thread < warps * 32; thread += 4001) {
        if (thread / 32 % WARPS >= STORING)
            rates.wrong += results[2 * thread] != expected<ImadWide>(thread, records[thread / 32].chunks);
    }
    all_wrong += rates.wrong;
    return rates;
}

template <int LANES> void row(uint4* there) {
    const Rates stores = measure<LANES>(there, true, false), products = measure<LANES>(there, false, true),
                both = measure<LANES>(there, true, true);
    printf("| %d | %.1f | %.1f | %.1f | %.2f | %.2f | %.1f | %zu |\n", LANES * 16, stores.stored, both.stored,
           100 - 100 * both.stored / stores.stored, products.products, both.products,
           100 - 100 * both.products / products.products, stores.wrong + products.wrong + both.wrong);
    fflush(stdout);
}

}  // namespace

int main() {
    int count, reaches = 0;
    CHECK(cudaGetDeviceCount(&count));
    if (count < 2) {
        printf("stores: needs two GPUs, here is %d\n", count);
        return 0;
    }
    CHECK(cudaDeviceCanAccessPeer(&reaches, 0, 1));
    if (!reaches) {
        printf("stores: needs two GPUs that reach each other, the first does not reach the second\n");
        return 0;
    }
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    multiprocessors = device.multiProcessorCount;
    CHECK(cudaSetDevice(1));
    DeviceArray<uint4> there(VECTORS);
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceEnablePeerAccess(1, 0));
    printf("device %s, %d SMs\n\n", device.name, multiprocessors);
    printf(
        "| contiguous bytes | stores alone, GB/s | beside IMAD.WIDE | lost, %% | IMAD.WIDE alone, a multiprocessor and clock | beside stores | lost, %% |"
        " wrong |\n|---|---|---|---|---|---|---|---|\n");
    row<2>(there.data);
    row<4>(there.data);
    row<8>(there.data);
    row<32>(there.data);
    return all_wrong != 0;
}

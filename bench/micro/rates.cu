// How many instructions of a kind a multiprocessor takes a clock, alone and beside another kind, in the same warps and in others; and the clock that the
// GPU keeps under such a load. What came out: docs/performance/method.md. Results of some threads are checked on the host. One GPU, 8 s.
//
//   nvcc -std=c++17 -O3 -gencode arch=compute_90,code=sm_90 -cudart static -I crates/ops-cuda/native/include -o .build/rates bench/micro/rates.cu
//   .build/rates
//
// `-cubin` instead of `-cudart static` and `nvdisasm -c` show that the loops are of the instructions named, one each a step.
#include "chains.cuh"

using namespace chains;

namespace {

/// Four warps a scheduler. Two such blocks do not fit a multiprocessor.
constexpr int THREADS = 512, WARPS = THREADS / 32, SHARED = 120 * 1024;

/// A and B in every warp, B_STEPS of B behind each of A; or, where that is 0, A in two warps of each scheduler and B in the two others.
template <class A, class B, int B_STEPS>
__global__ void __launch_bounds__(THREADS, 1) load(int64_t clocks, Record* records, uint64_t* results) {
    Record* record = records + blockIdx.x * WARPS + threadIdx.x / 32;
    if constexpr (B_STEPS > 0) {
        work<A, B, B_STEPS>(clocks, record, results);
    } else if (threadIdx.x / 128 % 2 == 0) {
        work<A>(clocks, record, results);
    } else {
        work<B>(clocks, record, results);
    }
}

int multiprocessors;
size_t all_wrong = 0;

struct Rates {
    /// Instructions of one thread a multiprocessor and clock, of A and of B.
    double a, b;
    double ghz;
};

Rates rates_of(const std::vector<Record>& records, int b_steps) {
    Rates r{};
    double clocks = 0, nanoseconds = 0;
    for (size_t i = 0; i < records.size(); i++) {
        const double rate = 32.0 * CHUNK * double(records[i].chunks) / records[i].clocks() / multiprocessors;
        const bool is_b = i % WARPS / 4 % 2 == 1;
        if (b_steps || !is_b) r.a += rate;
        if (b_steps || is_b) r.b += rate * std::max(b_steps, 1);
        clocks += records[i].clocks();
        nanoseconds += records[i].nanoseconds();
    }
    r.ghz = clocks / nanoseconds;
    return r;
}

/// One thread in each of four warps of a block, two of which have B where these differ.
template <class A, class B, int B_STEPS> size_t wrong(const Record* records, const uint64_t* results) {
    size_t wrong = 0;
    const size_t block = random_word() % multiprocessors;
    for (size_t warp : {0, 5, 10, 15}) {
        const size_t thread = block * THREADS + warp * 32 + random_word() % 32;
        const uint64_t chunks = records[block * WARPS + warp].chunks;
        const bool b_alone = B_STEPS == 0 && warp / 4 % 2 == 1;
        wrong += results[2 * thread] != (b_alone ? expected<B>(thread, chunks) : expected<A>(thread, chunks));
        if (B_STEPS) wrong += results[2 * thread + 1] != expected<B>(thread, B_STEPS * chunks);
    }
    all_wrong += wrong;
    return wrong;
}

/// `times` loads of so many clocks, one behind the other. The last one's results are checked.
template <class A, class B, int B_STEPS> std::vector<Record> run(int64_t clocks, int times, size_t* bad) {
    const auto kernel = load<A, B, B_STEPS>;
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    const size_t each = size_t(multiprocessors) * WARPS;
    DeviceArray<Record> device(each * times);
    DeviceArray<uint64_t> device_results(2 * each * 32);
    for (int i = 0; i < times; i++)
        kernel<<<multiprocessors, THREADS, SHARED>>>(clocks, device.data + each * i, device_results.data);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::vector<Record> records(each * times);
    std::vector<uint64_t> results(2 * each * 32);
    CHECK(cudaMemcpy(records.data(), device.data, records.size() * sizeof records[0], cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(results.data(), device_results.data, results.size() * sizeof results[0], cudaMemcpyDeviceToHost));
    *bad = wrong<A, B, B_STEPS>(&records[each * (times - 1)], results.data());
    return records;
}

/// The third of three loads of 20 million clocks, 10 ms.
template <class A, class B, int B_STEPS> Rates measure(size_t* bad) {
    std::vector<Record> records = run<A, B, B_STEPS>(20000000, 3, bad);
    records.erase(records.begin(), records.end() - multiprocessors * WARPS);
    return rates_of(records, B_STEPS);
}

template <class Op> double alone() {
    static double rate = 0;
    if (rate == 0) {
        size_t bad;
        const Rates r = measure<Op, Nothing, 1>(&bad);
        printf("| %s | %.2f | %.3f | %.3f | %zu |\n", Op::NAME, r.a, 128 / r.a, r.ghz, bad);
        rate = r.a;
    }
    return rate;
}

template <class A, class B, int B_STEPS> void beside() {
    size_t bad;
    const Rates r = measure<A, B, B_STEPS>(&bad);
    const char* warps[] = {"others", "same, one to one", "same, one to two"};
    printf("| %s | %s | %s | %.2f | %.2f | %.2f | %.3f | %.3f | %zu |\n", A::NAME, B::NAME, warps[B_STEPS], r.a, r.b,
           r.a + r.b, r.a / alone<A>() + r.b / alone<B>(), r.ghz, bad);
}

/// 2.1 s of load in pieces of about 100 ms, each with its own clock.
template <class A, class B, int B_STEPS> void sustain(const char* name) {
    size_t bad;
    constexpr int TIMES = 22;
    const std::vector<Record> records = run<A, B, B_STEPS>(190000000, TIMES, &bad);
    const size_t each = size_t(multiprocessors) * WARPS;
    std::vector<double> ghz;
    double mean = 0;
    Rates last{};
    for (int i = 0; i < TIMES; i++) {
        last = rates_of({records.begin() + each * i, records.begin() + each * (i + 1)}, B_STEPS);
        ghz.push_back(last.ghz);
        mean += last.ghz / TIMES;
    }
    uint64_t from = ~0ull, to = 0;
    for (const Record& r : records) from = std::min(from, r.from), to = std::max(to, r.to);
    printf("| %s | %.2f | %.4f | %.4f | %.4f | %.4f | %.2f | %zu |\n", name, double(to - from) / 1e9, ghz.front(),
           ghz.back(), *std::min_element(ghz.begin(), ghz.end()), mean, last.a, bad);
}

}  // namespace

int main() {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    multiprocessors = device.multiProcessorCount;
    int khz;
    CHECK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    printf("device %s, %d SMs, at most %.3f GHz\n\n", device.name, multiprocessors, khz / 1e6);

    printf(
        "| alone | a multiprocessor and clock | clocks of a scheduler each | GHz | wrong |\n|---|---|---|---|---|\n");
    alone<ImadWide>();
    alone<ImadLo>();
    alone<ImadHi>();
    alone<Iadd3>();
    alone<Iadd3Fixed>();
    alone<Lop3>();
    alone<Lop3Fixed>();
    alone<Shf>();
    alone<Dfma>();
    alone<DfmaFixed>();

    printf("\nThe last column but two is 1 where two kinds take turns, and 2 where they do not notice each other.\n\n");
    printf(
        "| A | B | warps | A, a multiprocessor and clock | B | both | of alone | GHz | wrong |\n|---|---|---|---|---|---|---|---|---|\n");
    beside<ImadWide, Iadd3, 2>();
    beside<ImadWide, Iadd3, 0>();
    beside<ImadWide, Iadd3Fixed, 2>();
    beside<ImadWide, Iadd3Fixed, 0>();
    beside<ImadWide, Lop3, 2>();
    beside<ImadWide, Lop3, 0>();
    beside<ImadWide, Lop3Fixed, 2>();
    beside<ImadWide, Lop3Fixed, 0>();
    beside<ImadWide, Dfma, 2>();
    beside<ImadWide, Dfma, 0>();
    beside<ImadWide, DfmaFixed, 2>();
    beside<ImadWide, DfmaFixed, 0>();
    beside<Dfma, Iadd3, 1>();
    beside<Dfma, Iadd3, 0>();
    beside<DfmaFixed, Iadd3Fixed, 1>();
    beside<DfmaFixed, Iadd3Fixed, 0>();

    printf(
        "\n| load | s | GHz, first tenth of a second | last | least | mean | A, a multiprocessor and clock | wrong |\n|---|---|---|---|---|---|---|---|\n");
    sustain<ImadWide, Nothing, 1>("IMAD.WIDE");
    sustain<ImadWide, DfmaFixed, 2>("one IMAD.WIDE and two DFMA in turns");
    return all_wrong != 0;
}

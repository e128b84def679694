// Fields and groups: throughput on one GPU against the bound.
//
// The bound is the rate of IMAD.WIDE: 32 per SM and clock on sm_90, at 1.98 GHz. An operation's cost is counted
// in wide multiplications ("weq"): n^2 of a product, n (n + 1) / 2 of a square, n^2 + n / 2 of a Montgomery reduction.
#include "common.cuh"

constexpr double WEQ_PER_SECOND = 132 * 1.98e9 * 32;
constexpr int BLOCKS = 132 * 8, THREADS = 256, ITERATIONS = 512, POINTS = 1024;

enum Op { MUL, SQR, ADD };

/// Two chains per thread; x of each step depends on the one before.
template <Op OP, class F> __global__ void __launch_bounds__(THREADS) chain(F* values) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    F x = load16(values + 2 * i), y = load16(values + 2 * i + 1);
    for (int k = 0; k < ITERATIONS; k++) {
        if (OP == MUL) {
            x = x * y;
            y = y * x;
        } else if (OP == SQR) {
            x = x.sqr();
            y = y.sqr();
        } else {
            x = x + y;
            y = y + x;
        }
    }
    store16(values + 2 * i, x);
    store16(values + 2 * i + 1, y);
}

/// One accumulator per thread; the points come from a table that fits the caches.
template <class F> __global__ void __launch_bounds__(128) mixed_adds(Xyzz<F>* sums, const Affine<F>* points) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Xyzz<F> sum = load16(sums + i);
#pragma unroll 1
    for (int k = 0; k < ITERATIONS / 4; k++) sum.add(load16_readonly(points + (i * 17 + k * 5) % POINTS));
    store16(sums + i, sum);
}

static void report(const char* name, const char* op, double count, double ms, double weq) {
    double rate = count / ms / 1e6;
    printf("speed  %-16s %-10s %9.2f G/s", name, op, rate);
    if (weq) printf("   bound %7.2f   %5.1f %%", WEQ_PER_SECOND / weq / 1e9, 100 * rate * 1e9 * weq / WEQ_PER_SECOND);
    printf("\n");
}

template <class F> static void field_speed(const char* name, double mul_weq, double sqr_weq) {
    std::vector<F> values(size_t(2) * BLOCKS * THREADS);
    fill_random<typename F::Params>(values);
    DeviceArray<F> device(values.size());
    CHECK(cudaMemcpy(device.data, values.data(), values.size() * sizeof(F), cudaMemcpyHostToDevice));
    double count = 2.0 * BLOCKS * THREADS * ITERATIONS;
    report(name, "mul", count, median_ms([&] { chain<MUL, F><<<BLOCKS, THREADS>>>(device.data); }), mul_weq);
    report(name, "sqr", count, median_ms([&] { chain<SQR, F><<<BLOCKS, THREADS>>>(device.data); }), sqr_weq);
    report(name, "add", count, median_ms([&] { chain<ADD, F><<<BLOCKS, THREADS>>>(device.data); }), 0);
}

template <class G> static void group_speed(const char* name, double add_weq) {
    using F = typename G::Field;
    constexpr int ACCUMULATORS = 132 * 4 * 4 * 128;
    std::vector<Xyzz<F>> sums(ACCUMULATORS);
    std::vector<Affine<F>> points(POINTS);
    fill_random<typename F::Params>(sums);
    fill_random<typename F::Params>(points);
    DeviceArray<Xyzz<F>> device_sums(sums.size());
    DeviceArray<Affine<F>> device_points(POINTS);
    CHECK(cudaMemcpy(device_sums.data, sums.data(), sums.size() * sizeof sums[0], cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_points.data, points.data(), POINTS * sizeof points[0], cudaMemcpyHostToDevice));
    double ms = median_ms([&] { mixed_adds<F><<<ACCUMULATORS / 128, 128>>>(device_sums.data, device_points.data); });
    report(name, "mixed add", double(ACCUMULATORS) * (ITERATIONS / 4), ms, add_weq);
}

int main() {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    printf("device %s, %d SMs\n", device.name, device.multiProcessorCount);
    field_speed<Fp<Bn254Fp>>("BN254 Fp", 129, 101);
    field_speed<Fp<Bn254Fr>>("BN254 Fr", 120, 92);
    field_speed<Fp<Bls12381Fp>>("BLS12-381 Fp", 289, 223);
    field_speed<Fp<Bls12381Fr>>("BLS12-381 Fr", 112, 84);
    field_speed<Fp2<Bn254Fp>>("BN254 Fp2", 3 * 64 + 2 * 65, 2 * 129);
    field_speed<Fp2<Bls12381Fp>>("BLS12-381 Fp2", 3 * 144 + 2 * 145, 2 * 289);
    group_speed<Bn254G1>("BN254 G1", 1169);
    group_speed<Bls12381G1>("BLS12-381 G1", 2613);
    group_speed<Bn254G2>("BN254 G2", 3092);
    group_speed<Bls12381G2>("BLS12-381 G2", 6932);
    return 0;
}

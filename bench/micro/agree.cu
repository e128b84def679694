// Fields and groups: the device's results against the host path's, bit for bit, on random and on special inputs.
#include "common.cuh"

template <class F> struct FieldInput {
    F a, b, c, d;
};
constexpr int FIELD_RESULTS = 10;
template <class F> struct FieldOutput {
    F value[FIELD_RESULTS];
};
template <class F> TANDEM_HD void field_operations(const FieldInput<F>& in, FieldOutput<F>& out) {
    F a = in.a, b = in.b;
    out.value[0] = a + b;
    out.value[1] = a - b;
    out.value[2] = a * b;
    out.value[3] = a.sqr();
    out.value[4] = a.neg();
    out.value[5] = a.dbl();
    out.value[6] = a.to_canonical();
    out.value[7] = F::from_canonical(b);
    out.value[8] = mul_sub(a, b, in.c, in.d);
    out.value[9] = a == b ? F::one() : a.inverse();
}

template <class F> struct GroupInput {
    Xyzz<F> p, q;
    Affine<F> a;
};
constexpr int GROUP_RESULTS = 7;
template <class F> struct GroupOutput {
    Xyzz<F> value[GROUP_RESULTS];
};
/// One operation at a time: a kernel with all of them takes the compiler many minutes.
template <int OP, class F> TANDEM_HD void group_operation(const GroupInput<F>& in, GroupOutput<F>& out) {
    Xyzz<F> r = in.p;
    Jacobian<F> j{in.p.x, in.p.y, in.p.zz};
    if (OP == 0) r.add(in.a);
    if (OP == 1) r.add(in.q);
    if (OP == 2) r = r.dbl();
    if (OP == 3) r = Xyzz<F>::from_affine(in.a).neg();
    if (OP == 4) j.add(in.a);
    if (OP == 5) j.add(Jacobian<F>{in.q.x, in.q.y, in.q.zz});
    if (OP == 6) j = j.dbl();
    out.value[OP] = OP < 4 ? r : Xyzz<F>{j.x, j.y, j.z, F::zero()};
}

template <class F> __global__ void field_kernel(const FieldInput<F>* in, FieldOutput<F>* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) field_operations(in[i], out[i]);
}
template <int OP, class F> __global__ void group_kernel(const GroupInput<F>* in, GroupOutput<F>* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) group_operation<OP>(in[i], out[i]);
}

/// Some inputs with equal values, zeros, one and p - 1 among the random ones.
template <class F> static void edges(std::vector<FieldInput<F>>& in) {
    for (size_t i = 0; i + 8 < in.size(); i += 64) {
        in[i].b = in[i].a;
        in[i + 1].a = F::zero();
        in[i + 2].b = F::zero();
        in[i + 3].a = F::one();
        in[i + 4].a = F::one().neg();
        in[i + 5].b = F::one().neg();
        in[i + 6] = {F::zero(), F::zero(), in[i].a, in[i].b};
    }
}
/// The rare branches: doubling, cancellation, infinity on either side.
template <class F> static void edges(std::vector<GroupInput<F>>& in) {
    for (size_t i = 0; i + 8 < in.size(); i += 64) {
        // p over a random denominator is q or -q over another; a is p again.
        for (size_t k = i; k < i + 4; k++) {
            F z = in[k].p.zz, w = in[k].q.zz;
            F x = in[k].a.x, y = k % 2 ? in[k].a.y.neg() : in[k].a.y;
            in[k].p = {x * z.sqr(), y * (z.sqr() * z), z.sqr(), z.sqr() * z};
            in[k].q = {in[k].a.x * w.sqr(), in[k].a.y * (w.sqr() * w), w.sqr(), w.sqr() * w};
        }
        in[i + 4].p = Xyzz<F>::infinity();
        in[i + 5].q = Xyzz<F>::infinity();
        in[i + 6].a = Affine<F>::infinity();
        in[i + 7] = {Xyzz<F>::infinity(), Xyzz<F>::infinity(), Affine<F>::infinity()};
    }
}

template <class F> static void launch(const FieldInput<F>* in, FieldOutput<F>* out, int n) {
    field_kernel<F><<<(n + 127) / 128, 128>>>(in, out, n);
}
template <int OP = 0, class F> static void launch(const GroupInput<F>* in, GroupOutput<F>* out, int n) {
    group_kernel<OP><<<(n + 127) / 128, 128>>>(in, out, n);
    if constexpr (OP + 1 < GROUP_RESULTS) launch<OP + 1>(in, out, n);
}
template <class F> static void on_host(const FieldInput<F>& in, FieldOutput<F>& out) { field_operations(in, out); }
template <int OP = 0, class F> static void on_host(const GroupInput<F>& in, GroupOutput<F>& out) {
    group_operation<OP>(in, out);
    if constexpr (OP + 1 < GROUP_RESULTS) on_host<OP + 1>(in, out);
}

template <class F, template <class> class Input, template <class> class Output>
static void agree(const char* name, int n) {
    std::vector<Input<F>> in(n);
    fill_random<typename F::Params>(in);
    edges(in);
    std::vector<Output<F>> expected(n), got(n);
    DeviceArray<Input<F>> device_in(n);
    DeviceArray<Output<F>> device_out(n);
    CHECK(cudaMemcpy(device_in.data, in.data(), n * sizeof in[0], cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_out.data, 0xff, n * sizeof got[0]));
    launch(device_in.data, device_out.data, n);
    CHECK(cudaGetLastError());
    std::vector<std::thread> workers;
    int count = std::max(1u, std::thread::hardware_concurrency());
    for (int w = 0; w < count; w++)
        workers.emplace_back([&, w] {
            for (int i = w; i < n; i += count) on_host(in[i], expected[i]);
        });
    for (std::thread& w : workers) w.join();
    CHECK(cudaMemcpy(got.data(), device_out.data, n * sizeof got[0], cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        if (!memcmp(&expected[i], &got[i], sizeof got[i])) continue;
        size_t limb = 0;
        while (reinterpret_cast<uint32_t*>(&expected[i])[limb] == reinterpret_cast<uint32_t*>(&got[i])[limb]) limb++;
        size_t limbs_per_value = sizeof(F) / 4;
        fprintf(stderr, "%s: device and host differ at input %d, value %zu\n", name, i, limb / limbs_per_value);
        exit(1);
    }
    printf("agree  %-16s %d inputs\n", name, n);
}

int main() {
    constexpr int MILLION = 1 << 20;
    agree<Fp<Bn254Fp>, FieldInput, FieldOutput>("BN254 Fp", MILLION);
    agree<Fp<Bn254Fr>, FieldInput, FieldOutput>("BN254 Fr", MILLION);
    agree<Fp<Bls12381Fp>, FieldInput, FieldOutput>("BLS12-381 Fp", MILLION);
    agree<Fp<Bls12381Fr>, FieldInput, FieldOutput>("BLS12-381 Fr", MILLION);
    agree<Fp2<Bn254Fp>, FieldInput, FieldOutput>("BN254 Fp2", MILLION);
    agree<Fp2<Bls12381Fp>, FieldInput, FieldOutput>("BLS12-381 Fp2", MILLION);
    agree<Bn254G1::Field, GroupInput, GroupOutput>("BN254 G1", MILLION);
    agree<Bls12381G1::Field, GroupInput, GroupOutput>("BLS12-381 G1", MILLION);
    agree<Bn254G2::Field, GroupInput, GroupOutput>("BN254 G2", MILLION);
    agree<Bls12381G2::Field, GroupInput, GroupOutput>("BLS12-381 G2", MILLION);
    return 0;
}

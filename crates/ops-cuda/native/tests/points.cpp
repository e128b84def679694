// Runs what the threads of a transform of points do, one thread after the other, on the fields' host path or, built with
// TANDEM_EMULATE_PTX, on the device's carry chains with the instructions emulated, against points that tests/host_points.rs makes.
//
// usage: points FILE. The file is a sequence of cases: curve (0 BN254, 1 BLS12-381), the number of points as a power of two and the threads
// that make them affine, as uint64_t; then the factors, the points, and what they are to become. Prints how many cases there were; exits
// with 1 on the first mismatch, 2 if the file ends early.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "point_ntt/point_ntt.cuh"

using namespace tandem;

static FILE* input;

struct Head {
    uint64_t curve, log_n, threads;
};

template <class T> static std::vector<T> read(size_t count) {
    std::vector<T> values(count);
    if (fread(values.data(), sizeof(T), count, input) != count) {
        fprintf(stderr, "the file ends early\n");
        exit(2);
    }
    return values;
}

template <class G> static void check(const Head& head, uint64_t number) {
    using F = point_ntt::Field<G>;
    const uint32_t log_n = uint32_t(head.log_n), n = 1u << log_n;
    const auto factors = read<tandem_scalar>(n / 2 ? n / 2 : 1);
    auto affine = read<Affine<F>>(n);
    const auto expected = read<Affine<F>>(n);
    std::vector<Jacobian<F>> points(n);
    std::vector<F> before(n);
    for (uint32_t i = 0; i < n; i++) point_ntt::start(affine.data(), points.data(), factors.data(), i);
    for (uint32_t log_half = log_n; log_half-- > 0;)
        for (uint32_t i = 0; i < n / 2; i++) point_ntt::butterfly(points.data(), factors.data(), log_half, i);
    const uint32_t threads = uint32_t(head.threads);
    for (uint32_t thread = 0; thread < threads; thread++)
        point_ntt::finish(points.data(), before.data(), affine.data(), log_n, thread, threads);
    for (uint32_t i = 0; i < n; i++) {
        if (affine[i] == expected[i]) continue;
        fprintf(stderr, "case %llu, curve %llu: point %u of %u\n", static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(head.curve), i, n);
        exit(1);
    }
}

int main(int argc, char** argv) {
    if (argc != 2 || !(input = fopen(argv[1], "rb"))) {
        fprintf(stderr, "usage: points FILE\n");
        return 2;
    }
    Head head;
    uint64_t cases = 0;
    for (; fread(&head, sizeof head, 1, input) == 1; cases++) {
        if (head.curve == 0) check<Bn254G1>(head, cases);
        else check<Bls12381G1>(head, cases);
    }
    printf("%d\n", int(cases));
    return 0;
}

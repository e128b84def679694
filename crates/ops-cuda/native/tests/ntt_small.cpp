// Checks the small fields, and the transforms that a thread does in its registers, against values that
// tests/host_ntt.rs makes with arkworks. The host path: the device's carry chains are checked on GPUs.
//
// usage: ntt_small FILE. The file is a sequence of cases of uint64_t: field (0 Goldilocks, 1 BabyBear), h; then 2^h numbers;
// the 2^h values of their transform; the product, the sum and the product with one of the first two. Prints how many
// cases there were; exits with 1 on the first mismatch, 2 if the file ends early.
#include <cstdio>
#include <cstdlib>

#include "ntt/small.cuh"

using namespace tandem;

static FILE* input;

static void read(uint64_t* to, size_t count) {
    if (fread(to, sizeof(uint64_t), count, input) != count) {
        fprintf(stderr, "the file ends early\n");
        exit(2);
    }
}

template <class F, int H> static bool right() {
    typedef typename F::Stored Stored;
    constexpr uint32_t N = 1 << H;
    uint64_t in[N], expected[N + 3];
    read(in, N);
    read(expected, N + 3);
    typename F::Held x[N], y[N];
    for (uint32_t i = 0; i < N; i++) {
        x[i] = F::held(Stored(in[i]));
        y[i] = F::multiply(Stored(in[i]), F::ONE);
    }
    ntt_small::transform<F, H>(x);
    ntt_small::transform<F, H>(y);
    bool same = true;
    for (uint32_t i = 0; i < N; i++) {
        const Stored value = Stored(expected[ntt_small::reversed_bits(i, H)]);
        same = same && F::reduce(F::fold(x[i])) == value;
        same = same && F::reduce(F::fold(y[i])) == value;
    }
    const Stored a = Stored(in[0]), b = Stored(in[1]);
    return same && F::reduce(F::product(a, b)) == Stored(expected[N]) &&
           F::reduce(F::sum(a, b)) == Stored(expected[N + 1]) &&
           F::reduce(F::product(a, F::ONE)) == Stored(expected[N + 2]);
}

template <class F> static bool right(uint64_t h) {
    switch (h) {
        case 1: return right<F, 1>();
        case 2: return right<F, 2>();
        case 3: return right<F, 3>();
        case 4: return right<F, 4>();
        default: return right<F, 5>();
    }
}

int main(int argc, char** argv) {
    input = argc == 2 ? fopen(argv[1], "rb") : nullptr;
    if (!input) {
        fprintf(stderr, "usage: ntt_small FILE\n");
        return 2;
    }
    uint64_t head[2], cases = 0;
    while (fread(head, sizeof head, 1, input) == 1) {
        if (!(head[0] == 0 ? right<Goldilocks>(head[1]) : right<BabyBear>(head[1]))) {
            fprintf(stderr, "mismatch: field %d, 2^%d, case %d\n", int(head[0]), int(head[1]), int(cases));
            return 1;
        }
        cases++;
    }
    printf("%d\n", int(cases));
}

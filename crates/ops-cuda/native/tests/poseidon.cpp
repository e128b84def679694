// Checks Poseidon against hashes that tests/host_poseidon.rs makes with the CPU backend: on the host path of the fields or,
// built with TANDEM_EMULATE_PTX, on the device's carry chains with the instructions emulated.
//
// usage: poseidon FILE. The file is a sequence of hashes: curve (0 BN254, 1 BLS12-381), width, full rounds, partial rounds,
// block, elements of the table, cases, 0 as uint32_t; then the table; then for each case its inputs and its hash. Prints
// a line per hash with curve, width and cases; exits with 1 on the first mismatch, 2 if the file ends early.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tandem/poseidon.cuh"

using namespace tandem;

template <class F> struct HostSlots {
    F* at;
    F get(uint32_t i) const { return at[i]; }
    void set(uint32_t i, F x) const { at[i] = x; }
};

static FILE* input;

template <class T> static void read(T* to, size_t count) {
    if (fread(to, sizeof(T), count, input) != count) {
        fprintf(stderr, "the file ends early\n");
        exit(2);
    }
}

template <class P> static void check(const uint32_t* head) {
    const poseidon::Shape shape{head[1], head[2], head[3], head[4]};
    std::vector<Fp<P>> table(head[5]), state(shape.slots() + 1);
    read(table.data(), table.size());
    for (uint32_t i = 0; i < head[6]; i++) {
        read(state.data(), shape.width - 1);
        Fp<P> expected;
        read(&expected, 1);
        // What lies behind the slots must not be written.
        state.back() = expected;
        const Fp<P> hash = shape.width == 3 ? poseidon::hash3<P>(shape.full_rounds, shape.partial_rounds, table.data(),
                                                                 state[0], state[1])
                                            : poseidon::hash<P>(shape, table.data(), HostSlots<Fp<P>>{state.data()});
        if (hash != expected || state.back() != expected) {
            fprintf(stderr, "mismatch: curve %u, width %u, case %u\n", head[0], head[1], i);
            exit(1);
        }
    }
    printf("%u %u %u\n", head[0], head[1], head[6]);
}

int main(int argc, char** argv) {
    input = argc == 2 ? fopen(argv[1], "rb") : nullptr;
    if (!input) {
        fprintf(stderr, "usage: poseidon FILE\n");
        return 2;
    }
    uint32_t head[8];
    while (fread(head, sizeof head, 1, input) == 1) {
        if (head[0] == 0) {
            check<Bn254Fr>(head);
        } else {
            check<Bls12381Fr>(head);
        }
    }
    return 0;
}

// Runs what the threads of the kernels over vectors of scalars do, one thread after the other, on the fields' host path, against
// values that tests/host_scalars.rs makes by the definitions.
//
// usage: scalars FILE. The file is a sequence of cases: field (0 BN254, 1 BLS12-381), operation, n, a number that the operation
// needs, as uint64_t; then an element that it needs, n elements, and what they are to become. Prints how many cases there were; exits
// with 1 on the first mismatch, 2 if the file ends early or has what is not known.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "batch_inverse/batch_inverse.cuh"
#include "plonk_rows/plonk_rows.cuh"
#include "scan/scan.cuh"
#include "vector/vector.cuh"

using namespace tandem;

enum Operation : uint64_t {
    BATCH_INVERSE = 0,
    PREFIX_PRODUCT = 1,
    DIVIDE = 2,
    GATE_ROWS = 3,
    PERMUTED_ROWS = 4,
    QUOTIENT_ROWS = 5,
    COMBINED = 6,
    QUOTIENT_ROWS_OF_TWO_AND_THREE = 7,
    PRODUCT_SUM = 8
};

static FILE* input;

struct Head {
    uint64_t field, operation, n, number;
};

static void read(void* to, size_t bytes) {
    if (bytes > 0 && fread(to, bytes, 1, input) != 1) {
        fprintf(stderr, "the file ends early\n");
        exit(2);
    }
}

/// A scan as src/scan/mod.rs launches it: levels of totals up, then each level scanned down.
template <class F, class Op> static void scanned(F* data, uint64_t n, uint64_t columns, Op op, bool exclusive) {
    scan::Table<F> table{data, nullptr, n, columns, exclusive};
    const uint64_t threads = table.threads();
    std::vector<F> chunks(threads);
    if (threads > columns) {
        table.chunks = chunks.data();
        for (uint64_t thread = 0; thread < threads; thread++) scan::total(table, op, thread);
        Op above = op;
        for (int i = 1; i < TANDEM_SCAN_CHUNK; i++) above.factor *= op.factor;
        scanned(chunks.data(), threads, columns, above, true);
    }
    for (uint64_t thread = 0; thread < threads; thread++) scan::apply(table, op, thread);
}

template <class F> static void run(const Head& head, F element, std::vector<F>& data) {
    switch (head.operation) {
        case BATCH_INVERSE: {
            std::vector<F> before(head.n);
            for (uint64_t thread = 0; thread < head.number; thread++) {
                batch_inverse::invert(data.data(), before.data(), head.n, thread, head.number);
            }
            return;
        }
        case PREFIX_PRODUCT: return scanned(data.data(), head.n, 1, scan::Product<F>{element}, true);
        case DIVIDE: return scanned(data.data(), head.n, head.number, scan::Horner<F>{element}, false);
        // Vectors of `number` elements one behind the other, the first of which becomes the result.
        case GATE_ROWS: {
            plonk_rows::Gates<F> rows{};
            auto at = [&](uint64_t vector) { return data.data() + vector * head.number; };
            for (int i = 0; i < 3; i++) rows.columns[i] = at(i);
            for (int i = 0; i < 5; i++) rows.selectors[i] = at(3 + i);
            for (uint64_t i = 0; i < head.number; i++) data[i] = rows.row(i);
            return;
        }
        // The factors are the first powers of gamma.
        case PERMUTED_ROWS: {
            plonk_rows::Permuted<F> rows{};
            rows.gamma = element;
            F power = F::one();
            for (int i = 0; i < 3; i++) {
                rows.columns[i] = data.data() + i * head.number;
                rows.places[i] = data.data() + (3 + i) * head.number;
                rows.factors[i] = power;
                power *= element;
            }
            for (uint64_t i = 0; i < head.number; i++) data[i] = rows.row(i);
            return;
        }
        // The numbers are the first powers of the element, or k1 and k2 are 2 and 3.
        case QUOTIENT_ROWS:
        case QUOTIENT_ROWS_OF_TWO_AND_THREE: {
            plonk_rows::Quotient<F> rows{};
            for (int i = 0; i < 15; i++) rows.vectors[i] = data.data() + i * head.number;
            F numbers[6] = {F::one()};
            for (int i = 1; i < 6; i++) numbers[i] = numbers[i - 1] * element;
            if (head.operation == QUOTIENT_ROWS_OF_TWO_AND_THREE) {
                numbers[3] = F::one().dbl();
                numbers[4] = numbers[3] + F::one();
            }
            rows.set(numbers);
            for (uint64_t i = 0; i < head.number; i++) data[i] = rows.row(i);
            return;
        }
        // Vector j lacks its last j elements; the factors are the first powers of the element.
        case COMBINED: {
            Combined<F> of{};
            of.n = head.number;
            of.terms = uint32_t(head.n / head.number);
            F power = F::one();
            for (uint32_t j = 0; j < of.terms; j++) {
                of.vectors[j] = data.data() + j * head.number;
                of.lengths[j] = head.number > j ? head.number - j : 0;
                of.factors[j] = power;
                power *= element;
            }
            std::vector<F> out(head.number);
            for (uint64_t i = 0; i < head.number; i++) out[i] = of.element(i);
            for (uint64_t i = 0; i < head.number; i++) data[i] = out[i];
            return;
        }
        // The products of `number` elements with as many others become the first element.
        case PRODUCT_SUM: {
            ProductSum<typename F::Params> sum;
            for (uint64_t i = 0; i < head.number; i++) sum.add(data[i], data[head.number + i]);
            data[0] = sum.total();
            return;
        }
        default: fprintf(stderr, "no operation %d\n", int(head.operation)), exit(2);
    }
}

template <class F> static bool right(const Head& head) {
    F element;
    std::vector<F> data(head.n), expected(head.n);
    read(&element, sizeof element);
    read(data.data(), head.n * sizeof(F));
    read(expected.data(), head.n * sizeof(F));
    run(head, element, data);
    return data == expected;
}

int main(int argc, char** argv) {
    input = argc == 2 ? fopen(argv[1], "rb") : nullptr;
    if (!input) {
        fprintf(stderr, "usage: scalars FILE\n");
        return 2;
    }
    Head head;
    uint64_t cases = 0;
    while (fread(&head, sizeof head, 1, input) == 1) {
        if (!(head.field == 0 ? right<Fp<Bn254Fr>>(head) : right<Fp<Bls12381Fr>>(head))) {
            fprintf(stderr, "mismatch: field %d, operation %d, n %d, number %d\n", int(head.field), int(head.operation),
                    int(head.n), int(head.number));
            return 1;
        }
        cases++;
    }
    printf("%d\n", int(cases));
}

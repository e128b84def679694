// Runs what the threads of a sumcheck's kernels do, one thread after the other, on the fields' host path, against values that
// tests/host_sumcheck.rs makes by the definitions.
//
// usage: sumcheck FILE. The file is a sequence of cases: field (0 BN254, 1 BLS12-381, 2 Goldilocks), operation, tables, n, as uint64_t; then
// the challenge, the tables or columns one by one, the columns that they become but for TANDEM_SUMCHECK_SUMS, and TANDEM_SUMCHECK_VALUES values.
// Prints how many cases there were; exits with 1 on the first mismatch, 2 if the file ends early or has what is not known.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sumcheck/sumcheck.cuh"

using namespace tandem;
using namespace tandem::sumcheck;

static FILE* input;

struct Head {
    uint64_t field, operation, tables, n;
};

template <class T> static std::vector<T> read(uint64_t count) {
    std::vector<T> to(count);
    if (count > 0 && fread(to.data(), count * sizeof(T), 1, input) != 1) {
        fprintf(stderr, "the file ends early\n");
        exit(2);
    }
    return to;
}

template <class T> static bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class S, class V> static bool has_values(const V& sums) {
    using Ext = typename S::Ext;
    std::vector<Ext> values;
    for (int t = 0; t < TANDEM_SUMCHECK_VALUES; t++) values.push_back(value<S>(sums, t));
    return same(values, read<Ext>(TANDEM_SUMCHECK_VALUES));
}

/// Binds all that threads have to bind, and has what they add up.
template <class S, int D, class From>
static Sums<typename S::Ext, D, false> bind_all(const From& from, const Columns<S, D>& columns, typename S::Ext r) {
    using Ext = typename S::Ext;
    const uint64_t count = pairs(TANDEM_SUMCHECK_FOLD, from.n);
    if constexpr (IS_SHARED<S, D>) {
        HalfTotals<Ext> totals[2] = {HalfTotals<Ext>::zero(), HalfTotals<Ext>::zero()};
        for (uint64_t i = 0; i < count; i++) {
            Half<Ext> half[2];
            for (int k = 0; k < 2; k++) half[k] = bind_half<S>(from, columns, r, i, k);
            for (int k = 0; k < 2; k++) totals[k].add(half[k].mine, half[1 - k].others);
        }
        // Blocks add what their threads have.
        auto sums = totals[0].sums(false);
        const auto second = totals[1].sums(true);
        for (int t = 0; t <= D; t++) sums.at[t] += second.at[t];
        return sums;
    } else {
        auto totals = Totals<Ext, D, false>::zero();
        for (uint64_t i = 0; i < count; i++) bind_pair(from, columns, r, i, totals);
        return totals.sums();
    }
}

template <class S, int D> static bool right(const Head& head) {
    using Base = typename S::Base;
    using Ext = typename S::Ext;
    const Ext r = read<Ext>(1)[0];
    if (head.operation == TANDEM_SUMCHECK_FOLD) {
        const auto given = read<Ext>(head.n * D);
        // Columns are longer than what lives of them, as after the first round.
        const uint64_t stride = head.n + 3;
        std::vector<Ext> numbers(stride * D);
        const Columns<S, D> columns = {numbers.data(), stride, head.n};
        for (int j = 0; j < D; j++) std::copy_n(given.begin() + j * head.n, head.n, numbers.begin() + j * stride);
        const auto sums = bind_all<S, D>(columns, columns, r);
        // What lives of each column.
        std::vector<Ext> bound;
        for (int j = 0; j < D; j++) {
            const auto column = numbers.begin() + j * stride;
            bound.insert(bound.end(), column, column + head.n / 2);
        }
        const bool is_bound = same(bound, read<Ext>(head.n / 2 * D));
        return has_values<S>(sums) && is_bound;
    }
    const auto all = read<Base>(head.n * D);
    Tables<S, D> tables;
    for (int j = 0; j < D; j++) tables.table[j] = all.data() + j * head.n;
    tables.n = head.n;
    if (head.operation == TANDEM_SUMCHECK_SUMS) {
        auto totals = Totals<Base, D, true>::zero();
        for (uint64_t i = 0; i < pairs(TANDEM_SUMCHECK_SUMS, head.n); i++) add_pair(tables, i, totals);
        return has_values<S>(totals.sums());
    }
    std::vector<Ext> numbers(head.n / 2 * D);
    const Columns<S, D> columns = {numbers.data(), head.n / 2, head.n / 2};
    const auto sums = bind_all<S, D>(tables, columns, r);
    const bool is_bound = same(numbers, read<Ext>(head.n / 2 * D));
    return has_values<S>(sums) && is_bound;
}

template <class S> static bool right_of(const Head& head) {
    switch (head.tables) {
        case 1: return right<S, 1>(head);
        case 2: return right<S, 2>(head);
        case 3: return right<S, 3>(head);
        case 4: return right<S, 4>(head);
        default: fprintf(stderr, "no %d tables\n", int(head.tables)), exit(2);
    }
}

static bool right_in(const Head& head) {
    switch (head.field) {
        case 0: return right_of<Scalars<Bn254Fr>>(head);
        case 1: return right_of<Scalars<Bls12381Fr>>(head);
        default: return right_of<GoldilocksTables>(head);
    }
}

int main(int argc, char** argv) {
    input = argc == 2 ? fopen(argv[1], "rb") : nullptr;
    if (!input) {
        fprintf(stderr, "usage: sumcheck FILE\n");
        return 2;
    }
    Head head;
    uint64_t cases = 0;
    while (fread(&head, sizeof head, 1, input) == 1) {
        if (!right_in(head)) {
            fprintf(stderr, "mismatch: field %d, operation %d, %d tables, n %d\n", int(head.field), int(head.operation),
                    int(head.tables), int(head.n));
            return 1;
        }
        cases++;
    }
    printf("%d\n", int(cases));
}

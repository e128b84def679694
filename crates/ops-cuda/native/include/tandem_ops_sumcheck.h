/// The rounds of a sumcheck over a product of multilinear tables. A part of tandem_ops.h, which says what holds for all launchers.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tandem_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Most tables of a product.
#define TANDEM_SUMCHECK_TABLES 4
/// Places for what is found of a round's polynomial of degree d: its values at 0 to d - 1 and in place d its leading coefficient; of degree 1 the
/// values at 0 and at 1.
#define TANDEM_SUMCHECK_VALUES 5

/// All values of the first round, of tables of n elements, at least 2.
#define TANDEM_SUMCHECK_SUMS 0
/// The columns become n / 2 numbers each: tables of n elements, at least 4, whose first variable is bound to r.
#define TANDEM_SUMCHECK_BIND 1
/// The first n numbers of each column, at least 4, become n / 2 that are bound to r, in place.
#define TANDEM_SUMCHECK_FOLD 2
/// `values` gets the first n numbers of each column, one column behind the other, and nothing is bound.
#define TANDEM_SUMCHECK_TAKE 3

/// A round (native/src/sumcheck/sumcheck.cuh) over 1 to TANDEM_SUMCHECK_TABLES tables, n a power of two. Memory is in words: an element of a
/// table is a scalar's four, of Goldilocks one; a number of a column, a value and r are four, of Goldilocks two, those of its extension.
/// Each table has a column: that of table j begins at number j * `stride` of `columns`. `values` gets TANDEM_SUMCHECK_VALUES numbers, but for TANDEM_SUMCHECK_TAKE; but
/// for TANDEM_SUMCHECK_SUMS that in place 1 is zero, as are those behind the number of tables. `told` gets a 1 behind them. Both may be
/// page-locked memory of the host. `done` is a word in the device's memory for launches of one stream: it is zero before and after.
typedef struct tandem_sumcheck_args {
    const uint64_t* table[4];
    uint64_t* columns;
    uint64_t stride;
    uint64_t* values;
    uint32_t* done;
    uint32_t* told;
    uint64_t r[4];
    uint64_t n;
    uint32_t tables;
    uint32_t op;
} tandem_sumcheck_args;

// A function for each field: bn254, bls12_381 and goldilocks.
#define TANDEM_SUMCHECK_FUNCTIONS(name)                                      \
    int32_t name##_scratch(const tandem_sumcheck_args* args, size_t* bytes); \
    int32_t name(const tandem_sumcheck_args* args, void* scratch, size_t scratch_bytes, tandem_stream stream)

TANDEM_SUMCHECK_FUNCTIONS(tandem_sumcheck_bn254);
TANDEM_SUMCHECK_FUNCTIONS(tandem_sumcheck_bls12_381);
TANDEM_SUMCHECK_FUNCTIONS(tandem_sumcheck_goldilocks);

#ifdef __cplusplus
}
#endif

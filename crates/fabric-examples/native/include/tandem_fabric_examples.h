/// Kernels over the device API that are no part of the product: the examples of the guide, and what the tests of the
/// API need.
///
/// `cargo xtask bindgen` makes src/ffi.rs and native/src/layout.cu from this header, as from tandem_cuda.h, whose rules
/// hold here too.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tandem_cuda.h"
#include "tandem_fabric.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The stencil of the examples.
typedef struct tandem_example_stencil_args {
    /// Addresses of two fields of (rows + 2) * columns floats of this PE.
    uint64_t a;
    uint64_t b;
    uint64_t columns;
    uint64_t rows;
    /// Of the loop in one kernel.
    uint64_t steps;
} tandem_example_stencil_args;

/// Every PE writes its number into the `slot` of the next.
int32_t tandem_example_shift(const tandem_team* team, uint64_t slot, tandem_stream stream);
/// One step from `a` to `b`, with halos sent by threads or by blocks.
int32_t tandem_example_stencil(const tandem_team* team, const tandem_example_stencil_args* args, int32_t by_blocks,
                               tandem_stream stream);
/// A kernel for a collective launch that does all steps.
int32_t tandem_example_stencil_loop(tandem_kernel* kernel);
/// array[i] = i * i, for this PE's part.
int32_t tandem_example_squares(const tandem_team* team, const tandem_array* array, tandem_stream stream);
/// to[i] = from[length - 1 - i], for this PE's part.
int32_t tandem_example_reverse(const tandem_team* team, const tandem_array* to, const tandem_array* from,
                               tandem_stream stream);

/// Arguments of the kernel of tandem_meet.
typedef struct tandem_meet_args {
    /// Address of a uint64_t, 0 at first, that every PE has at the same place.
    uint64_t count;
    /// Address of a uint64_t that counts, for each PE, the times that its count was wrong.
    uint64_t wrong;
    uint64_t rounds;
} tandem_meet_args;
/// A kernel for a collective launch: its blocks on all PEs count and meet, and see whether the counts are right.
int32_t tandem_meet(tandem_kernel* kernel);

/// Writes of many threads, a fence, a signal: who has the signal sees the writes.
#define TANDEM_LITMUS_MESSAGE 0
/// Writes of many threads, then put_signal: who has the signal sees the writes.
#define TANDEM_LITMUS_PUT_SIGNAL 1
/// Each writes the other's word, is quiet, reads its own: one sees the other's write.
#define TANDEM_LITMUS_BUFFERING 2
/// The first with the signal before the data: who has the signal may see old data.
#define TANDEM_LITMUS_MESSAGE_EARLY 3
/// The third without being quiet.
#define TANDEM_LITMUS_BUFFERING_LOUD 4
/// The first with the fence of a block and the waits of a block for one of several words, of which there is one.
#define TANDEM_LITMUS_MESSAGE_GROUP 5

/// Bytes of a lane's locations.
#define TANDEM_LITMUS_LANE_BYTES 4352

/// Arguments of the kernels of tandem_litmus.
typedef struct tandem_litmus_args {
    /// TANDEM_LITMUS_LANE_BYTES for each block, aligned to 128 and 0 at first, at the same place of every PE.
    uint64_t lanes;
    /// A byte for each round of each block: whether this PE saw the other's write (TANDEM_LITMUS_BUFFERING*).
    uint64_t saw;
    /// Two uint64_t, 0 at first: words that were wrong, and rounds that were finished.
    uint64_t wrong;
    uint64_t rounds;
} tandem_litmus_args;

/// A kernel for a collective launch that runs a litmus test between PEs 0 and 1.
int32_t tandem_litmus(int32_t test, tandem_kernel* kernel);

#define TANDEM_SINGLE_PUT 0
#define TANDEM_SINGLE_GET 1
#define TANDEM_SINGLE_IPUT 2
#define TANDEM_SINGLE_IGET 3
#define TANDEM_SINGLE_PUT_SIGNAL 4
#define TANDEM_SINGLE_P 5
#define TANDEM_SINGLE_G 6
/// The forms that return what was there, into `from`; `how` is TANDEM_AMO_*.
#define TANDEM_SINGLE_ATOMIC 7
/// The forms that return nothing.
#define TANDEM_SINGLE_CHANGE 8
/// Waits of a scope for any and for some of the `count` words of 64 bits at `from`, whose int32_t at `signal` is 0 (0: all), to
/// compare with `value` as `how` says (TANDEM_CMP_*); any looks from `expected` on. Every thread writes what it got to `to`:
/// first what the wait returned, for each of 512 threads, then for some the sum of the indices, then come the indices.
#define TANDEM_SINGLE_WAIT_ANY 9
#define TANDEM_SINGLE_WAIT_SOME 10

/// One operation of the device API.
typedef struct tandem_single_args {
    /// Addresses of this PE, as those of the device API.
    uint64_t to;
    uint64_t from;
    uint64_t signal;
    uint64_t to_stride;
    uint64_t from_stride;
    uint64_t count;
    uint64_t value;
    uint64_t expected;
    /// TANDEM_SINGLE_*.
    int32_t op;
    /// TANDEM_AMO_*, TANDEM_CMP_* of a wait.
    int32_t how;
    /// TANDEM_SCOPE_*.
    int32_t scope;
    /// Bytes of an element: 1, 2, 4, 8, 12 or 16.
    uint32_t element;
    uint32_t peer;
    /// Of the one block: 32 to 512.
    uint32_t threads;
} tandem_single_args;

/// Does one operation of the device API; for tests.
int32_t tandem_single(const tandem_team* team, const tandem_single_args* args, tandem_stream stream);

/// A kind beside TANDEM_EXEC_*: numbers modulo 2^255 - 19, in 32 bytes, which are added.
#define TANDEM_COLLECTIVE_FIELD 20

/// Arguments of the kernels of tandem_collective.
typedef struct tandem_collective_args {
    /// Addresses of this PE, as those of the device API.
    uint64_t to;
    uint64_t from;
    /// Address of a uint64_t that grows by 1, or by 1000 after a fault.
    uint64_t done;
    uint64_t count;
    /// TANDEM_INSIDE_*.
    int32_t what;
    /// TANDEM_EXEC_SUM and the others.
    int32_t how;
    /// TANDEM_SCOPE_*.
    int32_t scope;
    uint32_t root;
} tandem_collective_args;

/// A kernel of one block for a collective launch, which does a collective of numbers of a kind: TANDEM_EXEC_*, or TANDEM_COLLECTIVE_FIELD.
int32_t tandem_collective(int32_t kind, tandem_kernel* kernel);

#ifdef __cplusplus
}
#endif

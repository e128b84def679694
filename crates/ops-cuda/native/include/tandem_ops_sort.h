/// Sorts of keys, and of values that go with them, on up to TANDEM_SORT_LANES GPUs. A part of tandem_ops.h, which says what holds for all
/// launchers.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tandem_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_SORT_LANES 8
/// Elements that one block sorts.
#define TANDEM_SORT_BLOCK 6144

/// Takes samples. The lanes' scratch memory exists.
#define TANDEM_SORT_SAMPLE 0
/// Counts. All lanes have sampled.
#define TANDEM_SORT_COUNT 1
/// Moves every key to the lane that sorts it. All lanes have counted.
#define TANDEM_SORT_EXCHANGE 2
/// Sorts what has come. All lanes have exchanged; afterwards all must be waited for before any lane's keys are used.
#define TANDEM_SORT_FINISH 3
/// All of it, for one lane: at most TANDEM_SORT_BLOCK keys, or of 32-bit keys any number. Those have no other step there.
#define TANDEM_SORT_WHOLE 4

/// A lane would receive more keys than it has room for: the keys are as they were. Another seed gives another sample.
#define TANDEM_SORT_CROWDED 1
/// Not all keys were sorted: an error of this code.
#define TANDEM_SORT_UNFINISHED 2

/// One step of a sort on one lane; every lane does the same steps. The lanes' keys are one sequence of which lane i has
/// those from first[i] to first[i + 1]; first[0] is 0, first[lanes] is not. All pointers of one array must be reachable
/// from this lane's GPU.
typedef struct tandem_sort_args {
    uint64_t first[9];
    /// Keys of every lane, and values in the functions for pairs.
    uint8_t* keys[8];
    uint8_t* values[8];
    /// Memory of every lane, as many bytes as the lane's _room says, aligned to 256 bytes.
    uint8_t* scratch[8];
    /// A number of the lane: 0 when all went well.
    uint32_t* failed;
    uint64_t seed;
    uint32_t lane;
    uint32_t lanes;
    uint32_t descending;
    uint32_t step;
} tandem_sort_args;

int32_t tandem_sort_u32_room(const tandem_sort_args* args, size_t* bytes);
int32_t tandem_sort_u32(const tandem_sort_args* args, tandem_stream stream);
int32_t tandem_sort_u64_room(const tandem_sort_args* args, size_t* bytes);
int32_t tandem_sort_u64(const tandem_sort_args* args, tandem_stream stream);
int32_t tandem_sort_u32_pairs_room(const tandem_sort_args* args, size_t* bytes);
int32_t tandem_sort_u32_pairs(const tandem_sort_args* args, tandem_stream stream);
int32_t tandem_sort_u64_pairs_room(const tandem_sort_args* args, size_t* bytes);
int32_t tandem_sort_u64_pairs(const tandem_sort_args* args, tandem_stream stream);

/// Merges two sorted runs; of equal keys those of the first come first. Keys, and values if there are any, of 4 or 8 bytes.
typedef struct tandem_sort_merge_args {
    const uint8_t* keys[2];
    const uint8_t* values[2];
    uint64_t length[2];
    uint8_t* out_keys;
    uint8_t* out_values;
    uint32_t key_bytes;
    uint32_t descending;
} tandem_sort_merge_args;

int32_t tandem_sort_merge(const tandem_sort_merge_args* args, tandem_stream stream);

/// Where to cut sorted runs: cuts[8 i + r] is how many elements of run r are among the first rank[i] of all, for i from 0
/// to `runs`; of equal keys those of earlier runs come first.
typedef struct tandem_sort_cuts_args {
    const uint8_t* keys[8];
    uint64_t length[8];
    uint64_t rank[9];
    uint64_t* cuts;
    uint32_t runs;
    uint32_t key_bytes;
    uint32_t descending;
} tandem_sort_cuts_args;

int32_t tandem_sort_cuts(const tandem_sort_cuts_args* args, tandem_stream stream);

#ifdef __cplusplus
}
#endif

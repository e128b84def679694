/// Teams of PEs: what a kernel needs to know of one, and the launchers of the fabric.
///
/// This header is the truth: `cargo xtask bindgen` makes src/ffi.rs and src/ffi_absent.rs from it, as from
/// tandem_cuda.h, whose rules hold here too.
///
/// The world has n PEs. One range of n * `window` addresses is reserved, and PE p's symmetric heap lies at
/// `heap` + p * `window`, the same for every PE of the process. So an address x of PE a's heap is for PE b
/// x + (b - a) * `window`, with a and b counted in the world.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tandem_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/// PEs that a world can have.
#define TANDEM_FABRIC_MOST_PES 32
/// Regions that can be registered with a world at a time.
#define TANDEM_FABRIC_MOST_REGIONS 64
/// Stands for a PE that is not known: who was to change the word that a wait is for.
#define TANDEM_FABRIC_ANY_PE 255

/// Comparisons of a wait: the word on the left, the wanted value on the right.
#define TANDEM_CMP_EQ 0
#define TANDEM_CMP_NE 1
#define TANDEM_CMP_GT 2
#define TANDEM_CMP_GE 3
#define TANDEM_CMP_LT 4
#define TANDEM_CMP_LE 5

/// Operations of signals and atomics. The first two are the operations of a signal.
#define TANDEM_AMO_SET 0
#define TANDEM_AMO_ADD 1
#define TANDEM_AMO_INC 2
#define TANDEM_AMO_AND 3
#define TANDEM_AMO_OR 4
#define TANDEM_AMO_XOR 5
#define TANDEM_AMO_COMPARE_SWAP 6
/// Fetch without a change.
#define TANDEM_AMO_FETCH 7

/// Kinds of words, for comparisons and widths.
#define TANDEM_WORD_U32 0
#define TANDEM_WORD_I32 1
#define TANDEM_WORD_U64 2
#define TANDEM_WORD_I64 3

/// Nothing has gone wrong.
#define TANDEM_FAULT_NONE 0
/// A wait for a word took longer than the team's timeout. `peer` was to change it, or TANDEM_FABRIC_ANY_PE.
#define TANDEM_FAULT_WAIT 1
/// A barrier took longer than the team's timeout: `peer` did not come.
#define TANDEM_FAULT_BARRIER 2
/// An access past the end of what is mapped; only builds with TANDEM_FABRIC_CHECKS look for it. `peer` is the target.
#define TANDEM_FAULT_BOUNDS 3

/// A user's memory that was registered: one buffer on each PE of the world, all of one length.
typedef struct tandem_region {
    uint64_t bytes;
    /// By PE of the world: the buffer's address, the same for every PE; 0 where there is none.
    uint64_t at[32];
} tandem_region;

/// What went wrong. There is one record a PE of a team, in page-locked host memory; it is written once.
typedef struct tandem_fault {
    /// TANDEM_FAULT_*. Written last (release, system scope), so that who reads it first (acquire) may read the rest.
    uint32_t what;
    /// The PE of the team that waited or accessed.
    uint32_t waiter;
    /// The PE of the team that it waited for or accessed.
    uint32_t peer;
    uint32_t pad;
    /// The address that it waited for, in its own window, or that it accessed at the peer.
    uint64_t place;
    /// The value that the word had last; for a barrier the round of the peer.
    uint64_t seen;
    /// The value that was wanted; for TANDEM_FAULT_BOUNDS the number of bytes.
    uint64_t wanted;
} tandem_fault;

/// What each PE of a team keeps in its window, `tandem_team.state` bytes from the window's start. All zero at first.
typedef struct tandem_team_state {
    /// 0, then 1: who changes it writes this PE's tandem_fault. An atomic of this PE's device alone.
    uint32_t faulted;
    /// 0 while all is well. After a fault, every PE's word is set by the PE that had it; whoever waits looks at its own
    /// from time to time and then returns at once.
    uint32_t poisoned;
    /// Barriers that this PE has begun.
    uint64_t round;
    /// By PE of the team: the barriers that it has told this PE to have reached. Written by that PE alone.
    uint64_t arrived[32];
    /// Blocks of this PE's kernel that have reached a barrier of whole grids.
    uint64_t grid_arrived;
    /// Barriers of whole grids that this PE has left.
    uint64_t grid_round;
} tandem_team_state;

/// A team as one of its PEs sees it. Kernels get it by value.
typedef struct tandem_team {
    /// Address of the window of the world's PE 0.
    uint64_t heap;
    /// Bytes from one PE's window to the next.
    uint64_t window;
    /// Bytes of each window that are mapped, from its start.
    uint64_t mapped;
    /// Where in the window the team's tandem_team_state is.
    uint64_t state;
    /// A wait that takes longer ends in a fault.
    uint64_t timeout_ns;
    /// The record of this PE.
    tandem_fault* fault;
    /// Looked at only for an address outside the windows. In this PE's memory.
    const tandem_region* regions;
    uint32_t region_count;
    /// This PE, and how many there are, in the team.
    uint32_t me;
    uint32_t size;
    uint32_t pad;
    /// By PE of the team: which PE of the world it is.
    uint8_t world[32];
} tandem_team;

/// A word that is changed where it lies.
typedef struct tandem_fabric_atomic_args {
    /// Its address.
    uint64_t word;
    /// The operand.
    uint64_t value;
    /// What TANDEM_AMO_COMPARE_SWAP wants to find.
    uint64_t expected;
    /// Where a word of the same kind gets the value from before; 0 for nowhere.
    uint64_t fetched;
    /// TANDEM_AMO_*.
    int32_t op;
    /// TANDEM_WORD_*.
    int32_t kind;
} tandem_fabric_atomic_args;

/// Waits until one word, or every word, or at least one word of an array compares as wanted.
typedef struct tandem_fabric_wait_args {
    /// Address of the first, in the waiter's own memory.
    uint64_t words;
    uint64_t count;
    /// Right-hand side of the comparison.
    uint64_t wanted;
    /// Where what was found is written, as uint64_t: for TANDEM_WAIT_ANY the index of one that does, for
    /// TANDEM_WAIT_SOME their number and then their indices. 0 for nowhere.
    uint64_t found;
    /// TANDEM_WAIT_*.
    int32_t mode;
    /// TANDEM_CMP_*.
    int32_t compare;
    /// TANDEM_WORD_*.
    int32_t kind;
    /// The PE of the team that is to change them, for the fault, or TANDEM_FABRIC_ANY_PE.
    uint32_t from;
} tandem_fabric_wait_args;

#define TANDEM_WAIT_ALL 0
#define TANDEM_WAIT_ANY 1
#define TANDEM_WAIT_SOME 2

/// `count` elements, each `to_stride` or `from_stride` elements after the one before.
typedef struct tandem_fabric_strided_args {
    uint64_t to;
    uint64_t from;
    uint64_t to_stride;
    uint64_t from_stride;
    uint64_t count;
    /// Bytes of an element.
    uint64_t element;
} tandem_fabric_strided_args;

/// Stores up to 16 bytes that travel with the launch.
typedef struct tandem_fabric_store_args {
    uint64_t to;
    uint64_t value[2];
    uint64_t bytes;
} tandem_fabric_store_args;

/// On-stream forms of the one-sided operations. Addresses are those of the target, as every PE has them; all were
/// checked. What the stream did before is visible to everyone who sees the effect of an atomic.
int32_t tandem_fabric_atomic(const tandem_fabric_atomic_args* args, tandem_stream stream);
/// Ends when the words compare as wanted (acquire), or when the team's timeout has passed: then the fault is written.
int32_t tandem_fabric_wait(const tandem_team* team, const tandem_fabric_wait_args* args, tandem_stream stream);
/// Ends when every PE of the team has got to its barrier of the same number, or with a fault.
int32_t tandem_fabric_barrier(const tandem_team* team, tandem_stream stream);
int32_t tandem_fabric_strided(const tandem_fabric_strided_args* args, tandem_stream stream);
int32_t tandem_fabric_store(const tandem_fabric_store_args* args, tandem_stream stream);
/// Loads the kernels of the functions above on the current device: the runtime would else load each when it is first
/// launched, and that may wait for a kernel that waits for this one.
int32_t tandem_fabric_preload(uint64_t* kernels);

#ifdef __cplusplus
}
#endif

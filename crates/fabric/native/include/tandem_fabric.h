/// Teams of PEs: what a kernel needs to know of one, and the launchers of the fabric.
///
/// This header is the truth: `cargo xtask bindgen` makes src/ffi.rs and native/src/layout.cu from it, as from
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
#define TANDEM_FABRIC_MAX_PES 32
/// Regions that can be registered with a world at a time.
#define TANDEM_FABRIC_MAX_REGIONS 64
/// Allocations begin at multiples of so many bytes of a window.
#define TANDEM_FABRIC_ALIGN 512
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
/// An access past the end of an allocation, which only builds with TANDEM_FABRIC_CHECKS look for, or to what is no symmetric
/// memory. `peer` is the target.
#define TANDEM_FAULT_BOUNDS 3
/// A persistent kernel (tandem_exec_resident) did not do a command in time: `peer` is its PE. The host records it.
#define TANDEM_FAULT_COMMAND 4
/// A copy between host memory and a PE, or by copy engines, was not done in time: `peer` did not come. The host records it.
#define TANDEM_FAULT_COPY 5
/// The process of `peer` has ended while the team was open. The host records it.
#define TANDEM_FAULT_PROCESS 6
/// `peer` did not come to a collective inside kernels within the team's timeout.
#define TANDEM_FAULT_COLLECTIVE 7
/// A PE began a collective inside kernels while another one of the same team was under way on it: `waiter` and `peer` are that PE.
#define TANDEM_FAULT_OVERLAP 8
/// An operation inside a kernel on memory of `peer`, which its PE does not reach (tandem_team.apart), or a barrier or collective with it.
#define TANDEM_FAULT_APART 9

/// Where behind the start of a team's tandem_team_state its boxes are.
#define TANDEM_FABRIC_BOXES 512
/// Messages of 16 bytes in a box, each with 8 bytes of data. A PE of a team has two boxes for each PE of the team: those of rounds with even
/// numbers in the order of the PEs, then those of the odd ones.
#define TANDEM_FABRIC_BOX 32

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
    /// The value that the word had last; for a barrier or a collective the round of the peer, for a command the last that the peer has done;
    /// for a copy how many milliseconds it was waited for.
    uint64_t seen;
    /// The value that was wanted; for TANDEM_FAULT_BOUNDS the number of bytes, for a command its number, for a copy its bytes.
    uint64_t wanted;
} tandem_fault;

/// What each PE of a team keeps in its window, `tandem_team.state` bytes from the window's start. All zero at first.
typedef struct tandem_team_state {
    /// 0, then 1: who changes it writes this PE's tandem_fault. An atomic of this PE's device alone.
    uint32_t faulted;
    /// 0 while all is well. After a fault, the word of every PE that it reaches is set by the PE that had it; whoever waits
    /// looks at its own from time to time and then returns at once.
    uint32_t poisoned;
    /// Barriers that this PE has begun.
    uint64_t round;
    /// By PE of the team: the barriers that it has told this PE to have reached. Written by that PE alone.
    uint64_t arrived[32];
    /// Blocks of this PE's kernel that have reached a barrier of whole grids.
    uint64_t grid_arrived;
    /// Barriers of whole grids that this PE has left.
    uint64_t grid_round;
    /// By bit, the PEs of the team whose processes have left: all that they did is done, and no more will come. Whoever waits for one of
    /// them looks at this from time to time.
    uint32_t left;
    uint32_t pad;
    /// Collectives inside kernels that this PE has begun: their numbers are the rounds of the boxes.
    uint64_t collectives;
    /// Those that it has left.
    uint64_t collectives_left;
} tandem_team_state;

/// A team as one of its PEs sees it. Kernels get it by value.
typedef struct tandem_team {
    /// Address of the window of the world's PE 0.
    uint64_t heap;
    /// Bytes from one PE's window to the next.
    uint64_t window;
    /// Address of this PE's window.
    uint64_t own;
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
    /// By TANDEM_FABRIC_ALIGN bytes of a window: the offset at which the allocation ends that they belong to, 0 where there is
    /// none. In this PE's memory. Null where the host does not keep it; only builds with TANDEM_FABRIC_CHECKS look.
    const uint64_t* ends;
    uint32_t region_count;
    /// This PE, and how many there are, in the team.
    uint32_t me;
    uint32_t size;
    /// A bit for each PE of the team whose memory this PE does not reach: an access by a kernel of this one is a fault.
    uint32_t apart;
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

/// A global array as a PE sees it: its elements are dealt to the PEs of the team in blocks.
typedef struct tandem_array {
    /// Address of this PE's part.
    uint64_t part;
    /// Elements of the whole array.
    uint64_t length;
    /// Elements of a block, at least 1.
    uint64_t block;
} tandem_array;

/// This PE's part of `to` becomes what `from` has at the same indices, element by element. `element` is its bytes.
int32_t tandem_array_assign(const tandem_team* team, const tandem_array* to, const tandem_array* from, uint64_t element,
                            tandem_stream stream);

/// Who does an operation of the device API.
#define TANDEM_SCOPE_THREAD 0
#define TANDEM_SCOPE_WARP 1
#define TANDEM_SCOPE_BLOCK 2

/// Transfers for measuring.
typedef struct tandem_bench_transfer_args {
    /// Addresses of this PE, as those of the device API. They and `bytes` are multiples of 16.
    uint64_t to;
    uint64_t from;
    /// Of a round. Rounds walk through `room` bytes, a multiple of it, again and again: a cache that has what a round has
    /// moved is of no use to the next.
    uint64_t bytes;
    uint64_t room;
    /// How often.
    uint32_t rounds;
    uint32_t blocks;
    /// Of a block: a multiple of 32, at most 1024.
    uint32_t threads;
    uint32_t peer;
    int32_t is_get;
    /// TANDEM_SCOPE_*: who of each block moves the block's part.
    int32_t scope;
} tandem_bench_transfer_args;

/// `rounds` times the blocks put (or get) `bytes` together, a part each; at the end each block is quiet.
int32_t tandem_bench_transfer(const tandem_team* team, const tandem_bench_transfer_args* args, tandem_stream stream);

/// A signal that is set, relaxed.
#define TANDEM_PINGPONG_SIGNAL 0
/// An atomic increment, relaxed.
#define TANDEM_PINGPONG_ATOMIC 1
/// Eight bytes that travel with their signal.
#define TANDEM_PINGPONG_MESSAGE 2
/// Eight bytes by put_signal.
#define TANDEM_PINGPONG_PUT_SIGNAL 3

/// Arguments of the kernels of tandem_bench_pingpong.
typedef struct tandem_bench_pingpong_args {
    /// 16 bytes, aligned to 16 and 0 at first, at the same place of every PE.
    uint64_t word;
    /// What is sent: 16 bytes, aligned to 16 and 0 at first, at the same place of every PE.
    uint64_t data;
    /// Address of a uint64_t: how many values were wrong.
    uint64_t wrong;
    /// Round trips.
    uint64_t rounds;
} tandem_bench_pingpong_args;

/// A kernel of one thread, for a collective launch: PEs 0 and 1 send each other a word in turn (TANDEM_PINGPONG_*).
int32_t tandem_bench_pingpong(int32_t form, tandem_kernel* kernel);

/// Collectives inside kernels, of 8 bytes of each PE.
#define TANDEM_INSIDE_BARRIER 0
#define TANDEM_INSIDE_BROADCAST 1
#define TANDEM_INSIDE_ALL_REDUCE 2
#define TANDEM_INSIDE_ALL_GATHER 3
#define TANDEM_INSIDE_ALL_TO_ALL 4

/// Arguments of the kernels of tandem_bench_inside.
typedef struct tandem_bench_inside_args {
    /// A uint64_t for each PE of the team, at the same place of every PE; and as many that get the result.
    uint64_t from;
    uint64_t to;
    /// Address of a uint64_t: how many values were wrong, and 2^63 for a collective that failed.
    uint64_t wrong;
    uint64_t rounds;
} tandem_bench_inside_args;

/// A kernel of one block, for a collective launch, that does a collective (TANDEM_INSIDE_*) again and again by one thread, warp or
/// block (TANDEM_SCOPE_*), and looks at all that it brings.
int32_t tandem_bench_inside(int32_t form, int32_t scope, tandem_kernel* kernel);

/// Kinds of numbers that are combined, and TANDEM_EXEC_BYTES for what is only copied.
#define TANDEM_EXEC_U32 0
#define TANDEM_EXEC_I32 1
#define TANDEM_EXEC_U64 2
#define TANDEM_EXEC_I64 3
#define TANDEM_EXEC_F32 4
#define TANDEM_EXEC_F64 5
#define TANDEM_EXEC_BYTES 6
/// Kinds that no persistent kernel combines.
#define TANDEM_EXEC_U8 7
#define TANDEM_EXEC_I8 8
#define TANDEM_EXEC_U16 9
#define TANDEM_EXEC_I16 10
#define TANDEM_EXEC_F16 11
#define TANDEM_EXEC_BF16 12
/// The operation that combines them.
#define TANDEM_EXEC_SUM 0
#define TANDEM_EXEC_MIN 1
#define TANDEM_EXEC_MAX 2
/// Operations that no persistent kernel knows; the last three are on integers.
#define TANDEM_EXEC_PRODUCT 3
#define TANDEM_EXEC_AND 4
#define TANDEM_EXEC_OR 5
#define TANDEM_EXEC_XOR 6

/// An endpoint of a transfer: where a source or a target lies. Addresses are those that every PE has.
typedef struct tandem_exec_endpoint {
    /// The first chunk, or the ring.
    uint64_t at;
    /// Address of the counter of chunks produced: who reads waits for it, who writes raises it. 0 for none.
    uint64_t produced;
    /// Of a ring, address of the counter of chunks consumed: who writes waits for it, who reads raises it. 0 for no ring.
    uint64_t consumed;
    /// The PE of the team at the other end of the channel.
    uint64_t peer;
} tandem_exec_endpoint;

/// A row of a PE's table; one block does it.
typedef struct tandem_exec_transfer {
    uint64_t bytes;
    /// A bit for each PE of the team whose memory is touched.
    uint64_t touches;
    /// Bytes of a chunk, and chunks of a ring.
    uint64_t chunk;
    uint64_t slots;
    /// Of the endpoints: where this row's begin; sources, then targets, then those whose `produced` alone is raised.
    uint32_t first;
    uint32_t sources;
    uint32_t targets;
    uint32_t notifies;
} tandem_exec_transfer;

/// What a PE does in a collective. The counters only grow: in round r (from 0) chunk c of a channel of n is number r * n + c.
typedef struct tandem_exec_table {
    /// Addresses in this PE's memory: of tandem_exec_transfer, of tandem_exec_endpoint, of the channels that must be full at the
    /// end (tandem_exec_endpoint, with the chunks of each in `at`), of one uint64_t for each block, which counts rounds.
    uint64_t transfers;
    uint64_t endpoints;
    uint64_t awaited;
    uint64_t rounds;
    /// 32 words of this PE, one for each PE of the team, which says there which round it has begun.
    uint64_t ready;
    /// A bit for each PE that touches this one's memory.
    uint64_t touched_by;
    uint32_t transfer_count;
    uint32_t awaited_count;
    /// TANDEM_EXEC_*.
    int32_t kind;
    int32_t op;
} tandem_exec_table;

/// Words of 64 bits of a worker's rows and endpoints at the most, for tandem_exec_messages.
#define TANDEM_EXEC_MESSAGE_WORDS 896

/// What a PE does in a collective of small data: workers that all have as many rows and endpoints.
typedef struct tandem_exec_messages {
    /// Address of `worker_count` times `words` words of 64 bits: a worker's rows (tandem_exec_transfer; `first` counts the worker's endpoints,
    /// `chunk` is the bytes of a ring's slot) and then its endpoints. One with `consumed` is a ring of messages, with two slots.
    uint64_t workers;
    /// Address of a uint64_t for each worker, which counts rounds.
    uint64_t rounds;
    uint32_t worker_count;
    uint32_t words;
    /// Of a worker.
    uint32_t rows;
    /// TANDEM_EXEC_*.
    int32_t kind;
    int32_t op;
    uint32_t pad;
} tandem_exec_messages;

/// One combination without waits: `sources` are combined, every target gets the result. 16 addresses in all.
typedef struct tandem_exec_move {
    uint64_t at[16];
    uint64_t bytes;
    uint32_t sources;
    uint32_t targets;
    /// TANDEM_EXEC_*.
    int32_t kind;
    int32_t op;
} tandem_exec_move;

/// Does a table of this PE. Every PE of the collective launches its own; each ends when all that it gets is there.
int32_t tandem_exec_fused(const tandem_team* team, const tandem_exec_table* table, tandem_stream stream);
/// Loads all kernels of the executor on the current device; `blocks` is how many blocks it holds at once of whichever of those that wait
/// for each other it holds fewest of.
int32_t tandem_exec_limit(uint32_t* blocks);
/// Does the workers of this PE. Every PE of the collective launches its own; each ends when all that it gets is there.
int32_t tandem_exec_messages_run(const tandem_team* team, const tandem_exec_messages* args, tandem_stream stream);
/// Does one combination.
int32_t tandem_exec_combine(const tandem_exec_move* move, tandem_stream stream);

/// Blocks of the resident kernel that do something; one more looks for commands.
#define TANDEM_EXEC_RESIDENT_BLOCKS 80
/// Words of a command. Each has 32 bits of data below its number, so that one store brings both: in this order and as halves, low
/// ones first, bytes, sources | targets << 8 | kind << 16 | op << 24 | blocks << 32 | staging blocks << 48 | form << 56; then, if part of
/// the copy is staged in host memory, its bytes | its number << 32, the address of its ring and that of its flags; of a moved or a dealt one
/// its step; and the addresses of sources and targets.
/// A command without blocks ends the kernel.
#define TANDEM_EXEC_COMMAND_WORDS 32
/// Warps that poll for commands, each a copy of its own.
#define TANDEM_EXEC_POLLERS 3
/// Words of memory of its device that a resident kernel needs: the command as it is passed on, and how many blocks have done what they had to.
#define TANDEM_EXEC_SCRATCH_WORDS 48
/// A number that no command has, besides 0.
#define TANDEM_EXEC_COMMAND_END 2147483647
/// The form of a command. Plain. Or with a part of a copy that is staged in host memory: the PE sends the bytes behind those of the command from
/// its source, and keeps them at its first target or not; or it receives them at its only target. Moved: the targets are not named, each is
/// a source's address plus the step. Dealt: there is one source address, and target t gets the bytes that are t steps behind it; blocks
/// are a multiple of the targets.
#define TANDEM_EXEC_PLAIN 0
#define TANDEM_EXEC_STAGED_SEND 1
#define TANDEM_EXEC_STAGED_SEND_AND_KEEP 2
#define TANDEM_EXEC_STAGED_RECEIVE 3
#define TANDEM_EXEC_MOVED 4
#define TANDEM_EXEC_DEALT 5

/// The number of the last command that a block has done, and in the upper 32 bits the nanoseconds that it took for it, by the device's clock. Each is
/// in a line of its own: what two blocks write to one line meets there.
typedef struct tandem_exec_done {
    uint64_t number;
    uint64_t pad[7];
} tandem_exec_done;

/// What the host and a resident kernel say to each other, in page-locked host memory.
typedef struct tandem_exec_mailbox {
    /// Written by the host: the command for each of TANDEM_EXEC_POLLERS.
    uint64_t command[96];
    /// Each written by one block.
    tandem_exec_done done[80];
    /// Written last by a kernel that ends: how many have ended.
    uint64_t ended;
    uint64_t pad[7];
} tandem_exec_mailbox;

/// Launches the kernel that does the commands of a mailbox until none has come for `linger_ns`. `scratch` is memory of the device of
/// TANDEM_EXEC_SCRATCH_WORDS words that only this kernel uses; `last` the number of the last command that was done or 0, and `ended` what the mailbox's
/// is to become. A wait on the way through host memory is given up after `timeout_ns`.
int32_t tandem_exec_resident(tandem_exec_mailbox* mailbox, uint8_t* scratch, uint32_t last, uint64_t ended,
                             uint64_t linger_ns, uint64_t timeout_ns, tandem_stream stream);

#ifdef __cplusplus
}
#endif

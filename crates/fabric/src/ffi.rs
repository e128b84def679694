//! The declarations of tandem_fabric.h, made by `cargo xtask bindgen`. Not to be edited.
#![allow(missing_docs, non_camel_case_types, dead_code, unreachable_pub, clippy::missing_safety_doc)]

pub use tandem_cuda::ffi::tandem_kernel;
pub use tandem_cuda::ffi::tandem_stream;

/// PEs that a world can have.
pub const TANDEM_FABRIC_MAX_PES: i32 = 32;

/// Regions that can be registered with a world at a time.
pub const TANDEM_FABRIC_MAX_REGIONS: i32 = 64;

/// Allocations begin at multiples of so many bytes of a window.
pub const TANDEM_FABRIC_ALIGN: i32 = 512;

/// Stands for a PE that is not known: who was to change the word that a wait is for.
pub const TANDEM_FABRIC_ANY_PE: i32 = 255;

/// Comparisons of a wait: the word on the left, the wanted value on the right.
pub const TANDEM_CMP_EQ: i32 = 0;

pub const TANDEM_CMP_NE: i32 = 1;

pub const TANDEM_CMP_GT: i32 = 2;

pub const TANDEM_CMP_GE: i32 = 3;

pub const TANDEM_CMP_LT: i32 = 4;

pub const TANDEM_CMP_LE: i32 = 5;

/// Operations of signals and atomics. The first two are the operations of a signal.
pub const TANDEM_AMO_SET: i32 = 0;

pub const TANDEM_AMO_ADD: i32 = 1;

pub const TANDEM_AMO_INC: i32 = 2;

pub const TANDEM_AMO_AND: i32 = 3;

pub const TANDEM_AMO_OR: i32 = 4;

pub const TANDEM_AMO_XOR: i32 = 5;

pub const TANDEM_AMO_COMPARE_SWAP: i32 = 6;

/// Fetch without a change.
pub const TANDEM_AMO_FETCH: i32 = 7;

/// Kinds of words, for comparisons and widths.
pub const TANDEM_WORD_U32: i32 = 0;

pub const TANDEM_WORD_I32: i32 = 1;

pub const TANDEM_WORD_U64: i32 = 2;

pub const TANDEM_WORD_I64: i32 = 3;

/// Nothing has gone wrong.
pub const TANDEM_FAULT_NONE: i32 = 0;

/// A wait for a word took longer than the team's timeout. `peer` was to change it, or TANDEM_FABRIC_ANY_PE.
pub const TANDEM_FAULT_WAIT: i32 = 1;

/// A barrier took longer than the team's timeout: `peer` did not come.
pub const TANDEM_FAULT_BARRIER: i32 = 2;

/// An access past the end of an allocation, which only builds with TANDEM_FABRIC_CHECKS look for, or to what is no symmetric
/// memory. `peer` is the target.
pub const TANDEM_FAULT_BOUNDS: i32 = 3;

/// A persistent kernel (tandem_exec_resident) did not do a command in time: `peer` is its PE. The host records it.
pub const TANDEM_FAULT_COMMAND: i32 = 4;

/// A copy between host memory and a PE, or by copy engines, was not done in time: `peer` did not come. The host records it.
pub const TANDEM_FAULT_COPY: i32 = 5;

/// The process of `peer` has ended while the team was open. The host records it.
pub const TANDEM_FAULT_PROCESS: i32 = 6;

/// `peer` did not come to a collective inside kernels within the team's timeout.
pub const TANDEM_FAULT_COLLECTIVE: i32 = 7;

/// A PE began a collective inside kernels while another one of the same team was under way on it: `waiter` and `peer` are that PE.
pub const TANDEM_FAULT_OVERLAP: i32 = 8;

/// An operation inside a kernel on memory of `peer`, which its PE does not reach (tandem_team.apart), or a barrier or collective with it.
pub const TANDEM_FAULT_APART: i32 = 9;

/// Where behind the start of a team's tandem_team_state its boxes are.
pub const TANDEM_FABRIC_BOXES: i32 = 512;

/// Messages of 16 bytes in a box, each with 8 bytes of data. A PE of a team has two boxes for each PE of the team: those of rounds with even
/// numbers in the order of the PEs, then those of the odd ones.
pub const TANDEM_FABRIC_BOX: i32 = 32;

/// A user's memory that was registered: one buffer on each PE of the world, all of one length.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_region {
    pub bytes: u64,
    /// By PE of the world: the buffer's address, the same for every PE; 0 where there is none.
    pub at: [u64; 32],
}

/// What went wrong. There is one record a PE of a team, in page-locked host memory; it is written once.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_fault {
    /// TANDEM_FAULT_*. Written last (release, system scope), so that who reads it first (acquire) may read the rest.
    pub what: u32,
    /// The PE of the team that waited or accessed.
    pub waiter: u32,
    /// The PE of the team that it waited for or accessed.
    pub peer: u32,
    pub pad: u32,
    /// The address that it waited for, in its own window, or that it accessed at the peer.
    pub place: u64,
    /// The value that the word had last; for a barrier or a collective the round of the peer, for a command the last that the peer has done;
    /// for a copy how many milliseconds it was waited for.
    pub seen: u64,
    /// The value that was wanted; for TANDEM_FAULT_BOUNDS the number of bytes, for a command its number, for a copy its bytes.
    pub wanted: u64,
}

/// What each PE of a team keeps in its window, `tandem_team.state` bytes from the window's start. All zero at first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_team_state {
    /// 0, then 1: who changes it writes this PE's tandem_fault. An atomic of this PE's device alone.
    pub faulted: u32,
    /// 0 while all is well. After a fault, the word of every PE that it reaches is set by the PE that had it; whoever waits
    /// looks at its own from time to time and then returns at once.
    pub poisoned: u32,
    /// Barriers that this PE has begun.
    pub round: u64,
    /// By PE of the team: the barriers that it has told this PE to have reached. Written by that PE alone.
    pub arrived: [u64; 32],
    /// Blocks of this PE's kernel that have reached a barrier of whole grids.
    pub grid_arrived: u64,
    /// Barriers of whole grids that this PE has left.
    pub grid_round: u64,
    /// By bit, the PEs of the team whose processes have left: all that they did is done, and no more will come. Whoever waits for one of
    /// them looks at this from time to time.
    pub left: u32,
    pub pad: u32,
    /// Collectives inside kernels that this PE has begun: their numbers are the rounds of the boxes.
    pub collectives: u64,
    /// Those that it has left.
    pub collectives_left: u64,
}

/// A team as one of its PEs sees it. Kernels get it by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_team {
    /// Address of the window of the world's PE 0.
    pub heap: u64,
    /// Bytes from one PE's window to the next.
    pub window: u64,
    /// Address of this PE's window.
    pub own: u64,
    /// Bytes of each window that are mapped, from its start.
    pub mapped: u64,
    /// Where in the window the team's tandem_team_state is.
    pub state: u64,
    /// A wait that takes longer ends in a fault.
    pub timeout_ns: u64,
    /// The record of this PE.
    pub fault: *mut tandem_fault,
    /// Looked at only for an address outside the windows. In this PE's memory.
    pub regions: *const tandem_region,
    /// By TANDEM_FABRIC_ALIGN bytes of a window: the offset at which the allocation ends that they belong to, 0 where there is
    /// none. In this PE's memory. Null where the host does not keep it; only builds with TANDEM_FABRIC_CHECKS look.
    pub ends: *const u64,
    pub region_count: u32,
    /// This PE, and how many there are, in the team.
    pub me: u32,
    pub size: u32,
    /// A bit for each PE of the team whose memory this PE does not reach: an access by a kernel of this one is a fault.
    pub apart: u32,
    /// By PE of the team: which PE of the world it is.
    pub world: [u8; 32],
}

/// A word that is changed where it lies.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_fabric_atomic_args {
    /// Its address.
    pub word: u64,
    /// The operand.
    pub value: u64,
    /// What TANDEM_AMO_COMPARE_SWAP wants to find.
    pub expected: u64,
    /// Where a word of the same kind gets the value from before; 0 for nowhere.
    pub fetched: u64,
    /// TANDEM_AMO_*.
    pub op: i32,
    /// TANDEM_WORD_*.
    pub kind: i32,
}

/// Waits until one word, or every word, or at least one word of an array compares as wanted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_fabric_wait_args {
    /// Address of the first, in the waiter's own memory.
    pub words: u64,
    pub count: u64,
    /// Right-hand side of the comparison.
    pub wanted: u64,
    /// Where what was found is written, as uint64_t: for TANDEM_WAIT_ANY the index of one that does, for
    /// TANDEM_WAIT_SOME their number and then their indices. 0 for nowhere.
    pub found: u64,
    /// TANDEM_WAIT_*.
    pub mode: i32,
    /// TANDEM_CMP_*.
    pub compare: i32,
    /// TANDEM_WORD_*.
    pub kind: i32,
    /// The PE of the team that is to change them, for the fault, or TANDEM_FABRIC_ANY_PE.
    pub from: u32,
}

pub const TANDEM_WAIT_ALL: i32 = 0;

pub const TANDEM_WAIT_ANY: i32 = 1;

pub const TANDEM_WAIT_SOME: i32 = 2;

/// `count` elements, each `to_stride` or `from_stride` elements after the one before.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_fabric_strided_args {
    pub to: u64,
    pub from: u64,
    pub to_stride: u64,
    pub from_stride: u64,
    pub count: u64,
    /// Bytes of an element.
    pub element: u64,
}

/// Stores up to 16 bytes that travel with the launch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_fabric_store_args {
    pub to: u64,
    pub value: [u64; 2],
    pub bytes: u64,
}

/// A global array as a PE sees it: its elements are dealt to the PEs of the team in blocks.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_array {
    /// Address of this PE's part.
    pub part: u64,
    /// Elements of the whole array.
    pub length: u64,
    /// Elements of a block, at least 1.
    pub block: u64,
}

/// Who does an operation of the device API.
pub const TANDEM_SCOPE_THREAD: i32 = 0;

pub const TANDEM_SCOPE_WARP: i32 = 1;

pub const TANDEM_SCOPE_BLOCK: i32 = 2;

/// Transfers for measuring.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_bench_transfer_args {
    /// Addresses of this PE, as those of the device API. They and `bytes` are multiples of 16.
    pub to: u64,
    pub from: u64,
    /// Of a round. Rounds walk through `room` bytes, a multiple of it, again and again: a cache that has what a round has
    /// moved is of no use to the next.
    pub bytes: u64,
    pub room: u64,
    /// How often.
    pub rounds: u32,
    pub blocks: u32,
    /// Of a block: a multiple of 32, at most 1024.
    pub threads: u32,
    pub peer: u32,
    pub is_get: i32,
    /// TANDEM_SCOPE_*: who of each block moves the block's part.
    pub scope: i32,
}

/// A signal that is set, relaxed.
pub const TANDEM_PINGPONG_SIGNAL: i32 = 0;

/// An atomic increment, relaxed.
pub const TANDEM_PINGPONG_ATOMIC: i32 = 1;

/// Eight bytes that travel with their signal.
pub const TANDEM_PINGPONG_MESSAGE: i32 = 2;

/// Eight bytes by put_signal.
pub const TANDEM_PINGPONG_PUT_SIGNAL: i32 = 3;

/// Arguments of the kernels of tandem_bench_pingpong.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_bench_pingpong_args {
    /// 16 bytes, aligned to 16 and 0 at first, at the same place of every PE.
    pub word: u64,
    /// What is sent: 16 bytes, aligned to 16 and 0 at first, at the same place of every PE.
    pub data: u64,
    /// Address of a uint64_t: how many values were wrong.
    pub wrong: u64,
    /// Round trips.
    pub rounds: u64,
}

/// Collectives inside kernels, of 8 bytes of each PE.
pub const TANDEM_INSIDE_BARRIER: i32 = 0;

pub const TANDEM_INSIDE_BROADCAST: i32 = 1;

pub const TANDEM_INSIDE_ALL_REDUCE: i32 = 2;

pub const TANDEM_INSIDE_ALL_GATHER: i32 = 3;

pub const TANDEM_INSIDE_ALL_TO_ALL: i32 = 4;

/// Arguments of the kernels of tandem_bench_inside.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_bench_inside_args {
    /// A uint64_t for each PE of the team, at the same place of every PE; and as many that get the result.
    pub from: u64,
    pub to: u64,
    /// Address of a uint64_t: how many values were wrong, and 2^63 for a collective that failed.
    pub wrong: u64,
    pub rounds: u64,
}

/// Kinds of numbers that are combined, and TANDEM_EXEC_BYTES for what is only copied.
pub const TANDEM_EXEC_U32: i32 = 0;

pub const TANDEM_EXEC_I32: i32 = 1;

pub const TANDEM_EXEC_U64: i32 = 2;

pub const TANDEM_EXEC_I64: i32 = 3;

pub const TANDEM_EXEC_F32: i32 = 4;

pub const TANDEM_EXEC_F64: i32 = 5;

pub const TANDEM_EXEC_BYTES: i32 = 6;

/// Kinds that no persistent kernel combines.
pub const TANDEM_EXEC_U8: i32 = 7;

pub const TANDEM_EXEC_I8: i32 = 8;

pub const TANDEM_EXEC_U16: i32 = 9;

pub const TANDEM_EXEC_I16: i32 = 10;

pub const TANDEM_EXEC_F16: i32 = 11;

pub const TANDEM_EXEC_BF16: i32 = 12;

/// The operation that combines them.
pub const TANDEM_EXEC_SUM: i32 = 0;

pub const TANDEM_EXEC_MIN: i32 = 1;

pub const TANDEM_EXEC_MAX: i32 = 2;

/// Operations that no persistent kernel knows; the last three are on integers.
pub const TANDEM_EXEC_PRODUCT: i32 = 3;

pub const TANDEM_EXEC_AND: i32 = 4;

pub const TANDEM_EXEC_OR: i32 = 5;

pub const TANDEM_EXEC_XOR: i32 = 6;

/// An endpoint of a transfer: where a source or a target lies. Addresses are those that every PE has.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_exec_endpoint {
    /// The first chunk, or the ring.
    pub at: u64,
    /// Address of the counter of chunks produced: who reads waits for it, who writes raises it. 0 for none.
    pub produced: u64,
    /// Of a ring, address of the counter of chunks consumed: who writes waits for it, who reads raises it. 0 for no ring.
    pub consumed: u64,
    /// The PE of the team at the other end of the channel.
    pub peer: u64,
}

/// A row of a PE's table; one block does it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_exec_transfer {
    pub bytes: u64,
    /// A bit for each PE of the team whose memory is touched.
    pub touches: u64,
    /// Bytes of a chunk, and chunks of a ring.
    pub chunk: u64,
    pub slots: u64,
    /// Of the endpoints: where this row's begin; sources, then targets, then those whose `produced` alone is raised.
    pub first: u32,
    pub sources: u32,
    pub targets: u32,
    pub notifies: u32,
}

/// What a PE does in a collective. The counters only grow: in round r (from 0) chunk c of a channel of n is number r * n + c.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_exec_table {
    /// Addresses in this PE's memory: of tandem_exec_transfer, of tandem_exec_endpoint, of the channels that must be full at the
    /// end (tandem_exec_endpoint, with the chunks of each in `at`), of one uint64_t for each block, which counts rounds.
    pub transfers: u64,
    pub endpoints: u64,
    pub awaited: u64,
    pub rounds: u64,
    /// 32 words of this PE, one for each PE of the team, which says there which round it has begun.
    pub ready: u64,
    /// A bit for each PE that touches this one's memory.
    pub touched_by: u64,
    pub transfer_count: u32,
    pub awaited_count: u32,
    /// TANDEM_EXEC_*.
    pub kind: i32,
    pub op: i32,
}

/// Words of 64 bits of a worker's rows and endpoints at the most, for tandem_exec_messages.
pub const TANDEM_EXEC_MESSAGE_WORDS: i32 = 896;

/// What a PE does in a collective of small data: workers that all have as many rows and endpoints.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_exec_messages {
    /// Address of `worker_count` times `words` words of 64 bits: a worker's rows (tandem_exec_transfer; `first` counts the worker's endpoints,
    /// `chunk` is the bytes of a ring's slot) and then its endpoints. One with `consumed` is a ring of messages, with two slots.
    pub workers: u64,
    /// Address of a uint64_t for each worker, which counts rounds.
    pub rounds: u64,
    pub worker_count: u32,
    pub words: u32,
    /// Of a worker.
    pub rows: u32,
    /// TANDEM_EXEC_*.
    pub kind: i32,
    pub op: i32,
    pub pad: u32,
}

/// One combination without waits: `sources` are combined, every target gets the result. 16 addresses in all.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_exec_move {
    pub at: [u64; 16],
    pub bytes: u64,
    pub sources: u32,
    pub targets: u32,
    /// TANDEM_EXEC_*.
    pub kind: i32,
    pub op: i32,
}

/// Blocks of the resident kernel that do something; one more looks for commands.
pub const TANDEM_EXEC_RESIDENT_BLOCKS: i32 = 80;

/// Words of a command. Each has 32 bits of data below its number, so that one store brings both: in this order and as halves, low
/// ones first, bytes, sources | targets << 8 | kind << 16 | op << 24 | blocks << 32 | staging blocks << 48 | form << 56; then, if part of
/// the copy is staged in host memory, its bytes | its number << 32, the address of its ring and that of its flags; of a moved or a dealt one
/// its step; and the addresses of sources and targets.
/// A command without blocks ends the kernel.
pub const TANDEM_EXEC_COMMAND_WORDS: i32 = 32;

/// Warps that poll for commands, each a copy of its own.
pub const TANDEM_EXEC_POLLERS: i32 = 3;

/// Words of memory of its device that a resident kernel needs: the command as it is passed on, and how many blocks have done what they had to.
pub const TANDEM_EXEC_SCRATCH_WORDS: i32 = 48;

/// A number that no command has, besides 0.
pub const TANDEM_EXEC_COMMAND_END: i32 = 2147483647;

/// The form of a command. Plain. Or with a part of a copy that is staged in host memory: the PE sends the bytes behind those of the command from
/// its source, and keeps them at its first target or not; or it receives them at its only target. Moved: the targets are not named, each is
/// a source's address plus the step. Dealt: there is one source address, and target t gets the bytes that are t steps behind it; blocks
/// are a multiple of the targets.
pub const TANDEM_EXEC_PLAIN: i32 = 0;

pub const TANDEM_EXEC_STAGED_SEND: i32 = 1;

pub const TANDEM_EXEC_STAGED_SEND_AND_KEEP: i32 = 2;

pub const TANDEM_EXEC_STAGED_RECEIVE: i32 = 3;

pub const TANDEM_EXEC_MOVED: i32 = 4;

pub const TANDEM_EXEC_DEALT: i32 = 5;

/// The number of the last command that a block has done, and in the upper 32 bits the nanoseconds that it took for it, by the device's clock. Each is
/// in a line of its own: what two blocks write to one line meets there.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_exec_done {
    pub number: u64,
    pub pad: [u64; 7],
}

/// What the host and a resident kernel say to each other, in page-locked host memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_exec_mailbox {
    /// Written by the host: the command for each of TANDEM_EXEC_POLLERS.
    pub command: [u64; 96],
    /// Each written by one block.
    pub done: [tandem_exec_done; 80],
    /// Written last by a kernel that ends: how many have ended.
    pub ended: u64,
    pub pad: [u64; 7],
}

tandem_cuda::native! {
    /// On-stream forms of the one-sided operations. Addresses are those of the target, as every PE has them; all were
    /// checked. What the stream did before is visible to everyone who sees the effect of an atomic.
    pub fn tandem_fabric_atomic(args: *const tandem_fabric_atomic_args, stream: tandem_stream) -> i32;
    /// Ends when the words compare as wanted (acquire), or when the team's timeout has passed: then the fault is written.
    pub fn tandem_fabric_wait(
        team: *const tandem_team,
        args: *const tandem_fabric_wait_args,
        stream: tandem_stream,
    ) -> i32;
    /// Ends when every PE of the team has got to its barrier of the same number, or with a fault.
    pub fn tandem_fabric_barrier(team: *const tandem_team, stream: tandem_stream) -> i32;
    pub fn tandem_fabric_strided(args: *const tandem_fabric_strided_args, stream: tandem_stream) -> i32;
    pub fn tandem_fabric_store(args: *const tandem_fabric_store_args, stream: tandem_stream) -> i32;
    /// Loads the kernels of the functions above on the current device: the runtime would else load each when it is first
    /// launched, and that may wait for a kernel that waits for this one.
    pub fn tandem_fabric_preload(kernels: *mut u64) -> i32;
    /// This PE's part of `to` becomes what `from` has at the same indices, element by element. `element` is its bytes.
    pub fn tandem_array_assign(
        team: *const tandem_team,
        to: *const tandem_array,
        from: *const tandem_array,
        element: u64,
        stream: tandem_stream,
    ) -> i32;
    /// `rounds` times the blocks put (or get) `bytes` together, a part each; at the end each block is quiet.
    pub fn tandem_bench_transfer(
        team: *const tandem_team,
        args: *const tandem_bench_transfer_args,
        stream: tandem_stream,
    ) -> i32;
    /// A kernel of one thread, for a collective launch: PEs 0 and 1 send each other a word in turn (TANDEM_PINGPONG_*).
    pub fn tandem_bench_pingpong(form: i32, kernel: *mut tandem_kernel) -> i32;
    /// A kernel of one block, for a collective launch, that does a collective (TANDEM_INSIDE_*) again and again by one thread, warp or
    /// block (TANDEM_SCOPE_*), and looks at all that it brings.
    pub fn tandem_bench_inside(form: i32, scope: i32, kernel: *mut tandem_kernel) -> i32;
    /// Does a table of this PE. Every PE of the collective launches its own; each ends when all that it gets is there.
    pub fn tandem_exec_fused(team: *const tandem_team, table: *const tandem_exec_table, stream: tandem_stream) -> i32;
    /// Loads all kernels of the executor on the current device; `blocks` is how many blocks it holds at once of whichever of those that wait
    /// for each other it holds fewest of.
    pub fn tandem_exec_limit(blocks: *mut u32) -> i32;
    /// Does the workers of this PE. Every PE of the collective launches its own; each ends when all that it gets is there.
    pub fn tandem_exec_messages_run(
        team: *const tandem_team,
        args: *const tandem_exec_messages,
        stream: tandem_stream,
    ) -> i32;
    /// Does one combination.
    pub fn tandem_exec_combine(move_: *const tandem_exec_move, stream: tandem_stream) -> i32;
    /// Launches the kernel that does the commands of a mailbox until none has come for `linger_ns`. `scratch` is memory of the device of
    /// TANDEM_EXEC_SCRATCH_WORDS words that only this kernel uses; `last` the number of the last command that was done or 0, and `ended` what the mailbox's
    /// is to become. A wait on the way through host memory is given up after `timeout_ns`.
    pub fn tandem_exec_resident(
        mailbox: *mut tandem_exec_mailbox,
        scratch: *mut u8,
        last: u32,
        ended: u64,
        linger_ns: u64,
        timeout_ns: u64,
        stream: tandem_stream,
    ) -> i32;
}

const _: () = {
    assert!(size_of::<tandem_region>() == 264);
    assert!(core::mem::offset_of!(tandem_region, bytes) == 0);
    assert!(core::mem::offset_of!(tandem_region, at) == 8);
};

const _: () = {
    assert!(size_of::<tandem_fault>() == 40);
    assert!(core::mem::offset_of!(tandem_fault, what) == 0);
    assert!(core::mem::offset_of!(tandem_fault, waiter) == 4);
    assert!(core::mem::offset_of!(tandem_fault, peer) == 8);
    assert!(core::mem::offset_of!(tandem_fault, pad) == 12);
    assert!(core::mem::offset_of!(tandem_fault, place) == 16);
    assert!(core::mem::offset_of!(tandem_fault, seen) == 24);
    assert!(core::mem::offset_of!(tandem_fault, wanted) == 32);
};

const _: () = {
    assert!(size_of::<tandem_team_state>() == 312);
    assert!(core::mem::offset_of!(tandem_team_state, faulted) == 0);
    assert!(core::mem::offset_of!(tandem_team_state, poisoned) == 4);
    assert!(core::mem::offset_of!(tandem_team_state, round) == 8);
    assert!(core::mem::offset_of!(tandem_team_state, arrived) == 16);
    assert!(core::mem::offset_of!(tandem_team_state, grid_arrived) == 272);
    assert!(core::mem::offset_of!(tandem_team_state, grid_round) == 280);
    assert!(core::mem::offset_of!(tandem_team_state, left) == 288);
    assert!(core::mem::offset_of!(tandem_team_state, pad) == 292);
    assert!(core::mem::offset_of!(tandem_team_state, collectives) == 296);
    assert!(core::mem::offset_of!(tandem_team_state, collectives_left) == 304);
};

const _: () = {
    assert!(size_of::<tandem_team>() == 120);
    assert!(core::mem::offset_of!(tandem_team, heap) == 0);
    assert!(core::mem::offset_of!(tandem_team, window) == 8);
    assert!(core::mem::offset_of!(tandem_team, own) == 16);
    assert!(core::mem::offset_of!(tandem_team, mapped) == 24);
    assert!(core::mem::offset_of!(tandem_team, state) == 32);
    assert!(core::mem::offset_of!(tandem_team, timeout_ns) == 40);
    assert!(core::mem::offset_of!(tandem_team, fault) == 48);
    assert!(core::mem::offset_of!(tandem_team, regions) == 56);
    assert!(core::mem::offset_of!(tandem_team, ends) == 64);
    assert!(core::mem::offset_of!(tandem_team, region_count) == 72);
    assert!(core::mem::offset_of!(tandem_team, me) == 76);
    assert!(core::mem::offset_of!(tandem_team, size) == 80);
    assert!(core::mem::offset_of!(tandem_team, apart) == 84);
    assert!(core::mem::offset_of!(tandem_team, world) == 88);
};

const _: () = {
    assert!(size_of::<tandem_fabric_atomic_args>() == 40);
    assert!(core::mem::offset_of!(tandem_fabric_atomic_args, word) == 0);
    assert!(core::mem::offset_of!(tandem_fabric_atomic_args, value) == 8);
    assert!(core::mem::offset_of!(tandem_fabric_atomic_args, expected) == 16);
    assert!(core::mem::offset_of!(tandem_fabric_atomic_args, fetched) == 24);
    assert!(core::mem::offset_of!(tandem_fabric_atomic_args, op) == 32);
    assert!(core::mem::offset_of!(tandem_fabric_atomic_args, kind) == 36);
};

const _: () = {
    assert!(size_of::<tandem_fabric_wait_args>() == 48);
    assert!(core::mem::offset_of!(tandem_fabric_wait_args, words) == 0);
    assert!(core::mem::offset_of!(tandem_fabric_wait_args, count) == 8);
    assert!(core::mem::offset_of!(tandem_fabric_wait_args, wanted) == 16);
    assert!(core::mem::offset_of!(tandem_fabric_wait_args, found) == 24);
    assert!(core::mem::offset_of!(tandem_fabric_wait_args, mode) == 32);
    assert!(core::mem::offset_of!(tandem_fabric_wait_args, compare) == 36);
    assert!(core::mem::offset_of!(tandem_fabric_wait_args, kind) == 40);
    assert!(core::mem::offset_of!(tandem_fabric_wait_args, from) == 44);
};

const _: () = {
    assert!(size_of::<tandem_fabric_strided_args>() == 48);
    assert!(core::mem::offset_of!(tandem_fabric_strided_args, to) == 0);
    assert!(core::mem::offset_of!(tandem_fabric_strided_args, from) == 8);
    assert!(core::mem::offset_of!(tandem_fabric_strided_args, to_stride) == 16);
    assert!(core::mem::offset_of!(tandem_fabric_strided_args, from_stride) == 24);
    assert!(core::mem::offset_of!(tandem_fabric_strided_args, count) == 32);
    assert!(core::mem::offset_of!(tandem_fabric_strided_args, element) == 40);
};

const _: () = {
    assert!(size_of::<tandem_fabric_store_args>() == 32);
    assert!(core::mem::offset_of!(tandem_fabric_store_args, to) == 0);
    assert!(core::mem::offset_of!(tandem_fabric_store_args, value) == 8);
    assert!(core::mem::offset_of!(tandem_fabric_store_args, bytes) == 24);
};

const _: () = {
    assert!(size_of::<tandem_array>() == 24);
    assert!(core::mem::offset_of!(tandem_array, part) == 0);
    assert!(core::mem::offset_of!(tandem_array, length) == 8);
    assert!(core::mem::offset_of!(tandem_array, block) == 16);
};

const _: () = {
    assert!(size_of::<tandem_bench_transfer_args>() == 56);
    assert!(core::mem::offset_of!(tandem_bench_transfer_args, to) == 0);
    assert!(core::mem::offset_of!(tandem_bench_transfer_args, from) == 8);
    assert!(core::mem::offset_of!(tandem_bench_transfer_args, bytes) == 16);
    assert!(core::mem::offset_of!(tandem_bench_transfer_args, room) == 24);
    assert!(core::mem::offset_of!(tandem_bench_transfer_args, rounds) == 32);
    assert!(core::mem::offset_of!(tandem_bench_transfer_args, blocks) == 36);
    assert!(core::mem::offset_of!(tandem_bench_transfer_args, threads) == 40);
    assert!(core::mem::offset_of!(tandem_bench_transfer_args, peer) == 44);
    assert!(core::mem::offset_of!(tandem_bench_transfer_args, is_get) == 48);
    assert!(core::mem::offset_of!(tandem_bench_transfer_args, scope) == 52);
};

const _: () = {
    assert!(size_of::<tandem_bench_pingpong_args>() == 32);
    assert!(core::mem::offset_of!(tandem_bench_pingpong_args, word) == 0);
    assert!(core::mem::offset_of!(tandem_bench_pingpong_args, data) == 8);
    assert!(core::mem::offset_of!(tandem_bench_pingpong_args, wrong) == 16);
    assert!(core::mem::offset_of!(tandem_bench_pingpong_args, rounds) == 24);
};

const _: () = {
    assert!(size_of::<tandem_bench_inside_args>() == 32);
    assert!(core::mem::offset_of!(tandem_bench_inside_args, from) == 0);
    assert!(core::mem::offset_of!(tandem_bench_inside_args, to) == 8);
    assert!(core::mem::offset_of!(tandem_bench_inside_args, wrong) == 16);
    assert!(core::mem::offset_of!(tandem_bench_inside_args, rounds) == 24);
};

const _: () = {
    assert!(size_of::<tandem_exec_endpoint>() == 32);
    assert!(core::mem::offset_of!(tandem_exec_endpoint, at) == 0);
    assert!(core::mem::offset_of!(tandem_exec_endpoint, produced) == 8);
    assert!(core::mem::offset_of!(tandem_exec_endpoint, consumed) == 16);
    assert!(core::mem::offset_of!(tandem_exec_endpoint, peer) == 24);
};

const _: () = {
    assert!(size_of::<tandem_exec_transfer>() == 48);
    assert!(core::mem::offset_of!(tandem_exec_transfer, bytes) == 0);
    assert!(core::mem::offset_of!(tandem_exec_transfer, touches) == 8);
    assert!(core::mem::offset_of!(tandem_exec_transfer, chunk) == 16);
    assert!(core::mem::offset_of!(tandem_exec_transfer, slots) == 24);
    assert!(core::mem::offset_of!(tandem_exec_transfer, first) == 32);
    assert!(core::mem::offset_of!(tandem_exec_transfer, sources) == 36);
    assert!(core::mem::offset_of!(tandem_exec_transfer, targets) == 40);
    assert!(core::mem::offset_of!(tandem_exec_transfer, notifies) == 44);
};

const _: () = {
    assert!(size_of::<tandem_exec_table>() == 64);
    assert!(core::mem::offset_of!(tandem_exec_table, transfers) == 0);
    assert!(core::mem::offset_of!(tandem_exec_table, endpoints) == 8);
    assert!(core::mem::offset_of!(tandem_exec_table, awaited) == 16);
    assert!(core::mem::offset_of!(tandem_exec_table, rounds) == 24);
    assert!(core::mem::offset_of!(tandem_exec_table, ready) == 32);
    assert!(core::mem::offset_of!(tandem_exec_table, touched_by) == 40);
    assert!(core::mem::offset_of!(tandem_exec_table, transfer_count) == 48);
    assert!(core::mem::offset_of!(tandem_exec_table, awaited_count) == 52);
    assert!(core::mem::offset_of!(tandem_exec_table, kind) == 56);
    assert!(core::mem::offset_of!(tandem_exec_table, op) == 60);
};

const _: () = {
    assert!(size_of::<tandem_exec_messages>() == 40);
    assert!(core::mem::offset_of!(tandem_exec_messages, workers) == 0);
    assert!(core::mem::offset_of!(tandem_exec_messages, rounds) == 8);
    assert!(core::mem::offset_of!(tandem_exec_messages, worker_count) == 16);
    assert!(core::mem::offset_of!(tandem_exec_messages, words) == 20);
    assert!(core::mem::offset_of!(tandem_exec_messages, rows) == 24);
    assert!(core::mem::offset_of!(tandem_exec_messages, kind) == 28);
    assert!(core::mem::offset_of!(tandem_exec_messages, op) == 32);
    assert!(core::mem::offset_of!(tandem_exec_messages, pad) == 36);
};

const _: () = {
    assert!(size_of::<tandem_exec_move>() == 152);
    assert!(core::mem::offset_of!(tandem_exec_move, at) == 0);
    assert!(core::mem::offset_of!(tandem_exec_move, bytes) == 128);
    assert!(core::mem::offset_of!(tandem_exec_move, sources) == 136);
    assert!(core::mem::offset_of!(tandem_exec_move, targets) == 140);
    assert!(core::mem::offset_of!(tandem_exec_move, kind) == 144);
    assert!(core::mem::offset_of!(tandem_exec_move, op) == 148);
};

const _: () = {
    assert!(size_of::<tandem_exec_done>() == 64);
    assert!(core::mem::offset_of!(tandem_exec_done, number) == 0);
    assert!(core::mem::offset_of!(tandem_exec_done, pad) == 8);
};

const _: () = {
    assert!(size_of::<tandem_exec_mailbox>() == 5952);
    assert!(core::mem::offset_of!(tandem_exec_mailbox, command) == 0);
    assert!(core::mem::offset_of!(tandem_exec_mailbox, done) == 768);
    assert!(core::mem::offset_of!(tandem_exec_mailbox, ended) == 5888);
    assert!(core::mem::offset_of!(tandem_exec_mailbox, pad) == 5896);
};

//! The declarations of tandem_fabric_examples.h, made by `cargo xtask bindgen`. Not to be edited.
#![allow(missing_docs, non_camel_case_types, dead_code, unreachable_pub, clippy::missing_safety_doc)]

pub use tandem_cuda::ffi::tandem_kernel;
pub use tandem_cuda::ffi::tandem_stream;
pub use tandem_fabric::ffi::tandem_array;
pub use tandem_fabric::ffi::tandem_team;

/// The stencil of the examples.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_example_stencil_args {
    /// Addresses of two fields of (rows + 2) * columns floats of this PE.
    pub a: u64,
    pub b: u64,
    pub columns: u64,
    pub rows: u64,
    /// Of the loop in one kernel.
    pub steps: u64,
}

/// Arguments of the kernel of tandem_meet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_meet_args {
    /// Address of a uint64_t, 0 at first, that every PE has at the same place.
    pub count: u64,
    /// Address of a uint64_t that counts, for each PE, the times that its count was wrong.
    pub wrong: u64,
    pub rounds: u64,
}

/// Writes of many threads, a fence, a signal: who has the signal sees the writes.
pub const TANDEM_LITMUS_MESSAGE: i32 = 0;

/// Writes of many threads, then put_signal: who has the signal sees the writes.
pub const TANDEM_LITMUS_PUT_SIGNAL: i32 = 1;

/// Each writes the other's word, is quiet, reads its own: one sees the other's write.
pub const TANDEM_LITMUS_BUFFERING: i32 = 2;

/// The first with the signal before the data: who has the signal may see old data.
pub const TANDEM_LITMUS_MESSAGE_EARLY: i32 = 3;

/// The third without being quiet.
pub const TANDEM_LITMUS_BUFFERING_LOUD: i32 = 4;

/// The first with the fence of a block and the waits of a block for one of several words, of which there is one.
pub const TANDEM_LITMUS_MESSAGE_GROUP: i32 = 5;

/// Bytes of a lane's locations.
pub const TANDEM_LITMUS_LANE_BYTES: i32 = 4352;

/// Arguments of the kernels of tandem_litmus.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_litmus_args {
    /// TANDEM_LITMUS_LANE_BYTES for each block, aligned to 128 and 0 at first, at the same place of every PE.
    pub lanes: u64,
    /// A byte for each round of each block: whether this PE saw the other's write (TANDEM_LITMUS_BUFFERING*).
    pub saw: u64,
    /// Two uint64_t, 0 at first: words that were wrong, and rounds that were finished.
    pub wrong: u64,
    pub rounds: u64,
}

pub const TANDEM_SINGLE_PUT: i32 = 0;

pub const TANDEM_SINGLE_GET: i32 = 1;

pub const TANDEM_SINGLE_IPUT: i32 = 2;

pub const TANDEM_SINGLE_IGET: i32 = 3;

pub const TANDEM_SINGLE_PUT_SIGNAL: i32 = 4;

pub const TANDEM_SINGLE_P: i32 = 5;

pub const TANDEM_SINGLE_G: i32 = 6;

/// The forms that return what was there, into `from`; `how` is TANDEM_AMO_*.
pub const TANDEM_SINGLE_ATOMIC: i32 = 7;

/// The forms that return nothing.
pub const TANDEM_SINGLE_CHANGE: i32 = 8;

/// Waits of a scope for any and for some of the `count` words of 64 bits at `from`, whose int32_t at `signal` is 0 (0: all), to
/// compare with `value` as `how` says (TANDEM_CMP_*); any looks from `expected` on. Every thread writes what it got to `to`:
/// first what the wait returned, for each of 512 threads, then for some the sum of the indices, then come the indices.
pub const TANDEM_SINGLE_WAIT_ANY: i32 = 9;

pub const TANDEM_SINGLE_WAIT_SOME: i32 = 10;

/// One operation of the device API.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_single_args {
    /// Addresses of this PE, as those of the device API.
    pub to: u64,
    pub from: u64,
    pub signal: u64,
    pub to_stride: u64,
    pub from_stride: u64,
    pub count: u64,
    pub value: u64,
    pub expected: u64,
    /// TANDEM_SINGLE_*.
    pub op: i32,
    /// TANDEM_AMO_*, TANDEM_CMP_* of a wait.
    pub how: i32,
    /// TANDEM_SCOPE_*.
    pub scope: i32,
    /// Bytes of an element: 1, 2, 4, 8, 12 or 16.
    pub element: u32,
    pub peer: u32,
    /// Of the one block: 32 to 512.
    pub threads: u32,
}

/// A kind beside TANDEM_EXEC_*: numbers modulo 2^255 - 19, in 32 bytes, which are added.
pub const TANDEM_COLLECTIVE_FIELD: i32 = 20;

/// Arguments of the kernels of tandem_collective.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_collective_args {
    /// Addresses of this PE, as those of the device API.
    pub to: u64,
    pub from: u64,
    /// Address of a uint64_t that grows by 1, or by 1000 after a fault.
    pub done: u64,
    pub count: u64,
    /// TANDEM_INSIDE_*.
    pub what: i32,
    /// TANDEM_EXEC_SUM and the others.
    pub how: i32,
    /// TANDEM_SCOPE_*.
    pub scope: i32,
    pub root: u32,
}

tandem_cuda::native! {
    /// Every PE writes its number into the `slot` of the next.
    pub fn tandem_example_shift(team: *const tandem_team, slot: u64, stream: tandem_stream) -> i32;
    /// One step from `a` to `b`, with halos sent by threads or by blocks.
    pub fn tandem_example_stencil(
        team: *const tandem_team,
        args: *const tandem_example_stencil_args,
        by_blocks: i32,
        stream: tandem_stream,
    ) -> i32;
    /// A kernel for a collective launch that does all steps.
    pub fn tandem_example_stencil_loop(kernel: *mut tandem_kernel) -> i32;
    /// array[i] = i * i, for this PE's part.
    pub fn tandem_example_squares(team: *const tandem_team, array: *const tandem_array, stream: tandem_stream) -> i32;
    /// to[i] = from[length - 1 - i], for this PE's part.
    pub fn tandem_example_reverse(
        team: *const tandem_team,
        to: *const tandem_array,
        from: *const tandem_array,
        stream: tandem_stream,
    ) -> i32;
    /// A kernel for a collective launch: its blocks on all PEs count and meet, and see whether the counts are right.
    pub fn tandem_meet(kernel: *mut tandem_kernel) -> i32;
    /// A kernel for a collective launch that runs a litmus test between PEs 0 and 1.
    pub fn tandem_litmus(test: i32, kernel: *mut tandem_kernel) -> i32;
    /// Does one operation of the device API; for tests.
    pub fn tandem_single(team: *const tandem_team, args: *const tandem_single_args, stream: tandem_stream) -> i32;
    /// A kernel of one block for a collective launch, which does a collective of numbers of a kind: TANDEM_EXEC_*, or TANDEM_COLLECTIVE_FIELD.
    pub fn tandem_collective(kind: i32, kernel: *mut tandem_kernel) -> i32;
}

const _: () = {
    assert!(size_of::<tandem_example_stencil_args>() == 40);
    assert!(core::mem::offset_of!(tandem_example_stencil_args, a) == 0);
    assert!(core::mem::offset_of!(tandem_example_stencil_args, b) == 8);
    assert!(core::mem::offset_of!(tandem_example_stencil_args, columns) == 16);
    assert!(core::mem::offset_of!(tandem_example_stencil_args, rows) == 24);
    assert!(core::mem::offset_of!(tandem_example_stencil_args, steps) == 32);
};

const _: () = {
    assert!(size_of::<tandem_meet_args>() == 24);
    assert!(core::mem::offset_of!(tandem_meet_args, count) == 0);
    assert!(core::mem::offset_of!(tandem_meet_args, wrong) == 8);
    assert!(core::mem::offset_of!(tandem_meet_args, rounds) == 16);
};

const _: () = {
    assert!(size_of::<tandem_litmus_args>() == 32);
    assert!(core::mem::offset_of!(tandem_litmus_args, lanes) == 0);
    assert!(core::mem::offset_of!(tandem_litmus_args, saw) == 8);
    assert!(core::mem::offset_of!(tandem_litmus_args, wrong) == 16);
    assert!(core::mem::offset_of!(tandem_litmus_args, rounds) == 24);
};

const _: () = {
    assert!(size_of::<tandem_single_args>() == 88);
    assert!(core::mem::offset_of!(tandem_single_args, to) == 0);
    assert!(core::mem::offset_of!(tandem_single_args, from) == 8);
    assert!(core::mem::offset_of!(tandem_single_args, signal) == 16);
    assert!(core::mem::offset_of!(tandem_single_args, to_stride) == 24);
    assert!(core::mem::offset_of!(tandem_single_args, from_stride) == 32);
    assert!(core::mem::offset_of!(tandem_single_args, count) == 40);
    assert!(core::mem::offset_of!(tandem_single_args, value) == 48);
    assert!(core::mem::offset_of!(tandem_single_args, expected) == 56);
    assert!(core::mem::offset_of!(tandem_single_args, op) == 64);
    assert!(core::mem::offset_of!(tandem_single_args, how) == 68);
    assert!(core::mem::offset_of!(tandem_single_args, scope) == 72);
    assert!(core::mem::offset_of!(tandem_single_args, element) == 76);
    assert!(core::mem::offset_of!(tandem_single_args, peer) == 80);
    assert!(core::mem::offset_of!(tandem_single_args, threads) == 84);
};

const _: () = {
    assert!(size_of::<tandem_collective_args>() == 48);
    assert!(core::mem::offset_of!(tandem_collective_args, to) == 0);
    assert!(core::mem::offset_of!(tandem_collective_args, from) == 8);
    assert!(core::mem::offset_of!(tandem_collective_args, done) == 16);
    assert!(core::mem::offset_of!(tandem_collective_args, count) == 24);
    assert!(core::mem::offset_of!(tandem_collective_args, what) == 32);
    assert!(core::mem::offset_of!(tandem_collective_args, how) == 36);
    assert!(core::mem::offset_of!(tandem_collective_args, scope) == 40);
    assert!(core::mem::offset_of!(tandem_collective_args, root) == 44);
};

//! What stands for the functions of a build without nvcc: tandem_fabric.h, made by `cargo xtask bindgen`. Not to be edited.
#![allow(missing_docs, non_camel_case_types, dead_code, unreachable_pub, clippy::missing_safety_doc)]

pub use tandem_cuda::ffi::tandem_stream;

/// PEs that a world can have.
pub const TANDEM_FABRIC_MOST_PES: i32 = 32;

/// Regions that can be registered with a world at a time.
pub const TANDEM_FABRIC_MOST_REGIONS: i32 = 64;

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

/// An access past the end of what is mapped; only builds with TANDEM_FABRIC_CHECKS look for it. `peer` is the target.
pub const TANDEM_FAULT_BOUNDS: i32 = 3;

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
    /// The value that the word had last; for a barrier the round of the peer.
    pub seen: u64,
    /// The value that was wanted; for TANDEM_FAULT_BOUNDS the number of bytes.
    pub wanted: u64,
}

/// What each PE of a team keeps in its window, `tandem_team.state` bytes from the window's start. All zero at first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_team_state {
    /// 0, then 1: who changes it writes this PE's tandem_fault. An atomic of this PE's device alone.
    pub faulted: u32,
    /// 0 while all is well. After a fault, every PE's word is set by the PE that had it; whoever waits looks at its own
    /// from time to time and then returns at once.
    pub poisoned: u32,
    /// Barriers that this PE has begun.
    pub round: u64,
    /// By PE of the team: the barriers that it has told this PE to have reached. Written by that PE alone.
    pub arrived: [u64; 32],
    /// Blocks of this PE's kernel that have reached a barrier of whole grids.
    pub grid_arrived: u64,
    /// Barriers of whole grids that this PE has left.
    pub grid_round: u64,
}

/// A team as one of its PEs sees it. Kernels get it by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tandem_team {
    /// Address of the window of the world's PE 0.
    pub heap: u64,
    /// Bytes from one PE's window to the next.
    pub window: u64,
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
    pub region_count: u32,
    /// This PE, and how many there are, in the team.
    pub me: u32,
    pub size: u32,
    pub pad: u32,
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

pub unsafe extern "C" fn tandem_fabric_atomic(_args: *const tandem_fabric_atomic_args, _stream: tandem_stream) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_fabric_wait(
    _team: *const tandem_team,
    _args: *const tandem_fabric_wait_args,
    _stream: tandem_stream,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_fabric_barrier(_team: *const tandem_team, _stream: tandem_stream) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_fabric_strided(
    _args: *const tandem_fabric_strided_args,
    _stream: tandem_stream,
) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_fabric_store(_args: *const tandem_fabric_store_args, _stream: tandem_stream) -> i32 {
    NOT_BUILT
}

pub unsafe extern "C" fn tandem_fabric_preload(_kernels: *mut u64) -> i32 {
    NOT_BUILT
}

/// TANDEM_NOT_BUILT of tandem_cuda.h.
const NOT_BUILT: i32 = -1;

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
    assert!(size_of::<tandem_team_state>() == 288);
    assert!(core::mem::offset_of!(tandem_team_state, faulted) == 0);
    assert!(core::mem::offset_of!(tandem_team_state, poisoned) == 4);
    assert!(core::mem::offset_of!(tandem_team_state, round) == 8);
    assert!(core::mem::offset_of!(tandem_team_state, arrived) == 16);
    assert!(core::mem::offset_of!(tandem_team_state, grid_arrived) == 272);
    assert!(core::mem::offset_of!(tandem_team_state, grid_round) == 280);
};

const _: () = {
    assert!(size_of::<tandem_team>() == 104);
    assert!(core::mem::offset_of!(tandem_team, heap) == 0);
    assert!(core::mem::offset_of!(tandem_team, window) == 8);
    assert!(core::mem::offset_of!(tandem_team, mapped) == 16);
    assert!(core::mem::offset_of!(tandem_team, state) == 24);
    assert!(core::mem::offset_of!(tandem_team, timeout_ns) == 32);
    assert!(core::mem::offset_of!(tandem_team, fault) == 40);
    assert!(core::mem::offset_of!(tandem_team, regions) == 48);
    assert!(core::mem::offset_of!(tandem_team, region_count) == 56);
    assert!(core::mem::offset_of!(tandem_team, me) == 60);
    assert!(core::mem::offset_of!(tandem_team, size) == 64);
    assert!(core::mem::offset_of!(tandem_team, pad) == 68);
    assert!(core::mem::offset_of!(tandem_team, world) == 72);
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

//! Workers: processes of their own that make the proofs, and the threads that watch over them.

mod cache;
mod child;
mod hands;
mod loads;
pub(crate) mod protocol;
mod slot;
mod turns;

pub(crate) use cache::have;
pub use child::{hash_file, work, work_watched, KeyRoom};
pub(crate) use slot::{Slot, SlotStatus};

//! Workers: processes of their own that make the proofs, and the threads that watch over them.

mod ahead;
mod cache;
mod child;
mod hands;
mod loads;
mod process;
pub(crate) mod protocol;
mod slot;
mod turns;

pub(crate) use cache::have;
pub use child::{hash_file, work, work_watched, KeyRoom};
pub(crate) use hands::Offer;
pub(crate) use slot::{Slot, SlotStatus};

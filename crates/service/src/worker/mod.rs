//! Workers: processes of their own that make the proofs, and the threads that watch over them.

mod child;
mod protocol;
mod slot;

pub use child::{hash_file, work, work_watched};
pub(crate) use slot::Slot;

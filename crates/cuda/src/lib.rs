//! Devices, streams, events and memory of the CUDA runtime, owned by Rust values.
//!
//! The only crate of Tandem that names CUDA. It links the runtime statically and starts anywhere: [`probe`] says which
//! GPUs there are, or in words why there is none. Built without nvcc, the same functions exist and say so.
//!
//! Work goes to a [`Stream`] and is done in the order of the calls; only the functions called `synchronize` and `wait`
//! block, and those that say so. What a value owns is given back when it is dropped; a drop never panics, and never
//! frees memory before the work that was queued with it is done (docs/contracts/memory.md).

mod device;
mod error;
mod graph;
mod kernel;
mod memory;
mod native;
pub mod nccl;
pub mod nvml;
pub mod nvshmem;
mod peer;
mod pieces;
mod pinned;
mod reserved;
mod staging;
mod stream;
pub mod testing;
mod told;
mod traffic;

/// The C functions themselves.
pub mod ffi;

pub use device::{built_with, probe, versions, Device, Found, Properties, Version};
pub use error::{Error, Result};
pub use graph::Graph;
pub use kernel::{Grid, Kernel};
pub use memory::{DeviceBuffer, DevicePtr, Piece, Pool, PoolInfo};
pub use native::NotBuilt;
pub use peer::{HostCopy, PeerCopy};
pub use pieces::Pieces;
pub use pinned::{is_pinned, Pinned, PinnedBlock, PinnedPool};
pub use reserved::{Reserved, MOST_USERS};
pub use staging::{Download, Downloads, Source, Staging, Upload, Workers};
pub use stream::{Event, Stream};
pub use told::Told;
pub use traffic::{traffic, Traffic};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

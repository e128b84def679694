//! The GPUs of a machine as one: which links join them ([`topology`]), the best way to move data over all of these
//! ([`plan`]), carrying that out ([`exec`], [`Collectives`]), and one memory that every GPU reads and writes ([`Team`]).
//!
//! # One memory
//!
//! A [`Team`] is a set of PEs (processing elements, as in OpenSHMEM): GPUs of this process, or pretend PEs, which are
//! threads and host memory and do the same on a machine with no GPU. [`Team::alloc`] gives every PE the same memory at the
//! same offset; a [`Symmetric`] is a handle to it. Each PE has a [`Queue`], an ordered list of work; [`OneSided`] has what
//! can be told to it: copies to and from another PE, atomics on its words, signals, and waits for one's own words.
//!
//! ```
//! use tandem_fabric::{Compare, OneSided, Options, Signal, Symmetric, Team};
//!
//! # fn main() -> tandem_fabric::Result<()> {
//! // On GPUs: Team::cuda(&devices, Options::default()).
//! let team = Team::sim(2, Options::default())?;
//! let data: Symmetric<u32> = team.alloc(1000)?;
//! let inbox: Symmetric<u32> = team.alloc(1000)?;
//! let ready: Symmetric<u64> = team.alloc(1)?;
//! team.write(0, &data, &vec![7; 1000])?;
//!
//! // PE 0 sends, and then says so; PE 1 waits for that, and passes one number back.
//! team.queue(0).put_signal(&inbox, &data, &ready, Signal::Set(1), 1)?;
//! team.queue(1).signal_wait_until(&ready, Compare::Eq, 1, Some(0))?;
//! team.queue(1).put(&inbox.at(5)?, &inbox.at(999)?, 0)?;
//! team.synchronize()?;
//!
//! assert_eq!(team.read(1, &inbox)?, vec![7; 1000]);
//! assert_eq!(team.read(0, &inbox.slice(4..7)?)?, [0, 7, 0]);
//! # Ok(())
//! # }
//! ```
//!
//! **Order.** Steps of a queue are done in order, and each is complete everywhere before the next begins. Between queues
//! there is none, but for what signals, atomics, waits, barriers and [`Event`]s make: who has seen a signal or an
//! atomic's change sees all that came before it in the queue that made it.
//!
//! **Faults.** Everything is checked before it is told to a device. A wait takes no longer than [`Options::timeout`]; then
//! [`Queue::synchronize`] and [`Team::check`] return a [`Fault`] that names who waited, for whom, and for which word, and
//! the team is unusable from then on. The process and other teams go on.
//!
//! **Several processes** may make up a team of pretend PEs ([`Team::sim_in`]). Each tells its own PEs what to do. [`launch`] starts them.
//!
//! **Kernels** do the same from inside, on any GPU's memory: `native/include/tandem/fabric.cuh` is the device API, header
//! only, and [`Queue::call`] launches what uses it; [`Team::launch`] starts kernels that wait for each other on all PEs at
//! once. Steps and kernels can be recorded into a CUDA graph ([`Queue::capture`]).
//!
//! Limits: 32 PEs; 256 GiB for each PE's heap unless [`Options::window`] says otherwise, at most 4 TiB; 64 registered regions.
//! Memory is zero when it is allocated, wiped when it is freed, and used again when no queue can touch it any more.
#![deny(unsafe_code)]

mod array;
mod bound;
mod collective;
mod context;
#[allow(unsafe_code)]
mod cuda;
mod error;
pub mod exec;
mod fault;
mod heap;
pub mod host;
#[allow(unsafe_code)]
pub mod kernels;
mod machine;
mod memory;
mod onesided;
mod op;
mod pe;
mod place;
mod planner;
pub mod probe;
mod process;
mod queue;
mod rank;
mod sim;
mod symmetric;
mod team;
mod word;
mod world;

/// The C functions themselves.
#[allow(unsafe_code)]
pub mod ffi;

pub use array::{Distribution, GlobalArray, Layout};
pub use collective::{CollectiveGroup, Collectives};
pub use context::Context;
pub use error::{Error, Result};
pub use fault::{Fault, FaultKind};
pub use host::HostLinks;
pub use memory::{Memory, Space};
pub use onesided::OneSided;
pub use pe::Pe;
pub use process::{launch, Launch, Launched, Meeting, Node, Process};
pub use queue::{Event, Graph, Queue};
pub use rank::MAX_PES;
pub use symmetric::Symmetric;
pub use tandem_fabric_plan::{self as plan, Ratio};
pub use tandem_fabric_topology as topology;
pub use team::{Options, Team};
pub use word::{Atomic, Compare, Signal, Word};

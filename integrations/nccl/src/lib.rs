//! A library that stands before NCCL. It has NCCL's functions, forwards them to the real library, and does over Tandem's fabric the calls of
//! [`table`] where all ranks of a communicator are GPUs of this process. docs/guides/nccl.md says how it is used, docs/decisions/0043-nccl.md why
//! it is made so.
//!
//! [`exports`] has the functions of C. A call becomes a [`call::Call`]; the calls of a thread's group are kept ([`group`]) until the
//! ranks of a communicator ([`clique`]) can decide together; [`fabric`] does what is taken over. [`real`] finds the library that all else goes to.

mod call;
mod clique;
mod exports;
mod fabric;
mod forward;
mod group;
mod machine;
mod real;
mod settings;
mod table;

/// `ncclResult_t`
type Status = i32;

const SUCCESS: Status = 0;
const SYSTEM_ERROR: Status = 2;
const INTERNAL_ERROR: Status = 3;
const INVALID_ARGUMENT: Status = 4;

/// Locks, also what a thread has left that panicked: each change is whole.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

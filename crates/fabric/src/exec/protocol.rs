//! The rules by which PEs take turns. The sim runs this code ([`super::sim`], [`super::worker`]), the kernels are written after it, and a
//! model checker runs through its interleavings (tests/exec_model.rs). Only [`whole`] is for kernels alone: the sim has no resident ones.
//!
//! A channel has two counters, each with one writer: chunks that are there, written by who fills, and chunks that were read,
//! written by who empties. A message of the low-latency protocol needs no counter of its own: each word of 64 bits carries 32 bits
//! of data and, as its flag, the number of the round, so that one store brings both.

use std::sync::atomic::{fence, AtomicU64, Ordering};

/// A word that one PE writes and another one reads.
pub trait Word: Send + Sync + 'static {
    /// Its value; what its writer did before is visible after this.
    fn load_acquire(&self) -> u64;
    /// Changes it; all that the caller did before is visible to who reads the value.
    fn store_release(&self, value: u64);
    /// Its value, and nothing more.
    fn load_relaxed(&self) -> u64;
    /// Changes it, and nothing more.
    fn store_relaxed(&self, value: u64);
    /// Changes it at once, whoever else does, and returns what it was.
    fn change(&self, order: Ordering, f: impl FnMut(u64) -> u64) -> u64;
    /// A fence: whoever sees a later change by this thread, of any word, sees those before, and this thread reads only afterwards.
    fn settle();
}

impl Word for AtomicU64 {
    fn load_acquire(&self) -> u64 {
        self.load(Ordering::Acquire)
    }
    fn store_release(&self, value: u64) {
        self.store(value, Ordering::Release);
    }
    fn load_relaxed(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
    fn store_relaxed(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }
    fn change(&self, order: Ordering, mut f: impl FnMut(u64) -> u64) -> u64 {
        // `f` gives a value for every one.
        self.fetch_update(order, order, |old| Some(f(old))).unwrap_or_else(|old| old)
    }
    fn settle() {
        fence(Ordering::SeqCst);
    }
}

/// Whether chunk `c` may be written to a ring of `slots`: the chunk that was in its slot has been read.
pub fn has_room(read: &impl Word, c: u64, slots: u64) -> bool {
    c < read.load_acquire() + slots
}

/// Whether chunk `c` is there.
pub fn is_there(there: &impl Word, c: u64) -> bool {
    c < there.load_acquire()
}

/// Says that chunk `c` is there, or was read.
pub fn notify(counter: &impl Word, c: u64) {
    counter.store_release(c + 1);
}

/// Places for messages of the low-latency protocol between two PEs: rounds take turns.
pub const MESSAGE_SLOTS: u64 = 2;

/// Whether round `round` (from 1) may be sent: its half was read. The receiver tells `read` the last round that it has read.
///
/// # Errors
/// It may not yet; the last round that was read.
pub fn may_send(read: &impl Word, round: u64) -> Result<(), u64> {
    let read = read.load_acquire();
    (round <= read + MESSAGE_SLOTS).then_some(()).ok_or(read)
}

/// Sends 32 bits in round `round`.
pub fn send(word: &impl Word, data: u32, round: u64) {
    word.store_relaxed(u64::from(data) | u64::from(flag(round)) << 32);
}

/// The 32 bits of round `round`.
///
/// # Errors
/// They are not there yet; the flag that is.
pub fn receive(word: &impl Word, round: u64) -> Result<u32, u64> {
    let word = word.load_relaxed();
    (word >> 32 == u64::from(flag(round))).then_some(word as u32).ok_or(word >> 32)
}

/// Sends 64 bits in round `round` of the collectives inside kernels: a word of data, and behind it the number of the round.
pub fn post(data: &impl Word, number: &impl Word, value: u64, round: u64) {
    data.store_relaxed(value);
    number.store_release(round);
}

/// The 64 bits of round `round`.
///
/// # Errors
/// They are not there yet; the round that is.
pub fn posted(data: &impl Word, number: &impl Word, round: u64) -> Result<u64, u64> {
    let seen = number.load_acquire();
    (seen == round).then(|| data.load_relaxed()).ok_or(seen)
}

/// Which of two boxes the messages of a round are in. All hear from all in every round, so that nobody is two rounds ahead.
pub fn turn(round: u64) -> u64 {
    round % 2
}

/// The number of a command that has been written whole: all its words carry it above their 32 bits of data, and it is neither `last` nor 0.
/// Words of two commands are never taken for one, whatever order they arrive in.
pub fn whole(words: &[impl Word], last: u32) -> Option<u32> {
    let mut numbers = words.iter().map(|word| (word.load_acquire() >> 32) as u32);
    let number = numbers.next()?;
    (numbers.all(|other| other == number) && number != last && number != 0).then_some(number)
}

/// What a word of round `round` carries beside its data. Never 0, which fresh memory holds; the same again only after 2^32 - 1 rounds, when every place has long been overwritten.
pub fn flag(round: u64) -> u32 {
    (round % u64::from(u32::MAX)) as u32 + 1
}

//! Contexts: one-sided operations that are ordered and completed apart from others.

use crate::onesided::OneSided;
use crate::word::{Atomic, Signal, Word};
use crate::{Event, Queue, Result, Symmetric, Team};
use bytemuck::Pod;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lists of work of a context: operations between two fences take turns.
const QUEUES: usize = 2;

/// A context of one PE, as OpenSHMEM's: operations that return at once (`_nbi`), with a fence and a quiet of their own. They have no order
/// among themselves but what [`Context::fence`] makes, none with other contexts and with the PE's queues but what [`Context::after`] makes,
/// and [`Context::quiet`] waits for this context's alone. Each has an [`Event`], so that one can also be waited for by itself, or by a queue
/// ([`Queue::wait`]).
///
/// On GPUs its operations are those of streams of its own and of their copy engines, beside kernels. What a kernel stores by itself has no
/// such thing: a fence of a thread is for all that the thread did, in whichever context.
///
/// Until its event is reached, a source must not be changed and a target not be touched. Handles may go: memory is freed behind all queues.
pub struct Context {
    queues: Vec<Queue>,
    turn: AtomicUsize,
    /// Held by a fence, and by each operation while it is told.
    telling: Mutex<()>,
}

impl Team {
    /// A context of PE `pe`. Each has two queues beside those of [`Team::new_queue`]; none of them ever waits for a word.
    ///
    /// # Errors
    /// As for [`Team::new_queue`].
    pub fn context(&self, pe: usize) -> Result<Context> {
        let queues = (0..QUEUES).map(|_| self.new_queue(pe)).collect::<Result<_>>()?;
        Ok(Context { queues, turn: AtomicUsize::new(0), telling: Mutex::new(()) })
    }
}

impl Context {
    /// The PE.
    pub fn me(&self) -> usize {
        self.queues[0].me()
    }

    /// Copies the PE's `from` to `to` of `pe`.
    ///
    /// # Errors
    /// As for [`OneSided::put`].
    pub fn put_nbi<T: Pod>(&self, to: &Symmetric<T>, from: &Symmetric<T>, pe: usize) -> Result<Event> {
        self.tell(|queue| queue.put(to, from, pe))
    }

    /// Copies `from` of `pe` to the PE's `to`.
    ///
    /// # Errors
    /// As for [`OneSided::get`].
    pub fn get_nbi<T: Pod>(&self, to: &Symmetric<T>, from: &Symmetric<T>, pe: usize) -> Result<Event> {
        self.tell(|queue| queue.get(to, from, pe))
    }

    /// [`Context::put_nbi`], then a change of the signal word of `pe`: who has waited for the signal sees what was put.
    ///
    /// # Errors
    /// As for [`OneSided::put_signal`].
    pub fn put_signal_nbi<T: Pod>(
        &self,
        to: &Symmetric<T>,
        from: &Symmetric<T>,
        word: &Symmetric<u64>,
        signal: Signal,
        pe: usize,
    ) -> Result<Event> {
        self.tell(|queue| queue.put_signal(to, from, word, signal, pe))
    }

    /// Changes a word of `pe`.
    ///
    /// # Errors
    /// As for [`OneSided::atomic`].
    pub fn atomic_nbi<T: Word>(&self, word: &Symmetric<T>, atomic: Atomic<T>, pe: usize) -> Result<Event> {
        self.tell(|queue| queue.atomic(word, atomic, pe))
    }

    /// Changes a word of `pe`, and the PE's `into` gets what it was before.
    ///
    /// # Errors
    /// As for [`OneSided::fetch_atomic`].
    pub fn fetch_atomic_nbi<T: Word>(
        &self,
        word: &Symmetric<T>,
        atomic: Atomic<T>,
        pe: usize,
        into: &Symmetric<T>,
    ) -> Result<Event> {
        self.tell(|queue| queue.fetch_atomic(word, atomic, pe, into))
    }

    /// What the context was told before is done, at the peers too, before anything that it is told after. Waits for nothing.
    ///
    /// # Errors
    /// The device failed.
    pub fn fence(&self) -> Result<()> {
        let _alone = self.alone();
        let come = self.queues.iter().map(Queue::record).collect::<Result<Vec<Event>>>()?;
        for (i, queue) in self.queues.iter().enumerate() {
            come.iter().enumerate().filter(|(j, _)| i != *j).try_for_each(|(_, event)| queue.wait(event))?;
        }
        Ok(())
    }

    /// Blocks until all that the context was told is done, at the peers too; for nothing of other contexts or queues.
    ///
    /// # Errors
    /// A fault of the team; a device failed.
    pub fn quiet(&self) -> Result<()> {
        // All of them, so that nothing runs on after an error.
        let results: Vec<Result<()>> = self.queues.iter().map(Queue::synchronize).collect();
        results.into_iter().collect()
    }

    /// What the context is told after this begins when `event` is reached: a point in a queue ([`Queue::record`]), or an operation of another
    /// context.
    ///
    /// # Errors
    /// As for [`Queue::wait`].
    pub fn after(&self, event: &Event) -> Result<()> {
        let _alone = self.alone();
        self.queues.iter().try_for_each(|queue| queue.wait(event))
    }

    fn alone(&self) -> MutexGuard<'_, ()> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, f: impl FnOnce(&Queue) -> Result<()>) -> Result<Event> {
        let _alone = self.alone();
        let queue = &self.queues[self.turn.fetch_add(1, Ordering::Relaxed) % self.queues.len()];
        f(queue)?;
        queue.record()
    }
}

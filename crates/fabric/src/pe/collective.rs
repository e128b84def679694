//! Collectives inside programs, as the device API has them inside kernels (`tandem/fabric/collective.cuh`), on the same state.

use super::{Ended, Pe};
use crate::exec::element::combine;
use crate::exec::protocol::{post, posted, turn};
use crate::exec::{Combine, Number};
use crate::sim::{settle, Unmapped};
use crate::{ffi, Error, OneSided, Result, Symmetric};
use bytemuck::Pod;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// The most bytes for one PE that travel in messages.
const SMALL: usize = 8 * ffi::TANDEM_FABRIC_BOX as usize;
/// Bytes of larger data that are combined at a time.
const PIECE: u64 = 4096;

/// Words of 64 bits that so many bytes are sent as: at least one, so that all hear from all.
fn words(bytes: usize) -> usize {
    bytes.div_ceil(8).max(1)
}

/// The data of a word, zeros past the end.
fn word_of(bytes: &[u8], k: usize) -> u64 {
    let mut word = [0; 8];
    for (to, &from) in word.iter_mut().zip(bytes.iter().skip(8 * k)) {
        *to = from;
    }
    u64::from_le_bytes(word)
}

/// A collective that is under way.
struct Round<'a> {
    pe: &'a Pe,
    number: u64,
}

impl Pe {
    /// `root`'s `from` to `to` of every PE; they may be the same memory. Every PE of the team calls the same collectives in the same order, one
    /// at a time in a team. Nobody writes to `to` of a PE that has not called. Other data are not ordered: [`OneSided::barrier`] does that.
    ///
    /// # Errors
    /// Lengths that do not fit; the team has no `root`; memory of another world; PEs that do not reach each other; the team had a fault, or has
    /// one: a PE did not come in time, or a PE does two collectives at once.
    pub fn broadcast<T: Pod>(&self, root: usize, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let op = "broadcast";
        self.seat.core.member(op, root)?;
        let (bytes, sends) = (self.fitting(op, from, to, (1, 1))?, self.me() == root);
        let round = self.begin(op)?;
        if bytes > SMALL {
            return round.between_barriers(|| self.copy_bytes((to, self.me(), 0), (from, root, 0), bytes));
        }
        let own = if sends { self.bytes_of(from, 0..bytes)? } else { Vec::new() };
        let all = round.exchange(|_| own.clone(), |pe| if pe == root { bytes } else { 0 })?;
        self.set_bytes(to, 0, &all[root])
    }

    /// Everyone's `to` gets the combination of the `from` of all, in the order of the PEs; they may be the same memory. Otherwise as
    /// [`Pe::broadcast`].
    ///
    /// # Errors
    /// As for [`Pe::broadcast`].
    pub fn all_reduce<T: Number>(&self, how: Combine, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let op = "all_reduce";
        let (bytes, n) = (self.fitting(op, from, to, (1, 1))?, self.size());
        crate::exec::element::check::<T>(op, how)?;
        let round = self.begin(op)?;
        if bytes > SMALL {
            return round.between_barriers(|| self.reduce_part(how, from, to));
        }
        let own = self.bytes_of(from, 0..bytes)?;
        let mut all = round.exchange(|_| own.clone(), |_| bytes)?.into_iter();
        let mut sum = all.next().unwrap_or_default();
        debug_assert_eq!(all.len() + 1, n);
        all.for_each(|one| combine(T::KIND, how, &mut sum, &one));
        self.set_bytes(to, 0, &sum)
    }

    /// Everyone's `to` gets the `from` of all, one after the other; `from` may be the caller's own part of `to`. Otherwise as
    /// [`Pe::broadcast`].
    ///
    /// # Errors
    /// As for [`Pe::broadcast`].
    pub fn all_gather<T: Pod>(&self, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let (op, n, me) = ("all_gather", self.size(), self.me());
        let bytes = self.fitting(op, from, to, (1, n))?;
        let round = self.begin(op)?;
        if bytes > SMALL {
            let send = |pe| self.copy_bytes((to, pe, me * bytes), (from, me, 0), bytes);
            return round.between_barriers(|| (0..n).try_for_each(send));
        }
        let own = self.bytes_of(from, 0..bytes)?;
        let all = round.exchange(|_| own.clone(), |_| bytes)?;
        all.iter().enumerate().try_for_each(|(pe, one)| self.set_bytes(to, pe * bytes, one))
    }

    /// The `j`-th part of PE `i`'s `to` gets the `i`-th part of PE `j`'s `from`. Otherwise as [`Pe::broadcast`].
    ///
    /// # Errors
    /// As for [`Pe::broadcast`]; the two overlap.
    pub fn all_to_all<T: Pod>(&self, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let (op, n, me) = ("all_to_all", self.size(), self.me());
        let bytes = self.fitting(op, from, to, (n, n))?;
        let (a, b) = (self.seat.own(op, from)?, self.seat.own(op, to)?);
        if a < b + to.bytes() && b < a + from.bytes() {
            return Err(Error::invalid(op, "what is read and what is written overlap"));
        }
        let round = self.begin(op)?;
        if bytes > SMALL {
            let send = |pe| self.copy_bytes((to, pe, me * bytes), (from, me, pe * bytes), bytes);
            return round.between_barriers(|| (0..n).try_for_each(send));
        }
        let own = self.bytes_of(from, 0..n * bytes)?;
        let all = round.exchange(|pe| own[pe * bytes..][..bytes].to_vec(), |_| bytes)?;
        all.iter().enumerate().try_for_each(|(pe, one)| self.set_bytes(to, pe * bytes, one))
    }

    /// Bytes of a part, if both memories are as many parts as they should be.
    fn fitting<T: Pod>(
        &self,
        op: &'static str,
        from: &Symmetric<T>,
        to: &Symmetric<T>,
        (inputs, outputs): (usize, usize),
    ) -> Result<usize> {
        self.seat.core.check()?;
        self.seat.core.all_reach()?;
        for memory in [from, to] {
            // On every PE, as others read and write it.
            (0..self.size()).try_for_each(|pe| self.seat.place(op, memory, pe, false).map(drop))?;
        }
        let part = from.len() / inputs;
        if part * inputs != from.len() || to.len() != part * outputs || size_of::<T>() == 0 {
            let problem = format!("{} elements in and {} out, in {inputs} and {outputs} parts", from.len(), to.len());
            return Err(Error::invalid(op, problem));
        }
        Ok(part * size_of::<T>())
    }

    /// Begins a collective: it ends when what comes back is dropped.
    fn begin(&self, op: &'static str) -> Result<Round<'_>> {
        debug_assert!(!op.is_empty());
        type State = ffi::tandem_team_state;
        if self.is_over() {
            return Err(self.poisoned());
        }
        let me = self.seat.me as u32;
        let at = |field: usize| self.seat.core.state(self.seat.me) + field as u64;
        let begun_at = at(std::mem::offset_of!(State, collectives));
        let word = |at| self.memory.word(at, ffi::TANDEM_WORD_U64).map_err(|at| self.unmapped(at));
        let begun = word(begun_at)?.change(ffi::TANDEM_AMO_INC, 0, 0);
        let left = word(at(std::mem::offset_of!(State, collectives_left)))?.load();
        if begun != left {
            return Err(self.fault(ffi::TANDEM_FAULT_OVERLAP, me, begun_at, left, begun));
        }
        Ok(Round { pe: self, number: begun + 1 })
    }

    /// Some bytes of the caller's own memory.
    fn bytes_of<T: Pod>(&self, memory: &Symmetric<T>, range: Range<usize>) -> Result<Vec<u8>> {
        let mut out = vec![0; range.len()];
        let at = self.seat.own("collective", memory)? + range.start as u64;
        self.memory.read(at, &mut out).map_err(|at| self.unmapped(at))?;
        Ok(out)
    }

    /// Overwrites bytes of the caller's own memory, from `start` on.
    fn set_bytes<T: Pod>(&self, memory: &Symmetric<T>, start: usize, bytes: &[u8]) -> Result<()> {
        let at = self.seat.own("collective", memory)? + start as u64;
        self.memory.write(at, bytes).map_err(|at| self.unmapped(at))
    }

    /// Copies bytes of one PE to another one's, each with the byte at which they begin.
    fn copy_bytes<T: Pod>(
        &self,
        (to, target, first): (&Symmetric<T>, usize, usize),
        (from, source, start): (&Symmetric<T>, usize, usize),
        bytes: usize,
    ) -> Result<()> {
        let place =
            |memory, pe, start| Ok::<u64, Error>(self.seat.place("collective", memory, pe, false)? + start as u64);
        let (to, from) = (place(to, target, first)?, place(from, source, start)?);
        if to == from {
            return Ok(());
        }
        self.memory.copy(to, from, bytes as u64).map_err(|at| self.unmapped(at))
    }

    /// Combines this PE's share of the elements, from all PEs to all.
    fn reduce_part<T: Number>(&self, how: Combine, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let (n, me, size) = (self.size(), self.me(), size_of::<T>() as u64);
        let edge = |pe: usize| (from.len() as u128 * pe as u128 / n as u128) as u64 * size;
        let end = edge(me + 1);
        let mut at = edge(me);
        while at < end {
            let len = PIECE.min(end - at) as usize;
            let mut sum = Vec::new();
            for pe in 0..n {
                let mut one = vec![0; len];
                let place = self.seat.place("all_reduce", from, pe, false)? + at;
                self.memory.read(place, &mut one).map_err(|at| self.unmapped(at))?;
                match pe {
                    0 => sum = one,
                    _ => combine(T::KIND, how, &mut sum, &one),
                }
            }
            for pe in 0..n {
                let place = self.seat.place("all_reduce", to, pe, false)? + at;
                self.memory.write(place, &sum).map_err(|at| self.unmapped(at))?;
            }
            at += len as u64;
        }
        Ok(())
    }
}

impl Round<'_> {
    /// What is not small: `f` between two barriers, behind which nobody still reads, and all is there.
    fn between_barriers(&self, f: impl FnOnce() -> Result<()>) -> Result<()> {
        self.pe.meet()?;
        f()?;
        self.pe.meet()
    }

    /// Sends `own(pe)` to each PE, and returns what each has sent, which is so many `bytes`.
    fn exchange(&self, own: impl Fn(usize) -> Vec<u8>, bytes: impl Fn(usize) -> usize) -> Result<Vec<Vec<u8>>> {
        let (pe, n, round) = (self.pe, self.pe.size(), self.number);
        for to in (0..n).map(|i| (pe.me() + 1 + i) % n) {
            let part = own(to);
            let at = pe.seat.core.message_box(to, turn(round), pe.me());
            for k in 0..words(part.len()) {
                self.message(at, k, |data, number| post(data, number, word_of(&part, k), round))?;
            }
        }
        (0..n).map(|from| self.receive(from, bytes(from))).collect()
    }

    /// What PE `from` has sent.
    fn receive(&self, from: usize, bytes: usize) -> Result<Vec<u8>> {
        let (pe, round) = (self.pe, self.number);
        let at = pe.seat.core.message_box(pe.me(), turn(round), from);
        let mut out = Vec::with_capacity(8 * words(bytes));
        for k in 0..words(bytes) {
            let look = || self.message(at, k, |data, number| posted(data, number, round));
            let mut found = look()?;
            let ended = pe.poll(from as u32, 1, || {
                found = look().unwrap_or(Err(0));
                found.is_ok()
            });
            match (ended, found) {
                (Ended::Ready, Ok(value)) => out.extend(value.to_le_bytes()),
                (Ended::Poisoned, _) => return Err(pe.poisoned()),
                (_, seen) => {
                    let (what, place) = (ffi::TANDEM_FAULT_COLLECTIVE, at + 16 * k as u64 + 8);
                    return Err(pe.fault(what, from as u32, place, seen.unwrap_or_else(|seen| seen), round));
                }
            }
        }
        out.truncate(bytes);
        Ok(out)
    }

    /// Calls `f` with the two words of a message.
    fn message<R>(&self, at: u64, k: usize, f: impl FnOnce(&AtomicU64, &AtomicU64) -> R) -> Result<R> {
        let word = |at| self.pe.memory.word(at, ffi::TANDEM_WORD_U64).map_err(|at: Unmapped| self.pe.unmapped(at));
        let (data, number) = (word(at + 16 * k as u64)?, word(at + 16 * k as u64 + 8)?);
        Ok(f(data.whole(), number.whole()))
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        type State = ffi::tandem_team_state;
        // What was read is read, and what was written is there, before another collective of the PE begins.
        settle();
        let left = self.pe.seat.core.state(self.pe.seat.me) + std::mem::offset_of!(State, collectives_left) as u64;
        if let Ok(word) = self.pe.memory.word(left, ffi::TANDEM_WORD_U64) {
            word.change(ffi::TANDEM_AMO_SET, self.number, 0);
        }
    }
}

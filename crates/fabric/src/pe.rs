//! A pretend PE inside a program, and what it does with each step of its queue.

mod collective;

use crate::fault::Record;
use crate::onesided::{atomic_args, sealed, wait_args, OneSided};
use crate::op::Op;
use crate::process::{End, Failure};
use crate::rank::TeamRank;
use crate::sim::{access, change, settle, Lost, Memory, Unmapped, Word, LEARN};
use crate::word::{compares, width, Atomic, Compare, Word as Integer};
use crate::world::Allocation;
use crate::{ffi, Error, Result, Symmetric};
use bytemuck::Pod;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A pretend PE inside a program ([`crate::Queue::run`]): [`OneSided`] operations happen when they are called, as
/// in a kernel.
#[derive(Clone)]
pub struct Pe {
    memory: Arc<Memory>,
    seat: Arc<TeamRank>,
}

/// How a wait ended.
enum Ended {
    Ready,
    /// Another PE's wait has ended in a fault.
    Poisoned,
    Expired,
}

impl Pe {
    /// The one that sits there; `None` for a GPU.
    pub(crate) fn at(seat: &Arc<TeamRank>) -> Option<Self> {
        Some(Pe { memory: seat.core.pretend.clone()?, seat: seat.clone() })
    }

    /// A step of its queue.
    pub(crate) fn step(self, op: Op) -> Op {
        match op {
            Op::Run(program) => Op::Run(program),
            op => Op::Run(Arc::new(move || self.perform(&op))),
        }
    }

    fn perform(&self, op: &Op) -> Result<()> {
        match op {
            Op::Run(program) => program(),
            Op::Wait(args) => self.wait(args).map(drop),
            Op::Barrier => self.meet(),
            op => {
                let far = self.memory.far();
                match far.and_then(|far| far.perform(&self.memory, op)) {
                    Some(done) => done.map_err(|lost| self.lost(lost)),
                    None => access(&self.memory, op).map_err(|at| self.unmapped(at)),
                }
            }
        }
    }

    /// The caller's own elements.
    ///
    /// # Errors
    /// They are of another world; the team had a fault.
    pub fn load<T: Pod>(&self, from: &Symmetric<T>) -> Result<Vec<T>> {
        let at = self.seat.own("load", from)?;
        let mut out = vec![T::zeroed(); from.len()];
        self.memory.read(at, bytemuck::cast_slice_mut(&mut out)).map_err(|at| self.unmapped(at))?;
        Ok(out)
    }

    /// Overwrites the caller's own elements.
    ///
    /// # Errors
    /// The lengths differ; they are of another world; the team had a fault.
    pub fn store<T: Pod>(&self, to: &Symmetric<T>, from: &[T]) -> Result<()> {
        let at = self.seat.own("store", to)?;
        if to.len() != from.len() {
            return Err(Error::invalid("store", format!("{} elements to a place of {}", from.len(), to.len())));
        }
        self.memory.write(at, bytemuck::cast_slice(from)).map_err(|at| self.unmapped(at))
    }

    /// One element of `pe`.
    ///
    /// # Errors
    /// As for [`OneSided::get`]; it is not one element.
    pub fn g<T: Pod>(&self, from: &Symmetric<T>, pe: usize) -> Result<T> {
        let at = self.seat.place("g", from, pe, false)?;
        let mut out = [T::zeroed()];
        if from.len() != 1 {
            return Err(Error::invalid("g", format!("{} elements where one is needed", from.len())));
        }
        self.memory.read(at, bytemuck::cast_slice_mut(&mut out)).map_err(|at| self.unmapped(at))?;
        Ok(out[0])
    }

    /// Changes a word of `pe` and returns what it was.
    ///
    /// # Errors
    /// As for [`OneSided::atomic`].
    pub fn fetch<T: Integer>(&self, word: &Symmetric<T>, atomic: Atomic<T>, pe: usize) -> Result<T> {
        let args = atomic_args((&self.seat, false), "fetch", word, atomic, pe, 0)?;
        let old = change(&self.memory, &args).map_err(|at| self.unmapped(at))?;
        settle();
        // A little-endian word of 32 bits is the first half of one of 64.
        Ok(bytemuck::pod_read_unaligned(&old.to_le_bytes()[..size_of::<T>()]))
    }

    /// The index of one of the caller's words that compares as wanted, once one does.
    ///
    /// # Errors
    /// As for [`OneSided::wait_until_any`].
    pub fn wait_any<T: Integer>(
        &self,
        words: &Symmetric<T>,
        compare: Compare,
        value: T,
        from: Option<usize>,
    ) -> Result<usize> {
        Ok(self.wait_some(words, compare, value, from)?[0])
    }

    /// The indices of the caller's words that compare as wanted, once there is one.
    ///
    /// # Errors
    /// As for [`OneSided::wait_until_some`].
    pub fn wait_some<T: Integer>(
        &self,
        words: &Symmetric<T>,
        compare: Compare,
        value: T,
        from: Option<usize>,
    ) -> Result<Vec<usize>> {
        let mode = (ffi::TANDEM_WAIT_SOME, 0);
        let args = wait_args(&self.seat, "wait_some", words, (compare, value), from, mode)?;
        Ok(self.wait(&args)?.into_iter().map(|i| i as usize).collect())
    }

    /// What the caller did before is seen by every PE before what it does after.
    pub fn fence(&self) {
        settle();
    }

    /// What the caller did before is complete.
    pub fn quiet(&self) {
        settle();
    }

    /// Waits as told, and returns the indices of the words that compare as wanted: one for TANDEM_WAIT_ANY.
    fn wait(&self, args: &ffi::tandem_fabric_wait_args) -> Result<Vec<u64>> {
        let word = |i: u64| self.memory.word(args.words + i * width(args.kind), args.kind);
        let words: Vec<Word> =
            (0..args.count).map(word).collect::<std::result::Result<_, _>>().map_err(|at| self.unmapped(at))?;
        let is = |word: &Word| compares(args.kind, args.compare, word.load(), args.wanted);
        let mut open = 0;
        let ended = self.poll(args.from, 1, || match args.mode {
            ffi::TANDEM_WAIT_ALL => {
                open += words[open..].iter().take_while(|word| is(word)).count();
                open == words.len()
            }
            _ => words.iter().any(is),
        });
        match ended {
            Ended::Ready => {}
            Ended::Poisoned => return Err(self.poisoned()),
            Ended::Expired => {
                let place = args.words + open as u64 * width(args.kind);
                let seen = words.get(open).map_or(0, Word::load);
                return Err(self.fault(ffi::TANDEM_FAULT_WAIT, args.from, place, seen, args.wanted));
            }
        }
        if args.mode == ffi::TANDEM_WAIT_ALL {
            return Ok(Vec::new());
        }
        let mut found: Vec<u64> = (0..args.count).filter(|&i| is(&words[i as usize])).collect();
        if found.is_empty() {
            // The words have changed again since one was seen.
            return self.wait(args);
        }
        if args.mode == ffi::TANDEM_WAIT_ANY {
            found.truncate(1);
        }
        if args.found != 0 {
            let counted = (args.mode == ffi::TANDEM_WAIT_SOME).then_some(found.len() as u64);
            let out: Vec<u64> = counted.into_iter().chain(found.iter().copied()).collect();
            self.memory.write(args.found, bytemuck::cast_slice(&out)).map_err(|at| self.unmapped(at))?;
        }
        Ok(found)
    }

    /// The barrier of the device API, on the same state. Over several nodes it has two levels: the PEs of a node come to the first of them,
    /// the first of all nodes come to each other, and then tell the others of their node.
    fn meet(&self) -> Result<()> {
        type State = ffi::tandem_team_state;
        let core = &self.seat.core;
        let me = self.seat.me;
        settle();
        let count = core.state(me) + std::mem::offset_of!(State, round) as u64;
        let count = self.memory.word(count, ffi::TANDEM_WORD_U64).map_err(|at| self.unmapped(at))?;
        let round = count.change(ffi::TANDEM_AMO_INC, 0, 0) + 1;
        let Some(here) = core.nodes.iter().find(|pes| pes.contains(&me)) else { return Ok(()) };
        let firsts: Vec<usize> = core.nodes.iter().map(|pes| pes[0]).filter(|&first| first != here[0]).collect();
        if firsts.is_empty() {
            self.come(here.iter().copied(), round)?;
            self.wait_for(here.iter().copied(), round, 1)?;
        } else if me == here[0] {
            // Who waits for those who wait for others has more time than these, so that the one who does not come is named.
            self.wait_for(here[1..].iter().copied(), round, 1)?;
            self.come(firsts.iter().copied(), round)?;
            self.wait_for(firsts.into_iter(), round, 2)?;
            self.come(here[1..].iter().copied(), round)?;
        } else {
            self.come([here[0]].into_iter(), round)?;
            self.wait_for([here[0]].into_iter(), round, 3)?;
        }
        settle();
        Ok(())
    }

    /// Where PE `at` is told that PE `from` has come to a barrier.
    fn arrived(&self, at: usize, from: usize) -> u64 {
        let offset = std::mem::offset_of!(ffi::tandem_team_state, arrived) + from * size_of::<u64>();
        self.seat.core.state(at) + offset as u64
    }

    /// Tells these PEs that this one has come to barrier `round`.
    fn come(&self, to: impl Iterator<Item = usize>, round: u64) -> Result<()> {
        let (op, kind, me) = (ffi::TANDEM_AMO_SET, ffi::TANDEM_WORD_U64, self.seat.me);
        to.into_iter().try_for_each(|pe| {
            let word = self.arrived(pe, me);
            self.perform(&Op::Atomic(ffi::tandem_fabric_atomic_args {
                word,
                value: round,
                expected: 0,
                fetched: 0,
                op,
                kind,
            }))
        })
    }

    /// Waits until these PEs have come to barrier `round`, `times` the timeout.
    fn wait_for(&self, pes: impl Iterator<Item = usize>, round: u64, times: u32) -> Result<()> {
        for pe in pes {
            let place = self.arrived(self.seat.me, pe);
            let theirs = self.memory.word(place, ffi::TANDEM_WORD_U64).map_err(|at| self.unmapped(at))?;
            match self.poll(pe as u32, times, || theirs.load() >= round) {
                Ended::Ready => {}
                Ended::Poisoned => return Err(self.poisoned()),
                Ended::Expired => {
                    return Err(self.fault(ffi::TANDEM_FAULT_BARRIER, pe as u32, place, theirs.load(), round));
                }
            }
        }
        Ok(())
    }

    /// Calls `ready` until it is true, the team has a fault, its timeout has passed so many times, or the process of `peer` has left.
    fn poll(&self, peer: u32, times: u32, mut ready: impl FnMut() -> bool) -> Ended {
        let core = &self.seat.core;
        let at = core.state(self.seat.me) + std::mem::offset_of!(ffi::tandem_team_state, poisoned) as u64;
        let begun = Instant::now();
        let mut rounds = 0u32;
        loop {
            if ready() {
                settle();
                return Ended::Ready;
            }
            rounds = rounds.saturating_add(1);
            // Looking at the clock costs more than looking at the word; of a fault that was there before, the first round learns.
            if rounds % 16 == 1 {
                if self.memory.word(at, ffi::TANDEM_WORD_U32).is_ok_and(|word| word.load() != 0) {
                    return Ended::Poisoned;
                }
                // Asked before the last look: what one that has left did is there then.
                let is_over = core.has_left(peer as usize) || begun.elapsed() > core.timeout * times;
                if is_over && !ready() {
                    return Ended::Expired;
                }
            }
            if rounds < 200 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    /// Copies from an address that was checked.
    pub(crate) fn read_at(&self, from: u64, to: &mut [u8]) {
        if let Err(at) = self.memory.read(from, to) {
            let _ = self.unmapped(at);
        }
    }

    /// Copies to an address that was checked.
    pub(crate) fn write_at(&self, to: u64, from: &[u8]) {
        if let Err(at) = self.memory.write(to, from) {
            let _ = self.unmapped(at);
        }
    }

    /// Calls `f` with each word from an address that was checked.
    pub(crate) fn words_at(&self, at: u64, count: u64, f: impl FnMut(u64, &AtomicU64)) {
        if let Err(at) = self.memory.words(at, count, f) {
            let _ = self.unmapped(at);
        }
    }

    /// Whether another PE's wait has ended in a fault.
    pub(crate) fn is_over(&self) -> bool {
        let at = self.seat.core.state(self.seat.me) + std::mem::offset_of!(ffi::tandem_team_state, poisoned) as u64;
        self.memory.word(at, ffi::TANDEM_WORD_U32).is_ok_and(|word| word.load() != 0)
    }

    /// The fault of a wait for `peer` that took too long, or of whoever came before.
    pub(crate) fn late(&self, peer: u32, place: u64, seen: u64, wanted: u64) -> Error {
        if self.is_over() {
            return self.poisoned();
        }
        self.fault(ffi::TANDEM_FAULT_WAIT, peer, place, seen, wanted)
    }

    /// Records a fault of this PE and ends the waits of all that it reaches.
    fn fault(&self, what: i32, peer: u32, place: u64, seen: u64, wanted: u64) -> Error {
        let core = &self.seat.core;
        let record = Record { what: what as u32, waiter: self.seat.me as u32, peer, place, seen, wanted };
        core.faults.put(self.seat.me, record);
        let poisoned = std::mem::offset_of!(ffi::tandem_team_state, poisoned) as u64;
        for pe in (0..core.members.len()).filter(|&pe| core.apart(self.seat.me, pe).is_none()) {
            if let Ok(word) = self.memory.word(core.state(pe) + poisoned, ffi::TANDEM_WORD_U32) {
                word.change(ffi::TANDEM_AMO_SET, 1, 0);
            }
        }
        core.tell(self.seat.me, record);
        self.poisoned()
    }

    /// The fault of a PE of another node that has not done what it was asked for; no fault where its process has left.
    fn lost(&self, lost: Lost) -> Error {
        let core = &self.seat.core;
        let Some(far) = self.memory.far() else { return self.poisoned() };
        let peer = core.members.iter().position(|&pe| pe == lost.pe).unwrap_or(crate::MAX_PES) as u32;
        match lost.why {
            Failure::Late(waited) => {
                self.fault(ffi::TANDEM_FAULT_COPY, peer, lost.place, waited.as_millis() as u64, lost.bytes)
            }
            Failure::Closed => match far.group().ended(lost.pe, LEARN) {
                Some(End::Left) => far.error("access of symmetric memory", lost),
                _ => self.fault(ffi::TANDEM_FAULT_PROCESS, peer, lost.place, 0, 0),
            },
        }
    }

    /// The error of the team's fault.
    fn poisoned(&self) -> Error {
        let none =
            || Error::invalid("wait", "the team's memory says that it had a fault, and there is no record of one");
        self.seat.core.check().err().unwrap_or_else(none)
    }

    fn unmapped(&self, at: Unmapped) -> Error {
        self.fault(ffi::TANDEM_FAULT_BOUNDS, ffi::TANDEM_FABRIC_ANY_PE as u32, at.0, 0, 0)
    }
}

impl sealed::Sealed for Pe {}

impl OneSided for Pe {
    fn seat(&self) -> &Arc<TeamRank> {
        &self.seat
    }

    fn issue(&self, op: Op, _keep: &[&Arc<Allocation>]) -> Result<()> {
        self.perform(&op)
    }
}

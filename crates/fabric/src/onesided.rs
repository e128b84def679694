//! The one-sided operations, the same on a queue and inside a program of a pretend PE.

use crate::op::Op;
use crate::rank::TeamRank;
use crate::word::{Atomic, Compare, Signal, Word};
use crate::world::Allocation;
use crate::{ffi, Error, Result, Space, Symmetric};
use bytemuck::Pod;
use std::sync::Arc;

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Operations on the memory of other PEs, with the names and meanings of OpenSHMEM. Who calls them is one PE of a team
/// ([`OneSided::me`]); `pe` is the PE of the team whose memory is meant; memory without a `pe` is the caller's own.
///
/// All check PEs, lengths and ends before anything happens. `from` of a wait is the PE that is to end it, if it is known;
/// it is named in the fault of a wait that takes longer than the team's timeout.
pub trait OneSided: sealed::Sealed {
    /// Who calls.
    #[doc(hidden)]
    fn seat(&self) -> &Arc<TeamRank>;

    /// Whether copies to and from PEs that are not reached go through the host.
    #[doc(hidden)]
    fn may_cross(&self) -> bool {
        false
    }

    /// Whether PEs of other nodes are reached.
    #[doc(hidden)]
    fn is_queue(&self) -> bool {
        false
    }

    /// Does it now, or in the order of a queue. `keep` is what it works on.
    #[doc(hidden)]
    fn issue(&self, op: Op, keep: &[&Arc<Allocation>]) -> Result<()>;

    /// The PE of the team that calls.
    fn me(&self) -> usize {
        self.seat().me
    }

    /// Number of PEs of the team.
    fn size(&self) -> usize {
        self.seat().core.members.len()
    }

    /// Copies the caller's `from` to `to` of `pe`. A queue does so through the host where `pe` is not reached; a recording and a program
    /// cannot.
    ///
    /// # Errors
    /// The lengths differ; the team does not have `pe`; it is not reached, in a recording or a program; the team had a fault.
    fn put<T: Pod>(&self, to: &Symmetric<T>, from: &Symmetric<T>, pe: usize) -> Result<()> {
        let copy = self.seat().copy("put", (to, pe), (from, self.me()), (self.may_cross(), self.is_queue()))?;
        self.issue(copy, &[to.memory(), from.memory()])
    }

    /// Copies `from` of `pe` to the caller's `to`.
    ///
    /// # Errors
    /// As for [`OneSided::put`].
    fn get<T: Pod>(&self, to: &Symmetric<T>, from: &Symmetric<T>, pe: usize) -> Result<()> {
        let copy = self.seat().copy("get", (to, self.me()), (from, pe), (self.may_cross(), self.is_queue()))?;
        self.issue(copy, &[to.memory(), from.memory()])
    }

    /// Copies `count` elements of the caller's `from`, each `from_stride` after the one before, to `to` of `pe`, each
    /// `to_stride` after the one before.
    ///
    /// # Errors
    /// As for [`OneSided::put`], and [`Error::NoPeer`] on a queue too; a stride of 0; an element past an end.
    fn put_strided<T: Pod>(
        &self,
        to: &Symmetric<T>,
        to_stride: usize,
        from: &Symmetric<T>,
        from_stride: usize,
        count: usize,
        pe: usize,
    ) -> Result<()> {
        let op = "put_strided";
        let (there, here) = (self.seat().place(op, to, pe, self.is_queue())?, self.seat().own(op, from)?);
        let args = strided(op, (to, there, to_stride), (from, here, from_stride), count)?;
        self.issue(Op::Strided(args), &[to.memory(), from.memory()])
    }

    /// Copies `count` elements of `from` of `pe`, each `from_stride` after the one before, to the caller's `to`, each
    /// `to_stride` after the one before.
    ///
    /// # Errors
    /// As for [`OneSided::put_strided`].
    fn get_strided<T: Pod>(
        &self,
        to: &Symmetric<T>,
        to_stride: usize,
        from: &Symmetric<T>,
        from_stride: usize,
        count: usize,
        pe: usize,
    ) -> Result<()> {
        let op = "get_strided";
        let (here, there) = (self.seat().own(op, to)?, self.seat().place(op, from, pe, self.is_queue())?);
        let args = strided(op, (to, here, to_stride), (from, there, from_stride), count)?;
        self.issue(Op::Strided(args), &[to.memory(), from.memory()])
    }

    /// Writes one element of up to 16 bytes to `to` of `pe`. The value travels with the operation.
    ///
    /// # Errors
    /// As for [`OneSided::put_strided`]; `to` is not one element, or a larger one.
    fn p<T: Pod>(&self, to: &Symmetric<T>, value: T, pe: usize) -> Result<()> {
        let op = "p";
        if to.len() != 1 || size_of::<T>() > 16 {
            return Err(Error::invalid(
                op,
                format!("{} elements of {} bytes; it writes one of at most 16", to.len(), size_of::<T>()),
            ));
        }
        let mut bytes = [0; 16];
        bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        let there = self.seat().place(op, to, pe, self.is_queue())?;
        let value = bytemuck::cast(bytes);
        let args = ffi::tandem_fabric_store_args { to: there, value, bytes: to.bytes() };
        self.issue(Op::Store(args), &[to.memory()])
    }

    /// [`OneSided::put`], then [`OneSided::signal_op`]: who has waited for the signal sees what was put.
    ///
    /// # Errors
    /// As for [`OneSided::put`] and [`OneSided::signal_op`].
    fn put_signal<T: Pod>(
        &self,
        to: &Symmetric<T>,
        from: &Symmetric<T>,
        word: &Symmetric<u64>,
        signal: Signal,
        pe: usize,
    ) -> Result<()> {
        // Everything is checked before anything happens.
        atomic_args((self.seat(), self.is_queue()), "put_signal", word, signal.into(), pe, 0)?;
        self.put(to, from, pe)?;
        self.signal_op(word, signal, pe)
    }

    /// Changes the signal word of `pe` after all that the caller did before.
    ///
    /// # Errors
    /// As for [`OneSided::atomic`].
    fn signal_op(&self, word: &Symmetric<u64>, signal: Signal, pe: usize) -> Result<()> {
        self.atomic(word, Atomic::from(signal), pe)
    }

    /// Waits until the caller's signal word compares with `value` as wanted.
    ///
    /// # Errors
    /// As for [`OneSided::wait_until`].
    fn signal_wait_until(
        &self,
        word: &Symmetric<u64>,
        compare: Compare,
        value: u64,
        from: Option<usize>,
    ) -> Result<()> {
        self.wait_until(word, compare, value, from)
    }

    /// Changes one word of `pe`, and nothing comes between. Who sees the change sees all that the caller did before.
    ///
    /// # Errors
    /// As for [`OneSided::put_strided`]; `word` is not one.
    fn atomic<T: Word>(&self, word: &Symmetric<T>, atomic: Atomic<T>, pe: usize) -> Result<()> {
        let args = atomic_args((self.seat(), self.is_queue()), "atomic", word, atomic, pe, 0)?;
        self.issue(Op::Atomic(args), &[word.memory()])
    }

    /// Changes one word of `pe` as [`OneSided::atomic`] does, and the caller's `into` gets what the word was before.
    ///
    /// # Errors
    /// As for [`OneSided::atomic`]; `into` is not one word.
    fn fetch_atomic<T: Word>(
        &self,
        word: &Symmetric<T>,
        atomic: Atomic<T>,
        pe: usize,
        into: &Symmetric<T>,
    ) -> Result<()> {
        let op = "fetch_atomic";
        one(op, into)?;
        let args = atomic_args((self.seat(), self.is_queue()), op, word, atomic, pe, self.seat().own(op, into)?)?;
        self.issue(Op::Atomic(args), &[word.memory(), into.memory()])
    }

    /// Waits until every one of the caller's `words` compares with `value` as wanted. What whoever changed them did
    /// before is seen after it.
    ///
    /// # Errors
    /// The team does not have `from`, or had a fault; the words are of another world.
    fn wait_until<T: Word>(&self, words: &Symmetric<T>, compare: Compare, value: T, from: Option<usize>) -> Result<()> {
        let args = wait_args(self.seat(), "wait_until", words, (compare, value), from, (ffi::TANDEM_WAIT_ALL, 0))?;
        self.issue(Op::Wait(args), &[words.memory()])
    }

    /// Waits until one of the words does; the caller's `found` gets its index.
    ///
    /// # Errors
    /// As for [`OneSided::wait_until`]; there is no word; `found` is not one.
    fn wait_until_any<T: Word>(
        &self,
        words: &Symmetric<T>,
        compare: Compare,
        value: T,
        from: Option<usize>,
        found: &Symmetric<u64>,
    ) -> Result<()> {
        let op = "wait_until_any";
        one(op, found)?;
        let found_at = self.seat().own(op, found)?;
        let mode = (ffi::TANDEM_WAIT_ANY, found_at);
        let args = wait_args(self.seat(), op, words, (compare, value), from, mode)?;
        self.issue(Op::Wait(args), &[words.memory(), found.memory()])
    }

    /// Waits until at least one of the words does; the caller's `found`, which has one element more than `words`, gets
    /// their number and then their indices, in order.
    ///
    /// # Errors
    /// As for [`OneSided::wait_until`]; there is no word; `found` has another length.
    fn wait_until_some<T: Word>(
        &self,
        words: &Symmetric<T>,
        compare: Compare,
        value: T,
        from: Option<usize>,
        found: &Symmetric<u64>,
    ) -> Result<()> {
        let op = "wait_until_some";
        if found.len() != words.len() + 1 {
            let problem =
                format!("{} elements for what is found of {} words; one more is needed", found.len(), words.len());
            return Err(Error::invalid(op, problem));
        }
        let mode = (ffi::TANDEM_WAIT_SOME, self.seat().own(op, found)?);
        let args = wait_args(self.seat(), op, words, (compare, value), from, mode)?;
        self.issue(Op::Wait(args), &[words.memory(), found.memory()])
    }

    /// Waits until every PE of the team has got to its barrier of the same number. What each did before is seen by all
    /// after it.
    ///
    /// # Errors
    /// Two PEs of the team do not reach each other ([`crate::Team::barrier`] does without that), or in a program are on different nodes; the
    /// team had a fault.
    fn barrier(&self) -> Result<()> {
        let core = &self.seat().core;
        core.check()?;
        core.all_meet(self.is_queue())?;
        self.issue(Op::Barrier, &[])
    }
}

fn one<T: Pod>(op: &'static str, place: &Symmetric<T>) -> Result<()> {
    match place.len() {
        1 => Ok(()),
        n => Err(Error::invalid(op, format!("{n} elements where one is needed"))),
    }
}

/// One side of a strided copy: the memory, its address, and the stride in elements.
type Side<'a, T> = (&'a Symmetric<T>, u64, usize);

fn strided<T: Pod>(
    op: &'static str,
    to: Side<T>,
    from: Side<T>,
    count: usize,
) -> Result<ffi::tandem_fabric_strided_args> {
    for (place, _, stride) in [to, from] {
        let last = count.checked_sub(1).map_or(Some(0), |steps| steps.checked_mul(stride));
        if stride == 0 || count > 0 && last.is_none_or(|last| last >= place.len()) {
            return Err(Error::invalid(
                op,
                format!("{count} elements with stride {stride} in a place of {} elements", place.len()),
            ));
        }
    }
    Ok(ffi::tandem_fabric_strided_args {
        to: to.1,
        from: from.1,
        to_stride: to.2 as u64,
        from_stride: from.2 as u64,
        count: count as u64,
        element: size_of::<T>() as u64,
    })
}

pub(crate) fn atomic_args<T: Word>(
    (seat, by_queue): (&TeamRank, bool),
    op: &'static str,
    word: &Symmetric<T>,
    atomic: Atomic<T>,
    pe: usize,
    fetched: u64,
) -> Result<ffi::tandem_fabric_atomic_args> {
    one(op, word)?;
    let there = seat.place(op, word, pe, by_queue)?;
    let members = &seat.core.members;
    if !seat.core.world.links.has_atomics(members[seat.me], members[pe]) && (fetched != 0 || !atomic.is_access()) {
        let reason = "the link between them carries no atomic operations; signals that set a value work".into();
        return Err(Error::NoPeer { from: seat.me, to: pe, reason });
    }
    if seat.core.pretend.is_none() && word.memory().space() == Space::Host && (fetched != 0 || !atomic.is_access()) {
        return Err(Error::invalid(
            op,
            "the word is in host memory, where GPUs have no atomics; signals that set a value work",
        ));
    }
    let (op, value, expected) = atomic.parts();
    Ok(ffi::tandem_fabric_atomic_args { word: there, value, expected, fetched, op, kind: T::KIND })
}

pub(crate) fn wait_args<T: Word>(
    seat: &TeamRank,
    op: &'static str,
    words: &Symmetric<T>,
    (compare, wanted): (Compare, T),
    from: Option<usize>,
    (mode, found): (i32, u64),
) -> Result<ffi::tandem_fabric_wait_args> {
    let at = seat.own(op, words)?;
    if words.is_empty() && mode != ffi::TANDEM_WAIT_ALL {
        return Err(Error::invalid(op, "there is no word to wait for"));
    }
    if let Some(from) = from {
        seat.core.member(op, from)?;
    }
    Ok(ffi::tandem_fabric_wait_args {
        words: at,
        count: words.len() as u64,
        wanted: wanted.to_bits(),
        found,
        mode,
        compare: compare as i32,
        kind: T::KIND,
        from: from.map_or(ffi::TANDEM_FABRIC_ANY_PE as u32, |pe| pe as u32),
    })
}

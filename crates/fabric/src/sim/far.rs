//! Pretend PEs of other nodes, whose memory is not here: steps that touch it are requests to the processes that have it.

use super::memory::{settle, Memory};
use super::{change, HEAP};
use crate::ffi;
use crate::op::Op;
use crate::process::{Change, End, Failure, Group, Lent, Local, Span, Target, Transport};
use crate::word::width;
use crate::Error;
use std::cell::Cell;
use std::io::Result as IoResult;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// How long it may take to learn how a process has ended whose streams are closed.
pub(crate) const LEARN: Duration = Duration::from_secs(2);

/// The way to the PEs of other nodes.
pub(crate) struct Far {
    group: Arc<Group>,
    transport: Arc<dyn Transport>,
    window: u64,
}

/// What did not come to, or from, a PE of another node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    /// The PE of the world.
    pub(crate) pe: usize,
    pub(crate) place: u64,
    pub(crate) bytes: u64,
    pub(crate) why: Failure,
}

type Done<T> = std::result::Result<T, Lost>;

impl Far {
    /// `None` where there are no other nodes.
    pub(super) fn new(group: &Arc<Group>, window: u64) -> Option<Self> {
        Some(Far { group: group.clone(), transport: group.transport()?, window })
    }

    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// The PE of another node whose memory an address is.
    pub(crate) fn pe_of(&self, at: u64) -> Option<usize> {
        let pe = usize::try_from(at.checked_sub(HEAP)? / self.window).ok()?;
        (pe < self.group.count() && !self.group.near().contains(&pe)).then_some(pe)
    }

    /// What is lost in words, for the host.
    pub(crate) fn error(&self, op: &'static str, lost: Lost) -> Error {
        let process = self.group.process_of(lost.pe).map_or(String::new(), |process| process.to_string());
        let how = match (lost.why, self.group.ended(lost.pe, LEARN)) {
            (Failure::Late(waited), _) => format!("has not answered in {waited:.1?}"),
            (Failure::Closed, Some(End::Left)) => "has left, and its memory has gone with it".into(),
            (Failure::Closed, _) => "has ended, or is reached no longer".into(),
        };
        Error::processes(op, format!("{} bytes of PE {}: {process} {how}", lost.bytes, lost.pe))
    }

    fn at<T>(&self, pe: usize, span: Span, ask: impl FnOnce(usize) -> Result<T, Failure>) -> Done<T> {
        // Every PE has a process.
        let rank = self.group.rank_of(pe).unwrap_or(usize::MAX);
        ask(rank).map_err(|why| Lost { pe, place: span.at, bytes: span.bytes(), why })
    }

    /// Writes to memory of PE `pe`.
    pub(super) fn write(&self, pe: usize, to: u64, from: &[u8]) -> Done<()> {
        let (span, here) = (Span::plain(to, from.len() as u64), Span::plain(0, from.len() as u64));
        self.at(pe, span, |rank| self.transport.put(rank, span, &Given(from), here))
    }

    /// Reads memory of PE `pe`.
    pub(super) fn read(&self, pe: usize, from: u64, to: &mut [u8]) -> Done<()> {
        let (span, here) = (Span::plain(from, to.len() as u64), Span::plain(0, to.len() as u64));
        let to = Taken(Cell::from_mut(to).as_slice_of_cells());
        self.at(pe, span, |rank| self.transport.get(rank, span, &to, here))
    }

    /// Changes a word of PE `pe`; what it was.
    pub(crate) fn change(&self, pe: usize, args: &ffi::tandem_fabric_atomic_args) -> Done<u64> {
        let &ffi::tandem_fabric_atomic_args { word, kind, op, value, expected, .. } = args;
        settle();
        let span = Span::plain(word, width(kind));
        self.at(pe, span, |rank| self.transport.change(rank, Change { word, kind, op, value, expected }))
    }

    /// Does a step, if it touches memory of another node; what is here was checked.
    pub(crate) fn perform(&self, memory: &Memory, op: &Op) -> Option<Done<()>> {
        let done = match *op {
            Op::Copy { to, from, bytes } | Op::HostStagedCopy { to, from, bytes, .. } => {
                self.copy(memory, Span::plain(to, bytes), Span::plain(from, bytes))?
            }
            Op::Strided(ref args) => {
                let size = args.element;
                let span = |at, stride| Span { at, element: size, stride: stride * size, count: args.count };
                let (to, from) = (span(args.to, args.to_stride), span(args.from, args.from_stride));
                self.copy(memory, to, from)?
            }
            Op::Store(ref args) => {
                let pe = self.pe_of(args.to)?;
                let value: [u8; 16] = bytemuck::cast(args.value);
                settle();
                self.write(pe, args.to, &value[..args.bytes as usize])
            }
            Op::Atomic(ref args) => {
                let pe = self.pe_of(args.word)?;
                self.change(pe, args).map(|old| {
                    if args.fetched != 0 {
                        let _ = memory.write(args.fetched, &old.to_le_bytes()[..width(args.kind) as usize]);
                    }
                })
            }
            Op::Fill { .. } | Op::Wait(_) | Op::Barrier | Op::Run(_) => return None,
        };
        settle();
        Some(done)
    }

    fn copy(&self, memory: &Memory, to: Span, from: Span) -> Option<Done<()>> {
        let (target, source) = (self.pe_of(to.at), self.pe_of(from.at));
        let pe = target.or(source)?;
        if to.count == 0 {
            return Some(Ok(()));
        }
        settle();
        Some(match (target, source) {
            (Some(_), None) => self.at(pe, to, |rank| self.transport.put(rank, to, memory, from)),
            (None, _) => self.at(pe, from, |rank| self.transport.get(rank, from, memory, to)),
            // One end of every copy is the caller's own.
            (Some(_), Some(_)) => Err(Lost { pe, place: to.at, bytes: to.bytes(), why: Failure::Closed }),
        })
    }
}

/// The host's bytes, which go to a PE of another node; the first is at 0.
struct Given<'a>(&'a [u8]);

impl Local for Given<'_> {
    fn read(&self, at: u64, to: &mut [u8]) {
        to.copy_from_slice(&self.0[at as usize..][..to.len()]);
    }

    fn write(&self, _: u64, _: &[u8]) {}
}

/// The host's bytes, which come from a PE of another node; the first is at 0.
struct Taken<'a>(&'a [Cell<u8>]);

impl Local for Taken<'_> {
    fn read(&self, _: u64, _: &mut [u8]) {}

    fn write(&self, at: u64, from: &[u8]) {
        self.0[at as usize..][..from.len()].iter().zip(from).for_each(|(to, from)| to.set(*from));
    }
}

/// The memory of this process's PEs, as others may ask for it.
pub(super) struct Own {
    pub(super) memory: Arc<Memory>,
    pub(super) window: u64,
    pub(super) pes: Range<usize>,
}

impl Local for Own {
    fn read(&self, at: u64, to: &mut [u8]) {
        Local::read(&*self.memory, at, to);
    }

    fn write(&self, at: u64, from: &[u8]) {
        Local::write(&*self.memory, at, from);
    }

    fn lend(&self, at: u64, most: usize, f: &mut dyn FnMut(Lent<'_>) -> IoResult<usize>) -> Option<IoResult<usize>> {
        self.memory.lend(at, most, f)
    }
}

impl Target for Own {
    fn has(&self, at: u64, bytes: u64) -> bool {
        let inside = || {
            let from = at.checked_sub(HEAP)?;
            let pe = from / self.window;
            let end = from.checked_add(bytes)?;
            let own = usize::try_from(pe).is_ok_and(|pe| self.pes.contains(&pe));
            (own && end <= (pe + 1) * self.window && self.memory.is_mapped(at, bytes)).then_some(())
        };
        inside().is_some()
    }

    fn change(&self, asked: Change) -> u64 {
        let Change { word, kind, op, value, expected } = asked;
        let args = ffi::tandem_fabric_atomic_args { word, value, expected, fetched: 0, op, kind };
        let old = change(&self.memory, &args).unwrap_or(0);
        settle();
        old
    }

    fn settle(&self) {
        settle();
    }
}

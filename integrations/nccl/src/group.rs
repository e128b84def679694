//! Groups of a thread: what is called between ncclGroupStart and ncclGroupEnd is decided on at the end.

use crate::call::{Buffers, Call, What};
use crate::clique::{self, Outcome, Wanted};
use crate::real::{self, Comm, Stream};
use crate::{settings, Status, SUCCESS};
use std::cell::RefCell;

/// A communicator that the real library may make only at the end of the group.
pub(crate) struct Birth {
    pub(crate) comm: *mut Comm,
    pub(crate) id: [u8; 128],
    pub(crate) ranks: usize,
    pub(crate) rank: usize,
}

#[derive(Default)]
struct Group {
    depth: usize,
    calls: Vec<Wanted>,
    births: Vec<Birth>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

/// Whether the thread's calls pass by: the user wants that, or it is the real library that calls.
fn is_by() -> bool {
    real::is_inside() || settings::is_off()
}

/// A call of a rank.
pub(crate) fn call(call: Call, buffers: Buffers, comm: Comm) -> Status {
    if is_by() {
        return forward(&call, &buffers, comm as usize);
    }
    let Some((clique, rank)) = clique::of(comm as usize) else { return forward(&call, &buffers, comm as usize) };
    let wanted = Wanted { clique, rank, comm: comm as usize, call, buffers };
    let kept = GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            return Some(wanted);
        }
        group.calls.push(wanted);
        None
    });
    kept.map_or(SUCCESS, |wanted| carry_out(&[wanted]))
}

/// The real library has been asked for a communicator.
pub(crate) fn birth(birth: Birth) {
    if is_by() {
        return;
    }
    let now = GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            return Some(birth);
        }
        group.births.push(birth);
        None
    });
    now.iter().for_each(born);
}

fn born(birth: &Birth) {
    // SAFETY: the caller's place for the communicator, which the real library has written to; it is valid until the group has ended.
    let comm = unsafe { *birth.comm };
    clique::join(&birth.id, birth.ranks, birth.rank, comm as usize);
}

pub(crate) fn start() -> Status {
    let status = real::ncclGroupStart();
    if status == SUCCESS && !is_by() {
        GROUP.with_borrow_mut(|group| group.depth += 1);
    }
    status
}

/// Ends a group as `f` of the real library does.
pub(crate) fn end(f: impl FnOnce() -> Status) -> Status {
    if is_by() {
        return f();
    }
    let ended = GROUP.with_borrow_mut(|group| {
        group.depth = group.depth.saturating_sub(1);
        (group.depth == 0).then(|| (std::mem::take(&mut group.calls), std::mem::take(&mut group.births)))
    });
    let Some((calls, births)) = ended else { return f() };
    let status = if calls.is_empty() { SUCCESS } else { carry_out(&calls) };
    let ended = f();
    if ended == SUCCESS {
        births.iter().for_each(born);
    }
    if status == SUCCESS {
        ended
    } else {
        status
    }
}

/// What was called in the group so far goes to the real library, in order: it is only asked what would be.
pub(crate) fn flush() -> Status {
    let calls = GROUP.with_borrow_mut(|group| std::mem::take(&mut group.calls));
    first_error(calls.iter().map(|wanted| forward(&wanted.call, &wanted.buffers, wanted.comm)))
}

fn carry_out(calls: &[Wanted]) -> Status {
    let outcomes = clique::decide(calls);
    first_error(calls.iter().zip(outcomes).map(|(wanted, outcome)| match outcome {
        Outcome::Done(status) => status,
        Outcome::Forward => forward(&wanted.call, &wanted.buffers, wanted.comm),
    }))
}

/// All of them, and the first that is no success.
fn first_error(all: impl Iterator<Item = Status>) -> Status {
    all.fold(SUCCESS, |first, status| if first == SUCCESS { status } else { first })
}

/// Hands a call to the real library.
fn forward(call: &Call, buffers: &Buffers, comm: usize) -> Status {
    let Call { what, count, dtype, op, root } = *call;
    let (send, receive) = (buffers.send, buffers.receive);
    let (comm, stream) = (comm as Comm, buffers.stream as Stream);
    match what {
        What::AllReduce => real::ncclAllReduce(send, receive, count, dtype, op, comm, stream),
        What::Broadcast => real::ncclBroadcast(send, receive, count, dtype, root, comm, stream),
        What::Bcast => real::ncclBcast(send, count, dtype, root, comm, stream),
        What::Reduce => real::ncclReduce(send, receive, count, dtype, op, root, comm, stream),
        What::AllGather => real::ncclAllGather(send, receive, count, dtype, comm, stream),
        What::ReduceScatter => real::ncclReduceScatter(send, receive, count, dtype, op, comm, stream),
        What::AllToAll => real::ncclAlltoAll(send, receive, count, dtype, comm, stream),
        What::Gather => real::ncclGather(send, receive, count, dtype, root, comm, stream),
        What::Scatter => real::ncclScatter(send, receive, count, dtype, root, comm, stream),
        What::Send => real::ncclSend(send, count, dtype, root, comm, stream),
        What::Receive => real::ncclRecv(receive, count, dtype, root, comm, stream),
    }
}

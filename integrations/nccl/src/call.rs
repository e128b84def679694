//! Calls of NCCL, as far as they matter here.

use tandem_fabric::exec::{Combine, Kind};
use tandem_fabric::plan::Operation;

/// What a rank wants. Two ranks want the same where these are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) what: What,
    /// Elements, as the call counts them.
    pub(crate) count: usize,
    /// `ncclDataType_t`
    pub(crate) dtype: i32,
    /// `ncclRedOp_t`; 0 where nothing is combined.
    pub(crate) op: i32,
    /// The root, or the other rank of a send or a receive; 0 where there is none.
    pub(crate) root: i32,
}

/// The kinds of calls that belong to all ranks or to a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum What {
    AllReduce,
    Broadcast,
    /// One buffer for both.
    Bcast,
    Reduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Gather,
    Scatter,
    Send,
    Receive,
}

/// A rank's buffers and stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Buffers {
    pub(crate) send: usize,
    pub(crate) receive: usize,
    pub(crate) stream: usize,
}

/// An operation that can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Work {
    pub(crate) operation: Operation,
    pub(crate) numbers: Option<(Kind, Combine)>,
    pub(crate) root: usize,
    /// Bytes of a part: of the buffer, or of what a rank gives to, or gets from, each.
    pub(crate) part: usize,
}

impl What {
    /// Whether it is a send or a receive, which the other ranks have no part in.
    pub(crate) fn is_of_a_pair(self) -> bool {
        matches!(self, What::Send | What::Receive)
    }
}

/// Bytes of an element of an `ncclDataType_t` of NCCL 2.20 to 2.28.
pub(crate) fn size(dtype: i32) -> Option<usize> {
    match dtype {
        0 | 1 | 10 | 11 => Some(1),
        6 | 9 => Some(2),
        2 | 3 | 7 => Some(4),
        4 | 5 | 8 => Some(8),
        _ => None,
    }
}

/// How numbers of a type are combined; `None` where the fabric does not do it as NCCL does.
fn numbers(dtype: i32, op: i32) -> Option<(Kind, Combine)> {
    let kind = match dtype {
        2 => Kind::I32,
        3 => Kind::U32,
        4 => Kind::I64,
        5 => Kind::U64,
        7 => Kind::F32,
        8 => Kind::F64,
        _ => return None,
    };
    let how = match op {
        0 => Combine::Sum,
        // What becomes of a NaN is NCCL's to say.
        2 | 3 if matches!(kind, Kind::F32 | Kind::F64) => return None,
        2 => Combine::Max,
        3 => Combine::Min,
        _ => return None,
    };
    Some((kind, how))
}

impl Call {
    /// The operation of the fabric that does it, or why there is none.
    pub(crate) fn work(&self, ranks: usize) -> Result<Work, &'static str> {
        let (operation, combines) = match self.what {
            What::AllReduce => (Operation::AllReduce, true),
            What::Reduce => (Operation::Reduce, true),
            What::ReduceScatter => (Operation::ReduceScatter, true),
            What::Broadcast | What::Bcast => (Operation::Broadcast, false),
            What::AllGather => (Operation::AllGather, false),
            What::AllToAll => (Operation::AllToAll, false),
            What::Gather | What::Scatter => return Err("the fabric has no such operation"),
            What::Send | What::Receive => return Err("the group's sends and receives are no all-to-all"),
        };
        let size = size(self.dtype).ok_or("the type is not known")?;
        let part = self.count.checked_mul(size).filter(|&part| part > 0).ok_or("no data, or too many")?;
        let numbers = match combines {
            true => Some(numbers(self.dtype, self.op).ok_or("the fabric does not combine such numbers so")?),
            false => None,
        };
        let root = usize::try_from(self.root).ok().filter(|&root| root < ranks).ok_or("no such root")?;
        Ok(Work { operation, numbers, root, part })
    }
}

impl Work {
    /// Bytes that a rank reads at its `send`.
    pub(crate) fn reads(&self, rank: usize, ranks: usize) -> usize {
        match self.operation {
            Operation::Broadcast if rank != self.root => 0,
            Operation::ReduceScatter | Operation::AllToAll => self.part.saturating_mul(ranks),
            _ => self.part,
        }
    }

    /// Bytes that it writes at its `receive`.
    pub(crate) fn writes(&self, rank: usize, ranks: usize) -> usize {
        match self.operation {
            Operation::Reduce if rank != self.root => 0,
            Operation::AllGather | Operation::AllToAll => self.part.saturating_mul(ranks),
            _ => self.part,
        }
    }

    /// Bytes as nccl-tests count them: of the longer buffer.
    pub(crate) fn bytes(&self, ranks: usize) -> usize {
        match self.operation {
            Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => self.part.saturating_mul(ranks),
            _ => self.part,
        }
    }
}

/// The all-to-all that a rank's sends and receives are, if they are one: the same bytes to and from each rank, itself too, from one buffer to
/// another. The call, and the buffers.
pub(crate) fn all_to_all(calls: &[(Call, Buffers)], ranks: usize) -> Option<(Call, Buffers)> {
    let (first, at) = calls.first()?;
    let part = first.count.checked_mul(size(first.dtype)?)?;
    if part == 0 || calls.len() != 2 * ranks {
        return None;
    }
    // By rank: where what goes to it begins, and where what comes from it.
    let mut found: [Vec<Option<usize>>; 2] = [vec![None; ranks], vec![None; ranks]];
    for (call, buffers) in calls {
        let peer = usize::try_from(call.root).ok().filter(|&peer| peer < ranks)?;
        let (side, place) = match call.what {
            What::Send => (0, buffers.send),
            What::Receive => (1, buffers.receive),
            _ => return None,
        };
        let is_alike = (call.count, call.dtype, buffers.stream) == (first.count, first.dtype, at.stream);
        if !is_alike || found[side][peer].replace(place).is_some() {
            return None;
        }
    }
    let base = |side: &[Option<usize>]| {
        let base = side[0]?;
        let lies = |(i, at): (usize, &Option<usize>)| match base.checked_add(i.saturating_mul(part)) {
            Some(place) => *at == Some(place),
            None => false,
        };
        side.iter().enumerate().all(lies).then_some(base)
    };
    let (send, receive) = (base(&found[0])?, base(&found[1])?);
    let call = Call { what: What::AllToAll, root: 0, op: 0, ..*first };
    Some((call, Buffers { send, receive, stream: at.stream }))
}

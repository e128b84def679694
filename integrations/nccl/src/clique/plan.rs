//! From the calls of all ranks to operations of the fabric.

use super::Wanted;
use crate::call::{all_to_all, Buffers, Call, What, Work};

/// One operation, with the buffers by rank.
pub(crate) struct Step {
    pub(crate) work: Work,
    pub(crate) buffers: Vec<Buffers>,
}

/// The operations that these calls of all ranks are, in order; or why they are none of the fabric's.
pub(super) fn steps(calls: &[&Wanted], ranks: usize) -> Result<Vec<Step>, &'static str> {
    let of = |rank: usize| -> Vec<(Call, Buffers)> {
        calls.iter().filter(|wanted| wanted.rank == rank).map(|wanted| (wanted.call, wanted.buffers)).collect()
    };
    let mut lists: Vec<Vec<(Call, Buffers)>> = (0..ranks).map(of).collect();
    if calls.iter().any(|wanted| wanted.call.what.is_of_a_pair()) {
        let one = |list: &Vec<(Call, Buffers)>| all_to_all(list, ranks).map(|one| vec![one]);
        lists = lists.iter().map(one).collect::<Option<_>>().ok_or("sends and receives that are no all-to-all")?;
    }
    let count = lists.first().map_or(0, Vec::len);
    if lists.iter().any(|list| list.len() != count) {
        return Err("the ranks make different numbers of calls");
    }
    (0..count).map(|i| step(&lists.iter().map(|list| list[i]).collect::<Vec<_>>())).collect()
}

/// The operation that a call of each rank is.
pub(super) fn step(calls: &[(Call, Buffers)]) -> Result<Step, &'static str> {
    let ranks = calls.len();
    let alike = |call: &Call| match call.what {
        What::Bcast => Call { what: What::Broadcast, ..*call },
        _ => *call,
    };
    let (first, _) = calls.first().ok_or("no calls")?;
    if calls.iter().any(|(call, _)| alike(call) != alike(first)) {
        return Err("the ranks make different calls");
    }
    let work = first.work(ranks)?;
    for (rank, (_, buffers)) in calls.iter().enumerate() {
        let is_missing = |at: usize, bytes: usize| bytes > 0 && at.checked_add(bytes).filter(|_| at != 0).is_none();
        if is_missing(buffers.send, work.reads(rank, ranks)) || is_missing(buffers.receive, work.writes(rank, ranks)) {
            return Err("a buffer is missing");
        }
        if !overlap_is_allowed(&work, rank, ranks, buffers) {
            return Err("buffers overlap in another way than in place");
        }
    }
    Ok(Step { work, buffers: calls.iter().map(|(_, buffers)| *buffers).collect() })
}

/// Whether a rank's buffers are apart, or lie as NCCL's operations in place have it.
fn overlap_is_allowed(work: &Work, rank: usize, ranks: usize, buffers: &Buffers) -> bool {
    use tandem_fabric::plan::Operation;
    let (send, receive) = (buffers.send, buffers.receive);
    let (reads, writes) = (work.reads(rank, ranks), work.writes(rank, ranks));
    if reads == 0 || writes == 0 || send + reads <= receive || receive + writes <= send {
        return true;
    }
    match work.operation {
        Operation::AllGather => send == receive + rank * work.part,
        Operation::ReduceScatter => receive == send + rank * work.part,
        Operation::AllToAll => false,
        _ => send == receive,
    }
}

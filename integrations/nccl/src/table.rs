//! Which calls are taken over. docs/guides/nccl.md has the table with its reasons.

use crate::call::Work;
use std::ops::RangeInclusive;
use tandem_fabric::plan::Operation;

/// Calls of an operation by ranks and by bytes as nccl-tests count them. The greatest are those of which messages still carry the data of
/// all ranks together, 512 KiB.
struct Row {
    operation: Operation,
    ranks: RangeInclusive<usize>,
    bytes: RangeInclusive<usize>,
}

const KIB: usize = 1 << 10;

const fn row(operation: Operation, ranks: RangeInclusive<usize>, bytes: RangeInclusive<usize>) -> Row {
    Row { operation, ranks, bytes }
}

const TABLE: [Row; 15] = [
    row(Operation::AllReduce, 2..=2, 1..=256 * KIB),
    row(Operation::AllReduce, 3..=4, 1..=128 * KIB),
    row(Operation::AllReduce, 5..=8, 1..=64 * KIB),
    row(Operation::Reduce, 2..=2, 1..=256 * KIB),
    row(Operation::Reduce, 3..=4, 1..=128 * KIB),
    row(Operation::Broadcast, 2..=2, 1..=256 * KIB),
    row(Operation::Broadcast, 3..=4, 1..=128 * KIB),
    row(Operation::Broadcast, 5..=8, 1..=64 * KIB),
    row(Operation::AllGather, 2..=4, 1..=512 * KIB),
    // Less takes NCCL as long.
    row(Operation::AllGather, 5..=8, 256 * KIB..=512 * KIB),
    row(Operation::ReduceScatter, 2..=4, 1..=512 * KIB),
    row(Operation::ReduceScatter, 5..=8, 1..=512 * KIB),
    row(Operation::AllToAll, 2..=2, 1..=512 * KIB),
    row(Operation::AllToAll, 3..=4, 1..=512 * KIB),
    row(Operation::AllToAll, 5..=8, 1..=512 * KIB),
];

/// The ranks that a communicator of the table may have.
pub(crate) const RANKS: RangeInclusive<usize> = 2..=8;

/// Whether the fabric is faster than NCCL.
pub(crate) fn has(work: &Work, ranks: usize) -> bool {
    let bytes = work.bytes(ranks);
    TABLE.iter().any(|row| row.operation == work.operation && row.ranks.contains(&ranks) && row.bytes.contains(&bytes))
}

//! Tables that need no plan, where every PE reaches every other.

use super::schedule::{
    checked_without_plan, cut, Call, Channel, Endpoint, Place, Schedule, Transfer, GRAIN, HOME, MIN_WORKER_BYTES,
};
use crate::plan::Operation;
use crate::Result;
use std::collections::BTreeMap;

/// Who does it, whose inputs from which byte on, whose outputs likewise, and how many bytes.
type Row = (usize, Vec<usize>, u64, Vec<usize>, u64, u64);

/// The table where every PE reads and writes the memory of every other: no relays, no rings and no order.
/// Each PE does an even part of the work of a reduction to all; otherwise the PE that has the data writes it.
///
/// # Errors
/// Sizes beyond the maxima, or an operation on host memory.
pub fn direct(call: &Call, pes: usize, workers: usize) -> Result<Schedule> {
    checked_without_plan(call, pes)?;
    let part = call.part;
    let all: Vec<usize> = (0..pes).collect();
    let mut rows: Vec<Row> = Vec::new();
    for me in 0..pes {
        let own = me as u64 * part;
        let others = |skip: bool| all.iter().copied().filter(|&v| !skip || v != me).collect::<Vec<_>>();
        match call.operation {
            Operation::Broadcast if me == call.root => rows.push((me, vec![me], 0, others(call.in_place), 0, part)),
            Operation::Reduce if me == call.root => rows.push((me, all.clone(), 0, vec![me], 0, part)),
            Operation::AllReduce => {
                let (begin, end) = cut(part, &vec![1.0; pes])[me];
                rows.push((me, all.clone(), begin, all.clone(), begin, end - begin));
            }
            Operation::AllGather => rows.push((me, vec![me], 0, others(call.in_place), own, part)),
            Operation::ReduceScatter => rows.push((me, all.clone(), own, vec![me], 0, part)),
            Operation::AllToAll => {
                all.iter().for_each(|&to| rows.push((me, vec![me], to as u64 * part, vec![to], own, part)));
            }
            Operation::Send if me == 0 => rows.push((0, vec![0], 0, vec![1], 0, part)),
            _ => {}
        }
    }
    let mut channels: Vec<Channel> = Vec::new();
    let mut transfers = Vec::new();
    let is_home = |row: &Row| row.1 == [row.0] && row.3 == [row.0];
    let (home, away): (Vec<&Row>, Vec<&Row>) = rows.iter().filter(|r| r.0 == rows[0].0).partition(|row| is_home(row));
    // All that stays at home is one row, beside those over links.
    let at_home =
        if away.is_empty() { workers } else { (workers * home.len() / (HOME * away.len() + 1)).max(home.len()) };
    let wanted = [at_home, workers.saturating_sub(at_home) / away.len().max(1)].map(|count| count.max(1) as u64);
    for row in rows {
        let wanted = wanted[usize::from(!is_home(&row))];
        let (at, inputs, input, outputs, output, bytes) = row;
        if outputs.is_empty() {
            continue;
        }
        let workers = wanted.min(bytes.div_ceil(MIN_WORKER_BYTES)).max(1) as usize;
        for (begin, end) in cut(bytes, &vec![1.0; workers]).into_iter().filter(|(begin, end)| begin < end) {
            // Its own input comes first, then the others in turn, so that not all read from one.
            let turned = |list: &[usize]| {
                let mut list = list.to_vec();
                list.sort_by_key(|&v| (v + pes - at) % pes);
                list
            };
            let mut told: BTreeMap<usize, usize> = BTreeMap::new();
            let mut notify = |node: usize| {
                (node != at).then(|| {
                    *told.entry(node).or_insert_with(|| {
                        channels.push(Channel { from: at, to: node, chunks: 1, ring: None, path: Vec::new(), tree: 0 });
                        channels.len() - 1
                    })
                })
            };
            let targets: Vec<Endpoint> = turned(&outputs)
                .into_iter()
                .map(|node| Endpoint { node, place: Place::Output, at: output + begin, channel: notify(node) })
                .collect();
            let source = |node: usize| Endpoint { node, place: Place::Input, at: input + begin, channel: None };
            let sources: Vec<Endpoint> = turned(&inputs).into_iter().map(source).collect();
            // Who is read from and not written to must know when that is over.
            let read = turned(&inputs).into_iter().filter(|node| !outputs.contains(node));
            let notifies = read.filter_map(&mut notify).collect();
            transfers.push(Transfer { at, sources, targets, notifies, bytes: end - begin });
        }
    }
    let longest = transfers.iter().map(|t: &Transfer| t.bytes).max().unwrap_or(0);
    let chunk = longest.next_multiple_of(GRAIN).max(GRAIN);
    Ok(Schedule { call: *call, pes, helpers: 0, chunk, slots: 1, transfers, channels, staging: vec![0; pes + 1] })
}

//! Small data on queues: kernels that send data and flag in one store.

use super::super::messages::ranges;
use super::super::protocol::HALVES;
use super::super::schedule::{Place, Shape, GRAIN};
use super::super::sim::Bound;
use super::tables::{numbers, Rows, Table, Tables, ROW, SPOT};
use crate::collective::{lock, Item, Shared, Way};
use crate::{ffi, Error, Result};
use std::sync::Mutex;

/// A message has a flag for each 32 bits.
const WIRE: u64 = 2;

pub(super) type Messages = Tables<ffi::tandem_exec_messages>;

/// Launches the kernels of a call.
pub(super) fn launch(tables: &Mutex<Messages>, shared: &Shared, item: &Item) -> Result<()> {
    let shape = Shape { lanes: shared.tuning().lanes, chunk: GRAIN, slots: HALVES };
    let schedule = shared.table(item, &shape, Way::Messages)?;
    let host = shared.team().size();
    let nodes: Vec<usize> = item.job.iter().copied().chain([host]).collect();
    let by_node = |list: &[u64]| (0..nodes.len()).map(|i| list.get(i).copied().unwrap_or(0)).collect();
    let (input, output) = (by_node(&item.input), by_node(&item.output));
    let bound = Bound { schedule, numbers: item.numbers, pes: nodes, input, output, staging: Vec::new() };
    let table = lock(tables).get(vec![bound], |bounds| build(shared, bounds))?;
    table.launch(shared, std::slice::from_ref(item), |stream, team, args| {
        // SAFETY: the table's addresses were made from memory of this world that the table, the item or the graph keep, and
        // which is not freed before this stream has got past the kernel; its sizes were checked with the schedule.
        unsafe { ffi::tandem_exec_messages_run(team, args, stream) }
    })
}

/// Where a table's words are, the same on every PE: rings, what was read of those that this PE fills, rounds of lanes, then
/// what only this PE has.
struct Layout {
    read: usize,
    rounds: usize,
    own: usize,
}

fn build(shared: &Shared, mut bounds: Vec<Bound>) -> Result<Table<ffi::tandem_exec_messages>> {
    let team = shared.team();
    let bound = bounds.first_mut().ok_or_else(|| Error::invalid("collective", "nothing to do"))?;
    let schedule = bound.schedule.clone();
    let rings = schedule.staging.iter().copied().max().unwrap_or(0) * WIRE / 8;
    let lanes = ranges(&schedule.call, shared.tuning().lanes).len();
    let read = rings as usize;
    let rounds = read + schedule.channels.len();
    let layout = Layout { read, rounds, own: rounds + lanes };
    // By PE of the job: the lanes' rows, one lane after the other.
    let rows = |node: usize| schedule.transfers.iter().filter(move |t| t.at == node);
    let words =
        |node: usize| rows(node).map(|t| ROW + (t.sources.len() + t.targets.len()) * SPOT).sum::<usize>() / lanes;
    let most = (0..schedule.pes).map(words).max().unwrap_or(0);
    if most > ffi::TANDEM_EXEC_MESSAGE_WORDS as usize {
        return Err(Error::invalid("collective", format!("a table of {most} words for {} PEs", schedule.pes)));
    }
    let memory = team.alloc::<u64>(layout.own + most * lanes)?;
    let at = |pe: usize, word: usize| Ok::<u64, Error>(team.queue(pe).address(&memory)? + 8 * word as u64);
    let staging = bound.pes[..schedule.pes].iter().map(|&pe| at(pe, 0)).collect::<Result<Vec<u64>>>()?;
    let (kind, how) = numbers(bound.numbers);
    let mut args = vec![None; team.size()];
    for node in 0..schedule.pes {
        let pe = bound.pes[node];
        let all: Vec<_> = rows(node).collect();
        if all.is_empty() {
            continue;
        }
        let mut out: Vec<u64> = Vec::new();
        for lane in all.chunks(all.len() / lanes) {
            let mut own = Rows::default();
            for transfer in lane {
                let begin = own.spots.len() / SPOT;
                for spot in transfer.sources.iter().chain(&transfer.targets) {
                    let (place, read, peer) = match spot.place {
                        Place::Ring(ch) => {
                            let channel = &schedule.channels[ch];
                            let ring = channel.ring.map_or(0, |ring| ring.at) * WIRE;
                            let other = if channel.from == node { channel.to } else { channel.from };
                            let read = at(bound.pes[channel.from], layout.read + ch)?;
                            (staging[spot.node] + ring, read, bound.pes[other])
                        }
                        _ => (bound.address(spot, 0), 0, pe),
                    };
                    own.spots.extend([place, 0, read, peer as u64]);
                }
                let ends = (transfer.sources.len(), transfer.targets.len(), 0);
                own.row(transfer.bytes, 0, schedule.chunk * WIRE, HALVES, begin, ends);
            }
            out.extend(own.rows.iter().chain(&own.spots));
        }
        team.write(pe, &memory.slice(layout.own..layout.own + out.len())?, &out)?;
        args[pe] = Some(ffi::tandem_exec_messages {
            lanes: at(pe, layout.own)?,
            rounds: at(pe, layout.rounds)?,
            lane_count: lanes as u32,
            words: (out.len() / lanes) as u32,
            rows: (all.len() / lanes) as u32,
            kind,
            how,
            pad: 0,
        });
    }
    Ok(Table::new(args, vec![memory.cast()?], None, bounds))
}

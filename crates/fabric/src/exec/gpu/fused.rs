//! Tables for the fused kernel: rows, places and counters in the memory of each PE.

use super::super::launchers::Launchers;
use super::super::schedule::{Endpoint, Place, Schedule, Shape, GRAIN};
use super::super::sim::Bound;
use super::super::tables::{numbers, Rows, Table, Tables, ENDPOINT, ROW};
use crate::planner::{lock, Algorithm, Item, Planner};
use crate::rank::MAX_PES;
use crate::world::PinnedLoan;
use crate::{ffi, Error, Queue, Result, Symmetric};
use std::sync::{Arc, Mutex};
use tandem_cuda::Pinned;

pub(super) type Fused = Tables<ffi::tandem_exec_table>;

/// Launches the kernels of a call. Where there are ways through host memory, that is for recordings alone, which cannot hold
/// what copy engines of several GPUs are ordered by; else nothing is done and false comes back.
pub(super) fn launch(
    tables: &Mutex<Fused>,
    launchers: &Launchers,
    blocks: usize,
    shared: &Planner,
    items: &[Item],
) -> Result<bool> {
    let tuning = shared.tuning();
    let make = |workers: usize| {
        let workers = (workers.min(blocks.saturating_sub(1)) / items.len()).max(1);
        let table = |item: &Item| {
            let shape = shared.shape(item, workers);
            // Calls at once share the rings.
            let chunk = shape.chunk / items.len() as u64 / GRAIN * GRAIN;
            let shape = Shape { chunk, ..shape };
            let table = shared.table(item, &shape, shared.way(item))?;
            // A plan has a transfer for each of its ways, however few blocks there are: several PEs share the GPU.
            let is_too_much = most_at_once(&table) > blocks.saturating_sub(1) / items.len();
            if is_too_much && shared.reach_all(item) {
                return shared.table(item, &shape, Algorithm::Direct);
            }
            Ok(table)
        };
        items.iter().map(table).collect::<Result<Vec<_>>>()
    };
    let mut schedules = make(tuning.workers)?;
    let has_host = schedules.iter().any(|s| s.staging[s.host()] > 0);
    if has_host && !shared.is_recording() {
        return Ok(false);
    }
    if has_host && shared.team().core().group().is_some() {
        return Err(Error::invalid(
            "collective",
            "the GPUs are joined by host memory alone, which their processes do not share",
        ));
    }
    if has_host {
        schedules = make(tuning.workers.min(HOST_WORKERS))?;
    }
    let (bounds, staging) = shared.bind(items, schedules, NO_HOST)?;
    let build = |bounds| build(shared, bounds, staging, blocks);
    let table = if has_host { Arc::new(build(bounds)?) } else { lock(tables).get(bounds, build)? };
    table.launch(launchers, shared, items, |stream, team, args| {
        // SAFETY: the table's addresses were made from memory of this world that the table, the items or the graph keep, and
        // which is not freed before this stream has got past the kernel, or from page-locked memory of the table, which the graph keeps; its
        // sizes were checked with the schedule.
        unsafe { ffi::tandem_exec_fused(team, args, stream) }
    })?;
    Ok(true)
}

/// Transfers of the PE that has the most.
fn most_at_once(schedule: &Schedule) -> usize {
    (0..schedule.pes + schedule.helpers)
        .map(|pe| schedule.transfers.iter().filter(|t| t.at == pe).count())
        .max()
        .unwrap_or(0)
}

/// Rows of a PE where some go through host memory: the blocks that wait for words there slow each other down.
const HOST_WORKERS: usize = 16;
/// Where the rings in host memory would begin, until there are some.
const NO_HOST: u64 = 1;

/// Page-locked memory for the rings of ways through host memory, and for two counters of each channel behind them: PEs that need such a
/// way may not reach each other. Gives the rings their addresses.
fn host_memory(shared: &Planner, bounds: &mut [Bound], channels: usize) -> Result<Option<PinnedLoan>> {
    let rings: u64 = bounds.iter().map(|b| b.schedule.staging[b.schedule.host()]).sum();
    let len = usize::try_from(rings).map_err(|_| Error::invalid("staging", "too large"))?;
    let Some(stream) = shared.team().queues().first().and_then(Queue::stream).filter(|_| len > 0) else {
        return Ok(None);
    };
    let memory = Pinned::new(stream.device(), len.next_multiple_of(8) + 16 * channels)?;
    let memory = PinnedLoan::new(&shared.team().core().world, memory);
    for bound in bounds {
        let host = bound.schedule.host();
        bound.staging[host] += memory.address() - NO_HOST;
    }
    Ok(Some(memory))
}

/// Where a table's words are, the same on every PE: readiness, counters of channels, rounds of blocks, then what only this PE has.
struct Layout {
    produced: usize,
    consumed: usize,
    rounds: usize,
    own: usize,
}

/// What one PE's part of the memory begins with at `Layout::own`.
#[derive(Default)]
struct Own {
    table: Rows,
    awaited: Vec<u64>,
    touched_by: u64,
}

fn build(
    shared: &Planner,
    mut bounds: Vec<Bound>,
    staging: Symmetric<u8>,
    blocks: usize,
) -> Result<Table<ffi::tandem_exec_table>> {
    let team = shared.team();
    let channels: usize = bounds.iter().map(|b| b.schedule.channels.len()).sum();
    let pes = team.size();
    let rows = |pe: usize| {
        bounds.iter().map(|b| b.schedule.transfers.iter().filter(|t| b.pes[t.at] == pe).count()).sum::<usize>()
    };
    let most = (0..pes).map(rows).max().unwrap_or(0);
    if most >= blocks {
        let problem = format!("{most} transfers at a time on one PE, which holds {blocks} blocks less one");
        return Err(Error::NotResident(problem));
    }
    let layout = Layout {
        produced: MAX_PES,
        consumed: MAX_PES + channels,
        rounds: MAX_PES + 2 * channels,
        own: MAX_PES + 2 * channels + most + 1,
    };
    let mut own: Vec<Own> = (0..pes).map(|_| Own::default()).collect();
    // The memory's address is needed to fill it, so its size is computed first.
    let endpoints = |pe: usize| {
        let of = |b: &Bound| {
            let mine = b.schedule.transfers.iter().filter(|t| b.pes[t.at] == pe);
            let awaited = b.schedule.channels.iter().filter(|c| b.pes[c.to] == pe).count();
            mine.map(|t| t.sources.len() + t.targets.len() + t.notifies.len()).sum::<usize>() + awaited
        };
        bounds.iter().map(of).sum::<usize>()
    };
    let words = (0..pes).map(|pe| layout.own + rows(pe) * ROW + endpoints(pe) * ENDPOINT).max().unwrap_or(0);
    let memory = team.alloc::<u64>(words)?;
    let host = host_memory(shared, &mut bounds, channels)?;
    let counters = host.as_ref().map_or(0, |host| (host.address() + host.len() as u64) - 16 * channels as u64);
    let core = team.core();
    let at = |pe: usize, word: usize| Ok::<u64, Error>(core.address("collective", &memory, pe)? + 8 * word as u64);
    let mut first = 0;
    for bound in &bounds {
        fill(shared, bound, first, &layout, &at, counters, &mut own)?;
        first += bound.schedule.channels.len();
    }
    let (kind, how) = numbers(bounds.iter().find_map(|b| b.numbers));
    let mut args = Vec::new();
    for (pe, own) in own.into_iter().enumerate() {
        let count = own.table.rows.len() / ROW;
        // Each process writes what its own PEs read.
        if count == 0 && own.awaited.is_empty() && own.touched_by == 0 || !core.is_local(pe) {
            args.push(None);
            continue;
        }
        let (endpoints, awaited) =
            (layout.own + own.table.rows.len(), layout.own + own.table.rows.len() + own.table.endpoints.len());
        args.push(Some(ffi::tandem_exec_table {
            transfers: at(pe, layout.own)?,
            endpoints: at(pe, endpoints)?,
            awaited: at(pe, awaited)?,
            rounds: at(pe, layout.rounds)?,
            ready: at(pe, 0)?,
            touched_by: own.touched_by,
            transfer_count: count as u32,
            awaited_count: (own.awaited.len() / ENDPOINT) as u32,
            kind,
            op: how,
        }));
        let all: Vec<u64> = [own.table.rows, own.table.endpoints, own.awaited].concat();
        team.write(pe, &memory.slice(layout.own..layout.own + all.len())?, &all)?;
    }
    Ok(Table::new(args, vec![memory.cast()?, staging], host, bounds))
}

#[allow(clippy::too_many_arguments)] // private, and each is one thing
fn fill(
    shared: &Planner,
    bound: &Bound,
    first: usize,
    layout: &Layout,
    at: &impl Fn(usize, usize) -> Result<u64>,
    counters: u64,
    own: &mut [Own],
) -> Result<()> {
    let schedule = &bound.schedule;
    // Both counters of a channel are where both its ends can reach them.
    let counter = |ch: usize, is_read: bool| {
        let channel = &schedule.channels[ch];
        let (from, to) = (bound.pes[channel.from], bound.pes[channel.to]);
        let is_apart = shared.team().reaches(from, to).is_err() || shared.team().reaches(to, from).is_err();
        match is_apart {
            true => Ok(counters + 16 * (first + ch) as u64 + 8 * u64::from(is_read)),
            false if is_read => at(from, layout.consumed + first + ch),
            false => at(to, layout.produced + first + ch),
        }
    };
    let produced = |ch: usize| counter(ch, false);
    let consumed = |ch: usize| counter(ch, true);
    for transfer in &schedule.transfers {
        let me = bound.pes[transfer.at];
        let begin = own[me].table.endpoints.len() / ENDPOINT;
        let mut touches = 0u64;
        let peer = |ch: usize, is_source: bool| {
            let channel = &schedule.channels[ch];
            bound.pes[if is_source { channel.from } else { channel.to }] as u64
        };
        let mut add = |endpoint: &Endpoint, is_source: bool| -> Result<()> {
            let ring = match endpoint.place {
                Place::Ring(ch) => consumed(ch)?,
                _ => 0,
            };
            let word = endpoint.channel.map_or(Ok(0), produced)?;
            let with = endpoint.channel.map_or(0, |ch| peer(ch, is_source));
            let other = bound.pes[endpoint.node];
            // Host memory belongs to no PE.
            if other != me && other < own.len() {
                touches |= 1 << other;
                own[other].touched_by |= 1 << me;
            }
            own[me].table.endpoints.extend([bound.address(endpoint, 0), word, ring, with]);
            Ok(())
        };
        transfer.sources.iter().try_for_each(|s| add(s, true))?;
        transfer.targets.iter().try_for_each(|s| add(s, false))?;
        for &ch in &transfer.notifies {
            own[me].table.endpoints.extend([0, produced(ch)?, 0, peer(ch, false)]);
        }
        let ends = (transfer.sources.len(), transfer.targets.len(), transfer.notifies.len());
        own[me].table.row(transfer.bytes, touches, schedule.chunk, schedule.slots, begin, ends);
    }
    for (ch, channel) in schedule.channels.iter().enumerate().filter(|(_, c)| c.chunks > 0) {
        own[bound.pes[channel.to]].awaited.extend([channel.chunks, produced(ch)?, 0, bound.pes[channel.from] as u64]);
    }
    Ok(())
}

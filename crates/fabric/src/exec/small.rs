//! Operations on little data in memory, and on streams, of somebody else: another library of this process, whose buffers are no symmetric
//! memory and whose streams are no queues of the team.
//!
//! Messages make that possible ([`super::messages()`]): a PE reads and writes buffers of its own alone, and what passes between PEs lies in
//! symmetric memory. So nobody needs access to a buffer of another GPU.

use super::element::{Combine, Kind};
use super::mail;
use super::schedule::Call;
use super::tables::Table;
use super::worker::Part;
use crate::plan::Operation;
use crate::planner::Item;
use crate::{ffi, Collectives, Error, Result};
use std::sync::Arc;
use tandem_cuda::Stream;

/// What is to be done.
#[derive(Debug, Clone)]
pub struct SmallCall {
    /// One of the six that have no host memory in them and are of the whole job.
    pub operation: Operation,
    /// How numbers are combined; `None` where nothing is.
    pub numbers: Option<(Kind, Combine)>,
    /// Where a broadcast begins or a reduction ends, as a place in the job.
    pub root: usize,
    /// Bytes of a part, as of [`Call::part`].
    pub part: u64,
    /// By PE of the job: the address that is read. One that reads nothing may have any.
    pub from: Vec<u64>,
    /// By PE of the job: the address that is written.
    pub to: Vec<u64>,
}

/// An operation whose table is in the memory of the PEs, so that it can be done again and again.
pub struct Small {
    collectives: Collectives,
    item: Item,
    table: Arc<Table<Part>>,
    /// By PE of the team: the team as its kernels get it. None for pretend PEs.
    teams: Vec<Option<ffi::tandem_team>>,
}

// SAFETY: the pointers in the teams are handed to kernels and not followed here; what they point to lives as long as the team.
unsafe impl Send for Small {}
// SAFETY: as above.
unsafe impl Sync for Small {}

impl Collectives {
    /// Makes the table of an operation on little data; nothing is read or written at the call's addresses.
    ///
    /// # Errors
    /// Other operations; addresses for other PEs; no bytes, or more than messages carry ([`super::Tuning::messages`], of all PEs
    /// together); numbers where nothing is combined, or none where something is; PEs that do not reach each other; memory; a device failed.
    pub fn small(&self, call: &SmallCall) -> Result<Small> {
        let op = call.operation.name();
        let (planner, pes) = (self.planner(), self.job().len());
        let combines = match call.operation {
            Operation::AllReduce | Operation::Reduce | Operation::ReduceScatter => true,
            Operation::Broadcast | Operation::AllGather | Operation::AllToAll => false,
            _ => return Err(Error::invalid(op, "not an operation of the whole job on its own memory")),
        };
        if call.from.len() != pes || call.to.len() != pes || call.root >= pes {
            let (from, to, root) = (call.from.len(), call.to.len(), call.root);
            return Err(Error::invalid(op, format!("{from} and {to} addresses and root {root} for {pes} PEs")));
        }
        let unit = call.numbers.map_or(1, |(kind, _)| kind.bytes());
        if call.numbers.is_some() != combines || call.part == 0 || !call.part.is_multiple_of(unit) {
            let problem = format!("{} bytes of {:?}", call.part, call.numbers);
            return Err(Error::invalid(op, problem));
        }
        // Only where the PE's own numbers are overwritten by sums does the order in which it does its rows matter.
        let in_place = call.operation == Operation::AllReduce && call.from.iter().zip(&call.to).any(|(a, b)| a == b);
        let shape = Call { operation: call.operation, root: call.root, part: call.part, unit, in_place };
        let (input, output) = (call.from.clone(), call.to.clone());
        let item = Item {
            call: shape,
            job: self.job().to_vec(),
            numbers: call.numbers,
            input,
            output,
            keep: Vec::new(),
            at_once: 1,
        };
        self.team().check()?;
        if call.part.checked_mul(pes as u64).is_none() || planner.message(std::slice::from_ref(&item)).is_none() {
            let most = planner.tuning.messages;
            let problem = format!(
                "{} bytes for each of {pes} PEs, expected 2 or more that reach each other and {most} bytes at most",
                call.part
            );
            return Err(Error::invalid(op, problem));
        }
        let table = mail::table(self.mail(), planner, &item)?;
        let team = self.team();
        let teams = (0..team.size()).map(|pe| team.core().is_local(pe).then(|| team.queue(pe).handle()).flatten());
        let teams = teams.collect();
        Ok(Small { collectives: self.clone(), item, table, teams })
    }
}

impl Small {
    /// Does it: on GPUs as a kernel on each of `streams`, one for each PE of the job; pretend PEs do it on the queues of their team, and
    /// have no streams. Nothing has happened when the call returns.
    ///
    /// # Safety
    /// The addresses of the call are memory of the PEs' own, of as many bytes as the operation reads and writes, from now until the kernels
    /// are done; nothing else writes what is read or touches what is written meanwhile. A value's streams are the same each time, and it is
    /// kept until its kernels are done: it counts its rounds in memory of its own.
    ///
    /// # Errors
    /// Streams of other devices; the team had a fault; a device failed. Some PEs may have begun then, and wait for the others.
    pub unsafe fn run(&self, streams: &[Stream]) -> Result<()> {
        let team = self.collectives.team();
        team.check()?;
        if !team.is_cuda() {
            return self.collectives.in_sim(std::slice::from_ref(&self.item));
        }
        let (op, job) = (self.item.call.operation.name(), &self.item.job);
        let fits = |(&pe, stream): (&usize, &Stream)| {
            team.queue(pe).stream().is_some_and(|own| own.device() == stream.device())
        };
        if streams.len() != job.len() || !job.iter().zip(streams).all(fits) {
            return Err(Error::invalid(
                op,
                format!("{} streams for {} PEs, or of other GPUs", streams.len(), job.len()),
            ));
        }
        for (pe, part) in self.table.args() {
            let place = job.iter().position(|&one| one == pe);
            let (Some(stream), Some(handle)) = (place.map(|i| &streams[i]), &self.teams[pe]) else { continue };
            let args = super::gpu::message_args(part);
            // SAFETY: the table's addresses are of memory of this world that this value keeps; its sizes were checked with the schedule;
            // for the rest the caller answers.
            stream.call("collective", |raw| unsafe { ffi::tandem_exec_messages_run(handle, &args, raw) })?;
        }
        Ok(())
    }
}

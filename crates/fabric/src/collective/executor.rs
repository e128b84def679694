//! Carries operations out: by GPUs, or by pretend PEs.

use crate::exec::sim::{Bound, Bytes, Run};
use crate::exec::tables::{Table, Tables};
use crate::exec::worker::{carry_out, Words, Worker};
use crate::exec::{gpu, mail, predict_each, Schedule, Shape};
use crate::onesided::OneSided;
use crate::planner::{lock, Algorithm, Item, Planner, HOST_SLOTS};
use crate::sim::Word;
use crate::world::Allocation;
use crate::{ffi, Error, HostLinks, Pe, Result, Symmetric};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// What the handles to a team's collectives share.
pub(super) struct Executor {
    pub(super) planner: Planner,
    /// Tables of messages.
    pub(super) mail: Mutex<mail::Mail>,
    /// Tables of pretend PEs.
    pub(super) runs: Mutex<Tables<Arc<Run<Word>>>>,
    pub(super) gpus: Option<gpu::Gpus>,
    /// Made when first needed.
    pub(super) links: Mutex<Option<Arc<HostLinks>>>,
}

impl Executor {
    /// Waits until the queues of those of these PEs that this process has have done what they were told.
    pub(super) fn idle(&self, pes: impl Iterator<Item = usize>) -> Result<()> {
        let team = &self.planner.team;
        let busy = pes.filter(|&pe| team.core().is_local(pe)).map(|pe| team.queue(pe)).filter(|queue| !queue.is_idle());
        let results: Vec<Result<()>> = busy.map(|queue| queue.synchronize()).collect();
        results.into_iter().collect()
    }

    pub(super) fn on_gpus(&self, gpus: &gpu::Gpus, items: &[Item], is_now: bool) -> Result<()> {
        let planner = &self.planner;
        planner.goes_through_host(0.0);
        if is_now && gpus.resident(planner, items)? {
            return Ok(());
        }
        gpus.leave();
        // Copy engines are ordered by events, which are of one process.
        if planner.is_for_engines(items) && planner.team.core().group().is_none() {
            return gpus.engines(planner, items, is_now);
        }
        match planner.message(items) {
            Some(item) => gpus.messages(&self.mail, planner, item),
            None => gpus.fused(planner, items, is_now),
        }
    }

    /// Pretend PEs take the ways that GPUs would; what counts for times is what the topology says.
    fn sim_table(&self, items: &[Item], item: &Item) -> Result<Arc<Schedule>> {
        let planner = &self.planner;
        let tuning = &planner.tuning;
        let shape = planner.shape(item, tuning.workers);
        let through = planner.through(items);
        if through > 0 && planner.is_copied(item) {
            let split = Shape { workers: 1, chunk: tuning.host_chunk, slots: HOST_SLOTS };
            if let Ok(table) = planner.table(item, &split, Algorithm::Planned(through)) {
                let ends = predict_each(&table, &planner.topology)?;
                let is_host = |i: usize| {
                    let row = &table.transfers[i];
                    row.sources.iter().chain(&row.targets).any(|endpoint| endpoint.node == table.host())
                };
                let last = |wanted: bool| {
                    (0..ends.len()).filter(|&i| is_host(i) == wanted).map(|i| ends[i]).fold(0.0, f64::max)
                };
                planner.observe(last(false), last(true));
                return Ok(table);
            }
        }
        planner.table(item, &shape, planner.way(item))
    }

    pub(super) fn in_sim(&self, items: &[Item]) -> Result<()> {
        let planner = &self.planner;
        if let Some(item) =
            planner.message(items).filter(|item| !planner.is_copied(item) || planner.through(items) == 0)
        {
            return self.mail_in_sim(item);
        }
        let tables = items.iter().map(|item| self.sim_table(items, item));
        let (bounds, staging) = planner.bind(items, tables.collect::<Result<_>>()?, 0)?;
        planner.tell_through_host(&bounds);
        let table = lock(&self.runs).get(bounds, |bounds| self.shared_run(bounds, staging))?;
        let keep: Vec<&Arc<Allocation>> = items.iter().flat_map(|item| &item.keep).map(Symmetric::memory).collect();
        for (pe, run) in table.args() {
            // As long as the program, so is what it works on.
            let (run, kept) = (run.clone(), table.clone());
            let timeout = planner.team.core().timeout;
            let program = move |pe: &Pe| {
                let _kept = &kept;
                let seed = SEED.wrapping_mul(pe.me() as u64 + 1);
                let done = run.pe(pe.me(), pe, timeout, || pe.is_over(), seed);
                done.map_err(|stuck| pe.late(stuck.peer as u32, 0, stuck.seen, stuck.wanted))
            };
            planner.team.queue(pe).program(program, &keep)?;
        }
        Ok(())
    }

    /// Tables that pretend PEs carry out together, with counters in the memory of the first PE, where all processes see them.
    fn shared_run(&self, bounds: Vec<Bound>, staging: Symmetric<u8>) -> Result<Table<Arc<Run<Word>>>> {
        let (op, core) = ("collective", self.planner.team.core());
        let memory = core.pretend.as_ref().ok_or_else(|| Error::invalid(op, "the PEs are no pretend ones"))?;
        let counters = self.planner.team.alloc::<u64>(Run::<Word>::words(&bounds))?;
        if core.local().next().is_none() {
            // A job of another node, whose memory may not be here: this process has only agreed on it.
            return Ok(Table::new(vec![None; core.members.len()], vec![counters.cast()?, staging], None, bounds));
        }
        let at = core.address(op, &counters, 0)?;
        let words = (0..counters.len() as u64).map(|i| memory.word(at + 8 * i, ffi::TANDEM_WORD_U64));
        let words = words.collect::<std::result::Result<Vec<Word>, _>>();
        let words = words.map_err(|_| Error::invalid(op, "its counters have no memory"))?;
        let run = Arc::new(Run::over(bounds.clone(), words));
        let is_worker = |pe: &usize| bounds.iter().flat_map(Bound::workers).any(|worker| worker == *pe);
        let args = (0..core.members.len()).map(|pe| (core.is_local(pe) && is_worker(&pe)).then(|| run.clone()));
        Ok(Table::new(args.collect(), vec![counters.cast()?, staging], None, bounds))
    }

    /// Small data: the words that kernels would read, and what they would do with them.
    fn mail_in_sim(&self, item: &Item) -> Result<()> {
        let planner = &self.planner;
        planner.goes_through_host(0.0);
        let table = mail::table(&self.mail, planner, item)?;
        let keep: Vec<&Arc<Allocation>> = item.keep.iter().map(Symmetric::memory).collect();
        let timeout = planner.team.core().timeout;
        for (pe, &part) in table.args() {
            // As long as the program, so is what it works on.
            let kept = table.clone();
            let program = move |pe: &Pe| {
                let _kept = &kept;
                let workers = part.begin(pe);
                let seed = SEED.wrapping_mul(pe.me() as u64 + 1).wrapping_add(workers.first().map_or(0, Worker::round));
                let done = carry_out(workers, pe, timeout, || pe.is_over(), seed);
                done.map_err(|missing| pe.late(missing.peer as u32, missing.place, missing.seen, missing.wanted))
            };
            planner.team.queue(pe).program(program, &keep)?;
        }
        Ok(())
    }
}

/// Of the order in which pretend PEs do what has no order.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

impl Bytes for Pe {
    fn read(&self, from: u64, to: &mut [u8]) {
        self.read_at(from, to);
    }
    fn write(&self, to: u64, from: &[u8]) {
        self.write_at(to, from);
    }
}

impl Words for Pe {
    type Word = AtomicU64;
    fn words(&self, at: u64, count: u64, f: impl FnMut(u64, &AtomicU64)) {
        self.words_at(at, count, f);
    }
}

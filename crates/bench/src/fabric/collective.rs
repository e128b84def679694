//! The fabric's collective operations.

use super::args::Choices;
use super::context::{failed, Context};
use super::data::{Job, Pattern};
use super::subject::Subject;
use std::sync::Arc;
use tandem_console::failure::Outcome;
use tandem_fabric::exec::{Combine, Tuning};
use tandem_fabric::plan::Operation;
use tandem_fabric::{Collectives, HostLinks, Symmetric, Team};

/// An operation of [`Collectives`].
pub(crate) struct Ours {
    name: String,
    team: Team,
    links: Arc<HostLinks>,
    pattern: Arc<Pattern>,
    /// The PEs of the job, its root first.
    members: Vec<usize>,
    queued: Collectives,
    now: Collectives,
    job: Job,
    from: Symmetric<f32>,
    to: Symmetric<f32>,
    len: usize,
    out: usize,
}

impl Ours {
    pub(crate) fn new(c: &Context, job: Job, choices: Option<&Choices>) -> Outcome<Self> {
        let tuning = choices.map_or(Tuning::default(), |choices| choices.tuning);
        let ways = if job.both_ways { ", both ways" } else { "" };
        let name = format!("tandem{ways}{}", choices.map_or(String::new(), |choices| format!(", {}", choices.text)));
        let queued = Collectives::of(&c.team, &c.topology, &c.job, tuning).map_err(failed)?;
        let alloc = || c.team.alloc::<f32>(c.most).map_err(failed);
        let (from, to, now) = (alloc()?, alloc()?, queued.now());
        let (team, links, pattern, members) = (c.team.clone(), c.links.clone(), c.pattern.clone(), c.job.clone());
        Ok(Self { name, team, links, pattern, members, queued, now, job, from, to, len: 0, out: 0 })
    }

    fn run(&self, on: &Collectives) -> Outcome {
        let from = &self.from.slice(0..self.len).map_err(failed)?;
        let to = &self.to.slice(0..self.out).map_err(failed)?;
        let (first, second) = (self.members[0], self.members[1]);
        match self.job.operation {
            Operation::Send if self.job.both_ways => on.together(|g| {
                g.send(first, second, from, to)?;
                g.send(second, first, from, to)
            }),
            Operation::Broadcast => on.broadcast(first, from, to),
            Operation::Reduce => on.reduce(Combine::Sum, first, from, to),
            Operation::AllReduce => on.all_reduce(Combine::Sum, from, to),
            Operation::AllGather => on.all_gather(from, to),
            Operation::ReduceScatter => on.reduce_scatter(Combine::Sum, from, to),
            Operation::AllToAll => on.all_to_all(from, to),
            // Host memory has tables of its own.
            Operation::Send | Operation::Upload | Operation::Download => on.send(first, second, from, to),
        }
        .map_err(failed)
    }
}

impl Subject for Ours {
    fn library(&self) -> String {
        self.name.clone()
    }

    fn prepare(&mut self, bytes: u64) -> Outcome<u64> {
        (self.len, self.out) = self.job.lens((bytes / 4) as usize, self.members.len());
        for (i, &pe) in self.members.iter().enumerate() {
            let from = self.from.slice(0..self.len).map_err(failed)?;
            self.links.upload(pe, &from, self.pattern.of(i, self.len)).map_err(failed)?;
        }
        Ok(self.len.max(self.out) as u64 * 4)
    }

    fn start(&mut self) -> Outcome {
        self.run(&self.queued)
    }

    fn wait(&mut self) -> Outcome {
        self.team.queues().iter().try_for_each(|queue| queue.synchronize()).map_err(failed)
    }

    fn planned(&self) -> Option<f64> {
        self.queued.plan(self.job.operation).ok().map(|plan| plan.rate.to_f64() / 1e3)
    }

    fn through_host(&self) -> Option<f64> {
        Some(self.now.through_host())
    }

    fn once(&mut self) -> Outcome {
        self.run(&self.now)
    }

    /// Both ways of calling it.
    fn wrong(&mut self) -> Outcome<Option<u64>> {
        let pes = self.members.len();
        let to = self.to.slice(0..self.out).map_err(failed)?;
        let mut got = vec![0f32; self.out];
        let mut wrong = 0;
        for is_now in [false, true] {
            for &pe in &self.members {
                self.links.upload(pe, &to, self.pattern.poison(self.out)).map_err(failed)?;
            }
            if is_now {
                self.once()?;
            } else {
                self.start()?;
                self.wait()?;
            }
            for (i, &pe) in self.members.iter().enumerate().filter(|(i, _)| self.job.has_result(*i)) {
                self.links.download(pe, &to, &mut got).map_err(failed)?;
                wrong += self.pattern.wrong(self.job, pes, i, self.len, &got);
            }
        }
        Ok(Some(wrong))
    }
}

//! Collectives of 8 bytes inside kernels, or inside the programs of pretend PEs.

use super::context::{failed, Context};
use super::subject::Subject;
use tandem_console::failure::Outcome;
use tandem_fabric::exec::Combine;
use tandem_fabric::kernels::{inside, Inside, Scope};
use tandem_fabric::{OneSided, Pe, Symmetric, Team};

/// All PEs meet again and again inside one kernel of each.
pub(crate) struct Meet {
    team: Team,
    words: Symmetric<u64>,
    what: Inside,
    scope: Scope,
}

impl Meet {
    pub(crate) fn new(c: &Context, what: Inside, scope: Scope) -> Outcome<Self> {
        let words = c.team.alloc(2 * c.team.size() + 1).map_err(failed)?;
        Ok(Self { team: c.team.clone(), words, what, scope })
    }
}

/// The rounds of a pretend PE; the last of its words says how many results were wrong.
fn rounds(pe: &Pe, what: Inside, words: &Symmetric<u64>, rounds: u64) -> tandem_fabric::Result<()> {
    let (n, me) = (pe.size(), pe.me());
    let sent = |round: u64, from: usize, to: usize| round * 1024 + from as u64 * 32 + to as u64;
    let (from, to) = (words.slice(0..n)?, words.slice(n..2 * n)?);
    let (one, result) = (from.at(0)?, to.at(0)?);
    let mut wrong = 0;
    for round in 1..=rounds {
        let root = round as usize % n;
        pe.store(&from, &(0..n).map(|to| sent(round, me, to)).collect::<Vec<_>>())?;
        let all = |to: usize| (0..n).map(|pe| sent(round, pe, to)).collect::<Vec<_>>();
        let is_right = match what {
            Inside::Barrier => pe.barrier().map(|()| true)?,
            Inside::Broadcast => {
                pe.broadcast(root, &one, &result)?;
                pe.load(&result)? == [sent(round, root, 0)]
            }
            Inside::AllReduce => {
                pe.all_reduce(Combine::Sum, &one, &result)?;
                pe.load(&result)? == [all(0).iter().sum::<u64>()]
            }
            Inside::AllGather => {
                pe.all_gather(&one, &to)?;
                pe.load(&to)? == all(0)
            }
            Inside::AllToAll => {
                pe.all_to_all(&from, &to)?;
                pe.load(&to)? == all(me)
            }
        };
        wrong += u64::from(!is_right);
    }
    pe.store(&words.at(2 * n)?, &[wrong])
}

impl Subject for Meet {
    fn library(&self) -> String {
        let what = match self.what {
            Inside::Barrier => "barrier",
            Inside::Broadcast => "broadcast",
            Inside::AllReduce => "all_reduce",
            Inside::AllGather => "all_gather",
            Inside::AllToAll => "all_to_all",
        };
        let scope = match self.scope {
            Scope::Thread => "thread",
            Scope::Warp => "warp",
            Scope::Block => "block",
        };
        match self.team.is_cuda() {
            true => format!("tandem {what}, {scope}"),
            false => format!("tandem {what}"),
        }
    }

    fn prepare(&mut self, _: u64) -> Outcome<u64> {
        Ok(8)
    }

    fn repeats(&self) -> u32 {
        // The launch on all GPUs takes as long as some hundred.
        if self.team.is_cuda() {
            20_000
        } else {
            20
        }
    }

    fn start(&mut self) -> Outcome {
        // What still runs needs its words.
        self.wait()?;
        let count = u64::from(self.repeats());
        if self.team.is_cuda() {
            return inside(&self.team, self.what, self.scope, &self.words, count).map_err(failed);
        }
        for queue in self.team.queues() {
            let (what, words) = (self.what, self.words.clone());
            queue.run(move |pe| rounds(pe, what, &words, count)).map_err(failed)?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Outcome {
        self.team.synchronize().map_err(failed)
    }

    fn is_queued(&self) -> bool {
        false
    }

    /// The kernels count the values that they did not expect.
    fn wrong(&mut self) -> Outcome<Option<u64>> {
        self.start()?;
        self.wait()?;
        let last = self.words.at(2 * self.team.size()).map_err(failed)?;
        let each = (0..self.team.size()).map(|pe| self.team.read(pe, &last).map_err(failed));
        Ok(Some(each.collect::<Outcome<Vec<_>>>()?.into_iter().flatten().sum()))
    }
}

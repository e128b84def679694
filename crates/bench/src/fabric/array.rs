//! Assignments between global arrays: what an all-to-all is to who thinks of one array.

use super::context::{failed, Context};
use super::data::{differing, Pattern};
use super::subject::Subject;
use std::sync::Arc;
use tandem_console::failure::Outcome;
use tandem_fabric::{Collectives, Distribution, GlobalArray, HostLinks, Team};

/// An array in blocks is assigned to one that is distributed otherwise.
pub(crate) struct Assign {
    team: Team,
    links: Arc<HostLinks>,
    pattern: Arc<Pattern>,
    ways: Collectives,
    /// Runs of the target for each PE; 0 for a cyclic one.
    runs: usize,
    arrays: Option<(GlobalArray<f32>, GlobalArray<f32>)>,
    len: usize,
}

impl Assign {
    pub(crate) fn new(c: &Context, runs: usize) -> Outcome<Self> {
        let ways = Collectives::new(&c.team, &c.topology).map_err(failed)?;
        let (team, links, pattern) = (c.team.clone(), c.links.clone(), c.pattern.clone());
        Ok(Self { team, links, pattern, ways, runs, arrays: None, len: 0 })
    }
}

impl Subject for Assign {
    fn library(&self) -> String {
        match self.runs {
            0 => "tandem array, cyclic = block".into(),
            runs => format!("tandem array, {runs} runs = block"),
        }
    }

    fn prepare(&mut self, bytes: u64) -> Outcome<u64> {
        let pes = self.team.size();
        let runs = self.runs.max(1);
        self.len = bytes as usize / 4 / runs * runs;
        if self.len == 0 {
            return Ok(0);
        }
        // What was there before goes first.
        self.arrays = None;
        let to = if self.runs == 0 { Distribution::Cyclic } else { Distribution::BlockCyclic(self.len / runs) };
        let make = |distribution| GlobalArray::over(&self.ways, self.len * pes, distribution).map_err(failed);
        let (source, target) = (make(Distribution::Block)?, make(to)?);
        for pe in 0..pes {
            self.links.upload(pe, source.part(), self.pattern.of(pe, self.len)).map_err(failed)?;
        }
        self.arrays = Some((source, target));
        Ok(self.len as u64 * 4)
    }

    fn start(&mut self) -> Outcome {
        self.arrays.iter().try_for_each(|(source, target)| target.assign(source)).map_err(failed)
    }

    fn wait(&mut self) -> Outcome {
        self.team.queues().iter().try_for_each(|queue| queue.synchronize()).map_err(failed)
    }

    fn wrong(&mut self) -> Outcome<Option<u64>> {
        let Some((_, target)) = self.arrays.clone() else { return Ok(None) };
        let (pes, layout) = (self.team.size(), target.layout());
        for pe in 0..pes {
            self.links.upload(pe, target.part(), self.pattern.poison(self.len)).map_err(failed)?;
        }
        self.start()?;
        self.wait()?;
        let (mut got, mut wrong) = (vec![0f32; self.len], 0);
        for pe in 0..pes {
            self.links.download(pe, target.part(), &mut got).map_err(failed)?;
            let element = |i: usize| self.pattern.of(i / self.len, self.len)[i % self.len];
            wrong += differing(&got, |place| element(layout.index_of(pe, place)));
        }
        Ok(Some(wrong))
    }
}

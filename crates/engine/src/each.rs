//! One proof a GPU: several teams of one lane each, for many proofs at a time.

use crate::team::{AnyTeam, Resident, Team};
use std::any::Any;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tandem_groth16::{Blinding, KeyView, Layout, Made, PreparedKey, Witness};
use tandem_ops::{Canonical, Curve, HostBuf, Info, Lane, Span};

/// Teams that work beside each other, none of them on one proof with another. Each has every key.
pub(crate) struct Each(Vec<Arc<dyn AnyTeam>>);

impl Each {
    /// Of at least one team.
    pub(crate) fn new(teams: Vec<Arc<dyn AnyTeam>>) -> Self {
        Each(teams)
    }
}

impl AnyTeam for Each {
    fn info(&self) -> Info {
        together(self.0.iter().map(|team| team.info()))
    }
    /// That of the first.
    fn backend(&self) -> Arc<dyn Any + Send + Sync> {
        self.0[0].backend()
    }
    fn host_buf(&self, len: usize) -> tandem_ops::Result<HostBuf<Canonical>> {
        // What is page-locked for one GPU is so for all.
        self.0[0].host_buf(len)
    }
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> tandem_ops::Result<()> {
        self.0[0].run(work)
    }
    fn generation(&self) -> u64 {
        self.0[0].generation()
    }
    /// All of them: what befell one may have befallen the machine.
    fn reopen(&self, seen: u64) -> tandem_ops::Result<()> {
        self.0.iter().try_for_each(|team| team.reopen(seen))
    }
}

/// All in one: the first lane of each.
fn together(infos: impl Iterator<Item = Info>) -> Info {
    infos
        .reduce(|mut all, info| {
            all.lane_names.extend(info.lane_names);
            all.free_bytes.extend(info.free_bytes);
            all
        })
        .unwrap_or(Info { kind: tandem_ops::DeviceKind::Cpu, lane_names: Vec::new(), free_bytes: Vec::new() })
}

impl<C: Curve> Team<C> for Each
where
    dyn AnyTeam: Team<C>,
{
    fn load(&self, view: &KeyView<'_, C>, layout: Layout, proofs: u64) -> tandem_groth16::Result<Box<dyn Resident<C>>> {
        let of_each = proofs.div_ceil(self.0.len() as u64);
        let keys = self
            .0
            .iter()
            .map(|team| Team::<C>::load(&**team, view, layout, of_each))
            .collect::<tandem_groth16::Result<Vec<_>>>()?;
        let idle = (0..keys.len()).rev().collect();
        Ok(Box::new(EachKey { keys, idle: Mutex::new(idle), freed: Condvar::new() }))
    }
}

/// A key on each of the teams.
struct EachKey<C: Curve> {
    keys: Vec<Box<dyn Resident<C>>>,
    /// Those whose team makes no proof with this key. Who waits for one is in no pool whose work it could hold up ([`crate::owner`]).
    idle: Mutex<Vec<usize>>,
    freed: Condvar,
}

/// A key's place that is given back when the proof is over, whatever became of it.
struct Taken<'a, C: Curve> {
    of: &'a EachKey<C>,
    index: usize,
}

impl<C: Curve> EachKey<C> {
    fn idle(&self) -> MutexGuard<'_, Vec<usize>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Taken<'_, C> {
        let mut idle = self.idle();
        loop {
            if let Some(index) = idle.pop() {
                return Taken { of: self, index };
            }
            idle = self.freed.wait(idle).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<C: Curve> Drop for Taken<'_, C> {
    fn drop(&mut self) {
        self.of.idle().push(self.index);
        self.of.freed.notify_one();
    }
}

impl<C: Curve> Resident<C> for EachKey<C> {
    fn prove(
        &self,
        verifier: &PreparedKey<C>,
        witness: &Witness<C>,
        blinding: &Blinding<C>,
    ) -> tandem_groth16::Result<(Made<C>, Vec<Span>)> {
        let taken = self.take();
        let (made, mut spans) = self.keys[taken.index].prove(verifier, witness, blinding)?;
        spans.iter_mut().for_each(|span| span.lane = Lane(taken.index));
        Ok((made, spans))
    }
}

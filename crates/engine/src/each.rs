//! One proof a GPU: several teams of one lane each, for many proofs at a time.

use crate::owner::LOOK;
use crate::system::{Fflonk, Groth16, Plonk, Powers, System};
use crate::team::{DynProver, FflonkTeam, Order, PowersTeam, Resident, Team, Uploaded};
use crate::Progress;
use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tandem_groth16::{Error, KeyView, Layout, PowersView, Witness};
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, HostBuf, Info, Lane, Span};
use tandem_plonk::fflonk;
use tandem_proof::Made;

/// Teams that work beside each other, none of them on one proof with another. Each has every key.
pub(crate) struct ReplicatedProver {
    teams: Vec<Arc<dyn DynProver>>,
    /// How often all of them have been opened again.
    generation: Mutex<u64>,
}

impl ReplicatedProver {
    /// Of at least one team.
    pub(crate) fn new(teams: Vec<Arc<dyn DynProver>>) -> Self {
        ReplicatedProver { teams, generation: Mutex::default() }
    }

    fn locked(&self) -> MutexGuard<'_, u64> {
        self.generation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DynProver for ReplicatedProver {
    fn info(&self) -> Info {
        together(self.teams.iter().map(|team| team.info()))
    }
    /// That of the first.
    fn backend(&self) -> Arc<dyn Any + Send + Sync> {
        self.teams[0].backend()
    }
    fn host_buf(&self, len: usize) -> tandem_ops::Result<HostBuf<Canonical>> {
        // What is page-locked for one GPU is so for all.
        self.teams[0].host_buf(len)
    }
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> tandem_ops::Result<()> {
        self.teams[0].run(work)
    }
    fn generation(&self) -> u64 {
        *self.locked()
    }
    /// All of them: what befell one may have befallen the machine. Where one cannot be opened, all are opened once more the next time.
    fn reopen(&self, seen: u64) -> tandem_ops::Result<()> {
        let mut generation = self.locked();
        if *generation != seen {
            return Ok(());
        }
        let opened: Vec<_> = self.teams.iter().map(|team| team.reopen(team.generation())).collect();
        opened.into_iter().collect::<tandem_ops::Result<()>>()?;
        *generation += 1;
        Ok(())
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

impl FflonkTeam for ReplicatedProver {
    fn load_fflonk(
        &self,
        view: &fflonk::KeyView<'_>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<Bn254, Fflonk>>> {
        self.load_each(proofs, |team, proofs| FflonkTeam::load_fflonk(team, view, layout, proofs))
    }
}

impl PowersTeam for ReplicatedProver {
    fn load_powers(
        &self,
        view: &PowersView<'_, Bls12_381>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<Bls12_381, Powers>>> {
        self.load_each(proofs, |team, proofs| PowersTeam::load_powers(team, view, layout, proofs))
    }

    fn powers_pass(&self, view: &PowersView<'_, Bls12_381>, progress: &dyn Progress) -> tandem_groth16::Result<bool> {
        self.teams.first().map_or(Ok(false), |team| team.powers_pass(view, progress))
    }
}

impl<C: Curve> Team<C> for ReplicatedProver
where
    dyn DynProver: Team<C>,
{
    fn load(
        &self,
        view: &KeyView<'_, C>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<C, Groth16>>> {
        self.load_each(proofs, |team, proofs| Team::<C>::load(team, view, layout, proofs))
    }

    fn load_plonk(
        &self,
        view: &tandem_plonk::KeyView<'_, C>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<C, Plonk>>> {
        self.load_each(proofs, |team, proofs| Team::<C>::load_plonk(team, view, layout, proofs))
    }

    fn points_pass(&self, view: &KeyView<'_, C>, progress: &dyn Progress) -> tandem_groth16::Result<bool> {
        self.teams.first().map_or(Ok(false), |team| Team::<C>::points_pass(&**team, view, progress))
    }
}

impl ReplicatedProver {
    /// Loads a key onto each of the teams, which share the proofs.
    fn load_each<C: Curve, S: System<C>>(
        &self,
        proofs: u64,
        load: impl Fn(&(dyn DynProver + 'static), u64) -> tandem_groth16::Result<Box<dyn Resident<C, S>>>,
    ) -> tandem_groth16::Result<Box<dyn Resident<C, S>>> {
        let of_each = proofs.div_ceil(self.teams.len() as u64);
        let keys = self.teams.iter().map(|team| load(&**team, of_each)).collect::<tandem_groth16::Result<Vec<_>>>()?;
        let idle = (0..keys.len()).rev().collect();
        Ok(Box::new(EachKey { keys, idle: Mutex::new(idle), freed: Condvar::new(), next: AtomicUsize::new(0) }))
    }
}

/// A key on each of the teams.
struct EachKey<C: Curve, S: System<C>> {
    keys: Vec<Box<dyn Resident<C, S>>>,
    /// Those whose team makes no proof with this key. Who waits for one is in no pool whose work it could hold up ([`crate::owner`]).
    idle: Mutex<Vec<usize>>,
    freed: Condvar,
    /// Witnesses that were staged so far: the teams take turns with them.
    next: AtomicUsize,
}

/// A key's place that is given back when the proof is over, whatever became of it.
struct Taken<'a, C: Curve, S: System<C>> {
    of: &'a EachKey<C, S>,
    index: usize,
}

impl<C: Curve, S: System<C>> EachKey<C, S> {
    fn idle(&self) -> MutexGuard<'_, Vec<usize>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a team that is idle, or for the one that has the witness; `None` where the caller asked to stop first.
    fn take(&self, wanted: Option<usize>, progress: &dyn Progress) -> Option<Taken<'_, C, S>> {
        let mut idle = self.idle();
        loop {
            let found = match wanted {
                Some(team) => idle.iter().position(|&index| index == team),
                None => idle.len().checked_sub(1),
            };
            if let Some(at) = found {
                return Some(Taken { of: self, index: idle.remove(at) });
            }
            if progress.cancelled() {
                return None;
            }
            idle = self.freed.wait_timeout(idle, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<C: Curve, S: System<C>> Drop for Taken<'_, C, S> {
    fn drop(&mut self) {
        self.of.idle().push(self.index);
        // Who waits may want this very one.
        self.of.freed.notify_all();
    }
}

impl<C: Curve, S: System<C>> Resident<C, S> for EachKey<C, S> {
    /// That of the first, which all have.
    fn plan(&self) -> String {
        let of_each = self.keys.first().map(|key| key.plan()).unwrap_or_default();
        format!("{} provers, each with a lane of its own and a proof of its own\n{of_each}", self.keys.len())
    }

    fn stage(&self, witness: &Witness<C>, progress: &dyn Progress) -> tandem_groth16::Result<Option<Uploaded>> {
        let team = self.next.fetch_add(1, Ordering::Relaxed) % self.keys.len();
        Ok(self.keys[team].stage(witness, progress)?.map(|uploaded| Uploaded { team, ..uploaded }))
    }

    fn prove(&self, order: Order<'_, C, S>) -> tandem_groth16::Result<(Made<S::Points>, Vec<Span>)> {
        let team = order.uploaded.as_ref().map(|uploaded| uploaded.team);
        let taken = self.take(team, order.progress).ok_or(Error::Interrupted)?;
        let (made, mut spans) = self.keys[taken.index].prove(order)?;
        spans.iter_mut().for_each(|span| span.lane = Lane(taken.index));
        Ok((made, spans))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::SingleProver;
    use std::sync::atomic::AtomicBool;
    use tandem_ops::{cpu::Cpu, Error as Fault};

    /// One that cannot be opened for a while is not left behind by the others.
    #[test]
    fn all_teams_are_opened_again_until_all_are() {
        let fails = Arc::new(AtomicBool::new(false));
        let opened: [Arc<AtomicUsize>; 2] = Default::default();
        let team = |index: usize| -> Arc<dyn DynProver> {
            let (fails, opened) = (fails.clone(), opened[index].clone());
            let open = move || {
                if index == 1 && fails.load(Ordering::SeqCst) {
                    return Err(Fault::invalid("open", "a test"));
                }
                opened.fetch_add(1, Ordering::SeqCst);
                Ok(Cpu::new(1))
            };
            Arc::new(SingleProver::new(1, open).unwrap())
        };
        let each = ReplicatedProver::new(vec![team(0), team(1)]);
        let counts = || opened.each_ref().map(|count| count.load(Ordering::SeqCst));
        fails.store(true, Ordering::SeqCst);
        assert!(each.reopen(0).is_err());
        assert_eq!((each.generation(), counts()), (0, [2, 1]));
        fails.store(false, Ordering::SeqCst);
        each.reopen(0).unwrap();
        assert_eq!((each.generation(), counts()), (1, [3, 2]));
        // Another key has seen to it.
        each.reopen(0).unwrap();
        assert_eq!(counts(), [3, 2]);
    }
}

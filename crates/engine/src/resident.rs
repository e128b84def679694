//! A key on the engine's device, and how it comes back there after the device failed.

use crate::key::{device_name, Attempt, KeyLoader};
use crate::recover::{sleep, Away, Next, Tried};
use crate::source::Source;
use crate::system::System;
use crate::team::{AnyCurve, DynProver, Order, Resident, Uploaded};
use crate::{Error, Progress, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use tandem_groth16::{Layout, Witness as Values};
use tandem_ops::{Curve, DeviceKind, Error as Fault};

/// A key on a device.
pub(crate) struct OnDevice<C: Curve, S: System<C>> {
    /// The device, in words.
    pub(crate) name: String,
    pub(crate) kind: DeviceKind,
    /// No other key of the process has it: a witness is uploaded for one key.
    id: u64,
    team: Arc<dyn DynProver>,
    layout: Layout,
    patience: Duration,
    /// Read by each proof as long as it takes, written where the key is taken off the device or loaded onto it. Whoever holds it takes up
    /// no other work ([`crate::owner`]).
    slot: RwLock<Slot<Box<dyn Resident<C, S>>>>,
}

struct Slot<R> {
    /// The key there; `None` where it has been taken off the device.
    resident: Option<R>,
    generation: u64,
    /// Proofs that the key is loaded for: the fewer, the less memory it takes.
    proofs: u64,
    away: Option<Away>,
}

impl<R> Slot<R> {
    /// Takes the key off the device, to be loaded again for one proof. One that is loaded for one stays: another thread has done it.
    fn make_smaller(&mut self) {
        if self.proofs > 1 {
            (self.resident, self.proofs) = (None, 1);
        }
    }
}

/// A proof that is asked for.
pub(crate) struct Call<'a, C: Curve, S: System<C>> {
    pub(crate) source: &'a Source<C>,
    pub(crate) verifier: &'a S::Verifier,
    pub(crate) witness: &'a Values<C>,
    /// `witness` where it is on the device already; the first attempt takes it.
    pub(crate) staged: Mutex<Option<StagedFor>>,
    pub(crate) progress: &'a dyn Progress,
}

/// A witness that was uploaded for a key on a device as it was opened then.
pub(crate) struct StagedFor {
    key: u64,
    generation: u64,
    uploaded: Uploaded,
}

/// Keys that have been loaded so far.
static LOADED: AtomicU64 = AtomicU64::new(0);

/// What a device made of it, and what is to be said of the way there.
type Outcome<C, S> = (std::result::Result<Attempt<C, S>, Fault>, Option<String>);

impl<C: AnyCurve, S: System<C>> OnDevice<C, S> {
    /// Loads a key onto the device of `place`. Where that fails and the CPU may take over, it is tried again with later proofs; the note
    /// says so.
    pub(crate) fn load(
        loader: &KeyLoader,
        view: &S::View<'_>,
        path: &Path,
        progress: &dyn Progress,
    ) -> Result<(Self, Option<String>)> {
        let info = loader.team.info();
        let mut tried = Tried::new(loader.patience, info.kind == DeviceKind::Cuda);
        let generation = loader.team.generation();
        let mut slot = Slot { resident: None, generation, proofs: loader.proofs, away: None };
        let note = loop {
            let fault = match S::load(C::team(&*loader.team), view, loader.layout, slot.proofs) {
                Ok(resident) => {
                    slot.resident = Some(resident);
                    break tried.told();
                }
                // No device is at fault where the key cannot be read any more.
                Err(tandem_groth16::Error::Backend(fault)) if !matches!(fault, Fault::Unread { .. }) => fault,
                Err(other) => return Err(Error::prover(other, path)),
            };
            match tried.next(&fault) {
                Next::Wait(time) => {
                    sleep(time, progress)?;
                    progress.start("load key", 0);
                }
                Next::Smaller => slot.proofs = 1,
                // A device that cannot be opened fails once more.
                Next::Reopen => {
                    _ = loader.team.reopen(slot.generation);
                    slot.generation = loader.team.generation();
                }
                Next::GiveUp if loader.auto && loader.cpu.is_some() => {
                    let note =
                        format!("the key stays on the CPU for now: {}", tried.told().unwrap_or(fault.to_string()));
                    slot.away = Some(Away::new(fault, None, Instant::now()));
                    break Some(note);
                }
                Next::GiveUp => return Err(fault.into()),
            }
        };
        let (name, team, slot) = (device_name(&info), loader.team.clone(), RwLock::new(slot));
        let (layout, patience) = (loader.layout, loader.patience);
        let id = LOADED.fetch_add(1, Ordering::Relaxed);
        Ok((OnDevice { name, kind: info.kind, id, team, layout, patience, slot }, note))
    }

    fn read(&self) -> RwLockReadGuard<'_, Slot<Box<dyn Resident<C, S>>>> {
        self.slot.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Slot<Box<dyn Resident<C, S>>>> {
        self.slot.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which lane does what; `None` where the key is not on the device for now.
    pub(crate) fn plan(&self) -> Option<String> {
        self.read().resident.as_ref().map(|resident| resident.plan())
    }

    /// Whether the key is not on the device for now.
    pub(crate) fn is_away(&self) -> bool {
        self.read().away.is_some()
    }

    /// Uploads a witness beside whatever the device does meanwhile. `None` where the device has no room for it now, fails, or has not got
    /// the key: the proof then uploads it. Errors that are not the device's are about `file`.
    pub(crate) fn stage(&self, values: &Values<C>, progress: &dyn Progress, file: &Path) -> Result<Option<StagedFor>> {
        let Slot { resident: Some(resident), generation, .. } = &*self.read() else { return Ok(None) };
        match resident.stage(values, progress) {
            Ok(uploaded) => Ok(uploaded.map(|uploaded| StagedFor { key: self.id, generation: *generation, uploaded })),
            Err(tandem_groth16::Error::Backend(_)) => Ok(None),
            Err(other) => Err(Error::prover(other, file)),
        }
    }

    /// Makes a proof, as far as that takes with waiting, less memory and the device opened again. With `others`, another device can
    /// make it: one that was given up is left alone for a while. Errors that are not the device's are the caller's, about `file`.
    pub(crate) fn prove(&self, call: &Call<'_, C, S>, others: bool, file: &Path) -> Result<Outcome<C, S>> {
        let was_away = match &self.read().away {
            Some(away) if others && !away.is_over(Instant::now()) => return Ok((Err(away.fault.clone()), None)),
            away => away.is_some(),
        };
        let patience = if was_away && others { Duration::ZERO } else { self.patience };
        let mut tried = Tried::new(patience, self.kind == DeviceKind::Cuda);
        let mut first = None;
        loop {
            let seen = self.read().generation;
            let fault = match self.attempt(call) {
                Ok(attempt) => {
                    if was_away {
                        self.write().away = None;
                    }
                    let back = was_away.then(|| format!("{} is used again", self.name));
                    return Ok((Ok(attempt), tried.told().or(back)));
                }
                // As when it was loaded first.
                Err(tandem_groth16::Error::Backend(fault)) if !matches!(fault, Fault::Unread { .. }) => fault,
                Err(other) => return Err(Error::prover(other, file)),
            };
            let next = tried.next(&fault);
            // What came first is the cause of what came after.
            let fault = first.get_or_insert(fault);
            match next {
                Next::Wait(time) => {
                    sleep(time, call.progress)?;
                    call.progress.start("prove", 0);
                }
                Next::Smaller => self.write().make_smaller(),
                Next::Reopen => self.reopen(seen),
                Next::GiveUp => {
                    if others {
                        let mut slot = self.write();
                        slot.away = Some(Away::new(fault.clone(), slot.away.as_ref(), Instant::now()));
                    }
                    return Ok((Err(fault.clone()), None));
                }
            }
        }
    }

    /// Takes the key off a device that failed, and opens the device again unless another thread has since `seen` was its generation.
    fn reopen(&self, seen: u64) {
        let mut slot = self.write();
        if slot.generation != seen {
            return;
        }
        slot.resident = None;
        // Where it cannot be opened, the next attempt says what is wrong with it.
        _ = self.team.reopen(slot.generation);
    }

    fn attempt(&self, call: &Call<'_, C, S>) -> tandem_groth16::Result<Attempt<C, S>> {
        loop {
            if let Slot { resident: Some(resident), generation, .. } = &*self.read() {
                let staged = call.staged.lock().unwrap_or_else(PoisonError::into_inner).take();
                let fits = |staged: &StagedFor| (staged.key, staged.generation) == (self.id, *generation);
                return Attempt::of(
                    &**resident,
                    Order {
                        verifier: call.verifier,
                        witness: call.witness,
                        uploaded: staged.filter(fits).map(|staged| staged.uploaded),
                        blinding: &S::blinding(call.witness)?,
                        progress: call.progress,
                    },
                );
            }
            self.load_again(call)?;
        }
    }

    fn load_again(&self, call: &Call<'_, C, S>) -> tandem_groth16::Result<()> {
        let mut slot = self.write();
        if slot.resident.is_some() {
            return Ok(());
        }
        let mut loaded = None;
        let (proofs, layout, team) = (slot.proofs, self.layout, &self.team);
        let generation = team.generation();
        // On the team's own threads: those of the caller's pool may all wait for this key.
        team.run(&mut || {
            let mut failed = None;
            let done = call.source.with::<S, _>(|view| {
                S::load(C::team(&**team), view, layout, proofs).map_err(|error| {
                    let told = Error::Device(error.to_string());
                    if !matches!(error, tandem_groth16::Error::Backend(Fault::Unread { .. })) {
                        failed = Some(error);
                    }
                    told
                })
            });
            // What is wrong with the key names its file, and not the witness's.
            let unread = |told: Error| tandem_groth16::Error::Backend(Fault::Unread { reason: told.to_string() });
            loaded = Some(done.map_err(|told| failed.unwrap_or_else(|| unread(told))));
        })?;
        if let Some(loaded) = loaded {
            slot.resident = Some(loaded?);
            slot.generation = generation;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key that several threads find too large is loaded once more, and not once for each.
    #[test]
    fn a_key_is_made_smaller_once() {
        let mut slot = Slot { resident: Some("large"), generation: 0, proofs: 9, away: None };
        slot.make_smaller();
        assert_eq!((slot.resident, slot.proofs), (None, 1));
        slot.resident = Some("small");
        slot.make_smaller();
        assert_eq!((slot.resident, slot.proofs), (Some("small"), 1));
    }
}

//! Backends without their types.

use crate::owner::Owner;
use crate::recover;
use crate::system::{Fflonk, Groth16, Plonk, Powers, System};
use crate::witness::AnyValues;
use crate::Progress;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tandem_groth16::check::{points_pass, powers_pass};
use tandem_groth16::{
    prove_staged, prove_verified, stage, Blinding, Error, KeyView, Layout, PowersView, PreparedKey, Proof, ProvingKey,
    Request, Staged, Witness,
};
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, DeviceKind, HostBuf, Info, ProofBackend, Span, Timeline};
use tandem_plonk::fflonk;
use tandem_plonk::plan::LaneBytes;
use tandem_proof::Made;

/// A backend that proves on both curves.
pub(crate) trait DynProver: Team<Bn254> + Team<Bls12_381> {
    /// What it runs on.
    fn info(&self) -> Info;
    /// The backend itself.
    fn backend(&self) -> Arc<dyn Any + Send + Sync>;
    /// Host memory that it uploads fastest from.
    fn host_buf(&self, len: usize) -> tandem_ops::Result<HostBuf<Canonical>>;
    /// Runs `work`, which may load keys here, on its threads, when all that came before is done.
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> tandem_ops::Result<()>;
    /// How often it has been opened again.
    fn generation(&self) -> u64;
    /// Opens it again if that has not been done since `seen` was its generation. Keys are then loaded anew.
    fn reopen(&self, seen: u64) -> tandem_ops::Result<()>;
}

/// A curve that teams prove on.
pub(crate) trait AnyCurve: Curve {
    /// The team as this curve sees it.
    fn team(team: &dyn DynProver) -> &dyn Team<Self>;
    /// The values, if they are of this curve.
    fn values(values: &AnyValues) -> Option<&Witness<Self>>;
}

impl AnyCurve for Bn254 {
    fn team(team: &dyn DynProver) -> &dyn Team<Self> {
        team
    }
    fn values(values: &AnyValues) -> Option<&Witness<Self>> {
        match values {
            AnyValues::Bn254(values) => Some(values),
            AnyValues::Bls12_381(_) => None,
        }
    }
}

impl AnyCurve for Bls12_381 {
    fn team(team: &dyn DynProver) -> &dyn Team<Self> {
        team
    }
    fn values(values: &AnyValues) -> Option<&Witness<Self>> {
        match values {
            AnyValues::Bls12_381(values) => Some(values),
            AnyValues::Bn254(_) => None,
        }
    }
}

/// A backend that proves with FFLONK, which has one curve.
pub(crate) trait FflonkTeam {
    /// Loads a key to make so many proofs.
    fn load_fflonk(
        &self,
        view: &fflonk::KeyView<'_>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<Bn254, Fflonk>>>;
}

/// A backend that proves with keys of bellperson, which have one curve.
pub(crate) trait PowersTeam {
    /// Loads such a key to make so many proofs.
    fn load_powers(
        &self,
        view: &PowersView<'_, Bls12_381>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<Bls12_381, Powers>>>;
    /// As [`Team::points_pass`], of such a key ([`tandem_groth16::check::powers_pass`]).
    fn powers_pass(&self, view: &PowersView<'_, Bls12_381>, progress: &dyn Progress) -> tandem_groth16::Result<bool>;
}

/// A backend as one curve sees it.
pub(crate) trait Team<C: Curve>: FflonkTeam + PowersTeam + Send + Sync {
    /// Loads a Groth16 key to make so many proofs.
    fn load(
        &self,
        view: &KeyView<'_, C>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<C, Groth16>>>;
    /// Loads a PLONK key to make so many proofs.
    fn load_plonk(
        &self,
        view: &tandem_plonk::KeyView<'_, C>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<C, Plonk>>>;
    /// Whether all points of a Groth16 key are good, as far as a GPU can tell ([`tandem_groth16::check::points_pass`]); `false` where there
    /// is none.
    fn points_pass(&self, view: &KeyView<'_, C>, progress: &dyn Progress) -> tandem_groth16::Result<bool>;
}

/// A proof to be made.
pub(crate) struct Order<'a, C: Curve, S: System<C>> {
    pub(crate) verifier: &'a S::Verifier,
    pub(crate) witness: &'a Witness<C>,
    /// `witness` where it is on the backend already.
    pub(crate) uploaded: Option<Uploaded>,
    pub(crate) blinding: &'a S::Blinding,
    pub(crate) progress: &'a dyn Progress,
}

/// A witness in a backend's memory for one proof, with the timeline that its upload began.
pub(crate) struct Uploaded {
    /// The team that has it, where there are several.
    pub(crate) team: usize,
    pub(crate) timeline: Timeline,
    /// A [`Staged`] of the key's curve and backend.
    pub(crate) staged: Box<dyn Any + Send + Sync>,
}

/// A key on a backend.
pub(crate) trait Resident<C: Curve, S: System<C>>: Send + Sync {
    /// Which lane does what, in lines.
    fn plan(&self) -> String;
    /// Uploads a witness for one proof, beside whatever the backend does meanwhile; `None` where a proof takes it from the host.
    fn stage(&self, witness: &Witness<C>, progress: &dyn Progress) -> tandem_groth16::Result<Option<Uploaded>>;
    /// One proof, right or wrong, and what ran when.
    fn prove(&self, order: Order<'_, C, S>) -> tandem_groth16::Result<(Made<S::Points>, Vec<Span>)>;
}

/// A backend that can be opened again when it has failed. It makes one proof at a time, for the sake of its memory and its threads;
/// a witness for the next one is uploaded meanwhile ([`Resident::stage`]).
pub(crate) struct SingleProver<B> {
    open: Box<dyn Fn() -> tandem_ops::Result<B> + Send + Sync>,
    opened: Mutex<Opened<B>>,
    owner: Arc<Owner>,
}

struct Opened<B> {
    backend: Arc<B>,
    /// How often it has been opened again.
    generation: u64,
}

impl<B> SingleProver<B> {
    /// On so many threads of its own.
    pub(crate) fn new(
        threads: usize,
        open: impl Fn() -> tandem_ops::Result<B> + Send + Sync + 'static,
    ) -> tandem_ops::Result<Self> {
        let opened = Opened { backend: Arc::new(recover::open(&open)?), generation: 0 };
        Ok(Self { open: Box::new(open), opened: Mutex::new(opened), owner: Arc::new(Owner::new(threads)) })
    }

    fn opened(&self) -> MutexGuard<'_, Opened<B>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn backend(&self) -> Arc<B> {
        self.opened().backend.clone()
    }
}

impl<B: ProofBackend<Bn254> + ProofBackend<Bls12_381>> DynProver for SingleProver<B> {
    fn info(&self) -> Info {
        self.backend().info()
    }
    fn backend(&self) -> Arc<dyn Any + Send + Sync> {
        self.backend()
    }
    fn host_buf(&self, len: usize) -> tandem_ops::Result<HostBuf<Canonical>> {
        self.backend().host_buf(len)
    }
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> tandem_ops::Result<()> {
        self.owner.run(work)
    }
    fn generation(&self) -> u64 {
        self.opened().generation
    }
    fn reopen(&self, seen: u64) -> tandem_ops::Result<()> {
        self.owner.run(|| {
            // Another key may have been faster.
            if self.opened().generation == seen {
                let backend = Arc::new((self.open)()?);
                *self.opened() = Opened { backend, generation: seen + 1 };
            }
            Ok(())
        })?
    }
}

impl<B: ProofBackend<Bn254>> FflonkTeam for SingleProver<B> {
    fn load_fflonk(
        &self,
        view: &fflonk::KeyView<'_>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<Bn254, Fflonk>>> {
        let backend = self.backend();
        let key = self.owner.run(|| fflonk::ProvingKey::load(&*backend, view, layout, proofs))??;
        Ok(Box::new(OneKey { backend, owner: self.owner.clone(), key }))
    }
}

impl<B: ProofBackend<Bls12_381>> PowersTeam for SingleProver<B> {
    fn load_powers(
        &self,
        view: &PowersView<'_, Bls12_381>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<Bls12_381, Powers>>> {
        let backend = self.backend();
        let key = self.owner.run(|| ProvingKey::load_powers(&*backend, view, layout, proofs))??;
        Ok(Box::new(OneKey { backend, owner: self.owner.clone(), key }))
    }

    fn powers_pass(&self, view: &PowersView<'_, Bls12_381>, progress: &dyn Progress) -> tandem_groth16::Result<bool> {
        let backend = self.backend();
        match backend.info().kind {
            DeviceKind::Cuda => self.owner.run(|| powers_pass(&*backend, view, progress))?,
            DeviceKind::Cpu | DeviceKind::Sim => Ok(false),
        }
    }
}

impl<C: Curve, B: ProofBackend<C> + ProofBackend<Bn254> + ProofBackend<Bls12_381>> Team<C> for SingleProver<B> {
    fn load(
        &self,
        view: &KeyView<'_, C>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<C, Groth16>>> {
        let backend = self.backend();
        let key = self.owner.run(|| ProvingKey::load(&*backend, view, layout, proofs))??;
        Ok(Box::new(OneKey { backend, owner: self.owner.clone(), key }))
    }

    fn load_plonk(
        &self,
        view: &tandem_plonk::KeyView<'_, C>,
        layout: Layout,
        proofs: u64,
    ) -> tandem_groth16::Result<Box<dyn Resident<C, Plonk>>> {
        let backend = self.backend();
        let key = self.owner.run(|| tandem_plonk::ProvingKey::load(&*backend, view, layout, proofs))??;
        Ok(Box::new(OneKey { backend, owner: self.owner.clone(), key }))
    }

    fn points_pass(&self, view: &KeyView<'_, C>, progress: &dyn Progress) -> tandem_groth16::Result<bool> {
        let backend = self.backend();
        match backend.info().kind {
            DeviceKind::Cuda => self.owner.run(|| points_pass(&*backend, view, progress))?,
            DeviceKind::Cpu | DeviceKind::Sim => Ok(false),
        }
    }
}

/// A key `K` on a backend.
struct OneKey<B, K> {
    backend: Arc<B>,
    owner: Arc<Owner>,
    key: K,
}

/// A plan of PLONK or FFLONK, and what it takes of each lane.
fn with_memory(plan: &tandem_plonk::plan::Plan, memory: &[LaneBytes]) -> String {
    let of_lanes = memory.iter().enumerate().map(|(lane, of)| format!("\nmemory of lane {lane}: {of}"));
    of_lanes.fold(plan.to_string(), |text, of| text + &of)
}

impl<C: Curve, B: ProofBackend<C>> Resident<C, Plonk> for OneKey<B, tandem_plonk::ProvingKey<C, B>> {
    fn plan(&self) -> String {
        with_memory(self.key.plan(), self.key.memory())
    }

    /// The host works with the values of a witness itself.
    fn stage(&self, _: &Witness<C>, _: &dyn Progress) -> tandem_groth16::Result<Option<Uploaded>> {
        Ok(None)
    }

    fn prove(&self, order: Order<'_, C, Plonk>) -> tandem_groth16::Result<(tandem_plonk::Made<C>, Vec<Span>)> {
        let Order { verifier, witness, blinding, progress, .. } = order;
        let (backend, key) = (&*self.backend, &self.key);
        let work = || {
            progress.turn();
            let request = Request::new(backend.timeline(), progress);
            let made = tandem_plonk::prove_verified(backend, key, verifier, witness, blinding, &request);
            Ok((made?, request.timeline.take()?))
        };
        self.owner.run_unless_cancelled(progress, work)?.unwrap_or(Err(Error::Interrupted))
    }
}

impl<B: ProofBackend<Bn254>> Resident<Bn254, Fflonk> for OneKey<B, fflonk::ProvingKey<B>> {
    fn plan(&self) -> String {
        with_memory(self.key.plan(), self.key.memory())
    }

    /// The host works with the values of a witness itself.
    fn stage(&self, _: &Witness<Bn254>, _: &dyn Progress) -> tandem_groth16::Result<Option<Uploaded>> {
        Ok(None)
    }

    fn prove(&self, order: Order<'_, Bn254, Fflonk>) -> tandem_groth16::Result<(fflonk::Made, Vec<Span>)> {
        let Order { verifier, witness, blinding, progress, .. } = order;
        let (backend, key) = (&*self.backend, &self.key);
        let work = || {
            progress.turn();
            let request = Request::new(backend.timeline(), progress);
            let made = fflonk::prove_verified(backend, key, verifier, witness, blinding, &request);
            Ok((made?, request.timeline.take()?))
        };
        self.owner.run_unless_cancelled(progress, work)?.unwrap_or(Err(Error::Interrupted))
    }
}

/// With keys of either form.
impl<C: Curve, B: ProofBackend<C>, S> Resident<C, S> for OneKey<B, ProvingKey<C, B>>
where
    S: System<C, Verifier = PreparedKey<C>, Blinding = Blinding<C>, Points = Proof<C>>,
{
    fn plan(&self) -> String {
        let memory = self.key.memory().iter().map(|plan| format!("\n{plan}"));
        memory.fold(self.key.plan().to_string(), |text, plan| text + &plan)
    }

    fn stage(&self, witness: &Witness<C>, progress: &dyn Progress) -> tandem_groth16::Result<Option<Uploaded>> {
        let request = Request::new(self.backend.timeline(), progress);
        let staged = Box::new(stage(&*self.backend, &self.key, witness, &request)?);
        Ok(Some(Uploaded { team: 0, timeline: request.timeline, staged }))
    }

    fn prove(&self, order: Order<'_, C, S>) -> tandem_groth16::Result<(tandem_groth16::Made<C>, Vec<Span>)> {
        let Order { verifier, witness, uploaded, blinding, progress } = order;
        let (backend, key) = (&*self.backend, &self.key);
        let work = || {
            progress.turn();
            let uploaded = uploaded.and_then(|Uploaded { timeline, staged, .. }| {
                Some((timeline, staged.downcast::<Staged<C, B>>().ok()?))
            });
            let (made, timeline) = match uploaded {
                Some((timeline, staged)) => {
                    let request = Request::new(timeline, progress);
                    (prove_staged(backend, key, verifier, *staged, blinding, &request), request.timeline)
                }
                None => {
                    let request = Request::new(backend.timeline(), progress);
                    (prove_verified(backend, key, verifier, witness, blinding, &request), request.timeline)
                }
            };
            Ok((made?, timeline.take()?))
        };
        self.owner.run_unless_cancelled(progress, work)?.unwrap_or(Err(Error::Interrupted))
    }
}

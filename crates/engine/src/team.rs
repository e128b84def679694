//! Backends without their types.

use crate::witness::AnyValues;
use crate::{Result, SumBench, Summed};
use std::sync::{Arc, Mutex, PoisonError};
use tandem_groth16::{prove_verified, Blinding, KeyView, Layout, Made, PreparedKey, ProvingKey, Witness};
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, HostBuf, Info, ProofBackend, Span};

/// A backend that proves on both curves.
pub(crate) trait AnyTeam: Team<Bn254> + Team<Bls12_381> {
    /// What it runs on.
    fn info(&self) -> Info;
    /// Host memory that it uploads fastest from.
    fn host_buf(&self, len: usize) -> tandem_ops::Result<HostBuf<Canonical>>;
}

/// A curve that teams prove on.
pub(crate) trait AnyCurve: Curve {
    /// The team as this curve sees it.
    fn team(team: &dyn AnyTeam) -> &dyn Team<Self>;
    /// The values, if they are of this curve.
    fn values(values: &AnyValues) -> Option<&Witness<Self>>;
}

impl AnyCurve for Bn254 {
    fn team(team: &dyn AnyTeam) -> &dyn Team<Self> {
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
    fn team(team: &dyn AnyTeam) -> &dyn Team<Self> {
        team
    }
    fn values(values: &AnyValues) -> Option<&Witness<Self>> {
        match values {
            AnyValues::Bls12_381(values) => Some(values),
            AnyValues::Bn254(_) => None,
        }
    }
}

/// A backend as one curve sees it.
pub(crate) trait Team<C: Curve>: Send + Sync {
    /// Loads a key to make so many proofs.
    fn load(&self, view: &KeyView<'_, C>, layout: Layout, proofs: u64) -> tandem_groth16::Result<Box<dyn Resident<C>>>;
    /// See [`crate::Engine::bench_msm`].
    fn bench_msm(&self, what: SumBench, runs: usize) -> Result<Summed>;
}

/// A key on a backend.
pub(crate) trait Resident<C: Curve>: Send + Sync {
    /// One proof, right or wrong, and what ran when.
    fn prove(
        &self,
        verifier: &PreparedKey<C>,
        witness: &Witness<C>,
        blinding: &Blinding<C>,
    ) -> tandem_groth16::Result<(Made<C>, Vec<Span>)>;
    /// What it runs on.
    fn info(&self) -> Info;
}

/// A backend. It makes one proof at a time: the spans that it gives out are those of that proof.
pub(crate) struct OneTeam<B> {
    backend: Arc<B>,
    busy: Arc<Mutex<()>>,
}

impl<B> OneTeam<B> {
    pub(crate) fn new(backend: B) -> Self {
        Self { backend: Arc::new(backend), busy: Arc::default() }
    }
}

impl<B: ProofBackend<Bn254> + ProofBackend<Bls12_381>> AnyTeam for OneTeam<B> {
    fn info(&self) -> Info {
        self.backend.info()
    }
    fn host_buf(&self, len: usize) -> tandem_ops::Result<HostBuf<Canonical>> {
        self.backend.host_buf(len)
    }
}

impl<C: Curve, B: ProofBackend<C>> Team<C> for OneTeam<B> {
    fn load(&self, view: &KeyView<'_, C>, layout: Layout, proofs: u64) -> tandem_groth16::Result<Box<dyn Resident<C>>> {
        let key = ProvingKey::load(&*self.backend, view, layout, proofs)?;
        Ok(Box::new(OneKey { backend: self.backend.clone(), busy: self.busy.clone(), key }))
    }

    fn bench_msm(&self, what: SumBench, runs: usize) -> Result<Summed> {
        if what.g2 {
            crate::msm::bench::<C, C::G2, B>(&self.backend, what, runs)
        } else {
            crate::msm::bench::<C, C::G1, B>(&self.backend, what, runs)
        }
    }
}

struct OneKey<C: Curve, B: ProofBackend<C>> {
    backend: Arc<B>,
    busy: Arc<Mutex<()>>,
    key: ProvingKey<C, B>,
}

impl<C: Curve, B: ProofBackend<C>> Resident<C> for OneKey<C, B> {
    fn prove(
        &self,
        verifier: &PreparedKey<C>,
        witness: &Witness<C>,
        blinding: &Blinding<C>,
    ) -> tandem_groth16::Result<(Made<C>, Vec<Span>)> {
        let _busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        self.backend.take_spans()?;
        let made = prove_verified(&*self.backend, &self.key, verifier, witness, blinding)?;
        Ok((made, self.backend.take_spans()?))
    }

    fn info(&self) -> Info {
        self.backend.info()
    }
}

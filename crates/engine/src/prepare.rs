//! What the first use of a key does before it proves, done beforehand.

use crate::key::{checked, look, stage, Asked, Checked, Form};
use crate::source::Held;
use crate::system::{Fflonk, Groth16, Plonk, Powers, Sizes, System};
use crate::team::AnyCurve;
use crate::{Engine, KeyCheck, KeyInfo, Progress, Result, Stage};
use std::path::Path;
use std::time::Instant;
use tandem_formats::Protocol;
use tandem_ops::{with_curve, Bls12_381, Bn254, CurveId};

/// A key that is ready for its later uses.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Facts about it.
    pub info: KeyInfo,
    /// The hash of its content, by which the cache folder names it.
    pub hash: String,
    /// Whether its points were checked now, and not before.
    pub is_checked_now: bool,
    /// Whether the check is remembered: the cache folder can be written to, and by this user alone.
    pub is_remembered: bool,
    /// How long its parts took.
    pub stages: Vec<Stage>,
}

impl Engine {
    /// Reads and checks a key as its first use does, on the device, and remembers the check. Nothing is loaded.
    ///
    /// # Errors
    /// As [`Engine::load_key`], but for the device's memory.
    pub fn prepare_key(&self, path: &Path, check: KeyCheck, progress: &dyn Progress) -> Result<Prepared> {
        tandem_ops::threads::ready()?;
        let asked = Asked { path, check, progress, started: Instant::now(), has_time: false };
        progress.start("open key", 0);
        let (form, curve, file) = look(path)?;
        let held = Held::of(file, &[], || progress.cancelled())?;
        match form {
            Form::Params => prepare::<Bls12_381, Powers>(self, &held, &asked, curve),
            Form::Zkey(Protocol::Fflonk) => prepare::<Bn254, Fflonk>(self, &held, &asked, curve),
            Form::Zkey(Protocol::Plonk) => with_curve!(curve, C => prepare::<C, Plonk>(self, &held, &asked, curve)),
            Form::Zkey(Protocol::Groth16) => with_curve!(curve, C => prepare::<C, Groth16>(self, &held, &asked, curve)),
        }
    }
}

fn prepare<C: AnyCurve, S: System<C>>(
    engine: &Engine,
    held: &Held,
    asked: &Asked<'_>,
    curve: CurveId,
) -> Result<Prepared> {
    S::with_view(held.bytes(), asked.path, |view| {
        let opened = stage("open key", asked.started);
        let Checked { content, is_new, stage, .. } = checked::<C, S>(held, view, asked, &|| Ok(engine.loader()))?;
        // What is looked at on every load is looked at here, too.
        S::verifier(view).map_err(|e| crate::Error::prover(e, asked.path))?;
        let Sizes { variables, publics, domain } = S::sizes(view);
        let file_bytes = held.bytes().len() as u64;
        let (protocol, has_circuit) = (S::PROTOCOL, S::HAS_CIRCUIT);
        let info = KeyInfo { protocol, curve, variables, publics, domain, file_bytes, has_circuit };
        let (hash, is_remembered) = (content.name(), content.is_known());
        Ok(Prepared { info, hash, is_checked_now: is_new, is_remembered, stages: vec![opened, stage] })
    })
}

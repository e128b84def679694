//! The proof.

use crate::rounds;
use crate::work::Work;
use crate::{Blinding, HostSpan, PlonkBackend, PreparedKey, ProvingKey, Request, Result, Witness, P1};
use std::time::Instant;
use tandem_ops::{Canonical, Curve};
use tandem_proof::{random_scalar, settled, Error};

/// A proof.
#[derive(Debug, Clone, Copy)]
pub struct Proof<C: Curve> {
    /// Commitments to A, B, C, Z, T1, T2, T3, and the openings Wxi and Wxiw.
    pub points: [P1<C>; 9],
    /// Values of A, B, C, S1 and S2 at xi, and of Z at xi w.
    pub evaluations: [Canonical; 6],
}

impl<C: Curve> Proof<C> {
    /// Points on the wire, then evaluations as integers, one after the other.
    pub fn to_bytes(&self) -> Vec<u8> {
        [bytemuck::cast_slice(&self.points), bytemuck::cast_slice::<_, u8>(&self.evaluations)].concat()
    }

    /// The proof with these bytes, not checked; `None` for another number of them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (points, evaluations) = bytes.split_at_checked(9 * size_of::<P1<C>>())?;
        let mut proof =
            Proof::<C> { points: [bytemuck::Zeroable::zeroed(); 9], evaluations: [Canonical::default(); 6] };
        if evaluations.len() != size_of_val(&proof.evaluations) {
            return None;
        }
        bytemuck::cast_slice_mut(&mut proof.points).copy_from_slice(points);
        bytemuck::cast_slice_mut(&mut proof.evaluations).copy_from_slice(evaluations);
        Some(proof)
    }
}

impl<C: Curve> PartialEq for Proof<C> {
    fn eq(&self, other: &Self) -> bool {
        self.points == other.points && self.evaluations == other.evaluations
    }
}

/// A proof that has been verified, and how the host's time was spent.
pub type Made<C> = tandem_proof::Made<Proof<C>>;

/// Makes a proof and verifies it. `verifier` is of the same key. A request that is cancelled ends within one primitive; the backend and the
/// key serve the next one as if it had not been made.
///
/// # Errors
/// [`Error::Witness`] for a witness of another length; [`Error::Backend`]; [`Error::Interrupted`].
pub fn prove_verified<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    verifier: &PreparedKey<C>,
    witness: &Witness<C>,
    blinding: &Blinding<C>,
    request: &Request<'_>,
) -> Result<Made<C>> {
    let made = || {
        let (has, expected) = (witness.values().len(), key.shape().variables);
        if has != expected {
            return Err(Error::Witness(format!(
                "the witness has {has} values; the key's circuit has {expected} wires"
            )));
        }
        request.check()?;
        let mut host = Vec::new();
        let mut work = Work { backend, key: &key.core, blinding, request, host: &mut host };
        let u = random_scalar::<C>()?;
        let (proof, ahead) = rounds::proof(&mut work, key, verifier, (witness, *u))?;
        let [.., wxi, _] = &proof.points;
        let verdict = HostSpan::of(&mut host, "verify", || ahead.and_then(|ahead| verifier.finish(ahead, wxi)));
        // Meanwhile the lanes have overwritten what they worked with.
        backend.synchronize()?;
        request.progress.finished("verify");
        Ok(Made { proof, verdict, ended: Instant::now(), host })
    };
    settled(backend, made())
}

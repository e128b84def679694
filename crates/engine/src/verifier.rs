//! Verification of proofs, which needs no device.

use crate::{CurveId, Error, Proof, Publics, Result};
use std::path::Path;
use tandem_formats::{
    json, FflonkVerificationKey, FileKind, FormatError, OtherSystem, PlonkVerificationKey, Protocol, VerificationKey,
};
use tandem_groth16::{PreparedKey, Refusal, VerifyingKey};
use tandem_ops::{with_curve, Bn254, Canonical, Curve};
use tandem_plonk::fflonk::{self, Roots};

/// A key of one proof system over one curve.
trait AnyKey: Send + Sync {
    /// What the key says; `None` for a proof of another system or curve, or public values of another curve.
    fn verify(&self, publics: &Publics, proof: &Proof) -> Option<std::result::Result<(), Refusal>>;
}

impl<C: Curve> AnyKey for PreparedKey<C> {
    fn verify(&self, publics: &Publics, proof: &Proof) -> Option<std::result::Result<(), Refusal>> {
        let proof = proof.points::<C>()?;
        (publics.curve() == C::ID).then(|| self.verify(publics.canonical(), &proof))
    }
}

impl<C: Curve> AnyKey for tandem_plonk::PreparedKey<C> {
    fn verify(&self, publics: &Publics, proof: &Proof) -> Option<std::result::Result<(), Refusal>> {
        let proof = proof.of_plonk::<C>()?;
        (publics.curve() == C::ID).then(|| self.verify(publics.canonical(), &proof))
    }
}

impl AnyKey for fflonk::PreparedKey {
    fn verify(&self, publics: &Publics, proof: &Proof) -> Option<std::result::Result<(), Refusal>> {
        let proof = proof.of_fflonk()?;
        (publics.curve() == CurveId::Bn254).then(|| self.verify(publics.canonical(), &proof))
    }
}

/// A verification key, read and made ready once, for any number of proofs.
pub struct Verifier {
    protocol: Protocol,
    curve: CurveId,
    publics: usize,
    key: Box<dyn AnyKey>,
}

impl Verifier {
    /// Reads the text of a `verification_key.json`.
    ///
    /// # Errors
    /// [`Error::BadInput`] for what is no such text, or a point that is no good.
    pub fn from_json(text: &[u8]) -> Result<Verifier> {
        Self::read(text, Path::new(""), |error| error)
    }

    fn read(text: &[u8], path: &Path, place: impl Fn(FormatError) -> FormatError) -> Result<Verifier> {
        tandem_ops::threads::ready()?;
        if FileKind::of(text) == Some(FileKind::VerificationKeyOf(OtherSystem::Plonk)) {
            let curve = json::plonk_curve(text).map_err(&place)?;
            return with_curve!(curve, C => {
                let (tandem_plonk::VerifyingKey { publics, .. }, key) = plonk_key::<C>(text, path, place)?;
                Ok(Verifier { protocol: Protocol::Plonk, curve, publics, key: Box::new(key) })
            });
        }
        if FileKind::of(text) == Some(FileKind::VerificationKeyOf(OtherSystem::Fflonk)) {
            let (fflonk::VerifyingKey { publics, .. }, key) = fflonk_key(text, path, place)?;
            return Ok(Verifier { protocol: Protocol::Fflonk, curve: CurveId::Bn254, publics, key: Box::new(key) });
        }
        let curve = json::curve(text).map_err(&place)?;
        with_curve!(curve, C => {
            let (VerifyingKey { ic, .. }, key) = groth16_key::<C>(text, path, place)?;
            Ok(Verifier { protocol: Protocol::Groth16, curve, publics: ic.len() - 1, key: Box::new(key) })
        })
    }

    /// The proof system.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The curve of its points.
    pub fn curve(&self) -> CurveId {
        self.curve
    }

    /// How many public values its proofs have.
    pub fn publics(&self) -> usize {
        self.publics
    }

    /// Checks a proof: `Ok` if it is valid.
    ///
    /// # Errors
    /// [`Error::InvalidProof`] if it is not; [`Error::BadInput`] for another curve or another number of public values than the key's.
    pub fn verify(&self, publics: &Publics, proof: &Proof) -> Result<()> {
        self.verify_as(publics, proof, "")
    }

    /// [`Verifier::verify`] with messages that begin with `name`.
    fn verify_as(&self, publics: &Publics, proof: &Proof, name: &str) -> Result<()> {
        let verdict = self.key.verify(publics, proof).ok_or_else(|| {
            Error::input(format!(
                "a {} proof for {} and public values for {}; the key is for {} over {}",
                proof.protocol(),
                proof.curve(),
                publics.curve(),
                self.protocol,
                self.curve
            ))
        })?;
        verdict.map_err(|refusal| match refusal {
            Refusal::PublicCount { .. } => Error::input(refusal.to_string()),
            _ => Error::InvalidProof(format!("{name}the proof is not valid: {refusal}")),
        })
    }
}

/// Checks a proof: `Ok` if it is valid, [`Error::InvalidProof`] if not. A number of the proof or of the public values that is not
/// below its modulus, and a point off the curve or outside the subgroup, make a proof that is not valid, as for snarkjs.
///
/// # Errors
/// [`Error::InvalidProof`]; [`Error::BadInput`] for files that are malformed or do not belong together.
pub fn verify(vkey: &Path, public: &Path, proof: &Path) -> Result<()> {
    let text = json::read_file(vkey)?;
    let key = Verifier::read(&text, vkey, |e| e.in_file(vkey))?;
    let (curve, expected) = (key.curve, key.publics);
    // Whether all texts are formed well comes before what their numbers are.
    let publics = json::parse_public_of(&json::read_file(public)?, curve, expected);
    let publics = publics.map_err(|e| Error::of_element(e.in_file(public)));
    let text = json::read_file(proof)?;
    let points = Proof::parse(key.protocol, curve, &text).map_err(|e| Error::of_element(e.in_file(proof)));
    let (publics, points) = match (publics, points) {
        (Err(Error::InvalidProof(_)), Err(malformed @ Error::BadInput(_))) => return Err(malformed),
        (publics, points) => (publics?, points?),
    };
    key.verify_as(&Publics::of(curve, &publics), &points, &format!("{}: ", proof.display()))
}

/// The Groth16 key of a `verification_key.json`, and the same made ready.
pub(crate) fn groth16_key<C: Curve>(
    text: &[u8],
    path: &Path,
    place: impl Fn(FormatError) -> FormatError,
) -> Result<(VerifyingKey<C>, PreparedKey<C>)> {
    let VerificationKey { alpha_1, beta_2, gamma_2, delta_2, ic, .. } =
        VerificationKey::<C>::parse(text).map_err(place)?;
    let key = VerifyingKey { alpha1: alpha_1, beta2: beta_2, gamma2: gamma_2, delta2: delta_2, ic };
    let prepared = PreparedKey::<C>::new(&key).map_err(|e| Error::prover(e, path))?;
    Ok((key, prepared))
}

/// The PLONK key of a `verification_key.json`, and the same made ready. What the text says of the domain's root is compared with the field's.
pub(crate) fn plonk_key<C: Curve>(
    text: &[u8],
    path: &Path,
    place: impl Fn(FormatError) -> FormatError,
) -> Result<(tandem_plonk::VerifyingKey<C>, tandem_plonk::PreparedKey<C>)> {
    let key = PlonkVerificationKey::<C>::parse(text).map_err(place)?;
    let element = |value| element::<C>(value, path);
    let verifying = tandem_plonk::VerifyingKey {
        publics: key.n_public as usize,
        domain: 1usize << key.power,
        k: [element(key.k1)?, element(key.k2)?],
        selectors: key.selectors,
        permutation: key.permutation,
        x_2: key.x_2,
    };
    let prepared = tandem_plonk::PreparedKey::new(&verifying).map_err(|e| Error::prover(e, path))?;
    if element(key.w)? != prepared.root() {
        return Err(again(path, "w is not the root of unity of 2^power rows"));
    }
    Ok((verifying, prepared))
}

/// The FFLONK key of a `verification_key.json`, and the same made ready. What the text says of roots of unity is compared with the field's.
pub(crate) fn fflonk_key(
    text: &[u8],
    path: &Path,
    place: impl Fn(FormatError) -> FormatError,
) -> Result<(fflonk::VerifyingKey, fflonk::PreparedKey)> {
    let key = FflonkVerificationKey::parse(text).map_err(place)?;
    let element = |value| element::<Bn254>(value, path);
    let verifying = fflonk::VerifyingKey {
        publics: key.n_public as usize,
        domain: 1usize << key.power,
        k: [element(key.k[0])?, element(key.k[1])?],
        x_2: key.x_2,
        c0: key.c0,
    };
    let prepared = fflonk::PreparedKey::new(&verifying).map_err(|e| Error::prover(e, path))?;
    let Roots { w, w3, w4, w8, wr } = prepared.roots();
    if key.roots != [w, w3, w4, w8, wr].map(Bn254::canonical) {
        return Err(again(path, "w, w3, w4, w8 and wr are not the roots of unity of 2^power rows"));
    }
    Ok((verifying, prepared))
}

fn again(path: &Path, why: &str) -> Error {
    Error::input(format!("{}: {why}; make the file again", path.display()))
}

fn element<C: Curve>(value: Canonical, path: &Path) -> Result<C::Fr> {
    C::from_canonical(value).ok_or_else(|| again(path, "a number is not below the scalar modulus"))
}

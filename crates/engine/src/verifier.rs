//! Verification of proofs, which needs no device.

use crate::{CurveId, Error, Proof, Publics, Result};
use std::path::Path;
use tandem_formats::{json, FormatError, VerificationKey};
use tandem_groth16::{PreparedKey, Refusal, VerifyingKey};
use tandem_ops::{for_each_curve, with_curve};

macro_rules! any_key {
    (; $($curve:ident)*) => {
        /// A key of one of the curves.
        enum AnyKey {
            $($curve(PreparedKey<tandem_ops::$curve>),)*
        }

        $(impl From<PreparedKey<tandem_ops::$curve>> for AnyKey {
            fn from(key: PreparedKey<tandem_ops::$curve>) -> Self {
                AnyKey::$curve(key)
            }
        })*

        impl AnyKey {
            /// What the key says; `None` for a proof or public values of another curve.
            fn verify(&self, publics: &Publics, proof: &Proof) -> Option<std::result::Result<(), Refusal>> {
                match self {
                    $(AnyKey::$curve(key) => {
                        let proof = proof.points::<tandem_ops::$curve>()?;
                        (publics.curve() == CurveId::$curve).then(|| key.verify(publics.canonical(), &proof))
                    })*
                }
            }
        }
    };
}
for_each_curve!([any_key]);

/// A verification key, read and made ready once, for any number of proofs.
pub struct Verifier {
    curve: CurveId,
    publics: usize,
    key: AnyKey,
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
        let curve = json::curve(text).map_err(&place)?;
        with_curve!(curve, C => {
            let VerificationKey { alpha_1, beta_2, gamma_2, delta_2, ic, .. } =
                VerificationKey::<C>::parse(text).map_err(&place)?;
            let publics = ic.len() - 1;
            let key = VerifyingKey { alpha1: alpha_1, beta2: beta_2, gamma2: gamma_2, delta2: delta_2, ic };
            let key = PreparedKey::<C>::new(&key).map_err(|e| Error::prover(e, path))?;
            Ok(Verifier { curve, publics, key: key.into() })
        })
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
                "a proof for {} and public values for {}; the key is for {}",
                proof.curve(),
                publics.curve(),
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
    let points = with_curve!(curve, C => json::Proof::<C>::parse(&text).map(|json::Proof { a, b, c }| {
        Proof::of(&tandem_groth16::Proof::<C> { a, b, c })
    }));
    let points = points.map_err(|e| Error::of_element(e.in_file(proof)));
    let (publics, points) = match (publics, points) {
        (Err(Error::InvalidProof(_)), Err(malformed @ Error::BadInput(_))) => return Err(malformed),
        (publics, points) => (publics?, points?),
    };
    key.verify_as(&Publics::of(curve, &publics), &points, &format!("{}: ", proof.display()))
}

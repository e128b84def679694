//! Proofs and public values as values. JSON is one form of them, bytes are another.

use crate::{Error, Result};
use tandem_formats::{json, zkey};
use tandem_groth16::Proof as Points;
use tandem_ops::{with_curve, Canonical, Curve, CurveId};

/// A Groth16 proof over one of the curves. That it is formed well is known, not that it is valid: [`crate::Verifier`] says that.
#[derive(Clone, PartialEq, Eq)]
pub struct Proof {
    curve: CurveId,
    /// A, B and C on the wire.
    bytes: Vec<u8>,
}

/// Its bytes are no secret, but nobody reads them.
impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proof({})", self.curve)
    }
}

impl Proof {
    pub(crate) fn of<C: Curve>(points: &Points<C>) -> Self {
        Proof { curve: C::ID, bytes: points.to_bytes() }
    }

    /// The points, if they are of this curve.
    pub(crate) fn points<C: Curve>(&self) -> Option<Points<C>> {
        (self.curve == C::ID).then(|| Points::from_bytes(&self.bytes))?
    }

    /// The curve of its points.
    pub fn curve(&self) -> CurveId {
        self.curve
    }

    /// A in G1, B in G2 and C in G1, one after the other: each x, then y, over Fp2 c0, then c1; each coordinate little-endian in Montgomery
    /// form, as in a `.zkey`; all zeros for infinity. 256 bytes over BN254, 384 over BLS12-381.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The proof with these bytes ([`Proof::as_bytes`]).
    ///
    /// # Errors
    /// [`Error::BadInput`] for another number of bytes, or a coordinate that is not below the modulus.
    pub fn from_bytes(curve: CurveId, bytes: &[u8]) -> Result<Proof> {
        let expected = with_curve!(curve, C => size_of::<Points<C>>());
        if bytes.len() != expected {
            return Err(Error::input(format!("a proof over {curve} has {expected} bytes, found {}", bytes.len())));
        }
        if let Some(at) = with_curve!(curve, C => zkey::coordinate_not_below::<C>(bytes)) {
            return Err(Error::input(format!("coordinate {at} of the proof is not below the modulus of {curve}")));
        }
        Ok(Proof { curve, bytes: bytes.to_vec() })
    }

    /// The text of `proof.json`, as snarkjs writes it.
    pub fn to_json(&self) -> String {
        fn text<C: Curve>(proof: &Proof) -> String {
            // The curve is that of the match.
            proof.points::<C>().map_or(String::new(), |Points { a, b, c }| json::Proof::<C> { a, b, c }.to_json())
        }
        with_curve!(self.curve, C => text::<C>(self))
    }

    /// Reads the text of a `proof.json` over this curve. `protocol` and `curve` may be missing in it.
    ///
    /// # Errors
    /// [`Error::BadInput`] for what is no such text; [`Error::InvalidProof`] for a coordinate that is not below the modulus.
    pub fn from_json(curve: CurveId, text: &[u8]) -> Result<Proof> {
        fn read<C: Curve>(text: &[u8]) -> Result<Proof> {
            let json::Proof { a, b, c } = json::Proof::<C>::parse(text).map_err(Error::of_element)?;
            Ok(Proof::of(&Points::<C> { a, b, c }))
        }
        with_curve!(curve, C => read::<C>(text))
    }
}

/// The public values that a proof is for: outputs first, then public inputs, without the leading 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publics {
    curve: CurveId,
    values: Vec<Canonical>,
}

impl Publics {
    pub(crate) fn of(curve: CurveId, values: &[Canonical]) -> Self {
        Publics { curve, values: values.to_vec() }
    }

    pub(crate) fn canonical(&self) -> &[Canonical] {
        &self.values
    }

    /// Takes values as little-endian 64-bit limbs.
    ///
    /// # Errors
    /// [`Error::InvalidProof`] if one is not below the curve's scalar modulus.
    pub fn new(curve: CurveId, values: &[[u64; 4]]) -> Result<Publics> {
        let values: Vec<_> = values.iter().map(|&limbs| Canonical(limbs)).collect();
        let above = |v: &Canonical| with_curve!(curve, C => C::from_canonical(*v).is_none());
        match values.iter().position(above) {
            Some(at) => Err(Error::InvalidProof(format!("public value {at} is not below the modulus of {curve}"))),
            None => Ok(Publics { curve, values }),
        }
    }

    /// The curve of whose scalar field they are.
    pub fn curve(&self) -> CurveId {
        self.curve
    }

    /// The values as little-endian 64-bit limbs.
    pub fn values(&self) -> impl ExactSizeIterator<Item = [u64; 4]> + '_ {
        self.values.iter().map(|value| value.0)
    }

    /// The text of `public.json`, as snarkjs writes it.
    pub fn to_json(&self) -> String {
        json::public_to_json(&self.values)
    }

    /// Reads the text of a `public.json`.
    ///
    /// # Errors
    /// [`Error::BadInput`] for what is no such text; [`Error::InvalidProof`] for a value that is not below the modulus.
    pub fn from_json(curve: CurveId, text: &[u8]) -> Result<Publics> {
        let values = json::parse_public(text, curve).map_err(Error::of_element)?;
        Ok(Publics { curve, values })
    }
}

//! Proofs and public values as values. JSON is one form of them, bytes are another.

use crate::{Error, Result};
use tandem_formats::{json, zkey, FileKind, OtherSystem, Protocol};
use tandem_groth16::Proof as Points;
use tandem_ops::{with_curve, Canonical, Curve, CurveId};
use tandem_plonk::fflonk;

/// A proof over one of the curves. That it is formed well is known, not that it is valid: [`crate::Verifier`] says that.
#[derive(Clone, PartialEq, Eq)]
pub struct Proof {
    protocol: Protocol,
    curve: CurveId,
    /// Points and scalars on the wire.
    bytes: Vec<u8>,
}

/// Its bytes are no secret, but nobody reads them.
impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proof({:?}, {})", self.protocol, self.curve)
    }
}

impl Proof {
    pub(crate) fn groth16<C: Curve>(points: &Points<C>) -> Self {
        Proof { protocol: Protocol::Groth16, curve: C::ID, bytes: points.to_bytes() }
    }

    pub(crate) fn plonk<C: Curve>(proof: &tandem_plonk::Proof<C>) -> Self {
        Proof { protocol: Protocol::Plonk, curve: C::ID, bytes: proof.to_bytes() }
    }

    /// The points, if it is a Groth16 proof over this curve.
    pub(crate) fn points<C: Curve>(&self) -> Option<Points<C>> {
        (self.curve == C::ID && self.protocol == Protocol::Groth16).then(|| Points::from_bytes(&self.bytes))?
    }

    /// The proof, if it is a PLONK proof over this curve.
    pub(crate) fn of_plonk<C: Curve>(&self) -> Option<tandem_plonk::Proof<C>> {
        (self.curve == C::ID && self.protocol == Protocol::Plonk)
            .then(|| tandem_plonk::Proof::from_bytes(&self.bytes))?
    }

    pub(crate) fn fflonk(proof: &fflonk::Proof) -> Self {
        Proof { protocol: Protocol::Fflonk, curve: CurveId::Bn254, bytes: proof.to_bytes() }
    }

    /// The proof, if it is an FFLONK proof.
    pub(crate) fn of_fflonk(&self) -> Option<fflonk::Proof> {
        (self.protocol == Protocol::Fflonk).then(|| fflonk::Proof::from_bytes(&self.bytes))?
    }

    /// The proof system.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The curve of its points.
    pub fn curve(&self) -> CurveId {
        self.curve
    }

    /// Points one after the other: each x, then y, over Fp2 c0, then c1; each coordinate little-endian in Montgomery form, as in a `.zkey`; all
    /// zeros for infinity. Of a Groth16 proof A in G1, B in G2 and C in G1: 256 bytes over BN254, 384 over BLS12-381. Of a PLONK proof A, B, C, Z,
    /// T1, T2, T3, Wxi and Wxiw in G1, then the values a, b, c, s1, s2 and zw as little-endian integers: 768 bytes over BN254, 1056 over
    /// BLS12-381. Of an FFLONK proof, over BN254 alone, C1, C2, W1 and W2 in G1, then the values ql, qr, qm, qo, qc, s1, s2, s3, a, b, c, z, zw, t1w,
    /// t2w and inv: also 768 bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The Groth16 or PLONK proof with these bytes ([`Proof::as_bytes`]), whose number tells the proof system.
    ///
    /// # Errors
    /// [`Error::BadInput`] for another number of bytes, or a number that is not below its modulus.
    pub fn from_bytes(curve: CurveId, bytes: &[u8]) -> Result<Proof> {
        let sizes = |protocol| {
            let points = with_curve!(curve, C => match protocol {
                Protocol::Groth16 => size_of::<Points<C>>(),
                _ => size_of::<[tandem_plonk::P1<C>; 9]>(),
            });
            (points, if protocol == Protocol::Plonk { 6 * size_of::<Canonical>() } else { 0 })
        };
        let whole = |protocol| sizes(protocol).0 + sizes(protocol).1;
        let found = [Protocol::Groth16, Protocol::Plonk].into_iter().find(|protocol| whole(*protocol) == bytes.len());
        let Some(protocol) = found else {
            let (groth16, plonk) = (whole(Protocol::Groth16), whole(Protocol::Plonk));
            return Err(Error::input(format!(
                "a proof over {curve} has {groth16} bytes, for PLONK {plonk}, found {}",
                bytes.len()
            )));
        };
        let (points, scalars) = bytes.split_at(sizes(protocol).0);
        if let Some(at) = with_curve!(curve, C => zkey::coordinate_not_below::<C>(points)) {
            return Err(Error::input(format!("coordinate {at} of the proof is not below the modulus of {curve}")));
        }
        let value = |bytes: &[u8]| Canonical(bytemuck::pod_read_unaligned(bytes));
        let above = |v: Canonical| with_curve!(curve, C => C::from_canonical(v).is_none());
        if let Some(at) = scalars.chunks_exact(size_of::<Canonical>()).position(|bytes| above(value(bytes))) {
            return Err(Error::input(format!("value {at} of the proof is not below the scalar modulus of {curve}")));
        }
        Ok(Proof { protocol, curve, bytes: bytes.to_vec() })
    }

    /// The text of `proof.json`, as snarkjs writes it.
    pub fn to_json(&self) -> String {
        fn text<C: Curve>(proof: &Proof) -> String {
            // The curve is that of the match.
            let groth16 = proof.points::<C>().map(|Points { a, b, c }| json::Proof::<C> { a, b, c }.to_json());
            let plonk = || {
                let tandem_plonk::Proof { points, evaluations } = proof.of_plonk::<C>()?;
                Some(json::PlonkProof::<C> { points, evaluations }.to_json())
            };
            let fflonk = || {
                let fflonk::Proof { points, evaluations } = proof.of_fflonk()?;
                Some(json::FflonkProof { points, evaluations }.to_json())
            };
            groth16.or_else(plonk).or_else(fflonk).unwrap_or_default()
        }
        with_curve!(self.curve, C => text::<C>(self))
    }

    /// Reads the text of a `proof.json` over this curve. `protocol` and `curve` may be missing in it: a proof is told by its members.
    ///
    /// # Errors
    /// [`Error::BadInput`] for what is no such text; [`Error::InvalidProof`] for a number that is not below its modulus.
    pub fn from_json(curve: CurveId, text: &[u8]) -> Result<Proof> {
        let protocol = match FileKind::of(text) {
            Some(FileKind::ProofOf(OtherSystem::Plonk)) => Protocol::Plonk,
            Some(FileKind::ProofOf(OtherSystem::Fflonk)) => Protocol::Fflonk,
            _ => Protocol::Groth16,
        };
        Self::parse(protocol, curve, text).map_err(Error::of_element)
    }

    /// Reads the JSON text of a proof of `protocol` over `curve`.
    pub(crate) fn parse(
        protocol: Protocol,
        curve: CurveId,
        text: &[u8],
    ) -> std::result::Result<Proof, tandem_formats::FormatError> {
        fn read<C: Curve>(protocol: Protocol, text: &[u8]) -> std::result::Result<Proof, tandem_formats::FormatError> {
            Ok(match protocol {
                Protocol::Groth16 => {
                    let json::Proof { a, b, c } = json::Proof::<C>::parse(text)?;
                    Proof::groth16(&Points::<C> { a, b, c })
                }
                Protocol::Plonk => {
                    let json::PlonkProof { points, evaluations } = json::PlonkProof::<C>::parse(text)?;
                    Proof::plonk(&tandem_plonk::Proof::<C> { points, evaluations })
                }
                Protocol::Fflonk => {
                    let json::FflonkProof { points, evaluations } = json::FflonkProof::parse(text)?;
                    Proof::fflonk(&fflonk::Proof { points, evaluations })
                }
            })
        }
        with_curve!(curve, C => read::<C>(protocol, text))
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

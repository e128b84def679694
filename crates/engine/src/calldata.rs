//! Proofs as the arguments of a verifier contract.

use crate::{Error, Proof, Protocol, Publics, Result};
use ark_ec::AffineRepr;
use ark_ff::{BigInteger, Field, PrimeField};
use std::path::Path;
use tandem_ops::{Bn254, Canonical, Curve, CurveId, Group};

/// A number as contracts take it: of 32 bytes, in quotes.
fn word(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"0x{digits:0>64}\"")
}

fn scalar(value: &Canonical) -> String {
    let bytes: Vec<u8> = value.0.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
    word(&bytes)
}

/// x and y, each the halves of a coordinate, the first one first; infinity is (0, 1), as in JSON.
fn coordinates<G: Group>(point: &G::Point) -> [Vec<String>; 2] {
    type Base<G> = <<G as Group>::Ark as ark_ec::CurveGroup>::BaseField;
    let (x, y) = G::to_ark(point).xy().unwrap_or((Base::<G>::from(0_u64), Base::<G>::from(1_u64)));
    [x, y].map(|c| c.to_base_prime_field_elements().map(|half| word(&half.into_bigint().to_bytes_be())).collect())
}

impl Proof {
    /// The arguments of `verifyProof` of the contract that snarkjs makes for the proof's system, as its `generatecall` prints them: numbers as
    /// hexadecimal words, in quotes but for FFLONK, the second half of a coordinate over Fp2 first. Whether the proof is valid is not looked at.
    ///
    /// # Errors
    /// [`Error::BadInput`] for another curve than BN254, the only one whose pairing the EVM has as a precompiled contract at these addresses.
    pub fn calldata(&self, publics: &Publics) -> Result<String> {
        type G1 = <Bn254 as Curve>::G1;
        for curve in [self.curve(), publics.curve()] {
            if curve != CurveId::Bn254 {
                return Err(Error::input(format!("calldata is for proofs over bn254, found {curve}")));
            }
        }
        let inputs = publics.canonical().iter().map(scalar).collect::<Vec<_>>().join(",");
        let missing = || Error::Internal("a proof of no known system".into());
        match self.protocol() {
            Protocol::Groth16 => {
                let proof = self.points::<Bn254>().ok_or_else(missing)?;
                let g1 = |point| format!("[{}]", coordinates::<G1>(point).concat().join(", "));
                let b = coordinates::<<Bn254 as Curve>::G2>(&proof.b).map(|halves| match &halves[..] {
                    [c0, c1] => format!("[{c1}, {c0}]"),
                    _ => String::new(),
                });
                Ok(format!("{},[{}],{},[{inputs}]", g1(&proof.a), b.join(","), g1(&proof.c)))
            }
            Protocol::Plonk => {
                let proof = self.of_plonk::<Bn254>().ok_or_else(missing)?;
                let points = proof.points.iter().flat_map(|point| coordinates::<G1>(point).concat());
                let words: Vec<String> = points.chain(proof.evaluations.iter().map(scalar)).collect();
                // Behind the first one alone, snarkjs prints a space.
                Ok(format!("[{}][{inputs}]", words.join(",").replacen(',', ", ", 1)))
            }
            Protocol::Fflonk => {
                let proof = self.of_fflonk().ok_or_else(missing)?;
                let points = proof.points.iter().flat_map(|point| coordinates::<G1>(point).concat());
                let words: Vec<String> = points.chain(proof.evaluations.iter().map(scalar)).collect();
                // As snarkjs prints them: no quotes, and a space behind the first one alone.
                Ok(format!("[{}],[{inputs}]", words.join(",").replacen(',', ", ", 1)).replace('"', ""))
            }
        }
    }
}

/// [`Proof::calldata`] of a `public.json` and a `proof.json`.
///
/// # Errors
/// [`Error::BadInput`] for what are no such files, or for another curve; [`Error::InvalidProof`] for a number that is not below its modulus.
pub fn calldata(public: &Path, proof: &Path) -> Result<String> {
    let named = |path: &Path, error| match error {
        Error::BadInput { .. } | Error::InvalidProof(_) => Error::input(format!("{}: {error}", path.display())),
        other => other,
    };
    let text = tandem_formats::json::read_file(proof)?;
    let proof_value = Proof::from_json(CurveId::Bn254, &text).map_err(|e| named(proof, e))?;
    let text = tandem_formats::json::read_file(public)?;
    let publics = Publics::from_json(CurveId::Bn254, &text).map_err(|e| named(public, e))?;
    proof_value.calldata(&publics)
}

//! The JSON of FFLONK: `verification_key.json` and `proof.json`.

use super::number::Number;
use super::plonk::{g1s, scalar, scalar_tree};
use super::print::Tree;
use super::text::{G1Text, G2Text};
use super::{at_member, check_curve, from_text, shortened, Convert};
use crate::error::{FormatError, Result};
use crate::kind::{FileKind, OtherSystem};
use crate::limits;
use crate::zkey::{G1Point, G2Point};
use serde::Deserialize;
use tandem_ops::{Bn254, Canonical, Curve, CurveId};

const KEY: FileKind = FileKind::VerificationKeyOf(OtherSystem::Fflonk);
const PROOF: FileKind = FileKind::ProofOf(OtherSystem::Fflonk);

/// An FFLONK verification key.
#[derive(Debug, Clone)]
pub struct FflonkVerificationKey {
    /// Public values of a proof.
    pub n_public: u32,
    /// The domain has 2^this rows.
    pub power: u32,
    /// What takes the domain to the cosets of the second and the third column: k1 and k2.
    pub k: [Canonical; 2],
    /// Roots of unity: w, w3, w4, w8 and wr.
    pub roots: [Canonical; 5],
    /// tau in G2.
    pub x_2: G2Point<Bn254>,
    /// The commitment to C0.
    pub c0: G1Point<Bn254>,
}

/// An FFLONK proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FflonkProof {
    /// C1, C2, W1 and W2.
    pub points: [G1Point<Bn254>; 4],
    /// ql, qr, qm, qo, qc, s1, s2, s3, a, b, c, z, zw, t1w, t2w and inv.
    pub evaluations: [Canonical; 16],
}

const POINTS: [&str; 4] = ["C1", "C2", "W1", "W2"];
const EVALUATIONS: [&str; 16] =
    ["ql", "qr", "qm", "qo", "qc", "s1", "s2", "s3", "a", "b", "c", "z", "zw", "t1w", "t2w", "inv"];
const ROOTS: [&str; 5] = ["w", "w3", "w4", "w8", "wr"];

fn check_protocol(protocol: &str) -> Result<()> {
    match protocol {
        "fflonk" => Ok(()),
        other => Err(at_member("protocol", format!("expected fflonk, found {:?}", shortened(other)))
            .advise("make the file with snarkjs fflonk or with tandem")),
    }
}

fn scalars<const N: usize>(numbers: &[Number; N], names: &[&str; N]) -> Result<[Canonical; N]> {
    let mut values = [Canonical::default(); N];
    for ((value, number), name) in values.iter_mut().zip(numbers).zip(names) {
        *value = scalar::<Bn254>(number, name)?;
    }
    Ok(values)
}

impl FflonkVerificationKey {
    /// Reads a key.
    ///
    /// # Errors
    /// The first thing found that is not as the format says; numbers that are not below their modulus.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Text {
            protocol: String,
            curve: String,
            #[serde(rename = "nPublic")]
            n_public: u32,
            power: u32,
            k1: Number,
            k2: Number,
            w: Number,
            w3: Number,
            w4: Number,
            w8: Number,
            wr: Number,
            #[serde(rename = "X_2")]
            x_2: G2Text,
            #[serde(rename = "C0")]
            c0: G1Text,
        }
        let text: Text = from_text(bytes, KEY)?;
        check_protocol(&text.protocol)?;
        check_curve::<Bn254>(&text.curve)?;
        let most = limits::two_adicity(CurveId::Bn254);
        if text.power > most {
            return Err(at_member("power", format!("expected at most {most}, found {}", text.power)));
        }
        if u64::from(text.n_public) > 1 << text.power {
            let problem =
                format!("expected no more public values than the 2^{} rows, found {}", text.power, text.n_public);
            return Err(at_member("nPublic", problem));
        }
        let convert = Convert::<Bn254>::new();
        let key = |e: FormatError| e.into_damage();
        Ok(Self {
            n_public: text.n_public,
            power: text.power,
            k: scalars(&[text.k1, text.k2], &["k1", "k2"]).map_err(key)?,
            roots: scalars(&[text.w, text.w3, text.w4, text.w8, text.wr], &ROOTS).map_err(key)?,
            x_2: convert.g2(&text.x_2, "X_2")?,
            c0: convert.g1(&text.c0, "C0")?,
        })
    }

    /// The text of the key as `snarkjs zkey export verificationkey` writes it.
    pub fn to_json(&self) -> String {
        let convert = Convert::<Bn254>::new();
        let mut members = vec![
            ("protocol", Tree::text("fflonk")),
            ("curve", Tree::text(Bn254::ID.snarkjs_name())),
            ("nPublic", Tree::Int(self.n_public.into())),
            ("power", Tree::Int(self.power.into())),
            ("k1", scalar_tree(&self.k[0])),
            ("k2", scalar_tree(&self.k[1])),
        ];
        members.extend(ROOTS.iter().zip(&self.roots).map(|(name, value)| (*name, scalar_tree(value))));
        members.push(("X_2", convert.g2_tree(&self.x_2)));
        members.push(("C0", convert.g1_tree(&self.c0)));
        Tree::Map(members).to_string()
    }
}

impl FflonkProof {
    /// Reads a proof. `protocol` and `curve` may be missing.
    ///
    /// # Errors
    /// The first thing found that is not as the format says; numbers that are not below their modulus.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "UPPERCASE")]
        struct Points {
            c1: G1Text,
            c2: G1Text,
            w1: G1Text,
            w2: G1Text,
        }
        #[derive(Deserialize)]
        struct Values {
            ql: Number,
            qr: Number,
            qm: Number,
            qo: Number,
            qc: Number,
            s1: Number,
            s2: Number,
            s3: Number,
            a: Number,
            b: Number,
            c: Number,
            z: Number,
            zw: Number,
            t1w: Number,
            t2w: Number,
            inv: Number,
        }
        #[derive(Deserialize)]
        struct Text {
            polynomials: Points,
            evaluations: Values,
            protocol: Option<String>,
            curve: Option<String>,
        }
        let text: Text = from_text(bytes, PROOF)?;
        text.protocol.as_deref().map_or(Ok(()), check_protocol)?;
        text.curve.as_deref().map_or(Ok(()), check_curve::<Bn254>)?;
        let Points { c1, c2, w1, w2 } = text.polynomials;
        let v = text.evaluations;
        let evaluations =
            [v.ql, v.qr, v.qm, v.qo, v.qc, v.s1, v.s2, v.s3, v.a, v.b, v.c, v.z, v.zw, v.t1w, v.t2w, v.inv];
        Ok(Self {
            points: g1s(&Convert::<Bn254>::new(), &[c1, c2, w1, w2], &POINTS)?,
            evaluations: scalars(&evaluations, &EVALUATIONS)?,
        })
    }

    /// The text of the proof as `snarkjs fflonk prove` writes it.
    pub fn to_json(&self) -> String {
        let convert = Convert::<Bn254>::new();
        let points = POINTS.iter().zip(&self.points).map(|(name, point)| (*name, convert.g1_tree(point)));
        let values = EVALUATIONS.iter().zip(&self.evaluations).map(|(name, value)| (*name, scalar_tree(value)));
        Tree::Map(vec![
            ("polynomials", Tree::Map(points.collect())),
            ("evaluations", Tree::Map(values.collect())),
            ("protocol", Tree::text("fflonk")),
            ("curve", Tree::text(Bn254::ID.snarkjs_name())),
        ])
        .to_string()
    }
}

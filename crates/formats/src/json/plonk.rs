//! The JSON of PLONK: `verification_key.json` and `proof.json`.

use super::number::Number;
use super::print::Tree;
use super::text::{G1Text, G2Text};
use super::{at_member, check_curve, curve_named, from_text, shortened, to_decimal, Convert};
use crate::error::{FormatError, Result};
use crate::kind::{FileKind, OtherSystem};
use crate::zkey::{G1Point, G2Point};
use crate::{limits, modulus};
use bytemuck::Zeroable;
use serde::de::IgnoredAny;
use serde::Deserialize;
use tandem_ops::{Canonical, Curve, CurveId};

const KEY: FileKind = FileKind::VerificationKeyOf(OtherSystem::Plonk);
const PROOF: FileKind = FileKind::ProofOf(OtherSystem::Plonk);

/// A PLONK verification key.
#[derive(Debug, Clone)]
pub struct PlonkVerificationKey<C: Curve> {
    /// Public values of a proof.
    pub n_public: u32,
    /// The domain has 2^this rows.
    pub power: u32,
    /// What takes the domain to the coset of the second column.
    pub k1: Canonical,
    /// What takes the domain to the coset of the third column.
    pub k2: Canonical,
    /// Commitments to Qm, Ql, Qr, Qo and Qc.
    pub selectors: [G1Point<C>; 5],
    /// Commitments to S1, S2 and S3.
    pub permutation: [G1Point<C>; 3],
    /// tau in G2.
    pub x_2: G2Point<C>,
    /// The root of unity whose powers are the domain.
    pub w: Canonical,
}

/// A PLONK proof.
#[derive(Debug, Clone, Copy)]
pub struct PlonkProof<C: Curve> {
    /// A, B, C, Z, T1, T2, T3, Wxi and Wxiw.
    pub points: [G1Point<C>; 9],
    /// a, b, c, s1, s2 and zw.
    pub evaluations: [Canonical; 6],
}

impl<C: Curve> PartialEq for PlonkProof<C> {
    fn eq(&self, other: &Self) -> bool {
        self.points == other.points && self.evaluations == other.evaluations
    }
}

/// Names of a proof's points.
const POINTS: [&str; 9] = ["A", "B", "C", "Z", "T1", "T2", "T3", "Wxi", "Wxiw"];
/// Names of a proof's evaluations.
const EVALUATIONS: [&str; 6] = ["eval_a", "eval_b", "eval_c", "eval_s1", "eval_s2", "eval_zw"];
/// Names of a key's points in G1.
const COMMITMENTS: [&str; 8] = ["Qm", "Ql", "Qr", "Qo", "Qc", "S1", "S2", "S3"];

/// The curve of a PLONK verification key.
///
/// # Errors
/// The text is no PLONK verification key, or for another curve than those supported.
pub fn curve(bytes: &[u8]) -> Result<CurveId> {
    #[derive(Deserialize)]
    struct Head {
        protocol: String,
        curve: String,
        #[serde(rename = "X_2")]
        _x_2: IgnoredAny,
    }
    let head: Head = from_text(bytes, KEY)?;
    check_protocol(&head.protocol)?;
    curve_named(&head.curve)
}

fn check_protocol(protocol: &str) -> Result<()> {
    match protocol {
        "plonk" => Ok(()),
        other => Err(at_member("protocol", format!("expected plonk, found {:?}", shortened(other)))
            .advise("make the file with snarkjs plonk or with tandem")),
    }
}

/// A scalar of a file.
pub(super) fn scalar<C: Curve>(number: &Number, name: &str) -> Result<Canonical> {
    let (value, high) = number.0.split_at(4);
    if high != [0, 0] || !modulus::is_below(value, modulus::scalar(C::ID)) {
        let problem = format!("expected a value below the scalar field modulus of {}, found a larger one", C::ID);
        return Err(at_member(name, problem).no_element());
    }
    let mut canonical = Canonical::default();
    canonical.0.copy_from_slice(value);
    Ok(canonical)
}

pub(super) fn scalar_tree(value: &Canonical) -> Tree {
    Tree::Text(to_decimal(&value.0))
}

impl<C: Curve> PlonkVerificationKey<C> {
    /// Reads a key.
    ///
    /// # Errors
    /// The first thing found that is not as the format says; numbers that are not below their modulus.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Text {
            #[serde(rename = "protocol")]
            protocol: String,
            #[serde(rename = "curve")]
            curve: String,
            #[serde(rename = "nPublic")]
            n_public: u32,
            #[serde(rename = "power")]
            power: u32,
            #[serde(rename = "k1")]
            k1: Number,
            #[serde(rename = "k2")]
            k2: Number,
            qm: G1Text,
            ql: G1Text,
            qr: G1Text,
            qo: G1Text,
            qc: G1Text,
            s1: G1Text,
            s2: G1Text,
            s3: G1Text,
            #[serde(rename = "X_2")]
            x_2: G2Text,
            #[serde(rename = "w")]
            w: Number,
        }
        let text: Text = from_text(bytes, KEY)?;
        check_protocol(&text.protocol)?;
        check_curve::<C>(&text.curve)?;
        let most = limits::two_adicity(C::ID);
        if text.power > most {
            return Err(at_member("power", format!("expected at most {most}, found {}", text.power)));
        }
        if u64::from(text.n_public) > 1 << text.power {
            let problem =
                format!("expected no more public values than the 2^{} rows, found {}", text.power, text.n_public);
            return Err(at_member("nPublic", problem));
        }
        let convert = Convert::<C>::new();
        let commitments = [text.qm, text.ql, text.qr, text.qo, text.qc, text.s1, text.s2, text.s3];
        let [qm, ql, qr, qo, qc, s1, s2, s3] = g1s(&convert, &commitments, &COMMITMENTS)?;
        let key = |e: FormatError| e.into_damage();
        Ok(Self {
            n_public: text.n_public,
            power: text.power,
            k1: scalar::<C>(&text.k1, "k1").map_err(key)?,
            k2: scalar::<C>(&text.k2, "k2").map_err(key)?,
            selectors: [qm, ql, qr, qo, qc],
            permutation: [s1, s2, s3],
            x_2: convert.g2(&text.x_2, "X_2")?,
            w: scalar::<C>(&text.w, "w").map_err(key)?,
        })
    }

    /// The text of the key as `snarkjs zkey export verificationkey` writes it.
    pub fn to_json(&self) -> String {
        let convert = Convert::<C>::new();
        let mut members = vec![
            ("protocol", Tree::text("plonk")),
            ("curve", Tree::text(C::ID.snarkjs_name())),
            ("nPublic", Tree::Int(self.n_public.into())),
            ("power", Tree::Int(self.power.into())),
            ("k1", scalar_tree(&self.k1)),
            ("k2", scalar_tree(&self.k2)),
        ];
        let points = self.selectors.iter().chain(&self.permutation);
        members.extend(COMMITMENTS.iter().zip(points).map(|(name, point)| (*name, convert.g1_tree(point))));
        members.push(("X_2", convert.g2_tree(&self.x_2)));
        members.push(("w", scalar_tree(&self.w)));
        Tree::Map(members).to_string()
    }
}

pub(super) fn g1s<C: Curve, const N: usize>(
    convert: &Convert<C>,
    texts: &[G1Text; N],
    names: &[&str; N],
) -> Result<[G1Point<C>; N]> {
    let mut points = [G1Point::<C>::zeroed(); N];
    for ((point, text), name) in points.iter_mut().zip(texts).zip(names) {
        *point = convert.g1(text, name)?;
    }
    Ok(points)
}

impl<C: Curve> PlonkProof<C> {
    /// Reads a proof. `protocol` and `curve` may be missing.
    ///
    /// # Errors
    /// The first thing found that is not as the format says; numbers that are not below their modulus.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Text {
            #[serde(rename = "A")]
            a: G1Text,
            #[serde(rename = "B")]
            b: G1Text,
            #[serde(rename = "C")]
            c: G1Text,
            #[serde(rename = "Z")]
            z: G1Text,
            #[serde(rename = "T1")]
            t1: G1Text,
            #[serde(rename = "T2")]
            t2: G1Text,
            #[serde(rename = "T3")]
            t3: G1Text,
            #[serde(rename = "Wxi")]
            wxi: G1Text,
            #[serde(rename = "Wxiw")]
            wxiw: G1Text,
            eval_a: Number,
            eval_b: Number,
            eval_c: Number,
            eval_s1: Number,
            eval_s2: Number,
            eval_zw: Number,
            protocol: Option<String>,
            curve: Option<String>,
        }
        let text: Text = from_text(bytes, PROOF)?;
        text.protocol.as_deref().map_or(Ok(()), check_protocol)?;
        text.curve.as_deref().map_or(Ok(()), check_curve::<C>)?;
        let points = [text.a, text.b, text.c, text.z, text.t1, text.t2, text.t3, text.wxi, text.wxiw];
        let evaluations = [text.eval_a, text.eval_b, text.eval_c, text.eval_s1, text.eval_s2, text.eval_zw];
        let mut scalars = [Canonical::default(); 6];
        for ((value, number), name) in scalars.iter_mut().zip(&evaluations).zip(EVALUATIONS) {
            *value = scalar::<C>(number, name)?;
        }
        Ok(Self { points: g1s(&Convert::<C>::new(), &points, &POINTS)?, evaluations: scalars })
    }

    /// The text of the proof as `snarkjs plonk prove` writes it.
    pub fn to_json(&self) -> String {
        let convert = Convert::<C>::new();
        let points = POINTS.iter().zip(&self.points).map(|(name, point)| (*name, convert.g1_tree(point)));
        let values = EVALUATIONS.iter().zip(&self.evaluations).map(|(name, value)| (*name, scalar_tree(value)));
        let mut members: Vec<_> = points.chain(values).collect();
        members.push(("protocol", Tree::text("plonk")));
        members.push(("curve", Tree::text(C::ID.snarkjs_name())));
        Tree::Map(members).to_string()
    }
}

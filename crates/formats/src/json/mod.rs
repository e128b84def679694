//! `verification_key.json`, `proof.json` and `public.json`.
//!
//! Numbers are integers as decimal strings; points are `[x, y, z]` with z = 1, or `[0, 1, 0]` for infinity, and over Fp2
//! each of these is `[c0, c1]`. In memory points are in Montgomery form as everywhere ([`tandem_ops::Point`]). Whether
//! they lie on the curve is not checked here.

mod fflonk;
mod number;
mod plonk;
mod print;
mod text;

use crate::error::{FormatError, Place, Result};
use crate::file::open_stream;
use crate::kind::FileKind;
use crate::zkey::{G1Point, G2Point};
use crate::{limits, modulus};
use ark_ec::pairing::Pairing;
use ark_ff::{Field, PrimeField};
use number::{to_decimal, Number, LIMBS};
use print::Tree;
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny};
use serde::Deserialize;
use std::io::Read;
use std::marker::PhantomData;
use std::path::Path;
use tandem_ops::{Canonical, Curve, CurveId, Wire};
use text::{G1Text, G2Text, IcText, PublicText, Publics};

pub use fflonk::{FflonkProof, FflonkVerificationKey};
pub use plonk::{curve as plonk_curve, PlonkProof, PlonkVerificationKey};

/// The target group of a pairing, as the field that it lies in.
pub type TargetField<C> = <<C as Curve>::Pairing as Pairing>::TargetField;
type Base<C> = <<C as Curve>::Pairing as Pairing>::BaseField;

/// A verification key.
#[derive(Debug, Clone)]
pub struct VerificationKey<C: Curve> {
    /// alpha in G1.
    pub alpha_1: G1Point<C>,
    /// beta in G2.
    pub beta_2: G2Point<C>,
    /// gamma in G2.
    pub gamma_2: G2Point<C>,
    /// delta in G2.
    pub delta_2: G2Point<C>,
    /// The pairing of alpha and beta. snarkjs writes it and never reads it; `None` where the file has none.
    pub alphabeta_12: Option<TargetField<C>>,
    /// Bases of the leading 1 and of the public values.
    pub ic: Vec<G1Point<C>>,
}

/// A proof.
#[derive(Debug, Clone, Copy)]
pub struct Proof<C: Curve> {
    /// A in G1.
    pub a: G1Point<C>,
    /// B in G2.
    pub b: G2Point<C>,
    /// C in G1.
    pub c: G1Point<C>,
}

const KEY: FileKind = FileKind::VerificationKey;
const PROOF: FileKind = FileKind::Proof;
const PUBLIC: FileKind = FileKind::Public;

/// Reads a whole JSON file, or what comes out of a pipe.
///
/// # Errors
/// The file cannot be read, or is larger than [`limits::JSON_BYTES_MAX`].
pub fn read_file(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let file = open_stream(path)?;
    let mut bytes = Vec::new();
    file.take(limits::JSON_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|e| FormatError::io(path, "read", e))?;
    if bytes.len() as u64 > limits::JSON_BYTES_MAX {
        let problem = format!("expected a JSON file of at most {} bytes, this one is larger", limits::JSON_BYTES_MAX);
        return Err(FormatError::whole(problem, Some("check the order of the arguments")).in_file(path));
    }
    Ok(bytes)
}

/// The curve of a verification key.
///
/// # Errors
/// The text is no Groth16 verification key, or for another curve than those supported.
pub fn curve(bytes: &[u8]) -> Result<CurveId> {
    #[derive(Deserialize)]
    struct Head {
        protocol: String,
        curve: String,
        #[serde(rename = "vk_alpha_1")]
        _alpha_1: IgnoredAny,
    }
    let head: Head = from_text(bytes, KEY)?;
    check_protocol(&head.protocol)?;
    curve_named(&head.curve)
}

impl<C: Curve> VerificationKey<C> {
    /// Reads a key.
    ///
    /// # Errors
    /// The first thing found that is not as the format says; coordinates that are not below the modulus.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            protocol: String,
            curve: String,
            #[serde(rename = "nPublic")]
            n_public: u64,
            #[serde(rename = "IC")]
            ic: Vec<IgnoredAny>,
        }
        #[derive(Deserialize)]
        #[serde(bound = "")]
        struct Text<C: Curve> {
            vk_alpha_1: G1Text,
            vk_beta_2: G2Text,
            vk_gamma_2: G2Text,
            vk_delta_2: G2Text,
            vk_alphabeta_12: Option<[[[Number; 2]; 3]; 2]>,
            #[serde(rename = "IC")]
            ic: IcText<C>,
        }
        // The points are counted before any is read.
        let head: Head = from_text(bytes, KEY)?;
        check_protocol(&head.protocol)?;
        check_curve::<C>(&head.curve)?;
        if head.ic.len() as u64 != head.n_public.saturating_add(1) {
            let expected = u128::from(head.n_public) + 1;
            let problem = format!("expected {expected} points, one more than nPublic, found {}", head.ic.len());
            return Err(at_member("IC", problem));
        }
        let text: Text<C> = from_text(bytes, KEY)?;
        let convert = Convert::<C>::new();
        let alphabeta_12 = match text.vk_alphabeta_12 {
            Some(tower) => Some(target::<C>(tower.as_flattened().as_flattened())?),
            None => None,
        };
        Ok(Self {
            alpha_1: convert.g1(&text.vk_alpha_1, "vk_alpha_1")?,
            beta_2: convert.g2(&text.vk_beta_2, "vk_beta_2")?,
            gamma_2: convert.g2(&text.vk_gamma_2, "vk_gamma_2")?,
            delta_2: convert.g2(&text.vk_delta_2, "vk_delta_2")?,
            alphabeta_12,
            ic: text.ic.0,
        })
    }

    /// The text of the key as `snarkjs zkey export verificationkey` writes it.
    pub fn to_json(&self) -> String {
        let convert = Convert::<C>::new();
        let mut members = vec![
            ("protocol", Tree::text("groth16")),
            ("curve", Tree::text(C::ID.snarkjs_name())),
            ("nPublic", Tree::Int((self.ic.len() as u64).saturating_sub(1))),
            ("vk_alpha_1", convert.g1_tree(&self.alpha_1)),
            ("vk_beta_2", convert.g2_tree(&self.beta_2)),
            ("vk_gamma_2", convert.g2_tree(&self.gamma_2)),
            ("vk_delta_2", convert.g2_tree(&self.delta_2)),
        ];
        if let Some(target) = &self.alphabeta_12 {
            let numbers: Vec<Tree> = target
                .to_base_prime_field_elements()
                .map(|x| Tree::Text(to_decimal(x.into_bigint().as_ref())))
                .collect();
            members.push(("vk_alphabeta_12", Tree::List(grouped(grouped(numbers, 2), 3))));
        }
        members.push(("IC", Tree::List(self.ic.iter().map(|p| convert.g1_tree(p)).collect())));
        Tree::Map(members).to_string()
    }
}

impl<C: Curve> Proof<C> {
    /// Reads a proof. `protocol` and `curve` may be missing, as other provers leave them out.
    ///
    /// # Errors
    /// The first thing found that is not as the format says; coordinates that are not below the modulus.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Text {
            pi_a: G1Text,
            pi_b: G2Text,
            pi_c: G1Text,
            protocol: Option<String>,
            curve: Option<String>,
        }
        let text: Text = from_text(bytes, PROOF)?;
        text.protocol.as_deref().map_or(Ok(()), check_protocol)?;
        text.curve.as_deref().map_or(Ok(()), check_curve::<C>)?;
        let convert = Convert::<C>::new();
        Ok(Self {
            a: convert.g1(&text.pi_a, "pi_a")?,
            b: convert.g2(&text.pi_b, "pi_b")?,
            c: convert.g1(&text.pi_c, "pi_c")?,
        })
    }

    /// The text of the proof as `snarkjs groth16 prove` writes it.
    pub fn to_json(&self) -> String {
        let convert = Convert::<C>::new();
        Tree::Map(vec![
            ("pi_a", convert.g1_tree(&self.a)),
            ("pi_b", convert.g2_tree(&self.b)),
            ("pi_c", convert.g1_tree(&self.c)),
            ("protocol", Tree::text("groth16")),
            ("curve", Tree::text(C::ID.snarkjs_name())),
        ])
        .to_string()
    }
}

/// Reads public values.
///
/// # Errors
/// The text is no list of numbers, or one of them is not below the modulus.
pub fn parse_public(bytes: &[u8], curve: CurveId) -> Result<Vec<Canonical>> {
    publics(bytes, curve, usize::MAX).map(|(values, _)| values)
}

/// Reads public values, of which a key says how many there are. No more than these are kept.
///
/// # Errors
/// As for [`parse_public`]; there is another number of them.
pub fn parse_public_of(bytes: &[u8], curve: CurveId, expected: usize) -> Result<Vec<Canonical>> {
    let (values, count) = publics(bytes, curve, expected)?;
    if count != expected {
        let problem = format!("{count} public values; the verification key has {expected}");
        return Err(FormatError::whole(problem, Some("use the files of one circuit")));
    }
    Ok(values)
}

/// The first `keep` values of a text, and how many it has.
fn publics(bytes: &[u8], curve: CurveId, keep: usize) -> Result<(Vec<Canonical>, usize)> {
    let Publics { values, count, above } = from_text_as(bytes, PUBLIC, PublicText { curve, keep })?;
    if let Some(index) = above {
        let problem = format!("expected a value below the scalar field modulus of {curve}, found a larger one");
        return Err(at_member(&format!("value {index}"), problem).no_element());
    }
    Ok((values, count))
}

/// The text of public values as `snarkjs groth16 prove` writes it.
pub fn public_to_json(values: &[Canonical]) -> String {
    Tree::List(values.iter().map(|v| Tree::Text(to_decimal(&v.0))).collect()).to_string()
}

fn from_text<T: DeserializeOwned>(bytes: &[u8], expected: FileKind) -> Result<T> {
    from_text_as(bytes, expected, PhantomData)
}

/// What `seed` makes of a text.
fn from_text_as<'a, S: DeserializeSeed<'a>>(bytes: &'a [u8], expected: FileKind, seed: S) -> Result<S::Value> {
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let read = seed.deserialize(&mut text).and_then(|value| text.end().map(|()| value));
    read.map_err(|error| {
        let found = FileKind::of(bytes);
        // Text of no known kind may be that of the expected one, damaged, unless it is good JSON.
        if found == Some(expected) || (found == Some(FileKind::Json) && !error.is_data()) {
            let member = format!("line {}, column {}", error.line(), error.column());
            let text = error.to_string();
            // serde_json repeats the place at the end.
            return at_member(&member, text.split(" at line ").next().unwrap_or(&text));
        }
        FileKind::refuse(found, expected.describe())
    })
}

fn at_member(member: &str, problem: impl Into<String>) -> FormatError {
    FormatError::at(Place { member: Some(member.into()), ..Place::default() }, problem)
}

fn check_protocol(protocol: &str) -> Result<()> {
    match protocol {
        "groth16" => Ok(()),
        other => {
            let problem = format!("expected groth16, found {:?}", shortened(other));
            Err(at_member("protocol", problem).advise("make the file with snarkjs groth16 or with tandem"))
        }
    }
}

fn check_curve<C: Curve>(name: &str) -> Result<()> {
    match curve_named(name)? {
        curve if curve == C::ID => Ok(()),
        curve => {
            Err(at_member("curve", format!("expected {}, found {curve}", C::ID)).advise("use files made for one curve"))
        }
    }
}

/// The curve by any of the names that snarkjs knows: letters and digits count, case does not.
fn curve_named(name: &str) -> Result<CurveId> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
    match plain.to_ascii_uppercase().as_str() {
        "BN128" | "BN254" | "ALTBN128" => Ok(CurveId::Bn254),
        "BLS12381" => Ok(CurveId::Bls12_381),
        _ => {
            let problem = format!(
                "expected bn128 or bls12381, as snarkjs names bn254 and bls12-381, found {:?}",
                shortened(name)
            );
            Err(at_member("curve", problem).advise("make the file for one of these curves"))
        }
    }
}

/// Enough of a text from a file to recognise it in a message.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Puts each `n` values into a list.
fn grouped(values: Vec<Tree>, n: usize) -> Vec<Tree> {
    let mut values = values.into_iter();
    std::iter::from_fn(|| {
        let group: Vec<Tree> = values.by_ref().take(n).collect();
        (!group.is_empty()).then_some(Tree::List(group))
    })
    .collect()
}

/// Coordinates between their two forms: the integer, as text has it, and times R, as wire points have it.
struct Convert<C: Curve> {
    r: Base<C>,
    r_inverse: Base<C>,
}

impl<C: Curve> Convert<C> {
    /// Bytes of a coordinate.
    const WIDTH: usize = modulus::base(C::ID).len() * 8;

    fn new() -> Self {
        let r = Base::<C>::from(2u64).pow([Self::WIDTH as u64 * 8]);
        // R is a power of two and the modulus is odd, so there is an inverse.
        Self { r, r_inverse: r.inverse().unwrap_or(r) }
    }

    fn g1(&self, text: &G1Text, name: &str) -> Result<G1Point<C>> {
        match text {
            G1Text::Affine([x, y]) => self.point([*x], [*y], [ONE], name),
            G1Text::Projective([x, y, z]) => self.point([*x], [*y], [*z], name),
        }
    }

    fn g2(&self, text: &G2Text, name: &str) -> Result<G2Point<C>> {
        match text {
            G2Text::Affine([x, y]) => self.point(*x, *y, [ONE, ZERO], name),
            G2Text::Projective([x, y, z]) => self.point(*x, *y, *z, name),
        }
    }

    fn point<P: Wire, const N: usize>(&self, x: [Number; N], y: [Number; N], z: [Number; N], name: &str) -> Result<P> {
        let mut point = P::zeroed();
        if z == [ZERO; N] {
            return Ok(point);
        }
        if z[0] != ONE || z[1..].iter().any(|c| *c != ZERO) {
            return Err(at_member(name, "expected z to be 1, or 0 for infinity, found another number"));
        }
        let out = bytemuck::bytes_of_mut(&mut point);
        for (number, out) in x.iter().chain(&y).zip(out.chunks_exact_mut(Self::WIDTH)) {
            let montgomery = (element::<Base<C>>(number, name)? * self.r).into_bigint();
            out.copy_from_slice(bytemuck::cast_slice(montgomery.as_ref()));
        }
        Ok(point)
    }

    fn g1_tree(&self, point: &G1Point<C>) -> Tree {
        let [x, y, z] = self.coordinates::<_, 1>(point);
        Tree::List([x, y, z].into_iter().flatten().collect())
    }

    fn g2_tree(&self, point: &G2Point<C>) -> Tree {
        let coordinates = self.coordinates::<_, 2>(point);
        Tree::List(coordinates.into_iter().map(|c| Tree::List(c.into_iter().collect())).collect())
    }

    /// x, y and z, each of `N` numbers.
    fn coordinates<P: Wire, const N: usize>(&self, point: &P) -> [[Tree; N]; 3] {
        let constant = |value: &'static str| std::array::from_fn(|i| Tree::text(if i == 0 { value } else { "0" }));
        let bytes = bytemuck::bytes_of(point);
        if bytes.iter().all(|&b| b == 0) {
            return [constant("0"), constant("1"), constant("0")];
        }
        let number = |i: usize| {
            // A point that did not come from a reader may have coordinates above the modulus; they are reduced.
            let element = Base::<C>::from_le_bytes_mod_order(&bytes[i * Self::WIDTH..][..Self::WIDTH]);
            Tree::Text(to_decimal((element * self.r_inverse).into_bigint().as_ref()))
        };
        [std::array::from_fn(number), std::array::from_fn(|i| number(N + i)), constant("1")]
    }
}

const ZERO: Number = Number([0; LIMBS]);
const ONE: Number = Number([1, 0, 0, 0, 0, 0]);

/// The element of a prime field that a number of a file is.
fn element<F: PrimeField>(number: &Number, name: &str) -> Result<F> {
    let mut integer = F::BigInt::default();
    let (low, high) = number.0.split_at(integer.as_ref().len());
    integer.as_mut().copy_from_slice(low);
    let element = if high.iter().all(|&limb| limb == 0) { F::from_bigint(integer) } else { None };
    element.ok_or_else(|| {
        at_member(name, "expected coordinates below the base field modulus, found a larger one").no_element()
    })
}

fn target<C: Curve>(numbers: &[Number]) -> Result<TargetField<C>> {
    const NAME: &str = "vk_alphabeta_12";
    let elements = numbers.iter().map(|n| element(n, NAME)).collect::<Result<Vec<_>>>()?;
    TargetField::<C>::from_base_prime_field_elems(elements).ok_or_else(|| at_member(NAME, "expected 12 numbers"))
}

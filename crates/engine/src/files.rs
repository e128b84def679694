//! Work on files that needs no device: verification, the verification key, and test keys.

use crate::key::stage;
use crate::{Error, KeyInfo, Progress, Result, SetupOptions, SetupReport};
use std::path::Path;
use std::time::Instant;
use tandem_formats::{
    json, output, Coef, FormatError, MappedFile, Output, R1cs, VerificationKey, Zkey, ZkeyHeader, ZkeySection,
    ZkeyWriter,
};
use tandem_groth16::setup::{self, Circuit, Constraint, Entry, KeySink, Part, Secret, Terms};
use tandem_groth16::{KeyPoints, PreparedKey, Proof, Refusal, Shape, VerifyingKey, P1, P2};
use tandem_ops::{Bls12_381, Bn254, Curve, CurveId};

/// Checks a proof: `Ok` if it is valid, [`Error::InvalidProof`] if not. A number of the proof or of the public values that is not
/// below its modulus, and a point off the curve or outside the subgroup, make a proof that is not valid, as for snarkjs.
///
/// # Errors
/// [`Error::InvalidProof`]; [`Error::BadInput`] for files that are malformed or do not belong together.
pub fn verify(vkey: &Path, public: &Path, proof: &Path) -> Result<()> {
    let text = json::read_file(vkey)?;
    match json::curve(&text).map_err(|e| e.in_file(vkey))? {
        CurveId::Bn254 => verify_on::<Bn254>(&text, vkey, public, proof),
        CurveId::Bls12_381 => verify_on::<Bls12_381>(&text, vkey, public, proof),
    }
}

fn verify_on<C: Curve>(key_text: &[u8], vkey: &Path, public: &Path, proof: &Path) -> Result<()> {
    let key = VerificationKey::<C>::parse(key_text).map_err(|e| e.in_file(vkey))?;
    let wrong = |path: &Path, error: FormatError| match error.in_file(path) {
        error if error.is_no_element() => Error::InvalidProof(format!("{error}; the proof is not valid")),
        error => error.into(),
    };
    // Whether all texts are formed well comes before what their numbers are.
    let publics = json::parse_public(&json::read_file(public)?, C::ID).map_err(|e| wrong(public, e));
    let points = json::Proof::<C>::parse(&json::read_file(proof)?).map_err(|e| wrong(proof, e));
    let (publics, points) = match (publics, points) {
        (Err(Error::InvalidProof(_)), Err(malformed @ Error::BadInput(_))) => return Err(malformed),
        (publics, points) => (publics?, points?),
    };
    let VerificationKey { alpha_1, beta_2, gamma_2, delta_2, ic, .. } = key;
    let key = VerifyingKey { alpha1: alpha_1, beta2: beta_2, gamma2: gamma_2, delta2: delta_2, ic };
    let key = PreparedKey::<C>::new(&key).map_err(|e| Error::prover(e, vkey))?;
    let points = Proof { a: points.a, b: points.b, c: points.c };
    key.verify(&publics, &points).map_err(|refusal| match refusal {
        Refusal::PublicCount { .. } => Error::input(format!("{}: {refusal}", public.display())),
        _ => Error::InvalidProof(format!("{}: the proof is not valid: {refusal}", proof.display())),
    })
}

/// The text of `verification_key.json` for a `.zkey`, as snarkjs writes it.
///
/// # Errors
/// [`Error::BadInput`] that names the file and the place in it.
pub fn export_vkey(zkey: &Path) -> Result<String> {
    let file = MappedFile::open(zkey)?;
    match tandem_formats::zkey::curve(&file).map_err(|e| e.in_file(zkey))? {
        CurveId::Bn254 => export_on::<Bn254>(&file, zkey),
        CurveId::Bls12_381 => export_on::<Bls12_381>(&file, zkey),
    }
}

fn export_on<C: Curve>(file: &[u8], path: &Path) -> Result<String> {
    let zkey = Zkey::<C>::parse(file).map_err(|e| e.in_file(path))?;
    let ZkeyHeader { alpha_1, beta_2, gamma_2, delta_2, .. } = zkey.header;
    let ic: Vec<_> = zkey.ic.iter().collect();
    let key = VerifyingKey { alpha1: alpha_1, beta2: beta_2, gamma2: gamma_2, delta2: delta_2, ic: ic.clone() };
    let alpha_beta = PreparedKey::<C>::new(&key).map_err(|e| Error::prover(e, path))?.alpha_beta();
    Ok(VerificationKey::<C> { alpha_1, beta_2, gamma_2, delta_2, alphabeta_12: Some(alpha_beta.0), ic }.to_json())
}

/// Makes a test key for an `.r1cs` file and writes it as a `.zkey`, whole or not at all. Whoever runs this could
/// know the key's secret: such a key is not for production.
///
/// # Errors
/// [`Error::BadInput`] for a file that is no good circuit or cannot be written.
pub fn setup(r1cs: &Path, zkey: &Path, options: &SetupOptions, progress: &dyn Progress) -> Result<SetupReport> {
    let started = Instant::now();
    progress.start("read circuit", 0);
    let file = MappedFile::open(r1cs)?;
    let circuit = R1cs::parse(&file).map_err(|e| e.in_file(r1cs))?;
    if !circuit.custom_gates.is_empty() || circuit.custom_gate_uses != 0 {
        return Err(Error::input(format!("{}: the circuit has custom gates, which Groth16 does not", r1cs.display())));
    }
    let read = stage("read circuit", started);
    let mut report = match circuit.header.curve {
        CurveId::Bn254 => setup_on::<Bn254>(&circuit, r1cs, zkey, options, progress),
        CurveId::Bls12_381 => setup_on::<Bls12_381>(&circuit, r1cs, zkey, options, progress),
    }?;
    report.stages.insert(0, read);
    Ok(report)
}

fn setup_on<C: Curve>(
    r1cs: &R1cs<'_>,
    r1cs_path: &Path,
    zkey: &Path,
    options: &SetupOptions,
    progress: &dyn Progress,
) -> Result<SetupReport> {
    let started = Instant::now();
    let prover_error = |e| match e {
        tandem_groth16::Error::Output(why) => Error::input(format!("{}: {why}", zkey.display())),
        other => Error::prover(other, r1cs_path),
    };
    let secret = match &options.seed {
        Some(seed) => Secret::<C>::from_seed(blake3::derive_key("tandem setup seed", seed.as_bytes())),
        None => Secret::random().map_err(prover_error)?,
    };
    let mut sink = FileSink::<C> { output: Some(Output::create(zkey)?), writer: None };
    let shape = setup::setup(&FileCircuit(r1cs), &secret, &mut sink, progress).map_err(prover_error)?;
    let output = sink.finish().map_err(prover_error)?;
    let made = stage("make key", started);
    let file_bytes = output.written();
    output::commit([output])?;
    let key =
        KeyInfo { curve: C::ID, variables: shape.variables, publics: shape.publics, domain: shape.domain, file_bytes };
    Ok(SetupReport { key, constraints: r1cs.header.n_constraints as usize, stages: vec![made] })
}

/// A file's circuit.
struct FileCircuit<'a>(&'a R1cs<'a>);

impl<C: Curve> Circuit<C> for FileCircuit<'_> {
    fn constraints(&self) -> usize {
        self.0.header.n_constraints as usize
    }

    fn variables(&self) -> usize {
        self.0.header.n_vars as usize
    }

    fn publics(&self) -> usize {
        self.0.header.n_public() as usize
    }

    fn walk(&self, row: &mut dyn FnMut(&Constraint<C>) -> tandem_groth16::Result<()>) -> tandem_groth16::Result<()> {
        let mut constraint = Constraint::<C> { a: Vec::new(), b: Vec::new(), c: Vec::new() };
        let fill = |terms: &mut Terms<C>, from: tandem_formats::LinearCombination<'_>| {
            terms.clear();
            for (wire, value) in from.iter() {
                let above = || tandem_groth16::Error::Circuit("a coefficient is not below the modulus".into());
                terms.push((wire, C::from_canonical(value).ok_or_else(above)?));
            }
            tandem_groth16::Result::Ok(())
        };
        for from in self.0.constraints() {
            fill(&mut constraint.a, from.a)?;
            fill(&mut constraint.b, from.b)?;
            fill(&mut constraint.c, from.c)?;
            row(&constraint)?;
        }
        Ok(())
    }
}

/// A key on its way into a file, sections in snarkjs's order for a new key.
struct FileSink<C: Curve> {
    /// Until the header is there.
    output: Option<Output>,
    writer: Option<ZkeyWriter<Output, C>>,
}

/// Sections of a key, the one of contributions included.
const SECTIONS: u32 = 10;

impl<C: Curve> FileSink<C> {
    fn write(
        &mut self,
        work: impl FnOnce(&mut ZkeyWriter<Output, C>) -> std::io::Result<()>,
    ) -> tandem_groth16::Result<()> {
        match &mut self.writer {
            Some(writer) => work(writer).map_err(write_error),
            None => Err(tandem_groth16::Error::Output("the key's header comes first".into())),
        }
    }

    /// A key made here has no hash of a ceremony: it stays zero, and no contribution is claimed.
    fn finish(mut self) -> tandem_groth16::Result<Output> {
        self.write(|writer| writer.no_contributions(&[0; 64]))?;
        let writer = self.writer.take().ok_or_else(|| tandem_groth16::Error::Output("the key is empty".into()))?;
        writer.finish().map_err(write_error)
    }
}

fn write_error(error: std::io::Error) -> tandem_groth16::Error {
    tandem_groth16::Error::Output(format!("cannot write: {error}"))
}

impl<C: Curve> KeySink<C> for FileSink<C> {
    fn header(&mut self, shape: Shape, points: &KeyPoints<C>) -> tandem_groth16::Result<()> {
        let small =
            |n: usize| u32::try_from(n).map_err(|_| tandem_groth16::Error::Output("the key is too large".into()));
        let header = ZkeyHeader {
            n_vars: small(shape.variables)?,
            n_public: small(shape.publics)?,
            domain_size: small(shape.domain)?,
            alpha_1: points.alpha1,
            beta_1: points.beta1,
            beta_2: points.beta2,
            gamma_2: points.gamma2,
            delta_1: points.delta1,
            delta_2: points.delta2,
        };
        if let Some(output) = self.output.take() {
            self.writer = Some(ZkeyWriter::new(output, &header, SECTIONS).map_err(write_error)?);
        }
        Ok(())
    }

    fn begin(&mut self, part: Part) -> tandem_groth16::Result<()> {
        self.write(|writer| {
            writer.section(match part {
                Part::Entries { count } => ZkeySection::Coefs { count },
                Part::Ic => ZkeySection::Ic,
                Part::H => ZkeySection::H,
                Part::L => ZkeySection::C,
                Part::A => ZkeySection::A,
                Part::B1 => ZkeySection::B1,
                Part::B2 => ZkeySection::B2,
            })
        })
    }

    fn entries(&mut self, entries: &[Entry]) -> tandem_groth16::Result<()> {
        let coef = |e: &Entry| Coef { matrix: e.matrix, constraint: e.row, signal: e.wire, value: e.value };
        self.write(|writer| writer.coefs(entries.iter().map(coef)))
    }

    fn points1(&mut self, points: &[P1<C>]) -> tandem_groth16::Result<()> {
        self.write(|writer| writer.points(points))
    }

    fn points2(&mut self, points: &[P2<C>]) -> tandem_groth16::Result<()> {
        self.write(|writer| writer.points(points))
    }
}

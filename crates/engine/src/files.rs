//! Work on files that needs no device: the verification key, and test keys.

use crate::key::{self, stage, Form};
use crate::system::{fflonk_verifying, plonk_verifying};
use crate::{Error, KeyInfo, Progress, Result, SetupOptions, SetupReport};
use std::path::Path;
use std::time::Instant;
use tandem_formats::container::Input;
use tandem_formats::{
    output, Coef, FflonkFile, FflonkHeader, FflonkOutline, FflonkVerificationKey, Output, ParamsFile, ParamsOutline,
    ParamsPoints, PlonkFile, PlonkHeader, PlonkOutline, PlonkVerificationKey, Protocol, R1cs, R1csFile,
    VerificationKey, ZkeyFile, ZkeyHeader, ZkeyOutline, ZkeySection, ZkeyWriter,
};
use tandem_groth16::setup::{self, Circuit, Constraint, Entry, KeySink, Part, Secret, Terms};
use tandem_groth16::{KeyPoints, PreparedKey, Shape, VerifyingKey, P1, P2};
use tandem_ops::{with_curve, Bls12_381, Bn254, Curve, CurveId};
use tandem_plonk::fflonk::Roots;

/// The text of `verification_key.json` for a `.zkey`, as snarkjs writes it.
///
/// # Errors
/// [`Error::BadInput`] that names the file and the place in it.
pub fn export_vkey(zkey: &Path) -> Result<String> {
    tandem_ops::threads::ready()?;
    let (form, curve, file) = key::look(zkey)?;
    let text = with_curve!(curve, C => export_as::<C>(form, &file, zkey))?;
    file.unchanged()?;
    Ok(text)
}

/// The text of `verification_key.json` for the bytes of a `.zkey`.
///
/// # Errors
/// [`Error::BadInput`] that names the place in them.
pub fn export_vkey_bytes(zkey: &[u8]) -> Result<String> {
    tandem_ops::threads::ready()?;
    let name = Path::new(crate::source::UNNAMED);
    let (form, curve) = key::kind(zkey).map_err(|e| e.in_file(name))?;
    with_curve!(curve, C => export_as::<C>(form, &zkey, name))
}

/// Facts about a `.zkey` from its header; nothing else of it is read.
///
/// # Errors
/// [`Error::BadInput`] for a file that is no key by its header.
pub fn key_info(zkey: &Path) -> Result<KeyInfo> {
    let form = Form::of_file(zkey)?;
    let protocol = form.protocol();
    Ok(match form {
        Form::Params => {
            let file = ParamsFile::open(zkey)?;
            let sizes = file.outline.sizes();
            KeyInfo {
                protocol,
                curve: CurveId::Bls12_381,
                variables: sizes.variables as usize,
                publics: sizes.publics as usize,
                domain: sizes.domain as usize,
                file_bytes: file.file().len(),
                has_circuit: false,
            }
        }
        Form::Zkey(Protocol::Groth16) => {
            let file = ZkeyFile::open(zkey)?;
            KeyInfo {
                protocol,
                curve: file.curve,
                variables: file.n_vars as usize,
                publics: file.n_public as usize,
                domain: file.domain_size as usize,
                file_bytes: file.file().len(),
                has_circuit: true,
            }
        }
        Form::Zkey(Protocol::Plonk) => {
            let file = PlonkFile::open(zkey)?;
            KeyInfo {
                protocol,
                curve: file.curve,
                variables: file.witness_values() as usize,
                publics: file.n_public as usize,
                domain: file.domain_size as usize,
                file_bytes: file.file().len(),
                has_circuit: true,
            }
        }
        Form::Zkey(Protocol::Fflonk) => {
            let file = FflonkFile::open(zkey)?;
            KeyInfo {
                protocol,
                curve: CurveId::Bn254,
                variables: file.header.witness_values() as usize,
                publics: file.header.n_public as usize,
                domain: file.header.domain_size as usize,
                file_bytes: file.file().len(),
                has_circuit: true,
            }
        }
    })
}

/// The text of `verification_key.json`: of a key no more is read than it takes.
pub(crate) fn export_as<C: Curve>(form: Form, file: &impl Input, path: &Path) -> Result<String> {
    match form {
        Form::Params => export_params(file, path),
        Form::Zkey(Protocol::Groth16) => export_on::<C>(file, path),
        Form::Zkey(Protocol::Plonk) => export_plonk::<C>(file, path),
        Form::Zkey(Protocol::Fflonk) => export_fflonk(file, path),
    }
}

fn export_params(file: &impl Input, path: &Path) -> Result<String> {
    let ParamsOutline { points, ic, .. } = ParamsOutline::read(file).map_err(|e| e.in_file(path))?;
    let ParamsPoints { alpha_1, beta_2, gamma_2, delta_2, .. } = points;
    let key = VerifyingKey { alpha1: alpha_1, beta2: beta_2, gamma2: gamma_2, delta2: delta_2, ic };
    groth16_vkey::<Bls12_381>(key, path)
}

fn export_fflonk(file: &impl Input, path: &Path) -> Result<String> {
    let header = FflonkOutline::read(file).map_err(|e| e.in_file(path))?.header;
    let (verifying, prepared) = fflonk_verifying(&header, path)?;
    let Roots { w, w3, w4, w8, wr } = prepared.roots();
    let (roots, k) = ([w, w3, w4, w8, wr].map(Bn254::canonical), verifying.k.map(Bn254::canonical));
    let FflonkHeader { n_public, domain_size, x_2, c0, .. } = header;
    Ok(FflonkVerificationKey { n_public, power: domain_size.ilog2(), k, roots, x_2, c0 }.to_json())
}

fn export_plonk<C: Curve>(file: &impl Input, path: &Path) -> Result<String> {
    let header = PlonkOutline::<C>::read(file).map_err(|e| e.in_file(path))?.header;
    let verifying = plonk_verifying(&header);
    let prepared = tandem_plonk::PreparedKey::new(&verifying).map_err(|e| Error::prover(e, path))?;
    let [k1, k2] = verifying.k.map(C::canonical);
    let PlonkHeader { n_public, selectors, permutation, x_2, .. } = header;
    let (power, w) = (header.domain_size.ilog2(), C::canonical(prepared.root()));
    Ok(PlonkVerificationKey::<C> { n_public, power, k1, k2, selectors, permutation, x_2, w }.to_json())
}

fn export_on<C: Curve>(file: &impl Input, path: &Path) -> Result<String> {
    let ZkeyOutline::<C> { header, ic, .. } = ZkeyOutline::read(file).map_err(|e| e.in_file(path))?;
    let ZkeyHeader { alpha_1, beta_2, gamma_2, delta_2, .. } = header;
    let key = VerifyingKey { alpha1: alpha_1, beta2: beta_2, gamma2: gamma_2, delta2: delta_2, ic };
    groth16_vkey::<C>(key, path)
}

fn groth16_vkey<C: Curve>(key: VerifyingKey<C>, path: &Path) -> Result<String> {
    let alpha_beta = PreparedKey::<C>::new(&key).map_err(|e| Error::prover(e, path))?.alpha_beta();
    let VerifyingKey { alpha1: alpha_1, beta2: beta_2, gamma2: gamma_2, delta2: delta_2, ic } = key;
    Ok(VerificationKey::<C> { alpha_1, beta_2, gamma_2, delta_2, alphabeta_12: Some(alpha_beta.0), ic }.to_json())
}

/// Makes a test key for an `.r1cs` file and writes it as a `.zkey`, whole or not at all. Whoever runs this could
/// know the key's secret: such a key is not for production.
///
/// # Errors
/// [`Error::BadInput`] for a file that is no good circuit or cannot be written.
pub fn setup(r1cs: &Path, zkey: &Path, options: &SetupOptions, progress: &dyn Progress) -> Result<SetupReport> {
    tandem_ops::threads::ready()?;
    let started = Instant::now();
    progress.start("read circuit", 0);
    let bytes = R1csFile::open(r1cs)?.read()?;
    let circuit = R1cs::parse(&bytes).map_err(|e| e.in_file(r1cs))?;
    refuse_custom_gates(&circuit, r1cs)?;
    let read = stage("read circuit", started);
    let mut report = with_curve!(circuit.header.curve, C => setup_on::<C>(&circuit, r1cs, zkey, options, progress))?;
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
    let secret = secret_of::<C>(options).map_err(prover_error)?;
    let mut sink = FileSink::<C>::new(Output::create(zkey)?);
    let shape = setup::setup(&FileCircuit(r1cs), &secret, &mut sink, progress).map_err(prover_error)?;
    // No ceremony, no hash of one.
    let key = sink.keep(shape, &[0; 64]).map_err(prover_error)??;
    let made = stage("make key", started);
    Ok(SetupReport { key, constraints: r1cs.header.n_constraints as usize, gates: None, stages: vec![made] })
}

/// The secret of a test key.
pub(crate) fn secret_of<C: Curve>(options: &SetupOptions) -> tandem_groth16::Result<Secret<C>> {
    match &options.seed {
        Some(seed) => Ok(Secret::from_seed(blake3::derive_key("tandem setup seed", seed.as_bytes()))),
        None => Secret::random(),
    }
}

/// Fails for a circuit with custom gates: a key would leave out what they demand.
pub(crate) fn refuse_custom_gates(circuit: &R1cs<'_>, path: &Path) -> Result<()> {
    if !circuit.custom_gates.is_empty() || circuit.custom_gate_uses != 0 {
        return Err(Error::input(format!("{}: the circuit has custom gates, which no key here has", path.display())));
    }
    Ok(())
}

/// A file's circuit.
pub(crate) struct FileCircuit<'a>(pub(crate) &'a R1cs<'a>);

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
pub(crate) struct FileSink<C: Curve> {
    /// Until the header is there.
    output: Option<Output>,
    writer: Option<ZkeyWriter<Output, C>>,
}

/// Sections of a key, the one of contributions included.
const SECTIONS: u32 = 10;

impl<C: Curve> FileSink<C> {
    pub(crate) fn new(output: Output) -> Self {
        Self { output: Some(output), writer: None }
    }

    fn write(
        &mut self,
        work: impl FnOnce(&mut ZkeyWriter<Output, C>) -> std::io::Result<()>,
    ) -> tandem_groth16::Result<()> {
        match &mut self.writer {
            Some(writer) => work(writer).map_err(write_error),
            None => Err(tandem_groth16::Error::Output("the key's header comes first".into())),
        }
    }

    /// Ends a key that nobody has contributed to, and puts the file in its place.
    pub(crate) fn keep(mut self, shape: Shape, circuit_hash: &[u8; 64]) -> tandem_groth16::Result<Result<KeyInfo>> {
        self.write(|writer| writer.no_contributions(circuit_hash))?;
        let writer = self.writer.take().ok_or_else(|| tandem_groth16::Error::Output("the key is empty".into()))?;
        let output = writer.finish().map_err(write_error)?;
        let file_bytes = output.written();
        let Shape { variables, publics, domain } = shape;
        let (protocol, curve, has_circuit) = (Protocol::Groth16, C::ID, true);
        let key = KeyInfo { protocol, curve, variables, publics, domain, file_bytes, has_circuit };
        Ok(output::commit([output]).map(|()| key).map_err(Error::from))
    }
}

pub(crate) fn write_error(error: std::io::Error) -> tandem_groth16::Error {
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

//! FFLONK keys, of a circuit and powers of tau.

use crate::files::{write_error, FileCircuit};
use crate::key::stage;
use crate::powers::Files;
use crate::{Error, KeyInfo, Progress, Result, SetupReport};
use std::path::Path;
use std::time::Instant;
use tandem_formats::{output, FflonkHeader, FflonkSection, FflonkWriter, Output, Protocol, PtauFile, R1cs};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Bn254, Curve, CurveId};
use tandem_plonk::fflonk::{self, KeySink, Part, Roots};
use tandem_plonk::{Gates, Shape};

/// Makes the FFLONK key of an `.r1cs` file over BN254 with the powers of tau of a `.ptau` file, eight times as many as the domain has rows, and
/// writes it as a `.zkey`, whole or not at all. Nothing is drawn: it is the key that snarkjs makes of them, byte for byte, and as good as the
/// powers of tau are.
///
/// # Errors
/// [`Error::BadInput`] for files that are no good or do not belong together, another curve, powers of tau that are too few, or a key that
/// cannot be written.
pub fn setup_fflonk(r1cs: &Path, ptau: &Path, zkey: &Path, progress: &dyn Progress) -> Result<SetupReport> {
    let files = Files { r1cs, ptau, zkey };
    files.set_up(progress, |circuit, powers| set_up(circuit, powers, &files, progress))
}

fn set_up(r1cs: &R1cs<'_>, ptau: &PtauFile, files: &Files<'_>, progress: &dyn Progress) -> Result<SetupReport> {
    let curve = r1cs.header.curve;
    if curve != CurveId::Bn254 {
        return Err(Error::input(format!(
            "{}: a circuit over {curve}; FFLONK is for {} alone: compile it with circom --prime bn128",
            files.r1cs.display(),
            CurveId::Bn254
        )));
    }
    let failed = |error| files.failed(error);
    let started = Instant::now();
    let gates = Gates::<Bn254>::of_fflonk(&FileCircuit(r1cs), progress).map_err(failed)?;
    let made = stage("gates", started);
    let started = Instant::now();
    let shape @ Shape { variables, publics, domain, .. } = gates.shape();
    // 9n + 18 powers, of 2^(power + 1) - 1 that a file has.
    let needed = domain.ilog2() + 3;
    if ptau.header.power < needed {
        let needs = format!("the circuit has {} gates, of which FFLONK needs", shape.gates);
        return Err(files.too_few(ptau, &needs, needed));
    }
    let tau = ptau.powers_g1::<Bn254>(fflonk::powers(domain))?;
    let [_, x_2] = ptau.powers_g2::<Bn254>(2)?[..] else {
        return Err(Error::Internal("expected two powers of tau".into()));
    };
    let mut sink = FileSink { output: Some(Output::create(files.zkey)?), writer: None };
    let key = fflonk::setup(&Cpu::new(1), &gates, (&tau, &x_2), &mut sink, progress).map_err(failed)?;
    let roots = Roots::of(domain.ilog2()).ok_or_else(|| Error::Internal("a domain without roots".into()))?;
    let header = FflonkHeader {
        k: key.k.map(Bn254::mont),
        roots: [roots.w3, roots.w4, roots.w8, roots.wr].map(Bn254::mont),
        x_2: key.x_2,
        c0: key.c0,
        ..counts(shape).map_err(failed)?
    };
    let writer = sink.writer.ok_or_else(|| Error::Internal("a key without sizes".into()))?;
    let output = writer.finish(&header).map_err(|e| failed(write_error(e)))?;
    let file_bytes = output.written();
    output::commit([output])?;
    let protocol = Protocol::Fflonk;
    let key = KeyInfo { protocol, curve, variables, publics, domain, file_bytes, has_circuit: true };
    let constraints = r1cs.header.n_constraints as usize;
    Ok(SetupReport { key, constraints, gates: Some(shape.gates), stages: vec![made, stage("make key", started)] })
}

/// A header with the sizes alone.
fn counts(shape: Shape) -> tandem_groth16::Result<FflonkHeader> {
    let small = |n: usize| u32::try_from(n).map_err(|_| tandem_groth16::Error::Output("the key is too large".into()));
    Ok(FflonkHeader {
        n_vars: small(shape.signals())?,
        n_public: small(shape.publics)?,
        domain_size: small(shape.domain)?,
        n_additions: small(shape.additions)?,
        n_constraints: small(shape.gates)?,
        k: Default::default(),
        roots: Default::default(),
        x_2: bytemuck::Zeroable::zeroed(),
        c0: bytemuck::Zeroable::zeroed(),
    })
}

/// A key on its way into a file.
struct FileSink {
    /// Until the sizes are there.
    output: Option<Output>,
    writer: Option<FflonkWriter<Output>>,
}

impl FileSink {
    fn writer(&mut self) -> tandem_groth16::Result<&mut FflonkWriter<Output>> {
        self.writer.as_mut().ok_or_else(|| tandem_groth16::Error::Output("the key's sizes come first".into()))
    }
}

impl KeySink for FileSink {
    fn shape(&mut self, shape: Shape) -> tandem_groth16::Result<()> {
        let counts = counts(shape)?;
        if let Some(output) = self.output.take() {
            self.writer = Some(FflonkWriter::new(output, counts).map_err(write_error)?);
        }
        Ok(())
    }

    fn begin(&mut self, part: Part) -> tandem_groth16::Result<()> {
        let section = match part {
            Part::Additions => FflonkSection::Additions,
            Part::Map(column) => FflonkSection::Map(column),
            Part::Selector(number) => FflonkSection::Selector(number),
            Part::Permutation(number) => FflonkSection::Permutation(number),
            Part::Lagrange => FflonkSection::Lagrange,
            Part::Powers => FflonkSection::Powers,
            Part::C0 => FflonkSection::C0,
        };
        self.writer()?.section(section).map_err(write_error)
    }

    fn bytes(&mut self, bytes: &[u8]) -> tandem_groth16::Result<()> {
        self.writer()?.bytes(bytes).map_err(write_error)
    }
}

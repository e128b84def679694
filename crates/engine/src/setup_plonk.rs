//! PLONK keys, of a circuit and powers of tau.

use crate::files::{write_error, FileCircuit};
use crate::key::stage;
use crate::powers::Files;
use crate::{Error, KeyInfo, Progress, Result, SetupReport};
use std::path::Path;
use std::time::Instant;
use tandem_formats::plonk::PlonkSection;
use tandem_formats::{output, Output, PlonkHeader, PlonkWriter, Protocol, PtauFile, R1cs};
use tandem_ops::cpu::Cpu;
use tandem_ops::{with_curve, Curve};
use tandem_plonk::setup::{self, KeySink, Part};
use tandem_plonk::{Gates, Shape, VerifyingKey};

/// Makes the PLONK key of an `.r1cs` file with the powers of tau of a `.ptau` file and writes it as a `.zkey`, whole or not at all. Nothing is
/// drawn: it is the key that snarkjs makes of them, byte for byte, and as good as the powers of tau are.
///
/// # Errors
/// [`Error::BadInput`] for files that are no good or do not belong together, powers of tau that are too few, or a key that cannot be
/// written.
pub fn setup_plonk(r1cs: &Path, ptau: &Path, zkey: &Path, progress: &dyn Progress) -> Result<SetupReport> {
    let files = Files { r1cs, ptau, zkey };
    files.set_up(
        progress,
        |circuit, powers| with_curve!(circuit.header.curve, C => setup_on::<C>(circuit, powers, &files, progress)),
    )
}

fn setup_on<C: Curve>(
    r1cs: &R1cs<'_>,
    ptau: &PtauFile,
    files: &Files<'_>,
    progress: &dyn Progress,
) -> Result<SetupReport> {
    let failed = |error| files.failed(error);
    let started = Instant::now();
    let gates = Gates::<C>::of(&FileCircuit(r1cs), progress).map_err(failed)?;
    let made = stage("gates", started);
    let started = Instant::now();
    let shape = gates.shape();
    let needed = shape.domain.ilog2();
    if ptau.header.power < needed {
        let needs = format!("the circuit has {} gates and needs", shape.gates);
        return Err(files.too_few(ptau, &needs, needed));
    }
    let tau = ptau.powers_g1::<C>(shape.powers())?;
    let [_, x_2] = ptau.powers_g2::<C>(2)?[..] else {
        return Err(Error::Internal("expected two powers of tau".into()));
    };
    let mut sink = FileSink::<C> { output: Some(Output::create(files.zkey)?), writer: None, shape, header: None };
    setup::setup(&Cpu::new(1), &gates, (&tau, &x_2), &mut sink, progress).map_err(failed)?;
    let output = sink.finish().map_err(failed)?;
    let file_bytes = output.written();
    output::commit([output])?;
    let Shape { variables, publics, domain, .. } = shape;
    let (protocol, curve) = (Protocol::Plonk, C::ID);
    let key = KeyInfo { protocol, curve, variables, publics, domain, file_bytes, has_circuit: true };
    let constraints = r1cs.header.n_constraints as usize;
    Ok(SetupReport { key, constraints, gates: Some(shape.gates), stages: vec![made, stage("make key", started)] })
}

/// A key on its way into a file.
struct FileSink<C: Curve> {
    /// Until the sizes are there.
    output: Option<Output>,
    writer: Option<PlonkWriter<Output, C>>,
    shape: Shape,
    header: Option<PlonkHeader<C>>,
}

impl<C: Curve> FileSink<C> {
    fn writer(&mut self) -> tandem_groth16::Result<&mut PlonkWriter<Output, C>> {
        self.writer.as_mut().ok_or_else(|| tandem_groth16::Error::Output("the key's sizes come first".into()))
    }

    fn finish(mut self) -> tandem_groth16::Result<Output> {
        let missing = || tandem_groth16::Error::Output("the key is empty".into());
        let writer = self.writer.take().ok_or_else(missing)?;
        writer.finish(&self.header.ok_or_else(missing)?).map_err(write_error)
    }

    /// The sizes as a file has them.
    fn sizes(&self) -> tandem_groth16::Result<[u32; 5]> {
        let Shape { publics, domain, additions, gates, .. } = self.shape;
        let small =
            |n: usize| u32::try_from(n).map_err(|_| tandem_groth16::Error::Output("the key is too large".into()));
        Ok([small(self.shape.signals())?, small(publics)?, small(domain)?, small(additions)?, small(gates)?])
    }
}

impl<C: Curve> KeySink<C> for FileSink<C> {
    fn shape(&mut self, shape: Shape) -> tandem_groth16::Result<()> {
        self.shape = shape;
        let [_, publics, domain, additions, gates] = self.sizes()?;
        if let Some(output) = self.output.take() {
            self.writer = Some(PlonkWriter::new(output, publics, domain, additions, gates).map_err(write_error)?);
        }
        Ok(())
    }

    fn begin(&mut self, part: Part) -> tandem_groth16::Result<()> {
        let section = match part {
            Part::Additions => PlonkSection::Additions,
            Part::Map(column) => PlonkSection::Map(column),
            Part::Selector(number) => PlonkSection::Selector(number),
            Part::Permutation => PlonkSection::Permutation,
            Part::Lagrange => PlonkSection::Lagrange,
            Part::Powers => PlonkSection::Powers,
        };
        self.writer()?.section(section).map_err(write_error)
    }

    fn bytes(&mut self, bytes: &[u8]) -> tandem_groth16::Result<()> {
        self.writer()?.bytes(bytes).map_err(write_error)
    }

    fn verifying(&mut self, key: &VerifyingKey<C>) -> tandem_groth16::Result<()> {
        let [n_vars, n_public, domain_size, n_additions, n_constraints] = self.sizes()?;
        let [k1, k2] = key.k.map(C::mont);
        let VerifyingKey { selectors, permutation, x_2, .. } = *key;
        self.header = Some(PlonkHeader {
            n_vars,
            n_public,
            domain_size,
            n_additions,
            n_constraints,
            k1,
            k2,
            selectors,
            permutation,
            x_2,
        });
        Ok(())
    }
}

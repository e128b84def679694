//! The first Groth16 key of a ceremony, of a circuit and prepared powers of tau.

use crate::files::{FileCircuit, FileSink};
use crate::key::stage;
use crate::powers::Files;
use crate::{Progress, Result, SetupReport};
use std::path::Path;
use std::time::Instant;
use tandem_formats::ptau::LagrangeBasis;
use tandem_formats::{Output, PtauFile, R1cs};
use tandem_groth16::ceremony::{self, Phase1};
use tandem_groth16::setup::shape;
use tandem_ops::{with_curve, Curve};

/// Makes the first key of a ceremony of an `.r1cs` file with the powers of tau of a prepared `.ptau` file, which are checked, and writes it as a
/// `.zkey`, whole or not at all. Nothing is drawn: it is the key of `snarkjs groth16 setup`, byte for byte. **It is not for proofs**: its
/// delta is known until somebody contributes to it.
///
/// # Errors
/// [`crate::Error::BadInput`] for files that are no good or do not belong together, powers of tau that are too few or not prepared, or a key
/// that cannot be written.
pub fn setup_ceremony(r1cs: &Path, ptau: &Path, zkey: &Path, progress: &dyn Progress) -> Result<SetupReport> {
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
    let circuit = FileCircuit(r1cs);
    let shape = shape::<C>(&circuit).map_err(|e| files.failed(e))?;
    let needed = shape.domain.ilog2();
    if ptau.header.power < needed {
        let needs = format!("the circuit has {} constraints and needs", r1cs.header.n_constraints);
        return Err(files.too_few(ptau, &needs, needed));
    }
    let started = Instant::now();
    progress.start("read powers of tau", 0);
    let phase1 = phase1::<C>(ptau, shape.domain)?;
    let read = stage("read powers of tau", started);
    let started = Instant::now();
    phase1.check(progress).map_err(|e| files.failed(e))?;
    let checked = stage("check powers of tau", started);
    let started = Instant::now();
    let mut sink = FileSink::<C>::new(Output::create(files.zkey)?);
    let made = ceremony::start(&circuit, &phase1, &mut sink, progress).map_err(|e| files.failed(e))?;
    let key = sink.keep(made.shape, &made.circuit_hash).map_err(|e| files.failed(e))??;
    let stages = vec![read, checked, stage("make key", started)];
    Ok(SetupReport { key, constraints: r1cs.header.n_constraints as usize, gates: None, stages })
}

/// What a key of `n` rows takes from a file.
fn phase1<C: Curve>(ptau: &PtauFile, n: usize) -> Result<Phase1<C>> {
    let tau_g2 = ptau.powers_g2::<C>(2)?[1];
    let [alpha_g1, beta_g1] = ptau.alpha_beta_g1::<C>()?;
    let doubled = ptau.lagrange_g1::<C>(LagrangeBasis::Powers, 2 * n)?;
    Ok(Phase1 {
        powers_g1: ptau.powers_g1::<C>(2 * n - 1)?,
        tau_g2,
        alpha_g1,
        beta_g1,
        beta_g2: ptau.beta_g2::<C>()?,
        lagrange_g1: ptau.lagrange_g1::<C>(LagrangeBasis::Powers, n)?,
        lagrange_g2: ptau.lagrange_g2::<C>(n)?,
        lagrange_alpha: ptau.lagrange_g1::<C>(LagrangeBasis::Alpha, n)?,
        lagrange_beta: ptau.lagrange_g1::<C>(LagrangeBasis::Beta, n)?,
        odd: doubled.iter().skip(1).step_by(2).copied().collect(),
        behind: ptau.behind_powers_g1::<C>(2 * n - 1)?,
    })
}

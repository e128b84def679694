//! Test keys in bellperson's form.

use crate::files::{refuse_custom_gates, secret_of, FileCircuit};
use crate::key::stage;
use crate::{Error, KeyInfo, Progress, Protocol, Result, SetupOptions, SetupReport};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;
use tandem_formats::{output, write_params, Output, ParamsPoints, R1cs, R1csFile};
use tandem_groth16::powers::OwnedPowers;
use tandem_groth16::KeyPoints;
use tandem_ops::{Bls12_381, Curve};

/// Makes a test key for an `.r1cs` file over BLS12-381 and writes it as bellperson does, whole or not at all. Whoever runs this could know
/// the key's secret: such a key is not for production.
///
/// # Errors
/// [`Error::BadInput`] for a file that is no good circuit, also where a private wire is in no constraint, or that cannot be written.
pub fn setup_params(
    r1cs: &Path,
    params: &Path,
    options: &SetupOptions,
    progress: &dyn Progress,
) -> Result<SetupReport> {
    tandem_ops::threads::ready()?;
    let started = Instant::now();
    progress.start("read circuit", 0);
    let bytes = R1csFile::open(r1cs)?.read()?;
    let circuit = R1cs::parse(&bytes).map_err(|e| e.in_file(r1cs))?;
    refuse_custom_gates(&circuit, r1cs)?;
    let curve = circuit.header.curve;
    if curve != Bls12_381::ID {
        let problem = format!("a circuit for {curve}; keys of bellperson are for {}", Bls12_381::ID);
        return Err(Error::input(format!("{}: {problem}; compile it with --prime bls12381", r1cs.display())));
    }
    let read = stage("read circuit", started);
    let started = Instant::now();
    let mut file = Output::create(params)?;
    let prover = |e| Error::prover(e, r1cs);
    let secret = secret_of::<Bls12_381>(options).map_err(prover)?;
    let key = OwnedPowers::<Bls12_381>::make(&FileCircuit(&circuit), &secret, progress).map_err(prover)?;
    let KeyPoints { alpha1, beta1, beta2, gamma2, delta1, delta2 } = key.points;
    let points = ParamsPoints {
        alpha_1: alpha1,
        beta_1: beta1,
        beta_2: beta2,
        gamma_2: gamma2,
        delta_1: delta1,
        delta_2: delta2,
    };
    let mut out = BufWriter::new(&mut file);
    let written = write_params(&mut out, &points, [&key.ic, &key.h, &key.l, &key.a, &key.b1], &key.b2);
    let written = written.and_then(|()| out.flush());
    drop(out);
    written.map_err(|e| file.error(e))?;
    let file_bytes = file.written();
    output::commit([file])?;
    let tandem_groth16::Shape { variables, publics, domain } = key.shape;
    let protocol = Protocol::Groth16;
    Ok(SetupReport {
        key: KeyInfo { protocol, curve, variables, publics, domain, file_bytes, has_circuit: false },
        constraints: circuit.header.n_constraints as usize,
        gates: None,
        stages: vec![read, stage("make key", started)],
    })
}

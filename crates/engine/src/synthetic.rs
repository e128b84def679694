//! Synthetic circuits: keys of them for measurements, and files for other tools and for the whole way from a file.

use crate::key::{self, KeyLoader};
use crate::source::Made;
use crate::system::{Fflonk, Groth16, Plonk};
use crate::team::AnyCurve;
use crate::{Error, Key, Progress, Result, Synthetic};
use ark_ff::UniformRand;
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use tandem_formats::{output, Output, Protocol, R1csHeader, R1csWriter, Wtns};
use tandem_groth16::setup::{self, Circuit, Secret, Terms};
use tandem_groth16::{synthetic, OwnedKey};
use tandem_ops::cpu::Cpu;
use tandem_ops::{with_curve, Bls12_381, Bn254, Canonical, Curve, CurveId};
use tandem_plonk::{known, Gates};
use zeroize::Zeroizing;

/// Sizes of synthetic circuits, and of those for PLONK and FFLONK, whose domains are larger.
const LOG_SIZES: RangeInclusive<u32> = 2..=24;
const LOG_SIZES_OF_GATES: RangeInclusive<u32> = 3..=24;

impl Synthetic {
    /// The circuit whose key for `protocol` has the size, checked to be one.
    fn circuit(self, protocol: Protocol) -> Result<synthetic::Synthetic> {
        let Synthetic { log_size, dense, .. } = self;
        let (sizes, of): (_, fn(u32, f64) -> _) = match protocol {
            Protocol::Groth16 => (LOG_SIZES, synthetic::Synthetic::of_domain),
            Protocol::Plonk | Protocol::Fflonk => (LOG_SIZES_OF_GATES, synthetic::Synthetic::of_gates),
        };
        if sizes.contains(&log_size) && (0.0..=1.0).contains(&dense) {
            return Ok(of(log_size, dense));
        }
        let (least, most) = (sizes.start(), sizes.end());
        Err(Error::input(format!(
            "a circuit of size 2^{log_size} with dense share {dense}: expected 2^{least} to 2^{most} and 0 to 1"
        )))
    }

    /// Writes the circuit and a witness that satisfies it; both files appear whole or neither does.
    ///
    /// # Errors
    /// The size is out of range; a file cannot be written.
    pub fn write(self, r1cs: &Path, wtns: &Path) -> Result<()> {
        self.write_for(Protocol::Groth16, r1cs, wtns)
    }

    /// As [`Synthetic::write`], of the circuit whose key for `protocol` has the size.
    ///
    /// # Errors
    /// As [`Synthetic::write`].
    pub fn write_for(self, protocol: Protocol, r1cs: &Path, wtns: &Path) -> Result<()> {
        with_curve!(self.curve, C => write::<C>(&self.circuit(protocol)?, r1cs, wtns))
    }
}

/// A key of a synthetic circuit in host memory, with a witness. It can be loaded into several engines. Whoever made it knows its secrets.
pub struct SyntheticKey {
    witness: Zeroizing<Vec<Canonical>>,
    protocol: Protocol,
    key: AnyMade,
}

enum AnyMade {
    Bn254(Made<Bn254>),
    Bls12_381(Made<Bls12_381>),
}

impl SyntheticKey {
    /// Makes them for Groth16, on all cores.
    ///
    /// # Errors
    /// The size is out of range.
    pub fn make(circuit: Synthetic, progress: &dyn Progress) -> Result<SyntheticKey> {
        Self::make_for(Protocol::Groth16, circuit, progress)
    }

    /// As [`SyntheticKey::make`], of the circuit whose key for `protocol` has the size.
    ///
    /// # Errors
    /// As there; FFLONK over another curve than BN254.
    pub fn make_for(protocol: Protocol, circuit: Synthetic, progress: &dyn Progress) -> Result<SyntheticKey> {
        tandem_ops::threads::ready()?;
        let parts = circuit.circuit(protocol)?;
        let (witness, key) = match (circuit.curve, protocol) {
            (CurveId::Bn254, Protocol::Fflonk) => {
                let key = made_fflonk(&parts, progress).map_err(unnamed)?;
                (parts.witness::<Bn254>(0).map_err(unnamed)?, AnyMade::Bn254(key))
            }
            (curve, Protocol::Fflonk) => return Err(Error::input(format!("FFLONK keys are over BN254, not {curve}"))),
            (CurveId::Bn254, _) => made(&parts, protocol, AnyMade::Bn254, progress)?,
            (CurveId::Bls12_381, _) => made(&parts, protocol, AnyMade::Bls12_381, progress)?,
        };
        Ok(SyntheticKey { witness: Zeroizing::new(witness), protocol, key })
    }

    pub(crate) fn curve(&self) -> CurveId {
        match self.key {
            AnyMade::Bn254(_) => CurveId::Bn254,
            AnyMade::Bls12_381(_) => CurveId::Bls12_381,
        }
    }

    pub(crate) fn witness(&self) -> &[Canonical] {
        &self.witness
    }

    pub(crate) fn load(&self, loader: &KeyLoader, progress: &dyn Progress) -> Result<Key> {
        match (&self.key, self.protocol) {
            (AnyMade::Bn254(made), Protocol::Fflonk) => key::load_made::<Bn254, Fflonk>(loader, made.clone(), progress),
            (AnyMade::Bn254(made), protocol) => load(loader, protocol, made.clone(), progress),
            (AnyMade::Bls12_381(made), protocol) => load(loader, protocol, made.clone(), progress),
        }
    }
}

fn load<C: AnyCurve>(loader: &KeyLoader, protocol: Protocol, made: Made<C>, progress: &dyn Progress) -> Result<Key> {
    match protocol {
        Protocol::Plonk => key::load_made::<C, Plonk>(loader, made, progress),
        _ => key::load_made::<C, Groth16>(loader, made, progress),
    }
}

fn unnamed(error: tandem_groth16::Error) -> Error {
    Error::prover(error, Path::new(""))
}

/// A witness, and the key for Groth16 or PLONK.
fn made<C: Curve>(
    circuit: &synthetic::Synthetic,
    protocol: Protocol,
    any: impl FnOnce(Made<C>) -> AnyMade,
    progress: &dyn Progress,
) -> Result<(Vec<Canonical>, AnyMade)> {
    let key = match protocol {
        Protocol::Plonk => {
            let gates = Gates::<C>::of(circuit, progress).map_err(unnamed)?;
            Made::Plonk(Arc::new(known::plonk(&Cpu::new(1), gates, tau::<C>(), progress).map_err(unnamed)?))
        }
        _ => {
            let mut key = OwnedKey::default();
            setup::setup(circuit, &Secret::from_seed([0; 32]), &mut key, progress).map_err(unnamed)?;
            Made::Circuit(Arc::new(key))
        }
    };
    Ok((circuit.witness::<C>(0).map_err(unnamed)?, any(key)))
}

fn made_fflonk(circuit: &synthetic::Synthetic, progress: &dyn Progress) -> tandem_groth16::Result<Made<Bn254>> {
    let gates = Gates::of_fflonk(circuit, progress)?;
    Ok(Made::Fflonk(Arc::new(known::fflonk(&Cpu::new(1), gates, tau::<Bn254>(), progress)?)))
}

/// The secret of all such keys of PLONK and FFLONK.
fn tau<C: Curve>() -> C::Fr {
    C::Fr::rand(&mut ChaCha20Rng::from_seed([0; 32]))
}

fn write<C: Curve>(circuit: &synthetic::Synthetic, r1cs: &Path, wtns: &Path) -> Result<()> {
    let prover_error = |e| Error::prover(e, Path::new(""));
    let circuit_of: &dyn Circuit<C> = circuit;
    // It has at most 2^24 rows, so that all counts fit.
    let variables = circuit_of.variables() as u32;
    let header = R1csHeader {
        curve: C::ID,
        n_vars: variables,
        n_pub_out: circuit_of.publics() as u32,
        n_pub_in: 0,
        n_prv_in: 1,
        n_labels: variables.into(),
        n_constraints: circuit_of.constraints() as u32,
    };
    let mut terms = 0;
    circuit_of
        .walk(&mut |row| {
            terms += (row.a.len() + row.b.len() + row.c.len()) as u64;
            Ok(())
        })
        .map_err(prover_error)?;

    let mut witness_file = Output::create_secret(wtns)?;
    let witness = Zeroizing::new(circuit.witness::<C>(0).map_err(prover_error)?);
    Wtns::write(&mut witness_file, C::ID, &witness).map_err(|e| witness_file.error(e))?;
    drop(witness);

    let failed = |e: io::Error| Error::input(format!("{}: cannot write: {e}", r1cs.display()));
    let mut writer = R1csWriter::new(Output::create(r1cs)?, &header, terms).map_err(failed)?;
    let canonical = |terms: &Terms<C>| -> Vec<(u32, Canonical)> {
        terms.iter().map(|&(wire, value)| (wire, C::canonical(value))).collect()
    };
    circuit_of
        .walk(&mut |row| {
            let [a, b, c] = [canonical(&row.a), canonical(&row.b), canonical(&row.c)];
            let write_failed = |e| tandem_groth16::Error::Output(format!("{}: cannot write: {e}", r1cs.display()));
            writer.constraint([&a, &b, &c]).map_err(write_failed)
        })
        .map_err(prover_error)?;
    let circuit_file = writer.finish((0..variables as usize).map(|i| i as u64)).map_err(failed)?;
    Ok(output::commit([witness_file, circuit_file])?)
}

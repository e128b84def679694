//! Test parameters by the generator of `storage-proofs-core`, with randomness that nobody keeps. Where the cache has them they stay.

use std::fs::File;

use anyhow::{Context, Result};
use bellperson::groth16::VerifyingKey;
use bellperson::Circuit;
use blstrs::{Bls12, Scalar};
use filecoin_proofs::constants::DefaultPieceHasher;
use filecoin_proofs::PoRepConfig;
use rand::rngs::OsRng;
use storage_proofs_core::compound_proof::{CircuitComponent, CompoundProof};
use storage_proofs_core::parameter_cache::{
    parameter_cache_params_path, parameter_cache_verifying_key_path, CacheableParameters, ParameterSetMetadata,
};
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_porep::stacked::{StackedCompound, StackedDrg};
use storage_proofs_post::fallback::{self, FallbackPoSt, FallbackPoStCompound};

use crate::steps::step;
use crate::Tree;

pub fn porep(config: &PoRepConfig) -> Result<()> {
    let parameters = filecoin_proofs::parameters::public_params::<Tree>(config)?;
    make::<StackedDrg<'_, Tree, DefaultPieceHasher>, _, StackedCompound<Tree, DefaultPieceHasher>>("PoRep", &parameters)
}

pub fn post(name: &str, parameters: &fallback::PublicParams) -> Result<()> {
    make::<FallbackPoSt<'_, Tree>, _, FallbackPoStCompound<Tree>>(name, parameters)
}

/// Makes `.params`, `.meta` and `.vk` of a circuit. The verification key is at the head of `.params`.
fn make<'a, S, C, P>(name: &str, parameters: &S::PublicParams) -> Result<()>
where
    S: ProofScheme<'a>,
    S::Proof: Sync + Send,
    S::PublicParams: ParameterSetMetadata + Sync + Send,
    S::PublicInputs: Clone + Sync,
    C: Circuit<Scalar> + CircuitComponent + Send,
    P: CompoundProof<'a, S, C> + CacheableParameters<C, S::PublicParams>,
{
    let id = P::cache_identifier(parameters);
    let file = parameter_cache_params_path(&id);
    let there = file.exists();
    let what = if there { "load" } else { "make and load" };
    step(&format!("{name}: {what} parameters"), || P::groth_params(Some(&mut OsRng), parameters))?;
    if !there {
        P::get_param_metadata(P::blank_circuit(parameters), parameters)?;
        let key = VerifyingKey::<Bls12>::read(File::open(&file).with_context(|| file.display().to_string())?)?;
        key.write(File::create(parameter_cache_verifying_key_path(&id))?)?;
    }
    println!("  {} ({} MiB)", file.display(), file.metadata()?.len() >> 20);
    Ok(())
}

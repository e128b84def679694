//! What a debug build compiles of this crate for the CPU, as [`tandem_ops`] does of its primitives: the engine and each program that makes
//! proofs on the CPU would otherwise compile the prover anew.

use crate::{
    check, digits::ProofDigits, powers::evaluations, powers::OwnedPowers, prove, prove_staged, prove_verified,
};
use crate::{setup::setup, stage, OwnedKey, PreparedKey, ProvingKey};
use std::hint::black_box;
use tandem_ops::{cpu::Cpu, Bls12_381, Bn254, Curve};

/// Compiled although nobody calls it, with all that it names.
#[used]
static COMPILED: fn() = all;

fn all() {
    of::<Bn254>();
    of::<Bls12_381>();
}

fn of<C: Curve>() {
    black_box([
        ProvingKey::<C, Cpu>::load as *const (),
        ProvingKey::<C, Cpu>::load_powers as *const (),
        stage::<C, Cpu> as *const (),
        prove::<C, Cpu> as *const (),
        prove_staged::<C, Cpu> as *const (),
        prove_verified::<C, Cpu> as *const (),
        check::points_pass::<C, Cpu> as *const (),
        check::powers_pass::<C, Cpu> as *const (),
        check::check_points::<C> as *const (),
        check::check_powers_points::<C> as *const (),
        setup::<C> as *const (),
        OwnedKey::<C>::view as *const (),
        OwnedPowers::<C>::make as *const (),
        OwnedPowers::<C>::view as *const (),
        evaluations::<C> as *const (),
        ProofDigits::count::<C> as *const (),
        ProofDigits::count_picked::<C> as *const (),
        PreparedKey::<C>::new as *const (),
        PreparedKey::<C>::verify as *const (),
    ]);
}

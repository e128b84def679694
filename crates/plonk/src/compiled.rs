//! What a debug build compiles of this crate for the CPU, as [`tandem_ops`] does of its primitives: the engine and each program that makes
//! proofs on the CPU would otherwise compile the provers anew.

use crate::{fflonk, prove_verified, setup::setup, setup::OwnedKey, Gates, PreparedKey, ProvingKey};
use std::hint::black_box;
use tandem_ops::{cpu::Cpu, Bls12_381, Bn254, Curve};

/// Compiled although nobody calls it, with all that it names.
#[used]
static COMPILED: fn() = all;

fn all() {
    of::<Bn254>();
    of::<Bls12_381>();
    black_box([
        fflonk::ProvingKey::<Cpu>::load as *const (),
        fflonk::prove_verified::<Cpu> as *const (),
        fflonk::setup::<Cpu> as *const (),
    ]);
}

fn of<C: Curve>() {
    black_box([
        ProvingKey::<C, Cpu>::load as *const (),
        prove_verified::<C, Cpu> as *const (),
        setup::<C, Cpu> as *const (),
        Gates::<C>::of as *const (),
        Gates::<C>::of_fflonk as *const (),
        OwnedKey::<C>::view as *const (),
        PreparedKey::<C>::new as *const (),
        PreparedKey::<C>::verify as *const (),
    ]);
}

//! Tandem behind the interface of the crate `supraseal-c2` 0.1.2, the one that bellperson calls with its feature `cuda-supraseal`.
//!
//! ```toml
//! [patch.crates-io]
//! supraseal-c2 = { path = "../tandem/integrations/supraseal-c2" }
//! ```
//!
//! A program of bellperson 0.26 or 0.27 then proves with Tandem, on the CPU or on GPUs, as `TANDEM_DEVICE` says (`auto`, `cpu`,
//! `cuda:0,1`, `sim:4`). Each proof is verified before it is handed over. [`SRS`] is a `.params` file, checked, loaded once and shared.
//!
//! bellperson's functions return nothing, so that a panic is the only way to tell it of a failure: [`generate_groth16_proofs`] and
//! [`generate_groth16_proof`] panic with one line that says what is wrong, and write no proof. [`try_generate_groth16_proofs`] returns it.
#![deny(unsafe_op_in_unsafe_fn)]

mod assignment;
mod c;
pub mod cuda;
#[cfg(feature = "curio")]
mod curio;
mod srs;

pub use assignment::Assignment;
#[cfg(feature = "curio")]
pub use curio::{
    alloc_gpu_mutex, drop_pending_proof, finish_groth16_proof, free_gpu_mutex, start_groth16_proof,
    try_finish_groth16_proof,
};
pub use srs::SRS;

use assignment::Shared;
use cuda::Error;

/// Bytes of a proof: A in G1, B in G2, C in G1, affine.
const PROOF: usize = 96 + 192 + 96;

/// Circuits of one call at most. bellperson hands over ten, unless `BELLPERSON_MAX_GROTH16_BATCH_SIZE` or the like says more.
pub const MAX_CIRCUITS: usize = 256;

type Proof = [u8; PROOF];

/// Proves circuits one after the other. While one is proved, the next is copied and uploaded.
fn prove<S>(provers: &[Assignment<S>], r_s: &[S], s_s: &[S], srs: &SRS) -> Result<Vec<Proof>, Error> {
    let circuits = provers.len();
    if circuits == 0 || circuits > MAX_CIRCUITS {
        return Err(Error::input(format!("{circuits} circuits; expected 1 to {MAX_CIRCUITS}")));
    }
    for (name, has) in [("r", r_s.len()), ("s", s_s.len())] {
        if has != circuits {
            return Err(Error::input(format!("{has} values of {name} for {circuits} circuits; expected as many")));
        }
    }
    let (r_s, s_s) =
        (assignment::scalars("r", r_s.as_ptr(), circuits)?, assignment::scalars("s", s_s.as_ptr(), circuits)?);
    // What was found is of this circuit, of which there may be many.
    let views = (0..circuits).map(|i| provers[i].view([r_s[i], s_s[i]]).map_err(|e| e.of_circuit(i, circuits)));
    srs.prove(&views.collect::<Result<Vec<_>, _>>()?)
}

/// Fails unless there is room for so many proofs.
fn check_room<PR>(proofs: &[PR], circuits: usize) -> Result<(), Error> {
    if size_of::<PR>() != PROOF || proofs.len() != circuits {
        let (has, size) = (proofs.len(), size_of::<PR>());
        return Err(Error::input(format!("room for {has} proofs of {size} bytes; expected {circuits} of {PROOF}")));
    }
    Ok(())
}

/// Hands proofs over: all of them or none.
fn hand_over<PR>(made: &[Proof], proofs: &mut [PR]) -> Result<(), Error> {
    check_room(proofs, made.len())?;
    let (from, to) = (made.as_ptr().cast::<u8>(), proofs.as_mut_ptr().cast::<u8>());
    // SAFETY: both are as many times PROOF bytes, and apart. What the prover makes are three affine points in the layout of blst, which is
    // what a proof of bellperson is.
    unsafe { std::ptr::copy_nonoverlapping(from, to, made.len() * PROOF) };
    Ok(())
}

/// Overwrites what the caller has not initialised, or what an earlier call left: with points at infinity, which verify for no statement.
fn clear<PR>(proofs: &mut [PR]) {
    if size_of::<PR>() == PROOF {
        // SAFETY: they are as many times PROOF bytes; zeros are three points at infinity in the layout of blst.
        unsafe { std::ptr::write_bytes(proofs.as_mut_ptr(), 0, proofs.len()) };
    }
}

/// Proves circuits, one proof each, in order. It has copied all that `provers` point to when it returns.
///
/// The pointers of [`Assignment`] must lead to as many elements as it says, or be null, which is an error.
///
/// # Errors
/// [`Error`] that says what is wrong: no circuit or too many, a null pointer, lengths that disagree, densities that do not belong to the
/// key, an assignment that does not satisfy its circuit, a device that failed. `proofs` are then points at infinity.
pub fn try_generate_groth16_proofs<S, PR>(
    provers: &[Assignment<S>],
    r_s: &[S],
    s_s: &[S],
    proofs: &mut [PR],
    srs: &SRS,
) -> Result<(), Error> {
    clear(proofs);
    check_room(proofs, provers.len())?;
    hand_over(&prove(provers, r_s, s_s, srs)?, proofs)
}

/// As [`try_generate_groth16_proofs`], in the form that bellperson 0.27 calls.
///
/// # Panics
/// Where it fails, with the reason.
pub fn generate_groth16_proofs<S, PR>(provers: &[Assignment<S>], r_s: &[S], s_s: &[S], proofs: &mut [PR], srs: &SRS) {
    told(try_generate_groth16_proofs(provers, r_s, s_s, proofs, srs));
}

/// What the callers take for an error.
fn told<T>(done: Result<T, Error>) -> T {
    match done {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// A function with the arguments of bellperson 0.26 and of Curio's cuzk: all circuits have the same sizes and densities. Such functions differ in
/// their names, in the arguments behind these, and in what they make of the circuits.
macro_rules! of_equal_circuits {
    ($(#[$meta:meta])* fn $name:ident<$($generic:ident),*>($($more:ident: $type:ty),* $(,)?) $(-> $returns:ty)? {
        |$provers:ident| $body:expr
    }) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        pub fn $name<$($generic),*>(
            ntt_a_scalars: &[*const S],
            ntt_b_scalars: &[*const S],
            ntt_c_scalars: &[*const S],
            ntt_scalars_actual_size: usize,
            input_assignments: &[*const S],
            aux_assignments: &[*const S],
            input_assignments_size: usize,
            aux_assignments_size: usize,
            a_aux_density_bv: &[D],
            b_g1_input_density_bv: &[D],
            b_g1_aux_density_bv: &[D],
            a_aux_total_density: usize,
            b_g1_input_total_density: usize,
            b_g1_aux_total_density: usize,
            num_circuits: usize,
            $($more: $type,)*
        ) $(-> $returns)? {
            let $provers = $crate::shared(
                [ntt_a_scalars, ntt_b_scalars, ntt_c_scalars],
                ntt_scalars_actual_size,
                (input_assignments, input_assignments_size),
                (aux_assignments, aux_assignments_size),
                [
                    ($crate::assignment::words(a_aux_density_bv), a_aux_total_density),
                    ($crate::assignment::words(b_g1_input_density_bv), b_g1_input_total_density),
                    ($crate::assignment::words(b_g1_aux_density_bv), b_g1_aux_total_density),
                ],
                num_circuits,
            );
            $body
        }
    };
}
#[cfg(feature = "curio")]
pub(crate) use of_equal_circuits;

#[cfg(not(feature = "curio"))]
of_equal_circuits! {
    /// The form that bellperson 0.26 calls: all circuits have the same sizes and densities.
    ///
    /// # Panics
    /// Where it fails, with the reason.
    fn generate_groth16_proof<S, D, PR>(r_s: &[S], s_s: &[S], proofs: &mut [PR], srs: &SRS) {
        |provers| told(provers.and_then(|provers| try_generate_groth16_proofs(&provers, r_s, s_s, proofs, srs)))
    }
}

#[cfg(feature = "curio")]
of_equal_circuits! {
    /// The form that Curio's cuzk calls. The prover takes turns by itself, so that `gpu_mtx` is not used; `gpu_index` is a wish that the
    /// choice of `TANDEM_DEVICE` outweighs.
    ///
    /// # Panics
    /// Where it fails, with the reason.
    fn generate_groth16_proof<S, D, PR>(
        r_s: &[S],
        s_s: &[S],
        proofs: &mut [PR],
        srs: &SRS,
        _gpu_mtx: *mut std::ffi::c_void,
        _gpu_index: i32,
    ) {
        |provers| told(provers.and_then(|provers| try_generate_groth16_proofs(&provers, r_s, s_s, proofs, srs)))
    }
}

/// The circuits of a call that gives sizes and densities once.
fn shared<S>(
    [a, b, c]: [&[*const S]; 3],
    rows: usize,
    inputs: (&[*const S], usize),
    aux: (&[*const S], usize),
    densities: [(Result<&[u64], Error>, usize); 3],
    circuits: usize,
) -> Result<Vec<Assignment<S>>, Error> {
    let [in_a, in_b_inputs, in_b_aux] = densities;
    let shared = Shared {
        rows,
        inputs: inputs.1,
        aux: aux.1,
        in_a: (in_a.0?, in_a.1),
        in_b_inputs: (in_b_inputs.0?, in_b_inputs.1),
        in_b_aux: (in_b_aux.0?, in_b_aux.1),
    };
    shared.check()?;
    let of = [("a", a), ("b", b), ("c", c), ("input assignment", inputs.0), ("aux assignment", aux.0)];
    if let Some((name, given)) = of.iter().find(|(_, given)| given.len() != circuits) {
        return Err(Error::input(format!(
            "{} pointers to {name} for {circuits} circuits; expected as many",
            given.len()
        )));
    }
    Ok((0..circuits).map(|i| shared.of([a[i], b[i], c[i], inputs.0[i], aux.0[i]])).collect())
}

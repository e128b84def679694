//! Both forms of the call, without bellperson: what is wrong with pointers, lengths and files is an error, and the next proof is right.

use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::ptr;
use supraseal_c2::{generate_groth16_proof, try_generate_groth16_proofs, Assignment, MAX_CIRCUITS, SRS};
use tandem_formats::{write_params, ParamsPoints};
use tandem_groth16::powers::{evaluations, OwnedPowers};
use tandem_groth16::setup::{Circuit, Secret};
use tandem_groth16::synthetic::Synthetic;
use tandem_groth16::{KeyPoints, PreparedKey, Proof, Silent};
use tandem_ops::{Bls12_381, Canonical, Curve};

type C = Bls12_381;
type Fr = <C as Curve>::Fr;
type Scalar = [u64; 4];

/// As large as a proof of bellperson.
type Room = [u64; 48];

const CIRCUIT: Synthetic = Synthetic { constraints: 50, publics: 3, dense: 0.5 };

/// A key in a file.
struct Made {
    folder: tempfile::TempDir,
    verifier: PreparedKey<C>,
}

impl Made {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::env::set_var(
            "TANDEM_CACHE_DIR",
            std::env::temp_dir().join(format!("tandem-tests-{}", std::process::id())),
        );
        let key = OwnedPowers::<C>::make(&CIRCUIT, &Secret::from_seed([1; 32]), &Silent).unwrap();
        let KeyPoints { alpha1, beta1, beta2, gamma2, delta1, delta2 } = key.points;
        let points = ParamsPoints {
            alpha_1: alpha1,
            beta_1: beta1,
            beta_2: beta2,
            gamma_2: gamma2,
            delta_1: delta1,
            delta_2: delta2,
        };
        let mut bytes = Vec::new();
        write_params(&mut bytes, &points, [&key.ic, &key.h, &key.l, &key.a, &key.b1], &key.b2).unwrap();
        std::fs::write(folder.path().join("made.params"), bytes).unwrap();
        Made { verifier: PreparedKey::new(&key.view().verifying_key()).unwrap(), folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("made.params")
    }

    fn check(&self, proof: &Room, witness: &Owned) {
        let proof = Proof::<C>::from_bytes(bytemuck::bytes_of(proof)).unwrap();
        self.verifier.verify(&witness.publics, &proof).unwrap();
    }
}

/// What bellperson's prover has computed.
struct Owned {
    publics: Vec<Canonical>,
    inputs: Vec<Scalar>,
    aux: Vec<Scalar>,
    sides: [Vec<Scalar>; 3],
    densities: [Vec<usize>; 3],
    counts: [usize; 3],
}

impl Owned {
    fn new(seed: u64) -> Self {
        let witness = CIRCUIT.witness::<C>(seed).unwrap();
        let of = evaluations::<C>(&CIRCUIT, &witness).unwrap();
        let values: Vec<Fr> = witness.iter().map(|&x| C::from_canonical(x).unwrap()).collect();
        let mont = |values: &[Fr]| values.iter().map(|&x| C::mont(x).0).collect::<Vec<Scalar>>();
        let first = Circuit::<C>::publics(&CIRCUIT) + 1;
        let side = |of: &[tandem_ops::Mont]| of.iter().map(|x| x.0).collect::<Vec<_>>();
        let product = |(a, b): (&tandem_ops::Mont, &tandem_ops::Mont)| C::mont(C::from_mont(*a) * C::from_mont(*b)).0;
        let c = of.a().iter().zip(of.b()).map(product).collect();
        let bits = |wires: &[u32], range: std::ops::Range<usize>| {
            let mut words = vec![0; range.len().div_ceil(64)];
            let wires: Vec<_> = wires.iter().map(|&w| w as usize).filter(|w| range.contains(w)).collect();
            wires.iter().for_each(|w| words[(w - range.start) / 64] |= 1 << ((w - range.start) % 64));
            (words, wires.len())
        };
        let all = values.len();
        let densities =
            [bits(of.named_in_a(), first..all), bits(of.named_in_b(), 0..first), bits(of.named_in_b(), first..all)];
        Owned {
            publics: witness[1..first].to_vec(),
            inputs: mont(&values[..first]),
            aux: mont(&values[first..]),
            sides: [side(of.a()), side(of.b()), c],
            counts: densities.each_ref().map(|(_, count)| *count),
            densities: densities.map(|(words, _)| words),
        }
    }

    fn view(&self) -> Assignment<Scalar> {
        let [a, b, c] = self.sides.each_ref().map(|side| side.as_ptr());
        let [in_a, in_b_inputs, in_b_aux] = self.densities.each_ref().map(|words| words.as_ptr());
        Assignment {
            a_aux_density: in_a,
            a_aux_bit_len: self.aux.len(),
            a_aux_popcount: self.counts[0],
            b_inp_density: in_b_inputs,
            b_inp_bit_len: self.inputs.len(),
            b_inp_popcount: self.counts[1],
            b_aux_density: in_b_aux,
            b_aux_bit_len: self.aux.len(),
            b_aux_popcount: self.counts[2],
            a,
            b,
            c,
            abc_size: self.sides[0].len(),
            inp_assignment_data: self.inputs.as_ptr(),
            inp_assignment_size: self.inputs.len(),
            aux_assignment_data: self.aux.as_ptr(),
            aux_assignment_size: self.aux.len(),
        }
    }
}

fn scalars(count: usize) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(count as u64);
    (0..count).map(|_| C::mont(Fr::rand(&mut rng)).0).collect()
}

#[test]
fn what_is_wrong_is_an_error_and_the_next_proof_is_right() {
    let made = Made::new();
    let (srs, owned) = (SRS::try_new(made.path(), true).unwrap(), Owned::new(5));
    let told = |change: &dyn Fn(&mut Assignment<Scalar>)| {
        let mut view = owned.view();
        change(&mut view);
        let mut proofs = [[7u64; 48]];
        let error = try_generate_groth16_proofs(&[view], &scalars(1), &scalars(1), &mut proofs, &srs).unwrap_err();
        assert!(proofs == [[0; 48]], "what is no proof is left");
        assert!(error.code != 0 && !error.to_string().contains('\n'), "{error}");
        error.to_string()
    };
    let changes: [(&dyn Fn(&mut Assignment<Scalar>), &str); 16] = [
        (&|v| v.a = ptr::null(), "a: a null pointer"),
        (&|v| v.b = ptr::null(), "b: a null pointer"),
        (&|v| v.c = ptr::null(), "c: a null pointer"),
        (&|v| v.inp_assignment_data = ptr::null(), "input assignment: a null pointer"),
        (&|v| v.aux_assignment_data = ptr::null(), "aux assignment: a null pointer"),
        (&|v| v.a_aux_density = ptr::null(), "A of aux: a null pointer"),
        (&|v| v.b_inp_density = ptr::null(), "B of inputs: a null pointer"),
        (&|v| v.b_aux_density = ptr::null(), "B of aux: a null pointer"),
        (&|v| v.a = v.a.wrapping_byte_add(1), "a: 54 elements at"),
        (&|v| v.abc_size = usize::MAX / 8, "where they cannot lie"),
        (&|v| v.a_aux_popcount += 1, "A of aux: "),
        (&|v| v.b_inp_popcount += 1, "B of inputs: "),
        (&|v| v.b_aux_popcount -= 1, "B of aux: "),
        (&|v| v.a_aux_bit_len -= 1, "A"),
        (&|v| v.inp_assignment_size -= 1, "inputs with the constant 1"),
        (&|v| v.aux_assignment_size -= 1, "expected one of"),
    ];
    for (change, says) in changes {
        let message = told(change);
        assert!(message.contains(says), "{says}: {message}");
        let mut proofs = [[7u64; 48]];
        try_generate_groth16_proofs(&[owned.view()], &scalars(1), &scalars(1), &mut proofs, &srs).unwrap();
        made.check(&proofs[0], &owned);
    }
}

#[test]
fn numbers_of_circuits_are_compared() {
    let made = Made::new();
    let (srs, owned) = (SRS::try_new(made.path(), true).unwrap(), Owned::new(5));
    let views = |count: usize| (0..count).map(|_| owned.view()).collect::<Vec<_>>();
    let told = |circuits: usize, r: usize, s: usize, room: usize| {
        let mut proofs = vec![[7u64; 48]; room];
        let done = try_generate_groth16_proofs(&views(circuits), &scalars(r), &scalars(s), &mut proofs, &srs);
        done.unwrap_err().to_string()
    };
    assert!(told(0, 0, 0, 0).contains("0 circuits; expected 1 to"));
    let most = MAX_CIRCUITS + 1;
    assert!(told(most, most, most, most).contains(&format!("{most} circuits; expected 1 to")));
    assert!(told(2, 1, 2, 2).contains("1 values of r for 2 circuits"));
    assert!(told(2, 2, 3, 2).contains("3 values of s for 2 circuits"));
    assert!(told(2, 2, 2, 1).contains("room for 1 proofs"));
    let mut small = [[0u64; 47]];
    let done = try_generate_groth16_proofs(&views(1), &scalars(1), &scalars(1), &mut small, &srs);
    assert!(done.unwrap_err().to_string().contains("room for 1 proofs of 376 bytes"));
    // Scalars of another size.
    let (mut proofs, short) = ([[0u64; 48]], [[0u64; 3]]);
    let view: Assignment<[u64; 3]> = unsafe { std::mem::transmute(owned.view()) };
    let done = try_generate_groth16_proofs(&[view], &short, &short, &mut proofs, &srs);
    assert!(done.unwrap_err().to_string().contains("scalars of 24 bytes"));
    // No parameters, and one bad circuit of several, which is named.
    let done = try_generate_groth16_proofs(&views(1), &scalars(1), &scalars(1), &mut proofs, &SRS::default());
    assert!(done.unwrap_err().to_string().contains("not loaded"));
    let mut three = views(3);
    three[1].c = three[1].a;
    let mut proofs = [[7u64; 48]; 3];
    let error = try_generate_groth16_proofs(&three, &scalars(3), &scalars(3), &mut proofs, &srs).unwrap_err();
    assert!(error.to_string().starts_with("circuit 1: constraint"), "{error}");
    assert!(proofs == [[0; 48]; 3], "no proof of some is left");
}

#[test]
fn parameters_are_shared_evicted_and_loaded_again() {
    let made = Made::new();
    let owned = Owned::new(6);
    let one = SRS::try_new(made.path(), true).unwrap();
    let other = one.clone();
    let own = SRS::try_new(made.path(), false).unwrap();
    let mut first = None;
    for srs in [&one, &other, &own, &SRS::try_new(made.path(), true).unwrap()] {
        let mut proofs = [[0u64; 48]];
        try_generate_groth16_proofs(&[owned.view()], &scalars(1), &scalars(1), &mut proofs, srs).unwrap();
        made.check(&proofs[0], &owned);
        assert!(*first.get_or_insert(proofs) == proofs, "the same r and s, the same proof");
        srs.evict();
    }
    // Many at once.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let srs = SRS::try_new(made.path(), true).unwrap();
                let mut proofs = [[0u64; 48]];
                try_generate_groth16_proofs(&[owned.view()], &scalars(1), &scalars(1), &mut proofs, &srs).unwrap();
                made.check(&proofs[0], &owned);
                srs.evict();
            });
        }
    });
    // A file that was replaced is another key.
    let bytes = std::fs::read(made.path()).unwrap();
    std::fs::write(made.path(), &bytes[..bytes.len() - 1]).unwrap();
    let error = SRS::try_new(made.path(), true).err().unwrap();
    assert!(error.to_string().contains("made.params") && error.to_string().contains("expected"), "{error}");
    assert!(SRS::try_new(made.folder.path().join("none"), true).err().unwrap().to_string().contains("none"));
}

/// The form of bellperson 0.26, and Curio's.
#[allow(clippy::too_many_arguments)]
fn old_form(
    owned: &[Owned],
    rows: usize,
    words: &[Vec<usize>; 3],
    counts: [usize; 3],
    r: &[Scalar],
    proofs: &mut [Room],
    srs: &SRS,
) {
    let of = |at: fn(&Owned) -> *const Scalar| owned.iter().map(at).collect::<Vec<_>>();
    let (a, b, c) = (of(|o| o.sides[0].as_ptr()), of(|o| o.sides[1].as_ptr()), of(|o| o.sides[2].as_ptr()));
    let (inputs, aux) = (of(|o| o.inputs.as_ptr()), of(|o| o.aux.as_ptr()));
    generate_groth16_proof(
        &a,
        &b,
        &c,
        rows,
        &inputs,
        &aux,
        owned[0].inputs.len(),
        owned[0].aux.len(),
        &words[0],
        &words[1],
        &words[2],
        counts[0],
        counts[1],
        counts[2],
        owned.len(),
        r,
        r,
        proofs,
        srs,
        #[cfg(feature = "curio")]
        ptr::null_mut(),
        #[cfg(feature = "curio")]
        -1,
    );
}

#[test]
fn the_old_form_proves_and_panics_with_the_reason() {
    let made = Made::new();
    let srs = SRS::try_new(made.path(), true).unwrap();
    let owned = [Owned::new(1), Owned::new(2), Owned::new(3)];
    let (rows, words, counts) = (owned[0].sides[0].len(), owned[0].densities.clone(), owned[0].counts);
    let prove = |rows: usize, words: &[Vec<usize>; 3], counts: [usize; 3], circuits: usize, proofs: &mut [Room]| {
        old_form(&owned[..circuits], rows, words, counts, &scalars(3), proofs, &srs);
    };
    let mut proofs = [[0u64; 48]; 3];
    prove(rows, &words, counts, 3, &mut proofs);
    proofs.iter().zip(&owned).for_each(|(proof, owned)| made.check(proof, owned));
    let told = |work: &mut dyn FnMut(&mut [Room])| {
        let mut proofs = [[7u64; 48]; 3];
        let panic = catch_unwind(AssertUnwindSafe(|| work(&mut proofs))).unwrap_err();
        *panic.downcast::<String>().unwrap()
    };
    let mut fewer = words.clone();
    fewer[2].clear();
    assert!(told(&mut |proofs| prove(rows, &fewer, counts, 3, proofs)).contains("B of aux: a density of 0 words"));
    assert!(told(&mut |proofs| prove(rows, &words, [0; 3], 3, proofs)).contains("expected 0"));
    assert!(told(&mut |proofs| prove(rows, &words, counts, 2, proofs)).contains("expected 2"));
    prove(rows, &words, counts, 3, &mut proofs);
    proofs.iter().zip(&owned).for_each(|(proof, owned)| made.check(proof, owned));
}

/// r and s of zero give the sums without blinding, for callers that want no zero knowledge.
#[test]
fn no_blinding_is_possible() {
    let made = Made::new();
    let (srs, owned) = (SRS::try_new(made.path(), true).unwrap(), Owned::new(5));
    let (mut with, mut without) = ([[0u64; 48]], [[0u64; 48]]);
    let zero = [C::mont(Fr::ZERO).0];
    try_generate_groth16_proofs(&[owned.view()], &zero, &zero, &mut without, &srs).unwrap();
    try_generate_groth16_proofs(&[owned.view()], &[C::mont(Fr::ONE).0], &zero, &mut with, &srs).unwrap();
    made.check(&without[0], &owned);
    made.check(&with[0], &owned);
    assert!(with != without);
}

#[cfg(feature = "curio")]
mod curio {
    use super::*;
    use std::ffi::c_void;
    use supraseal_c2::{
        alloc_gpu_mutex, drop_pending_proof, finish_groth16_proof, free_gpu_mutex, start_groth16_proof,
        try_finish_groth16_proof,
    };

    fn start(owned: &Owned, srs: &SRS, r: &[Scalar]) -> *mut c_void {
        let of = |at: &Vec<Scalar>| vec![at.as_ptr()];
        let [a, b, c] = owned.sides.each_ref().map(of);
        start_groth16_proof(
            &a,
            &b,
            &c,
            owned.sides[0].len(),
            &of(&owned.inputs),
            &of(&owned.aux),
            owned.inputs.len(),
            owned.aux.len(),
            &owned.densities[0],
            &owned.densities[1],
            &owned.densities[2],
            owned.counts[0],
            owned.counts[1],
            owned.counts[2],
            1,
            r,
            r,
            srs,
            alloc_gpu_mutex(),
            -1,
        )
    }

    #[test]
    fn two_steps_prove_and_release_their_handle() {
        let made = Made::new();
        let srs = SRS::try_new(made.path(), true).unwrap();
        let (one, two) = (Owned::new(1), Owned::new(2));
        let handles = [start(&one, &srs, &scalars(1)), start(&two, &srs, &scalars(1))];
        assert!(handles.iter().all(|handle| !handle.is_null()) && handles[0] != handles[1]);
        let mut proofs = [[0u64; 48]];
        finish_groth16_proof(handles[1], &mut proofs);
        made.check(&proofs[0], &two);
        finish_groth16_proof(handles[0], &mut proofs);
        made.check(&proofs[0], &one);
        // Used, unknown, null, dropped, and too little room: which releases the handle, too.
        let gone = |handle, room: usize| {
            try_finish_groth16_proof(handle, &mut vec![[0u64; 48]; room]).unwrap_err().to_string()
        };
        assert!(gone(handles[0], 1).contains("no such pending proof"));
        assert!(gone(ptr::null_mut(), 1).contains("no such pending proof"));
        let handle = start(&one, &srs, &scalars(1));
        assert!(gone(handle, 2).contains("room for 2 proofs"));
        assert!(gone(handle, 1).contains("no such pending proof"));
        let handle = start(&one, &srs, &scalars(1));
        unsafe {
            drop_pending_proof(handle);
            drop_pending_proof(handle);
            drop_pending_proof(ptr::null_mut());
            free_gpu_mutex(alloc_gpu_mutex());
        }
        assert!(gone(handle, 1).contains("no such pending proof"));
        // A failure has no handle.
        let mut wrong = Owned::new(1);
        wrong.sides[2][0][0] ^= 1;
        let told = catch_unwind(AssertUnwindSafe(|| start(&wrong, &srs, &scalars(1)).is_null())).unwrap_err();
        assert!(told.downcast::<String>().unwrap().contains("constraint 0 does not hold"));
    }
}

/// The symbols of the native code, by their names.
mod from_c {
    use super::*;
    use std::ffi::{c_char, c_int, c_void, CString};
    use std::process::Command;

    extern "C" {
        fn create_SRS();
        fn clone_SRS();
        fn evict_SRS();
        fn drop_SRS();
        fn generate_groth16_proofs_c();
        #[cfg(feature = "curio")]
        fn create_gpu_mutex();
        #[cfg(feature = "curio")]
        fn destroy_gpu_mutex();
        #[cfg(feature = "curio")]
        fn generate_groth16_proofs_start_c();
        #[cfg(feature = "curio")]
        fn finalize_groth16_proof_c();
        #[cfg(feature = "curio")]
        fn destroy_pending_proof();
        fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    type Calls = unsafe extern "C" fn(
        *const unsafe extern "C" fn(),
        *const c_char,
        *const Assignment<Scalar>,
        usize,
        *const Scalar,
        *const Scalar,
        *mut Room,
        *mut Room,
    ) -> c_int;

    /// A C function in a library that is made of `tests/c/calls.c`.
    fn calls(folder: &std::path::Path) -> Calls {
        let (source, library) = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/calls.c"), folder.join("calls.so"));
        let mut made = Command::new("cc");
        made.args(["-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(source);
        if cfg!(feature = "curio") {
            made.arg("-DCURIO");
        }
        let made = made.status().unwrap();
        assert!(made.success());
        let path = CString::new(library.to_str().unwrap()).unwrap();
        const NOW: c_int = 2;
        // SAFETY: both are texts that end in 0; the function has this type in its source.
        unsafe {
            let library = dlopen(path.as_ptr(), NOW);
            assert!(!library.is_null());
            let found = dlsym(library, c"calls".as_ptr());
            assert!(!found.is_null());
            std::mem::transmute::<*mut c_void, Calls>(found)
        }
    }

    #[test]
    fn a_c_program_proves() {
        let made = Made::new();
        let owned: Vec<Owned> = (0..3).map(Owned::new).collect();
        let views: Vec<_> = owned.iter().map(Owned::view).collect();
        let (r, s) = (scalars(3), scalars(3));
        let [mut proofs, mut again] = [[[1u64; 48]; 3], [[2u64; 48]; 3]];
        let symbols = [
            create_SRS,
            clone_SRS,
            evict_SRS,
            drop_SRS,
            generate_groth16_proofs_c,
            #[cfg(feature = "curio")]
            create_gpu_mutex,
            #[cfg(feature = "curio")]
            destroy_gpu_mutex,
            #[cfg(feature = "curio")]
            generate_groth16_proofs_start_c,
            #[cfg(feature = "curio")]
            finalize_groth16_proof_c,
            #[cfg(feature = "curio")]
            destroy_pending_proof,
        ];
        let path = CString::new(made.path().to_str().unwrap()).unwrap();
        let calls = calls(made.folder.path());
        // SAFETY: what is asked for: three of each, which stay during the call.
        let step = unsafe {
            let (r, s) = (r.as_ptr(), s.as_ptr());
            calls(symbols.as_ptr(), path.as_ptr(), views.as_ptr(), 3, r, s, proofs.as_mut_ptr(), again.as_mut_ptr())
        };
        assert_eq!(step, 0);
        assert_eq!(proofs, again);
        proofs.iter().zip(&owned).for_each(|(proof, owned)| made.check(proof, owned));
    }
}

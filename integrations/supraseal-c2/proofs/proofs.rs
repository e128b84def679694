//! Unmodified bellperson with the drop-in: every proof has the bytes that bellperson's own prover gives with the same r and s, and verifies.

#[path = "lib.rs"]
mod circuits;

use blstrs::{Bls12, Scalar};
use circuits::{Density, Random};
use drop_in::groth16 as with_drop_in;
use ff::Field;
use native::groth16 as by_itself;
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;

type Parameters = by_itself::Parameters<Bls12>;

/// A key in a file.
struct Made {
    folder: tempfile::TempDir,
    parameters: Parameters,
}

impl Made {
    fn of(circuit: Random) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(circuit.shape);
        let parameters = by_itself::generate_random_parameters::<Bls12, _, _>(circuit, &mut rng).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        parameters.write(&mut bytes).unwrap();
        std::fs::write(folder.path().join("made.params"), bytes).unwrap();
        Made { folder, parameters }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("made.params")
    }

    fn load(&self) -> with_drop_in::SuprasealParameters<Bls12> {
        with_drop_in::SuprasealParameters::new(self.path()).unwrap()
    }
}

fn bytes_of(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    bytes
}

/// Proves so many witnesses of a circuit in one call, and compares all with bellperson's own.
fn compare(
    circuit: Random,
    circuits: usize,
    made: &Made,
    loaded: &with_drop_in::SuprasealParameters<Bls12>,
    blind: bool,
) {
    let mut rng = ChaCha8Rng::seed_from_u64(circuits as u64);
    let all: Vec<Random> = (0..circuits).map(|i| Random { values: circuit.values + i as u64, ..circuit }).collect();
    let mut draw = || if blind { Scalar::random(&mut rng) } else { Scalar::ZERO };
    let (r, s): (Vec<_>, Vec<_>) = all.iter().map(|_| (draw(), draw())).unzip();
    let proofs = with_drop_in::create_proof_batch(all.clone(), loaded, r.clone(), s.clone()).unwrap();
    assert_eq!(proofs.len(), circuits);
    let verifier = by_itself::prepare_verifying_key(&made.parameters.vk);
    for (i, (proof, circuit)) in proofs.iter().zip(&all).enumerate() {
        let own = by_itself::create_proof::<Bls12, _, _>(*circuit, &made.parameters, r[i], s[i]).unwrap();
        let found = bytes_of(|to| proof.write(to));
        assert_eq!(found, bytes_of(|to| own.write(to)), "{circuit:?}, proof {i} of {circuits}");
        let read = by_itself::Proof::read(found.as_slice()).unwrap();
        assert!(by_itself::verify_proof(&verifier, &read, &circuit.publics()).unwrap(), "{circuit:?}");
        // Of another statement it is none.
        let mut other = circuit.publics();
        if let Some(first) = other.first_mut() {
            *first += Scalar::ONE;
            assert!(!by_itself::verify_proof(&verifier, &read, &other).unwrap());
        }
    }
}

const EACH: [Density; 4] = [Density::None, Density::One, Density::Few, Density::All];

#[test]
fn all_densities_have_bellpersons_bytes() {
    for (i, in_a) in EACH.into_iter().enumerate() {
        for (j, in_b) in EACH.into_iter().enumerate() {
            let (shape, inputs, aux) = ((4 * i + j) as u64, 1 + 2 * j, 3 + 40 * i + j);
            let circuit = Random { inputs, aux, rows: 5 + 9 * j, in_a, in_b, shape, values: 100 * shape };
            let made = Made::of(circuit);
            compare(circuit, 2, &made, &made.load(), true);
        }
    }
}

#[test]
fn one_to_ten_circuits_a_call() {
    let circuit =
        Random { inputs: 2, aux: 30, rows: 20, in_a: Density::All, in_b: Density::Few, shape: 77, values: 7000 };
    let made = Made::of(circuit);
    let loaded = made.load();
    for circuits in 1..=10 {
        compare(circuit, circuits, &made, &loaded, true);
    }
    // As for callers that want no zero knowledge.
    compare(circuit, 3, &made, &loaded, false);
}

/// Domains at the border of a power of two, from the smallest.
#[test]
fn sizes_at_the_border_of_a_domain() {
    for rows in [1, 2, 3, 4, 59, 60, 61, 62, 63, 64] {
        let circuit =
            Random { inputs: 0, aux: 1, rows, in_a: Density::All, in_b: Density::All, shape: rows as u64, values: 1 };
        let made = Made::of(circuit);
        compare(circuit, 1, &made, &made.load(), true);
    }
}

/// No private wire and no row but that of the constant: the domain has one row, and H no point.
#[test]
fn a_circuit_of_nothing() {
    #[derive(Clone, Copy)]
    struct Empty;
    impl bellpepper_core::Circuit<Scalar> for Empty {
        fn synthesize<CS: bellpepper_core::ConstraintSystem<Scalar>>(
            self,
            _: &mut CS,
        ) -> Result<(), bellpepper_core::SynthesisError> {
            Ok(())
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let parameters = by_itself::generate_random_parameters::<Bls12, _, _>(Empty, &mut rng).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.params");
    std::fs::write(&path, bytes_of(|to| parameters.write(to))).unwrap();
    let loaded = with_drop_in::SuprasealParameters::<Bls12>::new(path).unwrap();
    let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
    let proofs = with_drop_in::create_proof_batch(vec![Empty], &loaded, vec![r], vec![s]).unwrap();
    let own = by_itself::create_proof::<Bls12, _, _>(Empty, &parameters, r, s).unwrap();
    assert_eq!(bytes_of(|to| proofs[0].write(to)), bytes_of(|to| own.write(to)));
}

/// As many proofs as `TANDEM_PROOFS` says, with r and s that bellperson draws.
#[test]
fn proofs_with_random_blinding_verify() {
    let wanted = std::env::var("TANDEM_PROOFS").map_or(55, |text| text.parse().unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut proofs = 0;
    for shape in 0.. {
        let (in_a, in_b) = (EACH[shape as usize % 4], EACH[shape as usize / 4 % 4]);
        let circuit = Random { inputs: 3, aux: 60, rows: 50, in_a, in_b, shape, values: 1000 * shape };
        let made = Made::of(circuit);
        let (loaded, verifier) = (made.load(), by_itself::prepare_verifying_key(&made.parameters.vk));
        for circuits in 1..=10 {
            let all: Vec<_> =
                (0..circuits).map(|i| Random { values: circuit.values + 10 * circuits + i, ..circuit }).collect();
            for (proof, circuit) in
                with_drop_in::create_random_proof_batch(all.clone(), &loaded, &mut rng).unwrap().iter().zip(&all)
            {
                let read = by_itself::Proof::read(bytes_of(|to| proof.write(to)).as_slice()).unwrap();
                assert!(by_itself::verify_proof(&verifier, &read, &circuit.publics()).unwrap(), "{circuit:?}");
                proofs += 1;
            }
            if proofs >= wanted {
                return;
            }
        }
    }
}

/// What is wrong with a file is an error of bellperson's, not a panic; a witness that does not satisfy the circuit is told with its reason,
/// and the next proof is right.
#[test]
fn what_is_wrong_is_told() {
    let circuit = Random { inputs: 1, aux: 9, rows: 6, in_a: Density::All, in_b: Density::Few, shape: 3, values: 9 };
    let made = Made::of(circuit);
    let bytes = std::fs::read(made.path()).unwrap();
    for cut in [0, 1, 95, 863, 864, 868, bytes.len() - 192, bytes.len() - 1] {
        let path = made.folder.path().join("cut.params");
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let error = with_drop_in::SuprasealParameters::<Bls12>::new(path).err().unwrap();
        assert!(error.to_string().contains("cut.params"), "{error}");
    }
    let loaded = made.load();
    // Another circuit's: more private wires, other densities.
    let other = Random { aux: 10, ..circuit };
    let (r, s) = (vec![Scalar::ONE], vec![Scalar::ONE]);
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        with_drop_in::create_proof_batch(vec![other], &loaded, r, s).map(|_| ())
    }));
    let told = *told.unwrap_err().downcast::<String>().unwrap();
    assert!(told.contains("wires") && !told.contains('\n'), "{told}");
    compare(circuit, 1, &made, &loaded, true);
}

/// The key that the tests of the reader have is what bellperson makes. `TANDEM_WRITE_PARAMS=1` writes it anew.
#[test]
fn the_key_of_the_reader_is_bellpersons() {
    let circuit = Random { inputs: 2, aux: 6, rows: 3, in_a: Density::Few, in_b: Density::Few, shape: 12, values: 9 };
    let made = std::fs::read(Made::of(circuit).path()).unwrap();
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../crates/formats/tests/data/bellperson.params");
    if std::env::var_os("TANDEM_WRITE_PARAMS").is_some() {
        std::fs::write(kept, &made).unwrap();
    }
    assert!(std::fs::read(kept).unwrap() == made, "{kept} is another");
}

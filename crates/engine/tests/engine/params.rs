//! Keys of bellperson through the engine: on every device, from files, bytes and a store, damaged, and with what bellperson's prover hands over.

use ark_ff::{AdditiveGroup, Field};
use std::fs;
use std::path::PathBuf;
use tandem_conformance::{Fault, Faulty};
use tandem_engine::*;
use tandem_formats::{LinearCombination, ParamsFile, R1cs, Wtns};
use tandem_ops::{Bls12_381, Curve};

type Fr = <Bls12_381 as Curve>::Fr;

/// A circuit, its witness and its key.
struct Files(tempfile::TempDir);

impl Files {
    fn new(log_size: u32) -> Self {
        crate::support::cache();
        let files = Self(tempfile::tempdir().unwrap());
        let circuit = Synthetic { curve: CurveId::Bls12_381, log_size, dense: 0.5 };
        circuit.write(&files.at("r1cs"), &files.at("wtns")).unwrap();
        let options = SetupOptions { seed: Some(format!("a test of {log_size}")) };
        let made = setup_params(&files.at("r1cs"), &files.at("params"), &options, &Silent).unwrap();
        assert_eq!(key_info(&files.at("params")).unwrap(), made.key);
        files
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn witness(&self) -> Witness {
        Witness::read(&self.at("wtns")).unwrap().with_circuit(&self.at("r1cs")).unwrap()
    }

    fn verifier(&self) -> Verifier {
        Verifier::from_json(export_vkey(&self.at("params")).unwrap().as_bytes()).unwrap()
    }
}

#[test]
fn proofs_verify_on_every_device() {
    let files = Files::new(6);
    let verifier = files.verifier();
    for (device, schedule) in [
        (DeviceChoice::Cpu, Schedule::default()),
        (DeviceChoice::Sim(2), Schedule::Together(Layout::Split)),
        (DeviceChoice::Sim(4), Schedule::Together(Layout::Roles)),
        (DeviceChoice::Sim(3), Schedule::Each),
    ] {
        for is_for_one in [false, true] {
            let engine = Engine::open_as(&device, schedule).unwrap();
            let engine = if is_for_one { engine.for_one_proof() } else { engine };
            for key in [
                engine.load_key(&files.at("params"), KeyCheck::Always, &Silent).unwrap(),
                engine.load_key(&files.at("params"), KeyCheck::Once, &Silent).unwrap(),
                engine.load_key_bytes(fs::read(files.at("params")).unwrap(), KeyCheck::Once, &Silent).unwrap(),
            ] {
                assert_eq!(key.info(), &key_info(&files.at("params")).unwrap());
                let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
                assert!(proved.fallback.is_none() && proved.remark.is_none());
                verifier.verify(&proved.publics, &proved.proof).unwrap();
                let staged = engine.stage(&key, files.witness(), &Silent).unwrap();
                let proved = engine.prove_staged(&key, staged, &Silent).unwrap();
                verifier.verify(&proved.publics, &proved.proof).unwrap();
            }
        }
    }
    let bytes = fs::read(files.at("params")).unwrap();
    assert_eq!(export_vkey_bytes(&bytes).unwrap(), export_vkey(&files.at("params")).unwrap());
    let prepared = Engine::open(&DeviceChoice::Cpu).unwrap();
    let prepared = prepared.prepare_key(&files.at("params"), KeyCheck::Always, &Silent).unwrap();
    assert_eq!(prepared.info, key_info(&files.at("params")).unwrap());
}

#[test]
fn a_store_loads_and_evicts() {
    let files = Files::new(5);
    let store = KeyStore::new(Engine::open(&DeviceChoice::Cpu).unwrap(), 1 << 30);
    store.add_file("made", &files.at("params")).unwrap();
    let prove = || {
        let key = store.get("made", &Silent).unwrap();
        let proved = store.engine().prove(&key, &files.witness(), &Silent).unwrap();
        files.verifier().verify(&proved.publics, &proved.proof).unwrap();
        assert!(!store.evict("made"), "it is in use");
    };
    prove();
    assert!(store.evict("made") && store.resident().is_empty());
    prove();
}

/// Witness files with the sides of the constraints: a proof needs no circuit, other programs find the witness, and what is damaged is refused.
#[test]
fn a_witness_with_sides_needs_no_circuit() {
    let files = Files::new(5);
    let mut bytes = Vec::new();
    files.witness().write_with_sides(&mut bytes).unwrap();
    let (path, cut) = (files.at("sides.wtns"), fs::metadata(files.at("wtns")).unwrap().len() as usize);
    fs::write(&path, &bytes).unwrap();
    // The plain witness, but for the number of sections, and the section behind it.
    let plain = fs::read(files.at("wtns")).unwrap();
    assert!(bytes[..8] == plain[..8] && bytes[8] == 3 && bytes[12..cut] == plain[12..]);
    assert!(Wtns::open(&path).unwrap().values[..] == Wtns::open(files.at("wtns")).unwrap().values[..]);
    assert!(Wtns::parse(&bytes).unwrap().values[..] == Wtns::parse(&plain).unwrap().values[..]);
    let mut again = Vec::new();
    files.witness().write_with_sides(&mut again).unwrap();
    assert!(again == bytes);
    assert!(Witness::read(&files.at("wtns")).unwrap().write_with_sides(&mut again).is_err());

    let engine = Engine::open(&DeviceChoice::Sim(2)).unwrap();
    let key = engine.load_key(&files.at("params"), KeyCheck::Once, &Silent).unwrap();
    let stream = |bytes: &[u8]| engine.read_witness_from(bytes, &path, key.info());
    let read = || engine.read_witness_for(&path, &key).unwrap();
    for witness in [read(), stream(&bytes).unwrap(), Witness::read_for(&path, key.info()).unwrap()] {
        let proved = engine.prove(&key, &witness, &Silent).unwrap();
        assert!(proved.fallback.is_none());
        files.verifier().verify(&proved.publics, &proved.proof).unwrap();
    }
    // A plain one is read, and proves with the circuit alone.
    let without = stream(&plain).unwrap();
    assert!(engine.prove(&key, &without, &Silent).unwrap_err().to_string().contains("--r1cs"));
    engine.prove(&key, &without.with_circuit(&files.at("r1cs")).unwrap(), &Silent).unwrap();

    let info = key.info();
    let start = cut + 12;
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let [rows, in_a, in_b] = [0, 4, 8].map(|at| word(start + at));
    assert!(rows <= info.domain && in_a > 2 && in_b > 2 && in_b < info.variables);
    let sides = start + 12 + 4 * (in_a + in_b);
    assert_eq!(bytes.len(), sides + 64 * rows);
    let with = |at: usize, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        bytes
    };
    let refused = |bytes: &[u8]| stream(bytes).map(drop).unwrap_err().to_string();
    for end in (cut..bytes.len()).step_by(7) {
        let why = refused(&bytes[..end]);
        assert!(why.contains("the file ends") || why.contains("bytes"), "{end}: {why}");
    }
    let most = info.domain as u32 + 1;
    for (bytes, parts) in [
        (with(start, &most.to_le_bytes()), ["expected at most", "rows"]),
        (with(start, &u32::MAX.to_le_bytes()), ["expected at most", "rows"]),
        (with(start + 4, &(info.variables as u32 + 1).to_le_bytes()), ["expected at most", "wires"]),
        (with(start + 8, &u32::MAX.to_le_bytes()), ["expected at most", "wires"]),
        (with(start, &(rows as u32 - 1).to_le_bytes()), ["expected", "rows"]),
        (with(start + 8, &(in_b as u32 - 1).to_le_bytes()), ["expected", "wires"]),
        (with(start + 12, &bytes[start + 16..start + 20]), ["points in A", ""]),
        (with(start + 12 + 4 * in_a, &u32::MAX.to_le_bytes()), ["points in B", ""]),
        (with(sides, &[255; 32]), ["row 0 of a", "modulus"]),
        (with(bytes.len() - 32, &[255; 32]), ["of b", "modulus"]),
        (with(cut + 4, &5u64.to_le_bytes()), ["expected 12 bytes or more", "sides"]),
        ([&with(8, &[4]), &bytes[cut..]].concat(), ["found it a second time", "sides"]),
        ([&bytes[..], &[0]].concat(), ["expected the end of the file", ""]),
    ] {
        let why = refused(&bytes);
        assert!(parts.iter().all(|part| why.contains(part)), "{parts:?}: {why}");
    }
    // Elements and wires that are others': no proof.
    for bytes in
        [with(sides, &bytes[sides + 32..sides + 64]), with(start + 12 + 4 * (in_a - 1), &u32::MAX.to_le_bytes())]
    {
        let proved = stream(&bytes).and_then(|witness| engine.prove(&key, &witness, &Silent));
        assert!(matches!(proved, Err(Error::Unsatisfied(_) | Error::BadInput(_))), "{proved:?}");
    }
    // A key that holds its circuit passes the sides over.
    let zkey = files.at("zkey");
    setup(&files.at("r1cs"), &zkey, &SetupOptions { seed: Some("a test".into()) }, &Silent).unwrap();
    let key = engine.load_key(&zkey, KeyCheck::Once, &Silent).unwrap();
    engine.prove(&key, &engine.read_witness_for(&path, &key).unwrap(), &Silent).unwrap();
}

/// A device that computes wrongly: the CPU makes the proof, and it is reported.
#[test]
fn the_cpu_takes_over() {
    let files = Files::new(5);
    for fault in [Fault::UploadBeside, Fault::Gather, Fault::Ntt, Fault::MsmG1] {
        let engine = Engine::on_backend(Faulty::new(2, fault), true).unwrap();
        let key = engine.load_key(&files.at("params"), KeyCheck::Once, &Silent).unwrap();
        let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
        assert!(matches!(proved.fallback, Some(Fallback::WrongProof(_))), "{fault:?}: {:?}", proved.fallback);
        files.verifier().verify(&proved.publics, &proved.proof).unwrap();
        assert_eq!(engine.wrong_proofs(), 1);
    }
}

fn refused(files: &Files, bytes: &[u8]) -> String {
    let path = files.at("bad.params");
    fs::write(&path, bytes).unwrap();
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    let of_file = engine.load_key(&path, KeyCheck::Once, &Silent).map(|_| ()).unwrap_err();
    let of_bytes = engine.load_key_bytes(bytes, KeyCheck::Once, &Silent).map(|_| ()).unwrap_err();
    for error in [&of_file, &of_bytes] {
        assert!(error.code() == ErrorCode::BadInput && !error.to_string().contains('\n'), "{error}");
    }
    let message = of_file.to_string();
    assert!(message.contains("bad.params"), "{message}");
    message
}

#[test]
fn damaged_files_are_refused() {
    let files = Files::new(5);
    let bytes = fs::read(files.at("params")).unwrap();
    let outline = ParamsFile::open(files.at("params")).unwrap().outline;
    for cut in [864, 867, 868, outline.h.bytes.start, outline.b2.bytes.start + 5, bytes.len() - 192, bytes.len() - 1] {
        assert!(refused(&files, &bytes[..cut]).contains("expected"));
    }
    for section in [&outline.h, &outline.l, &outline.a, &outline.b1, &outline.b2] {
        let size = section.bytes.len() / section.points as usize;
        let last = section.bytes.end - size;
        let mut bytes = bytes.clone();
        // Off the curve.
        bytes[last + size - 1] ^= 1;
        let message = refused(&files, &bytes);
        let named = format!("section {}", section.name);
        assert!(message.contains(&named) && message.contains("curve"), "{message}");
        // Another point of the group.
        bytes.copy_within(section.bytes.start..section.bytes.start + size, last);
        match section.name {
            // Only the two together say which it is.
            "B1" | "B2" => assert!(refused(&files, &bytes).contains("do not belong together")),
            _ => {}
        }
        bytes[last] = 0x40;
        bytes[last + 1..last + size].fill(0);
        let message = refused(&files, &bytes);
        assert!(message.contains("infinity") && message.contains(section.name), "{message}");
    }
    // beta in G1 is another's.
    let mut other = bytes.clone();
    other.copy_within(0..96, 96);
    assert!(refused(&files, &other).contains("beta"));
}

/// A file that is replaced after it was loaded is not used for what it was.
#[test]
fn a_key_that_changes_is_noticed() {
    let (files, other) = (Files::new(5), Files::new(6));
    let store = KeyStore::new(Engine::open(&DeviceChoice::Cpu).unwrap(), 1 << 30);
    store.add_file("made", &files.at("params")).unwrap();
    drop(store.get("made", &Silent).unwrap());
    assert!(store.evict("made"));
    fs::copy(other.at("params"), files.at("params")).unwrap();
    let error = store.get("made", &Silent).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("changed"), "{error}");
}

/// What bellperson's prover computes, in memory of its own.
#[derive(Clone)]
struct Owned {
    inputs: Vec<[u64; 4]>,
    aux: Vec<[u64; 4]>,
    sides: [Vec<[u64; 4]>; 3],
    a_aux: Vec<u64>,
    b_inputs: Vec<u64>,
    b_aux: Vec<u64>,
    blinding: [[u64; 4]; 2],
}

fn set(words: &mut Vec<u64>, bit: usize) {
    words.resize(words.len().max(bit / 64 + 1), 0);
    words[bit / 64] |= 1 << (bit % 64);
}

impl Owned {
    fn of(files: &Files) -> Self {
        let bytes = fs::read(files.at("r1cs")).unwrap();
        let circuit = R1cs::parse(&bytes).unwrap();
        let wtns = fs::read(files.at("wtns")).unwrap();
        let values: Vec<Fr> =
            Wtns::parse(&wtns).unwrap().values.iter().map(|&x| Bls12_381::from_canonical(x).unwrap()).collect();
        let publics = circuit.header.n_public() as usize;
        let mont = |x: Fr| Bls12_381::mont(x).0;
        let limbs = |values: &[Fr]| values.iter().map(|&x| mont(x)).collect::<Vec<_>>();
        let (inputs, aux) = (limbs(&values[..=publics]), limbs(&values[publics + 1..]));
        let mut made = Owned {
            sides: Default::default(),
            a_aux: vec![0; aux.len().div_ceil(64)],
            b_inputs: vec![0; inputs.len().div_ceil(64)],
            b_aux: vec![0; aux.len().div_ceil(64)],
            inputs,
            aux,
            blinding: [mont(Fr::from(11u64)), mont(Fr::from(12u64))],
        };
        for constraint in circuit.constraints() {
            let product = |lc: LinearCombination<'_>| -> Fr {
                lc.iter().map(|(wire, k)| Bls12_381::from_canonical(k).unwrap() * values[wire as usize]).sum()
            };
            for (side, lc) in made.sides.iter_mut().zip([constraint.a, constraint.b, constraint.c]) {
                side.push(mont(product(lc)));
            }
            for (wire, _) in constraint.a.iter().filter(|(wire, _)| *wire as usize > publics) {
                set(&mut made.a_aux, wire as usize - publics - 1);
            }
            for (wire, _) in constraint.b.iter() {
                match (wire as usize).checked_sub(publics + 1) {
                    Some(aux) => set(&mut made.b_aux, aux),
                    None => set(&mut made.b_inputs, wire as usize),
                }
            }
        }
        for &input in &made.inputs {
            for (side, value) in made.sides.iter_mut().zip([input, mont(Fr::ZERO), mont(Fr::ZERO)]) {
                side.push(value);
            }
        }
        made
    }

    fn view(&self) -> Assignment<'_> {
        let [a, b, c] = &self.sides;
        Assignment {
            inputs: &self.inputs,
            aux: &self.aux,
            a,
            b,
            c,
            a_aux: Density { words: &self.a_aux, bits: self.aux.len() },
            b_inputs: Density { words: &self.b_inputs, bits: self.inputs.len() },
            b_aux: Density { words: &self.b_aux, bits: self.aux.len() },
            blinding: self.blinding,
        }
    }
}

#[test]
fn what_bellperson_hands_over_is_proved_with_its_r_and_s() {
    let files = Files::new(7);
    let owned = Owned::of(&files);
    let mut first = None;
    for device in [DeviceChoice::Cpu, DeviceChoice::Sim(3)] {
        let engine = Engine::open(&device).unwrap();
        let key = engine.load_key(&files.at("params"), KeyCheck::Once, &Silent).unwrap();
        for _ in 0..2 {
            let witness = engine.assignment(&owned.view()).unwrap();
            let proved = engine.prove(&key, &witness, &Silent).unwrap();
            files.verifier().verify(&proved.publics, &proved.proof).unwrap();
            // The same r and s, the same proof.
            assert_eq!(first.get_or_insert(proved.proof.clone()), &proved.proof);
        }
        let mut other = owned.clone();
        other.blinding[1][0] ^= 1;
        let proved = engine.prove(&key, &engine.assignment(&other.view()).unwrap(), &Silent).unwrap();
        files.verifier().verify(&proved.publics, &proved.proof).unwrap();
        assert_ne!(first.as_ref(), Some(&proved.proof));
        // Bits behind the last of a density do not count.
        let mut other = owned.clone();
        let (bits, words) = (other.aux.len(), other.a_aux.len());
        assert!(bits % 64 != 0);
        other.a_aux[words - 1] |= u64::MAX << (bits % 64);
        other.a_aux.push(u64::MAX);
        let proved = engine.prove(&key, &engine.assignment(&other.view()).unwrap(), &Silent).unwrap();
        assert_eq!(first.as_ref(), Some(&proved.proof));
    }
}

#[test]
fn what_does_not_belong_together_is_told() {
    let files = Files::new(5);
    let owned = Owned::of(&files);
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    let key = engine.load_key(&files.at("params"), KeyCheck::Once, &Silent).unwrap();
    let told = |change: &dyn Fn(&mut Owned)| {
        let mut owned = owned.clone();
        change(&mut owned);
        let made = engine.assignment(&owned.view());
        let error = made.and_then(|witness| engine.prove(&key, &witness, &Silent)).map(|_| ()).unwrap_err();
        assert!(!error.to_string().contains('\n'), "{error}");
        (error.code(), error.to_string())
    };
    let all_ones = [u64::MAX; 4];
    let bad = ErrorCode::BadInput;
    for (change, code, says) in [
        ((&|o: &mut Owned| o.sides[1].truncate(1)) as &dyn Fn(&mut Owned), bad, "b has"),
        (&|o| o.sides[2].truncate(1), bad, "c has"),
        (&|o| o.inputs[1] = all_ones, bad, "value 1 of the input assignment"),
        (&|o| o.aux[3] = all_ones, bad, "value 3 of the aux assignment"),
        (&|o| o.sides[0][2] = all_ones, bad, "row 2 of a, b or c"),
        (&|o| o.blinding[0] = all_ones, bad, "r or s"),
        (&|o| o.inputs[0] = [0; 4], bad, "is not 1"),
        (&|o| o.sides[2][5][0] ^= 1, ErrorCode::Unsatisfied, "constraint 5 does not hold"),
        (&|o| o.a_aux.clear(), bad, "A: a density of"),
        (&|o| o.b_aux.clear(), bad, "B of aux: a density of"),
        (&|o| o.a_aux[0] ^= 1 << 5, bad, "named in A"),
        (&|o| o.b_aux[0] ^= 1 << 5, bad, "named in B"),
        (&|o| o.aux.truncate(o.aux.len() - 1), bad, "wires"),
        (&|o| o.sides.iter_mut().for_each(|side| side.resize(33, [0; 4])), bad, "33 rows; the key's domain has 32"),
    ] {
        let (found, message) = told(change);
        assert!(found == code && message.contains(says), "{says}: {found:?} {message}");
    }
    // A private value that no row was computed with: every row holds, and the proof does not.
    let (code, message) =
        told(&|o| o.aux[4] = Bls12_381::mont(Bls12_381::from_mont(tandem_ops::Mont(o.aux[4])) + Fr::ONE).0);
    assert!(code == ErrorCode::Unsatisfied && message.contains("no proof passes its check"), "{message}");
    // The next proof is right.
    let proved = engine.prove(&key, &engine.assignment(&owned.view()).unwrap(), &Silent).unwrap();
    files.verifier().verify(&proved.publics, &proved.proof).unwrap();
    // A witness alone is not enough.
    let error = engine.prove(&key, &Witness::read(&files.at("wtns")).unwrap(), &Silent).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("params: the key has no matrices") && !message.contains("wtns"), "{message}");
}

/// The largest partition of Filecoin's stays on a GPU of 80 GB, of which 79.1 GiB are free, by what sums say that they take there; one of 2^26
/// rows comes in few pieces on a card of 16 GB.
#[test]
fn partitions_of_filecoin_are_planned() {
    use tandem_groth16::plan::{memory_plan, schedule, Planned, PointBytes};
    use tandem_groth16::{Queries, Shape};
    let of = |log: u32, inputs: usize, aux: usize, in_a: usize, in_b: usize| {
        Queries::picked(
            Shape { variables: inputs + aux, publics: inputs - 1, domain: 1 << log },
            inputs + in_a,
            1 + in_b,
        )
    };
    let porep = of(27, 328, 130_169_893, 129_753_292, 33_112_281);
    let small = of(20, 328, 1_016_953, 1_013_698, 258_690);
    let text = of(26, 328, 25_165_403, 25_165_403, 11_671_520);
    for (queries, gib, points_stay, most_pieces) in [
        (porep, 79.1, true, 8),
        (porep, 139.0, true, 1),
        (porep, 24.0, false, 64),
        (text, 79.1, true, 1),
        (text, 16.0, false, 16),
        // A limit so low that a GPU makes no rounds: nothing is kept free for them.
        (small, 0.684, true, 4),
    ] {
        let schedule = schedule(CurveId::Bls12_381, queries, 1, Layout::Auto);
        let of = Planned {
            queries,
            schedule: &schedule,
            points: PointBytes { g1: 96, g2: 192 },
            sum: &tandem_ops_cuda::sum_bytes::<Bls12_381>,
            may_wait: true,
            may_cut: true,
        };
        let plan = memory_plan(&of, (Lane(0), (gib * f64::from(1 << 30)) as u64));
        println!("{plan}\n{:?}", plan.pieces);
        assert!(plan.fits() && plan.points_stay == points_stay && plan.most_pieces() <= most_pieces, "{plan}");
        assert!(plan.ahead.is_some() || !points_stay, "{plan}");
    }
}

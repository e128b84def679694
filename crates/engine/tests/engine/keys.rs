//! Keys, proofs and files end to end, and what happens when a device errs.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tandem_engine::{
    check_witness, export_vkey, setup, verify, CurveId, DeviceChoice, Engine, Error, ErrorCode, Fallback, Key,
    KeyCheck, Layout, Progress, Protocol, Schedule, SetupOptions, Silent, Synthetic, SyntheticKey, Witness,
};
use tandem_ops::cpu::Cpu;
use tandem_ops::{
    Backend, BatchInverse, Bn254, Canonical, Curve, DeviceKind, Gather, Group, Info, Lane, Mont, Msm, MsmRequest, Ntt,
    NttField, NttOp, NttProducts, Pending, Pieces, PlonkRows, PointNtt, QuotientAt, QuotientRows, Result,
    ScalarRecoding, Scalars, Scan, SpMv, SparseRows, Stored, Timeline, VecOps, Wire,
};

/// A folder with the files of a synthetic circuit and its key.
struct Files(tempfile::TempDir);

impl Files {
    fn new(curve: CurveId) -> Self {
        crate::support::cache();
        let files = Self(tempfile::tempdir().unwrap());
        let circuit = Synthetic { curve, log_size: 5, dense: 0.5 };
        circuit.write(&files.at("r1cs"), &files.at("wtns")).unwrap();
        let options = SetupOptions { seed: Some("a test".into()) };
        let report = setup(&files.at("r1cs"), &files.at("zkey"), &options, &Silent).unwrap();
        assert_eq!((report.constraints, report.key.domain, report.key.publics), (30, 32, 1));
        assert_eq!(report.key.file_bytes, fs::metadata(files.at("zkey")).unwrap().len());
        fs::write(files.at("vkey"), export_vkey(&files.at("zkey")).unwrap()).unwrap();
        files
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The key on an engine. Its points have been checked on the CPU, so that the device's sums are those of proofs.
    fn key(&self, engine: &Engine) -> Key {
        let cpu = Engine::open(&DeviceChoice::Cpu).unwrap();
        cpu.load_key(&self.at("zkey"), KeyCheck::Once, &Silent).unwrap();
        engine.load_key(&self.at("zkey"), KeyCheck::Once, &Silent).unwrap()
    }

    fn witness(&self) -> Witness {
        Witness::read(&self.at("wtns")).unwrap()
    }

    /// The values of the witness, changed by `change`.
    fn changed(&self, change: impl FnOnce(&mut Vec<[u64; 4]>)) -> Vec<[u64; 4]> {
        let bytes = fs::read(self.at("wtns")).unwrap();
        // The values end the file.
        let mut values: Vec<[u64; 4]> =
            bytes[bytes.len() % 32..].chunks_exact(32).map(bytemuck::pod_read_unaligned).collect();
        let one = values.iter().position(|v| *v == [1, 0, 0, 0]).unwrap();
        values.drain(..one);
        change(&mut values);
        values
    }
}

const CURVES: [CurveId; 2] = [CurveId::Bn254, CurveId::Bls12_381];
/// All lanes on one proof, however small.
const ROLES: Schedule = Schedule::Together(Layout::Roles);

/// A key in memory and one from a file give equal counts; a witness of the other curve is refused.
#[test]
fn digits_of_a_proof_are_counted() {
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    for curve in CURVES {
        let files = Files::new(curve);
        let from_file = files.key(&engine).digits(&files.witness()).unwrap();
        let made = SyntheticKey::make(Synthetic { curve, log_size: 5, dense: 0.5 }, &Silent).unwrap();
        let (key, witness) = engine.load_synthetic(&made, &Silent).unwrap();
        assert_eq!(key.digits(&witness).unwrap(), from_file);
        // Half of 29 wires are of full size.
        let at_20_bits = from_file.l[20 - *tandem_engine::digits::WINDOW_BITS.start() as usize];
        assert!((160..260).contains(&at_20_bits), "{from_file:?}");
        let other = Files::new(CURVES[usize::from(curve == CURVES[0])]).witness();
        let refused = key.digits(&other).unwrap_err();
        assert!(refused.exit_status() == 2 && refused.to_string().contains("a witness for"), "{refused}");
    }
}

/// More callers than teams, each with its own proof; every team makes some of them.
#[test]
fn each_lane_makes_proofs_of_its_own() {
    for curve in CURVES {
        let files = Files::new(curve);
        let engine = Engine::open_as(&DeviceChoice::Sim(3), Schedule::Each).unwrap();
        assert_eq!(engine.report().lanes.len(), 3);
        let key = files.key(&engine);
        let lanes: std::collections::HashSet<usize> = std::thread::scope(|scope| {
            let prove = || {
                let witness = files.witness();
                let proofs = (0..4).map(|_| engine.prove(&key, &witness, &Silent).unwrap());
                proofs.flat_map(|proved| proved.spans).map(|span| span.lane.0).collect::<Vec<_>>()
            };
            let callers: Vec<_> = (0..5).map(|_| scope.spawn(prove)).collect();
            callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
        });
        assert!(lanes.iter().all(|&lane| lane < 3) && lanes.len() > 1, "{lanes:?}");
        assert_eq!(engine.wrong_proofs(), 0);
    }
}

#[test]
fn files_are_proved_and_verified() {
    for curve in CURVES {
        let files = Files::new(curve);
        for device in ["cpu", "sim:1", "sim:3"] {
            let engine = Engine::open_as(&device.parse().unwrap(), ROLES).unwrap();
            let key = files.key(&engine);
            assert_eq!((key.info().curve, key.info().variables), (curve, 32));
            let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
            assert_eq!(proved.fallback, None);
            let names: Vec<_> = proved.stages.iter().map(|s| s.name).collect();
            for name in ["read witness", "sparse product A", "MSM B2", "MSM H", "verify"] {
                assert!(names.contains(&name), "{names:?}");
            }
            fs::write(files.at("proof"), proved.proof.to_json()).unwrap();
            fs::write(files.at("public"), proved.publics.to_json()).unwrap();
            verify(&files.at("vkey"), &files.at("public"), &files.at("proof")).unwrap();

            // The last digit of the public value.
            let mut other = proved.publics.to_json().into_bytes();
            *other.iter_mut().rfind(|byte| byte.is_ascii_digit()).unwrap() ^= 1;
            fs::write(files.at("public"), other).unwrap();
            let refused = verify(&files.at("vkey"), &files.at("public"), &files.at("proof")).unwrap_err();
            assert!(matches!(refused, Error::InvalidProof(_)), "{refused}");
            fs::write(files.at("public"), "[]").unwrap();
            let refused = verify(&files.at("vkey"), &files.at("public"), &files.at("proof")).unwrap_err();
            assert!(matches!(&refused, Error::BadInput(text) if text.contains("0 public values")), "{refused}");
        }
    }
}

#[test]
fn the_same_seed_makes_the_same_file() {
    let files = Files::new(CurveId::Bn254);
    let make = |seed: Option<&str>| {
        let options = SetupOptions { seed: seed.map(String::from) };
        setup(&files.at("r1cs"), &files.at("other"), &options, &Silent).unwrap();
        fs::read(files.at("other")).unwrap()
    };
    let first = fs::read(files.at("zkey")).unwrap();
    assert_eq!(make(Some("a test")), first);
    assert_ne!(make(Some("another")), first);
    assert_ne!(make(None), make(None));
}

/// Says stop at the n-th question.
struct StopAt(AtomicU32);

impl Progress for StopAt {
    fn cancelled(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

#[test]
fn an_interrupted_setup_leaves_no_file() {
    let files = Files::new(CurveId::Bn254);
    for questions in [0, 1, 4] {
        let stop = StopAt(AtomicU32::new(questions));
        let error = setup(&files.at("r1cs"), &files.at("late"), &SetupOptions::default(), &stop).unwrap_err();
        assert!(matches!(error, Error::Interrupted) && error.exit_status() == 130);
        let mut names: Vec<_> =
            fs::read_dir(files.0.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["r1cs", "vkey", "wtns", "zkey"]);
    }
    let stop = StopAt(AtomicU32::new(0));
    assert!(matches!(check_witness(&files.at("r1cs"), &files.at("wtns"), None, &stop), Err(Error::Interrupted)));
}

#[test]
fn witnesses_at_fault_are_named() {
    let files = Files::new(CurveId::Bn254);
    for device in ["cpu", "sim:2"] {
        let engine = Engine::open_as(&device.parse().unwrap(), ROLES).unwrap();
        let key = files.key(&engine);
        let refused = |values: Vec<[u64; 4]>, curve, reason: &str| {
            let witness = Witness::from_values(curve, values).unwrap();
            let error = engine.prove(&key, &witness, &Silent).err().unwrap();
            assert!(error.to_string().contains(reason), "{error}");
            assert_eq!(error.exit_status(), 2);
            assert_eq!(error.code() == ErrorCode::Unsatisfied, reason.contains("satisfy"));
        };
        let bn254 = CurveId::Bn254;
        refused(files.changed(|v| v[9][0] ^= 2), bn254, "does not satisfy the circuit");
        refused(files.changed(|v| v[1][0] ^= 1), bn254, "does not satisfy the circuit");
        refused(files.changed(|v| v.truncate(31)), bn254, "31 values");
        refused(files.changed(|_| ()), CurveId::Bls12_381, "a witness for bls12-381; the key is for bn254");
        assert_eq!(engine.wrong_proofs(), 0);
        // What was changed above is right as it stands.
        let good = Witness::from_values(bn254, files.changed(|_| ())).unwrap();
        engine.prove(&key, &good, &Silent).unwrap();
    }
    let above = <<Bn254 as Curve>::Fr as ark_ff::PrimeField>::MODULUS.0;
    for (values, reason) in [
        (vec![[1, 0, 0, 0], above], "value 1 of the witness is not below the modulus"),
        (vec![[2, 0, 0, 0]], "value 0 of the witness is not 1"),
        (vec![], "value 0 of the witness is not 1"),
    ] {
        let error = Witness::from_values(CurveId::Bn254, values).err().unwrap();
        assert!(error.to_string().contains(reason) && error.exit_status() == 2, "{error}");
    }
}

#[test]
fn a_key_with_a_bad_point_is_refused_every_time() {
    let files = Files::new(CurveId::Bn254);
    let mut bytes = fs::read(files.at("zkey")).unwrap();
    // Section 7 (B2) is the last but one; the last is section 10, with 12 bytes of head and 68 of content.
    let last_point = bytes.len() - 80 - 1;
    bytes[last_point - 40] ^= 1;
    fs::write(files.at("zkey"), bytes).unwrap();
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    for check in [KeyCheck::Once, KeyCheck::Once, KeyCheck::Always] {
        let error = engine.load_key(&files.at("zkey"), check, &Silent).err().unwrap();
        assert!(error.to_string().contains("section B2 (7) is not on the curve"), "{error}");
        assert_eq!(error.exit_status(), 2);
    }
}

#[test]
fn files_that_are_missing_or_of_another_kind_are_named() {
    let files = Files::new(CurveId::Bn254);
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    for (name, errors) in [("missing", "missing"), ("wtns", "wtns"), ("r1cs", "r1cs"), ("vkey", "vkey")] {
        let error = engine.load_key(&files.at(name), KeyCheck::Once, &Silent).err().unwrap();
        assert!(error.to_string().contains(errors) && error.exit_status() == 2, "{error}");
    }
    for name in ["missing", "zkey", "r1cs"] {
        let error = Witness::read(&files.at(name)).err().unwrap();
        assert!(error.to_string().contains(name) && error.exit_status() == 2, "{error}");
    }
    let error = setup(&files.at("wtns"), &files.at("new"), &SetupOptions::default(), &Silent).unwrap_err();
    assert!(error.to_string().contains("wtns") && !files.at("new").exists(), "{error}");
    let error = setup(&files.at("r1cs"), &files.at("no/new"), &SetupOptions::default(), &Silent).unwrap_err();
    assert!(error.to_string().contains("no/new") && error.exit_status() == 2, "{error}");
}

#[test]
fn sizes_out_of_range_are_refused() {
    for (log_size, dense) in [(1, 0.5), (25, 0.5), (5, -0.1), (5, 1.5), (5, f64::NAN)] {
        let circuit = Synthetic { curve: CurveId::Bn254, log_size, dense };
        assert_eq!(SyntheticKey::make(circuit, &Silent).err().unwrap().exit_status(), 2);
    }
}

#[test]
fn synthetic_keys_prove_without_files() {
    let protocols = [Protocol::Groth16, Protocol::Plonk, Protocol::Fflonk];
    for (curve, protocol) in CURVES.into_iter().flat_map(|curve| protocols.map(|protocol| (curve, protocol))) {
        let made = SyntheticKey::make_for(protocol, Synthetic { curve, log_size: 6, dense: 0.3 }, &Silent);
        if (curve, protocol) == (CurveId::Bls12_381, Protocol::Fflonk) {
            let refused = made.err().unwrap();
            assert!(refused.exit_status() == 2 && refused.to_string().contains("over BN254"), "{refused}");
            continue;
        }
        let made = made.unwrap();
        for proofs in [1, 100, 1_000_000] {
            let engine = Engine::open_as(&DeviceChoice::Sim(2), ROLES).unwrap().for_proofs(proofs);
            let (key, witness) = engine.load_synthetic(&made, &Silent).unwrap();
            let proved = engine.prove(&key, &witness, &Silent).unwrap();
            assert_eq!((key.info().protocol, key.info().domain, proved.fallback), (protocol, 64, None));
            // A PLONK key for many proofs has points of the Lagrange basis.
            let by_values = key.plan().is_some_and(|plan| plan.contains("columns by their values"));
            assert_eq!(by_values, protocol == Protocol::Plonk && proofs == 1_000_000);
        }
    }
}

/// A CPU that calls itself a GPU and adds the generator to some of its sums, or fails.
struct Faulty {
    cpu: Cpu,
    sums: AtomicU64,
    /// Whether the sum with this number, counted from 0, is wrong.
    wrong: fn(u64) -> bool,
    /// Whether what is too much lies outside the subgroup, where there is such a point.
    outside: bool,
    fails: Fails,
}

#[derive(Clone, Copy, PartialEq)]
enum Fails {
    Never,
    /// There is no memory for the key.
    Loading,
    /// The sums of every proof end with an error.
    Proving,
    /// So does the wait for the device's last work, when the proof is there.
    Ending,
}

impl Faulty {
    fn new(wrong: fn(u64) -> bool) -> Self {
        Self { cpu: Cpu::new(1), sums: AtomicU64::new(0), wrong, outside: false, fails: Fails::Never }
    }

    fn failing(fails: Fails) -> Self {
        Self { fails, ..Self::new(|_| false) }
    }
}

impl Backend for Faulty {
    type Buf<T: Wire> = <Cpu as Backend>::Buf<T>;
    fn info(&self) -> Info {
        Info { kind: DeviceKind::Cuda, lane_names: vec!["Faulty GPU (cuda:7)".into()], ..self.cpu.info() }
    }
    fn lanes(&self) -> usize {
        1
    }
    fn alloc<T: Wire>(&self, lane: Lane, len: usize) -> Result<Self::Buf<T>> {
        self.cpu.alloc(lane, len)
    }
    fn write<T: Wire>(&self, dst: &mut Self::Buf<T>, at: usize, src: &[T]) -> Result<()> {
        self.cpu.write(dst, at, src)
    }
    fn copy<T: Wire>(&self, src: &Self::Buf<T>, range: Range<usize>, lane: Lane) -> Result<Self::Buf<T>> {
        self.cpu.copy(src, range, lane)
    }
    fn join<T: Wire>(&self, joins: &[(Lane, Pieces<'_, Self::Buf<T>>)]) -> Result<Vec<Self::Buf<T>>> {
        self.cpu.join(joins)
    }
    fn download<T: Wire>(&self, src: &Self::Buf<T>) -> Result<Pending<Vec<T>>> {
        self.cpu.download(src)
    }
    fn synchronize(&self) -> Result<()> {
        if self.fails == Fails::Ending && self.sums.load(Ordering::Relaxed) > 0 {
            let (device, code_name, text) =
                ("Faulty GPU".into(), "cudaErrorIllegalAddress".into(), "an illegal access".into());
            return Err(tandem_ops::Error::Device { op: "synchronize", device, code: 700, code_name, text });
        }
        self.cpu.synchronize()
    }
    fn timeline(&self) -> Timeline {
        self.cpu.timeline()
    }
}

impl Gather for Faulty {
    type Map = <Cpu as Gather>::Map;
    fn load_map(&self, lane: Lane, map: &[u32], bound: usize) -> Result<Self::Map> {
        self.cpu.load_map(lane, map, bound)
    }
    fn gather<T: Wire>(&self, map: &Self::Map, from: &Self::Buf<T>, to: &mut Self::Buf<T>) -> Result<()> {
        self.cpu.gather(map, from, to)
    }
}

impl<F: NttField> Ntt<F> for Faulty {
    fn ntt_batch(&self, data: &mut Self::Buf<F::Element>, count: usize, op: NttOp<F::Element>) -> Result<()> {
        Ntt::<F>::ntt_batch(&self.cpu, data, count, op)
    }
}

impl<C: Curve> NttProducts<C> for Faulty {}

impl<C: Curve> VecOps<C> for Faulty {
    fn add(&self, a: &mut Self::Buf<Mont>, b: &Self::Buf<Mont>) -> Result<()> {
        VecOps::<C>::add(&self.cpu, a, b)
    }
    fn sub(&self, a: &mut Self::Buf<Mont>, b: &Self::Buf<Mont>) -> Result<()> {
        VecOps::<C>::sub(&self.cpu, a, b)
    }
    fn mul(&self, a: &mut Self::Buf<Mont>, b: &Self::Buf<Mont>) -> Result<()> {
        VecOps::<C>::mul(&self.cpu, a, b)
    }
    fn scale(&self, a: &mut Self::Buf<Mont>, k: Mont) -> Result<()> {
        VecOps::<C>::scale(&self.cpu, a, k)
    }
    fn mul_sub(&self, a: &mut Self::Buf<Mont>, b: &Self::Buf<Mont>, c: &Self::Buf<Mont>) -> Result<()> {
        VecOps::<C>::mul_sub(&self.cpu, a, b, c)
    }
    fn add_scaled(
        &self,
        a: &mut Self::Buf<Mont>,
        first: usize,
        step: usize,
        b: &Self::Buf<Mont>,
        k: Mont,
    ) -> Result<()> {
        VecOps::<C>::add_scaled(&self.cpu, a, first, step, b, k)
    }
    fn combined(&self, len: usize, terms: &[(&Self::Buf<Mont>, Mont)]) -> Result<Self::Buf<Mont>> {
        VecOps::<C>::combined(&self.cpu, len, terms)
    }
    fn to_canonical(&self, a: &Self::Buf<Mont>, out: &mut Self::Buf<Canonical>) -> Result<()> {
        VecOps::<C>::to_canonical(&self.cpu, a, out)
    }
    fn to_mont(&self, a: &Self::Buf<Canonical>, out: &mut Self::Buf<Mont>) -> Result<()> {
        VecOps::<C>::to_mont(&self.cpu, a, out)
    }
}

impl<C: Curve> PlonkRows<C> for Faulty {
    fn gate_rows(&self, columns: [&Self::Buf<Mont>; 3], selectors: [&Self::Buf<Mont>; 5]) -> Result<Self::Buf<Mont>> {
        PlonkRows::<C>::gate_rows(&self.cpu, columns, selectors)
    }
    fn permuted_rows(
        &self,
        columns: [&Self::Buf<Mont>; 3],
        places: [&Self::Buf<Mont>; 3],
        factors: [Mont; 3],
        gamma: Mont,
    ) -> Result<Self::Buf<Mont>> {
        PlonkRows::<C>::permuted_rows(&self.cpu, columns, places, factors, gamma)
    }
    fn quotient_rows(&self, of: &QuotientRows<'_, Self::Buf<Mont>>, at: &QuotientAt) -> Result<Self::Buf<Mont>> {
        PlonkRows::<C>::quotient_rows(&self.cpu, of, at)
    }
}

impl<C: Curve> BatchInverse<C> for Faulty {
    fn batch_inverse(&self, data: &mut Self::Buf<Mont>) -> Result<()> {
        BatchInverse::<C>::batch_inverse(&self.cpu, data)
    }
}

impl<C: Curve> PointNtt<C> for Faulty {
    fn lagrange_points(&self, points: &mut Self::Buf<<C::G1 as Group>::Point>) -> Result<()> {
        PointNtt::<C>::lagrange_points(&self.cpu, points)
    }
}

impl<C: Curve> Scan<C> for Faulty {
    fn prefix_product(&self, data: &mut Self::Buf<Mont>) -> Result<Pending<Mont>> {
        Scan::<C>::prefix_product(&self.cpu, data)
    }
    fn evaluate(&self, coefficients: &Self::Buf<Mont>, x: Mont) -> Result<Pending<Mont>> {
        Scan::<C>::evaluate(&self.cpu, coefficients, x)
    }
    fn divide(&self, coefficients: &mut Self::Buf<Mont>, m: usize, b: Mont) -> Result<()> {
        Scan::<C>::divide(&self.cpu, coefficients, m, b)
    }
}

impl<C: Curve> SpMv<C> for Faulty {
    type Matrix = <Cpu as SpMv<C>>::Matrix;
    fn load_matrix(&self, lane: Lane, matrix: &SparseRows) -> Result<Self::Matrix> {
        if self.fails == Fails::Loading {
            return Err(tandem_ops::Error::OutOfMemory {
                op: "load matrix",
                device: "Faulty GPU".into(),
                wanted: 9,
                free: 7,
            });
        }
        SpMv::<C>::load_matrix(&self.cpu, lane, matrix)
    }
    fn spmv(&self, matrix: &Self::Matrix, x: &Self::Buf<Canonical>, out: &mut Self::Buf<Mont>) -> Result<()> {
        SpMv::<C>::spmv(&self.cpu, matrix, x, out)
    }
}

impl<C: Curve> ScalarRecoding<C> for Faulty {
    type Plan = <Cpu as ScalarRecoding<C>>::Plan;
    type Entries = <Cpu as ScalarRecoding<C>>::Entries;
    fn plan(&self, lane: Lane, request: &MsmRequest) -> Result<Self::Plan> {
        ScalarRecoding::<C>::plan(&self.cpu, lane, request)
    }
    fn recode(&self, plan: &Self::Plan, scalars: Scalars<'_, Self>) -> Result<Self::Entries> {
        let scalars = match scalars {
            Scalars::Canonical(s) => Scalars::Canonical(s),
            Scalars::Mont(s) => Scalars::Mont(s),
        };
        ScalarRecoding::<C>::recode(&self.cpu, plan, scalars)
    }
}

impl<G: Group> Msm<G> for Faulty {
    type Bases = <Cpu as Msm<G>>::Bases;
    fn load(&self, lane: Lane, plan: &Self::Plan, set: usize, points: Stored<'_, G::Point>) -> Result<Self::Bases> {
        Msm::<G>::load(&self.cpu, lane, plan, set, points)
    }
    fn msm(&self, bases: &Self::Bases, digits: &Self::Entries, timeline: &Timeline) -> Result<Pending<G::Ark>> {
        if self.fails == Fails::Proving {
            let (device, code_name, text) =
                ("Faulty GPU".into(), "cudaErrorECCUncorrectable".into(), "a bit error".into());
            return Err(tandem_ops::Error::Device { op: "msm", device, code: 214, code_name, text });
        }
        let sum = Msm::<G>::msm(&self.cpu, bases, digits, timeline)?.wait()?;
        let wrong = (self.wrong)(self.sums.fetch_add(1, Ordering::Relaxed));
        Ok(Pending::ready(if wrong { sum + too_much::<G>(self.outside) } else { sum }))
    }
}

/// The generator, or (0, 2), which has order 3 in G1 of BLS12-381.
fn too_much<G: Group>(outside: bool) -> G::Ark {
    if outside && (G::Curve::ID, G::NAME) == (CurveId::Bls12_381, "G1") {
        return G::from_xy(ark_ff::AdditiveGroup::ZERO, 2u64.into()).into();
    }
    <G::Ark as ark_ec::PrimeGroup>::generator()
}

/// The pairing equation holds for such a proof.
#[test]
fn a_sum_outside_the_subgroup_is_caught() {
    let files = Files::new(CurveId::Bls12_381);
    // Of the sums B2, A, L, B1 and H of each proof: A, L and H of the first three. B1 counts r times: what is too much there, of order
    // 3, is gone in a third of the proofs.
    let faulty = Faulty { outside: true, ..Faulty::new(|i| [1, 5 + 2, 10 + 4].contains(&i)) };
    let engine = Engine::on_backend(faulty, false).unwrap();
    let key = files.key(&engine);
    for (proof, point) in (1..).zip(["pi_a", "pi_c", "pi_c"]) {
        let report = engine.prove(&key, &files.witness(), &Silent).unwrap().fallback.unwrap().to_string();
        let expected = format!("point {point} of the proof is not in the subgroup of prime order");
        assert!(report.contains(&expected), "{report}");
        assert_eq!(engine.wrong_proofs(), proof);
    }
    assert_eq!(engine.prove(&key, &files.witness(), &Silent).unwrap().fallback, None);
}

#[test]
fn a_wrong_sum_is_caught_made_again_and_reported() {
    for curve in CURVES {
        let files = Files::new(curve);
        // A proof has five sums; each of them is wrong in one of five proofs, and the sixth proof is right.
        let engine = Engine::on_backend(Faulty::new(|i| i < 25 && i % 6 == 0), false).unwrap();
        let key = files.key(&engine);
        for proof in 0..6 {
            let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
            fs::write(files.at("proof"), proved.proof.to_json()).unwrap();
            fs::write(files.at("public"), proved.publics.to_json()).unwrap();
            verify(&files.at("vkey"), &files.at("public"), &files.at("proof")).unwrap();
            match proved.fallback {
                Some(Fallback::DeviceFailed(report)) => panic!("{report}"),
                Some(Fallback::WrongProof(report)) => {
                    assert!(proof < 5, "{report}");
                    assert!(report.contains("Faulty GPU (cuda:7) failed its check"), "{report}");
                    assert!(proved.device.starts_with("CPU"), "{}", proved.device);
                    assert_eq!(engine.wrong_proofs(), proof + 1);
                }
                None => assert_eq!((proof, engine.wrong_proofs()), (5, 5)),
            }
        }
    }
}

#[test]
fn a_wrong_witness_is_not_blamed_on_the_device() {
    let files = Files::new(CurveId::Bn254);
    let engine = Engine::on_backend(Faulty::new(|_| false), false).unwrap();
    let key = files.key(&engine);
    let bad = Witness::from_values(CurveId::Bn254, files.changed(|v| v[9][0] ^= 2)).unwrap();
    let error = engine.prove(&key, &bad, &Silent).err().unwrap();
    assert!(error.to_string().contains("does not satisfy") && engine.wrong_proofs() == 0, "{error}");
}

#[test]
fn the_cpu_takes_over_where_the_device_was_left_to_the_engine() {
    let files = Files::new(CurveId::Bn254);
    for (fails, said) in [
        (Fails::Loading, "stays on the CPU"),
        (Fails::Proving, "cudaErrorECCUncorrectable"),
        (Fails::Ending, "cudaErrorIllegalAddress"),
    ] {
        let engine = Engine::on_backend(Faulty::failing(fails), true).unwrap().with_patience(Duration::ZERO);
        let key = files.key(&engine);
        let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
        let report = key.note().or(proved.fallback.as_ref().map(Fallback::as_str)).unwrap();
        assert!(report.contains(said) && report.contains("Faulty GPU"), "{report}");
        assert!(proved.device.starts_with("CPU") && engine.wrong_proofs() == 0, "{}", proved.device);
        fs::write(files.at("proof"), proved.proof.to_json()).unwrap();
        fs::write(files.at("public"), proved.publics.to_json()).unwrap();
        verify(&files.at("vkey"), &files.at("public"), &files.at("proof")).unwrap();

        // A device that was asked for by name is not replaced.
        let engine = Engine::on_backend(Faulty::failing(fails), false).unwrap().with_patience(Duration::ZERO);
        let error = match engine.load_key(&files.at("zkey"), KeyCheck::Once, &Silent) {
            Ok(key) => engine.prove(&key, &files.witness(), &Silent).err().unwrap(),
            Err(error) => error,
        };
        assert!(error.exit_status() == 3 && error.to_string().contains("Faulty GPU"), "{error}");
    }
}

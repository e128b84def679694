//! Work for which there is not enough memory: an error, never the end of the process.

use std::process::Command;
use std::sync::Arc;
use tandem_groth16::partition::{Partition, PartitionKey};
use tandem_groth16::setup::{setup, Entry, KeySink, Part, Secret};
use tandem_groth16::synthetic::Synthetic;
use tandem_groth16::{
    prove_verified, Blinding, Error, Evaluations, KeyPoints, KeyView, Layout, PreparedKey, ProvingKey, Request, Result,
    Shape, Silent, Witness, P1, P2,
};
use tandem_ops::cpu::Cpu;
use tandem_ops::{
    memory, threads, Backend, Bls12_381, Bn254, Canonical, Curve, Group, HostBuf, Lane, Mont, Msm, MsmRequest, MsmSet,
    Outside, ScalarRecoding, Scalars, SparseRows, Stored, Timeline, Unaligned,
};
use zeroize::Zeroizing;

/// Keeps nothing.
struct Nowhere;

impl KeySink<Bn254> for Nowhere {
    fn header(&mut self, _: Shape, _: &KeyPoints<Bn254>) -> Result<()> {
        Ok(())
    }
    fn begin(&mut self, _: Part) -> Result<()> {
        Ok(())
    }
    fn entries(&mut self, _: &[Entry]) -> Result<()> {
        Ok(())
    }
    fn points1(&mut self, _: &[P1<Bn254>]) -> Result<()> {
        Ok(())
    }
    fn points2(&mut self, _: &[P2<Bn254>]) -> Result<()> {
        Ok(())
    }
}

fn key() -> Result<()> {
    threads::ready()?;
    let circuit = Synthetic { constraints: 1 << 13, publics: 1, dense: 0.5 };
    setup::<Bn254>(&circuit, &Secret::from_seed([3; 32]), &mut Nowhere, &Silent).map(drop)
}

fn sum() -> Result<()> {
    threads::ready()?;
    type G = <Bn254 as Curve>::G1;
    const N: usize = 1 << 16;
    let cpu = Cpu::new(1);
    let points = memory::filled("points", N, one::<G>())?;
    let mut scalars = memory::filled("scalars", N, Canonical([0; 4]))?;
    scalars.iter_mut().zip(1u64..).for_each(|(k, i)| *k = Canonical([i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i, i, 7]));
    let sets = vec![MsmSet { g2: false, first: 0, points: N }];
    let request = MsmRequest { scalars: N, sets, memory_bytes: u64::MAX, uses: 1, pipelined: false };
    let plan = ScalarRecoding::<Bn254>::plan(&cpu, Lane(0), &request)?;
    let bases = Msm::<G>::load(&cpu, Lane(0), &plan, 0, Stored::from(&points[..]))?;
    let scalars = cpu.upload(Lane(0), &scalars)?;
    let digits = ScalarRecoding::<Bn254>::recode(&cpu, &plan, Scalars::Canonical(&scalars))?;
    Ok(Msm::<G>::msm(&cpu, &bases, &digits, &Timeline::none())?.wait().map(drop)?)
}

/// A point, over and over, without taking memory.
struct Same(Vec<u8>);

/// The generator of a group, as bytes.
fn one<G: Group>() -> G::Point {
    G::from_ark(&<G::Ark as ark_ec::PrimeGroup>::generator().into())
}

impl Outside for Same {
    fn read(&self, at: usize, into: &mut [u8]) -> tandem_ops::Result<()> {
        let bytes = &self.0;
        into.iter_mut().enumerate().for_each(|(i, byte)| *byte = bytes[(at + i) % bytes.len()]);
        Ok(())
    }
    fn block_bytes(&self) -> usize {
        1 << 20
    }
    fn later(&self) -> Option<Arc<dyn Outside>> {
        std::env::var("TANDEM_TEST_LIMITED")
            .is_ok_and(|what| what.starts_with("waiting"))
            .then(|| Arc::new(Same(self.0.clone())) as _)
    }
}

/// The sum over points of 32 MiB that are held, or wait until it takes a piece of them.
fn sum_of_many() -> Result<()> {
    threads::ready()?;
    type G = <Bn254 as Curve>::G2;
    const N: usize = 1 << 18;
    let cpu = Cpu::new(1);
    let mut scalars = memory::filled("scalars", N, Canonical([0; 4]))?;
    scalars.iter_mut().step_by(3).for_each(|k| *k = Canonical([1, 0, 0, 0]));
    let sets = vec![MsmSet { g2: true, first: 0, points: N }];
    let request = MsmRequest { scalars: N, sets, memory_bytes: u64::MAX, uses: 1, pipelined: false };
    let plan = ScalarRecoding::<Bn254>::plan(&cpu, Lane(0), &request)?;
    let same = Same(bytemuck::bytes_of(&one::<G>()).to_vec());
    let points = Stored::outside(&same, 0..N * size_of::<P2<Bn254>>()).unwrap();
    let bases = Msm::<G>::load(&cpu, Lane(0), &plan, 0, points)?;
    let scalars = cpu.upload(Lane(0), &scalars)?;
    let digits = ScalarRecoding::<Bn254>::recode(&cpu, &plan, Scalars::Canonical(&scalars))?;
    let sum = Msm::<G>::msm(&cpu, &bases, &digits, &Timeline::none())?.wait()?;
    assert_eq!(
        sum,
        <<G as Group>::Ark as ark_ec::PrimeGroup>::generator() * <Bn254 as Curve>::Fr::from(N.div_ceil(3) as u64)
    );
    Ok(())
}

/// A key with points of 48 MiB.
fn key_of_many() -> Result<()> {
    threads::ready()?;
    const N: usize = 1 << 17;
    type C = Bn254;
    let (one1, one2) = (one::<<C as Curve>::G1>(), one::<<C as Curve>::G2>());
    let [in1, in2] = [bytemuck::bytes_of(&one1), bytemuck::bytes_of(&one2)].map(|bytes| Same(bytes.to_vec()));
    let of1 = |n: usize| Stored::outside(&in1, 0..n * size_of::<P1<C>>()).unwrap();
    let rows = SparseRows { columns: N, starts: vec![0; N + 1], column: vec![], value: vec![], values: vec![] };
    let points = KeyPoints { alpha1: one1, beta1: one1, beta2: one2, gamma2: one2, delta1: one1, delta2: one2 };
    let ic = [one1; 2];
    let view = KeyView::<C> {
        shape: Shape { variables: N, publics: 1, domain: N },
        points,
        ic: Unaligned::from(&ic[..]),
        matrix_a: &rows,
        matrix_b: &rows,
        a: of1(N),
        b1: of1(N),
        b2: Stored::outside(&in2, 0..N * size_of::<P2<C>>()).unwrap(),
        l: of1(N - 2),
        h: of1(N),
    };
    ProvingKey::load(&Cpu::new(1), &view, Layout::Auto, 1).map(drop)
}

/// A proof with a key whose points take 22 MiB, on pretend GPUs.
fn partition(waits: bool) -> Result<()> {
    threads::ready()?;
    let sizes = Partition {
        log_domain: 16,
        rows: 64_000,
        inputs: 2,
        aux: 60_000,
        in_a: 60_000,
        in_b: 16_000,
        ones: 0.5,
        dense: 0.02,
    };
    // Few points, which are read again and again.
    let key = PartitionKey::with_period(sizes, 11 * 19, &Silent)?;
    let (key, cpu) = if waits { (key.waiting(), Cpu::with_memory(2, 12 << 20)) } else { (key, Cpu::new(2)) };
    let view = key.view()?;
    let loaded = ProvingKey::load_powers(&cpu, &view, Layout::Split, 1)?;
    assert_eq!(loaded.memory()[0].points_stay, !waits);
    let made = key.assignment(0)?;
    let element = |x: &[u64; 4]| Bls12_381::from_mont(Mont(*x));
    let values = made.inputs.iter().chain(made.aux.iter()).map(|x| Bls12_381::canonical(element(x)));
    let side = |side: &[[u64; 4]]| HostBuf::from(Zeroizing::new(side.iter().copied().map(Mont).collect::<Vec<_>>()));
    let in_b = |i: &u32| *i == 0 || *i > 1 && made.b_aux[(*i as usize - 2) / 64] >> ((i - 2) % 64) & 1 == 1;
    let all: Vec<u32> = (0..60_002).collect();
    let in_b: Vec<u32> = all.iter().copied().filter(in_b).collect();
    let evaluations = Evaluations::check(side(&made.a), side(&made.b), all, in_b)?;
    let witness = Witness::new(Zeroizing::new(values.collect::<Vec<_>>()))?.with_evaluations(evaluations);
    drop(made);
    let verifier = PreparedKey::new(&view.verifying_key())?;
    let request = Request::new(Timeline::none(), &Silent);
    let made = prove_verified(&cpu, &loaded, &verifier, &witness, &Blinding::random()?, &request)?;
    assert!(made.verdict.is_ok());
    Ok(())
}

/// Runs this test once more, under a limit; what it does there follows from the variable.
#[test]
fn too_little_memory_is_an_error() {
    if let Ok(what) = std::env::var("TANDEM_TEST_LIMITED") {
        let done = match &*what {
            "key" => key(),
            "sum" => sum(),
            "held key" | "waiting key" => key_of_many(),
            _ => sum_of_many(),
        };
        match done {
            Ok(()) => println!("made"),
            Err(Error::Backend(tandem_ops::Error::OutOfMemory { .. } | tandem_ops::Error::Threads { .. })) => {
                println!("refused");
            }
            Err(other) => panic!("{other}"),
        }
        return;
    }
    let mut all = Vec::new();
    for what in ["key", "sum", "held", "waiting", "held key", "waiting key"] {
        let (mut made, mut refused) = (0, 0);
        for mib in [6, 9, 12, 15, 18, 24, 30, 36, 42, 48, 400] {
            let mut limited = Command::new("sh");
            limited.args(["-c", &format!("ulimit -d {}; exec \"$@\"", mib << 10), "sh"]);
            limited.arg(std::env::current_exe().unwrap()).args(["--exact", "too_little_memory_is_an_error"]);
            limited.args(["--nocapture", "--test-threads", "1"]);
            // Small stacks: they count as data, too.
            limited.env("TANDEM_TEST_LIMITED", what).env("RAYON_NUM_THREADS", "2").env("RUST_MIN_STACK", "1048576");
            let output = limited.output().unwrap();
            let said = format!(
                "{what}, {mib} MiB: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(output.status.success(), "{said}");
            made += usize::from(said.contains("made"));
            refused += usize::from(said.contains("refused"));
        }
        let is_refused = refused > 1 || what == "waiting key";
        assert!(made > 0 && is_refused && made + refused == 11, "{what}: {made} made, {refused} refused");
        all.push(made);
    }
    // Points that wait need not be there at once.
    assert!(all[3] > all[2] + 1 && all[5] > all[4], "{all:?}");
}

/// Points that come in pieces are not there at once.
#[test]
fn pieces_take_less_memory_than_all_points() {
    if let Ok(what) = std::env::var("TANDEM_TEST_PIECES") {
        partition(what == "pieces").unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        println!("{}", status.lines().find(|line| line.starts_with("VmHWM:")).unwrap());
        return;
    }
    let [all, pieces] = ["all", "pieces"].map(|what| -> u64 {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "pieces_take_less_memory_than_all_points", "--nocapture", "--test-threads", "1"]);
        let output = child.env("TANDEM_TEST_PIECES", what).env("RAYON_NUM_THREADS", "2").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let kib = said.lines().find_map(|line| line.split_once("VmHWM:")).unwrap().1;
        kib.split_whitespace().next().unwrap().parse().unwrap()
    });
    // A good half of 22 MiB.
    assert!(pieces + (12 << 10) < all, "{pieces} KiB and {all} KiB");
}

//! Work for which there is not enough memory: an error, never the end of the process.

use std::process::Command;
use tandem_groth16::setup::{setup, Entry, KeySink, Part, Secret};
use tandem_groth16::synthetic::Synthetic;
use tandem_groth16::{Error, KeyPoints, Result, Shape, Silent, P1, P2};
use tandem_ops::cpu::Cpu;
use tandem_ops::{
    memory, threads, Backend, Bn254, Canonical, Curve, Group, Lane, Msm, MsmRequest, MsmSet, ScalarRecoding, Scalars,
    Stored, Timeline,
};

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
    let one = G::from_ark(&<<G as Group>::Ark as ark_ec::PrimeGroup>::generator().into());
    let points = memory::filled("points", N, one)?;
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

/// Runs this test once more, under a limit; what it does there follows from the variable.
#[test]
fn too_little_memory_is_an_error() {
    if let Ok(what) = std::env::var("TANDEM_TEST_LIMITED") {
        match if what == "key" { key() } else { sum() } {
            Ok(()) => println!("made"),
            Err(Error::Backend(tandem_ops::Error::OutOfMemory { .. } | tandem_ops::Error::Threads { .. })) => {
                println!("refused");
            }
            Err(other) => panic!("{other}"),
        }
        return;
    }
    for what in ["key", "sum"] {
        let (mut made, mut refused) = (0, 0);
        for mib in [6, 9, 12, 15, 18, 21, 24, 30, 36, 48, 400] {
            let mut limited = Command::new("sh");
            limited.args(["-c", &format!("ulimit -d {}; exec \"$@\"", mib << 10), "sh"]);
            limited.arg(std::env::current_exe().unwrap()).args(["--nocapture", "--test-threads", "1"]);
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
        assert!(made > 0 && refused > 1 && made + refused == 11, "{what}: {made} made, {refused} refused");
    }
}

//! The suite can fail: it passes a backend without a fault and notices every fault there is, and where it is asked to
//! run on something that it is not meant for, it refuses.

use std::sync::Arc;
use tandem_conformance::{Dual, Failure, Fault, Faulty, Outcome, Share, Step, Stepped, Suite};
use tandem_ops::{
    cpu::Cpu, sumcheck, Backend, BatchInverse, Bn254, Complex32, Coset, DeviceKind, Direction, Error, Fft, Gather,
    Goldilocks, Goldilocks2, Lane, Mont, Ntt, NttOp, NttSpread, Order, PlonkRows, PointNtt, Poseidon, ProofBackend,
    Reduce, Scan, Sort, Sumcheck,
};

/// All primitives that the suite has parts for.
trait Everything: Proofs + Plonk + Gather + Poseidon<Bn254> + Reduce + Sorts {}
impl<B: Proofs + Plonk + Gather + Poseidon<Bn254> + Reduce + Sorts> Everything for B {}

trait Plonk: PlonkRows<Bn254> + BatchInverse<Bn254> + Scan<Bn254> + PointNtt<Bn254> + Sumcheck<Bn254> {}
impl<B: PlonkRows<Bn254> + BatchInverse<Bn254> + Scan<Bn254> + PointNtt<Bn254> + Sumcheck<Bn254>> Plonk for B {}

trait Proofs: ProofBackend<Bn254> + NttSpread<Bn254> + Fft<Complex32> {}
impl<B: ProofBackend<Bn254> + NttSpread<Bn254> + Fft<Complex32>> Proofs for B {}

trait Sorts: Sort<u32> + Sort<u64> {}
impl<B: Sort<u32> + Sort<u64>> Sorts for B {}

/// Makes `run`, which runs the part of a name, and a test of each part.
macro_rules! parts {
    ($($part:ident $($curve:ident)?),* $(,)?) => {
        fn run(part: &str, backend: &impl Everything, log_n: u32) -> Outcome<u64> {
            let mut suite = Suite::new(backend, DeviceKind::Sim, log_n)?;
            match part {
                $(stringify!($part) => suite.$part$(::<$curve>)?(),)*
                other => panic!("no part of the name {other}"),
            }?;
            Ok(suite.checks())
        }

        /// No fault is of a part that has no test.
        #[test]
        fn every_fault_has_its_part() {
            let parts = [$(stringify!($part)),*];
            assert!(Fault::ALL.iter().all(|(_, part)| parts.contains(part)), "{parts:?}");
        }

        $(#[test]
        fn $part() {
            notices(stringify!($part));
        })*
    };
}

parts!(
    memory,
    vector Bn254,
    plonk_rows Bn254,
    batch_inverse Bn254,
    scan Bn254,
    point_ntt Bn254,
    sumcheck Bn254,
    gather,
    ntt Bn254,
    ntt_products Bn254,
    ntt_spread Bn254,
    ntt_cube Bn254,
    fft Complex32,
    fft_grid Complex32,
    spmv Bn254,
    msm Bn254,
    poseidon Bn254,
    reduce,
    sort,
);

fn notices(part: &str) {
    match run(part, &Faulty::new(2, Fault::None), 12) {
        Ok(checks) => assert!(checks > 50, "{part} made {checks} comparisons"),
        Err(Failure(what)) => panic!("{part} fails without a fault: {what}"),
    }
    for &(fault, _) in Fault::ALL.iter().filter(|(_, noticed_by)| *noticed_by == part) {
        let noticed = run(part, &Faulty::new(2, fault), 12);
        assert!(noticed.is_err(), "{part} does not notice the fault {fault:?}");
        // What is on the right alone is wrong, and the suite looks at what is on the left: Dual notices by itself. A small suite has
        // no transform of 2^12 elements; where both refuse, the left says why; and spans are the left's.
        if ![Fault::NttOneForm, Fault::RefusedAsBroken, Fault::Spans].contains(&fault) {
            let said = run(part, &Dual::new(Cpu::new(2), Faulty::new(2, fault)), 4).err().map(|Failure(what)| what);
            let names = said.as_ref().is_some_and(|what| what.contains("disagree"));
            assert!(names, "Dual does not notice the fault {fault:?}: {said:?}");
        }
    }
}

/// Every comparison belongs to one share, and no share is empty.
#[test]
fn shares_are_the_whole() {
    for (part, of) in [("msm", 8), ("sort", 4)] {
        let checks = |share: &str| {
            let backend = Cpu::new(2);
            let suite = Suite::new(&backend, DeviceKind::Sim, 4).unwrap();
            let mut suite = suite.with_share(Share::parse(share).unwrap());
            let outcome = if part == "msm" { suite.msm::<Bn254>() } else { suite.sort() };
            outcome.unwrap_or_else(|Failure(what)| panic!("{part} {share}: {what}"));
            suite.checks()
        };
        let whole = checks("0/1");
        let shares: Vec<u64> = (0..of).map(|number| checks(&format!("{number}/{of}"))).collect();
        assert_eq!(shares.iter().sum::<u64>(), whole, "{part}: {shares:?}");
        let most = 3 * whole / of;
        assert!(shares.iter().all(|&n| (1..=most).contains(&n)), "{part}: {shares:?} of {whole}");
    }
    for wrong in ["", "1", "8/8", "-1/8", "0/0", "0/8/1", "a/b"] {
        assert_eq!(Share::parse(wrong), None, "{wrong}");
    }
}

/// What a round or a table of a sumcheck has wrong shows in the end: no such proof leaves the prover.
#[test]
fn a_sumcheck_checks_itself() {
    let values: Vec<Mont> = (1..65).map(|i| Mont([i, i * i, 7, 0])).collect();
    let proved = |fault| {
        let backend = Faulty::new(1, fault);
        let table = backend.upload(Lane(0), &values).unwrap();
        let mut round = 0;
        let challenge = |_: &[Mont]| {
            round += 1;
            Mont([round, 3, 5, 0])
        };
        sumcheck::prove::<Bn254, _>(&backend, &[&[&table; 3]], 0, challenge)
    };
    assert!(proved(Fault::None).is_ok());
    let faults = Fault::ALL.iter().filter(|(fault, part)| *part == "sumcheck" && *fault != Fault::SumcheckShort);
    for &(fault, _) in faults {
        let error = proved(fault).unwrap_err();
        assert!(matches!(error, Error::Device { op: "sumcheck", .. }), "{fault:?}: {error}");
    }
}

/// A number and its sum with the modulus are the same in arithmetic. Of two such proofs of one statement one is refused.
#[test]
fn a_number_of_a_sumcheck_has_one_form() {
    const P: u64 = 0xffff_ffff_0000_0001;
    let cpu = Cpu::new(1);
    let table = cpu.upload(Lane(0), &[Goldilocks(1); 4]).unwrap();
    let challenge = |_: &[Goldilocks2]| Goldilocks2([5, 9]);
    let (right, _) = sumcheck::prove::<Goldilocks, _>(&cpu, &[&[&table]], 0, challenge).unwrap();
    assert_eq!(right.sum, Goldilocks2([4, 0]));
    assert!(sumcheck::verify::<Goldilocks>(&right, 2, challenge).is_ok());
    let mut other = [(); 3].map(|()| right.clone());
    other[0].sum.0[0] += P;
    other[1].rounds[1][0].0[1] += P;
    other[2].values[0].0[0] += P;
    for (i, other) in other.iter().enumerate() {
        let error = sumcheck::verify::<Goldilocks>(other, 2, challenge).unwrap_err();
        assert!(error.to_string().contains("below the modulus"), "{i}: {error}");
    }
}

#[test]
fn the_guard_refuses_another_kind_of_device() {
    assert!(Suite::new(&Cpu::new(1), DeviceKind::Cuda, 4).is_err());
    assert!(Suite::new(&Cpu::new(1), DeviceKind::Sim, 4).is_err());
    assert!(Suite::new(&Cpu::new(2), DeviceKind::Cpu, 4).is_err());
    assert!(Suite::new(&Cpu::new(2), DeviceKind::Sim, 4).is_ok());
}

#[test]
#[should_panic(expected = "the suite is for Cuda")]
fn a_part_on_another_kind_of_device_panics() {
    tandem_conformance::run_part("cuda memory", DeviceKind::Cuda, Ok(Cpu::new(1)), |suite| suite.memory());
}

#[test]
#[should_panic(expected = "nothing was compared")]
fn a_part_that_compares_nothing_panics() {
    tandem_conformance::run_part("empty", DeviceKind::Cpu, Ok(Cpu::new(1)), |_| Ok(()));
}

/// What a GPU has not done yet when a part ends is part of it.
#[test]
#[should_panic(expected = "cudaErrorIllegalAddress")]
fn a_part_whose_device_fails_in_the_end_panics() {
    let script = |op| if op == "synchronize" { Step::Broken } else { Step::Right };
    tandem_conformance::run_part("cuda memory", DeviceKind::Cuda, Ok(Stepped::new(Arc::new(script))), |s| s.memory());
}

#[test]
fn dual_names_the_operation_and_the_element() {
    let dual = Dual::new(Cpu::new(1), Faulty::new(1, Fault::Ntt));
    let values: Vec<Mont> = (1..9).map(|i| Mont([i, 0, 0, 0])).collect();
    let mut buf = dual.upload(Lane(0), &values).unwrap();
    let op =
        NttOp { direction: Direction::Forward, coset: Coset::Odd, input: Order::Natural, output: Order::BitReversed };
    let error = Ntt::<Bn254>::ntt(&dual, &mut buf, op).unwrap_err();
    assert!(matches!(error, Error::Disagree { op: "ntt", index: 7, .. }), "{error}");
    // One accepts what the other refuses.
    let dual = Dual::new(Cpu::new(1), Faulty::new(1, Fault::PastTheEnd));
    let mut buf = dual.upload(Lane(0), &values).unwrap();
    let error = dual.write(&mut buf, 8, &values).unwrap_err();
    assert!(matches!(error, Error::Disagree { op: "write", .. }), "{error}");
}

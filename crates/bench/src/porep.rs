//! `tandem bench porep`: partitions of Filecoin's proofs, as their prover hands them over, one after the other.

mod parts;

use crate::bound;
use crate::rows::Rows;
use clap::{Args, ValueEnum};
use parts::{Part, Window};
use serde_json::json;
use std::path::PathBuf;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread::Scope;
use std::time::Instant;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::session::{Opened, Session};
use tandem_console::{report, values};
use tandem_engine::{CurveId, DeviceKind, Key, Partition, StagedWitness, SyntheticAssignment, SyntheticPartition};

#[derive(Args)]
pub(crate) struct BenchPorep {
    /// Whose sizes the partitions have
    #[arg(long, value_enum, default_value = "porep-32g")]
    shape: Shape,
    /// Scale all counts to a domain of 2^N rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(8..=28))]
    log_n: Option<u32>,
    /// Proofs to make, after two partitions of each job to warm up
    #[arg(short = 'c', long, value_name = "PROOFS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// Proofs that are under way at a time
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
    /// Partitions of a proof, as many as the shape's unless said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    partitions: Option<u32>,
    /// Proofs that the key is loaded for: the more, the larger the tables of multiples
    #[arg(long, value_name = "PROOFS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    uses: u64,
    /// Append one JSON row for each partition, and one for all, to this file, or print them on stdout for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// A circuit of Filecoin's, by its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// A partition of a PoRep of a 32 GiB sector: 2^27 rows, a key of 44 GiB
    #[value(name = "porep-32g")]
    Porep32g,
    /// One of 2^26 rows whose key has 13.5 GiB, from a description of a prover for 16 GiB cards
    Text,
    /// A partition of a WindowPoSt: 2^27 rows, a key of 57 GiB
    Window,
    /// A WinningPoSt: 2^19 rows
    Winning,
    /// A partition of a SnapDeals update: 2^27 rows, a key of 32 GiB
    Snap,
}

impl Shape {
    /// Its sizes, and the partitions of a proof. Where the points of A, B and L are not published one by one, they are those that
    /// the published size of the key leaves.
    fn sizes(self) -> (Partition, u32) {
        let of = |log_domain, constraints, aux, in_a, in_b| {
            const INPUTS: usize = 328;
            // Shares that the times of the sums over ones and over other values point to.
            let (ones, dense) = (0.45, 0.04);
            Partition { log_domain, rows: constraints + INPUTS, inputs: INPUTS, aux, in_a, in_b, ones, dense }
        };
        match self {
            Shape::Porep32g => (of(27, 130_278_869, 130_169_893, 129_753_292, 33_112_281), 10),
            // A quarter of the values are ones, and sums over half of the points are over values of full size. A has more points than the
            // private wires that the description counts, which cannot be: they are as many here.
            Shape::Text => {
                let sizes = of(26, 67_108_535, 25_165_403, 25_165_403, 11_671_520);
                (Partition { ones: 0.25, dense: 0.5, ..sizes }, 10)
            }
            Shape::Window => (of(27, 125_279_217, 125_000_000, 125_000_000, 82_900_000), 1),
            Shape::Winning => (of(19, 490_000, 480_000, 480_000, 176_000), 1),
            Shape::Snap => (of(27, 81_049_499, 81_000_000, 81_000_000, 20_900_000), 16),
        }
    }
}

/// Assignments that the partitions take in turn: two, so that what one leaves behind does not pass for the other, but of the largest, which take
/// 17 GB each, one.
fn assignments(sizes: &Partition) -> u64 {
    if sizes.log_domain > 24 {
        1
    } else {
        2
    }
}

pub(crate) fn run(session: &Session, args: &BenchPorep) -> Outcome {
    let rows = Rows::open(session, args.json.as_deref())?;
    let (sizes, of_shape) = args.shape.sizes();
    let sizes = args.log_n.map_or(sizes, |log_n| sizes.scaled(log_n));
    let partitions = args.partitions.unwrap_or(of_shape);
    let mut opened = session.open()?;
    opened.engine = opened.engine.for_proofs(args.uses);
    let is_cuda = opened.engine.report().kind == DeviceKind::Cuda;
    let waits = is_cuda || session.gpu_memory.is_some();
    let made = session.trace.step("make key", || SyntheticPartition::make(sizes, waits, &session.bars))?;
    session.note(&format!("{:.1} s: the key is made", session.begun.elapsed().as_secs_f64()));
    let begun = Instant::now();
    let key = session.trace.step("load key", || opened.engine.load_partition(&made, &session.bars))?;
    if let Some(note) = key.note() {
        return Err(Failure::device(format!("nothing to measure on this device: {note}")));
    }
    let load_seconds = begun.elapsed().as_secs_f64();
    session.note(&format!("{:.1} s: the key is loaded", session.begun.elapsed().as_secs_f64()));
    let assign =
        || (0..assignments(&sizes)).map(|seed| made.assignment(seed)).collect::<tandem_engine::Result<Vec<_>>>();
    let assignments = session.trace.step("make assignments", assign)?;
    session.bars.clear();
    let device = opened.engine.report().lanes.join(", ");
    let (shape, jobs) = (values::name(&args.shape), report::count(args.jobs as usize, "job"));
    session.note(&format!(
        "{shape} of 2^{} rows, {device}, {partitions} partitions a proof, {jobs}, key loaded in {load_seconds:.1} s; every proof verified",
        sizes.log_domain
    ));
    if let (Some(plan), true) = (key.plan(), waits) {
        session.note(&plan);
    }
    let bench = Bench { session, opened: &opened, key: &key, assignments: &assignments, jobs: args.jobs };
    // Two of each job, so that all memory that is used in turn has been taken.
    bench.measure(args.jobs, 2)?;
    let (begun, traffic) = (Instant::now(), tandem_cuda::traffic());
    let parts = bench.measure(args.count, partitions)?;
    let seconds = begun.elapsed().as_secs_f64();
    let traffic = tandem_cuda::traffic().since(traffic);

    let window = Window::of(&parts);
    let bound_ms = match is_cuda {
        true => {
            let witness = opened.engine.assignment(&assignments[0].view())?;
            let digits = session.trace.step("count digits", || key.digits(&witness))?;
            // H's six transforms, of which three are to coefficients, as those of a key with matrices.
            Some(bound::groth16_ms(CurveId::Bls12_381, sizes.log_domain, &digits, window.lanes()))
        }
        false => None,
    };
    let per_part = 1.0 / parts.len() as f64;
    let mut table = vec![parts::HEADER.map(String::from).to_vec()];
    for part in &parts {
        session.trace.spans(&part.spans, opened.at);
        let times = window.times(part);
        table.push(times.cells(part));
        let mut row = times.to_json(part);
        row["what"] = "porep_partition".into();
        row["shape"] = shape.clone().into();
        row["log_n"] = sizes.log_domain.into();
        rows.append_row(&device, row)?;
    }
    let medians = window.median(&parts);
    let mut row = json!({
        "what": "porep",
        "shape": shape,
        "log_n": sizes.log_domain,
        "proofs": args.count,
        "jobs": args.jobs,
        "partitions": partitions,
        "uses": args.uses,
        "s_per_partition": report::round(seconds * per_part),
        "s_per_proof": report::round(seconds / f64::from(args.count)),
        "load_key_s": report::round(load_seconds),
        "gpu_total_ms": report::round(medians.gpu_total_ms),
        "ntt_msm_h_ms": report::round(medians.ntt_msm_h_ms),
        "batch_add_ms": report::round(medians.batch_add_ms),
        "tail_msm_ms": report::round(medians.tail_msm_ms),
        "idle_share": report::round(window.idle_share()),
        "copy_wait_share": report::round(window.copy_wait_share()),
        "bound_ms": bound_ms.map(report::round),
    });
    let mut more = format!(
        "part: proof/partition; times in ms, as in the guide to Filecoin\n{:.4} s a partition, {:.3} s a proof; lanes idle {:.1} %, of which waiting for copies {:.1} %\n",
        seconds * per_part,
        seconds / f64::from(args.count),
        window.idle_share() * 1e2,
        window.copy_wait_share() * 1e2
    );
    if is_cuda {
        let [up, down] = [traffic.to_device, traffic.to_host].map(|bytes| bytes as f64 * per_part);
        (row["bytes_to_device"], row["bytes_to_host"]) = ((up as u64).into(), (down as u64).into());
        more += &format!(
            "a partition's copies: {} to the device, {} back\n",
            report::bytes(up as u64),
            report::bytes(down as u64)
        );
    }
    if let Some(bound) = bound_ms {
        more += &format!("the least time of a partition's arithmetic on H200: {bound:.1} ms\n");
    }
    rows.append_row(&device, row)?;
    rows.table(&table, &more);
    Ok(())
}

/// A bench on its way.
#[derive(Clone, Copy)]
struct Bench<'a> {
    session: &'a Session,
    opened: &'a Opened,
    key: &'a Key,
    assignments: &'a [SyntheticAssignment],
    jobs: u32,
}

/// A partition that is ready to be proved.
struct Ready {
    proof: u32,
    partition: u32,
    prepare_ms: f64,
    witness: StagedWitness,
}

impl Bench<'_> {
    /// So many proofs of so many partitions, `jobs` of them at a time. Each job's next partition is prepared and uploaded while the one
    /// before is proved.
    fn measure(self, proofs: u32, partitions: u32) -> Outcome<Vec<Part>> {
        let of_job = |job: u32| -> Outcome<Vec<Part>> {
            let (sender, receiver) = sync_channel(0);
            std::thread::scope(|scope| {
                let numbers = (job..proofs).step_by(self.jobs as usize);
                scope.spawn(move || self.prepare(numbers.flat_map(|i| (0..partitions).map(move |p| (i, p))), &sender));
                self.prove(receiver, scope)
            })
        };
        let parts = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.jobs).map(|job| scope.spawn(move || of_job(job))).collect();
            let ended =
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
            ended.collect::<Outcome<Vec<_>>>()
        })?;
        let mut parts: Vec<Part> = parts.into_iter().flatten().collect();
        parts.sort_by_key(|part| (part.proof, part.partition));
        self.session.bars.clear();
        Ok(parts)
    }

    fn prepare(self, parts: impl Iterator<Item = (u32, u32)>, to: &SyncSender<Outcome<Ready>>) {
        for (number, (proof, partition)) in parts.enumerate() {
            let begun = Instant::now();
            let ready = || -> Outcome<Ready> {
                let assignment = &self.assignments[number % self.assignments.len()];
                let witness = self.opened.engine.assignment(&assignment.view())?;
                let witness = self.opened.engine.stage(self.key, witness, &self.session.bars)?;
                Ok(Ready { proof, partition, prepare_ms: begun.elapsed().as_secs_f64() * 1e3, witness })
            };
            let ready = ready();
            let is_last = ready.is_err();
            // Whoever proves has failed where nobody takes it.
            if to.send(ready).is_err() || is_last {
                return;
            }
        }
    }

    fn prove<'scope>(self, from: Receiver<Outcome<Ready>>, scope: &'scope Scope<'scope, '_>) -> Outcome<Vec<Part>> {
        let mut parts = Vec::new();
        for ready in from {
            let Ready { proof, partition, prepare_ms, witness } = ready?;
            let (is_staged, values) = (witness.is_on_device(), witness.witness().clone());
            let proved = self.opened.engine.prove_staged(self.key, witness, &self.session.bars)?;
            if let Some(problem) = proved.fallback {
                return Err(Failure::device(format!("nothing to measure: {problem}")));
            }
            let prove_ms = proved.seconds * 1e3;
            // To overwrite it takes long, and nobody waits for it.
            scope.spawn(move || drop(values));
            parts.push(Part { proof, partition, prepare_ms, prove_ms, is_staged, spans: proved.spans });
        }
        Ok(parts)
    }
}

//! `tandem bench groth16`, `plonk` and `fflonk`: whole proofs with a resident key, on one choice of devices or on several beside each other.

use crate::bound;
use crate::made::{name, Made, Maker};
use crate::plot::Plot;
use crate::rows::{header, line, median_and_min, Rows};
use crate::BenchOptions;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::options::Schedule;
use tandem_console::session::{Opened, Session};
use tandem_console::values;
use tandem_console::{lanes, report};
use tandem_engine::{DeviceChoice, DeviceKind, Error, Key, ProofDigits, Protocol, Proved, Synthetic, Witness};

#[derive(Args)]
pub(crate) struct BenchProofs {
    /// A proving key; without one, circuits are made up
    #[arg(requires = "witness", conflicts_with_all = ["log_n", "curve"], value_parser = values::input())]
    pub(crate) zkey: Option<PathBuf>,
    /// Its witness
    #[arg(value_parser = values::input())]
    pub(crate) witness: Option<PathBuf>,
    /// Share of the made-up circuit's wires that hold values of full size; the others hold bits
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = values::share)]
    dense: f64,
    /// Proofs that the key is loaded for: the more, the larger the tables of multiples, up to nearly all of a GPU's memory; as many
    /// as a service makes unless said
    #[arg(long, value_name = "PROOFS", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    uses: u64,
    /// Upload each witness beside the proof before it, as `prove --more` does
    #[arg(long)]
    ahead: bool,
    /// Measure the same key on one device alone, and on all with each schedule
    #[arg(long)]
    compare: bool,
    #[command(flatten)]
    pub(crate) options: BenchOptions,
}

#[derive(Args)]
pub(crate) struct BenchPlonk {
    #[command(flatten)]
    pub(crate) proofs: BenchProofs,
    /// Keep powers of tau, circuit, witness and key of each made-up size in this folder, as plonk16.r1cs, plonk16.wtns and
    /// plonk16.zkey; the secret of the powers is known
    #[arg(long, value_name = "FOLDER", conflicts_with = "zkey")]
    pub(crate) keep: Option<PathBuf>,
}

/// Devices, and how they share the work.
type Subject = (DeviceChoice, Schedule);

pub(crate) fn run(session: &Session, protocol: Protocol, args: &BenchProofs, keep: Option<&Path>) -> Outcome {
    let rows = Rows::open(session, args.options.json.as_deref())?;
    let plot = Plot::open(&args.options.plot, "rows", "proofs/s")?;
    let (table, stages) = (vec![columns()], String::new());
    let mut bench = Bench { session, protocol, args, rows, plot, table, stages, digits: None };
    let subjects = subjects(session, args)?;
    if let (Some(zkey), Some(wtns)) = (&args.zkey, &args.witness) {
        // A key of another system would be loaded, too.
        let found = Protocol::of_file(zkey).map_err(Error::from)?;
        if found != protocol {
            let named = zkey.display();
            let article = if found == Protocol::Fflonk { "an" } else { "a" };
            let problem = format!(
                "{named}: this is {article} {found} zkey file, expected a {protocol} key: use tandem bench {}",
                name(found)
            );
            return Err(Failure::input(problem));
        }
        let made = Made::InFiles { wtns: wtns.clone(), zkey: zkey.clone() };
        for subject in &subjects {
            bench.measure(subject, |opened| made.load(session, opened))?;
        }
    } else {
        let BenchOptions { curve, log_n, .. } = &args.options;
        let of = |log_size| Synthetic { curve: (*curve).into(), log_size, dense: args.dense };
        let maker = Maker::of(session, protocol, of(*log_n.end()), keep)?;
        for log_n in log_n.clone() {
            bench.stages.clear();
            bench.digits = None;
            let made = maker.make(of(log_n))?;
            for subject in &subjects {
                bench.measure(subject, |opened| made.load(session, opened))?;
            }
        }
    }
    bench.rows.table(&bench.table, &bench.stages);
    bench.plot.write(&format!("{protocol} proofs"))
}

/// The user's choice, or all that are to be compared.
fn subjects(session: &Session, args: &BenchProofs) -> Outcome<Vec<Subject>> {
    if !args.compare {
        return Ok(vec![(session.device.clone(), session.schedule)]);
    }
    let one = match &session.device {
        DeviceChoice::Cuda(gpus) => DeviceChoice::Cuda(vec![gpus.first().copied().unwrap_or(0)]),
        DeviceChoice::Sim(_) => DeviceChoice::Sim(1),
        device => {
            return Err(Failure::input(format!("--compare needs several devices, such as cuda or sim:2, not {device}")))
        }
    };
    let all = [session.schedule, Schedule::Split, Schedule::Each].map(|schedule| (session.device.clone(), schedule));
    Ok([(one, Schedule::Auto)].into_iter().chain(all).collect())
}

fn columns() -> Vec<String> {
    let mut columns = header("proofs/s");
    columns.extend(["schedule", "devices"].map(String::from));
    columns
}

/// A bench on its way.
struct Bench<'a> {
    session: &'a Session,
    protocol: Protocol,
    args: &'a BenchProofs,
    rows: Rows<'a>,
    plot: Plot,
    table: Vec<Vec<String>>,
    /// Where the time of each subject's last proof went.
    stages: String,
    /// Of the proofs of the circuit, once they are counted.
    digits: Option<ProofDigits>,
}

impl Bench<'_> {
    /// Proves again and again with a resident key. Every proof is verified by the engine; one that the CPU had to make instead
    /// of the device is no measurement.
    fn measure(
        &mut self,
        (device, schedule): &Subject,
        load: impl FnOnce(&Opened) -> Outcome<(Key, Witness)>,
    ) -> Outcome {
        let Bench { session, protocol, args: BenchProofs { options, uses, ahead, .. }, .. } = *self;
        let mut opened = session.open_as(device, *schedule)?;
        opened.engine = opened.engine.for_proofs(*uses);
        let lane_names = &opened.engine.report().lanes;
        let names = lane_names.join(", ");
        let (key, witness) = session.trace.step("load key", || load(&opened))?;
        session.note(&format!(
            "{}, {}, {names}, {} runs after one to warm up; every proof verified",
            name(protocol),
            witness.curve(),
            options.runs
        ));
        if let Some(note) = key.note() {
            return Err(Failure::device(format!("nothing to measure on this device: {note}")));
        }
        let once = || -> Outcome<Proved> {
            let proved = session.trace.step("prove", || match ahead {
                true => {
                    let staged = opened.engine.stage(&key, witness.clone(), &session.bars)?;
                    opened.engine.prove_staged(&key, staged, &session.bars)
                }
                false => opened.engine.prove(&key, &witness, &session.bars),
            })?;
            match &proved.fallback {
                Some(problem) => Err(Failure::device(format!("nothing to measure: {problem}"))),
                None => Ok(proved),
            }
        };
        let often = |runs: u32| (0..runs).map(|_| once()).collect::<Outcome<Vec<_>>>();
        // Where each GPU makes its own proofs, as many callers; as many again for those that come next.
        let at_once = if *schedule == Schedule::Each { lane_names.len().max(1) } else { 1 };
        let callers = if *ahead { 2 * at_once } else { at_once };
        let side_by_side = |runs: u32| -> Outcome<Vec<Proved>> {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..callers).map(|_| scope.spawn(|| often(runs))).collect();
                let ended =
                    threads.into_iter().map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
                Ok(ended.collect::<Outcome<Vec<_>>>()?.into_iter().flatten().collect())
            })
        };
        side_by_side(1)?;
        let started = Instant::now();
        let proofs = side_by_side(options.runs)?;
        let rate = proofs.len() as f64 / started.elapsed().as_secs_f64();
        session.bars.clear();

        let Some(last) = proofs.last() else { return Ok(()) };
        session.trace.stages(&last.stages);
        session.trace.spans(&last.spans, opened.at);
        let log_n = key.info().domain.trailing_zeros();
        let seconds: Vec<f64> = proofs.iter().map(|proved| proved.seconds).collect();
        let (median, min) = median_and_min(&seconds);
        let uses_of_lanes = lanes::uses(&last.spans, last.seconds);
        let gpus = match opened.engine.report().kind {
            DeviceKind::Cuda if at_once > 1 => 1,
            DeviceKind::Cuda => uses_of_lanes.len(),
            DeviceKind::Cpu | DeviceKind::Sim => 0,
        };
        let bound_ms = if gpus > 0 { Some(self.bound_ms(&key, &witness, gpus)?) } else { None };

        let mut row = Rows::timed(name(protocol), key.info().curve, log_n, &seconds);
        row["proofs_per_s"] = report::round(rate).into();
        row["bound_ms"] = bound_ms.map(report::round).into();
        row["stages"] = report::stages_json(&last.stages);
        row["lanes"] = lanes::to_json(&uses_of_lanes);
        row["schedule"] = values::name(schedule).into();
        row["plan"] = key.plan().into();
        row["uses"] = (*uses).into();
        if *ahead {
            row["ahead"] = true.into();
        }
        self.rows.append_row(&names, row)?;
        let series = format!("{}, {device}", values::name(schedule));
        self.plot.add(&series, f64::from(log_n).exp2(), rate);
        if let Some(ms) = bound_ms {
            self.plot.bound(&series, "bound", f64::from(log_n).exp2(), 1e3 * at_once as f64 / ms);
        }
        let mut cells = line(log_n, median, min, rate);
        cells.extend([values::name(schedule), device.to_string()]);
        self.table.push(cells);

        let ms = last.seconds * 1e3;
        let bound = bound_ms.map_or(String::new(), |bound| {
            format!("  {:.2} times the least time of its arithmetic on H200, {bound:.2} ms\n", ms / bound)
        });
        self.stages += &format!(
            "the last proof (2^{log_n}, {}, {device}, {ms:.2} ms):\n{}{}{}{bound}",
            values::name(schedule),
            report::stages(&last.stages),
            report::copies(&last.stages),
            lanes::text(&uses_of_lanes)
        );
        Ok(())
    }

    /// The least time of a proof's arithmetic.
    fn bound_ms(&mut self, key: &Key, witness: &Witness, gpus: usize) -> Outcome<f64> {
        let (curve, log_n) = (key.info().curve, key.info().domain.trailing_zeros());
        if self.protocol != Protocol::Groth16 {
            return Ok(bound::plonk_ms(self.protocol, curve, log_n, gpus));
        }
        let digits = match self.digits {
            Some(digits) => digits,
            None => self.session.trace.step("count digits", || key.digits(witness))?,
        };
        self.digits = Some(digits);
        Ok(bound::groth16_ms(curve, log_n, &digits, gpus))
    }
}

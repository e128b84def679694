//! `tandem bench vector`: primitives over vectors of scalars, on the first lane.

use crate::measure::vector::{Operation, Vectors};
use crate::plot::Plot;
use crate::rows::{median_and_min, Rows};
use crate::BenchOptions;
use clap::Args;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_console::values::name;
use tandem_engine::{CurveId, Progress};

#[derive(Args)]
pub(crate) struct VectorBench {
    /// What to do with the vectors; all if it is left out
    #[arg(long, value_enum, value_delimiter = ',')]
    op: Vec<Operation>,
    #[command(flatten)]
    pub(crate) options: BenchOptions,
}

pub(crate) fn run(session: &Session, args: &VectorBench) -> Outcome {
    let (options, runs) = (&args.options, args.options.runs as usize);
    let curve: CurveId = options.curve.into();
    // Indices of a gather have 32 bits.
    if *options.log_n.end() > 31 {
        return Err(Failure::input("--log-n: expected up to 31"));
    }
    let on = session.trace.step("open device", || Vectors::open(&session.device))?;
    let device = on.report().lanes.join(", ");
    let rows = Rows::open(session, options.json.as_deref())?;
    let mut plot = Plot::open(&options.plot, "elements", "million elements/s")?;
    session.note(&format!("vector, {curve}, {device}, {runs} runs after one to warm up; results checked"));
    let mut table = vec![["size", "operation", "median ms", "min ms", "million/s"].map(String::from).to_vec()];
    let operations = if args.op.is_empty() { &Operation::ALL[..] } else { &args.op };
    for log_n in options.log_n.clone() {
        let n = 1usize << log_n;
        for operation in operations {
            Progress::start(&session.bars, "vector", 0);
            let seconds = session.trace.step("vector", || on.bench(curve, *operation, n, runs))?;
            session.bars.clear();
            let (median, min) = median_and_min(&seconds);
            let what = name(operation);
            let mut row = Rows::timed("vector", curve, log_n, &seconds);
            row["op"] = what.as_str().into();
            rows.append_row(&device, row)?;
            let rate = n as f64 / median / 1e6;
            plot.add(&what, n as f64, rate);
            table.push(vec![
                format!("2^{log_n}"),
                what,
                format!("{:.3}", median * 1e3),
                format!("{:.3}", min * 1e3),
                format!("{rate:.2}"),
            ]);
        }
    }
    rows.text(&report::table(&table));
    plot.write(&format!("vector, {curve}, {device}"))
}

//! `tandem bench msm`: sums over points that stay on the GPUs, of random scalars and of others.

use crate::measure::msm::{bench, ScalarKind, SumBench};
use crate::plot::Plot;
use crate::rows::{self, median_and_min, Rows};
use crate::BenchOptions;
use clap::Args;
use serde_json::json;
use tandem_console::failure::Outcome;
use tandem_console::report;
use tandem_console::session::Session;
use tandem_console::values;
use tandem_engine::{CurveId, Progress};

#[derive(Args)]
pub(crate) struct MsmBench {
    /// Sum points of G2
    #[arg(long)]
    pub(crate) g2: bool,
    /// What the scalars are; several, separated by commas, are measured one after the other
    #[arg(long, value_enum, value_delimiter = ',', default_value = "random")]
    pub(crate) scalars: Vec<ScalarKind>,
    /// Split each sum over so many GPUs; over as many as is fastest unless said
    #[arg(long, value_name = "COUNT")]
    pub(crate) lanes: Option<usize>,
    #[command(flatten)]
    pub(crate) options: BenchOptions,
}

pub(crate) fn run(session: &Session, args: &MsmBench) -> Outcome {
    let (options, what) = (&args.options, if args.g2 { "msm_g2" } else { "msm_g1" });
    let curve: CurveId = options.curve.into();
    let opened = session.open()?;
    let lanes = &opened.engine.report().lanes;
    let rows = Rows::open(session, options.json.as_deref())?;
    let mut plot = Plot::open(&options.plot, "points", "million points/s")?;
    let all = lanes.join(", ");
    session.note(&format!("{what}, {curve}, {all}, {} runs after one to warm up; results checked", options.runs));
    let mut table = vec![["scalars", "size", "lanes", "median ms", "min ms", "million/s"].map(String::from).to_vec()];
    for log_n in options.log_n.clone() {
        for &scalars in &args.scalars {
            let name = values::name(&scalars);
            Progress::start(&session.bars, what, 0);
            let sum = SumBench { g2: args.g2, scalars, log_n, lanes: args.lanes };
            let summed = session.trace.step(what, || bench(&opened.engine, curve, sum, options.runs as usize))?;
            session.bars.clear();
            let (median, min) = median_and_min(&summed.seconds);
            // Those that the sum was split over.
            let device = lanes[..summed.lanes.min(lanes.len())].join(", ");
            // A row of random scalars has the name that peers' rows are compared with.
            let random = scalars == ScalarKind::Random;
            let row = json!({
                "what": if random { what.to_string() } else { format!("{what}_{name}") },
                "curve": curve.snarkjs_name(),
                "log_n": log_n,
                "lanes": summed.lanes,
                "ms_median": report::round(median * 1e3),
                "ms_min": report::round(min * 1e3),
                "runs": summed.seconds.len(),
            });
            rows.append_row(&device, row)?;
            let rate = (1u64 << log_n) as f64 / median / 1e6;
            plot.add(&format!("{name} scalars, {}", rows::lanes(summed.lanes)), f64::from(log_n).exp2(), rate);
            table.push(vec![
                name.clone(),
                format!("2^{log_n}"),
                summed.lanes.to_string(),
                format!("{:.3}", median * 1e3),
                format!("{:.3}", min * 1e3),
                format!("{rate:.2}"),
            ]);
        }
    }
    rows.text(&report::table(&table));
    plot.write(&format!("{what}, {curve}, {all}"))
}

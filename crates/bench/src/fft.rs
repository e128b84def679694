//! `tandem bench fft`: discrete Fourier transforms of random complex numbers that are dealt to the lanes.

use crate::measure::fft::Transforms;
use crate::plot::{Plot, PlotFile};
use crate::rows::{self, median_and_min, Rows};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_console::values::name;
use tandem_engine::Progress;
use tandem_ops::{Complex32, Complex64};

/// Of what numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    /// Two numbers of 32 bits
    F32,
    /// Two numbers of 64 bits
    F64,
}

#[derive(Args)]
pub(crate) struct FftBench {
    /// What the real and the imaginary part are
    #[arg(long, value_enum, default_value = "f32")]
    precision: Precision,
    /// Lanes that the numbers are dealt to: a power of two, all there are if it is left out
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=16))]
    lanes: Option<u8>,
    /// Binary logarithm of the size, or a range such as 16..20 with both ends
    #[arg(long, value_name = "RANGE", default_value = "16", value_parser = tandem_console::values::range)]
    log_n: RangeInclusive<u32>,
    /// How often each size is measured, forward and back in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Append one JSON row for each size to this file, or print it on stdout for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plot: PlotFile,
}

pub(crate) fn run(session: &Session, args: &FftBench) -> Outcome {
    if let Some(lanes) = args.lanes.filter(|lanes| !lanes.is_power_of_two()) {
        return Err(Failure::input(format!("--lanes {lanes}: expected a power of two up to 16")));
    }
    let lanes = args.lanes.map_or(usize::MAX, usize::from);
    let on = session.trace.step("open device", || Transforms::open(&session.device, lanes))?;
    let device = on.report().lanes.join(", ");
    let rows = Rows::open(session, args.json.as_deref())?;
    let mut plot = Plot::open(&args.plot, "elements", "million elements/s")?;
    let precision = name(&args.precision);
    session.note(&format!("fft, {precision}, {device}, {} runs after one to warm up; results checked", args.runs));
    let mut table = vec![["size", "lanes", "median ms", "min ms", "million/s"].map(String::from).to_vec()];
    for log_n in args.log_n.clone() {
        Progress::start(&session.bars, "fft", 0);
        let runs = args.runs as usize;
        let times = session.trace.step("fft", || match args.precision {
            Precision::F32 => on.bench::<Complex32>(log_n, runs),
            Precision::F64 => on.bench::<Complex64>(log_n, runs),
        })?;
        session.bars.clear();
        let (median, min) = median_and_min(&times.seconds);
        let row = json!({
            "what": "fft", "precision": precision.as_str(), "log_n": log_n, "lanes": times.lanes,
            "ms_median": report::round(median * 1e3), "ms_min": report::round(min * 1e3), "runs": times.seconds.len(),
        });
        rows.append_row(&device, row)?;
        let n = f64::from(log_n).exp2();
        plot.add(&rows::lanes(times.lanes), n, n / median / 1e6);
        table.push(vec![
            format!("2^{log_n}"),
            times.lanes.to_string(),
            format!("{:.3}", median * 1e3),
            format!("{:.3}", min * 1e3),
            format!("{:.2}", n / median / 1e6),
        ]);
    }
    rows.text(&report::table(&table));
    plot.write(&format!("fft, {precision}, {device}"))
}

//! `tandem bench sumcheck`: sumchecks of 1 to 4 tables that lie on the devices.

use crate::bound::products_ms;
use crate::measure::sumcheck::{Shape, Sumchecks};
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
use tandem_engine::{CurveId, DeviceKind, FieldId, Progress};

/// A field as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Field {
    /// The scalar field of BN254
    #[value(name = "bn254", alias = "bn128")]
    Bn254,
    /// The scalar field of BLS12-381
    #[value(name = "bls12-381", alias = "bls12381")]
    Bls12381,
    /// 2^64 - 2^32 + 1, with challenges of its quadratic extension
    Goldilocks,
}

#[derive(Args)]
pub(crate) struct SumcheckBench {
    /// The field of the tables
    #[arg(long, alias = "curve", value_enum, default_value = "bn254")]
    field: Field,
    /// Tables whose product is summed
    #[arg(long, value_delimiter = ',', default_value = "2", value_parser = clap::value_parser!(u8).range(1..=4))]
    degree: Vec<u8>,
    /// Lanes that the tables are dealt to: a power of two, all there are if it is left out
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=16))]
    lanes: Option<u8>,
    /// Rows from which on the host goes on; if it is left out, from where it is sooner done than a device
    #[arg(long, value_name = "ROWS")]
    host_rows: Option<usize>,
    /// Binary logarithm of the size, or a range such as 16..20 with both ends
    #[arg(long, value_name = "RANGE", default_value = "16", value_parser = tandem_console::values::range)]
    log_n: RangeInclusive<u32>,
    /// How often each size is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Append one JSON row for each line to this file, or print it on stdout for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plot: PlotFile,
}

pub(crate) fn run(session: &Session, args: &SumcheckBench) -> Outcome {
    if *args.log_n.end() > 31 {
        return Err(Failure::input("--log-n: expected up to 31"));
    }
    let field = match args.field {
        Field::Bn254 => FieldId::Bn254,
        Field::Bls12381 => FieldId::Bls12_381,
        Field::Goldilocks => FieldId::Goldilocks,
    };
    let lanes = args.lanes.map_or(usize::MAX, usize::from);
    let on = session.trace.step("open device", || Sumchecks::open(&session.device, lanes))?;
    let device = on.report().lanes.join(", ");
    let rows = Rows::open(session, args.json.as_deref())?;
    let mut plot = Plot::open(&args.plot, "elements", "million elements/s")?;
    session.note(&format!("sumcheck, {field}, {device}, {} runs after one to warm up; results checked", args.runs));
    let is_gpu = on.report().kind == DeviceKind::Cuda;
    let rate = if is_gpu { Some(on.memory_rate()?) } else { None };
    let header = ["size", "degree", "lanes", "median ms", "min ms", "million/s", "bound/median"];
    let mut table = vec![header.map(String::from).to_vec()];
    for log_n in args.log_n.clone() {
        for &degree in &args.degree {
            Progress::start(&session.bars, "sumcheck", 0);
            let shape = Shape { field, tables: degree.into(), log_n, host_rows: args.host_rows };
            let proved = session.trace.step("sumcheck", || on.bench(&shape, args.runs as usize))?;
            session.bars.clear();
            let (median, min) = median_and_min(&proved.seconds);
            let n = f64::from(log_n).exp2();
            let bound = rate.map(|rate| bound_ms(field, degree.into(), n / proved.lanes as f64, rate));
            let mut row = json!({
                "what": "sumcheck", "field": name(&args.field), "log_n": log_n, "degree": degree, "lanes": proved.lanes,
                "ms_median": report::round(median * 1e3), "ms_min": report::round(min * 1e3),
                "bound_ms": bound.map(report::round), "memory_gb_per_s": rate.map(|rate| report::round(rate / 1e9)),
                "runs": proved.seconds.len(),
            });
            match args.field {
                Field::Bn254 => row["curve"] = CurveId::Bn254.snarkjs_name().into(),
                Field::Bls12381 => row["curve"] = CurveId::Bls12_381.snarkjs_name().into(),
                Field::Goldilocks => {}
            }
            if let Some(host_rows) = args.host_rows {
                row["host_rows"] = host_rows.into();
            }
            rows.append_row(&device, row)?;
            let series = format!("degree {degree}, {}", rows::lanes(proved.lanes));
            plot.add(&series, n, n / median / 1e6);
            if let Some(ms) = bound {
                plot.bound(&series, "bound", n, n / ms / 1e3);
            }
            table.push(vec![
                format!("2^{log_n}"),
                degree.to_string(),
                proved.lanes.to_string(),
                format!("{:.3}", median * 1e3),
                format!("{:.3}", min * 1e3),
                format!("{:.2}", n / median / 1e6),
                bound.map_or("-".into(), |ms| format!("{:.2}", ms / median / 1e3)),
            ]);
        }
    }
    rows.text(&report::table(&table));
    plot.write(&format!("sumcheck, {field}, {device}"))
}

/// The least time for `n` elements of each of so many tables on one GPU, whose memory moves `rate` bytes a second, in milliseconds
/// (docs/design/sumcheck.md has the sums): the longer of the memory's and, over scalar fields, the products'.
fn bound_ms(field: FieldId, tables: usize, n: f64, rate: f64) -> f64 {
    let d = tables as f64;
    // An element of a table, and of a row. Tables are read twice; rows of n / 2, n / 4, .. are written once and read once.
    let (element, number) = if field == FieldId::Goldilocks { (8.0, 16.0) } else { (32.0, 32.0) };
    let memory = d * n * (2.0 * element + 2.0 * number) / rate * 1e3;
    if field == FieldId::Goldilocks {
        return memory;
    }
    // Of each of the first round's n / 2 pairs, and of each of n / 4, n / 8, .. later ones, in places of d; and a product for each of d n numbers.
    let (first, later) = ([0.0, 3.0, 7.0, 11.0][tables - 1], [0.0, 2.0, 6.0, 10.0][tables - 1]);
    let products = n / 2.0 * (first + later) + d * n;
    memory.max(products_ms(products))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_worked_out_by_hand() {
        // 2^20 elements at 2 TB/s: of two tables 256 bytes each, 0.134 ms. Of four 14.5 products of 113 wide multiplications, 8.36e12 a second.
        for (field, tables, ms) in [
            (FieldId::Bn254, 1, 0.0671),
            (FieldId::Bn254, 2, 0.1342),
            (FieldId::Bls12_381, 4, 0.2681),
            (FieldId::Goldilocks, 2, 0.0503),
        ] {
            let bound = bound_ms(field, tables, f64::from(1 << 20), 2e12);
            assert!((bound / ms - 1.0).abs() < 0.01, "{field} {tables} {bound}");
        }
        let fast = bound_ms(FieldId::Bn254, 4, f64::from(1 << 20), 1e15);
        assert!((fast / 0.2055 - 1.0).abs() < 0.01, "{fast}");
    }
}

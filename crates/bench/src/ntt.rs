//! `tandem bench ntt`: transforms of any field, size and form, each on as many GPUs as is fastest, and batches.

use crate::measure::ntt::Transformer;
use crate::measure::ntt_batch::{Batch, Points};
use crate::measure::ntt_cube::CubeTimes;
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
use tandem_engine::{CurveId, Direction, FieldId, Order, Progress};
use tandem_ops::ntt::cube::Way;

/// A field as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Field {
    /// The scalar field of BN254
    #[value(name = "bn254", alias = "bn128")]
    Bn254,
    /// The scalar field of BLS12-381
    #[value(name = "bls12-381", alias = "bls12381")]
    Bls12381,
    /// 2^64 - 2^32 + 1
    Goldilocks,
    /// 15 * 2^27 + 1
    BabyBear,
}

/// Orders before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Orders {
    /// Natural to bit-reversed
    Nr,
    /// Bit-reversed to natural
    Rn,
    /// Natural to natural, which needs as much memory again
    Nn,
    /// Bit-reversed to bit-reversed, which does too
    Rr,
}

/// Points as users write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Coset {
    /// The subgroup
    None,
    /// The odd powers of the root of twice the order
    Odd,
    /// The subgroup times a random element
    Shift,
}

/// How a transform over several GPUs is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum As {
    /// Each pass on all GPUs, one of which stores to the others
    Spread,
    /// As a cube: two-dimensional transforms of slices, an exchange, and transforms over the third dimension
    Cube,
}

/// The way of a cube's exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Exchange {
    /// From GPU to GPU
    Nvlink,
    /// Down to host memory and up again
    Host,
}

/// What is measured beside each other.
type Subject = (As, Option<Exchange>);

#[derive(Args)]
pub(crate) struct NttBench {
    /// The field
    #[arg(long, alias = "curve", value_enum, default_value = "bn254")]
    field: Field,
    /// Orders of elements before and after
    #[arg(long, value_enum, default_value = "nr")]
    order: Orders,
    /// Over which coset
    #[arg(long, value_enum, default_value = "none")]
    coset: Coset,
    /// From values to coefficients
    #[arg(long)]
    inverse: bool,
    /// How it is done, such as spread,cube; cube where an exchange is named, else spread
    #[arg(long = "as", value_name = "HOW", value_enum, value_delimiter = ',')]
    ways: Vec<As>,
    /// The way of a cube's exchange, such as nvlink,host
    #[arg(long, value_name = "WAY", value_enum, value_delimiter = ',')]
    exchange: Vec<Exchange>,
    /// Vectors that are transformed in one call
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    batch: usize,
    /// Binary logarithm of the size, or a range such as 16..20 with both ends
    #[arg(long, value_name = "RANGE", default_value = "16", value_parser = tandem_console::values::range)]
    log_n: RangeInclusive<u32>,
    /// How often each size is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Append one JSON row for each size to this file, or print it on stdout for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plot: PlotFile,
}

impl NttBench {
    fn batch(&self) -> Batch {
        let (input, output) = match self.order {
            Orders::Nr => (Order::Natural, Order::BitReversed),
            Orders::Rn => (Order::BitReversed, Order::Natural),
            Orders::Nn => (Order::Natural, Order::Natural),
            Orders::Rr => (Order::BitReversed, Order::BitReversed),
        };
        Batch {
            field: match self.field {
                Field::Bn254 => FieldId::Bn254,
                Field::Bls12381 => FieldId::Bls12_381,
                Field::Goldilocks => FieldId::Goldilocks,
                Field::BabyBear => FieldId::BabyBear,
            },
            direction: if self.inverse { Direction::Inverse } else { Direction::Forward },
            points: match self.coset {
                Coset::None => Points::Subgroup,
                Coset::Odd => Points::Odd,
                Coset::Shift => Points::Shifted,
            },
            input,
            output,
            count: self.batch,
        }
    }

    /// Which ways are compared.
    fn subjects(&self) -> Outcome<Vec<Subject>> {
        let mut subjects = Vec::new();
        let ways = match (&self.ways[..], &self.exchange[..]) {
            ([], []) => &[As::Spread],
            ([], _) => &[As::Cube],
            (ways, _) => ways,
        };
        for &way in ways {
            match (way, &self.exchange[..]) {
                (As::Spread, _) => subjects.push((way, None)),
                (As::Cube, []) => subjects.push((way, Some(Exchange::Nvlink))),
                (As::Cube, exchanges) => subjects.extend(exchanges.iter().map(|&exchange| (way, Some(exchange)))),
            }
        }
        let has_cube = ways.contains(&As::Cube);
        if has_cube && !self.is_spread() {
            return Err(Failure::input(
                "a cube is measured from natural to bit-reversed order: it goes with no --order, --coset, --inverse and --batch",
            ));
        }
        if !has_cube && !self.exchange.is_empty() {
            return Err(Failure::input("--exchange is of --as cube"));
        }
        Ok(subjects)
    }

    /// Whether this is what is spread over several GPUs.
    fn is_spread(&self) -> bool {
        self.order == Orders::Nr && self.coset == Coset::None && !self.inverse && self.batch == 1
    }
}

pub(crate) fn run(session: &Session, what: &NttBench) -> Outcome {
    let (batch, runs, subjects) = (what.batch(), what.runs as usize, what.subjects()?);
    let on = session.trace.step("open device", || Transformer::open(&session.device))?;
    let lanes = on.report().lanes.join(", ");
    let rows = Rows::open(session, what.json.as_deref())?;
    let mut plot = Plot::open(&what.plot, "elements", "million elements/s")?;
    session.note(&format!("ntt, {}, {lanes}, {runs} runs after one to warm up; results checked", batch.field));
    let mut columns = ["size", "lanes", "median ms", "min ms", "million/s"].map(String::from).to_vec();
    let has_cube = subjects.iter().any(|subject| subject.0 == As::Cube);
    if has_cube {
        columns.extend(["as", "exchange ms"].map(String::from));
    }
    let mut table = vec![columns];
    let cases = what.log_n.clone().flat_map(|log_n| subjects.iter().map(move |&subject| (log_n, subject)));
    for (log_n, subject) in cases {
        Progress::start(&session.bars, "ntt", 0);
        let (times, exchange) = session.trace.step("ntt", || {
            Ok::<_, tandem_engine::Error>(match (subject, what.is_spread()) {
                ((As::Cube, exchange), _) => {
                    let way = if exchange == Some(Exchange::Host) { Way::Host } else { Way::Direct };
                    let CubeTimes { whole, exchange } = on.bench_cube(batch.field, log_n, way, runs)?;
                    (whole, Some(median_and_min(&exchange).0 * 1e3))
                }
                (_, true) => (on.bench(batch.field, log_n, runs)?, None),
                (_, false) => (on.bench_batch(&batch, log_n, runs)?, None),
            })
        })?;
        session.bars.clear();
        let (median, min) = median_and_min(&times.seconds);
        let mut row = json!({
            "what": "ntt",
            "field": name(&what.field),
            "log_n": log_n,
            "order": name(&what.order).to_uppercase(),
            "lanes": times.lanes,
            "ms_median": report::round(median * 1e3),
            "ms_min": report::round(min * 1e3),
            "runs": times.seconds.len(),
        });
        match what.field {
            Field::Bn254 => row["curve"] = CurveId::Bn254.snarkjs_name().into(),
            Field::Bls12381 => row["curve"] = CurveId::Bls12_381.snarkjs_name().into(),
            _ => {}
        }
        if let (As::Cube, Some(way)) = subject {
            row["as"] = name(&As::Cube).into();
            row["exchange"] = name(&way).into();
            row["exchange_ms_median"] = exchange.map(report::round).into();
        }
        if what.coset != Coset::None {
            row["coset"] = name(&what.coset).into();
        }
        if what.inverse {
            row["inverse"] = true.into();
        }
        if what.batch != 1 {
            row["batch"] = what.batch.into();
        }
        rows.append_row(&lanes, row)?;
        let rate = what.batch as f64 * (1u64 << log_n) as f64 / median / 1e6;
        let how = match subject {
            (As::Spread, _) => name(&As::Spread),
            (As::Cube, exchange) => format!("cube, {}", exchange.as_ref().map(name).unwrap_or_default()),
        };
        let series = rows::lanes(times.lanes);
        let series = if has_cube { format!("{series}, {how}") } else { series };
        plot.add(&series, f64::from(log_n).exp2(), rate);
        let mut cells = vec![
            format!("2^{log_n}"),
            times.lanes.to_string(),
            format!("{:.3}", median * 1e3),
            format!("{:.3}", min * 1e3),
            format!("{rate:.2}"),
        ];
        if has_cube {
            cells.extend([how, exchange.map_or("-".into(), |ms| format!("{ms:.3}"))]);
        }
        table.push(cells);
    }
    rows.text(&report::table(&table));
    plot.write(&format!("ntt, {}, {lanes}", batch.field))
}

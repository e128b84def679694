//! `tandem bench ntt`: transforms of any field, size and form, each on as many GPUs as is fastest, and batches.

use crate::measure::ntt::Transformer;
use crate::measure::ntt_batch::{Batch, Points};
use crate::plot::{Plot, PlotFile};
use crate::rows::{self, median_and_min, Rows};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tandem_console::failure::Outcome;
use tandem_console::report;
use tandem_console::session::Session;
use tandem_console::values::name;
use tandem_engine::{CurveId, Direction, FieldId, Order, Progress};

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

    /// Whether this is what is spread over several GPUs.
    fn is_spread(&self) -> bool {
        self.order == Orders::Nr && self.coset == Coset::None && !self.inverse && self.batch == 1
    }
}

pub(crate) fn run(session: &Session, what: &NttBench) -> Outcome {
    let (batch, runs) = (what.batch(), what.runs as usize);
    let on = session.trace.step("open device", || Transformer::open(&session.device))?;
    let lanes = on.report().lanes.join(", ");
    let rows = Rows::open(session, what.json.as_deref())?;
    let mut plot = Plot::open(&what.plot, "elements", "million elements/s")?;
    session.note(&format!("ntt, {}, {lanes}, {runs} runs after one to warm up; results checked", batch.field));
    let mut table = vec![["size", "lanes", "median ms", "min ms", "million/s"].map(String::from).to_vec()];
    for log_n in what.log_n.clone() {
        Progress::start(&session.bars, "ntt", 0);
        let times = session.trace.step("ntt", || match what.is_spread() {
            true => on.bench(batch.field, log_n, runs),
            false => on.bench_batch(&batch, log_n, runs),
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
        plot.add(&rows::lanes(times.lanes), f64::from(log_n).exp2(), rate);
        table.push(vec![
            format!("2^{log_n}"),
            times.lanes.to_string(),
            format!("{:.3}", median * 1e3),
            format!("{:.3}", min * 1e3),
            format!("{rate:.2}"),
        ]);
    }
    rows.text(&report::table(&table));
    plot.write(&format!("ntt, {}, {lanes}", batch.field))
}

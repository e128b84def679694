//! `tandem bench vector`: primitives over vectors of scalars, on the first lane.

use crate::bound::scalars_ms;
use crate::measure::vector::{Operation, Vectors};
use crate::plot::Plot;
use crate::rows::{median_and_min, Rows};
use crate::BenchOptions;
use clap::Args;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_console::values::name;
use tandem_engine::{CurveId, DeviceKind, Progress};

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
    let header = ["size", "operation", "median ms", "min ms", "million/s", "bound/median"];
    let mut table = vec![header.map(String::from).to_vec()];
    let is_gpu = on.report().kind == DeviceKind::Cuda;
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
            let bound = is_gpu.then(|| bound_ms(*operation, n));
            row["bound_ms"] = bound.map(report::round).into();
            rows.append_row(&device, row)?;
            let rate = n as f64 / median / 1e6;
            plot.add(&what, n as f64, rate);
            if let Some(ms) = bound {
                plot.bound(&what, "bound", n as f64, n as f64 / ms / 1e3);
            }
            table.push(vec![
                format!("2^{log_n}"),
                what,
                format!("{:.3}", median * 1e3),
                format!("{:.3}", min * 1e3),
                format!("{rate:.2}"),
                bound.map_or("-".into(), |ms| format!("{:.2}", ms / median / 1e3)),
            ]);
        }
    }
    rows.text(&report::table(&table));
    plot.write(&format!("vector, {curve}, {device}"))
}

/// The least time of an operation on `n` elements on an NVIDIA H200, in milliseconds: each element of each vector is read once or written
/// once, and takes part in the fewest products that the operation can do with.
fn bound_ms(operation: Operation, n: usize) -> f64 {
    const ELEMENT: f64 = 32.0;
    // A product is one of limbs and a reduction; a sum of products takes one reduction (docs/design/field-arithmetic.md).
    let merged = |products: f64, reductions: f64| (48.0 * products + 65.0 * reductions) / 113.0;
    let (products, bytes) = match operation {
        // Montgomery's trick: the product before each element, its inverse, and that of what comes before.
        Operation::BatchInverse => (3.0, 2.0 * ELEMENT),
        Operation::PrefixProduct | Operation::Divide => (1.0, 2.0 * ELEMENT),
        Operation::Evaluate => (1.0, ELEMENT),
        // And an index of 32 bits.
        Operation::Gather => (0.0, 2.0 * ELEMENT + 4.0),
        Operation::AddScaled => (1.0, 3.0 * ELEMENT),
        // (qm a + qr) b + ql a + qo c + qc of eight vectors.
        Operation::GateRows => (merged(4.0, 2.0), 9.0 * ELEMENT),
        // Three factors, each with a product of its own, of six vectors.
        Operation::PermutedRows => (5.0, 7.0 * ELEMENT),
        Operation::Combined => (merged(15.0, 1.0), 16.0 * ELEMENT),
        // The gates; twice three factors with z, whose difference is reduced; beta x, whose multiples are sums, and three permuted places;
        // alpha, alpha^2 and l1, in a sum with the gates.
        Operation::QuotientRows => (merged(4.0 + 6.0 + 4.0 + 3.0, 1.0 + 5.0 + 4.0 + 2.0), 16.0 * ELEMENT),
    };
    scalars_ms(products * n as f64, bytes * n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_worked_out_by_hand() {
        // 2^20 elements: three products of 113 wide multiplications, 8.36e12 a second; 68 and 32 bytes at 4.8 TB/s.
        for (operation, ms) in [
            (Operation::BatchInverse, 0.0425),
            (Operation::PrefixProduct, 0.01417),
            (Operation::Divide, 0.01417),
            (Operation::Evaluate, 0.01417),
            (Operation::Gather, 0.01485),
            (Operation::AddScaled, 0.02097),
            (Operation::GateRows, 0.06291),
            (Operation::PermutedRows, 0.07087),
            (Operation::Combined, 0.1118),
            (Operation::QuotientRows, 0.2002),
        ] {
            let bound = bound_ms(operation, 1 << 20);
            assert!((bound / ms - 1.0).abs() < 0.01, "{operation:?} {bound}");
        }
    }
}

//! `tandem bench lagrange`: Lagrange points of powers of tau, on the first lane.

use crate::bound::products_ms;
use crate::measure::lagrange::{Lagrange, LOG_SIZES};
use crate::plot::Plot;
use crate::rows::{median_and_min, Rows};
use crate::BenchOptions;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_engine::{CurveId, DeviceKind, Progress};

pub(crate) fn run(session: &Session, options: &BenchOptions) -> Outcome {
    let (runs, curve): (usize, CurveId) = (options.runs as usize, options.curve.into());
    if options.log_n.end() > LOG_SIZES.end() {
        return Err(Failure::input(format!("--log-n: expected up to {}", LOG_SIZES.end())));
    }
    let on = session.trace.step("open device", || Lagrange::open(&session.device))?;
    let device = on.report().lanes.join(", ");
    let rows = Rows::open(session, options.json.as_deref())?;
    let mut plot = Plot::open(&options.plot, "points", "million points/s")?;
    session.note(&format!("lagrange, {curve}, {device}, {runs} runs after one to warm up; results checked"));
    let header = ["size", "median ms", "min ms", "million/s", "bound/median"];
    let mut table = vec![header.map(String::from).to_vec()];
    let is_gpu = on.report().kind == DeviceKind::Cuda;
    for log_n in options.log_n.clone() {
        let n = 1usize << log_n;
        Progress::start(&session.bars, "lagrange", 0);
        let seconds = session.trace.step("lagrange", || on.bench(curve, n, runs, &session.bars))?;
        session.bars.clear();
        let (median, min) = median_and_min(&seconds);
        let mut row = Rows::timed("lagrange", curve, log_n, &seconds);
        let bound = is_gpu.then(|| bound_ms(curve, n));
        row["bound_ms"] = bound.map(report::round).into();
        rows.append_row(&device, row)?;
        let rate = n as f64 / median / 1e6;
        plot.add("points", n as f64, rate);
        if let Some(ms) = bound.filter(|&ms| ms > 0.0) {
            plot.bound("points", "bound", n as f64, n as f64 / ms / 1e3);
        }
        table.push(vec![
            format!("2^{log_n}"),
            format!("{:.3}", median * 1e3),
            format!("{:.3}", min * 1e3),
            format!("{rate:.3}"),
            bound.map_or("-".into(), |ms| format!("{:.2}", ms / median / 1e3)),
        ]);
    }
    rows.text(&report::table(&table));
    plot.write(&format!("lagrange, {curve}, {device}"))
}

/// The least time of n points on an NVIDIA H200, in milliseconds: the products in the field of as many products of points
/// (docs/design/plonk.md).
fn bound_ms(curve: CurveId, n: usize) -> f64 {
    /// Of a product of a point, in Jacobian coordinates with signed digits of four bits.
    const PRODUCTS: f64 = 2900.0;
    // A product in the base field takes 113 wide multiplications over BN254, as one of scalars does, and 253 over BLS12-381.
    let field = match curve {
        CurveId::Bn254 => 1.0,
        CurveId::Bls12_381 => 253.0 / 113.0,
    };
    products_ms(tandem_ops::point_ntt::products(n) * PRODUCTS * field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_worked_out_by_hand() {
        // 10.5 million products of points of 2900 products of 113 or 253 wide multiplications, 8.36e12 a second.
        for (curve, ms) in [(CurveId::Bn254, 411.0), (CurveId::Bls12_381, 920.0)] {
            let bound = bound_ms(curve, 1 << 20);
            assert!((bound / ms - 1.0).abs() < 0.01, "{curve} {bound}");
        }
        assert_eq!(bound_ms(CurveId::Bn254, 1), 0.0);
    }
}

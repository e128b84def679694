//! `tandem bench ntt`: transforms, each on as many GPUs as is fastest.

use crate::bench::{median_and_min, Rows};
use crate::cli::BenchOptions;
use crate::commands::Session;
use crate::failure::Outcome;
use crate::report;
use serde_json::json;
use tandem_engine::{CurveId, Progress, Transformer};

pub(crate) fn run(session: &Session, options: &BenchOptions) -> Outcome {
    let curve: CurveId = options.curve.into();
    let on = session.trace.step("open device", || Transformer::open(&session.device))?;
    let lanes = on.report().lanes.join(", ");
    let rows = Rows::open(session, lanes.clone(), options.json.as_deref())?;
    session.note(&format!("ntt, {curve}, {lanes}, {} runs after one to warm up; results checked", options.runs));
    let mut table = vec![["size", "lanes", "median ms", "min ms", "million/s"].map(String::from).to_vec()];
    for log_n in options.log_n.clone() {
        Progress::start(&session.bars, "ntt", 0);
        let times = session.trace.step("ntt", || on.bench(curve, log_n, options.runs as usize))?;
        session.bars.clear();
        let (median, min) = median_and_min(&times.seconds);
        rows.append_row(json!({
            "what": "ntt",
            "curve": curve.snarkjs_name(),
            "log_n": log_n,
            "lanes": times.lanes,
            "ms_median": report::round(median * 1e3),
            "ms_min": report::round(min * 1e3),
            "runs": times.seconds.len(),
        }))?;
        table.push(vec![
            format!("2^{log_n}"),
            times.lanes.to_string(),
            format!("{:.3}", median * 1e3),
            format!("{:.3}", min * 1e3),
            format!("{:.2}", (1u64 << log_n) as f64 / median / 1e6),
        ]);
    }
    rows.text(&report::table(&table))
}

//! `tandem bench poseidon`: hashes of columns from host memory, or Merkle trees over leaves that lie on the device.

use crate::measure::poseidon::Hashes;
use crate::plot::Plot;
use crate::rows::{header, line, median_and_min, Rows};
use crate::BenchOptions;
use tandem_console::failure::Outcome;
use tandem_console::options::HashFunction;
use tandem_console::session::Session;
use tandem_ops::Family;

/// Hashes of columns or a tree, on all lanes, checked by the engine.
pub(crate) fn run(
    session: &Session,
    options: &BenchOptions,
    function: &HashFunction,
    (tree, pinned): (bool, bool),
) -> Outcome {
    let (params, curve) = (function.params()?, options.curve.into());
    let hashes = session.trace.step("open device", || match tree {
        true => Hashes::trees(&session.device, curve, params),
        false => Hashes::columns(&session.device, curve, params, pinned),
    })?;
    let lanes = hashes.report().lanes.join(", ");
    let rows = Rows::open(session, options.json.as_deref())?;
    let mut plot = Plot::open(&options.plot, if tree { "leaves" } else { "columns" }, "million hashes/s")?;
    let kind = match (tree, pinned) {
        (true, _) => "tree",
        (false, true) => "columns_pinned",
        (false, false) => "columns",
    };
    let family = if params.family() == Family::Circomlib { "circomlib" } else { "filecoin" };
    let what = format!("poseidon_{kind}_t{}_{family}", params.width());
    session.note(&format!("{what}, {curve}, {lanes}, {} runs after one to warm up; results checked", options.runs));
    let mut table = vec![header("million/s")];
    for log_n in options.log_n.clone() {
        tandem_engine::Progress::start(&session.bars, "poseidon", 0);
        let runs = options.runs as usize;
        let seconds = session.trace.step("poseidon", || hashes.bench(log_n, runs))?;
        session.bars.clear();
        let (median, min) = median_and_min(&seconds);
        rows.append_row(&lanes, Rows::timed(&what, curve, log_n, &seconds))?;
        let rate = (1u64 << log_n) as f64 / median / 1e6;
        plot.add(&lanes, f64::from(log_n).exp2(), rate);
        table.push(line(log_n, median, min, rate));
    }
    rows.table(&table, "");
    plot.write(&format!("{what}, {curve}"))
}

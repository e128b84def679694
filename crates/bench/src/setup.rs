//! `tandem bench setup`: test keys of circuits made up for the size.

use crate::made::Folder;
use crate::plot::Plot;
use crate::rows::{line, median_and_min, Rows};
use crate::BenchOptions;
use std::path::{Path, PathBuf};
use tandem_console::failure::Outcome;
use tandem_console::report;
use tandem_console::session::Session;
use tandem_engine::Synthetic;

/// The files of a made-up circuit: constraints, witness and key.
pub(crate) fn made(folder: &Path, log_n: u32) -> [PathBuf; 3] {
    ["r1cs", "wtns", "zkey"].map(|extension| folder.join(format!("n{log_n}.{extension}")))
}

/// Keys of made-up circuits, from file to file: for tests, or from powers of tau, which are made before and not measured.
pub(crate) fn run(session: &Session, options: &BenchOptions, dense: f64, ptau: bool, keep: Option<&Path>) -> Outcome {
    let rows = Rows::open(session, options.json.as_deref())?;
    let made_in = Folder::of(keep)?;
    let folder = made_in.path();
    let powers_in = Folder::of(None)?;
    let name = if ptau { "setup_ptau" } else { "setup" };
    let curve = options.curve.into();
    let mut plot = Plot::open(&options.plot, "constraints", "thousand constraints/s")?;
    session.note(&format!("setup, {curve}, CPU, {} runs; circuits and keys in {}", options.runs, folder.display()));
    let mut table = vec![["size", "median ms", "min ms", "constraints/s", "key"].map(String::from).to_vec()];
    for log_n in options.log_n.clone() {
        let [r1cs, wtns, zkey] = made(folder, log_n);
        session.trace.step("write circuit", || Synthetic { curve, log_size: log_n, dense }.write(&r1cs, &wtns))?;
        let powers = powers_in.path().join(format!("n{log_n}.ptau"));
        if ptau {
            let make = || tandem_engine::test_ptau(curve, log_n, None, &powers, &session.bars);
            session.trace.step("powers of tau", make)?;
        }
        let mut seconds = Vec::new();
        let mut bytes = 0;
        for _ in 0..options.runs {
            let made = session.trace.step("setup", || {
                if ptau {
                    return tandem_engine::setup_ceremony(&r1cs, &powers, &zkey, &session.bars);
                }
                tandem_engine::setup(&r1cs, &zkey, &tandem_engine::SetupOptions::default(), &session.bars)
            })?;
            session.bars.clear();
            bytes = made.key.file_bytes;
            seconds.push(made.stages.iter().map(|stage| stage.seconds).sum());
        }
        let (median, min) = median_and_min(&seconds);
        rows.append_row("CPU", Rows::timed(name, curve, log_n, &seconds))?;
        plot.add("CPU", f64::from(log_n).exp2(), f64::from(log_n).exp2() / median / 1e3);
        let mut cells = line(log_n, median, min, (1u64 << log_n) as f64 / median);
        cells.push(report::bytes(bytes));
        table.push(cells);
    }
    rows.table(&table, "");
    plot.write(&format!("{}, {curve}", if ptau { "keys from powers of tau" } else { "test keys" }))
}

//! `tandem bench`: times of primitives and of whole proofs, as a table and as rows of JSON.

use crate::cli::{self, BenchOptions};
use crate::commands::Session;
use crate::failure::{Failure, Outcome};
use crate::plot::Plot;
use crate::report;
use serde_json::{json, Value};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tandem_engine::{CurveId, Hasher, Synthetic};
use tandem_ops::Family;

pub(crate) fn run(session: &Session, what: &cli::Bench) -> Outcome {
    match what {
        cli::Bench::Fabric(what) => crate::fabric::run(session, what),
        cli::Bench::Ntt(options) => crate::bench_ntt::run(session, options),
        cli::Bench::Msm(args) => crate::bench_msm::run(session, args),
        cli::Bench::Poseidon { function, tree, pinned, options } => {
            poseidon(session, options, function, (*tree, *pinned))
        }
        cli::Bench::Reduce(args) => crate::bench_reduce::run(session, args),
        cli::Bench::Sort(args) => crate::bench_sort::run(session, args),
        cli::Bench::Groth16(args) => crate::bench_groth16::run(session, args),
        cli::Bench::Setup { dense, keep, options } => setup(session, options, *dense, keep.as_deref()),
    }
}

/// The files of a made-up circuit: constraints, witness and key.
pub(crate) fn made(folder: &Path, log_n: u32) -> [PathBuf; 3] {
    ["r1cs", "wtns", "zkey"].map(|extension| folder.join(format!("n{log_n}.{extension}")))
}

/// Test keys of made-up circuits, from file to file.
fn setup(session: &Session, options: &BenchOptions, dense: f64, keep: Option<&Path>) -> Outcome {
    let rows = Rows::open(session, options.json.as_deref())?;
    let temporary = match keep {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(|e| Failure::input(format!("cannot make a temporary folder: {e}")))?),
    };
    if let Some(folder) = keep {
        std::fs::create_dir_all(folder).map_err(|e| Failure::file(folder, format!("cannot make this folder: {e}")))?;
    }
    let folder = keep.or(temporary.as_ref().map(|t| t.path())).unwrap_or(Path::new("."));
    let curve = options.curve.into();
    let mut plot = Plot::open(&options.plot, "constraints", "thousand constraints/s")?;
    session.note(&format!("setup, {curve}, CPU, {} runs; circuits and keys in {}", options.runs, folder.display()));
    let mut table = vec![["size", "median ms", "min ms", "constraints/s", "key"].map(String::from).to_vec()];
    for log_n in options.log_n.clone() {
        let [r1cs, wtns, zkey] = made(folder, log_n);
        session.trace.step("write circuit", || Synthetic { curve, log_size: log_n, dense }.write(&r1cs, &wtns))?;
        let mut seconds = Vec::new();
        let mut bytes = 0;
        for _ in 0..options.runs {
            let made = session.trace.step("setup", || {
                tandem_engine::setup(&r1cs, &zkey, &tandem_engine::SetupOptions::default(), &session.bars)
            })?;
            session.bars.clear();
            bytes = made.key.file_bytes;
            seconds.push(made.stages.iter().map(|stage| stage.seconds).sum());
        }
        let (median, min) = median_and_min(&seconds);
        rows.append_row("CPU", Rows::timed("setup", curve, log_n, &seconds))?;
        plot.add("CPU", f64::from(log_n).exp2(), f64::from(log_n).exp2() / median / 1e3);
        let mut cells = line(log_n, median, min, (1u64 << log_n) as f64 / median);
        cells.push(report::bytes(bytes));
        table.push(cells);
    }
    rows.table(&table, "");
    plot.write(&format!("test keys, {curve}"))
}

/// The middle and the least of some durations.
pub(crate) fn median_and_min(seconds: &[f64]) -> (f64, f64) {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => (f64::NAN, f64::NAN),
        n if n % 2 == 1 => (sorted[n / 2], sorted[0]),
        n => ((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0, sorted[0]),
    }
}

pub(crate) fn header(unit: &str) -> Vec<String> {
    ["size", "median ms", "min ms", unit].map(String::from).to_vec()
}

pub(crate) fn line(log_n: u32, median: f64, min: f64, rate: f64) -> Vec<String> {
    vec![format!("2^{log_n}"), format!("{:.3}", median * 1e3), format!("{:.3}", min * 1e3), format!("{rate:.2}")]
}

/// Hashes of columns or a tree, on all lanes, checked by the engine.
fn poseidon(
    session: &Session,
    options: &BenchOptions,
    function: &crate::hash::Function,
    (tree, pinned): (bool, bool),
) -> Outcome {
    let (params, curve) = (function.params()?, options.curve.into());
    let hasher = session.trace.step("open device", || Hasher::open(&session.device, curve, params))?;
    let lanes = hasher.report().lanes.join(", ");
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
        let seconds = session.trace.step("poseidon", || match tree {
            true => hasher.bench_tree(log_n, runs),
            false => hasher.bench_columns(log_n, runs, pinned),
        })?;
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

/// The name of stdout, for rows.
pub(crate) const STDOUT: &str = "-";

/// Where the rows for machines go.
pub(crate) struct Rows<'a> {
    session: &'a Session,
    file: Option<&'a Path>,
}

impl<'a> Rows<'a> {
    /// Opens the file once, so that a wrong path costs no time.
    pub(crate) fn open(session: &'a Session, file: Option<&'a Path>) -> Outcome<Self> {
        let rows = Self { session, file };
        if rows.file.is_some() && !rows.to_stdout() {
            rows.write("")?;
        }
        Ok(rows)
    }

    fn to_stdout(&self) -> bool {
        self.file == Some(Path::new(STDOUT))
    }

    /// A row of a measurement's times.
    pub(crate) fn timed(what: &str, curve: CurveId, log_n: u32, seconds: &[f64]) -> Value {
        let (median, min) = median_and_min(seconds);
        json!({
            "what": what,
            "curve": curve.snarkjs_name(),
            "log_n": log_n,
            "ms_median": report::round(median * 1e3),
            "ms_min": report::round(min * 1e3),
            "runs": seconds.len(),
        })
    }

    /// Appends a row, with what every row has: on which devices, of which commit, when and by which command it was measured.
    pub(crate) fn append_row(&self, device: &str, mut row: Value) -> Outcome {
        row["device"] = device.into();
        row["commit"] = env!("TANDEM_COMMIT_BUILT").into();
        row["date"] = date(SystemTime::now()).into();
        row["command"] = command_line().into();
        self.write(&format!("{row}\n"))
    }

    /// Whole lines are appended with one write each.
    fn write(&self, text: &str) -> Outcome {
        match self.file {
            None => Ok(()),
            Some(_) if self.to_stdout() => {
                report::result(text);
                if report::is_read() {
                    Ok(())
                } else {
                    Err(Failure::unread())
                }
            }
            Some(path) => tandem_formats::output::append(path)?
                .write_all(text.as_bytes())
                .map_err(|e| Failure::file(path, format!("cannot append: {e}"))),
        }
    }

    pub(crate) fn table(&self, rows: &[Vec<String>], more: &str) {
        self.text(&format!("{}{more}", report::table(rows)));
    }

    /// A table for people: on stdout, unless the rows go there.
    pub(crate) fn text(&self, text: &str) {
        if self.to_stdout() {
            self.session.note(text.trim_end());
        } else {
            report::result(text);
        }
    }
}

/// As the user gave it; what is no text is shown as near as can be.
fn command_line() -> String {
    std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// The date in UTC, such as 2026-01-31T12:00:00Z.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from 1 March, so that the leap day comes last; 400 years have 146,097 days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // As `date -u -d @N` says.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median_and_min(&[3.0, 1.0, 2.0]), (2.0, 1.0));
        assert_eq!(median_and_min(&[4.0, 1.0, 2.0, 3.0]), (2.5, 1.0));
    }
}

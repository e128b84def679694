//! What comes of a benchmark: a table for people and rows of JSON.

use serde_json::{json, Value};
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_engine::CurveId;

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

/// `1 lane`, `2 lanes`.
pub(crate) fn lanes(n: usize) -> String {
    if n == 1 {
        "1 lane".into()
    } else {
        format!("{n} lanes")
    }
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
        row["commit"] = tandem_console::COMMIT.into();
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

//! Lines for people: results on stdout, remarks on stderr.

use crate::color::{self, Stream, Style};
use crate::failure::{Failure, Outcome};
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use tandem_engine::{Moved, Stage};
use tandem_fabric_topology::{wrapped, COLUMNS};

/// The first failure to write to stdout; nothing is written after it.
static FAILED: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// A result on stdout. What becomes of it is no matter of the command's, which goes on to its end: [`printed`] tells when that is
/// reached.
pub fn result(text: &str) {
    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    if failed.is_none() {
        *failed = print(&mut std::io::stdout().lock(), text).err();
    }
}

/// A verdict on stdout.
pub fn verdict(is_good: bool, text: &str) {
    result(&color::paint(Stream::Out, if is_good { Style::Good } else { Style::Bad }, text));
}

fn print(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Whether results can still be printed.
pub fn is_read() -> bool {
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).is_none()
}

/// What became of the results.
pub fn printed() -> Outcome {
    judge(FAILED.lock().unwrap_or_else(PoisonError::into_inner).as_ref())
}

/// That a reader has gone away, as in `tandem ... | head`, is no failure.
pub fn judge(failed: Option<&std::io::Error>) -> Outcome {
    match failed {
        Some(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::input(format!("stdout: cannot write: {e}"))),
        _ => Ok(()),
    }
}

/// A remark on stderr.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What is not as it should be, on stderr; said even with `--quiet`.
pub fn warn(text: &str) {
    note(&format!("{} {text}", color::paint(Stream::Err, Style::Warning, "warning:")));
}

/// A name and what there is to say of it, which goes on below itself where the line is full. Words are never broken.
pub fn row(width: usize, name: &str, what: &str) -> String {
    wrapped(&format!("{name:width$} {what}"), width + 1).trim_end().into()
}

/// A count of things, such as `1 gate` or `2 gates`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A duration with three significant digits.
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 0.001 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{:.3} s", s),
        s if s < 100.0 => format!("{s:.2} s"),
        s => format!("{s:.0} s"),
    }
}

/// A number of bytes in binary units.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{n} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A table of stages, one a line; on a terminal with bars, the longest for the longest stage.
pub fn stages(stages: &[Stage]) -> String {
    stages_with(stages, std::io::stderr().is_terminal())
}

fn stages_with(stages: &[Stage], has_bars: bool) -> String {
    let width = stages.iter().map(|s| s.name.len()).max().unwrap_or(0);
    let longest = stages.iter().map(|s| s.seconds).fold(0.0, f64::max);
    let line = |s: &Stage| {
        let lane = s.lane.map_or(String::new(), |lane| format!("lane {lane}"));
        let cells = format!("  {:width$}  {:>9.2} ms  {lane:8}", s.name, s.seconds * 1e3);
        let room = COLUMNS.saturating_sub(cells.len() + 1);
        // Divided first: the longest stage's share is 1, and its bar whole.
        let length = if has_bars { (room as f64 * (s.seconds / longest)) as usize } else { 0 };
        format!("{}\n", format!("{cells} {}", "=".repeat(length)).trim_end())
    };
    stages.iter().map(line).collect()
}

/// A table of what the copies of stages moved, and of how much of them their lanes waited for copies: of those that did either, and of all. Empty
/// where none did.
pub fn copies(stages: &[Stage]) -> String {
    let total: Moved = stages.iter().map(|stage| stage.moved).sum();
    let of_bytes = |n: u64| if n > 0 { bytes(n) } else { String::new() };
    let row = |name: &str, lane: String, Moved { up, down, across }: Moved, waited: String| {
        vec![format!("  {name}"), lane, of_bytes(up), of_bytes(down), of_bytes(across), waited]
    };
    let of_stage = |s: &Stage| {
        let share = if s.waited > 0.0 { format!("{:.0} %", s.waited / s.seconds * 100.0) } else { String::new() };
        row(s.name, s.lane.map_or(String::new(), |lane| format!("lane {lane}")), s.moved, share)
    };
    let has_any = |s: &&Stage| s.moved != Moved::default() || s.waited > 0.0;
    let mut rows: Vec<_> = stages.iter().filter(has_any).map(of_stage).collect();
    if rows.is_empty() {
        return String::new();
    }
    rows.insert(0, ["  copies", "", "to device", "to host", "to other devices", "waited"].map(String::from).to_vec());
    rows.push(row("all", String::new(), total, String::new()));
    table(&rows)
}

/// Stages as JSON; those of lanes with what they moved and waited.
pub fn stages_json(stages: &[Stage]) -> serde_json::Value {
    let stage = |s: &Stage| {
        let mut stage = serde_json::json!({"name": s.name, "lane": s.lane, "ms": round(s.seconds * 1e3)});
        if s.lane.is_some() {
            stage["waited_ms"] = round(s.waited * 1e3).into();
            let Moved { up, down, across } = s.moved;
            let bytes = [("host_to_device", up), ("device_to_host", down), ("device_to_device", across)];
            bytes.into_iter().for_each(|(way, bytes)| stage[format!("{way}_bytes")] = bytes.into());
        }
        stage
    };
    stages.iter().map(stage).collect()
}

/// Six decimals are enough for milliseconds.
pub fn round(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

/// Rows with aligned columns; the first column to the left, the others to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let w = widths[c];
            line.push_str(&if c == 0 { format!("{cell:w$}") } else { format!("  {cell:>w$}") });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|n| count(n, "gate")), ["0 gates", "1 gate", "2 gates"]);
    }

    #[test]
    fn sizes_and_times_read_well() {
        assert_eq!([0, 1023, 1024, 3 << 29].map(bytes), ["0 B", "1023 B", "1.0 KiB", "1.5 GiB"]);
        assert_eq!([0.00002, 0.5, 12.345, 456.7].map(seconds), ["20 us", "0.500 s", "12.35 s", "457 s"]);
    }

    #[test]
    fn rows_fit_the_screen() {
        let text = row(10, "name", &"word ".repeat(40));
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS) && text.lines().count() == 3, "{text}");
        assert!(
            text.starts_with("name       word word")
                && text.lines().skip(1).all(|line| line.starts_with("           word"))
        );
        assert_eq!(row(4, "a", ""), "a");
        assert_eq!(row(4, "a", &"x".repeat(99)), format!("a    {}", "x".repeat(99)));
    }

    #[test]
    fn the_longest_stage_has_the_longest_bar() {
        let stage = |name, lane, seconds| Stage { name, lane, seconds, ..Stage::default() };
        let all = [stage("load", None, 0.5), stage("prove it all", Some(3), 1.0), stage("end", None, 0.0)];
        let bars = |has_bars| {
            stages_with(&all, has_bars).lines().map(|line| (line.len(), line.matches('=').count())).collect::<Vec<_>>()
        };
        let shown = bars(true);
        assert_eq!(shown[1].0, COLUMNS);
        assert!(shown[1].1 == 2 * shown[0].1 || shown[1].1 == 2 * shown[0].1 + 1, "{shown:?}");
        assert_eq!(shown[2].1, 0);
        assert!(bars(false).iter().all(|(length, bar)| *bar == 0 && *length < 45));
    }

    #[test]
    fn copies_of_stages_are_a_table_with_a_sum() {
        let stage = |name, lane, waited, moved| Stage { name, lane, seconds: 0.5, waited, moved, begun: None };
        let none = Moved::default();
        let all = [
            stage("read", None, 0.0, none),
            stage("upload", Some(0), 0.0, Moved { up: 3 << 20, ..none }),
            stage("copy", Some(11), 0.0, Moved { down: 5, across: 2048, ..none }),
            stage("digits", Some(0), 0.125, none),
            stage("sum", Some(0), 0.0, none),
        ];
        let expected = "  copies           to device  to host  to other devices  waited
  upload   lane 0    3.0 MiB
  copy    lane 11                 5 B           2.0 KiB
  digits   lane 0                                          25 %
  all                3.0 MiB      5 B           2.0 KiB
";
        assert_eq!(copies(&all), expected);
        assert_eq!(copies(&all[..1]), "");
        let json = stages_json(&all);
        assert_eq!(json[0], serde_json::json!({"name": "read", "lane": null, "ms": 500.0}));
        let ways = ["host_to_device_bytes", "device_to_host_bytes", "device_to_device_bytes"];
        assert_eq!(ways.map(|way| json[2][way].as_u64()), [Some(0), Some(5), Some(2048)]);
        assert_eq!((&json[3]["waited_ms"], &json[2]["waited_ms"]), (&125.0.into(), &0.0.into()));
    }

    #[test]
    fn tables_align() {
        let rows = [vec!["a".to_string(), "1".into()], vec!["bbb".into(), "22".into()]];
        assert_eq!(table(&rows), "a     1\nbbb  22\n");
    }
}

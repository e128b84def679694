//! Lines for people: results on stdout, remarks on stderr.

use crate::failure::{Failure, Outcome};
use std::io::{ErrorKind, Write};
use std::sync::{Mutex, PoisonError};
use tandem_engine::Stage;
use tandem_fabric_topology::COLUMNS;

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

/// A table of stages, one a line.
pub fn stages(stages: &[Stage]) -> String {
    let width = stages.iter().map(|s| s.name.len()).max().unwrap_or(0);
    let line = |s: &Stage| {
        let lane = s.lane.map_or(String::new(), |lane| format!("  lane {lane}"));
        format!("  {:width$}  {:>9.2} ms{lane}\n", s.name, s.seconds * 1e3)
    };
    stages.iter().map(line).collect()
}

/// The same for machines.
pub fn stages_json(stages: &[Stage]) -> serde_json::Value {
    let stage = |s: &Stage| serde_json::json!({"name": s.name, "lane": s.lane, "ms": round(s.seconds * 1e3)});
    stages.iter().map(stage).collect()
}

/// `1 lane`, `2 lanes`.
pub fn lanes(n: usize) -> String {
    if n == 1 {
        "1 lane".into()
    } else {
        format!("{n} lanes")
    }
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

/// Characters of a bar at most, and at least for one to be worth its room.
const BAR: [usize; 2] = [16, 4];

/// The same table, each row with a bar as long as its value, as far as lines have room. Long names in the column `names` are cut.
pub fn table_with_bars(rows: &[Vec<String>], values: &[f64], names: usize) -> String {
    let wide = |rows: &[Vec<String>]| table(rows).lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let mut rows = rows.to_vec();
    let over = (wide(&rows) + 2 + BAR[1]).saturating_sub(COLUMNS);
    let longest = rows.iter().filter_map(|r| r.get(names)).map(|c| c.chars().count()).max().unwrap_or(0);
    let room = longest.saturating_sub(over).max(8);
    for cell in rows.iter_mut().filter_map(|r| r.get_mut(names)).filter(|c| c.chars().count() > room) {
        *cell = cell.chars().take(room - 2).chain("..".chars()).collect();
    }
    let most = COLUMNS.saturating_sub(wide(&rows) + 2).min(BAR[0]);
    let greatest = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let width = wide(&rows);
    let lines = table(&rows);
    let mut out = String::new();
    for (i, line) in lines.lines().enumerate() {
        // The first row has the columns' names.
        let value = i.checked_sub(1).and_then(|i| values.get(i)).copied().unwrap_or(0.0);
        let length =
            if greatest > 0.0 && most >= BAR[1] { (value / greatest * most as f64).round() as usize } else { 0 };
        let bar = format!("{line:width$}  {}", "#".repeat(length.min(most)));
        out.push_str(bar.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_read_well() {
        assert_eq!([0, 1023, 1024, 3 << 29].map(bytes), ["0 B", "1023 B", "1.0 KiB", "1.5 GiB"]);
        assert_eq!([0.00002, 0.5, 12.345, 456.7].map(seconds), ["20 us", "0.500 s", "12.35 s", "457 s"]);
    }

    #[test]
    fn bars_are_as_long_as_values_and_lines_fit() {
        let row = |name: &str, rate: &str| vec!["4 KiB".to_string(), name.into(), rate.into()];
        let rows = [row("library", "GB/s"), row("a", "10.0"), row("b", "5.0"), row("c", "-")];
        let bars = table_with_bars(&rows, &[10.0, 5.0, f64::NAN], 1);
        let count: Vec<usize> = bars.lines().map(|line| line.matches('#').count()).collect();
        assert_eq!(count, [0, 16, 8, 0], "{bars}");
        let long = [row("library", "GB/s"), row(&"x".repeat(200), "10.0"), row("b", "5.0")];
        let bars = table_with_bars(&long, &[10.0, 5.0], 1);
        assert!(
            bars.lines().all(|line| line.chars().count() <= 80) && bars.contains("xx..") && bars.contains("####"),
            "{bars}"
        );
    }

    #[test]
    fn tables_align() {
        let rows = [vec!["a".to_string(), "1".into()], vec!["bbb".into(), "22".into()]];
        assert_eq!(table(&rows), "a     1\nbbb  22\n");
    }
}

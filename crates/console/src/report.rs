//! Lines for people: results on stdout, remarks on stderr.

use crate::failure::{Failure, Outcome};
use std::io::{ErrorKind, Write};
use std::sync::{Mutex, PoisonError};
use tandem_engine::Stage;

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
    fn sizes_and_times_read_well() {
        assert_eq!([0, 1023, 1024, 3 << 29].map(bytes), ["0 B", "1023 B", "1.0 KiB", "1.5 GiB"]);
        assert_eq!([0.00002, 0.5, 12.345, 456.7].map(seconds), ["20 us", "0.500 s", "12.35 s", "457 s"]);
    }

    #[test]
    fn tables_align() {
        let rows = [vec!["a".to_string(), "1".into()], vec!["bbb".into(), "22".into()]];
        assert_eq!(table(&rows), "a     1\nbbb  22\n");
    }
}

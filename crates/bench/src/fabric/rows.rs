//! Measured rows, as a table in the manner of nccl-tests and as JSON.

use crate::bars::table_with_bars;
use serde_json::{json, Value};
use tandem_console::report;
use tandem_console::sizes;

/// One size of one library.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Whose implementation it is, such as `tandem` or `NCCL 2.28.9`.
    pub(crate) library: String,
    /// The size, as nccl-tests count it.
    pub(crate) bytes: u64,
    /// Microseconds of a call, where many are queued and then waited for.
    pub(crate) queued: Option<f64>,
    /// Microseconds from a call until it is complete everywhere: the median.
    pub(crate) latency: f64,
    /// The part of the bytes that the last of these calls sent through host memory beside the links; `None` where there is no such way.
    pub(crate) through_host: Option<f64>,
    /// The rate that the plan foretells for large data, GB/s as [`Row::algbw`] counts them; `None` where there is no plan.
    pub(crate) planned: Option<f64>,
    /// Elements that were not what they had to be; `None` where nobody looked.
    pub(crate) wrong: Option<u64>,
}

impl Row {
    /// What a rate is taken from.
    pub(crate) fn microseconds(&self) -> f64 {
        self.queued.unwrap_or(self.latency)
    }

    /// GB/s (10^9 bytes a second).
    pub(crate) fn algbw(&self) -> f64 {
        self.bytes as f64 / self.microseconds() / 1e3
    }
}

/// A table of one operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    /// `allreduce`, `upload` and so on.
    pub(crate) what: &'static str,
    /// What the bus carries for each byte of the size; nccl-tests' busbw is algbw times this.
    pub(crate) factor: f64,
    /// The PEs of the job, where they are not all of the team.
    pub(crate) among: Vec<usize>,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// The lines, sizes together, libraries below each other.
    pub(crate) fn text(&self) -> String {
        // Where the bus carries what the operation is called with, both rates are one.
        let has_bus = self.factor != 1.0;
        let bus = |cell: String| has_bus.then_some(cell);
        let names = ["size", "library", "time us", "alone us", "GB/s"].map(String::from).into_iter();
        let mut cells = vec![names.chain(bus("busbw".into())).chain(["wrong".into()]).collect::<Vec<_>>()];
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.bytes);
        for row in &rows {
            let before = [
                sizes::write(row.bytes),
                row.library.clone(),
                row.queued.map_or("-".into(), |us| format!("{us:.2}")),
                format!("{:.2}", row.latency),
                rate(row.algbw()),
            ];
            let bus = bus(rate(row.algbw() * self.factor));
            let wrong = row.wrong.map_or("-".into(), |n| n.to_string());
            cells.push(before.into_iter().chain(bus).chain([wrong]).collect());
        }
        let rates: Vec<f64> = rows.iter().map(|row| row.algbw()).collect();
        table_with_bars(&cells, &rates, 1)
    }

    /// What machines need of a row.
    pub(crate) fn json(&self, row: &Row) -> Value {
        let mut json = json!({
            "what": self.what,
            "library": row.library,
            "bytes": row.bytes,
            "us_queued": row.queued.map(report::round),
            "us_latency": report::round(row.latency),
            "algbw": report::round(row.algbw()),
            "busbw": report::round(row.algbw() * self.factor),
            "wrong": row.wrong,
        });
        if let Some(part) = row.through_host {
            json["through_host"] = report::round(part).into();
        }
        if let Some(rate) = row.planned {
            json["plan_gbs"] = report::round(rate).into();
        }
        if !self.among.is_empty() {
            json["among"] = self.among.clone().into();
        }
        json
    }

    /// Elements that were wrong, in all.
    pub(crate) fn wrong(&self) -> u64 {
        self.rows.iter().filter_map(|row| row.wrong).sum()
    }
}

/// A rate with two decimals, or as many as two digits that count need.
fn rate(rate: f64) -> String {
    let zeros = if rate > 0.0 { (-rate.log10().floor()).clamp(1.0, 9.0) as usize } else { 1 };
    format!("{rate:.*}", zeros + 1)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn table() -> Table {
        let row = |library: &str, bytes, us| Row {
            library: library.into(),
            bytes,
            queued: Some(us),
            latency: us + 5.0,
            through_host: (library == "tandem").then_some(0.08),
            planned: (library == "tandem").then_some(370.8),
            wrong: (library == "tandem").then_some(0),
        };
        let rows = vec![row("tandem", 1 << 20, 10.0), row("tandem", 4096, 2.0), row("NCCL 2.28.9", 4096, 8.0)];
        Table { what: "allgather", factor: 0.5, among: vec![0, 2], rows }
    }

    #[test]
    fn a_table_reads_like_that_of_nccl_tests() {
        let text = table().text();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[1], ["4", "KiB", "tandem", "2.00", "7.00", "2.05", "1.02", "0"]);
        assert_eq!(lines[2], ["4", "KiB", "NCCL", "2.28.9", "8.00", "13.00", "0.51", "0.26", "-"]);
        assert_eq!(lines[3][5..], ["104.86", "52.43", "0", "################"]);
        // Of a copy both rates are one.
        assert!(!Table { factor: 1.0, ..table() }.text().contains("busbw"));
    }

    #[test]
    fn small_rates_are_not_nothing() {
        let all = [0.0, 0.000_912, 0.0099, 0.024, 0.51, 1.0, 432.174].map(rate);
        assert_eq!(all, ["0.00", "0.00091", "0.0099", "0.024", "0.51", "1.00", "432.17"]);
    }

    #[test]
    fn a_row_for_machines() {
        let table = table();
        let row = table.json(&table.rows[0]);
        assert_eq!((&row["what"], &row["bytes"]), (&"allgather".into(), &(1 << 20).into()));
        assert_eq!((row["algbw"].as_f64(), row["busbw"].as_f64()), (Some(104.8576), Some(52.4288)));
        assert_eq!(row["through_host"].as_f64(), Some(0.08));
        assert_eq!((row["plan_gbs"].as_f64(), &row["among"]), (Some(370.8), &json!([0, 2])));
        assert!(["through_host", "plan_gbs"].iter().all(|key| table.json(&table.rows[2]).get(key).is_none()));
        assert!(Table { among: Vec::new(), ..table.clone() }.json(&table.rows[0]).get("among").is_none());
        assert_eq!(table.wrong(), 0);
    }
}

//! `tandem bench sort`: keys that lie on the lanes: on one, and on all of them by either way.

use crate::measure::sort::{bench, Distribution, SortBench};
use crate::plot::{Plot, PlotFile};
use crate::rows::{self, median_and_min, Rows};
use clap::Args;
use serde_json::json;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tandem_console::failure::Outcome;
use tandem_console::options::{KeyName, Sorting, WayName};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_console::values::{self, name};
use tandem_engine::{DeviceKind, Progress, Sorter};
use tandem_ops::{SortKey, SortOptions};

#[derive(Args)]
pub(crate) struct BenchSort {
    #[command(flatten)]
    pub(crate) what: Sorting,
    /// How the keys are distributed
    #[arg(long, value_enum, value_delimiter = ',', default_value = "random")]
    pub(crate) keys: Vec<Distribution>,
    /// Binary logarithm of the number of keys, or a range such as 16..20 with both ends
    #[arg(long, value_name = "RANGE", default_value = "20", value_parser = values::range)]
    pub(crate) log_n: RangeInclusive<u32>,
    /// How often each is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// Append one JSON row for each line to this file, or print it on stdout for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plot: PlotFile,
}

pub(crate) fn run(session: &Session, args: &BenchSort) -> Outcome {
    match args.what.key {
        KeyName::U32 => run_with::<u32>(session, args),
        KeyName::U64 => run_with::<u64>(session, args),
    }
}

fn run_with<K: SortKey>(session: &Session, args: &BenchSort) -> Outcome {
    let all = session.trace.step("open device", || Sorter::open(&session.device, usize::MAX))?;
    let lanes = all.report().lanes.len();
    let one = if lanes > 1 { Some(Sorter::open(&session.device, 1)?) } else { None };
    let device = all.report().lanes.join(", ");
    let rows = Rows::open(session, args.json.as_deref())?;
    let mut plot = Plot::open(&args.plot, "keys", "Gkey/s")?;
    let what = format!("sort_{}{}", name(&args.what.key), if args.what.pairs { "_pairs" } else { "" });
    session.note(&format!("{what}, {device}, {} runs after one to warm up; results checked", args.runs));
    let header = ["size", "keys", "lanes", "way", "median ms", "min ms", "Gkey/s", "bound/median"];
    let mut table = vec![header.map(String::from).to_vec()];
    let ways = match args.what.way {
        Some(way) => vec![way],
        None => vec![WayName::Partition, WayName::Merge],
    };
    for log_n in args.log_n.clone() {
        let elements = 1usize.checked_shl(log_n).filter(|_| log_n < 40);
        let elements = elements.ok_or_else(|| tandem_console::failure::Failure::input("--log-n: expected up to 39"))?;
        for keys in &args.keys {
            Progress::start(&session.bars, "sort", 0);
            let data: SortBench<K> = SortBench::new(*keys, elements, args.what.pairs)?;
            let alone = one.iter().map(|one| (one, 1, WayName::Partition));
            let ways = ways.iter().filter(|&&way| lanes > 1 || way == ways[0]).map(|&way| (&all, lanes, way));
            for (sorter, lanes, way) in alone.chain(ways) {
                let options =
                    SortOptions { way: Sorting { way: Some(way), ..args.what }.options().way, ..args.what.options() };
                let seconds = session.trace.step("sort", || bench(sorter, &data, options, args.runs as usize))?;
                session.bars.clear();
                let (median, min) = median_and_min(&seconds);
                let way = if lanes == 1 { "alone".into() } else { name(&way) };
                let bound = (sorter.report().kind == DeviceKind::Cuda).then(|| bound_ms(&args.what, elements, lanes));
                let row = json!({
                    "what": what.as_str(), "keys": name(keys), "log_n": log_n, "lanes": lanes, "way": way.as_str(),
                    "ms_median": report::round(median * 1e3), "ms_min": report::round(min * 1e3),
                    "gkeys_per_s": report::round(elements as f64 / median / 1e9),
                    "bound_ms": bound.map(report::round), "runs": seconds.len(),
                });
                rows.append_row(&device, row)?;
                let series = format!("{}, {}, {way}", name(keys), rows::lanes(lanes));
                let gkeys = |seconds: f64| elements as f64 / seconds / 1e9;
                plot.add(&series, elements as f64, gkeys(median));
                if let Some(ms) = bound {
                    plot.bound(&series, "bound", elements as f64, gkeys(ms / 1e3));
                }
                table.push(vec![
                    format!("2^{log_n}"),
                    name(keys),
                    lanes.to_string(),
                    way,
                    format!("{:.3}", median * 1e3),
                    format!("{:.3}", min * 1e3),
                    format!("{:.2}", elements as f64 / median / 1e9),
                    bound.map_or("-".into(), |ms| format!("{:.2}", ms / median / 1e3)),
                ]);
            }
        }
    }
    rows.text(&report::table(&table));
    plot.write(&format!("{what}, {device}"))
}

/// The least time of a sort by partition on NVIDIA H200s, in milliseconds, where 2^18 pieces fit in blocks: every lane reads
/// its keys twice to count them, and reads and writes its elements three times, once of them to the other lanes. Memory moves
/// 4.8 TB/s, the links of one GPU 450 GB/s each way.
fn bound_ms(what: &Sorting, elements: usize, lanes: usize) -> f64 {
    let bytes = (what.element_bytes() * elements / lanes) as f64;
    let keys = if what.pairs { bytes / 2.0 } else { bytes };
    let link = bytes * (lanes - 1) as f64 / lanes as f64 / 450e9;
    ((2.0 * keys + 4.0 * bytes) / 4.8e12 + (2.0 * bytes / 4.8e12).max(link)) * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_worked_out_by_hand() {
        let what = |pairs| Sorting { key: KeyName::U64, pairs, descending: false, way: None };
        // 2^30 keys: 64 bytes each; on two lanes 24 of 4.3 GB in memory, and 2.1 GB over the links in 4.8 ms.
        assert!((bound_ms(&what(false), 1 << 30, 1) - 14.32).abs() < 0.01);
        assert!((bound_ms(&what(false), 1 << 30, 2) - (5.37 + 4.77)).abs() < 0.01);
        assert!((bound_ms(&what(true), 1 << 30, 1) - 25.05).abs() < 0.01);
    }
}

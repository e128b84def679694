//! `tandem bench reduce`: who should read what, as a table: one GPU, all of them with a share each, all of them reading from one, and
//! host memory over their links.

use crate::bars::table_with_bars;
use crate::fabric::{self, args::Shared};
use crate::measure::reduce::{bench, bench_resident, random_elements, Dealt, Measured};
use crate::plot::Plot;
use crate::rows::{self, median_and_min, Rows};
use clap::{Arg, Args, ValueEnum};
use serde_json::json;
use std::ops::RangeInclusive;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::options::Reduction;
use tandem_console::report;
use tandem_console::session::Session;
use tandem_console::values;
use tandem_engine::{element_bytes, DeviceChoice, Progress, Reduced, Reducer};
use tandem_ops::HostData;

#[derive(Args)]
#[command(mut_args = of_collective)]
pub(crate) struct ReduceBench {
    #[command(flatten)]
    pub(crate) reduction: Reduction,
    /// Where the elements are
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["lanes", "pinned", "pageable", "file"])]
    pub(crate) data: Vec<Place>,
    /// Binary logarithm of the number of elements, or a range such as 16..20 with both ends
    #[arg(long, value_name = "RANGE", default_value = "20", value_parser = values::range)]
    pub(crate) log_n: RangeInclusive<u32>,
    /// How often each is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// Measure the collective: arrays of all GPUs are added into one of the first GPU, with the sizes that -b, -e and -f give
    #[arg(long, conflicts_with_all = ["element", "op", "data", "log_n", "runs"])]
    pub(crate) collective: bool,
    #[command(flatten)]
    pub(crate) shared: Shared,
}

/// The options of the fabric's benches are the collective's, but for `--json` and `--plot`.
fn of_collective(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "least" | "most" | "factor" | "iters" | "warmup" | "nccl" | "tuning" | "among" => arg.requires("collective"),
        _ => arg,
    }
}

/// Where elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// In the memory of the lanes
    Lanes,
    /// In page-locked host memory
    Pinned,
    /// In other host memory
    Pageable,
    /// In a file
    File,
}

/// One line of the table.
struct Test {
    /// Of the four that this bench is for: one device with its own data; one from the host; all with a share each; all reading from one.
    number: u32,
    place: Place,
    lanes: usize,
    way: &'static str,
    measured: Measured,
}

pub(crate) fn run(session: &Session, args: &ReduceBench) -> Outcome {
    if args.collective {
        return fabric::reduce(session, &args.shared);
    }
    let all = session.trace.step("open device", || Reducer::open(&session.device))?;
    let lanes = all.report().lanes.len();
    let device = all.report().lanes.join(", ");
    let one = if lanes > 1 { Some(Reducer::open_first(&session.device)?) } else { None };
    let rows = Rows::open(session, args.shared.options.sweep.calls.json.as_deref())?;
    let mut plot = Plot::open(&args.shared.options.sweep.calls.plot, "elements", "GB/s")?;
    let name = args.reduction.name();
    session.note(&format!("{name}, {device}, {} runs after one to warm up; results checked", args.runs));
    let header = ["size", "elements", "lanes", "way", "median ms", "GB/s", "plan GB/s"];
    let mut table = vec![header.map(String::from).to_vec()];
    let mut rates = Vec::new();
    for log_n in args.log_n.clone() {
        let bytes = element_bytes(args.reduction.kind())
            .checked_shl(log_n)
            .filter(|bytes| bytes >> log_n == element_bytes(args.reduction.kind()))
            .ok_or_else(|| Failure::input(format!("--log-n {log_n}: more bytes than this machine can address")))?;
        Progress::start(&session.bars, "reduce", 0);
        let tests = session.trace.step("reduce", || measure(args, &all, one.as_ref(), bytes))?;
        session.bars.clear();
        for test in tests {
            let (median, min) = median_and_min(&test.measured.seconds);
            let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
            let place = values::name(&test.place);
            let row = json!({
                "what": name.as_str(), "test": test.number, "log_n": log_n, "data": place.as_str(), "lanes": test.lanes,
                "way": test.way, "ms_median": report::round(median * 1e3), "ms_min": report::round(min * 1e3),
                "gb_per_s": report::round(rate(median)), "plan_gb_per_s": report::round(rate(test.measured.planned)),
                "runs": test.measured.seconds.len(),
            });
            rows.append_row(&device, row)?;
            let series = format!("{place}, {}, {}", rows::lanes(test.lanes), test.way);
            plot.add(&series, f64::from(log_n).exp2(), rate(median));
            plot.bound(&series, "plan", f64::from(log_n).exp2(), rate(test.measured.planned));
            rates.push(rate(median));
            table.push(vec![
                format!("2^{log_n}"),
                place,
                test.lanes.to_string(),
                test.way.to_owned(),
                format!("{:.3}", median * 1e3),
                format!("{:.1}", rate(median)),
                format!("{:.1}", rate(test.measured.planned)),
            ]);
        }
    }
    rows.text(&table_with_bars(&table, &rates, 3));
    plot.write(&format!("{name}, {device}"))
}

/// All tests of one size, whose results are those of the CPU.
fn measure(args: &ReduceBench, all: &Reducer, one: Option<&Reducer>, bytes: usize) -> Outcome<Vec<Test>> {
    let (kind, op, runs) = (args.reduction.kind(), args.reduction.op(), args.runs as usize);
    let lanes = all.report().lanes.len();
    let mut elements = all.host_buf(bytes)?;
    random_elements(kind, &mut elements)?;
    let expected = Reducer::open(&DeviceChoice::Cpu)?.reduce(kind, op, HostData::Memory(&elements))?;
    let mut tests = Vec::new();
    let mut add = |number, place, lanes, way, measured: Measured| {
        check(&measured.result, &expected)?;
        tests.push(Test { number, place, lanes, way, measured });
        Ok::<(), Failure>(())
    };
    for &place in &args.data {
        if place == Place::Lanes {
            let mut dealt = |number, lanes, way, dealt| {
                add(number, place, lanes, way, bench_resident(all, kind, op, &elements, dealt, runs)?)
            };
            dealt(1, 1, "its own", Dealt::One)?;
            if lanes > 1 {
                dealt(3, lanes, "a share each", Dealt::Even)?;
                dealt(4, lanes, "read from the first", Dealt::Read)?;
            }
            continue;
        }
        let mut streams = |data: HostData<'_>| {
            add(2, place, 1, "streamed", bench(one.unwrap_or(all), kind, op, data, runs)?)?;
            match lanes {
                1 => Ok(()),
                _ => add(3, place, lanes, "streamed", bench(all, kind, op, data, runs)?),
            }
        };
        match place {
            Place::Pinned | Place::Lanes => streams(HostData::Memory(&elements))?,
            Place::Pageable => {
                let pageable = elements.to_vec();
                streams(HostData::Memory(&pageable))?;
            }
            Place::File => {
                let fail = |e| Failure::input(format!("cannot make a temporary file: {e}"));
                let file = tempfile::NamedTempFile::new().map_err(fail)?;
                std::fs::write(file.path(), &*elements).map_err(fail)?;
                streams(HostData::File { file: file.as_file(), bytes: bytes as u64 })?;
            }
        }
    }
    Ok(tests)
}

fn check(result: &Reduced, expected: &Reduced) -> Outcome {
    if result.is_same(expected) {
        return Ok(());
    }
    Err(Failure::device(format!("the result {result} is not the CPU's, {expected}: nothing to measure")))
}

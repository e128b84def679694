//! `tandem bench fft`: discrete Fourier transforms of random complex numbers, of vectors and of arrays, that are dealt to the lanes.

use crate::bound::bytes_ms;
use crate::measure::fft::Transforms;
use crate::plot::{Plot, PlotFile};
use crate::rows::{self, median_and_min, Rows};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_console::values::name;
use tandem_engine::{DeviceKind, Progress};
use tandem_ops::ntt::fft::MAX_LOG_N;
use tandem_ops::{Complex32, Complex64};

/// Of what numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    /// Two numbers of 32 bits
    F32,
    /// Two numbers of 64 bits
    F64,
}

#[derive(Args)]
pub(crate) struct FftBench {
    /// What the real and the imaginary part are
    #[arg(long, value_enum, default_value = "f32")]
    precision: Precision,
    /// Lanes that the numbers are dealt to: a power of two, all there are if it is left out
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=16))]
    lanes: Option<u8>,
    /// Binary logarithm of the size, or a range such as 16..20 with both ends
    #[arg(long, value_name = "RANGE", default_value = "16", value_parser = tandem_console::values::range)]
    log_n: RangeInclusive<u32>,
    /// Sides of arrays to measure instead of vectors, such as 4096x4096 or several with commas: the first one is dealt to the lanes
    #[arg(long, value_name = "SIDES", value_delimiter = ',', value_parser = sides, conflicts_with = "log_n")]
    sides: Vec<Sides>,
    /// How often each size is measured, forward and back in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Append one JSON row for each size to this file, or print it on stdout for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plot: PlotFile,
}

/// The sides of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sides(Vec<usize>);

/// Reads `4096x4096`.
fn sides(text: &str) -> Result<Sides, String> {
    let sides: Option<Vec<usize>> = text.split('x').map(|side| side.parse().ok()).collect();
    let fit = |sides: &Vec<usize>| {
        let len = sides.iter().try_fold(1usize, |len, &side| len.checked_mul(side).filter(|_| side.is_power_of_two()));
        len.is_some_and(|len| len.ilog2() <= MAX_LOG_N)
    };
    let expected = || format!("expected powers of two such as 4096x4096, together 2^{MAX_LOG_N} numbers at most");
    sides.filter(fit).map(Sides).ok_or_else(expected)
}

/// What is transformed.
enum Shape {
    Vector(u32),
    Array(Sides),
}

impl Shape {
    /// Of which numbers it has so many.
    fn len(&self) -> f64 {
        match self {
            Shape::Vector(log_n) => f64::from(*log_n).exp2(),
            Shape::Array(Sides(sides)) => sides.iter().product::<usize>() as f64,
        }
    }

    fn name(&self) -> String {
        match self {
            Shape::Vector(log_n) => format!("2^{log_n}"),
            Shape::Array(Sides(sides)) => sides.iter().map(usize::to_string).collect::<Vec<_>>().join("x"),
        }
    }

    /// Bytes that each of `lanes` lanes moves at the least: in its memory, where it reads and writes its part once along each dimension, and to the other
    /// lanes. They exchange all but what stays: a vector once, an array there and back.
    fn bytes(&self, precision: Precision, lanes: usize) -> [f64; 2] {
        let number = match precision {
            Precision::F32 => size_of::<Complex32>(),
            Precision::F64 => size_of::<Complex64>(),
        };
        let part = self.len() / lanes as f64 * number as f64;
        let (ways, exchanges) = match self {
            Shape::Vector(_) => (1, 1.0),
            Shape::Array(Sides(sides)) => (sides.iter().filter(|&&side| side > 1).count().max(1), 2.0),
        };
        [2.0 * part * ways as f64, part * exchanges * (lanes - 1) as f64 / lanes as f64]
    }
}

pub(crate) fn run(session: &Session, args: &FftBench) -> Outcome {
    if let Some(lanes) = args.lanes.filter(|lanes| !lanes.is_power_of_two()) {
        return Err(Failure::input(format!("--lanes {lanes}: expected a power of two up to 16")));
    }
    let lanes = args.lanes.map_or(usize::MAX, usize::from);
    let on = session.trace.step("open device", || Transforms::open(&session.device, lanes))?;
    let device = on.report().lanes.join(", ");
    let rows = Rows::open(session, args.json.as_deref())?;
    let mut plot = Plot::open(&args.plot, "elements", "million elements/s")?;
    let precision = name(&args.precision);
    session.note(&format!("fft, {precision}, {device}, {} runs after one to warm up; results checked", args.runs));
    let header = ["size", "lanes", "median ms", "min ms", "million/s", "MB of memory", "MB sent", "bound/median"];
    let mut table = vec![header.map(String::from).to_vec()];
    let is_gpu = on.report().kind == DeviceKind::Cuda;
    let shapes: Vec<Shape> = match args.sides.as_slice() {
        [] => args.log_n.clone().map(Shape::Vector).collect(),
        sides => sides.iter().cloned().map(Shape::Array).collect(),
    };
    for shape in shapes {
        Progress::start(&session.bars, "fft", 0);
        let runs = args.runs as usize;
        let times = session.trace.step("fft", || match (&shape, args.precision) {
            (Shape::Vector(log_n), Precision::F32) => on.bench::<Complex32>(*log_n, runs),
            (Shape::Vector(log_n), Precision::F64) => on.bench::<Complex64>(*log_n, runs),
            (Shape::Array(Sides(sides)), Precision::F32) => on.bench_array::<Complex32>(sides, runs),
            (Shape::Array(Sides(sides)), Precision::F64) => on.bench_array::<Complex64>(sides, runs),
        })?;
        session.bars.clear();
        let (median, min) = median_and_min(&times.seconds);
        let [memory, sent] = shape.bytes(args.precision, times.lanes);
        let bound = is_gpu.then(|| bytes_ms(memory, sent));
        let mut row = json!({
            "what": "fft", "precision": precision.as_str(), "log_n": shape.len().log2() as u32, "lanes": times.lanes,
            "ms_median": report::round(median * 1e3), "ms_min": report::round(min * 1e3), "runs": times.seconds.len(),
            "memory_bytes": memory as u64, "sent_bytes": sent as u64, "bound_ms": bound.map(report::round),
        });
        if let Shape::Array(_) = shape {
            (row["what"], row["sides"]) = ("fft_grid".into(), shape.name().into());
        }
        rows.append_row(&device, row)?;
        let n = shape.len();
        plot.add(&rows::lanes(times.lanes), n, n / median / 1e6);
        table.push(vec![
            shape.name(),
            times.lanes.to_string(),
            format!("{:.3}", median * 1e3),
            format!("{:.3}", min * 1e3),
            format!("{:.2}", n / median / 1e6),
            format!("{:.2}", memory / 1e6),
            format!("{:.2}", sent / 1e6),
            bound.map_or("-".into(), |ms| format!("{:.2}", ms / median / 1e3)),
        ]);
    }
    rows.text(&report::table(&table));
    plot.write(&format!("fft, {precision}, {device}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_read() {
        assert_eq!(sides("4096x2x1"), Ok(Sides(vec![4096, 2, 1])));
        assert_eq!(sides("8"), Ok(Sides(vec![8])));
        assert!(sides("65536x65536").is_ok());
        for text in [
            "",
            "x",
            "8x",
            "3x4",
            "0x4",
            "-4x4",
            "8X8",
            "131072x65536",
            "18446744073709551616x1",
            "4294967296x4294967296",
        ] {
            assert!(sides(text).is_err_and(|said| said.contains("such as 4096x4096")), "{text}");
        }
    }

    /// 4096 x 4096 numbers of 8 bytes on four lanes: 33.6 MB a lane, read and written twice; three quarters of them sent, twice.
    #[test]
    fn bytes_are_those_worked_out_by_hand() {
        let array = Shape::Array(sides("4096x4096").unwrap());
        assert_eq!(array.bytes(Precision::F32, 4), [4.0 * 33_554_432.0, 50_331_648.0]);
        assert_eq!(array.bytes(Precision::F64, 1), [4.0 * 268_435_456.0, 0.0]);
        assert_eq!(Shape::Vector(20).bytes(Precision::F32, 2), [8_388_608.0, 2_097_152.0]);
        // 134 MB take 0.028 ms of 4.8 TB/s, 50 MB 0.112 ms of 450 GB/s.
        let [memory, sent] = array.bytes(Precision::F32, 4);
        assert!((bytes_ms(memory, sent) - 0.1118).abs() < 1e-4 && (bytes_ms(memory, 0.0) - 0.02796).abs() < 1e-5);
    }
}

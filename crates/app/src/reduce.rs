//! `tandem reduce`: the sum, the least or the greatest of the elements in a file.

use crate::cli::{Curve, Json};
use crate::commands::Session;
use crate::failure::{Failure, Outcome};
use crate::source::Source;
use crate::{interrupt, report};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use tandem_engine::{element_bytes, DeviceChoice, Reducer};
use tandem_ops::{ElementKind, HostData, ReduceOp};

#[derive(Args)]
pub(crate) struct ReduceFile {
    /// The elements, one after the other, least significant byte first
    #[arg(value_parser = crate::cli::input())]
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) reduction: Reduction,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// What is made of what.
#[derive(Args)]
pub(crate) struct Reduction {
    /// What the elements are
    #[arg(long, value_enum, default_value = "u64")]
    pub(crate) element: ElementName,
    /// What to make of them
    #[arg(long, value_enum, default_value = "sum")]
    pub(crate) op: OpName,
    /// The curve of --element scalar
    #[arg(long, value_enum, default_value = "bn254")]
    pub(crate) curve: Curve,
}

/// A kind of elements as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ElementName {
    /// Unsigned integers of 32 bits
    U32,
    /// Unsigned integers of 64 bits
    U64,
    /// Floating-point numbers of 32 bits
    F32,
    /// Floating-point numbers of 64 bits
    F64,
    /// Elements of a curve's scalar field, 32 bytes each, as integers below the modulus
    Scalar,
}

/// An operation as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OpName {
    /// Their sum: modulo 2^32 or 2^64, rounded in one order, or in the field
    Sum,
    /// The least
    Min,
    /// The greatest
    Max,
}

impl Reduction {
    pub(crate) fn kind(&self) -> ElementKind {
        match self.element {
            ElementName::U32 => ElementKind::U32,
            ElementName::U64 => ElementKind::U64,
            ElementName::F32 => ElementKind::F32,
            ElementName::F64 => ElementKind::F64,
            ElementName::Scalar => ElementKind::Scalar(self.curve.into()),
        }
    }

    pub(crate) fn op(&self) -> ReduceOp {
        match self.op {
            OpName::Sum => ReduceOp::Sum,
            OpName::Min => ReduceOp::Min,
            OpName::Max => ReduceOp::Max,
        }
    }

    /// Such as `reduce_sum_u64`.
    pub(crate) fn name(&self) -> String {
        let name =
            |value: Option<clap::builder::PossibleValue>| value.map_or(String::new(), |v| v.get_name().to_owned());
        format!("reduce_{}_{}", name(self.op.to_possible_value()), name(self.element.to_possible_value()))
    }
}

pub(crate) fn run(session: &Session, args: &ReduceFile) -> Outcome {
    let (kind, op) = (args.reduction.kind(), args.reduction.op());
    let source = Source::open(&args.input, element_bytes(kind))?;
    if source.elements == 0 && op != ReduceOp::Sum {
        let which = if op == ReduceOp::Min { "least" } else { "greatest" };
        return Err(Failure::file(
            &args.input,
            format!("the file is empty, so no element is the {which}; --op sum gives 0"),
        ));
    }
    let begun = Instant::now();
    let reducer = session.trace.step("open device", || Reducer::open(&session.device))?;
    if session.device == DeviceChoice::Auto {
        session.note(&format!("device: {}", reducer.report().lanes.join(", ")));
    }
    tandem_engine::Progress::start(&session.bars, "reduce", 0);
    let data = HostData::File { file: source.file(), bytes: source.bytes() };
    let result = session.trace.step("reduce", || reducer.reduce(kind, op, data));
    session.bars.clear();
    // That it changed explains whatever else went wrong.
    source.unchanged()?;
    interrupt::check()?;
    let result = result.map_err(|e| match e {
        tandem_engine::Error::BadInput(problem) => {
            let hint = if matches!(kind, ElementKind::Scalar(_)) { "; is --curve right?" } else { "" };
            Failure::file(&args.input, format!("{problem}{hint}"))
        }
        other => other.into(),
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    if args.json.json {
        let row = json!({"elements": source.elements, "result": result.to_string(), "seconds": report::round(seconds)});
        report::result(&row.to_string());
        return Ok(());
    }
    session.note(&format!("{} elements in {}", source.elements, report::seconds(seconds)));
    report::result(&result.to_string());
    Ok(())
}

//! `tandem reduce`: the sum, the least or the greatest of the elements in a file.

use crate::source::Source;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::options::{Json, Reduction};
use tandem_console::session::Session;
use tandem_console::{interrupt, report};
use tandem_engine::{element_bytes, DeviceChoice, Reducer};
use tandem_ops::{ElementKind, HostData, ReduceOp};

#[derive(Args)]
pub(crate) struct ReduceFile {
    /// The elements, one after the other, least significant byte first
    #[arg(value_parser = tandem_console::values::input())]
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) reduction: Reduction,
    #[command(flatten)]
    pub(crate) json: Json,
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
    session.note(&format!("{} in {}", report::count(source.elements, "element"), report::seconds(seconds)));
    report::result(&result.to_string());
    Ok(())
}

//! `tandem sort`: puts the keys in a file in order.

use crate::source::Source;
use clap::Args;
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::time::Instant;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::options::{Json, KeyName, Sorting};
use tandem_console::session::Session;
use tandem_console::{interrupt, report};
use tandem_engine::{DeviceChoice, Progress, Sorter};
use tandem_formats::Output;
use tandem_ops::cpu::Cpu;
use tandem_ops::sort::{least_memory, Host};
use tandem_ops::{Backend, SortKey};

/// Bytes that are read or written at a time.
const PIECE: usize = 16 << 20;

#[derive(Args)]
pub(crate) struct SortFile {
    /// The keys, one after the other, least significant byte first
    #[arg(value_parser = tandem_console::values::input())]
    pub(crate) input: PathBuf,
    /// Where to write them in order
    #[arg(value_parser = tandem_console::values::output())]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) what: Sorting,
    /// Bytes of each device's memory to use at the most, such as 512M: what does not fit is sorted in pieces, twice
    #[arg(long, value_name = "BYTES", value_parser = tandem_console::sizes::parse)]
    pub(crate) memory: Option<u64>,
    #[command(flatten)]
    pub(crate) json: Json,
}

pub(crate) fn run(session: &Session, args: &SortFile) -> Outcome {
    match args.what.key {
        KeyName::U32 => sort::<u32>(session, args),
        KeyName::U64 => sort::<u64>(session, args),
    }
}

fn sort<K: SortKey>(session: &Session, args: &SortFile) -> Outcome {
    let source = Source::open(&args.input, args.what.element_bytes())?;
    if source.elements == 0 {
        return Err(Failure::file(&args.input, "the file is empty; expected keys"));
    }
    let least = least_memory(args.what.element_bytes() as u64);
    if let Some(memory) = args.memory.filter(|&memory| memory < least) {
        return Err(Failure::input(format!(
            "--memory: {memory} bytes; expected at least {least}, 32 MiB and some elements"
        )));
    }
    let mut output = Output::create(&args.output)?;
    let begun = Instant::now();
    let sorter = session.trace.step("open device", || Sorter::open(&session.device, usize::MAX))?;
    if session.device == DeviceChoice::Auto {
        session.note(&format!("device: {}", sorter.report().lanes.join(", ")));
    }
    let plan = sorter.plan(source.elements, args.what.element_bytes(), args.memory)?;
    let mut data = session.trace.step("read", || read::<K>(session, &source, args.what.pairs))?;
    let passes = if plan.is_resident() { 1 } else { 2 };
    Progress::start(&session.bars, "sort", passes * source.elements as u64);
    session.trace.step("sort", || {
        sorter.sort(
            &mut data,
            &plan,
            args.what.options(),
            |count| {
                Progress::advance(&session.bars, count);
                interrupt::check()
            },
            |part| write(&mut output, part),
        )
    })?;
    session.bars.clear();
    source.unchanged()?;
    interrupt::check()?;
    tandem_formats::output::commit([output])?;
    let (seconds, pieces) = (begun.elapsed().as_secs_f64(), plan.pieces().len());
    if args.json.json {
        let row = json!({"elements": source.elements, "pieces": pieces, "seconds": report::round(seconds)});
        report::result(&row.to_string());
        return Ok(());
    }
    let in_pieces = if pieces > 1 { format!(" in {pieces} pieces") } else { String::new() };
    session.note(&format!("{}{in_pieces} in {}", report::count(source.elements, "element"), report::seconds(seconds)));
    Ok(())
}

/// The keys, and the values behind them.
fn read<K: SortKey>(session: &Session, source: &Source<'_>, pairs: bool) -> Outcome<Host<K>> {
    let n = source.elements;
    // Sorting is read, and once more what comes from the devices.
    let (wanted, free) = (2 * source.bytes(), Cpu::new(1).info().free_bytes.first().copied().unwrap_or(0));
    let refused = || {
        let problem = format!("sorting {} bytes needs {wanted} bytes of memory, {free} are free", source.bytes());
        Failure::file(source.path, format!("{problem}; sort a part at a time"))
    };
    let vector = |count: usize| {
        let mut all: Vec<K> = Vec::new();
        all.try_reserve_exact(count).map_err(|_| refused())?;
        Ok::<_, Failure>(all)
    };
    if wanted > free {
        return Err(refused());
    }
    let mut data = Host { keys: vector(n)?, values: if pairs { Some(vector(n)?) } else { None } };
    let each = size_of::<K>() * if pairs { 2 } else { 1 };
    let mut bytes = vec![0; PIECE.min(n * each)];
    Progress::start(&session.bars, "read", n as u64);
    let mut left = n * each;
    while left > 0 {
        interrupt::check()?;
        let piece = &mut bytes[..PIECE.min(left)];
        source.file().read_exact(piece).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => source.changed(),
            _ => Failure::file(source.path, format!("cannot read: {e}")),
        })?;
        left -= piece.len();
        for element in piece.chunks_exact(each) {
            data.keys.push(bytemuck::pod_read_unaligned(&element[..size_of::<K>()]));
            if let Some(values) = &mut data.values {
                values.push(bytemuck::pod_read_unaligned(&element[size_of::<K>()..]));
            }
        }
        Progress::advance(&session.bars, (piece.len() / each) as u64);
    }
    Ok(data)
}

fn write<K: SortKey>(output: &mut Output, part: &Host<K>) -> Outcome {
    let mut bytes = Vec::new();
    let at_once = PIECE / (2 * size_of::<K>());
    for (i, keys) in part.keys.chunks(at_once).enumerate() {
        bytes.clear();
        match &part.values {
            None => bytes.extend_from_slice(bytemuck::cast_slice(keys)),
            Some(values) => keys.iter().zip(&values[i * at_once..]).for_each(|(key, value)| {
                bytes.extend_from_slice(bytemuck::bytes_of(key));
                bytes.extend_from_slice(bytemuck::bytes_of(value));
            }),
        }
        output.write_all(&bytes).map_err(|e| output.error(e))?;
    }
    Ok(())
}

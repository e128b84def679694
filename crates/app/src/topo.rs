//! `tandem topo`: the devices and links of a machine, this one or one that is named.

use crate::cli::{self, Source};
use std::fmt::Write;
use tandem_console::drawing::Drawing;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::files;
use tandem_console::report;
use tandem_cuda::Device;
use tandem_fabric::probe::{self, Facts, Measured};
use tandem_fabric::topology::{wrapped, Topology, MAX_FILE};
use tandem_fabric::{Options, Team};
use tandem_formats::FileKind;

pub(crate) fn run(args: &cli::Topo) -> Outcome {
    if args.source.preset.is_some() || args.source.from.is_some() {
        if args.measure {
            return Err(Failure::input("--measure: only the links of this machine can be measured"));
        }
        let drawing = args.format.draw.as_deref().map(Drawing::open).transpose()?;
        let topology = open(&args.source)?;
        return match drawing {
            Some(drawing) => drawing.write(&topology.to_picture()),
            None => {
                report::result(&written(&topology, &args.format)?);
                Ok(())
            }
        };
    }
    let facts = probe::look();
    let is_text = !(args.format.json || args.format.nccl_xml || args.format.draw.is_some());
    if let (Some(reason), true, false) = (&facts.no_gpu, is_text, args.measure) {
        report::result(&without_gpu(&facts, reason));
        return Ok(());
    }
    let drawing = args.format.draw.as_deref().map(Drawing::open).transpose()?;
    let measured = if args.measure { Some(measure(&facts)?) } else { None };
    let topology = this_machine(&facts, measured.as_ref())?;
    if let Some(drawing) = drawing {
        return drawing.write(&topology.to_picture());
    }
    let mut text = written(&topology, &args.format)?;
    if is_text {
        if let Some(measured) = &measured {
            text += &measurements(&facts, measured);
        }
        let remarks = facts.remarks();
        if !remarks.is_empty() {
            let _ = write!(text, "\nRemarks:\n{}\n", wrapped(&remarks.join("\n"), 4));
        }
    }
    report::result(&text);
    Ok(())
}

fn written(topology: &Topology, format: &cli::TopoFormat) -> Outcome<String> {
    Ok(match format {
        cli::TopoFormat { json: true, .. } => topology.to_json(),
        cli::TopoFormat { nccl_xml: true, .. } => topology.to_nccl_xml().map_err(|e| Failure::input(e.to_string()))?,
        _ => topology.to_matrix(),
    })
}

/// A machine without GPUs has no topology, but there is something to say of it.
fn without_gpu(facts: &Facts, reason: &str) -> String {
    let nodes: Vec<String> = facts.nodes.iter().map(|n| format!("CPU{n}")).collect();
    let text = format!(
        "this machine: no GPU: {reason}\nNUMA nodes: {}\n\n--preset NAME and --from FILE show other machines.\n",
        nodes.join(", ")
    );
    wrapped(&text, 4)
}

/// Measures the GPUs that are used. The figures are by number of all GPUs.
fn measure(facts: &Facts) -> Outcome<Measured> {
    if let Some(reason) = &facts.no_gpu {
        return Err(Failure::input(format!("--measure: this machine has no GPU: {reason}")));
    }
    let failed = |e: tandem_fabric::Error| Failure::device(e.to_string());
    let found = tandem_cuda::probe().map_err(Failure::device)?;
    let devices: Vec<Device> = found.iter().filter_map(|f| f.usable.clone().ok()).collect();
    if devices.len() < facts.gpus.len() || devices.is_empty() {
        let why = facts.gpus.iter().find_map(|gpu| gpu.refused.clone()).unwrap_or_else(|| "there is none".into());
        return Err(Failure::device(format!("--measure needs every GPU, and one is not used: {why}")));
    }
    let team = Team::cuda(&devices, Options::default()).map_err(failed)?;
    probe::measure(&team).map_err(failed)
}

fn measurements(facts: &Facts, m: &Measured) -> String {
    let names: Vec<String> = facts.gpus.iter().map(|gpu| format!("GPU{}", gpu.index)).collect();
    let matrix = |values: &Vec<Vec<Option<f64>>>| {
        let head = std::iter::once(String::new()).chain(names.iter().cloned()).collect();
        let row = |(name, values): (&String, &Vec<Option<f64>>)| {
            let cell = |v: &Option<f64>| v.map_or("-".into(), |rate| format!("{rate:.1}"));
            std::iter::once(name.clone()).chain(values.iter().map(cell)).collect()
        };
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(names.iter().zip(values).map(row)).collect();
        report::table(&rows)
    };
    let mut text = format!("\nMeasured copies, GB/s (row to column):\n{}", matrix(&m.copy));
    let _ = write!(text, "\nThe same with copies both ways at once, each way:\n{}", matrix(&m.both_ways));
    let mut rows = vec![["", "from host", "to host", "over all slots", "and back"].map(String::from).to_vec()];
    for (name, (own, all)) in names.iter().zip(m.host.iter().zip(&m.all_links)) {
        let cells = [own.0, own.1, all.0, all.1].map(|rate| format!("{rate:.1}"));
        rows.push(std::iter::once(name.clone()).chain(cells).collect());
    }
    let _ = write!(text, "\nMeasured page-locked host memory, GB/s:\n{}", report::table(&rows));
    text
}

fn this_machine(facts: &Facts, measured: Option<&Measured>) -> Outcome<Topology> {
    if let Some(reason) = &facts.no_gpu {
        let problem = format!(
            "this machine has no GPU: {reason}; name a topology with --preset NAME or --from FILE \
             (our JSON, NCCL topology XML, or the text of nvidia-smi topo -m)"
        );
        return Err(Failure::input(problem));
    }
    facts.topology(measured).map_err(|e| Failure::device(e.to_string()))
}

/// The topology that the user named, or this machine's.
pub(crate) fn open(source: &Source) -> Outcome<Topology> {
    match (&source.preset, &source.from) {
        (Some(name), _) => Topology::preset(name).map_err(|e| Failure::input(e.to_string())),
        (None, Some(path)) => {
            let bytes = files::read(path, MAX_FILE as u64)?;
            let kind = FileKind::of(&bytes);
            Topology::read(&bytes).map_err(|e| match kind {
                Some(FileKind::Json | FileKind::Xml | FileKind::Text) => Failure::file(path, e),
                other => FileKind::refuse(other, "a topology: our JSON, NCCL's XML, or the text of nvidia-smi topo -m")
                    .in_file(path)
                    .into(),
            })
        }
        (None, None) => this_machine(&probe::look(), None),
    }
}

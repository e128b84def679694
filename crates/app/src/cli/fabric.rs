//! The commands of the fabric: `topo` and `plan`.

use super::values::{as_in_bench, gpus, helpers};
use super::{Gpus, Helpers};
use clap::builder::PossibleValue;
use clap::Args;
use std::path::PathBuf;
use tandem_console::values::input;
use tandem_console::{drawing, sizes};
use tandem_fabric::plan::Operation;
use tandem_fabric::topology::PRESETS;

/// Where a topology comes from.
#[derive(Args)]
pub(crate) struct Source {
    /// A machine known by name
    #[arg(long, value_name = "NAME", value_parser = PRESETS.map(|(name, about)| PossibleValue::new(name).help(about)), conflicts_with = "from")]
    pub(crate) preset: Option<String>,
    /// A file: our JSON, NCCL topology XML, or the text of nvidia-smi topo -m
    #[arg(long, value_name = "FILE", value_parser = input())]
    pub(crate) from: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Topo {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Measure the links of this machine by copies, and use these rates
    #[arg(long)]
    pub(crate) measure: bool,
    #[command(flatten)]
    pub(crate) format: TopoFormat,
}

#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct TopoFormat {
    /// Print our JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print NCCL topology XML, for NCCL_TOPO_FILE
    #[arg(long)]
    pub(crate) nccl_xml: bool,
    /// Draw it to this file, an SVG or a PNG by its suffix; - prints SVG on stdout
    #[arg(long, value_name = "FILE", value_parser = drawing::parser(), alias = "svg")]
    pub(crate) draw: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Plan {
    /// What to do with the data
    #[arg(value_parser = Operation::ALL.map(|(_, name)| PossibleValue::new(name).aliases(as_in_bench(name))))]
    pub(crate) operation: String,
    /// The GPUs of the job, such as 0,1 or 0-3, or all
    #[arg(long, value_name = "GPUS", value_parser = gpus)]
    pub(crate) gpus: Gpus,
    /// Other GPUs that may forward, such as 2,3, or all that are not in the job, or those of them that are idle: no other process uses them now
    #[arg(long, value_name = "GPUS", value_parser = helpers)]
    pub(crate) helpers: Option<Helpers>,
    /// The GPU where a broadcast begins or a reduce ends; the job's first unless given
    #[arg(long, value_name = "GPU")]
    pub(crate) root: Option<usize>,
    /// Let data between GPUs also take PCIe and host memory
    #[arg(long)]
    pub(crate) pcie: bool,
    /// Look for so long at most, then give the best plan so far; it says by how much another may be faster
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) max_seconds: u32,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) format: PlanFormat,
}

#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct PlanFormat {
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw it to this file, an SVG or a PNG by its suffix; - prints SVG on stdout
    #[arg(long, value_name = "FILE", value_parser = drawing::parser(), alias = "svg")]
    pub(crate) draw: Option<PathBuf>,
    /// Print the trees as XML, in the manner of ForestColl
    #[arg(long)]
    pub(crate) xml: bool,
    /// Print rings or chains for NCCL_GRAPH_FILE; into a folder where they take several communicators, a file for each
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    pub(crate) nccl_graph: Option<Option<PathBuf>>,
    /// Say too what GPUs hold of a call with so much data, and what each tree moves over which link: from a trial on pretend PEs, which --trace draws
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "16M", value_parser = sizes::parse)]
    pub(crate) explain: Option<u64>,
}

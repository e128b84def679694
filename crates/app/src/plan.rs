//! `tandem plan`: the best way to move data over a topology, and why it is best.

use crate::cli::{self, Gpus, Helpers, PlanFormat};
use crate::{explain, topo};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tandem_console::drawing::Drawing;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::files::{self, Outputs};
use tandem_console::progress::Bars;
use tandem_console::session::Session;
use tandem_console::{interrupt, report};
use tandem_engine::Progress;
use tandem_fabric::plan::{check, plan_within, Budget, NcclGraph, Operation, Request};
use tandem_fabric::probe;
use tandem_fabric::topology::Topology;

pub(crate) fn run(session: &Session, args: &cli::Plan) -> Outcome {
    let refused = |e: tandem_fabric::plan::Error| Failure::input(e.to_string());
    let drawing = args.format.draw.as_deref().map(Drawing::open).transpose()?;
    let topology = topo::open(&args.source)?;
    let of_args = Operation::ALL.iter().find(|(_, name)| cli::is_operation(name, &args.operation));
    let (operation, _) = *of_args.ok_or_else(|| Failure::input("unknown operation"))?;
    let all = 0..topology.gpus().len();
    let gpus = match &args.gpus {
        Gpus::All => all.clone().collect(),
        Gpus::Listed(list) => list.clone(),
    };
    let others = || all.filter(|g| !gpus.contains(g)).collect::<Vec<usize>>();
    let helpers = match &args.helpers {
        None => Vec::new(),
        Some(Helpers::Named(Gpus::Listed(list))) => list.clone(),
        Some(Helpers::Named(Gpus::All)) => others(),
        Some(Helpers::Idle) => idle(session, &topology, &others())?,
    };
    let request = Request { operation, gpus, helpers, root: args.root, pcie: args.pcie };
    let budget = Budget::of_time(Duration::from_secs(args.max_seconds.into())).cancelled_by(interrupt::asked);
    let bars = Bars::new(session.quiet);
    bars.start("looking for the best plan", 0);
    let found = plan_within(&topology, &request, &budget);
    drop(bars);
    interrupt::check()?;
    let plan = found.map_err(refused)?;
    check(&topology, &plan).map_err(|e| Failure::device(format!("the planner made a mistake: {e}")))?;
    if let Some(drawing) = drawing {
        return drawing.write(&plan.to_picture(&topology));
    }
    let explained =
        args.format.explain.map(|bytes| explain::explained(session, &topology, &plan, bytes)).transpose()?;
    report::result(&match &args.format {
        PlanFormat { json: true, .. } => plan.to_json(&topology).to_string(),
        PlanFormat { xml: true, .. } => plan.to_tree_xml(&topology).map_err(refused)?,
        PlanFormat { nccl_graph: Some(folder), .. } => {
            nccl_graphs(folder.as_deref(), &args.source, &plan.to_nccl_graphs(&topology).map_err(refused)?)?
        }
        _ => plan.to_text(&topology) + explained.as_deref().unwrap_or_default(),
    });
    Ok(())
}

/// The file of the one communicator that carries a plan out. In a folder a file for each, all of them or none: says which GPUs are its ranks,
/// and how much it carries.
fn nccl_graphs(folder: Option<&Path>, source: &cli::Source, graphs: &[NcclGraph]) -> Outcome<String> {
    let Some(folder) = folder else {
        return match graphs {
            [one] => Ok(one.xml.clone()),
            many => Err(Failure::input(format!(
                "--nccl-graph: the trees pass {} different sets of GPUs, and NCCL takes a communicator for each, as its channels hold all \
                 ranks; --nccl-graph=FOLDER writes a file for each",
                many.len()
            ))),
        };
    };
    let file = |graph: &NcclGraph| {
        let ranks: Vec<String> = graph.gpus.iter().map(usize::to_string).collect();
        folder.join(format!("graph-{}.xml", ranks.join("-")))
    };
    let paths: Vec<PathBuf> = graphs.iter().map(file).collect();
    files::check(&paths, source.from.as_slice())?;
    let outputs = Outputs::open(&paths.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    outputs.commit(&graphs.iter().map(|graph| graph.xml.as_str()).collect::<Vec<_>>())?;
    let row = |(path, graph): (&PathBuf, &NcclGraph)| {
        let gpus: Vec<String> = graph.gpus.iter().map(usize::to_string).collect();
        format!(
            "{}: ranks are GPUs {}; {:.2} % of the data\n",
            path.display(),
            gpus.join(", "),
            graph.share.to_f64() * 100.0
        )
    };
    Ok(paths.iter().zip(graphs).map(row).collect())
}

/// Those of `others` that no other process uses; says why the rest does not help.
fn idle(session: &Session, topology: &Topology, others: &[usize]) -> Outcome<Vec<usize>> {
    let found = probe::idle(topology, others).map_err(|e| Failure::input(format!("--helpers idle: {e}")))?;
    for (gpu, why) in others.iter().zip(&found) {
        if let Err(why) = why {
            session.note(&format!("GPU{gpu} does not help: {why}"));
        }
    }
    Ok(others.iter().zip(found).filter(|(_, idle)| idle.is_ok()).map(|(gpu, _)| *gpu).collect())
}

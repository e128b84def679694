//! `tandem plan`: the best way to move data over a topology, and why it is best.

use crate::cli::{self, Gpus, PlanFormat};
use crate::topo;
use std::time::Duration;
use tandem_console::drawing::Drawing;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::progress::Bars;
use tandem_console::{interrupt, report};
use tandem_engine::Progress;
use tandem_fabric::plan::{check, plan_within, Budget, Operation, Request};

pub(crate) fn run(args: &cli::Plan, quiet: bool) -> Outcome {
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
    let helpers = match &args.helpers {
        None => Vec::new(),
        Some(Gpus::Listed(list)) => list.clone(),
        Some(Gpus::All) => all.filter(|g| !gpus.contains(g)).collect(),
    };
    let request = Request { operation, gpus, helpers, root: args.root, pcie: args.pcie };
    let budget = Budget::of_time(Duration::from_secs(args.max_seconds.into())).cancelled_by(interrupt::asked);
    let bars = Bars::new(quiet);
    bars.start("looking for the best plan", 0);
    let found = plan_within(&topology, &request, &budget);
    drop(bars);
    interrupt::check()?;
    let plan = found.map_err(refused)?;
    check(&topology, &plan).map_err(|e| Failure::device(format!("the planner made a mistake: {e}")))?;
    if let Some(drawing) = drawing {
        return drawing.write(&plan.to_picture(&topology));
    }
    report::result(&match args.format {
        PlanFormat { json: true, .. } => plan.to_json(&topology).to_string(),
        PlanFormat { xml: true, .. } => plan.to_tree_xml(&topology).map_err(refused)?,
        PlanFormat { nccl_graph: true, .. } => plan.to_nccl_graph(&topology).map_err(refused)?,
        _ => plan.to_text(&topology),
    });
    Ok(())
}

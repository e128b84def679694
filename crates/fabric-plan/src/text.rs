//! Plans for people.

use super::{Gain, Operation, Plan, Request, Step, Witness};
use crate::Ratio;
use std::fmt::Write;
use tandem_fabric_topology::{wrapped, Topology};

fn gbs(rate: Ratio) -> String {
    let text = format!("{:.3}", rate.to_f64() / 1000.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} GB/s")
}

fn names(topology: &Topology, devices: &[usize]) -> String {
    devices.iter().map(|&d| topology.devices()[d].name.as_str()).collect::<Vec<_>>().join(", ")
}

/// A sentence that says what limits the rate.
pub(super) fn bottleneck(topology: &Topology, request: &Request, witness: &Witness, bound: Ratio) -> String {
    let bound = gbs(bound);
    match witness {
        Witness::Cut(inside) => {
            let way = if request.operation.is_reversed() { "into" } else { "out of" };
            format!("the links {way} {{{}}} allow no more than {bound}", names(topology, inside))
        }
        Witness::Parts(parts) => {
            let sets: Vec<_> = parts.iter().map(|p| format!("{{{}}}", names(topology, p))).collect();
            format!("the links between {} allow no more than {bound}", sets.join(" "))
        }
        Witness::Prices(prices) => {
            let priced: Vec<_> = prices.iter().filter(|p| !p.2.is_zero()).collect();
            let n = priced.len();
            format!("{n} links together (weighted as in --json) allow no more than {bound}")
        }
    }
}

impl Plan {
    /// A page that says it all.
    pub fn to_text(&self, topology: &Topology) -> String {
        let request = &self.request;
        let numbers = |list: &[usize]| list.iter().map(|g| g.to_string()).collect::<Vec<_>>().join(", ");
        let mut out = format!("{} on {}: GPUs {}", request.operation.name(), topology.name(), numbers(&request.gpus));
        if matches!(request.operation, Operation::Broadcast | Operation::Reduce) {
            let _ = write!(out, ", root {}", request.root.unwrap_or(request.gpus[0]));
        }
        if !request.helpers.is_empty() {
            let _ = write!(out, "; helpers {}", numbers(&request.helpers));
        }
        out = wrapped(&out, 4);
        let _ = writeln!(out, "\n\nrate   {}", gbs(self.rate));
        let limit = bottleneck(topology, request, &self.witness, self.bound);
        let verdict = match self.gap() {
            _ if self.is_best() => "reached: no plan is faster".to_string(),
            Some(gap) => format!("not reached: a plan may be faster, by {:.2} % at most", gap * 100.0),
            None => "not reached: no way was found".to_string(),
        };
        let bound = format!("bound  {} ({verdict}); {limit}", gbs(self.bound));
        let _ = writeln!(out, "{}", wrapped(&bound, 7));
        if self.is_cut_short {
            let stopped = "search stopped at its limit: with more time the plan may become better, or the bound less";
            let _ = writeln!(out, "{}", wrapped(stopped, 7));
        }
        match &self.gain {
            Gain::NotAsked => {}
            Gain::Over(alone) if alone.is_zero() => out += "gain   without the helpers there is no path\n",
            Gain::Over(alone) => {
                let times = self.rate.to_f64() / alone.to_f64();
                let _ = writeln!(out, "gain   {times:.2} times the {} without helpers", gbs(*alone));
            }
            Gain::None(reason) => {
                let _ = writeln!(out, "{}", wrapped(&format!("gain   no gain possible: {reason}"), 7));
            }
        }
        if self.rate.is_zero() {
            out += "\nThe GPUs are not joined by NVLink; allow helpers (--helpers) or PCIe (--pcie).\n";
            return out;
        }
        for step in &self.steps {
            self.step(topology, step, &mut out);
        }
        out += "\nlinks in use\n";
        for load in &self.loads {
            let (from, to) = (&topology.devices()[load.from].name, &topology.devices()[load.to].name);
            let percent = load.rate.to_f64() / load.capacity as f64 * 100.0;
            let pair = format!("{from} -> {to}");
            let _ = writeln!(
                out,
                "  {pair:24} {:>14} of {} ({percent:.0} %)",
                gbs(load.rate),
                gbs(Ratio::whole(load.capacity))
            );
        }
        out
    }

    fn step(&self, topology: &Topology, step: &Step, out: &mut String) {
        let path =
            |p: &Vec<usize>| p.iter().map(|&d| topology.devices()[d].name.as_str()).collect::<Vec<_>>().join(" > ");
        let share = |s: Ratio| format!("{:6.2} %", s.to_f64() * 100.0);
        match step {
            Step::Collect(trees) | Step::Spread(trees) => {
                let way = if matches!(step, Step::Collect(_)) { "to" } else { "from" };
                let _ = writeln!(out, "\n{} trees {way} their roots", trees.len());
                for tree in trees {
                    let paths: Vec<_> = tree.paths.iter().map(path).collect();
                    let name = &topology.devices()[tree.root].name;
                    let tree = format!("  {} {way} {name}: {}", share(tree.share), paths.join("; "));
                    let _ = writeln!(out, "{}", wrapped(&tree, 12));
                }
            }
            Step::Send(routes) => {
                let _ = writeln!(out, "\n{} paths", routes.len());
                for route in routes {
                    let route = format!("  {} {}", share(route.share), path(&route.path));
                    let _ = writeln!(out, "{}", wrapped(&route, 12));
                }
            }
        }
    }
}

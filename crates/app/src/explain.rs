//! `tandem plan --explain`: what the GPUs of a plan hold, and what each of its trees moves over which link, from a trial on pretend PEs.

use std::fmt::Write;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::session::Session;
use tandem_console::trace::Chunk;
use tandem_console::{interrupt, report, sizes};
use tandem_fabric::exec::trial::{trial, Trial};
use tandem_fabric::exec::MAX_STAGING;
use tandem_fabric::plan::{Plan, Step};
use tandem_fabric::topology::{wrapped, Topology};

/// Tries the plan with so many bytes, and says what was seen.
pub(crate) fn explained(session: &Session, topology: &Topology, plan: &Plan, bytes: u64) -> Outcome<String> {
    let tried = session.trace.step("trial", || trial(topology, plan, bytes, interrupt::asked));
    interrupt::check()?;
    let tried = tried.map_err(|e| match e {
        tandem_fabric::Error::WrongSchedule(_) => Failure::device(format!("--explain: {e}")),
        _ => Failure::input(format!("--explain: {e}")),
    })?;
    trace(session, topology, plan, &tried);
    Ok(text(topology, plan, &tried, bytes))
}

fn text(topology: &Topology, plan: &Plan, tried: &Trial, bytes: u64) -> String {
    let size = sizes::write(bytes);
    let name = |device: usize| topology.devices()[device].name.clone();
    let gpus = topology.gpus();
    let is_helper = |device: usize| plan.request.helpers.iter().any(|&gpu| gpus[gpu] == device);
    let row = |(device, bytes): (usize, u64)| {
        let who = if is_helper(device) { ", a helper" } else { "" };
        format!("  {:24} {:>14}\n", format!("{}{who}", name(device)), report::bytes(bytes))
    };
    let mut out = format!("\nmemory for chunks on their way, of a call with {size}\n");
    tried.rings().into_iter().for_each(|held| out += &row(held));
    if tried.host_rings() > 0 {
        let _ = writeln!(out, "  {:24} {:>14}", "host memory", report::bytes(tried.host_rings()));
    }
    if tried.rings().is_empty() && tried.host_rings() == 0 {
        out += "  none: nothing is passed on\n";
    }
    let most = sizes::write(MAX_STAGING);
    let bound = format!(
        "  No call takes more than {most} of it on a GPU, however large its data; a helper needs nothing else of a call."
    );
    let _ = writeln!(out, "{}", wrapped(&bound, 2));
    let _ = writeln!(out, "\ntraffic of {size} on {} pretend PEs, every byte compared", tried.devices.len());
    let head = ["tree", "link", "bytes", "planned", "chunks", "from, ms", "to, ms"].map(String::from).to_vec();
    let mut rows = vec![head];
    for one in tried.traffic() {
        rows.push(vec![
            (one.tree + 1).to_string(),
            format!("{} -> {}", name(one.from), name(one.to)),
            one.bytes.to_string(),
            format!("{:.0}", one.planned),
            one.chunks.to_string(),
            format!("{:.3}", one.begun.as_secs_f64() * 1e3),
            format!("{:.3}", one.ended.as_secs_f64() * 1e3),
        ]);
    }
    out += &report::table(&rows);
    out
}

/// A process of the trace for each tree, a row for each of its links.
fn trace(session: &Session, topology: &Topology, plan: &Plan, tried: &Trial) {
    let count = plan.steps.iter().map(|step| match step {
        Step::Collect(trees) | Step::Spread(trees) => trees.len(),
        Step::Send(routes) => routes.len(),
    });
    let traffic = tried.traffic();
    for tree in 0..count.max().unwrap_or(0) {
        let links = traffic.iter().filter(|one| one.tree == tree);
        let row = |(from, to): (usize, usize)| {
            let of_link = tried.moved.iter().filter(|one| {
                let channel = &tried.schedule.channels[one.channel];
                channel.tree == tree && channel.path.windows(2).any(|link| link == [from, to])
            });
            let chunk = |one: &tandem_fabric::exec::sim::Moved| Chunk {
                begun: tried.began + one.begun,
                seconds: (one.ended - one.begun).as_secs_f64(),
                bytes: one.bytes,
            };
            let name = |device: usize| topology.devices()[device].name.as_str();
            (format!("{} -> {}", name(from), name(to)), of_link.map(chunk).collect::<Vec<Chunk>>())
        };
        let rows: Vec<_> = links.map(|one| row((one.from, one.to))).collect();
        session.trace.traffic(tree, &format!("tree {}", tree + 1), &rows);
    }
}

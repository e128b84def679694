//! A drawing of a plan: the machine with what each tree moves over each link, and below it each tree by itself, round by round.

use super::{check, Operation, Plan, Route, Step};
use crate::Ratio;
use std::collections::{BTreeMap, BTreeSet};
use tandem_fabric_topology::draw::{paint, width, Look, Scene, MARGIN, SMALL};
use tandem_fabric_topology::picture::{
    fitting, text_width, Anchor, Picture, Point, Stroke, Text, FAINT, GREY, INK, PALETTE,
};
use tandem_fabric_topology::{DeviceKind, Topology};

/// Trees that are drawn by themselves, of each step; of more the largest.
const MOST_PANELS: usize = 16;
/// Pixels between nodes beside each other, and from one round to the next.
const SLOT: f64 = 30.0;
const ROUND: f64 = 34.0;
/// Of a GPU's circle.
const RADIUS: f64 = 11.0;
/// Left of the nodes, for the rounds' names.
const ASIDE: f64 = 52.0;
/// Of a tree's two lines of text.
const TITLE: f64 = 44.0;
/// Between trees.
const SPACE: f64 = 18.0;

/// A part of the data and the paths it takes: a tree, a path, or all paths of one GPU.
struct Flow {
    /// Where the paths begin, or end if they collect.
    root: usize,
    /// From the root, parents first, whichever way the data goes.
    paths: Vec<Vec<usize>>,
    is_collected: bool,
    /// Of all data of the step.
    share: Ratio,
    /// GB/s of each link.
    loads: BTreeMap<(usize, usize), f64>,
}

impl Plan {
    /// A drawing as SVG. Equal plans give equal texts.
    pub fn to_svg(&self, topology: &Topology) -> String {
        self.to_picture(topology).to_svg()
    }

    /// A drawing.
    pub fn to_picture(&self, topology: &Topology) -> Picture {
        let gpus: Vec<_> = self.request.gpus.iter().map(|g| g.to_string()).collect();
        let (name, operation) = (topology.name(), self.request.operation.name());
        let title = format!("{name}: {operation} of GPUs {} at {:.1} GB/s", gpus.join(", "), self.gbs());
        let below = match self.gap() {
            _ if self.is_best() => "The links allow no more: no plan is faster.".to_string(),
            Some(gap) => format!("A plan may be faster, by {:.2} % at most.", gap * 100.0),
            None => "The GPUs are not joined by links that the plan may use.".to_string(),
        };
        let mut scene = Scene::new(topology, &title, &below);
        let steps: Vec<Vec<Flow>> = self.steps.iter().map(|step| self.flows(topology, step)).collect();
        let looks = self.looks(topology, &steps);
        let fastest = topology.fastest();
        scene.areas();
        for (link, route) in topology.links().iter().zip(scene.layout.routes.clone()) {
            scene.picture.line(&route, Stroke::new(FAINT, width(link.forth.max(link.back).gbs(), fastest)));
        }
        // As many arrows as there are colours find room beside each other.
        let mut beside: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        steps.iter().flatten().flat_map(|f| f.loads.keys()).for_each(|pair| *beside.entry(*pair).or_default() += 1);
        let is_coloured = steps.iter().map(Vec::len).chain(beside.into_values()).all(|n| n <= PALETTE.len());
        self.lanes(topology, &mut scene, &steps, is_coloured);
        scene.devices(&|d| looks.get(&d).copied().unwrap_or(Look::Idle));
        self.legend(&mut scene, &steps, is_coloured);
        let words = [
            (Look::Root, "GPU, root"),
            (Look::Job, "GPU of the job"),
            (Look::Helper, "helper, forwards"),
            (Look::Idle, "takes no part"),
        ];
        let has = |look: Look| topology.gpus().iter().any(|g| looks.get(g).copied().unwrap_or(Look::Idle) == look);
        scene.legend_of_devices(&words.into_iter().filter(|(look, _)| has(*look)).collect::<Vec<_>>());
        let mut picture = scene.done();
        for (i, flows) in steps.iter().enumerate() {
            self.panels(topology, &mut picture, (i, flows), &looks);
        }
        picture
    }

    /// What the plan's trees and paths are, for drawing: many paths are one flow for each GPU that they come from or go to.
    fn flows(&self, topology: &Topology, step: &Step) -> Vec<Flow> {
        let flow = |root: usize, share: Ratio, step: Step, paths: Vec<Vec<usize>>, is_collected: bool| {
            let loads = check::loads(topology, &self.request, self.rate, &[step]).unwrap_or_default();
            let loads = loads.iter().map(|l| ((l.from, l.to), l.rate.to_f64() / 1000.0)).collect();
            Flow { root, paths, is_collected, share, loads }
        };
        match step {
            Step::Spread(trees) => trees
                .iter()
                .map(|t| flow(t.root, t.share, Step::Spread(vec![t.clone()]), t.paths.clone(), false))
                .collect(),
            Step::Collect(trees) => {
                let turned =
                    |t: &super::Tree| t.paths.iter().rev().map(|p| p.iter().rev().copied().collect()).collect();
                trees.iter().map(|t| flow(t.root, t.share, Step::Collect(vec![t.clone()]), turned(t), true)).collect()
            }
            Step::Send(routes) => {
                let is_collected = self.request.operation == Operation::Download;
                let mut parts: BTreeMap<(usize, usize), Vec<Route>> = BTreeMap::new();
                for (i, route) in routes.iter().enumerate() {
                    let end = if is_collected { route.path.last() } else { route.path.first() };
                    let one = if routes.len() <= PALETTE.len() { i } else { 0 };
                    parts.entry((end.copied().unwrap_or(0), one)).or_default().push(route.clone());
                }
                let flow = |((root, _), routes): ((usize, usize), Vec<Route>)| {
                    let share = routes.iter().try_fold(Ratio::ZERO, |sum, r| sum.plus(r.share)).unwrap_or(Ratio::ZERO);
                    let mut paths: Vec<Vec<usize>> = routes.iter().map(|r| r.path.clone()).collect();
                    if is_collected {
                        paths.iter_mut().for_each(|p| p.reverse());
                    }
                    flow(root, share, Step::Send(routes), paths, is_collected)
                };
                parts.into_iter().map(flow).collect()
            }
        }
    }

    /// What each GPU is for the plan.
    fn looks(&self, topology: &Topology, steps: &[Vec<Flow>]) -> BTreeMap<usize, Look> {
        let gpus = topology.gpus();
        let device = |list: &[usize]| list.iter().filter_map(|&g| gpus.get(g).copied()).collect::<Vec<_>>();
        let used: BTreeSet<usize> = steps.iter().flatten().flat_map(|f| f.paths.iter().flatten().copied()).collect();
        let helpers = device(&self.request.helpers).into_iter().filter(|d| used.contains(d)).map(|d| (d, Look::Helper));
        let mut looks: BTreeMap<usize, Look> = helpers.collect();
        looks.extend(device(&self.request.gpus).into_iter().map(|d| (d, Look::Job)));
        let is_send = self.steps.iter().any(|step| matches!(step, Step::Send(_)));
        if !is_send || self.request.operation == Operation::Send {
            looks.extend(steps.iter().flatten().map(|f| (f.root, Look::Root)));
        }
        looks
    }

    /// What each flow moves over each link: an arrow for each beside each other, or one for all.
    fn lanes(&self, topology: &Topology, scene: &mut Scene<'_>, steps: &[Vec<Flow>], is_coloured: bool) {
        let fastest = topology.fastest();
        let mut lanes: BTreeMap<(usize, usize), Vec<(&str, f64)>> = BTreeMap::new();
        for (i, flow) in steps.iter().flat_map(|flows| flows.iter().enumerate()) {
            for (&pair, &load) in &flow.loads {
                let list = lanes.entry(pair).or_default();
                match list.first_mut() {
                    Some((_, sum)) if !is_coloured => *sum += load,
                    _ => list.push((PALETTE[if is_coloured { i } else { 0 }], load)),
                }
            }
        }
        for ((from, to), list) in lanes {
            let link = topology.links().iter().position(|l| [(l.a, l.b), (l.b, l.a)].contains(&(from, to)));
            let Some(link) = link else { continue };
            let mut route = scene.layout.routes[link].clone();
            if topology.links()[link].a != from {
                route.reverse();
            }
            let mut aside = 1.2;
            for (i, (colour, load)) in list.into_iter().enumerate() {
                let width = width(load, fastest);
                scene.arrow(&route, aside + width / 2.0, width, 8.0 * (i % 3) as f64, colour);
                aside += width + 1.2;
            }
        }
    }

    fn legend(&self, scene: &mut Scene<'_>, steps: &[Vec<Flow>], is_coloured: bool) {
        let Some(flows) = steps.first().filter(|flows| !flows.is_empty()) else { return };
        let (legend, picture) = (&mut scene.legend, &mut scene.picture);
        if is_coloured {
            legend.heading(picture, "Share of the data");
            for (i, flow) in flows.iter().enumerate() {
                let text = format!("{} {}: {}", self.word(1), i + 1, percent(flow.share));
                legend.line(picture, Stroke::new(PALETTE[i], 4.0), &text);
            }
        } else {
            legend.heading(picture, &format!("Load of {} {}", flows.len(), self.word(flows.len())));
            legend.line(picture, Stroke::new(PALETTE[0], 5.0), "as wide as it is great");
        }
        legend.line(picture, Stroke::new(FAINT, 5.0), "link");
    }

    /// What flows are called.
    fn word(&self, n: usize) -> &'static str {
        let is_send = self.steps.iter().any(|step| matches!(step, Step::Send(_)));
        match (is_send, self.request.operation == Operation::AllToAll, n) {
            (false, _, 1) => "tree",
            (false, _, _) => "trees",
            (true, true, 1) => "source",
            (true, true, _) => "sources",
            (true, false, 1) => "path",
            (true, false, _) => "paths",
        }
    }

    /// The flows of a step, each by itself, below what is drawn already.
    fn panels(
        &self,
        topology: &Topology,
        picture: &mut Picture,
        (step, flows): (usize, &[Flow]),
        looks: &BTreeMap<usize, Look>,
    ) {
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.sort_by(|&a, &b| flows[b].share.cmp(&flows[a].share).then(a.cmp(&b)));
        order.truncate(MOST_PANELS);
        order.sort_unstable();
        let Some(first) = flows.first() else { return };
        let what = if first.is_collected { "towards" } else { "from" };
        let step = if self.steps.len() > 1 { format!("Step {}: ", step + 1) } else { String::new() };
        let root = if self.steps.iter().any(|s| matches!(s, Step::Send(_))) {
            String::new()
        } else {
            format!(" {what} the root")
        };
        let mut heading = format!("{step}{} {}{root}, round by round", flows.len(), self.word(flows.len()));
        if order.len() < flows.len() {
            heading += &format!("; the {} largest are shown", order.len());
        }
        let mut y = picture.height + 12.0;
        picture.text(Text::new((MARGIN, y), 13.0, fitting(&heading, 13.0, picture.width - 2.0 * MARGIN)));
        y += 12.0;
        let (mut x, mut deepest) = (MARGIN, 0.0f64);
        for i in order {
            let panel = Panel::of(topology, &flows[i]);
            let titles = [
                format!("{} {}: {}", self.word(1), i + 1, percent(flows[i].share)),
                format!("{what} {}", topology.devices()[flows[i].root].name),
            ];
            let wide = titles.iter().map(|t| text_width(t, SMALL) + 24.0).fold(panel.width(), f64::max);
            let wide = wide.min(picture.width - 2.0 * MARGIN);
            if x > MARGIN && x + wide > picture.width - MARGIN {
                (x, y, deepest) = (MARGIN, y + deepest, 0.0);
            }
            panel.draw(topology, picture, (x, y), (&flows[i], PALETTE[i % PALETTE.len()]), looks);
            for (n, title) in titles.iter().enumerate() {
                let left = if n == 0 { 22.0 } else { 0.0 };
                let text = fitting(title, SMALL, wide - left);
                let colour = if n == 0 { INK } else { GREY };
                picture.text(Text::new((x + left, y + 14.0 + 15.0 * n as f64), SMALL, text).coloured(colour));
            }
            picture.line(&[(x, y + 10.0), (x + 16.0, y + 10.0)], Stroke::new(PALETTE[i % PALETTE.len()], 4.0));
            x += wide + SPACE;
            deepest = deepest.max(panel.height());
        }
        picture.height = y + deepest + MARGIN;
    }
}

fn percent(share: Ratio) -> String {
    let text = format!("{:.2}", share.to_f64() * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A device in a tree.
struct Node {
    device: usize,
    parent: Option<usize>,
    /// Rounds from the root.
    level: usize,
    /// In slots, from the left.
    x: f64,
}

/// A tree by itself: the root above, what it reaches in a round in a row below.
struct Panel {
    nodes: Vec<Node>,
    slots: usize,
    levels: usize,
}

impl Panel {
    /// Switches are left out; a GPU or host memory that forwards is a node for each path.
    fn of(topology: &Topology, flow: &Flow) -> Self {
        let mut nodes = vec![Node { device: flow.root, parent: None, level: 0, x: 0.0 }];
        let mut of_job: BTreeMap<usize, usize> = BTreeMap::from([(flow.root, 0)]);
        for path in &flow.paths {
            let Some((last, between)) = path.split_last() else { continue };
            let mut at = between.first().and_then(|d| of_job.get(d)).copied().unwrap_or(0);
            let forwards = |d: &&usize| matches!(topology.devices()[**d].kind, DeviceKind::Gpu | DeviceKind::Cpu);
            for &device in between.iter().skip(1).filter(forwards).chain([last]) {
                nodes.push(Node { device, parent: Some(at), level: nodes[at].level + 1, x: 0.0 });
                at = nodes.len() - 1;
            }
            of_job.insert(*last, at);
        }
        let mut panel = Self { slots: 0, levels: nodes.iter().map(|n| n.level).max().unwrap_or(0), nodes };
        panel.place(0);
        panel
    }

    /// Leaves beside each other, others above the middle of theirs.
    fn place(&mut self, node: usize) {
        let below: Vec<usize> = (0..self.nodes.len()).filter(|&n| self.nodes[n].parent == Some(node)).collect();
        below.iter().for_each(|&n| self.place(n));
        self.nodes[node].x = match (below.first(), below.last()) {
            (Some(&first), Some(&last)) => (self.nodes[first].x + self.nodes[last].x) / 2.0,
            _ => {
                self.slots += 1;
                self.slots as f64 - 0.5
            }
        };
    }

    fn width(&self) -> f64 {
        ASIDE + self.slots as f64 * SLOT
    }

    fn height(&self) -> f64 {
        TITLE + self.levels as f64 * ROUND + 2.0 * RADIUS + SPACE
    }

    fn draw(
        &self,
        topology: &Topology,
        picture: &mut Picture,
        corner: Point,
        (flow, colour): (&Flow, &'static str),
        looks: &BTreeMap<usize, Look>,
    ) {
        let at = |n: &Node| (corner.0 + ASIDE + n.x * SLOT, corner.1 + TITLE + RADIUS + n.level as f64 * ROUND);
        for level in 1..=self.levels {
            let y = corner.1 + TITLE + RADIUS + (level as f64 - 0.5) * ROUND + 3.0;
            let round = if flow.is_collected { self.levels - level + 1 } else { level };
            picture.text(Text::new((corner.0, y), 9.0, format!("round {round}")).coloured(GREY));
        }
        for node in &self.nodes {
            let Some(parent) = node.parent else { continue };
            let (from, to) = (at(&self.nodes[parent]), at(node));
            let (from, to) = if flow.is_collected { (to, from) } else { (from, to) };
            let length = (to.0 - from.0).hypot(to.1 - from.1).max(1e-9);
            let part = |d: f64| (from.0 + (to.0 - from.0) * d / length, from.1 + (to.1 - from.1) * d / length);
            let (begin, tip) = (part(RADIUS), part(length - RADIUS - 1.5));
            picture.line(&[begin, part(length - RADIUS - 6.0)], Stroke::new(colour, 1.8));
            picture.arrowhead(begin, tip, 8.0, colour);
        }
        let gpus = topology.gpus();
        for node in &self.nodes {
            let device = &topology.devices()[node.device];
            let look = match looks.get(&node.device).copied() {
                Some(Look::Root) if node.parent.is_some() => Look::Job,
                look => look.unwrap_or(Look::Helper),
            };
            let (fill, border, ink) = paint(device.kind, look);
            let (x, y) = at(node);
            let (name, size) = match gpus.iter().position(|&g| g == node.device) {
                Some(g) => (g.to_string(), 10.0),
                None => (fitting(&device.name, 8.5, SLOT - 4.0), 8.5),
            };
            let (wide, radius) =
                if device.kind == DeviceKind::Gpu { (2.0 * RADIUS, RADIUS) } else { (SLOT - 2.0, 2.0) };
            picture.block((x, y), (wide, 2.0 * RADIUS), radius, fill, border);
            picture.text(Text::new((x, y + 0.35 * size), size, name).anchored(Anchor::Middle).coloured(ink));
        }
    }
}

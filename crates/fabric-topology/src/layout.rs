//! Where devices and links stand in a drawing: GPUs on a circle, those of one CPU side by side, what joins them inside, and the
//! PCIe switches and CPUs outside. A machine with one CPU has that inside, too.

use super::picture::{fitting, text_width, Point};
use super::{DeviceKind, LinkKind, Topology};
use std::collections::{BTreeMap, VecDeque};
use std::f64::consts::{PI, TAU};

/// Pixels of the font of names.
pub const NAME_SIZE: f64 = 12.0;
/// Height of a device's box.
const HEIGHT: f64 = 26.0;
/// A name is no wider.
const MAX_NAME: f64 = 84.0;
/// Least distance of boxes.
const GAP: f64 = 8.0;
/// The least radius of the GPUs' circle where something is inside.
const LEAST_RADIUS: f64 = 118.0;
/// Degrees between the points of a bow.
const FINE: f64 = 3.0;
/// Bows between CPUs that lie over each other at most.
const MOST_LEVELS: usize = 8;

/// A drawing's places, in pixels from its upper left corner.
pub struct Layout {
    /// Middles of the devices' boxes.
    pub at: Vec<Point>,
    /// Widths and heights of the boxes.
    pub size: Vec<Point>,
    /// What is written in them.
    pub names: Vec<String>,
    /// The points that each link passes, from its `a` to its `b`, without what the boxes hide.
    pub routes: Vec<Vec<Point>>,
    /// The areas of what belongs to one CPU.
    pub areas: Vec<Vec<Point>>,
    /// Width and height of all.
    pub extent: Point,
}

/// Radius and angle of a device.
type Polar = (f64, f64);

fn point((radius, angle): Polar) -> Point {
    (radius * angle.cos(), radius * angle.sin())
}

impl Layout {
    /// Places all devices and links of a topology.
    pub fn of(topology: &Topology) -> Self {
        let names: Vec<_> = topology.devices.iter().map(|d| fitting(&d.name, NAME_SIZE, MAX_NAME)).collect();
        let size: Vec<Point> = names.iter().map(|n| (text_width(n, NAME_SIZE) + 12.0, HEIGHT)).collect();
        let groups = groups(topology);
        let rings = Rings::of(topology, &size, &groups);
        let mut at: Vec<Point> = rings.polar.iter().map(|p| point(*p)).collect();
        rings.centre(&size, &mut at);
        // Bows and areas go no farther up and down than the boxes, so that a drawing is no higher than it has to be.
        let (top, bottom) = at.iter().zip(&size).fold((f64::MAX, f64::MIN), |(top, bottom), (p, s)| {
            (top.min(p.1 - s.1 / 2.0), bottom.max(p.1 + s.1 / 2.0))
        });
        let flat = |over: f64| move |p: &mut Point| p.1 = p.1.clamp(top - over, bottom + over);
        let mut routes = routes(topology, &rings, &at);
        for route in routes.iter_mut().filter(|route| route.len() > 2) {
            let level = route[1].0.hypot(route[1].1) - rings.polar.iter().map(|p| p.0).fold(0.0, f64::max);
            route.iter_mut().for_each(flat(6.0 + level.max(0.0)));
        }
        for (link, route) in topology.links.iter().zip(&mut routes) {
            shorten(route, size[link.a]);
            route.reverse();
            shorten(route, size[link.b]);
            route.reverse();
        }
        let mut areas = rings.areas(topology, &groups, &size);
        areas.iter_mut().flatten().for_each(flat(10.0));
        let mut layout = Self { areas, at, size, names, routes, extent: (0.0, 0.0) };
        layout.move_to_corner();
        layout
    }

    /// Moves everything so that it begins at the corner.
    fn move_to_corner(&mut self) {
        let boxes = self.at.iter().zip(&self.size);
        let corners = boxes.flat_map(|(p, s)| [-0.5, 0.5].map(|f| (p.0 + f * s.0, p.1 + f * s.1)));
        let all: Vec<Point> =
            corners.chain(self.routes.iter().flatten().copied()).chain(self.areas.iter().flatten().copied()).collect();
        let (left, top) = all.iter().fold((f64::MAX, f64::MAX), |m, p| (m.0.min(p.0), m.1.min(p.1)));
        let (right, bottom) = all.iter().fold((f64::MIN, f64::MIN), |m, p| (m.0.max(p.0), m.1.max(p.1)));
        let margin = 6.0;
        let moved = |p: &mut Point| *p = (p.0 - left + margin, p.1 - top + margin);
        self.at.iter_mut().for_each(moved);
        self.routes.iter_mut().flatten().for_each(moved);
        self.areas.iter_mut().flatten().for_each(moved);
        self.extent = (right - left + 2.0 * margin, bottom - top + 2.0 * margin);
    }
}

/// The CPU that each device hangs on, by the fewest PCIe links or NVLinks to a CPU.
fn groups(topology: &Topology) -> Vec<Option<usize>> {
    let mut group = vec![None; topology.devices.len()];
    let mut open: VecDeque<usize> = topology.of_kind(DeviceKind::Cpu).into();
    open.iter().for_each(|&cpu| group[cpu] = Some(cpu));
    while let Some(d) = open.pop_front() {
        let is_cpu = topology.devices[d].kind == DeviceKind::Cpu;
        for (other, link) in topology.links_of(d) {
            let hangs = link.kind == LinkKind::Pcie || is_cpu && link.kind == LinkKind::NvLink;
            let kind = topology.devices[other].kind;
            if hangs && group[other].is_none() && matches!(kind, DeviceKind::Gpu | DeviceKind::PcieSwitch) {
                group[other] = group[d];
                open.push_back(other);
            }
        }
    }
    group
}

/// The circles, and who stands on them.
struct Rings {
    polar: Vec<Polar>,
    /// Devices in the middle.
    inside: Vec<usize>,
    gpus: f64,
    /// Whether the only CPU is in the middle.
    is_inward: bool,
}

/// How far the middles of such boxes must be apart.
fn apart(devices: &[usize], size: &[Point]) -> f64 {
    devices.iter().map(|&d| size[d].0.hypot(size[d].1)).fold(0.0, f64::max) + GAP
}

/// The least radius of a circle with so many boxes.
fn radius(devices: &[usize], size: &[Point]) -> f64 {
    match devices.len() {
        0 | 1 => 0.0,
        n => apart(devices, size) / (2.0 * (PI / n as f64).sin()),
    }
}

/// How far outside of the circle of some the circle of others must be.
fn between(a: &[usize], b: &[usize], size: &[Point]) -> f64 {
    (apart(a, size) + apart(b, size)) / 2.0
}

impl Rings {
    fn of(topology: &Topology, size: &[Point], groups: &[Option<usize>]) -> Self {
        let [mut gpus, pcie, cpus, mut switches, memories] =
            [DeviceKind::Gpu, DeviceKind::PcieSwitch, DeviceKind::Cpu, DeviceKind::NvSwitch, DeviceKind::Memory]
                .map(|k| topology.of_kind(k));
        switches.extend(memories);
        gpus.sort_by_key(|&g| (groups[g].is_none(), groups[g], g));
        let is_inward = cpus.len() == 1 && gpus.len() > 2;
        let inside = if is_inward { [&switches[..], &cpus].concat() } else { switches };
        let mut polar = vec![(0.0, 0.0); topology.devices.len()];
        let n = gpus.len() as f64;
        // Against the clock from the top, so that of two the first is on the left.
        gpus.iter().enumerate().for_each(|(i, &g)| polar[g].1 = -TAU / 4.0 - TAU * (i as f64 + 0.5) / n);
        let core = match inside.len() {
            0 => 0.0,
            1 => apart(&inside, size) / 2.0,
            2 => HEIGHT + GAP + apart(&inside, size) / 4.0,
            _ => radius(&inside, size) + apart(&inside, size) / 2.0,
        };
        let mut at_gpus = radius(&gpus, size).max(LEAST_RADIUS).max(core + apart(&gpus, size));
        if is_inward && !pcie.is_empty() {
            let at = radius(&pcie, size).max(core + between(&[], &pcie, size) + GAP);
            at_gpus = at_gpus.max(at + between(&gpus, &pcie, size));
            spread(topology, &pcie, at, apart(&pcie, size), &mut polar, &gpus);
        }
        gpus.iter().for_each(|&g| polar[g].0 = at_gpus);
        if !is_inward {
            let mut last = (at_gpus, gpus.clone());
            for ring in [pcie, cpus] {
                if !ring.is_empty() {
                    let at = radius(&ring, size).max(last.0 + between(&last.1, &ring, size));
                    spread(topology, &ring, at, apart(&ring, size), &mut polar, &gpus);
                    last = (at, ring);
                }
            }
        }
        Self { polar, inside, gpus: at_gpus, is_inward }
    }

    /// What is in the middle: one box, two above each other, or a circle of them.
    fn centre(&self, size: &[Point], at: &mut [Point]) {
        let n = self.inside.len();
        for (i, &d) in self.inside.iter().enumerate() {
            at[d] = match n {
                1 => (0.0, 0.0),
                2 => (0.0, (i as f64 - 0.5) * (HEIGHT + 2.0 * GAP)),
                _ => point((radius(&self.inside, size), -TAU / 4.0 + TAU * i as f64 / n as f64)),
            };
        }
    }

    /// A part of a circle's area behind each CPU and what hangs on it.
    fn areas(&self, topology: &Topology, groups: &[Option<usize>], size: &[Point]) -> Vec<Vec<Point>> {
        let half = |list: &[usize]| apart(list, size) / 2.0;
        let mut areas = Vec::new();
        for cpu in topology.of_kind(DeviceKind::Cpu) {
            let all: Vec<usize> = (0..groups.len()).filter(|&d| groups[d] == Some(cpu)).collect();
            let gpus: Vec<usize> =
                all.iter().copied().filter(|&d| topology.devices[d].kind == DeviceKind::Gpu).collect();
            if topology.of_kind(DeviceKind::Cpu).len() == 1 {
                let out = self.polar.iter().map(|p| p.0).fold(self.gpus, f64::max) + half(&gpus);
                areas.push(bow((out, 0.0), (out, TAU)));
                continue;
            }
            if gpus.is_empty() {
                continue;
            }
            let angles = gpus.iter().map(|&g| self.polar[g].1);
            let (low, high) = angles.fold((f64::MAX, f64::MIN), |m, a| (m.0.min(a), m.1.max(a)));
            let all_gpus = topology.of_kind(DeviceKind::Gpu).len() as f64;
            let side = (TAU / all_gpus / 2.0 - 0.03).min(0.6);
            let (inner, outer) = (self.gpus - half(&gpus), self.polar[cpu].0 + half(&[cpu]));
            let mut area = bow((outer, low - side), (outer, high + side));
            area.extend(bow((inner, high + side), (inner, low - side)));
            areas.push(area);
        }
        areas
    }
}

/// Points of a bow between two places, both included.
fn bow(from: Polar, to: Polar) -> Vec<Point> {
    let steps = ((to.1 - from.1).abs().to_degrees() / FINE).ceil().max(1.0);
    let between = |i: usize| {
        let t = i as f64 / steps;
        point((from.0 + (to.0 - from.0) * t, from.1 + (to.1 - from.1) * t))
    };
    (0..=steps as usize).map(between).collect()
}

/// Places devices on a circle near what they are joined with, so far apart that their boxes are.
fn spread(topology: &Topology, ring: &[usize], at: f64, apart: f64, polar: &mut [Polar], gpus: &[usize]) {
    let is_placed = |d: usize, polar: &[Polar]| polar[d].0 > 0.0 || gpus.contains(&d);
    let mut wanted: Vec<(f64, usize)> = Vec::new();
    for (i, &d) in ring.iter().enumerate() {
        let (mut x, mut y) = (0.0, 0.0);
        for (other, _) in topology.links_of(d).filter(|(o, link)| link.kind != LinkKind::Socket && is_placed(*o, polar))
        {
            x += polar[other].1.cos();
            y += polar[other].1.sin();
        }
        // What is joined with nothing, or with all round, begins at the top.
        let is_nowhere = x.hypot(y) < 1e-6;
        let angle = if is_nowhere { -TAU / 4.0 + TAU * i as f64 / ring.len() as f64 } else { y.atan2(x) };
        wanted.push((angle.rem_euclid(TAU), d));
    }
    wanted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let least = 2.0 * (apart / 2.0 / at.max(1.0)).min(1.0).asin() + 1e-9;
    for ((_, d), angle) in wanted.iter().zip(separated(&wanted, least)) {
        polar[*d] = (at, angle);
    }
}

/// The nearest angles in the same order that are so far apart: means of those that stand in each other's way.
fn separated(wanted: &[(f64, usize)], least: f64) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (i, (angle, _)) in wanted.iter().enumerate() {
        blocks.push((angle - least * i as f64, 1));
        while let [.., (a, n), (b, m)] = blocks[..] {
            if a / n as f64 <= b / m as f64 {
                break;
            }
            blocks.truncate(blocks.len() - 2);
            blocks.push((a + b, n + m));
        }
    }
    let moved = blocks.iter().flat_map(|(sum, n)| std::iter::repeat_n(sum / *n as f64, *n));
    let angles: Vec<f64> = moved.enumerate().map(|(i, a)| a + least * i as f64).collect();
    let n = angles.len();
    match (angles.first(), angles.last()) {
        (Some(first), Some(last)) if n > 1 && last - first > TAU - least => {
            (0..n).map(|i| first + TAU * i as f64 / n as f64).collect()
        }
        _ => angles,
    }
}

/// The points of each link: straight, but for those between CPUs, which go round outside. Two links of one pair lie side by side.
fn routes(topology: &Topology, rings: &Rings, at: &[Point]) -> Vec<Vec<Point>> {
    let mut taken: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut out = Vec::new();
    for link in &topology.links {
        if link.kind == LinkKind::Socket && !rings.is_inward {
            out.push(around(rings, (link.a, link.b), &mut taken));
            continue;
        }
        let nth = pairs.entry((link.a.min(link.b), link.a.max(link.b))).or_insert(0);
        let (from, to) = (at[link.a.min(link.b)], at[link.a.max(link.b)]);
        let length = (to.0 - from.0).hypot(to.1 - from.1).max(1e-9);
        let aside = 10.0 * *nth as f64 / length;
        *nth += 1;
        let moved = |p: Point| (p.0 + aside * (to.1 - from.1), p.1 - aside * (to.0 - from.0));
        out.push(vec![moved(at[link.a]), moved(at[link.b])]);
    }
    out
}

/// A bow from CPU to CPU, outside of all that it would cross.
fn around(rings: &Rings, (a, b): (usize, usize), taken: &mut Vec<Vec<(f64, f64)>>) -> Vec<Point> {
    let (from, to) = (rings.polar[a], rings.polar[b]);
    let mut turn = (to.1 - from.1).rem_euclid(TAU);
    if turn > PI + 1e-6 {
        turn -= TAU;
    }
    let span = (from.1.min(from.1 + turn).rem_euclid(TAU), turn.abs());
    let meets =
        |s: &(f64, f64)| (s.0 - span.0).rem_euclid(TAU) < span.1 - 1e-6 || (span.0 - s.0).rem_euclid(TAU) < s.1 - 1e-6;
    let free = taken.iter().position(|level| !level.iter().any(meets)).unwrap_or(taken.len());
    let level = free % MOST_LEVELS;
    match taken.get_mut(level) {
        Some(spans) => spans.push(span),
        None => taken.push(vec![span]),
    }
    let out = 10.0 + 9.0 * level as f64;
    let radius = from.0.max(to.0) + out;
    let lean = (0.12f64).min(turn.abs() / 4.0) * turn.signum();
    let mut points = vec![point(from)];
    points.extend(bow((radius, from.1 + lean), (radius, from.1 + turn - lean)));
    points.push(point(to));
    points
}

/// Takes away what the box around the first point hides.
fn shorten(route: &mut Vec<Point>, size: Point) {
    let middle = route[0];
    let is_inside = |p: Point| (p.0 - middle.0).abs() < size.0 / 2.0 && (p.1 - middle.1).abs() < size.1 / 2.0;
    while route.len() > 2 && is_inside(route[1]) {
        route.remove(1);
    }
    let (from, to) = (route[0], route[1]);
    let (dx, dy) = ((to.0 - from.0).abs().max(1e-9), (to.1 - from.1).abs().max(1e-9));
    let part = (size.0 / 2.0 / dx).min(size.1 / 2.0 / dy).min(0.45);
    route[0] = (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part);
}

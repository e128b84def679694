//! A drawing of a machine: its devices, what belongs to which CPU, and its links, as wide as they are fast.

use super::layout::{Layout, NAME_SIZE};
use super::picture::{fitting, overlap, Anchor, Picture, Point, Shape, Stroke, Text, FAINT, GREY, INK};
use super::{DeviceKind, LinkKind, Rate, Topology};
use std::collections::BTreeSet;

/// The width of all pictures but those of very large machines.
const WIDTH: f64 = 800.0;
/// Of the column with the legend.
const LEGEND: f64 = 214.0;
/// Of the lines above the drawing.
pub const HEAD: f64 = 64.0;
/// Around everything.
pub const MARGIN: f64 = 14.0;
/// Pixels of the fastest link's line, and of the slowest there may be.
const WIDEST: f64 = 9.0;
const THINNEST: f64 = 1.2;
/// Rates that the legend lists one by one; of more it shows the range, and links are labelled.
const MOST_RATES: usize = 8;
/// Pixels of the font of labels and legends.
pub const SMALL: f64 = 11.0;
/// Behind what belongs to one CPU.
const AREA: &str = "#f1f1f1";

impl Topology {
    /// A drawing as SVG. Equal topologies give equal texts.
    pub fn to_svg(&self) -> String {
        self.to_picture().to_svg()
    }

    /// A drawing.
    pub fn to_picture(&self) -> Picture {
        let mut scene = Scene::new(self, &self.name, &self.summary());
        let fastest = self.fastest();
        let rates: BTreeSet<(LinkKind, Rate)> =
            self.links.iter().flat_map(|l| [(l.kind, l.forth), (l.kind, l.back)]).collect();
        scene.areas();
        for (link, route) in self.links.iter().zip(scene.layout.routes.clone()) {
            let (colour, wide) = (colour(link.kind), |rate: Rate| width(rate.gbs(), fastest));
            if link.forth == link.back {
                scene.picture.line(&route, Stroke::new(colour, wide(link.forth)));
                continue;
            }
            let back: Vec<Point> = route.iter().rev().copied().collect();
            for (route, rate) in [(&route, link.forth), (&back, link.back)] {
                scene.arrow(route, 1.0 + wide(rate) / 2.0, wide(rate), 0.0, colour);
            }
        }
        scene.devices(&|_| Look::Plain);
        if rates.len() > MOST_RATES {
            scene.label_links();
        }
        let mut kinds: Vec<(LinkKind, Vec<Rate>)> = Vec::new();
        for (kind, rate) in rates.iter().rev() {
            match kinds.iter_mut().find(|(k, _)| k == kind) {
                Some((_, list)) => list.push(*rate),
                None => kinds.push((*kind, vec![*rate])),
            }
        }
        kinds.sort_by_key(|(kind, _)| *kind);
        if !kinds.is_empty() {
            scene.legend.heading(&mut scene.picture, "Links, GB/s each way");
        }
        for (kind, list) in &kinds {
            let shown = if rates.len() > MOST_RATES { vec![list[0], list[list.len() - 1]] } else { list.clone() };
            let shown: BTreeSet<Rate> = shown.into_iter().collect();
            for rate in shown.iter().rev() {
                let stroke = Stroke::new(colour(*kind), width(rate.gbs(), fastest));
                scene.legend.line(&mut scene.picture, stroke, &format!("{}, {rate}", word(*kind)));
            }
        }
        scene.legend_of_devices(&[]);
        scene.done()
    }

    /// The rate of the fastest link, GB/s.
    pub fn fastest(&self) -> f64 {
        self.links.iter().map(|l| l.forth.max(l.back).gbs()).fold(0.0, f64::max)
    }

    fn summary(&self) -> String {
        let kinds = [
            (DeviceKind::Gpu, "GPU"),
            (DeviceKind::NvSwitch, "NVSwitch"),
            (DeviceKind::Memory, "shared memory"),
            (DeviceKind::PcieSwitch, "PCIe switch"),
            (DeviceKind::Cpu, "CPU"),
        ];
        let count = |(kind, name): (DeviceKind, &str)| match (self.of_kind(kind).len(), name) {
            (0, _) => None,
            (1, _) => Some(format!("1 {name}")),
            (n, "NVSwitch" | "PCIe switch") => Some(format!("{n} {name}es")),
            (n, "shared memory") => Some(format!("{n} shared memories")),
            (n, _) => Some(format!("{n} {name}s")),
        };
        kinds.into_iter().filter_map(count).collect::<Vec<_>>().join(", ")
    }
}

fn colour(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::NvLink => "#009e73",
        LinkKind::Pcie => "#0072b2",
        LinkKind::Socket => "#8a8a8a",
        LinkKind::Memory => "#cc79a7",
    }
}

fn word(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::NvLink => "NVLink",
        LinkKind::Pcie => "PCIe",
        LinkKind::Socket => "between CPUs",
        LinkKind::Memory => "within a GPU",
    }
}

/// Pixels of a line for a rate.
pub fn width(rate: f64, fastest: f64) -> f64 {
    (WIDEST * rate / fastest.max(1e-9)).max(THINNEST)
}

/// How a device is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// Where nothing is to be told of it.
    Plain,
    /// A GPU at which data begins or ends.
    Root,
    /// A GPU of the job.
    Job,
    /// A GPU that forwards.
    Helper,
    /// A GPU that takes no part.
    Idle,
}

/// Inside and border of a device's box, and the colour of its name.
pub fn paint(kind: DeviceKind, look: Look) -> (&'static str, Stroke, &'static str) {
    match (kind, look) {
        (DeviceKind::NvSwitch, _) => ("#cdeadf", Stroke::new(GREY, 1.0), INK),
        (DeviceKind::PcieSwitch, _) => ("#d3e6f4", Stroke::new(GREY, 1.0), INK),
        (DeviceKind::Memory, _) => ("#f3dcea", Stroke::new(GREY, 1.0), INK),
        (DeviceKind::Cpu, _) => ("#dcdcdc", Stroke::new(GREY, 1.0), INK),
        (DeviceKind::Gpu, Look::Plain) => ("#ffffff", Stroke::new(INK, 1.4), INK),
        (DeviceKind::Gpu, Look::Root) => ("#fff1bf", Stroke::new(INK, 3.0), INK),
        (DeviceKind::Gpu, Look::Job) => ("#fff1bf", Stroke::new(INK, 1.4), INK),
        (DeviceKind::Gpu, Look::Helper) => ("#ffffff", Stroke::dashed(INK, 1.4), INK),
        (DeviceKind::Gpu, Look::Idle) => ("#ffffff", Stroke::new(FAINT, 1.0), "#8a8a8a"),
    }
}

/// Round for GPUs, square for what only forwards.
fn corners(kind: DeviceKind) -> f64 {
    match kind {
        DeviceKind::Gpu => 8.0,
        DeviceKind::Cpu => 3.0,
        _ => 0.0,
    }
}

/// A picture of a machine that is being drawn, with a column for its legend.
pub struct Scene<'a> {
    topology: &'a Topology,
    /// Where the machine's devices and links are.
    pub layout: Layout,
    /// What is drawn so far.
    pub picture: Picture,
    /// What colours and shapes mean, in a column beside the machine.
    pub legend: Legend,
}

impl<'a> Scene<'a> {
    /// The places of all, and two lines above them.
    pub fn new(topology: &'a Topology, title: &str, below: &str) -> Self {
        let mut layout = Layout::of(topology);
        let width = (layout.extent.0 + LEGEND + 3.0 * MARGIN).max(WIDTH);
        let column = width - LEGEND - MARGIN;
        let x = ((column - layout.extent.0) / 2.0).max(0.0);
        let moved = |p: &mut Point| *p = (p.0 + x, p.1 + HEAD);
        layout.at.iter_mut().for_each(moved);
        layout.routes.iter_mut().flatten().for_each(moved);
        layout.areas.iter_mut().flatten().for_each(moved);
        let mut picture = Picture::new(width, layout.extent.1 + HEAD + MARGIN);
        let space = width - 2.0 * MARGIN;
        picture.text(Text::new((MARGIN, 26.0), 16.0, fitting(title, 16.0, space)));
        picture.text(Text::new((MARGIN, 46.0), NAME_SIZE, fitting(below, NAME_SIZE, space)).coloured(GREY));
        let legend = Legend { at: (column, HEAD + 12.0), width: LEGEND };
        Self { topology, layout, picture, legend }
    }

    /// What belongs to one CPU.
    pub fn areas(&mut self) {
        self.layout.areas.iter().for_each(|area| self.picture.shapes.push(Shape::Area(area.clone(), AREA)));
    }

    /// A line along a route, so far to the right of it, with a head so far before its end.
    pub fn arrow(&mut self, route: &[Point], aside: f64, width: f64, back: f64, colour: &'static str) {
        let points = beside(route, aside);
        let head = width + if width < 2.0 { 3.6 } else { 5.0 };
        let (line, tip) = until(&points, back);
        let (stem, from) = until(&line, head);
        // Behind a head that stands before the end the line goes on.
        self.picture.line(if back > 0.0 { &points } else { &stem }, Stroke::new(colour, width));
        self.picture.arrowhead(from, tip, head, colour);
    }

    /// The devices' boxes, over the ends of links.
    pub fn devices(&mut self, look: &dyn Fn(usize) -> Look) {
        for (d, device) in self.topology.devices.iter().enumerate() {
            let (fill, border, ink) = paint(device.kind, look(d));
            let (at, size) = (self.layout.at[d], self.layout.size[d]);
            self.picture.block(at, size, corners(device.kind), fill, border);
            let name = Text::new((at.0, at.1 + 4.0), NAME_SIZE, self.layout.names[d].clone());
            self.picture.text(name.anchored(Anchor::Middle).coloured(ink));
        }
    }

    /// Labels links with their rates, where there is room.
    fn label_links(&mut self) {
        let mut taken: Vec<[f64; 4]> =
            self.layout.at.iter().zip(&self.layout.size).map(|(p, s)| bounds(*p, *s)).collect();
        for (link, route) in self.topology.links.iter().zip(self.layout.routes.clone()) {
            let text = match link.forth == link.back {
                true => link.forth.to_string(),
                false => format!("{}/{}", link.forth, link.back),
            };
            for part in [0.5, 0.38, 0.62, 0.27, 0.73, 0.17, 0.83] {
                let length = lengths(&route);
                let (_, at) = until(&route, length * (1.0 - part));
                let label = Text::new((at.0, at.1 + 3.5), 10.0, text.clone()).anchored(Anchor::Middle);
                let bounds = label.bounds();
                if taken.iter().any(|other| overlap(*other, bounds)) {
                    continue;
                }
                taken.push(bounds);
                let size = (bounds[2] - bounds[0], 11.0);
                self.picture.block((at.0, at.1), size, 2.0, "#ffffff", Stroke::new("#ffffff", 0.0));
                self.picture.text(label);
                break;
            }
        }
    }

    /// What the boxes are, as far as there are such.
    pub fn legend_of_devices(&mut self, looks: &[(Look, &str)]) {
        self.legend.heading(&mut self.picture, "Devices");
        for (look, text) in looks {
            self.legend.device(&mut self.picture, DeviceKind::Gpu, *look, text);
        }
        let kinds = [
            (DeviceKind::Gpu, "GPU"),
            (DeviceKind::NvSwitch, "NVSwitch"),
            (DeviceKind::Memory, "memory that PEs share"),
            (DeviceKind::PcieSwitch, "PCIe switch"),
            (DeviceKind::Cpu, "CPU (NUMA node)"),
        ];
        for (kind, text) in kinds.into_iter().skip(usize::from(!looks.is_empty())) {
            if !self.topology.of_kind(kind).is_empty() {
                self.legend.device(&mut self.picture, kind, Look::Plain, text);
            }
        }
        if !self.layout.areas.is_empty() {
            self.legend.sample(&mut self.picture, AREA, Stroke::new(AREA, 1.0), 0.0, "what hangs on one CPU");
        }
    }

    /// The picture, as high as the drawing and the legend need.
    pub fn done(mut self) -> Picture {
        self.picture.height = self.picture.height.max(self.legend.at.1 + MARGIN);
        self.picture
    }
}

/// Left, top, right and bottom of a box around a middle.
fn bounds(at: Point, size: Point) -> [f64; 4] {
    [at.0 - size.0 / 2.0, at.1 - size.1 / 2.0, at.0 + size.0 / 2.0, at.1 + size.1 / 2.0]
}

fn lengths(route: &[Point]) -> f64 {
    route.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum()
}

/// The route until so far before its end, and that place.
fn until(route: &[Point], back: f64) -> (Vec<Point>, Point) {
    let mut left = (lengths(route) - back).max(0.5);
    let mut points = vec![route[0]];
    for w in route.windows(2) {
        let length = (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1);
        if length >= left {
            let t = left / length.max(1e-9);
            let end = (w[0].0 + (w[1].0 - w[0].0) * t, w[0].1 + (w[1].1 - w[0].1) * t);
            points.push(end);
            return (points, end);
        }
        left -= length;
        points.push(w[1]);
    }
    let end = points[points.len() - 1];
    (points, end)
}

/// The points of a route that runs so far to the right of another.
fn beside(route: &[Point], aside: f64) -> Vec<Point> {
    let normal = |a: Point, b: Point| {
        let length = (b.0 - a.0).hypot(b.1 - a.1).max(1e-9);
        ((a.1 - b.1) / length, (b.0 - a.0) / length)
    };
    let moved = |i: usize| {
        let before = normal(route[i.saturating_sub(1)], route[i.max(1)]);
        let after = normal(route[i.min(route.len() - 2)], route[(i + 1).min(route.len() - 1)]);
        let (x, y) = ((before.0 + after.0) / 2.0, (before.1 + after.1) / 2.0);
        (route[i].0 + aside * x, route[i].1 + aside * y)
    };
    (0..route.len()).map(moved).collect()
}

/// A column of samples and what they mean.
pub struct Legend {
    /// Where the next line begins.
    pub at: Point,
    width: f64,
}

impl Legend {
    /// Pixels of a sample.
    const SAMPLE: f64 = 30.0;

    fn next(&mut self, picture: &mut Picture, text: &str) -> Point {
        let (x, y) = self.at;
        let left = x + Self::SAMPLE + 8.0;
        let text = fitting(text, SMALL, self.width - Self::SAMPLE - 8.0);
        picture.text(Text::new((left, y + 4.0), SMALL, text));
        self.at.1 += 20.0;
        (x + Self::SAMPLE / 2.0, y)
    }

    /// A title of what follows.
    pub fn heading(&mut self, picture: &mut Picture, text: &str) {
        picture.text(Text::new((self.at.0, self.at.1 + 8.0), SMALL, fitting(text, SMALL, self.width)).coloured(GREY));
        self.at.1 += 26.0;
    }

    /// A piece of a line.
    pub fn line(&mut self, picture: &mut Picture, stroke: Stroke, text: &str) {
        let (x, y) = self.next(picture, text);
        picture.line(&[(x - Self::SAMPLE / 2.0, y), (x + Self::SAMPLE / 2.0, y)], stroke);
    }

    /// A small device.
    pub fn device(&mut self, picture: &mut Picture, kind: DeviceKind, look: Look, text: &str) {
        let (fill, border, _) = paint(kind, look);
        self.sample(picture, fill, border, corners(kind).min(6.0), text);
    }

    fn sample(&mut self, picture: &mut Picture, fill: &'static str, border: Stroke, radius: f64, text: &str) {
        let at = self.next(picture, text);
        picture.block(at, (Self::SAMPLE - 6.0, 14.0), radius, fill, border);
    }
}

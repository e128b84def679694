//! A drawing: GPUs on a circle, NVSwitches within, PCIe switches and CPUs around.

use super::nccl::escaped;
use super::{DeviceKind, LinkKind, Topology};
use std::f64::consts::TAU;
use std::fmt::Write;

const SIZE: f64 = 760.0;

/// What a drawing says of a link beside its rate: the two texts for there and back, and the share in use.
pub type Note<'a> = &'a dyn Fn(usize, usize) -> Option<(String, f64)>;

impl Topology {
    /// A drawing as SVG.
    pub fn to_svg(&self) -> String {
        self.svg(&self.name, &|_, _| None)
    }

    /// A drawing in which links with a note stand out.
    pub fn svg(&self, title: &str, note: Note<'_>) -> String {
        let places = self.places();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIZE} {SIZE}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{SIZE}\" height=\"{SIZE}\" fill=\"white\"/>\n\
             <text x=\"16\" y=\"24\" font-size=\"16\">{}</text>\n\
             <text x=\"16\" y=\"42\" fill=\"#555\">GB/s each way; green NVLink, blue PCIe, grey between CPUs</text>\n",
            escaped(title)
        );
        for link in &self.links {
            let ((x1, y1), (x2, y2)) = (places[link.a], places[link.b]);
            let colour = match link.kind {
                LinkKind::NvLink => "#76b900",
                LinkKind::Pcie => "#3b7dd8",
                LinkKind::Socket => "#999999",
            };
            let (forth, back) = (note(link.a, link.b), note(link.b, link.a));
            let is_used = forth.is_some() || back.is_some();
            let used = forth.as_ref().map_or(0.0, |n| n.1).max(back.as_ref().map_or(0.0, |n| n.1));
            let width = if is_used { 2.0 + 5.0 * used } else { 1.5 };
            let (colour, opacity) = if is_used { ("#d9480f", 1.0) } else { (colour, 0.6) };
            let _ = writeln!(
                out,
                "<line x1=\"{x1:.0}\" y1=\"{y1:.0}\" x2=\"{x2:.0}\" y2=\"{y2:.0}\" stroke=\"{colour}\" stroke-width=\"{width:.1}\" stroke-opacity=\"{opacity}\"/>"
            );
            let label = match (forth, back) {
                (None, None) if link.forth == link.back => link.forth.to_string(),
                (None, None) => format!("{}/{}", link.forth, link.back),
                (forth, back) => {
                    let text = |n: Option<(String, f64)>| n.map_or("0".into(), |n| n.0);
                    format!("{}/{} of {}", text(forth), text(back), link.forth.min(link.back))
                }
            };
            // A third of the way, so that labels of crossing links stay apart.
            let (x, y) = (x1 + (x2 - x1) * 0.36, y1 + (y2 - y1) * 0.36);
            let _ = writeln!(
                out,
                "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#333\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">{label}</text>"
            );
        }
        for (device, (x, y)) in self.devices.iter().zip(places) {
            let fill = match device.kind {
                DeviceKind::Gpu => "#e6f4d0",
                DeviceKind::NvSwitch => "#c7e59b",
                DeviceKind::Cpu => "#dddddd",
                DeviceKind::PcieSwitch => "#d5e4f7",
            };
            let width = 16.0 + 7.0 * device.name.chars().count() as f64;
            let _ = writeln!(
                out,
                "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"{width:.0}\" height=\"26\" rx=\"5\" fill=\"{fill}\" stroke=\"#555\"/>\n\
                 <text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                x - width / 2.0,
                y - 13.0,
                y + 4.0,
                escaped(&device.name)
            );
        }
        out += "</svg>\n";
        out
    }

    fn places(&self) -> Vec<(f64, f64)> {
        let gpus = self.gpus();
        let mut angle: Vec<Option<f64>> = vec![None; self.devices.len()];
        for (i, &g) in gpus.iter().enumerate() {
            angle[g] = Some(TAU * (i as f64 + 0.5) / gpus.len() as f64 - TAU / 4.0);
        }
        // A device stands where the middle of what hangs on it over PCIe points; from the GPUs outwards.
        for kind in [DeviceKind::PcieSwitch, DeviceKind::Cpu] {
            for d in self.of_kind(kind) {
                let (mut x, mut y) = (0.0, 0.0);
                for (other, link) in self.links_of(d) {
                    if let Some(a) = angle[other].filter(|_| link.kind != LinkKind::Socket) {
                        x += a.cos();
                        y += a.sin();
                    }
                }
                let none = x.hypot(y) < 1e-6;
                angle[d] = Some(if none { TAU * d as f64 / self.devices.len() as f64 } else { y.atan2(x) });
            }
        }
        let switches = self.of_kind(DeviceKind::NvSwitch);
        let place = |d: usize| {
            let radius = match self.devices[d].kind {
                DeviceKind::Gpu => 200.0,
                DeviceKind::PcieSwitch => 270.0,
                DeviceKind::Cpu => 330.0,
                DeviceKind::NvSwitch if switches.len() == 1 => 0.0,
                DeviceKind::NvSwitch => 80.0,
            };
            let a = angle[d].unwrap_or(TAU * d as f64 / switches.len().max(1) as f64);
            (SIZE / 2.0 + radius * a.cos(), SIZE / 2.0 + 15.0 + radius * a.sin())
        };
        (0..self.devices.len()).map(place).collect()
    }
}

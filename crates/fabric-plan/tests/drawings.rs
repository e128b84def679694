//! Drawings of machines and plans: no text lies over another or outside, every device is there, and equal inputs give equal texts.

mod support;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use support::graph;
use tandem_fabric_plan::{plan, Operation, Request};
use tandem_fabric_topology::{Device, DeviceKind, Link, LinkKind, Rate, Topology, PRESETS};

/// Whether there is a link, and its rates either way.
type Rated = (u32, (u32, u32));

/// A text and the box it takes up: six tenths of its size for each character.
type TextBox = (String, [f64; 4]);

/// The texts of a drawing, by a reader of its own.
fn texts(svg: &str) -> ([f64; 2], Vec<TextBox>) {
    let document = roxmltree::Document::parse(svg).unwrap();
    let view: Vec<f64> =
        document.root_element().attribute("viewBox").unwrap().split(' ').map(|x| x.parse().unwrap()).collect();
    assert_eq!(view[..2], [0.0, 0.0]);
    let of = |node: roxmltree::Node<'_, '_>| {
        let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
        let (x, y, size, text) = (number("x"), number("y"), number("font-size"), node.text().unwrap());
        let width = 0.6 * size * text.chars().count() as f64;
        let from = match node.attribute("text-anchor") {
            None => 0.0,
            Some("middle") => -width / 2.0,
            Some(_) => -width,
        };
        (text.to_string(), [x + from, y - 0.8 * size, x + from + width, y + 0.2 * size])
    };
    ([view[2], view[3]], document.descendants().filter(|n| n.has_tag_name("text")).map(of).collect())
}

/// What the drawing's rules are, in words what breaks one.
fn faults(svg: &str) -> Result<(), String> {
    if svg.contains("NaN") || svg.contains("inf") {
        return Err("a number is none".into());
    }
    let ([width, height], texts) = texts(svg);
    for (i, (a, x)) in texts.iter().enumerate() {
        if x[0] < 0.0 || x[1] < 0.0 || x[2] > width || x[3] > height {
            return Err(format!("{a:?} is outside: {x:?} of {width} x {height}"));
        }
        for (b, y) in &texts[i + 1..] {
            if x[0] < y[2] && y[0] < x[2] && x[1] < y[3] && y[1] < x[3] {
                return Err(format!("{a:?} {x:?} lies over {b:?} {y:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn what_lies_over_another_text_or_outside_is_found() {
    let svg = |more: &str| {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 100 100\">\
             <text x=\"50\" y=\"50\" font-size=\"10\" text-anchor=\"middle\">GPU0</text>{more}</svg>"
        )
    };
    let text = |x: u32, y: u32| svg(&format!("<text x=\"{x}\" y=\"{y}\" font-size=\"10\">GPU1</text>"));
    assert_eq!(faults(&svg("")), Ok(()));
    assert_eq!(faults(&text(63, 50)), Ok(()));
    assert!(faults(&text(60, 50)).unwrap_err().contains("lies over"));
    assert!(faults(&text(50, 58)).unwrap_err().contains("lies over"));
    assert!(faults(&text(80, 20)).unwrap_err().contains("outside"));
}

#[test]
fn presets_and_their_plans_are_legible() {
    for (name, _) in PRESETS {
        let t = Topology::preset(name).unwrap();
        let svg = t.to_svg();
        faults(&svg).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(svg, Topology::preset(name).unwrap().to_svg(), "{name}");
        let shown = texts(&svg).1;
        assert!(t.devices().iter().all(|d| shown.iter().any(|(text, _)| *text == d.name)), "{name}");
        let n = t.gpus().len();
        for (operation, _) in Operation::ALL {
            for k in [2, n] {
                let gpus: Vec<usize> = (0..if operation == Operation::Send { 2 } else { k }).collect();
                let helpers: Vec<usize> = (gpus.len()..n).collect();
                let request = Request { pcie: true, ..Request::new(operation, &gpus).with_helpers(&helpers) };
                let plan = plan(&t, &request).unwrap();
                let svg = plan.to_svg(&t);
                faults(&svg).unwrap_or_else(|e| panic!("{name}: {request:?}: {e}"));
                assert_eq!(svg, plan.to_svg(&t), "{name}: {request:?}");
            }
        }
    }
}

/// GPUs with links at random, under switches and CPUs at random; names of any length.
fn machine() -> impl Strategy<Value = Topology> {
    let rate = || (1u32..=4, prop::bool::ANY).prop_map(|(r, same)| (r, if same { r } else { r + 1 }));
    (1usize..=16, 0usize..=4, 0usize..=6, 0usize..=3, 1usize..=40).prop_flat_map(
        move |(gpus, cpus, pcie, switches, long)| {
            let n = gpus + cpus + pcie + switches;
            let pairs: Vec<(usize, usize)> = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect();
            let links = prop::collection::vec((0u32..4, rate()), pairs.len());
            links.prop_map(move |links| {
                let kind = |d: usize| match d {
                    d if d < gpus => DeviceKind::Gpu,
                    d if d < gpus + cpus => DeviceKind::Cpu,
                    d if d < gpus + cpus + pcie => DeviceKind::PcieSwitch,
                    _ => DeviceKind::NvSwitch,
                };
                let name =
                    |d: usize| format!("{}{d}", if d.is_multiple_of(3) { "W".repeat(long) } else { "GPU".into() });
                let device = |d: usize| Device { name: name(d), kind: kind(d), attributes: BTreeMap::new() };
                let link = |(&(a, b), (present, (forth, back))): (&(usize, usize), Rated)| {
                    let kind = match (kind(a), kind(b)) {
                        (DeviceKind::Cpu, DeviceKind::Cpu) => LinkKind::Socket,
                        (DeviceKind::Gpu | DeviceKind::NvSwitch, DeviceKind::Gpu | DeviceKind::NvSwitch) => {
                            LinkKind::NvLink
                        }
                        (DeviceKind::PcieSwitch, DeviceKind::NvSwitch) => return None,
                        (DeviceKind::Cpu, DeviceKind::NvSwitch) => LinkKind::NvLink,
                        _ => LinkKind::Pcie,
                    };
                    let rate = |r: u32| Rate::from_gbs(f64::from(r) * 12.5).unwrap();
                    (present > 1).then(|| Link { a, b, kind, count: 1, forth: rate(forth), back: rate(back) })
                };
                let links = pairs.iter().zip(links).filter_map(link).collect();
                Topology::new("a machine", (0..n).map(device).collect(), links).unwrap()
            })
        },
    )
}

#[test]
fn machines_at_random_are_legible() {
    let config = Config { cases: 150, failure_persistence: None, max_shrink_iters: 40, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    TestRunner::new_with_rng(config, rng)
        .run(&machine(), |t| {
            faults(&t.to_svg()).map_err(TestCaseError::fail)?;
            let n = t.gpus().len();
            if n > 1 {
                let (job, helpers): (Vec<usize>, Vec<usize>) =
                    ((0..n.div_ceil(2).max(2)).collect(), (n.div_ceil(2).max(2)..n).collect());
                let plan = plan(&t, &Request::new(Operation::Broadcast, &job).with_helpers(&helpers)).unwrap();
                faults(&plan.to_svg(&t)).map_err(TestCaseError::fail)?;
            }
            Ok(())
        })
        .unwrap();
}

/// The largest machine there may be still gives a picture.
#[test]
fn a_very_large_machine_is_drawn() {
    let links: Vec<_> =
        (0..64).flat_map(|a| (a + 1..64).map(move |b| (a, b, 1 + (a as u32 * b as u32) % 7, 3))).collect();
    let t = graph(64, &links);
    faults(&t.to_svg()).unwrap();
    // Names as long as they may be.
    let pair = Topology::preset("h200-pair").unwrap();
    let long = Topology::new(&"W".repeat(255), pair.devices().to_vec(), pair.links().to_vec()).unwrap();
    faults(&long.to_svg()).unwrap();
    faults(&plan(&long, &Request::new(Operation::Broadcast, &[0, 1])).unwrap().to_svg(&long)).unwrap();
}

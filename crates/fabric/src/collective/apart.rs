//! Which ways of a topology a team can use where the driver keeps some of its PEs apart.

use crate::topology::{Device, DeviceKind, Link, Rate, Topology};
use crate::{Result, Team};
use std::collections::BTreeMap;

/// The topology without ways between PEs that do not reach each other, except through host memory. A link between two of them is left
/// out. Of switches, each set of PEs that reach each other gets its own: a copy joins what the switches joined, for these PEs alone,
/// and has an even part of what leads on from there.
pub(super) fn usable(team: &Team, topology: &Topology) -> Result<Topology> {
    let gpus = topology.gpus();
    let pe = |device: usize| gpus.iter().position(|&gpu| gpu == device).filter(|&pe| pe < team.size());
    let is_apart = |a: usize, b: usize| match (pe(a), pe(b)) {
        (Some(a), Some(b)) => team.reaches(a, b).is_err() || team.reaches(b, a).is_err(),
        _ => false,
    };
    let mut devices = topology.devices().to_vec();
    let mut links: Vec<Link> = topology.links().iter().filter(|link| !is_apart(link.a, link.b)).cloned().collect();
    for switches in groups(topology) {
        let (joined, others): (Vec<Link>, Vec<Link>) =
            links.iter().cloned().partition(|link| switches.contains(&link.a) || switches.contains(&link.b));
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for &gpu in gpus.iter().filter(|&&gpu| joined.iter().any(|link| link.a == gpu || link.b == gpu)) {
            match sets.iter_mut().find(|set| set.iter().all(|&other| !is_apart(gpu, other))) {
                Some(set) => set.push(gpu),
                None => sets.push(vec![gpu]),
            }
        }
        if sets.len() < 2 {
            continue;
        }
        links = others;
        for (i, set) in sets.iter().enumerate() {
            let mut copies = BTreeMap::new();
            for &switch in switches.iter().filter(|_| i > 0) {
                let device = &devices[switch];
                let name = format!("{} {} of {}", device.kind.name(), devices.len(), topology.devices().len());
                let copy = Device { name, ..device.clone() };
                copies.insert(switch, devices.len());
                devices.push(copy);
            }
            let at = |device: usize| copies.get(&device).copied().unwrap_or(device);
            for link in &joined {
                let gpu = [link.a, link.b].into_iter().find(|&end| devices[end].kind == DeviceKind::Gpu);
                if gpu.is_some_and(|gpu| !set.contains(&gpu)) {
                    continue;
                }
                let part = |rate: Rate| if gpu.is_some() { rate } else { rate.over(sets.len()) };
                let (forth, back) = (part(link.forth), part(link.back));
                links.push(Link { a: at(link.a), b: at(link.b), forth, back, ..link.clone() });
            }
        }
    }
    Ok(Topology::new(topology.name(), devices, links)?)
}

/// Switches that are joined to each other.
fn groups(topology: &Topology) -> Vec<Vec<usize>> {
    let is_switch = |d: &usize| topology.devices()[*d].kind.is_switch();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for first in (0..topology.devices().len()).filter(is_switch) {
        if groups.iter().flatten().any(|&switch| switch == first) {
            continue;
        }
        let mut group = vec![first];
        let mut at = 0;
        while at < group.len() {
            let next = topology.links_of(group[at]).map(|(other, _)| other);
            let next: Vec<usize> = next.filter(|other| is_switch(other) && !group.contains(other)).collect();
            group.extend(next);
            at += 1;
        }
        groups.push(group);
    }
    groups
}

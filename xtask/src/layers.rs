//! Which parts of `fabric` stand on which: an interface, who implements it, and what is built on that.

use std::collections::BTreeMap;

/// From the bottom up, each with the types that the crate's root gives out of it. A part may name those below it, and not those beside it.
const LAYERS: [(&[&str], &[&str]); 6] = [
    (&["machine"], &[]),
    (&["bound", "process"], &["Meeting", "Process"]),
    (&["cuda", "sim"], &[]),
    (&["world"], &[]),
    (&["rank", "symmetric", "onesided", "pe", "queue"], &["Symmetric", "OneSided", "Pe", "Queue", "Event", "Graph"]),
    (&["team", "kernels"], &["Team", "Options"]),
];
/// The layer above whose parts may name each other: they are one thing in several files.
const ONE: usize = 4;

/// Parts that name what stands on them, or beside them.
pub(crate) fn check(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in files {
        let Some(place) = path.strip_prefix("crates/fabric/src/") else { continue };
        let part = place.split(['/', '.']).next().unwrap_or("");
        let Some(layer) = LAYERS.iter().position(|(parts, _)| parts.contains(&part)) else { continue };
        let named = names(text);
        for (above, (parts, types)) in LAYERS.iter().enumerate().skip(layer) {
            let is_forbidden = |name: &&&str| **name != part && (above > layer || layer < ONE);
            for name in parts.iter().chain(*types).filter(is_forbidden).filter(|name| named.contains(name)) {
                broken.push(format!(
                    "{path}: `{part}` names `{name}`, which does not stand below it (xtask/src/layers.rs)"
                ));
            }
        }
    }
    broken
}

/// What follows `crate::`, itself or between braces, outside comments and tests.
fn names(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]\npub(crate) mod tests {").next().unwrap_or("");
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
    let first = |text: &'_ str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let mut out = Vec::new();
    for line in code.split('\n').map(|line| line.split("//").next().unwrap_or("")) {
        for after in line.split("crate::").skip(1) {
            match after.strip_prefix('{') {
                Some(list) => {
                    let list = list.split('}').next().unwrap_or(list);
                    out.extend(list.split(',').map(|name| name.trim()).map(|name| &name[..first(name)]));
                }
                None => out.push(&after[..first(after)]),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> usize {
        check(&BTreeMap::from([(format!("crates/fabric/src/{path}"), text.to_string())])).len()
    }

    #[test]
    fn who_implements_names_the_interface_and_not_the_reverse() {
        assert_eq!(broken("cuda/lane.rs", "use crate::machine::Point;\nuse crate::{ffi, Error, Result};"), 0);
        assert_eq!(broken("machine.rs", "use crate::sim::Memory;"), 1);
        assert_eq!(broken("machine.rs", "let x = crate::team::MOST;\nuse crate::{cuda::Machine, Queue};"), 3);
        assert_eq!(broken("sim/mod.rs", "use crate::{cuda, sim};"), 1);
        assert_eq!(broken("cuda/mod.rs", "use crate::world::Links;"), 1);
        assert_eq!(broken("world.rs", "// crate::team\n#[cfg(test)]\nmod tests {\n    use crate::sim;"), 0);
        assert_eq!(broken("queue.rs", "use crate::rank::TeamRank;\nuse crate::pe::Pe;"), 0);
        assert_eq!(broken("queue.rs", "use crate::Team;"), 1);
        assert_eq!(broken("array.rs", "use crate::{Team, Queue};"), 0);
    }
}

//! Our JSON: exact both ways.
//!
//! ```json
//! {"format": "tandem-topology", "version": 1, "name": "two GPUs",
//!  "devices": [{"name": "GPU0", "kind": "gpu"}, {"name": "GPU1", "kind": "gpu", "attributes": {"sm": "90"}}],
//!  "links": [{"a": "GPU0", "b": "GPU1", "kind": "nvlink", "count": 18, "gbs_ab": 398, "gbs_ba": 398}]}
//! ```

use super::{Device, DeviceKind, Link, LinkKind, Rate, Topology, MAX_FILE};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

const FORMAT: &str = "tandem-topology";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    name: String,
    devices: Vec<FileDevice>,
    links: Vec<FileLink>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDevice {
    name: String,
    kind: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLink {
    a: String,
    b: String,
    kind: String,
    #[serde(default = "one")]
    count: u32,
    gbs_ab: f64,
    gbs_ba: f64,
}

fn one() -> u32 {
    1
}

/// JSON of a value whose keys are strings and whose numbers are finite, which cannot fail.
fn text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl Topology {
    /// Reads our JSON.
    pub fn from_json(text: &str) -> Result<Self> {
        if text.len() > MAX_FILE {
            return Err(Error::at("size", format!("expected at most {MAX_FILE} bytes, found {}", text.len())));
        }
        let file: File = serde_json::from_str(text).map_err(|e| {
            let message = e.to_string();
            let problem = message.rsplit_once(" at line ").map_or(message.as_str(), |(problem, _)| problem);
            Error::at(format!("line {}, column {}", e.line(), e.column()), problem)
        })?;
        if file.format != FORMAT || file.version != VERSION {
            let problem =
                format!("expected {FORMAT:?} version {VERSION}, found {:?} version {}", file.format, file.version);
            return Err(Error::at("format", problem));
        }
        let mut devices = Vec::with_capacity(file.devices.len());
        for (i, d) in file.devices.into_iter().enumerate() {
            let kind = DeviceKind::from_name(&d.kind).ok_or_else(|| {
                let names = DeviceKind::ALL.map(|(_, name)| name).join(", ");
                Error::at(format!("devices[{i}]"), format!("expected a kind of {names}, found {:?}", d.kind))
            })?;
            devices.push(Device { name: d.name, kind, attributes: d.attributes });
        }
        let index: HashMap<&str, usize> = devices.iter().enumerate().map(|(i, d)| (d.name.as_str(), i)).collect();
        let mut links = Vec::with_capacity(file.links.len());
        for (i, l) in file.links.iter().enumerate() {
            let place = || format!("links[{i}] ({:?}-{:?})", l.a, l.b);
            let end = |name: &str| {
                index.get(name).copied().ok_or_else(|| Error::at(place(), format!("there is no device {name:?}")))
            };
            let kind = LinkKind::from_name(&l.kind).ok_or_else(|| {
                let names = LinkKind::ALL.map(|(_, name)| name).join(", ");
                Error::at(place(), format!("expected a kind of {names}, found {:?}", l.kind))
            })?;
            let rate = |field: &str, gbs: f64| {
                Rate::from_gbs(gbs).ok_or_else(|| {
                    Error::at(place(), format!("{field}: expected GB/s from 0.001 to 1000000, found {gbs}"))
                })
            };
            let (forth, back) = (rate("gbs_ab", l.gbs_ab)?, rate("gbs_ba", l.gbs_ba)?);
            links.push(Link { a: end(&l.a)?, b: end(&l.b)?, kind, count: l.count, forth, back });
        }
        Self::new(&file.name, devices, links)
    }

    /// Writes our JSON, one device or link a line.
    pub fn to_json(&self) -> String {
        let lines = |items: Vec<String>| items.join(",\n    ");
        let devices = self.devices.iter().map(|d| {
            let d = FileDevice { name: d.name.clone(), kind: d.kind.name().into(), attributes: d.attributes.clone() };
            text(&d)
        });
        let links = self.links.iter().map(|l| {
            let name = |e: usize| self.devices[e].name.clone();
            text(&FileLink {
                a: name(l.a),
                b: name(l.b),
                kind: l.kind.name().into(),
                count: l.count,
                gbs_ab: l.forth.gbs(),
                gbs_ba: l.back.gbs(),
            })
        });
        format!(
            "{{\n  \"format\": \"{FORMAT}\",\n  \"version\": {VERSION},\n  \"name\": {},\n  \"devices\": [\n    {}\n  ],\n  \"links\": [\n    {}\n  ]\n}}\n",
            text(&self.name),
            lines(devices.collect()),
            lines(links.collect())
        )
    }
}

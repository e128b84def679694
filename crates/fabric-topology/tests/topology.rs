//! Topologies: the formats, there and back, and what they refuse.

#[path = "../../fabric-plan/tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};
use support::planned;
use tandem_fabric_plan::{Operation, Ratio, Request};
use tandem_fabric_topology::{DeviceKind, LinkKind, Rate, Topology, PRESETS};

const DGX1V: &str = include_str!("data/dgx1v-nccl.xml");
const BRIDGES: &str = include_str!("data/bridges-smi.txt");
const MESH: &str = include_str!("data/a100-mesh4.json");

#[test]
fn json_is_exact_both_ways() {
    for (name, _) in PRESETS {
        let t = Topology::preset(name).unwrap();
        let text = t.to_json();
        assert_eq!(Topology::from_json(&text).unwrap(), t, "{name}");
        assert_eq!(Topology::read(text.as_bytes()).unwrap().to_json(), text, "{name}");
    }
    // Every rate of three decimals survives.
    for mbs in [1u32, 7, 333, 1001, 20_600, 370_800, 123_456_789, 999_999_999, 1_000_000_000] {
        let rate = Rate::from_gbs(f64::from(mbs) / 1000.0).unwrap();
        assert_eq!(rate.mbs(), i64::from(mbs));
        assert_eq!(Rate::from_gbs(rate.to_string().parse().unwrap()), Some(rate));
    }
}

/// A topology in the form of NCCL's dumps, NICs included, that describes the DGX-1 of the preset.
/// A file as an earlier version wrote it.
#[test]
fn json_of_a_mesh() {
    assert_eq!(Topology::read(MESH.as_bytes()).unwrap().to_json(), Topology::preset("a100-mesh4").unwrap().to_json());
}

#[test]
fn nccl_xml_of_a_dgx1v() {
    let t = Topology::read(DGX1V.as_bytes()).unwrap();
    let preset = Topology::preset("dgx1-v100").unwrap();
    assert_eq!(t.gpus().len(), 8);
    let nvlinks = |t: &Topology| {
        let place = |d: usize| t.gpus().iter().position(|g| *g == d).unwrap();
        let mut all: Vec<_> = t
            .links()
            .iter()
            .filter(|l| l.kind == LinkKind::NvLink)
            .map(|l| (place(l.a.min(l.b)), place(l.a.max(l.b)), l.count, l.forth, l.back))
            .collect();
        all.sort();
        all
    };
    assert_eq!(nvlinks(&t), nvlinks(&preset));
    let count = |kind| t.devices().iter().filter(|d| d.kind == kind).count();
    assert_eq!((count(DeviceKind::Cpu), count(DeviceKind::PcieSwitch)), (2, 4));
    // Written and read again it is the same.
    let xml = t.to_nccl_xml().unwrap();
    assert_eq!(Topology::from_nccl_xml(&xml).unwrap(), t);
    assert!(xml.contains("<nvlink target=\"0000:1b:00.0\" count=\"2\" tclass=\"0x030200\"/>"), "{xml}");
    assert!(xml.contains("affinity=\"0000,000fffff,00000fff\""), "{xml}");
}

/// The DGX-1V with other words on a line.
fn on_line(line: usize, old: &str, new: &str) -> String {
    let mut lines: Vec<String> = DGX1V.lines().map(String::from).collect();
    assert!(lines[line - 1].contains(old), "{}", lines[line - 1]);
    lines[line - 1] = lines[line - 1].replace(old, new);
    lines.join("\n")
}

/// Virtual machines say nothing of a slot, or that it is unknown, in the words of Linux: it counts as one of 8 GT/s and 16 lanes.
#[test]
fn slots_that_are_not_known_in_nccl_xml() {
    let expected = Topology::read(DGX1V.as_bytes()).unwrap();
    for (old, new) in [
        ("link_speed=\"8 GT/s\"", ["", "link_speed=\"\"", "link_speed=\"Unknown\"", "link_speed=\"Unknown speed\""]),
        ("link_width=\"16\"", ["", "link_width=\"\"", "link_width=\"0\"", "link_width=\"255\""]),
    ] {
        for new in new {
            let t = Topology::read(on_line(4, old, new).as_bytes()).unwrap();
            assert_eq!(t.links(), expected.links(), "{new}");
        }
    }
    // What is known counts.
    let t = Topology::read(on_line(4, "link_speed=\"8 GT/s\"", "link_speed=\"16.0 GT/s PCIe\"").as_bytes()).unwrap();
    let slot = |t: &Topology| t.links().iter().find(|l| l.kind == LinkKind::Pcie).map(|l| l.forth.mbs());
    assert_eq!(slot(&t), slot(&expected).map(|mbs| 2 * mbs));
}

/// Plans do not change on the way through NCCL's XML, which holds counts, not rates.
#[test]
fn presets_survive_nccl_xml() {
    for (name, _) in PRESETS.iter().filter(|(name, _)| !["h200-pair", "gb200-trays"].contains(name)) {
        let t = Topology::preset(name).unwrap();
        let again = Topology::from_nccl_xml(&t.to_nccl_xml().unwrap()).unwrap();
        let n = t.gpus().len();
        assert_eq!(again.gpus().len(), n, "{name}");
        for operation in [Operation::AllGather, Operation::Upload] {
            let all: Vec<usize> = (0..n).collect();
            let request = Request { pcie: true, ..Request::new(operation, &all) };
            assert_eq!(planned(&t, &request).rate, planned(&again, &request).rate, "{name} {operation:?}");
        }
    }
    // NVLink to the CPU instead of PCIe.
    let error = Topology::preset("gb200-trays").unwrap().to_nccl_xml().unwrap_err().to_string();
    assert!(error.contains("GPU0 hangs on no CPU"), "{error}");
    let text = "{\"format\":\"tandem-topology\",\"version\":1,\"name\":\"x\",\"devices\":[{\"name\":\"GPU0\",\"kind\":\"gpu\"}],\"links\":[]}";
    let error = Topology::read(text.as_bytes()).unwrap().to_nccl_xml().unwrap_err().to_string();
    assert!(error.contains("GPU0 hangs on no CPU"), "{error}");
    // Two GPUs that say that they have one number.
    let text = MESH.replace("{\"sm\":\"80\"}", "{\"sm\":\"80\",\"dev\":\"0\"}");
    let error = Topology::read(text.as_bytes()).unwrap().to_nccl_xml().unwrap_err().to_string();
    assert!(error.contains("do not fit NCCL's format") && error.contains("already a GPU with dev 0"), "{error}");
}

#[test]
fn smi_text_of_two_bridges() {
    let t = Topology::read(BRIDGES.as_bytes()).unwrap();
    assert_eq!(t.gpus().len(), 4);
    let matrix = t.to_matrix();
    let row = |name: &str| {
        let line = matrix.lines().find(|l| l.starts_with(name)).unwrap();
        line.split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(row("GPU0"), ["GPU0", "X", "NV4", "SYS", "SYS"]);
    assert_eq!(row("GPU3"), ["GPU3", "SYS", "SYS", "NV4", "X"]);
    assert!(planned(&t, &Request::new(Operation::Broadcast, &[0, 2])).rate.is_zero());
    assert_eq!(planned(&t, &Request::new(Operation::Broadcast, &[0, 1])).rate, Ratio::whole(80_000));
}

/// The matrix that we print is one that we read; switches and PCIe relations come back.
#[test]
fn matrices_of_presets_are_read() {
    for (name, links) in [("dgx1-v100", "NV2"), ("hgx-h100", "NV18"), ("hgx-a100", "NV12"), ("h100-mesh4", "NV6")] {
        let t = Topology::preset(name).unwrap();
        let matrix = t.to_matrix();
        assert!(matrix.contains(links), "{matrix}");
        let words = |m: &str, n: usize| {
            let lines = m.lines().skip(2).take(n + 1);
            lines.map(|l| l.split_whitespace().map(String::from).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        let n = t.gpus().len();
        let table: String = matrix.lines().skip(2).take(n + 1).map(|l| format!("{l}\n")).collect();
        let again = Topology::read(table.as_bytes()).unwrap();
        assert_eq!(words(&again.to_matrix(), n), words(&matrix, n), "{name}");
        let all: Vec<usize> = (0..n).collect();
        let rate = |t: &Topology| planned(t, &Request::new(Operation::AllGather, &all)).rate;
        if name != "h100-mesh4" {
            assert_eq!(rate(&again), rate(&t), "{name}");
        }
    }
}

#[test]
fn drawings_show_every_device() {
    for (name, _) in PRESETS {
        let t = Topology::preset(name).unwrap();
        let svg = t.to_svg();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts: Vec<_> = document.descendants().filter_map(|n| n.text()).collect();
        assert!(t.devices().iter().all(|d| texts.contains(&d.name.as_str())), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    }
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let start = Instant::now();
    let error = Topology::read(text.as_bytes()).unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "expected {part:?} in {error:?}");
    }
    assert!(!error.contains(char::is_control) && error.len() < 600, "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(5), "{error:?}");
}

fn json(links: &str) -> String {
    format!(
        "{{\"format\": \"tandem-topology\", \"version\": 1, \"name\": \"two\",\n\"devices\": [{{\"name\": \"GPU0\", \"kind\": \"gpu\"}}, {{\"name\": \"GPU1\", \"kind\": \"gpu\"}}],\n\"links\": [{links}]}}"
    )
}

fn link(a: &str, b: &str, forth: &str, back: &str) -> String {
    format!("{{\"a\": \"{a}\", \"b\": \"{b}\", \"kind\": \"nvlink\", \"gbs_ab\": {forth}, \"gbs_ba\": {back}}}")
}

#[test]
fn bad_json_is_refused() {
    let good = link("GPU0", "GPU1", "20", "20");
    Topology::read(json(&good).as_bytes()).unwrap();
    refused(&json(&link("GPU0", "GPU7", "20", "20")), &["links[0]", "GPU7", "there is no device"]);
    for rate in ["0.001", "1000000"] {
        Topology::read(json(&link("GPU0", "GPU1", rate, rate)).as_bytes()).unwrap();
    }
    for rate in ["0", "-1", "1e-9", "0.0004", "1000001", "1e7", "1e300", "-1e300", "-0.0"] {
        refused(&json(&link("GPU0", "GPU1", rate, "20")), &["links[0]", "gbs_ab", "GB/s from 0.001"]);
        refused(&json(&link("GPU0", "GPU1", "20", rate)), &["links[0]", "gbs_ba"]);
    }
    for rate in ["NaN", "Infinity", "1e999", "\"20\"", "null"] {
        refused(&json(&link("GPU0", "GPU1", rate, "20")), &["line 3, column"]);
    }
    refused(&json(&link("GPU0", "GPU0", "20", "20")), &["links[0]", "two different devices"]);
    refused(&json(&format!("{good},{}", link("GPU1", "GPU0", "1", "1"))), &["links[1]", "already a nvlink link"]);
    refused(&json(&good).replace("GPU1\", \"kind", "GPU0\", \"kind"), &["devices[1]", "is taken"]);
    refused(&json(&good).replace("\"gpu\"", "\"fpga\""), &["devices[0]", "gpu, cpu", "fpga"]);
    refused(&json(&good).replace("\"nvlink\"", "\"ethernet\""), &["links[0]", "nvlink, pcie", "ethernet"]);
    refused(&json(&good).replace("\"nvlink\"", "\"socket\""), &["links[0]", "socket cannot join gpu and gpu"]);
    refused(&json(&good).replace("\"version\": 1", "\"version\": 2"), &["format", "version 2"]);
    refused(&json(&good).replace("\"version\"", "\"verzion\""), &["line 1", "verzion"]);
    refused(&json(&good).replace("\"two\"", "\"\""), &["name", "1 to 255"]);
    refused(&json(&good).replace("\"two\"", "\"a\\u001bb\""), &["name", "printable"]);
    refused(&json(&good).replace("\"kind\": \"nvlink\"", "\"kind\": \"nvlink\", \"count\": 0"), &["count from 1"]);
    for name in ["", "1a", "a b", "a=\\\"b", "\\u00e9"] {
        let text = json(&good).replacen("\"gpu\"", &format!("\"gpu\", \"attributes\": {{\"{name}\": \"1\"}}"), 1);
        refused(&text, &["devices[0]: an attribute's name", "expected a letter"]);
    }
    for (length, is_good) in [(255, true), (256, false)] {
        let value = "\u{e9}".repeat(length);
        let text = json(&good).replacen("\"gpu\"", &format!("\"gpu\", \"attributes\": {{\"a\": \"{value}\"}}"), 1);
        assert_eq!(Topology::read(text.as_bytes()).is_ok(), is_good, "{length}");
        assert_eq!(Topology::read(json(&good).replace("two", &value).as_bytes()).is_ok(), is_good, "{length}");
    }
    let long = format!("a\\n\\u001b{}", "b".repeat(1 << 20));
    refused(&json(&good).replace("\"version\"", &format!("\"{long}\"")), &["line 1", "a\\n\\u{1b}bbb", "..."]);
    refused(&json(&good).replace("\"gpu\"", &format!("\"{long}\"")), &["devices[0]", "gpu, cpu", "..."]);
    refused(&json(&link("GPU0", &long, "20", "20")), &["links[0]", "GPU0", "..."]);
    refused(
        "{\"format\": \"tandem-topology\", \"version\": 1, \"name\": \"x\", \"devices\": [], \"links\": []}",
        &["GPU"],
    );
    refused(&"[".repeat(1000), &["line 1", "expected our JSON"]);
    refused(&format!("{{\"a\":{}", "[".repeat(100_000)), &["line 1"]);
    refused("", &["line 1", "nvidia-smi"]);
    refused(&" ".repeat(5 << 20), &["size", "at most"]);
    let many: Vec<String> = (0..65).map(|i| format!("{{\"name\": \"GPU{i}\", \"kind\": \"gpu\"}}")).collect();
    let text = format!(
        "{{\"format\": \"tandem-topology\", \"version\": 1, \"name\": \"x\", \"devices\": [{}], \"links\": []}}",
        many.join(",")
    );
    refused(&text, &["GPUs", "at most 64, found 65"]);
    assert!(Topology::read(&[0xff, 0xfe, 0]).unwrap_err().to_string().contains("byte 0"));
    // What ends early is refused, wherever.
    let whole = Topology::preset("h200-pair").unwrap().to_json();
    for end in 0..whole.trim_end().len() {
        assert!(Topology::read(&whole.as_bytes()[..end]).is_err(), "{end}");
    }
}

#[test]
fn bad_xml_is_refused() {
    refused("<system version=\"1\">", &["line 1", "not XML"]);
    refused("<system version\n\u{1b}=\"1\"/>", &["line 2", "not XML", "\\u{1b}"]);
    refused("<graphs version=\"1\"/>", &["line 1", "<system"]);
    refused("<system version=\"2\"/>", &["version 1"]);
    refused("<system version=\"1\"/>", &["at least one GPU"]);
    refused(&DGX1V.replacen("target=\"0000:1b:00.0\"", "target=\"0000:ff:00.0\"", 1), &["line 8", "0000:ff:00.0"]);
    refused(&DGX1V.replacen("count=\"2\"", "count=\"3\"", 1), &["3 NVLinks from GPU0 to GPU3 but 2 back"]);
    refused(&DGX1V.replacen("count=\"2\"", "count=\"0\"", 1), &["line 8", "count"]);
    refused(&DGX1V.replacen("count=\"2\"", "count=\"-2\"", 1), &["line 8", "count", "-2"]);
    refused(&DGX1V.replacen("dev=\"1\" sm", "dev=\"0\" sm", 1), &["already a GPU with dev 0"]);
    refused(&DGX1V.replacen("sm=\"70\"", "", 1), &["line 5", "attribute sm"]);
    for speed in
        ["0 GT/s", "-8 GT/s", "NaN GT/s", "inf GT/s", "1025 GT/s", "fast", "8", "8 GB/s", "GT/s", "-1", "unknown"]
    {
        for line in [3, 4] {
            let bad = on_line(line, "link_speed=\"8 GT/s\"", &format!("link_speed=\"{speed}\""));
            refused(
                &bad,
                &[&format!("line {line} (<pci>)"), "link_speed: expected 1 to 1024 GT/s", &format!("{speed:?}")],
            );
        }
    }
    for width in ["-1", "-16", "65", "NaN", "x16", "16.0", " ", "1e9", "99999999999"] {
        for line in [3, 4] {
            let bad = on_line(line, "link_width=\"16\"", &format!("link_width=\"{width}\""));
            refused(
                &bad,
                &[&format!("line {line} (<pci>)"), "link_width: expected 1 to 64 lanes", &format!("{width:?}")],
            );
        }
    }
    refused(&"<a>".repeat(200_000), &["line 1", "levels"]);
    let deep = format!(
        "<system version=\"1\"><cpu numaid=\"0\">{}{}</cpu></system>",
        "<pci class=\"0x060400\">".repeat(30),
        "</pci>".repeat(30)
    );
    refused(&deep, &["levels"]);
    let wide = format!(
        "<system version=\"1\"><cpu numaid=\"0\">{}</cpu></system>",
        "<pci class=\"0x060400\"/>".repeat(50_000)
    );
    refused(&wide, &["line 1", "at most 256 devices"]);
    let bomb = "<!DOCTYPE s [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]><system version=\"1\">&b;</system>";
    refused(bomb, &["not XML"]);
    let text = Topology::read(DGX1V.as_bytes()).unwrap().to_nccl_xml().unwrap();
    for end in (0..text.trim_end().len()).step_by(7) {
        assert!(Topology::read(&text.as_bytes()[..end]).is_err(), "{end}");
    }
}

#[test]
fn bad_matrices_are_refused() {
    refused("hello", &["line 1"]);
    refused("GPU0 GPU1\nGPU0 X NV1\n", &["GPU1", "expected a row"]);
    refused("GPU0 GPU1\nGPU0 X NV1\nGPU1 NV2 X\n", &["line 3", "differs"]);
    refused("GPU0 GPU1\nGPU0 X NV1\nGPU1 NV1\n", &["line 3", "expected 2 columns, found 1"]);
    refused("GPU0 GPU1\nGPU0 X NV1\nGPU1 NV1 NV1\n", &["line 3", "column GPU1"]);
    refused("GPU0 GPU1\nGPU0 X NVx\nGPU1 NVx X\n", &["line 2", "NVx"]);
    refused("GPU0 GPU1\nGPU0 X NV99999999999\nGPU1 NV99999999999 X\n", &["line 2"]);
    refused("GPU0 GPU1\nGPU0 X NV1\nGPU0 X NV1\n", &["line 3", "one row"]);
    refused("GPU0 GPU2\nGPU0 X NV1\n", &["line 1", "without gaps"]);
}

/// Files with damaged bytes are read or refused; nothing panics.
#[test]
fn damaged_files_do_no_harm() {
    let json = Topology::preset("bridge-pairs").unwrap().to_json();
    let mut seed = 1u64;
    let mut next = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    for text in [DGX1V, BRIDGES, &json] {
        let mut refused = 0;
        for _ in 0..600 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=next(3) {
                let at = next(bytes.len());
                match next(3) {
                    0 => bytes[at] = next(256) as u8,
                    1 => drop(bytes.drain(at..(at + next(40)).min(bytes.len()))),
                    _ => bytes.insert(at, b"<>\"'/{}[]0-9eE.N\t"[next(17)]),
                }
            }
            match Topology::read(&bytes) {
                Ok(t) => assert!(!t.gpus().is_empty()),
                Err(e) => {
                    refused += 1;
                    assert!(!e.to_string().contains('\n'), "{e}");
                }
            }
        }
        assert!(refused > 50, "{refused}");
    }
}

/// What would take a reader long, or much memory, is refused before: by counts, whatever the machine's speed.
#[test]
fn quadratic_files_are_refused() {
    let many = |n: usize, one: &dyn Fn(usize) -> String| (0..n).map(one).collect::<String>();
    // Parsers compare each attribute with all others of its element, and each namespace with all that are in force.
    let attributes = many(90_000, &|i| format!(" a{i}=\"\""));
    refused(&format!("<system version=\"1\"{attributes}/>"), &["line 1", "at most 64 attributes"]);
    refused(&format!("<system version=\"1\">\n<cpu{attributes}/></system>"), &["line 2", "at most 64 attributes"]);
    refused("<system version=\"1\"><cpu xmlns:a=\"b\"/></system>", &["line 1", "no namespaces"]);
    // Every pair of NUMA nodes would be linked.
    let cpus = "<cpu numaid=\"0\"/>".repeat(90_000);
    refused(&format!("<system version=\"1\">{cpus}</system>"), &["at most 256 devices"]);
    let gpus = many(65, &|i| format!("<pci busid=\"{i}\"><gpu dev=\"{i}\" sm=\"80\"/></pci>"));
    refused(&format!("<system version=\"1\"><cpu numaid=\"0\">{gpus}</cpu></system>"), &["at most 64 GPUs"]);
    refused(&"<a/>".repeat(150_000), &["at most 100000 elements"]);
    // As much in JSON, and in the text of nvidia-smi.
    let attributes = many(90_000, &|i| format!("{}\"a{i}\": \"\"", if i > 0 { ", " } else { "" }));
    let text = json("").replacen("\"gpu\"", &format!("\"gpu\", \"attributes\": {{{attributes}}}"), 1);
    refused(&text, &["devices[0] (GPU0): attributes", "at most 32, found 90000"]);
    let again = many(50_000, &|_| ", \"name\": \"GPU0\"".into());
    refused(
        &json("").replacen("\"kind\": \"gpu\"", &format!("\"kind\": \"gpu\"{again}"), 1),
        &["line 2", "duplicate field"],
    );
    let devices = many(50_000, &|i| format!(", {{\"name\": \"D{i}\", \"kind\": \"cpu\"}}"));
    refused(&json("").replacen("}],", &format!("}}{devices}],"), 1), &["devices", "at most 256, found 50002"]);
    let links = vec![link("GPU0", "GPU1", "1", "1"); 20_000].join(",");
    refused(&json(&links), &["links", "at most 4096, found 20000"]);
    let header = many(90_000, &|i| format!("GPU{i} "));
    refused(&header, &["line 1", "at most 64"]);
    refused(&format!("{header}\n{}", "GPU0 X\n".repeat(90_000)), &["line 1", "at most 64"]);
    refused(&format!("GPU0 GPU1\n{}", "GPU7 X NV1\n".repeat(90_000)), &["line 2", "one row"]);
    refused(&format!("GPU0 GPU1\nGPU0 {}", "X ".repeat(90_000)), &["line 2", "column GPU1"]);
}

/// Links of GPUs, switches and nodes in every shape, and names that a terminal would obey.
#[test]
fn hostile_shapes_and_names() {
    // PCIe switches in a circle, below a node and apart from one.
    for ends in [["CPU0", "S0"], ["GPU0", "S1"]] {
        let devices =
            ["{\"name\": \"GPU0\", \"kind\": \"gpu\"}", "{\"name\": \"CPU0\", \"kind\": \"cpu\"}"].map(String::from);
        let switch = |i| format!("{{\"name\": \"S{i}\", \"kind\": \"pcie-switch\"}}");
        let all: Vec<String> = devices.into_iter().chain((0..200).map(switch)).collect();
        let pcie = |a: &str, b: &str| link(a, b, "1", "1").replace("nvlink", "pcie");
        let mut links: Vec<String> = (0..200).map(|i| pcie(&format!("S{i}"), &format!("S{}", (i + 1) % 200))).collect();
        links.push(pcie("GPU0", "S100"));
        links.push(pcie(ends[0], ends[1]));
        let text = format!(
            "{{\"format\": \"tandem-topology\", \"version\": 1, \"name\": \"x\", \"devices\": [{}], \"links\": [{}]}}",
            all.join(","),
            links.join(",")
        );
        let t = Topology::read(text.as_bytes()).unwrap();
        assert!(!t.to_matrix().is_empty() && !t.to_svg().is_empty());
        let error = t.to_nccl_xml().unwrap_err().to_string();
        assert!(error.contains("levels") || error.contains("hangs on no CPU"), "{error}");
        let plan = planned(&t, &Request::new(Operation::Upload, &[0]));
        assert_eq!(plan.rate.is_zero(), ends[0] == "GPU0");
    }
    // The fastest links that there can be, as many as there can be: sums stay exact.
    let links: Vec<String> = (0..64)
        .flat_map(|a| (a + 1..64).map(move |b| link(&format!("GPU{a}"), &format!("GPU{b}"), "1000000", "1000000")))
        .collect();
    let devices: Vec<String> = (0..64).map(|i| format!("{{\"name\": \"GPU{i}\", \"kind\": \"gpu\"}}")).collect();
    let text = json(&links.join(",")).replace(
        "{\"name\": \"GPU0\", \"kind\": \"gpu\"}, {\"name\": \"GPU1\", \"kind\": \"gpu\"}",
        &devices.join(","),
    );
    let t = Topology::read(text.as_bytes()).unwrap();
    let job: Vec<usize> = (0..32).collect();
    assert_eq!(planned(&t, &Request::new(Operation::Broadcast, &job)).rate, Ratio::whole(31_000_000_000));
    assert_eq!(planned(&t, &Request::new(Operation::AllGather, &job)).rate, Ratio::whole(32_000_000_000));
    // Names with control characters are refused, and are escapes where they are told of.
    for name in ["\\u001b[2J", "a\\u0000", "a\\nb", "\\u0085", "\\u009b31m"] {
        let text = json("").replace("GPU0", name);
        refused(&text, &["devices[0]", "printable"]);
        refused(&json(&link(name, "GPU1", "1", "1")), &["links[0]", "there is no device"]);
        refused(&json(&link("GPU0", "GPU1", "1", "1").replace("nvlink", name)), &["links[0]", "nvlink, pcie"]);
        refused(&json("").replace("two", name), &["name", "printable"]);
        let text = json("").replacen("\"gpu\"", &format!("\"gpu\", \"attributes\": {{\"a\": \"{name}\"}}"), 1);
        refused(&text, &["devices[0]: attribute a", "printable"]);
    }
}

//! Graph files as NCCL reads them: its parser and its rules (2.30, src/graph/xml.cc, search.cc and connect.cc), written again after it.

#[path = "support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use support::{choose, planned};
use tandem_fabric_plan::{NcclGraph, Operation, Request};
use tandem_fabric_topology::{DeviceKind, LinkKind, Topology};

/// `MAX_STR_LEN`, `MAX_ATTR_COUNT`, `MAX_SUBS`, and what a search may find of `MAXCHANNELS`.
const MAX_STR_LEN: usize = 255;
const MAX_ATTR_COUNT: usize = 16;
const MAX_SUBS: usize = 640;
const MAX_CHANNELS: usize = 32;

/// An element.
#[derive(Debug, Default)]
struct Node {
    name: String,
    attributes: Vec<(String, String)>,
    subs: Vec<Node>,
}

/// What comes next in a file (`xmlGetNode`).
enum Next {
    Open(Node),
    Single(Node),
    Close(String),
    End,
}

/// The text, character by character.
struct File<'a>(std::str::Chars<'a>);

impl File<'_> {
    fn char(&mut self) -> char {
        self.0.next().expect("XML Parse : Unexpected EOF")
    }

    /// `xmlGetValue`: what stands in quotes, and the character behind it.
    fn value(&mut self) -> (String, char) {
        let quote = self.char();
        assert!(quote == '"' || quote == '\'', "XML Parse : Expected (double) quote.");
        let mut value = String::new();
        loop {
            let c = self.char();
            assert!(value.len() < MAX_STR_LEN - 1, "value {value} too long");
            if c == quote {
                return (value, self.char());
            }
            value.push(c);
        }
    }

    /// `xmlGetToken`: a name, its value if it has one, and the character behind.
    fn token(&mut self) -> (String, Option<String>, char) {
        let mut name = String::new();
        loop {
            let c = self.char();
            if c == '=' {
                let (value, last) = self.value();
                return (name, Some(value), last);
            }
            assert!(name.len() < MAX_STR_LEN - 1, "name {name} too long");
            if matches!(c, ' ' | '>' | '/' | '\n' | '\r') {
                return (name, None, c);
            }
            name.push(c);
        }
    }

    /// `xmlGetNode`
    fn node(&mut self) -> Next {
        let first = loop {
            match self.0.next() {
                None => return Next::End,
                Some(' ' | '\n' | '\r') => {}
                Some(c) => break c,
            }
        };
        assert_eq!(first, '<', "XML Parse error : expecting '<'");
        let (name, value, mut last) = self.token();
        assert!(value.is_none() && !name.starts_with("!--"), "{name}");
        if name.is_empty() && last == '/' {
            let (name, _, last) = self.token();
            assert_eq!(last, '>', "unexpected trailing in closing tag {name}");
            return Next::Close(name);
        }
        let mut node = Node { name, ..Node::default() };
        while last == ' ' {
            let (key, value, after) = self.token();
            node.attributes.push((key, value.unwrap_or_default()));
            assert!(node.attributes.len() <= MAX_ATTR_COUNT, "attributes beyond {MAX_ATTR_COUNT} are ignored");
            last = after;
        }
        let is_single = last == '/';
        if is_single {
            last = self.token().2;
        }
        assert_eq!(last, '>', "XML Parse : expected >");
        if is_single {
            Next::Single(node)
        } else {
            Next::Open(node)
        }
    }

    /// `xmlLoadSub`, where these elements are known below this one.
    fn load(&mut self, head: &mut Node, known: &[&str], below: &[&[&str]]) {
        loop {
            let (mut node, is_open) = match self.node() {
                Next::End => {
                    assert!(head.name.is_empty(), "XML Parse : unterminated {}", head.name);
                    return;
                }
                Next::Close(name) => {
                    assert_eq!(name, head.name, "XML Mismatch");
                    return;
                }
                Next::Open(node) => (node, true),
                Next::Single(node) => (node, false),
            };
            assert!(known.contains(&node.name.as_str()), "Ignoring element {}", node.name);
            if is_open {
                let (next, rest) = below.split_first().map_or((&[][..], below), |(next, rest)| (*next, rest));
                self.load(&mut node, next, rest);
            }
            head.subs.push(node);
            assert!(head.subs.len() <= MAX_SUBS, "XML parser is limited to {MAX_SUBS} subnodes");
        }
    }
}

impl Node {
    fn text(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        &found.unwrap_or_else(|| panic!("Attribute {name} of node {} not found", self.name)).1
    }

    fn int(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap()
    }
}

/// The channels of graph `id`, as GPUs (`ncclTopoGetGraphFromXml` and `ncclTopoGetChannelFromXml`), where these are the communicator's ranks.
fn channels(text: &str, id: i64, ranks: &[usize]) -> Vec<Vec<usize>> {
    let mut file = Node::default();
    File(text.chars()).load(&mut file, &["graphs"], &[&["graph"], &["channel"], &["net", "gpu"], &[]]);
    let [graphs] = file.subs.as_slice() else { panic!("{} roots", file.subs.len()) };
    assert_eq!(graphs.int("version"), 1, "XML Graph has wrong version");
    let found: Vec<&Node> = graphs.subs.iter().filter(|graph| graph.int("id") == id).collect();
    let [graph] = found.as_slice() else { panic!("{} graphs {id}", found.len()) };
    assert_eq!(graph.int("pattern"), if id == 0 { 4 } else { 3 });
    assert!(graph.int("crossnic") == 0 && graph.int("samechannels") == 0);
    for name in ["speedintra", "speedinter", "latencyinter"] {
        assert!(graph.text(name).parse::<f32>().unwrap() >= 0.0);
    }
    assert!(graph.text("speedintra").parse::<f32>().unwrap() > 0.0);
    let types = ["LOC", "NVL", "NVB", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"];
    assert!(types.contains(&graph.text("typeintra")) && types.contains(&graph.text("typeinter")));
    // A graph with no channels is looked for instead, and channels are doubled later.
    let count = graph.int("nchannels") as usize;
    assert!(count == graph.subs.len() && (1..=MAX_CHANNELS).contains(&count), "{count} of {}", graph.subs.len());
    let channel = |channel: &Node| -> Vec<usize> {
        let gpus = channel.subs.iter().map(|gpu| usize::from_str_radix(gpu.text("dev"), 16).unwrap());
        let gpus: Vec<usize> = gpus.collect();
        // Nothing looks whether there are as many as ranks: ncclTopoPreset takes each for one of them.
        let set: BTreeSet<usize> = gpus.iter().copied().collect();
        assert!(gpus.len() == ranks.len() && set == ranks.iter().copied().collect(), "{gpus:?} for ranks {ranks:?}");
        gpus
    };
    graph.subs.iter().map(channel).collect()
}

/// How many NVLinks of a topology join two GPUs directly, or over a switch.
fn nvlinks(t: &Topology, a: usize, b: usize) -> u32 {
    let near = |d: usize| t.links_of(d).filter(|(_, l)| l.kind == LinkKind::NvLink);
    let direct: u32 = near(a).filter(|(d, _)| *d == b).map(|(_, l)| l.count).sum();
    let switch = |d: usize| t.devices()[d].kind == DeviceKind::NvSwitch;
    let over = near(a).filter(|(d, _)| switch(*d) && near(b).any(|(other, _)| other == *d)).map(|(_, l)| l.count);
    direct + over.sum::<u32>()
}

/// Reads every file of a plan: neighbours in a channel are joined, and all data are carried. How many files there are.
fn read(t: &Topology, graphs: &[NcclGraph]) -> usize {
    let gpus = t.gpus();
    let mut all = 0.0;
    for graph in graphs {
        let trees = channels(&graph.xml, 1, &graph.gpus);
        // As many of the other kind: NCCL uses no more of either.
        assert_eq!(channels(&graph.xml, 0, &graph.gpus).len(), trees.len());
        for chain in &trees {
            for hop in chain.windows(2) {
                assert!(nvlinks(t, gpus[hop[0]], gpus[hop[1]]) > 0, "{hop:?}: {}", graph.xml);
            }
        }
        all += graph.share.to_f64();
    }
    assert!((all - 1.0).abs() < 1e-9, "{all}");
    graphs.len()
}

/// Jobs of two and three GPUs of a DGX-1, with and without helpers: a file is made of rings and chains, or refused in words.
#[test]
fn files_are_read_as_nccl_reads_them() {
    let t = Topology::preset("dgx1-v100").unwrap();
    let (mut seen, mut refused) = (BTreeMap::new(), 0);
    let jobs = [2, 3].into_iter().flat_map(|k| choose(8, k)).filter(|job| job[0] == 0);
    for job in jobs {
        let others: Vec<usize> = (0..8).filter(|gpu| !job.contains(gpu)).collect();
        for operation in [
            Operation::Broadcast,
            Operation::Reduce,
            Operation::AllReduce,
            Operation::AllGather,
            Operation::ReduceScatter,
        ] {
            for helpers in [&[][..], &others[..2]] {
                let plan = planned(&t, &Request::new(operation, &job).with_helpers(helpers));
                if plan.rate.is_zero() {
                    continue;
                }
                match plan.to_nccl_graphs(&t) {
                    Ok(graphs) => *seen.entry((operation.name(), read(&t, &graphs) > 1)).or_insert(0) += 1,
                    Err(why) => {
                        assert!(why.to_string().contains("rings and chains only"), "{why}");
                        refused += 1;
                    }
                }
            }
        }
    }
    println!("{seen:?}, {refused} refused");
    // Files for one communicator and for several were read.
    assert!(seen.keys().any(|(_, many)| *many) && seen.keys().any(|(_, many)| !*many), "{seen:?}");
}

#[test]
fn helpers_are_ranks_of_communicators_of_their_own() {
    let t = Topology::preset("dgx1-v100").unwrap();
    // Four chains of GPUs, as Blink+ drew them.
    let plan = planned(&t, &Request::new(Operation::Broadcast, &[0, 1]).with_helpers(&[2, 3]));
    let graphs = plan.to_nccl_graphs(&t).unwrap();
    let found: Vec<(Vec<usize>, Vec<Vec<usize>>)> =
        graphs.iter().map(|graph| (graph.gpus.clone(), channels(&graph.xml, 1, &graph.gpus))).collect();
    assert_eq!(
        found.iter().map(|(gpus, _)| gpus.clone()).collect::<Vec<_>>(),
        [vec![0, 1], vec![0, 1, 2], vec![0, 1, 2, 3], vec![0, 1, 3]]
    );
    assert!(found.iter().flat_map(|(_, all)| all).all(|c| c[0] == 0 && c[c.len() - 1] == 1), "{found:?}");
    assert!(plan.to_nccl_graph(&t).unwrap_err().to_string().contains("4 different sets of GPUs"));
    read(&t, &graphs);
    // A ring of sixteen: numbers above nine are hexadecimal.
    let links: Vec<_> = (0..16).map(|i: usize| (i.min((i + 1) % 16), i.max((i + 1) % 16), 20, 20)).collect();
    let ring = support::graph(16, &links);
    let plan = planned(&ring, &Request::new(Operation::Broadcast, &(0..16).collect::<Vec<_>>()));
    let graphs = plan.to_nccl_graphs(&ring).unwrap();
    assert_eq!(read(&ring, &graphs), 1);
    assert!(graphs[0].xml.contains("dev=\"f\""), "{}", graphs[0].xml);
}

/// Where the topology is NCCL's own, GPUs have the numbers that NCCL gave them.
#[test]
fn gpus_have_the_numbers_of_nccl() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../fabric-topology/tests/data/dgx1v-nccl.xml"))
            .unwrap();
    // Some of the machine's GPUs are seen alone.
    let text = text.replace("dev=\"1\"", "dev=\"11\"");
    let t = Topology::read(text.as_bytes()).unwrap();
    let last = t.gpus().len() - 1;
    assert_eq!(t.devices()[t.gpus()[last]].name, "GPU11");
    let plan = planned(&t, &Request::new(Operation::Broadcast, &[0, last]));
    let graph = plan.to_nccl_graph(&t).unwrap();
    assert_eq!(channels(&graph, 1, &[0, 11])[0], [0, 11], "{graph}");
}

/// The reader finds what NCCL stumbles over.
#[test]
#[should_panic(expected = "for ranks [0, 1, 2]")]
fn a_channel_without_a_rank_is_found() {
    let t = Topology::preset("dgx1-v100").unwrap();
    let plan = planned(&t, &Request::new(Operation::Broadcast, &[0, 1]));
    channels(&plan.to_nccl_graph(&t).unwrap(), 1, &[0, 1, 2]);
}

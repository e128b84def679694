//! Operations on little data in memory of the caller's own: results against naive ones, on pretend PEs in symmetric memory and on GPUs in buffers
//! that the team knows nothing of.

use std::io::Write;
use std::sync::Arc;
use tandem_cuda::{DeviceBuffer, Downloads, Pool, Staging, Stream};
use tandem_fabric::exec::{Combine, Kind, SmallCall};
use tandem_fabric::plan::Operation;
use tandem_fabric::topology::Topology;
use tandem_fabric::{Collectives, Options, Team};

const OPERATIONS: [Operation; 6] = [
    Operation::AllReduce,
    Operation::Reduce,
    Operation::Broadcast,
    Operation::AllGather,
    Operation::ReduceScatter,
    Operation::AllToAll,
];

struct Words(u64);

impl Words {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as u32
    }
}

/// Elements that a PE reads and writes, where a part has `part`.
fn lengths(operation: Operation, part: usize, pes: usize) -> (usize, usize) {
    match operation {
        Operation::AllGather => (part, part * pes),
        Operation::ReduceScatter => (part * pes, part),
        Operation::AllToAll => (part * pes, part * pes),
        _ => (part, part),
    }
}

/// What a PE's output is to be; `None` where it is not written.
fn naive(operation: Operation, from: &[Vec<u32>], root: usize, part: usize, pe: usize) -> Option<Vec<u32>> {
    let sum = |i: usize| from.iter().fold(0u32, |sum, one| sum.wrapping_add(one[i]));
    Some(match operation {
        Operation::AllReduce => (0..part).map(sum).collect(),
        Operation::Reduce if pe != root => return None,
        Operation::Reduce => (0..part).map(sum).collect(),
        Operation::Broadcast => from[root].clone(),
        Operation::AllGather => from.concat(),
        Operation::ReduceScatter => (pe * part..(pe + 1) * part).map(sum).collect(),
        _ => from.iter().flat_map(|one| one[pe * part..(pe + 1) * part].to_vec()).collect(),
    })
}

/// Where a PE's buffers are, and how they are filled, streamed and read.
trait Memory {
    fn write(&mut self, pe: usize, to_output: bool, data: &[u32]);
    fn address(&self, pe: usize, is_output: bool) -> u64;
    fn streams(&self) -> Vec<Stream>;
    fn output(&self, team: &Team, pe: usize, len: usize) -> Vec<u32>;
    /// How far the test is, past what libtest holds back: that is lost where the process dies.
    fn tell(&self, _what: &str) {}
}

const MOST: usize = 1 << 17;
const UNTOUCHED: u32 = 0xabab_abab;

fn every_operation(team: &Team, memory: &mut dyn Memory) {
    let pes = team.size();
    let collectives = Collectives::new(team, &Topology::preset("hgx-h200").unwrap()).unwrap();
    let mut words = Words(0x9e37_79b9_7f4a_7c15 ^ std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos() as u64);
    for operation in OPERATIONS {
        memory.tell(&format!("{pes} PEs, {operation:?}"));
        let is_sum = matches!(operation, Operation::AllReduce | Operation::Reduce | Operation::ReduceScatter);
        for part in [1, 3, 1000, (512 << 10) / 4 / pes] {
            let (reads, writes) = lengths(operation, part, pes);
            let root = words.next() as usize % pes;
            let call = SmallCall {
                operation,
                numbers: is_sum.then_some((Kind::U32, Combine::Sum)),
                root,
                part: 4 * part as u64,
                from: (0..pes).map(|pe| memory.address(pe, false)).collect(),
                to: (0..pes).map(|pe| memory.address(pe, true)).collect(),
            };
            let small = collectives.small(&call).unwrap();
            let streams = memory.streams();
            // More often than rings have slots, with other data each time.
            for round in 0..4 {
                let from: Vec<Vec<u32>> = (0..pes).map(|_| (0..reads).map(|_| words.next()).collect()).collect();
                for (pe, from) in from.iter().enumerate() {
                    memory.write(pe, false, from);
                    memory.write(pe, true, &vec![UNTOUCHED; writes + 1]);
                }
                // SAFETY: the buffers have room for MOST elements, and are read when queues and streams are done.
                unsafe { small.run(&streams) }.unwrap();
                team.synchronize().unwrap();
                for pe in 0..pes {
                    let mut wanted = naive(operation, &from, root, part, pe).unwrap_or(vec![UNTOUCHED; writes]);
                    wanted.push(UNTOUCHED);
                    let found = memory.output(team, pe, writes + 1);
                    assert!(found == wanted, "{operation:?}, {part} words a part, PE {pe} of {pes}, round {round}");
                }
            }
        }
    }
    refusals(&collectives, pes);
}

fn refusals(collectives: &Collectives, pes: usize) {
    let fine = SmallCall {
        operation: Operation::AllReduce,
        numbers: Some((Kind::U64, Combine::Sum)),
        root: 0,
        part: 64,
        from: vec![4096; pes],
        to: vec![8192; pes],
    };
    let refused = |call: SmallCall, why: &str| {
        let error = collectives.small(&call).err().unwrap_or_else(|| panic!("{call:?} is taken")).to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(SmallCall { operation: Operation::Send, ..fine.clone() }, "not an operation of the whole job");
    refused(SmallCall { root: pes, ..fine.clone() }, "root");
    refused(SmallCall { from: vec![4096; pes + 1], ..fine.clone() }, "addresses");
    refused(SmallCall { to: Vec::new(), ..fine.clone() }, "addresses");
    refused(SmallCall { part: 12, ..fine.clone() }, "12 bytes");
    refused(SmallCall { part: 0, ..fine.clone() }, "0 bytes");
    refused(SmallCall { numbers: None, ..fine.clone() }, "None");
    refused(SmallCall { operation: Operation::AllGather, ..fine.clone() }, "U64");
    refused(SmallCall { part: 8 * ((512 << 10) / 8 / pes as u64 + 1), ..fine.clone() }, "at most");
    refused(SmallCall { part: u64::MAX / 8 * 8, ..fine }, "at most");
}

struct Symmetric {
    team: Team,
    memory: [tandem_fabric::Symmetric<u32>; 2],
}

impl Memory for Symmetric {
    fn write(&mut self, pe: usize, to_output: bool, data: &[u32]) {
        let memory = self.memory[usize::from(to_output)].slice(0..data.len()).unwrap();
        self.team.write(pe, &memory, data).unwrap();
    }
    fn address(&self, pe: usize, is_output: bool) -> u64 {
        self.team.queue(pe).address(&self.memory[usize::from(is_output)]).unwrap()
    }
    fn streams(&self) -> Vec<Stream> {
        Vec::new()
    }
    fn output(&self, team: &Team, pe: usize, len: usize) -> Vec<u32> {
        team.read(pe, &self.memory[1].slice(0..len).unwrap()).unwrap()
    }
}

#[test]
fn pretend_pes() {
    for pes in [2, 3, 4, 8] {
        let team = Team::sim(pes, Options::default()).unwrap();
        let memory = [team.alloc(MOST + 1).unwrap(), team.alloc(MOST + 1).unwrap()];
        every_operation(&team, &mut Symmetric { team: team.clone(), memory });
    }
    // Nobody to send to.
    let team = Team::sim(1, Options::default()).unwrap();
    let alone = Collectives::new(&team, &Topology::preset("hgx-h200").unwrap()).unwrap();
    let (operation, numbers, from, to) = (Operation::Broadcast, None, vec![4096], vec![8192]);
    assert!(alone.small(&SmallCall { operation, numbers, root: 0, part: 8, from, to }).is_err());
}

/// By PE: input and output, on one stream.
struct Buffers(Vec<[DeviceBuffer<u32>; 2]>);

impl Memory for Buffers {
    fn write(&mut self, pe: usize, to_output: bool, data: &[u32]) {
        let buffer = &mut self.0[pe][usize::from(to_output)];
        let staging = Staging::new(2, 1 << 20, |work| work());
        tandem_cuda::Upload::run(&[staging.upload(buffer, 0, bytemuck::cast_slice(data)).unwrap()]).unwrap();
    }
    fn address(&self, pe: usize, is_output: bool) -> u64 {
        self.0[pe][usize::from(is_output)].ptr().raw() as u64
    }
    fn streams(&self) -> Vec<Stream> {
        // SAFETY: the buffers keep their streams.
        let borrowed = |own: &Arc<Stream>| unsafe { Stream::borrowed(own.device(), own.raw()) };
        self.0.iter().map(|[from, _]| borrowed(from.stream())).collect()
    }
    fn output(&self, _: &Team, pe: usize, len: usize) -> Vec<u32> {
        let mut out = Downloads::default().start(&self.0[pe][1]).unwrap().wait().unwrap();
        out.truncate(len);
        out
    }
    fn tell(&self, what: &str) {
        _ = writeln!(std::io::stderr(), "small::gpus: {what}");
    }
}

#[test]
fn gpus() {
    let gpus = tandem_cuda::testing::at_least(2);
    let _alone = tandem_cuda::testing::alone();
    for count in 2..=gpus.len().min(8) {
        let team = Team::cuda(&gpus[..count], Options::default()).unwrap();
        let buffers = gpus[..count].iter().map(|&gpu| {
            let (stream, pool) = (Arc::new(Stream::new(gpu).unwrap()), Arc::new(Pool::new(gpu).unwrap()));
            [(); 2].map(|()| pool.alloc(&stream, MOST + 1, true).unwrap())
        });
        let mut buffers = Buffers(buffers.collect());
        every_operation(&team, &mut buffers);
        buffers.tell(&format!("{count} PEs, what they had goes"));
        drop(buffers);
        drop(team);
    }
}

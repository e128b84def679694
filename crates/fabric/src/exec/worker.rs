//! What a block of the kernel of messages does (native/src/exec/messages.cu), on the same words, for PEs that are threads.

use super::element::{combine, Combine, Kind};
use super::protocol::{flag, may_send, notify, receive, send, Word, MESSAGE_SLOTS};
use super::sim::Bytes;
use super::tables::{ENDPOINT, ROW};
use std::time::{Duration, Instant};

/// Bytes of a message for each byte of data: every 32 bits have a flag.
pub const WIRE: u64 = 2;
/// Data that one store of 16 bytes carries.
const PAIR: u64 = 8;

/// Memory whose words several PEs use at once.
pub trait Words: Bytes {
    /// A word of 64 bits.
    type Word: Word;
    /// Calls `f` with each of `count` words from `at` on, a multiple of 8, and its number among them; not where there is no memory, which
    /// is for the memory to report.
    fn words(&self, at: u64, count: u64, f: impl FnMut(u64, &Self::Word));
}

/// The part of a PE in a collective of small data.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Address of the workers' rows and endpoints.
    pub workers: u64,
    /// Address of a word for each worker, which counts rounds.
    pub rounds: u64,
    /// How many workers.
    pub worker_count: usize,
    /// Words of a worker's rows and endpoints.
    pub words: usize,
    /// Rows of a worker.
    pub rows: usize,
    /// How several sources are combined.
    pub numbers: Option<(Kind, Combine)>,
}

impl Part {
    /// The workers of the next round.
    pub fn begin(&self, memory: &impl Words) -> Vec<Worker> {
        let worker = |i: usize| {
            let mut words = vec![0u64; self.words];
            memory.read(self.workers + 8 * (i * self.words) as u64, bytemuck::cast_slice_mut(&mut words));
            let mut round = 1;
            memory.words(self.rounds + 8 * i as u64, 1, |_, word| {
                round = word.load_relaxed() + 1;
                word.store_relaxed(round);
            });
            Worker::new(words, self.rows, round, self.numbers)
        };
        (0..self.worker_count).map(worker).collect()
    }
}

/// What another PE has not done yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// Who.
    pub peer: usize,
    /// The address of the word that would show it.
    pub place: u64,
    /// What it was: a flag, or the last round that was read.
    pub seen: u64,
    /// What it had to be, or to reach.
    pub wanted: u64,
}

/// A worker in a round: its rows, one after the other.
#[derive(Debug)]
pub struct Worker {
    /// Rows (tandem_exec_transfer), then endpoints (tandem_exec_endpoint).
    words: Vec<u64>,
    rows: usize,
    round: u64,
    numbers: Option<(Kind, Combine)>,
    /// The rows that are done, and the bytes of the next.
    row: usize,
    bytes: u64,
}

/// A place of a row; with `consumed` it is a ring of messages.
#[derive(Clone, Copy)]
struct Endpoint {
    at: u64,
    consumed: u64,
    peer: usize,
}

impl Worker {
    /// Before round `round` (from 1).
    pub fn new(words: Vec<u64>, rows: usize, round: u64, numbers: Option<(Kind, Combine)>) -> Self {
        Worker { words, rows, round, numbers, row: 0, bytes: 0 }
    }

    /// The round.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Whether all rows are done.
    pub fn is_done(&self) -> bool {
        self.row == self.rows
    }

    /// The bytes of the next row and of a slot of its rings; its sources; its targets.
    fn row(&self) -> (u64, u64, Vec<Endpoint>, Vec<Endpoint>) {
        let row = &self.words[self.row * ROW..][..ROW];
        let half = |i: usize| (row[i] as u32 as usize, (row[i] >> 32) as usize);
        let ((first, sources), (targets, _)) = (half(4), half(5));
        let endpoints = self.words[self.rows * ROW + first * ENDPOINT..].chunks_exact(ENDPOINT);
        let mut endpoints =
            endpoints.map(|endpoint| Endpoint { at: endpoint[0], consumed: endpoint[2], peer: endpoint[3] as usize });
        (row[0], row[2], endpoints.by_ref().take(sources).collect(), endpoints.take(targets).collect())
    }

    /// Goes on by up to `pairs` stores of 16 bytes, and does not wait.
    ///
    /// # Errors
    /// Another PE has to do something first; nothing was done.
    pub fn step(&mut self, memory: &impl Words, pairs: u64) -> Result<(), Missing> {
        if self.is_done() {
            return Ok(());
        }
        let (all, slot, sources, targets) = self.row();
        let (round, done) = (self.round, self.bytes);
        if done == 0 {
            targets
                .iter()
                .filter(|endpoint| endpoint.consumed != 0)
                .try_for_each(|endpoint| has_room(memory, endpoint, round))?;
        }
        let message = |endpoint: &Endpoint| endpoint.at + round % MESSAGE_SLOTS * slot + done * WIRE;
        let bytes = (all - done).min(pairs.max(1) * PAIR);
        let (mut sum, mut piece) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        for (i, endpoint) in sources.iter().enumerate() {
            if endpoint.consumed == 0 {
                memory.read(endpoint.at + done, &mut piece);
            } else {
                take(memory, message(endpoint), endpoint.peer, round, &mut piece)?;
            }
            match self.numbers {
                Some((kind, how)) if i > 0 => combine(kind, how, &mut sum, &piece),
                _ => sum.copy_from_slice(&piece),
            }
        }
        for endpoint in &targets {
            if endpoint.consumed == 0 {
                memory.write(endpoint.at + done, &sum);
            } else {
                give(memory, message(endpoint), round, &sum);
            }
        }
        self.bytes += bytes;
        if self.bytes == all {
            for endpoint in sources.iter().filter(|endpoint| endpoint.consumed != 0) {
                memory.words(endpoint.consumed, 1, |_, consumed| notify(consumed, round - 1));
            }
            (self.row, self.bytes) = (self.row + 1, 0);
        }
        Ok(())
    }
}

/// Whether the half of a ring was read that this round overwrites.
fn has_room(memory: &impl Words, endpoint: &Endpoint, round: u64) -> Result<(), Missing> {
    let mut is_free = Err(0);
    memory.words(endpoint.consumed, 1, |_, consumed| is_free = may_send(consumed, round));
    let wanted = round.saturating_sub(MESSAGE_SLOTS);
    is_free.map_err(|seen| Missing { peer: endpoint.peer, place: endpoint.consumed, seen, wanted })
}

/// Sends, in pairs of words.
fn give(memory: &impl Words, at: u64, round: u64, from: &[u8]) {
    let words = 2 * (from.len() as u64).div_ceil(PAIR);
    memory.words(at, words, |i, word| {
        let here = from.get(4 * i as usize..).unwrap_or_default();
        let mut data = [0; 4];
        data.iter_mut().zip(here).for_each(|(to, from)| *to = *from);
        send(word, u32::from_le_bytes(data), round);
    });
}

/// Receives all of it, or nothing.
fn take(memory: &impl Words, at: u64, peer: usize, round: u64, to: &mut [u8]) -> Result<(), Missing> {
    let words = 2 * (to.len() as u64).div_ceil(PAIR);
    let (mut arrived, mut missing) = (0, None);
    memory.words(at, words, |i, word| match receive(word, round) {
        Ok(data) => {
            arrived += 1;
            let here = to.get_mut(4 * i as usize..).unwrap_or_default();
            here.iter_mut().zip(data.to_le_bytes()).for_each(|(to, from)| *to = from);
        }
        Err(seen) => missing = missing.or(Some((at + 8 * i, seen))),
    });
    let (place, seen) = missing.unwrap_or((at, 0));
    (arrived == words).then_some(()).ok_or(Missing { peer, place, seen, wanted: flag(round).into() })
}

/// Does the workers of a PE, in an order, in pieces and with pauses at random, as blocks and their threads may.
///
/// # Errors
/// Nothing went on for as long as `timeout`, or `is_over` said so.
pub fn carry_out(
    mut workers: Vec<Worker>,
    memory: &impl Words,
    timeout: Duration,
    is_over: impl Fn() -> bool,
    seed: u64,
) -> Result<(), Missing> {
    let mut random = seed | 1;
    let mut since = Instant::now();
    loop {
        workers.retain(|worker| !worker.is_done());
        if workers.is_empty() {
            return Ok(());
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let first = (random % workers.len() as u64) as usize;
        let pairs = 1 + (random >> 32) % 64;
        let mut missing = None;
        let mut turn = (first..workers.len()).chain(0..first);
        let went =
            turn.any(|i| workers[i].step(memory, pairs).map_err(|what| missing = missing.or(Some(what))).is_ok());
        if went {
            since = Instant::now();
        } else if let Some(missing) = missing.filter(|_| since.elapsed() > timeout || is_over()) {
            return Err(missing);
        }
        if !went || random >> 60 == 0 {
            std::thread::yield_now();
        }
    }
}

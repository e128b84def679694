//! One-sided operations from inside kernels, or from inside the programs of pretend PEs.

use super::context::{failed, Context};
use super::data::{Pattern, SEND};
use super::subject::Subject;
use std::sync::Arc;
use std::time::Instant;
use tandem_console::failure::Outcome;
use tandem_fabric::kernels::{pingpong, transfer, Ball, Scope, Transfer};
use tandem_fabric::{Compare, HostLinks, OneSided, Signal, Symmetric, Team};

/// Who moves the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Thread,
    Warp,
    Block,
    /// As many blocks as fill a GPU.
    Grid,
}

impl Who {
    pub(crate) const ALL: [Self; 4] = [Self::Thread, Self::Warp, Self::Block, Self::Grid];

    fn name(self) -> &'static str {
        match self {
            Who::Thread => "thread",
            Who::Warp => "warp",
            Who::Block => "block",
            Who::Grid => "grid",
        }
    }

    /// Scope, blocks, threads of a block, and about how many bytes pass in two milliseconds.
    fn shape(self) -> (Scope, u32, u32, u64) {
        match self {
            Who::Thread => (Scope::Thread, 1, 32, 1 << 20),
            Who::Warp => (Scope::Warp, 1, 32, 8 << 20),
            Who::Block => (Scope::Block, 1, 1024, 64 << 20),
            Who::Grid => (Scope::Block, 128, 1024, 512 << 20),
        }
    }
}

/// The most rounds of a kernel.
const ROUNDS: u64 = 200;
/// Rounds walk through so many elements at least, more than a multiprocessor's cache holds.
const ROOM: usize = 1 << 20;

/// PE 0 puts to PE 1 or gets from it, piece after piece inside one kernel.
pub(crate) struct Inside {
    team: Team,
    links: Arc<HostLinks>,
    pattern: Arc<Pattern>,
    from: Symmetric<f32>,
    to: Symmetric<f32>,
    who: Who,
    is_get: bool,
    len: usize,
}

impl Inside {
    pub(crate) fn new(c: &Context, is_get: bool, who: Who) -> Outcome<Self> {
        let alloc = || c.team.alloc::<f32>(c.most.max(ROOM)).map_err(failed);
        let (from, to) = (alloc()?, alloc()?);
        let (team, links, pattern) = (c.team.clone(), c.links.clone(), c.pattern.clone());
        Ok(Self { team, links, pattern, from, to, who, is_get, len: 0 })
    }

    fn rounds(&self, rounds: u32) -> Outcome {
        let queue = self.team.queue(0);
        let is_get = self.is_get;
        if self.team.is_cuda() {
            let (scope, blocks, threads, _) = self.who.shape();
            let room = self.from.len() / self.len * self.len;
            let (from, to) = (self.from.slice(0..room).map_err(failed)?, self.to.slice(0..room).map_err(failed)?);
            let bytes = self.len as u64 * 4;
            return transfer(queue, &to, &from, Transfer { is_get, peer: 1, bytes, scope, blocks, threads, rounds })
                .map_err(failed);
        }
        let from = self.from.slice(0..self.len).map_err(failed)?;
        let to = self.to.slice(0..self.len).map_err(failed)?;
        queue
            .run(move |pe| {
                (0..rounds).try_for_each(|_| if is_get { pe.get(&to, &from, 1) } else { pe.put(&to, &from, 1) })
            })
            .map_err(failed)
    }

    /// Whose data moves, and who has the result.
    fn ends(&self) -> (usize, usize) {
        if self.is_get {
            (1, 0)
        } else {
            (0, 1)
        }
    }
}

impl Subject for Inside {
    fn library(&self) -> String {
        let what = if self.is_get { "get" } else { "put" };
        match self.team.is_cuda() {
            true => format!("tandem {what}, {}", self.who.name()),
            false => format!("tandem {what}"),
        }
    }

    fn prepare(&mut self, bytes: u64) -> Outcome<u64> {
        // Kernels move whole vectors of 16 bytes.
        self.len = (bytes / 16 * 4) as usize;
        if self.len > 0 {
            let source = self.ends().0;
            let from = self.from.slice(0..self.len).map_err(failed)?;
            self.links.upload(source, &from, self.pattern.of(0, self.len)).map_err(failed)?;
        }
        Ok(self.len as u64 * 4)
    }

    fn start(&mut self) -> Outcome {
        self.rounds(self.repeats())
    }

    fn repeats(&self) -> u32 {
        let fitting = self.who.shape().3 / (self.len as u64 * 4).max(1);
        fitting.clamp(1, if self.team.is_cuda() { ROUNDS } else { 4 }) as u32
    }

    fn wait(&mut self) -> Outcome {
        self.team.queue(0).synchronize().map_err(failed)
    }

    fn wrong(&mut self) -> Outcome<Option<u64>> {
        let target = self.ends().1;
        let to = self.to.slice(0..self.len).map_err(failed)?;
        self.links.upload(target, &to, self.pattern.poison(self.len)).map_err(failed)?;
        self.rounds(1)?;
        self.wait()?;
        let mut got = vec![0f32; self.len];
        self.links.download(target, &to, &mut got).map_err(failed)?;
        Ok(Some(self.pattern.wrong(SEND, self.team.size(), target, self.len, &got)))
    }
}

/// Places for the words of a game, each so many words after the one before. How long a GPU takes to see its own word depends on which
/// part of its second-level cache has it: 0.2 us more or less for a round trip.
const PLACES: usize = 16;
const APART: usize = 64;
/// Round trips that find the best place.
const TRIAL: u64 = 3000;

/// Two kernels that wait for each other, at the best of some places.
pub(crate) struct PingPong {
    team: Team,
    places: Symmetric<u64>,
    place: usize,
    ball: Ball,
}

impl PingPong {
    pub(crate) const ALL: [Ball; 4] = [Ball::Signal, Ball::Atomic, Ball::Message, Ball::PutSignal];

    pub(crate) fn new(c: &Context, ball: Ball) -> Outcome<Self> {
        let (team, places) = (c.team.split(&[0, 1]).map_err(failed)?, c.team.alloc(PLACES * APART).map_err(failed)?);
        Ok(Self { team, places, place: 0, ball })
    }

    fn words(&self) -> Outcome<Symmetric<u64>> {
        let begin = self.place * APART;
        self.places.slice(begin..begin + 6).map_err(failed)
    }

    fn clear(&self) -> Outcome {
        let words = self.words()?;
        (0..2).try_for_each(|pe| self.team.write(pe, &words, &[0; 6])).map_err(failed)
    }

    /// Seconds of some round trips.
    fn trial(&self) -> Outcome<f64> {
        self.clear()?;
        let begun = Instant::now();
        pingpong(&self.team, self.ball, &self.words()?, TRIAL).map_err(failed)?;
        (0..2).try_for_each(|pe| self.team.queue(pe).synchronize()).map_err(failed)?;
        Ok(begun.elapsed().as_secs_f64())
    }
}

impl Subject for PingPong {
    fn library(&self) -> String {
        let what = match self.ball {
            Ball::Signal => "signal",
            Ball::Atomic => "atomic",
            Ball::Message => "message (LL)",
            Ball::PutSignal => "put_signal",
        };
        format!("tandem {what}")
    }

    fn prepare(&mut self, _: u64) -> Outcome<u64> {
        if self.team.is_cuda() {
            // The first game is slower: its kernel is loaded.
            self.trial()?;
            let mut best = (f64::MAX, 0);
            for place in 0..PLACES {
                self.place = place;
                let seconds = self.trial()?;
                if seconds < best.0 {
                    best = (seconds, place);
                }
            }
            self.place = best.1;
        }
        Ok(8)
    }

    fn repeats(&self) -> u32 {
        // The launch on two GPUs takes as long as some 200 round trips.
        if self.team.is_cuda() {
            50_000
        } else {
            100
        }
    }

    fn start(&mut self) -> Outcome {
        // A game that still runs needs its words.
        self.wait()?;
        self.clear()?;
        let rounds = u64::from(self.repeats());
        if self.team.is_cuda() {
            return pingpong(&self.team, self.ball, &self.words()?, rounds).map_err(failed);
        }
        for me in 0..2 {
            let word = self.words()?.at(0).map_err(failed)?;
            let play = move |pe: &tandem_fabric::Pe| -> tandem_fabric::Result<()> {
                for round in 1..=rounds {
                    if me == 1 {
                        pe.wait_until(&word, Compare::Eq, round, Some(0))?;
                    }
                    pe.signal_op(&word, Signal::Set(round), 1 - me)?;
                    if me == 0 {
                        pe.wait_until(&word, Compare::Eq, round, Some(1))?;
                    }
                }
                Ok(())
            };
            self.team.queue(me).run(play).map_err(failed)?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Outcome {
        (0..2).try_for_each(|pe| self.team.queue(pe).synchronize()).map_err(failed)
    }

    fn is_queued(&self) -> bool {
        false
    }

    /// The kernels count the values that they did not expect.
    fn wrong(&mut self) -> Outcome<Option<u64>> {
        self.start()?;
        self.wait()?;
        let mut wrong = 0;
        for pe in 0..2 {
            wrong += self.team.read(pe, &self.words()?).map_err(failed)?[4];
        }
        Ok(Some(wrong))
    }
}

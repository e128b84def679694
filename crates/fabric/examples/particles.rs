//! Particles in a periodic square that push each other away when they are near. The square is cut into cells, and each PE has some columns of them.
//! In every step a PE hands particles that leave its columns to the neighbour they go to, and then a copy of its outer columns, the halo, to
//! both neighbours: by a put with a signal behind. No PE waits for one that is not its neighbour.
//!
//! ```text
//! cargo run --release -p tandem-fabric --example particles
//! cargo run --release -p tandem-fabric --example particles -- --device cuda:0,1 --n 20000 --steps 100 --seed 7
//! tandem run -n 4 target/release/examples/particles
//! ```
//!
//! Places, speeds and pushes are integers, so that sums do not depend on their order: the paths are the same to the last bit over any
//! number of PEs, nothing is lost of the momentum, and with all speeds turned round the particles go back to where they began.
//!
//! A message has room for four times what a column holds on the average, or for `--room` particles. Where that is too little the program ends
//! and says so.
//!
//! What is shown is the memory. A PE computes on the host, a thread for each, also where it is a GPU: then particles go to its memory and
//! from GPU to GPU.

#[path = "particles/physics.rs"]
pub(crate) mod physics;
mod shared;

use physics::{Motion, Particle};
pub(crate) use shared::{end, failed, on_each_pe, Failure, Result};
use std::process::ExitCode;
use std::time::Instant;
use tandem_fabric::{Compare, OneSided, Options, Queue, Signal, Symmetric, Team};

/// The side of a PE's columns that has the lower numbers, and the other one.
const SIDES: [usize; 2] = [0, 1];

/// A square of `cells` times `cells` cells, of which PE k of n has the columns from k/n to (k + 1)/n.
#[derive(Clone, Copy)]
pub(crate) struct Slabs {
    pub(crate) motion: Motion,
    pub(crate) cells: usize,
    pub(crate) pes: usize,
    /// Particles that fit a message.
    pub(crate) room: usize,
}

impl Slabs {
    /// Cells are as wide as pushes reach, or wider. Each PE has a column, and there are three: a particle's two neighbours are not the same.
    pub(crate) fn new(motion: Motion, n: usize, pes: usize) -> Result<Self> {
        let cells = (motion.side / physics::REACH) as usize;
        if cells < pes.max(3) {
            return Err(failed(format!(
                "a square of {cells} columns of cells for {pes} PEs: each needs one, and all three"
            )));
        }
        // Four times the mean of a column.
        Ok(Slabs { motion, cells, pes, room: 4 * n / cells + 64 })
    }

    fn columns(&self, pe: usize) -> std::ops::Range<usize> {
        let first = |pe: usize| (pe * self.cells).div_ceil(self.pes);
        first(pe)..first(pe + 1)
    }

    fn cell(&self, place: u64) -> usize {
        ((u128::from(place) * self.cells as u128) >> 64) as usize
    }

    pub(crate) fn owner(&self, particle: &Particle) -> usize {
        self.cell(particle.place[0]) * self.pes / self.cells
    }

    fn neighbour(&self, pe: usize, side: usize) -> usize {
        (pe + if side == 0 { self.pes - 1 } else { 1 }) % self.pes
    }
}

/// What comes from one side in one of the two exchanges of a step.
struct Inbox {
    particles: Symmetric<Particle>,
    count: Symmetric<u64>,
    /// How many times something has come.
    come: Symmetric<u64>,
}

/// What every PE has in the memory of all.
pub(crate) struct Memory {
    /// By exchange and side.
    inboxes: [[Inbox; 2]; 2],
    /// By side: what is under way.
    outboxes: [Symmetric<Particle>; 2],
    /// A PE's particles when all is done, and how many these are.
    last: Symmetric<Particle>,
    count: Symmetric<u64>,
    /// By PE: bytes that it has put, and particles that have left it for another.
    moved: Symmetric<[u64; 2]>,
}

impl Memory {
    pub(crate) fn new(team: &Team, slabs: &Slabs, n: usize) -> Result<Self> {
        let inbox = || {
            Ok::<_, Failure>(Inbox { particles: team.alloc(slabs.room)?, count: team.alloc(1)?, come: team.alloc(1)? })
        };
        Ok(Memory {
            inboxes: [[inbox()?, inbox()?], [inbox()?, inbox()?]],
            outboxes: [team.alloc(slabs.room)?, team.alloc(slabs.room)?],
            last: team.alloc(n)?,
            count: team.alloc(1)?,
            moved: team.alloc(slabs.pes)?,
        })
    }
}

/// The exchanges of a step.
const LEAVING: usize = 0;
const HALO: usize = 1;

/// One PE at work.
struct Worker<'a> {
    team: &'a Team,
    queue: &'a Queue,
    memory: &'a Memory,
    slabs: Slabs,
    own: Vec<Particle>,
    /// By exchange: how many times it was done.
    done: [u64; 2],
    moved: [u64; 2],
}

/// Does the part of one PE for so many steps. `start` are all particles, of which it takes its own. All are in `memory` when every PE is done.
pub(crate) fn go(
    team: &Team,
    queue: &Queue,
    memory: &Memory,
    slabs: Slabs,
    start: &[Particle],
    steps: usize,
) -> Result<()> {
    let me = queue.me();
    let own = start.iter().filter(|particle| slabs.owner(particle) == me).copied().collect();
    let mut worker = Worker { team, queue, memory, slabs, own, done: [0; 2], moved: [0; 2] };
    let mut pushes = worker.pushes()?;
    for step in 0..steps {
        // Velocity Verlet: half a push, a step, and half a push at the new place.
        worker.own.iter_mut().zip(&pushes).for_each(|(particle, push)| {
            particle.push(push);
            particle.drift();
        });
        worker.migrate(step)?;
        pushes = worker.pushes()?;
        worker.own.iter_mut().zip(&pushes).for_each(|(particle, push)| particle.push(push));
    }
    let Worker { own, moved, .. } = worker;
    team.write(me, &memory.last.slice(0..own.len())?, &own)?;
    team.write(me, &memory.count, &[own.len() as u64])?;
    queue.p(&memory.moved.at(me)?, moved, 0)?;
    // Whoever is past it sees the particles of all.
    queue.barrier()?;
    Ok(queue.synchronize()?)
}

impl Worker<'_> {
    /// Hands over the particles that have left the PE's columns, and takes those that have come.
    fn migrate(&mut self, step: usize) -> Result<()> {
        let (slabs, me) = (self.slabs, self.queue.me());
        let mut leaving = SIDES.map(|_| Vec::new());
        let mut staying = Vec::with_capacity(self.own.len());
        for particle in self.own.drain(..) {
            let owner = slabs.owner(&particle);
            if owner == me {
                staying.push(particle);
            } else if let Some(side) = SIDES.into_iter().find(|&side| slabs.neighbour(me, side) == owner) {
                leaving[side].push(particle);
            } else {
                let id = particle.id;
                return Err(failed(format!(
                    "in step {step} particle {id} goes from PE {me} past its neighbours to PE {owner}: take shorter steps"
                )));
            }
        }
        self.own = staying;
        self.moved[1] += leaving.iter().map(|side| side.len() as u64).sum::<u64>();
        let come = self.exchange(LEAVING, leaving)?;
        self.own.extend(come.into_iter().flatten());
        Ok(())
    }

    /// Half of what the PE's particles are pushed by all that are near.
    fn pushes(&mut self) -> Result<Vec<[i64; 2]>> {
        let (slabs, columns) = (self.slabs, self.slabs.columns(self.queue.me()));
        let outer = [columns.start, columns.end - 1];
        let in_column = |column| self.own.iter().filter(move |p| slabs.cell(p.place[0]) == column).copied().collect();
        let halo = outer.map(in_column);
        let come = self.exchange(HALO, halo)?;

        // Its own columns of cells, between those of the halo.
        let (width, height) = (columns.len() + 2, slabs.cells);
        let mut cells: Vec<Vec<Particle>> = vec![Vec::new(); width * height];
        let [low, high] = &come;
        for (column, particles) in [(Some(0), low), (None, &self.own), (Some(width - 1), high)] {
            for particle in particles {
                let column = column.unwrap_or_else(|| slabs.cell(particle.place[0]) - columns.start + 1);
                cells[column * height + slabs.cell(particle.place[1])].push(*particle);
            }
        }
        let push = |particle: &Particle| {
            let column = slabs.cell(particle.place[0]) - columns.start + 1;
            let row = slabs.cell(particle.place[1]);
            let mut sum = [0i64; 2];
            for column in column - 1..=column + 1 {
                for row in [row + height - 1, row, row + 1].map(|row| row % height) {
                    for other in &cells[column * height + row] {
                        slabs.motion.add_push(particle, other, &mut sum);
                    }
                }
            }
            sum
        };
        Ok(self.own.iter().map(push).collect())
    }

    /// Puts particles to the neighbours on both sides, and returns what has come from there.
    ///
    /// An inbox is free again without a word: a neighbour puts the next of the same kind when it has the other kind of this PE, which was put
    /// after the inbox was read.
    fn exchange(&mut self, kind: usize, to: [Vec<Particle>; 2]) -> Result<[Vec<Particle>; 2]> {
        let Worker { team, queue, memory, slabs, .. } = *self;
        let me = queue.me();
        self.done[kind] += 1;
        for (side, particles) in SIDES.into_iter().zip(&to) {
            let (pe, count) = (slabs.neighbour(me, side), particles.len());
            if count > slabs.room {
                return Err(failed(format!(
                    "PE {me} has {count} particles for PE {pe} at once, and a message has room for {}: raise --room",
                    slabs.room
                )));
            }
            let outbox = memory.outboxes[side].slice(0..count)?;
            team.write(me, &outbox, particles)?;
            // What goes to one side comes there from the other.
            let inbox = &memory.inboxes[kind][1 - side];
            queue.p(&inbox.count, count as u64, pe)?;
            queue.put_signal(
                &inbox.particles.slice(0..count)?,
                &outbox,
                &inbox.come,
                Signal::Set(self.done[kind]),
                pe,
            )?;
            self.moved[0] += outbox.bytes() + inbox.count.bytes();
        }
        for (side, inbox) in SIDES.into_iter().zip(&memory.inboxes[kind]) {
            queue.signal_wait_until(&inbox.come, Compare::Ge, self.done[kind], Some(slabs.neighbour(me, side)))?;
        }
        queue.synchronize()?;
        let mut come = [Vec::new(), Vec::new()];
        for (come, inbox) in come.iter_mut().zip(&memory.inboxes[kind]) {
            let count = team.read(me, &inbox.count)?[0] as usize;
            *come = team.read(me, &inbox.particles.slice(0..count)?)?;
        }
        Ok(come)
    }
}

/// All particles when all PEs are done, in order; bytes put; and how many times a particle has gone to another PE.
pub(crate) fn gather(team: &Team, memory: &Memory) -> Result<(Vec<Particle>, [u64; 2])> {
    let mut all = Vec::new();
    for pe in 0..team.size() {
        let count = team.read(pe, &memory.count)?[0] as usize;
        all.extend(team.read(pe, &memory.last.slice(0..count)?)?);
    }
    all.sort_by_key(|particle| particle.id);
    let moved = team.read(0, &memory.moved)?;
    Ok((all, [0, 1].map(|what| moved.iter().map(|of| of[what]).sum())))
}

/// Moves particles, checks where they have come to, and says what it took.
pub(crate) fn run(given: impl IntoIterator<Item = String>) -> Result<String> {
    let known = [("--n", 2000), ("--steps", 200), ("--seed", 1), ("--room", 0)];
    let (device, [n, steps, seed, room]) = shared::arguments(given, known)?;
    if n > 1 << 20 {
        return Err(Failure { text: format!("--n {n}: expected at most {} particles", 1 << 20), status: 2 });
    }
    let team = shared::open(device.as_deref(), Options::default())?;
    let motion = Motion::of(n, team.size());
    let mut slabs = Slabs::new(motion, n, team.size())?;
    if room > 0 {
        slabs.room = room;
    }
    let memory = Memory::new(&team, &slabs, n)?;
    let start = motion.particles(n, |index| shared::number(seed as u64, index));
    team.barrier()?;
    team.synchronize()?;
    let begun = Instant::now();
    on_each_pe(&team, |queue| go(&team, queue, &memory, slabs, &start, steps))?;
    let seconds = begun.elapsed().as_secs_f64();
    let mut text = String::new();
    if team.local().contains(&0) {
        let (all, [bytes, left]) = gather(&team, &memory)?;
        let rate = n as f64 * steps as f64 / seconds / 1e6;
        text = format!(
            "{} PEs, {n} particles, {steps} steps: {seconds:.3} s, {rate:.2} million steps of particles a second\n\
             {:.1} MB put, {left} times a particle went to another PE\n{}\n",
            slabs.pes,
            bytes as f64 / 1e6,
            motion.check(&start, &all, steps)?
        );
    }
    // The memory of all stays until it was read.
    team.barrier()?;
    team.synchronize()?;
    Ok(text)
}

pub(crate) fn main() -> ExitCode {
    end("particles", run(std::env::args().skip(1)))
}

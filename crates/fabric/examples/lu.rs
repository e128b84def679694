//! LU factorisation with partial pivoting of a dense matrix whose columns are dealt to the PEs in blocks. Who has a block of columns
//! factors it when its turn comes, and puts it, the panel, into the memory of every PE, with a signal behind. Each PE then changes its own
//! columns. Who has the next panel does that one first, so that it travels while the others are busy.
//!
//! ```text
//! cargo run --release -p tandem-fabric --example lu
//! cargo run --release -p tandem-fabric --example lu -- --device cuda:0,1 --n 2000 --block 64 --seed 7
//! tandem run -n 4 target/release/examples/lu
//! ```
//!
//! What is shown is the memory. A PE computes on the host, a thread for each, also where it is a GPU: then panels go to its memory and from
//! GPU to GPU. The figure it prints says nothing of what a GPU can compute.

#[path = "lu/check.rs"]
pub(crate) mod check;
mod shared;

pub(crate) use shared::{end, failed, on_each_pe, Failure, Result};
use std::process::ExitCode;
use std::time::Instant;
use tandem_fabric::{Compare, OneSided, Options, Queue, Signal, Symmetric, Team};

/// A matrix by rows and columns.
pub(crate) type Entry<'a> = &'a (dyn Fn(usize, usize) -> f64 + Sync);

/// How the columns of an n by n matrix are dealt: block k, of `block` columns and the last one of fewer, belongs to PE k modulo `pes`.
#[derive(Clone, Copy)]
pub(crate) struct Deal {
    pub(crate) n: usize,
    pub(crate) block: usize,
    pub(crate) pes: usize,
}

impl Deal {
    fn blocks(&self) -> usize {
        self.n.div_ceil(self.block)
    }

    fn owner(&self, k: usize) -> usize {
        k % self.pes
    }

    /// The columns of block `k`.
    fn columns(&self, k: usize) -> std::ops::Range<usize> {
        k * self.block..self.n.min((k + 1) * self.block)
    }

    /// Which of its PE's columns column `j` is.
    fn place(&self, j: usize) -> usize {
        j / (self.block * self.pes) * self.block + j % self.block
    }
}

/// What every PE has in the memory of all. Panels take turns in two places, so that one comes while the one before is in use.
pub(crate) struct Memory {
    /// Columns of a panel, one after the other, from the diagonal down.
    panels: [Symmetric<f64>; 2],
    /// By column of a panel: with which row the diagonal's was exchanged.
    pivots: [Symmetric<u64>; 2],
    /// By place: the last panel that has come there, counted from 1. Those of the two places are of different PEs, and come in no order.
    come: Symmetric<u64>,
    /// By PE: how many panels it has taken out, as far as this PE has to know.
    taken: Symmetric<u64>,
    /// A PE's columns, when all is done.
    factors: Symmetric<f64>,
    /// By PE: bytes that it has put.
    moved: Symmetric<u64>,
}

impl Memory {
    pub(crate) fn new(team: &Team, deal: Deal) -> Result<Self> {
        let width = deal.block.min(deal.n);
        let (panel, most) = (deal.n * width, deal.blocks().div_ceil(deal.pes) * width);
        Ok(Memory {
            panels: [team.alloc(panel)?, team.alloc(panel)?],
            pivots: [team.alloc(width)?, team.alloc(width)?],
            come: team.alloc(2)?,
            taken: team.alloc(deal.pes)?,
            factors: team.alloc(deal.n * most)?,
            moved: team.alloc(deal.pes)?,
        })
    }
}

/// A panel that has come.
struct Panel {
    /// The first row and column, and the number of columns.
    start: usize,
    width: usize,
    values: Vec<f64>,
    pivots: Vec<u64>,
}

/// One PE at work.
struct Worker<'a> {
    team: &'a Team,
    queue: &'a Queue,
    memory: &'a Memory,
    deal: Deal,
    /// Its columns, one after the other.
    own: Vec<f64>,
    moved: u64,
}

/// Does the part of one PE, and returns all pivots, by column. The factors are in `memory` when every PE is done.
pub(crate) fn factor(team: &Team, queue: &Queue, memory: &Memory, deal: Deal, entry: Entry) -> Result<Vec<usize>> {
    let mine = |k: &usize| deal.owner(*k) == queue.me();
    let columns = (0..deal.blocks()).filter(mine).flat_map(|k| deal.columns(k));
    let own = columns.flat_map(|j| (0..deal.n).map(move |i| entry(i, j))).collect();
    let mut worker = Worker { team, queue, memory, deal, own, moved: 0 };
    let mut pivots = Vec::new();
    if deal.blocks() > 0 && mine(&0) {
        worker.send(0)?;
    }
    for k in 0..deal.blocks() {
        let panel = worker.take(k)?;
        worker.exchange_rows(k, &panel);
        if k + 1 < deal.blocks() && mine(&(k + 1)) {
            worker.update(k + 1, &panel);
            worker.send(k + 1)?;
        }
        (k + 2..deal.blocks()).filter(mine).for_each(|k| worker.update(k, &panel));
        pivots.extend(panel.pivots.iter().map(|&row| row as usize));
    }
    let Worker { own, moved, .. } = worker;
    team.write(queue.me(), &memory.factors.slice(0..own.len())?, &own)?;
    queue.p(&memory.moved.at(queue.me())?, moved, 0)?;
    // Whoever is past it sees the factors of all.
    queue.barrier()?;
    queue.synchronize()?;
    Ok(pivots)
}

impl Worker<'_> {
    /// Column `j`, which this PE has.
    fn column(&mut self, j: usize) -> &mut [f64] {
        let (at, n) = (self.deal.place(j), self.deal.n);
        &mut self.own[at * n..][..n]
    }

    /// Factors panel `k` and puts it into the memory of every PE.
    fn send(&mut self, k: usize) -> Result<()> {
        let Worker { team, queue, memory, deal: Deal { n, pes, .. }, .. } = *self;
        let columns = self.deal.columns(k);
        let (start, width, me) = (columns.start, columns.len(), queue.me());
        let first = self.deal.place(start) * n;
        let pivots = factor_panel(&mut self.own[first..][..n * width], n, start);
        let values: Vec<f64> = columns.flat_map(|j| self.column(j)[start..].to_vec()).collect();

        // The place is free when every PE has taken out the panel that was there before.
        for pe in 0..pes {
            queue.wait_until(&memory.taken.at(pe)?, Compare::Ge, (k as u64 + 1).saturating_sub(2), Some(pe))?;
        }
        queue.synchronize()?;
        let panel = memory.panels[k % 2].slice(0..values.len())?;
        let rows = memory.pivots[k % 2].slice(0..width)?;
        let come = memory.come.at(k % 2)?;
        team.write(me, &panel, &values)?;
        team.write(me, &rows, &pivots)?;
        for pe in (1..pes).map(|step| (me + step) % pes) {
            queue.put(&rows, &rows, pe)?;
            queue.put_signal(&panel, &panel, &come, Signal::Set(k as u64 + 1), pe)?;
            self.moved += rows.bytes() + panel.bytes();
        }
        Ok(())
    }

    /// Panel `k`, once it has come.
    fn take(&mut self, k: usize) -> Result<Panel> {
        let Worker { team, queue, memory, deal, .. } = *self;
        let (columns, me, owner) = (deal.columns(k), queue.me(), deal.owner(k));
        if owner != me {
            queue.signal_wait_until(&memory.come.at(k % 2)?, Compare::Ge, k as u64 + 1, Some(owner))?;
        }
        queue.synchronize()?;
        let (start, width) = (columns.start, columns.len());
        let values = team.read(me, &memory.panels[k % 2].slice(0..width * (deal.n - start))?)?;
        let pivots = team.read(me, &memory.pivots[k % 2].slice(0..width)?)?;
        // Who has the panel that comes to the same place may send it.
        queue.signal_op(&memory.taken.at(me)?, Signal::Set(k as u64 + 1), deal.owner(k + 2))?;
        Ok(Panel { start, width, values, pivots })
    }

    /// Exchanges the rows that panel `k` has exchanged, in all columns but the panel's.
    fn exchange_rows(&mut self, k: usize, panel: &Panel) {
        let (n, skipped) = (self.deal.n, self.deal.place(panel.start));
        for (at, column) in self.own.chunks_exact_mut(n).enumerate() {
            if self.deal.owner(k) != self.queue.me() || !(skipped..skipped + panel.width).contains(&at) {
                let rows = (panel.start..).zip(&panel.pivots);
                rows.for_each(|(row, &other)| column.swap(row, other as usize));
            }
        }
    }

    /// What the panel does to block `k`. Each number has one product after the other taken away, in the order of the columns: as if there were no
    /// blocks and one PE, to the last bit.
    fn update(&mut self, k: usize, panel: &Panel) {
        let rows = self.deal.n - panel.start;
        for j in self.deal.columns(k) {
            let column = &mut self.column(j)[panel.start..];
            for (c, values) in panel.values.chunks_exact(rows).enumerate() {
                eliminate(&mut column[c..], &values[c..]);
            }
        }
    }
}

/// Takes away the first number's multiple of `by` from those below it.
fn eliminate(column: &mut [f64], by: &[f64]) {
    if let Some((&mut first, below)) = column.split_first_mut() {
        below.iter_mut().zip(&by[1..]).for_each(|(x, l)| *x -= l * first);
    }
}

/// Factors columns of n rows, of which the first has its diagonal in row `start`; returns with which row each diagonal's was exchanged.
/// The pivot is the first of the largest. Where there is none but 0, there is nothing to eliminate.
fn factor_panel(columns: &mut [f64], n: usize, start: usize) -> Vec<u64> {
    let width = columns.len() / n;
    let mut pivots = Vec::with_capacity(width);
    for c in 0..width {
        let (diagonal, this) = (start + c, &columns[c * n..][..n]);
        let largest = (diagonal..n).fold(diagonal, |best, i| if this[i].abs() > this[best].abs() { i } else { best });
        pivots.push(largest as u64);
        columns.chunks_exact_mut(n).for_each(|column| column.swap(diagonal, largest));
        let (done, others) = columns.split_at_mut((c + 1) * n);
        let this = &mut done[c * n + diagonal..];
        if let Some((&mut pivot, below)) = this.split_first_mut().filter(|(pivot, _)| **pivot != 0.0) {
            below.iter_mut().for_each(|x| *x /= pivot);
        }
        others.chunks_exact_mut(n).for_each(|column| eliminate(&mut column[diagonal..], this));
    }
    pivots
}

/// The columns that all PEs have come to, in order.
pub(crate) fn gather(team: &Team, memory: &Memory, deal: Deal) -> Result<Vec<f64>> {
    let parts = (0..deal.pes).map(|pe| Ok(team.read(pe, &memory.factors)?)).collect::<Result<Vec<_>>>()?;
    let column = |j: usize| &parts[deal.owner(j / deal.block)][deal.place(j) * deal.n..][..deal.n];
    Ok((0..deal.n).flat_map(column).copied().collect())
}

/// Factors a matrix of numbers between -1 and 1, checks what came, and says what it took.
pub(crate) fn run(given: impl IntoIterator<Item = String>) -> Result<String> {
    let (device, [n, block, seed]) = shared::arguments(given, [("--n", 500), ("--block", 32), ("--seed", 1)])?;
    if block == 0 || n > 4096 {
        let text = format!("--n {n} --block {block}: expected at most 4096 rows, in blocks of 1 column or more");
        return Err(Failure { text, status: 2 });
    }
    let team = shared::open(device.as_deref(), Options::default())?;
    let deal = Deal { n, block, pes: team.size() };
    let memory = Memory::new(&team, deal)?;
    let entry = |i: usize, j: usize| shared::number(seed as u64, (i << 32 | j) as u64) as i64 as f64 / 2f64.powi(63);
    team.barrier()?;
    team.synchronize()?;
    let begun = Instant::now();
    let mut pivots = on_each_pe(&team, |queue| factor(&team, queue, &memory, deal, &entry))?;
    let (seconds, flops) = (begun.elapsed().as_secs_f64(), 2.0 / 3.0 * (n as f64).powi(3));
    let mut text = String::new();
    if team.local().contains(&0) {
        let moved = team.read(0, &memory.moved)?.iter().sum::<u64>() as f64 / 1e6;
        let rate = flops / seconds / 1e9;
        let (factors, pivots) = (gather(&team, &memory, deal)?, pivots.swap_remove(0));
        let found = check::Found { factors: &factors, pivots: &pivots }.check(&entry)?;
        text = format!(
            "{} PEs, {n} rows, blocks of {block}: {seconds:.3} s, {rate:.2} GFLOP/s, {moved:.1} MB put\n{found}\n",
            deal.pes
        );
    }
    // The memory of all stays until it was read.
    team.barrier()?;
    team.synchronize()?;
    Ok(text)
}

pub(crate) fn main() -> ExitCode {
    end("lu", run(std::env::args().skip(1)))
}

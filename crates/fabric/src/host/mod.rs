//! Copies between host memory and one PE over the PCIe links of all PEs, as many as pay.
//!
//! A GPU's own slot carries about 55 GB/s (PCIe 5 x16). The slots of the other GPUs are as fast, and NVLink is much faster than
//! either: so part of the data goes through small rings in the other GPUs' memory and from there to its place. Memory that is not
//! page-locked goes through a ring of page-locked slots first, which several threads fill, as one alone copies 12 GB/s.
//!
//! Each link has a few workers, each with a queue and two slots: while one slot is copied the other is filled. `claims` hands
//! out chunks: the shares come from a plan ([`crate::plan::Operation::Upload`]) or from the last transfer, and a link that is done
//! takes over what others have left. A small transfer goes over few links, as each has a cost. Pretend PEs take the same way, with a part
//! of their window for a page-locked slot.

mod claims;
#[cfg(test)]
pub(crate) mod tests;
mod worker;

use crate::plan::{plan, Operation, Request, Step};
use crate::topology::{DeviceKind, Topology};
use crate::{Error, Result, Symmetric, Team};
use bytemuck::Pod;
use claims::Claims;
use std::sync::{Mutex, MutexGuard, PoisonError};
use worker::Worker;

/// Bytes of a chunk of page-locked memory, and workers of a link. Measured on two H200 (PCIe 5 x16 each), 1 GiB to one of them:
/// 2, 4, 8 and 16 MiB with two workers a link: 101, 105, 107 and 107 GB/s; with one 89 to 100; with four 100 to 107.
const PINNED_CHUNK: usize = 8 << 20;
const PINNED_WORKERS: usize = 2;
/// Bytes of a chunk of pageable memory, and workers of a link: 0.5, 1 and 2 MiB with six workers a link: 46, 64 and 89 GB/s; 2 MiB with
/// four, eight and twelve: 72, 91 and 92.
const PAGEABLE_CHUNK: usize = 2 << 20;
const PAGEABLE_WORKERS: usize = 6;
/// So many bytes pass a link in the time that another one costs, whose workers are threads that begin one after the other: a link more pays where
/// it saves more. Microseconds over 1, 2, 4 and 8 links of H200s: 16 MiB page-locked 394, 270, 410 and 945, 64 MiB 1360, 757, 637 and 1147, 256 MiB
/// 5140, 2650, 1810 and 1650; pageable 1000, 830, 2190 and 4970, 2150, 1330, 2680 and 6560, 7860, 4090, 7380 and 9250.
const PINNED_COST: usize = 6 << 20;
const PAGEABLE_COST: usize = 31 << 20;
/// More links than these do not copy pageable memory faster: 24 threads take all that a processor's memory gives.
const PAGEABLE_LINKS: usize = 4;
/// Chunks are not made smaller than this: the cost of a copy is a few microseconds.
const LEAST_CHUNK: usize = 256 << 10;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From host memory.
    Upload,
    /// To host memory.
    Download,
}

/// What a transfer did.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// By PE of the team: bytes that passed its PCIe link.
    pub through: Vec<u64>,
    /// Whether the host memory was page-locked, so that devices copied from or to it themselves.
    pub is_pinned: bool,
}

/// The host links of a team, with the rings and queues that its transfers use: 32 MiB of each PE's window and 24 MiB of page-locked
/// memory a link, made when first needed. Transfers of one value follow each other; make several for several at once.
pub struct HostLinks {
    team: Team,
    /// By target: the shares of the PEs' links.
    shares: Mutex<Vec<Vec<f64>>>,
    pinned: Mutex<Vec<Worker>>,
    pageable: Mutex<Vec<Worker>>,
    /// Whether all links take part however little there is to copy.
    is_for_all: bool,
}

/// The number of links that are worth their cost for so many bytes: with k links a transfer takes the time of bytes / k and of k times the
/// cost, so the kth pays from k (k - 1) times the cost on.
fn worth(bytes: usize, cost: usize) -> usize {
    (2..).take_while(|k| cost.saturating_mul(k * (k - 1)) < bytes).last().unwrap_or(1)
}

/// What is left by a thread that panicked is only memory to overwrite.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HostLinks {
    /// The links of all PEs, taken for equally fast.
    pub fn new(team: &Team) -> Self {
        let size = team.size();
        let share = |to: usize, via: usize| if team.reaches(via, to).is_ok() { 1.0 } else { 0.0 };
        let shares = (0..size).map(|to| (0..size).map(|via| share(to, via)).collect()).collect();
        Self::with(team, shares)
    }

    /// The links with the shares that plans give them. `gpus` has each PE's number among the topology's GPUs.
    ///
    /// # Errors
    /// A number that the topology does not have, or another number of them than PEs; a topology without host memory.
    pub fn planned(team: &Team, topology: &Topology, gpus: &[usize]) -> Result<Self> {
        let size = team.size();
        if gpus.len() != size {
            return Err(Error::invalid("plan host links", format!("{} GPUs for {size} PEs", gpus.len())));
        }
        let mut all = Vec::new();
        for to in 0..size {
            let helpers: Vec<usize> =
                (0..size).filter(|&via| via != to && team.reaches(via, to).is_ok()).map(|via| gpus[via]).collect();
            let request = Request::new(Operation::Upload, &[gpus[to]]).with_helpers(&helpers);
            let mut shares = vec![0.0; size];
            for step in plan(topology, &request)?.steps {
                let Step::Send(routes) = step else { continue };
                for route in routes {
                    // The first GPU behind the host is the one whose link it takes.
                    let first = route.path.iter().find(|&&d| topology.devices()[d].kind == DeviceKind::Gpu);
                    let pe = first.and_then(|&d| (0..size).find(|&pe| topology.gpus().get(gpus[pe]) == Some(&d)));
                    shares[pe.unwrap_or(to)] += route.share.to_f64();
                }
            }
            all.push(shares);
        }
        Ok(Self::with(team, all))
    }

    fn with(team: &Team, mut shares: Vec<Vec<f64>>) -> Self {
        for (to, shares) in shares.iter_mut().enumerate() {
            if shares.iter().all(|share| *share <= 0.0) {
                shares[to] = 1.0;
            }
        }
        HostLinks {
            team: team.clone(),
            shares: Mutex::new(shares),
            pinned: Mutex::default(),
            pageable: Mutex::default(),
            is_for_all: false,
        }
    }

    /// These links, all of which take part in every transfer, however small. Unless so told, it goes over those that pay.
    pub fn for_all(mut self) -> Self {
        self.is_for_all = true;
        self
    }

    /// By PE: the share of a transfer from or to PE `pe` that will begin on that PE's link.
    pub fn shares(&self, pe: usize) -> Vec<f64> {
        lock(&self.shares).get(pe).cloned().unwrap_or_default()
    }

    /// Copies `from` to PE `pe`'s elements. Done when it returns, and in no order with what queues do meanwhile.
    ///
    /// # Errors
    /// The lengths differ; the team does not have the PE, or had a fault; no memory for rings; a device failed. A chunk that takes longer
    /// than the team's timeout and a nanosecond for each byte on its link is a fault ([`crate::FaultKind::Copy`]) that names the PE whose
    /// link it is. After an error part of the data may have been copied, and no device uses the host memory any more: where it is
    /// page-locked, which a device accesses itself, the call stays until the device has let go of it. Other threads and the team's
    /// kernels know of the fault before.
    pub fn upload<T: Pod>(&self, pe: usize, to: &Symmetric<T>, from: &[T]) -> Result<Moved> {
        self.check("upload", pe, to.len(), from.len())?;
        let bytes: &[u8] = bytemuck::cast_slice(from);
        self.transfer(pe, &bytes_of(to)?, worker::Host::from(bytes), is_pinned(&self.team, bytes))
    }

    /// Copies PE `pe`'s elements to `to`; otherwise as [`HostLinks::upload`].
    ///
    /// # Errors
    /// As for [`HostLinks::upload`].
    pub fn download<T: Pod>(&self, pe: usize, from: &Symmetric<T>, to: &mut [T]) -> Result<Moved> {
        self.check("download", pe, from.len(), to.len())?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(to);
        let is_pinned = is_pinned(&self.team, bytes);
        self.transfer(pe, &bytes_of(from)?, worker::Host::to(bytes), is_pinned)
    }

    fn check(&self, op: &'static str, pe: usize, device: usize, host: usize) -> Result<()> {
        self.team.core().world.of_one_process(op)?;
        if pe >= self.team.size() {
            return Err(Error::invalid(op, format!("there is no PE {pe}; the team has {}", self.team.size())));
        }
        if device != host {
            return Err(Error::invalid(op, format!("{host} elements of host memory for {device} of PE {pe}")));
        }
        Ok(())
    }

    fn transfer(&self, pe: usize, there: &Symmetric<u8>, host: worker::Host<'_>, is_pinned: bool) -> Result<Moved> {
        let size = self.team.size();
        let mut moved = Moved { through: vec![0; size], is_pinned };
        if there.is_empty() {
            return Ok(moved);
        }
        let shares = self.shares(pe);
        let mut links: Vec<usize> = (0..size).filter(|&via| shares[via] > 0.0).collect();
        let (most, per_link, workers, worth) = match is_pinned {
            true => (PINNED_CHUNK, PINNED_WORKERS, &self.pinned, worth(there.len(), PINNED_COST)),
            false => {
                let worth = worth(there.len(), PAGEABLE_COST).min(PAGEABLE_LINKS);
                (PAGEABLE_CHUNK, PAGEABLE_WORKERS, &self.pageable, worth)
            }
        };
        let planned = links.len();
        if !self.is_for_all {
            // The target's own first, which needs no ring, then the fastest.
            links.sort_by(|a, b| (*a != pe).cmp(&(*b != pe)).then(shares[*b].total_cmp(&shares[*a])));
            links.truncate(worth);
        }
        // Enough chunks for every worker to have some in each of its slots.
        let even = there.len() / (links.len() * per_link * 2).max(1);
        let chunk = even.next_multiple_of(4096).clamp(LEAST_CHUNK, most);
        let chunks = there.len().div_ceil(chunk);
        let shares: Vec<f64> = links.iter().map(|&via| shares[via]).collect();
        let claims = Claims::new(chunks, &shares);
        let mut workers = lock(workers);
        self.hire(&mut workers, &links, per_link, is_pinned)?;
        // As many as find something to do; those of the target's own link first.
        let mut team: Vec<&mut Worker> = workers.iter_mut().filter(|w| links.contains(&w.via)).collect();
        team.sort_by_key(|w| (w.number, w.via != pe));
        team.truncate(chunks);
        // Two slots each.
        let in_flight = (2 * per_link * chunk) as u64;
        let job = worker::Job { team: &self.team, pe, there, host, chunk, claims: &claims, links: &links, in_flight };
        let results: Vec<(usize, Result<u64>)> = std::thread::scope(|scope| {
            let mut others = team.into_iter();
            let first = others.next();
            let others: Vec<_> = others.map(|w| (w.via, scope.spawn(|| w.run(&job)))).collect();
            let mut results: Vec<(usize, Result<u64>)> = first.map(|w| (w.via, w.run(&job))).into_iter().collect();
            let panicked = || Err(Error::invalid("copy of host memory", "a thread panicked"));
            results.extend(others.into_iter().map(|(via, t)| (via, t.join().unwrap_or_else(|_| panicked()))));
            results
        });
        if results.iter().any(|(_, result)| result.is_err()) {
            // Their copies may still be on their way.
            workers.clear();
        }
        for (via, result) in results {
            moved.through[via] += result?;
        }
        // Of a part of the links nothing is learnt of the others.
        if links.len() == planned {
            self.adapt(pe, &moved, chunks);
        }
        Ok(moved)
    }

    /// Takes the shares of a transfer that was long enough to tell.
    fn adapt(&self, pe: usize, moved: &Moved, chunks: usize) {
        if chunks < 8 * moved.through.len() {
            return;
        }
        let total: u64 = moved.through.iter().sum();
        let mut shares = lock(&self.shares);
        for (share, &bytes) in shares[pe].iter_mut().zip(&moved.through) {
            // A link that is planned never disappears.
            *share = if *share > 0.0 { (bytes as f64 / total as f64).max(0.01) } else { 0.0 };
        }
    }

    /// Makes the workers that are missing.
    fn hire(&self, workers: &mut Vec<Worker>, links: &[usize], per_link: usize, is_pinned: bool) -> Result<()> {
        for &via in links {
            for number in workers.iter().filter(|w| w.via == via).count()..per_link {
                workers.push(Worker::new(&self.team, via, number, is_pinned)?);
            }
        }
        Ok(())
    }

    /// Overwrites what rings and slots hold of earlier transfers. It happens too when this is dropped.
    ///
    /// # Errors
    /// A device failed.
    pub fn wipe(&self) -> Result<()> {
        for workers in [&self.pinned, &self.pageable] {
            lock(workers).iter_mut().try_for_each(|w| w.wipe(&self.team))?;
        }
        Ok(())
    }
}

impl Drop for HostLinks {
    fn drop(&mut self) {
        // A device that fails here has failed a transfer before.
        let _ = self.wipe();
    }
}

fn bytes_of<T: Pod>(memory: &Symmetric<T>) -> Result<Symmetric<u8>> {
    memory.cast()
}

/// Whether devices may copy from or to it themselves. Pretend PEs have no such memory.
fn is_pinned(team: &Team, bytes: &[u8]) -> bool {
    team.is_cuda() && tandem_cuda::is_pinned(bytes)
}

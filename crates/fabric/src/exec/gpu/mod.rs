//! Carrying schedules out on GPUs.
//!
//! | how | for |
//! |---|---|
//! | one kernel on each PE ([`fused`]) | everything that goes through queues; can be captured into graphs |
//! | the same for small data, with a flag in every word ([`messages`]) | likewise |
//! | copy engines ([`engines`]) | much data, and ways through host memory |
//! | a kernel that stays ([`resident`]) | small data that the host waits for, where a GPU holds those of all its PEs |

mod engines;
mod fused;
mod messages;
mod resident;

use super::launchers::Launchers;
use super::mail::Mail;
use crate::planner::{lock, Item, Planner};
use crate::process::Parcel;
use crate::{ffi, Error, OneSided, Result, Team};
use engines::Engines;
use fused::Fused;
pub(crate) use messages::args as message_args;
use resident::Resident;
use std::sync::Mutex;
use tandem_cuda::Device;

/// What the collectives of a team of GPUs need beside its queues.
pub(crate) struct Gpus {
    /// Blocks of kernels that wait for each other that every PE holds at once.
    blocks: usize,
    tables: Mutex<Fused>,
    launchers: Launchers,
    engines: Mutex<Engines>,
    /// `None` where a GPU does not hold the resident kernels of all its PEs at once, or there are several processes.
    resident: Option<Mutex<Resident>>,
}

impl Gpus {
    pub(crate) fn new(team: &Team) -> Result<Self> {
        let mut least = usize::MAX;
        let mut devices = Vec::new();
        for queue in team.queues() {
            let Some(stream) = queue.stream() else { continue };
            devices.push(stream.device());
            let mut blocks = 0;
            // SAFETY: `blocks` is valid to write to.
            stream.call("load kernels", |_| unsafe { ffi::tandem_exec_limit(&mut blocks) })?;
            least = least.min(blocks as usize / team.sharing(queue.me()));
        }
        // Tables are cut alike in all processes.
        if let Some(group) = team.core().group() {
            let op = "collectives";
            let mine = Parcel { numbers: vec![least as u64], ..Parcel::about("collectives of GPUs") };
            let all = group.exchange(op, mine)?;
            let of_all = all.iter().filter_map(|parcel| usize::try_from(*parcel.numbers.first()?).ok()).min();
            least = of_all.ok_or_else(|| Error::processes(op, "a process has not said what its GPUs hold"))?;
        }
        let resident = resident::BLOCKS <= least && team.core().group().is_none();
        Ok(Self {
            blocks: least,
            tables: Mutex::default(),
            launchers: Launchers::default(),
            engines: Mutex::new(Engines::new(&devices)?),
            resident: if resident { Some(Mutex::new(Resident::new(team, &devices)?)) } else { None },
        })
    }

    /// Blocks of kernels that wait for each other that every PE holds at once.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    pub(crate) fn fused(&self, shared: &Planner, items: &[Item], is_now: bool) -> Result<()> {
        if fused::launch(&self.tables, &self.launchers, self.blocks, shared, items)? {
            return Ok(());
        }
        // Ways through host memory are for copy engines.
        self.engines(shared, items, is_now)
    }

    pub(crate) fn messages(&self, tables: &Mutex<Mail>, shared: &Planner, item: &Item) -> Result<()> {
        messages::launch(tables, &self.launchers, shared, item)
    }

    pub(crate) fn engines(&self, shared: &Planner, items: &[Item], is_now: bool) -> Result<()> {
        let mut engines = lock(&self.engines);
        let (bounds, _staging) = engines.bind(shared, items)?;
        engines.run(shared, &bounds, is_now)
    }

    /// Has the copies of a PE wait.
    #[cfg(test)]
    pub(crate) fn hold_up(&self, pe: usize, event: &tandem_cuda::Event) -> tandem_cuda::Result<()> {
        lock(&self.engines).streams_of(pe).iter().try_for_each(|stream| stream.wait(event))
    }

    /// Lets resident kernels end.
    pub(crate) fn leave(&self) {
        self.resident.iter().for_each(|resident| lock(resident).leave());
    }

    /// Whether the resident kernels have done it.
    pub(crate) fn resident(&self, shared: &Planner, items: &[Item]) -> Result<bool> {
        let is_known = |item: &Item| item.numbers.is_none_or(|(kind, how)| kind.is_resident(how));
        let resident = self.resident.as_ref().filter(|_| items.iter().all(is_known));
        resident.map_or(Ok(false), |resident| lock(resident).run(shared, items))
    }
}

/// The devices of a list, each with its number in it.
fn numbered(devices: &[Device]) -> impl Iterator<Item = (usize, Device)> + '_ {
    devices.iter().copied().enumerate()
}

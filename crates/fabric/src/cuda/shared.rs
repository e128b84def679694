//! GPUs of several processes: whose memory is mapped in all, and whose faults all see.

use super::faults::Faults;
use super::OPEN;
use crate::fault::Record;
use crate::place::Span;
use crate::process::{self, Group, Parcel};
use crate::{machine, Error, Result};
use std::sync::Arc;
use tandem_cuda::{Device, Found};

/// What a process knows of the GPUs of all.
pub(super) struct Shared {
    group: Arc<Group>,
    /// By PE: what its process calls its device, and the device's PCI address.
    names: Vec<(String, String)>,
    /// By PE: where its process has PE 0's window.
    heaps: Vec<u64>,
}

impl Shared {
    /// Tells the others which devices this process has, and hears theirs. `terms` must be the same for all, and `heap` is where this
    /// process has PE 0's window.
    ///
    /// # Errors
    /// As of an exchange; a GPU of another process that this one does not see, or whose memory a GPU of this one does not reach.
    pub(super) fn join(group: &Arc<Group>, devices: &[Device], terms: &str, heap: u64) -> Result<Self> {
        let found = tandem_cuda::probe().map_err(|reason| Error::invalid(OPEN, reason))?;
        let pci = |device: &Device| {
            let is = |gpu: &&Found| gpu.index == device.index();
            found.iter().find(is).map_or(String::new(), |gpu| gpu.properties.pci.clone())
        };
        let note = devices.iter().map(|device| format!("{device} {}", pci(device))).collect::<Vec<_>>().join("\n");
        let mine = Parcel { note, numbers: vec![heap], ..Parcel::about(terms) };
        let (mut names, mut heaps) = (Vec::new(), Vec::new());
        for (parcel, pes) in group.exchange(OPEN, mine)?.into_iter().zip(group.pes()) {
            let lines = parcel.note.lines().filter_map(|line| line.split_once(' '));
            names.extend(lines.map(|(name, pci)| (name.to_string(), pci.to_string())));
            heaps.extend(pes.clone().map(|_| parcel.numbers.first().copied().unwrap_or(0)));
            if names.len() != pes.end {
                return Err(Error::processes(OPEN, "a process has not said its GPUs"));
            }
        }
        let shared = Shared { group: group.clone(), names, heaps };
        for pe in (0..shared.names.len()).filter(|pe| !group.local().contains(pe)) {
            shared.reached(pe, devices, &found)?;
        }
        Ok(shared)
    }

    /// Whether the devices of this process read, write and change the memory of another one's PE.
    fn reached(&self, pe: usize, devices: &[Device], found: &[Found]) -> Result<()> {
        let (name, pci) = &self.names[pe];
        let process = self.group.process_of(pe).map_or(String::new(), |process| process.to_string());
        let Some(Ok(there)) = found.iter().find(|gpu| gpu.properties.pci == *pci).map(|gpu| gpu.usable.clone()) else {
            let problem = format!(
                "this process does not see {name} of {process}, which is {pci}: all processes of a team see the GPUs of all \
                 (CUDA_VISIBLE_DEVICES), and each names its own"
            );
            return Err(Error::invalid(OPEN, problem));
        };
        for &device in devices.iter().filter(|device| **device != there) {
            if !device.can_access(there)? || !device.peer_attributes(there)?.1 {
                let problem = format!(
                    "the driver offers {device} no access with atomics to {name} of {process}: GPUs of several processes need it"
                );
                return Err(Error::invalid(OPEN, problem));
            }
        }
        Ok(())
    }

    /// What PE `pe` is.
    pub(super) fn name(&self, pe: usize) -> String {
        self.names[pe].0.clone()
    }

    /// PEs of all processes on the GPU of PE `pe`.
    pub(super) fn sharing(&self, pe: usize) -> usize {
        self.names.iter().filter(|(_, pci)| *pci == self.names[pe].1).count()
    }

    /// Where a team of the world records its faults: process 0 makes the memory. `places` as of [`machine::Machine::faults`].
    pub(super) fn faults(&self, device: Device, places: &[u64], window: u64) -> Result<Arc<dyn machine::Faults>> {
        let op = "share records of faults";
        let bytes = Faults::bytes(places.len()) as u64;
        let is_first = self.group.local().start == 0;
        let failed = |error: std::io::Error| Error::processes(op, error.to_string());
        let made = if is_first { process::make(bytes).map(Some) } else { Ok(None) };
        let note = made.as_ref().err().map_or(String::new(), ToString::to_string);
        let kept = made.and_then(|memory| memory.map(|memory| Ok((memory.try_clone()?, memory))).transpose());
        let (own, given) = kept.unwrap_or(None).unzip();
        let mine = Parcel { note, memory: given.into_iter().collect(), ..Parcel::about("records of faults") };
        let first = self.group.exchange(op, mine)?.swap_remove(0);
        let Some(memory) = own.or(first.memory.into_iter().next()) else {
            return Err(Error::processes(op, format!("process 0 gave no memory: {}", first.note)));
        };
        process::check(&memory, bytes).map_err(failed)?;
        let here = self.heaps[self.group.local().start];
        let member = |&place: &u64| (place.wrapping_sub(here) / window) as usize;
        let heaps = places.iter().map(|place| self.heaps.get(member(place)).copied().unwrap_or(here)).collect();
        let faults = Faults::shared(device, places.len(), &memory)?;
        let here = Span { heap: here, bytes: self.heaps.len() as u64 * window };
        Ok(Arc::new(SharedFaults { faults, here, heaps }))
    }
}

/// Records whose places are addresses of the process that has the PE.
struct SharedFaults {
    faults: Faults,
    /// Where this process has the windows, and by PE of the team where its own process has them.
    here: Span,
    heaps: Vec<u64>,
}

impl machine::Faults for SharedFaults {
    fn get(&self, pe: usize) -> Option<Record> {
        let record = self.faults.get(pe)?;
        let place = Span { heap: self.heaps[pe], ..self.here }.moved(record.place, self.here.heap);
        Some(Record { place, ..record })
    }

    fn put(&self, pe: usize, record: Record) {
        let place = self.here.moved(record.place, self.heaps[pe]);
        self.faults.put(pe, Record { place, ..record });
    }

    fn address(&self, pe: usize) -> usize {
        self.faults.address(pe)
    }
}

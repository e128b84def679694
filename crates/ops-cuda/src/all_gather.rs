//! What several lanes have a piece of each: the fabric gives all of it to all of them.

use crate::lane::LaneCtx;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tandem_cuda::{Device, Stream};
use tandem_fabric::exec::Tuning;
use tandem_fabric::topology::{self, DeviceKind, Link, LinkKind, Rate, Topology};
use tandem_fabric::{Collectives, Options, Team};
use tandem_ops::Lane;

/// `None` where there is no way.
type Opened = HashMap<Vec<Lane>, Option<Collectives>>;

/// The fabric's collectives, by the lanes that take part.
#[derive(Default)]
pub(crate) struct AllGatherCache {
    opened: Arc<Mutex<Opened>>,
    opening: Mutex<Vec<JoinHandle<()>>>,
}

impl AllGatherCache {
    /// Those of these lanes' GPUs, on the lanes' streams; `may_open` where they are not there yet. `None` where two of them are joined by
    /// nothing but PCIe, or the fabric cannot be opened: what a GPU gets then passes its slot anyway, and can as well come from the host.
    pub(crate) fn of(&self, lanes: &[&Arc<LaneCtx>], may_open: bool) -> Option<Collectives> {
        if lanes.len() < 2 {
            return None;
        }
        if may_open {
            make(&self.opened, lanes);
        }
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).get(&numbers(lanes))?.clone()
    }

    /// Opens them on a thread of their own, which holds up nobody but who asks for them before they are there.
    pub(crate) fn expect(&self, lanes: &[&Arc<LaneCtx>]) {
        if lanes.len() < 2 {
            return;
        }
        let (lanes, opened) = (lanes.iter().map(|lane| Arc::clone(lane)).collect::<Vec<_>>(), self.opened.clone());
        let make = move || make(&opened, &lanes.iter().collect::<Vec<_>>());
        // Where there are no threads left, the first upload from page-locked memory does it.
        if let Ok(thread) = std::thread::Builder::new().name("open fabric".into()).spawn(make) {
            self.opening.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
    }
}

impl Drop for AllGatherCache {
    fn drop(&mut self) {
        let threads = std::mem::take(&mut *self.opening.lock().unwrap_or_else(PoisonError::into_inner));
        threads.into_iter().for_each(|thread| _ = thread.join());
    }
}

fn numbers(lanes: &[&Arc<LaneCtx>]) -> Vec<Lane> {
    lanes.iter().map(|lane| lane.lane).collect()
}

/// Opens them if they are not there. Who asks for them meanwhile waits.
fn make(opened: &Mutex<Opened>, lanes: &[&Arc<LaneCtx>]) {
    let (devices, streams): (Vec<Device>, Vec<Arc<Stream>>) =
        lanes.iter().map(|lane| (lane.device, lane.stream().clone())).unzip();
    let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
    let open = || open(&devices, &streams).ok().flatten();
    opened.entry(numbers(lanes)).or_insert_with(open);
}

fn open(devices: &[Device], streams: &[Arc<Stream>]) -> tandem_fabric::Result<Option<Collectives>> {
    for from in devices {
        for to in devices.iter().filter(|to| *to != from) {
            // Atomic operations on a peer's memory tell NVLink from PCIe, and at once: to ask NVML for links takes 60 ms.
            if !(from.can_access(*to)? && from.peer_attributes(*to)?.1) {
                return Ok(None);
            }
        }
    }
    // Copy engines leave the multiprocessors to the lanes. Without helpers and host memory on the way they stage nothing, so that of
    // what may be secret nothing stays in memory of the fabric.
    let tuning = Tuning { engines: 0, ..Tuning::default() };
    let all: Vec<usize> = (0..devices.len()).collect();
    let team = Team::cuda_on(streams, Options::default())?;
    Collectives::of(&team, &joined(devices.len())?, &all, tuning).map(Some)
}

/// GPUs each of which is joined to each other alike.
fn joined(gpus: usize) -> tandem_fabric::Result<Topology> {
    let device =
        |i: usize| topology::Device { name: format!("GPU{i}"), kind: DeviceKind::Gpu, attributes: Default::default() };
    let rate = Rate::from_gbs(1.0).ok_or_else(|| tandem_fabric::Error::Job("a rate".into()))?;
    let link = |(a, b): (usize, usize)| Link { a, b, kind: LinkKind::NvLink, count: 1, forth: rate, back: rate };
    let pairs = (0..gpus).flat_map(|b| (0..b).map(move |a| (a, b)));
    Ok(Topology::new("lanes", (0..gpus).map(device).collect(), pairs.map(link).collect())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_fabric::exec::{schedule, Call, Place, Shape};
    use tandem_fabric::plan::{plan, Operation, Request};

    #[test]
    fn each_piece_goes_straight_to_every_lane() {
        for n in 2..=16 {
            let topology = joined(n).unwrap();
            let request = Request::new(Operation::AllGather, &(0..n).collect::<Vec<_>>());
            let call = Call { operation: Operation::AllGather, root: 0, part: 1 << 20, unit: 8, in_place: true };
            let shape = Shape { workers: 1, chunk: 1 << 24, slots: 3 };
            let table = schedule(&topology, &plan(&topology, &request).unwrap(), &call, &shape).unwrap();
            assert!(table.staging.iter().all(|bytes| *bytes == 0), "{n} lanes");
            let sources = table.transfers.iter().flat_map(|transfer| &transfer.sources);
            assert!(sources.into_iter().all(|source| source.place == Place::Input), "{n} lanes");
        }
    }
}

//! What GPUs draw and move while they work, read ten times a second of the driver's management library, for traces.

use crate::DeviceReport;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tandem_ops_cuda::nvml::{Nvml, Reading};

/// Between two readings of a GPU.
const PERIOD: Duration = Duration::from_millis(100);

/// A value of a lane at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gauge {
    /// The lane.
    pub lane: usize,
    /// When.
    pub at: Instant,
    /// What, with its unit: a constant, so that a trace can hold nothing of a witness.
    pub name: &'static str,
    /// How much.
    pub value: f64,
}

/// Reads the gauges of lanes until it is ended, or dropped. A GPU has a thread of its own, as to read what PCIe moves takes 40 ms.
#[derive(Debug)]
pub struct Gauges {
    stop: Arc<Stop>,
    readers: Vec<JoinHandle<Vec<Gauge>>>,
}

#[derive(Debug, Default)]
struct Stop {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    fn set(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits so long, or until it is set: whether it is.
    fn wait(&self, time: Duration) -> bool {
        let guard = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(guard, time, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Gauges {
    /// Begins to read those of the lanes of `report` that are GPUs: none where the library does not know them.
    pub fn begin(report: &DeviceReport) -> Self {
        let gpus = tandem_ops_cuda::probe().unwrap_or_default();
        let reader = |(lane, name): (usize, &String)| {
            let gpu = gpus.iter().find(|gpu| name.ends_with(&format!("(cuda:{})", gpu.index)))?;
            let (nvml, pci) = (Nvml::load().ok()?, gpu.properties.pci.clone());
            Some((lane, move || nvml.gpu(&pci).map(|gpu| gpu.reading())))
        };
        Self::of(report.lanes.iter().enumerate().filter_map(reader))
    }

    /// Begins to read lanes by these functions.
    fn of<R: FnMut() -> Option<Reading> + Send + 'static>(lanes: impl Iterator<Item = (usize, R)>) -> Self {
        let stop = Arc::new(Stop::default());
        let reader = |(lane, mut read): (usize, R)| {
            let stop = stop.clone();
            let run = move || {
                let (mut gauges, mut before) = (Vec::new(), None);
                loop {
                    let begun = Instant::now();
                    let Some(reading) = read() else { return gauges };
                    let now = (Instant::now(), reading);
                    gauges.extend(values(before, now).map(|(name, value)| Gauge { lane, at: now.0, name, value }));
                    before = Some(now);
                    if stop.wait(PERIOD.saturating_sub(begun.elapsed())) {
                        return gauges;
                    }
                }
            };
            std::thread::Builder::new().name("gauges".into()).spawn(run).ok()
        };
        let readers = lanes.filter_map(reader).collect();
        Gauges { stop, readers }
    }

    /// Reads no more: what was read.
    pub fn end(mut self) -> Vec<Gauge> {
        self.stop.set();
        let readers = std::mem::take(&mut self.readers);
        readers.into_iter().flat_map(|reader| reader.join().unwrap_or_default()).collect()
    }
}

impl Drop for Gauges {
    fn drop(&mut self) {
        self.stop.set();
    }
}

/// What two readings say. NVLinks count what they have moved: a rate takes both.
fn values(before: Option<(Instant, Reading)>, now: (Instant, Reading)) -> impl Iterator<Item = (&'static str, f64)> {
    let (at, reading) = now;
    let links = before.and_then(|(since, before)| {
        let seconds = at.saturating_duration_since(since).as_secs_f64();
        let (then, now) = (before.nvlink?, reading.nvlink?);
        let rate = |way: usize| now[way].saturating_sub(then[way]) as f64 * 1024.0 / 1e9 / seconds;
        (seconds > 0.0).then(|| [rate(0), rate(1)])
    });
    let slot = reading.pcie.map(|both| both.map(|kilobytes| f64::from(kilobytes) / 1e6));
    let each = [
        ("power, W", reading.power),
        ("clock, MHz", reading.clock.map(f64::from)),
        ("memory clock, MHz", reading.memory_clock.map(f64::from)),
        ("PCIe out, GB/s", slot.map(|[sent, _]| sent)),
        ("PCIe in, GB/s", slot.map(|[_, received]| received)),
        ("NVLink out, GB/s", links.map(|[sent, _]| sent)),
        ("NVLink in, GB/s", links.map(|[_, received]| received)),
    ];
    each.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceKind;

    fn reading(nvlink: Option<[u64; 2]>) -> Reading {
        Reading { power: Some(700.5), clock: Some(1980), memory_clock: None, pcie: Some([51_000_000, 250_000]), nvlink }
    }

    #[test]
    fn rates_are_of_what_links_moved_between_two_readings() {
        let begun = Instant::now();
        let first = (begun, reading(Some([1_000_000, 50])));
        let of_first: Vec<_> = values(None, first).collect();
        let slot = [("PCIe out, GB/s", 51.0), ("PCIe in, GB/s", 0.25)];
        assert_eq!(of_first, [&[("power, W", 700.5), ("clock, MHz", 1980.0)][..], &slot].concat());
        // 200 million KiB in half a second; the other way went back, as after a reset.
        let second = (begun + Duration::from_millis(500), reading(Some([201_000_000, 20])));
        let of_second: Vec<_> = values(Some(first), second).skip(4).collect();
        assert_eq!(of_second, [("NVLink out, GB/s", 409.6), ("NVLink in, GB/s", 0.0)]);
        assert_eq!(values(Some(first), (second.0, reading(None))).count(), 4);
        assert_eq!(values(Some(first), first).count(), 4, "no time has passed");
    }

    #[test]
    fn lanes_are_read_until_the_end() {
        let read = |lane: usize| (lane, move || Some(reading(Some([lane as u64; 2]))));
        let gauges = Gauges::of([0, 3].into_iter().map(read));
        std::thread::sleep(3 * PERIOD);
        let begun = Instant::now();
        let gauges = gauges.end();
        assert!(begun.elapsed() < PERIOD, "the end waits for no period");
        for lane in [0, 3] {
            let of_lane: Vec<_> =
                gauges.iter().filter(|gauge| gauge.lane == lane && gauge.name == "power, W").collect();
            assert!(of_lane.len() >= 2 && of_lane.windows(2).all(|pair| pair[1].at > pair[0].at), "{of_lane:?}");
        }
    }

    #[test]
    fn a_lane_that_cannot_be_read_is_left_out() {
        assert!(Gauges::of(std::iter::once((0, || None))).end().is_empty());
        let lanes = vec!["CPU".to_string(), "no GPU (cuda:99999)".to_string()];
        assert!(Gauges::begin(&DeviceReport { kind: DeviceKind::Cpu, lanes, why: String::new() }).end().is_empty());
    }
}

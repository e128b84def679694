//! Sorts on any device, with the device in no type.

use crate::gpus::{self, Opened};
use crate::{DeviceChoice, DeviceReport, Error, Result};
use tandem_ops::sort::{streamed, Host, Plan};
use tandem_ops::{Backend, SortKey, SortOptions};

/// A device that sorts.
pub struct Sorter {
    on: Opened,
    report: DeviceReport,
}

/// Who failed.
enum Failed<E> {
    Device(tandem_ops::Error),
    Caller(E),
}

impl<E> From<tandem_ops::Error> for Failed<E> {
    fn from(error: tandem_ops::Error) -> Self {
        Failed::Device(error)
    }
}

impl Sorter {
    /// Opens the devices of `choice`, `most` lanes at the most.
    ///
    /// # Errors
    /// As [`crate::Engine::open`].
    pub fn open(choice: &DeviceChoice, most: usize) -> Result<Self> {
        let (on, why) = gpus::open(choice, most)?;
        let report = on.report(why);
        Ok(Sorter { on, report })
    }

    /// What was opened.
    pub fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// The backend that sorts.
    pub fn backend(&self) -> &Opened {
        &self.on
    }

    /// How many of `elements` of `bytes` each are sorted at a time, with `budget` bytes of each device's memory at the most.
    ///
    /// # Errors
    /// There is not room for one.
    pub fn plan(&self, elements: usize, bytes: usize, budget: Option<u64>) -> Result<Plan> {
        let info = match &self.on {
            Opened::Cpu(cpu) => cpu.info(),
            Opened::Cuda(cuda) => cuda.info(),
        };
        Ok(Plan::new(elements as u64, bytes as u64, &info.free_bytes, budget)?)
    }

    /// Sorts `data` and passes it to `sink` part by part; `step` is told how many elements were sorted.
    ///
    /// # Errors
    /// What the device, `step` or `sink` reports.
    pub fn sort<K: SortKey, E: From<Error>>(
        &self,
        data: &mut Host<K>,
        plan: &Plan,
        options: SortOptions,
        mut step: impl FnMut(u64) -> std::result::Result<(), E>,
        mut sink: impl FnMut(&Host<K>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let step = |count| step(count).map_err(Failed::Caller);
        let sink = |part: &Host<K>| sink(part).map_err(Failed::Caller);
        let done = match &self.on {
            Opened::Cpu(cpu) => streamed(cpu, data, plan, options, step, sink),
            Opened::Cuda(cuda) => streamed(cuda, data, plan, options, step, sink),
        };
        done.map_err(|failed| match failed {
            Failed::Device(error) => Error::from(error).into(),
            Failed::Caller(error) => error,
        })
    }
}

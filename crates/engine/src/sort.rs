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

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops::cpu::Cpu;

    /// What a check says of keys and values in two pieces, of which `damage` has changed something.
    fn found(descending: bool, damage: impl Fn(&mut [Vec<u32>; 4])) -> String {
        let cpu = Cpu::new(2);
        let keys: Vec<u32> = vec![5, 9, 5, 1, 7, 5];
        let before = SortBench { fingerprint: fingerprint(&keys), values: Some((0..6).collect()), keys };
        let mut all = match descending {
            false => [vec![1, 5, 5], vec![5, 7, 9], vec![3, 0, 2], vec![5, 4, 1]],
            true => [vec![9, 7, 5], vec![5, 5, 1], vec![1, 4, 0], vec![2, 5, 3]],
        };
        damage(&mut all);
        let upload = |i: usize| cpu.upload(Lane(i % 2), &all[i]).unwrap();
        let (keys, values) = ([upload(0), upload(1)], [upload(2), upload(3)]);
        check(&cpu, &before, &keys, &values, descending).map_or_else(|e| e.to_string(), |()| "right".into())
    }

    #[test]
    fn sorts_that_are_wrong_are_not_measured() {
        assert_eq!((found(false, |_| ()), found(true, |_| ())), ("right".into(), "right".into()));
        let (order, meet, value) =
            ("keys 1 and 2 of lane 1 are not in order", "where two pieces meet", "not the one that went in");
        type Damage = fn(&mut [Vec<u32>; 4]);
        let pieces: Damage = |all| {
            all.swap(0, 1);
            all.swap(2, 3);
        };
        let keys: Damage = |all| [1, 3].iter().for_each(|&i| all[i].swap(1, 2));
        // Equal keys within a piece and across.
        let across: Damage = |all| {
            let last = all[2][2];
            (all[2][2], all[3][0]) = (all[3][0], last);
        };
        let within: [Damage; 2] = [|all| all[2].swap(1, 2), |all| all[3].swap(0, 1)];
        for descending in [false, true] {
            let within = within[usize::from(descending)];
            let foreign: Damage = |all| all[2][0] ^= 1;
            for (damage, expected) in [(keys, order), (pieces, meet), (across, meet), (within, value), (foreign, value)]
            {
                let said = found(descending, damage);
                assert!(said.contains(expected), "descending {descending}: {said}, expected {expected}");
            }
        }
        // Without values, other keys than went in, and fewer.
        let cpu = Cpu::new(1);
        let before = SortBench { fingerprint: fingerprint(&[1u32, 2, 3]), values: None, keys: vec![2, 1, 3] };
        for keys in [&[1u32, 2, 4][..], &[1, 1, 3], &[1, 2]] {
            let sorted = [cpu.upload(Lane(0), keys).unwrap()];
            let error = check(&cpu, &before, &sorted, &[], false).unwrap_err().to_string();
            assert!(error.contains("not those that went in"), "{keys:?}: {error}");
        }
    }
}

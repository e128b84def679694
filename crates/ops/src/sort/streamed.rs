//! Sorting what does not fit on the lanes: pieces are sorted one after the other and come back as runs; then the runs are
//! cut at the same keys, and what lies between two cuts is sorted again, which gives the next part of the whole.

use super::{merge, Plan, Sort, SortKey, SortOptions};
use crate::{Error, Lane, Result};
use std::ops::Range;

/// Keys in host memory, with their values if they have any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host<K> {
    /// The keys.
    pub keys: Vec<K>,
    /// A value for each key, or none at all.
    pub values: Option<Vec<K>>,
}

impl<K: SortKey> Host<K> {
    fn write(&mut self, at: usize, from: &Host<K>) {
        self.keys[at..at + from.keys.len()].copy_from_slice(&from.keys);
        if let (Some(to), Some(from)) = (&mut self.values, &from.values) {
            to[at..at + from.len()].copy_from_slice(from);
        }
    }

    /// Parts of it, one behind the other.
    fn gather(&self, parts: &[Range<usize>]) -> Host<K> {
        let of = |all: &[K]| parts.iter().flat_map(|part| all[part.clone()].iter().copied()).collect();
        Host { keys: of(&self.keys), values: self.values.as_deref().map(of) }
    }
}

/// Sorts `data` and passes it on in order, part by part, to `sink`; `data` is used as room meanwhile. Equal keys keep their
/// order. `step` is told how many elements were sorted each time; all are sorted once if the plan takes them at once, else
/// twice.
///
/// # Errors
/// Not as many values as keys, or as the plan is for; what the backend, `step` or `sink` reports.
pub fn streamed<K: SortKey, B: Sort<K>, E: From<Error>>(
    backend: &B,
    data: &mut Host<K>,
    plan: &Plan,
    options: SortOptions,
    mut step: impl FnMut(u64) -> std::result::Result<(), E>,
    mut sink: impl FnMut(&Host<K>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let n = data.keys.len();
    if data.values.as_ref().is_some_and(|values| values.len() != n) || plan.elements != n as u64 {
        let reason = format!("{n} keys, {:?} values, a plan for {}", data.values.as_ref().map(Vec::len), plan.elements);
        return Err(Error::invalid("sort", reason).into());
    }
    let pieces: Vec<Range<usize>> = plan.pieces().map(|piece| piece.start as usize..piece.end as usize).collect();
    if let [_] = pieces[..] {
        let sorted = resident(backend, data, options)?;
        step(n as u64)?;
        return sink(&sorted);
    }
    for piece in &pieces {
        let sorted = resident(backend, &data.gather(std::slice::from_ref(piece)), options)?;
        data.write(piece.start, &sorted);
        step(piece.len() as u64)?;
    }
    let runs: Vec<&[K]> = pieces.iter().map(|piece| &data.keys[piece.clone()]).collect();
    let mut from = vec![0; runs.len()];
    for piece in &pieces {
        let to = merge::cut(&runs, piece.end as u64, options.descending);
        let between = |run: usize| pieces[run].start + from[run]..pieces[run].start + to[run];
        let parts: Vec<Range<usize>> = (0..runs.len()).map(between).collect();
        // Earlier runs come first, so that equal keys keep their order.
        let sorted = resident(backend, &data.gather(&parts), options)?;
        step(piece.len() as u64)?;
        sink(&sorted)?;
        from = to;
    }
    Ok(())
}

/// Sorts what fits on the lanes, each of which gets an equal share.
fn resident<K: SortKey, B: Sort<K>>(backend: &B, data: &Host<K>, options: SortOptions) -> Result<Host<K>> {
    let (n, lanes) = (data.keys.len(), backend.lanes());
    let share = |lane: usize| n / lanes * lane + lane.min(n % lanes);
    let upload = |all: &[K]| -> Result<Vec<B::Buf<K>>> {
        (0..lanes).map(|lane| backend.upload(Lane(lane), &all[share(lane)..share(lane + 1)])).collect()
    };
    let download = |bufs: &[B::Buf<K>]| -> Result<Vec<K>> {
        let pending = bufs.iter().map(|buf| backend.download(buf)).collect::<Result<Vec<_>>>()?;
        let parts = pending.into_iter().map(|part| part.wait()).collect::<Result<Vec<_>>>()?;
        Ok(parts.concat())
    };
    let mut keys = upload(&data.keys)?;
    let values = match &data.values {
        None => {
            backend.sort(&mut keys.iter_mut().collect::<Vec<_>>(), options)?;
            None
        }
        Some(values) => {
            let mut values = upload(values)?;
            let (keys, values_to) =
                (&mut keys.iter_mut().collect::<Vec<_>>(), &mut values.iter_mut().collect::<Vec<_>>());
            backend.sort_pairs(keys, values_to, options)?;
            Some(download(&values)?)
        }
    };
    Ok(Host { keys: download(&keys)?, values })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Cpu;
    use crate::naive;

    #[test]
    fn pieces_of_any_size_give_the_same_order() {
        for lanes in [1, 3] {
            let backend = Cpu::new(lanes);
            for (n, modulus) in [(0, 1), (1, 1), (7, 3), (100, 7), (1000, 1 << 30), (1001, 2)] {
                let keys: Vec<u64> = (0..n).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % modulus).collect();
                let values: Vec<u64> = (0..n).collect();
                for (at_once, descending) in [(1, false), (3, true), (99, false), (100, true), (5000, false)] {
                    if n / at_once > 400 {
                        continue;
                    }
                    let expected = naive::sort(&keys, descending);
                    let mut data = Host { keys: keys.clone(), values: Some(values.clone()) };
                    let (mut got, mut steps) = (Host::<u64> { keys: Vec::new(), values: Some(Vec::new()) }, 0);
                    let plan = Plan { elements: n, at_once };
                    let options = SortOptions { descending, way: None };
                    streamed(
                        &backend,
                        &mut data,
                        &plan,
                        options,
                        |count| {
                            steps += count;
                            Ok::<_, Error>(())
                        },
                        |part: &Host<u64>| {
                            got.keys.extend(&part.keys);
                            got.values.as_mut().unwrap().extend(part.values.as_ref().unwrap());
                            Ok(())
                        },
                    )
                    .unwrap();
                    assert_eq!(got.keys, expected.iter().map(|&i| keys[i]).collect::<Vec<_>>());
                    assert_eq!(got.values.unwrap(), expected.iter().map(|&i| i as u64).collect::<Vec<_>>());
                    assert_eq!(steps, if plan.is_resident() { n } else { 2 * n });
                }
            }
        }
    }

    #[test]
    fn a_failure_ends_it() {
        let mut data = Host { keys: vec![3u32, 1, 2], values: None };
        let plan = Plan { elements: 3, at_once: 1 };
        let stop = |count| Err(Error::invalid("stop", format!("{count}")));
        let result = streamed(&Cpu::new(1), &mut data, &plan, SortOptions::default(), stop, |_| Ok(()));
        assert!(result.unwrap_err().to_string().contains("stop: 1"));
        let plan = Plan { elements: 4, at_once: 1 };
        let result =
            streamed(&Cpu::new(1), &mut data, &plan, SortOptions::default(), |_| Ok::<_, Error>(()), |_| Ok(()));
        assert!(result.unwrap_err().to_string().contains("3 keys"));
        let mut data = Host { values: Some(vec![1, 2]), ..data };
        let plan = Plan { elements: 3, at_once: 9 };
        let result =
            streamed(&Cpu::new(1), &mut data, &plan, SortOptions::default(), |_| Ok::<_, Error>(()), |_| Ok(()));
        assert!(result.unwrap_err().to_string().contains("3 keys, Some(2) values"));
    }
}

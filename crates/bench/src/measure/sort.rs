//! Sorts of keys that lie on the lanes. What comes out is checked before times are told.

use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tandem_engine::gpus::Opened;
use tandem_engine::{Error, Result, Sorter};
use tandem_ops::{Backend, Buffer, Lane, Sort, SortKey, SortOptions};

/// How the keys of a bench are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Distribution {
    /// Every key as likely as every other
    Random,
    /// One key
    Equal,
    /// In order already
    Sorted,
    /// In the opposite order
    Reversed,
    /// Numbers up to a million, each as often as it is small
    Zipf,
    /// Nine of ten are one and the same
    Heavy,
}

/// Keys to measure sorts with.
pub(crate) struct SortBench<K> {
    keys: Vec<K>,
    /// The places of the keys.
    values: Option<Vec<K>>,
    /// Tells whether sorted keys are these.
    fingerprint: u64,
}

impl<K: SortKey> SortBench<K> {
    /// Keys of this distribution, and with `pairs` values that go with them.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new(distribution: Distribution, elements: usize, pairs: bool) -> Result<Self> {
        let keys = made(elements, &|i| key(distribution, i, elements))?;
        let values = if pairs { Some(made(elements, &|i| K::from_low(i as u64))?) } else { None };
        let fingerprint = by_all(&keys, fingerprint);
        Ok(SortBench { keys, values, fingerprint })
    }
}

/// Seconds that each of `runs` sorts took, after one to warm up, with keys that lie on the lanes in equal shares.
///
/// # Errors
/// Not enough memory; what comes out is not in order, or not what went in.
pub(crate) fn bench<K: SortKey>(
    sorter: &Sorter,
    what: &SortBench<K>,
    options: SortOptions,
    runs: usize,
) -> Result<Vec<f64>> {
    match sorter.backend() {
        Opened::Cpu(cpu) => bench_on(cpu, what, options, runs),
        Opened::Cuda(cuda) => bench_on(cuda, what, options, runs),
    }
}

fn bench_on<K: SortKey, B: Sort<K>>(
    backend: &B,
    what: &SortBench<K>,
    options: SortOptions,
    runs: usize,
) -> Result<Vec<f64>> {
    let (n, lanes) = (what.keys.len(), backend.lanes());
    let share = |lane: usize| n / lanes * lane + lane.min(n % lanes);
    let upload = |all: &[K]| -> Result<Vec<B::Buf<K>>> {
        (0..lanes).map(|lane| Ok(backend.upload(Lane(lane), &all[share(lane)..share(lane + 1)])?)).collect()
    };
    let copy = |bufs: &[B::Buf<K>]| -> Result<Vec<B::Buf<K>>> {
        let of = |(lane, buf)| Ok(backend.copy(buf, 0..share(lane + 1) - share(lane), Lane(lane))?);
        bufs.iter().enumerate().map(of).collect()
    };
    let keys = upload(&what.keys)?;
    let values = what.values.as_deref().map_or(Ok(Vec::new()), upload)?;
    let mut seconds = Vec::with_capacity(runs);
    for run in 0..=runs {
        let (mut sorted, mut along) = (copy(&keys)?, copy(&values)?);
        backend.synchronize()?;
        let started = Instant::now();
        let mut refs: Vec<_> = sorted.iter_mut().collect();
        if what.values.is_some() {
            backend.sort_pairs(&mut refs, &mut along.iter_mut().collect::<Vec<_>>(), options)?;
        } else {
            backend.sort(&mut refs, options)?;
        }
        backend.synchronize()?;
        if run > 0 {
            seconds.push(started.elapsed().as_secs_f64());
        }
        if run == runs {
            check(backend, what, &sorted, &along, options.descending)?;
        }
    }
    Ok(seconds)
}

/// Elements that a thread checks at a time.
const PIECE: usize = 4 << 20;

/// Fails unless `keys` are those of `before` in order, and `values` say where each of them was, equal ones in that order.
fn check<K: SortKey, B: Backend>(
    backend: &B,
    before: &SortBench<K>,
    keys: &[B::Buf<K>],
    values: &[B::Buf<K>],
    descending: bool,
) -> Result<()> {
    let whole = |buf| (0..Buffer::len(buf)).step_by(PIECE).map(move |at| at..Buffer::len(buf).min(at + PIECE));
    let pieces: Vec<(usize, Range<usize>)> =
        keys.iter().enumerate().flat_map(|(lane, buf)| whole(buf).map(move |range| (lane, range))).collect();
    let failed = |problem: String| Error::Device(format!("{problem}: nothing to measure"));
    let part = |(lane, range): &(usize, Range<usize>)| -> Result<Checked<K>> {
        let get = |buf| Ok::<_, Error>(backend.download(&backend.copy(buf, range.clone(), Lane(*lane))?)?.wait()?);
        let keys = get(&keys[*lane])?;
        let values = values.get(*lane).map(get).transpose()?;
        if let Some(i) = (1..keys.len()).find(|&i| keys[i - 1] != keys[i] && (keys[i - 1] > keys[i]) != descending) {
            return Err(failed(format!(
                "keys {} and {} of lane {lane} are not in order",
                range.start + i - 1,
                range.start + i
            )));
        }
        if let Some(values) = &values {
            let is_wrong = |&i: &usize| {
                let moved = before.keys.get(values[i].to_u64() as usize) != Some(&keys[i]);
                moved || (i > 0 && keys[i - 1] == keys[i] && values[i - 1] >= values[i])
            };
            if let Some(i) = (0..keys.len()).find(is_wrong) {
                let at = range.start + i;
                return Err(failed(format!(
                    "the value of key {at} of lane {lane} is not the one that went in with it"
                )));
            }
        }
        let at = |i: usize| (keys[i], values.as_ref().map(|values| values[i]));
        Ok(Checked { count: keys.len(), fingerprint: fingerprint(&keys), ends: [at(0), at(keys.len() - 1)] })
    };
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(16) {
            scope.spawn(|_| loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(i) else { break };
                let checked = part(piece);
                found.lock().unwrap_or_else(PoisonError::into_inner).insert(i, checked);
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let found = found.into_values().collect::<Result<Vec<Checked<K>>>>()?;
    for pair in found.windows(2) {
        let ((a, value_a), (b, value_b)) = (pair[0].ends[1], pair[1].ends[0]);
        if (a != b && (a > b) != descending) || (a == b && value_a.is_some() && value_a >= value_b) {
            return Err(failed("where two pieces meet, elements are not in order".into()));
        }
    }
    let count: usize = found.iter().map(|part| part.count).sum();
    let fingerprint = found.iter().fold(0u64, |sum, part| sum.wrapping_add(part.fingerprint));
    if count != before.keys.len() || fingerprint != before.fingerprint {
        return Err(failed("the keys are not those that went in".into()));
    }
    Ok(())
}

/// A piece that is in order.
struct Checked<K> {
    count: usize,
    fingerprint: u64,
    /// Its first and its last key, each with its value.
    ends: [(K, Option<K>); 2],
}

/// A number that is equal for equal keys in any order: a sum of what looks random.
fn fingerprint<K: SortKey>(keys: &[K]) -> u64 {
    keys.iter().fold(0u64, |sum, key| sum.wrapping_add(mix(key.to_u64() ^ 0x5bd1_e995)))
}

/// The sum of what all processors find for a part of `keys` each.
fn by_all<K: SortKey>(keys: &[K], find: impl Fn(&[K]) -> u64 + Sync + Send) -> u64 {
    let parts = keys.par_chunks(keys.len().div_ceil(rayon::current_num_threads()).max(1));
    parts.map(find).reduce(|| 0, u64::wrapping_add)
}

/// `make(0)`, `make(1)` and so on, by all processors.
fn made<K: SortKey>(n: usize, make: &(dyn Fn(usize) -> K + Sync)) -> Result<Vec<K>> {
    tandem_ops::memory::reserve::<K>("make keys", n)?;
    // Zeros that the system hands out page by page, to each thread its own.
    let mut all = vec![K::default(); n];
    let share = n.div_ceil(rayon::current_num_threads()).max(1);
    let fill = |(t, part): (usize, &mut [K])| part.iter_mut().enumerate().for_each(|(i, to)| *to = make(t * share + i));
    all.par_chunks_mut(share).enumerate().for_each(fill);
    Ok(all)
}

/// Key `i` of `n`.
fn key<K: SortKey>(distribution: Distribution, i: usize, n: usize) -> K {
    let random = mix((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let high = |x: u64| K::from_low(x >> (64 - 8 * size_of::<K>() as u32));
    let step = u64::MAX / (n as u64).max(1);
    match distribution {
        Distribution::Random => high(random),
        Distribution::Equal => K::from_low(77),
        Distribution::Sorted => high(i as u64 * step),
        Distribution::Reversed => high((n - i) as u64 * step),
        // The inverse of the distribution function: ln x / ln 10^6.
        Distribution::Zipf => K::from_low((1e6f64.ln() * (random >> 11) as f64 / (1u64 << 53) as f64).exp() as u64),
        Distribution::Heavy if random.is_multiple_of(10) => high(mix(random)),
        Distribution::Heavy => high(0x8123_4567_89ab_cdef),
    }
}

/// A number that looks random (the finalizer of splitmix64).
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
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

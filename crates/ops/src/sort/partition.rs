//! One partition over lanes: who receives which keys.
//!
//! From [`SAMPLES`] keys, taken at random places of the whole sequence, follows a *splitter* for each border between two
//! lanes. Every lane counts its keys between the splitters, and those equal to each; from the counts of all lanes follows
//! the place of each key in the sequence of the buckets. Lanes receive consecutive parts of that: a border lies where its
//! splitter is, or, among keys that equal the splitter, exactly where the lanes' shares meet. Many equal keys therefore
//! fill no lane with more than its share; a key's place depends on its bucket, its lane and its index alone, so that equal
//! keys keep their order.
//!
//! The GPU does the same in `native/src/sort`, with the first digit of the keys as further buckets.

use super::SortKey;
use crate::{Error, Result};

/// Keys that are looked at.
pub const SAMPLES: usize = 6144;

/// Samples that are taken anew, with other places, before it is an error that a lane would receive too many keys.
pub const ATTEMPTS: u64 = 4;

/// A number that looks random (the finalizer of splitmix64).
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Place of sample `i` in a sequence of `length` elements.
pub fn sample_at(seed: u64, i: usize, length: u64) -> u64 {
    let random = mix(seed.wrapping_add((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    ((u128::from(random) * u128::from(length)) >> 64) as u64
}

/// The splitter of each border, from sorted samples and the borders of the lanes' shares.
pub fn splitters<K: SortKey>(samples: &[K], borders: &[u64]) -> Vec<K> {
    let all = u128::from(borders[borders.len() - 1].max(1));
    let inner = &borders[1..borders.len() - 1];
    let at = |&border: &u64| (u128::from(border) * samples.len() as u128 / all) as usize;
    inner.iter().map(|border| samples[at(border).min(samples.len() - 1)]).collect()
}

/// The bucket of a key: twice the number of splitters below it, and one more for each that it equals.
pub fn bucket<K: SortKey>(key: K, splitters: &[K]) -> usize {
    splitters.iter().map(|&s| usize::from(key >= s) + usize::from(key > s)).sum()
}

/// Keys that a lane has room for, at the most, if its share is `share` of `all`.
///
/// The border at a share q of the sequence is off by a standard deviation of sqrt(q (1 - q) / SAMPLES) of it, at most
/// 1 / 157. With 1 / 24 of the sequence to spare, a sample does not fit with a probability below 10^-9 where a lane has one
/// border with others, and below 10^-4 where both of its borders are off; then another is taken.
pub fn room(share: u64, all: u64, lanes: usize) -> u64 {
    match lanes {
        1 => share,
        _ => all.min(share + all / 24 + 1024),
    }
}

/// Where everything goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Places in the whole sequence at which the lanes' received keys begin, and its length.
    pub cuts: Vec<u64>,
    /// Of each lane, the place of its first key of each bucket.
    pub first: Vec<Vec<u64>>,
}

impl Places {
    /// From the lanes' counts of each bucket, the splitters and the borders of the lanes' shares.
    ///
    /// # Errors
    /// A lane would receive more keys than it has room for.
    pub fn new<K: SortKey>(counts: &[Vec<u64>], splitters: &[K], borders: &[u64]) -> Result<Self> {
        let (lanes, buckets) = (counts.len(), 2 * splitters.len() + 1);
        let totals = (0..buckets).map(|b| counts.iter().map(|of| of[b] as usize).sum());
        let begin = super::borders(totals);
        let all = begin[buckets];
        let mut cuts = vec![0];
        for (&splitter, &border) in splitters.iter().zip(&borders[1..]) {
            let equal = bucket(splitter, splitters);
            cuts.push(border.clamp(begin[equal], begin[equal + 1]));
        }
        cuts.push(all);
        for lane in 0..lanes {
            let (share, received) = (borders[lane + 1] - borders[lane], cuts[lane + 1] - cuts[lane]);
            if received > room(share, all, lanes) {
                let reason = format!("lane {lane} would receive {received} of {all} keys for a share of {share}");
                return Err(Error::invalid("sort", reason));
            }
        }
        let mut next = begin;
        let first = counts.iter().map(|of| {
            let first = next[..buckets].to_vec();
            next.iter_mut().zip(of).for_each(|(place, count)| *place += count);
            first
        });
        let first = first.collect();
        Ok(Places { cuts, first })
    }
}

/// Lane whose part has place `at`, of parts that begin at `borders`.
pub fn owner(borders: &[u64], at: u64) -> usize {
    borders[1..borders.len() - 1].partition_point(|&border| border <= at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Partitions and checks all that is promised; returns the most that a lane received beyond its share, as a part of all.
    fn run(pieces: &[Vec<u64>], seed: u64) -> f64 {
        let borders = crate::sort::borders(pieces.iter().map(Vec::len));
        let all: Vec<u64> = pieces.concat();
        let n = all.len() as u64;
        let mut samples: Vec<u64> = (0..SAMPLES).map(|i| all[sample_at(seed, i, n) as usize]).collect();
        samples.sort_unstable();
        let splitters = splitters(&samples, &borders);
        let mut counts = vec![vec![0; 2 * splitters.len() + 1]; pieces.len()];
        for (piece, counts) in pieces.iter().zip(&mut counts) {
            piece.iter().for_each(|&key| counts[bucket(key, &splitters)] += 1);
        }
        let places = Places::new(&counts, &splitters, &borders).unwrap();
        assert!(places.cuts.is_sorted() && places.cuts.len() == borders.len());
        // Every place is taken once; lanes receive keys in order; equal keys stay in order.
        let mut order = vec![None; all.len()];
        for (lane, piece) in pieces.iter().enumerate() {
            let mut next = places.first[lane].clone();
            for (i, &key) in piece.iter().enumerate() {
                let place = &mut next[bucket(key, &splitters)];
                assert!(order[*place as usize].replace((key, lane, i)).is_none());
                *place += 1;
            }
        }
        let order: Vec<_> = order.into_iter().map(Option::unwrap).collect();
        let mut previous = None;
        for lane in 0..pieces.len() {
            let mut part = order[places.cuts[lane] as usize..places.cuts[lane + 1] as usize].to_vec();
            part.sort_by_key(|&(key, ..)| key);
            assert!(part.is_sorted() && part.first().is_none_or(|first| previous.is_none_or(|last| last < *first)));
            assert!(places.cuts[lane..lane + 2].windows(2).all(|c| c[0] == c[1] || owner(&places.cuts, c[0]) == lane));
            previous = part.last().copied().or(previous);
        }
        let beyond = |lane: usize| {
            places.cuts[lane + 1]
                - places.cuts[lane]
                - (borders[lane + 1] - borders[lane]).min(places.cuts[lane + 1] - places.cuts[lane])
        };
        (0..pieces.len()).map(beyond).max().unwrap_or(0) as f64 / n.max(1) as f64
    }

    fn keys(name: &str, n: u64) -> Vec<u64> {
        let random = |i| mix(i * 7 + 1);
        (0..n)
            .map(|i| match name {
                "random" => random(i),
                "equal" => 5,
                "sorted" => i,
                "reversed" => n - i,
                "zipf" => ((n as f64).ln() * (random(i) >> 11) as f64 / (1u64 << 53) as f64).exp() as u64,
                "90 % one" if !random(i).is_multiple_of(10) => 1 << 40,
                "90 % one" => random(i + n),
                "two" => random(i) & 1,
                _ => u64::MAX - random(i) % 3,
            })
            .collect()
    }

    #[test]
    fn no_lane_gets_much_more_than_its_share() {
        for name in ["random", "equal", "sorted", "reversed", "zipf", "90 % one", "two", "high"] {
            for lanes in 1..=8 {
                for n in [1, 2, 3, 1000, 30_000, 200_003] {
                    let all = keys(name, n);
                    let even = all.chunks((n as usize).div_ceil(lanes)).map(<[u64]>::to_vec);
                    let mut even: Vec<_> = even.collect();
                    even.resize(lanes, Vec::new());
                    let beyond = run(&even, n);
                    assert!(n < 30_000 || beyond < 0.04, "{name}, {n} keys on {lanes} lanes: {beyond}");
                    // All on one lane, and nothing on others.
                    let mut uneven = vec![Vec::new(); lanes];
                    uneven[n as usize % lanes] = all;
                    run(&uneven, n);
                }
            }
        }
    }

    #[test]
    fn a_sample_that_misleads_is_refused() {
        // As if the sample had seen nothing of the keys that most are.
        let borders = [0, 100_000, 200_000];
        let counts = [vec![1000, 1, 98_999], vec![1000, 0, 99_000]];
        let error = Places::new(&counts, &[7u64], &borders).unwrap_err().to_string();
        assert!(error.contains("lane 1 would receive"), "{error}");
    }

    #[test]
    fn samples_are_spread_over_the_whole_sequence() {
        for n in [1, 2, 1000, u64::MAX / 3] {
            let places: Vec<u64> = (0..SAMPLES).map(|i| sample_at(3, i, n)).collect();
            assert!(places.iter().all(|&at| at < n));
            let low = places.iter().filter(|&&at| at < n / 2).count();
            assert!(n < 1000 || (SAMPLES / 2 - 250..SAMPLES / 2 + 250).contains(&low), "{low}");
        }
    }
}

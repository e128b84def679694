//! Sorted runs: where to cut them, and how to merge two.

use super::{comparable, SortKey};

/// How many elements of each sorted run are among the first `rank` of all: of equal keys, those of earlier runs come first.
///
/// The key at the cut is found bit by bit: it is the greatest number that at most `rank` keys are below.
pub fn cut<K: SortKey>(runs: &[&[K]], rank: u64, descending: bool) -> Vec<usize> {
    let number = |key: K| comparable(key, descending).to_u64();
    let below = |run: &[K], x: u64| run.partition_point(|&key| number(key) < x);
    let width = 8 * size_of::<K>();
    let mut at = 0u64;
    for bit in (0..width).rev() {
        let x = at | 1 << bit;
        if runs.iter().map(|run| below(run, x) as u64).sum::<u64>() <= rank {
            at = x;
        }
    }
    let mut cuts: Vec<usize> = runs.iter().map(|run| run.partition_point(|&key| number(key) < at)).collect();
    let mut left = rank.saturating_sub(cuts.iter().map(|&c| c as u64).sum());
    // Complemented keys of fewer bits than a u64 stay within their width, so that `at` is one of them.
    for (cut, run) in cuts.iter_mut().zip(runs) {
        let equal = run[*cut..].partition_point(|&key| number(key) == at);
        let take = left.min(equal as u64);
        *cut += take as usize;
        left -= take;
    }
    cuts
}

/// The elements of two sorted runs in order; of equal keys those of `a` come first.
pub fn merge<K: SortKey, V: Copy>(a: &[(K, V)], b: &[(K, V)], descending: bool) -> Vec<(K, V)> {
    let mut merged = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if comparable(b[j].0, descending) < comparable(a[i].0, descending) {
            merged.push(b[j]);
            j += 1;
        } else {
            merged.push(a[i]);
            i += 1;
        }
    }
    merged.extend_from_slice(&a[i..]);
    merged.extend_from_slice(&b[j..]);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(seed: u32, modulus: u32, descending: bool) -> Vec<Vec<u32>> {
        let mut state = seed;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 4
        };
        (0..1 + seed as usize % 5)
            .map(|_| {
                let mut run: Vec<u32> = (0..random() % 40).map(|_| (random() % modulus).wrapping_sub(3)).collect();
                run.sort_by_key(|&key| comparable(key, descending));
                run
            })
            .collect()
    }

    #[test]
    fn cuts_are_those_of_the_merged_sequence() {
        for seed in 0..200 {
            for (modulus, descending) in [(4, false), (4, true), (1 << 27, false), (1 << 27, true)] {
                let runs = runs(seed, modulus, descending);
                let slices: Vec<&[u32]> = runs.iter().map(Vec::as_slice).collect();
                let tagged = runs.iter().enumerate().flat_map(|(r, run)| run.iter().map(move |&key| (key, r)));
                let mut all: Vec<(u32, usize)> = tagged.collect();
                all.sort_by_key(|&(key, _)| comparable(key, descending));
                for rank in 0..=all.len() {
                    let expected: Vec<usize> =
                        (0..runs.len()).map(|r| all[..rank].iter().filter(|x| x.1 == r).count()).collect();
                    assert_eq!(cut(&slices, rank as u64, descending), expected, "seed {seed}, rank {rank}");
                }
            }
        }
    }

    #[test]
    fn merging_keeps_the_order_of_equal_keys() {
        for seed in 0..100 {
            for descending in [false, true] {
                let runs = [runs(2 * seed + 1, 5, descending), runs(seed + 3, 5, descending)].concat();
                let tag = |r: usize| runs[r].iter().enumerate().map(|(i, &key)| (key, (r, i))).collect::<Vec<_>>();
                let (a, b) = (tag(0), tag(runs.len() - 1));
                let mut expected = [a.clone(), b.clone()].concat();
                expected.sort_by_key(|&(key, _)| comparable(key, descending));
                assert_eq!(merge(&a, &b, descending), expected);
            }
        }
    }
}

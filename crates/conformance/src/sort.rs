//! Sort: keys and pairs of every kind, dealt evenly and unevenly over one lane and over all.

use crate::{samples, Outcome, Suite};
use rand_chacha::rand_core::RngCore;
use tandem_ops::{naive, Backend, Buffer, Lane, Sort, SortKey, SortOptions, SortWay};

/// How keys are distributed.
const KEYS: [&str; 13] = [
    "random",
    "equal",
    "sorted",
    "reversed",
    "zipf",
    "90 % one value",
    "two values",
    "powers of two",
    "of every length",
    "few bits set",
    "small but for one",
    "first and last bits",
    "the greatest",
];

/// Sizes up to this are compared with the definition.
const NAIVE: usize = 1000;

impl<B: Backend> Suite<'_, B> {
    /// Sorts of 32 and 64 bits: what a block holds and one more, every distribution, ascending and descending, values that
    /// say whether equal keys kept their order.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn sort(&mut self) -> Outcome
    where
        B: Sort<u32> + Sort<u64>,
    {
        self.sort_of::<u32>()?;
        self.sort_of::<u64>()
    }

    fn sort_of<K: SortKey>(&mut self) -> Outcome
    where
        B: Sort<K>,
    {
        let most = 1usize << self.log_n;
        let sizes =
            [0, 1, 2, 3, 5, 31, 32, 33, 255, 257, 1000, 6143, 6144, 6145, most - 1, most, most + 1, 5 * most / 4];
        // A tool that watches every access takes seconds for one: then sizes see one distribution each, and the largest some.
        let (of_largest, of_others) = if self.log_n < 10 { (3, 13) } else { (1, 4) };
        for (i, n) in sizes.into_iter().enumerate() {
            // The largest sort sees every distribution, the others some.
            let every = if n == most + 1 { of_largest } else { of_others };
            for (d, name) in KEYS.into_iter().enumerate().filter(|(d, _)| (d + i) % every == 0) {
                let keys = keys::<K>(name, n);
                if !self.takes() {
                    continue;
                }
                for (lanes, uneven) in self.deals() {
                    let ways = if lanes == 1 { 1 } else { 2 };
                    for way in [None, Some(SortWay::Merge)].into_iter().take(ways) {
                        let options = SortOptions { descending: (d + i) % 2 == 1, way };
                        self.sorts(name, &keys, lanes, uneven, options)?;
                    }
                }
            }
        }
        if self.takes() {
            self.sort_refusals::<K>()?;
        }
        Ok(())
    }

    /// On how many lanes, and whether the last of them has most.
    fn deals(&self) -> Vec<(usize, bool)> {
        let lanes = self.backend.lanes();
        match lanes {
            1 => vec![(1, false)],
            _ => vec![(1, false), (lanes, false), (lanes, true)],
        }
    }

    fn sorts<K: SortKey>(&mut self, name: &str, keys: &[K], lanes: usize, uneven: bool, options: SortOptions) -> Outcome
    where
        B: Sort<K>,
    {
        let (backend, n) = (self.backend, keys.len());
        let what = format!("{n} {} keys, {name}, on {lanes} lanes (uneven: {uneven}), {options:?}", K::NAME);
        let order = order(keys, options.descending);
        let values: Vec<K> = (0..n).map(|i| K::from_low(i as u64)).collect();
        // Lanes in reverse, so that a piece's lane is not its number.
        let border = |i: usize| if uneven && i < lanes { n / 7 * i / lanes } else { n * i / lanes };
        let deal = |all: &[K]| -> tandem_ops::Result<Vec<B::Buf<K>>> {
            (0..lanes).map(|i| backend.upload(Lane(lanes - 1 - i), &all[border(i)..border(i + 1)])).collect()
        };
        let holds = |suite: &mut Self, bufs: &[B::Buf<K>], expected: &[K], what: &str| -> Outcome {
            for (i, buf) in bufs.iter().enumerate() {
                suite.holds(buf, &expected[border(i)..border(i + 1)], format_args!("{what}: piece {i}"))?;
            }
            Ok(())
        };
        let sorted: Vec<K> = order.iter().map(|&i| keys[i]).collect();
        let mut alone = deal(keys)?;
        backend.sort(&mut alone.iter_mut().collect::<Vec<_>>(), options)?;
        holds(self, &alone, &sorted, &what)?;

        let (mut bufs, mut along) = (deal(keys)?, deal(&values)?);
        let refs = (&mut bufs.iter_mut().collect::<Vec<_>>(), &mut along.iter_mut().collect::<Vec<_>>());
        backend.sort_pairs(refs.0, refs.1, options)?;
        holds(self, &bufs, &sorted, &format!("{what}, pairs"))?;
        let moved: Vec<K> = order.iter().map(|&i| values[i]).collect();
        holds(self, &along, &moved, &format!("{what}, values"))
    }

    fn sort_refusals<K: SortKey>(&mut self) -> Outcome
    where
        B: Sort<K>,
    {
        let backend = self.backend;
        let keys = keys::<K>("random", 9);
        backend.sort(&mut [], SortOptions::default())?;
        let (mut a, mut b) = (backend.upload(Lane(0), &keys)?, backend.upload(Lane(0), &keys)?);
        let twice = backend.sort(&mut [&mut a, &mut b], SortOptions::default());
        self.refused(twice, "two buffers of a lane")?;
        let mut short = backend.upload(Lane(0), &keys[1..])?;
        let fewer = backend.sort_pairs(&mut [&mut a], &mut [&mut short], SortOptions::default());
        self.refused(fewer, "fewer values than keys")?;
        let none = backend.sort_pairs(&mut [&mut a], &mut [], SortOptions::default());
        self.refused(none, "no buffer of values")?;
        if backend.lanes() > 1 {
            let mut far = backend.upload(Lane(1), &keys)?;
            let elsewhere = backend.sort_pairs(&mut [&mut a], &mut [&mut far], SortOptions::default());
            self.refused(elsewhere, "values on another lane")?;
            self.that(far.len() == keys.len(), "a buffer after a refusal")?;
        }
        self.holds(&a, &keys, "keys after refusals")
    }
}

/// The order in which keys should come: by the definition where that is quick, else by the standard library's stable sort.
fn order<K: SortKey>(keys: &[K], descending: bool) -> Vec<usize> {
    if keys.len() <= NAIVE {
        return naive::sort(keys, descending);
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    match descending {
        false => order.sort_by_key(|&i| keys[i]),
        true => order.sort_by_key(|&i| std::cmp::Reverse(keys[i])),
    }
    order
}

/// `n` keys of the distribution with this name.
fn keys<K: SortKey>(name: &str, n: usize) -> Vec<K> {
    let bits = 8 * size_of::<K>() as u32;
    let rng = &mut samples::rng(n as u64 + name.len() as u64);
    let high = |x: u64| K::from_low(x >> (64 - bits));
    (0..n)
        .map(|i| {
            let random = rng.next_u64();
            match name {
                "random" => high(random),
                "equal" => K::from_low(77),
                "sorted" => high(i as u64 * (u64::MAX / n as u64)),
                "reversed" => high((n - i) as u64 * (u64::MAX / n as u64)),
                "zipf" => K::from_low((13.8 * (random >> 11) as f64 / (1u64 << 53) as f64).exp() as u64),
                "90 % one value" if !random.is_multiple_of(10) => K::from_low(0x1234_5678_9abc_def0),
                "90 % one value" => high(rng.next_u64()),
                "two values" => K::from_low(random & 1),
                "powers of two" => K::from_low(1 << (random % u64::from(bits))),
                "of every length" => high(rng.next_u64() >> (random % 64)),
                "few bits set" => high(random & rng.next_u64() & rng.next_u64() & rng.next_u64()),
                "small but for one" if i == 0 => high(u64::MAX),
                "small but for one" => K::from_low(random % 1000),
                "first and last bits" => high(random & (0xff << 56 | 0xff << (64 - bits))),
                _ if random.is_multiple_of(3) => high(u64::MAX - (random & 1) * (1 << (64 - bits))),
                _ => high(random),
            }
        })
        .collect()
}

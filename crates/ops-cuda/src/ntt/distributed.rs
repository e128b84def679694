//! How the passes of a transform fit together that is spread over shards ([`tandem_ops::ntt::spread`]): which of them run
//! on each shard as on a vector of its own, and which one sends its output to the others. Pure: tested without a GPU.
//!
//! Taken together the places of all shards have log n bits. From natural order the lowest bits tell the shard, from
//! bit-reversed order the highest. Passes over other bits need nothing of other shards. After the exchange it is the
//! other end of the places that tells the shard: those bits belong to the output's elements already, and are the lowest of
//! their numbers.
//!
//! - From natural order the last pass but one sends. A shard receives from each shard a section, and the last pass finds
//!   the lowest bits of its rows in the sections' numbers.
//! - From bit-reversed order the first pass sends: its rows' lowest bits tell the shard. The number of the sender
//!   becomes the upper bits of the place, and the passes after it are those of a vector of its own.

use super::plan::{twiddles_of, Pass, Shape};
use tandem_ops::ntt::MAX_SHARDS;
use tandem_ops::Order;

/// To where a pass writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// To the shard itself.
    Stay,
    /// To the shard that the places' upper bits name, into the sender's section, to the place without these bits.
    ByHighBits,
    /// To the shard that the places' lowest bits name, into the sender's section, to the place without these bits.
    ByLowBits,
}

/// A pass over every shard. Its bits are those of places in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardPass {
    pub(crate) pass: Pass,
    pub(crate) target: Target,
    /// The element of a place is read from the section of the place's lowest bits, where its place is without them.
    pub(crate) sections_in: bool,
    /// Whether the exchange was before: the twiddles depend on the shard.
    pub(crate) exchanged: bool,
}

/// How a transform over 2^log_shards shards is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DistributedNttPlan {
    /// From the lower bits to the upper ones: the input is in bit-reversed order.
    pub(crate) reversed: bool,
    /// The output is to be in the order of the input, so the last pass moves every element to another place.
    pub(crate) reorder: bool,
    pub(crate) passes: Vec<ShardPass>,
}

impl DistributedNttPlan {
    /// What the number of a shard adds to the places of its elements after the exchange.
    pub(crate) fn known(&self, shard: u32, log_shards: u32) -> u32 {
        match self.reversed {
            true => shard,
            false => backwards(shard, log_shards),
        }
    }

    /// The bits of the index of a coefficient below those of a pass's rows.
    pub(crate) fn below(&self, step: &ShardPass, log_n: u32, log_shards: u32) -> u32 {
        let Pass { low, log_rows, .. } = step.pass;
        // Those that tell the shard are the lowest.
        match (self.reversed, step.exchanged) {
            (true, true) => log_n - low - log_rows - log_shards,
            (true, false) => log_n - low - log_rows,
            (false, true) => low,
            (false, false) => low + log_shards,
        }
    }

    /// The shard that the bits of a place name to which its element is sent.
    pub(crate) fn named(&self, name: u32, log_shards: u32) -> u32 {
        match self.reversed {
            true => name,
            false => backwards(name, log_shards),
        }
    }

    /// The section that a shard sends to: the bits of places that told the shard.
    pub(crate) fn section(&self, shard: u32, log_shards: u32) -> u32 {
        match self.reversed {
            true => backwards(shard, log_shards),
            false => shard,
        }
    }
}

/// Over how many of so many lanes a transform of 2^`log_n` elements is to be spread, of which each is to have 2^`shard_bits`: a power
/// of two.
pub(crate) fn lanes_for(log_n: u32, lanes: usize, shard_bits: u32) -> usize {
    let most = lanes.clamp(1, MAX_SHARDS).ilog2();
    1 << most.min(log_n.saturating_sub(shard_bits))
}

/// Fewest and most bits of a pass, and how many passes there are at least, as far as there are bits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) least: u32,
    pub(crate) most: u32,
    pub(crate) passes: u32,
}

impl Bits {
    /// No fewer passes than `least` of together `log_n` bits, of which each has at least `bits`.
    pub(crate) fn passes(&self, log_n: u32, least: u32, bits: u32) -> u32 {
        log_n.div_ceil(self.most).max(least).max(self.passes.min(log_n / bits))
    }
}

/// The number of `bits` bits read backwards.
fn backwards(x: u32, bits: u32) -> u32 {
    x.reverse_bits().checked_shr(32 - bits).unwrap_or(0)
}

/// The passes of a transform of the shape over 2^`log_shards` shards, on GPUs of which each has `memory` bytes; `None` if there
/// are too few elements for two passes of which each has the bits that tell the shard.
pub(crate) fn distributed_plan(of: Bits, shape: &Shape, log_shards: u32, memory: u64) -> Option<DistributedNttPlan> {
    let log_n = shape.log_n;
    if log_n < 2 * of.least.max(log_shards) {
        return None;
    }
    let reversed = shape.input == Order::BitReversed;
    let count = of.passes(log_n, 2, of.least.max(log_shards));
    let exchange = if reversed { 0 } else { count - 2 };
    let mut passes = Vec::with_capacity(count as usize);
    let mut done = 0;
    for i in 0..count {
        let log_rows = log_n / count + u32::from(i < log_n % count);
        let exchanged = i > exchange;
        done += log_rows;
        // The bits that tell the shard lie below those of a pass from natural order, before the exchange, and below those of
        // a pass from bit-reversed order, behind it.
        let low = match reversed {
            true => done - log_rows - if exchanged { log_shards } else { 0 },
            false => log_n - done - if exchanged { 0 } else { log_shards },
        };
        let bits = done - if exchanged { log_shards } else { 0 };
        let target = match (i == exchange, reversed) {
            (false, _) => Target::Stay,
            (true, false) => Target::ByHighBits,
            (true, true) => Target::ByLowBits,
        };
        let twiddles = twiddles_of(shape, i, count, bits, memory);
        let pass = Pass { low, log_rows, twiddles };
        passes.push(ShardPass { pass, target, sections_in: !reversed && exchanged, exchanged });
    }
    Some(DistributedNttPlan { reversed, reorder: shape.input == shape.output, passes })
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Twiddles, BITS};
    use super::*;
    use crate::tuning::ntt::SHARD_BITS;
    use ark_ff::{AdditiveGroup, Field, UniformRand};
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
    use tandem_ops::{naive, BabyBear, Coset, Direction, NttField, NttOp, Spread};

    const H200: u64 = 150_000_000_000;
    type Fr = <BabyBear as NttField>::Ark;

    fn shapes(log_n: u32) -> impl Iterator<Item = Shape> {
        let orders = [Order::Natural, Order::BitReversed];
        let kinds = [(Direction::Forward, false), (Direction::Forward, true), (Direction::Inverse, false)];
        kinds.into_iter().flat_map(move |(direction, odd)| {
            orders.into_iter().flat_map(move |input| {
                orders.into_iter().map(move |output| Shape { log_n, direction, odd, input, output })
            })
        })
    }

    /// Passes as native/src/ntt does them, one element at a time, over shards in host memory.
    struct Shards<'a> {
        shape: &'a Shape,
        seam: &'a DistributedNttPlan,
        spread: Spread,
        root: Fr,
    }

    impl Shards<'_> {
        /// The twiddle before a pass of the element at a place of a shard.
        fn twiddle(&self, step: &ShardPass, shard: usize, place: usize) -> Fr {
            let Pass { low, log_rows, twiddles } = step.pass;
            let Shape { odd, log_n, .. } = *self.shape;
            let shard_bits = log_n - self.spread.log_shards;
            let local = if self.seam.reversed { low + log_rows } else { shard_bits - low };
            let scaled = match twiddles {
                Twiddles::None => return Fr::ONE,
                Twiddles::Table { bits, scaled } => {
                    assert_eq!(bits, local);
                    scaled
                }
                Twiddles::Powers => false,
                Twiddles::Half { .. } => panic!("a shard's pass is not halved"),
            };
            let mut bits = local;
            let mut index = if self.seam.reversed { place & ((1 << bits) - 1) } else { place >> low };
            if step.exchanged {
                let known = self.seam.known(shard as u32, self.spread.log_shards) as usize;
                let log_shards = self.spread.log_shards;
                index = if self.seam.reversed { index << log_shards | known } else { known << bits | index };
                bits += log_shards;
            }
            let known_bits = bits - log_rows;
            let (row, known) = match self.seam.reversed {
                true => {
                    (naive::place(Order::BitReversed, index >> known_bits, log_rows), index & ((1 << known_bits) - 1))
                }
                false => {
                    (index & ((1 << log_rows) - 1), naive::place(Order::BitReversed, index >> log_rows, known_bits))
                }
            };
            let exponent = if odd { (2 * known + 1) * row } else { known * row };
            // `root` is of order 2^(log_n + 1).
            let w = self.root.pow([(exponent << (log_n + 1 - bits - u32::from(odd))) as u64]);
            let over_n = Fr::from(1u64 << log_n).inverse().unwrap();
            if scaled {
                w * over_n
            } else {
                w
            }
        }

        fn pass(&self, i: usize, shards: &[Vec<Fr>]) -> Vec<Vec<Fr>> {
            let step = &self.seam.passes[i];
            let Pass { low, log_rows, .. } = step.pass;
            let Spread { log_n, log_shards } = self.spread;
            let (bits, rows) = (log_n - log_shards, 1usize << log_rows);
            let section = bits - log_shards;
            let order = if self.seam.reversed { Order::BitReversed } else { Order::Natural };
            let last = i + 1 == self.seam.passes.len();
            let w = self.root.pow([2 << (log_n - log_rows)]);
            let powers: Vec<Fr> = (0..rows as u64).map(|k| w.pow([k])).collect();
            let mut out = vec![vec![Fr::ZERO; 1 << bits]; shards.len()];
            let mut written = vec![vec![false; 1 << bits]; shards.len()];
            let named = |name: usize| self.seam.named(name as u32, log_shards) as usize;
            for (s, shard) in shards.iter().enumerate() {
                let mine = self.seam.section(s as u32, log_shards) as usize;
                for column in 0..1usize << (bits - log_rows) {
                    let at = |column: usize, row: usize, low: u32| {
                        let below = column & ((1 << low) - 1);
                        (column >> low << log_rows | row) << low | below
                    };
                    let mut rows_in = vec![Fr::ZERO; rows];
                    for row in 0..rows {
                        let place = at(column, row, low);
                        let from = match step.sections_in {
                            true => (place & (self.spread.shards() - 1)) << section | place >> log_shards,
                            false => place,
                        };
                        rows_in[naive::place(order, row, log_rows)] = shard[from] * self.twiddle(step, s, place);
                    }
                    for k in 0..rows {
                        let sum: Fr = (0..rows).map(|j| rows_in[j] * powers[j * k % rows]).sum();
                        // Rows come out in bit-reversed order from natural, and the other way round.
                        let row = match self.seam.reversed {
                            true => k,
                            false => naive::place(Order::BitReversed, k, log_rows),
                        };
                        let mut place = at(column, row, low);
                        if last && self.seam.reorder {
                            place = naive::place(Order::BitReversed, place, bits);
                        }
                        let (to, place) = match step.target {
                            Target::Stay => (s, place),
                            Target::ByHighBits => {
                                (named(place >> section), mine << section | place & ((1 << section) - 1))
                            }
                            Target::ByLowBits => {
                                (named(place & (shards.len() - 1)), mine << section | place >> log_shards)
                            }
                        };
                        assert!(!std::mem::replace(&mut written[to][place], true), "written twice");
                        out[to][place] = sum;
                    }
                }
            }
            out
        }
    }

    fn check(of: Bits, shape: &Shape, log_shards: u32, memory: u64, rng: &mut ChaCha8Rng) {
        let Some(seam) = distributed_plan(of, shape, log_shards, memory) else {
            assert!(shape.log_n < 2 * of.least.max(log_shards));
            return;
        };
        let spread = Spread { log_n: shape.log_n, log_shards };
        let vector: Vec<Fr> = (0..1 << shape.log_n).map(|_| Fr::rand(rng)).collect();
        let root = BabyBear::root_of_unity(shape.log_n + 1).unwrap();
        let inverse = shape.direction == Direction::Inverse;
        let root = if inverse { root.inverse().unwrap() } else { root };
        let shards = Shards { shape, seam: &seam, spread, root };
        let mut data = spread.deal(shape.input, &vector);
        for i in 0..seam.passes.len() {
            data = shards.pass(i, &data);
        }
        let coset = if shape.odd { Coset::Odd } else { Coset::Subgroup };
        let (input, output) = (Order::Natural, Order::Natural);
        let op = NttOp { direction: shape.direction, coset, input, output };
        let got = spread.collect(shape.output, &data);
        for i in (0..got.len()).step_by(1 + got.len() / 50) {
            assert_eq!(
                Some(got[i]),
                naive::ntt_at::<BabyBear>(&vector, op, i),
                "{shape:?}, 2^{log_shards} shards, {i}"
            );
        }
    }

    #[test]
    fn shards_together_make_the_transform() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        for log_shards in 0..=4 {
            for log_n in 5..=11 {
                for shape in shapes(log_n) {
                    check(BITS, &shape, log_shards, H200, rng);
                }
            }
        }
        // Three and four passes, with tables and without.
        for (passes, log_n) in [(3, 10), (4, 12)] {
            for log_shards in 0..=3 {
                for (shape, memory) in shapes(log_n).zip([H200, 0].into_iter().cycle()) {
                    check(Bits { passes, ..BITS }, &shape, log_shards, memory, rng);
                }
            }
        }
    }

    #[test]
    fn small_transforms_stay_on_one_lane() {
        assert_eq!((0..=18).map(|log_n| lanes_for(log_n, 8, SHARD_BITS)).max(), Some(1));
        assert_eq!([19, 20, 21, 32].map(|log_n| lanes_for(log_n, 8, SHARD_BITS)), [2, 4, 8, 8]);
        assert_eq!([0, 1, 2, 3, 5, 7, 64].map(|lanes| lanes_for(28, lanes, SHARD_BITS)), [1, 1, 2, 2, 4, 4, 16]);
    }

    #[test]
    fn one_pass_sends_and_rows_hold_the_bits_that_tell_the_shard() {
        let bits =
            [BITS, Bits { least: 4, ..BITS }].into_iter().flat_map(|of| [1, 3, 4].map(|passes| Bits { passes, ..of }));
        for (of, log_shards) in bits.flat_map(|of| (1..=4).map(move |m| (of, m))) {
            for shape in (0..=32).flat_map(shapes) {
                let Some(seam) = distributed_plan(of, &shape, log_shards, H200) else { continue };
                let fit = shape.log_n / of.least.max(log_shards);
                assert!(seam.passes.len() as u32 >= of.passes.min(fit), "{shape:?}");
                let shard_bits = shape.log_n - log_shards;
                let sends = |step: &ShardPass| step.target != Target::Stay;
                assert_eq!(seam.passes.iter().filter(|step| sends(step)).count(), 1, "{shape:?}");
                assert!(seam.passes.last().is_some_and(|last| !sends(last) && last.exchanged), "{shape:?}");
                for step in &seam.passes {
                    let Pass { low, log_rows, twiddles } = step.pass;
                    assert!((of.least..=of.most).contains(&log_rows) && low + log_rows <= shard_bits, "{shape:?}");
                    if step.target == Target::ByLowBits || step.sections_in {
                        assert!(low == 0 && log_rows >= log_shards, "{shape:?}");
                    }
                    if let Twiddles::Table { bits, .. } = twiddles {
                        assert!(64u64 << bits <= super::super::plan::tables_bytes(H200), "{shape:?}");
                    }
                }
            }
        }
    }
}

//! Which passes over memory a transform takes. Pure: tested without a GPU.

use super::distributed::Bits;
use crate::ffi::{TANDEM_NTT_MAX_LOG_ROWS, TANDEM_NTT_MIN_LOG_ROWS};
use crate::tuning::ntt::{TABLES_SHARE, TABLE_SHARE};
use tandem_ops::{Direction, Order};

const MIN_BITS: u32 = TANDEM_NTT_MIN_LOG_ROWS as u32;
const MAX_BITS: u32 = TANDEM_NTT_MAX_LOG_ROWS as u32;
pub(super) const BITS: Bits = Bits { least: MIN_BITS, most: MAX_BITS, passes: 1 };

/// What a plan is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) log_n: u32,
    pub(crate) direction: Direction,
    /// Over the odd coset; of forward transforms only.
    pub(crate) odd: bool,
    pub(crate) input: Order,
    pub(crate) output: Order,
}

/// Where the twiddles of a pass come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twiddles {
    /// There are none.
    None,
    /// A table of 2^bits of them.
    Table {
        bits: u32,
        /// Whether they hold the 1/n of an inverse transform.
        scaled: bool,
    },
    /// The last pass in two halves of the places: a table of 2^bits twiddles for the first, if there is room for it beside all other
    /// tables, and powers for the second.
    Half { bits: u32 },
    /// From the powers of the root, at the cost of a second product.
    Powers,
}

/// One pass, over the bits `low..low + log_rows` of the elements' places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) low: u32,
    pub(crate) log_rows: u32,
    pub(crate) twiddles: Twiddles,
}

/// What tells a shard of a transform that is spread over lanes, once it is part of the twiddles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct ShardTwiddleOffset {
    /// How many bits; none before they are known, and where there are no shards.
    pub(crate) bits: u32,
    /// What they are.
    pub(crate) value: u32,
}

/// How a transform of no fewer than 2^[`MIN_BITS`] elements is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// From the lower bits to the upper ones: the input is in bit-reversed order.
    pub(crate) reversed: bool,
    /// The output is to be in the order of the input, so the last pass moves every element to another place.
    pub(crate) reorder: bool,
    pub(crate) passes: Vec<Pass>,
}

/// Bytes that the tables of a GPU with `memory` bytes may take together.
pub(crate) fn tables_bytes(memory: u64) -> u64 {
    memory / TABLES_SHARE
}

/// The passes of a transform on a GPU with `memory` bytes; `None` for fewer than 2^[`MIN_BITS`] elements. They are `least` at least, as
/// far as there are bits for them.
pub(crate) fn plan(shape: &Shape, memory: u64, least: u32) -> Option<Plan> {
    let Shape { log_n, input, output, .. } = *shape;
    if log_n < MIN_BITS {
        return None;
    }
    let reversed = input == Order::BitReversed;
    let count = Bits { passes: least, ..BITS }.passes(log_n, 1, MIN_BITS);
    let mut passes = Vec::with_capacity(count as usize);
    let mut done = 0;
    for i in 0..count {
        // As equal as can be, the longer ones first: those have the fewer products to do before them.
        let log_rows = log_n / count + u32::from(i < log_n % count);
        let low = if reversed { done } else { log_n - done - log_rows };
        done += log_rows;
        let mut twiddles = twiddles_of(shape, i, count, done, memory);
        // From natural order the places of the last pass lie as its columns do, and unless it moves elements each half is a pass of its own.
        // The second half's kernel loses with rows of the most bits what the first half's table saves (docs/design/ntt.md).
        let halves = i > 0 && done == log_n && !reversed && output != input && log_rows < MAX_BITS;
        if halves && twiddles == Twiddles::Powers && 32u64 << log_n <= tables_bytes(memory) {
            twiddles = Twiddles::Half { bits: log_n - 1 };
        }
        passes.push(Pass { low, log_rows, twiddles });
    }
    Some(Plan { reversed, reorder: input == output, passes })
}

/// The twiddles before pass `i` of `count`, which depend on `bits` bits of the places: those of the passes up to this one.
pub(super) fn twiddles_of(shape: &Shape, i: u32, count: u32, bits: u32, memory: u64) -> Twiddles {
    // The second pass has twiddles in any case, and its table is small unless it is the last.
    let scaled = shape.direction == Direction::Inverse && i == 1.min(count - 1);
    if i == 0 && !shape.odd && !scaled {
        Twiddles::None
    } else if scaled || 64u64 << bits <= tables_bytes(memory) / TABLE_SHARE {
        Twiddles::Table { bits, scaled }
    } else {
        Twiddles::Powers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: u64 = 150_000_000_000;

    fn shapes() -> impl Iterator<Item = Shape> {
        let orders = [Order::Natural, Order::BitReversed];
        (0..=32).flat_map(move |log_n| {
            let kinds = [(Direction::Forward, false), (Direction::Forward, true), (Direction::Inverse, false)];
            kinds.into_iter().flat_map(move |(direction, odd)| {
                orders.into_iter().flat_map(move |input| {
                    orders.into_iter().map(move |output| Shape { log_n, direction, odd, input, output })
                })
            })
        })
    }

    #[test]
    fn passes_cover_every_bit_once_in_the_order_of_the_input() {
        for (shape, least) in shapes().flat_map(|shape| [(shape, 1), (shape, 3), (shape, 4)]) {
            let Some(plan) = plan(&shape, H200, least) else {
                assert!(shape.log_n < MIN_BITS);
                continue;
            };
            assert!(plan.passes.len() as u32 >= least.min(shape.log_n / MIN_BITS), "{shape:?}");
            let mut bits: Vec<(u32, u32)> = plan.passes.iter().map(|p| (p.low, p.low + p.log_rows)).collect();
            if !plan.reversed {
                bits.reverse();
            }
            let mut at = 0;
            for (low, high) in bits {
                assert_eq!(low, at, "{shape:?}");
                assert!((MIN_BITS..=MAX_BITS).contains(&(high - low)), "{shape:?}");
                at = high;
            }
            assert_eq!(at, shape.log_n, "{shape:?}");
            assert_eq!(plan.reversed, shape.input == Order::BitReversed);
            assert_eq!(plan.reorder, shape.input == shape.output);
        }
    }

    #[test]
    fn twiddles_are_where_they_must_be_and_an_inverse_is_scaled_once() {
        for (memory, least) in [(4 << 30, 1), (24 << 30, 1), (H200, 1), (H200, 3), (H200, 4)] {
            for shape in shapes() {
                let Some(plan) = plan(&shape, memory, least) else { continue };
                let mut done = 0;
                for (i, pass) in plan.passes.iter().enumerate() {
                    done += pass.log_rows;
                    match pass.twiddles {
                        Twiddles::None => assert!(i == 0 && !shape.odd, "{shape:?}"),
                        Twiddles::Table { bits, .. } => assert_eq!(bits, done, "{shape:?}"),
                        Twiddles::Half { bits } => {
                            assert!(bits + 1 == done && done == shape.log_n && pass.low == 0, "{shape:?}");
                            assert!(pass.log_rows < MAX_BITS.min(done) && !plan.reversed && !plan.reorder, "{shape:?}");
                        }
                        Twiddles::Powers => assert!(i > 0, "{shape:?}"),
                    }
                }
                let scaled = plan.passes.iter().filter(|p| matches!(p.twiddles, Twiddles::Table { scaled: true, .. }));
                assert_eq!(scaled.count(), usize::from(shape.direction == Direction::Inverse), "{shape:?}");
            }
        }
    }

    #[test]
    fn tables_stay_within_their_bound() {
        for memory in [4 << 30, 24 << 30, H200] {
            for shape in shapes() {
                for pass in plan(&shape, memory, 1).into_iter().flat_map(|p| p.passes) {
                    if let Twiddles::Table { bits, .. } | Twiddles::Half { bits } = pass.twiddles {
                        assert!(64u64 << bits <= tables_bytes(memory), "{shape:?} on {memory} bytes");
                    }
                }
            }
        }
    }

    #[test]
    fn half_a_table_where_a_whole_one_is_too_large() {
        let last = |log_n, direction, input, output| {
            let plan = plan(&Shape { log_n, direction, odd: false, input, output }, H200, 1)?;
            plan.passes.last().map(|pass| pass.twiddles)
        };
        let (natural, reversed) = (Order::Natural, Order::BitReversed);
        for direction in [Direction::Forward, Direction::Inverse] {
            let of = |log_n| last(log_n, direction, natural, reversed);
            assert_eq!(of(25), Some(Twiddles::Table { bits: 25, scaled: false }));
            assert_eq!([26, 28].map(of), [25, 27].map(|bits| Some(Twiddles::Half { bits })));
            assert_eq!([27, 29, 32].map(of), [Some(Twiddles::Powers); 3]);
            for (input, output) in [(natural, natural), (reversed, natural), (reversed, reversed)] {
                assert_eq!(last(28, direction, input, output), Some(Twiddles::Powers));
            }
        }
    }

    #[test]
    fn large_transforms_on_small_gpus_do_without_tables() {
        let shape = Shape {
            log_n: 24,
            direction: Direction::Forward,
            odd: true,
            input: Order::BitReversed,
            output: Order::Natural,
        };
        let last = |memory| plan(&shape, memory, 1).and_then(|p| p.passes.last().map(|p| p.twiddles));
        assert_eq!(last(H200), Some(Twiddles::Table { bits: 24, scaled: false }));
        assert_eq!(last(8 << 30), Some(Twiddles::Powers));
    }
}

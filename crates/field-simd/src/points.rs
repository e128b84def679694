//! Sums of affine points in pairs, eight pairs at a time, with one inversion for all; and the curve's equation, of eight points at a time.
//!
//! Each place of the vectors has a chain of products of its own (P. L. Montgomery's trick); the eight chains end in one
//! inversion. Points lie in words as on the wire, and are transposed on their way into and out of the vectors.

use crate::ext::Ext;
use crate::prime::Prime;
use crate::words::{all, gather, scatter};
use core::arch::x86_64::*;
use std::collections::TryReserveError;

/// Eight pairs of points between the two passes.
struct Block<M, const L: usize, const D: usize> {
    x: [Ext<M, L, D>; 2],
    y: [Ext<M, L, D>; 2],
    denominator: Ext<M, L, D>,
    /// The product of the denominators of the blocks before.
    before: Ext<M, L, D>,
    /// Where a point is added to itself.
    doubled: __mmask8,
    /// Where the sum needs no slope: a point is infinity, or the sum is.
    without: __mmask8,
    /// Where the first point, the second point is infinity.
    infinite: [__mmask8; 2],
}

impl<M: Prime<L>, const L: usize, const D: usize> Block<M, L, D> {
    /// The pairs `points[2 i]`, `points[2 i + 1]`; coordinates below p, in words, infinity all zero.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn new<const W: usize>(first: [&[u64; W]; 8], second: [&[u64; W]; 8], product: &mut Ext<M, L, D>) -> Self {
        let (first, second) = (gather(first), gather(second));
        let x = [Ext::split(&first[..W / 2]), Ext::split(&second[..W / 2])];
        let y = [Ext::split(&first[W / 2..]), Ext::split(&second[W / 2..])];
        let mut denominator: Ext<M, L, D> = x[1].minus(x[0]).carried();
        let same = x[0].equal(x[1]);
        let infinite = [x[0].zeros() & y[0].zeros(), x[1].zeros() & y[1].zeros()];
        let (mut doubled, mut without) = (0, 0);
        if same | infinite[0] | infinite[1] != 0 {
            without = infinite[0] | infinite[1];
            // A point of order two is its own opposite.
            doubled = same & y[0].equal(y[1]) & !y[0].zeros() & !without;
            without |= same & !doubled;
            denominator = Ext::choose(doubled, denominator, y[0].plus(y[0]).carried());
            denominator = Ext::choose(without, denominator, Ext::one());
        }
        let before = *product;
        *product = before.mul(denominator);
        Block { x, y, denominator, before, doubled, without, infinite }
    }

    /// The sums, given the inverse of the product of the denominators up to this block, which becomes that up to the
    /// block before.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn sums<const W: usize>(&self, inverse: &mut Ext<M, L, D>) -> [[u64; W]; 8] {
        let own = inverse.mul(self.before);
        *inverse = inverse.mul(self.denominator);
        let Block { x, y, .. } = self;
        let mut numerator = y[1].minus(y[0]).carried();
        if self.doubled != 0 {
            // Both curves have a = 0.
            let square = x[0].square().reduced();
            let triple = square.plus(square).plus(square).carried();
            numerator = Ext::choose(self.doubled, numerator, triple);
        }
        let slope = numerator.mul(own);
        let mut to_x = slope.square().minus(x[0]).minus(x[1]).reduced();
        let mut to_y = slope.mul(x[0].minus(to_x).carried()).minus(y[0]).reduced();
        if self.without != 0 {
            let zero = Ext::zero();
            let of = |a: Ext<M, L, D>, [first, second]: &[Ext<M, L, D>; 2]| {
                // Opposite points make zero; infinity and a point make the point.
                let other = Ext::choose(self.infinite[0], zero, *second);
                let other = Ext::choose(self.infinite[1] & !self.infinite[0], other, *first);
                Ext::choose(self.without, a, other)
            };
            to_x = of(to_x, x);
            to_y = of(to_y, y);
        }
        let mut words = [_mm512_setzero_si512(); W];
        to_x.join(&mut words[..W / 2]);
        to_y.join(&mut words[W / 2..]);
        scatter(&words)
    }
}

/// What the levels of a sum use again.
pub struct Levels<M, const L: usize, const D: usize> {
    blocks: Vec<Block<M, L, D>>,
    /// Where the first point of each pair stands, and where the sum goes.
    pairs: Vec<(u32, u32)>,
}

impl<M, const L: usize, const D: usize> Default for Levels<M, L, D> {
    fn default() -> Self {
        Levels { blocks: Vec::new(), pairs: Vec::new() }
    }
}

impl<M: Prime<L>, const L: usize, const D: usize> Levels<M, L, D> {
    /// Makes room for sums of `points` points.
    pub(crate) fn reserve(&mut self, points: usize) -> Result<(), TryReserveError> {
        self.blocks.clear();
        self.pairs.clear();
        self.blocks.try_reserve_exact((points / 2).div_ceil(8))?;
        self.pairs.try_reserve_exact(points / 2)
    }

    /// Adds neighbours within each group of `counts[i]` points once, closes the gaps, and returns how many points are left.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn add<const W: usize>(
        &mut self,
        points: &mut [[u64; W]],
        counts: &mut [usize],
        invert: &mut dyn FnMut(&mut [u64]),
    ) -> usize {
        self.pairs.clear();
        let (mut from, mut to) = (0, 0);
        for &n in counts.iter() {
            self.pairs.extend((0..n / 2).map(|i| ((from + 2 * i) as u32, (to + i) as u32)));
            from += n;
            to += n.div_ceil(2);
        }
        let mut product = Ext::one();
        self.blocks.clear();
        for pairs in self.pairs.chunks(8) {
            // Where there is no pair, infinity is added to infinity.
            let mut operands = [[&[0; W]; 8]; 2];
            for (i, &(from, _)) in pairs.iter().enumerate() {
                operands[0][i] = &points[from as usize];
                operands[1][i] = &points[from as usize + 1];
            }
            self.blocks.push(Block::new(operands[0], operands[1], &mut product));
        }
        // All pairs are read: what is left alone moves up, and then the sums are written.
        let (mut from, mut to) = (0, 0);
        for n in counts.iter_mut() {
            if *n % 2 == 1 {
                points[to + *n / 2] = points[from + *n - 1];
            }
            from += *n;
            *n = n.div_ceil(2);
            to += *n;
        }
        let mut inverse = product.inverses(invert);
        for (block, pairs) in self.blocks.iter().zip(self.pairs.chunks(8)).rev() {
            let sums = block.sums(&mut inverse);
            for (sum, &(_, to)) in sums.iter().zip(pairs) {
                points[to as usize] = *sum;
            }
        }
        to
    }
}

/// Whether y^2 = x^3 + b, with coordinates below p, holds of every point that is not all zero. `b` is plain, below p.
///
/// Coordinates of any size are safe: what they make is not looked at.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn hold<M: Prime<L>, const L: usize, const D: usize, const W: usize>(
    points: &[[u64; W]],
    b: &[u64],
) -> bool {
    let mut words = [_mm512_setzero_si512(); W];
    for (v, word) in words[..W / 2].iter_mut().zip(b) {
        *v = all(*word);
    }
    let b = Ext::<M, L, D>::split(&words[..W / 2]).scaled(M::FROM_WORDS);
    points.chunks(8).all(|points| {
        // Where there is no point, infinity stands.
        let mut eight = [&[0; W]; 8];
        for (place, point) in eight.iter_mut().zip(points) {
            *place = point;
        }
        let words = gather(eight);
        let (x, y) = (Ext::<M, L, D>::split(&words[..W / 2]), Ext::<M, L, D>::split(&words[W / 2..]));
        let (infinite, below) = (x.zeros() & y.zeros(), x.below_p() & y.below_p());
        let (x, y) = (x.scaled(M::FROM_WORDS), y.scaled(M::FROM_WORDS));
        let cube = x.square().mul(x).reduced();
        let rest = y.square().minus(cube).minus(b).reduced();
        infinite | (below & rest.zeros()) == !0
    })
}

/// Every coordinate times `factor`, below p.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn scale<M: Prime<L>, const L: usize, const D: usize, const W: usize>(
    points: &mut [[u64; W]],
    factor: [u64; L],
) {
    for points in points.chunks_mut(8) {
        let mut eight = [&[0; W]; 8];
        for (place, point) in eight.iter_mut().zip(&*points) {
            *place = point;
        }
        let mut words = gather(eight);
        for half in words.chunks_exact_mut(W / 2) {
            Ext::<M, L, D>::split(half).scaled(factor).join(half);
        }
        for (point, scaled) in points.iter_mut().zip(scatter(&words)) {
            *point = scaled;
        }
    }
}

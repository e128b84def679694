//! Sums by buckets (Pippenger), with affine additions that share one inversion.
//!
//! Scalars are written in signed digits of c bits. For each digit position the points are ordered by digit, and
//! pieces of that order are summed independently: within a piece the points of each bucket are added in pairs, then
//! the sums in pairs, and so on, every level with a single inversion (Montgomery's trick); an addition then costs
//! about six multiplications. What is left of the buckets goes through the running sum.
//!
//! Every vector whose length depends on the sum's is an error where there is no memory for it.

use super::points::{Points, Scratch};
use super::reused::Reused;
use crate::{memory, Group, Result};
use ark_ec::{AffineRepr, VariableBaseMSM};
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;
use zeroize::Zeroizing;

/// Points that one task sums: few enough for a core's own cache, enough to share an inversion.
pub(super) const fn piece_of<G: Group>() -> usize {
    if size_of::<G::Point>() > 100 {
        1 << 12
    } else {
        1 << 13
    }
}

/// Fewer additions than this are not worth an inversion.
pub(super) const MIN_PAIRS: usize = 64;
/// Widest digit: its buckets' ends take half a megabyte.
const MAX_WINDOW: u32 = 18;

/// An affine point; infinity is (0, 0).
#[derive(Clone, Copy)]
pub(super) struct Xy<F> {
    pub(super) x: F,
    pub(super) y: F,
}

impl<F: Field> Xy<F> {
    pub(super) fn new<A: AffineRepr<BaseField = F>>(point: A) -> Self {
        point.xy().map_or(Xy { x: F::ZERO, y: F::ZERO }, |(x, y)| Xy { x, y })
    }

    pub(super) fn is_infinity(&self) -> bool {
        self.x.is_zero() && self.y.is_zero()
    }

    /// What the slope of `self + other` is divided by; zero where the sum needs no slope.
    fn denominator(&self, other: &Self) -> F {
        if self.is_infinity() || other.is_infinity() {
            F::ZERO
        } else if self.x != other.x {
            other.x - self.x
        } else {
            // 2y if the points are equal, 0 if they are opposite.
            self.y + other.y
        }
    }

    /// `self + other`, given the inverse of their denominator, or zero for zero.
    fn add(&self, other: &Self, inverse: &F) -> Self {
        if inverse.is_zero() {
            return match (self.is_infinity(), other.is_infinity()) {
                (true, _) => *other,
                (_, true) => *self,
                _ => Xy { x: F::ZERO, y: F::ZERO },
            };
        }
        // Both curves have a = 0.
        let numerator = if self.x == other.x { self.x.square().double() + self.x.square() } else { other.y - self.y };
        let slope = numerator * inverse;
        let x = slope.square() - self.x - other.x;
        Xy { x, y: slope * (self.x - x) - self.y }
    }
}

/// A point of a sum: its index, and whether it is subtracted.
#[derive(Clone, Copy, Default)]
pub(super) struct Term(u32);

impl Term {
    /// One more than the largest index.
    pub(super) const MAX_INDEX: usize = 1 << 31;

    pub(super) fn new(index: usize, negative: bool) -> Self {
        Term((index as u32) << 1 | u32::from(negative))
    }

    pub(super) fn index(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) fn is_negative(self) -> bool {
        self.0 & 1 == 1
    }

    /// This point with the sign turned if `turn`.
    fn turned(self, turn: bool) -> Self {
        Term(self.0 ^ u32::from(turn))
    }

    /// This point, its index counted from `first`.
    pub(super) fn relative_to(self, first: usize) -> Self {
        Term(self.0 - ((first as u32) << 1))
    }
}

impl zeroize::DefaultIsZeroes for Term {}

pub(super) const OP: &str = "msm";

/// The sum of +-1 times points.
pub(super) fn sum_of_units<G: Group>(points: &Points<G>, terms: &[Term]) -> Result<G::Ark> {
    let ends = [0, terms.len() as u32];
    sum_of_buckets::<G>(points, terms, &ends, &Reused::default())
}

/// The sum of magnitudes times points. Magnitudes are below 2^254.
pub(super) fn sum_of_products<G: Group>(points: &Points<G>, terms: &[Term], magnitudes: &[[u64; 4]]) -> Result<G::Ark> {
    let mut lengths = [0usize; 257];
    magnitudes.iter().for_each(|m| lengths[bit_length(m) as usize] += 1);
    let c = window(&lengths, points.addition());
    let longest = lengths.iter().rposition(|&n| n > 0).unwrap_or(0) as u32;
    // Signed digits at w positions reach beyond 2^(wc - 2).
    let windows = (longest + 2).div_ceil(c);
    let offset = digit_offset(c, windows);
    let (of_windows, of_pieces) = (Reused::<Window>::default(), Reused::default());
    let sums: Vec<Result<G::Ark>> = (0..windows)
        .into_par_iter()
        .with_max_len(1)
        .map(|w| {
            of_windows.with(|Window { digits, sorted }| {
                memory::make_room(OP, digits, magnitudes.len())?;
                digits.extend(magnitudes.iter().map(|m| digit(m, &offset, w * c, c)));
                sorted.sort(digits, 1 << (c - 1), |i| terms[i])?;
                sum_of_buckets::<G>(points, &sorted.terms, &sorted.ends, &of_pieces)
            })
        })
        .collect();
    sums.into_iter().rev().try_fold(G::Ark::ZERO, |mut sum, window| {
        (0..c).for_each(|_| {
            sum.double_in_place();
        });
        Ok(sum + window?)
    })
}

fn bit_length(x: &[u64; 4]) -> u32 {
    x.iter().rposition(|&l| l > 0).map_or(0, |i| i as u32 * 64 + 64 - x[i].leading_zeros())
}

/// The digit width with the least work, for `lengths[b]` scalars of b bits: an addition of a point to its bucket
/// costs as much as `addition` multiplications of arkworks, the running sum about 24 a bucket.
fn window(lengths: &[usize; 257], addition: usize) -> u32 {
    let work = |c: u32| {
        let mut longer: usize = lengths.iter().sum();
        let (mut work, mut bits) = (0, 0);
        while longer > 0 {
            work += longer * addition + (24 << (c - 1));
            longer -= lengths[bits as usize..(bits + c).min(257) as usize].iter().sum::<usize>();
            bits += c;
        }
        work
    };
    (2..=MAX_WINDOW).min_by_key(|&c| work(c)).unwrap_or(2)
}

/// The sum of 2^(c-1) over all digit positions. Added to a scalar, it makes each digit d of the signed form appear
/// as d + 2^(c-1) without a carry.
fn digit_offset(c: u32, windows: u32) -> [u64; 5] {
    let mut offset = [0; 5];
    for w in 0..windows {
        let bit = w * c + c - 1;
        offset[bit as usize / 64] |= 1 << (bit % 64);
    }
    offset
}

/// The signed digit of c bits of `magnitude` at bit `at`.
fn digit(magnitude: &[u64; 4], offset: &[u64; 5], at: u32, c: u32) -> i32 {
    let mut sum = [0u64; 6];
    let mut carry = 0;
    for i in 0..5 {
        let wide = u128::from(offset[i]) + u128::from(magnitude.get(i).copied().unwrap_or(0)) + carry;
        sum[i] = wide as u64;
        carry = wide >> 64;
    }
    let (limb, shift) = (at as usize / 64, at % 64);
    let bits = (u128::from(sum[limb]) | u128::from(sum[limb + 1]) << 64) >> shift;
    (bits as i32 & ((1 << c) - 1)) - (1 << (c - 1))
}

/// What the windows of a sum use, one after the other.
#[derive(Default)]
struct Window {
    digits: Zeroizing<Vec<i32>>,
    sorted: Sorted,
}

/// Terms in the order of their digits.
#[derive(Default)]
pub(super) struct Sorted {
    pub(super) terms: Zeroizing<Vec<Term>>,
    /// Where those of the absolute values 1, 2, .. end, after a zero.
    pub(super) ends: Zeroizing<Vec<u32>>,
}

impl Sorted {
    /// The terms with a digit other than zero, at most `most` in its absolute value.
    pub(super) fn sort(&mut self, digits: &[i32], most: usize, term: impl Fn(usize) -> Term) -> Result<()> {
        let Sorted { terms, ends } = self;
        // After the counts are added up, place d holds the end of the value d - 1, and moves on to the end of d.
        memory::make_room(OP, ends, most + 2)?;
        ends.resize(most + 2, 0);
        digits.iter().for_each(|d| ends[d.unsigned_abs() as usize + 1] += 1);
        ends[1] = 0;
        for d in 1..ends.len() {
            ends[d] += ends[d - 1];
        }
        // Room for all, whatever the digits are: what is used again does not grow.
        memory::make_room(OP, terms, digits.len())?;
        terms.resize(ends[ends.len() - 1] as usize, Term::default());
        for (i, &d) in digits.iter().enumerate() {
            if d != 0 {
                let place = &mut ends[d.unsigned_abs() as usize];
                terms[*place as usize] = term(i).turned(d < 0);
                *place += 1;
            }
        }
        ends.pop();
        Ok(())
    }
}

/// The sum over all buckets b = 1, 2, .. of b times the sum of the terms `ends[b - 1]..ends[b]`.
fn sum_of_buckets<G: Group>(
    points: &Points<G>,
    sorted: &[Term],
    ends: &[u32],
    scratch: &Reused<Scratch<G>>,
) -> Result<G::Ark> {
    let of_piece = piece_of::<G>();
    let pieces = sorted.len().div_ceil(of_piece);
    let sum = |p: usize| {
        let range = p * of_piece..sorted.len().min((p + 1) * of_piece);
        scratch.with(|scratch| piece::<G>(points, sorted, ends, range, scratch))
    };
    (0..pieces).into_par_iter().with_max_len(1).map(sum).try_reduce(|| G::Ark::ZERO, |a, b| Ok(a + b))
}

/// The part of [`sum_of_buckets`] that the terms of `range`, not empty, contribute. Its ends may cut buckets.
fn piece<G: Group>(
    points: &Points<G>,
    sorted: &[Term],
    ends: &[u32],
    range: std::ops::Range<usize>,
    scratch: &mut Scratch<G>,
) -> Result<G::Ark> {
    let first = add_within_buckets::<G>(points, sorted, ends, range, scratch)?;
    let Scratch { sums, counts, .. } = scratch;

    // running = B_top + .. + B_b, and weighted is the sum of its values: the sum of (b - first + 1) B_b.
    let mut running = <G::Ark as VariableBaseMSM>::ZERO_BUCKET;
    let mut weighted = <G::Ark as VariableBaseMSM>::ZERO_BUCKET;
    for count in counts.iter().rev() {
        for sum in sums.drain(sums.len() - count..) {
            if !sum.is_infinity() {
                running += G::from_xy(sum.x, sum.y);
            }
        }
        weighted += &running;
    }
    let (running, weighted): (G::Ark, G::Ark) = (running.into(), weighted.into());
    Ok(weighted + ark_ec::PrimeGroup::mul_bigint(&running, [first as u64 - 1]))
}

/// Adds up the terms of `range`, not empty, within their buckets: `counts[i]` of the `sums` of `scratch` are then left of bucket i + the number
/// that is returned. The ends of the range may cut buckets.
pub(super) fn add_within_buckets<G: Group>(
    points: &Points<G>,
    sorted: &[Term],
    ends: &[u32],
    range: std::ops::Range<usize>,
    scratch: &mut Scratch<G>,
) -> Result<usize> {
    let first = ends.partition_point(|&end| end as usize <= range.start);
    // Up to the first bucket that ends no sooner than the range.
    let last = ends.partition_point(|&end| (end as usize) < range.end);
    let counts = &mut scratch.counts;
    memory::make_room(OP, counts, last + 1 - first)?;
    let mut at = range.start;
    for &end in &ends[first..] {
        let end = range.end.min(end as usize);
        counts.push(end - at);
        at = end;
        if at == range.end {
            break;
        }
    }
    points.add_up(&sorted[range], scratch)?;
    Ok(first)
}

/// Adds up neighbours within each group of `counts[i]` points, again and again while it pays. There is room for `inverses` and `products` of
/// all pairs.
pub(super) fn add_in_pairs<F: Field>(
    points: &mut Vec<Xy<F>>,
    counts: &mut [usize],
    inverses: &mut Vec<F>,
    products: &mut Vec<F>,
) {
    while counts.iter().map(|n| n / 2).sum::<usize>() >= MIN_PAIRS {
        inverses.clear();
        let mut at = 0;
        for &n in counts.iter() {
            inverses.extend(points[at..at + n].chunks_exact(2).map(|pair| pair[0].denominator(&pair[1])));
            at += n;
        }
        invert_all(inverses, products);
        let (mut from, mut to, mut next) = (0, 0, inverses.iter());
        for n in counts.iter_mut() {
            for (i, inverse) in (0..*n / 2).zip(&mut next) {
                points[to + i] = points[from + 2 * i].add(&points[from + 2 * i + 1], inverse);
            }
            if *n % 2 == 1 {
                points[to + *n / 2] = points[from + *n - 1];
            }
            from += *n;
            *n = n.div_ceil(2);
            to += *n;
        }
        points.truncate(to);
    }
}

/// Inverts all elements but zeros, which stay.
fn invert_all<F: Field>(elements: &mut [F], products: &mut Vec<F>) {
    products.clear();
    let mut product = F::ONE;
    for x in elements.iter().filter(|x| !x.is_zero()) {
        products.push(product);
        product *= x;
    }
    // A product of elements other than zero has an inverse.
    let mut inverse = product.inverse().unwrap_or(F::ZERO);
    for x in elements.iter_mut().rev().filter(|x| !x.is_zero()) {
        let Some(before) = products.pop() else { return };
        let own = inverse * before;
        inverse *= *x;
        *x = own;
    }
}

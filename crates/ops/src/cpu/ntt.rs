//! Radix-2 transforms over one table of roots of unity.
//!
//! Decimation in frequency takes natural order to bit-reversed order, decimation in time the other way; both are
//! recursive, so that small transforms stay in the caches. The inverse is the forward transform with the values'
//! indices negated: sum_i v_i w^(-ij) stands at index -j.

mod complex;
mod spread;
mod wide;

use super::simd::Eight;
use super::{equal_lengths, one_lane, Buf, Cpu};
use crate::ntt::log_size;
use crate::{memory, Mont};
use crate::{Buffer, Coset, Curve, Direction, Error, Ntt, NttField, NttOp, NttProducts, Order, Result, Wire};
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::ops::{Add, Mul, Sub};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tandem_field_simd::{Avx512, Wide};
use zeroize::Zeroize;

/// Transforms up to this size are done by one thread.
const SERIAL: usize = 1 << 11;
/// Elements that one task takes in a pass over a vector.
const CHUNK: usize = 1 << 10;

/// What the steps of a transform calculate with: elements of a field, or complex numbers.
trait Numbers: 'static {
    /// As they lie in a buffer.
    type Stored: Wire + Default;
    /// As they are added and multiplied.
    type Value: Copy + Add<Output = Self::Value> + Sub<Output = Self::Value> + Mul<Output = Self::Value>;

    fn stored(x: Self::Value) -> Self::Stored;
    fn loaded(x: Self::Stored) -> Self::Value;
}

impl<F: NttField> Numbers for F {
    type Stored = F::Element;
    type Value = F::Ark;

    #[inline]
    fn stored(x: F::Ark) -> F::Element {
        F::element(x)
    }
    #[inline]
    fn loaded(x: F::Element) -> F::Ark {
        F::value(x)
    }
}

/// For each kind of numbers the powers that transforms multiply by: element h + j is w^j for w the primitive 2h-th root of
/// unity, h = 1, 2, 4, .., 0 <= j < h. Level h serves the butterflies of distance h of every size. The table of `N` is an
/// `Arc<Table<N::Stored>>`.
#[derive(Debug, Default)]
pub(super) struct Roots(Mutex<HashMap<TypeId, Box<dyn Any + Send>>>);

/// The powers of one kind of numbers: all of them as elements, or as known factors and only the first as elements.
struct Table<E> {
    elements: Vec<E>,
    wide: Option<(Eight, Wide)>,
}

impl<E> Table<E> {
    fn len(&self) -> usize {
        self.wide.as_ref().map_or(self.elements.len(), |(_, wide)| wide.len())
    }
}

impl Roots {
    /// A table for transforms of at least `n` = 2^`log_n` elements.
    fn get<F: NttField>(&self, log_n: u32, simd: Option<Avx512>) -> Result<Arc<Table<F::Element>>> {
        self.get_or_make::<F>(log_n, || {
            let wide = match Eight::of::<F>(simd).filter(|_| 1 << log_n >= wide::LEAST) {
                Some(eight) => Some((eight, eight.roots(&Self::upper::<F>(log_n)?)?)),
                None => None,
            };
            // Twice as many as the transforms that take them have elements.
            let log_own = if wide.is_some() { wide::LEAST.ilog2() } else { log_n };
            let fill = |upper: &mut [F::Element]| {
                powers::<F>(upper, F::Ark::ONE, root::<F>(log_own)?);
                Ok(())
            };
            Ok(Table { elements: Self::make("ntt", log_own, fill)?, wide })
        })
    }

    /// The table that is kept, if it is for as many elements, or a new one.
    fn get_or_make<N: Numbers>(
        &self,
        log_n: u32,
        make: impl FnOnce() -> Result<Table<N::Stored>>,
    ) -> Result<Arc<Table<N::Stored>>> {
        let at_least = |table: &Arc<Table<N::Stored>>| table.len() >> log_n > 0;
        let known = |tables: &HashMap<TypeId, Box<dyn Any + Send>>| {
            tables.get(&TypeId::of::<N>())?.downcast_ref::<Arc<Table<N::Stored>>>().filter(|t| at_least(t)).cloned()
        };
        if let Some(table) = known(&self.tables()) {
            return Ok(table);
        }
        // A smaller one takes its memory until nobody uses it.
        drop(self.tables().remove(&TypeId::of::<N>()));
        // Not under the lock: a thread that waits for others' part of the work takes up other work, which may ask for a table.
        let table = Arc::new(make()?);
        let mut tables = self.tables();
        // Another thread may have been faster.
        if let Some(table) = known(&tables) {
            return Ok(table);
        }
        tables.insert(TypeId::of::<N>(), Box::new(table.clone()));
        Ok(table)
    }

    fn tables(&self) -> MutexGuard<'_, HashMap<TypeId, Box<dyn Any + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The upper half of a table of 2^`log_n` powers, two or more.
    fn upper<F: NttField>(log_n: u32) -> Result<Vec<F::Element>> {
        let mut upper = memory::filled("ntt", 1 << (log_n - 1), F::Element::default())?;
        powers::<F>(&mut upper, F::Ark::ONE, root::<F>(log_n)?);
        Ok(upper)
    }

    /// A table of 2^`log_n` powers, of which `fill` makes the upper half, where there is one.
    fn make<E: Wire + Default>(
        op: &'static str,
        log_n: u32,
        fill: impl FnOnce(&mut [E]) -> Result<()>,
    ) -> Result<Vec<E>> {
        let n = 1usize << log_n;
        let mut table = memory::filled(op, n, E::default())?;
        if n > 1 {
            fill(&mut table[n / 2..])?;
        }
        let mut h = n / 2;
        while h > 1 {
            let (below, level) = table.split_at_mut(h);
            let half = &mut below[h / 2..];
            half.par_iter_mut().with_min_len(CHUNK).zip(level.par_chunks(2)).for_each(|(t, pair)| *t = pair[0]);
            h /= 2;
        }
        Ok(table)
    }
}

fn root<F: NttField>(log_n: u32) -> Result<F::Ark> {
    F::root_of_unity(log_n)
        .ok_or_else(|| Error::invalid("ntt", format!("{} has no 2^{log_n}-th root of unity", F::FIELD)))
}

/// By what the points of the subgroup of 2^`log_n` are multiplied; never zero.
fn shift_of<F: NttField>(coset: Coset<F::Element>, log_n: u32) -> Result<F::Ark> {
    let shift = match coset {
        Coset::Subgroup => F::Ark::ONE,
        Coset::Odd => root::<F>(log_n + 1)?,
        Coset::Shift(g) => F::value(g),
    };
    if shift == F::Ark::ZERO {
        return Err(Error::invalid("ntt", "the shift of the coset is zero"));
    }
    Ok(shift)
}

/// out_i = first * w^i
fn powers<F: NttField>(out: &mut [F::Element], first: F::Ark, w: F::Ark) {
    out.par_chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| {
        let mut x = first * w.pow([(i * CHUNK) as u64]);
        for out in chunk {
            *out = F::element(x);
            x *= w;
        }
    });
}

impl<F: NttField> Ntt<F> for Cpu {
    fn ntt_batch(&self, buf: &mut Buf<F::Element>, count: usize, op: NttOp<F::Element>) -> Result<()> {
        let log_n = log_size::<F>(buf.len(), count, op.coset)?;
        let shift = shift_of::<F>(op.coset, log_n)?;
        let unshift = shift.inverse().unwrap_or(F::Ark::ZERO);
        let inverse = op.direction == Direction::Inverse;
        let odd = op.coset == Coset::Odd && op.input == Order::BitReversed && !inverse;
        let table = self.roots.get::<F>(log_n + u32::from(odd), self.simd)?;
        let over_n = F::Ark::from(1u64 << log_n).inverse().unwrap_or(F::Ark::ZERO);
        buf.data.par_chunks_mut(1 << log_n).for_each(|data| {
            if inverse {
                forward::<F>(data, &table, op.input, op.output, false);
                negate_indices::<F>(self.simd, data, op.output, over_n);
                if op.coset != Coset::Subgroup {
                    scale_by_powers::<F>(self.simd, data, op.output, F::Ark::ONE, unshift);
                }
            } else {
                if op.coset != Coset::Subgroup && !odd {
                    scale_by_powers::<F>(self.simd, data, op.input, F::Ark::ONE, shift);
                }
                forward::<F>(data, &table, op.input, op.output, odd);
            }
        });
        Ok(())
    }
}

impl<C: Curve> NttProducts<C> for Cpu {
    /// In the memory of c.
    fn product_less_ntt(&self, a: &Buf<Mont>, b: &Buf<Mont>, mut c: Buf<Mont>, op: NttOp) -> Result<Buf<Mont>> {
        one_lane("mul_sub", &[a.lane(), b.lane(), c.lane()])?;
        equal_lengths("mul_sub", a.len(), b.len())?;
        equal_lengths("mul_sub", a.len(), c.len())?;
        Ntt::<C>::ntt(self, &mut c, op)?;
        let eight = Eight::of::<C>(self.simd);
        let chunks = c.data.par_chunks_mut(CHUNK).zip(a.data.par_chunks(CHUNK).zip(b.data.par_chunks(CHUNK)));
        chunks.for_each(|(c, (a, b))| match eight {
            Some(eight) => {
                let mut product = [Mont::default(); CHUNK];
                let product = &mut product[..a.len()];
                product.copy_from_slice(a);
                eight.mul::<C>(product, b, |_, _| ());
                c.iter_mut().zip(&*product).for_each(|(c, &p)| *c = C::mont(C::from_mont(p) - C::from_mont(*c)));
                product.iter_mut().zeroize();
            }
            None => c.iter_mut().zip(a.iter().zip(b)).for_each(|(c, (&a, &b))| {
                *c = C::mont(C::from_mont(a) * C::from_mont(b) - C::from_mont(*c));
            }),
        });
        Ok(c)
    }
}

/// The forward transform over the subgroup, or over the odd powers of the 2n-th root if `odd`, which only bit-reversed
/// input allows.
fn forward<F: NttField>(data: &mut [F::Element], table: &Table<F::Element>, from: Order, to: Order, odd: bool) {
    match (&table.wide, from) {
        (Some((eight, roots)), _) if data.len() >= wide::LEAST => eight.forward(data, roots, from, odd),
        (_, Order::Natural) => decimate_frequency::<F>(data, &table.elements),
        (_, Order::BitReversed) => decimate_time::<F>(data, &table.elements, odd),
    }
    if from == to {
        reverse_bits(data);
    }
}

/// From natural to bit-reversed order.
fn decimate_frequency<F: NttField>(a: &mut [F::Element], table: &[F::Element]) {
    let n = a.len();
    if n > SERIAL {
        let h = n / 2;
        let (lo, hi) = a.split_at_mut(h);
        let tasks = lo.par_chunks_mut(CHUNK).zip(hi.par_chunks_mut(CHUNK)).zip(table[h..n].par_chunks(CHUNK));
        tasks.for_each(|((lo, hi), w)| frequency_butterflies::<F>(lo, hi, w));
        rayon::join(|| decimate_frequency::<F>(lo, table), || decimate_frequency::<F>(hi, table));
        return;
    }
    let mut h = n / 2;
    while h > 0 {
        for block in a.chunks_exact_mut(2 * h) {
            let (lo, hi) = block.split_at_mut(h);
            frequency_butterflies::<F>(lo, hi, &table[h..2 * h]);
        }
        h /= 2;
    }
}

/// (x, y) -> (x + y, (x - y) w)
fn frequency_butterflies<F: NttField>(lo: &mut [F::Element], hi: &mut [F::Element], w: &[F::Element]) {
    for ((lo, hi), w) in lo.iter_mut().zip(hi).zip(w) {
        let (x, y) = (F::value(*lo), F::value(*hi));
        *lo = F::element(x + y);
        *hi = F::element((x - y) * F::value(*w));
    }
}

/// From bit-reversed to natural order. A transform over g times the subgroup has g^(n/2h) w^j at distance h in
/// the place of w^j; for g the 2n-th root that is the (2j + 1)-th power of the 4h-th root.
fn decimate_time<N: Numbers>(a: &mut [N::Stored], table: &[N::Stored], odd: bool) {
    let n = a.len();
    if n > SERIAL {
        let h = n / 2;
        let (lo, hi) = a.split_at_mut(h);
        rayon::join(|| decimate_time::<N>(lo, table, odd), || decimate_time::<N>(hi, table, odd));
        let w = time_level(table, h, odd);
        let stride = 1 + usize::from(odd);
        let tasks = lo.par_chunks_mut(CHUNK).zip(hi.par_chunks_mut(CHUNK)).zip(w.par_chunks(CHUNK * stride));
        tasks.for_each(|((lo, hi), w)| time_butterflies::<N>(lo, hi, w, stride));
        return;
    }
    let mut h = 1;
    while h < n {
        let w = time_level(table, h, odd);
        for block in a.chunks_exact_mut(2 * h) {
            let (lo, hi) = block.split_at_mut(h);
            time_butterflies::<N>(lo, hi, w, 1 + usize::from(odd));
        }
        h *= 2;
    }
}

fn time_level<E>(table: &[E], h: usize, odd: bool) -> &[E] {
    if odd {
        &table[2 * h + 1..4 * h]
    } else {
        &table[h..2 * h]
    }
}

/// (x, y) -> (x + y w, x - y w)
fn time_butterflies<N: Numbers>(lo: &mut [N::Stored], hi: &mut [N::Stored], w: &[N::Stored], stride: usize) {
    for ((lo, hi), w) in lo.iter_mut().zip(hi).zip(w.iter().step_by(stride)) {
        let (x, y) = (N::loaded(*lo), N::loaded(*hi) * N::loaded(*w));
        *lo = N::stored(x + y);
        *hi = N::stored(x - y);
    }
}

/// The number of `bits` bits whose bits are those of `i` read backwards.
fn reversed(i: usize, bits: u32) -> usize {
    i.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0)
}

fn reverse_bits<E: Wire>(data: &mut [E]) {
    let bits = data.len().ilog2();
    let gather = |i| data[reversed(i, bits)];
    let mut out: Vec<E> = (0..data.len()).into_par_iter().with_min_len(CHUNK).map(gather).collect();
    data.copy_from_slice(&out);
    out.iter_mut().zeroize();
}

/// Moves the element of index i to index -i modulo n, and multiplies all by `factor`.
fn negate_indices<F: NttField>(simd: Option<Avx512>, data: &mut [F::Element], order: Order, factor: F::Ark) {
    let factor = match Eight::of::<F>(simd) {
        Some(eight) if data.len() >= wide::LEAST => {
            eight.scale::<F>(data, factor);
            None
        }
        _ => Some(factor),
    };
    // Negation keeps the lowest bit that is set and flips those above it; read backwards, it flips those below the
    // highest, which reverses every block 2^k..2^(k+1).
    let (first, mut rest) = data.split_at_mut(1);
    reverse::<F>(first, factor);
    match order {
        Order::Natural => reverse::<F>(rest, factor),
        Order::BitReversed => {
            let mut len = 1;
            while !rest.is_empty() {
                let (block, behind) = rest.split_at_mut(len);
                reverse::<F>(block, factor);
                rest = behind;
                len *= 2;
            }
        }
    }
}

fn reverse<F: NttField>(data: &mut [F::Element], factor: Option<F::Ark>) {
    let times = |x: F::Element| factor.map_or(x, |factor| F::element(F::value(x) * factor));
    let half = data.len() / 2;
    let (lo, hi) = data.split_at_mut(half);
    let (middle, hi) = hi.split_at_mut(hi.len() - half);
    middle.iter_mut().for_each(|x| *x = times(*x));
    lo.par_iter_mut().zip(hi.par_iter_mut().rev()).with_min_len(CHUNK).for_each(|(a, b)| {
        (*a, *b) = (times(*b), times(*a));
    });
}

/// Multiplies the element of index i by first * g^i.
fn scale_by_powers<F: NttField>(simd: Option<Avx512>, data: &mut [F::Element], order: Order, first: F::Ark, g: F::Ark) {
    if let Some(eight) = Eight::of::<F>(simd).filter(|_| data.len() >= wide::LEAST) {
        return eight.scale_by_powers::<F>(data, order, first, g);
    }
    let bits = data.len().ilog2();
    let chunk_bits = bits.min(CHUNK.ilog2());
    data.par_chunks_mut(1 << chunk_bits).enumerate().for_each(|(c, chunk)| match order {
        Order::Natural => {
            let mut x = first * g.pow([(c << chunk_bits) as u64]);
            for a in chunk {
                *a = F::element(F::value(*a) * x);
                x *= g;
            }
        }
        Order::BitReversed => {
            // Place (c, p) holds index reversed(p) * 2^(bits - chunk_bits) + reversed(c).
            let x = first * g.pow([reversed(c, bits - chunk_bits) as u64]);
            let step = g.pow([1 << (bits - chunk_bits)]);
            let mut steps = vec![F::Element::default(); chunk.len()];
            let mut power = x;
            for p in 0..chunk.len() {
                steps[reversed(p, chunk_bits)] = F::element(power);
                power *= step;
            }
            chunk.iter_mut().zip(&steps).for_each(|(a, s)| *a = F::element(F::value(*a) * F::value(*s)));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{naive, BabyBear, Backend, Bls12_381, Bn254, Goldilocks, Lane};
    use ark_ff::UniformRand;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    /// Where eight are done at a time, and where not: each table that there is no memory for is an error with its size.
    #[test]
    fn too_little_memory_for_roots_is_an_error() {
        let log_n = 10;
        let refused = |cpu: &Cpu, free: u64| {
            let got = memory::with_free(free, || cpu.roots.get::<Bn254>(log_n, cpu.simd).map(|table| table.len()));
            got.map_err(|error| match error {
                crate::Error::OutOfMemory { op: "ntt", wanted, free: _, .. } => wanted,
                other => panic!("{other}"),
            })
        };
        let plain = 32 << log_n;
        let cpu = Cpu::plain(1);
        assert_eq!((refused(&cpu, plain - 1), refused(&cpu, plain)), (Err(plain), Ok(1 << log_n)));
        let cpu = Cpu::new(1);
        if Eight::of::<Bn254>(cpu.simd).is_some() {
            let (half, wide) = (plain / 2, 40 << log_n);
            assert_eq!((refused(&cpu, half - 1), refused(&cpu, half)), (Err(half), Err(wide)));
            assert_eq!((refused(&cpu, wide - 1), refused(&cpu, wide)), (Err(wide), Ok(1 << log_n)));
        }
    }

    /// Small sizes in full, and sizes beyond [`SERIAL`] at a few places.
    fn agrees_with_the_definition<F: NttField>() {
        [Cpu::new(1), Cpu::plain(1)].iter().for_each(agrees_on::<F>);
    }

    fn agrees_on<F: NttField>(cpu: &Cpu) {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for log_n in [0, 1, 2, 3, 6, SERIAL.ilog2() + 2] {
            let input: Vec<_> = (0..1 << log_n).map(|_| F::Ark::rand(&mut rng)).collect();
            let wire: Vec<_> = input.iter().map(|&x| F::element(x)).collect();
            for direction in [Direction::Forward, Direction::Inverse] {
                for coset in [Coset::Subgroup, Coset::Odd, Coset::Shift(F::element(F::Ark::rand(&mut rng)))] {
                    for (input_order, output) in [Order::Natural, Order::BitReversed]
                        .into_iter()
                        .flat_map(|i| [(i, Order::Natural), (i, Order::BitReversed)])
                    {
                        let op = NttOp { direction, coset, input: input_order, output };
                        let mut buf = cpu.upload(Lane(0), &wire).unwrap();
                        Ntt::<F>::ntt(cpu, &mut buf, op).unwrap();
                        for i in (0..1usize << log_n).step_by(1.max((1 << log_n) / 61)) {
                            let got = F::value(buf.as_slice()[naive::place(output, i, log_n)]);
                            assert_eq!(Some(got), naive::ntt_at::<F>(&input, op, i), "{op:?}, 2^{log_n}, index {i}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn bn254() {
        agrees_with_the_definition::<Bn254>();
    }

    #[test]
    fn bls12_381() {
        agrees_with_the_definition::<Bls12_381>();
    }

    #[test]
    fn goldilocks() {
        agrees_with_the_definition::<Goldilocks>();
    }

    #[test]
    fn baby_bear() {
        agrees_with_the_definition::<BabyBear>();
    }
}

//! Radix-2 transforms over one table of roots of unity.
//!
//! Decimation in frequency takes natural order to bit-reversed order, decimation in time the other way; both are
//! recursive, so that small transforms stay in the caches. The inverse is the forward transform with the values'
//! indices negated: sum_i v_i w^(-ij) stands at index -j.

use super::{Buf, Cpu};
use crate::{Buffer, Coset, Curve, CurveId, Direction, Error, Mont, Ntt, NttOp, Order, Result};
use ark_ff::{AdditiveGroup, FftField, Field};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroize;

/// Transforms up to this size are done by one thread.
const SERIAL: usize = 1 << 11;
/// Elements that one task takes in a pass over a vector.
const CHUNK: usize = 1 << 10;

/// For each curve the powers that transforms multiply by: element h + j is w^j for w the primitive 2h-th root of
/// unity, h = 1, 2, 4, .., 0 <= j < h. Level h serves the butterflies of distance h of every size.
#[derive(Debug, Default)]
pub(super) struct Roots(Mutex<HashMap<CurveId, Arc<Vec<Mont>>>>);

impl Roots {
    /// A table for transforms of at least `n` = 2^`log_n` elements.
    fn get<C: Curve>(&self, log_n: u32) -> Result<Arc<Vec<Mont>>> {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&C::ID).filter(|t| t.len() >> log_n > 0) {
            return Ok(table.clone());
        }
        let n = 1usize << log_n;
        let mut table = vec![Mont::default(); n];
        if n > 1 {
            powers::<C>(&mut table[n / 2..], C::Fr::ONE, root::<C>(log_n)?);
        }
        let mut h = n / 2;
        while h > 1 {
            let (below, level) = table.split_at_mut(h);
            let half = &mut below[h / 2..];
            half.par_iter_mut().with_min_len(CHUNK).zip(level.par_chunks(2)).for_each(|(t, pair)| *t = pair[0]);
            h /= 2;
        }
        let table = Arc::new(table);
        tables.insert(C::ID, table.clone());
        Ok(table)
    }
}

fn root<C: Curve>(log_n: u32) -> Result<C::Fr> {
    C::root_of_unity(log_n).ok_or_else(|| Error::invalid("ntt", format!("{} has no 2^{log_n}-th root of unity", C::ID)))
}

/// out_i = first * w^i
fn powers<C: Curve>(out: &mut [Mont], first: C::Fr, w: C::Fr) {
    out.par_chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| {
        let mut x = first * w.pow([(i * CHUNK) as u64]);
        for out in chunk {
            *out = C::mont(x);
            x *= w;
        }
    });
}

impl<C: Curve> Ntt<C> for Cpu {
    fn ntt(&self, buf: &mut Buf<Mont>, op: NttOp) -> Result<()> {
        let n = buf.len();
        let s = <C::Fr as FftField>::TWO_ADICITY;
        if !n.is_power_of_two() || n.ilog2() > s {
            return Err(Error::invalid("ntt", format!("{n} elements; a power of two up to 2^{s} is needed")));
        }
        let log_n = n.ilog2();
        let shift = match op.coset {
            Coset::Subgroup => C::Fr::ONE,
            Coset::Odd => root::<C>(log_n + 1)?,
            Coset::Shift(g) => C::from_mont(g),
        };
        let Some(unshift) = shift.inverse() else {
            return Err(Error::invalid("ntt", "the shift of the coset is zero"));
        };
        let data = &mut buf.data;
        match op.direction {
            Direction::Forward => {
                let odd = op.coset == Coset::Odd && op.input == Order::BitReversed;
                if op.coset != Coset::Subgroup && !odd {
                    scale_by_powers::<C>(data, op.input, C::Fr::ONE, shift);
                }
                self.forward::<C>(data, log_n, op.input, op.output, odd)
            }
            Direction::Inverse => {
                self.forward::<C>(data, log_n, op.input, op.output, false)?;
                let over_n = C::Fr::from(n as u64).inverse().unwrap_or(C::Fr::ZERO);
                negate_indices::<C>(data, op.output, over_n);
                if op.coset != Coset::Subgroup {
                    scale_by_powers::<C>(data, op.output, C::Fr::ONE, unshift);
                }
                Ok(())
            }
        }
    }
}

impl Cpu {
    /// The forward transform over the subgroup, or over the odd powers of the 2n-th root if `odd`, which only
    /// bit-reversed input allows.
    fn forward<C: Curve>(&self, data: &mut Vec<Mont>, log_n: u32, from: Order, to: Order, odd: bool) -> Result<()> {
        let table = self.roots.get::<C>(log_n + u32::from(odd))?;
        match from {
            Order::Natural => {
                decimate_frequency::<C>(data, &table);
                if to == Order::Natural {
                    reverse_bits(data);
                }
            }
            Order::BitReversed => {
                decimate_time::<C>(data, &table, odd);
                if to == Order::BitReversed {
                    reverse_bits(data);
                }
            }
        }
        Ok(())
    }
}

/// From natural to bit-reversed order.
fn decimate_frequency<C: Curve>(a: &mut [Mont], table: &[Mont]) {
    let n = a.len();
    if n > SERIAL {
        let h = n / 2;
        let (lo, hi) = a.split_at_mut(h);
        let tasks = lo.par_chunks_mut(CHUNK).zip(hi.par_chunks_mut(CHUNK)).zip(table[h..n].par_chunks(CHUNK));
        tasks.for_each(|((lo, hi), w)| frequency_butterflies::<C>(lo, hi, w));
        rayon::join(|| decimate_frequency::<C>(lo, table), || decimate_frequency::<C>(hi, table));
        return;
    }
    let mut h = n / 2;
    while h > 0 {
        for block in a.chunks_exact_mut(2 * h) {
            let (lo, hi) = block.split_at_mut(h);
            frequency_butterflies::<C>(lo, hi, &table[h..2 * h]);
        }
        h /= 2;
    }
}

/// (x, y) -> (x + y, (x - y) w)
fn frequency_butterflies<C: Curve>(lo: &mut [Mont], hi: &mut [Mont], w: &[Mont]) {
    for ((lo, hi), w) in lo.iter_mut().zip(hi).zip(w) {
        let (x, y) = (C::from_mont(*lo), C::from_mont(*hi));
        *lo = C::mont(x + y);
        *hi = C::mont((x - y) * C::from_mont(*w));
    }
}

/// From bit-reversed to natural order. A transform over g times the subgroup has g^(n/2h) w^j at distance h in
/// the place of w^j; for g the 2n-th root that is the (2j + 1)-th power of the 4h-th root.
fn decimate_time<C: Curve>(a: &mut [Mont], table: &[Mont], odd: bool) {
    let n = a.len();
    if n > SERIAL {
        let h = n / 2;
        let (lo, hi) = a.split_at_mut(h);
        rayon::join(|| decimate_time::<C>(lo, table, odd), || decimate_time::<C>(hi, table, odd));
        let w = time_level(table, h, odd);
        let stride = 1 + usize::from(odd);
        let tasks = lo.par_chunks_mut(CHUNK).zip(hi.par_chunks_mut(CHUNK)).zip(w.par_chunks(CHUNK * stride));
        tasks.for_each(|((lo, hi), w)| time_butterflies::<C>(lo, hi, w, stride));
        return;
    }
    let mut h = 1;
    while h < n {
        let w = time_level(table, h, odd);
        for block in a.chunks_exact_mut(2 * h) {
            let (lo, hi) = block.split_at_mut(h);
            time_butterflies::<C>(lo, hi, w, 1 + usize::from(odd));
        }
        h *= 2;
    }
}

fn time_level(table: &[Mont], h: usize, odd: bool) -> &[Mont] {
    if odd {
        &table[2 * h + 1..4 * h]
    } else {
        &table[h..2 * h]
    }
}

/// (x, y) -> (x + y w, x - y w)
fn time_butterflies<C: Curve>(lo: &mut [Mont], hi: &mut [Mont], w: &[Mont], stride: usize) {
    for ((lo, hi), w) in lo.iter_mut().zip(hi).zip(w.iter().step_by(stride)) {
        let (x, y) = (C::from_mont(*lo), C::from_mont(*hi) * C::from_mont(*w));
        *lo = C::mont(x + y);
        *hi = C::mont(x - y);
    }
}

/// The number of `bits` bits whose bits are those of `i` read backwards.
fn reversed(i: usize, bits: u32) -> usize {
    i.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0)
}

fn reverse_bits(data: &mut Vec<Mont>) {
    let bits = data.len().ilog2();
    let gather = |i| data[reversed(i, bits)];
    let mut out: Vec<Mont> = (0..data.len()).into_par_iter().with_min_len(CHUNK).map(gather).collect();
    std::mem::swap(data, &mut out);
    out.iter_mut().zeroize();
}

/// Moves the element of index i to index -i modulo n, and multiplies all by `factor`.
fn negate_indices<C: Curve>(data: &mut [Mont], order: Order, factor: C::Fr) {
    // Negation keeps the lowest bit that is set and flips those above it; read backwards, it flips those below the
    // highest, which reverses every block 2^k..2^(k+1).
    let (first, mut rest) = data.split_at_mut(1);
    reverse::<C>(first, factor);
    match order {
        Order::Natural => reverse::<C>(rest, factor),
        Order::BitReversed => {
            let mut len = 1;
            while !rest.is_empty() {
                let (block, behind) = rest.split_at_mut(len);
                reverse::<C>(block, factor);
                rest = behind;
                len *= 2;
            }
        }
    }
}

fn reverse<C: Curve>(data: &mut [Mont], factor: C::Fr) {
    let times = |x: Mont| C::mont(C::from_mont(x) * factor);
    let half = data.len() / 2;
    let (lo, hi) = data.split_at_mut(half);
    let (middle, hi) = hi.split_at_mut(hi.len() - half);
    middle.iter_mut().for_each(|x| *x = times(*x));
    lo.par_iter_mut().zip(hi.par_iter_mut().rev()).with_min_len(CHUNK).for_each(|(a, b)| {
        (*a, *b) = (times(*b), times(*a));
    });
}

/// Multiplies the element of index i by first * g^i.
fn scale_by_powers<C: Curve>(data: &mut [Mont], order: Order, first: C::Fr, g: C::Fr) {
    let bits = data.len().ilog2();
    let chunk_bits = bits.min(CHUNK.ilog2());
    data.par_chunks_mut(1 << chunk_bits).enumerate().for_each(|(c, chunk)| match order {
        Order::Natural => {
            let mut x = first * g.pow([(c << chunk_bits) as u64]);
            for a in chunk {
                *a = C::mont(C::from_mont(*a) * x);
                x *= g;
            }
        }
        Order::BitReversed => {
            // Place (c, p) holds index reversed(p) * 2^(bits - chunk_bits) + reversed(c).
            let x = first * g.pow([reversed(c, bits - chunk_bits) as u64]);
            let step = g.pow([1 << (bits - chunk_bits)]);
            let mut steps = vec![Mont::default(); chunk.len()];
            let mut power = x;
            for p in 0..chunk.len() {
                steps[reversed(p, chunk_bits)] = C::mont(power);
                power *= step;
            }
            chunk.iter_mut().zip(&steps).for_each(|(a, s)| *a = C::mont(C::from_mont(*a) * C::from_mont(*s)));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{naive, Backend, Bls12_381, Bn254, Lane};
    use ark_ff::UniformRand;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    /// Small sizes in full, and sizes beyond [`SERIAL`] at a few places.
    fn agrees_with_the_definition<C: Curve>() {
        let cpu = Cpu::new(1);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for log_n in [0, 1, 2, 3, 6, SERIAL.ilog2() + 2] {
            let input: Vec<_> = (0..1 << log_n).map(|_| C::Fr::rand(&mut rng)).collect();
            let wire: Vec<_> = input.iter().map(|&x| C::mont(x)).collect();
            for direction in [Direction::Forward, Direction::Inverse] {
                for coset in [Coset::Subgroup, Coset::Odd, Coset::Shift(C::mont(C::Fr::rand(&mut rng)))] {
                    for (input_order, output) in [Order::Natural, Order::BitReversed]
                        .into_iter()
                        .flat_map(|i| [(i, Order::Natural), (i, Order::BitReversed)])
                    {
                        let op = NttOp { direction, coset, input: input_order, output };
                        let mut buf = cpu.upload(Lane(0), &wire).unwrap();
                        Ntt::<C>::ntt(&cpu, &mut buf, op).unwrap();
                        for i in (0..1usize << log_n).step_by(1.max((1 << log_n) / 61)) {
                            let got = C::from_mont(buf.as_slice()[naive::place(output, i, log_n)]);
                            assert_eq!(Some(got), naive::ntt_at::<C>(&input, op, i), "{op:?}, 2^{log_n}, index {i}");
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
}

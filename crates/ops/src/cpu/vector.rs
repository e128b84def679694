//! Element-wise arithmetic.

use super::simd::Eight;
use super::{equal_lengths, one_lane, Buf, Cpu};
use crate::vector::{check_add_scaled, check_combined};
use crate::{memory, Buffer, Canonical, Curve, Mont, Result, VecOps, Wire};
use ark_ff::{AdditiveGroup, PrimeField};
use rayon::prelude::*;

/// Elements that one task takes at least.
const GRAIN: usize = 1 << 10;

/// a_i = f(a_i, b_i)
fn zip<A: Wire, B: Wire>(op: &'static str, a: &mut Buf<A>, b: &Buf<B>, f: impl Fn(A, B) -> A + Sync) -> Result<()> {
    one_lane(op, &[a.lane(), b.lane()])?;
    equal_lengths(op, a.len(), b.len())?;
    a.data.par_iter_mut().with_min_len(GRAIN).zip(&b.data).for_each(|(a, &b)| *a = f(*a, b));
    Ok(())
}

impl<C: Curve> VecOps<C> for Cpu {
    fn add(&self, a: &mut Buf<Mont>, b: &Buf<Mont>) -> Result<()> {
        zip("add", a, b, |a, b| C::mont(C::from_mont(a) + C::from_mont(b)))
    }

    fn sub(&self, a: &mut Buf<Mont>, b: &Buf<Mont>) -> Result<()> {
        zip("sub", a, b, |a, b| C::mont(C::from_mont(a) - C::from_mont(b)))
    }

    fn mul(&self, a: &mut Buf<Mont>, b: &Buf<Mont>) -> Result<()> {
        if let Some(eight) = Eight::of::<C>(self.simd) {
            one_lane("mul", &[a.lane(), b.lane()])?;
            equal_lengths("mul", a.len(), b.len())?;
            eight.mul::<C>(&mut a.data, &b.data, |_, _| ());
            return Ok(());
        }
        zip("mul", a, b, |a, b| C::mont(C::from_mont(a) * C::from_mont(b)))
    }

    fn scale(&self, a: &mut Buf<Mont>, k: Mont) -> Result<()> {
        let k = C::from_mont(k);
        if let Some(eight) = Eight::of::<C>(self.simd) {
            eight.scale::<C>(&mut a.data, k);
            return Ok(());
        }
        a.data.par_iter_mut().with_min_len(GRAIN).for_each(|a| *a = C::mont(C::from_mont(*a) * k));
        Ok(())
    }

    fn mul_sub(&self, a: &mut Buf<Mont>, b: &Buf<Mont>, c: &Buf<Mont>) -> Result<()> {
        one_lane("mul_sub", &[a.lane(), b.lane(), c.lane()])?;
        equal_lengths("mul_sub", a.len(), b.len())?;
        equal_lengths("mul_sub", a.len(), c.len())?;
        if let Some(eight) = Eight::of::<C>(self.simd) {
            let less = |a: &mut Mont, i: usize| *a = C::mont(C::from_mont(*a) - C::from_mont(c.data[i]));
            eight.mul::<C>(&mut a.data, &b.data, less);
            return Ok(());
        }
        let bc = b.data.par_iter().zip(&c.data);
        a.data.par_iter_mut().with_min_len(GRAIN).zip(bc).for_each(|(a, (&b, &c))| {
            *a = C::mont(C::from_mont(*a) * C::from_mont(b) - C::from_mont(c));
        });
        Ok(())
    }

    fn add_scaled(&self, a: &mut Buf<Mont>, first: usize, step: usize, b: &Buf<Mont>, k: Mont) -> Result<()> {
        check_add_scaled((a.lane(), a.len()), first, step, (b.lane(), b.len()))?;
        let k = C::from_mont(k);
        let Some(a) = a.data.get_mut(first..) else { return Ok(()) };
        let add = |(a, &b): (&mut [Mont], &Mont)| a[0] = C::mont(C::from_mont(a[0]) + k * C::from_mont(b));
        a.par_chunks_mut(step).with_min_len(GRAIN).zip(&b.data).for_each(add);
        Ok(())
    }

    fn combined(&self, len: usize, terms: &[(&Buf<Mont>, Mont)]) -> Result<Buf<Mont>> {
        let sizes: Vec<_> = terms.iter().map(|(of, _)| (of.lane(), of.len())).collect();
        let lane = check_combined(len, &sizes)?;
        let terms: Vec<_> = terms.iter().map(|(of, k)| (of.data.as_slice(), C::from_mont(*k))).collect();
        let element = |i: usize| -> Mont {
            let of = |(of, k): &(&[Mont], C::Fr)| of.get(i).map_or(C::Fr::ZERO, |x| C::from_mont(*x) * k);
            C::mont(terms.iter().map(of).sum())
        };
        let mut data = memory::reserve("combined", len)?;
        (0..len).into_par_iter().with_min_len(GRAIN).map(element).collect_into_vec(&mut data);
        Ok(self.buf(lane, data))
    }

    fn to_canonical(&self, a: &Buf<Mont>, out: &mut Buf<Canonical>) -> Result<()> {
        zip("to_canonical", out, a, |_, a| C::canonical(C::from_mont(a)))
    }

    fn to_mont(&self, a: &Buf<Canonical>, out: &mut Buf<Mont>) -> Result<()> {
        // A value that is not below the modulus breaks the type's promise; it is reduced like any other integer.
        zip("to_mont", out, a, |_, a| {
            C::mont(C::from_canonical(a).unwrap_or_else(|| C::Fr::from_le_bytes_mod_order(bytemuck::bytes_of(&a))))
        })
    }
}

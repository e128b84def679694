//! Inverses of many elements.

use super::{Buf, Cpu};
use crate::{memory, BatchInverse, Curve, Mont, Result};
use ark_ff::Field;
use rayon::prelude::*;
use zeroize::Zeroizing;

/// Elements that share an inversion, which takes as long as some 200 products.
const GRAIN: usize = 1 << 12;

/// Inverts the elements of `chunk` that are not zero.
fn invert<C: Curve>(chunk: &mut [Mont]) -> Result<()> {
    // before[i] is the product of the elements before i. They may be secret.
    let mut before = Zeroizing::new(memory::reserve("batch_inverse", chunk.len())?);
    let mut product = C::Fr::ONE;
    for &x in chunk.iter() {
        before.push(product);
        if x != Mont::default() {
            product *= C::from_mont(x);
        }
    }
    // No factor is zero, and so the product is not.
    let mut inverse = product.inverse().unwrap_or(C::Fr::ONE);
    for (x, before) in chunk.iter_mut().zip(before.iter()).rev() {
        if *x != Mont::default() {
            let value = C::from_mont(*x);
            *x = C::mont(inverse * before);
            inverse *= value;
        }
    }
    Ok(())
}

impl<C: Curve> BatchInverse<C> for Cpu {
    fn batch_inverse(&self, data: &mut Buf<Mont>) -> Result<()> {
        data.data.par_chunks_mut(GRAIN).try_for_each(invert::<C>)
    }
}

//! Rows of PLONK.

use super::{Buf, Cpu};
use crate::plonk_rows::common;
use crate::{memory, Buffer, Curve, Mont, PlonkRows, Result};
use rayon::prelude::*;

/// Rows that one task takes at least.
const GRAIN: usize = 1 << 10;

/// New memory with a value for each row.
fn rows(op: &'static str, operands: &[&Buf<Mont>], row: impl Fn(usize) -> Mont + Sync + Send) -> Result<Buf<Mont>> {
    let sizes: Vec<_> = operands.iter().map(|of| (of.lane(), of.len())).collect();
    let (lane, n) = common(op, &sizes)?;
    let mut data = memory::reserve(op, n)?;
    (0..n).into_par_iter().with_min_len(GRAIN).map(row).collect_into_vec(&mut data);
    Ok(Buf { lane, data })
}

impl<C: Curve> PlonkRows<C> for Cpu {
    fn gate_rows(&self, [a, b, c]: [&Buf<Mont>; 3], [qm, ql, qr, qo, qc]: [&Buf<Mont>; 5]) -> Result<Buf<Mont>> {
        rows("gate_rows", &[a, b, c, qm, ql, qr, qo, qc], |i| {
            let at = |of: &Buf<Mont>| C::from_mont(of.data[i]);
            let (a, b, c) = (at(a), at(b), at(c));
            C::mont((at(qm) * a + at(qr)) * b + at(ql) * a + at(qo) * c + at(qc))
        })
    }

    fn permuted_rows(
        &self,
        [a, b, c]: [&Buf<Mont>; 3],
        [of_a, of_b, of_c]: [&Buf<Mont>; 3],
        factors: [Mont; 3],
        gamma: Mont,
    ) -> Result<Buf<Mont>> {
        let ([k0, k1, k2], gamma) = (factors.map(C::from_mont), C::from_mont(gamma));
        rows("permuted_rows", &[a, b, c, of_a, of_b, of_c], |i| {
            let at = |of: &Buf<Mont>| C::from_mont(of.data[i]);
            let term = |column, place, k: C::Fr| at(column) + k * at(place) + gamma;
            C::mont(term(a, of_a, k0) * term(b, of_b, k1) * term(c, of_c, k2))
        })
    }
}

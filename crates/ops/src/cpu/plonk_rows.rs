//! Rows of PLONK.

use super::{Buf, Cpu};
use crate::plonk_rows::common;
use crate::{memory, Buffer, Curve, Mont, PlonkRows, QuotientAt, QuotientRows, Result};
use ark_ff::Field;
use rayon::prelude::*;

/// Rows that one task takes at least.
const GRAIN: usize = 1 << 10;

/// New memory with a value for each row.
fn rows(
    cpu: &Cpu,
    op: &'static str,
    operands: &[&Buf<Mont>],
    row: impl Fn(usize) -> Mont + Sync + Send,
) -> Result<Buf<Mont>> {
    let sizes: Vec<_> = operands.iter().map(|of| (of.lane(), of.len())).collect();
    let (lane, n) = common(op, &sizes)?;
    let mut data = memory::reserve(op, n)?;
    (0..n).into_par_iter().with_min_len(GRAIN).map(row).collect_into_vec(&mut data);
    Ok(cpu.buf(lane, data))
}

impl<C: Curve> PlonkRows<C> for Cpu {
    fn gate_rows(&self, [a, b, c]: [&Buf<Mont>; 3], [qm, ql, qr, qo, qc]: [&Buf<Mont>; 5]) -> Result<Buf<Mont>> {
        rows(self, "gate_rows", &[a, b, c, qm, ql, qr, qo, qc], |i| {
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
        rows(self, "permuted_rows", &[a, b, c, of_a, of_b, of_c], |i| {
            let at = |of: &Buf<Mont>| C::from_mont(of.data[i]);
            let term = |column, place, k: C::Fr| at(column) + k * at(place) + gamma;
            C::mont(term(a, of_a, k0) * term(b, of_b, k1) * term(c, of_c, k2))
        })
    }

    fn quotient_rows(&self, of: &QuotientRows<'_, Buf<Mont>>, at: &QuotientAt) -> Result<Buf<Mont>> {
        let [alpha, beta, gamma, k1, k2, public] =
            [at.alpha, at.beta, at.gamma, at.k[0], at.k[1], at.public].map(C::from_mont);
        let vectors = of.vectors();
        rows(self, "quotient_rows", &vectors, |i| {
            let [a, b, c, z, zw, qm, ql, qr, qo, qc, s1, s2, s3, x, first] = vectors.map(|of| C::from_mont(of.data[i]));
            let gate = (qm * a + qr) * b + ql * a + qo * c + qc;
            let (x, [a, b, c]) = (beta * x, [a, b, c].map(|column| column + gamma));
            let own = (a + x) * (b + k1 * x) * (c + k2 * x) * z;
            let next = (a + beta * s1) * (b + beta * s2) * (c + beta * s3) * zw;
            C::mont(gate + alpha * (own - next + alpha * first * (z - C::Fr::ONE)) + public * first)
        })
    }
}

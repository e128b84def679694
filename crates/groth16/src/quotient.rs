//! The quotient of a proof: its values on the odd coset, or its coefficients.

use crate::matrices::AtHand;
use crate::plan::TransformPlacement;
use crate::prove::{on, Sides};
use crate::{ProvingKey, Request, Result};
use ark_ff::Field;
use std::ops::Range;
use tandem_ops::{
    Arriving, Buffer, Canonical, Coset, Curve, Direction, Gather, Lane, Mont, NttOp, Order, ProofBackend, VecOps,
};

/// From the values at the rows to coefficients in this order.
fn inverse(output: Order) -> NttOp {
    NttOp { direction: Direction::Inverse, coset: Coset::Subgroup, input: Order::Natural, output }
}

/// From coefficients in bit-reversed order to values on the coset.
fn to_odd_coset(coset: Coset) -> NttOp {
    NttOp { direction: Direction::Forward, coset, input: Order::BitReversed, output: Order::Natural }
}

/// a*b - c on the odd coset, or as coefficients where H has powers of tau: the share of each lane that sums over it.
pub(crate) fn quotient<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    wires: &[B::Buf<Canonical>],
    sides: Option<Sides<B>>,
    request: &Request<'_>,
) -> Result<Vec<B::Buf<Mont>>> {
    let TransformPlacement { a, b, c_inverse, c_forward } = key.schedule.chains;
    let n = key.shape().domain;
    let matrices = key.matrices.as_ref().map(|both| both.at_hand::<C, B>(backend, [a, b], request)).transpose()?;
    let [mut va, mut vb] = match (matrices.as_ref().map(AtHand::both), on::<B>(wires, a), on::<B>(wires, b), sides) {
        (Some([matrix_a, matrix_b]), Some(on_a), Some(on_b), _) => {
            let (mut va, mut vb) = (backend.alloc::<Mont>(a, n)?, backend.alloc::<Mont>(b, n)?);
            request.enqueue(a, "sparse product A", || backend.spmv(matrix_a, on_a, &mut va))?;
            request.enqueue(b, "sparse product B", || backend.spmv(matrix_b, on_b, &mut vb))?;
            [va, vb]
        }
        (None, _, _, Some([on_a, on_b])) => {
            let [map_a, map_b] = key.rows.as_ref().map_or([None, None], |[a, b]| [Some(&**a), Some(&**b)]);
            let va = request.enqueue(a, "order rows of a", || in_order(backend, on_a, map_a))?;
            let vb = request.enqueue(b, "order rows of b", || in_order(backend, on_b, map_b))?;
            return coefficients(backend, key, va, vb, request);
        }
        _ => return Err(tandem_ops::Error::invalid("prove", "the transforms have no rows to start from").into()),
    };

    let (to_coefficients, to_odd_coset) = (inverse(Order::BitReversed), to_odd_coset(key.coset));
    let transform = |v: &mut B::Buf<Mont>, name, op| request.enqueue(v.lane(), name, || backend.ntt(v, op));
    // On the rows c = a*b, for any witness that satisfies the circuit.
    let there =
        |v: &B::Buf<Mont>| (v.lane() != c_inverse).then(|| request.copied(backend, v, 0..n, c_inverse)).transpose();
    let copies = (there(&va)?, there(&vb)?);
    let mut vc = request.enqueue(c_inverse, "inverse NTT c", || {
        let (a, b) = (copies.0.as_ref().unwrap_or(&va), copies.1.as_ref().unwrap_or(&vb));
        backend.ntt_of_product(a, b, to_coefficients)
    })?;
    drop(copies);
    transform(&mut va, "inverse NTT a", to_coefficients)?;
    transform(&mut vb, "inverse NTT b", to_coefficients)?;
    if c_inverse != c_forward {
        vc = request.copied(backend, &vc, 0..n, c_forward)?;
    }
    transform(&mut va, "coset NTT a", to_odd_coset)?;
    transform(&mut vb, "coset NTT b", to_odd_coset)?;

    let shares = key.quotient.iter().map(|part| (part.share.lane, part.share.range.clone()));
    if [b, c_forward].iter().all(|&lane| lane == a) {
        let quotient = request.enqueue(a, "coset NTT c", || backend.product_less_ntt(&va, &vb, vc, to_odd_coset))?;
        drop((va, vb));
        if let [whole] = &key.quotient[..] {
            if whole.share.lane == a && whole.share.range.len() == n {
                return Ok(vec![quotient]);
            }
        }
        return shares.map(|(lane, range)| request.copied(backend, &quotient, range, lane)).collect();
    }
    transform(&mut vc, "coset NTT c", to_odd_coset)?;
    let share = |(lane, range): (Lane, Range<usize>)| {
        let mut pa = request.copied(backend, &va, range.clone(), lane)?;
        let pb = request.copied(backend, &vb, range.clone(), lane)?;
        let pc = request.copied(backend, &vc, range, lane)?;
        request.enqueue(lane, "a*b - c", || backend.mul_sub(&mut pa, &pb, &pc))?;
        Ok(pa)
    };
    shares.map(share).collect()
}

/// The values of rows, each at the point of the domain that it is.
fn in_order<B: Gather>(
    backend: &B,
    rows: Arriving<B::Buf<Mont>>,
    map: Option<&B::Map>,
) -> tandem_ops::Result<B::Buf<Mont>> {
    let rows = backend.arrived(rows)?;
    let Some(map) = map else { return Ok(rows) };
    let mut in_order = backend.alloc(rows.lane(), rows.len())?;
    backend.gather(map, &rows, &mut in_order)?;
    Ok(in_order)
}

/// The coefficients of (a b - c) / (X^n - 1), of which there are n - 1, and a zero.
///
/// Let a b = low + X^n high, with low and high of degree below n. At the rows X^n is 1 and a b is c, so c = low + high, and
/// a b - c = (X^n - 1) high: the quotient is high. On the odd coset X^n is -1: the polynomial d of degree below n that takes the values of
/// a b there is low - high. So high = (c - d) / 2. That takes six transforms: three to the coefficients of a, b and c, two to the odd coset,
/// and one back from it. c is a b at the rows, for any witness that satisfies the circuit.
fn coefficients<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    mut va: B::Buf<Mont>,
    mut vb: B::Buf<Mont>,
    request: &Request<'_>,
) -> Result<Vec<B::Buf<Mont>>> {
    if key.quotient.is_empty() {
        // A domain of one row.
        return Ok(Vec::new());
    }
    let (n, home, beside) = (key.shape().domain, va.lane(), key.schedule.chains.c_inverse);
    let move_to = |v: B::Buf<Mont>, lane| match v.lane() == lane {
        true => Ok(v),
        false => request.copied(backend, &v, 0..n, lane),
    };
    let transform = |v: &mut B::Buf<Mont>, name, op| request.enqueue(v.lane(), name, || backend.ntt(v, op));
    let copy_to = |v: &B::Buf<Mont>| (v.lane() != beside).then(|| request.copied(backend, v, 0..n, beside)).transpose();
    let copies = (copy_to(&va)?, copy_to(&vb)?);
    let vc = request.enqueue(beside, "inverse NTT c", || {
        let (a, b) = (copies.0.as_ref().unwrap_or(&va), copies.1.as_ref().unwrap_or(&vb));
        backend.ntt_of_product(a, b, inverse(Order::Natural))
    })?;
    drop(copies);
    transform(&mut va, "inverse NTT a", inverse(Order::BitReversed))?;
    transform(&mut vb, "inverse NTT b", inverse(Order::BitReversed))?;
    transform(&mut va, "coset NTT a", to_odd_coset(key.coset))?;
    transform(&mut vb, "coset NTT b", to_odd_coset(key.coset))?;
    let vb = move_to(vb, home)?;
    let from_odd_coset = NttOp { coset: key.coset, ..inverse(Order::Natural) };
    // In place, for c takes memory beside it.
    request.enqueue(home, "a b", || VecOps::<C>::mul(backend, &mut va, &vb))?;
    drop(vb);
    transform(&mut va, "inverse coset NTT d", from_odd_coset)?;
    let mut high = move_to(vc, home)?;
    let half = C::Fr::from(2u64).inverse().unwrap_or_default();
    request.enqueue(home, "(c - d) / 2", || {
        VecOps::<C>::sub(backend, &mut high, &va)?;
        VecOps::<C>::scale(backend, &mut high, C::mont(half))
    })?;
    drop(va);
    let share = |part: &crate::key::QuotientShare<C, B>| {
        request.copied(backend, &high, part.share.range.clone(), part.share.lane)
    };
    key.quotient.iter().map(share).collect()
}

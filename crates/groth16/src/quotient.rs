//! The quotient of a proof: its values on the odd coset, or its coefficients.

use crate::plan::TransformPlacement;
use crate::prove::{on, Sides};
use crate::{ProvingKey, Request, Result};
use ark_ff::Field;
use tandem_ops::backend::COPY_TO_LANE;
use tandem_ops::{
    Arriving, Backend, Buffer, Canonical, Coset, Curve, Direction, Gather, Mont, NttOp, Order, ProofBackend, VecOps,
};

/// From the values at the rows to coefficients in this order.
fn inverse(output: Order) -> NttOp {
    NttOp { direction: Direction::Inverse, coset: Coset::Subgroup, input: Order::Natural, output }
}

/// From coefficients in bit-reversed order to values on the coset.
fn to_odd_coset(coset: Coset) -> NttOp {
    NttOp { direction: Direction::Forward, coset, input: Order::BitReversed, output: Order::Natural }
}

/// A lane's share of the quotient, on its way there.
pub(crate) enum Dealt<B: Backend> {
    /// a*b - c, of which the lane made all.
    Here(B::Buf<Mont>),
    /// a*b - c.
    Whole(Arriving<B::Buf<Mont>>),
    /// a, b and c, each from another lane.
    Factors([Arriving<B::Buf<Mont>>; 3]),
}

impl<B: Backend> Dealt<B> {
    /// The share, of which the lane makes what is yet to be made.
    pub(crate) fn made<C: Curve>(self, backend: &B, request: &Request<'_>) -> Result<Self>
    where
        B: VecOps<C>,
    {
        let Dealt::Factors([a, b, c]) = self else { return Ok(self) };
        let lane = a.lane();
        let made = request.enqueue(lane, "a*b - c", || {
            let (mut a, b, c) = request.timeline.waiting(lane, || {
                let [a, b, c] = [a, b, c].map(|factor| backend.arrived(factor));
                Ok((a?, b?, c?))
            })?;
            backend.mul_sub(&mut a, &b, &c)?;
            Ok(a)
        })?;
        Ok(Dealt::Here(made))
    }

    /// The values of a share that was made.
    pub(crate) fn values(self, backend: &B, request: &Request<'_>) -> tandem_ops::Result<B::Buf<Mont>> {
        match self {
            Dealt::Here(values) => Ok(values),
            Dealt::Whole(share) => request.arrived(backend, share),
            Dealt::Factors(_) => Err(tandem_ops::Error::invalid("prove", "a share of the quotient is not made")),
        }
    }
}

/// a*b - c on the odd coset, or as coefficients where H has powers of tau: the share of each lane that sums over it.
pub(crate) fn quotient<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    wires: &[B::Buf<Canonical>],
    sides: Option<Sides<B>>,
    request: &Request<'_>,
) -> Result<Vec<Dealt<B>>> {
    let TransformPlacement { a, b, c_inverse, c_forward } = key.schedule.chains;
    let n = key.shape().domain;
    let no_rows = || tandem_ops::Error::invalid("prove", "the transforms have no rows to start from");
    let Some(matrices) = &key.matrices else {
        let [on_a, on_b] = sides.ok_or_else(no_rows)?;
        let [map_a, map_b] = key.rows.as_ref().map_or([None, None], |[a, b]| [Some(&**a), Some(&**b)]);
        let va = request.enqueue(a, "order rows of a", || in_order(backend, on_a, map_a, request))?;
        let vb = request.enqueue(b, "order rows of b", || in_order(backend, on_b, map_b, request))?;
        return coefficients(backend, key, va, vb, request);
    };
    let matrices = matrices.at_hand::<C, B>(backend, key.schedule.chains, request)?;
    let product = |name, lane, matrix: Option<&_>| -> Result<B::Buf<Mont>> {
        let (matrix, wires) = (matrix.ok_or_else(no_rows)?, on::<B>(wires, lane).ok_or_else(no_rows)?);
        let mut rows = backend.alloc::<Mont>(lane, n)?;
        request.enqueue(lane, name, || backend.spmv(matrix, wires, &mut rows))?;
        Ok(rows)
    };
    let mut va = product("sparse product A", a, matrices.a(a))?;
    let mut vb = product("sparse product B", b, matrices.b(b))?;

    let (to_coefficients, to_odd_coset) = (inverse(Order::BitReversed), to_odd_coset(key.coset));
    let transform = |v: &mut B::Buf<Mont>, name, op| request.enqueue(v.lane(), name, || backend.ntt(v, op));
    // On the rows c = a*b, for any witness that satisfies the circuit. Its lane multiplies by the matrices itself: to take the values of the rows
    // from other lanes takes longer.
    let own = |name, lane, matrix| (lane != c_inverse).then(|| product(name, c_inverse, matrix)).transpose();
    let own_a = own("sparse product A", a, matrices.a(c_inverse))?;
    let own_b = own("sparse product B", b, matrices.b(c_inverse))?;
    let mut vc = request.enqueue(c_inverse, "inverse NTT c", || {
        backend.ntt_of_product(own_a.as_ref().unwrap_or(&va), own_b.as_ref().unwrap_or(&vb), to_coefficients)
    })?;
    drop((own_a, own_b));
    transform(&mut va, "inverse NTT a", to_coefficients)?;
    transform(&mut vb, "inverse NTT b", to_coefficients)?;
    if c_inverse != c_forward {
        vc = request.copied(backend, &vc, 0..n, c_forward)?;
    }
    transform(&mut va, "coset NTT a", to_odd_coset)?;
    transform(&mut vb, "coset NTT b", to_odd_coset)?;

    let shares: Vec<_> = key.quotient.iter().map(|part| (part.share.range.clone(), part.share.lane)).collect();
    let deal = |sources: Vec<B::Buf<Mont>>| -> Result<tandem_ops::Dealt<B::Buf<Mont>>> {
        request.check()?;
        let lanes: Vec<_> = sources.iter().map(Buffer::lane).collect();
        let dealt = backend.deal(sources, &shares, &request.timeline)?;
        lanes.into_iter().for_each(|lane| request.progress.enqueued(COPY_TO_LANE, lane));
        Ok(dealt)
    };
    if [b, c_forward].iter().all(|&lane| lane == a) {
        let quotient = request.enqueue(a, "coset NTT c", || backend.product_less_ntt(&va, &vb, vc, to_odd_coset))?;
        drop((va, vb));
        if shares == [(0..n, a)] {
            return Ok(vec![Dealt::Here(quotient)]);
        }
        return Ok(deal(vec![quotient])?.into_iter().flatten().map(Dealt::Whole).collect());
    }
    transform(&mut vc, "coset NTT c", to_odd_coset)?;
    let mut dealt = deal(vec![va, vb, vc])?.into_iter();
    let mut of_next = || dealt.next().unwrap_or_default().into_iter();
    let (of_a, of_b, of_c) = (of_next(), of_next(), of_next());
    Ok(of_a.zip(of_b).zip(of_c).map(|((a, b), c)| Dealt::Factors([a, b, c])).collect())
}

/// The values of rows, each at the point of the domain that it is.
fn in_order<B: Gather>(
    backend: &B,
    rows: Arriving<B::Buf<Mont>>,
    map: Option<&B::Map>,
    request: &Request<'_>,
) -> tandem_ops::Result<B::Buf<Mont>> {
    let rows = request.arrived(backend, rows)?;
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
) -> Result<Vec<Dealt<B>>> {
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
    // Not dealt beside the lanes' sums: the plan of their memory has the shares after these.
    let share = |part: &crate::key::QuotientShare<C, B>| {
        let share = request.copied(backend, &high, part.share.range.clone(), part.share.lane)?;
        Ok(Dealt::Here(share))
    };
    key.quotient.iter().map(share).collect()
}

//! The transform as a cube: a second way to do one that is spread over lanes, by primitives alone.
//!
//! Let n = X Y Z, and w be the n-th root of unity. Coefficient x + X (y + Y z) stands at (x, y, z) of a cube, value c + Z (b + Y a) at
//! (a, b, c). Then
//!
//! ```text
//! value(a, b, c) = sum over x of  w^(Y Z x a)  w^(x (c + Z b))      outside
//!                  sum over y of  w^(X Z y b)  w^(X y c)            \ two-dimensional transforms
//!                  sum over z of  w^(X Y z c)  coefficient(x, y, z) / of the slices x
//! ```
//!
//! Dealt to L shards ([`Spread`]), a shard has every L-th slice x, and makes the two-dimensional transforms of its slices by itself. The shards
//! then exchange: each gets, of all x, what belongs to every L-th c. So each has its share of the values after the transforms over x.
//! What transforms are over has to lie in a row, so a map of indices turns the cube before each.

use super::{Direction, Ntt, NttOp, Order, Spread};
use crate::{
    naive, Arriving, Buffer, Coset, Curve, Error, Gather, HostBuf, Lane, Mont, Pending, Result, Timeline, VecOps,
};
use ark_ff::Field;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::sync::Arc;

const OP: &str = "ntt as a cube";

/// The way of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From lane to lane.
    Direct,
    /// Down to the host and up again.
    Host,
}

/// The sides of a cube of 2^`log_n` elements in 2^`log_shards` shards: about the third root, X and Z no fewer than shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    /// Binary logarithm of X.
    pub x: u32,
    /// Of Y.
    pub y: u32,
    /// Of Z.
    pub z: u32,
}

impl Sides {
    /// # Errors
    /// Fewer elements than the square of the shards.
    pub fn of(Spread { log_n, log_shards }: Spread) -> Result<Self> {
        if log_n < 2 * log_shards {
            let reason = format!("2^{log_n} elements in 2^{log_shards} shards; expected 2^{} at least", 2 * log_shards);
            return Err(Error::invalid(OP, reason));
        }
        let x = log_n.div_ceil(3).max(log_shards);
        let z = (log_n - x).div_ceil(2).max(log_shards);
        Ok(Sides { x, y: log_n - x - z, z })
    }
}

/// What a shard's lane keeps for transforms of one size and kind: three maps of indices, one for each section that is sent, and two vectors of
/// twiddles, in all 80 bytes an element.
struct Tables<B: Gather> {
    lane: Lane,
    to_z: B::Map,
    to_y: B::Map,
    sections: Vec<B::Map>,
    to_order: B::Map,
    of_y: B::Buf<Mont>,
    of_x: B::Buf<Mont>,
}

/// Transforms of one size and kind over certain lanes.
pub struct Cube<C: Curve, B: Gather> {
    op: NttOp,
    spread: Spread,
    sides: Sides,
    shards: Vec<Tables<B>>,
    of: PhantomData<fn() -> C>,
}

impl<C: Curve, B: Ntt<C> + VecOps<C> + Gather> Cube<C, B> {
    /// Gets ready for transforms of 2^`log_n` elements with a shard on each of `lanes`, which may repeat.
    ///
    /// # Errors
    /// Another coset than the subgroup; [`Spread::of`] or [`Sides::of`] find no such transform; no such lane; not enough memory.
    pub fn new(backend: &B, lanes: &[Lane], log_n: u32, op: NttOp) -> Result<Self> {
        if op.coset != Coset::Subgroup {
            return Err(Error::invalid(OP, "a transform over a coset; expected the subgroup"));
        }
        let len = 1usize.checked_shl(log_n).unwrap_or(usize::MAX) / lanes.len().max(1);
        let spread = Spread::of::<C>(lanes.iter().map(|_| len), &op)?;
        let (sides, cut) = (Sides::of(spread)?, spread.log_shards);
        let len = spread.len();
        u32::try_from(len - 1)
            .map_err(|_| Error::invalid(OP, format!("shards of {len} elements; expected 2^32 at most")))?;
        let root = <C as crate::NttField>::root_of_unity(log_n).unwrap_or(C::Fr::ONE);
        let root = match op.direction {
            Direction::Forward => root,
            Direction::Inverse => root.inverse().unwrap_or(C::Fr::ONE),
        };
        // Numbers of x and c within a shard.
        let (near_x, near_c) = (sides.x - cut, sides.z - cut);
        let map = |from: &(dyn Fn(usize) -> usize + Sync), range: std::ops::Range<usize>| -> Vec<u32> {
            range.into_par_iter().map(|to| from(to) as u32).collect()
        };
        let input = |to| {
            let [x, y, z] = parts(to, [near_x, sides.y, sides.z]);
            naive::place(op.input, join([z, y, x], [sides.z, sides.y, near_x]), log_n - cut)
        };
        let to_y = |to| {
            let [x, c, y] = parts(to, [near_x, sides.z, sides.y]);
            join([x, y, c], [near_x, sides.y, sides.z])
        };
        let section = |to| {
            let [target, c, b, x] = parts(to, [cut, near_c, sides.y, near_x]);
            join([x, c << cut | target, b], [near_x, sides.z, sides.y])
        };
        let to_order = |to| {
            let [a, b, c] = parts(naive::place(op.output, to, log_n - cut), [sides.x, sides.y, near_c]);
            join([c, b, a], [near_c, sides.y, sides.x])
        };
        let each = len >> cut;
        let (to_z, to_y, to_order) = (map(&input, 0..len), map(&to_y, 0..len), map(&to_order, 0..len));
        let sections: Vec<Vec<u32>> = (0..spread.shards()).map(|s| map(&section, s * each..(s + 1) * each)).collect();
        let of_y: Vec<Mont> = twiddles::<C>(root, log_n, len, |at| {
            let [_, y, c] = parts(at, [near_x, sides.y, sides.z]);
            (y * c) << sides.x
        });
        let tables = |(shard, &lane): (usize, &Lane)| {
            let of_x = twiddles::<C>(root, log_n, len, |at| {
                let [x, c, b] = parts(at, [near_x, sides.z, sides.y]);
                (x << cut | shard) * (b << sides.z | c)
            });
            let load = |map: &[u32]| backend.load_map(lane, map, len);
            Ok(Tables {
                lane,
                to_z: load(&to_z)?,
                to_y: load(&to_y)?,
                sections: sections.iter().map(|map| load(map)).collect::<Result<_>>()?,
                to_order: load(&to_order)?,
                of_y: backend.upload(lane, &of_y)?,
                of_x: backend.upload(lane, &of_x)?,
            })
        };
        let shards = lanes.iter().enumerate().map(tables).collect::<Result<_>>()?;
        Ok(Cube { op, spread, sides, shards, of: PhantomData })
    }

    /// The transform of the vector of which `shards` are the shards, as [`NttSpread::ntt_spread`](super::NttSpread::ntt_spread) has it. The
    /// exchange has a span on each lane.
    ///
    /// # Errors
    /// The shards are of another length or on other lanes; the device failed.
    pub fn transform(
        &self,
        backend: &B,
        shards: Vec<B::Buf<Mont>>,
        way: Way,
        timeline: &Timeline,
    ) -> Result<Vec<B::Buf<Mont>>> {
        let len = self.spread.len();
        let fit = shards.len() == self.shards.len()
            && shards.iter().zip(&self.shards).all(|(shard, table)| (shard.len(), shard.lane()) == (len, table.lane));
        if !fit {
            let (count, lanes) = (self.shards.len(), self.shards.iter().map(|table| table.lane.0).collect::<Vec<_>>());
            return Err(Error::invalid(OP, format!("other shards than {count} of {len} elements on lanes {lanes:?}")));
        }
        let Sides { x, y, z } = self.sides;
        let op = NttOp { input: Order::Natural, output: Order::Natural, ..self.op };
        let turned = |map: &B::Map, from: &B::Buf<Mont>, len| {
            let mut to = backend.alloc::<Mont>(from.lane(), len)?;
            backend.gather(map, from, &mut to)?;
            Ok(to)
        };
        let rows = |data: &mut B::Buf<Mont>, log: u32| Ntt::<C>::ntt_batch(backend, data, len >> log, op);
        // Of each shard, what it sends to each.
        let mut sent: Vec<Vec<B::Buf<Mont>>> = Vec::new();
        for (shard, table) in shards.into_iter().zip(&self.shards) {
            let mut data = turned(&table.to_z, &shard, len)?;
            drop(shard);
            rows(&mut data, z)?;
            VecOps::<C>::mul(backend, &mut data, &table.of_y)?;
            let mut data = turned(&table.to_y, &data, len)?;
            rows(&mut data, y)?;
            VecOps::<C>::mul(backend, &mut data, &table.of_x)?;
            let section = |map| turned(map, &data, len >> self.spread.log_shards);
            sent.push(table.sections.iter().map(section).collect::<Result<_>>()?);
        }
        let lanes = self.shards.iter().map(|table| table.lane);
        let spans: Vec<_> = lanes.map(|lane| timeline.begin(lane, "exchange")).collect();
        let received = self.exchange(backend, sent, way)?;
        spans.into_iter().for_each(|span| timeline.end(span));
        let last = |(sections, table): (Vec<B::Buf<Mont>>, &Tables<B>)| {
            // Section s has the slices s, s + L, s + 2 L, ..
            let mut data = backend.alloc::<Mont>(table.lane, len)?;
            for (s, section) in sections.into_iter().enumerate() {
                VecOps::<C>::add_scaled(backend, &mut data, s, self.spread.shards(), &section, C::mont(C::Fr::ONE))?;
            }
            rows(&mut data, x)?;
            turned(&table.to_order, &data, len)
        };
        received.into_iter().zip(&self.shards).map(last).collect()
    }

    /// What each shard receives from each, of what each sends to each.
    fn exchange(&self, backend: &B, sent: Vec<Vec<B::Buf<Mont>>>, way: Way) -> Result<Vec<Vec<B::Buf<Mont>>>> {
        let count = self.shards.len();
        let mut received: Vec<Vec<B::Buf<Mont>>> = (0..count).map(|_| Vec::with_capacity(count)).collect();
        match way {
            Way::Direct => {
                let copies = sent.iter().flat_map(|sections| sections.iter().zip(&self.shards));
                let copies: Vec<_> =
                    copies.map(|(section, table)| (table.lane, vec![(section, 0..section.len())])).collect();
                for (i, section) in backend.join(&copies)?.into_iter().enumerate() {
                    received[i % count].push(section);
                }
            }
            Way::Host => {
                // All are on their way down before the first is waited for, and all on their way up before the first is needed. What stays on a
                // shard does not move.
                let mut down = Vec::with_capacity(count * count);
                for (from, sections) in sent.into_iter().enumerate() {
                    for (to, section) in sections.into_iter().enumerate() {
                        let memory = || backend.host_buf::<Mont>(section.len());
                        let there = if from == to { None } else { Some(backend.download_to(&section, memory()?)?) };
                        down.push((to, section, there));
                    }
                }
                let up = |(to, section, there): (usize, B::Buf<Mont>, Option<Pending<HostBuf<Mont>>>)| {
                    let Some(values) = there else { return Ok((to, Arriving::new(section))) };
                    let values = Arc::new(values.wait()?);
                    Ok((to, backend.upload_beside(self.shards[to].lane, &values, values.len())?))
                };
                let up: Vec<_> = down.into_iter().map(up).collect::<Result<_>>()?;
                for (to, section) in up {
                    received[to].push(backend.arrived(section)?);
                }
            }
        }
        Ok(received)
    }
}

/// The parts of a number of so many bits each, the highest first.
fn parts<const N: usize>(number: usize, bits: [u32; N]) -> [usize; N] {
    let mut rest = number;
    let mut parts = [0; N];
    for (part, bits) in parts.iter_mut().zip(bits).rev() {
        *part = rest & ((1 << bits) - 1);
        rest >>= bits;
    }
    parts
}

/// The number of which these are the parts.
fn join<const N: usize>(parts: [usize; N], bits: [u32; N]) -> usize {
    parts.into_iter().zip(bits).fold(0, |number, (part, bits)| number << bits | part)
}

/// The powers of `root`, whose order is 2^`log_n`, to these exponents: each is one product of two that are kept, of which there are about the square
/// root of 2^`log_n`.
fn twiddles<C: Curve>(root: C::Fr, log_n: u32, len: usize, exponent: impl Fn(usize) -> usize + Sync) -> Vec<Mont> {
    let half = log_n.div_ceil(2);
    let powers = |root: C::Fr, count: usize| -> Vec<C::Fr> {
        std::iter::successors(Some(C::Fr::ONE), |power| Some(*power * root)).take(count).collect()
    };
    let near = powers(root, 1 << half);
    let far = powers(root.pow([1 << half]), 1 << (log_n - half));
    let power = |exponent: usize| near[exponent & (near.len() - 1)] * far[exponent >> half & (far.len() - 1)];
    (0..len).into_par_iter().map(|at| C::mont(power(exponent(at)))).collect()
}

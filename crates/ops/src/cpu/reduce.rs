//! Sums, least and greatest elements in the order of their definition.

use super::{Buf, Cpu};
use crate::reduce::plan::{plan, plan_stream, Rates};
use crate::reduce::{combine_groups, shares, too_large, Element, HostData, Reduce, ReduceOp, ReducePlan, ReduceWay};
use crate::reduce::{GROUP_TILES, ROW_BYTES, TILE_BYTES};
use crate::{Buffer, Lane, Pending, Result, Wire};
use rayon::prelude::*;
use std::ops::Range;
use zeroize::Zeroizing;

/// What plans for pretend GPUs count with: host memory, the same for all.
const RATES: Rates =
    Rates { memory: 10e9, lane: 10e9, peer: 10e9, pinned: [10e9, 10e9], paged: [10e9, 10e9], latency: 0.0 };

/// Neighbours first, until one is left.
fn tree<E: Element>(op: ReduceOp, values: &mut [E::Wire]) -> E::Wire {
    let mut len = values.len();
    while len > 1 {
        len /= 2;
        for i in 0..len {
            values[i] = E::combine(op, values[2 * i], values[2 * i + 1]);
        }
    }
    values[0]
}

/// The result of a tile whose first element has the index `first`.
fn tile<E: Element>(op: ReduceOp, elements: &[E::Wire], first: usize) -> Result<E::Wire> {
    if let Some(index) = elements.iter().position(|x| !E::is_element(x)) {
        return Err(too_large((first + index) as u64));
    }
    let mut columns = vec![E::neutral(op); ROW_BYTES / size_of::<E::Wire>()];
    for row in elements.chunks(columns.len()) {
        columns.iter_mut().zip(row).for_each(|(column, x)| *column = E::combine(op, *column, *x));
    }
    Ok(tree::<E>(op, &mut columns))
}

/// The results of groups. `of_tile` gives that of the tile with some elements.
fn groups<E: Element>(
    op: ReduceOp,
    elements: Range<usize>,
    of_tile: impl Fn(Range<usize>) -> Result<E::Wire> + Sync,
) -> Result<Vec<E::Wire>> {
    let size = TILE_BYTES / size_of::<E::Wire>();
    let tiles = elements.len().div_ceil(size);
    let tile = |t: usize| of_tile(elements.start + t * size..elements.end.min(elements.start + (t + 1) * size));
    // All of them, so that the error is that of the first tile that has one.
    let tiles: Vec<Result<E::Wire>> = (0..tiles).into_par_iter().map(tile).collect();
    let tiles: Vec<E::Wire> = tiles.into_iter().collect::<Result<_>>()?;
    let group = |tiles: &[E::Wire]| {
        let mut values = [E::neutral(op); GROUP_TILES];
        values[..tiles.len()].copy_from_slice(tiles);
        tree::<E>(op, &mut values)
    };
    Ok(tiles.chunks(GROUP_TILES).map(group).collect())
}

fn lanes_of<T: Wire>(parts: &[&Buf<T>]) -> Vec<(Lane, usize)> {
    parts.iter().map(|part| (part.lane(), part.len())).collect()
}

impl Reduce for Cpu {
    fn reduce_plan<E: Element>(&self, parts: &[(Lane, usize)], way: Option<ReduceWay>) -> Result<ReducePlan> {
        plan(parts, size_of::<E::Wire>(), self.lanes, &RATES, way)
    }

    fn reduce<E: Element>(
        &self,
        op: ReduceOp,
        parts: &[&Buf<E::Wire>],
        way: Option<ReduceWay>,
    ) -> Result<Pending<E::Wire>> {
        let plan = self.reduce_plan::<E>(&lanes_of(parts), way)?;
        let mut firsts = vec![0];
        parts.iter().for_each(|part| firsts.push(firsts[firsts.len() - 1] + part.len()));
        let mut all = Vec::new();
        for piece in plan.pieces {
            let (data, first) = (parts[piece.part].as_slice(), firsts[piece.part]);
            let of_tile = |range: Range<usize>| tile::<E>(op, &data[range.clone()], first + range.start);
            all.extend(groups::<E>(op, piece.elements, of_tile)?);
        }
        let lane = parts.first().map_or(Lane(0), |part| part.lane());
        combine_groups::<E>(op, all).map(|result| self.handed(lane, size_of::<E::Wire>(), result))
    }

    fn reduce_host_plan(&self, data: HostData<'_>) -> ReducePlan {
        plan_stream(data.bytes(), false, self.lanes, &RATES)
    }

    fn reduce_host<E: Element>(&self, op: ReduceOp, data: HostData<'_>) -> Result<E::Wire> {
        let size = size_of::<E::Wire>();
        let of_tile = |range: Range<usize>| {
            // It may be secret.
            let mut elements = Zeroizing::new(vec![E::neutral(op); range.len()]);
            data.read((range.start * size) as u64, bytemuck::cast_slice_mut(&mut elements))?;
            tile::<E>(op, &elements, range.start)
        };
        let mut all = Vec::new();
        // The pretend GPUs of `sim` share the elements as real ones do.
        for share in shares(data.elements(size)?, size, self.lanes) {
            all.extend(groups::<E>(op, share, of_tile)?);
        }
        combine_groups::<E>(op, all)
    }
}

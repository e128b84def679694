//! Elements picked by a map of indices.

use super::{Buf, Cpu};
use crate::gather::{check_gather, check_map};
use crate::timeline::Ends;
use crate::{memory, Buffer, Gather, Lane, Result, Wire};
use rayon::prelude::*;

/// Elements that one task takes at least.
const GRAIN: usize = 1 << 12;

/// A map of indices in host memory.
#[derive(Debug)]
pub struct IndexMap {
    lane: Lane,
    indices: Vec<u32>,
    bound: usize,
}

impl Gather for Cpu {
    type Map = IndexMap;

    fn load_map(&self, lane: Lane, map: &[u32], bound: usize) -> Result<IndexMap> {
        self.check_lane("load_map", lane)?;
        check_map(map, bound)?;
        let indices = memory::copied("load_map", map)?;
        self.count(Ends::Up(lane), size_of_val(map));
        Ok(IndexMap { lane, indices, bound })
    }

    fn gather<T: Wire>(&self, map: &IndexMap, from: &Buf<T>, to: &mut Buf<T>) -> Result<()> {
        let indices = &map.indices;
        check_gather((map.lane, indices.len()), map.bound, (from.lane(), from.len()), (to.lane(), to.len()))?;
        let (picked, rest) = to.data.split_at_mut(indices.len());
        let pick = |(to, &index): (&mut T, &u32)| *to = from.data[index as usize];
        picked.par_iter_mut().with_min_len(GRAIN).zip(indices).for_each(pick);
        rest.fill(T::zeroed());
        Ok(())
    }
}

//! Elements picked by a map of indices.

use crate::{Backend, Error, Lane, Result, Wire};

/// Picks elements of a vector by a map of indices: the values of wires, gate by gate.
pub trait Gather: Backend {
    /// Indices in a lane's memory, each of which is below a bound. They are public.
    type Map: Send + Sync;

    /// Loads a map for vectors of at least `bound` elements.
    ///
    /// # Errors
    /// An index is not below `bound` (the first of them is named); no such lane; not enough memory.
    fn load_map(&self, lane: Lane, map: &[u32], bound: usize) -> Result<Self::Map>;

    /// `to[i]` = `from[map[i]]` for the indices of the map; `to` beyond them becomes zero. Elements have a multiple of 4 bytes.
    ///
    /// # Errors
    /// `from` is shorter than the map's bound, or `to` than the map; map and vectors lie on different lanes.
    fn gather<T: Wire>(&self, map: &Self::Map, from: &Self::Buf<T>, to: &mut Self::Buf<T>) -> Result<()>;
}

/// Fails unless all indices are below `bound`.
///
/// # Errors
/// [`Error::Invalid`] that names the first index that is not.
pub fn check_map(map: &[u32], bound: usize) -> Result<()> {
    match map.iter().position(|&index| index as usize >= bound) {
        Some(at) => {
            Err(Error::invalid("load_map", format!("index {} at place {at}, of a vector of {bound} elements", map[at])))
        }
        None => Ok(()),
    }
}

/// Fails unless a map of `map` indices below `bound` picks from `from` elements for `to`, all of them on one lane.
///
/// # Errors
/// [`Error::Invalid`] with what does not fit.
pub fn check_gather(map: (Lane, usize), bound: usize, from: (Lane, usize), to: (Lane, usize)) -> Result<()> {
    const OP: &str = "gather";
    if from.0 != map.0 || to.0 != map.0 {
        let reason = format!("a map on lane {}, vectors on lanes {} and {}", map.0 .0, from.0 .0, to.0 .0);
        return Err(Error::invalid(OP, reason));
    }
    if from.1 < bound || to.1 < map.1 {
        let reason = format!("{} indices below {bound}, a vector of {} elements, room for {}", map.1, from.1, to.1);
        return Err(Error::invalid(OP, reason));
    }
    Ok(())
}

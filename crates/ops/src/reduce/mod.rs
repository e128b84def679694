//! One element of many: sums, least and greatest elements.
//!
//! # The order of additions
//!
//! The sum of floating-point numbers depends on the order in which they are added, so the order is part of the definition, and every
//! backend gives the same bits, on any number of lanes. Elements are cut into tiles of [`TILE_BYTES`], of which [`GROUP_TILES`] are
//! a group.
//!
//! 1. A tile is a table with rows of [`ROW_BYTES`]. Each of its columns is added from the first row to the last, beginning with +0.
//! 2. Columns are added to their neighbours (0 and 1, 2 and 3, and so on), then their sums to their neighbours, until one is left: the
//!    sum of the tile. In the same way tiles become the sum of a group; where some are missing at the end, +0 stands for them.
//! 3. Groups are added from the first to the last, beginning with +0.
//!
//! With u = 2^-24 (f32) or 2^-53 (f64), c columns and g groups the result is off by at most (24 + log2 c + g) u times the sum of
//! the absolute values, where nothing overflows.
//!
//! Elements in several buffers are groups of their own: the result is that of one buffer if all but the last hold whole groups
//! ([`shares`] cuts them so).

mod element;
pub mod plan;

pub use element::{Element, ElementKind, Scalar};
pub use plan::{shares, ReducePlan, ReduceWay};

use crate::{Backend, Error, Lane, Pending, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes of a row of a tile.
pub const ROW_BYTES: usize = 1 << 12;
/// Bytes of a tile.
pub const TILE_BYTES: usize = 1 << 16;
/// Tiles of a group.
pub const GROUP_TILES: usize = 256;
/// Bytes of a group.
pub const GROUP_BYTES: usize = TILE_BYTES * GROUP_TILES;

/// What is made of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Their sum: of integers modulo 2^32 or 2^64, of field elements modulo the modulus. That of nothing is 0.
    Sum,
    /// The least. Of floating-point numbers -0 is below +0, and where one is not a number, the result is not one.
    Min,
    /// The greatest, likewise.
    Max,
}

/// Elements in host memory or in a file, least significant byte first.
#[derive(Debug, Clone, Copy)]
pub enum HostData<'a> {
    /// In memory at any address: page-locked or pageable.
    Memory(&'a [u8]),
    /// The first bytes of a file, which is read as it is needed: it may be larger than the memory.
    File {
        /// The file.
        file: &'a File,
        /// How many of its bytes.
        bytes: u64,
    },
}

impl HostData<'_> {
    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        match self {
            HostData::Memory(memory) => memory.len() as u64,
            HostData::File { bytes, .. } => *bytes,
        }
    }

    /// Copies the bytes from `at` on to `to`, which they fill.
    ///
    /// # Errors
    /// The file ends before, or cannot be read.
    pub fn read(&self, at: u64, to: &mut [u8]) -> Result<()> {
        let past = || Error::invalid("reduce", format!("{} bytes at {at} of {}", to.len(), self.bytes()));
        if at.checked_add(to.len() as u64).is_none_or(|end| end > self.bytes()) {
            return Err(past());
        }
        match self {
            HostData::Memory(memory) => {
                let start = usize::try_from(at).map_err(|_| past())?;
                to.copy_from_slice(&memory[start..start + to.len()]);
                Ok(())
            }
            HostData::File { file, .. } => file.read_exact_at(to, at).map_err(|e| match e.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    Error::invalid("reduce", "the file became shorter while it was read")
                }
                _ => Error::invalid("reduce", format!("cannot read the file at byte {at}: {e}")),
            }),
        }
    }

    /// How many elements of this many bytes there are.
    ///
    /// # Errors
    /// No whole number, or more than can be counted.
    pub fn elements(&self, element_bytes: usize) -> Result<usize> {
        let bytes = self.bytes();
        if !bytes.is_multiple_of(element_bytes as u64) {
            let reason = format!("{bytes} bytes; expected a multiple of {element_bytes}, the bytes of an element");
            return Err(Error::invalid("reduce", reason));
        }
        usize::try_from(bytes / element_bytes as u64)
            .map_err(|_| Error::invalid("reduce", format!("{bytes} bytes are more than this machine can address")))
    }
}

/// Sums, least and greatest elements.
pub trait Reduce: Backend {
    /// Who would reduce which elements of `parts`, each a lane and the elements that it holds, and how long it would take. Without a
    /// `way` the fastest.
    ///
    /// # Errors
    /// No such lane; lanes that do not reach each other's memory, where the way needs it.
    fn reduce_plan<E: Element>(&self, parts: &[(Lane, usize)], way: Option<ReduceWay>) -> Result<ReducePlan>;

    /// The elements of all `parts` together, reduced as the plan says.
    ///
    /// # Errors
    /// As [`Reduce::reduce_plan`]; the least or greatest of no elements; an element of a field that is not below the modulus (the first
    /// of them is named); the device failed. What concerns elements is found when the result is waited for.
    fn reduce<E: Element>(
        &self,
        op: ReduceOp,
        parts: &[&Self::Buf<E::Wire>],
        way: Option<ReduceWay>,
    ) -> Result<Pending<E::Wire>>;

    /// How long [`Reduce::reduce_host`] would take.
    fn reduce_host_plan(&self, data: HostData<'_>) -> ReducePlan;

    /// The elements of `data`, which stream to all lanes at once, each over its own link. It blocks until the result is there.
    ///
    /// # Errors
    /// The bytes are no whole number of elements; a file that cannot be read or became shorter; otherwise as [`Reduce::reduce`].
    fn reduce_host<E: Element>(&self, op: ReduceOp, data: HostData<'_>) -> Result<E::Wire>;
}

/// The results of groups in their order, made into one.
///
/// # Errors
/// The least or greatest of nothing.
pub fn combine_groups<E: Element>(op: ReduceOp, groups: impl IntoIterator<Item = E::Wire>) -> Result<E::Wire> {
    let mut groups = groups.into_iter().peekable();
    if groups.peek().is_none() && op != ReduceOp::Sum {
        let which = if op == ReduceOp::Min { "least" } else { "greatest" };
        return Err(Error::invalid("reduce", format!("there are no elements, so none is the {which}")));
    }
    Ok(E::finish(groups.fold(E::neutral(op), |a, b| E::combine(op, a, b))))
}

/// The error for an element of a field that is not below the modulus.
pub fn too_large(index: u64) -> Error {
    Error::invalid("reduce", format!("element {index} is not below the modulus of the scalar field"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_past_what_was_said() {
        use std::io::Write;
        let bytes: Vec<u8> = (0..10).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        for data in [HostData::Memory(&bytes[..8]), HostData::File { file: &file, bytes: 8 }] {
            let mut to = [0; 3];
            data.read(5, &mut to).unwrap();
            assert_eq!(to, [5, 6, 7]);
            for at in [6, 8, 9, u64::MAX - 1, u64::MAX] {
                let error = data.read(at, &mut to).unwrap_err();
                assert!(error.to_string().contains(&format!("3 bytes at {at} of 8")), "{error}");
            }
            assert_eq!(data.elements(4).unwrap(), 2);
            assert!(data.elements(3).unwrap_err().to_string().contains("a multiple of 3"));
        }
        let longer = HostData::File { file: &file, bytes: 11 };
        assert!(longer.read(8, &mut [0; 3]).unwrap_err().to_string().contains("became shorter"));
    }
}

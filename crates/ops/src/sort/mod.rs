//! Sort: keys, and values that go with them, over any number of lanes.
//!
//! The buffers that are sorted are one sequence, in the order in which they are given; each lies on a lane of its own.
//! Afterwards each holds as many elements as before, and the sequence is in order. Equal keys keep their order, so that
//! the values say where they came from.

pub mod merge;
pub mod partition;
mod plan;
mod streamed;

pub use plan::{least_memory, scratch_bytes, Plan};
pub use streamed::{streamed, Host};

use crate::{Backend, Buffer, Error, Lane, Result, Wire};

/// What can be sorted: unsigned integers of 32 and of 64 bits. Values are of the same type as their keys.
pub trait SortKey: Wire + Copy + Ord + Default + std::ops::Not<Output = Self> {
    /// The name that users write.
    const NAME: &'static str;

    /// The number.
    fn to_u64(self) -> u64;

    /// The low bits of a number.
    fn from_low(x: u64) -> Self;
}

impl SortKey for u32 {
    const NAME: &'static str = "u32";
    fn to_u64(self) -> u64 {
        self.into()
    }
    fn from_low(x: u64) -> Self {
        x as u32
    }
}

impl SortKey for u64 {
    const NAME: &'static str = "u64";
    fn to_u64(self) -> u64 {
        self
    }
    fn from_low(x: u64) -> Self {
        x
    }
}

/// How several lanes share a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum SortWay {
    /// Every lane writes each key straight to the lane whose share it belongs to, as sampled keys say; then each sorts its own.
    #[default]
    Partition,
    /// As textbooks have it: every lane sorts its own, exchanges sorted pieces with the others, and merges them.
    Merge,
}

/// In which order, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SortOptions {
    /// The greatest key first.
    pub descending: bool,
    /// How several lanes share it; `None` leaves it to the backend.
    pub way: Option<SortWay>,
}

/// Sorting of keys of one type.
pub trait Sort<K: SortKey>: Backend {
    /// Puts `keys` in order. It may block until they are.
    ///
    /// # Errors
    /// Two buffers lie on one lane; not enough memory for as many keys again twice over; the device failed. What is no
    /// failure of the device leaves the keys as they were.
    fn sort(&self, keys: &mut [&mut Self::Buf<K>], options: SortOptions) -> Result<()>;

    /// Puts `keys` in order, and moves each of `values` along with the key in its place. Equal keys keep their order.
    ///
    /// # Errors
    /// As [`Sort::sort`]; a buffer of values is not where its keys are, or not as long.
    fn sort_pairs(
        &self,
        keys: &mut [&mut Self::Buf<K>],
        values: &mut [&mut Self::Buf<K>],
        options: SortOptions,
    ) -> Result<()>;
}

/// A key as it is compared: the smallest comes first.
pub fn comparable<K: SortKey>(key: K, descending: bool) -> K {
    if descending {
        !key
    } else {
        key
    }
}

/// Where each piece of a sequence begins, and the length of the whole.
pub fn borders(lengths: impl IntoIterator<Item = usize>) -> Vec<u64> {
    let mut borders = vec![0];
    borders.extend(lengths.into_iter().scan(0u64, |at, length| {
        *at += length as u64;
        Some(*at)
    }));
    borders
}

/// Fails unless every buffer lies on a lane of its own, and `values`, if there are any, where and as long as the keys.
///
/// # Errors
/// They do not.
pub fn check<T: Wire, B: Buffer<T>>(keys: &[&mut B], values: Option<&[&mut B]>) -> Result<()> {
    const OP: &str = "sort";
    let lanes: Vec<Lane> = keys.iter().map(|buf| buf.lane()).collect();
    if let Some(i) = (0..lanes.len()).find(|&i| lanes[..i].contains(&lanes[i])) {
        return Err(Error::invalid(OP, format!("two of the buffers are on lane {}", lanes[i].0)));
    }
    let Some(values) = values else { return Ok(()) };
    if values.len() != keys.len() {
        return Err(Error::invalid(OP, format!("{} buffers of values for {} of keys", values.len(), keys.len())));
    }
    match keys.iter().zip(values).find(|(k, v)| (k.len(), k.lane()) != (v.len(), v.lane())) {
        Some((k, v)) => {
            let reason = format!("{} keys on lane {}, {} values on lane {}", k.len(), k.lane().0, v.len(), v.lane().0);
            Err(Error::invalid(OP, reason))
        }
        None => Ok(()),
    }
}

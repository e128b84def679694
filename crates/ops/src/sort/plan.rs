//! Whether a sort fits on the lanes, and into how many pieces it is cut if not.

use crate::{Error, Result};
use std::ops::Range;

/// What [`scratch_bytes`] counts with: two more copies with 1 / 24 of all keys to spare on each of up to 8 lanes; counts and lists
/// of what is to be sorted take up to 0.9 bytes an element.
const SCRATCH: (u64, u64) = (7, 2);

/// Bytes of a lane's scratch memory that do not depend on how much is sorted.
const FIXED: u64 = 32 << 20;

/// Bytes that a lane needs beside its `elements` of `bytes` each, at the most. GPUs take as much as their launchers say, which is
/// less; a test of `tandem-ops-cuda` compares the two.
pub fn scratch_bytes(elements: u64, bytes: u64) -> u64 {
    FIXED + (elements * bytes * SCRATCH.0).div_ceil(SCRATCH.1)
}

/// Bytes of a lane's memory with which elements of `bytes` each can be sorted at all.
pub fn least_memory(bytes: u64) -> u64 {
    FIXED + (SCRATCH.0 + SCRATCH.1).div_ceil(SCRATCH.1) * bytes
}

/// How many elements are sorted at a time. A pure function of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Elements in all.
    pub elements: u64,
    /// Elements that lie on the lanes at once, at the most.
    pub at_once: u64,
}

impl Plan {
    /// For `elements` of `bytes` each, a value counted with its key, on lanes that have `free` bytes each. Of those it takes
    /// `budget` at the most.
    ///
    /// # Errors
    /// There is not room for one element on each lane.
    pub fn new(elements: u64, bytes: u64, free: &[u64], budget: Option<u64>) -> Result<Self> {
        let least = free.iter().copied().min().unwrap_or(0);
        let room = budget.map_or(least / 16 * 15, |budget| budget.min(least));
        // Lanes get equal shares. A lane's places are counted in 32 bits, what it receives beyond its share included.
        let share = (room.saturating_sub(FIXED) / bytes * SCRATCH.1 / (SCRATCH.0 + SCRATCH.1)).min(3 << 30);
        let at_once = share.saturating_mul(free.len() as u64);
        if at_once == 0 {
            return Err(Error::OutOfMemory {
                op: "sort",
                device: "a lane".into(),
                wanted: FIXED + 5 * bytes,
                free: room,
            });
        }
        Ok(Plan { elements, at_once })
    }

    /// Whether everything is sorted at once.
    pub fn is_resident(&self) -> bool {
        self.elements <= self.at_once
    }

    /// The pieces, of equal size as far as that goes.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = Range<u64>> {
        let (n, count) = (self.elements, self.elements.div_ceil(self.at_once).max(1));
        let at = move |i: u64| (u128::from(n) * u128::from(i) / u128::from(count)) as u64;
        (0..usize::try_from(count).unwrap_or(usize::MAX)).map(move |i| at(i as u64)..at(i as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_sorted_at_once() {
        // 2^30 keys of 8 bytes on a GPU of 139 GiB; 2^33 on it; with a budget of 1 GiB on two lanes.
        assert!(Plan::new(1 << 30, 8, &[139 << 30], None).unwrap().is_resident());
        let plan = Plan::new(1 << 33, 8, &[139 << 30], None).unwrap();
        assert_eq!((plan.is_resident(), plan.at_once, plan.pieces().len()), (false, 3 << 30, 3));
        let plan = Plan::new(1 << 30, 16, &[139 << 30; 2], Some(1 << 30)).unwrap();
        assert!(!plan.is_resident() && plan.at_once < 1 << 25);
        assert!(Plan::new(1, 8, &[139 << 30], Some(32 << 20)).is_err());
        assert!(Plan::new(1, 8, &[], None).is_err());
        for bytes in [4, 8, 16] {
            assert!(bytes + scratch_bytes(1, bytes) <= least_memory(bytes));
            let plan = Plan::new(1 << 40, bytes, &[1 << 36; 2], None).unwrap();
            assert!(plan.at_once / 2 * bytes + scratch_bytes(plan.at_once / 2, bytes) <= 1 << 36);
            assert_eq!(Plan::new(9, bytes, &[1 << 40], Some(least_memory(bytes))).unwrap().at_once, 1);
            assert!(Plan::new(9, bytes, &[1 << 40], Some(least_memory(bytes) - 1)).is_err());
        }
    }

    #[test]
    fn pieces_are_the_whole_and_none_is_too_large() {
        for (elements, at_once) in [(0, 5), (1, 5), (5, 5), (6, 5), (1 << 40, 1 << 30), (u64::MAX, 1 << 60), (17, 1)] {
            let plan = Plan { elements, at_once };
            let mut end = 0;
            for piece in plan.pieces() {
                assert!(piece.start == end && piece.end - piece.start <= at_once, "{plan:?}: {piece:?}");
                end = piece.end;
            }
            assert_eq!(end, elements);
        }
    }
}

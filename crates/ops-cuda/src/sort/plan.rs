//! Which way a sort takes.

use tandem_ops::sort::SortWay;
use tandem_ops::{Error, Result};

/// Keys that one block sorts.
const BLOCK: usize = crate::ffi::TANDEM_SORT_BLOCK as usize;

/// Whether one launch does it all: one block, or of keys of 32 bits CUB.
pub(super) fn is_whole(lanes: usize, keys: usize, key_bytes: usize) -> bool {
    lanes == 1 && (keys <= BLOCK || key_bytes == 4)
}

/// The way that was asked for, or else the partition, where every GPU reaches the memory of every other: its stores go
/// there. One lane has nothing to share.
pub(super) fn way(
    lanes: usize,
    asked: Option<SortWay>,
    reach: impl Fn(usize, usize) -> Result<bool>,
) -> Result<SortWay> {
    if lanes < 2 {
        return Ok(SortWay::Partition);
    }
    let apart = |i: usize| (0..lanes).map(move |j| (i, j));
    for (i, j) in (0..lanes).flat_map(apart) {
        if i != j && !reach(i, j)? {
            return match asked {
                Some(SortWay::Partition) => {
                    let reason = format!("buffer {i} is on a GPU that does not reach the memory of buffer {j}'s");
                    Err(Error::invalid("sort", format!("{reason}; sort by merging")))
                }
                _ => Ok(SortWay::Merge),
            };
        }
    }
    Ok(asked.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_that_reach_each_other_partition() {
        let all = |_, _| Ok(true);
        let none_from_1 = |i, _| Ok(i != 1);
        assert_eq!(way(1, Some(SortWay::Merge), none_from_1).unwrap(), SortWay::Partition);
        assert_eq!(way(0, None, all).unwrap(), SortWay::Partition);
        for lanes in 2..=8 {
            assert_eq!(way(lanes, None, all).unwrap(), SortWay::Partition);
            assert_eq!(way(lanes, Some(SortWay::Merge), all).unwrap(), SortWay::Merge);
            assert_eq!(way(lanes, None, none_from_1).unwrap(), SortWay::Merge);
            let error = way(lanes, Some(SortWay::Partition), none_from_1).unwrap_err();
            assert!(error.to_string().contains("buffer 1"), "{error}");
        }
        assert!(way(2, None, |_, _| Err(Error::invalid("reach", "lost"))).is_err());
    }

    #[test]
    fn one_launch_sorts_what_fits_in_a_block_and_keys_of_32_bits() {
        assert!(is_whole(1, 0, 8) && is_whole(1, BLOCK, 8) && !is_whole(1, BLOCK + 1, 8) && !is_whole(2, 2, 8));
        assert!(is_whole(1, BLOCK + 1, 4) && !is_whole(2, BLOCK + 1, 4));
    }
}

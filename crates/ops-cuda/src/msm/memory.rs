//! What a sum takes of a GPU's memory, told before there are points: a pure function.

use super::plan::{plan, Field, Shape};
use tandem_ops::{MsmRequest, MsmSet};

/// What a sum over so many scalars takes beside these and the points, which are held once: entries and what puts them in order (`DigitsScratch`),
/// buckets in XYZZ coordinates, those of the sum before among them, and rounds over a chunk of entries.
pub(crate) fn sum_bytes(scalars: usize, g2: bool, field: Field) -> u64 {
    /// An entry, its value and its key before they are in order, and what tiles and work items count.
    const ENTRY: u64 = 4 + 4 + 2 + 2;
    /// Counts and places of a bucket.
    const BUCKET: u64 = 6 * 4;
    /// Entries of a chunk of rounds with which these still pay.
    const CHUNK: u64 = 1 << 23;
    let set = MsmSet { g2, first: 0, points: scalars };
    let point = field.group(&set).1;
    let memory_bytes = point.saturating_mul(scalars as u64);
    let request = MsmRequest { scalars, sets: vec![set], memory_bytes, uses: 1, pipelined: true };
    // Too many for one sum: more than any memory.
    let Ok(shape) = plan(&request, field) else { return u64::MAX >> 8 };
    let of = |shape: Shape| {
        let entries = shape.entries().unwrap_or(u64::MAX >> 8);
        let rounds = entries.min(CHUNK).saturating_mul(2 * point);
        entries.saturating_mul(ENTRY) + shape.buckets() * (BUCKET + 4 * point) + rounds
    };
    shape.map_or(0, of)
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{BLS12_381, BN254};
    use super::*;

    /// 13 windows of a scalar at 2^27, 12 bytes each, and what buckets and rounds take.
    #[test]
    fn sums_of_a_large_partition_take_160_bytes_a_scalar() {
        let scalars = 1 << 27;
        let all = sum_bytes(scalars, false, BLS12_381);
        assert!((150..200).contains(&(all >> 27)), "{all}");
        // Half the scalars take half of it, and G2 takes no more than buckets and rounds of twice the size.
        let half = sum_bytes(scalars / 2, false, BLS12_381);
        assert!(half > all / 3 && half < 2 * all / 3, "{half} and {all}");
        assert!(sum_bytes(scalars, true, BLS12_381) < 2 * all);
        for field in [BN254, BLS12_381] {
            assert_eq!(sum_bytes(0, false, field), 0);
            let sizes: Vec<u64> = (0..30).map(|log| sum_bytes(1 << log, false, field)).collect();
            assert!(sizes.is_sorted(), "{sizes:?}");
            assert!(sum_bytes(usize::MAX, true, field) > 1 << 50);
        }
    }
}

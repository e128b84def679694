//! What a sum takes of a GPU's memory, told before there are points: a pure function.

use super::plan::{plan, Field};
use super::rounds::BatchAffinePlan;
use tandem_ops::{MsmRequest, MsmSet, SumBytes};

/// What a sum over so many scalars takes, on a GPU that plans with so many bytes of memory, beside these and the points, which are held once:
/// entries and what puts them in order (`DigitsScratch`), and buckets in XYZZ coordinates, those of the sum before among them. It is faster
/// with rounds over a chunk of entries, where the GPU has memory for these.
pub(crate) fn sum_bytes(scalars: usize, g2: bool, field: Field, memory_bytes: u64) -> SumBytes {
    /// An entry, its value and its key before they are in order, and what tiles and work items count.
    const ENTRY: u64 = 4 + 4 + 2 + 2;
    /// Counts and places of a bucket.
    const BUCKET: u64 = 6 * 4;
    /// Entries of a chunk of rounds beyond which larger ones gain little.
    const CHUNK: u64 = 1 << 23;
    let set = MsmSet { g2, first: 0, points: scalars };
    let point = field.group(&set).1;
    let of_points = point.saturating_mul(scalars as u64);
    let request = MsmRequest { scalars, sets: vec![set], memory_bytes: of_points, uses: 1, pipelined: true };
    let shape = match plan(&request, field) {
        Ok(Some(shape)) => shape,
        Ok(None) => return SumBytes::default(),
        // Too many for one sum: more than any memory.
        Err(_) => return SumBytes { least: u64::MAX >> 8, faster: 0 },
    };
    let entries = shape.entries().unwrap_or(u64::MAX >> 8);
    let rounds = BatchAffinePlan::new(&shape, field, &request, &set, memory_bytes);
    let chunk = if rounds.rounds > 0 { u64::from(rounds.chunk).min(CHUNK) } else { 0 };
    SumBytes {
        least: entries.saturating_mul(ENTRY) + shape.buckets() * (BUCKET + 4 * point),
        faster: chunk.saturating_mul(2 * point),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{BLS12_381, BN254};
    use super::*;

    const GIB: u64 = 1 << 30;

    /// 13 windows of a scalar at 2^27, 12 bytes each, and what buckets and rounds take.
    #[test]
    fn sums_of_a_large_partition_take_160_bytes_a_scalar() {
        let scalars = 1 << 27;
        let all = |scalars, g2| sum_bytes(scalars, g2, BLS12_381, 80 * GIB).all();
        let whole = all(scalars, false);
        assert!((150..200).contains(&(whole >> 27)), "{whole}");
        // Half the scalars take half of it, and G2 takes no more than buckets and rounds of twice the size.
        let half = all(scalars / 2, false);
        assert!(half > whole / 3 && half < 2 * whole / 3, "{half} and {whole}");
        assert!(all(scalars, true) < 2 * whole);
        for (field, memory) in [BN254, BLS12_381].into_iter().flat_map(|field| [(field, GIB), (field, 80 * GIB)]) {
            assert_eq!(sum_bytes(0, false, field, memory), SumBytes::default());
            let sizes: Vec<u64> = (0..30).map(|log| sum_bytes(1 << log, false, field, memory).least).collect();
            assert!(sizes.is_sorted(), "{sizes:?}");
            assert!(sum_bytes(usize::MAX, true, field, memory).least > 1 << 50);
        }
    }

    /// Rounds count with no more than a fifth of the memory, as two sums may have them at once, and not at all where a GPU makes none.
    #[test]
    fn rounds_count_where_there_is_memory_for_them() {
        for g2 in [false, true] {
            let of = |memory| sum_bytes(1 << 22, g2, BLS12_381, memory);
            let none = of(700 << 20);
            assert_eq!(none.faster, 0);
            assert!((GIB * 3 / 4..2 * GIB).contains(&none.least), "{none:?}");
            let mut before = 0;
            for memory in (1..=80).map(|gib| gib * GIB) {
                let SumBytes { least, faster } = of(memory);
                assert_eq!(least, none.least);
                assert!(faster >= before && faster <= memory / 5, "{faster} of {memory}");
                before = faster;
            }
            assert_eq!(before, (1 << 23) * 2 * if g2 { 192 } else { 96 });
        }
    }
}

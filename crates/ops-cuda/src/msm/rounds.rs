//! How many entries of a bucket are added in affine coordinates, and for how many entries at a time: a pure function of the request.

use super::plan::{additions, Field, Shape};
use crate::ffi;
use crate::tuning::msm as tuning;
use tandem_ops::{MsmRequest, MsmSet};

const MAX_ROUNDS: u32 = ffi::TANDEM_MSM_ROUNDS as u32;
/// Entries of a chunk of rounds, see native/src/msm/rounds.cuh.
const MIN_CHUNK: u64 = 1 << 8;
const MAX_CHUNK: u64 = 1 << 30;

/// Affine additions in rounds before those in XYZZ coordinates (native/src/msm/rounds.cuh): how many, and for how many
/// entries at a time. None where `rounds` is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BatchAffinePlan {
    pub(crate) rounds: u32,
    pub(crate) chunk: u32,
}

impl BatchAffinePlan {
    /// What is expected to be fastest for a set on a GPU of `memory_bytes`.
    pub(crate) fn new(shape: &Shape, field: Field, request: &MsmRequest, set: &MsmSet, memory_bytes: u64) -> Self {
        let expected = set.points as f64 * shape.digits(field.bits) / shape.buckets() as f64;
        let rounds = (expected / tuning::SLOTS_LEFT).log2().round().clamp(0.0, f64::from(MAX_ROUNDS)) as u32;
        let entries = shape.entries().unwrap_or(u64::MAX);
        // A round's slots are half of the entries or of the slots before, and up to one for each bucket. Two rounds' are kept, and
        // half a point more for each slot of the first.
        let points = memory_bytes / tuning::rounds_share(request.pipelined) / field.point_bytes[usize::from(set.g2)];
        let most = points.saturating_sub(3 * shape.buckets()).min(MAX_CHUNK);
        if rounds == 0 || most < tuning::LEAST_CHUNK || !additions(shape, field, request, set).0 {
            return BatchAffinePlan::default();
        }
        BatchAffinePlan { rounds, chunk: entries.div_ceil(entries.div_ceil(most)) as u32 }
    }

    /// What is worth a try where there is no memory for these: chunks of half the size, or none.
    pub(crate) fn with_less(self) -> Self {
        match u64::from(self.chunk) / 2 {
            chunk @ tuning::LEAST_CHUNK.. => BatchAffinePlan { chunk: chunk as u32, ..self },
            _ => BatchAffinePlan::default(),
        }
    }

    /// Some in any case, in three chunks: for tests.
    pub(crate) fn in_any_case(shape: &Shape) -> Self {
        let chunk = shape.entries().unwrap_or(u64::MAX).div_ceil(3).clamp(MIN_CHUNK, MAX_CHUNK);
        BatchAffinePlan { rounds: 1 + shape.window_bits % MAX_ROUNDS, chunk: chunk as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::plan;
    use super::super::plan::tests::{one_set, BLS12_381, BN254};
    use super::*;

    /// On a GPU of so many GiB, with tables as large as may be.
    fn rounds_of(log_n: u32, g2: bool, field: Field, gib: u64) -> (Shape, BatchAffinePlan) {
        let set = MsmSet { g2, first: 0, points: 1 << log_n };
        let request = MsmRequest {
            scalars: 1 << log_n,
            sets: vec![set],
            memory_bytes: gib << 29,
            uses: 1_000_000,
            pipelined: false,
        };
        let shape = plan(&request, field).unwrap().unwrap();
        (shape, BatchAffinePlan::new(&shape, field, &request, &set, gib << 30))
    }

    #[test]
    fn rounds_are_made_where_they_pay() {
        let rounds = |log_n, g2, field| rounds_of(log_n, g2, field, 141).1.rounds;
        assert_eq!([14, 19, 20, 22, 24, 26].map(|n| rounds(n, false, BN254)), [0, 0, 0, 4, 4, 5]);
        // In a proof sums over points of 64 bytes are made without.
        let pipelined = |field| {
            let set = MsmSet { g2: false, first: 0, points: 1 << 22 };
            let request = MsmRequest { pipelined: true, ..one_set(1 << 22, u64::MAX) };
            BatchAffinePlan::new(&plan(&request, field).unwrap().unwrap(), field, &request, &set, 141 << 30).rounds > 0
        };
        assert_eq!((pipelined(BN254), pipelined(BLS12_381)), (false, true));
        assert_eq!([14, 17, 20, 22].map(|n| rounds(n, true, BN254)), [0, 0, 4, 4]);
        assert_eq!([14, 17, 20, 22].map(|n| rounds(n, true, BLS12_381)), [0, 0, 4, 5]);
        assert_eq!([14, 18, 21, 24].map(|n| rounds(n, false, BLS12_381)), [0, 0, 4, 5]);
    }

    /// As native/src/msm/group.cuh takes it: slots of two rounds.
    #[test]
    fn rounds_take_their_share_of_memory() {
        for gib in [2, 4, 8, 24, 80, 141] {
            for (log_n, g2, field) in
                [(20, true, BN254), (21, false, BLS12_381), (22, true, BLS12_381), (24, true, BN254)]
            {
                if field.point_bytes[usize::from(g2)] << log_n > gib << 29 {
                    continue;
                }
                let (shape, BatchAffinePlan { rounds, chunk }) = rounds_of(log_n, g2, field, gib);
                let (chunk, entries) = (u64::from(chunk), shape.entries().unwrap());
                let points = chunk / 2 + chunk / 4 + chunk / 4 + 5 * shape.buckets().min(chunk) / 2;
                assert!(points * field.point_bytes[usize::from(g2)] <= (gib << 30) / tuning::rounds_share(false));
                if rounds > 0 {
                    assert!(chunk >= tuning::LEAST_CHUNK / 2 && chunk <= entries);
                    // Chunks of one size, but for what is lost by rounding.
                    assert!(entries.div_ceil(chunk) * chunk - entries < entries.div_ceil(chunk));
                }
                // With 4 and 8 GiB it depends on the points and on the table.
                if !(4..=8).contains(&gib) {
                    assert_eq!(rounds > 0, gib > 8, "{gib} GiB, 2^{log_n}, G2 {g2}");
                }
            }
        }
    }

    #[test]
    fn rounds_without_memory_become_smaller_and_end() {
        let mut rounds = rounds_of(24, false, BLS12_381, 141).1;
        let mut tries = 0;
        while rounds != BatchAffinePlan::default() {
            let less = rounds.with_less();
            assert!(
                less == BatchAffinePlan { chunk: rounds.chunk / 2, ..rounds }
                    || u64::from(rounds.chunk) < 2 * tuning::LEAST_CHUNK
            );
            (rounds, tries) = (less, tries + 1);
        }
        assert!((2..16).contains(&tries), "{tries}");
        assert_eq!(rounds.with_less(), rounds);
    }
}

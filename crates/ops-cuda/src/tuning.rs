//! Numbers found by measuring.

/// Inverses of many elements. Estimated from the arithmetic and not measured: an inversion takes a warp as long as some 50 products.
pub(crate) mod batch_inverse {
    /// Threads that fill a GPU for products, one warp on each quarter of 132 multiprocessors and more: fewer elements get one each.
    pub(crate) const FILLING_THREADS: usize = 1 << 15;
    /// Elements of a thread from which on there are more threads: an inversion is then less than one product for each.
    pub(crate) const THREAD_ELEMENTS: usize = 64;
}

/// Multi-scalar multiplication, in mixed additions of G1. NVIDIA H200, `bench/micro/msm.cu`, the mode
/// `bench` (docs/design/msm.md).
pub(crate) mod msm {
    use tandem_ops::CurveId;

    /// The group that points are of. Every number that was found by measuring sums belongs to one: a curve without them does not
    /// compile, and never has another curve's.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct GroupId {
        pub(crate) curve: CurveId,
        pub(crate) g2: bool,
    }

    /// What was measured of a group.
    pub(crate) struct Measured {
        /// A sum's additions in XYZZ coordinates, and in affine ones in rounds. Fitted to sums of 2^19 to 2^26 points
        /// (docs/design/msm.md).
        pub(crate) xyzz: Additions,
        pub(crate) rounds: Additions,
        /// A sum alone is split over as many lanes as get so many points each, from twice as many points on over two. Two NVIDIA H200,
        /// `tandem bench msm --log-n 8..18 --lanes 1` and `--lanes 2`, ms on one and on two: G1 of BN254 2^16 0.50
        /// and 0.55, 2^17 0.69 and 0.57; of BLS12-381 2^16 0.90 and 0.94, 2^17 1.26 and 0.97; G2 of BN254 2^13 0.62 and 0.73, 2^14 0.77
        /// and 0.70; of BLS12-381 2^12 0.83 and 0.84, 2^13 1.02 and 0.98.
        pub(crate) shard_points: usize,
        /// Bytes of a table of points that additions read at random without waiting for it. A microbench of such reads, in thousand millions
        /// a second: 21 from up to 64 GB, 15 from 80, 5 from 100, 3 from 125 GB, for points of 64 and of 96 bytes. Additions in XYZZ
        /// coordinates take 6.4 of them on BN254; the first round of affine ones takes as many as there are, and found 13 of points of 192
        /// bytes in 103 GB (H200, 2026-11-22, 16:42 UTC, docs/design/msm.md).
        pub(crate) table_reach: u64,
    }

    impl GroupId {
        pub(crate) const fn measured(self) -> Measured {
            const fn of(entry: f64, bucket: f64, start: f64) -> Additions {
                Additions { entry, bucket, start }
            }
            let (xyzz, rounds, shard_points, table_reach) = match (self.curve, self.g2) {
                (CurveId::Bn254, false) => (of(0.98, 4.4, 1.2e6), of(0.85, 5.3, 3.0e6), 1 << 16, 80_000_000_000),
                (CurveId::Bls12_381, false) => (of(0.98, 4.4, 0.6e6), of(0.77, 7.2, 1.6e6), 1 << 16, 80_000_000_000),
                (CurveId::Bn254, true) => (of(2.85, 13.0, 2.0e6), of(1.99, 16.0, 4.4e6), 1 << 13, 105_000_000_000),
                (CurveId::Bls12_381, true) => (of(2.85, 13.0, 1.3e6), of(1.92, 16.1, 4.4e6), 1 << 12, 105_000_000_000),
            };
            Measured { xyzz, rounds, shard_points, table_reach }
        }
    }
    /// What the additions of a sum take, in mixed additions of G1 of the curve: 163 ps on BN254, 350 ps on BLS12-381.
    pub(crate) struct Additions {
        /// An entry.
        pub(crate) entry: f64,
        /// A bucket: two full additions on its way to the sum, its share of what does not fill the device, what it takes to end
        /// one and begin the next, and in rounds a slot without an addition in every second one.
        pub(crate) bucket: f64,
        /// What is there in any case; with rounds, an inversion in each.
        pub(crate) start: f64,
    }

    /// Rounds go on until so many slots of a bucket are left.
    pub(crate) const SLOTS_LEFT: f64 = 5.0;
    /// Their scratch memory takes at most this share of a GPU's: one fifth, of sums in a row one tenth, for other things of a proof lie beside
    /// it. Two sums may have it at once, and where tables leave less, sums take less (`BatchAffinePlan::with_less`). A chunk more costs an inversion in
    /// each round and what does not fill the device at both ends of its launches: 0.3 to 0.5 ms (docs/design/msm.md).
    pub(crate) const fn rounds_share(pipelined: bool) -> u64 {
        if pipelined {
            10
        } else {
            5
        }
    }
    /// What rounds work with, about a point an entry, is overwritten beside what follows: at 3 TB/s, which is taken for granted and not
    /// measured. That is as much as rounds gain on BN254's G1. 2^22 constraints, one NVIDIA H200, 2026-11-23, the sums A, L, B1 and H:
    /// 4.83, 5.39, 4.66 and 8.21 ms without, 5.91, 5.02, 5.02 and 9.23 with rounds, the proof 47.2 and 49.2 (docs/design/msm.md).
    pub(crate) fn overwritten(curve: CurveId, point_bytes: u64) -> f64 {
        point_bytes as f64 / 3.0 / mixed_addition(curve)
    }
    /// Picoseconds of a mixed addition in G1 of the curve.
    const fn mixed_addition(curve: CurveId) -> f64 {
        match curve {
            CurveId::Bn254 => 163.0,
            CurveId::Bls12_381 => 350.0,
        }
    }
    /// With less than so many entries at a time no rounds are made.
    pub(crate) const LEAST_CHUNK: u64 = 1 << 22;
    /// A doubling in G2, in those of G1.
    pub(crate) const G2_COST: f64 = 3.1;
    /// A digit's way from the scalar to its place: 14.5 ps, of 163 ps for an addition on BN254, and of 350 ps for one on
    /// BLS12-381 (2026-11-23, docs/design/msm.md). With more than 2^22 buckets the runs of the second sort
    /// are four entries long, and it takes 17 ps.
    pub(crate) fn entry_cost(curve: CurveId, buckets: u64) -> f64 {
        let picoseconds = if buckets > 1 << 22 { 17.0 } else { 14.5 };
        picoseconds / mixed_addition(curve)
    }
    /// What it takes more for all digits of a scalar to see which of the uppermost may stay as they are: 12 ps. Digits of 2^24 scalars of BN254
    /// took 2.92 and not 2.78 ms (8.3 ps) though each had 0.24 fewer, at 14.5 ps (2026-11-23, docs/design/msm.md).
    pub(crate) fn look_ahead_cost(curve: CurveId) -> f64 {
        12.0 / mixed_addition(curve)
    }
    /// Powers of two of a place that a table has at most: buckets are then 1/2 + 1/16 of what they are with one. A fifth takes as much
    /// memory as the others and leaves 1/2 + 1/32: 30.44 ms and not 30.55, 2^24 points of BN254 (docs/design/msm.md).
    pub(crate) const MOST_POWERS: u32 = 4;
    /// A doubling on the way from one level of a table to the next.
    pub(crate) const DOUBLING_COST: f64 = 1.1;
    /// A point of a level, made affine with an eighth of an inversion.
    pub(crate) const LEVEL_COST: f64 = 1.5;
}

/// Transforms of points. Worked out and not measured: a product takes some 2900 products in the field, 14 % of them additions of points.
pub(crate) mod point_ntt {
    use tandem_ops::CurveId;

    /// Seconds of a product on a GPU that is full.
    pub(crate) fn product(curve: CurveId) -> f64 {
        match curve {
            CurveId::Bn254 => 70e-9,
            CurveId::Bls12_381 => 150e-9,
        }
    }
}

/// Transforms.
pub(crate) mod ntt {
    /// All tables of factors take at most this share of a GPU's memory: one 16th, so that two kinds of transforms of
    /// 2^24 elements keep theirs (1 GiB each) beside a key of that size on a GPU of 141 GB.
    pub(crate) const TABLES_SHARE: u64 = 16;
    /// One table takes at most one 4th of that. A pass without a table makes one product more an element.
    pub(crate) const TABLE_SHARE: u64 = 4;
    /// A transform is spread over lanes where each gets at least this many elements, as a power of two. Two NVIDIA H200,
    /// 2026-11-22, BN254, ms on one and on two: 2^18 0.062 and 0.065, 2^19 0.117 and 0.088, 2^20 0.220 and 0.157.
    pub(crate) const SHARD_BITS: u32 = 18;
    /// A transform over a small field is spread where each lane gets at least so many bytes. Two NVIDIA H200, 2026-11-22, `tandem bench ntt`, ms on one and on two: Goldilocks 2^22 0.077 and
    /// 0.090, 2^23 0.157 and 0.157, 2^24 0.305 and 0.261; BabyBear 2^24 0.148 and 0.155, 2^25 0.297 and 0.279.
    pub(crate) const SMALL_SHARD_BYTES: usize = 64 << 20;
    /// Factors before passes of small fields come from a table where there are up to 2^18 of them, 2 MiB: those are read from the L2 cache.
    /// Larger tables cost as much as the products, 2.90 ms and 2.74 for 2^27 elements of Goldilocks (H200, 2026-11-22).
    pub(crate) const SMALL_TABLE_BITS: u32 = 18;
}

/// Sparse products.
pub(crate) mod spmv {
    /// Rows of up to this many entries are done by one thread each.
    pub(crate) const THREAD_ROW: usize = 24;
    /// Longer ones of up to this many by one warp each, those above by one block each.
    pub(crate) const WARP_ROW: usize = 1024;
}

/// Poseidon's columns from host memory.
pub(crate) mod poseidon {
    /// Parts that are on their way at once: one up, one in work, one to keep the GPU busy between the two.
    pub(crate) const PIPES: usize = 3;
    /// Columns of a part: ten waves of the widest hash on an H200, and hashes for one page-locked block that is kept.
    pub(crate) const PART: usize = 1 << 19;
}

/// Sums, least and greatest elements.
pub(crate) mod reduce {
    use tandem_ops::reduce::plan::Rates;

    /// Page-locked memory through which a worker copies at once.
    pub(crate) const SLOT_BYTES: usize = 2 << 20;
    /// Workers of a GPU: two keep its link busy while the third's group is reduced.
    pub(crate) const PINNED_WORKERS: usize = 3;
    /// Workers of a GPU that fill slots from other memory.
    pub(crate) const PAGED_WORKERS: usize = 6;
    /// What a GPU, its memory and its links read in a second. Two NVIDIA H200s, 2026-11-22, `tandem bench reduce --log-n 30 --data
    /// lanes,pinned`: from its own memory 4600e9 (docs/design/reduce.md), from the other's 343e9, from page-locked memory 54e9, both 106.5e9. Other
    /// host memory as the fabric's host links were measured (docs/design/fabric.md).
    pub(crate) const RATES: Rates = Rates {
        memory: 4600e9,
        lane: 4600e9,
        peer: 343e9,
        pinned: [54e9, 106.5e9],
        paged: [40e9, 70e9],
        latency: 30e-6,
    };
    /// Of elements of a field.
    pub(crate) const SCALARS: f64 = 4600e9;
}

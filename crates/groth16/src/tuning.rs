//! Numbers found by measuring: NVIDIA H200, one and two, `tandem bench groth16 --log-n 16..22 --compare --trace FILE`, half of
//! the witness dense, tables for a million proofs (docs/design/proof-scheduling.md).

use tandem_ops::CurveId;

/// What the parts of a proof cost, in points of a large sum in G1 over the witness (1.05 ns on BN254, 2.4 ns on
/// BLS12-381).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Costs {
    /// Six transforms, two sparse products and the products between them, for each row.
    pub(crate) row: f64,
    /// A point of H, with the digits of its scalar. The quotient's values are all of full size, those of a witness are
    /// not.
    pub(crate) h_point: f64,
    /// A point of G2.
    pub(crate) g2_point: f64,
    /// The digits of a value of the witness.
    pub(crate) digits: f64,
    /// What a sum in G1 costs beside its points.
    pub(crate) g1_sum: BucketReductionCost,
    /// What a sum in G2 costs beside its points.
    pub(crate) g2_sum: BucketReductionCost,
    /// What a lane more costs: its share of the upload, the copies, and the host's work on its sums.
    pub(crate) lane: f64,
}

/// What it costs to take a sum's buckets to one point: there are more of them where there are more points, up to a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BucketReductionCost {
    least: f64,
    point: f64,
    most: f64,
}

impl BucketReductionCost {
    pub(crate) fn of(self, points: usize) -> f64 {
        (self.least + self.point * points as f64).min(self.most)
    }
}

impl Costs {
    pub(crate) fn of(curve: CurveId) -> Self {
        match curve {
            CurveId::Bn254 => Costs {
                row: 1.4,
                h_point: 2.0,
                g2_point: 2.18,
                digits: 0.2,
                g1_sum: BucketReductionCost { least: 100e3, point: 0.25, most: 400e3 },
                g2_sum: BucketReductionCost { least: 170e3, point: 1.0, most: 1.44e6 },
                lane: 500e3,
            },
            CurveId::Bls12_381 => Costs {
                row: 0.65,
                h_point: 2.12,
                g2_point: 1.75,
                digits: 0.09,
                g1_sum: BucketReductionCost { least: 60e3, point: 0.25, most: 320e3 },
                g2_sum: BucketReductionCost { least: 150e3, point: 1.2, most: 1.5e6 },
                lane: 250e3,
            },
        }
    }
}

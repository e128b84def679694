//! Numbers found by measuring: NVIDIA H200, one and two, `tandem bench groth16 --log-n 16..22 --compare --trace FILE`, half of
//! the witness dense, tables for a million proofs (docs/design/proof-scheduling.md).

use tandem_ops::CurveId;

/// What the parts of a proof cost, in points of a large sum in G1 over the witness (1.05 ns on BN254, 2.4 ns on
/// BLS12-381).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Costs {
    /// Six transforms, two sparse products and the products between them, for each row.
    pub(crate) row: f64,
    /// The part of them that a lane makes where each of three has a chain, for each row.
    pub(crate) chain: f64,
    /// What it costs to deal the quotient to several lanes, beside its rows.
    pub(crate) deal: f64,
    /// To deal a row: 32 bytes of each vector over its lane's links, at 390 GB/s.
    pub(crate) deal_row: f64,
    /// The upload of a value of the witness over one link to the host, at 50 GB/s.
    pub(crate) upload: f64,
    /// Links to the host beyond which an upload to all lanes gets no faster: memory of the host binds.
    pub(crate) links: usize,
    /// The exchange of a value of the witness among lanes that have pieces of it, at 350 GB/s.
    pub(crate) exchange: f64,
    /// What the host does alone: it enqueues the first work, and computes and verifies C.
    pub(crate) host: f64,
    /// The host's check of A and B, which it makes while lanes sum over the quotient.
    pub(crate) verify: f64,
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
    /// What a lane more is worth at least: the host's work on its sums, and what is not known of it.
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

    /// How many points, each of which costs `each`, fit with this into `room`.
    pub(crate) fn fitting(self, room: f64, each: f64) -> f64 {
        let few = (room - self.least) / (each + self.point);
        if self.least + self.point * few <= self.most {
            few
        } else {
            (room - self.most) / each
        }
    }
}

impl Costs {
    pub(crate) fn of(curve: CurveId) -> Self {
        match curve {
            CurveId::Bn254 => Costs {
                row: 1.4,
                chain: 0.5,
                deal: 100e3,
                deal_row: 0.08,
                upload: 0.61,
                links: 6,
                exchange: 0.09,
                host: 1.4e6,
                verify: 0.7e6,
                h_point: 2.0,
                g2_point: 2.18,
                digits: 0.2,
                g1_sum: BucketReductionCost { least: 100e3, point: 0.25, most: 400e3 },
                g2_sum: BucketReductionCost { least: 170e3, point: 1.0, most: 1.44e6 },
                lane: 500e3,
            },
            CurveId::Bls12_381 => Costs {
                row: 0.65,
                chain: 0.23,
                deal: 45e3,
                deal_row: 0.035,
                upload: 0.27,
                links: 6,
                exchange: 0.04,
                host: 0.8e6,
                verify: 0.5e6,
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

//! Numbers found by measuring: NVIDIA H200, 2026-11-21, `tandem bench groth16 --log-n 16..22`, half of the witness dense
//! (bench/baselines/h200x1.jsonl).

use tandem_ops::CurveId;

/// What the parts of a proof cost, in points of a large sum in G1 over the witness (1.2 ns on BN254, 2.6 ns on
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
    /// A sum in G1, however short.
    pub(crate) g1_sum: f64,
    /// A sum in G2, however short.
    pub(crate) g2_sum: f64,
    /// What a lane more costs: its share of the upload, the copies, and the host's work on its sums.
    pub(crate) lane: f64,
}

impl Costs {
    pub(crate) fn of(curve: CurveId) -> Self {
        let bn254 =
            Costs { row: 1.3, h_point: 2.1, g2_point: 3.1, digits: 0.18, g1_sum: 400e3, g2_sum: 1000e3, lane: 100e3 };
        match curve {
            CurveId::Bn254 => bn254,
            // Scalars are as long, points cost more than twice as much.
            CurveId::Bls12_381 => Costs { row: 0.57, digits: 0.08, h_point: 2.0, lane: 50e3, ..bn254 },
        }
    }
}

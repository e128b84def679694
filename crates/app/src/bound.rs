//! The least time that the arithmetic of a proof takes on an NVIDIA H200.
//!
//! Multiplications of 32-bit words bind: a multiprocessor starts 32 of those with a 64-bit result in a clock, so that 132
//! of them at 1.98 GHz do 8.36e12 a second. A product in a field of n words takes n^2 for the product, n^2 for
//! the reduction and n halves for its factors.

use tandem_engine::CurveId;

/// Word products a second on one GPU.
const RATE: f64 = 132.0 * 1.98e9 * 32.0;

/// Word products of the operations of a proof.
struct Costs {
    /// A product of scalars.
    scalar: f64,
    /// Addition of affine points in G1 and G2 with the inversions shared: 5 products, a square and a quarter of a product.
    add: [f64; 2],
    /// Addition of sums in extended Jacobian coordinates: 12 products and 2 squares.
    full_add: [f64; 2],
}

fn costs(curve: CurveId) -> Costs {
    match curve {
        CurveId::Bn254 => Costs { scalar: 132.0, add: [797.0, 1986.0], full_add: [1724.0, 4464.0] },
        // The scalar field's lowest words are 1 and 2^32 - 1: no products there.
        CurveId::Bls12_381 => Costs { scalar: 112.0, add: [1772.0, 4431.0], full_add: [3834.0, 9960.0] },
    }
}

/// Milliseconds, on `gpus` GPUs, for a circuit that fills its domain and has a share `dense` of wires of full size; all
/// other scalars are taken to cost nothing.
pub(crate) fn groth16_ms(curve: CurveId, log_domain: u32, dense: f64, gpus: usize) -> f64 {
    let costs = costs(curve);
    let rows = f64::from(log_domain).exp2();
    // One bucket set with windows of c bits: an addition for each window of 253 bits, two a bucket to add the buckets up.
    let sum = |points: f64, group: usize| {
        let with = |c: i32| {
            points * (253.0 / f64::from(c)).ceil() * costs.add[group] + f64::from(c).exp2() * costs.full_add[group]
        };
        (4..=26).map(with).fold(f64::INFINITY, f64::min)
    };
    let transforms = 6.0 * (rows / 2.0 * f64::from(log_domain) - rows + 1.0) * costs.scalar;
    let sums = 3.0 * sum(rows * dense, 0) + sum(rows * dense, 1) + sum(rows, 0);
    (transforms + sums) / RATE / gpus.max(1) as f64 * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_worked_out_by_hand() {
        // 2^20 rows, half dense: transforms 0.89, H 1.51, A, B1 and L 0.80 each, B2 2.0 ms.
        let bound = groth16_ms(CurveId::Bn254, 20, 0.5, 1);
        assert!((6.4..7.1).contains(&bound), "{bound}");
        assert!((groth16_ms(CurveId::Bn254, 20, 0.5, 2) * 2.0 - bound).abs() < 1e-9);
        // 2^22 rows in 10^10 word products: transforms 3.3 and 2.8, H 4.5 and 10.1, A, B1 and L 2.35 and 5.2 each, B2 5.9 and 13.1.
        let ratio = groth16_ms(CurveId::Bls12_381, 22, 0.5, 1) / groth16_ms(CurveId::Bn254, 22, 0.5, 1);
        assert!((1.96..2.05).contains(&ratio), "{ratio}");
    }
}

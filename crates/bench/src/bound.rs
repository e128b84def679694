//! The least time that the multiplications of a proof take on NVIDIA H200s, in the cheapest forms that the project has of each
//! (docs/performance/bounds.md says what kind of bound that is).
//!
//! A multiprocessor starts 32 multiplications of 32-bit words with a 64-bit result in a clock, so that 132 of them at 1.98 GHz do
//! 8.36e12 a second. One whose lower half alone is wanted takes half as long. Costs below are in the former.

use tandem_engine::digits::{Counts, WINDOW_BITS};
use tandem_engine::{CurveId, ProofDigits, Protocol};

/// Wide multiplications a second on one GPU.
const RATE: f64 = 132.0 * 1.98e9 * 32.0;

/// Wide multiplications of the operations of a proof.
struct Costs {
    /// A scalar times a known factor.
    known: f64,
    /// An addition of points in G1 and in G2.
    add: [f64; 2],
}

/// A product with a known factor (ntt/lazy.cuh) is an upper half of 43, a lower half of 28 and 8 half ones, and a lower half without
/// the limbs in which the modulus has a simple form.
const fn known(rest: f64) -> f64 {
    43.0 + (28.0 + 8.0 / 2.0) + rest
}

/// Additions of affine points (msm/rounds.cuh): 5 products and a square; an inversion serves any number of them. `product` and
/// `square` are without Montgomery's `reduction`.
const fn additions(product: f64, square: f64, reduction: f64) -> [f64; 2] {
    let g1 = 5.0 * (product + reduction) + (square + reduction);
    // In Fp2 (fp2.cuh): three products and two reductions; (c0 + c1)(c0 - c1) and c0 c1 for a square.
    let g2 = 5.0 * (3.0 * product + 2.0 * reduction) + 2.0 * (product + reduction);
    [g1, g2]
}

/// Products of n limbs (limbs_device.cuh) are three of n / 2 (docs/design/field-arithmetic.md), squares n (n + 1) / 2, reductions n^2 and one, the
/// factors of the two limbs that are not folded (docs/design/field-arithmetic.md).
const fn costs(curve: CurveId) -> Costs {
    match curve {
        // The rest of 7 limbs: 21 and 7 half ones. 3 * 4^2, 36 and 65: 666 in G1 and 1596 in G2.
        CurveId::Bn254 => Costs { known: known(21.0 + 7.0 / 2.0), add: additions(48.0, 36.0, 64.0 + 1.0) },
        // The rest of 6 limbs: 15 and 6 half ones. 3 * 6^2, 78 and 145: 1488 in G1 and 3576 in G2.
        CurveId::Bls12_381 => Costs { known: known(15.0 + 6.0 / 2.0), add: additions(108.0, 78.0, 144.0 + 1.0) },
    }
}

/// Additions of a sum that has so many digits, with windows of whichever bits take the fewest: one a digit, less the first of each
/// bucket, and two a bucket. Odd digits of c bits, the sign among them, have 2^(c - 2) buckets.
fn additions_of(digits: &Counts) -> f64 {
    let with = |(&digits, bits): (&u64, u32)| digits + digits.min(1 << (bits - 2));
    digits.iter().zip(WINDOW_BITS).map(with).min().unwrap_or(0) as f64
}

/// Milliseconds on one GPU for so many products of scalars.
pub(crate) fn products_ms(products: f64) -> f64 {
    // Of eight limbs on either curve: 3 * 4^2, and 64 + 1 to reduce.
    const PRODUCT: f64 = 48.0 + 65.0;
    products * PRODUCT / RATE * 1e3
}

/// Bytes a second of a GPU's memory.
const MEMORY: f64 = 4.8e12;
/// Bytes a second that a GPU sends to others, while it receives as many.
const LINKS: f64 = 450e9;

/// Milliseconds on one GPU for so many products of scalars, and for so many bytes of its memory: the longer of both.
pub(crate) fn scalars_ms(products: f64, bytes: f64) -> f64 {
    products_ms(products).max(bytes / MEMORY * 1e3)
}

/// Milliseconds for so many bytes of each GPU's memory, and so many that each sends to the others: the longer of both.
pub(crate) fn bytes_ms(memory: f64, sent: f64) -> f64 {
    (memory / MEMORY).max(sent / LINKS) * 1e3
}

/// Milliseconds on `gpus` GPUs.
pub(crate) fn groth16_ms(curve: CurveId, log_domain: u32, digits: &ProofDigits, gpus: usize) -> f64 {
    let costs = costs(curve);
    let rows = f64::from(log_domain).exp2();
    // Three transforms to coefficients and three to the odd coset. A factor for each pair of a stage; to coefficients all but
    // rows - 1 of these are 1, on the odd coset none.
    let pairs = rows / 2.0 * f64::from(log_domain);
    let transforms = (3.0 * (pairs - (rows - 1.0)) + 3.0 * pairs) * costs.known;
    let g1: f64 = [&digits.a, &digits.b, &digits.l, &digits.h].map(additions_of).iter().sum();
    let sums = g1 * costs.add[0] + additions_of(&digits.b) * costs.add[1];
    (transforms + sums) / RATE / gpus.max(1) as f64 * 1e3
}

/// Sums of a proof over random scalars, in rows, and transforms of as many elements as there are rows, to coefficients and to or from
/// cosets.
struct Work {
    sums: &'static [f64],
    plain: f64,
    shifted: f64,
}

/// Scalars that are always zero do not count. A polynomial of fewer than k n coefficients is known from k cosets of n rows. Z at w X is Z on the
/// same coset, a row further, and public values are few.
const fn work(protocol: Protocol) -> Work {
    match protocol {
        // Not asked for: what its sums are depends on the witness.
        Protocol::Groth16 => Work { sums: &[], plain: 3.0, shifted: 3.0 },
        // A, B, C, Z, T1, T2, T3 and the openings; A, B, C and Z to coefficients and to three cosets; the quotient from these,
        // but for six coefficients.
        Protocol::Plonk => Work { sums: &[1.0; 9], plain: 4.0, shifted: 5.0 * 3.0 },
        // C1 is A, B, C and T0 of 2n; C2 is Z, T1 of n and T2 of 3n. W1 is as long as C0 and, above, a third dense, W2 has 9n. A, B, C and Z
        // on three cosets; T0 from two, T1, which has two coefficients more than rows, from two, and T2 from three.
        Protocol::Fflonk => {
            Work { sums: &[5.0, 5.0, 8.0 + 1.0 / 3.0, 9.0], plain: 4.0, shifted: 4.0 * 3.0 + 2.0 + 2.0 + 3.0 }
        }
    }
}

/// Milliseconds on `gpus` GPUs of a PLONK or FFLONK proof.
pub(crate) fn plonk_ms(protocol: Protocol, curve: CurveId, log_domain: u32, gpus: usize) -> f64 {
    let costs = costs(curve);
    let rows = f64::from(log_domain).exp2();
    let Work { sums, plain, shifted } = work(protocol);
    let pairs = rows / 2.0 * f64::from(log_domain);
    let transforms = (plain * (pairs - (rows - 1.0)) + shifted * pairs) * costs.known;
    // Magnitudes are below r / 2. A digit in c + 1 bits on average, and half a one where the bits end.
    let bits = match curve {
        CurveId::Bn254 => 253.0,
        CurveId::Bls12_381 => 254.0,
    };
    let digits = |n: f64| -> Counts {
        std::array::from_fn(|i| (n * (bits / f64::from(WINDOW_BITS.start() + i as u32 + 1) + 0.5)) as u64)
    };
    let additions: f64 = sums.iter().map(|n| additions_of(&digits(n * rows))).sum();
    (transforms + additions * costs.add[0]) / RATE / gpus.max(1) as f64 * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_plonk_are_those_worked_out_by_hand() {
        // 2^20 rows, in units of 2^20 word products: transforms (4 * 9 + 15 * 10) * 99.5 = 18507; nine sums of 12.5 * 666 = 8325.
        // 93432 of them take 11.71 ms.
        let plonk = plonk_ms(Protocol::Plonk, CurveId::Bn254, 20, 1);
        assert!((11.65..11.75).contains(&plonk), "{plonk}");
        assert!((plonk_ms(Protocol::Plonk, CurveId::Bn254, 20, 4) * 4.0 - plonk).abs() < 1e-9);
        // Transforms (4 * 9 + 19 * 10) * 99.5 = 22487. Sums of 5, 5, 8.33 and 9 rows take 11.4 additions for each at the best windows of
        // so many, 24 bits: 253 / 25 + 0.5 digits and 2^22 buckets.
        let of = |n: f64| (253.0 / 25.0 + 0.5) * n + 4.0;
        let additions = of(5.0) * 2.0 + of(8.0 + 1.0 / 3.0) + of(9.0);
        let expected = (22487.0 + additions * 666.0) * f64::from(1 << 20) / RATE * 1e3;
        let fflonk = plonk_ms(Protocol::Fflonk, CurveId::Bn254, 20, 1);
        assert!((fflonk / expected - 1.0).abs() < 0.02, "{fflonk} beside {expected}");
    }

    /// `wires` of them of full size, as many ones, and a quotient of `rows`.
    fn digits(wires: u64, rows: u64) -> ProofDigits {
        let random = |n: u64| WINDOW_BITS.map(move |c| (n as f64 * (253.0 / f64::from(c + 1) + 0.5)) as u64);
        let of = |n: u64, ones: u64| -> Counts { random(n).map(|x| x + ones).collect::<Vec<_>>().try_into().unwrap() };
        let witness = of(wires, wires);
        ProofDigits { a: witness, b: witness, l: witness, h: of(rows, 0) }
    }

    #[test]
    fn costs_are_those_counted_by_hand() {
        let of = |curve| (costs(curve).known, costs(curve).add);
        assert_eq!(of(CurveId::Bn254), (99.5, [666.0, 1596.0]));
        assert_eq!(of(CurveId::Bls12_381), (93.0, [1488.0, 3576.0]));
    }

    #[test]
    fn additions_are_those_of_the_best_windows() {
        assert_eq!(additions_of(&[0; 25]), 0.0);
        // All digits in one bucket: 16 buckets at the least are taken to be there.
        assert_eq!(additions_of(&[1000; 25]), 1016.0);
        assert_eq!(additions_of(&[3; 25]), 6.0);
        // A million random scalars: 12 digits each and half as many buckets with 21 bits, 11.5 and as many with 22.
        let million = additions_of(&digits(0, 1 << 20).h) / f64::from(1 << 20);
        assert!((12.49..12.51).contains(&million), "{million}");
    }

    #[test]
    fn bounds_are_those_worked_out_by_hand() {
        // 2^20 rows, half of the wires of full size. In units of 2^20 word products: transforms 57 * 99.5 = 5672; H 12.5 * 666 =
        // 8325; A, B1 and L 0.5 * 12 + 0.5 ones + 0.5 buckets = 7.0 * 666 = 4662 each, B2 7.0 * 1596 = 11172: 39155 of them, 4.91 ms.
        let half = digits(1 << 19, 1 << 20);
        let bound = groth16_ms(CurveId::Bn254, 20, &half, 1);
        assert!((4.86..4.92).contains(&bound), "{bound}");
        assert!((groth16_ms(CurveId::Bn254, 20, &half, 2) * 2.0 - bound).abs() < 1e-9);
        // On the other curve: 57 * 93 = 5301, 12.5 * 1488 = 18600, 3 * 7.0 * 1488 = 31248 and 7.0 * 3576 = 25032.
        let ratio = groth16_ms(CurveId::Bls12_381, 20, &half, 1) / bound;
        assert!((2.04..2.06).contains(&ratio), "{ratio}");
    }
}

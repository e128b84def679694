//! FFLONK as snarkjs has it: one commitment holds several polynomials, and two openings prove all (ePrint 2021/1167). It is for BN254 alone,
//! whose roots of unity of order 3 it takes.
//!
//! ```text
//! C0(X) = QL(X^8) + X QR(X^8) + X^2 QO(X^8) + X^3 QM(X^8) + X^4 QC(X^8) + X^5 S1(X^8) + X^6 S2(X^8) + X^7 S3(X^8), in the key
//! C1(X) = A(X^4) + X B(X^4) + X^2 C(X^4) + X^3 T0(X^4), where T0 Z_H is what the gates say
//! C2(X) = Z(X^3) + X T1(X^3) + X^2 T2(X^3), where T1 Z_H = (Z - 1) L1 and T2 Z_H is what the permutation says
//! ```

mod key;
mod prove;
mod setup;
mod verify;

pub(crate) use key::PLACES;
#[cfg(test)]
pub(crate) use key::VECTORS;
pub use key::{check_powers, device_bytes, least_bytes, working_bytes, KeyView, OwnedKey, ProvingKey};
pub use prove::{prove_verified, Made};
pub use setup::{setup, KeySink, Part};
pub use verify::PreparedKey;

use crate::{P1, P2};
use ark_ff::{Field, MontFp};
use tandem_ops::{Bn254, Canonical, Curve, NttField};

pub(crate) type Fr = <Bn254 as Curve>::Fr;
type G1 = P1<Bn254>;

/// Rows behind all gates in which a proof hides its columns: the permutation leaves them where they are.
pub(crate) const BLINDED_ROWS: usize = 2;

/// Powers of tau of a key whose domain has so many rows: C2, blinded, is the longest polynomial.
pub fn powers(domain: usize) -> usize {
    9 * domain + 18
}

/// What a verifier needs.
#[derive(Debug, Clone)]
pub struct VerifyingKey {
    /// Public values of a proof.
    pub publics: usize,
    /// Rows of the domain, a power of two.
    pub domain: usize,
    /// What takes the domain to the cosets of the second and the third column.
    pub k: [Fr; 2],
    /// tau in G2.
    pub x_2: P2<Bn254>,
    /// The commitment to C0.
    pub c0: G1,
}

/// Roots of unity of a key. They follow from its domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roots {
    /// Its powers are the domain.
    pub w: Fr,
    /// Of order 3.
    pub w3: Fr,
    /// Of order 4.
    pub w4: Fr,
    /// Of order 8.
    pub w8: Fr,
    /// Its third power is `w`.
    pub wr: Fr,
}

impl Roots {
    /// Those of a domain of 2^`power` rows; `None` where the field has none.
    pub fn of(power: u32) -> Option<Self> {
        /// (r - 1) / 18: 31624 to this power is of order 3, as snarkjs has it.
        const EXPONENT: [u64; 4] =
            [0xd91a_c688_3800_0000, 0x9ead_8ce7_94fc_1479, 0x5159_cafb_eac0_1321, 0x02b0_3d3f_4566_5002];
        /// A third root of the field's root of unity of order 2^28.
        const THIRD: Fr = MontFp!("467799165886069610036046866799264026481344299079011762026774533774345988080");
        let root = <Bn254 as NttField>::root_of_unity;
        Some(Roots {
            w: root(power)?,
            w3: Fr::from(31_624_u64).pow(EXPONENT),
            w4: root(2)?,
            w8: root(3)?,
            wr: THIRD.pow([1_u64 << 28_u32.checked_sub(power)?]),
        })
    }
}

/// A proof.
#[derive(Debug, Clone, Copy)]
pub struct Proof {
    /// C1, C2, W1 and W2.
    pub points: [G1; 4],
    /// ql, qr, qm, qo, qc, s1, s2, s3, a, b, c and z at xi; z, t1 and t2 at xi w; the inverse of what a contract divides by.
    pub evaluations: [Canonical; 16],
}

/// Names of a proof's points.
pub(crate) const POINTS: [&str; 4] = ["C1", "C2", "W1", "W2"];
/// Names of a proof's values.
pub(crate) const EVALUATIONS: [&str; 16] =
    ["ql", "qr", "qm", "qo", "qc", "s1", "s2", "s3", "a", "b", "c", "z", "zw", "t1w", "t2w", "inv"];

impl Proof {
    /// The points on the wire, then the values as little-endian integers.
    pub fn to_bytes(&self) -> Vec<u8> {
        [bytemuck::bytes_of(&self.points), bytemuck::bytes_of(&self.evaluations)].concat()
    }

    /// The proof with these bytes, not checked; `None` for another number of them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (points, values) = bytes.split_at_checked(size_of::<[G1; 4]>())?;
        let is_whole = values.len() == size_of::<[Canonical; 16]>();
        is_whole.then(|| Proof {
            points: bytemuck::pod_read_unaligned(points),
            evaluations: bytemuck::pod_read_unaligned(values),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_have_their_orders() {
        for power in [0, 1, 3, 10, 28] {
            let Roots { w, w3, w4, w8, wr } = Roots::of(power).unwrap();
            for (root, order) in [(w, 1 << power), (w3, 3), (w4, 4), (w8, 8)] {
                assert_eq!(root.pow([order]), Fr::ONE, "{order}");
                let prime = if order == 3 { 3 } else { 2 };
                assert!(order == 1 || root.pow([order / prime]) != Fr::ONE, "{order}");
            }
            assert_eq!(wr.pow([3]), w);
        }
        assert!(Roots::of(29).is_none());
    }
}

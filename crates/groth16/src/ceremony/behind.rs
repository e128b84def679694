//! What snarkjs makes of bytes that are no point.
//!
//! Where a file of powers of tau has no more powers than a key takes, snarkjs hashes the bytes behind them as if they were one. Their numbers may
//! be above the modulus, where its arithmetic gives no element but always the same numbers. They are found here by the same steps, on integers
//! of as many bits as limbs have.

use ark_ff::PrimeField;

/// Limbs, the lowest first.
type Limbs = Vec<u64>;

/// Arithmetic modulo q for numbers that may be above it.
struct Raw {
    q: Limbs,
    /// -1 / q modulo 2^64.
    factor: u64,
}

impl Raw {
    fn new<F: PrimeField>() -> Self {
        let q = F::MODULUS.as_ref().to_vec();
        // Newton: each step doubles the bits that are right, of which an odd number itself has three.
        let inverse = (0..5).fold(q[0], |x, _| x.wrapping_mul(2u64.wrapping_sub(q[0].wrapping_mul(x))));
        Self { q, factor: inverse.wrapping_neg() }
    }

    /// Less q where there is a carry or it is no less than q, and once.
    fn reduced(&self, sum: Limbs, carry: u64) -> Limbs {
        let is_less = sum.iter().rev().lt(self.q.iter().rev());
        if carry == 0 && is_less {
            sum
        } else {
            subtract(&sum, &self.q).0
        }
    }

    fn add(&self, a: &[u64], b: &[u64]) -> Limbs {
        let (sum, carry) = add(a, b);
        self.reduced(sum, carry)
    }

    fn sub(&self, a: &[u64], b: &[u64]) -> Limbs {
        match subtract(a, b) {
            (difference, 0) => difference,
            (difference, _) => add(&difference, &self.q).0,
        }
    }

    /// Montgomery's product.
    fn mul(&self, a: &[u64], b: &[u64]) -> Limbs {
        let n = self.q.len();
        let mut t = vec![0; 2 * n + 1];
        let multiply = |at: usize, factor: u64, by: &[u64], t: &mut Limbs| {
            let mut carry = 0u128;
            for (i, limb) in by.iter().enumerate() {
                carry += u128::from(t[at + i]) + u128::from(factor) * u128::from(*limb);
                t[at + i] = carry as u64;
                carry >>= 64;
            }
            for limb in &mut t[at + n..] {
                carry += u128::from(*limb);
                *limb = carry as u64;
                carry >>= 64;
            }
        };
        a.iter().enumerate().for_each(|(i, limb)| multiply(i, *limb, b, &mut t));
        for i in 0..n {
            let factor = t[i].wrapping_mul(self.factor);
            multiply(i, factor, &self.q, &mut t);
        }
        self.reduced(t[n..2 * n].to_vec(), t[2 * n])
    }
}

fn add(a: &[u64], b: &[u64]) -> (Limbs, u64) {
    let mut carry = 0u128;
    let limbs = a.iter().zip(b).map(|(a, b)| {
        carry = (carry >> 64) + u128::from(*a) + u128::from(*b);
        carry as u64
    });
    let limbs = limbs.collect();
    (limbs, (carry >> 64) as u64)
}

fn subtract(a: &[u64], b: &[u64]) -> (Limbs, u64) {
    let mut borrow = false;
    let limbs = a.iter().zip(b).map(|(a, b)| {
        let (once, first) = a.overflowing_sub(*b);
        let (twice, second) = once.overflowing_sub(u64::from(borrow));
        borrow = first || second;
        twice
    });
    let limbs = limbs.collect();
    (limbs, u64::from(borrow))
}

/// p - q for two points in Montgomery form, of which p is none. Coordinates of the result, which has no z: it is affine.
pub(super) fn difference<F: PrimeField>(p: [&[u64]; 2], q: [&[u64]; 2]) -> Option<[F; 2]> {
    let raw = Raw::new::<F>();
    let ([x1, y1], x2) = (p, q[0]);
    let y2 = raw.sub(&vec![0; raw.q.len()], q[1]);
    // Affine points in Jacobian coordinates: "madd-2007-bl" with z = 1.
    let h = raw.sub(x2, x1);
    let rise = raw.sub(&y2, y1);
    let hh = raw.mul(&h, &h);
    let i = raw.add(&hh, &hh);
    let i = raw.add(&i, &i);
    let j = raw.mul(&h, &i);
    let r = raw.add(&rise, &rise);
    let v = raw.mul(x1, &i);
    let x3 = raw.sub(&raw.sub(&raw.mul(&r, &r), &j), &raw.add(&v, &v));
    let y1_j = raw.mul(y1, &j);
    let y3 = raw.sub(&raw.mul(&raw.sub(&v, &x3), &r), &raw.add(&y1_j, &y1_j));
    let z3 = raw.add(&h, &h);
    // Limbs are those of an element times R, R being 2^64 to their number.
    let unit = F::from(2_u64).pow([64 * raw.q.len() as u64]).inverse()?;
    let element = |limbs: &[u64]| {
        let bytes: Vec<u8> = limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect();
        F::from_le_bytes_mod_order(&bytes) * unit
    };
    let z = element(&z3).inverse()?;
    let zz = z.square();
    Some([element(&x3) * zz, element(&y3) * zz * z])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
    use ark_ff::Field;
    use tandem_ops::{Bls12_381, Bn254, Curve, Group};

    /// Of points it is their difference.
    fn check<C: Curve>() {
        type Base<G> = <<G as Group>::Ark as CurveGroup>::BaseField;
        let generator = <C::G1 as Group>::Ark::generator();
        for (k, l) in [(3_u64, 1_u64), (1, 3), (7, 1 << 40)] {
            let [p, q] = [k, l].map(|k| (generator * C::Fr::from(k)).into_affine());
            let limbs =
                [p, q].map(|p| bytemuck::cast_slice::<u8, u64>(bytemuck::bytes_of(&C::G1::from_ark(&p))).to_vec());
            let [p_limbs, q_limbs] = limbs.each_ref().map(|limbs| {
                let (x, y) = limbs.split_at(limbs.len() / 2);
                [x, y]
            });
            let prime = |x: Base<C::G1>| x.to_base_prime_field_elements().next().unwrap();
            let found = difference::<<Base<C::G1> as Field>::BasePrimeField>(p_limbs, q_limbs).unwrap();
            let (x, y) = (p.into_group() - q).into_affine().xy().unwrap();
            assert_eq!(found, [prime(x), prime(y)]);
        }
    }

    #[test]
    fn of_points_it_is_their_difference() {
        check::<Bn254>();
        check::<Bls12_381>();
    }

    /// Of numbers above the modulus it is what ffjavascript 0.3 makes of them.
    fn check_garbage<C: Curve>(expected: &str) {
        type Base<G> = <<G as Group>::Ark as CurveGroup>::BaseField;
        let generator = C::G1::from_ark(&<C::G1 as Group>::Ark::generator().into_affine());
        let q: Vec<u64> = bytemuck::cast_slice(bytemuck::bytes_of(&generator)).to_vec();
        let mut bytes: Vec<u8> = (0..8 * q.len()).map(|i| ((i * 37 + 251) % 256) as u8).collect();
        bytes[4 * q.len() - 1] = 255;
        let p: Vec<u64> = bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
        let ((px, py), (qx, qy)) = (p.split_at(p.len() / 2), q.split_at(q.len() / 2));
        let found = difference::<<Base<C::G1> as Field>::BasePrimeField>([px, py], [qx, qy]).unwrap();
        let hex = |x: <Base<C::G1> as Field>::BasePrimeField| -> String {
            let limbs: Vec<u64> = x.into_bigint().as_ref().to_vec();
            limbs.iter().rev().map(|limb| format!("{limb:016x}")).collect()
        };
        assert_eq!(found.map(hex).concat(), expected);
    }

    #[test]
    fn of_anything_else_it_is_what_snarkjs_finds() {
        check_garbage::<Bn254>(concat!(
            "0a68aa4ec2d259975a890f0a044bc3ec139c94d37b7bd2269bea11ae614c6908",
            "2670ecbc0e0e484a297b07a55689fb82e7c1ff6ba2e0c10a8aae29b95c291bfc",
        ));
        check_garbage::<Bls12_381>(concat!(
            "14f9a65bc6fed86f9048d33bef9be8897ca7f9522684c131762f89d60f602579",
            "5f5086329decab8df235f7fa65c14bf3",
            "0ce4bc40efc270a57f9f941a8b96ddb98cbe1360205f142b9bd489f1bf4a9992",
            "478bdb4b8e15b357f20ee57b180a8a34",
        ));
    }
}

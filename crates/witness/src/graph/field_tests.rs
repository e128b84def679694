//! Every operation against integers of any size, on the edges of both fields.

use super::*;
use num_bigint::{BigInt as Signed, BigUint, Sign};

fn big<F: Field>(value: F) -> BigUint {
    value.into_bigint().into()
}

fn field<F: Field>(value: &BigUint) -> F {
    F::from(value % BigUint::from(F::MODULUS))
}

/// As circom's manual has it, by integers.
struct Naive {
    p: BigUint,
    mask: BigUint,
}

impl Naive {
    fn new<F: Field>() -> Self {
        let p: BigUint = F::MODULUS.into();
        Self { mask: (BigUint::from(1u8) << p.bits()) - 1u8, p }
    }

    fn signed(&self, a: &BigUint) -> Signed {
        let is_negative = *a > &self.p / 2u8;
        Signed::from(a.clone()) - if is_negative { Signed::from(self.p.clone()) } else { Signed::from(0) }
    }

    fn shift(&self, a: &BigUint, by: Signed) -> BigUint {
        let count = by.magnitude().to_u64_digits();
        let count = match count[..] {
            [] => 0,
            [count] if count < 256 => count,
            _ => return BigUint::from(0u8),
        };
        match by.sign() {
            Sign::Minus => a >> count,
            _ => ((a << count) & &self.mask) % &self.p,
        }
    }

    fn unary(&self, op: u32, a: &BigUint) -> BigUint {
        match op {
            0 => (&self.p - a) % &self.p,
            1 => a.clone(),
            2 => u8::from(*a == BigUint::from(0u8)).into(),
            3 => (&self.mask ^ a) % &self.p,
            _ => unreachable!("{op}"),
        }
    }

    fn binary(&self, op: u32, a: &BigUint, b: &BigUint) -> BigUint {
        let (p, zero) = (&self.p, &BigUint::from(0u8));
        let (x, y) = (self.signed(a), self.signed(b));
        let bit = |is: bool| BigUint::from(u8::from(is));
        match op {
            0 => a * b % p,
            1 => a * b.modpow(&(p - 2u8), p) % p,
            2 => (a + b) % p,
            3 => (a + p - b) % p,
            4 => a.modpow(b, p),
            5 | 6 if b == zero => zero.clone(),
            5 => a / b,
            6 => a % b,
            7 => bit(a == b),
            8 => bit(a != b),
            9 => bit(x < y),
            10 => bit(x > y),
            11 => bit(x <= y),
            12 => bit(x >= y),
            13 => bit(a != zero && b != zero),
            14 => bit(a != zero || b != zero),
            15 => self.shift(a, y),
            16 => self.shift(a, -y),
            17 => (a | b) % p,
            18 => (a & b) % p,
            19 => (a ^ b) % p,
            _ => unreachable!("{op}"),
        }
    }
}

/// Values where an operation could go wrong: the ends of the field, of its halves, of words, and numbers of bits.
fn edges<F: Field>() -> Vec<BigUint> {
    let p: BigUint = F::MODULUS.into();
    let mut edges: Vec<BigUint> =
        [0u32, 1, 2, 3, 7, 63, 64, 65, 128, 253, 254, 255, 256, 257].map(BigUint::from).into();
    edges.extend([1u32, 2, 3, 64, 253, 254, 255, 256].map(|below| &p - below));
    edges.extend([&p / 2u8 - 1u8, &p / 2u8, &p / 2u8 + 1u8, &p / 2u8 + 2u8, &p / 3u8]);
    for bits in [32u32, 64, 127, 128, 192, 252, 253, 254] {
        let power: BigUint = BigUint::from(1u8) << bits;
        edges.extend([&power - 1u8, power.clone(), power + 1u8].map(|value| value % &p));
    }
    // Two of no shape.
    edges.extend([5u32, 6].map(|seed| BigUint::from(seed).modpow(&BigUint::from(0x1234_5678_9abcu64), &p)));
    edges
}

fn all<F: Field>() {
    let (naive, edges) = (Naive::new::<F>(), edges::<F>());
    for a in &edges {
        for op in 0..4 {
            let (compute, _) = unary::<F>(op).unwrap();
            assert_eq!(big(compute(field(a))), naive.unary(op, a), "{op} {a}");
        }
        for b in &edges {
            for op in 0..20 {
                let (compute, _) = binary::<F>(op).unwrap();
                assert_eq!(big(compute(field(a), field(b))), naive.binary(op, a, b), "{op} {a} {b}");
            }
        }
        // A root squared is the value, and not negative; else none exists, by Euler.
        let found = big(unary::<F>(4).unwrap().0(field(a)));
        let has_root = a.modpow(&(&naive.p / 2u8), &naive.p) <= BigUint::from(1u8);
        assert!(found <= &naive.p / 2u8, "{a}");
        let square = if has_root { a.clone() } else { BigUint::from(0u8) };
        assert_eq!(&found * &found % &naive.p, square, "{a}");
    }
    assert!(unary::<F>(5).is_none() && binary::<F>(20).is_none());
}

#[test]
fn operations_on_bn254_are_those_of_integers() {
    all::<ark_bn254::Fr>();
}

#[test]
fn operations_on_bls12_381_are_those_of_integers() {
    all::<ark_bls12_381::Fr>();
}

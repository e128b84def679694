//! The operations of circom on field elements, by the [manual](https://docs.circom.io/circom-language/basic-operators/).
//!
//! Comparisons and directions of shifts are those of signed numbers: a value above p/2 stands for itself less p. Division of integers
//! and operations on bits are on the number from 0 to p - 1. A result of these has as many bits as p and is then reduced.
//!
//! Division by zero gives zero, as in circom-witnesscalc: a graph computes both sides of a condition, so that the side which is not taken
//! may divide by zero.

use ark_ff::{BigInt, BigInteger, PrimeField};

/// A scalar field of 256 bits at most.
pub(super) trait Field: PrimeField<BigInt = BigInt<4>> {}
impl<F: PrimeField<BigInt = BigInt<4>>> Field for F {}

type Int = BigInt<4>;

/// Steps that an operation takes, of which a core does 10^9 a second; what is more is for the longest operation of the kind.
pub(super) const NODE_STEPS: u64 = 50;
const DIVISION_STEPS: u64 = 3_000;
const INVERSE_STEPS: u64 = 20_000;
const ROOT_STEPS: u64 = 100_000;

/// An operation of one value, and the steps that it takes.
pub(super) type Unary<F> = (fn(F) -> F, u64);
/// An operation of two values, and the steps that it takes.
pub(super) type Binary<F> = (fn(F, F) -> F, u64);

/// An operation of one value by its number in the file.
pub(super) fn unary<F: Field>(op: u32) -> Option<Unary<F>> {
    let found: Unary<F> = match op {
        0 => (|a| -a, 0),
        1 => (|a| a, 0),
        2 => (|a| F::from(a.is_zero()), 0),
        3 => (|a| reduced(!a.into_bigint()), 0),
        4 => (root, ROOT_STEPS),
        _ => return None,
    };
    Some((found.0, found.1 + NODE_STEPS))
}

/// An operation of two values by its number in the file.
pub(super) fn binary<F: Field>(op: u32) -> Option<Binary<F>> {
    let found: Binary<F> = match op {
        0 => (|a, b| a * b, 0),
        1 => (|a, b| b.inverse().map_or(F::ZERO, |inverse| a * inverse), INVERSE_STEPS),
        2 => (|a, b| a + b, 0),
        3 => (|a, b| a - b, 0),
        4 => (|a, b| a.pow(b.into_bigint()), INVERSE_STEPS),
        5 => (|a, b| exact(divided(a, b).0), DIVISION_STEPS),
        6 => (|a, b| exact(divided(a, b).1), DIVISION_STEPS),
        7 => (|a, b| F::from(a == b), 0),
        8 => (|a, b| F::from(a != b), 0),
        9 => (|a, b| F::from(signed(a) < signed(b)), 0),
        10 => (|a, b| F::from(signed(a) > signed(b)), 0),
        11 => (|a, b| F::from(signed(a) <= signed(b)), 0),
        12 => (|a, b| F::from(signed(a) >= signed(b)), 0),
        13 => (|a, b| F::from(!a.is_zero() && !b.is_zero()), 0),
        14 => (|a, b| F::from(!a.is_zero() || !b.is_zero()), 0),
        15 => (|a, b| shifted(a, b, true), 0),
        16 => (|a, b| shifted(a, b, false), 0),
        17 => (|a, b| reduced(a.into_bigint() | b.into_bigint()), 0),
        18 => (|a, b| reduced(a.into_bigint() & b.into_bigint()), 0),
        19 => (|a, b| reduced(a.into_bigint() ^ b.into_bigint()), 0),
        _ => return None,
    };
    Some((found.0, found.1 + NODE_STEPS))
}

/// A number below p.
fn exact<F: Field>(value: Int) -> F {
    F::from_bigint(value).unwrap_or(F::ZERO)
}

/// The lowest bits of a number, as many as p has, modulo p.
fn reduced<F: Field>(mut value: Int) -> F {
    let spare = 256 - F::MODULUS_BIT_SIZE;
    value.0[3] &= u64::MAX >> spare;
    if value >= F::MODULUS {
        value.sub_with_borrow(&F::MODULUS);
    }
    exact(value)
}

/// What orders values as signed numbers do: all that are not negative come after those that are.
fn signed<F: Field>(value: F) -> (bool, Int) {
    let value = value.into_bigint();
    (value <= F::MODULUS_MINUS_ONE_DIV_TWO, value)
}

/// `a` moved by `b` bits to the left or to the right, and the other way where `b` is negative.
fn shifted<F: Field>(a: F, b: F, is_left: bool) -> F {
    let (is_positive, by) = signed(b);
    let by = if is_positive { by } else { (-b).into_bigint() };
    let by = if by.0[1..] == [0; 3] { by.0[0] } else { u64::MAX };
    if by >= u64::from(F::MODULUS_BIT_SIZE) {
        return F::ZERO;
    }
    let (by, value) = (by as u32, a.into_bigint());
    reduced(if is_left == is_positive { value << by } else { value >> by })
}

/// Quotient and rest of the numbers from 0 to p - 1; zeros where the second is zero.
fn divided<F: Field>(a: F, b: F) -> (Int, Int) {
    let (a, b) = (a.into_bigint(), b.into_bigint());
    let small = |value: Int| (value.0[2..] == [0; 2]).then(|| u128::from(value.0[0]) | u128::from(value.0[1]) << 64);
    let int = |value: u128| BigInt([value as u64, (value >> 64) as u64, 0, 0]);
    match (small(a), small(b)) {
        (_, Some(0)) => (Int::zero(), Int::zero()),
        (Some(a), Some(b)) => (int(a / b), int(a % b)),
        _ => long_division(a, b),
    }
}

/// Bit by bit: below 2^255 the rest, doubled, has room.
fn long_division(a: Int, b: Int) -> (Int, Int) {
    let (mut quotient, mut rest) = (Int::zero(), Int::zero());
    for bit in (0..a.num_bits()).rev() {
        rest.mul2();
        rest.0[0] |= u64::from(a.get_bit(bit as usize));
        if rest >= b {
            rest.sub_with_borrow(&b);
            quotient.0[bit as usize / 64] |= 1 << (bit % 64);
        }
    }
    (quotient, rest)
}

/// The square root that is not negative; zero where there is none.
fn root<F: Field>(a: F) -> F {
    let root = a.sqrt().unwrap_or(F::ZERO);
    if signed(root).0 {
        root
    } else {
        -root
    }
}

#[cfg(test)]
#[path = "field_tests.rs"]
mod tests;

//! What circom's field functions compute, on numbers from 0 to p - 1. The form that an element has in the module's memory changes
//! none of it; a test compares each operation with the function on operands of every form.

use crate::native::{divide, is_above, Field, Function, Limbs};

/// An operation of one or two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Operation {
    Add,
    Sub,
    Mul,
    Neg,
    Eq,
    Neq,
    Lt,
    Leq,
    Gt,
    Geq,
    Land,
    Lor,
    Lnot,
    Band,
    Bor,
    Bxor,
    Bnot,
    Shl,
    Shr,
    Idiv,
    Mod,
    Inv,
    Div,
    Pow,
    /// The bit of this number: what is left of `a >> b & 1`.
    Bit,
}

use Operation::*;

impl Operation {
    pub(crate) const ALL: [Self; 25] = [
        Add, Sub, Mul, Neg, Eq, Neq, Lt, Leq, Gt, Geq, Land, Lor, Lnot, Band, Bor, Bxor, Bnot, Shl, Shr, Idiv, Mod,
        Inv, Div, Pow, Bit,
    ];

    /// That of a function which stores an element made of others.
    pub(crate) fn of(function: Function) -> Option<Self> {
        Some(match function {
            Function::Neg => Neg,
            Function::Add => Add,
            Function::Sub => Sub,
            Function::Mul => Mul,
            Function::Eq => Eq,
            Function::Neq => Neq,
            Function::Gt => Gt,
            Function::Geq => Geq,
            Function::Lt => Lt,
            Function::Leq => Leq,
            Function::Land => Land,
            Function::Lor => Lor,
            Function::Lnot => Lnot,
            Function::Band => Band,
            Function::Bor => Bor,
            Function::Bxor => Bxor,
            Function::Bnot => Bnot,
            Function::Shl => Shl,
            Function::Shr => Shr,
            Function::Idiv => Idiv,
            Function::Mod => Mod,
            Function::Inv => Inv,
            Function::Div => Div,
            Function::Pow => Pow,
            _ => return None,
        })
    }

    /// Whether it has one operand.
    pub(crate) fn is_unary(self) -> bool {
        matches!(self, Neg | Lnot | Bnot | Inv)
    }

    /// Whether it ends the run where the second operand is 0.
    pub(crate) fn may_fail(self) -> bool {
        matches!(self, Idiv | Mod)
    }

    /// Whether its values are 0 and 1.
    pub(crate) fn is_truth(self) -> bool {
        matches!(self, Eq | Neq | Lt | Leq | Gt | Geq | Land | Lor | Lnot | Bit)
    }

    /// Whether circom's function gives the same where the result takes an operand's place. Others read what they have written.
    pub(crate) fn may_replace(self) -> bool {
        matches!(self, Add | Sub | Mul | Neg)
    }

    /// Steps that it costs, by the time that it takes at most.
    pub(crate) fn steps(self) -> u64 {
        match self {
            Idiv | Mod => 1000,
            Inv | Div => 8000,
            Pow => 12000,
            _ => 50,
        }
    }

    /// The value; `None` of a division of integers by 0.
    pub(crate) fn compute(self, field: &Field, a: Limbs, b: Limbs) -> Option<Limbs> {
        let truth = |is_true: bool| [is_true.into(), 0, 0, 0];
        let is_true = |value: Limbs| value != [0; 4];
        Some(match self {
            Add => field.add(a, b),
            Sub => field.sub(a, b),
            Mul => product(field, a, b),
            Neg => field.neg(a),
            Eq => truth(a == b),
            Neq => truth(a != b),
            Lt => truth(is_larger(field, b, a)),
            Leq => truth(!is_larger(field, a, b)),
            Gt => truth(is_larger(field, a, b)),
            Geq => truth(!is_larger(field, b, a)),
            Land => truth(is_true(a) && is_true(b)),
            Lor => truth(is_true(a) || is_true(b)),
            Lnot => truth(!is_true(a)),
            Band => bits(field, std::array::from_fn(|i| a[i] & b[i])),
            Bor => bits(field, std::array::from_fn(|i| a[i] | b[i])),
            Bxor => bits(field, std::array::from_fn(|i| a[i] ^ b[i])),
            Bnot => bits(field, a.map(|limb| !limb)),
            Shl => shifted(field, a, b, true),
            Shr => shifted(field, a, b, false),
            Idiv => divide(a, b)?.0,
            Mod => divide(a, b)?.1,
            Inv => field.invert(a),
            Div => product(field, a, field.invert(b)),
            Pow => power(field, a, b),
            Bit => match b {
                [number @ 0..256, 0, 0, 0] => [a[(number / 64) as usize] >> (number % 64) & 1, 0, 0, 0],
                _ => [0; 4],
            },
        })
    }
}

/// A product of numbers of one limb takes one multiplication.
#[inline]
pub(super) fn product(field: &Field, a: Limbs, b: Limbs) -> Limbs {
    if (a[1] | a[2] | a[3] | b[1] | b[2] | b[3]) == 0 {
        // Below 2^128, and so below the prime.
        let wide = u128::from(a[0]) * u128::from(b[0]);
        return [wide as u64, (wide >> 64) as u64, 0, 0];
    }
    // Bits, and what a condition chooses.
    for (bit, other) in [(a, b), (b, a)] {
        if (bit[0] >> 1 | bit[1] | bit[2] | bit[3]) == 0 {
            return other.map(|limb| limb & bit[0].wrapping_neg());
        }
    }
    field.mul(field.mul(a, b), field.r2)
}

/// Numbers above half of the prime stand for themselves less the prime.
fn is_negative(field: &Field, value: Limbs) -> bool {
    is_above(value, field.half())
}

fn is_larger(field: &Field, a: Limbs, b: Limbs) -> bool {
    match (is_negative(field, a), is_negative(field, b)) {
        (true, false) => false,
        (false, true) => true,
        _ => is_above(a, b),
    }
}

/// As many bits as the prime has, less the prime once if need be.
fn bits(field: &Field, mut value: Limbs) -> Limbs {
    value[3] &= u64::MAX >> (256 - field.bits);
    field.reduced(value, false)
}

fn shifted(field: &Field, a: Limbs, b: Limbs, is_left: bool) -> Limbs {
    let (by, is_left) = if is_negative(field, b) { (field.neg(b), !is_left) } else { (b, is_left) };
    if by[1..] != [0; 3] || by[0] >= u64::from(field.bits) {
        return [0; 4];
    }
    let (words, count) = ((by[0] / 64) as usize, (by[0] % 64) as u32);
    let limb = |i: Option<usize>| i.and_then(|i| a.get(i)).copied().unwrap_or(0);
    if is_left {
        let moved = std::array::from_fn(|i| {
            limb(i.checked_sub(words)) << count | limb(i.checked_sub(words + 1)).checked_shr(64 - count).unwrap_or(0)
        });
        return bits(field, moved);
    }
    std::array::from_fn(|i| {
        limb(Some(i + words)) >> count | limb(Some(i + words + 1)).checked_shl(64 - count).unwrap_or(0)
    })
}

fn power(field: &Field, a: Limbs, b: Limbs) -> Limbs {
    let base = field.mul(a, field.r2);
    let mut power = field.one;
    for i in (0..256).rev() {
        if power != field.one {
            power = field.mul(power, power);
        }
        if b[i / 64] >> (i % 64) & 1 == 1 {
            power = field.mul(power, base);
        }
    }
    field.mul(power, [1, 0, 0, 0])
}

//! Words that atomics and waits work on.

use crate::ffi;
use bytemuck::Pod;

mod sealed {
    pub trait Sealed {}
}

/// An integer of 32 or 64 bits that can be changed atomically and waited for.
pub trait Word: Pod + Ord + std::fmt::Debug + std::fmt::Display + sealed::Sealed {
    /// TANDEM_WORD_* of tandem_fabric.h.
    #[doc(hidden)]
    const KIND: i32;
    /// In the low bits; what is above them is zero.
    #[doc(hidden)]
    fn to_bits(self) -> u64;
}

macro_rules! words {
    ($($word:ty, $unsigned:ty, $kind:ident;)*) => {$(
        impl sealed::Sealed for $word {}
        impl Word for $word {
            const KIND: i32 = ffi::$kind;
            fn to_bits(self) -> u64 {
                (self as $unsigned).into()
            }
        }
    )*};
}

words! {
    u32, u32, TANDEM_WORD_U32;
    i32, u32, TANDEM_WORD_I32;
    u64, u64, TANDEM_WORD_U64;
    i64, u64, TANDEM_WORD_I64;
}

/// How a word compares with the wanted value: the word stands on the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Compare {
    /// Equal.
    Eq = ffi::TANDEM_CMP_EQ,
    /// Not equal.
    Ne = ffi::TANDEM_CMP_NE,
    /// Greater.
    Gt = ffi::TANDEM_CMP_GT,
    /// Greater or equal.
    Ge = ffi::TANDEM_CMP_GE,
    /// Less.
    Lt = ffi::TANDEM_CMP_LT,
    /// Less or equal.
    Le = ffi::TANDEM_CMP_LE,
}

/// A change of a word that nothing can come between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomic<T> {
    /// Becomes the value; as a fetching operation this is a swap.
    Set(T),
    /// Grows by the value, wrapping.
    Add(T),
    /// Grows by one, wrapping.
    Inc,
    /// Keeps the bits that the value has too.
    And(T),
    /// Gets the bits of the value.
    Or(T),
    /// Flips the bits of the value.
    Xor(T),
    /// Becomes `value` if it is `expected`.
    CompareSwap {
        /// What it must be.
        expected: T,
        /// What it becomes.
        value: T,
    },
    /// Stays as it is.
    Fetch,
}

impl<T: Word> Atomic<T> {
    /// Whether it only writes, if nothing is fetched.
    pub(crate) fn is_access(self) -> bool {
        matches!(self, Atomic::Set(_))
    }

    /// TANDEM_AMO_*, the operand, and what is expected.
    pub(crate) fn parts(self) -> (i32, u64, u64) {
        match self {
            Atomic::Set(value) => (ffi::TANDEM_AMO_SET, value.to_bits(), 0),
            Atomic::Add(value) => (ffi::TANDEM_AMO_ADD, value.to_bits(), 0),
            Atomic::Inc => (ffi::TANDEM_AMO_INC, 0, 0),
            Atomic::And(value) => (ffi::TANDEM_AMO_AND, value.to_bits(), 0),
            Atomic::Or(value) => (ffi::TANDEM_AMO_OR, value.to_bits(), 0),
            Atomic::Xor(value) => (ffi::TANDEM_AMO_XOR, value.to_bits(), 0),
            Atomic::CompareSwap { expected, value } => {
                (ffi::TANDEM_AMO_COMPARE_SWAP, value.to_bits(), expected.to_bits())
            }
            Atomic::Fetch => (ffi::TANDEM_AMO_FETCH, 0, 0),
        }
    }
}

/// What a signal does to the signal word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// It becomes the value.
    Set(u64),
    /// It grows by the value.
    Add(u64),
}

impl From<Signal> for Atomic<u64> {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Set(value) => Atomic::Set(value),
            Signal::Add(value) => Atomic::Add(value),
        }
    }
}

/// Bytes of a word of this kind.
pub(crate) fn width(kind: i32) -> u64 {
    if kind == ffi::TANDEM_WORD_U32 || kind == ffi::TANDEM_WORD_I32 {
        4
    } else {
        8
    }
}

/// Whether `word` compares with `wanted` as TANDEM_CMP_* says; both are bits of a word of `kind`.
pub(crate) fn compares(kind: i32, compare: i32, word: u64, wanted: u64) -> bool {
    let order = match kind {
        ffi::TANDEM_WORD_I32 => (word as u32 as i32).cmp(&(wanted as u32 as i32)),
        ffi::TANDEM_WORD_I64 => (word as i64).cmp(&(wanted as i64)),
        _ => word.cmp(&wanted),
    };
    match compare {
        ffi::TANDEM_CMP_EQ => order.is_eq(),
        ffi::TANDEM_CMP_NE => order.is_ne(),
        ffi::TANDEM_CMP_GT => order.is_gt(),
        ffi::TANDEM_CMP_GE => order.is_ge(),
        ffi::TANDEM_CMP_LT => order.is_lt(),
        _ => order.is_le(),
    }
}

/// What a word of `kind` with the bits `old` becomes.
pub(crate) fn apply(kind: i32, op: i32, old: u64, value: u64, expected: u64) -> u64 {
    let new = match op {
        ffi::TANDEM_AMO_SET => value,
        ffi::TANDEM_AMO_ADD => old.wrapping_add(value),
        ffi::TANDEM_AMO_INC => old.wrapping_add(1),
        ffi::TANDEM_AMO_AND => old & value,
        ffi::TANDEM_AMO_OR => old | value,
        ffi::TANDEM_AMO_XOR => old ^ value,
        ffi::TANDEM_AMO_COMPARE_SWAP if old == expected => value,
        _ => old,
    };
    if width(kind) == 4 {
        new & u64::from(u32::MAX)
    } else {
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_compare_as_their_types_do() {
        fn all<T: Word>(values: &[T]) {
            for &a in values {
                for &b in values {
                    let is = |c: Compare| compares(T::KIND, c as i32, a.to_bits(), b.to_bits());
                    let six = [Compare::Eq, Compare::Ne, Compare::Gt, Compare::Ge, Compare::Lt, Compare::Le].map(is);
                    assert_eq!(six, [a == b, a != b, a > b, a >= b, a < b, a <= b], "{a} and {b}");
                }
            }
        }
        all(&[0u32, 1, 2, u32::MAX - 1, u32::MAX, 1 << 31]);
        all(&[0i32, 1, -1, i32::MAX, i32::MIN]);
        all(&[0u64, 1, 1 << 32, u64::MAX, 1 << 63]);
        all(&[0i64, 1, -1, i64::MAX, i64::MIN, -(1 << 32)]);
    }

    #[test]
    fn atomics_do_what_integers_do() {
        fn one<T: Word>(old: T, atomic: Atomic<T>, new: T) {
            let (op, value, expected) = atomic.parts();
            assert_eq!(apply(T::KIND, op, old.to_bits(), value, expected), new.to_bits(), "{atomic:?} of {old}");
        }
        one(u32::MAX, Atomic::Inc, 0);
        one(u32::MAX, Atomic::Add(3), 2);
        one(-1i32, Atomic::Inc, 0);
        one(i32::MAX, Atomic::Add(1), i32::MIN);
        one(u64::MAX, Atomic::Add(2), 1);
        one(-5i64, Atomic::Add(-1), -6);
        one(0b1100u32, Atomic::And(0b1010), 0b1000);
        one(0b1100u32, Atomic::Or(0b1010), 0b1110);
        one(0b1100u32, Atomic::Xor(0b1010), 0b0110);
        one(-7i32, Atomic::CompareSwap { expected: -7, value: 9 }, 9);
        one(-7i32, Atomic::CompareSwap { expected: 7, value: 9 }, -7);
        one(5u64, Atomic::Set(6), 6);
        one(5u64, Atomic::Fetch, 5);
    }
}

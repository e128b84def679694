//! circom's field functions, as its WebAssembly has them in `fr-code.wat`, over the module's own memory.
//!
//! An element is 40 bytes: a number of 32 bits with its sign, four bytes of flags, and four limbs. The flags say whether the limbs
//! count (`LONG`) and whether they are in Montgomery's form (`MONTGOMERY`). A function may rewrite its operands in the form that it
//! needs, and operands and result may be one element. So each function here reads and writes in the order of its model, and leaves the
//! same bytes behind, but for the models' scratch space. Where an access ends outside of the memory, it traps as its model does.

use super::field::{self, Field, Limbs};
use wasmi::TrapCode;

type Result<T, E = TrapCode> = std::result::Result<T, E>;

const LONG: u8 = 0x80;
const MONTGOMERY: u8 = 0x40;
const LONG_NORMAL: u32 = 0x8000_0000;
const LONG_MONTGOMERY: u32 = 0xc000_0000;
const SHORT_MONTGOMERY: u32 = 0x4000_0000;

/// Where circom's code keeps elements of its own: two for `shl` and `shr`, limbs for sums, and the number of the prime's bits.
const FIRST: u32 = 8;
const SUMMAND: u32 = 16;
const SECOND: u32 = 48;
const BITS: u32 = 88;

/// Bytes of an element.
const ELEMENT_BYTES: u32 = 40;

macro_rules! functions {
    ($($name:ident $text:literal $results:literal $steps:literal,)*) => {
        /// A function of circom's that is done natively.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function { $(#[doc = $text] $name,)* }

        impl Function {
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name in circom's code.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Whether it has a result.
            pub(crate) fn has_result(self) -> bool {
                match self { $(Self::$name => $results == 1,)* }
            }

            /// Whether it stores an element made of others, and does nothing else.
            pub(crate) fn calculates(self) -> bool {
                use Function::{CopyN, EqR, IntCopy, IntZero, IsTrue, ToInt, ToLongNormal};
                !matches!(self, IntZero | IntCopy | CopyN | IsTrue | ToLongNormal | ToInt | EqR)
            }

            /// Steps that it costs beside the call, by the time that it takes at most.
            fn base_steps(self) -> u64 {
                match self { $(Self::$name => $steps,)* }
            }
        }
    };
}

functions! {
    IntZero "Fr_int_zero" 0 40,
    IntCopy "Fr_int_copy" 0 40,
    CopyN "Fr_copyn" 0 40,
    IsTrue "Fr_isTrue" 1 40,
    ToLongNormal "Fr_toLongNormal" 0 40,
    ToInt "Fr_toInt" 1 50,
    Neg "Fr_neg" 0 30,
    Add "Fr_add" 0 50,
    Sub "Fr_sub" 0 50,
    Mul "Fr_mul" 0 60,
    EqR "Fr_eqR" 1 50,
    Eq "Fr_eq" 0 50,
    Neq "Fr_neq" 0 50,
    Gt "Fr_gt" 0 80,
    Geq "Fr_geq" 0 80,
    Lt "Fr_lt" 0 80,
    Leq "Fr_leq" 0 80,
    Land "Fr_land" 0 40,
    Lor "Fr_lor" 0 40,
    Lnot "Fr_lnot" 0 40,
    Band "Fr_band" 0 60,
    Bor "Fr_bor" 0 60,
    Bxor "Fr_bxor" 0 60,
    Bnot "Fr_bnot" 0 60,
    Shl "Fr_shl" 0 200,
    Shr "Fr_shr" 0 200,
    Idiv "Fr_idiv" 0 1000,
    Mod "Fr_mod" 0 1000,
    Inv "Fr_inv" 0 8000,
    Div "Fr_div" 0 8000,
    Pow "Fr_pow" 0 12000,
}

/// Bytes that are copied in one step.
const BYTES_COPIED_A_STEP: u32 = 16;

impl Function {
    /// Steps that a call costs.
    pub(crate) fn steps(self, arguments: [u32; 3]) -> u64 {
        let copied = if self == Self::CopyN { arguments[2].wrapping_mul(ELEMENT_BYTES) } else { 0 };
        self.base_steps() + u64::from(copied / BYTES_COPIED_A_STEP)
    }

    /// Does it. `arguments` are addresses in the memory, as many as it has; the result is 0 where it has none.
    pub(crate) fn run(self, field: &Field, memory: &mut [u8], [r, a, b]: [u32; 3]) -> Result<u32> {
        let mut at = Elements { field, memory };
        match self {
            Self::IntZero => at.zero(r)?,
            Self::IntCopy => at.copy(a, r, 4)?,
            Self::CopyN => at.copy(r, a, b.wrapping_mul(ELEMENT_BYTES) / 8)?,
            Self::IsTrue => return Ok(at.is_true(r)?.into()),
            Self::ToLongNormal => at.make_long_normal(r)?,
            Self::ToInt => return at.integer(r),
            Self::Neg => at.neg(r, a)?,
            Self::Add => at.sum(r, a, b, Field::add, |a, b| a + b)?,
            Self::Sub => at.sum(r, a, b, Field::sub, |a, b| a - b)?,
            Self::Mul => at.mul(r, a, b)?,
            Self::EqR => return Ok(at.are_equal(r, a)?.into()),
            Self::Eq => at.truth(r, |at| at.are_equal(a, b))?,
            Self::Neq => at.truth(r, |at| Ok(!at.are_equal(a, b)?))?,
            Self::Gt => at.truth(r, |at| Ok(!at.are_equal(a, b)? && at.is_above(a, b)?))?,
            Self::Geq => at.truth(r, |at| Ok(at.are_equal(a, b)? || at.is_above(a, b)?))?,
            Self::Lt => at.truth(r, |at| at.is_below(a, b))?,
            Self::Leq => at.truth(r, |at| Ok(at.are_equal(a, b)? || !at.is_above(a, b)?))?,
            Self::Land => at.truth(r, |at| Ok(at.is_true(a)? & at.is_true(b)?))?,
            Self::Lor => at.truth(r, |at| Ok(at.is_true(a)? | at.is_true(b)?))?,
            Self::Lnot => at.truth(r, |at| Ok(!at.is_true(a)?))?,
            Self::Band => at.bits(r, a, b, |a, b| a & b)?,
            Self::Bor => at.bits(r, a, b, |a, b| a | b)?,
            Self::Bxor => at.bits(r, a, b, |a, b| a ^ b)?,
            Self::Bnot => at.bit_not(r, a)?,
            Self::Shl => at.shift(r, a, b, true)?,
            Self::Shr => at.shift(r, a, b, false)?,
            Self::Idiv => at.divide(r, a, b, true)?,
            Self::Mod => at.divide(r, a, b, false)?,
            Self::Inv => at.inv(r, a)?,
            Self::Div => {
                at.inv(r, b)?;
                at.mul(r, r, a)?;
            }
            Self::Pow => at.pow(r, a, b)?,
        }
        Ok(0)
    }
}

/// The memory with its elements.
struct Elements<'a> {
    field: &'a Field,
    memory: &'a mut [u8],
}

impl Elements<'_> {
    fn load<const N: usize>(&self, at: u32, offset: usize) -> Result<[u8; N]> {
        let start = at as usize + offset;
        let bytes = self.memory.get(start..start + N).ok_or(TrapCode::MemoryOutOfBounds)?;
        Ok(bytes.try_into().unwrap_or([0; N]))
    }

    fn store<const N: usize>(&mut self, at: u32, offset: usize, bytes: [u8; N]) -> Result<()> {
        let start = at as usize + offset;
        self.memory.get_mut(start..start + N).ok_or(TrapCode::MemoryOutOfBounds)?.copy_from_slice(&bytes);
        Ok(())
    }

    fn word(&self, at: u32, offset: usize) -> Result<u64> {
        Ok(u64::from_le_bytes(self.load(at, offset)?))
    }

    fn set_word(&mut self, at: u32, offset: usize, word: u64) -> Result<()> {
        self.store(at, offset, word.to_le_bytes())
    }

    /// Limbs at an address, not of an element.
    fn raw(&self, at: u32) -> Result<Limbs> {
        let bytes: [u8; 32] = self.load(at, 0)?;
        let mut limbs = [0; 4];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
            *limb = u64::from_le_bytes(bytes.try_into().unwrap_or([0; 8]));
        }
        Ok(limbs)
    }

    fn set_raw(&mut self, at: u32, limbs: Limbs) -> Result<()> {
        let mut bytes = [0; 32];
        for (bytes, limb) in bytes.chunks_exact_mut(8).zip(limbs) {
            bytes.copy_from_slice(&limb.to_le_bytes());
        }
        self.store(at, 0, bytes)
    }

    /// Limbs of an element. Addresses wrap, as they do in the model.
    fn limbs(&self, a: u32) -> Result<Limbs> {
        self.raw(a.wrapping_add(8))
    }

    fn set_limbs(&mut self, a: u32, limbs: Limbs) -> Result<()> {
        self.set_raw(a.wrapping_add(8), limbs)
    }

    fn has(&self, a: u32, flag: u8) -> Result<bool> {
        Ok(self.load::<1>(a, 7)?[0] & flag != 0)
    }

    fn set_flags(&mut self, a: u32, flags: u32) -> Result<()> {
        self.store(a, 4, flags.to_le_bytes())
    }

    fn short(&self, a: u32) -> Result<i32> {
        Ok(i32::from_le_bytes(self.load(a, 0)?))
    }

    /// A result of short operands: short where it fits.
    fn set_small(&mut self, r: u32, value: i64) -> Result<()> {
        match i32::try_from(value) {
            Ok(short) => {
                self.store(r, 0, short.to_le_bytes())?;
                self.set_flags(r, 0)
            }
            Err(_) => {
                self.set_flags(r, LONG_NORMAL)?;
                self.set_limbs(r, self.widened(value))
            }
        }
    }

    fn widened(&self, value: i64) -> Limbs {
        let magnitude = [value.unsigned_abs(), 0, 0, 0];
        if value > 0 {
            magnitude
        } else {
            self.field.neg(magnitude)
        }
    }

    /// Makes a short one long.
    fn widen(&mut self, a: u32) -> Result<()> {
        if !self.has(a, LONG)? {
            self.set_limbs(a, self.widened(self.short(a)?.into()))?;
            self.set_flags(a, LONG_NORMAL)?;
        }
        Ok(())
    }

    fn make_montgomery(&mut self, a: u32) -> Result<()> {
        if self.has(a, MONTGOMERY)? {
            return Ok(());
        }
        if self.has(a, LONG)? {
            self.set_flags(a, LONG_MONTGOMERY)?;
            self.set_limbs(a, self.field.mul(self.limbs(a)?, self.field.r2))
        } else {
            let limbs = self.widened(self.short(a)?.into());
            self.set_limbs(a, self.field.mul(limbs, self.field.r2))?;
            self.set_flags(a, SHORT_MONTGOMERY)
        }
    }

    fn make_normal(&mut self, a: u32) -> Result<()> {
        if self.has(a, MONTGOMERY)? && self.has(a, LONG)? {
            self.set_flags(a, LONG_NORMAL)?;
            self.set_limbs(a, self.field.mul(self.limbs(a)?, [1, 0, 0, 0]))?;
        }
        Ok(())
    }

    fn make_long_normal(&mut self, a: u32) -> Result<()> {
        if self.has(a, LONG)? {
            self.make_normal(a)
        } else {
            self.widen(a)
        }
    }

    /// Forward and word by word: what overlaps is repeated, as in the model.
    fn copy(&mut self, r: u32, a: u32, words: u32) -> Result<()> {
        let (to, from, bytes) = (r as usize, a as usize, words as usize * 8);
        let is_inside = to.max(from) + bytes <= self.memory.len();
        if is_inside && (to <= from || to >= from + bytes) {
            self.memory.copy_within(from..from + bytes, to);
            return Ok(());
        }
        for i in 0..words as usize {
            let word = self.word(a, 8 * i)?;
            self.set_word(r, 8 * i, word)?;
        }
        Ok(())
    }

    fn zero(&mut self, r: u32) -> Result<()> {
        self.set_raw(r, [0; 4])
    }

    fn is_true(&self, a: u32) -> Result<bool> {
        if self.has(a, LONG)? {
            return Ok(self.limbs(a)? != [0; 4]);
        }
        Ok(self.short(a)? != 0)
    }

    fn is_negative(&mut self, a: u32) -> Result<bool> {
        if self.has(a, LONG)? {
            self.make_normal(a)?;
            return Ok(field::is_above(self.limbs(a)?, self.field.half()));
        }
        Ok(self.short(a)? < 0)
    }

    fn low(&mut self, a: u32) -> Result<u32> {
        if self.has(a, LONG)? {
            self.make_normal(a)?;
            return Ok(u32::from_le_bytes(self.load(a, 8)?));
        }
        Ok(self.short(a)? as u32)
    }

    fn integer(&mut self, a: u32) -> Result<u32> {
        if self.is_negative(a)? {
            self.neg(FIRST, a)?;
            return Ok(self.low(FIRST)?.wrapping_neg());
        }
        self.low(a)
    }

    fn neg(&mut self, r: u32, a: u32) -> Result<()> {
        if self.has(a, LONG)? {
            let flags = if self.has(a, MONTGOMERY)? { LONG_MONTGOMERY } else { LONG_NORMAL };
            self.set_flags(r, flags)?;
            return self.set_limbs(r, self.field.neg(self.limbs(a)?));
        }
        self.set_small(r, -i64::from(self.short(a)?))
    }

    /// A sum or a difference.
    fn sum(
        &mut self,
        r: u32,
        a: u32,
        b: u32,
        long: fn(&Field, Limbs, Limbs) -> Limbs,
        short: fn(i64, i64) -> i64,
    ) -> Result<()> {
        let (is_a_long, is_b_long) = (self.has(a, LONG)?, self.has(b, LONG)?);
        if !is_a_long && !is_b_long {
            return self.set_small(r, short(self.short(a)?.into(), self.short(b)?.into()));
        }
        let is_montgomery = is_a_long && self.has(a, MONTGOMERY)? || is_b_long && self.has(b, MONTGOMERY)?;
        if is_montgomery {
            self.make_montgomery(a)?;
            self.make_montgomery(b)?;
            self.set_flags(r, LONG_MONTGOMERY)?;
            return self.set_limbs(r, long(self.field, self.limbs(a)?, self.limbs(b)?));
        }
        self.set_flags(r, LONG_NORMAL)?;
        if !is_a_long {
            self.set_raw(SUMMAND, self.widened(self.short(a)?.into()))?;
        } else if !is_b_long {
            self.set_raw(SUMMAND, self.widened(self.short(b)?.into()))?;
        }
        let x = if is_a_long { self.limbs(a)? } else { self.raw(SUMMAND)? };
        let y = if is_b_long { self.limbs(b)? } else { self.raw(SUMMAND)? };
        self.set_limbs(r, long(self.field, x, y))
    }

    /// The product of one operand in Montgomery's form and one that is not needs no other.
    fn mul(&mut self, r: u32, a: u32, b: u32) -> Result<()> {
        let (is_a_long, is_b_long) = (self.has(a, LONG)?, self.has(b, LONG)?);
        let flags = match (is_a_long, is_b_long) {
            (false, false) => return self.set_small(r, i64::from(self.short(a)?) * i64::from(self.short(b)?)),
            (true, true) => {
                let is_mixed = self.has(a, MONTGOMERY)? != self.has(b, MONTGOMERY)?;
                if !is_mixed && !self.has(a, MONTGOMERY)? {
                    self.set_flags(r, LONG_MONTGOMERY)?;
                    return self.set_limbs(r, self.field.mul_into_montgomery(self.limbs(a)?, self.limbs(b)?));
                }
                if is_mixed {
                    LONG_NORMAL
                } else {
                    LONG_MONTGOMERY
                }
            }
            (true, false) => {
                let is_montgomery = self.has(a, MONTGOMERY)?;
                self.make_montgomery(b)?;
                if is_montgomery {
                    LONG_MONTGOMERY
                } else {
                    LONG_NORMAL
                }
            }
            (false, true) => {
                let is_montgomery = self.has(b, MONTGOMERY)?;
                self.make_montgomery(a)?;
                if is_montgomery {
                    LONG_MONTGOMERY
                } else {
                    LONG_NORMAL
                }
            }
        };
        self.set_flags(r, flags)?;
        self.set_limbs(r, self.field.mul(self.limbs(a)?, self.limbs(b)?))
    }

    /// Widens the other of two, of which one is long. `false` where both are short.
    fn match_widths(&mut self, a: u32, b: u32) -> Result<bool> {
        if self.has(a, LONG)? {
            self.widen(b)?;
            return Ok(true);
        }
        if self.has(b, LONG)? {
            self.widen(a)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn are_equal(&mut self, a: u32, b: u32) -> Result<bool> {
        if !self.match_widths(a, b)? {
            return Ok(self.short(a)? == self.short(b)?);
        }
        if self.has(a, MONTGOMERY)? != self.has(b, MONTGOMERY)? {
            self.make_normal(a)?;
            self.make_normal(b)?;
        }
        Ok(self.limbs(a)? == self.limbs(b)?)
    }

    /// Numbers above half of the prime are negative.
    fn is_above(&mut self, a: u32, b: u32) -> Result<bool> {
        if !self.match_widths(a, b)? {
            return Ok(self.short(a)? > self.short(b)?);
        }
        self.make_normal(a)?;
        self.make_normal(b)?;
        Ok(match (self.is_negative(a)?, self.is_negative(b)?) {
            (true, false) => false,
            (false, true) => true,
            _ => field::is_above(self.limbs(a)?, self.limbs(b)?),
        })
    }

    fn is_below(&mut self, a: u32, b: u32) -> Result<bool> {
        Ok(!self.are_equal(a, b)? && !self.is_above(a, b)?)
    }

    /// 1 or 0, short.
    fn truth(&mut self, r: u32, test: impl FnOnce(&mut Self) -> Result<bool>) -> Result<()> {
        let is_true = test(self)?;
        self.set_word(r, 0, is_true.into())
    }

    fn bits(&mut self, r: u32, a: u32, b: u32, of: fn(u64, u64) -> u64) -> Result<()> {
        let are_small = !self.has(a, LONG)? && self.short(a)? >= 0 && !self.has(b, LONG)? && self.short(b)? >= 0;
        if are_small {
            let bits = of(self.short(a)? as u64, self.short(b)? as u64);
            self.store(r, 0, (bits as u32).to_le_bytes())?;
            return self.set_flags(r, 0);
        }
        for x in [a, b] {
            self.widen(x)?;
            self.make_normal(x)?;
        }
        let (x, y) = (self.limbs(a)?, self.limbs(b)?);
        self.set_limbs(r, std::array::from_fn(|i| of(x[i], y[i])))?;
        self.set_flags(r, LONG_NORMAL)?;
        self.adjust(r)
    }

    fn bit_not(&mut self, r: u32, a: u32) -> Result<()> {
        self.widen(a)?;
        self.make_normal(a)?;
        self.set_limbs(r, self.limbs(a)?.map(|limb| !limb))?;
        self.set_flags(r, LONG_NORMAL)?;
        self.adjust(r)
    }

    /// Takes away bits that the prime has not, and the prime once.
    fn adjust(&mut self, r: u32) -> Result<()> {
        let mut limbs = self.limbs(r)?;
        limbs[3] &= u64::MAX >> (256 - self.field.bits);
        self.set_limbs(r, self.field.reduced(limbs, false))
    }

    fn shift(&mut self, r: u32, a: u32, b: u32, is_left: bool) -> Result<()> {
        let (by, is_left) = match self.is_negative(b)? {
            true => {
                self.neg(SECOND, b)?;
                (SECOND, !is_left)
            }
            false => (b, is_left),
        };
        self.truth(FIRST, |at| at.is_below(by, BITS))?;
        if self.short(FIRST)? == 0 {
            return self.zero(r);
        }
        let count = self.integer(by)?;
        if is_left {
            self.shift_left(r, a, count)
        } else {
            self.shift_right(r, a, count)
        }
    }

    fn shift_left(&mut self, r: u32, a: u32, count: u32) -> Result<()> {
        if !self.has(a, LONG)? && !self.is_negative(a)? && count <= 30 {
            return self.set_small(r, i64::from(self.short(a)?) << count);
        }
        self.widen(a)?;
        self.make_normal(a)?;
        self.shift_words(r, a, 0u32.wrapping_sub(count >> 6), count & 63, true)?;
        self.adjust(r)?;
        self.set_flags(r, LONG_NORMAL)
    }

    fn shift_right(&mut self, r: u32, a: u32, count: u32) -> Result<()> {
        if !self.has(a, LONG)? && !self.is_negative(a)? {
            let shifted = (self.short(a)? as u32).checked_shr(count).unwrap_or(0);
            self.store(r, 0, shifted.to_le_bytes())?;
            return self.set_flags(r, 0);
        }
        self.widen(a)?;
        self.make_normal(a)?;
        self.shift_words(r, a, count >> 6, count & 63, false)?;
        self.set_flags(r, LONG_NORMAL)
    }

    /// Word by word from the lowest, also where the result is the operand: then a left shift reads what it has written.
    fn shift_words(&mut self, r: u32, a: u32, first: u32, count: u32, is_left: bool) -> Result<()> {
        let (a, r) = (a.wrapping_add(8), r.wrapping_add(8));
        let rest = 64 - count;
        for i in 0..4u32 {
            let word = |at: &Self, i: u32| if i < 4 { at.word(a.wrapping_add(8 * i), 0) } else { Ok(0) };
            let near = word(self, first.wrapping_add(i))?;
            let next = if is_left { first.wrapping_sub(1) } else { first.wrapping_add(1) };
            let far = word(self, next.wrapping_add(i))?;
            let shifted = match is_left {
                true => near << count | far.checked_shr(rest).unwrap_or(0),
                false => near >> count | far.checked_shl(rest).unwrap_or(0),
            };
            self.set_word(r.wrapping_add(8 * i), 0, shifted)?;
        }
        Ok(())
    }

    /// The quotient or the rest of whole numbers. The other is left in the scratch space. What the rest is made of is put in its
    /// place before the divisor is read, which may be there.
    fn divide(&mut self, r: u32, a: u32, b: u32, is_quotient: bool) -> Result<()> {
        for x in [a, b] {
            self.widen(x)?;
            self.make_normal(x)?;
        }
        self.set_flags(r, LONG_NORMAL)?;
        let r = r.wrapping_add(8);
        let (at_quotient, at_rest) = if is_quotient { (r, SUMMAND) } else { (SUMMAND, r) };
        let dividend = self.limbs(a)?;
        self.set_raw(at_rest, dividend)?;
        let divisor = self.limbs(b)?;
        self.zero(at_quotient)?;
        let (quotient, rest) = field::divide(dividend, divisor).ok_or(TrapCode::IntegerDivisionByZero)?;
        self.set_raw(at_quotient, quotient)?;
        self.set_raw(at_rest, rest)
    }

    /// In the form of the operand.
    fn inv(&mut self, r: u32, a: u32) -> Result<()> {
        self.widen(a)?;
        let inverse = self.field.invert(self.limbs(a)?);
        self.set_limbs(r, inverse)?;
        if self.has(a, MONTGOMERY)? {
            self.set_flags(r, LONG_MONTGOMERY)?;
            return self.set_limbs(r, self.field.mul(self.limbs(r)?, self.field.r3));
        }
        self.set_flags(r, LONG_NORMAL)
    }

    fn pow(&mut self, r: u32, a: u32, b: u32) -> Result<()> {
        self.make_montgomery(a)?;
        self.widen(b)?;
        self.make_normal(b)?;
        self.set_flags(r, LONG_MONTGOMERY)?;
        let base = self.limbs(a)?;
        self.set_limbs(r, self.field.one)?;
        // The exponent is read as it is then: it may be the result.
        for i in (0..32).rev() {
            let [byte] = self.load(b.wrapping_add(8), i)?;
            let mut power = self.limbs(r)?;
            for bit in (0..8).rev() {
                // The square of 1, until the first bit that is set.
                if power != self.field.one {
                    power = self.field.mul(power, power);
                }
                if byte >> bit & 1 == 1 {
                    power = self.field.mul(base, power);
                }
            }
            self.set_limbs(r, power)?;
        }
        Ok(())
    }
}

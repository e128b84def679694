//! WebAssembly in place of the field functions that are called most. It does the commonest operands itself: a call of the host takes
//! some 50 ns, more than little work takes interpreted.
//!
//! Commonest are constants and counters. circom keeps them as long numbers that are not in Montgomery's form, of one limb. All else goes
//! to the host. Operands and result are apart or the same element, as circom has them.

use super::recognise::put;
use super::Function;

/// Where an element keeps its parts.
const NUMBER: u8 = 0;
const FLAGS: u8 = 4;
const LIMBS: [u8; 4] = [8, 16, 24, 32];

/// Flags below this, as signed numbers: long, and not in Montgomery's form. From 0 on: short.
const LONG_NORMAL_END: i32 = -0x4000_0000;
const LONG_NORMAL: i32 = i32::MIN;

pub(super) const I32: u8 = 0x7f;
const I64: u8 = 0x7e;
const NOTHING: u8 = 0x40;

/// Operators without operands of their own.
const ELSE: u8 = 0x05;
const END: u8 = 0x0b;
const RETURN: u8 = 0x0f;
const I32_LT_S: u8 = 0x48;
const I32_GE_S: u8 = 0x4e;
const I32_NE: u8 = 0x47;
const I64_EQZ: u8 = 0x50;
const I64_EQ: u8 = 0x51;
const I64_NE: u8 = 0x52;
const I64_LT_U: u8 = 0x54;
const I64_GT_U: u8 = 0x56;
const I64_LE_U: u8 = 0x58;
const I64_GE_U: u8 = 0x5a;
const I64_ADD: u8 = 0x7c;
const I64_SUB: u8 = 0x7d;
const I64_AND: u8 = 0x83;
const I64_OR: u8 = 0x84;
const I64_XOR: u8 = 0x85;
const I64_FROM_TRUTH: u8 = 0xad;

/// Arguments, and the locals behind the three of functions with two operands.
const RESULT: u32 = 0;
const A: u32 = 1;
const B: u32 = 2;
const X: u32 = 3;
const Y: u32 = 4;

/// The code for a function's place, where it is worth it: locals and operators. It calls the import `native` for what it does not do.
pub(super) fn code(function: Function, native: u32) -> Option<Vec<u8>> {
    use Function::*;
    Some(match function {
        ToInt => to_int(native),
        IsTrue => is_true(native),
        ToLongNormal => to_long_normal(native),
        Eq => compare(I64_EQ, native),
        Neq => compare(I64_NE, native),
        Lt => compare(I64_LT_U, native),
        Leq => compare(I64_LE_U, native),
        Gt => compare(I64_GT_U, native),
        Geq => compare(I64_GE_U, native),
        Add => add(native),
        Sub => sub(native),
        Band => bits(I64_AND, native),
        Bor => bits(I64_OR, native),
        Bxor => bits(I64_XOR, native),
        _ => return None,
    })
}

/// The body of `Fr_copy`: no locals, and five times `(i64.store offset=8i (local.get 0) (i64.load offset=8i (local.get 1)))`.
pub(super) const COPY: &[u8] = b"\0\x20\0\x20\x01\x29\x03\0\x37\x03\0\x20\0\x20\x01\x29\x03\x08\x37\x03\x08\
    \x20\0\x20\x01\x29\x03\x10\x37\x03\x10\x20\0\x20\x01\x29\x03\x18\x37\x03\x18\x20\0\x20\x01\x29\x03\x20\x37\x03\x20\x0b";

/// `Fr_copy` where it is called, with two locals.
pub(super) fn copy_here(spare: u32) -> Vec<u8> {
    let (to, from) = (spare, spare + 1);
    let words = [0, 8, 16, 24, 32];
    let code = Code(Vec::new()).set(from).set(to);
    words.into_iter().fold(code, |code, at| code.get(to).get(from).op(0x29).op(3).op(at).store_word(at)).0
}

/// `Fr_toInt` where it is called, with a local; `own` is the function, for what is not the commonest operand.
pub(super) fn to_int_here(spare: u32, own: u32) -> Vec<u8> {
    let otherwise = |code: Code| code.op(ELSE).get(spare).call(0, own).op(END);
    let code = Code(Vec::new()).keep(spare).op(0x28).op(2).op(FLAGS).number(LONG_NORMAL_END).op(I32_LT_S).begin_if(I32);
    let code = code.load(spare, LIMBS[3]).op(I64_EQZ).begin_if(I32).get(spare).op(0x28).op(2).op(LIMBS[0]);
    otherwise(otherwise(code)).0
}

/// A function's body as it grows.
struct Code(Vec<u8>);

impl Code {
    /// Of a function with so many more locals of one type.
    fn new(locals: u8, ty: u8) -> Self {
        Self(vec![1, locals, ty])
    }

    fn op(mut self, operator: u8) -> Self {
        self.0.push(operator);
        self
    }

    fn get(mut self, local: u32) -> Self {
        self.0.push(0x20);
        put(&mut self.0, local);
        self
    }

    fn set(mut self, local: u32) -> Self {
        self.0.push(0x21);
        put(&mut self.0, local);
        self
    }

    fn keep(mut self, local: u32) -> Self {
        self.0.push(0x22);
        put(&mut self.0, local);
        self
    }

    /// A part of the element to which a local points.
    fn load(self, local: u32, part: u8) -> Self {
        let code = self.get(local);
        match part {
            NUMBER | FLAGS => code.op(0x28).op(2).op(part),
            _ => code.op(0x29).op(3).op(part),
        }
    }

    fn store_word(self, at: u8) -> Self {
        self.op(0x37).op(3).op(at)
    }

    fn number(mut self, number: i32) -> Self {
        self.0.push(0x41);
        let mut rest = number;
        // Signed LEB128.
        loop {
            let (low, more) = (rest as u8 & 0x7f, rest >> 7);
            let is_last = more == -i32::from(low >> 6);
            self.0.push(if is_last { low } else { low | 0x80 });
            if is_last {
                return self;
            }
            rest = more;
        }
    }

    fn zero(self) -> Self {
        self.op(0x42).op(0)
    }

    fn begin(self, ty: u8) -> Self {
        self.op(0x02).op(ty)
    }

    fn begin_if(self, ty: u8) -> Self {
        self.op(0x04).op(ty)
    }

    /// Leaves the innermost block if so.
    fn leave_if(self) -> Self {
        self.op(0x0d).op(0)
    }

    fn call(mut self, arguments: u32, native: u32) -> Self {
        self = (0..arguments).fold(self, Self::get);
        self.0.push(0x10);
        put(&mut self.0, native);
        self
    }

    fn done(self) -> Vec<u8> {
        self.op(END).0
    }

    /// The start of a function of two operands: `X` and `Y` become their limbs where each has one, all else leaves the block.
    fn small() -> Self {
        let mut code = Self::new(2, I64).begin(NOTHING);
        for operand in [A, B] {
            code = code.load(operand, FLAGS).number(LONG_NORMAL_END).op(I32_GE_S).leave_if();
        }
        let high = [A, B].into_iter().flat_map(|operand| LIMBS[1..].iter().map(move |&limb| (operand, limb)));
        for (i, (operand, limb)) in high.enumerate() {
            code = code.load(operand, limb);
            if i > 0 {
                code = code.op(I64_OR);
            }
        }
        code = code.zero().op(I64_NE).leave_if();
        code.load(A, LIMBS[0]).set(X).load(B, LIMBS[0]).set(Y)
    }

    /// The rest of it: stores `X` and the carry that is on the stack, if `has_carry`, as a long number.
    fn store_long(self, carry: impl Fn(Self) -> Self) -> Self {
        let code = self.get(RESULT).number(LONG_NORMAL).op(0x36).op(2).op(FLAGS);
        let code = code.get(RESULT).get(X).store_word(LIMBS[0]);
        let code = carry(code.get(RESULT)).store_word(LIMBS[1]);
        LIMBS[2..].iter().fold(code, |code, &limb| code.get(RESULT).zero().store_word(limb))
    }

    fn otherwise(self, native: u32) -> Vec<u8> {
        self.op(RETURN).op(END).call(3, native).done()
    }
}

fn to_int(native: u32) -> Vec<u8> {
    let code = Code::new(1, I32).load(0, FLAGS).keep(1).number(LONG_NORMAL_END).op(I32_LT_S).begin_if(I32);
    // A number whose highest limb is 0 is less than half of the prime: not negative.
    let code = code.load(0, LIMBS[3]).op(I64_EQZ).begin_if(I32).get(0).op(0x28).op(2).op(LIMBS[0]);
    let code = code.op(ELSE).call(1, native).op(END);
    let code = code.op(ELSE).get(1).number(0).op(I32_LT_S).begin_if(I32).call(1, native);
    code.op(ELSE).load(0, NUMBER).op(END).op(END).done()
}

fn is_true(native: u32) -> Vec<u8> {
    let code = Code::new(0, I32).load(0, FLAGS).number(0).op(I32_LT_S).begin_if(I32).call(1, native);
    code.op(ELSE).load(0, NUMBER).number(0).op(I32_NE).op(END).done()
}

fn to_long_normal(native: u32) -> Vec<u8> {
    let code = Code::new(0, I32).load(0, FLAGS).number(LONG_NORMAL_END).op(I32_GE_S).begin_if(NOTHING);
    code.call(1, native).op(END).done()
}

fn compare(operator: u8, native: u32) -> Vec<u8> {
    let code = Code::small().get(RESULT).get(X).get(Y).op(operator).op(I64_FROM_TRUTH);
    code.store_word(NUMBER).otherwise(native)
}

fn add(native: u32) -> Vec<u8> {
    let code = Code::small().get(X).get(Y).op(I64_ADD).set(X);
    code.store_long(|code| code.get(X).get(Y).op(I64_LT_U).op(I64_FROM_TRUTH)).otherwise(native)
}

/// Of numbers whose difference is not negative.
fn sub(native: u32) -> Vec<u8> {
    let code = Code::small().get(X).get(Y).op(I64_LT_U).leave_if().get(X).get(Y).op(I64_SUB).set(X);
    code.store_long(Code::zero).otherwise(native)
}

fn bits(operator: u8, native: u32) -> Vec<u8> {
    Code::small().get(X).get(Y).op(operator).set(X).store_long(Code::zero).otherwise(native)
}

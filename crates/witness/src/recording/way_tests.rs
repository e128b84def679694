//! Branches in modules: which are run both ways, and that the memory is then the run's own.

use super::hostile_tests::{call_number, calls, code, constant, refused, runs, with, FREE, LOAD, MULTIPLIER, STORE};
use crate::native::{Function, Parts};
use crate::Used;

/// The module's signals: its output and its inputs.
const C: i32 = 6200;
const A: i32 = 6240;
const B: i32 = 6280;

/// An element with the number 6, the condition, and another.
const SIX: i32 = FREE;
const CONDITION: i32 = FREE + 40;
const OTHER: i32 = FREE + 80;
/// One that is 0, and short.
const ZERO: i32 = FREE + 120;

const BOTH: [Used; 3] = [Used::Recorded, Used::Replayed, Used::Replayed];
/// The first input has b below 6, the others have not.
const GUARDED: [Used; 3] = [Used::Recorded, Used::Left, Used::Left];

const IF: &[u8] = b"\x04\x40";
const ELSE: &[u8] = b"\x05";
const END: &[u8] = b"\x0b";

fn call(function: Function, arguments: &[i32]) -> Vec<u8> {
    calls(MULTIPLIER, function, arguments)
}

/// Whether b is below 6, on the stack.
fn condition() -> Vec<u8> {
    let six = code(&[&constant(SIX), b"\x41\x06", STORE, &constant(SIX + 4), b"\x41\0", STORE]);
    code(&[&six, &call(Function::Lt, &[CONDITION, B, SIX]), &call(Function::IsTrue, &[CONDITION])])
}

/// The module that takes one way or the other before each wire is read, and goes on so.
fn branched(first: &[u8], second: &[u8], then: &[u8]) -> Vec<u8> {
    with(&[("getWitness", &code(&[&condition(), IF, first, ELSE, second, END, then]))])
}

#[test]
fn ways_of_functions_are_both_gone() {
    // Results that stay where the functions leave them.
    let (sum, product) = (call(Function::Add, &[C, A, B]), call(Function::Mul, &[C, A, B]));
    assert_eq!(runs(&branched(&sum, &product, b"")), BOTH);
    assert_eq!(runs(&branched(&sum, b"", b"")), BOTH);
    let without = code(&[&condition(), IF, &sum, END]);
    assert_eq!(runs(&with(&[("getWitness", &without)])), BOTH);
    // An element that is loaded from a place.
    let placed = code(&[&constant(C), &constant(OTHER), LOAD, b"\x6a", &call(Function::Neg, &[A])]);
    assert_eq!(runs(&branched(&placed, &sum, b"")), BOTH);
}

/// Functions change the form of operands. Where the other way does, the run's memory is as if it did not.
#[test]
fn operands_keep_their_form_where_their_way_is_not_gone() {
    let power = call(Function::Pow, &[OTHER, ZERO, ZERO]);
    let read = code(&[&constant(FREE + 200), &constant(ZERO + 4), LOAD, b"\x41\x01\x71", STORE]);
    refused(&branched(b"", &power, &read), "its code reads bytes of a value by itself");
}

#[test]
fn ways_that_do_more_are_guarded() {
    let set = |number: u8| code(&[&[0x41, number], b"\x21\x01"]);
    assert_eq!(runs(&branched(&set(1), &set(2), b"")), GUARDED);
    let store = code(&[&constant(OTHER), b"\x41\x01", STORE]);
    assert_eq!(runs(&branched(b"", &store, b"")), GUARDED);
    assert_eq!(runs(&branched(b"\x01", b"", b"")), GUARDED);
    // Functions that write no element, or are the module's own.
    assert_eq!(runs(&branched(&call(Function::IntZero, &[OTHER]), b"", b"")), GUARDED);
    let parts = Parts::read(MULTIPLIER).unwrap();
    let found = parts.field_functions().unwrap().1;
    let ty = |index: usize| parts.functions[index];
    let normal = found.iter().position(|found| *found == Some(Function::ToLongNormal)).unwrap();
    // It has the same type, and is none that is known.
    let own = (0..found.len()).find(|&i| found[i].is_none() && !parts.is_copy(i) && ty(i) == ty(normal)).unwrap();
    assert_eq!(runs(&branched(b"", &call_number(own as u32 + parts.imports, &[SIX]), b"")), GUARDED);
    // An `if` with a result.
    let result = code(&[&condition(), b"\x04\x7f\x41\x01\x05\x41\x02\x0b\x1a"]);
    assert_eq!(runs(&with(&[("getWitness", &result)])), GUARDED);
}

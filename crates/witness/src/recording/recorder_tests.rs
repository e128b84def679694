//! What a recorder takes for a value, and what ends it: each way beside one that differs in no more than that.

use super::operation::Operation;
use super::recorder::Recorder;
use super::shadow::Shadow;
use super::{Refused, Step, Value};
use crate::kept::{BRANCHED, FAILED};
use crate::native::{prime, Field, Function};
use crate::Record;

/// A shared element, its limbs, and places for others.
pub(super) const SHARED: u32 = 2000;
const LIMBS: u32 = SHARED + 8;
pub(super) const X: u32 = 3000;
pub(super) const Y: u32 = 3100;
pub(super) const Z: u32 = 3200;
pub(super) const END: usize = 8192;

pub(super) const LONG: u32 = 0x8000_0000;
const MONTGOMERY: u32 = 0xc000_0000;

pub(super) type Done<T = ()> = Result<T, Refused>;

pub(super) struct Run {
    pub(super) recorder: Recorder,
    pub(super) memory: Vec<u8>,
    pub(super) field: Field,
}

impl Run {
    /// One input lies in the shared element, with the value 5.
    pub(super) fn new(which: Record) -> Self {
        let field = Field::new(prime(0).unwrap());
        let mut run = Self { recorder: Recorder::new(field, END, which), memory: vec![0; END], field };
        run.memory[88] = field.bits as u8;
        run.put(SHARED, 0, LONG, [5, 0, 0, 0]);
        run.recorder.input(LIMBS as usize, 0).unwrap();
        run
    }

    /// Clean bytes.
    pub(super) fn write(&mut self, at: u32, bytes: &[u8]) {
        let at = at as usize;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
        self.recorder.wrote(at, bytes.len()).unwrap();
    }

    pub(super) fn put(&mut self, at: u32, number: u32, flags: u32, limbs: [u64; 4]) {
        self.write(at, &number.to_le_bytes());
        self.write(at + 4, &flags.to_le_bytes());
        self.write(at + 8, &limbs.map(u64::to_le_bytes).concat());
    }

    pub(super) fn shift(&mut self, to: u32, from: u32, bytes: usize) -> Done {
        self.memory.copy_within(from as usize..from as usize + bytes, to as usize);
        self.recorder.moved(to as usize, from as usize, bytes)
    }

    pub(super) fn call(&mut self, function: Function, arguments: [u32; 3]) -> Done<u32> {
        let plan = self.recorder.before(function, arguments, &self.memory)?;
        let result = function.run(&self.field, &mut self.memory, arguments).expect("inside of the memory");
        self.recorder.after(plan, function, arguments, result, &self.memory)
    }

    /// An element of the input's value at `X`, and one that is clean, 7, at `Y`.
    pub(super) fn two() -> Self {
        let mut run = Self::new(Record::All);
        run.shift(X, SHARED, 40).unwrap();
        run.put(Y, 0, LONG, [7, 0, 0, 0]);
        run
    }

    pub(super) fn steps(self) -> Vec<Step> {
        self.recorder.finish().unwrap().steps
    }
}

pub(super) fn refused<T: std::fmt::Debug>(done: Done<T>, why: &'static str) {
    assert_eq!(done.unwrap_err(), Refused(why));
}

pub(super) const PARTS: &str = "an element is made of parts of others";
pub(super) const INPUT: Value = Value::Input(0);

#[test]
fn elements_are_whole() {
    let double = |run: &mut Run| run.call(Function::Add, [Z, X, X]);
    let mut run = Run::two();
    double(&mut run).unwrap();
    assert_eq!(run.steps(), [Step::Compute(Operation::Add, INPUT, INPUT)]);
    // One limb of another value, or one that is clean.
    for (at, from) in [(X + 8, LIMBS + 4), (X + 12, Y + 8), (X + 36, Y + 8)] {
        let mut run = Run::two();
        run.shift(at, from, 4).unwrap();
        refused(double(&mut run), PARTS);
    }
    // The same limbs, but in another form.
    let mut run = Run::two();
    run.write(X + 4, &MONTGOMERY.to_le_bytes());
    refused(double(&mut run), PARTS);
    // The form that it has here a sum has, too, but not always.
    let mut run = Run::two();
    run.call(Function::Add, [Z, X, X]).unwrap();
    run.shift(X, SHARED, 40).unwrap();
    run.shift(X + 4, Z + 4, 4).unwrap();
    refused(run.call(Function::Add, [Z, X, X]), PARTS);
    // A result has an element's tags, whose flags depend on the inputs: neither they nor a part of it are others'.
    let of_result = |from: u32, to: u32, bytes| {
        let mut run = Run::two();
        run.call(Function::Mul, [Z, X, X]).unwrap();
        run.shift(to, from, bytes).unwrap();
        run
    };
    let mut run = of_result(Z, X, 40);
    run.call(Function::Add, [Z + 40, X, Y]).unwrap();
    refused(of_result(Z + 4, Y + 4, 4).call(Function::Add, [Z + 40, Y, Y]), PARTS);
    refused(of_result(Z, X, 36).call(Function::Add, [Z + 40, X, X]), PARTS);
    refused(of_result(Z + 8, X + 8, 32).call(Function::Add, [Z + 40, X, X]), PARTS);
    // A short one whose number is a part of a value.
    let mut run = Run::two();
    run.put(Y, 3, 0, [0; 4]);
    run.call(Function::Add, [Z, Y, Y]).unwrap();
    run.shift(Y, LIMBS, 4).unwrap();
    refused(run.call(Function::Add, [Z, Y, Y]), PARTS);
}

#[test]
fn elements_are_of_known_forms_and_at_words() {
    let mut run = Run::two();
    run.put(Y, 0, 5, [7, 0, 0, 0]);
    refused(run.call(Function::Mul, [Z, X, Y]), "an element is of no form that is known");
    let mut run = Run::two();
    let prime = run.field.prime;
    run.put(Y, 0, LONG, prime);
    refused(run.call(Function::Mul, [Z, X, Y]), "an element is not below the prime");
    let mut run = Run::two();
    run.put(Y + 2, 0, LONG, [7, 0, 0, 0]);
    run.call(Function::IsTrue, [Y + 2, 0, 0]).unwrap();
    refused(run.call(Function::Mul, [Z, X, Y + 2]), "an element is at no word");
    refused(Run::two().call(Function::Mul, [Z, X + 2, Y]), "an element is at no word");
    refused(Run::two().call(Function::Mul, [Z + 2, X, Y]), "an element is at no word");
    let mut run = Run::two();
    run.write(END as u32 - 4, &LONG.to_le_bytes());
    refused(run.call(Function::Mul, [Z, X, END as u32 - 8]), "an element lies outside of the memory");
    assert!(Shadow::new(80).set_element(11, INPUT).is_err() && Shadow::new(80).set_element(10, INPUT).is_ok());
}

/// What is written and what is not: a clean result replaces what counts, and no more.
#[test]
fn clean_results_replace_what_counts() {
    // A short result over a value: its limbs stay the value's, and do not count.
    let mut run = Run::two();
    run.put(Y, 3, 0, [0; 4]);
    run.call(Function::Add, [X, Y, Y]).unwrap();
    run.recorder.read(X as usize, 8).unwrap();
    run.recorder.read(X as usize + 8, 4).unwrap_err();
    run.call(Function::Add, [Z, X, X]).unwrap();
    assert_eq!(run.memory[Z as usize], 12);
    // A short operand stays as it was.
    let mut run = Run::two();
    run.put(Y, 3, 0, [0; 4]);
    run.shift(Y + 8, LIMBS, 4).unwrap();
    run.call(Function::IsTrue, [Y, 0, 0]).unwrap();
    run.recorder.read(Y as usize + 8, 4).unwrap_err();
    // A long one over it: its number is what it was.
    let mut run = Run::two();
    run.call(Function::Mul, [Z, X, X]).unwrap();
    run.call(Function::Add, [Z, Y, Y]).unwrap();
    run.recorder.read(Z as usize + 4, 36).unwrap();
    run.recorder.read(Z as usize, 4).unwrap_err();
    // A constant that was an operand beside a value may have got another form.
    let mut run = Run::two();
    run.call(Function::Mul, [Z, X, Y]).unwrap();
    run.recorder.read(Y as usize + 8, 4).unwrap_err();
    run.call(Function::ToInt, [Y, 0, 0]).unwrap();
}

#[test]
fn operands_do_not_overlap() {
    const OVERLAP: &str = "a function's operands overlap";
    Run::two().call(Function::Add, [X, X, Y]).unwrap();
    refused(Run::two().call(Function::Lt, [X, X, Y]), OVERLAP);
    refused(Run::two().call(Function::Lt, [Y, X, Y]), OVERLAP);
    refused(Run::two().call(Function::Pow, [Z, X, X]), OVERLAP);
    refused(Run::two().call(Function::Add, [X + 36, X, Y]), OVERLAP);
    refused(Run::two().call(Function::Neg, [X - 36, X, 0]), OVERLAP);
    // Of clean ones every run has the same.
    Run::two().call(Function::Lt, [Y, Y, Y]).unwrap();
    refused(Run::two().call(Function::Lt, [Y + 36, Y, Y]), OVERLAP);
}

#[test]
fn constants_of_the_field_stay() {
    const WRITES: &str = "it writes where the field's constants are";
    refused(Run::two().call(Function::Mul, [600, X, Y]), WRITES);
    refused(Run::two().call(Function::Mul, [1948, X, Y]), WRITES);
    Run::two().call(Function::Mul, [1952, X, Y]).unwrap();
    refused(Run::two().call(Function::Mul, [Z, X, 88]), "it calculates with the field's constants");
    refused(Run::two().shift(600, X, 8), WRITES);
    refused(Run::two().call(Function::CopyN, [600, X, 1]), WRITES);
    refused(Run::two().call(Function::IntZero, [600, 0, 0]), WRITES);
    refused(Run::two().recorder.input(600, 1), WRITES);
}

#[test]
fn values_are_moved_whole_words_and_apart() {
    const NO_WORD: &str = "it moves parts of a value to a place that is no word";
    refused(Run::two().shift(Z + 2, X + 8, 8), NO_WORD);
    refused(Run::two().shift(Z, X + 10, 8), NO_WORD);
    refused(Run::two().shift(Z, X + 8, 6), NO_WORD);
    Run::two().shift(X - 8, X, 40).unwrap();
    refused(Run::two().shift(X + 8, X, 40), "it moves a value over itself");
    refused(Run::two().recorder.moved(END - 4, X as usize, 40), "its memory has grown");
    // A part of a word is overwritten, and the rest is the value's still.
    let mut run = Run::two();
    run.write(X + 8, &[1]);
    run.recorder.read(X as usize + 8, 4).unwrap_err();
    refused(run.call(Function::Add, [Z, X, X]), PARTS);
}

#[test]
fn places_in_arrays_are_constants() {
    refused(Run::two().call(Function::ToInt, [X, 0, 0]), "a place in an array depends on its inputs");
    assert_eq!(Run::two().call(Function::ToInt, [Y, 0, 0]), Ok(7));
}

#[test]
fn branches_are_guards() {
    let mut run = Run::two();
    run.call(Function::IsTrue, [X, 0, 0]).unwrap();
    run.call(Function::IsTrue, [X, 0, 0]).unwrap();
    assert_eq!(run.steps(), [Step::IsTrue(INPUT)]);
    let mut run = Run::two();
    run.call(Function::Sub, [Z, X, Y]).unwrap();
    run.call(Function::EqR, [X, Y, 0]).unwrap();
    let (minus, equal) = (
        Step::Compute(Operation::Sub, INPUT, Value::Constant(0)),
        Step::Compute(Operation::Eq, INPUT, Value::Constant(0)),
    );
    assert_eq!(run.steps(), [minus, equal, Step::IsFalse(Value::Result(1))]);
    // What is compared may have got another form.
    let mut run = Run::two();
    run.call(Function::EqR, [X, Y, 0]).unwrap();
    run.recorder.read(Y as usize + 8, 4).unwrap_err();
    // Of clean ones there is none.
    let mut run = Run::two();
    run.call(Function::IsTrue, [Y, 0, 0]).unwrap();
    run.call(Function::EqR, [Y, Y, 0]).unwrap();
    assert!(run.steps().is_empty());
}

#[test]
fn short_recordings_have_what_is_asserted_and_no_branch() {
    let mut run = Run::new(Record::Unbranched);
    refused(run.call(Function::IsTrue, [SHARED, 0, 0]), BRANCHED);
    let mut run = Run::new(Record::Unbranched);
    run.put(Y, 0, LONG, [7, 0, 0, 0]);
    refused(run.call(Function::EqR, [SHARED, Y, 0]), BRANCHED);
    let mut run = Run::new(Record::Unbranched);
    run.recorder.asserted(SHARED, true, &run.memory).unwrap();
    // That it is true is known.
    run.call(Function::IsTrue, [SHARED, 0, 0]).unwrap();
    assert_eq!(run.steps(), [Step::IsTrue(INPUT)]);
    let mut run = Run::new(Record::Unbranched);
    refused(run.recorder.asserted(SHARED, false, &run.memory), FAILED);
    run.write(LIMBS, &[1]);
    refused(run.recorder.asserted(SHARED, true, &run.memory), PARTS);
}

#[test]
fn inputs_and_wires_are_whole() {
    refused(Run::two().recorder.input(LIMBS as usize + 2, 1), "its shared element is at no word");
    let memory = vec![0; END];
    let wire = |at: u32, change: &dyn Fn(&mut Run)| {
        let mut run = Run::two();
        change(&mut run);
        run.recorder.wire(at as usize, &memory)?;
        Ok(run.recorder.finish().unwrap().wires[0])
    };
    const NO_WIRE: &str = "a wire's value is not that of one element";
    assert_eq!(wire(LIMBS, &|_| ()), Ok(INPUT));
    assert_eq!(wire(Y + 8, &|_| ()), Ok(Value::Constant(0)));
    refused(wire(Y + 10, &|_| ()), NO_WIRE);
    refused(wire(LIMBS, &|run| run.write(LIMBS + 28, &[0; 4])), NO_WIRE);
    refused(wire(Y + 8, &|run| run.shift(Y + 36, LIMBS, 4).unwrap()), NO_WIRE);
    // An element in whatever form, before its limbs are made of it, and after.
    let product = |run: &mut Run| assert_eq!(run.call(Function::Mul, [Z, X, X]), Ok(0));
    refused(wire(Z + 8, &product), NO_WIRE);
    let normal = |run: &mut Run| {
        product(run);
        run.call(Function::ToLongNormal, [Z, 0, 0]).unwrap();
    };
    assert_eq!(wire(Z + 8, &normal), Ok(Value::Result(0)));
}

#[test]
fn inputs_are_assigned_as_they_were_set() {
    let assign = |to: u32, change: &dyn Fn(&mut Run)| {
        let mut run = Run::two();
        change(&mut run);
        run.recorder.assign(to, SHARED, &run.memory).map(drop)
    };
    assert_eq!(assign(Z, &|_| ()), Ok(()));
    refused(assign(Z + 2, &|_| ()), "an input's element is at no word");
    refused(assign(SHARED + 36, &|_| ()), "an input's element is at no word");
    refused(assign(600, &|_| ()), "it writes where the field's constants are");
    const ELSEWHERE: &str = "an input is not where it is set from";
    refused(assign(Z, &|run| run.put(SHARED, 0, LONG, [5, 0, 0, 0])), ELSEWHERE);
    // A value in another form.
    refused(assign(Z, &|run| assert_eq!(run.call(Function::Mul, [SHARED, X, X]), Ok(0))), ELSEWHERE);
}

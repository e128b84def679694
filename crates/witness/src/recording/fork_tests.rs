//! What both ways of a branch leave, as a recorder sees it.

use super::fork::ELEMENTS_MAX;
use super::operation::Operation;
use super::recorder_tests::{refused, Done, Run, END, INPUT, LONG, PARTS, X, Y, Z};
use super::{Step, Value};
use crate::native::Function;

/// A place that nothing has been said of.
const W: u32 = 3300;

impl Run {
    /// A call within a way.
    fn way(&mut self, function: Function, arguments: [u32; 3]) -> Done {
        self.recorder.touch(&arguments, &self.memory)?;
        self.call(function, arguments).map(drop)
    }

    fn copy(&mut self, to: u32, from: u32) -> Done {
        self.recorder.touch(&[to], &self.memory)?;
        self.shift(to, from, 40)
    }

    pub(super) fn fork(&mut self, at: u32) -> Done<bool> {
        let is_true = Function::IsTrue.run(&self.field, &mut self.memory, [at, 0, 0]).expect("inside of the memory");
        self.recorder.fork(at, is_true != 0, &self.memory)
    }

    pub(super) fn turn(&mut self) -> bool {
        self.recorder.turn(&mut self.memory).unwrap()
    }

    pub(super) fn join(&mut self) {
        self.recorder.join(&mut self.memory).unwrap();
    }

    /// The value of an element, as the next function would find it.
    pub(super) fn value_at(&mut self, at: u32) -> Done<Value> {
        self.recorder.value(&self.memory, at as usize)
    }

    pub(super) fn number(&self, at: u32) -> u64 {
        Function::ToInt.run(&self.field, &mut self.memory.clone(), [at, 0, 0]).unwrap().into()
    }
}

/// `X` is the input, 5, and `Y` 7. The condition is `X == 7` or `X != 7`.
fn forked(condition: Function) -> Run {
    let mut run = Run::two();
    run.put(W + 100, 0, LONG, [7, 0, 0, 0]);
    run.call(condition, [Z, X, W + 100]).unwrap();
    assert_eq!(run.fork(Z), Ok(true));
    run
}

const SEVEN: Value = Value::Constant(0);

#[test]
fn the_condition_chooses() {
    for (condition, expected) in [(Function::Eq, 2), (Function::Neq, 10)] {
        let mut run = forked(condition);
        run.way(Function::Add, [W, X, X]).unwrap();
        assert!(run.turn());
        assert_eq!(run.number(W), 0, "what the first way wrote is undone");
        run.way(Function::Sub, [W, Y, X]).unwrap();
        run.join();
        assert_eq!(run.number(W), expected);
        assert_eq!(run.value_at(W), Ok(Value::Result(5)));
        let operation = if condition == Function::Eq { Operation::Eq } else { Operation::Neq };
        let result = |i| Value::Result(i);
        assert_eq!(
            run.steps(),
            [
                Step::Compute(operation, INPUT, SEVEN),
                Step::Compute(Operation::Add, INPUT, INPUT),
                Step::Compute(Operation::Sub, SEVEN, INPUT),
                Step::Compute(Operation::Sub, result(1), result(2)),
                Step::Compute(Operation::Mul, result(0), result(3)),
                Step::Compute(Operation::Add, result(2), result(4)),
            ]
        );
    }
}

/// `c ? 1 / x : 0` is a product, and a condition that is no truth is compared with 0.
#[test]
fn conditions_become_truths() {
    let mut run = Run::two();
    assert_eq!(run.fork(X), Ok(true));
    run.copy(W, Y).unwrap();
    run.turn();
    run.put(Z, 0, LONG, [0; 4]);
    run.copy(W, Z).unwrap();
    run.join();
    assert_eq!(run.number(W), 7);
    let (zero, seven) = (Value::Constant(0), Value::Constant(1));
    let steps = [Step::Compute(Operation::Neq, INPUT, zero), Step::Compute(Operation::Mul, Value::Result(0), seven)];
    assert_eq!(run.steps(), steps);
}

/// An element that one way leaves alone keeps its value there, also where its form may have changed.
#[test]
fn what_one_way_leaves_alone_stays() {
    let mut run = forked(Function::Eq);
    assert!(run.turn());
    run.way(Function::Mul, [W, X, Y]).unwrap();
    run.copy(X, W).unwrap();
    run.join();
    // The second way is this run's.
    assert_eq!((run.number(X), run.number(Y)), (35, 7));
    assert_eq!(run.value_at(Y), Ok(SEVEN));
    run.recorder.read(Y as usize + 4, 36).unwrap_err();
    // x y where the condition is false, else x.
    let Ok(Value::Result(last)) = run.value_at(X) else { panic!() };
    let Step::Compute(Operation::Add, Value::Result(1), _) = run.steps()[last as usize] else { panic!() };
}

#[test]
fn the_same_in_both_ways_is_no_choice() {
    let mut run = forked(Function::Neq);
    run.copy(W, Y).unwrap();
    run.copy(X + 400, X).unwrap();
    // The input's limbs, as they have been set.
    run.shift(X + 600, 2000, 40).unwrap();
    run.turn();
    run.copy(W, Y).unwrap();
    run.way(Function::Neg, [X + 500, X + 600, X + 600]).unwrap();
    run.way(Function::Neg, [X + 400, X + 500, X + 500]).unwrap();
    run.join();
    run.recorder.read(W as usize, 40).unwrap();
    assert_eq!(run.value_at(W), Ok(SEVEN));
    assert_eq!(run.number(W), 7);
    // In another form, perhaps.
    assert_eq!(run.value_at(X + 600), Ok(INPUT));
}

/// Where a way leaves no whole element, nothing that depends on the branch is taken for one.
#[test]
fn what_has_no_value_in_one_way_has_none() {
    let mut run = forked(Function::Neq);
    run.copy(W, X).unwrap();
    run.turn();
    // Bytes that are no element.
    run.memory[W as usize + 4] = 5;
    run.join();
    refused(run.value_at(W), PARTS);
    let mut run = forked(Function::Neq);
    run.copy(W, X).unwrap();
    run.turn();
    // A part of another.
    run.shift(W, X, 4).unwrap();
    run.join();
    refused(run.value_at(W), PARTS);
}

#[test]
fn what_is_known_is_gone_alone() {
    let mut run = Run::two();
    // A constant.
    assert_eq!(run.fork(Y), Ok(true));
    run.copy(W, X).unwrap();
    assert!(!run.turn());
    run.join();
    assert_eq!(run.value_at(W), Ok(INPUT));
    run.put(Z, 0, LONG, [0; 4]);
    assert_eq!(run.fork(Z), Ok(false));
    assert!(run.turn());
    run.join();
    // Guarded.
    run.recorder.asserted(X, true, &run.memory).unwrap();
    assert_eq!(run.fork(X), Ok(true));
    assert!(!run.turn());
    run.join();
    assert_eq!(run.steps(), [Step::IsTrue(INPUT)]);
}

#[test]
fn ways_are_within_bounds() {
    let touch = |at: &[u32]| {
        let run = &mut forked(Function::Eq);
        run.recorder.touch(at, &run.memory)
    };
    assert_eq!(touch(&[X, Y, X]), Ok(()));
    assert_eq!(touch(&[X, X + 40]), Ok(()));
    refused(touch(&[X, X + 36]), "a branch has elements that overlap");
    refused(touch(&[X + 2]), "a branch has an element at no word");
    refused(touch(&[END as u32 - 36]), "an element lies outside of the memory");
    let many: Vec<u32> = (0..ELEMENTS_MAX as u32).map(|i| 4000 + 40 * i).collect();
    assert_eq!(touch(&many), Ok(()));
    refused(touch(&[&many[..], &[X]].concat()), "a branch has too many elements");
    let mut run = Run::two();
    refused(run.recorder.turn(&mut run.memory), "a branch ends that has not begun");
}

//! Places in arrays: which entries are a table, and what ends the recording.

use super::recorder_tests::{refused, Done, Run, END, LONG, SHARED, X, Y};
use super::table::Entry;
use super::{Table, Value};
use crate::kept::FAILED;
use crate::native::Function;
use crate::Record;

/// An array of five elements, from `ARRAY` on.
const ARRAY: u32 = 4000;
const COUNT: u32 = 5;

const UNKNOWN: &str = "a place in an array depends on its inputs";

/// The input is 5, an element at `X`; the array's elements are 100, 101, ...
fn run() -> Run {
    let mut run = Run::two();
    (0..COUNT).for_each(|i| run.put(ARRAY + 40 * i, 0, LONG, [100 + u64::from(i), 0, 0, 0]));
    run
}

impl Run {
    fn index(&mut self, at: u32) -> Done<u32> {
        let plan = self.recorder.before(Function::ToInt, [at, 0, 0], &self.memory)?;
        let number = Function::ToInt.run(&self.field, &mut self.memory, [at, 0, 0]).unwrap();
        self.recorder.index(plan, at, number, &self.memory).map(|()| number)
    }

    /// The entry of an array that begins at `first` and ends before `end`.
    fn entry(&mut self, first: u32, stride: u32, end: u32) -> Done<Option<Entry>> {
        let number = self.index(X)?;
        self.recorder.scale([stride, number], [0, 1])?;
        let passed = stride * number;
        self.recorder.select(first.wrapping_add(passed.wrapping_mul(40)), end, &self.memory)
    }

    fn table(&self) -> Table {
        let mut selects = self.recorder.line.steps.iter().filter_map(|step| match step {
            super::Step::Select(_, table) => Some(*table),
            _ => None,
        });
        selects.next_back().unwrap()
    }
}

/// A table goes on as long as its entries are the same in every run, and no further than the variables.
#[test]
fn tables_are_of_what_is_the_same_in_every_run() {
    // Six entries would be needed: the input is 5.
    let first = ARRAY - 40;
    let all = |change: &dyn Fn(&mut Run)| {
        let mut run = run();
        run.put(first, 0, LONG, [99, 0, 0, 0]);
        change(&mut run);
        run.entry(first, 1, ARRAY + 40 * COUNT).map(|entry| (entry.unwrap().from, run.table().count))
    };
    let whole = Ok((first + 200, COUNT + 1));
    assert_eq!(all(&|_| {}), whole);
    // Constants whose form depends on the inputs stay constants.
    let touched = |run: &mut Run| {
        run.call(Function::Mul, [Y + 40, ARRAY, X]).unwrap();
    };
    assert_eq!(all(&touched), whole);
    // One that is a value, or a part of one, or of no form that is known.
    refused(all(&|run| run.shift(ARRAY + 40, X, 40).unwrap()), FAILED);
    refused(all(&|run| run.shift(ARRAY + 48, X + 8, 4).unwrap()), FAILED);
    refused(all(&|run| run.write(ARRAY + 44, &[5, 0, 0, 0])), FAILED);
    refused(all(&|run| run.shift(first, X, 40).unwrap()), UNKNOWN);
    assert_eq!(all(&|run| run.shift(ARRAY + 40 * COUNT, X, 40).unwrap()), whole);
    // No room for the sixth, or for any; at the memory's end; around it.
    let ends = |end| run().entry(ARRAY, 1, end).map(|entry| entry.is_some());
    refused(ends(ARRAY + 40 * COUNT), FAILED);
    assert_eq!(ends(ARRAY + 40 * COUNT + 40), Ok(true));
    refused(ends(ARRAY + 39), UNKNOWN);
    refused(ends(0), UNKNOWN);
    refused(run().entry(END as u32, 1, u32::MAX), UNKNOWN);
    refused(run().entry(u32::MAX - 3, 1, u32::MAX), UNKNOWN);
}

/// Equal tables are one; an index that is the same in every run takes none.
#[test]
fn tables_are_kept_once() {
    let mut run = run();
    (0..8).for_each(|i| run.put(ARRAY + 40 * i, 0, LONG, [7 * u64::from(i), 0, 0, 0]));
    run.entry(ARRAY, 1, ARRAY + 320).unwrap();
    let (table, constants) = (run.table(), run.recorder.line.constants.len());
    (0..8).for_each(|i| run.put(ARRAY + 400 + 40 * i, 0, LONG, [7 * u64::from(i), 0, 0, 0]));
    run.entry(ARRAY + 400, 1, ARRAY + 720).unwrap();
    assert_eq!((run.table(), run.recorder.line.constants.len()), (table, constants));
    let number = run.index(Y).unwrap();
    assert_eq!(number, 7);
    run.recorder.scale([3, 7], [0, 1]).unwrap();
    assert!(run.recorder.select(ARRAY + 40 * 21, u32::MAX, &run.memory).unwrap().is_none());
}

/// The sum of indices is a place only where each is one: `2 x` is 2 for a number that is not 1.
#[test]
fn every_index_is_bounded() {
    use super::operation::Operation::Lt;
    let bounds = |stride| {
        let mut run = run();
        (0..16).for_each(|i| run.put(ARRAY + 40 * i, 0, LONG, [7 * u64::from(i), 0, 0, 0]));
        run.entry(ARRAY, stride, ARRAY + 640).unwrap();
        let steps = run.steps();
        let compared = steps.iter().filter_map(|step| match step {
            super::Step::Compute(Lt, value, _) => Some(*value),
            _ => None,
        });
        (compared.collect::<Vec<_>>(), steps.iter().filter(|step| matches!(step, super::Step::IsFalse(_))).count())
    };
    assert_eq!(bounds(1), (vec![Value::Input(0)], 1));
    let (compared, guards) = bounds(2);
    assert_eq!((compared[0], compared.len(), guards), (Value::Input(0), 2, 2));
}

/// A product of two indices is no place that is known, and one with a number that is the same in every run scales what is a part of it.
#[test]
fn indices_are_linear() {
    let parts = |at: [u32; 2], counts| {
        let mut run = run();
        let numbers = at.map(|at| run.index(at).unwrap());
        run.recorder.scale(numbers, counts)
    };
    refused(parts([X, X], [1, 1]), UNKNOWN);
    refused(parts([X, X], [2, 1]), UNKNOWN);
    assert_eq!(parts([X, Y], [1, 1]), Ok(()));
    assert_eq!(parts([Y, X], [1, 1]), Ok(()));
    let mut run = run();
    run.index(X).unwrap();
    run.recorder.scale([5, 1 << 31], [1, 0]).unwrap();
    refused(run.recorder.scale([2, 5], [0, 1]), UNKNOWN);
}

/// A hostile module's tables take no more time than other work behind conditions.
#[test]
fn tables_are_not_read_for_ever() {
    let mut run = Run::new(Record::All);
    run.shift(X, SHARED, 40).unwrap();
    let end = (0..).map(|_| run.entry(ARRAY, 1, END as u32)).take(1 << 24).find_map(Result::err);
    assert_eq!(end, Some(super::Refused(super::explore::TOO_MANY)));
}

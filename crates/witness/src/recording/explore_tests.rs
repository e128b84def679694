//! What is left of a function that was gone all ways, as a recorder sees it.

use super::explore::{STRAYED, TOO_MANY};
use super::hostile_tests::{call_number, calls, code, constant, module, number, Memory, STORE};
use super::operation::Operation;
use super::recorder_tests::{refused, Done, Run, END, INPUT, LONG, PARTS, X, Y, Z};
use super::{Refused, Step, Value};
use crate::native::{Function, Parts};
use crate::{calculate, calculate_kept, Limits, Record, Used};

/// Where a function's variables begin, and one of them.
const BASE: u32 = 5000;
const OWN: u32 = BASE + 80;
/// Places of its caller's.
const W: u32 = 3300;
const SEVEN: u32 = 3400;

/// `X` is the input, 5, and `Y` 7.
fn called() -> Run {
    let mut run = Run::two();
    run.put(SEVEN, 0, LONG, [7, 0, 0, 0]);
    run.write(0, &BASE.to_le_bytes());
    run.recorder.enter(&run.memory).unwrap();
    run
}

impl Run {
    /// A call of a field function, as the module makes it.
    fn does(&mut self, function: Function, arguments: [u32; 3]) -> Done<u32> {
        let used = if function == Function::IsTrue { &arguments[..1] } else { &arguments[..] };
        self.recorder.touch(used, &self.memory)?;
        self.call(function, arguments)
    }

    fn stores(&mut self, at: u32, number: u32) {
        self.recorder.save(&self.memory, at as usize, 4).unwrap();
        self.write(at, &number.to_le_bytes());
    }

    /// How the module is told to go on by `X - by`.
    fn goes(&mut self, by: u32) -> Done<bool> {
        self.stores(OWN, by);
        self.stores(OWN + 4, 0);
        self.does(Function::Sub, [OWN + 40, X, OWN])?;
        Ok(self.does(Function::IsTrue, [OWN + 40, 0, 0])? != 0)
    }

    fn leaves(&mut self) -> Done<bool> {
        self.recorder.leave(0, &mut self.memory)
    }
}

#[test]
fn conditions_choose_what_ways_leave() {
    // The run's way is the first, or the second.
    for (by, expected) in [(3, 10), (5, 2)] {
        let mut run = called();
        let mut ways = Vec::new();
        loop {
            let way = run.goes(by).unwrap();
            assert_eq!(run.number(W), 0, "what the way before it wrote is undone");
            run.does(if way { Function::Add } else { Function::Sub }, [W, X, if way { X } else { Y }]).unwrap();
            ways.push(way);
            if !run.leaves().unwrap() {
                break;
            }
        }
        assert_eq!(ways, [true, false]);
        let expected = if expected == 2 { run.field.neg([2, 0, 0, 0]) } else { [expected, 0, 0, 0] };
        let mut limbs = [0; 4];
        Function::ToLongNormal.run(&run.field, &mut run.memory, [W, 0, 0]).unwrap();
        limbs.iter_mut().zip(run.memory[W as usize + 8..].chunks(8)).for_each(|(limb, bytes)| {
            *limb = u64::from_le_bytes(bytes.try_into().unwrap());
        });
        assert_eq!(limbs, expected);
        let (Ok(Value::Result(last)), Value::Result(first)) = (run.value_at(W), Value::Result(0)) else { panic!() };
        let steps = run.steps();
        assert!(matches!(steps[first as usize], Step::Compute(Operation::Sub, INPUT, _)));
        assert!(matches!(steps[last as usize], Step::Compute(Operation::Add, ..)));
        assert!(!steps.iter().any(|step| matches!(step, Step::IsTrue(_) | Step::IsFalse(_))), "no guard is needed");
    }
}

/// Constants that differ are chosen, too; what is no element, or the function's own, is nobody's.
#[test]
fn what_has_no_value_on_all_ways_is_unknown() {
    let mut run = called();
    loop {
        let way = run.goes(3).unwrap();
        run.stores(X + 400, u32::from(way));
        run.does(Function::Neg, [OWN + 80, if way { X } else { Y }, 0]).unwrap();
        run.stores(OWN + 120, 1);
        run.stores(W, u32::from(way) + 8);
        run.does(Function::Add, [W + 40, W, W]).unwrap();
        // No element on one way.
        run.does(Function::Neg, [W + 80, X, 0]).unwrap();
        if !way {
            run.stores(W + 84, 5);
        }
        if !run.leaves().unwrap() {
            break;
        }
    }
    run.recorder.read(X as usize + 400, 4).unwrap_err();
    run.recorder.read(OWN as usize + 80, 4).unwrap_err();
    run.recorder.read(OWN as usize + 120, 4).unwrap_err();
    assert_eq!(run.number(W + 40), 18);
    assert!(matches!(run.value_at(W + 40), Ok(Value::Result(_))));
    assert!(run.recorder.read(W as usize + 40, 4).is_err());
    refused(run.value_at(W + 80), PARTS);
}

#[test]
fn calls_within_are_undone_too() {
    let mut run = called();
    let mut ways = 0;
    loop {
        let way = run.goes(3).unwrap();
        assert_eq!((run.number(W), run.memory[Z as usize]), (0, 0));
        run.recorder.enter(&run.memory).unwrap();
        loop {
            // The same condition is known, another is not.
            assert_eq!(run.goes(3).unwrap(), way);
            let inner = run.goes(4).unwrap();
            run.does(Function::Add, [W, X, if inner { X } else { Y }]).unwrap();
            run.stores(Z, 3);
            ways += 1;
            if !run.leaves().unwrap() {
                break;
            }
        }
        if !run.leaves().unwrap() {
            break;
        }
    }
    assert_eq!((ways, run.number(W)), (4, 10));
    run.recorder.read(Z as usize, 4).unwrap();
    assert!(run.recorder.finish().is_ok());
}

/// What would end a run is a failure where its conditions hold, and nothing elsewhere.
#[test]
fn what_fails_on_some_ways_is_guarded() {
    let mut run = called();
    while {
        if run.goes(3).unwrap() {
            assert_eq!(run.recorder.asserted(X, true, &run.memory), Ok(true));
        }
        run.leaves().unwrap()
    } {}
    let steps = run.steps();
    assert!(matches!(steps[..], [_, _, .., Step::IsFalse(_)]), "{steps:?}");
    // It does not hold on a way that is not the run's, or on the run's.
    let mut run = called();
    assert_eq!(run.goes(3), Ok(true));
    refused(run.recorder.asserted(X, false, &run.memory), "what it asserts does not hold");
    let mut run = called();
    run.goes(3).unwrap();
    run.leaves().unwrap();
    assert_eq!(run.goes(3), Ok(false));
    assert_eq!(run.recorder.asserted(X, false, &run.memory), Ok(true));
    run.put(Z, 0, LONG, [0; 4]);
    assert_eq!(run.recorder.asserted(Z, false, &run.memory), Ok(true));
    assert_eq!(run.recorder.repeats(X, true, &run.memory), Ok(false));
    refused(run.recorder.finish().map(|_| ()), STRAYED);
    // A loop on the run's way.
    let mut run = called();
    assert_eq!(run.recorder.repeats(Y, true, &run.memory), Ok(true));
    assert!(run.recorder.repeats(X, true, &run.memory).is_err());
}

#[test]
fn functions_are_within_bounds() {
    // What it returns, and the memory that it has.
    let mut run = called();
    run.goes(3).unwrap();
    assert_eq!(run.recorder.leave(0, &mut run.memory), Ok(true));
    run.goes(3).unwrap();
    refused(run.recorder.leave(1, &mut run.memory), STRAYED);
    let mut run = called();
    run.goes(3).unwrap();
    run.memory.resize(2 * END, 0);
    refused(run.leaves(), STRAYED);
    // Without conditions it may grow.
    let mut run = called();
    run.memory.resize(2 * END, 0);
    assert_eq!(run.leaves(), Ok(false));
    refused(run.leaves(), "a function ends that has not begun");
    // 2^9 ways, and one without an end.
    let mut run = called();
    let many = (0..300)
        .try_for_each(|_| (0..9).try_for_each(|by| run.goes(by).map(drop)).and_then(|()| run.leaves().map(drop)));
    assert_eq!(many, Err(Refused(TOO_MANY)));
    let mut run = called();
    assert_eq!((0..300).try_for_each(|by| run.goes(by).map(drop)), Err(Refused(TOO_MANY)));
    let mut run = called();
    let deep = (0..100).try_for_each(|_| run.recorder.enter(&run.memory));
    refused(deep, "its functions call each other too deep");
}

/// What is put aside counts as steps that take as much memory, until the call is over.
#[test]
fn what_is_put_aside_is_counted() {
    let mut run = called();
    let (before, mut most) = (run.recorder.steps(), 0);
    loop {
        let way = run.goes(3).unwrap();
        // Some 1600 bytes below the function's own, in chunks of 32 words.
        (0..400).for_each(|i| run.stores(W + 4 * i, i << 8 | u32::from(way)));
        most = most.max(run.recorder.steps());
        if !run.leaves().unwrap() {
            break;
        }
        // Of the way that has been gone its words are kept: 400 of 24 bytes.
        assert!(run.recorder.steps() > most + 400 * 24 / 64 - 10, "{} {most}", run.recorder.steps());
    }
    // 13 chunks of 32 words, each with its tag, as it was and as a way leaves it.
    assert!(most > before + 13 * (32 * 20 + 32 * 24) / 64, "{most} {before}");
    let (line, after) = (run.recorder.line.steps.len() + run.recorder.line.constants.len(), run.recorder.steps());
    assert_eq!(after, line, "nothing is put aside any more");
}

/// Writes behind conditions, and the words that ways leave, have a bound for all calls together.
#[test]
fn work_behind_conditions_is_bounded() {
    let mut run = called();
    let save = |run: &mut Run, count: usize| (0..count).try_for_each(|_| run.recorder.save(&run.memory, Z as usize, 4));
    // Before any condition there is none.
    save(&mut run, 1 << 10).unwrap();
    run.goes(3).unwrap();
    // All chunks are saved that are written below.
    (0..400).for_each(|i| run.stores(W + 4 * i, 1));
    save(&mut run, (1 << 26) - 600).unwrap();
    let mut other = called();
    other.goes(3).unwrap();
    (0..400).for_each(|i| other.stores(W + 4 * i, 1));
    assert_eq!(other.leaves(), Ok(true), "few words");
    refused(run.leaves(), TOO_MANY);
    let mut run = called();
    run.goes(3).unwrap();
    refused(save(&mut run, 1 << 27), TOO_MANY);
}

/// Of a program whose functions have too many ways it is remembered that they have.
#[test]
fn too_many_ways_are_remembered() {
    let parts = Parts::read(FUNCTIONS).unwrap();
    let of_witness = (number(FUNCTIONS, "getWitness") - parts.imports) as usize;
    let call = |function, arguments: &[i32]| calls(FUNCTIONS, function, arguments);
    // In each call, once the first function's result is there, nine conditions: its powers.
    let conditions = |count: usize| {
        let first = call(Function::Add, &[COUNT, ABOVE, ABOVE]);
        let next = [call(Function::Mul, &[COUNT, COUNT, COUNT]), call(Function::IsTrue, &[COUNT]), vec![0x1a]].concat();
        let prefix = [first, next.repeat(count)].concat();
        module(FUNCTIONS, false, &|index| (index == compares(&parts, of_witness)).then(|| prefix.clone()))
    };
    let kept = |wasm: &[u8]| {
        let memory = Memory::default();
        let json = br#"{"a": [3, 2, 4], "b": [5, 1, 3]}"#.to_vec();
        calculate_kept(wasm, json.into(), Limits::default(), &|| false, &memory, Record::Unbranched).unwrap();
        let used = memory.used.lock().unwrap()[0];
        (used, memory.kept())
    };
    assert_eq!(kept(&conditions(9)), (Used::Refused(TOO_MANY), b"branches".to_vec()));
    assert_eq!(kept(&conditions(1)).0, Used::Recorded);
}

const FUNCTIONS: &[u8] = include_bytes!("../../tests/data/functions.wasm");
/// The signal of its first function's result.
const ABOVE: i32 = 6240;
/// Where messages would be, below the functions' variables.
const COUNT: i32 = 6880;

/// Records runs, and replays them on other inputs: how all were done.
fn runs(wasm: &[u8]) -> Vec<Used> {
    let mut used = Vec::new();
    for first in 0..4 {
        let memory = Memory::default();
        for i in 0..8 {
            let (a, b) = ([3, (first + i) % 3, 4], [5, 1, 3 + (first + i / 3) % 3]);
            let json = || format!(r#"{{"a": {a:?}, "b": {b:?}}}"#).into_bytes().into();
            let limits = Limits { memory_bytes: 64 << 20, ..Limits::default() };
            let expected = calculate(wasm, json(), limits, &|| false).unwrap();
            let found = calculate_kept(wasm, json(), limits, &|| false, &memory, Record::All).unwrap();
            assert!(found.values() == expected.values(), "{a:?} {b:?}");
        }
        used.extend(memory.used.into_inner().unwrap());
    }
    used
}

/// Each kind of write to what was there before a call: the next way finds it as it was.
#[test]
fn writes_of_all_kinds_are_undone() {
    // What is written lies apart from all else: what lies together is saved together.
    const AT: i32 = 6912;
    const SOURCE: i32 = 7040;
    const NEXT: i32 = 7080;
    let parts = Parts::read(FUNCTIONS).unwrap();
    let of_witness = (number(FUNCTIONS, "getWitness") - parts.imports) as usize;
    let of_inputs = (number(FUNCTIONS, "setInputSignal") - parts.imports) as usize;
    let call = |function, arguments: &[i32]| calls(FUNCTIONS, function, arguments);
    let copy = (0..parts.bodies.len()).find(|&index| parts.is_copy(index)).unwrap() as u32 + parts.imports;
    // The first of the circuit's functions compares. What lies there is added to `NEXT`, which takes its place, or it becomes 0.
    let next = [call_number(copy, &[SOURCE, AT]), call(Function::Add, &[NEXT, NEXT, SOURCE])].concat();
    let load = b"\x28\x02\0";
    let kinds: [&[Vec<u8>]; 5] = [
        &[constant(AT + 8), constant(NEXT + 8), load.to_vec(), b"\x41\0\x6a".to_vec(), STORE.to_vec()],
        &[constant(AT + 8), constant(NEXT + 8), load.to_vec(), STORE.to_vec()],
        &[call(Function::CopyN, &[AT, NEXT, 1])],
        &[call(Function::IntCopy, &[NEXT + 8, AT + 8])],
        &[call(Function::IntZero, &[AT + 8])],
    ];
    let tell = call(Function::Add, &[ABOVE, NEXT, AT + 40]);
    let long = |at: i32, limb: u8| {
        code(&[&constant(at), b"\x41\x80\x80\x80\x80\x78", STORE, &constant(at + 4), &[0x41, limb], STORE])
    };
    for kind in kinds {
        let count = [&next[..], &kind.concat()].concat();
        let begin = [long(AT + 4, 5), long(NEXT + 4, 1)].concat();
        let wasm = module(FUNCTIONS, false, &|index| match index {
            _ if index == of_witness => Some(tell.clone()),
            _ if index == of_inputs => Some(begin.clone()),
            _ => (index == compares(&parts, of_witness)).then(|| count.clone()),
        });
        assert!(!runs(&wasm).iter().any(|used| !matches!(used, Used::Recorded | Used::Replayed)));
    }
}

/// The first function of the circuit.
fn compares(parts: &Parts, behind: usize) -> usize {
    let is_its = |&index: &usize| {
        let ty = &parts.types[parts.functions[index] as usize];
        (ty.params().len(), ty.results().len()) == (2, 1)
    };
    (behind + 1..parts.functions.len()).find(is_its).unwrap()
}

/// A call would not begin again with a global that it has set: its module's functions are not called again.
#[test]
fn functions_of_modules_that_set_globals_are_called_once() {
    let parts = Parts::read(FUNCTIONS).unwrap();
    let of_witness = number(FUNCTIONS, "getWitness") - parts.imports;
    // Functions of the field are before it.
    let is_circuits = |index: usize| {
        let ty = &parts.types[parts.functions[index] as usize];
        index > of_witness as usize && (ty.params().len(), ty.results().len()) == (2, 1)
    };
    let add = |to: i32| calls(FUNCTIONS, Function::Add, &[to, COUNT, COUNT + 80]);
    // How many calls there were becomes an element, which is short.
    let store = code(&[&constant(COUNT), b"\x23\0", STORE, &constant(COUNT + 4), b"\x41\0", STORE]);
    let count = code(&[b"\x23\0\x41\x01\x6a\x24\0", &store, &add(COUNT + 40)]);
    let tell = calls(FUNCTIONS, Function::Add, &[ABOVE, COUNT + 40, COUNT + 80]);
    let prefix = |index: usize| match index == of_witness as usize {
        true => Some(tell.clone()),
        false => is_circuits(index).then(|| count.clone()),
    };
    let wasm = module(FUNCTIONS, true, &prefix);
    assert!(runs(&wasm).contains(&Used::Left));
}

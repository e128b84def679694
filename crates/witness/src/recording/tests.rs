//! Operations beside circom's functions, and recordings that are damaged.

use super::file::{operation, write, About, Recording, MUL_ADD, MUL_ADD_BY, MUL_BY, SELECT};
use super::operation::Operation;
use super::{replay, Line, Recorder, Step, Table, Value};
use crate::native::{prime, Field, Function, Limbs};
use crate::{Limit, Limits};

/// Random numbers, always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    /// A number below the prime: small, negative and small, of few bits, near half, or any.
    fn value(&mut self, field: &Field) -> Limbs {
        let small = [self.next() % 300, 0, 0, 0];
        match self.next() % 6 {
            0 => small,
            1 => field.neg(small),
            2 => field.add(field.half(), [self.next() % 3, 0, 0, 0]),
            3 => [self.next() >> (self.next() % 64), 0, 0, 0],
            4 => [self.next(), self.next(), 0, 0],
            _ => std::array::from_fn(|i| self.next() >> if i == 3 { 3 } else { 0 }),
        }
    }
}

/// An element with this value in a form: 0 long, 1 in Montgomery's, and 2 and 3 the same of a short one, where it is short.
fn element(field: &Field, value: Limbs, form: u64) -> [u8; 40] {
    let is_negative = crate::native::is_above(value, field.half());
    let magnitude = if is_negative { field.neg(value) } else { value };
    let is_short = magnitude[1..] == [0; 3] && magnitude[0] < 1 << 31;
    let number = if is_negative { -(magnitude[0] as i64) } else { magnitude[0] as i64 } as i32;
    let (flags, limbs): (u32, Limbs) = match form {
        2 if is_short => (0, [7, 8, 9, 10]),
        3 if is_short => (0x4000_0000, field.mul(value, field.r2)),
        1 | 3 => (0xc000_0000, field.mul(value, field.r2)),
        _ => (0x8000_0000, value),
    };
    let number = if flags & 0x8000_0000 == 0 { number } else { 77 };
    let mut bytes = [0; 40];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes[4..8].copy_from_slice(&flags.to_le_bytes());
    bytes[8..].copy_from_slice(&limbs.map(u64::to_le_bytes).concat());
    bytes
}

fn value(field: &Field, element: &[u8]) -> Limbs {
    let flags = u32::from_le_bytes(element[4..8].try_into().unwrap());
    let limbs = std::array::from_fn(|i| u64::from_le_bytes(element[8 + 8 * i..16 + 8 * i].try_into().unwrap()));
    match flags {
        0x8000_0000 => limbs,
        0xc000_0000 => field.mul(limbs, [1, 0, 0, 0]),
        _ => {
            let number = i32::from_le_bytes(element[..4].try_into().unwrap());
            let magnitude = [u64::from(number.unsigned_abs()), 0, 0, 0];
            if number < 0 {
                field.neg(magnitude)
            } else {
                magnitude
            }
        }
    }
}

/// The functions are those that `native/tests.rs` holds against circom's own code.
#[test]
fn operations_are_circoms_functions_on_every_form() {
    let mut random = Random(1);
    for field in (0..2).map(|number| Field::new(prime(number).unwrap())) {
        let mut memory = vec![0u8; 4096];
        memory[88..96].copy_from_slice(&u64::from(field.bits).to_le_bytes());
        for round in 0..4000 {
            let (a, mut b) = (random.value(&field), random.value(&field));
            if round % 7 == 0 {
                b = a;
            }
            let forms = random.next();
            for &function in Function::ALL {
                let Some(operation) = Operation::of(function) else { continue };
                // Slow ones less often.
                if operation.steps() > 1000 && round % 40 != 0 {
                    continue;
                }
                let is_placed = operation.may_replace() && forms & 16 == 16;
                let to = if is_placed { 2000 } else { 3000 };
                memory[2000..2040].copy_from_slice(&element(&field, a, forms & 3));
                memory[2040..2080].copy_from_slice(&element(&field, b, forms >> 2 & 3));
                let expected = operation.compute(&field, a, b);
                let done = function.run(&field, &mut memory, [to, 2000, 2040]);
                assert_eq!(done.is_ok(), expected.is_some(), "{function:?}");
                let Some(expected) = expected else { continue };
                let to = to as usize;
                assert_eq!(value(&field, &memory[to..to + 40]), expected, "{function:?} {a:x?} {b:x?} {forms}");
                if !is_placed {
                    assert_eq!(value(&field, &memory[2000..2040]), a, "{function:?}");
                }
                assert_eq!(value(&field, &memory[2040..2080]), b, "{function:?}");
            }
            memory[2000..2040].copy_from_slice(&element(&field, a, forms & 3));
            let is_true = Function::IsTrue.run(&field, &mut memory, [2000, 0, 0]).unwrap();
            assert_eq!(is_true != 0, a != [0; 4]);
        }
    }
    for (number, operation_) in Operation::ALL.into_iter().enumerate() {
        assert_eq!((operation_ as usize, operation(number as u8)), (number, Some(operation_)));
    }
}

/// Two inputs; wires 1, a + b, and the quotient of integers is computed though nothing needs it.
fn line() -> (Line, Vec<(String, u32)>) {
    let (a, b, one) = (Value::Input(0), Value::Input(1), Value::Constant(0));
    let steps = vec![
        Step::Compute(Operation::Add, a, b),
        Step::Compute(Operation::Mul, a, b),
        Step::IsTrue(Value::Result(1)),
        Step::Compute(Operation::Neg, b, b),
        Step::Compute(Operation::Idiv, a, b),
        Step::Compute(Operation::Sub, a, Value::Constant(1)),
        Step::IsFalse(Value::Result(5)),
    ];
    let wires = vec![one, Value::Result(0), b];
    (Line { steps, constants: vec![[1, 0, 0, 0], [3, 0, 0, 0]], wires }, vec![("a".into(), 1), ("b".into(), 1)])
}

fn written() -> (Vec<u8>, blake3::Hash) {
    let (line, signals) = line();
    let program = blake3::hash(b"program");
    (write(&line, &About { program: &program, field: 0, signals: &signals }).unwrap(), program)
}

fn found(recording: &Recording, json: &str, limits: Limits) -> Option<Vec<u64>> {
    let witness = replay(recording, json.as_bytes(), limits, &|| false).unwrap()?;
    Some(witness.values().chunks(32).map(|bytes| u64::from_le_bytes(bytes[..8].try_into().unwrap())).collect())
}

#[test]
fn guards_and_divisions_by_zero_leave_the_recording() {
    let (bytes, program) = written();
    let recording = Recording::read(&bytes, &program).unwrap();
    let of = |json| found(&recording, json, Limits::default());
    assert_eq!(of(r#"{"a": 3, "b": 4}"#), Some(vec![1, 7, 4]));
    assert_eq!(of(r#"{"a": 3, "b": 0}"#), None);
    assert_eq!(of(r#"{"a": 4, "b": 4}"#), None);
    // Other inputs than the recorded run's.
    for json in
        [r#"{"a": 3}"#, r#"{"a": 3, "b": [4, 4]}"#, r#"{"a": 3, "b": 4, "c": 1}"#, r#"{"a": 3, "b": "x"}"#, "3", ""]
    {
        assert_eq!(of(json), None, "{json}");
    }
    // A hundred constants more and as many wires take as much more memory.
    let least = |recording: &Recording| {
        let is_enough = |&memory_bytes: &usize| {
            found(recording, r#"{"a": 3, "b": 4}"#, Limits { memory_bytes, ..Limits::default() }).is_some()
        };
        (0..1000).map(|i| 32 * i).find(is_enough).unwrap()
    };
    let (mut longer, signals) = line();
    longer.constants.extend((0..100).map(|i| [i, 0, 0, 0]));
    longer.wires.extend((2..102).map(Value::Constant));
    let longer = write(&longer, &About { program: &program, field: 0, signals: &signals }).unwrap();
    assert_eq!(least(&Recording::read(&longer, &program).unwrap()), least(&recording) + 6400);
    let few = Limits { steps: 1000, ..Limits::default() };
    let error = replay(&recording, br#"{"a": 3, "b": 4}"#, few, &|| false).unwrap_err();
    assert!(matches!(error, crate::Error::Limit(Limit::Steps, _)), "{error}");
    let short = Limits { time: Some(std::time::Duration::ZERO), ..Limits::default() };
    let error = replay(&recording, br#"{"a": 3, "b": 4}"#, short, &|| false).unwrap_err();
    assert!(matches!(error, crate::Error::Limit(Limit::Time, _)), "{error}");
    assert!(matches!(replay(&recording, br#"{"a": 3, "b": 4}"#, few, &|| true), Err(crate::Error::Stopped)));
}

#[test]
fn damaged_and_foreign_recordings_are_none() {
    let (bytes, program) = written();
    assert!(Recording::read(&bytes, &blake3::hash(b"other")).is_none());
    for i in 0..bytes.len() {
        assert!(Recording::read(&bytes[..i], &program).is_none(), "{i}");
        let mut other = bytes.clone();
        other[i] ^= 1 << (i % 8);
        assert!(Recording::read(&other, &program).is_none(), "{i}");
    }
}

/// Bytes of the recording up to its hash with one change, as they would be had they been made so.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> (Vec<u8>, blake3::Hash) {
    let (mut bytes, program) = written();
    bytes.truncate(bytes.len() - 32);
    change(&mut bytes);
    (bytes, program)
}

/// Each part that no recording of ours has: there is no witness, where a use unchecked would give a wrong one.
#[test]
fn each_reference_and_length_is_checked() {
    let replayed = |change: &dyn Fn(&mut Vec<u8>)| {
        let (bytes, program) = changed(change);
        found(&Recording::parse(&bytes, &program)?, r#"{"a": 3, "b": 4}"#, Limits::default())
    };
    assert_eq!(replayed(&|_| ()), Some(vec![1, 7, 4]));
    // Of 16 + 32 + 1 bytes, then counts, names, constants, steps, and wires, of which each has a byte.
    let count = |i: usize| 49 + 4 * i;
    let names = count(6);
    let constants = names + 2 * (2 + 1 + 4);
    let steps = constants + 64;
    let end = changed(|_| ()).0.len();
    assert_eq!(changed(|_| ()).0[end - 3..], [1, 1 << 2 | 2, 1 << 2]);
    // An input and a kept value beyond the last, which others lie behind, and a kept one before the first.
    for (at, byte) in [(end - 1, 2 << 2), (end - 2, 2), (end - 2, 2 << 2 | 2), (end - 1, 2 << 2 | 1)] {
        assert_eq!(replayed(&|bytes| bytes[at] = byte), None, "{byte}");
    }
    // The first wire is 3.
    assert_eq!(replayed(&|bytes| bytes[end - 3] = 1 << 2 | 1), None);
    // One wire more than is said, and one less.
    assert_eq!(replayed(&|bytes| bytes.push(1)), None);
    assert_eq!(replayed(&|bytes| bytes.truncate(end - 1)), None);
    // A constant that is 3 and the prime, from which a step takes 3.
    let mut above = prime(0).unwrap();
    above[0] += 3;
    let above = above.map(u64::to_le_bytes).concat();
    assert_eq!(replayed(&|bytes| bytes[constants + 32..steps].copy_from_slice(&above)), None);
    // Another number of values that are kept, and of one input, and a name that is none.
    for at in [count(2), names + 3] {
        assert_eq!(replayed(&|bytes| bytes[at] += 1), None, "{at}");
    }
    assert_eq!(replayed(&|bytes| bytes[count(2)] = 0), None);
    assert_eq!(replayed(&|bytes| bytes[names + 2] = 0xff), None);
    // No operation, in place of a guard, a place that is not there, and a number of more than 35 bits.
    assert_eq!(changed(|_| ()).0[steps + 8], 0x80);
    assert_eq!(replayed(&|bytes| bytes[steps + 8] = 0x86), None);
    assert_eq!(replayed(&|bytes| bytes[steps + 5] = 9), None);
    let long = |bytes: &mut Vec<u8>| {
        bytes.truncate(end - 1);
        bytes.extend([0x84, 0x80, 0x80, 0x80, 0x80, 0]);
    };
    assert_eq!(replayed(&long), None);
    // More values than there are steps: the memory that they take is bounded by the file.
    for i in [2, 3, 4] {
        let (bytes, program) = changed(|bytes| bytes[count(i)..count(i) + 4].copy_from_slice(&[0xff, 0xff, 0, 0]));
        assert!(Recording::parse(&bytes, &program).is_none(), "{i}");
    }
    // Of another field.
    assert_eq!(replayed(&|bytes| bytes[48] = 9), None);
}

/// One input; wires 1, and an entry of each of two tables that overlap, of three constants and of two.
fn selects() -> (Vec<u8>, blake3::Hash) {
    let (a, whole) = (Value::Input(0), Table { first: 1, count: 3 });
    let steps = vec![
        Step::Select(a, whole),
        Step::Select(a, Table { first: 3, count: 1 }),
        Step::Compute(Operation::Add, Value::Result(0), a),
        // What nothing needs is left out.
        Step::Select(Value::Result(0), whole),
        Step::Select(Value::Result(2), whole),
    ];
    let constants = vec![[1, 0, 0, 0], [0, 0, 0, 0], [10, 0, 0, 0], [20, 0, 0, 0]];
    let wires = vec![Value::Constant(0), Value::Result(2), Value::Result(1), Value::Result(4)];
    let (program, signals) = (blake3::hash(b"program"), [("a".to_string(), 1)]);
    (
        write(&Line { steps, constants, wires }, &About { program: &program, field: 0, signals: &signals }).unwrap(),
        program,
    )
}

#[test]
fn entries_are_selected_where_there_are_such() {
    let (bytes, program) = selects();
    let recording = Recording::read(&bytes, &program).unwrap();
    let of = |a: &str| found(&recording, &format!(r#"{{"a": "{a}"}}"#), Limits::default());
    assert_eq!(of("0"), Some(vec![1, 0, 20, 0]));
    assert_eq!(of("1"), Some(vec![1, 11, 0, 0]));
    assert_eq!(of("2"), Some(vec![1, 22, 0, 0]));
    // None of this number: 0.
    for a in ["-1", "3", "4", "18446744073709551615", "18446744073709551616", "340282366920938463463374607431768211456"]
    {
        assert_eq!(of(a).unwrap()[2..], [0, 0], "{a}");
    }
    // Tables that end beyond the constants, or begin there.
    let at = 49 + 6 * 4 + (2 + 1 + 4) + 4 * 32;
    assert_eq!((bytes[at], &bytes[at + 3..at + 5]), (SELECT, &[1, 3][..]));
    for (first, count, is_there) in
        [(1, 3, true), (0, 4, true), (2, 3, false), (4, 0, true), (5, 0, false), (127, 127, false)]
    {
        let mut content = bytes[..bytes.len() - 32].to_vec();
        content[at + 3..at + 5].copy_from_slice(&[first, count]);
        let recording = Recording::parse(&content, &program).unwrap();
        assert_eq!(found(&recording, r#"{"a": 1}"#, Limits::default()).is_some(), is_there, "{first} {count}");
    }
}

/// Random lines, beside the same operations one by one: products within sums, values used once and twice, and those that nothing needs.
#[test]
fn lines_are_computed_as_they_are() {
    let field = Field::new(prime(0).unwrap());
    let mut random = Random(3);
    let (program, signals) = (blake3::hash(b"program"), [("a".to_string(), 2)]);
    let (mut products, mut sums, mut factors) = (0, 0, 0);
    for round in 0..300 {
        let mut constants = vec![[1, 0, 0, 0]];
        constants.extend((0..3).map(|_| random.value(&field)));
        let inputs = [[random.next() >> 20, 0, 0, 0], [random.next() >> 1, random.next(), 0, 0]];
        let (mut steps, mut found) = (Vec::new(), Vec::<Limbs>::new());
        let of = |value, found: &[Limbs]| match value {
            Value::Input(i) => inputs[i as usize],
            Value::Constant(i) => constants[i as usize],
            Value::Result(i) => found[i as usize],
        };
        for i in 0..4 + round as u32 % 60 {
            let mut any = || match random.next() >> 33 & 7 {
                0 => Value::Input((random.next() >> 40) as u32 & 1),
                1 => Value::Constant((random.next() >> 40) as u32 & 3),
                // Mostly of the last few.
                _ if i > 0 => Value::Result(i - 1 - (random.next() >> 40) as u32 % i.min(4)),
                _ => Value::Input(0),
            };
            let (a, b) = (any(), any());
            let operation =
                [Operation::Mul, Operation::Add, Operation::Add, Operation::Sub][random.next() as usize >> 9 & 3];
            found.push(operation.compute(&field, of(a, &found), of(b, &found)).unwrap());
            steps.push(Step::Compute(operation, a, b));
        }
        let count = steps.len() as u64;
        let mut wires = vec![Value::Constant(0)];
        wires.extend((0..count / 4 + 1).map(|_| Value::Result((random.next() >> 30) as u32 % count as u32)));
        let expected: Vec<u8> =
            wires.iter().flat_map(|&wire| of(wire, &found).map(u64::to_le_bytes).concat()).collect();
        products += steps.iter().filter(|step| matches!(step, Step::Compute(Operation::Mul, ..))).count();
        let bytes = write(
            &Line { steps, constants: constants.clone(), wires },
            &About { program: &program, field: 0, signals: &signals },
        );
        let bytes = bytes.unwrap();
        let recording = Recording::read(&bytes, &program).unwrap();
        let number = |limbs: Limbs| num_bigint::BigUint::from_bytes_le(&limbs.map(u64::to_le_bytes).concat());
        let json = format!(r#"{{"a": ["{}", "{}"]}}"#, number(inputs[0]), number(inputs[1]));
        let witness = replay(&recording, json.as_bytes(), Limits::default(), &|| false).unwrap().unwrap();
        assert!(witness.values() == expected, "round {round}");
        sums += bytes.iter().filter(|&&byte| byte == MUL_ADD).count();
        factors += bytes.iter().filter(|&&byte| byte == MUL_BY || byte == MUL_ADD_BY).count();
    }
    assert!(products > 1000 && sums > 300 && factors > 300, "{products} {sums} {factors}");
}

/// Constants that nothing needs are not kept, and what a constant is multiplied with says in which form it is.
#[test]
fn constants_are_kept_as_they_are_needed() {
    let field = Field::new(prime(0).unwrap());
    let (a, mixed) = (Value::Input(0), field.half());
    let kept = |steps: &[Step], wires: &[Value]| {
        let steps = [&[Step::Compute(Operation::Bit, a, Value::Constant(2))], steps].concat();
        let constants = vec![[1, 0, 0, 0], [9, 0, 0, 0], [0, 0, 0, 0], mixed, [1 << 9, 0, 0, 0]];
        let line = Line { steps, constants, wires: [&[Value::Constant(0), Value::Result(0)], wires].concat() };
        let (program, signals) = (blake3::hash(b"program"), [("a".to_string(), 1)]);
        let bytes = write(&line, &About { program: &program, field: 0, signals: &signals }).unwrap();
        let recording = Recording::read(&bytes, &program).unwrap();
        let constants = recording.constants.chunks(32).map(|bytes| bytes.to_vec()).collect::<Vec<_>>();
        (constants, found(&recording, r#"{"a": 3}"#, Limits::default()).unwrap())
    };
    let bytes = |limbs: Limbs| limbs.map(u64::to_le_bytes).concat();
    let [one, zero] = [[1, 0, 0, 0], [0; 4]].map(bytes);
    let product = |other| Step::Compute(Operation::Mul, Value::Constant(3), other);
    // Of 1.5 (p - 1), p - 1 is left, and half of that less 1.
    let third = field.sub(field.half(), [1, 0, 0, 0]);
    let expected = vec![1, 1, third[0]];
    let factor = field.mul(mixed, field.r2);
    assert_eq!(kept(&[product(a)], &[Value::Result(1)]), (vec![one.clone(), zero.clone(), bytes(factor)], expected));
    // As it is, too, where a wire needs it.
    let (constants, _) = kept(&[product(a)], &[Value::Result(1), Value::Constant(3)]);
    assert_eq!(constants, [one.clone(), zero.clone(), bytes(mixed), bytes(factor)]);
    // With a bit, or a product of two, it is multiplied as it is, and so is a small number.
    let bits = Step::Compute(Operation::Mul, Value::Result(0), Value::Result(0));
    let found = kept(&[bits, product(Value::Result(1))], &[Value::Result(2)]);
    assert_eq!(found, (vec![one.clone(), zero.clone(), bytes(mixed)], vec![1, 1, mixed[0]]));
    let small = Step::Compute(Operation::Mul, a, Value::Constant(4));
    assert_eq!(kept(&[small], &[Value::Result(1)]), (vec![one, zero, bytes([1 << 9, 0, 0, 0])], vec![1, 1, 3 << 9]));
}

/// A product is within a sum only where nothing else needs it.
#[test]
fn products_are_within_sums() {
    let (a, b) = (Value::Input(0), Value::Input(1));
    let steps = |behind: &[Step], wires: &[Value]| {
        let steps = [&[Step::Compute(Operation::Mul, a, b)], behind].concat();
        let line = Line { steps, constants: vec![[1, 0, 0, 0]], wires: [&[Value::Constant(0)], wires].concat() };
        let (program, signals) = (blake3::hash(b"program"), [("a".to_string(), 2)]);
        let bytes = write(&line, &About { program: &program, field: 0, signals: &signals }).unwrap();
        bytes.windows(3).filter(|part| part[0] == MUL_ADD && part[1] == 0 && part[2] == 0).count()
    };
    let (product, sum) = (Value::Result(0), Step::Compute(Operation::Add, a, Value::Result(0)));
    assert_eq!(steps(&[sum], &[Value::Result(1)]), 1);
    assert_eq!(steps(&[Step::Compute(Operation::Add, product, b)], &[Value::Result(1)]), 1);
    assert_eq!(steps(&[sum], &[Value::Result(1), product]), 0);
    assert_eq!(steps(&[Step::Compute(Operation::Add, product, product)], &[Value::Result(1)]), 0);
    assert_eq!(steps(&[sum, Step::IsTrue(product)], &[Value::Result(1)]), 0);
    assert_eq!(steps(&[Step::Compute(Operation::Sub, product, b)], &[Value::Result(1)]), 0);
}

/// A bit of a value is one operation, and that it is one needs no guard.
#[test]
fn bits_are_bits() {
    use Operation::{Band, Bit, Mul, Shr, Sub};
    for field in (0..2).map(|number| Field::new(prime(number).unwrap())) {
        let mut random = Random(9);
        for i in (0..u64::from(field.bits)).chain([255, 256, 300, u64::MAX]) {
            let (a, by) = (random.value(&field), [i, 0, 0, 0]);
            let bit = Bit.compute(&field, a, by).unwrap();
            assert!(i >= u64::from(field.bits) || Shr.compute(&field, a, by).map(|a| [a[0] & 1, 0, 0, 0]) == Some(bit));
            assert!(bit[0] < 2 && bit[1..] == [0; 3]);
        }
        assert_eq!(Bit.compute(&field, [u64::MAX; 4], [1, 1, 0, 0]), Some([0; 4]));
        let mut recorder = Recorder::new(field, 4096, crate::Record::Unbranched);
        let mut constant = |number| recorder.constant([number, 0, 0, 0]).unwrap();
        let (zero, one, two, five) = (constant(0), constant(1), constant(2), constant(5));
        let beyond = constant(field.bits.into());
        let mut compute = |operation, a, b| recorder.compute(operation, a, b).unwrap();
        let (a, b) = (Value::Input(0), Value::Input(1));
        let shifted = compute(Shr, a, five);
        let bit = compute(Band, shifted, one);
        let other = compute(Operation::Eq, a, b);
        let less = [bit, other, a, shifted].map(|of| compute(Sub, of, one));
        assert_eq!((compute(Mul, bit, less[0]), compute(Mul, less[0], bit)), (zero, zero));
        assert_eq!(compute(Mul, other, less[1]), zero);
        // What is no bit, another's, and another number.
        let by_two = compute(Sub, bit, two);
        let from = compute(Sub, one, bit);
        for (a, b) in [(a, less[2]), (shifted, less[3]), (bit, less[1]), (other, less[0]), (bit, by_two), (bit, from)] {
            assert_ne!(compute(Mul, a, b), zero);
        }
        // Not a shift by as many bits as there are, by an input, or other bits.
        let shifts = [(beyond, one), (b, one), (five, two)].map(|(by, mask)| {
            let shifted = compute(Shr, a, by);
            compute(Band, shifted, mask)
        });
        let step = |value| match value {
            Value::Result(i) => recorder.line.steps[i as usize],
            _ => panic!("{value:?}"),
        };
        assert_eq!(step(bit), Step::Compute(Bit, a, five));
        assert!(shifts.iter().all(|&value| matches!(step(value), Step::Compute(Band, ..))));
    }
}

/// The clock is looked at while a long recording is replayed, and not at its end alone.
#[test]
fn long_replays_are_stopped() {
    let step = |i: u32| {
        Step::Compute(Operation::Pow, if i == 0 { Value::Input(0) } else { Value::Result(i - 1) }, Value::Input(0))
    };
    let line = Line {
        steps: (0..300).map(step).collect(),
        constants: vec![[1, 0, 0, 0]],
        wires: vec![Value::Constant(0), Value::Result(299)],
    };
    let (program, signals) = (blake3::hash(b"program"), [("a".to_string(), 1)]);
    let bytes = write(&line, &About { program: &program, field: 0, signals: &signals }).unwrap();
    let recording = Recording::read(&bytes, &program).unwrap();
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let count = || {
        asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        false
    };
    assert!(replay(&recording, br#"{"a": 3}"#, Limits::default(), &count).unwrap().is_some());
    assert_eq!(asked.into_inner(), 300 * 12_000 / (1 << 20) + 1);
    let few = Limits { steps: 300 * 12_000 - 1, ..Limits::default() };
    assert!(matches!(replay(&recording, br#"{"a": 3}"#, few, &|| false), Err(crate::Error::Limit(Limit::Steps, _))));
}

/// Without the hash: each length, number and reference is checked where it is used.
#[test]
fn any_bytes_are_survived() {
    for ((bytes, program), json) in [(written(), r#"{"a": 3, "b": 4}"#), (selects(), r#"{"a": 1}"#)] {
        survive(&bytes[..bytes.len() - 32], &program, json);
    }
}

fn survive(content: &[u8], program: &blake3::Hash, json: &str) {
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let try_it = |content: &[u8]| {
        if let Some(recording) = Recording::parse(content, program) {
            _ = replay(&recording, json.as_bytes(), limits, &|| false);
        }
    };
    let mut random = Random(3);
    for i in 0..content.len() {
        try_it(&content[..i]);
        for byte in 0..=255 {
            let mut other = content.to_vec();
            other[i] = byte;
            try_it(&other);
        }
    }
    for _ in 0..20_000 {
        let mut other = content.to_vec();
        // Behind the program's hash.
        for _ in 0..=random.next() % 8 {
            let at = 48 + random.next() as usize % (other.len() - 48);
            other[at] = random.next() as u8;
        }
        try_it(&other);
    }
}

/// Places of values that pass are used again: a long chain needs one.
#[test]
fn places_are_used_again() {
    let mut steps = vec![Step::Compute(Operation::Add, Value::Input(0), Value::Constant(0))];
    for i in 0..1000 {
        steps.push(Step::Compute(Operation::Add, Value::Result(i), Value::Constant(0)));
    }
    let wires = vec![Value::Constant(0), Value::Result(1000), Value::Result(500)];
    let line = Line { steps, constants: vec![[1, 0, 0, 0]], wires };
    let (program, signals) = (blake3::hash(b"program"), [("a".to_string(), 1)]);
    let bytes = write(&line, &About { program: &program, field: 1, signals: &signals }).unwrap();
    let recording = Recording::read(&bytes, &program).unwrap();
    assert_eq!((recording.kept, recording.passing), (2, 1));
    assert_eq!(found(&recording, r#"{"a": 5}"#, Limits::default()), Some(vec![1, 1006, 506]));
}

//! Modules that would use up the host, and what stops them.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::{fake, run, run_within, with_init, CHAR, LIMITS, MULTIPLIER};
use tandem_witness::{calculate, Error, Limit, Limits};
use zeroize::Zeroizing;

#[test]
fn a_module_that_misbehaves_is_stopped() {
    for (code, expected) in [
        ("(loop (br 0))", "was stopped after 10000000 steps"),
        ("(call $i (local.get 0))", "the circuit's program failed"),
        ("unreachable", "the circuit's program failed"),
        ("(i32.store (i32.const 65536) (i32.const 0))", "the circuit's program failed"),
        ("(call $exception (i32.const 5))", "more than what is left of 64 MiB"),
        ("(call $exception (i32.const 99))", "it stopped with the unknown code 99"),
        ("(call $exception (i32.const 4))", "the inputs do not satisfy the circuit: an assertion failed"),
        ("(loop (call $write) (br 0))", "was stopped after"),
        ("(loop (call $print) (br 0))", "was stopped after"),
        ("(loop (call $show) (br 0))", "was stopped after"),
    ] {
        let error = run(&with_init(code), "{}").unwrap_err();
        assert!(error.contains(expected), "{code}: {error}");
    }
}

/// An import asks for the message, whose next character calls an import, and so on.
#[test]
fn imports_do_not_call_each_other_without_end() {
    for import in ["write", "print", "show"] {
        let body = format!("(func $char (export \"getMessageChar\") (result i32) (call ${import}) (i32.const 0))");
        let init = "(func (export \"init\") (param i32) (call $write))";
        let module = fake(&[(CHAR, &body), ("(func (export \"init\") (param i32))", init)]);
        let error = run(&module, "{}").unwrap_err();
        assert!(error.contains("it calls itself through the import"), "{import}: {error}");
    }
    let length = "(func $len (export \"getFieldNumLen32\") (result i32) (call $show) (i32.const 1))";
    let module = fake(&[("(func (export \"getFieldNumLen32\") (result i32) (i32.const 1))", length)]);
    assert!(run(&module, "{}").unwrap_err().contains("through the import showSharedRWMemory"));
}

/// An export that is an import is called by the host, with nothing of the module on the way.
#[test]
fn an_export_that_is_an_import_is_no_circuit() {
    let with = |export: &str, func: &str, own: &str| {
        let memory = "(memory (export \"memory\") 1)";
        fake(&[(own, ""), (memory, &format!("{memory} (export \"{export}\" (func {func}))"))])
    };
    let prime = "(func (export \"getRawPrime\") (i32.store (i32.const 0) (i32.const 97)))";
    let error = run(&with("getRawPrime", "$write", prime), "{}").unwrap_err();
    assert!(error.contains("one of its exports is the import writeBufferMessage"), "{error}");
    let init = "(func (export \"init\") (param i32))";
    let error = run(&with("init", "$exception", init), "{}").unwrap_err();
    assert!(error.contains("the circuit has no such input"), "{error}");
}

/// A `memory.grow` that fails leaves a frame on the native stack of the interpreter.
#[test]
fn growing_in_vain_does_not_fill_the_native_stack() {
    let memory = "(memory (export \"memory\") 1)";
    let init = "(func (export \"init\") (param i32))";
    for (limit, pages) in [("(memory (export \"memory\") 1 1)", "1"), (memory, "65535"), (memory, "-1"), (memory, "0")]
    {
        let body =
            format!("(func (export \"init\") (param i32) (loop (drop (memory.grow (i32.const {pages}))) (br 0)))");
        let module = fake(&[(memory, limit), (init, &body)]);
        let limits = Limits { steps: 1_000_000_000, ..LIMITS };
        let error = run_within(limits, &module, "{}").unwrap_err();
        let expected = if pages == "65535" { Limit::Memory } else { Limit::Steps };
        assert!(matches!(error, Error::Limit(limit, _) if limit == expected), "{pages}: {error}");
    }
    // As many as one stretch of code may have, and one more.
    for (count, expected) in [((1 << 16) - 1, None), (1 << 16, Some("one stretch of its code takes"))] {
        let grows = "(drop (memory.grow (local.get 0)))".repeat(count);
        let module = fake(&[
            (memory, "(memory (export \"memory\") 1 1)"),
            (init, &format!("(func (export \"init\") (param i32) {grows})")),
        ]);
        match (run_within(Limits { steps: 1_000_000_000, ..LIMITS }, &module, "{}"), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (other, _) => panic!("{count}: {other:?}"),
        }
    }
}

#[test]
fn memory_is_one_budget() {
    let memory = "(memory (export \"memory\") 1)";
    let fails = |limits: Limits, change: &[(&str, &str)], json: &str, what: &str| {
        let error = run_within(limits, &fake(change), json).unwrap_err();
        assert!(matches!(error, Error::Limit(Limit::Memory, _)), "{change:?}: {error}");
        let expected = format!("{what} needs more than what is left of 64 MiB of memory");
        assert!(error.to_string().contains(&expected), "{change:?}: {error}");
    };
    let program = "the circuit's program";
    fails(LIMITS, &[(memory, "(memory (export \"memory\") 1025)")], "{}", program);
    fails(LIMITS, &[(memory, "(memory (export \"memory\") 1) (table 4194304 funcref)")], "{}", program);
    fails(LIMITS, &[(memory, "(memory (export \"memory\") 513) (table 2097152 funcref)")], "{}", program);
    let grow = |first: usize, more: usize| {
        let body = format!("(func (export \"init\") (param i32) (drop (memory.grow (i32.const {more}))))");
        let memory_of = format!("(memory (export \"memory\") {first})");
        run_within(LIMITS, &fake(&[(memory, &memory_of), ("(func (export \"init\") (param i32))", &body)]), "{}")
    };
    // The program takes a little of it.
    assert!(grow(1, 1022).is_ok() && grow(1000, 22).is_ok());
    assert!(matches!(grow(1, 1023), Err(Error::Limit(Limit::Memory, _))));
    assert!(matches!(grow(1000, 24), Err(Error::Limit(Limit::Memory, _))));
    // The witness: no more values than the memory could hold, and both together within the limit.
    let size = "(func (export \"getWitnessSize\") (result i32) (i32.const 1))";
    let sized = |count: usize| format!("(func (export \"getWitnessSize\") (result i32) (i32.const {count}))");
    fails(LIMITS, &[(memory, "(memory (export \"memory\") 600)"), (size, &sized(600 << 14))], "{}", "the witness");
    let limits = Limits { memory_bytes: 1 << 40, ..LIMITS };
    for (count, pages) in [(1 << 27, 1), ((1 << 14) + 1, 1), ((600 << 14) + 1, 600)] {
        let change = [(memory, &format!("(memory (export \"memory\") {pages})")[..]), (size, &sized(count))];
        let error = run_within(limits, &fake(&change), "{}").unwrap_err().to_string();
        assert!(
            error.contains(&format!("it reports {count} witness values, expected 1 to {}", pages << 14)),
            "{error}"
        );
    }
    let change = [(memory, "(memory (export \"memory\") 2)"), (size, &sized(2 << 14))];
    assert_eq!(run_within(limits, &fake(&change), "{}").unwrap().len(), 2 << 14);
    // The program's file, 16 for each of its bytes.
    let custom = fake(&[(memory, &format!("{memory} (data (i32.const 0) \"{}\")", "a".repeat(5 << 20)))]);
    assert!(run_within(LIMITS, &custom, "{}").unwrap_err().to_string().starts_with("the circuit's program needs more"));
    // What it prints: 1000 lines of 4096 characters of 4 bytes each.
    let print = "(loop (call $write) (br 0))";
    let init = format!("(func (export \"init\") (param i32) {print})");
    let endless = [
        (CHAR, "(func $char (export \"getMessageChar\") (result i32) (i32.const 0x1f600))"),
        ("(func (export \"init\") (param i32))", &init.replace("$write", "$print")),
    ];
    let limits = Limits { memory_bytes: 2 << 20, steps: u64::MAX, time: None };
    let error = run_within(limits, &fake(&endless), "{}").unwrap_err();
    assert!(error.to_string().starts_with("what the circuit prints needs more"), "{error}");
}

/// A circuit that takes any name and any number of values, and inputs of a few bytes for each of them.
#[test]
fn inputs_count_against_the_memory() {
    let size = "(func (export \"getInputSignalSize\") (param i32 i32) (result i32) (i32.const 1))";
    let total = "(func (export \"getInputSize\") (result i32) (i32.const 0))";
    let limits = Limits { memory_bytes: 1 << 20, steps: u64::MAX, time: None };
    let any = fake(&[(size, ""), (total, "")]);
    let fails = |module: &[u8], json: &str, expected: &str| {
        let limits = if module == MULTIPLIER { LIMITS } else { limits };
        let error = run_within(limits, module, json).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    fails(&any, &format!("{{\"a\": [1{}]}}", ",1".repeat(1 << 20)), "the inputs needs more than what is left of 1 MiB");
    let names = |count, value: &str| (0..count).map(|i: u32| format!("\"n{i}\":{value},")).collect::<String>();
    fails(&any, &format!("{{{}\"z\":1}}", names(10_000, "1")), "the inputs needs more than what is left of 1 MiB");
    // Names of nothing are not kept, whatever the circuit tells of its signals.
    for (module, limits) in [(&any[..], limits), (MULTIPLIER, LIMITS)] {
        let limits = Limits { memory_bytes: limits.memory_bytes.min(16 << 20), steps: u64::MAX, ..limits };
        run_within(limits, module, &format!("{{{}\"a\":5,\"b\":7}}", names(100_000, "[]"))).unwrap();
    }
    // Repeated names do not: the last one counts.
    let again = format!("{{{}\"a\":[1]}}", "\"a\":[1],".repeat(10_000));
    assert!(run_within(limits, &any, &again).is_ok());
    // A circuit that says how many it takes stops them there.
    let two = fake(&[(size, ""), (total, &total.replace("(i32.const 0)", "(i32.const 2)"))]);
    fails(&two, "{\"a\": [1, 2], \"b\": 3}", "signal b: the circuit needs 2 input values, found more");
    let endless = format!("{{\"a\": [1{}", ",1".repeat(1 << 20));
    fails(&two, &endless, "signal a: the circuit needs 2 input values, found more");
    fails(MULTIPLIER, &endless, "signal a: too many values, expected 1, found more");
}

/// Steps stand for time: a loop that prints takes about as long for its steps as one that computes.
#[test]
fn printing_costs_steps() {
    let calls = |code: &str| {
        let counted = AtomicUsize::new(0);
        let stop = || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        let limits = Limits { steps: u64::MAX, ..LIMITS };
        calculate(&with_init(code), Zeroizing::new(b"{}".to_vec()), limits, &stop).unwrap();
        counted.load(Ordering::Relaxed) as u64 * 100_000
    };
    let looped = |body: &str| {
        format!("(local $n i32) (loop {body} (br_if 0 (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 100000))))")
    };
    let idle = calls(&looped(""));
    for import in ["write", "print", "show"] {
        let steps = calls(&looped(&format!("(call ${import})")));
        // One import and one character, or two calls, for each turn.
        assert!(steps > idle + 100_000 * 600, "{import}: {steps}");
    }
}

#[test]
fn time_by_the_clock_is_limited() {
    let endless = with_init("(loop (br 0))");
    let limits = Limits { steps: u64::MAX, time: Some(Duration::from_millis(300)), ..LIMITS };
    let begun = Instant::now();
    let error = run_within(limits, &endless, "{}").unwrap_err();
    assert!(matches!(error, Error::Limit(Limit::Time, _)), "{error}");
    assert_eq!(error.to_string(), "the circuit's program was stopped after 0.3 s");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert!(run_within(Limits { time: Some(Duration::MAX), ..LIMITS }, &fake(&[]), "{}").is_ok());
    let slow = with_init("(loop (call $write) (br 0))");
    assert!(matches!(run_within(limits, &slow, "{}"), Err(Error::Limit(Limit::Time, _))));
}

#[test]
fn the_caller_can_stop_it() {
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) == 100;
    for code in ["(loop (br 0))", "(loop (call $write) (br 0))", "(loop (call $i (i32.const 0)) (br 0))"] {
        asked.store(0, Ordering::Relaxed);
        let limits = Limits { steps: u64::MAX, ..LIMITS };
        let ended = calculate(&with_init(code), Zeroizing::new(b"{}".to_vec()), limits, &stop);
        if code.contains("$i") {
            // Calls that do not end fill the module's own stack.
            assert!(matches!(ended, Err(Error::Circuit(_))), "{code}");
        } else {
            assert!(matches!(ended, Err(Error::Stopped)), "{code}");
            assert_eq!(asked.load(Ordering::Relaxed), 101);
        }
    }
}

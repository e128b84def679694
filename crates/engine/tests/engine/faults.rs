//! Devices that fail at any step, for a while or for good: what comes out is a right proof or an error, and the device comes back.

use crate::support::{Files, Watchdog};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_conformance::{Step, Stepped};
use tandem_engine::{Engine, ErrorCode, Fallback, KeyCheck, Proved, Silent};
use tandem_groth16::setup::{setup, Secret};
use tandem_groth16::{prove, synthetic::Synthetic, Blinding, Layout, OwnedKey, ProvingKey, Request, Witness};
use tandem_ops::Bn254;

/// Steps that are counted, of which those from `first` on, `count` of them, are `step`.
#[derive(Clone)]
struct Faults {
    at: Arc<AtomicU64>,
    step: Step,
    first: u64,
    count: u64,
    /// A device that broke stays so until it is opened again.
    broken: Arc<AtomicBool>,
    sticks: bool,
    /// It breaks at this step as well, and stays so.
    again: u64,
    opened: Arc<AtomicU64>,
    /// Times that it cannot be opened again.
    refusals: u64,
    /// Keys that were loaded, or begun to be.
    loads: Arc<AtomicU64>,
}

impl Faults {
    fn new(step: Step, first: u64, count: u64) -> Self {
        let (at, broken, opened, loads) = Default::default();
        Faults { at, step, first, count, broken, sticks: false, again: u64::MAX, opened, refusals: 0, loads }
    }

    fn sticky(first: u64, refusals: u64) -> Self {
        Faults { sticks: true, refusals, ..Faults::new(Step::Broken, first, 1) }
    }

    fn next(&self) -> Step {
        let at = self.at.fetch_add(1, SeqCst);
        if at == self.again {
            self.broken.store(true, SeqCst);
        }
        if self.broken.load(SeqCst) {
            return Step::Broken;
        }
        if !(self.first..self.first.saturating_add(self.count)).contains(&at) {
            return Step::Right;
        }
        self.broken.store(self.sticks, SeqCst);
        self.step
    }

    fn steps(&self) -> u64 {
        self.at.load(SeqCst)
    }

    fn engine(&self, auto: bool, patience: Duration) -> Engine {
        let faults = self.clone();
        let open = move || {
            let opened = faults.opened.fetch_add(1, SeqCst);
            if opened > 0 && opened <= faults.refusals {
                return Err(tandem_ops::Error::invalid("open", "the driver does not answer"));
            }
            faults.broken.store(false, SeqCst);
            let faults = faults.clone();
            let script = move |op| {
                if op == "load_matrix" {
                    faults.loads.fetch_add(1, SeqCst);
                }
                // What was opened before has ended.
                if opened + 1 < faults.opened.load(SeqCst) {
                    return Step::Broken;
                }
                faults.next()
            };
            Ok(Stepped::new(Arc::new(script)))
        };
        Engine::on_backends(open, auto).unwrap().with_patience(patience)
    }
}

fn is_on_device(proved: &Proved) -> bool {
    proved.device.contains("cuda:7")
}

/// Steps of loading a key, and of that with a proof.
fn steps(files: &Files) -> (u64, u64) {
    // The device checks a key when it is loaded first.
    files.load(&Faults::new(Step::Right, 0, 0).engine(false, Duration::ZERO)).unwrap();
    let none = Faults::new(Step::Right, 0, 0);
    let engine = none.engine(false, Duration::ZERO);
    let key = files.load(&engine).unwrap();
    let loaded = none.at.load(SeqCst);
    let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
    assert!(is_on_device(&proved) && proved.remark.is_none() && proved.fallback.is_none());
    (loaded, none.at.load(SeqCst))
}

/// Every step of two proofs fails once in turn, in every way: with the CPU beside it there is always a proof, without it a proof or an
/// error; either way the next proof is right.
#[test]
fn every_step_may_fail() {
    let _bound = Watchdog::new("every step", Duration::from_secs(500));
    let files = Files::new(3);
    let (loading, all) = steps(&files);
    assert!(loading > 10 && all > loading + 20, "{loading} {all}");
    let (mut wrong, mut reopened, mut refused) = (0, 0, 0);
    for first in 0..all {
        let once = |step| Faults::new(step, first, 1);
        let kinds = [
            once(Step::OutOfMemory),
            once(Step::Broken),
            once(Step::Wrong),
            Faults::sticky(first, 0),
            Faults::sticky(first, u64::MAX),
        ];
        for (kind, faults) in kinds.into_iter().enumerate() {
            for auto in [true, false] {
                let name = format!("step {first} kind {kind} auto {auto}");
                let Faults { at, broken, opened, loads, .. } = Faults::new(Step::Right, 0, 0);
                let faults = Faults { at, broken, opened, loads, ..faults.clone() };
                let engine = faults.engine(auto, Duration::ZERO);
                let key = match files.load(&engine) {
                    Ok(key) => key,
                    Err(error) => {
                        assert!(!auto && kind == 4 && error.code().is_retryable(), "{name}: {error}");
                        refused += 1;
                        continue;
                    }
                };
                for proof in 0..2 {
                    match engine.prove(&key, &files.witness(), &Silent) {
                        Ok(proved) => {
                            files.check(&proved, "proof");
                            assert_eq!(is_on_device(&proved), proved.fallback.is_none(), "{name}");
                            // A device that says that it failed made no wrong proof.
                            if let Some(fallback) = &proved.fallback {
                                let is_wrong = matches!(fallback, Fallback::WrongProof(_));
                                assert_eq!(is_wrong, kind == 2, "{name}: {fallback}");
                            }
                            wrong += engine.wrong_proofs();
                        }
                        Err(error) => {
                            // One that can be opened again, and has memory again, loses no proof.
                            let expected = !auto && kind == 4 && error.code().is_retryable();
                            assert!(expected, "{name} proof {proof}: {error}");
                            assert!(error.to_string().contains("Stepped GPU"), "{name}: {error}");
                            refused += 1;
                        }
                    }
                }
                reopened += faults.opened.load(SeqCst).saturating_sub(1);
            }
        }
    }
    // The faults did strike.
    assert!(wrong > 20 && reopened > all && refused > all, "{wrong} {reopened} {refused} of {all}");
}

/// A device that errs while it checks a key refuses no good one and lets no bad one pass: the CPU has the last word.
#[test]
fn a_device_that_errs_in_the_check_of_a_key() {
    let _bound = Watchdog::new("the check", Duration::from_secs(200));
    let files = Files::new(3);
    let load = |faults: &Faults| {
        let engine = faults.engine(true, Duration::ZERO);
        engine.load_key(&files.at("zkey"), KeyCheck::Always, &Silent).map(drop).map_err(|e| e.to_string())
    };
    let steps = |check| {
        let none = Faults::new(Step::Right, 0, 0);
        none.engine(false, Duration::ZERO).load_key(&files.at("zkey"), check, &Silent).unwrap();
        none.steps()
    };
    assert_eq!(load(&Faults::new(Step::Right, 0, 0)), Ok(()));
    let of_check = steps(KeyCheck::Always) - steps(KeyCheck::Once);
    // Two sections, and for each of five rounds factors and sums.
    assert!(of_check >= 2 + 5 * 3, "{of_check}");
    let faults = |first| [Step::OutOfMemory, Step::Broken, Step::Wrong].map(|step| Faults::new(step, first, 1));
    for faults in (0..of_check).flat_map(faults) {
        assert_eq!(load(&faults), Ok(()), "{:?} at {}", faults.step, faults.first);
    }
    // B2 of the last wire is another point of its group.
    let mut bytes = std::fs::read(files.at("zkey")).unwrap();
    let points = section(&bytes, 7);
    bytes.copy_within(points.start..points.start + 128, points.end - 128);
    std::fs::write(files.at("zkey"), bytes).unwrap();
    let refused = load(&Faults::new(Step::Right, 0, 0)).unwrap_err();
    assert!(refused.contains("of section B2 (7) do not belong together"), "{refused}");
    for faults in (0..of_check).flat_map(faults) {
        assert_eq!(load(&faults), Err(refused.clone()), "{:?} at {}", faults.step, faults.first);
    }
}

/// Where a section of a `.zkey` lies.
fn section(zkey: &[u8], wanted: u32) -> std::ops::Range<usize> {
    let mut at = 12;
    loop {
        let id = u32::from_le_bytes(zkey[at..at + 4].try_into().unwrap());
        let len = u64::from_le_bytes(zkey[at + 4..at + 12].try_into().unwrap()) as usize;
        if id == wanted {
            return at + 12..at + 12 + len;
        }
        at += 12 + len;
    }
}

#[test]
fn memory_that_comes_back_is_waited_for() {
    let _bound = Watchdog::new("memory", Duration::from_secs(120));
    let files = Files::new(3);
    let (loading, _) = steps(&files);
    // Each attempt ends with its first step that fails: three of loading, then three of proving.
    for (first, in_load) in [(2, true), (loading + 2, false)] {
        let faults = Faults::new(Step::OutOfMemory, first, 3);
        let engine = faults.engine(false, Duration::from_secs(60));
        let key = files.load(&engine).unwrap();
        let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
        files.check(&proved, "proof");
        assert!(is_on_device(&proved) && proved.fallback.is_none());
        let said = if in_load { key.note() } else { proved.remark.as_deref() }.unwrap();
        assert!(said.contains("needs 9 bytes, 7 bytes are free; waited"), "{said}");
        assert!(!said.contains("least tables"), "{said}");
        assert_eq!(faults.opened.load(SeqCst), 1);
    }
}

#[test]
fn memory_that_stays_away_ends_the_wait() {
    let _bound = Watchdog::new("no memory", Duration::from_secs(120));
    let files = Files::new(3);
    for auto in [false, true] {
        let faults = Faults::new(Step::OutOfMemory, 2, u64::MAX);
        let engine = faults.engine(auto, Duration::from_millis(200));
        let begun = Instant::now();
        match files.load(&engine) {
            Ok(key) => {
                let note = key.note().unwrap();
                assert!(auto && note.contains("stays on the CPU for now") && note.contains("least tables"), "{note}");
                assert!(note.contains("waited 0.2 s"), "{note}");
                // The CPU has what it needs.
                std::fs::remove_file(files.at("zkey")).unwrap();
                let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
                files.check(&proved, "proof");
                assert!(proved.fallback.unwrap().as_str().contains("7 bytes are free"));
            }
            Err(error) => {
                assert!(!auto && error.code() == ErrorCode::OutOfMemory && error.exit_status() == 3, "{error}")
            }
        }
        assert!(begun.elapsed() >= Duration::from_millis(200));
    }
}

/// The first attempt to open it again fails, a later one does not: the proofs between are the CPU's.
#[test]
fn a_broken_device_comes_back() {
    let _bound = Watchdog::new("a broken device", Duration::from_secs(120));
    let files = Files::new(3);
    let (loading, _) = steps(&files);
    let faults = Faults::sticky(loading + 5, 1);
    let engine = faults.engine(true, Duration::from_secs(1));
    let key = files.load(&engine).unwrap();
    let mut on_cpu = 0;
    let back = loop {
        let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
        files.check(&proved, "proof");
        if is_on_device(&proved) {
            break proved;
        }
        assert!(proved.fallback.unwrap().as_str().contains("cudaErrorIllegalAddress (700), an illegal memory access"));
        on_cpu += 1;
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(on_cpu > 1, "it is left alone for a while");
    assert!(back.remark.unwrap().contains("again"));
    let next = engine.prove(&key, &files.witness(), &Silent).unwrap();
    assert!(is_on_device(&next) && next.remark.is_none());
    assert_eq!((faults.opened.load(SeqCst), engine.wrong_proofs()), (3, 0));
}

/// One that can be opened again at once loses no proof, and all threads that met the fault share what was opened.
#[test]
fn a_device_is_opened_once_for_all_who_use_it() {
    let _bound = Watchdog::new("many threads", Duration::from_secs(120));
    let files = Files::new(3);
    let (loading, _) = steps(&files);
    let faults = Faults::sticky(loading + 40, 0);
    let engine = faults.engine(false, Duration::from_secs(1));
    let key = files.load(&engine).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (engine, key, files) = (&engine, &key, &files);
            scope.spawn(move || {
                let proved = engine.prove(key, &files.witness(), &Silent).unwrap();
                files.check(&proved, &thread.to_string());
                assert!(is_on_device(&proved));
            });
        }
    });
    // Nor is the key loaded by each: two matrices at first, and two onto what was opened.
    assert_eq!((faults.opened.load(SeqCst), faults.loads.load(SeqCst)), (2, 4));
}

/// Nobody verifies it: that the device was well to the end is all there is to say for it.
#[test]
fn a_device_that_fails_at_the_end_of_a_proof_has_made_none() {
    let is_over = Arc::new(AtomicBool::new(false));
    let fails = is_over.clone();
    let script = move |op| if op == "synchronize" && fails.load(SeqCst) { Step::Broken } else { Step::Right };
    let backend = Stepped::new(Arc::new(script));
    let circuit = Synthetic { constraints: 9, publics: 1, dense: 0.5 };
    let mut key = OwnedKey::<Bn254>::default();
    setup(&circuit, &Secret::from_seed([1; 32]), &mut key, &Silent).unwrap();
    let key = ProvingKey::load(&backend, &key.view().unwrap(), Layout::Auto, 1).unwrap();
    let witness = Witness::new(zeroize::Zeroizing::new(circuit.witness::<Bn254>(1).unwrap())).unwrap();
    let made = || prove(&backend, &key, &witness, &Blinding::random().unwrap(), &Request::silent());
    made().unwrap();
    is_over.store(true, SeqCst);
    assert!(made().unwrap_err().to_string().contains("synchronize"));
}

/// A key whose file changes while it is loaded onto a device that was opened again, or is gone by then: nothing is made of it, no other device
/// takes it, and it is proved with when the file is back.
#[test]
fn a_key_that_changes_while_it_is_loaded_again() {
    let _bound = Watchdog::new("a key that changes", Duration::from_secs(120));
    // Each section has a whole block in its middle, of which nothing is held.
    let files = Files::new(10);
    let good = std::fs::read(files.at("zkey")).unwrap();
    for (number, auto) in [5, 6, 7, 8, 9, 0].into_iter().flat_map(|number| [(number, false), (number, true)]) {
        let mut other = good.clone();
        if number > 0 {
            let section = section(&good, number);
            other[section.start + section.len() / 2] ^= 1;
        }
        let [fails, changes]: [Arc<AtomicBool>; 2] = Default::default();
        let (opened, path) = (AtomicU64::new(0), files.at("zkey"));
        let (is_failing, is_changing) = (fails.clone(), changes.clone());
        let open = move || {
            let (is_first, fails) = (opened.fetch_add(1, SeqCst) == 0, is_failing.clone());
            let (changes, path, other) = (is_changing.clone(), path.clone(), other.clone());
            let script = move |op| {
                // By now header and matrices have been read, and the points have not.
                if !is_first && op == "load_matrix" && changes.swap(false, SeqCst) {
                    std::fs::write(&path, &other).unwrap();
                }
                if is_first && fails.load(SeqCst) {
                    Step::Broken
                } else {
                    Step::Right
                }
            };
            Ok(Stepped::new(Arc::new(script)))
        };
        let engine = Engine::on_backends(open, auto).unwrap().with_patience(Duration::ZERO);
        let key = files.load(&engine).unwrap();
        fails.store(true, SeqCst);
        changes.store(number > 0, SeqCst);
        if number == 0 {
            std::fs::remove_file(files.at("zkey")).unwrap();
        }
        let error = engine.prove(&key, &files.witness(), &Silent).err().unwrap();
        let text = error.to_string();
        let expected =
            if number == 0 { "zkey: cannot open" } else { "zkey: the key changed since it was loaded; load it again" };
        assert!(text.contains(expected) && !text.contains("wtns"), "{number} {auto}: {text}");
        assert_eq!(error.exit_status(), 2, "{number} {auto}: {text}");
        std::fs::write(files.at("zkey"), &good).unwrap();
        let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
        assert!(is_on_device(&proved));
        files.check(&proved, "proof");
    }
}

/// Once within loading a key and once within a proof, or within two proofs.
#[test]
fn a_device_that_breaks_twice_is_opened_twice() {
    let _bound = Watchdog::new("twice", Duration::from_secs(120));
    let files = Files::new(3);
    let (loading, all) = steps(&files);
    // The second one is in the proof that comes next.
    for (first, again) in [(5, 5 + loading + 10), (loading + 5, 6 + loading + all + 10)] {
        let faults = Faults { again, ..Faults::sticky(first, 0) };
        let engine = faults.engine(false, Duration::ZERO);
        let key = files.load(&engine).unwrap();
        for _ in 0..3 {
            let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
            files.check(&proved, "proof");
            assert!(is_on_device(&proved));
        }
        assert_eq!(faults.opened.load(SeqCst), 3, "{first} {again}");
    }
}

/// The key that meets the fault first opens the device for the other one as well; each is loaded once more.
#[test]
fn a_device_is_opened_once_for_all_keys() {
    let _bound = Watchdog::new("two keys", Duration::from_secs(120));
    let files = Files::new(3);
    let (loading, _) = steps(&files);
    let faults = Faults::sticky(2 * loading + 5, 0);
    let engine = faults.engine(false, Duration::ZERO);
    let keys = [files.load(&engine).unwrap(), files.load(&engine).unwrap()];
    for key in keys.iter().chain(&keys) {
        let proved = engine.prove(key, &files.witness(), &Silent).unwrap();
        files.check(&proved, "proof");
        assert!(is_on_device(&proved));
    }
    // Two matrices a key.
    assert_eq!((faults.opened.load(SeqCst), faults.loads.load(SeqCst)), (2, 8));
}

/// A key gives up its tables once; where memory is short again, there is nothing to give up.
#[test]
fn a_key_becomes_smaller_once() {
    let _bound = Watchdog::new("smaller", Duration::from_secs(120));
    let files = Files::new(3);
    let (loading, all) = steps(&files);
    let first = loading + 5;
    // Two matrices a key; in the second case memory is short again for the first of them.
    for (count, loads, said) in [(1, 4, "least tables"), (2, 5, "7 bytes are free")] {
        let faults = Faults::new(Step::OutOfMemory, first, count);
        let engine = faults.engine(false, Duration::ZERO);
        let key = files.load(&engine).unwrap();
        let made = engine.prove(&key, &files.witness(), &Silent);
        let (told, spans) = match made {
            Ok(proved) => (proved.remark.unwrap(), Some(proved.spans.len())),
            Err(error) => (error.to_string(), None),
        };
        assert!(told.contains(said), "{told}");
        assert!(faults.steps() < first + 2 * all);
        let next = engine.prove(&key, &files.witness(), &Silent).unwrap();
        assert_eq!(faults.loads.load(SeqCst), loads, "{count}");
        // What an attempt that failed has done is no part of a proof.
        assert_eq!(spans.unwrap_or(next.spans.len()), next.spans.len(), "{count}");
    }
}

/// A device that is tried again after a pause is not waited for as it was at first.
#[test]
fn a_device_that_was_given_up_is_not_waited_for() {
    let _bound = Watchdog::new("given up", Duration::from_secs(120));
    let files = Files::new(3);
    let (loading, _) = steps(&files);
    let faults = Faults::new(Step::OutOfMemory, loading + 1, u64::MAX);
    let engine = faults.engine(true, Duration::from_millis(300));
    let key = files.load(&engine).unwrap();
    let tried = || {
        let before = faults.steps();
        let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
        assert!(!is_on_device(&proved));
        faults.steps() - before
    };
    // Each attempt ends with its first step.
    assert!(tried() > 4);
    std::thread::sleep(Duration::from_millis(1100));
    assert!((1..=2).contains(&tried()));
}

/// What came first is the cause of what came after.
#[test]
fn the_first_fault_is_the_one_that_is_told() {
    let _bound = Watchdog::new("the first fault", Duration::from_secs(120));
    let files = Files::new(3);
    let (loading, _) = steps(&files);
    let faults = Faults { again: loading + 6, ..Faults::new(Step::OutOfMemory, loading + 5, 1) };
    let faults = Faults { refusals: u64::MAX, ..faults };
    let engine = faults.engine(false, Duration::ZERO);
    let key = files.load(&engine).unwrap();
    let error = engine.prove(&key, &files.witness(), &Silent).unwrap_err().to_string();
    assert!(error.contains("7 bytes are free"), "{error}");
}

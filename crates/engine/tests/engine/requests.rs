//! Requests of an engine: cancelled at any stage, and witnesses uploaded beside a proof.

use crate::support::{Files, Watchdog};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tandem_conformance::{Step, Stepped};
use tandem_engine::{Engine, Error, Layout, Progress, Schedule, Silent};

/// Says stop at a question and from then on.
struct StopAt(AtomicUsize);

impl Progress for StopAt {
    fn cancelled(&self) -> bool {
        self.0.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_err()
    }
}

fn files_in(files: &Files) -> usize {
    std::fs::read_dir(files.at("")).unwrap().count()
}

#[test]
fn a_proof_is_cancelled_at_any_stage_and_the_next_is_right() {
    let _bound = Watchdog::new("cancelled proofs", Duration::from_secs(300));
    let files = Files::new(3);
    let schedules = [Schedule::Together(Layout::Auto), Schedule::Together(Layout::Split), Schedule::Each];
    for (device, schedule) in [("cpu", schedules[0]), ("sim:2", schedules[1]), ("sim:2", schedules[2])] {
        let engine = Engine::open_as(&device.parse().unwrap(), schedule).unwrap();
        let (key, witness) = (files.load(&engine).unwrap(), files.witness());
        let never = StopAt(AtomicUsize::new(usize::MAX));
        files.check(&engine.prove(&key, &witness, &never).unwrap(), "whole");
        let (questions, before) = (usize::MAX - never.0.load(SeqCst), files_in(&files));
        assert!(questions > 15, "{questions} on {device}");
        for question in 0..questions {
            let stop = StopAt(AtomicUsize::new(question));
            let error = engine.prove(&key, &witness, &stop).err().unwrap();
            assert!(matches!(error, Error::Interrupted) && error.exit_status() == 130, "{question}: {error}");
            assert_eq!(files_in(&files), before);
            let next = engine.prove(&key, &witness, &Silent).unwrap();
            assert!(next.fallback.is_none() && next.remark.is_none(), "{question} on {device}");
            if question % 7 == 0 {
                files.check(&next, "whole");
            }
        }
        assert_eq!(engine.wrong_proofs(), 0);
    }
}

/// A device whose sums wait until they are let go, and that counts its steps.
#[derive(Clone, Default)]
struct Gate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    is_shut: AtomicBool,
    /// Whether a sum waits.
    waits: Mutex<bool>,
    changed: Condvar,
    writes: AtomicUsize,
}

impl Gate {
    fn engine(&self) -> Engine {
        let gate = self.clone();
        Engine::on_backend(Stepped::new(Arc::new(move |op| gate.step(op))), false).unwrap()
    }

    fn step(&self, op: &'static str) -> Step {
        self.0.writes.fetch_add(usize::from(op == "write"), SeqCst);
        if op == "msm" && self.0.is_shut.load(SeqCst) {
            let mut waits = self.0.waits.lock().unwrap();
            *waits = true;
            self.0.changed.notify_all();
            drop(self.0.changed.wait_while(waits, |_| self.0.is_shut.load(SeqCst)).unwrap());
        }
        Step::Right
    }

    fn shut(&self) {
        *self.0.waits.lock().unwrap() = false;
        self.0.is_shut.store(true, SeqCst);
    }

    fn until_a_sum_waits(&self) {
        drop(self.0.changed.wait_while(self.0.waits.lock().unwrap(), |waits| !*waits).unwrap());
    }

    fn open(&self) {
        let _waits = self.0.waits.lock().unwrap();
        self.0.is_shut.store(false, SeqCst);
        self.0.changed.notify_all();
    }
}

#[test]
fn a_witness_is_uploaded_while_another_proof_is_made() {
    let _bound = Watchdog::new("an upload beside a proof", Duration::from_secs(60));
    let (files, gate) = (Files::new(3), Gate::default());
    let engine = gate.engine();
    let key = files.load(&engine).unwrap();
    let alone = engine.prove(&key, &files.witness(), &Silent).unwrap();
    let spans = |proved: &tandem_engine::Proved| {
        let mut names: Vec<_> = proved.spans.iter().map(|span| span.name).collect();
        names.sort_unstable();
        names
    };
    gate.shut();
    let (first, staged) = std::thread::scope(|scope| {
        let first = scope.spawn(|| engine.prove(&key, &files.witness(), &Silent).unwrap());
        gate.until_a_sum_waits();
        // The proof in hand has not ended, and will not before this has.
        let staged = engine.stage(&key, files.witness(), &Silent).unwrap();
        assert!(staged.is_on_device());
        gate.open();
        (first.join().unwrap(), staged)
    });
    files.check(&first, "first");
    assert_eq!(spans(&first), spans(&alone), "the upload is no part of the first proof");
    let writes = gate.0.writes.load(SeqCst);
    let second = engine.prove_staged(&key, staged, &Silent).unwrap();
    assert_eq!(gate.0.writes.load(SeqCst), writes, "the witness is uploaded once");
    files.check(&second, "second");
    let mut with_wait = [spans(&alone), vec![tandem_engine::WAIT]].concat();
    with_wait.sort_unstable();
    assert_eq!(spans(&second), with_wait, "the upload is a part of the second, and what its lane waits for");
    assert!(second.stages.iter().any(|stage| stage.name == "upload witness"));
    engine.prove(&key, &files.witness(), &Silent).unwrap();
    assert!(gate.0.writes.load(SeqCst) > writes, "a witness that was not staged is uploaded");
}

#[test]
fn who_is_cancelled_does_not_wait_for_the_proof_in_hand() {
    let _bound = Watchdog::new("a cancelled wait", Duration::from_secs(60));
    let (files, gate) = (Files::new(3), Gate::default());
    let engine = gate.engine();
    let key = files.load(&engine).unwrap();
    gate.shut();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| engine.prove(&key, &files.witness(), &Silent).unwrap());
        gate.until_a_sum_waits();
        let error = engine.prove(&key, &files.witness(), &StopAt(AtomicUsize::new(0))).err().unwrap();
        assert!(matches!(error, Error::Interrupted), "{error}");
        assert!(!first.is_finished());
        gate.open();
        files.check(&first.join().unwrap(), "first");
    });
}

#[test]
fn a_staged_witness_serves_wherever_the_key_is_by_then() {
    let _bound = Watchdog::new("staged elsewhere", Duration::from_secs(60));
    let files = Files::new(3);
    for (device, schedule) in [("cpu", Schedule::default()), ("sim:3", Schedule::Each)] {
        let engine = Engine::open_as(&device.parse().unwrap(), schedule).unwrap();
        let (key, other) = (files.load(&engine).unwrap(), files.load(&engine).unwrap());
        let staged = |key| engine.stage(key, files.witness(), &Silent).unwrap();
        let several = [staged(&key), staged(&key), staged(&key), staged(&key)];
        for (i, witness) in several.into_iter().enumerate() {
            files.check(&engine.prove_staged(&key, witness, &Silent).unwrap(), &i.to_string());
        }
        // For another key it is uploaded anew.
        files.check(&engine.prove_staged(&other, staged(&key), &Silent).unwrap(), "other");
        assert_eq!(staged(&key).into_witness().len(), key.info().variables);
    }
    // The device is opened again between: what it held is gone.
    let broken = Arc::new(AtomicBool::new(false));
    let open = {
        let broken = broken.clone();
        move || {
            let broken = broken.clone();
            let step = move |op: &str| match broken.swap(false, SeqCst) && op != "take spans" {
                true => Step::Broken,
                false => Step::Right,
            };
            Ok(Stepped::new(Arc::new(step)))
        }
    };
    let engine = Engine::on_backends(open, false).unwrap();
    let key = files.load(&engine).unwrap();
    let (one, two) = (files.witness(), files.witness());
    let (one, two) = (engine.stage(&key, one, &Silent).unwrap(), engine.stage(&key, two, &Silent).unwrap());
    broken.store(true, SeqCst);
    let proved = engine.prove_staged(&key, one, &Silent).unwrap();
    assert!(proved.remark.as_ref().unwrap().contains("opened the device again"));
    files.check(&proved, "reopened");
    files.check(&engine.prove_staged(&key, two, &Silent).unwrap(), "after");
    // A device that fails while a witness is staged is met by the proof.
    broken.store(true, SeqCst);
    let staged = engine.stage(&key, files.witness(), &Silent).unwrap();
    assert!(!staged.is_on_device());
    files.check(&engine.prove_staged(&key, staged, &Silent).unwrap(), "failed");
}

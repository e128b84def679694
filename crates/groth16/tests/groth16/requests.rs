//! Requests that share a backend: each has its own spans, each may be cancelled, and a witness is uploaded beside a proof.

use crate::support::{checked, key};
use ark_ff::UniformRand;
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use tandem_groth16::synthetic::Synthetic;
use tandem_groth16::{
    prove_staged, prove_verified, stage, Blinding, Error, Layout, Made, PreparedKey, Progress, ProvingKey, Request,
    Result, Silent, Witness,
};
use tandem_ops::cpu::Cpu;
use tandem_ops::timeline::WAIT;
use tandem_ops::{threads, Backend, Bn254, Curve, Lane};

type Fr = <Bn254 as Curve>::Fr;

const LAYOUTS: [(usize, Layout); 3] = [(1, Layout::Auto), (2, Layout::Roles), (3, Layout::Split)];

/// A key on pretend GPUs, and a witness.
struct Opened {
    backend: Cpu,
    key: ProvingKey<Bn254, Cpu>,
    verifier: PreparedKey<Bn254>,
    witness: Witness<Bn254>,
}

impl Opened {
    fn new(lanes: usize, layout: Layout, constraints: usize) -> Self {
        let circuit = Synthetic { constraints, publics: 1, dense: 0.5 };
        let (owned, backend) = (key::<Bn254>(circuit), Cpu::new(lanes));
        let view = owned.view().unwrap();
        let key = ProvingKey::load(&backend, &view, layout, 100).unwrap();
        let verifier = PreparedKey::new(&view.verifying_key()).unwrap();
        Opened { backend, key, verifier, witness: checked(&circuit.witness::<Bn254>(3).unwrap()).unwrap() }
    }

    fn prove(&self, request: &Request<'_>) -> Result<Made<Bn254>> {
        prove_verified(&self.backend, &self.key, &self.verifier, &self.witness, &blinding(), request)
    }
}

fn blinding() -> Blinding<Bn254> {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    Blinding::fixed(Fr::rand(&mut rng), Fr::rand(&mut rng))
}

/// The names of a request's spans but for the lanes' waits, which are no stages.
fn names(request: &Request<'_>) -> Vec<(Lane, &'static str)> {
    let spans = request.timeline.take().unwrap();
    let mut names: Vec<_> = spans.iter().map(|s| (s.lane, s.name)).filter(|(_, name)| *name != WAIT).collect();
    names.sort_unstable();
    names
}

/// Waits for the other request before each of the first stages, so that the two are under way at once.
struct InStep<'a> {
    other: &'a Barrier,
    left: AtomicUsize,
}

impl Progress for InStep<'_> {
    fn enqueued(&self, _: &'static str, _: Lane) {
        if self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            self.other.wait();
        }
    }
}

#[test]
fn proofs_at_once_on_one_backend_have_each_their_own_spans() {
    for (lanes, layout) in LAYOUTS {
        let opened = Opened::new(lanes, layout, 63);
        let alone = Request::new(opened.backend.timeline(), &Silent);
        let expected = opened.prove(&alone).unwrap().proof;
        let spans = names(&alone);
        assert!(spans.len() >= 12, "{spans:?}");
        let other = Barrier::new(2);
        let prove = || {
            // Threads of its own: one that waits takes up nothing of the other proof's.
            threads::pool(4).unwrap().install(|| {
                let progress = InStep { other: &other, left: AtomicUsize::new(5) };
                let request = Request::new(opened.backend.timeline(), &progress);
                let made = opened.prove(&request).unwrap();
                assert!(made.proof == expected && made.verdict.is_ok());
                names(&request)
            })
        };
        let (one, two) = std::thread::scope(|scope| {
            let other = scope.spawn(prove);
            (prove(), other.join().unwrap())
        });
        assert!(one == spans && two == spans, "{lanes} lanes, {layout:?}: {one:?} {two:?}");
    }
}

#[test]
fn a_witness_is_staged_beside_a_proof() {
    for (lanes, layout) in LAYOUTS {
        let opened = Opened::new(lanes, layout, 63);
        let alone = Request::new(opened.backend.timeline(), &Silent);
        let expected = opened.prove(&alone).unwrap().proof;
        let spans = names(&alone);
        // Staged by a listener in the midst of a proof.
        struct Stages<'a>(&'a Opened, Mutex<Option<(tandem_groth16::Staged<Bn254, Cpu>, Request<'static>)>>);
        impl Progress for Stages<'_> {
            fn enqueued(&self, stage_name: &'static str, _: Lane) {
                if stage_name == "MSM A" {
                    let request = Request::new(self.0.backend.timeline(), &Silent);
                    let staged = stage(&self.0.backend, &self.0.key, &self.0.witness, &request).unwrap();
                    *self.1.lock().unwrap() = Some((staged, request));
                }
            }
        }
        let stages = Stages(&opened, Mutex::default());
        let first = Request::new(opened.backend.timeline(), &stages);
        assert!(opened.prove(&first).unwrap().proof == expected);
        assert_eq!(names(&first), spans, "nothing of the other request");
        let (staged, request) = stages.1.lock().unwrap().take().unwrap();
        let made = prove_staged(&opened.backend, &opened.key, &opened.verifier, staged, &blinding(), &request).unwrap();
        assert!(made.proof == expected && made.verdict.is_ok());
        assert_eq!(names(&request), spans, "the upload and the proof");
    }
}

#[test]
fn a_witness_that_was_staged_for_another_key_is_refused() {
    let (one, other) = (Opened::new(1, Layout::Auto, 63), Opened::new(1, Layout::Auto, 20));
    let spread = Opened::new(2, Layout::Split, 63);
    let silent = Request::silent();
    for key in [&other, &spread] {
        let staged = stage(&one.backend, &one.key, &one.witness, &silent).unwrap();
        let made = prove_staged(&key.backend, &key.key, &key.verifier, staged, &blinding(), &silent);
        assert!(made.err().unwrap().to_string().contains("staged for another key"));
    }
    assert!(matches!(stage(&other.backend, &other.key, &one.witness, &silent), Err(Error::Witness(_))));
}

/// Says stop at a question and from then on, and notes what happens.
struct StopAt {
    left: AtomicUsize,
    stopped: AtomicBool,
    /// Stages that were begun after that.
    late: AtomicUsize,
    enqueued: Mutex<Vec<(Lane, &'static str)>>,
    finished: Mutex<Vec<&'static str>>,
    /// Units of the last task, and those that are done of it.
    units: Mutex<[u64; 2]>,
}

impl StopAt {
    fn new(question: usize) -> Self {
        let (stopped, late, enqueued, finished, units) = Default::default();
        StopAt { left: AtomicUsize::new(question), stopped, late, enqueued, finished, units }
    }
}

impl Progress for StopAt {
    fn start(&self, _: &'static str, total: u64) {
        *self.units.lock().unwrap() = [total, 0];
    }
    fn advance(&self, units: u64) {
        self.units.lock().unwrap()[1] += units;
    }
    fn enqueued(&self, stage: &'static str, lane: Lane) {
        self.late.fetch_add(self.stopped.load(SeqCst).into(), SeqCst);
        self.enqueued.lock().unwrap().push((lane, stage));
    }
    fn finished(&self, stage: &'static str) {
        self.finished.lock().unwrap().push(stage);
    }
    fn cancelled(&self) -> bool {
        let stop = self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_err();
        self.stopped.fetch_or(stop, SeqCst);
        stop
    }
}

#[test]
fn a_proof_that_is_cancelled_ends_within_a_primitive_and_the_next_is_right() {
    for (lanes, layout) in LAYOUTS {
        let opened = Opened::new(lanes, layout, 20);
        let expected = opened.prove(&Request::silent()).unwrap().proof;
        let never = StopAt::new(usize::MAX);
        opened.prove(&Request::new(opened.backend.timeline(), &never)).unwrap();
        let questions = usize::MAX - never.left.load(SeqCst);
        assert!(questions > 20, "{questions}");
        for question in 0..questions {
            let stop = StopAt::new(question);
            let request = Request::new(opened.backend.timeline(), &stop);
            let error = opened.prove(&request).err().unwrap();
            assert!(matches!(error, Error::Interrupted), "question {question}: {error}");
            // A thread for each of several lanes enqueues: each of the others may be within a primitive while one asks, and to deal counts for three.
            let (late, within) = (stop.late.load(SeqCst), if lanes > 1 { lanes - 1 + 2 } else { 0 });
            assert!(late <= within, "{late} stages after question {question} on {lanes} lanes");
            let next = opened.prove(&Request::silent()).unwrap();
            assert!(next.proof == expected && next.verdict.is_ok(), "after question {question} on {lanes} lanes");
        }
    }
}

#[test]
fn progress_tells_what_was_enqueued_and_what_is_finished() {
    for (lanes, layout) in LAYOUTS {
        let opened = Opened::new(lanes, layout, 20);
        let heard = StopAt::new(usize::MAX);
        let request = Request::new(opened.backend.timeline(), &heard);
        opened.prove(&request).unwrap();
        let mut enqueued = heard.enqueued.lock().unwrap().clone();
        enqueued.sort_unstable();
        assert_eq!(enqueued, names(&request), "every span is a stage");
        let mut finished = heard.finished.lock().unwrap().clone();
        assert_eq!(finished.last(), Some(&"verify"));
        finished.sort_unstable();
        assert_eq!(finished, ["MSM A", "MSM B1", "MSM B2", "MSM L and H", "verify"]);
        let [total, done] = *heard.units.lock().unwrap();
        assert!(total > 6 * 20 && done == total, "{done} of {total} units");
    }
}

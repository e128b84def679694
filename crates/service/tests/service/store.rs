//! The store's rules: fences, the first final state, order, recovery. Each holds in a file of SQLite and in a database of PostgreSQL.

use crate::support::postgres::{no_tls, Postgres};
use crate::support::proxy::Proxy;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;
use tandem_service::store::{
    Calculated, Cancelled, Claim, Ending, Failed, Finished, Form, JobResult, KeyRow, Lease, Near, NewJob, State, Store,
    StoreError,
};

/// Where jobs are.
enum Place {
    File(PathBuf),
    Database(String),
}

impl Place {
    /// As a service that starts there does: with how many jobs that an earlier one left running.
    fn start(&self, now: i64) -> (Store, u64) {
        let store = match self {
            Place::File(path) => Store::open(path, true).unwrap(),
            Place::Database(url) => Store::connect(url, no_tls(), "a", Duration::from_secs(600)).unwrap(),
        };
        let back = self.recover(&store, now);
        (store, back)
    }

    fn recover(&self, store: &Store, now: i64) -> u64 {
        match self {
            Place::File(_) => store.recover(now).unwrap(),
            Place::Database(_) => store.join("1", "{}", now).unwrap(),
        }
    }
}

/// A test of each rule in a file, and one of all rules in a database.
macro_rules! rules {
    ($($rule:ident),* $(,)?) => {
        mod in_a_file {
            $(#[test]
            fn $rule() {
                let folder = tempfile::tempdir().unwrap();
                super::$rule(&super::Place::File(folder.path().join("jobs.db")));
            })*
        }

        #[test]
        fn in_a_database() {
            let server = Postgres::start();
            $(println!(stringify!($rule));
            $rule(&Place::Database(server.database(stringify!($rule))));)*
        }
    };
}

rules! {
    only_the_attempt_that_runs_may_end_a_job,
    a_cancelled_job_takes_no_result,
    attempts_are_limited_and_fatal_errors_are_not_tried_again,
    a_job_that_failed_goes_to_another_worker_first,
    a_job_that_is_to_be_alone_is_given_to_an_empty_hand_and_holds_up_the_others,
    a_witness_that_has_no_room_beside_others_holds_the_order,
    priority_comes_first_until_the_others_are_old,
    a_start_gives_running_jobs_back_and_counts_no_failure,
    deadlines_and_old_results_pass,
    small_witnesses_go_with_their_jobs,
    an_id_stands_for_one_content,
    workers_that_ask_at_once_get_different_jobs,
    jobs_of_keys_that_are_there_come_first_for_a_while,
    inputs_are_claimed_by_calculators_and_their_witnesses_by_provers,
    ten_thousand_jobs_wait_in_order_and_a_batch_is_whole_or_not,
}

/// What a step of priority is worth here.
const AGEING: i64 = 1000;

fn store(place: &Place) -> Store {
    let (store, _) = place.start(0);
    let key = KeyRow {
        name: "k".into(),
        path: "/k.zkey".into(),
        hash: "h".into(),
        bytes: 1,
        variables: 1,
        publics: 1,
        domain: 1,
        curve: "bn254".into(),
        is_own: false,
    };
    store.add_key(&key, 0).unwrap();
    store
}

fn job(id: &str, priority: i64) -> NewJob {
    NewJob {
        id: id.into(),
        token: None,
        request: None,
        digest: "d".into(),
        key: "k".into(),
        form: Form::Witness,
        witness: format!("{id}.wtns"),
        witness_bytes: 1,
        content: None,
        batch: None,
        priority,
        deadline_ms: None,
        traceparent: None,
    }
}

fn submit(store: &Store, job: &NewJob, now: i64) {
    assert!(store.submit(job, now, AGEING, 1000).unwrap().is_new);
}

fn claim(store: &Store, worker: &str, now: i64) -> Option<Claim> {
    store.claim(worker, now, 50, None).unwrap()
}

fn ending(code: &str, again: Option<i64>) -> Ending {
    Ending { code: code.into(), reason: "broken".into(), again, counts: true, is_alone: false }
}

fn result() -> JobResult {
    JobResult {
        proof: "{}".into(),
        publics: "[]".into(),
        seconds: 1.0,
        times: None,
        device: "CPU".into(),
        remark: None,
    }
}

fn only_the_attempt_that_runs_may_end_a_job(place: &Place) {
    let store = store(place);
    submit(&store, &job("a", 0), 0);
    let first = claim(&store, "0", 1).unwrap();
    assert_eq!(store.fail(&first.lease, &ending("worker_hung", Some(0)), 3, 2).unwrap(), Failed::Again);
    // Between two attempts the old one is over too.
    assert_eq!(store.finish(&first.lease, &result(), 3).unwrap(), Finished::Stale);
    let second = claim(&store, "1", 4).unwrap();
    assert_eq!((second.lease.attempt, first.lease.attempt), (2, 1));
    assert_eq!(store.finish(&first.lease, &result(), 5).unwrap(), Finished::Stale);
    assert_eq!(store.fail(&first.lease, &ending("device", None), 3, 5).unwrap(), Failed::Stale);
    assert_eq!(store.job("a").unwrap().unwrap().state, State::Running);
    assert!(store.result("a").unwrap().is_none());
    assert_eq!(store.finish(&second.lease, &result(), 6).unwrap(), Finished::Done("a.wtns".into()));
    // The first final state stays: given again, for the answer may be lost, the result is the same.
    assert_eq!(store.finish(&second.lease, &result(), 7).unwrap(), Finished::Before("a.wtns".into()));
    assert_eq!(store.fail(&second.lease, &ending("device", None), 3, 7).unwrap(), Failed::Stale);
    assert_eq!(store.cancel("a", 7).unwrap(), Cancelled::Ended(State::Done));
    let codes: Vec<_> = store.attempts("a").unwrap().into_iter().map(|attempt| attempt.code.unwrap()).collect();
    assert_eq!(codes, ["worker_hung", "done"]);
}

fn a_cancelled_job_takes_no_result(place: &Place) {
    let store = store(place);
    submit(&store, &job("a", 0), 0);
    submit(&store, &job("b", 0), 1);
    let running = claim(&store, "0", 2).unwrap();
    assert_eq!(store.cancel("a", 3).unwrap(), Cancelled::Now("a.wtns".into(), Some(running.lease.clone())));
    assert_eq!(store.cancel("b", 3).unwrap(), Cancelled::Now("b.wtns".into(), None));
    assert_eq!(store.cancel("c", 3).unwrap(), Cancelled::Unknown);
    assert_eq!(store.finish(&running.lease, &result(), 4).unwrap(), Finished::Stale);
    assert!(claim(&store, "0", 5).is_none() && store.needed_blobs().unwrap().is_empty());
}

fn attempts_are_limited_and_fatal_errors_are_not_tried_again(place: &Place) {
    let store = store(place);
    submit(&store, &job("a", 0), 0);
    for attempt in 1..=3 {
        let now = attempt * 1000;
        let claim = claim(&store, "0", now).unwrap();
        let failed = store.fail(&claim.lease, &ending("device", Some(10)), 3, now).unwrap();
        assert_eq!(failed == Failed::Again, attempt < 3);
        // Not before its pause is over.
        assert!(self::claim(&store, "1", now + 9).is_none());
    }
    assert_eq!(store.job("a").unwrap().unwrap().reason.as_deref(), Some("broken"));
    submit(&store, &job("b", 0), 0);
    let claim = claim(&store, "0", 10_000).unwrap();
    assert_eq!(store.fail(&claim.lease, &ending("bad_input", None), 3, 1).unwrap(), Failed::Over("b.wtns".into()));
}

fn a_job_that_failed_goes_to_another_worker_first(place: &Place) {
    let store = store(place);
    submit(&store, &job("a", 0), 0);
    let failed = claim(&store, "0", 1).unwrap();
    store.fail(&failed.lease, &ending("device", Some(0)), 3, 10).unwrap();
    assert!(claim(&store, "0", 59).is_none());
    assert!(claim(&store, "1", 59).is_some());
    // Where nobody else takes it, the same one does.
    submit(&store, &job("b", 0), 0);
    let failed = claim(&store, "0", 100).unwrap();
    store.fail(&failed.lease, &ending("device", Some(0)), 3, 110).unwrap();
    assert!(claim(&store, "0", 160).is_some());
}

fn a_job_that_is_to_be_alone_is_given_to_an_empty_hand_and_holds_up_the_others(place: &Place) {
    let store = store(place);
    submit(&store, &job("a", 0), 0);
    submit(&store, &job("b", 0), 5);
    let first = claim(&store, "0", 10).unwrap();
    assert!(!first.is_alone);
    let ending = Ending { counts: false, is_alone: true, ..ending("worker_died", Some(10)) };
    // It counts for nothing, as often as it comes.
    for _ in 0..9 {
        let lease = store.job("a").unwrap().map(|job| (job.id, job.attempt)).unwrap();
        let lease = Lease { job: lease.0, attempt: lease.1 };
        assert_eq!(store.fail(&lease, &ending, 1, 10).unwrap(), Failed::Again);
        assert_eq!(store.claim("0", 15, 0, Some(u64::MAX)).unwrap().unwrap().lease.job, "b");
        let back = Ending { is_alone: false, ..ending.clone() };
        let lease = Lease { job: "b".into(), attempt: store.job("b").unwrap().unwrap().attempt };
        store.fail(&lease, &Ending { again: Some(0), ..back }, 1, 15).unwrap();
        // Its turn has come: no hand with another job gets it, or what comes after it.
        assert!(store.claim("0", 30, 0, Some(u64::MAX)).unwrap().is_none());
        let again = store.claim("0", 30, 0, None).unwrap().unwrap();
        assert!(again.is_alone && again.lease.job == "a");
    }
}

/// A witness for which a hand has no room waits, and nothing behind it is taken before it.
fn a_witness_that_has_no_room_beside_others_holds_the_order(place: &Place) {
    let store = store(place);
    submit(&store, &NewJob { witness_bytes: 100, ..job("large", 1) }, 0);
    submit(&store, &job("small", 0), 0);
    let beside = |room| store.claim("0", 9, 0, Some(room)).unwrap().map(|claim| claim.lease.job);
    assert_eq!([beside(0), beside(99)], [None, None]);
    assert_eq!([beside(100), beside(0), beside(1)], [Some("large".into()), None, Some("small".into())]);
    // An empty hand takes one of any size.
    submit(&store, &NewJob { witness_bytes: i64::MAX as u64, ..job("huge", 0) }, 0);
    let huge = claim(&store, "0", 9).unwrap();
    assert_eq!((huge.lease.job.as_str(), huge.rank), ("huge", 0));
}

fn priority_comes_first_until_the_others_are_old(place: &Place) {
    let store = store(place);
    submit(&store, &job("old", 0), 0);
    submit(&store, &job("younger", 0), 10);
    submit(&store, &job("urgent", 2), 1500);
    // Two steps are worth two seconds: this one came too late to be before the old ones.
    submit(&store, &job("late", 2), 2100);
    let order: Vec<String> = std::iter::from_fn(|| claim(&store, "0", 3000)).map(|claim| claim.lease.job).collect();
    assert_eq!(order, ["urgent", "old", "younger", "late"]);
}

fn a_start_gives_running_jobs_back_and_counts_no_failure(place: &Place) {
    let mut store = store(place);
    submit(&store, &job("a", 0), 0);
    for round in 0..5 {
        let before = claim(&store, "0", round).unwrap();
        let (again, back) = place.start(round);
        assert_eq!(back, 1);
        for store in [&store, &again] {
            assert_eq!(store.finish(&before.lease, &result(), round).unwrap(), Finished::Stale);
        }
        store = again;
    }
    let last = claim(&store, "0", 9).unwrap();
    assert_eq!(store.fail(&last.lease, &ending("device", Some(0)), 2, 9).unwrap(), Failed::Again);
    assert_eq!(store.attempts("a").unwrap().len(), 6);
}

/// A small witness comes with every claim of its job, and is there no longer than it waits and runs.
fn small_witnesses_go_with_their_jobs(place: &Place) {
    let store = store(place);
    let content: Vec<u8> = (0..=255).cycle().take(65_552).collect();
    let small = |id: &str| NewJob { content: Some(content.clone()), ..job(id, 0) };
    for id in ["done", "failed", "cancelled"] {
        submit(&store, &small(id), 0);
    }
    submit(&store, &NewJob { deadline_ms: Some(100), ..small("late") }, 0);
    submit(&store, &job("file", 1), 0);
    // What has none has a file.
    let file = claim(&store, "0", 1).unwrap();
    assert_eq!((file.lease.job.as_str(), file.content), ("file", None));
    assert_eq!(store.finish(&file.lease, &result(), 2).unwrap(), Finished::Done("file.wtns".into()));
    let first = claim(&store, "0", 3).unwrap();
    assert!(first.lease.job == "done" && first.content.as_ref() == Some(&content));
    assert_eq!(store.fail(&first.lease, &ending("device", Some(0)), 9, 4).unwrap(), Failed::Again);
    let again = claim(&store, "1", 5).unwrap();
    assert!(again.lease.job == "done" && again.content.as_ref() == Some(&content));
    // Nothing is left to remove, and nothing is left.
    assert_eq!(store.finish(&again.lease, &result(), 6).unwrap(), Finished::Done(String::new()));
    let failed = claim(&store, "0", 7).unwrap();
    assert_eq!(store.fail(&failed.lease, &ending("bad_input", None), 9, 8).unwrap(), Failed::Over(String::new()));
    assert_eq!(store.cancel("cancelled", 9).unwrap(), Cancelled::Now(String::new(), None));
    assert_eq!(store.expire(100).unwrap(), [("late".to_string(), String::new())]);
    // A name that was forgotten may come again: nothing is in its way.
    assert_eq!(store.forget(1000).unwrap(), 5);
    submit(&store, &small("done"), 1000);
}

fn deadlines_and_old_results_pass(place: &Place) {
    let store = store(place);
    submit(&store, &NewJob { deadline_ms: Some(100), ..job("a", 0) }, 0);
    assert!(store.expire(99).unwrap().is_empty());
    assert!(claim(&store, "0", 100).is_none());
    assert_eq!(store.expire(100).unwrap(), [("a".to_string(), "a.wtns".to_string())]);
    assert_eq!(store.job("a").unwrap().unwrap().code.as_deref(), Some("deadline"));
    assert_eq!((store.forget(100).unwrap(), store.forget(101).unwrap()), (0, 1));
    assert!(store.job("a").unwrap().is_none());
    // A result goes with its job, and the caller's id is free again.
    let named = NewJob { request: Some("r".into()), ..job("b", 0) };
    submit(&store, &named, 0);
    let claim = claim(&store, "0", 1).unwrap();
    store.finish(&claim.lease, &result(), 2).unwrap();
    assert_eq!(store.forget(3).unwrap(), 1);
    assert!(store.result("b").unwrap().is_none() && store.attempts("b").unwrap().is_empty());
    submit(&store, &NewJob { id: "c".into(), ..named }, 4);
}

fn an_id_stands_for_one_content(place: &Place) {
    let store = store(place);
    let named = |id: &str, digest: &str| NewJob { request: Some("r".into()), digest: digest.into(), ..job(id, 0) };
    submit(&store, &named("a", "x"), 0);
    let again = store.submit(&named("b", "x"), 1, AGEING, 1).unwrap();
    assert_eq!((again.id.as_str(), again.is_new), ("a", false));
    assert!(matches!(store.submit(&named("c", "y"), 1, AGEING, 1000), Err(StoreError::OtherContent)));
    assert!(matches!(store.submit(&job("d", 0), 1, AGEING, 1), Err(StoreError::QueueFull(1))));
    let unknown = NewJob { key: "none".into(), ..job("e", 0) };
    assert!(matches!(store.submit(&unknown, 1, AGEING, 1000), Err(StoreError::NoKey(_))));
}

fn workers_that_ask_at_once_get_different_jobs(place: &Place) {
    let store = store(place);
    for number in 0..60 {
        submit(&store, &job(&format!("j{number}"), 0), number);
    }
    let mut all: Vec<String> = std::thread::scope(|scope| {
        let take = |worker: usize| {
            let store = &store;
            move || {
                let next = || claim(store, &worker.to_string(), 1000);
                std::iter::from_fn(next).map(|claim| claim.lease.job).collect::<Vec<_>>()
            }
        };
        let threads: Vec<_> = (0..4).map(|worker| scope.spawn(take(worker))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 60);
}

fn inputs_are_claimed_by_calculators_and_their_witnesses_by_provers(place: &Place) {
    let store = store(place);
    let inputs = |id: &str, priority: i64| NewJob { form: Form::Inputs, ..job(id, priority) };
    let take = |ahead: u64, now: i64| store.claim_inputs("calculator:0", now, ahead).unwrap();
    submit(&store, &inputs("a", 0), 1);
    submit(&store, &inputs("b", 5), 2);
    submit(&store, &NewJob { deadline_ms: Some(9), ..inputs("late", 9) }, 2);
    // No prover takes them; calculators do by rank, and none whose time is over.
    assert!(claim(&store, "0", 10).is_none());
    let b = take(1, 10).unwrap();
    assert_eq!((b.lease.job.as_str(), b.lease.attempt, b.blob.as_str(), b.key.as_str()), ("b", 1, "b.wtns", "k"));
    assert_eq!(store.calculated(&b.lease, "made", 77, 11).unwrap(), Calculated::Now("b.wtns".into()));
    assert_eq!(store.needed_blobs().unwrap(), ["a.wtns", "late.wtns", "made"].map(String::from).into());
    // Told again, for the answer may be lost: the job has it, and the blob is needed.
    assert_eq!(store.calculated(&b.lease, "made", 77, 11).unwrap(), Calculated::Before);
    // Once; and what waits bounds what is calculated.
    assert_eq!(store.calculated(&b.lease, "again", 77, 11).unwrap(), Calculated::Stale);
    assert!(take(1, 12).is_none());
    let proof = claim(&store, "0", 12).unwrap();
    assert_eq!(
        (proof.lease.attempt, proof.witness.as_str(), proof.witness_bytes, proof.is_sealed),
        (2, "made", 77, true)
    );
    let codes = |id: &str| store.attempts(id).unwrap().iter().map(|a| a.code.clone()).collect::<Vec<_>>();
    assert_eq!(codes("b"), [Some("calculated".into()), None]);
    // A lease that is over gives nothing: cancelled, given back, or that of a prover.
    let a = take(1, 13).unwrap();
    place.recover(&store, 14);
    assert_eq!(store.calculated(&a.lease, "made", 1, 15).unwrap(), Calculated::Stale);
    let a = take(2, 16).unwrap();
    assert_eq!(a.lease.attempt, 2);
    store.cancel("a", 17).unwrap();
    assert_eq!(store.calculated(&a.lease, "made", 1, 18).unwrap(), Calculated::Stale);
    assert_eq!(store.job("a").unwrap().unwrap().state, State::Cancelled);
    let b = claim(&store, "0", 20).unwrap();
    assert_eq!(store.calculated(&b.lease, "late", 1, 21).unwrap(), Calculated::Stale);
}

fn ten_thousand_jobs_wait_in_order_and_a_batch_is_whole_or_not(place: &Place) {
    let store = store(place);
    let priority = |number: i64| number * 7919 % 201 - 100;
    let jobs = |from: i64, to: i64| (from..to).map(|n| job(&format!("{n:05}"), priority(n))).collect::<Vec<_>>();
    for start in (0..10_000).step_by(1000) {
        let submitted = store.submit_all(jobs(start, start + 1000), 1, AGEING, 10_000).unwrap();
        assert!(submitted.len() == 1000 && submitted.iter().all(|job| job.is_new));
    }
    assert_eq!(store.open_jobs().unwrap(), [10_000, 0]);
    // One too many, or one of a key that is not there: none of them is taken.
    assert!(matches!(store.submit_all(jobs(10_000, 10_002), 1, AGEING, 10_001), Err(StoreError::QueueFull(10_001))));
    let strange = NewJob { key: "none".into(), ..job("strange", 0) };
    let mixed = vec![job("fine", 0), strange];
    assert!(matches!(store.submit_all(mixed, 1, AGEING, 1 << 20), Err(StoreError::NoKey(_))));
    assert_eq!((store.open_jobs().unwrap(), store.job("fine").unwrap()), ([10_000, 0], None));
    let mut expected: Vec<(i64, i64)> = (0..10_000).map(|number| (-priority(number), number)).collect();
    expected.sort_unstable();
    for (_, number) in &expected[..300] {
        assert_eq!(claim(&store, "0", 2).unwrap().lease.job, format!("{number:05}"));
    }
}

fn node(url: &str, name: &str, lease: Duration) -> Store {
    let store = Store::connect(url, no_tls(), name, lease).unwrap();
    store.join("1", "{}", store.now()).unwrap();
    store
}

/// Leases pass, by the database's clock, unless they are prolonged; what is late is refused; a claim is one node's.
#[test]
fn leases_are_fenced_and_prolonged() {
    let (server, lease) = (Postgres::start(), Duration::from_millis(400));
    drop(store(&Place::Database(server.url())));
    let [a, b] = ["a", "b"].map(|name| node(&server.url(), name, lease));
    assert_eq!(a.nodes().unwrap().iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    submit(&a, &job("j", 0), a.now());
    let first = claim(&a, "0", a.now()).unwrap();
    assert!(claim(&b, "0", b.now()).is_none());
    for _ in 0..4 {
        std::thread::sleep(lease / 2);
        assert_eq!(a.beat("{}").unwrap(), Some(vec![]));
        assert!(b.expire_leases().unwrap().is_empty());
    }
    std::thread::sleep(lease * 3 / 2);
    // A result that comes now is good, as nobody else has the job; but it does not come.
    assert_eq!(b.expire_leases().unwrap(), std::slice::from_ref(&first.lease));
    let second = claim(&b, "0", b.now()).unwrap();
    assert_eq!(
        (second.lease.attempt, a.held("j"), b.held("j")),
        (2, vec![first.lease.clone()], vec![second.lease.clone()])
    );
    assert_eq!(a.beat("{}").unwrap(), Some(vec![first.lease.clone()]));
    // The attempt before; and the right attempt of the wrong node.
    for late in [&first.lease, &second.lease] {
        assert_eq!(a.finish(late, &result(), a.now()).unwrap(), Finished::Stale);
        assert_eq!(a.fail(late, &ending("device", None), 1, a.now()).unwrap(), Failed::Stale);
    }
    assert_eq!(b.finish(&second.lease, &result(), b.now()).unwrap(), Finished::Done("j.wtns".into()));
    assert_eq!(a.cancel("j", a.now()).unwrap(), Cancelled::Ended(State::Done));
    let told: Vec<_> = a.attempts("j").unwrap().into_iter().map(|of| (of.worker, of.code.unwrap())).collect();
    let expected =
        [("a/0", "lease_expired"), ("b/0", "done")].map(|(worker, code)| (worker.to_string(), code.to_string()));
    assert_eq!(told, expected);
    // A lease that is over counts for nothing, as often as it is.
    submit(&b, &job("k", 0), b.now());
    for _ in 0..3 {
        claim(&a, "0", a.now()).unwrap();
        std::thread::sleep(lease * 5 / 4);
        assert_eq!(b.expire_leases().unwrap().len(), 1);
    }
    let last = claim(&b, "0", b.now()).unwrap();
    assert_eq!(b.fail(&last.lease, &ending("device", Some(0)), 2, b.now()).unwrap(), Failed::Again);
    // A start of the same name takes the place of the one before, and its jobs wait again at once.
    claim(&b, "1", b.now()).unwrap();
    let again = Store::connect(&server.url(), no_tls(), "b", lease).unwrap();
    assert_eq!(again.join("1", "{}", again.now()).unwrap(), 1);
    assert_eq!(b.beat("{}").unwrap(), None);
    claim(&again, "0", again.now()).unwrap();
    assert_eq!((again.leave().unwrap(), again.open_jobs().unwrap()), (1, [1, 0]));
}

/// Inputs have leases, too: of two nodes, one makes the witness, and what the other one makes late is not taken.
#[test]
fn a_witness_that_comes_late_is_not_taken() {
    let (server, lease) = (Postgres::start(), Duration::from_millis(300));
    drop(store(&Place::Database(server.url())));
    let [a, b] = ["a", "b"].map(|name| node(&server.url(), name, lease));
    submit(&a, &NewJob { form: Form::Inputs, ..job("j", 0) }, a.now());
    let first = a.claim_inputs("calculator:0", a.now(), 9).unwrap().unwrap();
    std::thread::sleep(lease * 3 / 2);
    assert_eq!(b.expire_leases().unwrap(), std::slice::from_ref(&first.lease));
    let second = b.claim_inputs("calculator:0", b.now(), 9).unwrap().unwrap();
    for late in [&first.lease, &second.lease] {
        assert_eq!(a.calculated(late, "late", 1, a.now()).unwrap(), Calculated::Stale);
    }
    assert_eq!(b.calculated(&second.lease, "made", 1, b.now()).unwrap(), Calculated::Now("j.wtns".into()));
}

/// A key on the worker's own device makes a job older than it is; one on an idle device elsewhere keeps a young job for that.
fn jobs_of_keys_that_are_there_come_first_for_a_while(place: &Place) {
    let store = store(place);
    let other = KeyRow { name: "other".into(), hash: "h2".into(), ..store.key("k").unwrap().unwrap() };
    store.add_key(&other, 0).unwrap();
    let of = |id: &str| NewJob { key: "other".into(), ..job(id, 0) };
    let near = |keys: &[&str], elsewhere: &[&str]| Near {
        keys: keys.iter().map(|key| key.to_string()).collect(),
        ms: 100,
        elsewhere: elsewhere.iter().map(|key| key.to_string()).collect(),
    };
    let take = |now: i64, near: &Near| store.claim_near("0", now, 0, None, near).unwrap().map(|claim| claim.lease.job);
    submit(&store, &job("a", 0), 1000);
    submit(&store, &of("b"), 1099);
    submit(&store, &of("c"), 1101);
    submit(&store, &job("d", 0), 1101);
    // The younger by less than 100 ms comes first, one that is younger by more does not.
    let own = near(&["h2"], &[]);
    assert_eq!(take(1200, &own).as_deref(), Some("b"));
    assert_eq!(take(1200, &own).as_deref(), Some("a"));
    // Idle workers elsewhere have the key of the next: it is left to them, and the one behind it taken, for a moment.
    let elsewhere = near(&[], &["h2"]);
    assert_eq!([take(1200, &elsewhere), take(1200, &elsewhere)], [Some("d".into()), None]);
    // One that has it itself takes it at once, and any does later.
    submit(&store, &of("e"), 1101);
    assert_eq!(take(1200, &near(&["h2"], &["h2"])).as_deref(), Some("c"));
    assert_eq!(take(1501, &elsewhere).as_deref(), Some("e"));
}

/// Two nodes that take the same id at once have one job; with other content it is refused. Workers that ask at once get different jobs.
#[test]
fn nodes_that_write_at_once_agree() {
    let server = Postgres::start();
    drop(store(&Place::Database(server.url())));
    let stores = [0, 1, 2].map(|number| node(&server.url(), &number.to_string(), Duration::from_secs(60)));
    for round in 0..20 {
        let submitted = std::thread::scope(|scope| {
            let one = |number: usize| {
                let store = &stores[number];
                let digest = if number == 2 { "other" } else { "same" };
                let (request, digest) = (Some(format!("r{round}")), digest.into());
                let job = NewJob { request, digest, ..job(&format!("{round}-{number}"), 0) };
                scope.spawn(move || store.submit(&job, store.now(), AGEING, 1000))
            };
            [0, 1, 2].map(one).map(|thread| thread.join().unwrap())
        });
        let ids: HashSet<_> = submitted.iter().flatten().map(|of| of.id.clone()).collect();
        let new = submitted.iter().flatten().filter(|of| of.is_new).count();
        let refused = submitted.iter().filter(|of| matches!(of, Err(StoreError::OtherContent))).count();
        assert_eq!((ids.len(), new), (1, 1), "{submitted:?}");
        assert!(refused == 1 || refused == 2, "{submitted:?}");
    }
    let all: Vec<String> = std::thread::scope(|scope| {
        let take = |at: &Store| {
            std::iter::from_fn(|| claim(at, "0", at.now())).map(|claim| claim.lease.job).collect::<Vec<_>>()
        };
        let threads = stores.each_ref().map(|store| scope.spawn(move || take(store)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((all.len(), all.iter().collect::<HashSet<_>>().len()), (20, 20));
}

/// Nodes that reach for the same job at the same moment, again and again: one has it, and it is its first attempt.
#[test]
fn one_of_those_that_claim_at_once_has_the_job() {
    let server = Postgres::start();
    let first = store(&Place::Database(server.url()));
    let stores = [0, 1, 2, 3].map(|number| node(&server.url(), &number.to_string(), Duration::from_secs(60)));
    for (round, form) in (0..200).zip([Form::Witness, Form::Inputs].into_iter().cycle()) {
        let id = round.to_string();
        submit(&first, &NewJob { form, ..job(&id, 0) }, first.now());
        let at_once = std::sync::Barrier::new(stores.len());
        let claims = std::thread::scope(|scope| {
            let one = |store| {
                let at_once = &at_once;
                scope.spawn(move || {
                    at_once.wait();
                    match form {
                        Form::Inputs => take_inputs(store),
                        _ => claim(store, "0", store.now()).map(|claim| claim.lease),
                    }
                })
            };
            stores.each_ref().map(one).map(|thread| thread.join().unwrap())
        });
        let lease = Lease { job: id.clone(), attempt: 1 };
        assert_eq!(claims.into_iter().flatten().collect::<Vec<_>>(), [lease], "{round}");
        assert_eq!(first.attempts(&id).unwrap().len(), 1);
    }
}

fn take_inputs(store: &Store) -> Option<Lease> {
    store.claim_inputs("calculator:0", store.now(), 1000).unwrap().map(|claim| claim.lease)
}

/// A node that was stopped in the middle of a write to a job holds up that job, and nothing else.
#[test]
fn a_job_that_somebody_holds_is_passed_by() {
    let server = Postgres::start();
    let store = store(&Place::Database(server.url()));
    let late = NewJob { deadline_ms: Some(50), ..job("late", 0) };
    for job in [job("a", 0), job("b", 0), NewJob { form: Form::Inputs, ..job("i", 0) }, late] {
        submit(&store, &job, 0);
    }
    submit(&store, &NewJob { form: Form::Inputs, ..job("j", 0) }, 0);
    let mut holder = server.hold("SELECT 1 FROM jobs WHERE id IN ('a', 'i', 'late') FOR UPDATE");
    let begun = std::time::Instant::now();
    assert_eq!(claim(&store, "0", 10).unwrap().lease.job, "b");
    assert_eq!(store.claim_inputs("calculator:0", 10, 9).unwrap().unwrap().lease.job, "j");
    assert!(store.expire(100).unwrap().is_empty() && claim(&store, "0", 10).is_none());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    holder.kill().unwrap();
    holder.wait().unwrap();
    while claim(&store, "0", 10).is_none() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The answer to a transaction is lost, and nobody knows whether it was written: it is told again, and is the same.
#[test]
fn what_was_written_and_not_acknowledged_is_told_again() {
    let server = Postgres::start();
    let direct = store(&Place::Database(server.url()));
    let proxy = Proxy::start(server.port);
    let store = node(&server.url_by(proxy.port), "far", Duration::from_secs(60));
    let lost = |outcome: Option<StoreError>| {
        assert!(proxy.has_lost() && matches!(outcome, Some(StoreError::Lost(_))), "{outcome:?}");
    };
    let named = NewJob { request: Some("r".into()), form: Form::Inputs, ..job("a", 0) };
    proxy.lose("COMMIT");
    lost(store.submit(&named, store.now(), AGEING, 10).err());
    let again = store.submit(&NewJob { id: "b".into(), ..named }, store.now(), AGEING, 10).unwrap();
    assert_eq!((again.id.as_str(), again.is_new), ("a", false));
    let inputs = store.claim_inputs("calculator:0", store.now(), 9).unwrap().unwrap();
    proxy.lose("COMMIT");
    lost(store.calculated(&inputs.lease, "made", 1, store.now()).err());
    assert_eq!(store.calculated(&inputs.lease, "made", 1, store.now()).unwrap(), Calculated::Before);
    let claimed = claim(&store, "0", store.now()).unwrap();
    proxy.lose("COMMIT");
    lost(store.finish(&claimed.lease, &result(), store.now()).err());
    assert_eq!(store.finish(&claimed.lease, &result(), store.now()).unwrap(), Finished::Before("made".into()));
    assert_eq!(direct.attempts("a").unwrap().len(), 2);
    // A claim whose answer is lost is nobody's, and its lease passes.
    submit(&direct, &job("c", 0), direct.now());
    proxy.lose("COMMIT");
    lost(store.claim("0", store.now(), 0, None).err());
    assert_eq!((store.held("c"), direct.job("c").unwrap().unwrap().state), (vec![], State::Running));
}

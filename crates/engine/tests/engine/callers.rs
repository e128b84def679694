//! Proofs that many threads ask for at once, whichever they are of.

use crate::support::{Files, Watchdog};
use rayon::prelude::*;
use std::time::Duration;
use tandem_engine::{Engine, Layout, Proved, Schedule, Silent};

const CALLS: usize = 64;

/// Calls from `by`, each with its number, on each kind of device; all results are right and different.
fn all_devices(what: &'static str, by: impl Fn(&(dyn Fn(usize) -> Proved + Sync)) -> Vec<Proved>) {
    let _bound = Watchdog::new(what, Duration::from_secs(300));
    let files = Files::new(4);
    let roles = Schedule::Together(Layout::Roles);
    for (device, schedule) in [("cpu", roles), ("sim:2", roles), ("sim:2", Schedule::Each)] {
        let engine = Engine::open_as(&device.parse().unwrap(), schedule).unwrap();
        let key = files.load(&engine).unwrap();
        let call = |_: usize| engine.prove(&key, &files.witness(), &Silent).unwrap();
        let made = by(&call);
        assert_eq!(made.len(), CALLS);
        let proofs: std::collections::HashSet<_> = made.iter().map(|proved| proved.proof.as_bytes()).collect();
        assert_eq!(proofs.len(), CALLS, "each proof is blinded by itself");
        made.iter().enumerate().for_each(|(i, proved)| files.check(proved, &i.to_string()));
        assert!(made.iter().all(|proved| proved.fallback.is_none()));
    }
}

#[test]
fn a_pool_of_two_threads_may_ask() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    all_devices("a pool", |call| pool.install(|| (0..CALLS).into_par_iter().with_max_len(1).map(call).collect()));
}

#[test]
fn the_pool_of_the_process_may_ask() {
    all_devices("the process's pool", |call| (0..CALLS).into_par_iter().with_max_len(1).map(call).collect());
}

#[test]
fn sixty_four_threads_may_ask() {
    all_devices("threads", |call| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CALLS).map(|i| scope.spawn(move || call(i))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    });
}

#[test]
fn a_pool_for_blocking_calls_may_ask() {
    let _bound = Watchdog::new("tokio", Duration::from_secs(300));
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(8).build().unwrap();
    let files = std::sync::Arc::new(Files::new(4));
    for (device, schedule) in [("cpu", Schedule::default()), ("sim:2", Schedule::Each)] {
        let engine = Engine::open_as(&device.parse().unwrap(), schedule).unwrap();
        let opened = std::sync::Arc::new((files.load(&engine).unwrap(), engine));
        let calls: Vec<_> = (0..CALLS)
            .map(|_| {
                let (opened, files) = (opened.clone(), files.clone());
                runtime.spawn_blocking(move || opened.1.prove(&opened.0, &files.witness(), &Silent).unwrap())
            })
            .collect();
        for (i, call) in calls.into_iter().enumerate() {
            files.check(&runtime.block_on(call).unwrap(), &i.to_string());
        }
    }
}

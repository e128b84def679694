//! The orders of memory between processes, on pretend PEs: each test counts outcomes that must not be.

use super::{meet, open, play, Scene};
use std::time::Duration;
use tandem_fabric::{Atomic, Compare, OneSided, Options, Pe, Result, Signal, Symmetric, Team};

pub(super) const SCENES: &[Scene] =
    &[("message passing", message_passing), ("store buffering", store_buffering), ("all to all", all_to_all)];

/// Rounds of each: few on every run, a million where `TANDEM_TEST_ROUNDS` says so.
fn rounds() -> u64 {
    std::env::var(super::ROUNDS).map_or(3000, |text| text.parse().expect("TANDEM_TEST_ROUNDS is a number"))
}

fn patient() -> Team {
    open(Options { timeout: Duration::from_secs(60), ..Options::default() })
}

/// Runs a program on the PEs of this process, each with memory of all: 64 words of data, and one of signals.
fn on_all(
    team: &Team,
    program: impl Fn(&Pe, &Symmetric<u64>, &Symmetric<u64>) -> Result<()> + Clone + Send + Sync + 'static,
) {
    let (data, word): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(64).unwrap(), team.alloc(1).unwrap());
    for queue in team.queues() {
        let (program, data, word) = (program.clone(), data.clone(), word.clone());
        queue.run(move |pe| program(pe, &data, &word)).unwrap();
    }
    team.synchronize().unwrap();
    meet(team);
}

/// Data, then a signal: who sees the signal sees the data.
fn message_passing() {
    let (team, rounds) = (patient(), rounds());
    on_all(&team, move |pe, data, word| {
        let other = 1 - pe.me();
        for round in 1..=rounds {
            let place = data.at((round % 64) as usize)?;
            if pe.me() == 0 {
                pe.p(&place, round * 3, other)?;
                pe.signal_op(word, Signal::Set(round), other)?;
                pe.signal_wait_until(word, Compare::Ge, round, Some(other))?;
            } else {
                pe.signal_wait_until(word, Compare::Ge, round, Some(other))?;
                assert_eq!(pe.load(&place)?, [round * 3], "the signal came before its data");
                pe.signal_op(word, Signal::Set(round), other)?;
            }
        }
        Ok(())
    });
}

/// Each writes to the other, then reads what the other wrote: at least one sees it.
fn store_buffering() {
    let (team, rounds) = (patient(), rounds());
    let seen: Symmetric<u64> = team.alloc(rounds as usize + 1).unwrap();
    let mine = seen.clone();
    on_all(&team, move |pe, data, _| {
        for round in 1..=rounds {
            pe.p(&data.at(0)?, round, 1 - pe.me())?;
            pe.quiet();
            let found = pe.load(&data.at(0)?)?[0];
            pe.p(&mine.at(round as usize)?, u64::from(found >= round), pe.me())?;
            pe.barrier()?;
        }
        Ok(())
    });
    let [a, b] = [0, 1].map(|pe| team.read(pe, &seen).unwrap());
    let neither = (1..=rounds as usize).filter(|&round| a[round] + b[round] == 0).count();
    assert_eq!(neither, 0, "rounds in which neither has seen the other");
    meet(&team);
}

/// Everyone writes to all and counts up a word of all: who has counted all sees all.
fn all_to_all() {
    let (team, rounds) = (patient(), rounds());
    on_all(&team, move |pe, data, word| {
        let n = pe.size();
        for round in 1..=rounds {
            for to in 0..n {
                pe.p(&data.at(pe.me())?, round, to)?;
                pe.atomic(word, Atomic::Add(1), to)?;
            }
            pe.wait_until(word, Compare::Ge, round * n as u64, None)?;
            assert_eq!(pe.load(&data.slice(0..n)?)?, vec![round; n], "a count came before its data");
            pe.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn signals_come_after_their_data() {
    play("message passing", &[1, 1]);
}

#[test]
fn quiet_orders_reads_after_writes() {
    play("store buffering", &[1, 1]);
}

#[test]
fn counts_come_after_their_data() {
    play("all to all", &[1, 1, 1]);
    play("all to all", &[2, 1]);
}

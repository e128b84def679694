//! Meetings: the ranks of a communicator, each with a thread of its own, come to their calls of one number.

use super::{plan, Clique, Outcome, State, Wanted};
use crate::machine::Visit;
use crate::settings::log;
use crate::{lock, table, INTERNAL_ERROR};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// How long a rank waits for the others. Then the call goes to NCCL, which lets a rank go on before the others have come.
const PATIENCE: Duration = Duration::from_millis(if cfg!(feature = "pretend") { 2000 } else { 100 });
/// So many times; then threads meet no more.
const MOST_MISSED: u32 = 3;

pub(super) struct Meeting {
    /// By rank.
    come: Vec<Option<Wanted>>,
    outcome: Option<Outcome>,
    waiting: usize,
}

impl Meeting {
    /// One of the ranks does not wait for the others, so none takes part.
    pub(super) fn forward(&mut self) {
        self.outcome.get_or_insert(Outcome::Forward);
    }
}

/// Whether these are calls of different ranks, which all take part in.
pub(super) fn is_one_each(calls: &[&Wanted]) -> bool {
    let is_first = |i: usize| calls[..i].iter().all(|before| before.rank != calls[i].rank);
    (0..calls.len()).all(|i| is_first(i) && !calls[i].call.what.is_of_a_pair())
}

impl Clique {
    /// Waits for the others with a call for each of some ranks.
    pub(super) fn meet(&self, calls: &[&Wanted]) -> Vec<Outcome> {
        let mut state = lock(&self.state);
        if self.fault.get().is_some() {
            return vec![Outcome::Done(INTERNAL_ERROR); calls.len()];
        }
        let numbers: Vec<Option<u64>> = calls.iter().map(|wanted| self.come(&mut state, wanted)).collect();
        self.changed.notify_all();
        let end = Instant::now() + PATIENCE;
        let mut out = Vec::with_capacity(calls.len());
        for number in numbers {
            let Some(number) = number else {
                out.push(Outcome::Forward);
                continue;
            };
            loop {
                let Some(meeting) = state.meetings.get_mut(&number) else { break out.push(Outcome::Forward) };
                let left = end.saturating_duration_since(Instant::now());
                if meeting.outcome.is_none() && left.is_zero() {
                    meeting.forward();
                    state.missed += 1;
                    log(|| format!("forwarded: not all ranks came within {PATIENCE:?}"));
                    self.changed.notify_all();
                    continue;
                }
                if let Some(outcome) = meeting.outcome {
                    meeting.waiting -= 1;
                    if meeting.waiting == 0 {
                        state.meetings.remove(&number);
                    }
                    break out.push(outcome);
                }
                state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        out
    }

    /// Comes to a meeting, and closes it where all have come: its number, or none where the call goes to NCCL at once.
    fn come(&self, state: &mut State, wanted: &Wanted) -> Option<u64> {
        let number = state.count[wanted.rank];
        // A rank that is past this number has not waited here.
        let is_passed = !state.meetings.contains_key(&number) && state.count.iter().any(|&count| count > number);
        let is_apart = state.members.iter().any(Option::is_none) || state.missed >= MOST_MISSED;
        // What every rank sees by itself needs no meeting; a stream that only this one sees ends it.
        let is_small = wanted.call.work(self.ranks).is_ok_and(|work| table::has(&work, self.ranks));
        let is_apart = is_apart || !is_small || Visit::begin().stream(wanted.buffers.stream).is_none();
        if is_passed || is_apart || state.closed.is_some() {
            state.pass(wanted);
            return None;
        }
        state.count[wanted.rank] += 1;
        let ranks = self.ranks;
        let new = || Meeting { come: vec![None; ranks], outcome: None, waiting: 0 };
        let meeting = state.meetings.entry(number).or_insert_with(new);
        meeting.waiting += 1;
        meeting.come[wanted.rank] = Some(wanted.clone());
        if meeting.outcome.is_none() && meeting.come.iter().all(Option::is_some) {
            let calls: Vec<_> = meeting.come.iter().flatten().map(|wanted| (wanted.call, wanted.buffers)).collect();
            let step = plan::step(&calls).map(|step| vec![step]);
            let outcome = self.carry_out(state, step);
            if let Some(meeting) = state.meetings.get_mut(&number) {
                meeting.outcome = Some(outcome);
            }
        }
        Some(number)
    }
}

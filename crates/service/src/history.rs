//! What happened in the last minutes, in steps of a few seconds: from the jobs that ended, and from looks at the queue.

use crate::store::{RecentEnd, State};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// A step of the plots.
pub(crate) const STEP_MS: i64 = 5_000;

/// Steps of the plots.
const STEPS: i64 = 60;

/// How far the plots go back.
pub(crate) const LOOK_BACK_MS: i64 = STEP_MS * STEPS;

/// Looks that are kept: one a second.
const LOOKS: usize = 300;

/// A look at the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    at_ms: i64,
    pending: u64,
    running: u64,
}

/// Looks at the queue, and since when there are any.
pub(crate) struct History {
    started_ms: i64,
    samples: Mutex<VecDeque<Sample>>,
}

impl History {
    pub(crate) fn new(started_ms: i64) -> History {
        History { started_ms, samples: Mutex::default() }
    }

    /// When the service was started.
    pub(crate) fn started_ms(&self) -> i64 {
        self.started_ms
    }

    /// Notes how many jobs wait and run now.
    pub(crate) fn note(&self, at_ms: i64, pending: u64, running: u64) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        while samples.len() >= LOOKS {
            samples.pop_front();
        }
        samples.push_back(Sample { at_ms, pending, running });
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// What happened in a step.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) at_ms: i64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// Jobs at the last look; `None` where there was none.
    pub(crate) pending: Option<u64>,
    pub(crate) running: Option<u64>,
    /// Milliseconds from being accepted to being done, the least first.
    latencies: Vec<i64>,
}

impl Step {
    /// The latency that so many percent of the jobs had at most, by the nearest rank.
    pub(crate) fn percentile(&self, percent: usize) -> Option<i64> {
        let rank = (self.latencies.len() * percent).div_ceil(100);
        self.latencies.get(rank.saturating_sub(1)).copied()
    }

    fn count(&mut self, end: &RecentEnd) {
        match end.state {
            State::Done => {
                self.done += 1;
                self.latencies.push((end.ended_ms - end.created_ms).max(0));
            }
            State::Failed => self.failed += 1,
            _ => {}
        }
    }
}

/// The steps up to now, the oldest first, and all of them as one. Steps begin at multiples of their length, so that they stay the same from
/// one look to the next.
pub(crate) fn steps(now: i64, ends: &[RecentEnd], samples: &[Sample]) -> (Vec<Step>, Step) {
    let last = now.div_euclid(STEP_MS);
    let first = last - STEPS + 1;
    let mut steps: Vec<Step> = (first..=last).map(|step| Step { at_ms: step * STEP_MS, ..Step::default() }).collect();
    let mut whole = Step { at_ms: first * STEP_MS, ..Step::default() };
    let place = |ms: i64| usize::try_from(ms.div_euclid(STEP_MS) - first).ok();
    for end in ends {
        if let Some(step) = place(end.ended_ms).and_then(|place| steps.get_mut(place)) {
            step.count(end);
            whole.count(end);
        }
    }
    for sample in samples {
        if let Some(step) = place(sample.at_ms).and_then(|place| steps.get_mut(place)) {
            (step.pending, step.running) = (Some(sample.pending), Some(sample.running));
        }
    }
    steps.iter_mut().chain([&mut whole]).for_each(|step| step.latencies.sort_unstable());
    (steps, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(state: State, created_ms: i64, ended_ms: i64) -> RecentEnd {
        RecentEnd { state, created_ms, ended_ms }
    }

    #[test]
    fn ends_and_looks_are_in_their_steps() {
        let now = 1_000_003;
        let ends = [
            end(State::Done, 999_900, 1_000_000),
            end(State::Done, 999_800, 1_000_001),
            end(State::Failed, 0, 999_999),
            end(State::Cancelled, 0, 999_999),
            // Too old, and of a clock that was put back.
            end(State::Done, 0, now - LOOK_BACK_MS - STEP_MS),
            end(State::Done, 0, now + STEP_MS),
        ];
        let samples = [(999_000, 7), (999_900, 8), (1_000_001, 9)];
        let samples = samples.map(|(at_ms, pending)| Sample { at_ms, pending, running: 1 });
        let (steps, whole) = steps(now, &ends, &samples);
        assert_eq!((steps.len(), steps[0].at_ms, steps[59].at_ms), (60, 705_000, 1_000_000));
        let of = |step: &Step| (step.done, step.failed, step.pending, step.percentile(50), step.percentile(90));
        assert_eq!(of(&steps[59]), (2, 0, Some(9), Some(100), Some(201)));
        assert_eq!(of(&steps[58]), (0, 1, Some(8), None, None));
        assert_eq!(of(&steps[57]), (0, 0, None, None, None));
        assert_eq!(of(&whole), (2, 1, None, Some(100), Some(201)));
    }

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let of = |latencies: Vec<i64>| {
            let step = Step { latencies, ..Step::default() };
            [0, 1, 50, 90, 99, 100].map(|percent| step.percentile(percent))
        };
        assert_eq!(of(vec![]), [None; 6]);
        assert_eq!(of(vec![4]), [Some(4); 6]);
        assert_eq!(of((1..=10).collect()), [1, 1, 5, 9, 10, 10].map(Some));
        assert_eq!(of((1..=101).collect()), [1, 2, 51, 91, 100, 101].map(Some));
    }

    #[test]
    fn no_more_looks_are_kept_than_are_shown() {
        let history = History::new(0);
        (0..1000).for_each(|at| history.note(at, 1, 1));
        let samples = history.samples();
        assert_eq!((samples.len(), samples[0].at_ms, samples[LOOKS - 1].at_ms), (LOOKS, 700, 999));
    }
}

//! How long planning may take.

use crate::{Error, Result};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Steps between two looks at the time.
const BETWEEN_LOOKS: u64 = 1 << 16;

/// What a search may take. When it is used up, the best plan so far is the result, and [`super::Plan::is_cut_short`] says so.
#[derive(Debug, Clone)]
pub struct Budget {
    steps: u64,
    time: Option<Duration>,
    is_cancelled: Option<fn() -> bool>,
}

impl Default for Budget {
    /// A limit in steps that machines do not come near, so that results do not depend on time.
    fn default() -> Self {
        Self::of_steps(10_000_000_000)
    }
}

impl Budget {
    /// So many steps, each about an edge that is looked at; a plan is the same on every machine.
    pub fn of_steps(steps: u64) -> Self {
        Self { steps, time: None, is_cancelled: None }
    }

    /// So much time. Where it is enough, it changes nothing.
    pub fn of_time(time: Duration) -> Self {
        Self { steps: u64::MAX, time: Some(time), is_cancelled: None }
    }

    /// Asks now and then; where the answer is yes, planning ends at once with [`Error::Stopped`].
    pub fn cancelled_by(self, is_cancelled: fn() -> bool) -> Self {
        Self { is_cancelled: Some(is_cancelled), ..self }
    }

    pub(crate) fn begin(&self) -> Clock {
        let until = self.time.and_then(|time| Instant::now().checked_add(time));
        Clock { used: Rc::default(), looked: Rc::default(), most: self.steps, until, is_cancelled: self.is_cancelled }
    }
}

/// A budget in use, or a part of one.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    used: Rc<Cell<u64>>,
    /// At how many steps it last looked at the time.
    looked: Rc<Cell<u64>>,
    most: u64,
    until: Option<Instant>,
    is_cancelled: Option<fn() -> bool>,
}

impl Clock {
    /// A hundredth of what is left, times `percent`.
    pub(crate) fn part(&self, percent: u32) -> Self {
        let used = self.used.get();
        let most = used + (self.most.saturating_sub(used) / 100).saturating_mul(percent.into());
        let now = Instant::now();
        let until = self.until.map(|until| now + until.saturating_duration_since(now) * percent / 100);
        self.looked.set(used);
        Self { most, until, ..self.clone() }
    }

    /// Counts steps.
    ///
    /// # Errors
    /// They are used up, time is, or the search was cancelled.
    pub(crate) fn take(&self, steps: u64) -> Result<()> {
        self.used.set(self.used.get().saturating_add(steps));
        if self.is_over() {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// Whether nothing is left.
    pub(crate) fn is_over(&self) -> bool {
        let used = self.used.get();
        if used > self.most {
            return true;
        }
        if used - self.looked.get() < BETWEEN_LOOKS {
            return false;
        }
        let is_over = self.until.is_some_and(|until| Instant::now() >= until) || self.is_cancelled();
        if !is_over {
            self.looked.set(used);
        }
        is_over
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.is_some_and(|ask| ask())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_and_parted() {
        let clock = Budget::of_steps(1000).begin();
        let half = clock.part(50);
        assert_eq!((half.take(500), half.take(1), half.is_over()), (Ok(()), Err(Error::Stopped), true));
        assert!(!clock.is_over());
        // Of the 499 that are left, in whole hundredths.
        let rest = clock.part(100);
        assert_eq!((rest.take(400), rest.take(1)), (Ok(()), Err(Error::Stopped)));
        assert_eq!(Budget::of_steps(u64::MAX).begin().take(u64::MAX), Ok(()));
    }

    #[test]
    fn time_and_cancelling_stop_it() {
        let over = Budget::of_time(Duration::ZERO).begin();
        assert_eq!(over.take(BETWEEN_LOOKS), Err(Error::Stopped));
        assert!(over.is_over() && over.part(50).take(BETWEEN_LOOKS).is_err());
        let asked = Budget::default().cancelled_by(|| true).begin();
        assert_eq!((asked.take(1), asked.take(BETWEEN_LOOKS)), (Ok(()), Err(Error::Stopped)));
        assert!(Budget::of_time(Duration::MAX).begin().take(BETWEEN_LOOKS).is_ok());
    }
}

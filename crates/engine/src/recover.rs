//! What is done about a device that fails: wait for memory that others hold, ask for less, open it again, or give it up for a while.

use crate::{Error, Progress, Result};
use std::time::{Duration, Instant};
use tandem_ops::Error as Fault;

/// How long memory that others hold is waited for, where nobody says.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Try again after this time.
    Wait(Duration),
    /// Load the key again with the least tables.
    Smaller,
    /// Open the device again and load the key onto it.
    Reopen,
    /// Nothing helps.
    GiveUp,
}

/// What has been done so far about the faults of one call.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    patience: Duration,
    /// Whether a smaller key or a new device can help at all.
    recovers: bool,
    waited: Duration,
    waits: u32,
    is_smaller: bool,
    is_reopened: bool,
    first: Option<String>,
}

impl Tried {
    /// Nothing yet. The host's own memory is not waited for.
    pub(crate) fn new(patience: Duration, recovers: bool) -> Self {
        Tried { patience, recovers, ..Tried::default() }
    }

    /// What to do about `fault`, which is taken to be done.
    pub(crate) fn next(&mut self, fault: &Fault) -> Next {
        self.first.get_or_insert_with(|| fault.to_string());
        let next = self.decide(fault);
        match next {
            Next::Wait(time) => {
                self.waited += time;
                self.waits += 1;
            }
            Next::Smaller => self.is_smaller = true,
            Next::Reopen => self.is_reopened = true,
            Next::GiveUp => {}
        }
        next
    }

    /// Half of the patience goes by before less memory is asked for, which makes proofs slower as long as the key is loaded.
    fn decide(&self, fault: &Fault) -> Next {
        match fault {
            _ if !self.recovers => Next::GiveUp,
            _ if is_short(fault) => {
                let end = if self.is_smaller { self.patience } else { self.patience / 2 };
                let left = end.saturating_sub(self.waited);
                match (left.is_zero(), self.is_smaller) {
                    (true, false) => Next::Smaller,
                    (true, true) => Next::GiveUp,
                    (false, _) => Next::Wait(Duration::from_millis(20 << self.waits.min(5)).min(left)),
                }
            }
            Fault::Device { .. } if !self.is_reopened => Next::Reopen,
            _ => Next::GiveUp,
        }
    }

    /// What was done, one sentence to be shown; nothing where nothing was.
    pub(crate) fn told(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        let waited = (!self.waited.is_zero()).then(|| format!("waited {:.1} s for memory", self.waited.as_secs_f64()));
        let smaller = self.is_smaller.then(|| "loaded the key with the least tables".to_string());
        let reopened = self.is_reopened.then(|| "opened the device again".to_string());
        let done: Vec<_> = [waited, smaller, reopened].into_iter().flatten().collect();
        (!done.is_empty()).then(|| format!("{first}; {}", done.join(", ")))
    }
}

/// Whether a device was short of memory: where it is the driver that needs some for itself, only the code says so.
fn is_short(fault: &Fault) -> bool {
    matches!(fault, Fault::OutOfMemory { .. } | Fault::Device { code: tandem_ops_cuda::OUT_OF_MEMORY, .. })
}

/// Opens a device, whose driver takes memory of it that others may hold for now.
pub(crate) fn open<B>(open: impl Fn() -> tandem_ops::Result<B>) -> tandem_ops::Result<B> {
    let mut tried = Tried::new(PATIENCE, true);
    loop {
        let fault = match open() {
            Ok(opened) => return Ok(opened),
            Err(fault) => fault,
        };
        match tried.next(&fault) {
            Next::Wait(time) => std::thread::sleep(time),
            Next::Smaller => {}
            Next::Reopen | Next::GiveUp => return Err(fault),
        }
    }
}

/// Sleeps, unless the user asks to stop.
pub(crate) fn sleep(time: Duration, progress: &dyn Progress) -> Result<()> {
    progress.start("wait for memory", 0);
    let end = Instant::now() + time;
    loop {
        if progress.cancelled() {
            return Err(Error::Interrupted);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}

/// A device that is left alone for a while after it was given up.
#[derive(Debug)]
pub(crate) struct Away {
    pub(crate) fault: Fault,
    until: Instant,
    pause: Duration,
}

impl Away {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);

    /// Given up at `now`, the last time for `before`.
    pub(crate) fn new(fault: Fault, before: Option<&Away>, now: Instant) -> Self {
        let pause = before.map_or(Self::FIRST, |away| (2 * away.pause).min(Self::LONGEST));
        Away { fault, until: now + pause, pause }
    }

    /// Whether it is to be tried again.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;

    fn no_memory() -> Fault {
        Fault::OutOfMemory { op: "alloc", device: "GPU".into(), wanted: 9, free: 7 }
    }

    fn broken() -> Fault {
        Fault::Device { op: "msm", device: "GPU".into(), code: 700, code_name: "x".into(), text: "y".into() }
    }

    fn steps(tried: &mut Tried, fault: &Fault) -> Vec<Next> {
        let mut steps = Vec::new();
        while steps.last() != Some(&Next::GiveUp) {
            assert!(steps.len() < 100, "{steps:?}");
            steps.push(tried.next(fault));
        }
        steps
    }

    #[test]
    fn memory_is_waited_for_and_then_less_is_asked_for() {
        let mut tried = Tried::new(Duration::from_secs(4), true);
        let steps = steps(&mut tried, &no_memory());
        let waited = |steps: &[Next]| {
            let time = |step: &Next| if let Next::Wait(time) = step { *time } else { panic!("{steps:?}") };
            steps.iter().map(time).sum::<Duration>()
        };
        let smaller = steps.iter().position(|step| *step == Next::Smaller).unwrap();
        assert_eq!(waited(&steps[..smaller]), Duration::from_secs(2), "{steps:?}");
        assert_eq!(waited(&steps[smaller + 1..steps.len() - 1]), Duration::from_secs(2), "{steps:?}");
        assert_eq!(steps[0], Next::Wait(Duration::from_millis(20)), "{steps:?}");
        // Memory that comes back is not left alone for long.
        let longest = |step: &Next| !matches!(step, Next::Wait(time) if *time > Duration::from_millis(640));
        let mut patient = Tried::new(Duration::from_secs(30), true);
        assert!(super::tests::steps(&mut patient, &no_memory()).iter().all(longest));
        let told = tried.told().unwrap();
        assert!(
            told.contains("needs 9 bytes") && told.contains("waited 4.0 s") && told.contains("least tables"),
            "{told}"
        );
    }

    #[test]
    fn without_patience_nothing_is_waited_for() {
        let mut tried = Tried::new(Duration::ZERO, true);
        assert_eq!(steps(&mut tried, &no_memory()), [Next::Smaller, Next::GiveUp]);
        let mut tried = Tried::new(Duration::from_secs(4), false);
        assert_eq!(steps(&mut tried, &no_memory()), [Next::GiveUp]);
        assert_eq!(tried.told(), None);
    }

    #[test]
    fn a_device_that_failed_is_opened_once_again() {
        let mut tried = Tried::new(Duration::from_secs(4), true);
        assert_eq!(steps(&mut tried, &broken()), [Next::Reopen, Next::GiveUp]);
        assert!(tried.told().unwrap().contains("opened the device again"));
        // What came first is told.
        let mut tried = Tried::new(Duration::ZERO, true);
        assert_eq!([&no_memory(), &broken()].map(|fault| tried.next(fault)), [Next::Smaller, Next::Reopen]);
        let told = tried.told().unwrap();
        assert!(told.contains("needs 9 bytes") && !told.contains("cudaError"), "{told}");
        let invalid = Fault::invalid("prove", "no lane");
        assert_eq!(steps(&mut Tried::new(Duration::from_secs(4), true), &invalid), [Next::GiveUp]);
    }

    #[test]
    fn memory_for_the_driver_is_waited_for() {
        let calls = std::cell::Cell::new(0);
        let opened = |fault: Fault, times: u32| {
            calls.set(0);
            open(|| {
                calls.set(calls.get() + 1);
                if calls.get() > times {
                    Ok(calls.get())
                } else {
                    Err(fault.clone())
                }
            })
        };
        let (code_name, text) = ("x".into(), "y".into());
        let short = Fault::Device { op: "open GPUs", device: "GPU".into(), code: 2, code_name, text };
        assert_eq!(opened(short, 3).unwrap(), 4);
        assert_eq!(opened(no_memory(), 2).unwrap(), 3);
        assert!(opened(broken(), 1).is_err() && calls.get() == 1);
    }

    #[test]
    fn a_device_stays_away_for_longer_each_time() {
        let now = Instant::now();
        let mut away = Away::new(broken(), None, now);
        assert!(!away.is_over(now) && away.is_over(now + Away::FIRST));
        for _ in 0..9 {
            away = Away::new(broken(), Some(&away), now);
        }
        assert!(!away.is_over(now + Away::LONGEST / 2) && away.is_over(now + Away::LONGEST));
    }

    #[test]
    fn a_wait_ends_when_the_user_says_so() {
        struct Stop;
        impl Progress for Stop {
            fn cancelled(&self) -> bool {
                true
            }
        }
        assert!(matches!(sleep(Duration::from_secs(3600), &Stop), Err(Error::Interrupted)));
        let begun = Instant::now();
        sleep(Duration::from_millis(30), &Silent).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(30));
    }
}

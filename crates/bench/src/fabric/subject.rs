//! What is measured, and how: calls are warmed up, timed alone and in a queue, and checked.

use super::rows::Row;
use std::time::{Duration, Instant};
use tandem_console::failure::Outcome;

/// An implementation of an operation.
pub(crate) trait Subject {
    /// Whose, such as `tandem`.
    fn library(&self) -> String;
    /// Makes ready for a size; the size that it really has, or 0 where it has none so small.
    fn prepare(&mut self, bytes: u64) -> Outcome<u64>;
    /// Begins a call. Returns when it is queued, or done.
    fn start(&mut self) -> Outcome;
    /// Returns when all calls are complete everywhere.
    fn wait(&mut self) -> Outcome;
    /// A call, complete everywhere when it returns.
    fn once(&mut self) -> Outcome {
        self.start()?;
        self.wait()
    }
    /// The part of its bytes that the last call sent through host memory beside the links; `None` where there is no such way.
    fn through_host(&self) -> Option<f64> {
        None
    }
    /// The rate of the plan that is carried out, GB/s as `algbw` counts them; `None` where there is none.
    fn planned(&self) -> Option<f64> {
        None
    }
    /// How often one call does the operation; times are divided by it.
    fn repeats(&self) -> u32 {
        1
    }
    /// Whether `start` returns before the call is done.
    fn is_queued(&self) -> bool {
        true
    }
    /// Does it once in a place with other data and counts the elements that are wrong; `None` where it cannot look.
    fn wrong(&mut self) -> Outcome<Option<u64>>;
}

/// Calls of a size are timed for about so long.
const LONG: Duration = Duration::from_millis(60);
/// But so many at least, where they take no longer than the second time; one at least.
const LEAST: u32 = 5;
const LONGEST: Duration = Duration::from_secs(1);

/// Measures one size.
pub(crate) fn measure(subject: &mut dyn Subject, bytes: u64, warmup: u32, iters: u32) -> Outcome<Option<Row>> {
    let bytes = subject.prepare(bytes)?;
    if bytes == 0 {
        return Ok(None);
    }
    let wrong = subject.wrong()?;
    let begun = Instant::now();
    for call in 0..warmup {
        subject.start()?;
        if call == 0 {
            subject.wait()?;
            if begun.elapsed() > LONG {
                break;
            }
        }
    }
    subject.wait()?;
    let alone = |subject: &mut dyn Subject| -> Outcome<f64> {
        let begun = Instant::now();
        subject.once()?;
        Ok(begun.elapsed().as_secs_f64())
    };
    let mut first = alone(subject)?;
    if first < LONG.as_secs_f64() {
        first = alone(subject)?;
    }
    let fitting = |time: Duration| (time.as_secs_f64() / first.max(1e-9)) as u32;
    let count = iters.min(fitting(LONG).max(fitting(LONGEST).clamp(1, LEAST)));
    let seconds = (0..count).map(|_| alone(subject)).collect::<Outcome<Vec<f64>>>()?;
    let repeats = f64::from(subject.repeats());
    let latency = crate::rows::median_and_min(&seconds).0 / repeats;
    let through_host = subject.through_host();
    let queued = if subject.is_queued() {
        let begun = Instant::now();
        for _ in 0..count {
            subject.start()?;
        }
        subject.wait()?;
        Some(begun.elapsed().as_secs_f64() / f64::from(count) / repeats)
    } else {
        None
    };
    let planned = subject.planned();
    let (library, queued, latency) = (subject.library(), queued.map(|s| s * 1e6), latency * 1e6);
    Ok(Some(Row { library, bytes, queued, latency, through_host, planned, wrong }))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting {
        started: u32,
        open: u32,
    }

    impl Subject for Counting {
        fn library(&self) -> String {
            "test".into()
        }
        fn prepare(&mut self, bytes: u64) -> Outcome<u64> {
            Ok(bytes / 4 * 4)
        }
        fn start(&mut self) -> Outcome {
            self.started += 1;
            self.open += 1;
            Ok(())
        }
        fn wait(&mut self) -> Outcome {
            std::thread::sleep(Duration::from_millis(2) * self.open);
            self.open = 0;
            Ok(())
        }
        fn wrong(&mut self) -> Outcome<Option<u64>> {
            Ok(Some(0))
        }
    }

    /// Calls that take long are made a few times.
    #[test]
    fn long_calls_are_few() {
        struct Long(u32);
        impl Subject for Long {
            fn library(&self) -> String {
                "test".into()
            }
            fn prepare(&mut self, bytes: u64) -> Outcome<u64> {
                Ok(bytes)
            }
            fn start(&mut self) -> Outcome {
                self.0 += 1;
                std::thread::sleep(Duration::from_millis(400));
                Ok(())
            }
            fn wait(&mut self) -> Outcome {
                Ok(())
            }
            fn is_queued(&self) -> bool {
                false
            }
            fn wrong(&mut self) -> Outcome<Option<u64>> {
                Ok(None)
            }
        }
        let mut subject = Long(0);
        assert!(measure(&mut subject, 8, 5, 200).ok().flatten().is_some_and(|row| row.latency >= 4e5));
        assert!((3..=4).contains(&subject.0), "{} calls", subject.0);
    }

    #[test]
    fn calls_are_timed_alone_and_queued() {
        let mut subject = Counting { started: 0, open: 0 };
        let row = measure(&mut subject, 4098, 3, 6).ok().flatten().unwrap();
        assert_eq!((row.bytes, subject.started), (4096, 3 + 2 + 6 + 6));
        assert!(row.latency >= 2e3 && row.queued.unwrap() >= 2e3, "{row:?}");
        assert!(row.algbw() <= 4096.0 / 2e3 / 1e3);
        assert!(measure(&mut subject, 3, 0, 1).ok().flatten().is_none());
    }
}

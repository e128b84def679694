//! How often each token may submit: a bucket that fills with time and is emptied by requests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time of a rate.
const MINUTE: f64 = 60.0;

/// A bucket for each token that has a rate. It is by the machine's monotonic clock, and full after a start.
#[derive(Default)]
pub(crate) struct Rates(Mutex<HashMap<String, Bucket>>);

struct Bucket {
    /// Requests that are still free.
    level: f64,
    at: Instant,
}

impl Rates {
    /// Counts a request of a token that has `rate` a minute.
    ///
    /// # Errors
    /// None is free; the time until one is.
    pub(crate) fn take(&self, token: &str, rate: u64, now: Instant) -> Result<(), Duration> {
        let most = rate.max(1) as f64;
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(token.into()).or_insert(Bucket { level: most, at: now });
        let gained = now.saturating_duration_since(bucket.at).as_secs_f64() * most / MINUTE;
        bucket.level = (bucket.level + gained).min(most);
        bucket.at = now;
        if bucket.level < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.level) * MINUTE / most));
        }
        bucket.level -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_full_empties_and_fills_again() {
        let (rates, begun) = (Rates::default(), Instant::now());
        let take = |token: &str, seconds: f64| rates.take(token, 30, begun + Duration::from_secs_f64(seconds));
        assert!((0..30).all(|_| take("a", 0.0).is_ok()));
        // Two seconds for each of thirty a minute.
        let wait = take("a", 0.5).unwrap_err().as_secs_f64();
        assert!((wait - 1.5).abs() < 1e-6, "{wait}");
        // Another's bucket is another one, and who waited may.
        assert!(take("b", 0.5).is_ok() && take("a", 2.1).is_ok() && take("a", 2.2).is_err());
        // Not more than a bucket holds, however long it was left alone.
        assert_eq!((0..99).filter(|_| take("a", 9999.0).is_ok()).count(), 30);
    }
}

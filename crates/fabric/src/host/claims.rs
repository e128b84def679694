//! Who moves which chunk: shares that were planned, and corrected by whoever is done first.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Chunks of a transfer, a run of them for each link. A link whose run is used up takes from the end of the longest one, so that all
/// end together whatever the shares were.
pub(super) struct Claims {
    left: Mutex<Vec<Range<usize>>>,
}

impl Claims {
    /// `chunks` chunks, in proportion to `shares`, of which at least one is above 0. Every link may help the others in the end.
    pub(super) fn new(chunks: usize, shares: &[f64]) -> Self {
        let total: f64 = shares.iter().sum();
        let mut sum = 0.0;
        let mut ends: Vec<usize> = shares
            .iter()
            .map(|share| {
                sum += share;
                ((chunks as f64 * sum / total).round() as usize).min(chunks)
            })
            .collect();
        if let Some(last) = ends.last_mut() {
            *last = chunks;
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        Claims { left: Mutex::new(starts.zip(&ends).map(|(start, &end)| start..end.max(start)).collect()) }
    }

    /// The next chunk for `link`.
    pub(super) fn next(&self, link: usize) -> Option<usize> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = left[link].next() {
            return Some(chunk);
        }
        left.iter_mut().max_by_key(|run| run.len())?.next_back()
    }

    /// Nothing is left for anyone: a copy failed.
    pub(super) fn stop(&self) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|run| *run = 0..0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every chunk once, whoever asks.
    fn all(chunks: usize, shares: &[f64], order: impl Fn(usize) -> usize) -> Vec<usize> {
        let claims = Claims::new(chunks, shares);
        let mut got: Vec<usize> = (0..).map_while(|turn| claims.next(order(turn) % shares.len())).collect();
        assert!((0..shares.len()).all(|link| claims.next(link).is_none()));
        got.sort_unstable();
        got
    }

    #[test]
    fn every_chunk_is_claimed_once() {
        for chunks in [0, 1, 2, 3, 7, 64, 65] {
            for shares in [&[1.0][..], &[0.52, 0.48], &[1.0, 0.0], &[0.1, 0.2, 0.7], &[1e-9, 1.0]] {
                let expected: Vec<usize> = (0..chunks).collect();
                assert_eq!(all(chunks, shares, |turn| turn), expected);
                assert_eq!(all(chunks, shares, |_| 0), expected);
                assert_eq!(all(chunks, shares, |turn| turn * turn + turn / 3), expected);
            }
        }
    }

    #[test]
    fn shares_are_kept_until_one_is_done() {
        let claims = Claims::new(100, &[0.25, 0.75]);
        assert_eq!((claims.next(0), claims.next(1)), (Some(0), Some(25)));
        for _ in 1..25 {
            claims.next(0);
        }
        assert_eq!(claims.next(0), Some(99));
        claims.stop();
        assert_eq!((claims.next(0), claims.next(1)), (None, None));
        // Who is done helps the one that has most left.
        let claims = Claims::new(100, &[0.1, 0.6, 0.3]);
        assert_eq!((0..12).map(|_| claims.next(0)).skip(9).collect::<Vec<_>>(), [Some(9), Some(69), Some(68)]);
    }
}

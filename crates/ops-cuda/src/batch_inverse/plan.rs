//! How many threads share the elements. Pure: tested without a GPU.

use crate::ffi::TANDEM_BATCH_INVERSE_THREADS;
use crate::tuning::batch_inverse::{FILLING_THREADS, THREAD_ELEMENTS};

/// Threads for `n` elements, each of which makes one inversion: as many as fill a GPU, and more once each has enough elements.
pub(crate) fn threads(n: usize) -> usize {
    (n / THREAD_ELEMENTS).clamp(FILLING_THREADS, TANDEM_BATCH_INVERSE_THREADS as usize).min(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_fill_a_gpu_and_large_ones_share_inversions() {
        for n in [0, 1, 2, 1000, FILLING_THREADS] {
            assert_eq!(threads(n), n);
        }
        assert_eq!(threads(1 << 20), 1 << 15);
        assert_eq!(threads(1 << 24), 1 << 18);
        assert_eq!(threads(1 << 40), 1 << 24);
    }
}

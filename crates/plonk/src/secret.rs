//! Vectors that may tell of a witness: made on all threads, and wiped on all threads when they are dropped.
//!
//! A proof makes and drops some fifty vectors as long as the domain. To touch fresh memory for the first time, and to wipe it, takes
//! one thread longer than all that is computed with it.

use rayon::prelude::*;
use std::ops::{Deref, DerefMut};
use tandem_ops::{memory, Result};
use zeroize::Zeroize;

/// Elements that one task takes at least.
const GRAIN: usize = 1 << 12;

/// A vector that is overwritten when it is dropped, all of its memory.
#[derive(Default)]
pub(crate) struct Secret<T: Zeroize + Send>(Vec<T>);

impl<T: Zeroize + Send> Secret<T> {
    /// What was made elsewhere.
    pub(crate) fn new(values: Vec<T>) -> Self {
        Self(values)
    }

    /// `len` elements, with room for `more` that are pushed later.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn made(
        op: &'static str,
        len: usize,
        more: usize,
        element: impl Fn(usize) -> T + Sync + Send,
    ) -> Result<Self> {
        let mut values = memory::reserve(op, len.saturating_add(more))?;
        (0..len).into_par_iter().with_min_len(GRAIN).map(element).collect_into_vec(&mut values);
        Ok(Self(values))
    }
}

impl<T: Zeroize + Send> Deref for Secret<T> {
    type Target = Vec<T>;
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Zeroize + Send> DerefMut for Secret<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T: Zeroize + Send> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.par_chunks_mut(GRAIN).for_each(|chunk| chunk.iter_mut().zeroize());
        // Where elements were that have been cut off.
        self.0.spare_capacity_mut().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static WIPED: AtomicUsize = AtomicUsize::new(0);

    struct Counts;

    impl Zeroize for Counts {
        fn zeroize(&mut self) {
            WIPED.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Of any length, and with room for more; nothing is moved when that is used.
    #[test]
    fn all_elements_are_made_and_wiped() {
        for len in [0, 1, 2, GRAIN - 1, GRAIN, GRAIN + 1, 3 * GRAIN + 7] {
            let mut made = Secret::made("a test", len, 3, |i| i as u64 + 1).unwrap();
            assert!(made.iter().copied().eq(1..=len as u64));
            let at = made.as_ptr();
            made.extend([7, 8, 9]);
            assert!(at == made.as_ptr() && made.len() == len + 3);
            WIPED.store(0, Ordering::SeqCst);
            drop(Secret::new((0..len).map(|_| Counts).collect()));
            assert_eq!(WIPED.load(Ordering::SeqCst), len);
        }
    }
}

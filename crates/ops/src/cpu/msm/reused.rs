//! Memory that a sum's tasks use again, one after the other: what each of them would ask the system for, and give back, takes longer than
//! what it does there, and an allocator that keeps it for the next one keeps more than is in use.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// As many as are in use at once.
#[derive(Default)]
pub(super) struct Reused<T>(Mutex<Vec<T>>);

impl<T: Default> Reused<T> {
    /// Calls `work` with one that nobody uses meanwhile, as the last who used it left it.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut one = self.all().pop().unwrap_or_default();
        let done = work(&mut one);
        self.all().push(one);
        done
    }

    fn all(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_another_s() {
        let all = Reused::<Vec<u8>>::default();
        all.with(|one| {
            one.push(1);
            all.with(|other| {
                assert!(other.is_empty());
                other.push(2);
            });
        });
        all.with(|one| assert_eq!(*one, [1]));
        assert_eq!(all.all().len(), 2);
    }
}

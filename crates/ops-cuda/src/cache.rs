//! What primitives keep on a GPU from one call to the next, by its type: who keeps something knows what it is, the lane does not.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One value of each type that was asked for.
#[derive(Default)]
pub(crate) struct Cache(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Cache {
    /// The value of this type: its default at first, and the same one ever after.
    pub(crate) fn of<T: Default + Send + 'static>(&self) -> Arc<Mutex<T>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = all.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(Mutex::new(T::default()))).clone();
        // The key is the type, so that this never makes another one.
        kept.downcast().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_each_type_is_kept() {
        let cache = Cache::default();
        cache.of::<Vec<u32>>().lock().unwrap().push(7);
        cache.of::<Vec<u64>>().lock().unwrap().push(8);
        assert_eq!(*cache.of::<Vec<u32>>().lock().unwrap(), [7]);
        assert_eq!(*cache.of::<Vec<u64>>().lock().unwrap(), [8]);
        assert!(Arc::ptr_eq(&cache.of::<Vec<u32>>(), &cache.of::<Vec<u32>>()));
        assert!(Cache::default().of::<Vec<u32>>().lock().unwrap().is_empty());
    }
}

//! Where in a window the allocations lie. Every PE of a world has the same offsets, so one list serves all.

use std::collections::BTreeMap;

/// Allocations begin at multiples of this many bytes and occupy a multiple of them: what a GPU's copies and vector
/// loads like best, and no two allocations share a cache line.
pub(crate) const ALIGN: u64 = crate::ffi::TANDEM_FABRIC_ALIGN as u64;

/// A list of what is free and what is used, by offset.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// Offset and bytes of what is free: no two touch.
    free: BTreeMap<u64, u64>,
    /// Offset and bytes of what is used, as they were asked for; at least 1.
    used: BTreeMap<u64, u64>,
    /// Bytes that have memory behind them.
    mapped: u64,
    /// Bytes that can ever have.
    limit: u64,
}

/// Where an allocation fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// At this offset; it is used now.
    At(u64),
    /// Behind what is used last, once this many bytes are mapped.
    Grow(u64),
    /// Nowhere below the limit.
    Full,
}

impl Heap {
    /// An empty heap that can grow to `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Heap { limit, ..Heap::default() }
    }

    /// Bytes that have memory behind them.
    pub(crate) fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Bytes of live allocations, rounded up to [`ALIGN`].
    pub(crate) fn used(&self) -> u64 {
        self.used.values().map(|bytes| bytes.next_multiple_of(ALIGN)).sum()
    }

    /// Takes `bytes` (at least 1) from the smallest free place that has them.
    pub(crate) fn take(&mut self, bytes: u64) -> Fit {
        let wanted = bytes.max(1);
        let Some(bytes) = wanted.checked_next_multiple_of(ALIGN) else { return Fit::Full };
        let best = self.free.iter().filter(|(_, &len)| len >= bytes).min_by_key(|(&at, &len)| (len, at));
        if let Some((&at, &len)) = best {
            self.free.remove(&at);
            if len > bytes {
                self.free.insert(at + bytes, len - bytes);
            }
            self.used.insert(at, wanted);
            return Fit::At(at);
        }
        // What is free at the end counts.
        let end = match self.free.last_key_value() {
            Some((&at, &len)) if at + len == self.mapped => at,
            _ => self.mapped,
        };
        match end.checked_add(bytes) {
            Some(to) if to <= self.limit => Fit::Grow(to),
            _ => Fit::Full,
        }
    }

    /// Gives back what [`Heap::take`] gave; anything else is left alone.
    pub(crate) fn give_back(&mut self, at: u64) {
        if let Some(bytes) = self.used.remove(&at) {
            self.insert_free(at, bytes.next_multiple_of(ALIGN));
        }
    }

    /// Says that the first `mapped` bytes have memory now.
    pub(crate) fn grow(&mut self, mapped: u64) {
        if mapped > self.mapped {
            let from = std::mem::replace(&mut self.mapped, mapped);
            self.insert_free(from, mapped - from);
        }
    }

    /// The live allocation that holds the byte at `offset`: where it begins, and its bytes.
    pub(crate) fn find(&self, offset: u64) -> Option<(u64, u64)> {
        let (&at, &bytes) = self.used.range(..=offset).next_back()?;
        (offset - at < bytes.next_multiple_of(ALIGN)).then_some((at, bytes))
    }

    fn insert_free(&mut self, mut at: u64, mut bytes: u64) {
        if let Some((&before, &len)) = self.free.range(..at).next_back() {
            if before + len == at {
                self.free.remove(&before);
                (at, bytes) = (before, len + bytes);
            }
        }
        if let Some(len) = self.free.remove(&(at + bytes)) {
            bytes += len;
        }
        self.free.insert(at, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn takes_the_smallest_place_and_joins_what_is_free() {
        let mut heap = Heap::new(8 * ALIGN);
        assert_eq!(heap.take(1), Fit::Grow(ALIGN));
        heap.grow(4 * ALIGN);
        let places: Vec<Fit> = [1, ALIGN, ALIGN - 1, 0].map(|bytes| heap.take(bytes)).into();
        assert_eq!(places, [0, 1, 2, 3].map(|i| Fit::At(i * ALIGN)));
        heap.give_back(0);
        heap.give_back(2 * ALIGN);
        heap.give_back(3 * ALIGN);
        // One hole of one unit and one of two at the end: the smaller is taken, and the end grows.
        assert_eq!(heap.take(4 * ALIGN), Fit::Grow(6 * ALIGN));
        assert_eq!(heap.take(ALIGN), Fit::At(0));
        assert_eq!(heap.take(7 * ALIGN), Fit::Full);
        assert_eq!(heap.take(u64::MAX), Fit::Full);
        heap.grow(8 * ALIGN);
        assert_eq!(heap.take(6 * ALIGN), Fit::At(2 * ALIGN));
        assert_eq!(heap.take(1), Fit::Full);
        // Bytes up to the next allocation belong to the one before.
        assert_eq!(heap.find(2 * ALIGN - 1), Some((ALIGN, ALIGN)));
        assert_eq!(heap.find(9 * ALIGN), None);
        heap.give_back(ALIGN);
        assert_eq!(heap.find(2 * ALIGN - 1), None);
        heap.give_back(ALIGN);
        heap.give_back(7);
        assert_eq!((heap.used(), heap.mapped()), (7 * ALIGN, 8 * ALIGN));
    }

    /// Of a large hole and a small one behind it the small one is taken; what is short counts and is found as all that it occupies.
    #[test]
    fn holes_are_chosen_by_size_and_short_allocations_are_rounded_up() {
        let mut heap = Heap::new(8 * ALIGN);
        heap.grow(8 * ALIGN);
        let places: Vec<Fit> = [3 * ALIGN, 1, ALIGN, 1].map(|bytes| heap.take(bytes)).into();
        assert_eq!(places, [0, 3, 4, 5].map(|i| Fit::At(i * ALIGN)));
        assert_eq!((heap.used(), heap.mapped()), (6 * ALIGN, 8 * ALIGN));
        assert_eq!((heap.find(3 * ALIGN), heap.find(4 * ALIGN - 1)), (Some((3 * ALIGN, 1)), Some((3 * ALIGN, 1))));
        heap.give_back(0);
        heap.give_back(4 * ALIGN);
        assert_eq!((heap.used(), heap.find(4 * ALIGN)), (2 * ALIGN, None));
        assert_eq!([ALIGN, 3 * ALIGN].map(|bytes| heap.take(bytes)), [4, 0].map(|i| Fit::At(i * ALIGN)));
    }

    proptest! {
        /// Against a list of bytes: allocations never overlap, are aligned, lie in what is mapped; once all are given
        /// back, one allocation takes everything.
        #[test]
        fn behaves_as_a_map_of_bytes(steps in prop::collection::vec((any::<bool>(), 0u64..5000, any::<prop::sample::Index>()), 1..200)) {
            const LIMIT: u64 = 128 * ALIGN;
            let mut heap = Heap::new(LIMIT);
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (take, bytes, which) in steps {
                if take {
                    let mut fit = heap.take(bytes);
                    if let Fit::Grow(to) = fit {
                        prop_assert!(to > heap.mapped() && to <= LIMIT);
                        heap.grow(to);
                        fit = heap.take(bytes);
                        prop_assert!(matches!(fit, Fit::At(_)), "grown as asked, and still {fit:?}");
                    }
                    match fit {
                        Fit::At(at) => {
                            prop_assert!(at % ALIGN == 0 && at + bytes <= heap.mapped());
                            for &(other, len) in &live {
                                prop_assert!(at + bytes <= other || other + len <= at);
                            }
                            prop_assert_eq!(heap.find(at).map(|f| f.0), Some(at));
                            live.push((at, bytes.max(1)));
                        }
                        Fit::Full => {
                            // No hole between what is live has the room.
                            let mut sorted = live.clone();
                            sorted.sort_unstable();
                            let mut end = 0;
                            for (at, len) in sorted.into_iter().chain([(LIMIT, 0)]) {
                                prop_assert!(at - end < bytes.max(1).next_multiple_of(ALIGN));
                                end = (at + len).next_multiple_of(ALIGN);
                            }
                        }
                        Fit::Grow(_) => unreachable!(),
                    }
                } else if !live.is_empty() {
                    heap.give_back(live.swap_remove(which.index(live.len())).0);
                }
            }
            for (at, _) in live {
                heap.give_back(at);
            }
            prop_assert_eq!(heap.used(), 0);
            heap.grow(LIMIT);
            prop_assert_eq!(heap.take(LIMIT), Fit::At(0));
        }
    }
}

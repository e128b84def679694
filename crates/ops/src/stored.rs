//! Values that lie in memory, or outside it.

use crate::{Error, Result, Unaligned, Wire};
use rayon::prelude::*;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that lie outside memory, such as those of a file.
pub trait Outside: Send + Sync {
    /// Fills `into` with the bytes from `at` on. It works on the thread that calls: who holds a lock may call it.
    ///
    /// # Errors
    /// [`Error::Unread`].
    fn read(&self, at: usize, into: &mut [u8]) -> Result<()>;

    /// The bytes come in blocks of this size, the first one at 0: to read a whole block costs no more than a part of it.
    fn block_bytes(&self) -> usize;

    /// The same bytes for one who reads them later, when whoever lent them is gone; `None` where they are to be read now.
    fn later(&self) -> Option<Arc<dyn Outside>> {
        None
    }
}

/// Values of `T` in memory, at any address, or outside it: there they are read piece by piece, each time that they are needed.
#[derive(Clone, Copy)]
pub struct Stored<'a, T: Wire> {
    place: Place<'a>,
    of: PhantomData<T>,
}

#[derive(Clone, Copy)]
enum Place<'a> {
    Memory(&'a [u8]),
    Outside { from: &'a dyn Outside, at: usize, len: usize },
}

impl<'a, T: Wire> Stored<'a, T> {
    /// The values that the bytes at `range` of `from` are; `None` if their number is no multiple of the size of `T`.
    pub fn outside(from: &'a dyn Outside, range: Range<usize>) -> Option<Self> {
        let (at, len) = (range.start, range.len());
        let place = Place::Outside { from, at, len };
        len.is_multiple_of(size_of::<T>()).then_some(Self { place, of: PhantomData })
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        match self.place {
            Place::Memory(bytes) => bytes.len(),
            Place::Outside { len, .. } => len,
        }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.bytes() / size_of::<T>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// The values `range.start..range.end`; panics past the end, as a slice does.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let bytes = range.start * size_of::<T>()..range.end * size_of::<T>();
        let place = match self.place {
            Place::Memory(all) => Place::Memory(&all[bytes]),
            Place::Outside { from, at, len } => {
                assert!(bytes.start <= bytes.end && bytes.end <= len, "values {range:?} of {}", self.len());
                Place::Outside { from, at: at + bytes.start, len: bytes.len() }
            }
        };
        Self { place, of: PhantomData }
    }

    /// The values where they lie in memory, if they do.
    pub fn in_memory(&self) -> Option<Unaligned<'a, T>> {
        match self.place {
            Place::Memory(bytes) => Unaligned::new(bytes),
            Place::Outside { .. } => None,
        }
    }

    /// Where their bytes lie outside memory, if they do.
    pub fn place_outside(&self) -> Option<Range<usize>> {
        match self.place {
            Place::Memory(_) => None,
            Place::Outside { at, len, .. } => Some(at..at + len),
        }
    }

    /// The values to be read later, where whoever lent them lets them wait ([`Outside::later`]).
    pub fn later(&self) -> Option<Later<T>> {
        let Place::Outside { from, at, len } = self.place else { return None };
        Some(Later { from: from.later()?, at, len, of: PhantomData })
    }

    /// Whether they may be read later, so that they need no memory until then.
    pub fn may_wait(&self) -> bool {
        self.later().is_some()
    }

    /// The values in memory, brought there by this thread if they lie outside.
    ///
    /// # Errors
    /// [`Error::Unread`]; [`Error::OutOfMemory`].
    pub fn load(&self) -> Result<Loaded<'a, T>> {
        let bytes = match self.place {
            Place::Memory(bytes) => Cow::Borrowed(bytes),
            Place::Outside { from, at, len } => {
                let mut bytes = crate::memory::filled("read", len, 0)?;
                from.read(at, &mut bytes)?;
                Cow::Owned(bytes)
            }
        };
        Ok(Loaded { bytes, of: PhantomData })
    }

    /// Fills `into` with bytes of the values, from byte `at` on. It works on the thread that calls.
    ///
    /// # Errors
    /// [`Error::Unread`]; [`Error::Invalid`] past the end.
    pub fn read(&self, at: usize, into: &mut [u8]) -> Result<()> {
        if at.checked_add(into.len()).is_none_or(|end| end > self.bytes()) {
            return Err(Error::invalid("read", format!("{} bytes at {at} of {}", into.len(), self.bytes())));
        }
        match self.place {
            Place::Memory(bytes) => into.copy_from_slice(&bytes[at..at + into.len()]),
            Place::Outside { from, at: start, .. } => from.read(start + at, into)?,
        }
        Ok(())
    }

    /// As [`Stored::read`], on all threads.
    ///
    /// # Errors
    /// As [`Stored::read`].
    pub fn read_parallel(&self, at: usize, into: &mut [u8]) -> Result<()> {
        let Place::Outside { from, at: start, .. } = self.place else { return self.read(at, into) };
        let block = from.block_bytes().max(1);
        let lead = (block - (start + at) % block) % block;
        let (first, rest) = into.split_at_mut(lead.min(into.len()));
        let skipped = at + first.len();
        let pieces = rest.par_chunks_mut(block).enumerate();
        let others = || pieces.map(|(i, piece)| self.read(skipped + i * block, piece)).reduce(|| Ok(()), Result::and);
        let (first, others) = rayon::join(|| if first.is_empty() { Ok(()) } else { self.read(at, first) }, others);
        first.and(others)
    }

    /// The bytes of their block that lie before the first value, and the size of a block: pieces that end where blocks do are read best. Those
    /// in memory have no blocks.
    pub fn blocks(&self) -> Option<(usize, usize)> {
        match self.place {
            Place::Memory(_) => None,
            Place::Outside { from, at, .. } => {
                let block = from.block_bytes().max(1);
                Some((at % block, block))
            }
        }
    }
}

/// Values outside memory that are read when they are needed, by who holds this and nothing else.
pub struct Later<T: Wire> {
    from: Arc<dyn Outside>,
    at: usize,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Wire> Later<T> {
    /// They.
    pub fn stored(&self) -> Stored<'_, T> {
        Stored { place: Place::Outside { from: &*self.from, at: self.at, len: self.len }, of: PhantomData }
    }
}

/// Values that have been brought into memory, or lay there.
pub struct Loaded<'a, T: Wire> {
    bytes: Cow<'a, [u8]>,
    of: PhantomData<T>,
}

impl<T: Wire> Loaded<'_, T> {
    /// They.
    pub fn values(&self) -> Unaligned<'_, T> {
        Unaligned::whole(&self.bytes)
    }
}

impl<'a, T: Wire> From<Unaligned<'a, T>> for Stored<'a, T> {
    fn from(values: Unaligned<'a, T>) -> Self {
        Self { place: Place::Memory(values.as_bytes()), of: PhantomData }
    }
}

impl<'a, T: Wire> From<&'a [T]> for Stored<'a, T> {
    fn from(values: &'a [T]) -> Self {
        Unaligned::from(values).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Bytes in blocks of 16, with what was asked for.
    struct Blocks(Vec<u8>, Mutex<Vec<Range<usize>>>);

    impl Outside for Blocks {
        fn read(&self, at: usize, into: &mut [u8]) -> Result<()> {
            self.1.lock().unwrap().push(at..at + into.len());
            let found = self.0.get(at..at + into.len()).ok_or(Error::Unread { reason: "gone".into() })?;
            into.copy_from_slice(found);
            Ok(())
        }
        fn block_bytes(&self) -> usize {
            16
        }
    }

    #[test]
    fn values_outside_are_those_in_memory() {
        let bytes: Vec<u8> = (0..200).collect();
        let blocks = Blocks(bytes.clone(), Mutex::default());
        assert!(Stored::<u64>::outside(&blocks, 3..10).is_none());
        for start in 0..20 {
            for count in 0..20 {
                let range = start..start + 8 * count;
                let outside = Stored::<u64>::outside(&blocks, range.clone()).unwrap();
                let inside = Stored::from(Unaligned::<u64>::new(&bytes[range.clone()]).unwrap());
                assert_eq!((outside.len(), outside.is_empty()), (inside.len(), inside.is_empty()));
                assert!(outside.in_memory().is_none() && inside.in_memory().is_some());
                assert!(outside.load().unwrap().values().iter().eq(inside.load().unwrap().values().iter()));
                assert_eq!((outside.blocks(), inside.blocks()), (Some((start % 16, 16)), None));
                assert_eq!((outside.place_outside(), inside.place_outside()), (Some(range.clone()), None));
                for cut in [0, count / 2, count] {
                    let (outside, inside) = (outside.slice(cut..count), inside.slice(cut..count));
                    let mut found = [vec![0; 8 * (count - cut)], vec![0; 8 * (count - cut)]];
                    blocks.1.lock().unwrap().clear();
                    outside.read_parallel(0, &mut found[0]).unwrap();
                    inside.read_parallel(0, &mut found[1]).unwrap();
                    assert!(found[0] == found[1] && found[0] == bytes[start + 8 * cut..range.end]);
                    // Each read stays within a block.
                    let asked = blocks.1.lock().unwrap();
                    assert!(asked.iter().all(|asked| asked.start / 16 == (asked.end - 1) / 16), "{asked:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let blocks = Blocks(vec![7; 40], Mutex::default());
        let stored = Stored::<u64>::outside(&blocks, 8..48).unwrap();
        assert!(stored.load().is_err_and(|e| e.to_string() == "gone"));
        assert!(stored.read_parallel(0, &mut [0; 40]).is_err_and(|e| e.to_string() == "gone"));
        stored.read_parallel(0, &mut [0; 32]).unwrap();
        for (at, len) in [(40, 1), (0, 41), (usize::MAX, 2)] {
            assert!(matches!(stored.read(at, &mut vec![0; len]), Err(Error::Invalid { .. })));
        }
    }

    #[test]
    #[should_panic(expected = "values 2..6 of 5")]
    fn a_slice_stays_within() {
        let blocks = Blocks(vec![7; 48], Mutex::default());
        _ = Stored::<u64>::outside(&blocks, 8..48).unwrap().slice(2..6);
    }
}

//! Host memory for what will be uploaded.

use crate::memory::{self, Pages};
use crate::{Result, Wire};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use zeroize::{Zeroize, Zeroizing};

/// Bytes of the host that are overwritten when they are dropped, or before they are used again.
pub trait HostMemory: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The bytes.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// Elements in host memory, which may be memory that a device copies from at full rate ([`crate::Backend::host_buf`]).
/// They may be secret: they are overwritten when this is dropped.
pub struct HostBuf<T: Wire> {
    memory: Box<dyn HostMemory>,
    /// Elements of the memory that count.
    len: usize,
    of: PhantomData<fn() -> T>,
}

impl<T: Wire> HostBuf<T> {
    /// `len` zeros in pages of their own, which are in no core dump and, as far as the system allows (`ulimit -l`), never in swap.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn zeros(len: usize) -> Result<Self> {
        const OP: &str = "host memory";
        let wanted = (len as u64).saturating_mul(size_of::<T>() as u64);
        memory::check(OP, wanted)?;
        let pages = usize::try_from(wanted).ok().and_then(pages).ok_or_else(|| memory::refused(OP, wanted))?;
        Ok(HostBuf { memory: Box::new(pages), len, of: PhantomData })
    }

    /// The same memory as elements of a type of the same size, whatever they are then; `None` for another size.
    pub fn cast<U: Wire>(self) -> Option<HostBuf<U>> {
        (size_of::<U>() == size_of::<T>()).then(|| HostBuf::new(self.memory, self.len))?
    }

    /// The first `len` elements of `memory`; `None` where it has fewer, or lies at no address for them.
    pub fn new(memory: Box<dyn HostMemory>, len: usize) -> Option<Self> {
        let bytes = memory.bytes();
        let fits = len.checked_mul(size_of::<T>()).is_some_and(|needed| needed <= bytes.len());
        let is_aligned = bytes.as_ptr().addr().is_multiple_of(align_of::<T>());
        (fits && is_aligned).then_some(HostBuf { memory, len, of: PhantomData })
    }

    /// Leaves the first `len` elements; where there are fewer, nothing happens. What is cut off is still overwritten in the
    /// end.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl<T: Wire> Deref for HostBuf<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.memory.bytes()[..self.len * size_of::<T>()])
    }
}

impl<T: Wire> DerefMut for HostBuf<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.memory.bytes_mut()[..self.len * size_of::<T>()])
    }
}

/// As it is: it says how many elements there are, not which.
impl<T: Wire> std::fmt::Debug for HostBuf<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostBuf({} elements)", self.len)
    }
}

/// Bytes that are overwritten before they are given back.
struct Wiped<M: DerefMut<Target = [u8]>>(M);

/// Pages of the system, hidden as far as it allows: secrets are wiped all the same.
fn pages(bytes: usize) -> Option<Wiped<Pages>> {
    // Whole words, at least one, so that they are aligned and overwritten as such.
    let pages = Pages::zeros(bytes.max(1).checked_next_multiple_of(size_of::<u64>())?)?;
    pages.hide();
    Some(Wiped(pages))
}

impl<M: DerefMut<Target = [u8]> + Send + Sync> HostMemory for Wiped<M> {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

fn wipe(bytes: &mut [u8]) {
    let (before, words, after) = bytemuck::pod_align_to_mut::<u8, u64>(bytes);
    before.zeroize();
    words.zeroize();
    after.zeroize();
}

impl<M: DerefMut<Target = [u8]>> Drop for Wiped<M> {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Memory of the caller's.
struct Plain<T: Wire>(Zeroizing<Vec<T>>);

impl<T: Wire> HostMemory for Plain<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

impl<T: Wire> From<Zeroizing<Vec<T>>> for HostBuf<T> {
    fn from(values: Zeroizing<Vec<T>>) -> Self {
        let len = values.len();
        HostBuf { memory: Box::new(Plain(values)), len, of: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Canonical;
    use std::sync::{Arc, Mutex};

    struct Noted(Vec<u64>, Arc<Mutex<Vec<u64>>>);

    impl HostMemory for Noted {
        fn bytes(&self) -> &[u8] {
            bytemuck::cast_slice(&self.0)
        }
        fn bytes_mut(&mut self) -> &mut [u8] {
            bytemuck::cast_slice_mut(&mut self.0)
        }
    }

    impl Drop for Noted {
        fn drop(&mut self) {
            *self.1.lock().unwrap() = std::mem::take(&mut self.0);
        }
    }

    #[test]
    fn elements_are_those_of_the_memory() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let memory = || Box::new(Noted((0..9).collect(), seen.clone()));
        assert!(HostBuf::<Canonical>::new(memory(), 3).is_none());
        assert!(HostBuf::<Canonical>::new(memory(), usize::MAX).is_none());
        let mut buf = HostBuf::<Canonical>::new(memory(), 2).unwrap();
        assert_eq!(&buf[..], [Canonical([0, 1, 2, 3]), Canonical([4, 5, 6, 7])]);
        buf[1] = Canonical([9; 4]);
        buf.truncate(7);
        assert_eq!(buf.len(), 2);
        buf.truncate(1);
        assert_eq!(buf[..], [Canonical([0, 1, 2, 3])]);
        assert_eq!(format!("{buf:?}"), "HostBuf(1 elements)");
        drop(buf);
        assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3, 9, 9, 9, 9, 8]);
    }

    /// Bytes at an odd address.
    struct Odd(Vec<u64>);

    impl HostMemory for Odd {
        fn bytes(&self) -> &[u8] {
            &bytemuck::cast_slice(&self.0)[1..]
        }
        fn bytes_mut(&mut self) -> &mut [u8] {
            &mut bytemuck::cast_slice_mut(&mut self.0)[1..]
        }
    }

    #[test]
    fn memory_at_no_address_for_its_elements_is_refused() {
        assert!(HostBuf::<u64>::new(Box::new(Odd(vec![0; 3])), 2).is_none());
        assert_eq!(HostBuf::<u8>::new(Box::new(Odd(vec![0; 3])), 23).unwrap().len(), 23);
    }

    /// Bytes that say what is left of them.
    struct Left(Vec<u8>, Arc<Mutex<Vec<u8>>>);

    impl Deref for Left {
        type Target = [u8];
        fn deref(&self) -> &[u8] {
            &self.0
        }
    }

    impl DerefMut for Left {
        fn deref_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }

    impl Drop for Left {
        fn drop(&mut self) {
            *self.1.lock().unwrap() = std::mem::take(&mut self.0);
        }
    }

    #[test]
    fn pages_are_wiped_before_they_are_given_back() {
        let left = Arc::new(Mutex::new(Vec::new()));
        let memory = Box::new(Wiped(Left(vec![7; 100], left.clone())));
        let mut buf = HostBuf::<u8>::new(memory, 90).unwrap();
        buf[3] = 9;
        drop(buf);
        assert_eq!(*left.lock().unwrap(), [0; 100]);
    }

    /// The system promises more than it has: what is free is looked at before.
    #[test]
    fn pages_are_compared_with_what_is_free() {
        memory::with_free(7999, || {
            let error = HostBuf::<u64>::zeros(1000).unwrap_err();
            assert!(matches!(error, crate::Error::OutOfMemory { wanted: 8000, .. }), "{error}");
        });
        memory::with_free(8000, || HostBuf::<u64>::zeros(1000).unwrap());
    }

    #[test]
    fn all_bytes_are_wiped() {
        for (first, len) in [(0, 64), (1, 63), (3, 9), (7, 2), (5, 40)] {
            let mut words = [u64::MAX; 9];
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
            wipe(&mut bytes[first..first + len]);
            let is_wiped = |(i, byte): (usize, &u8)| (*byte == 0) == (first..first + len).contains(&i);
            assert!(bytes.iter().enumerate().all(is_wiped), "{first} {len}");
        }
    }

    /// What the system says of the pages at an address: KiB that are locked, and the flags.
    fn mapping(address: usize) -> (u64, String) {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut within = false;
        let mut locked = 0;
        for line in text.lines() {
            let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
            let bounds =
                range.and_then(|(a, b)| Some((usize::from_str_radix(a, 16).ok()?, usize::from_str_radix(b, 16).ok()?)));
            if let Some((first, end)) = bounds {
                within = (first..end).contains(&address);
            } else if let (true, Some(kib)) = (within, line.strip_prefix("Locked:")) {
                locked = kib.split_whitespace().next().unwrap().parse().unwrap();
            } else if let (true, Some(flags)) = (within, line.strip_prefix("VmFlags:")) {
                return (locked, flags.to_string());
            }
        }
        panic!("no mapping at {address:x}");
    }

    #[test]
    fn secrets_lie_in_pages_that_are_locked_and_not_dumped() {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max locked memory")).unwrap();
        let limit = limit.split_whitespace().next().unwrap().parse().unwrap_or(u64::MAX);
        let mut buf = HostBuf::<u64>::zeros(20_000).unwrap();
        assert!(buf.len() == 20_000 && buf.iter().all(|&x| x == 0));
        buf.fill(7);
        let (locked, flags) = mapping(buf.as_ptr().addr());
        assert!(flags.split_whitespace().any(|flag| flag == "dd"), "{flags}");
        if limit >= 1 << 20 {
            assert!(locked >= 156, "{locked} KiB are locked of those that {limit} bytes allow");
        }
        assert!(HostBuf::<u64>::zeros(0).unwrap().is_empty());
        for len in [1 << 45, usize::MAX / 8, usize::MAX] {
            let error = HostBuf::<u64>::zeros(len).unwrap_err();
            assert!(matches!(error, crate::Error::OutOfMemory { free, .. } if free > 0), "{error}");
        }
    }

    #[test]
    fn vectors_are_taken_as_they_are() {
        let values = vec![Canonical([1, 2, 3, 4]); 5];
        let address = values.as_ptr();
        let buf = HostBuf::from(Zeroizing::new(values));
        assert_eq!((buf.as_ptr(), buf.len(), buf[4]), (address, 5, Canonical([1, 2, 3, 4])));
        assert!(HostBuf::<Canonical>::from(Zeroizing::new(Vec::new())).is_empty());
    }
}

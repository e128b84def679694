//! Host memory for what will be uploaded.

use crate::{Error, Result, Wire};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use zeroize::Zeroizing;

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
    /// `len` zeros in ordinary memory.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn zeros(len: usize) -> Result<Self> {
        let mut zeros = Zeroizing::new(Vec::new());
        let wanted = (len as u64).saturating_mul(size_of::<T>() as u64);
        let refused = |_| Error::OutOfMemory { op: "host memory", device: "the host".into(), wanted, free: 0 };
        zeros.try_reserve_exact(len).map_err(refused)?;
        zeros.resize(len, T::zeroed());
        Ok(zeros.into())
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

/// Ordinary memory.
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

    #[test]
    fn vectors_are_taken_as_they_are() {
        let values = vec![Canonical([1, 2, 3, 4]); 5];
        let address = values.as_ptr();
        let buf = HostBuf::from(Zeroizing::new(values));
        assert_eq!((buf.as_ptr(), buf.len(), buf[4]), (address, 5, Canonical([1, 2, 3, 4])));
        assert!(HostBuf::<Canonical>::from(Zeroizing::new(Vec::new())).is_empty());
    }
}

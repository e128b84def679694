//! Plain values that cross to devices and stand in key files.
//!
//! All limbs are little-endian 64-bit words, least significant first; Montgomery form means value * 2^(64 * limbs)
//! modulo the field's modulus. This is the layout of snarkjs files, so a key's sections are arrays of these types.
//! No arkworks type ever crosses: they have no stated layout.

use bytemuck::{Pod, Zeroable};
use std::marker::PhantomData;
use zeroize::Zeroize;

/// A plain value of fixed size that may be copied byte by byte to a device.
pub trait Wire: Pod + Zeroize + Send + Sync + PartialEq + std::fmt::Debug + 'static {}
impl<T: Pod + Zeroize + Send + Sync + PartialEq + std::fmt::Debug + 'static> Wire for T {}

/// A scalar-field element in Montgomery form, below the modulus.
#[derive(Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable, Zeroize)]
#[repr(transparent)]
pub struct Mont(pub [u64; 4]);

/// A scalar-field element as the integer below the modulus that it is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable, Zeroize)]
#[repr(transparent)]
pub struct Canonical(pub [u64; 4]);

/// A scalar-field element times R^2, R = 2^256: the Montgomery product of a `Mont2` and a [`Canonical`] is the
/// [`Mont`] of their product. zkey files hold the coefficients of the circuit so.
#[derive(Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable, Zeroize)]
#[repr(transparent)]
pub struct Mont2(pub [u64; 4]);

/// An element of the field of p = 2^64 - 2^32 + 1 elements: the integer below p that it is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable, Zeroize)]
#[repr(transparent)]
pub struct Goldilocks(pub u64);

/// An element c0 + c1 X of the extension of [`Goldilocks`] by a root of X^2 = 7, which plonky2 and plonky3 have as well: c0, then c1, each
/// below p.
#[derive(Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable, Zeroize)]
#[repr(transparent)]
pub struct Goldilocks2(pub [u64; 2]);

/// An element of the field of p = 15 * 2^27 + 1 elements in Montgomery form: value * 2^32 modulo p, below p.
#[derive(Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable, Zeroize)]
#[repr(transparent)]
pub struct BabyBear(pub u32);

/// Two numbers of 32 bits as a complex one: the real part, then the imaginary one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Pod, Zeroable, Zeroize)]
#[repr(C)]
pub struct Complex32 {
    /// The real part.
    pub re: f32,
    /// The imaginary part.
    pub im: f32,
}

/// Two numbers of 64 bits as a complex one: the real part, then the imaginary one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Pod, Zeroable, Zeroize)]
#[repr(C)]
pub struct Complex64 {
    /// The real part.
    pub re: f64,
    /// The imaginary part.
    pub im: f64,
}

/// An affine point: the Montgomery limbs of x, then of y; over Fp2 each is c0, then c1. Infinity is all zero
/// (no curve here has a point at (0, 0)). `LIMBS` is 8, 12, 16 or 24.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable, Zeroize)]
#[repr(transparent)]
pub struct Point<const LIMBS: usize>(pub [u64; LIMBS]);

/// Scalars may be witnesses: their `Debug` shows no digit.
macro_rules! opaque_debug {
    ($($t:ident),*) => {$(
        impl std::fmt::Debug for $t {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($t), "(..)"))
            }
        }
    )*};
}
opaque_debug!(Mont, Canonical, Mont2, Goldilocks, Goldilocks2, BabyBear);

impl<const LIMBS: usize> std::fmt::Debug for Point<LIMBS> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Point({:x?})", self.0)
    }
}

/// A slice of `T` at any address, as the bytes of a file hold it.
#[derive(Clone, Copy)]
pub struct Unaligned<'a, T: Wire> {
    bytes: &'a [u8],
    of: PhantomData<T>,
}

impl<'a, T: Wire> Unaligned<'a, T> {
    /// Views `bytes` as values of `T`; `None` if the length is no multiple of the size of `T`.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        bytes.len().is_multiple_of(size_of::<T>()).then_some(Self { bytes, of: PhantomData })
    }

    /// Bytes that are known to be whole values.
    pub(crate) fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes, of: PhantomData }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / size_of::<T>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The value at `index`; panics past the end, as a slice does.
    pub fn get(&self, index: usize) -> T {
        bytemuck::pod_read_unaligned(&self.bytes[index * size_of::<T>()..][..size_of::<T>()])
    }

    /// The values in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = T> + 'a {
        self.bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned)
    }

    /// The values `range.start..range.end`; panics past the end, as a slice does.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        Self { bytes: &self.bytes[range.start * size_of::<T>()..range.end * size_of::<T>()], of: PhantomData }
    }

    /// The bytes themselves.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The values where they lie, if they are aligned there.
    pub fn aligned(&self) -> Option<&'a [T]> {
        bytemuck::try_cast_slice(self.bytes).ok()
    }
}

impl<'a, T: Wire> From<&'a [T]> for Unaligned<'a, T> {
    fn from(values: &'a [T]) -> Self {
        Self { bytes: bytemuck::cast_slice(values), of: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::Unaligned;

    #[test]
    fn values_at_any_address() {
        let words = [1u64, 2, 3, u64::MAX];
        let bytes = bytemuck::cast_slice::<_, u8>(&words);
        assert_eq!(Unaligned::<u64>::new(bytes).unwrap().aligned(), Some(&words[..]));
        assert!(Unaligned::<u64>::new(&bytes[1..]).is_none());
        // These bytes at an odd address.
        let mut room = vec![0; bytes.len() + 1];
        let odd = usize::from(room.as_ptr().addr().is_multiple_of(2));
        room[odd..odd + bytes.len()].copy_from_slice(bytes);
        let moved = Unaligned::<u64>::new(&room[odd..odd + bytes.len()]).unwrap();
        assert!(moved.aligned().is_none());
        assert!(moved.iter().eq(words));
        assert!(moved.slice(1..3).iter().eq([2, 3]));
    }
}

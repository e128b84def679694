//! Field elements in little memory.

use zeroize::{Zeroize, Zeroizing};

/// Bytes of the smallest and the largest piece of a store.
const PIECE_BYTES: (usize, usize) = (16, 1 << 16);

/// Field elements one after the other, each as its length and its bytes without leading zeros. Wiped when dropped; it grows by
/// pieces that are never moved, so that no copy is left behind.
#[derive(Default)]
pub(crate) struct Values {
    pieces: Vec<Zeroizing<Vec<u8>>>,
    len: usize,
}

impl Values {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that the store takes.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.capacity()).sum()
    }

    /// Appends one. Asks `take` first whether it may take more bytes, where it must.
    pub(crate) fn push<E>(&mut self, limbs: &[u32], take: impl FnOnce(usize) -> Result<(), E>) -> Result<(), E> {
        let mut bytes = Zeroizing::new([0; 1 + crate::machine::LIMBS_MAX * 4]);
        for (bytes, limb) in bytes[1..].chunks_exact_mut(4).zip(limbs) {
            bytes.copy_from_slice(&limb.to_le_bytes());
        }
        let length = bytes[1..].iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        bytes[0] = length as u8;
        let needed = 1 + length;
        if self.pieces.last().is_none_or(|piece| piece.capacity() - piece.len() < needed) {
            let (least, most) = PIECE_BYTES;
            let capacity = (self.pieces.last().map_or(0, |piece| piece.capacity()) * 2).clamp(least, most).max(needed);
            take(capacity)?;
            self.pieces.push(Zeroizing::new(Vec::with_capacity(capacity)));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.extend_from_slice(&bytes[..needed]);
        }
        self.len += 1;
        Ok(())
    }

    /// Gives them to `each` in order, as `limbs` limbs.
    pub(crate) fn try_for_each<E>(
        &self,
        limbs: usize,
        mut each: impl FnMut(usize, &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut element = Zeroizing::new([0u32; crate::machine::LIMBS_MAX]);
        let mut index = 0;
        for piece in &self.pieces {
            let mut rest = &piece[..];
            while let Some((&length, after)) = rest.split_first() {
                let (bytes, after) = after.split_at(usize::from(length));
                element.zeroize();
                for (limb, bytes) in element.iter_mut().zip(bytes.chunks(4)) {
                    *limb = bytes.iter().rev().fold(0, |limb, &byte| limb << 8 | u32::from(byte));
                }
                each(index, &element[..limbs])?;
                index += 1;
                rest = after;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_comes_back_in_order() {
        let mut values = Values::default();
        let mut taken = 0;
        let elements: Vec<[u32; 8]> = (0..40_000u32)
            .map(|i| {
                let mut element = [0; 8];
                element[(i % 8) as usize] = i.wrapping_mul(0x9e37_79b9);
                element[0] |= i & 1;
                element
            })
            .collect();
        for element in &elements {
            values
                .push(element, |bytes| {
                    taken += bytes;
                    Ok::<_, ()>(())
                })
                .unwrap();
        }
        assert_eq!((values.len(), values.bytes()), (40_000, taken));
        let mut found = Vec::new();
        values
            .try_for_each(8, |i, limbs| {
                assert_eq!(i, found.len());
                found.push(limbs.to_vec());
                Ok::<_, ()>(())
            })
            .unwrap();
        assert!(found.iter().zip(&elements).all(|(a, b)| a[..] == b[..]) && found.len() == elements.len());
    }

    #[test]
    fn small_values_take_two_bytes_and_a_refusal_stops() {
        let mut values = Values::default();
        for _ in 0..1 << 20 {
            values.push(&[1, 0], |_| Ok::<_, ()>(())).unwrap();
        }
        assert!(values.bytes() < (2 << 20) + (1 << 18), "{}", values.bytes());
        assert_eq!(Values::default().push(&[1], |_| Err("no")), Err("no"));
    }
}

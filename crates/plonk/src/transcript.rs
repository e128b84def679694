//! Challenges by Fiat and Shamir as snarkjs draws them: Keccak-256 of what is absorbed, coordinates and scalars as big-endian integers,
//! modulo the order of the group. Each challenge starts afresh.

use crate::P1;
use ark_ec::AffineRepr;
use ark_ff::{BigInteger, Field, PrimeField};
use tandem_ops::{Curve, Group};

/// What a challenge is drawn from.
#[derive(Default)]
pub(crate) struct Transcript(Vec<u8>);

impl Transcript {
    /// Absorbs points; infinity counts as zeros.
    pub(crate) fn points<C: Curve>(mut self, points: &[P1<C>]) -> Self {
        for point in points {
            let affine = C::G1::to_ark(point);
            match affine.xy() {
                Some((x, y)) => {
                    for element in x.to_base_prime_field_elements().chain(y.to_base_prime_field_elements()) {
                        self.0.extend(element.into_bigint().to_bytes_be());
                    }
                }
                None => self.0.resize(self.0.len() + size_of::<P1<C>>(), 0),
            }
        }
        self
    }

    /// Absorbs scalars.
    pub(crate) fn scalars<F: PrimeField>(mut self, scalars: &[F]) -> Self {
        scalars.iter().for_each(|scalar| self.0.extend(scalar.into_bigint().to_bytes_be()));
        self
    }

    /// The challenge.
    pub(crate) fn challenge<F: PrimeField>(self) -> F {
        F::from_be_bytes_mod_order(&keccak256(&self.0))
    }
}

/// Keccak-256 with the padding that Ethereum uses, which is not that of SHA-3.
fn keccak256(bytes: &[u8]) -> [u8; 32] {
    /// Bytes that a permutation absorbs.
    const RATE: usize = 136;
    let mut padded = bytes.to_vec();
    padded.push(1);
    padded.resize(padded.len().next_multiple_of(RATE), 0);
    if let Some(last) = padded.last_mut() {
        *last |= 0x80;
    }
    let mut state = [0u64; 25];
    for block in padded.chunks_exact(RATE) {
        for (word, bytes) in state.iter_mut().zip(block.chunks_exact(8)) {
            *word ^= bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        }
        keccak::f1600(&mut state);
    }
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(8).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Known answers of Ethereum, and lengths at the border of a block.
    #[test]
    fn keccak_is_ethereums() {
        assert_eq!(hex(&keccak256(b"")), "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
        assert_eq!(hex(&keccak256(b"abc")), "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45");
        assert_eq!(hex(&keccak256(b"testing")), "5f16f4c7f149ac4f9510d9cf8cf384038ad348b3bcdc01915f95de12df9d1b02");
        let of = |n: usize| keccak256(&vec![7; n]);
        let all: std::collections::HashSet<_> = [134, 135, 136, 137, 271, 272, 273].map(of).into_iter().collect();
        assert_eq!(all.len(), 7);
    }
}

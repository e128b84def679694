//! Poseidon: the hash of circuits, over the scalar field of a curve.
//!
//! A hash of arity t - 1 is one permutation of t cells: cell 0 starts as a number that says what is hashed, the others
//! as the inputs. Every round adds constants, raises cells to the fifth power (all of them in 4 rounds at either end,
//! cell 0 alone between them) and multiplies by a matrix.

mod constants;
mod merkle;
mod recurrence;
mod tables;

pub use constants::Constants;
pub use merkle::{height, subtrees, MerklePath, MerkleTree};
pub use recurrence::Recurrence;
pub use tables::Tables;

use crate::{Backend, Canonical, Curve, Error, Mont, Result, Unaligned};

/// Whose constants, and how a hash lies in the permutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// circomlib's and circomlibjs's `poseidon(inputs)`, defined over BN254: cell 0 starts as 0 and is the hash.
    ///
    /// Over BLS12-381 it is the same construction with the constants that the same script makes for that field (n = 255,
    /// the same numbers of rounds): for t = 3 and 5 the `poseidonperm_x5_255` of Poseidon's authors. It is not what
    /// circomlib's circuits compute when compiled with `--prime bls12381`, which take BN254's numbers for granted.
    Circomlib,
    /// Filecoin's, as the crate neptune with `HashType::MerkleTree` and standard strength, defined over BLS12-381: cell 0
    /// starts as 2^arity - 1, and cell 1 is the hash.
    ///
    /// Over BN254 it is what neptune computes when its field is that of BN254 (n = 254).
    Filecoin,
}

/// A hash: a family and a width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoseidonParams {
    family: Family,
    width: usize,
}

/// The widths that there are: cells of the state.
pub const WIDTHS: [usize; 4] = [3, 5, 9, 12];

impl PoseidonParams {
    /// The hash of `arity` elements.
    ///
    /// # Errors
    /// There is no width `arity + 1`.
    pub fn new(family: Family, arity: usize) -> Result<Self> {
        if WIDTHS.iter().any(|t| t - 1 == arity) {
            return Ok(PoseidonParams { family, width: arity + 1 });
        }
        Err(Error::invalid("poseidon", format!("arity {arity}; expected {}", arities())))
    }

    /// The family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Cells of the state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Elements that one hash takes.
    pub fn arity(&self) -> usize {
        self.width - 1
    }

    /// Rounds with an S-box in every cell, half of them at either end.
    pub fn full_rounds(&self) -> usize {
        8
    }

    /// Rounds with one S-box: circomlib's table `N_ROUNDS_P`, and what neptune's `round_numbers.rs` computes.
    pub fn partial_rounds(&self) -> usize {
        match (self.family, self.width) {
            (Family::Circomlib, 3) => 57,
            (Family::Circomlib, 9) => 63,
            (Family::Circomlib, _) => 60,
            (Family::Filecoin, 3) => 55,
            (Family::Filecoin, 5) => 56,
            (Family::Filecoin, _) => 57,
        }
    }

    /// Partial rounds that are computed as one block ([`Tables`]). A block of b rounds costs (b - 1) / 2 products of 64
    /// wide multiplications a round and saves all but one of b reductions of 56 for each of t - 1 cells. The b outputs and
    /// t - 1 cells are at most 14, so that a GPU's multiprocessor holds four blocks of threads (docs/design/poseidon.md).
    pub fn block(&self) -> usize {
        let cost = |b: usize| ((self.width - 1) * 56).div_ceil(b) + 32 * (b - 1);
        (1..=8).filter(|b| self.width - 1 + b <= 14).min_by_key(|&b| cost(b)).unwrap_or(1)
    }
}

/// The arities that there are, in words.
pub fn arities() -> String {
    let [first @ .., last] = WIDTHS.map(|t| (t - 1).to_string());
    format!("{} or {last}", first.join(", "))
}

/// Hashes over the scalar field of `C`.
pub trait Poseidon<C: Curve>: Backend {
    /// The constants of a hash where all lanes find them.
    type Hasher: Send + Sync;

    /// Makes the constants of a hash and loads them.
    ///
    /// # Errors
    /// Not enough memory; the device failed.
    fn hasher(&self, params: PoseidonParams) -> Result<Self::Hasher>;

    /// out_i = the hash of elements i * arity to (i + 1) * arity - 1 of `input`: of column i of a matrix of `arity` rows
    /// that lies column by column, or of node i's children.
    ///
    /// # Errors
    /// `input` has not `arity` times as many elements as `out`; the lanes differ; the device failed.
    fn poseidon(&self, hasher: &Self::Hasher, input: &Self::Buf<Mont>, out: &mut Self::Buf<Mont>) -> Result<()>;

    /// Hashes the columns of a matrix of any size in host memory, with its columns spread over all lanes, copied and hashed piece
    /// by piece at once. It blocks until `out` is written.
    ///
    /// # Errors
    /// `input` has not `arity` times as many elements as `out`; the device failed.
    fn poseidon_columns(
        &self,
        hasher: &Self::Hasher,
        input: Unaligned<'_, Canonical>,
        out: &mut [Canonical],
    ) -> Result<()>;
}

/// Fails unless `input` elements are `arity` for each of `out` hashes.
///
/// # Errors
/// They are not.
pub fn check_lengths(params: PoseidonParams, input: usize, out: usize) -> Result<()> {
    if out.checked_mul(params.arity()) != Some(input) {
        let reason = format!("{input} elements for {out} hashes of {} elements", params.arity());
        return Err(Error::invalid("poseidon", reason));
    }
    Ok(())
}

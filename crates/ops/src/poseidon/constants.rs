//! Round constants and matrices, made by the published method and never stored.

use super::{Family, PoseidonParams};
use ark_ff::{BigInteger, PrimeField};

/// The constants of a hash by its definition.
#[derive(Debug, Clone)]
pub struct Constants<F> {
    /// What they are the constants of.
    pub params: PoseidonParams,
    /// What is added before the S-boxes: one row of `width` elements a round.
    pub rounds: Vec<Vec<F>>,
    /// The matrix of every round, by rows.
    pub matrix: Vec<Vec<F>>,
    /// Cell 0 of the state before the first round.
    pub tag: F,
    /// The cell of the state that is the hash.
    pub output: usize,
}

impl PoseidonParams {
    /// The constants over `F`.
    ///
    /// Both families draw round constants from the Grain LFSR of the Poseidon paper, as `generate_parameters_grain.sage`
    /// of its authors does. circomlib also draws its matrix from there (its tables are that script's output: the
    /// comment in circomlibjs's `poseidon_reference.js` gives the command); Filecoin's is the Cauchy matrix
    /// 1 / (i + j + t), and its generator is told S-box number 1 where circomlib's is told 0.
    pub fn constants<F: PrimeField<BigInt = ark_ff::BigInt<4>>>(&self) -> Constants<F> {
        let t = self.width();
        let rounds = self.full_rounds() + self.partial_rounds();
        let mut grain = Grain::new(self, F::MODULUS_BIT_SIZE);
        let rounds = (0..rounds).map(|_| (0..t).map(|_| grain.element()).collect()).collect();
        let (matrix, tag, output) = match self.family() {
            Family::Circomlib => (grain.matrix(t), F::ZERO, 0),
            Family::Filecoin => {
                let numbers = |from: usize| (from..from + t).map(|i| F::from(i as u64)).collect::<Vec<_>>();
                let matrix = cauchy(&numbers(0), &numbers(t)).unwrap_or_default();
                (matrix, F::from((1u64 << self.arity()) - 1), 1)
            }
        };
        Constants { params: *self, rounds, matrix, tag, output }
    }
}

/// The matrix of 1 / (x_i + y_j); `None` where such a sum is zero.
fn cauchy<F: PrimeField>(x: &[F], y: &[F]) -> Option<Vec<Vec<F>>> {
    x.iter().map(|x| y.iter().map(|y| (*x + y).inverse()).collect()).collect()
}

/// The self-shrinking generator: of each two bits of the register, the second counts if the first is 1.
struct Grain {
    /// The register's bit i is bit i.
    register: u128,
    field_bits: u32,
}

impl Grain {
    /// The first 80 bits say what the constants are for: a prime field (1) in 2 bits, the S-box in 4, the bits of the
    /// modulus and the width in 12 each, the numbers of rounds in 10 each, then ones. 160 bits are thrown away.
    fn new(params: &PoseidonParams, field_bits: u32) -> Self {
        let s_box = match params.family() {
            Family::Circomlib => 0,
            Family::Filecoin => 1,
        };
        let parts = [
            (2, 1),
            (4, s_box),
            (12, u64::from(field_bits)),
            (12, params.width() as u64),
            (10, params.full_rounds() as u64),
            (10, params.partial_rounds() as u64),
            (30, (1 << 30) - 1),
        ];
        let bits = parts.iter().flat_map(|&(count, value)| (0..count).rev().map(move |bit| value >> bit & 1));
        let register = bits.zip(0..).fold(0, |register, (bit, at)| register | u128::from(bit) << at);
        let mut grain = Grain { register, field_bits };
        (0..160).for_each(|_| {
            grain.step();
        });
        grain
    }

    fn step(&mut self) -> bool {
        let new = [62, 51, 38, 23, 13, 0].iter().fold(0, |sum, &at| sum ^ self.register >> at & 1);
        self.register = self.register >> 1 | new << 79;
        new == 1
    }

    fn bit(&mut self) -> bool {
        while !self.step() {
            self.step();
        }
        self.step()
    }

    /// As many bits as the modulus has, the most significant one first.
    fn integer(&mut self) -> ark_ff::BigInt<4> {
        let mut bits: Vec<bool> = (0..self.field_bits).map(|_| self.bit()).collect();
        bits.reverse();
        ark_ff::BigInt::from_bits_le(&bits)
    }

    /// An element; integers that are not below the modulus are passed over.
    fn element<F: PrimeField<BigInt = ark_ff::BigInt<4>>>(&mut self) -> F {
        loop {
            if let Some(x) = F::from_bigint(self.integer()) {
                return x;
            }
        }
    }

    /// A Cauchy matrix of elements that are all different; here integers are reduced.
    fn matrix<F: PrimeField<BigInt = ark_ff::BigInt<4>>>(&mut self, t: usize) -> Vec<Vec<F>> {
        loop {
            let points: Vec<F> =
                (0..2 * t).map(|_| F::from_le_bytes_mod_order(&self.integer().to_bytes_le())).collect();
            let different = (1..points.len()).all(|i| !points[..i].contains(&points[i]));
            if let (true, Some(matrix)) = (different, cauchy(&points[..t], &points[t..])) {
                return matrix;
            }
        }
    }
}

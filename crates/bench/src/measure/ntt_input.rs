//! Vectors to measure transforms with, whose polynomials are known everywhere though the host has only a few of their elements.

use ark_ff::{AdditiveGroup, Field, PrimeField};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Backend, Coset, Direction, Lane, Ntt, NttField, NttOp, Order};

/// Coefficients repeat after this many at the most, as a power of two, each time multiplied by something else.
const LOG_PERIOD: u32 = 10;

/// Coefficient i of vector v is b_((i + v) mod period) s^i. So its polynomial is at y
/// b'(s y) ((s y)^n - 1) / ((s y)^period - 1) for the b' of the vector. Without the powers of s the values of a vector are zero but for
/// `period` of them, which in bit-reversed order are the first: one inverse transform on the device, over the coset of 1/s, makes the
/// coefficients of them.
pub(crate) struct Input<F: NttField> {
    /// b
    pub(crate) period: Vec<F::Ark>,
    /// s
    pub(crate) ratio: F::Ark,
    pub(crate) log_n: u32,
}

impl<F: NttField> Input<F> {
    /// Vectors of 2^`log_n` elements that repeat after 2^`log_period` or fewer.
    pub(crate) fn new(log_n: u32, log_period: u32) -> Self {
        let log_period = log_n.min(log_period).min(LOG_PERIOD);
        let mut bytes = vec![0; 64 + (64 << log_period)];
        blake3::Hasher::new_derive_key("tandem bench transforms").finalize_xof().fill(&mut bytes);
        let mut elements = bytes.chunks_exact(64).map(F::Ark::from_le_bytes_mod_order);
        let ratio = elements.next().unwrap_or(F::Ark::ONE);
        Input { period: elements.collect(), ratio, log_n }
    }

    /// The first of the values over the subgroup, in bit-reversed order, of a vector without the powers of s; all others are zero.
    pub(crate) fn spectrum(&self, vector: usize) -> tandem_ops::Result<Vec<F::Element>> {
        // Each period adds the same to a value of the few, and nothing together to the others.
        let periods = F::Ark::from((1u64 << self.log_n) / self.period.len() as u64);
        let element = |i| F::element(self.element(vector, i) * periods);
        let host = Cpu::new(1);
        let mut data = host.upload(Lane(0), &(0..self.period.len()).map(element).collect::<Vec<_>>())?;
        let (direction, coset) = (Direction::Forward, Coset::Subgroup);
        Ntt::<F>::ntt(&host, &mut data, NttOp { direction, coset, input: Order::Natural, output: Order::BitReversed })?;
        Ok(data.as_slice().to_vec())
    }

    /// The transform that makes coefficients, in this order, of the spectrum.
    pub(crate) fn to_coefficients(&self, output: Order) -> NttOp<F::Element> {
        let shift = self.ratio.inverse().unwrap_or(F::Ark::ONE);
        NttOp {
            direction: Direction::Inverse,
            coset: Coset::Shift(F::element(shift)),
            input: Order::BitReversed,
            output,
        }
    }

    fn element(&self, vector: usize, i: usize) -> F::Ark {
        self.period[(i + vector) % self.period.len()]
    }

    /// Coefficient i.
    pub(crate) fn coefficient(&self, vector: usize, i: usize) -> F::Ark {
        self.element(vector, i) * self.ratio.pow([i as u64])
    }

    /// The vector's polynomial at y.
    pub(crate) fn value(&self, vector: usize, y: F::Ark) -> F::Ark {
        let (y, one) = (self.ratio * y, F::Ark::ONE);
        let len = self.period.len();
        let b = (0..len).rev().fold(F::Ark::ZERO, |sum, i| sum * y + self.element(vector, i));
        match (y.pow([len as u64]) - one).inverse() {
            Some(inverse) => b * (y.pow([1 << self.log_n]) - one) * inverse,
            None => b * F::Ark::from((1u64 << self.log_n) / len as u64),
        }
    }
}

//! The discrete Fourier transform of complex numbers, on one lane or spread over several.
//!
//! It is the transform of [`Ntt`](super::Ntt) with the root of unity e^(-2 pi i / n), over numbers that are rounded. So values are equal within
//! an error: [`error_bound`] says which. Roots are made from cosines and sines of exact fractions, each rounded once ([`root`]); no root is a
//! power of a rounded one.

use super::Direction;
use crate::{Backend, Complex32, Complex64, Error, Result, Wire};
use std::f64::consts::FRAC_PI_2;
use std::ops::{Add, Mul, Sub};

pub use super::grid::Grid;

pub(crate) const OP: &str = "fft";

/// Sizes go up to this power of two.
pub const MAX_LOG_N: u32 = 32;

/// Complex numbers of one precision: [`Complex32`] or [`Complex64`].
pub trait Complex: Wire + Default + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// By how much one rounding changes a number at the most, relative to it: 2^-24 or 2^-53.
    const ROUNDING: f64;

    /// The number with these parts, each rounded once.
    fn new(re: f64, im: f64) -> Self;
    /// The real and the imaginary part.
    fn parts(self) -> [f64; 2];
    /// The conjugate.
    #[must_use]
    fn conjugate(self) -> Self {
        let [re, im] = self.parts();
        Self::new(re, -im)
    }
    /// The number times a real one.
    #[must_use]
    fn times(self, by: f64) -> Self {
        let [re, im] = self.parts();
        Self::new(re * by, im * by)
    }
}

macro_rules! complex {
    ($name:ident, $float:ident, $rounding:expr) => {
        impl Complex for $name {
            const ROUNDING: f64 = $rounding;

            #[inline]
            fn new(re: f64, im: f64) -> Self {
                $name { re: re as $float, im: im as $float }
            }
            #[inline]
            fn parts(self) -> [f64; 2] {
                [self.re.into(), self.im.into()]
            }
        }

        impl Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                $name { re: self.re + other.re, im: self.im + other.im }
            }
        }

        impl Sub for $name {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                $name { re: self.re - other.re, im: self.im - other.im }
            }
        }

        impl Mul for $name {
            type Output = Self;
            #[inline]
            fn mul(self, by: Self) -> Self {
                $name { re: self.re * by.re - self.im * by.im, im: self.re * by.im + self.im * by.re }
            }
        }
    };
}
complex!(Complex32, f32, 1.0 / (1u64 << 24) as f64);
complex!(Complex64, f64, 1.0 / (1u64 << 53) as f64);

/// e^(-2 pi i index / 2^`log_n`). The angle is first brought within an eighth of a turn of an axis, exactly: what is rounded is then its product
/// with pi, and the cosine and the sine.
pub fn root<T: Complex>(index: u64, log_n: u32) -> T {
    let n = 1i128 << log_n;
    let quarters = 4 * (i128::from(index) & (n - 1));
    let quarter = (quarters + n / 2) >> log_n;
    let (sin, cos) = ((quarters - (quarter << log_n)) as f64 / n as f64 * FRAC_PI_2).sin_cos();
    let (re, im) = match quarter & 3 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    };
    T::new(re, -im)
}

/// By how much a transform of 2^`log_n` numbers may differ from the exact one: the root of the sum of the squares of all differences, relative
/// to that of the values. With u = [`Complex::ROUNDING`], a butterfly x + w y adds u for the sum, sqrt(5) u for the product (R. Brent, C. Percival,
/// P. Zimmermann, 2007) and 3 u for the root, in all less than 6.3 u for each of the log n levels. Products of two kept roots, which a GPU
/// multiplies by between its passes, add up to 16 u for a pass of four levels or more.
pub fn error_bound<T: Complex>(log_n: u32) -> f64 {
    10.5 * T::ROUNDING * f64::from(log_n)
}

/// Discrete Fourier transforms of complex numbers.
pub trait Fft<T: Complex>: Backend {
    /// Transforms each of the `count` vectors that `data` holds one behind the other, in place and in natural order. `data` has `count` n numbers,
    /// where n is a power of two up to 2^[`MAX_LOG_N`]; 1 is one.
    ///
    /// `Forward` maps x to the values X_k = sum_j x_j e^(-2 pi i j k / n); `Inverse` is its inverse, with the factor 1/n. All values of a vector
    /// that has a NaN or an infinity are NaN or infinite in one part at least.
    ///
    /// # Errors
    /// The length is none of these, or `count` is zero; the device failed.
    fn fft_batch(&self, data: &mut Self::Buf<T>, count: usize, direction: Direction) -> Result<()>;

    /// Transforms `data` in place: a batch of one.
    ///
    /// # Errors
    /// As [`Fft::fft_batch`].
    fn fft(&self, data: &mut Self::Buf<T>, direction: Direction) -> Result<()> {
        self.fft_batch(data, 1, direction)
    }

    /// Transforms in place the vector that is dealt to `shards` ([`Spread`](super::Spread), both orders natural): number i is in shard i mod L, before and
    /// after. Shards may lie on any lanes; on as many as there are shards they are worked on side by side.
    ///
    /// # Errors
    /// [`Spread::of_complex`](super::Spread::of_complex) finds no such transform; lanes cannot reach each other's memory; the device failed. After a failure of the device
    /// the contents are undefined.
    fn fft_spread(&self, shards: &mut [&mut Self::Buf<T>], direction: Direction) -> Result<()>;
}

/// The size 2^k of each of `count` vectors of together `len` numbers, as k.
///
/// # Errors
/// There is no transform of such vectors.
pub fn log_size(len: usize, count: usize) -> Result<u32> {
    let n = if count > 0 && len.is_multiple_of(count) { len / count } else { 0 };
    if n.is_power_of_two() && n.ilog2() <= MAX_LOG_N {
        return Ok(n.ilog2());
    }
    Err(Error::invalid(OP, format!("{count} vectors of together {len} complex numbers; expected vectors whose size is a power of two up to 2^{MAX_LOG_N}")))
}

//! The discrete Fourier transform of complex numbers, on one lane or spread over several.
//!
//! It is the transform of [`Ntt`](super::Ntt) with the root of unity e^(-2 pi i / n), over numbers that are rounded. So values are equal within
//! an error: [`error_bound`] says which. Roots are made from cosines and sines of exact fractions, each rounded once ([`root`]); no root is a
//! power of a rounded one.

use super::Direction;
use crate::{Backend, Buffer, Complex32, Complex64, Error, Gather, Lane, Result, Wire};
use std::f64::consts::FRAC_PI_2;
use std::ops::{Add, Mul, Sub};

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

/// Transforms over two, three or more dimensions, of one shape on one lane: along each dimension as a batch of rows, with a map of indices that
/// turns the array between them.
pub struct Grid<B: Gather> {
    lane: Lane,
    sides: Vec<usize>,
    /// Of each dimension, the last one first, the map that puts it before all others, where that moves anything.
    turns: Vec<Option<B::Map>>,
}

impl<B: Gather> Grid<B> {
    /// Gets ready for arrays with these sides on `lane`: numbers whose last index differs by one are neighbours. A map takes 4 bytes a number.
    ///
    /// # Errors
    /// There are no sides; one is no power of two; they are more than 2^32 numbers; no such lane; not enough memory.
    pub fn new(backend: &B, lane: Lane, sides: &[usize]) -> Result<Self> {
        let len = sides.iter().try_fold(1usize, |len, &side| len.checked_mul(side));
        let fit = !sides.is_empty() && sides.iter().all(|side| side.is_power_of_two());
        let len = len.filter(|&len| fit && len.ilog2() <= MAX_LOG_N).ok_or_else(|| {
            let what = format!("an array of {sides:?}; expected powers of two, together 2^{MAX_LOG_N} numbers at most");
            Error::invalid(OP, what)
        })?;
        let turn = |&side: &usize| {
            let rows = len / side;
            if side == 1 || rows == 1 {
                return Ok(None);
            }
            // Number c of row r goes to row c, where it is number r.
            let mut map = crate::memory::reserve(OP, len)?;
            map.extend((0..side).flat_map(|c| (0..rows).map(move |r| (r * side + c) as u32)));
            backend.load_map(lane, &map, len).map(Some)
        };
        let turns = sides.iter().rev().map(turn).collect::<Result<_>>()?;
        Ok(Grid { lane, sides: sides.to_vec(), turns })
    }

    /// Transforms `data` along every dimension. The inverse has the factor 1 / (number of elements).
    ///
    /// # Errors
    /// `data` is of another length or on another lane; not enough memory; the device failed.
    pub fn transform<T: Complex>(&self, backend: &B, data: B::Buf<T>, direction: Direction) -> Result<B::Buf<T>>
    where
        B: Fft<T>,
    {
        let len = self.sides.iter().product::<usize>();
        if (data.len(), data.lane()) != (len, self.lane) {
            let (got, on) = (data.len(), data.lane().0);
            let what = format!("{got} numbers on lane {on}; expected {len} on lane {}", self.lane.0);
            return Err(Error::invalid(OP, what));
        }
        let mut data = data;
        for (side, turn) in self.sides.iter().rev().zip(&self.turns) {
            backend.fft_batch(&mut data, len / side, direction)?;
            if let Some(map) = turn {
                let mut turned = backend.alloc::<T>(self.lane, len)?;
                backend.gather(map, &data, &mut turned)?;
                data = turned;
            }
        }
        Ok(data)
    }
}

//! Discrete Fourier transforms of arrays whose slabs lie on lanes.

use super::fft::{directions, off, random, DEFINITION};
use crate::{samples, Outcome, Suite};
use tandem_ops::ntt::fft::{error_bound, Grid};
use tandem_ops::{naive, Backend, Buffer, Complex, Direction, Fft, Gather, Lane};

/// Sides of arrays that are compared with the definition.
const SMALL: [&[usize]; 9] = [&[1], &[16], &[2, 2], &[1, 8], &[16, 1], &[8, 16], &[32, 8], &[4, 2, 8], &[8, 1, 2, 4]];

/// The real and the imaginary part of a number.
type Parts = [f64; 2];

impl<B: Backend> Suite<'_, B> {
    /// Transforms of arrays of one to four dimensions, on any lane and on as many as there are, and what is refused.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn fft_grid<T: Complex>(&mut self) -> Outcome
    where
        B: Fft<T> + Gather,
    {
        let (log, most) = (self.log_n.min(20), self.backend.lanes().ilog2());
        let large: [Vec<usize>; 3] = [
            vec![1 << log.div_ceil(2), 1 << (log / 2)],
            vec![1 << (log / 4), 1 << (log - log / 4)],
            vec![1 << log.div_ceil(3), 1 << (log / 3), 1 << (log - log.div_ceil(3) - log / 3)],
        ];
        for sides in SMALL.iter().copied().chain(large.iter().map(Vec::as_slice)) {
            let n: usize = sides.iter().product();
            let input = random::<T>(n, &mut samples::rng(700 + n as u64));
            for direction in directions() {
                for log_count in 0..=most.min(sides[0].min(n / sides[0]).ilog2()) {
                    self.grid(&input, sides, 1 << log_count, direction)?;
                }
            }
        }
        self.grid_refusals::<T>()
    }

    /// The last lanes of the backend, in another order.
    fn grid<T: Complex>(&mut self, input: &[T], sides: &[usize], count: usize, direction: Direction) -> Outcome
    where
        B: Fft<T> + Gather,
    {
        let (backend, n) = (self.backend, input.len());
        let lanes: Vec<Lane> = (backend.lanes() - count..backend.lanes()).rev().map(Lane).collect();
        let what = format!("{direction:?} of an array of {sides:?} on {count} lanes");
        let grid = Grid::new(backend, &lanes, sides)?;
        let parts = input.chunks(n / count).zip(&lanes);
        let slabs = parts.map(|(part, &lane)| backend.upload(lane, part));
        let mut slabs = slabs.collect::<tandem_ops::Result<Vec<_>>>()?;
        grid.transform(backend, &mut slabs, direction)?;
        self.that(slabs.iter().map(|slab| slab.lane()).eq(lanes), format_args!("{what}: the lanes"))?;
        let mut got = Vec::with_capacity(n);
        for slab in &slabs {
            got.extend(backend.download(slab)?.wait()?);
        }
        self.that(got.len() == n, format_args!("{what}: the length"))?;
        let expected = along_each(input.iter().map(|x| x.parts()).collect(), sides, &|column| {
            let defined = |column: &[Parts]| (0..column.len()).map(|k| naive::dft_at(column, direction, k)).collect();
            if n <= 1 << 8 {
                return Ok(defined(column));
            }
            // Of many numbers by the CPU, in numbers of 64 bits.
            let column: Vec<tandem_ops::Complex64> = column.iter().map(|[re, im]| Complex::new(*re, *im)).collect();
            let mut reference = self.reference.upload(Lane(0), &column)?;
            self.reference.fft(&mut reference, direction)?;
            Ok(reference.as_slice().iter().map(|x| x.parts()).collect())
        })?;
        let (off, most) = (off(&got, &expected), error_bound::<T>(n.ilog2()) + DEFINITION);
        let most = if n <= 1 << 8 { most } else { most + error_bound::<tandem_ops::Complex64>(n.ilog2()) };
        self.that(off <= most, format_args!("{what}: off by {off:e}, expected {most:e} at most"))
    }

    fn grid_refusals<T: Complex>(&mut self) -> Outcome
    where
        B: Fft<T> + Gather,
    {
        let backend = self.backend;
        let (all, nowhere) = (self.lanes().collect::<Vec<_>>(), Lane(backend.lanes()));
        for sides in [&[][..], &[3], &[4, 6], &[0, 4], &[1 << 17, 1 << 17], &[1 << 40, 1 << 40]] {
            self.refused(Grid::new(backend, &all[..1], sides), format_args!("an array of {sides:?}"))?;
        }
        self.refused(Grid::new(backend, &[], &[4, 4]), "an array on no lanes")?;
        self.refused(Grid::new(backend, &[nowhere], &[4, 4]), "an array on a lane that is not there")?;
        self.refused(Grid::new(backend, &[Lane(0), Lane(0)], &[4, 4]), "an array on a lane twice")?;
        for (on, sides) in [(2, &[1, 8][..]), (2, &[8]), (2, &[8, 1]), (3, &[8, 8]), (4, &[2, 8])] {
            if let Some(lanes) = all.get(..on) {
                self.refused(Grid::new(backend, lanes, sides), format_args!("an array of {sides:?} on {on} lanes"))?;
            }
        }
        let last = all[all.len() - 1];
        let grid = Grid::new(backend, &[last], &[4, 4])?;
        for lengths in [&[][..], &[8], &[32], &[16, 16]] {
            let slabs = lengths.iter().map(|&len| backend.alloc::<T>(last, len));
            let mut slabs = slabs.collect::<tandem_ops::Result<Vec<_>>>()?;
            let refused = grid.transform(backend, &mut slabs, Direction::Forward);
            self.refused(refused, format_args!("slabs of {lengths:?} numbers for 16"))?;
        }
        if last != Lane(0) {
            let mut slabs = [backend.alloc::<T>(Lane(0), 16)?];
            self.refused(grid.transform(backend, &mut slabs, Direction::Inverse), "a slab on another lane")?;
        }
        Ok(())
    }
}

/// Transforms each column along each dimension in turn.
fn along_each(
    mut data: Vec<Parts>,
    sides: &[usize],
    transform: &dyn Fn(&[Parts]) -> tandem_ops::Result<Vec<Parts>>,
) -> tandem_ops::Result<Vec<Parts>> {
    let mut below = data.len();
    for &side in sides {
        below /= side;
        for start in (0..data.len()).filter(|at| (at / below).is_multiple_of(side)) {
            let column: Vec<Parts> = (0..side).map(|i| data[start + i * below]).collect();
            for (k, value) in transform(&column)?.into_iter().enumerate() {
                data[start + k * below] = value;
            }
        }
    }
    Ok(data)
}

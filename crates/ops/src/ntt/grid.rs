//! The discrete Fourier transform of arrays of several dimensions, on one lane or dealt to several.
//!
//! With n0 the first side, m the product of the others and L lanes, lane l has the n0 / L planes from l n0 / L on: its slab, a matrix of n0 / L rows and m
//! columns. A column is what has all indices but the first in common.
//!
//! ```text
//!  slab: planes                           columns of a lane                       slab
//!  [n0/L][m] ──> transforms along ──> [m][n0/L] ─┐                           ┌─> [m][n0/L] ──> [n0/L][m]
//!                all other sides,                │ exchange         exchange │         turn
//!                each with a turn                └─> [L][m/L][n0/L]          │
//!                                                     order: [m/L][n0] ──> transforms ──> order back: [L][m/L][n0/L]
//! ```
//!
//! A turn puts the last index before all others, so the one behind the last of the transforms has the columns one behind the other: what a lane
//! sends to another is one piece. Each lane sends (L - 1) / L of its slab, twice. Vectors are transformed whole, each on one lane, so that their values do
//! not depend on the number of lanes.

use super::fft::{Complex, Fft, MAX_LOG_N, OP};
use super::Direction;
use crate::{backend::check_lanes_differ, Buffer, Error, Gather, Lane, Result};

/// Transforms over one, two or more dimensions, of one shape. The array's first dimension is dealt to lanes: of L lanes, number l has the planes from
/// l n0 / L up to (l + 1) n0 / L, its slab. Numbers whose last index differs by one are neighbours.
///
/// A lane keeps maps of indices, 4 bytes for each number of its slab: one for each side, and two where there are several lanes. A transform takes
/// a second slab of memory on each lane, beside what [`Fft::fft_batch`] takes while it works.
pub struct Grid<B: Gather> {
    sides: Vec<usize>,
    slabs: Vec<Slab<B>>,
}

/// What a lane has. Of maps, those that move anything.
struct Slab<B: Gather> {
    lane: Lane,
    /// Of each dimension, the last one first, the map that puts it before all others.
    turns: Vec<Option<B::Map>>,
    /// From the other lanes' pieces to columns, and back.
    order: [Option<B::Map>; 2],
}

impl<B: Gather> Grid<B> {
    /// Gets ready for arrays with these sides whose slabs lie on these lanes.
    ///
    /// # Errors
    /// There are no sides; one is no power of two; a slab has more than 2^32 numbers. There are no lanes, their number is no power of two, or they are more
    /// than there are planes or columns; a lane is named twice; no such lane. Not enough memory.
    pub fn new(backend: &B, lanes: &[Lane], sides: &[usize]) -> Result<Self> {
        let invalid = |what: String| Err(Error::invalid(OP, what));
        let len = sides.iter().try_fold(1usize, |len, &side| len.checked_mul(side));
        let fit = !sides.is_empty() && sides.iter().all(|side| side.is_power_of_two());
        let count = lanes.len();
        let most = 1usize << MAX_LOG_N;
        let Some(len) = len.filter(|&len| fit && len / count.max(1) <= most) else {
            return invalid(format!(
                "an array of {sides:?} on {count} lanes; expected powers of two, together 2^{MAX_LOG_N} numbers a lane at most"
            ));
        };
        let (planes, columns) = (sides[0], len / sides[0]);
        if !count.is_power_of_two() || count > 1 && count > planes.min(columns) {
            return invalid(format!(
                "{planes} planes of {columns} numbers on {count} lanes; expected a power of two, and no more lanes than either"
            ));
        }
        check_lanes_differ(OP, lanes)?;
        if let Some(Lane(lane)) = lanes.iter().find(|lane| lane.0 >= backend.lanes()) {
            return invalid(format!("lane {lane} of a device with {}", backend.lanes()));
        }
        let slab = |&lane: &Lane| {
            let own = planes / count;
            // The last index first, and the first one, of which a lane has its part until the columns are whole, last.
            let turns = sides[1..].iter().rev().map(|&side| turn::<B>(backend, lane, [own * columns / side, side, 1]));
            let mut turns = turns.collect::<Result<Vec<_>>>()?;
            turns.push(turn(backend, lane, [columns, own, 1])?);
            let order = match count {
                1 => [None, None],
                _ => [
                    turn(backend, lane, [count, columns / count, own])?,
                    turn(backend, lane, [columns / count, count, own])?,
                ],
            };
            Ok(Slab { lane, turns, order })
        };
        Ok(Grid { sides: sides.to_vec(), slabs: lanes.iter().map(slab).collect::<Result<_>>()? })
    }

    /// Transforms the array that lies in `slabs` in place, along every dimension. The inverse has the factor 1 / (number of elements). On the CPU values are the
    /// same bytes on any number of lanes.
    ///
    /// # Errors
    /// There are not as many slabs as lanes; one is of another length or on another lane; not enough memory; lanes cannot reach each other's memory; the
    /// device failed. After a failure of the device the contents are undefined.
    pub fn transform<T: Complex>(&self, backend: &B, slabs: &mut [B::Buf<T>], direction: Direction) -> Result<()>
    where
        B: Fft<T>,
    {
        let count = self.slabs.len();
        let len = self.sides.iter().product::<usize>() / count;
        if slabs.len() != count {
            return Err(Error::invalid(OP, format!("{} slabs; expected {count}, one for each lane", slabs.len())));
        }
        for (number, (data, slab)) in slabs.iter().zip(&self.slabs).enumerate() {
            if (data.len(), data.lane()) != (len, slab.lane) {
                let (got, on) = (data.len(), data.lane().0);
                let what =
                    format!("slab {number} of {got} numbers on lane {on}; expected {len} on lane {}", slab.lane.0);
                return Err(Error::invalid(OP, what));
            }
        }
        // Of each lane, memory as large as the slab for what a map picks.
        let mut spares: Vec<Option<B::Buf<T>>> = slabs.iter().map(|_| None).collect();
        let (first, others) = (self.sides[0], &self.sides[1..]);
        for ((data, slab), spare) in slabs.iter_mut().zip(&self.slabs).zip(&mut spares) {
            for (side, turn) in others.iter().rev().zip(&slab.turns) {
                backend.fft_batch(data, len / side, direction)?;
                picked(backend, turn.as_ref(), data, spare)?;
            }
        }
        self.exchange(backend, slabs, &mut spares)?;
        for ((data, slab), spare) in slabs.iter_mut().zip(&self.slabs).zip(&mut spares) {
            let [there, back] = &slab.order;
            picked(backend, there.as_ref(), data, spare)?;
            backend.fft_batch(data, len / first, direction)?;
            picked(backend, back.as_ref(), data, spare)?;
        }
        self.exchange(backend, slabs, &mut spares)?;
        for ((data, slab), spare) in slabs.iter_mut().zip(&self.slabs).zip(&mut spares) {
            picked(backend, slab.turns.last().and_then(Option::as_ref), data, spare)?;
        }
        Ok(())
    }

    /// Gives each lane the piece of its number of what each has.
    fn exchange<T: Complex>(&self, backend: &B, slabs: &mut [B::Buf<T>], spares: &mut [Option<B::Buf<T>>]) -> Result<()>
    where
        B: Fft<T>,
    {
        let count = slabs.len();
        if count == 1 {
            return Ok(());
        }
        // Given back before as much is taken again.
        spares.fill_with(|| None);
        let pieces = |(number, slab): (usize, &Slab<B>)| {
            let of = |data: &B::Buf<T>| data.len() / count * number..data.len() / count * (number + 1);
            (slab.lane, slabs.iter().map(|data| (data, of(data))).collect())
        };
        let received = backend.join(&self.slabs.iter().enumerate().map(pieces).collect::<Vec<_>>())?;
        for ((data, spare), received) in slabs.iter_mut().zip(spares).zip(received) {
            *spare = Some(std::mem::replace(data, received));
        }
        Ok(())
    }
}

/// The map that takes run c of row r to row c, where it is run r, of runs of so many numbers; none where that moves nothing.
fn turn<B: Gather>(backend: &B, lane: Lane, [rows, columns, run]: [usize; 3]) -> Result<Option<B::Map>> {
    if rows == 1 || columns == 1 {
        return Ok(None);
    }
    let len = rows * columns * run;
    let mut map = crate::memory::reserve(OP, len)?;
    let starts = (0..columns).flat_map(|c| (0..rows).map(move |r| (r * columns + c) * run));
    map.extend(starts.flat_map(|start| (start..start + run).map(|at| at as u32)));
    backend.load_map(lane, &map, len).map(Some)
}

/// Puts what the map picks of `data` in its place; what was there is to be written next.
fn picked<T: Complex, B: Fft<T> + Gather>(
    backend: &B,
    map: Option<&B::Map>,
    data: &mut B::Buf<T>,
    spare: &mut Option<B::Buf<T>>,
) -> Result<()> {
    let Some(map) = map else { return Ok(()) };
    let mut to = match spare.take() {
        Some(spare) => spare,
        None => backend.alloc(data.lane(), data.len())?,
    };
    backend.gather(map, data, &mut to)?;
    *spare = Some(std::mem::replace(data, to));
    Ok(())
}

//! The prover: rounds on the lanes while there are many rows, the last ones on the host.

use super::verify::Interpolation;
use super::{add_products, check_challenge, check_tables, check_tables_count, last_value};
use super::{RoundValues, Sumcheck, SumcheckField, SumcheckProof, TABLES_MAX};
use crate::ntt::MAX_SHARDS;
use crate::{memory, Buffer, Error, Lane, Pending, Result, Wire};
use ark_ff::{AdditiveGroup, Field};
use zeroize::Zeroizing;

const OP: &str = "sumcheck";

/// A proof, and the point of all challenges, the one of the highest bit first.
pub type Proved<F> = (SumcheckProof<<F as SumcheckField>::Challenge>, Vec<<F as SumcheckField>::Challenge>);

/// So many rows of `tables` elements, of all shards together, go to the host: it is done with them sooner than a device answers in as many
/// rounds. A round of more tables takes more products, so these are fewer.
pub fn host_rows(tables: usize) -> usize {
    1 << (9 - tables.clamp(1, TABLES_MAX))
}

/// Proves the sum over all indices of the products of the tables' elements, which are only read. `challenge` gets each round's values at 0, 1, .. d, and gives what the variable is bound to: the
/// caller's transcript. Rounds end on the host from `rows_for_host` on, such as [`host_rows`] says.
///
/// Each of `shards`, a power of two up to 16, has a piece of every table, in the same order; shards may lie on any lanes, and on different ones
/// are worked on side by side. Element i of a table is number i div L of shard i mod L, as in [`crate::Spread`], so that shards are told apart by the
/// variables that are bound last: the proof is the same for any number of shards. A round takes d + 1 elements from each, and the host the rows
/// of all in the end.
///
/// Tables in blocks are tables in which other variables come first: shards of blocks give a proof whose last challenges are those of the
/// highest bits.
///
/// ```
/// use tandem_ops::{cpu::Cpu, sumcheck, Backend, Goldilocks, Goldilocks2, Lane};
///
/// # fn main() -> tandem_ops::Result<()> {
/// let backend = Cpu::new(1);
/// let [f, g] = [[1, 2, 3, 4], [5, 6, 7, 8]].map(|table| backend.upload(Lane(0), &table.map(Goldilocks)));
/// let (f, g) = (f?, g?);
/// // Both sides draw the same challenges from what was told. A transcript hashes; this one only shows where it goes.
/// let transcript = || {
///     let mut state = 0u64;
///     move |values: &[Goldilocks2]| {
///         values.iter().for_each(|x| state = (state ^ x.0[0]).wrapping_mul(0x9e37_79b9_7f4a_7c15));
///         Goldilocks2([state >> 1, state >> 2])
///     }
/// };
/// let (proof, point) = sumcheck::prove::<Goldilocks, _>(&backend, &[&[&f, &g]], 0, transcript())?;
/// assert_eq!(proof.sum, Goldilocks2([1 * 5 + 2 * 6 + 3 * 7 + 4 * 8, 0]));
/// assert_eq!(sumcheck::verify::<Goldilocks>(&proof, 2, transcript())?, point);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Sumcheck`]; shards are not alike; the device was wrong ([`Error::Device`]): the proof is checked by itself.
pub fn prove<F: SumcheckField, B: Sumcheck<F>>(
    backend: &B,
    shards: &[&[&B::Buf<F::Element>]],
    rows_for_host: usize,
    challenge: impl FnMut(&[F::Challenge]) -> F::Challenge,
) -> Result<Proved<F>> {
    let (tables, mut count) = check_shards::<F, B>(shards)?;
    let mut rounds = Rounds::<F, _>::new(tables, challenge);
    let all = shards.len();
    let on_device = |count: usize| count >= 4 && count * all > rows_for_host;
    let rows = if on_device(count) {
        let sums = shards.iter().map(|tables| backend.sumcheck_sums(tables)).collect::<Result<Vec<_>>>()?;
        let mut values = added::<F>(sums)?;
        let r = rounds.next(&mut values)?;
        let bound = shards.iter().map(|tables| backend.sumcheck_bind(tables, r)).collect::<Result<Vec<_>>>()?;
        let (mut bound, mut pending): (Vec<_>, Vec<_>) = bound.into_iter().unzip();
        count /= 2;
        while on_device(count) {
            let r = rounds.next(&mut added::<F>(pending)?)?;
            let fold = |columns| backend.sumcheck_fold(columns, tables, count, r);
            pending = bound.iter_mut().map(fold).collect::<Result<_>>()?;
            count /= 2;
        }
        let take = |columns| backend.sumcheck_take(columns, tables, count);
        let live = bound.iter().map(take).collect::<Result<Vec<_>>>()?;
        // Devices overwrite what they bound while the host has the last rounds.
        drop(bound);
        let r = rounds.next(&mut added::<F>(pending)?)?;
        let place = |s: usize, i: usize| (i % count * all + s) * tables + i / count;
        let mut rows = Rows::gathered(live, (tables, count * all), place, F::extension)?;
        rows.fold(check_challenge::<F>(OP, r)?);
        rows
    } else {
        let parts = shards.iter().flat_map(|tables| tables.iter().map(|table| backend.download(table)));
        let place = |part: usize, i: usize| (i * all + part / tables) * tables + part % tables;
        let value = |x| F::lift(F::value(x));
        Rows::gathered(parts.collect::<Result<_>>()?, (tables, count * all), place, value)?
    };
    rounds.on_host(rows)
}

/// How many tables there are, and elements of each on a shard.
fn check_shards<F: SumcheckField, B: Sumcheck<F>>(shards: &[&[&B::Buf<F::Element>]]) -> Result<(usize, usize)> {
    if !shards.len().is_power_of_two() || shards.len() > MAX_SHARDS {
        let reason = format!("{} shards; expected a power of two up to {MAX_SHARDS}", shards.len());
        return Err(Error::invalid(OP, reason));
    }
    let shape = |tables: &&[&B::Buf<F::Element>]| -> Result<(usize, usize)> {
        let all: Vec<(Lane, usize)> = tables.iter().map(|table| (table.lane(), table.len())).collect();
        Ok((all.len(), check_tables(OP, &all, 1)?.1))
    };
    let shapes = shards.iter().map(shape).collect::<Result<Vec<_>>>()?;
    let (tables, count) = shapes[0];
    check_tables_count(OP, tables)?;
    if let Some((others, len)) = shapes.iter().find(|shape| **shape != shapes[0]) {
        let reason = format!("shards of {tables} tables of {count} elements and of {others} tables of {len}");
        return Err(Error::invalid(OP, reason));
    }
    Ok((tables, count))
}

/// The values of all shards together.
fn added<F: SumcheckField>(pending: Vec<Pending<RoundValues<F>>>) -> Result<[F::Extension; TABLES_MAX + 1]> {
    let mut sums = [F::Extension::ZERO; TABLES_MAX + 1];
    for values in pending {
        let values = values.wait()?;
        sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += F::extension(x));
    }
    Ok(sums)
}

/// The protocol's state.
struct Rounds<F: SumcheckField, T> {
    tables: usize,
    challenge: T,
    interpolation: Interpolation<F::Extension>,
    sum: Option<F::Challenge>,
    /// What is to be shown from here on.
    claim: F::Extension,
    told: Vec<Vec<F::Challenge>>,
    point: Vec<F::Challenge>,
}

impl<F: SumcheckField, T: FnMut(&[F::Challenge]) -> F::Challenge> Rounds<F, T> {
    fn new(tables: usize, challenge: T) -> Self {
        let (interpolation, claim) = (Interpolation::new(), F::Extension::ZERO);
        Rounds { tables, challenge, interpolation, sum: None, claim, told: Vec::new(), point: Vec::new() }
    }

    /// Tells a round's values and gives the challenge. From the second round on the value at 1 is what the claim leaves for it; that at d follows
    /// from the leading coefficient.
    fn next(&mut self, values: &mut [F::Extension; TABLES_MAX + 1]) -> Result<F::Challenge> {
        if self.sum.is_none() {
            self.claim = values[0] + values[1];
            self.sum = Some(F::challenge(self.claim));
        }
        values[1] = self.claim - values[0];
        let values = &mut values[..=self.tables];
        if self.tables > 1 {
            values[self.tables] = last_value(values);
        }
        let told: Vec<_> = values.iter().map(|&x| F::challenge(x)).collect();
        let r = (self.challenge)(&told);
        self.claim = self.interpolation.at(values, check_challenge::<F>(OP, r)?);
        self.told.push(told);
        self.point.push(r);
        Ok(r)
    }

    /// The rounds that are left, of these rows.
    fn on_host(mut self, mut rows: Rows<F::Extension>) -> Result<Proved<F>> {
        while rows.elements.len() > self.tables {
            let r = self.next(&mut rows.sums())?;
            rows.fold(check_challenge::<F>(OP, r)?);
        }
        // Values at 1 were taken on trust, so that whatever went wrong in a round or in a table shows here.
        let product: F::Extension = rows.elements.iter().product();
        let sum = *self.sum.get_or_insert(F::challenge(product));
        if !self.point.is_empty() && product != self.claim {
            let (device, code_name) = ("the device".into(), "wrong sum".into());
            let text = "the values at the point of all challenges do not make what the rounds say".into();
            return Err(Error::Device { op: OP, device, code: i32::MIN, code_name, text });
        }
        let values = rows.elements.iter().map(|&x| F::challenge(x)).collect();
        Ok((SumcheckProof { sum, rounds: self.told, values }, self.point))
    }
}

/// Rows of an element of each table, on the host.
struct Rows<E: Field> {
    elements: Zeroizing<Vec<E>>,
    tables: usize,
}

impl<E: Field> Rows<E> {
    /// `count` rows, with element i of part p at `place(p, i)`.
    fn gathered<W: Wire>(
        parts: Vec<Pending<Vec<W>>>,
        (tables, count): (usize, usize),
        place: impl Fn(usize, usize) -> usize,
        value: impl Fn(W) -> E,
    ) -> Result<Self> {
        let mut elements = Zeroizing::new(memory::filled(OP, count * tables, E::ZERO)?);
        for (p, part) in parts.into_iter().enumerate() {
            let part = Zeroizing::new(part.wait()?);
            part.iter().enumerate().for_each(|(i, &x)| elements[place(p, i)] = value(x));
        }
        Ok(Rows { elements, tables })
    }

    fn sums(&self) -> [E; TABLES_MAX + 1] {
        match self.tables {
            1 => self.sums_of::<1>(),
            2 => self.sums_of::<2>(),
            3 => self.sums_of::<3>(),
            _ => self.sums_of::<4>(),
        }
    }

    fn sums_of<const D: usize>(&self) -> [E; TABLES_MAX + 1] {
        let mut sums = [E::ZERO; TABLES_MAX + 1];
        let (low, high) = self.elements.split_at(self.elements.len() / 2);
        for (low, high) in low.chunks_exact(D).zip(high.chunks_exact(D)) {
            let low: [E; D] = std::array::from_fn(|j| low[j]);
            add_products(&mut sums, low, std::array::from_fn(|j| high[j] - low[j]), true);
        }
        sums
    }

    fn fold(&mut self, r: E) {
        let half = self.elements.len() / 2;
        let (low, high) = self.elements.split_at_mut(half);
        low.iter_mut().zip(&*high).for_each(|(low, high)| *low += r * (*high - *low));
        // What is cut off is overwritten with the rest.
        self.elements.truncate(half);
    }
}

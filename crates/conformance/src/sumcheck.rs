//! Rounds of a sumcheck, and whole ones.

use crate::{samples, Failure, Outcome, Suite};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use ark_poly::{DenseMultilinearExtension, MultilinearExtension};
use rand_chacha::ChaCha8Rng;
use std::fmt::Display;
use tandem_ops::sumcheck::{self, Proved, RoundValues, SumcheckField, SumcheckProof, TABLES_MAX};
use tandem_ops::{naive, Backend, Lane, Sumcheck};

/// Up to this size rounds are compared with their definition.
const DEFINED: u32 = 5;
/// What a whole sumcheck is done with.
struct Way {
    shards: usize,
    host_rows: usize,
}

type Tables<F> = Vec<Vec<<F as tandem_ops::NttField>::Ark>>;
type Bound<F> = Vec<Vec<<F as SumcheckField>::Extension>>;

fn tables<F: SumcheckField>(count: usize, log_n: u32, rng: &mut ChaCha8Rng) -> Tables<F> {
    (0..count).map(|_| samples::elements::<F>(1 << log_n, rng)).collect()
}

fn lifted<F: SumcheckField>(tables: &Tables<F>) -> Bound<F> {
    tables.iter().map(|table| table.iter().map(|&x| F::lift(x)).collect()).collect()
}

/// A round's values by the definition, that at 1 of the first round alone.
fn defined<F: SumcheckField>(tables: &Bound<F>, bound: &[F::Extension]) -> RoundValues<F> {
    let mut values = RoundValues::<F>::default();
    for (t, value) in values.iter_mut().enumerate().take(tables.len() + 1) {
        if t != 1 || bound.is_empty() {
            *value = F::challenge(naive::sumcheck_place(tables, bound, t));
        }
    }
    values
}

/// Columns of tables whose first variables are bound, by the definition.
fn columns<F: SumcheckField>(tables: &Bound<F>, bound: &[F::Extension]) -> Vec<F::Challenge> {
    tables.iter().flat_map(|table| naive::multilinear_bound(table, bound)).map(F::challenge).collect()
}

/// Challenges that depend on all that the prover has said, as a transcript's do.
fn transcript<F: SumcheckField>(seed: u64) -> impl FnMut(&[F::Challenge]) -> F::Challenge {
    let mut state = F::Extension::rand(&mut samples::rng(seed));
    let factor = F::Extension::rand(&mut samples::rng(seed + 1));
    move |values| {
        state = values.iter().fold(state, |state, &x| (state + F::extension(x)).square() * factor + F::Extension::ONE);
        F::challenge(state)
    }
}

impl<B: Backend> Suite<'_, B> {
    /// Rounds on every lane against their definition; whole sumchecks of 1 to 4 tables and of every size up to 2^10 in 1 to 16 shards on the lanes
    /// in turn, with all rounds on the lanes and with the last ones on the host, against each other, the verifier and the polynomials'
    /// values; one of the largest size against the CPU.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn sumcheck<F: SumcheckField>(&mut self) -> Outcome
    where
        B: Sumcheck<F>,
    {
        let most = if self.is_small() { 3 } else { DEFINED };
        for lane in self.lanes() {
            for (log_n, count) in (1..=most).flat_map(|log_n| (1..=TABLES_MAX).map(move |count| (log_n, count))) {
                let rng = &mut samples::rng(u64::from(log_n) * 8 + count as u64);
                let tables = tables::<F>(count, log_n, rng);
                let any = F::Extension::rand(rng);
                for first in [any, F::Extension::ZERO, F::Extension::ONE] {
                    let bound: Vec<_> =
                        (0..log_n).map(|i| if i == 0 { first } else { F::Extension::rand(rng) }).collect();
                    self.sumcheck_rounds::<F>(lane, &tables, &bound)?;
                }
            }
        }
        let whole = if self.is_small() { 5 } else { 10 };
        for (log_n, count) in (0..=whole).flat_map(|log_n| (1..=TABLES_MAX).map(move |count| (log_n, count))) {
            let rng = &mut samples::rng(u64::from(log_n) * 8 + count as u64 + 1000);
            self.whole_sumcheck::<F>(&tables::<F>(count, log_n, rng))?;
        }
        for count in 1..=TABLES_MAX {
            let shards = if self.backend.lanes() >= 2 { 2 } else { 1 };
            let rng = &mut samples::rng(count as u64 + 2000);
            let tables = tables::<F>(count, self.log_n, rng);
            let proved = self.proof_of::<F>(&tables, &Way { shards, host_rows: sumcheck::host_rows(count) })?;
            self.is_sumcheck::<F>(&tables, &proved, "the largest")?;
            let wire: Vec<_> = tables.iter().map(|x| samples::wire::<F>(x)).collect();
            let bufs =
                wire.iter().map(|x| self.reference.upload(Lane(0), x)).collect::<tandem_ops::Result<Vec<_>>>()?;
            let bufs: Vec<_> = bufs.iter().collect();
            let expected = sumcheck::prove::<F, _>(&self.reference, &[&bufs], 0, transcript::<F>(7))?;
            let what = format!("a sumcheck of {count} tables of 2^{}, against the CPU", self.log_n);
            self.that(proved == expected, what)?;
        }
        self.sumcheck_refusals::<F>()
    }

    /// All rounds of these tables with these challenges.
    fn sumcheck_rounds<F: SumcheckField>(&mut self, lane: Lane, tables: &Tables<F>, at: &[F::Extension]) -> Outcome
    where
        B: Sumcheck<F>,
    {
        let (count, n) = (tables.len(), tables[0].len());
        let wire: Vec<_> = tables.iter().map(|x| samples::wire::<F>(x)).collect();
        let bufs = wire.iter().map(|x| self.backend.upload(lane, x)).collect::<tandem_ops::Result<Vec<_>>>()?;
        let bufs: Vec<_> = bufs.iter().collect();
        let tables = lifted::<F>(tables);
        let what = |round: usize| format!("round {round} of {count} tables of {n}");
        let sums = self.backend.sumcheck_sums(&bufs)?.wait()?;
        self.that(sums == defined::<F>(&tables, &[]), what(0))?;
        if n >= 4 {
            let (mut bound, values) = self.backend.sumcheck_bind(&bufs, F::challenge(at[0]))?;
            self.that(values.wait()? == defined::<F>(&tables, &at[..1]), what(1))?;
            self.holds(&bound, &columns::<F>(&tables, &at[..1]), format_args!("columns of {}", what(1)))?;
            for round in 2..at.len() {
                let r = F::challenge(at[round - 1]);
                let live = n >> (round - 1);
                let values = Sumcheck::<F>::sumcheck_fold(self.backend, &mut bound, count, live, r)?;
                self.that(values.wait()? == defined::<F>(&tables, &at[..round]), what(round))?;
                let taken = Sumcheck::<F>::sumcheck_take(self.backend, &bound, count, live / 2)?.wait()?;
                let expected = columns::<F>(&tables, &at[..round]);
                self.that(taken == expected, format_args!("columns of {}", what(round)))?;
            }
        }
        for (buf, wire) in bufs.iter().zip(&wire) {
            self.holds(buf, wire, "a table afterwards")?;
        }
        Ok(())
    }

    fn proof_of<F: SumcheckField>(&self, tables: &Tables<F>, way: &Way) -> Outcome<Proved<F>>
    where
        B: Sumcheck<F>,
    {
        let lanes = self.backend.lanes();
        // Dealt like cards.
        let shard = |s: usize| {
            let part = |table: &Vec<F::Ark>| -> Vec<F::Element> {
                table.iter().skip(s).step_by(way.shards).map(|&x| F::element(x)).collect()
            };
            tables.iter().map(|table| self.backend.upload(Lane(s % lanes), &part(table))).collect()
        };
        let shards = (0..way.shards).map(shard).collect::<tandem_ops::Result<Vec<Vec<_>>>>()?;
        let shards: Vec<Vec<_>> = shards.iter().map(|shard| shard.iter().collect()).collect();
        let shards: Vec<&[_]> = shards.iter().map(|shard| &shard[..]).collect();
        Ok(sumcheck::prove::<F, B>(self.backend, &shards, way.host_rows, transcript::<F>(7))?)
    }

    fn whole_sumcheck<F: SumcheckField>(&mut self, tables: &Tables<F>) -> Outcome
    where
        B: Sumcheck<F>,
    {
        let what = format!("a sumcheck of {} tables of {}", tables.len(), tables[0].len());
        let first = self.proof_of::<F>(tables, &Way { shards: 1, host_rows: 0 })?;
        self.is_sumcheck::<F>(tables, &first, &what)?;
        for shards in [1, 2, 4, 8, 16].into_iter().filter(|&shards| shards <= tables[0].len()) {
            for host_rows in [0, 16, sumcheck::host_rows(tables.len())] {
                let other = self.proof_of::<F>(tables, &Way { shards, host_rows })?;
                self.that(other == first, format_args!("{what} in {shards} shards, {host_rows} rows for the host"))?;
            }
        }
        Ok(())
    }

    /// Checks a proof by the verifier, its sum by adding up, and its values by arkworks, whose first variable is the lowest bit.
    fn is_sumcheck<F: SumcheckField>(
        &mut self,
        tables: &Tables<F>,
        (proof, point): &Proved<F>,
        what: impl Display,
    ) -> Outcome {
        let variables = tables[0].len().ilog2() as usize;
        let verified = sumcheck::verify::<F>(proof, variables, transcript::<F>(7));
        let verified = verified.map_err(|e| Failure(format!("{what}: {e}")))?;
        self.that(verified == *point, format_args!("{what}: the point"))?;
        let tables = lifted::<F>(tables);
        let sum = (0..tables[0].len()).map(|i| tables.iter().map(|table| table[i]).product::<F::Extension>()).sum();
        self.that(proof.sum == F::challenge(sum), format_args!("{what}: the sum"))?;
        let point: Vec<_> = point.iter().rev().map(|&r| F::extension(r)).collect();
        for (j, table) in tables.into_iter().enumerate() {
            let value = DenseMultilinearExtension::from_evaluations_vec(variables, table).fix_variables(&point);
            let is_value = value.evaluations.first().is_some_and(|&value| F::challenge(value) == proof.values[j]);
            self.that(is_value, format_args!("{what}: the value of table {j}"))?;
        }
        Ok(())
    }

    fn sumcheck_refusals<F: SumcheckField>(&mut self) -> Outcome
    where
        B: Sumcheck<F>,
    {
        let one = F::challenge(F::Extension::ONE);
        let buf = |len: usize, lane: usize| self.backend.alloc::<F::Element>(Lane(lane), len);
        let lengths: [&[usize]; 7] = [&[], &[8; 5], &[8, 4], &[0], &[6], &[1], &[8, 8, 8, 12]];
        for lengths in lengths {
            let bufs = lengths.iter().map(|&len| buf(len, 0)).collect::<tandem_ops::Result<Vec<_>>>()?;
            let bufs: Vec<_> = bufs.iter().collect();
            let what = format!("tables of {lengths:?} elements");
            self.refused(self.backend.sumcheck_sums(&bufs), format_args!("values of {what}"))?;
            self.refused(self.backend.sumcheck_bind(&bufs, one), &what)?;
            if lengths != [1] {
                let refused = sumcheck::prove::<F, B>(self.backend, &[&bufs], 0, |_| one);
                self.refused(refused, format_args!("a sumcheck of {what}"))?;
            }
        }
        let two = buf(2, 0)?;
        self.refused(self.backend.sumcheck_bind(&[&two], one), "a table of 2 elements that is bound")?;
        let four = buf(4, 0)?;
        let above = bytemuck::pod_read_unaligned(&vec![0xff; size_of::<F::Challenge>()]);
        self.refused(self.backend.sumcheck_bind(&[&four], above), "a challenge that is none")?;
        if self.backend.lanes() > 1 {
            let other = buf(4, 1)?;
            self.refused(self.backend.sumcheck_sums(&[&four, &other]), "tables on two lanes")?;
            self.refused(self.backend.sumcheck_bind(&[&four, &other], one), "tables on two lanes that are bound")?;
        }
        let mut columns = self.backend.alloc::<F::Challenge>(Lane(0), 16)?;
        for (tables, count) in
            [(0, 4), (5, 4), (1, 0), (1, 3), (1, 6), (1, 32), (2, 16), (3, 4), (4, 8), (4, usize::MAX / 2 + 1)]
        {
            let what = format!("{count} elements of each of {tables} columns of a buffer of 16");
            let refused = Sumcheck::<F>::sumcheck_fold(self.backend, &mut columns, tables, count, one);
            self.refused(refused, format_args!("to bind {what}"))?;
            let refused = Sumcheck::<F>::sumcheck_take(self.backend, &columns, tables, count);
            self.refused(refused, format_args!("to take {what}"))?;
        }
        for count in [1, 2] {
            let refused = Sumcheck::<F>::sumcheck_fold(self.backend, &mut columns, 2, count, one);
            self.refused(refused, format_args!("to bind {count} elements"))?;
        }
        let refused = Sumcheck::<F>::sumcheck_fold(self.backend, &mut columns, 2, 8, above);
        self.refused(refused, "columns bound to what is no challenge")?;
        let eight = buf(8, 0)?;
        let alike: &[&_] = &[&four];
        let none: &[&[&B::Buf<F::Element>]] = &[];
        for (shards, what) in [
            (none, "no shards"),
            (&[alike; 3], "3 shards"),
            (&[alike; 32], "32 shards"),
            (&[alike, &[&eight]], "shards of 4 and 8 elements"),
            (&[alike, &[&four, &four]], "shards of 1 and 2 tables"),
        ] {
            self.refused(sumcheck::prove::<F, B>(self.backend, shards, 0, |_| one), what)?;
        }
        for host_rows in [0, 16] {
            let refused = sumcheck::prove::<F, B>(self.backend, &[&[&eight]], host_rows, |_| above);
            self.refused(refused, "a transcript without challenges")?;
        }
        self.sumcheck_lies::<F>()
    }

    /// The verifier sees every number of a proof that is changed, and rounds that are left out.
    fn sumcheck_lies<F: SumcheckField>(&mut self) -> Outcome
    where
        B: Sumcheck<F>,
    {
        let tables = tables::<F>(2, 4, &mut samples::rng(11));
        let (right, _) = self.proof_of::<F>(&tables, &Way { shards: 1, host_rows: 0 })?;
        let plus_one = |x: &mut F::Challenge| *x = F::challenge(F::extension(*x) + F::Extension::ONE);
        let above = bytemuck::pod_read_unaligned(&vec![0xff; size_of::<F::Challenge>()]);
        let mut lies: Vec<SumcheckProof<F::Challenge>> = Vec::new();
        let mut lie = |change: &dyn Fn(&mut SumcheckProof<F::Challenge>)| {
            let mut proof = right.clone();
            change(&mut proof);
            lies.push(proof);
        };
        for change in [&plus_one as &dyn Fn(&mut F::Challenge), &|x| *x = above] {
            lie(&|proof| change(&mut proof.sum));
            for j in 0..2 {
                lie(&|proof| change(&mut proof.values[j]));
            }
            for (round, t) in (0..4).flat_map(|round| (0..3).map(move |t| (round, t))) {
                lie(&|proof| change(&mut proof.rounds[round][t]));
            }
        }
        lie(&|proof| drop(proof.rounds.pop()));
        lie(&|proof| proof.rounds.push(proof.rounds[3].clone()));
        for values in [0, 1, 2, 4, 9] {
            lie(&|proof| proof.rounds[1].resize(values, F::Challenge::default()));
        }
        lie(&|proof| proof.values.clear());
        lie(&|proof| proof.values = vec![F::Challenge::default(); TABLES_MAX + 1]);
        for (i, lie) in lies.iter().enumerate() {
            self.refused(sumcheck::verify::<F>(lie, 4, transcript::<F>(7)), format_args!("lie {i}"))?;
        }
        // Tables of another size have a proof of their own.
        for variables in [3, 5] {
            let what = format!("a proof of 4 rounds for {variables} variables");
            self.refused(sumcheck::verify::<F>(&right, variables, transcript::<F>(7)), what)?;
        }
        let one = F::challenge(F::Extension::ONE);
        let nothing = SumcheckProof { sum: one, rounds: Vec::new(), values: Vec::new() };
        self.refused(sumcheck::verify::<F>(&nothing, 0, |_| one), "a product of no tables")?;
        self.refused(sumcheck::verify::<F>(&right, 4, |_| above), "a verifier without challenges")
    }
}

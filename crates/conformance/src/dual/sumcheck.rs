//! Rounds of a sumcheck on two backends.

use super::{is_same, Dual, Pair};
use tandem_ops::sumcheck::RoundValues;
use tandem_ops::{Pending, Result, Sumcheck, SumcheckField};

impl<F: SumcheckField, L: Sumcheck<F>, R: Sumcheck<F>> Sumcheck<F> for Dual<L, R> {
    fn sumcheck_sums(&self, tables: &[&Self::Buf<F::Element>]) -> Result<Pending<RoundValues<F>>> {
        let (left, right): (Vec<_>, Vec<_>) = tables.iter().map(|table| (&table.0, &table.1)).unzip();
        let left = self.left.sumcheck_sums(&left).and_then(Pending::wait);
        let right = self.right.sumcheck_sums(&right).and_then(Pending::wait);
        self.same_result("sumcheck_sums", left, right).map(Pending::ready)
    }

    fn sumcheck_bind(
        &self,
        tables: &[&Self::Buf<F::Element>],
        r: F::Challenge,
    ) -> Result<(Self::Buf<F::Challenge>, Pending<RoundValues<F>>)> {
        const OP: &str = "sumcheck_bind";
        let (left, right): (Vec<_>, Vec<_>) = tables.iter().map(|table| (&table.0, &table.1)).unzip();
        let (left, right) = (self.left.sumcheck_bind(&left, r), self.right.sumcheck_bind(&right, r));
        let Pair((left, left_values), (right, right_values)) = self.both(OP, left, right)?;
        let values = self.same_result(OP, left_values.wait(), right_values.wait())?;
        Ok((self.made(OP, Ok(left), Ok(right))?, Pending::ready(values)))
    }

    fn sumcheck_fold(
        &self,
        columns: &mut Self::Buf<F::Challenge>,
        tables: usize,
        count: usize,
        r: F::Challenge,
    ) -> Result<Pending<RoundValues<F>>> {
        const OP: &str = "sumcheck_fold";
        let (left, right) = (&mut columns.0, &mut columns.1);
        let left = Sumcheck::<F>::sumcheck_fold(&self.left, left, tables, count, r).and_then(Pending::wait);
        let right = Sumcheck::<F>::sumcheck_fold(&self.right, right, tables, count, r).and_then(Pending::wait);
        let values = self.same_result(OP, left, right)?;
        // What is behind the live elements is undefined.
        Sumcheck::<F>::sumcheck_take(self, columns, tables, count / 2)?.wait()?;
        Ok(Pending::ready(values))
    }

    fn sumcheck_take(
        &self,
        columns: &Self::Buf<F::Challenge>,
        tables: usize,
        count: usize,
    ) -> Result<Pending<Vec<F::Challenge>>> {
        const OP: &str = "sumcheck_take";
        let left = Sumcheck::<F>::sumcheck_take(&self.left, &columns.0, tables, count).and_then(Pending::wait);
        let right = Sumcheck::<F>::sumcheck_take(&self.right, &columns.1, tables, count).and_then(Pending::wait);
        let Pair(left, right) = self.both(OP, left, right)?;
        if left.len() != right.len() {
            return Err(self.disagree(OP, left.len().min(right.len())));
        }
        match left.iter().zip(&right).position(|(l, r)| !is_same(l, r)) {
            None => Ok(Pending::ready(left)),
            Some(at) => Err(self.disagree(OP, at)),
        }
    }
}

//! Rounds of a sumcheck that are wrong.

use super::{changed, Fault, Faulty};
use tandem_ops::sumcheck::RoundValues;
use tandem_ops::{cpu, Backend, Pending, Result, Sumcheck, SumcheckField};

impl<F: SumcheckField> Sumcheck<F> for Faulty {
    fn sumcheck_sums(&self, tables: &[&cpu::Buf<F::Element>]) -> Result<Pending<RoundValues<F>>> {
        let sums = Sumcheck::<F>::sumcheck_sums(&self.cpu, tables);
        match (self.fault, sums) {
            (Fault::SumcheckShort, Err(_)) if tables.len() == 1 => Ok(Pending::ready(RoundValues::<F>::default())),
            (Fault::SumcheckSums, sums) if tables.len() == 3 => Ok(sums?.map(changed)),
            (_, sums) => sums,
        }
    }
    fn sumcheck_bind(
        &self,
        tables: &[&cpu::Buf<F::Element>],
        r: F::Challenge,
    ) -> Result<(cpu::Buf<F::Challenge>, Pending<RoundValues<F>>)> {
        let (mut rows, values) = Sumcheck::<F>::sumcheck_bind(&self.cpu, tables, r)?;
        self.flip(Fault::SumcheckBind, &mut rows)?;
        Ok((rows, values))
    }
    fn sumcheck_fold(
        &self,
        columns: &mut cpu::Buf<F::Challenge>,
        tables: usize,
        count: usize,
        r: F::Challenge,
    ) -> Result<Pending<RoundValues<F>>> {
        let values = Sumcheck::<F>::sumcheck_fold(&self.cpu, columns, tables, count, r)?;
        if self.fault == Fault::SumcheckFold {
            // The last live element of the last column.
            let last = columns.as_slice().len() / tables * (tables - 1) + count / 2 - 1;
            let wrong = changed(columns.as_slice()[last]);
            self.cpu.write(columns, last, &[wrong])?;
        }
        Ok(if self.fault == Fault::SumcheckFoldValues && count > 4 { values.map(changed) } else { values })
    }
    fn sumcheck_take(
        &self,
        columns: &cpu::Buf<F::Challenge>,
        tables: usize,
        count: usize,
    ) -> Result<Pending<Vec<F::Challenge>>> {
        let taken = Sumcheck::<F>::sumcheck_take(&self.cpu, columns, tables, count)?;
        let is_wrong = self.fault == Fault::SumcheckTake && count > 1;
        Ok(taken.map(move |mut taken| {
            if is_wrong {
                taken.reverse();
            }
            taken
        }))
    }
}

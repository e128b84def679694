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
        rows: &mut cpu::Buf<F::Challenge>,
        tables: usize,
        r: F::Challenge,
    ) -> Result<Pending<RoundValues<F>>> {
        let count = rows.as_slice().len() / tables.max(1);
        let values = Sumcheck::<F>::sumcheck_fold(&self.cpu, rows, tables, r)?;
        if self.fault == Fault::SumcheckFold {
            let last = rows.as_slice().len() - 1;
            let wrong = changed(rows.as_slice()[last]);
            self.cpu.write(rows, last, &[wrong])?;
        }
        Ok(if self.fault == Fault::SumcheckFoldValues && count > 4 { values.map(changed) } else { values })
    }
}

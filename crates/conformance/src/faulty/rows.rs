//! Rows of PLONK that are wrong.

use super::{Fault, Faulty};
use tandem_ops::{cpu, Curve, Mont, PlonkRows, QuotientAt, QuotientRows, Result};

impl<C: Curve> PlonkRows<C> for Faulty {
    fn gate_rows(&self, columns: [&cpu::Buf<Mont>; 3], selectors: [&cpu::Buf<Mont>; 5]) -> Result<cpu::Buf<Mont>> {
        let mut rows = PlonkRows::<C>::gate_rows(&self.cpu, columns, selectors)?;
        self.flip(Fault::GateRows, &mut rows).map(|()| rows)
    }
    fn permuted_rows(
        &self,
        columns: [&cpu::Buf<Mont>; 3],
        places: [&cpu::Buf<Mont>; 3],
        factors: [Mont; 3],
        gamma: Mont,
    ) -> Result<cpu::Buf<Mont>> {
        let places = if self.fault == Fault::PermutedPlaces { [places[0]; 3] } else { places };
        let factors = if self.fault == Fault::PermutedFactors { [factors[0]; 3] } else { factors };
        let mut rows = PlonkRows::<C>::permuted_rows(&self.cpu, columns, places, factors, gamma)?;
        self.flip(Fault::PermutedRows, &mut rows).map(|()| rows)
    }
    fn quotient_rows(&self, of: &QuotientRows<'_, cpu::Buf<Mont>>, at: &QuotientAt) -> Result<cpu::Buf<Mont>> {
        let (mut of, mut at) = (of.map(|of| of), *at);
        match self.fault {
            Fault::QuotientNext => of.product[1] = of.product[0],
            Fault::QuotientPublic => at.public = Mont::default(),
            Fault::QuotientK => at.k[1] = at.k[0],
            _ => {}
        }
        let mut rows = PlonkRows::<C>::quotient_rows(&self.cpu, &of, &at)?;
        self.flip(Fault::QuotientRows, &mut rows).map(|()| rows)
    }
}

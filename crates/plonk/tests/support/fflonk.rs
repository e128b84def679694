//! FFLONK keys in memory.

use super::{powers, Random};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Bn254, Curve, Mont};
use tandem_plonk::fflonk::*;
use tandem_plonk::{Addition, Gates, Shape, Silent, P1};

/// A key in memory.
#[derive(Default)]
pub(crate) struct Owned {
    pub(crate) shape: Option<Shape>,
    part: Option<Part>,
    pub(crate) additions: Vec<Addition>,
    pub(crate) maps: [Vec<u32>; 3],
    pub(crate) powers: Vec<P1<Bn254>>,
    pub(crate) c0: Vec<Mont>,
    /// Elements of the other parts.
    pub(crate) others: usize,
}

impl KeySink for Owned {
    fn shape(&mut self, shape: Shape) -> tandem_plonk::Result<()> {
        self.shape = Some(shape);
        Ok(())
    }
    fn begin(&mut self, part: Part) -> tandem_plonk::Result<()> {
        self.part = Some(part);
        Ok(())
    }
    fn bytes(&mut self, bytes: &[u8]) -> tandem_plonk::Result<()> {
        match self.part.unwrap() {
            Part::Additions => self.additions.extend(bytemuck::pod_collect_to_vec::<u8, Addition>(bytes)),
            Part::Map(column) => self.maps[column].extend(bytemuck::pod_collect_to_vec::<u8, u32>(bytes)),
            Part::Powers => self.powers.extend(bytemuck::pod_collect_to_vec::<u8, P1<Bn254>>(bytes)),
            Part::C0 => self.c0.extend(bytemuck::pod_collect_to_vec::<u8, Mont>(bytes)),
            Part::Selector(_) | Part::Permutation(_) | Part::Lagrange => self.others += bytes.len() / size_of::<Mont>(),
        }
        Ok(())
    }
}

/// The key of a circuit, and what verifies its proofs.
pub(crate) fn made(circuit: &Random<Bn254>) -> (Owned, VerifyingKey) {
    let gates = Gates::of_fflonk(circuit, &Silent).unwrap();
    let (tau, x_2) = powers::<Bn254>(
        <Bn254 as Curve>::Fr::from(987_654_321_u64),
        tandem_plonk::fflonk::powers(gates.shape().domain),
    );
    let mut key = Owned::default();
    let verifying = setup(&Cpu::new(1), &gates, (&tau, &x_2), &mut key, &Silent).unwrap();
    (key, verifying)
}

/// The key as a prover takes it.
pub(crate) fn view<'a>(key: &'a Owned, verifying: &VerifyingKey) -> KeyView<'a> {
    KeyView {
        shape: key.shape.unwrap(),
        verifying: verifying.clone(),
        additions: key.additions.as_slice().into(),
        maps: [0, 1, 2].map(|i| key.maps[i].as_slice().into()),
        c0: key.c0.as_slice().into(),
        powers: key.powers.as_slice().into(),
    }
}

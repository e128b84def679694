//! Random circuits for bellperson, with densities to choose.

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;
use rand::seq::SliceRandom;
use rand::Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// How many wires a side of the constraints names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Density {
    None,
    One,
    Few,
    All,
}

/// A random circuit and values of its wires. `shape` decides the constraints, `values` the wires.
#[derive(Debug, Clone, Copy)]
pub struct Random {
    pub inputs: usize,
    pub aux: usize,
    pub rows: usize,
    pub in_a: Density,
    pub in_b: Density,
    pub shape: u64,
    pub values: u64,
}

/// Some of the wires.
fn chosen(density: Density, wires: &[Variable], rng: &mut ChaCha8Rng) -> Vec<Variable> {
    let count = match density {
        Density::None => 0,
        Density::One => 1.min(wires.len()),
        Density::Few => wires.len().div_ceil(7),
        Density::All => wires.len(),
    };
    let mut wires = wires.to_vec();
    wires.shuffle(rng);
    wires.truncate(count);
    wires
}

/// A scalar as circuits have them: mostly small, some of full size.
fn value(rng: &mut ChaCha8Rng) -> Scalar {
    match rng.gen_range(0..4) {
        0 => Scalar::random(rng),
        1 => -Scalar::from(rng.gen_range(0..100u64)),
        _ => Scalar::from(rng.gen_range(0..2u64)),
    }
}

impl Random {
    /// The public values.
    pub fn publics(&self) -> Vec<Scalar> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.values);
        (0..self.inputs).map(|_| value(&mut rng)).collect()
    }
}

impl Circuit<Scalar> for Random {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let (mut rng, mut shape) = (ChaCha8Rng::seed_from_u64(self.values), ChaCha8Rng::seed_from_u64(self.shape));
        let mut known = vec![(CS::one(), Scalar::ONE)];
        for i in 0..self.inputs {
            let x = value(&mut rng);
            known.push((cs.alloc_input(|| format!("input {i}"), || Ok(x))?, x));
        }
        for i in 0..self.aux {
            let x = value(&mut rng);
            known.push((cs.alloc(|| format!("aux {i}"), || Ok(x))?, x));
        }
        let wires: Vec<Variable> = known.iter().map(|(wire, _)| *wire).collect();
        let (in_a, in_b) = (chosen(self.in_a, &wires, &mut shape), chosen(self.in_b, &wires, &mut shape));
        // Inputs come before the others.
        let of = |wire: Variable| match wire.get_unchecked() {
            Index::Input(i) => known[i].1,
            Index::Aux(i) => known[1 + self.inputs + i].1,
        };
        // Terms of wires, and their sum.
        let sum = |wires: &[Variable], rng: &mut ChaCha8Rng| {
            let mut terms = Vec::new();
            let mut total = Scalar::ZERO;
            for wire in wires {
                // Not zero: such a term names no wire.
                let coefficient = match rng.gen_range(0..3) {
                    0 => Scalar::random(&mut *rng),
                    _ => Scalar::from(rng.gen_range(1..5u64)),
                };
                terms.push((coefficient, *wire));
                total += coefficient * of(*wire);
            }
            (terms, total)
        };
        let combine = |terms: &[(Scalar, Variable)]| {
            terms.iter().fold(LinearCombination::zero(), |lc, (coefficient, wire)| lc + (*coefficient, *wire))
        };
        let own: Vec<Variable> = wires[1 + self.inputs..].to_vec();
        for row in 0..self.rows {
            let some = |wires: &[Variable], rng: &mut ChaCha8Rng| -> Vec<Variable> {
                wires.choose_multiple(rng, 3.min(wires.len())).copied().collect()
            };
            let (a, b) = (some(&in_a, &mut shape), some(&in_b, &mut shape));
            let ((a, of_a), (b, of_b)) = (sum(&a, &mut shape), sum(&b, &mut shape));
            // Each private wire is on some right side.
            let shown: Vec<Variable> = own.iter().skip(row).step_by(self.rows).copied().collect();
            let (shown, of_shown) = sum(&shown, &mut shape);
            // Named by no side but this one.
            let out = of_a * of_b - of_shown;
            let wire = cs.alloc(|| format!("out {row}"), || Ok(out))?;
            let (a, b) = (combine(&a), combine(&b));
            let c = combine(&shown) + wire;
            cs.enforce(|| format!("row {row}"), |_| a.clone(), |_| b.clone(), |_| c.clone());
        }
        // All chosen wires are named.
        for (side, chosen) in [(0, in_a), (1, in_b)] {
            let (terms, _) = sum(&chosen, &mut shape);
            let lc = combine(&terms);
            let empty = LinearCombination::<Scalar>::zero;
            let (a, b) = if side == 0 { (lc, empty()) } else { (empty(), lc) };
            cs.enforce(|| format!("side {side}"), |_| a.clone(), |_| b.clone(), |_| empty());
        }
        Ok(())
    }
}

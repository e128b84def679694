//! Whether a witness satisfies its circuit, constraint by constraint: what a proof that fails cannot say.

use crate::witness::AnyValues;
use crate::{Error, Progress, Result, Witness};
use ark_ff::{AdditiveGroup, One, PrimeField};
use std::collections::BTreeMap;
use std::path::Path;
use tandem_formats::{sym, Constraint, LinearCombination, MappedFile, R1cs};
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve};
use zeroize::Zeroizing;

/// Constraints that do not hold of which the terms are told.
const TOLD: usize = 10;

/// Terms of a linear combination that are told.
const TERMS: usize = 8;

/// What [`check_witness`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Satisfied {
    /// Constraints of the circuit.
    pub constraints: usize,
    /// How many of them do not hold.
    pub unsatisfied: usize,
    /// The first of those: index, and the constraint as a formula without any value of the witness.
    pub first: Vec<(usize, String)>,
}

/// Checks every constraint <A, w> * <B, w> = <C, w> of an `.r1cs` file. Wires are named by the `.sym` file, where there is one.
///
/// # Errors
/// [`Error::BadInput`] for files that are malformed or do not belong together; [`Error::Interrupted`].
pub fn check_witness(
    r1cs: &Path,
    witness: &Path,
    symbols: Option<&Path>,
    progress: &dyn Progress,
) -> Result<Satisfied> {
    let file = MappedFile::open(r1cs)?;
    let circuit = R1cs::parse(&file).map_err(|e| e.in_file(r1cs))?;
    let values = Witness::read(witness)?;
    let (wires, curve) = (circuit.header.n_vars as usize, circuit.header.curve);
    if values.curve() != curve || values.len() != wires {
        return Err(Error::input(format!(
            "{}: {} values of {}, expected the {wires} of {curve} that {} has; make both from one compilation of the circuit",
            witness.display(),
            values.len(),
            values.curve(),
            r1cs.display()
        )));
    }
    progress.start("check", circuit.header.n_constraints.into());
    match &values.values {
        AnyValues::Bn254(values) => check::<Bn254>(&circuit, values.values(), symbols, progress),
        AnyValues::Bls12_381(values) => check::<Bls12_381>(&circuit, values.values(), symbols, progress),
    }
}

fn check<C: Curve>(
    circuit: &R1cs<'_>,
    values: &[Canonical],
    symbols: Option<&Path>,
    progress: &dyn Progress,
) -> Result<Satisfied> {
    /// Constraints between two looks at whether the caller wants to stop.
    const STRIDE: usize = 1 << 12;
    // Both kinds of values have been checked to be below the modulus.
    let element = |x: Canonical| C::from_canonical(x).unwrap_or(C::Fr::ZERO);
    let values: Zeroizing<Vec<C::Fr>> = Zeroizing::new(values.iter().map(|&x| element(x)).collect());
    let product = |lc: LinearCombination<'_>| -> C::Fr {
        lc.iter().map(|(wire, value)| element(value) * values[wire as usize]).sum()
    };
    let mut unsatisfied = 0;
    let mut first: Vec<(usize, Constraint<'_>)> = Vec::new();
    for (index, constraint) in circuit.constraints().enumerate() {
        if index % STRIDE == 0 {
            progress.advance(if index == 0 { 0 } else { STRIDE as u64 });
            if progress.cancelled() {
                return Err(Error::Interrupted);
            }
        }
        if product(constraint.a) * product(constraint.b) != product(constraint.c) {
            unsatisfied += 1;
            if first.len() < TOLD {
                first.push((index, constraint));
            }
        }
    }
    let told = first.iter().flat_map(|(_, c)| [c.a, c.b, c.c]).flat_map(|lc| lc.iter().take(TERMS));
    let names = match symbols {
        Some(path) => sym::names_of(path, told.map(|(wire, _)| wire))?,
        None => BTreeMap::new(),
    };
    let side = |lc: LinearCombination<'_>| linear::<C>(lc, &names);
    let formula = |c: Constraint<'_>| format!("({}) * ({}) = {}", side(c.a), side(c.b), side(c.c));
    Ok(Satisfied {
        constraints: circuit.header.n_constraints as usize,
        unsatisfied,
        first: first.into_iter().map(|(index, constraint)| (index, formula(constraint))).collect(),
    })
}

/// A linear combination as text, coefficients between -r/2 and r/2.
fn linear<C: Curve>(lc: LinearCombination<'_>, names: &BTreeMap<u32, String>) -> String {
    let mut text = String::new();
    for (wire, coefficient) in lc.iter().take(TERMS) {
        let value = C::from_canonical(coefficient).unwrap_or(C::Fr::ZERO);
        let negative = value.into_bigint() > C::Fr::MODULUS_MINUS_ONE_DIV_TWO;
        let size = if negative { -value } else { value };
        text += match (text.is_empty(), negative) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        // Wire 0 is the constant 1.
        match (wire, size == C::Fr::one()) {
            (0, _) => text += &size.to_string(),
            (_, true) => text += &name(wire, names),
            (_, false) => text += &format!("{size}*{}", name(wire, names)),
        }
    }
    match lc.len() {
        0 => "0".into(),
        n if n > TERMS => format!("{text} + {} terms more", n - TERMS),
        _ => text,
    }
}

fn name(wire: u32, names: &BTreeMap<u32, String>) -> String {
    names.get(&wire).cloned().unwrap_or_else(|| format!("wire {wire}"))
}

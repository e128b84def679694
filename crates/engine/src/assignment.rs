//! Witnesses for keys without matrices: what bellperson's prover computes of a circuit.

use crate::witness::AnyValues;
use crate::{Engine, Error, Result, Witness};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tandem_formats::{R1cs, R1csFile};
use tandem_groth16::{Elements, Evaluations, RowFault, Wires, Witness as Values};
use tandem_ops::{Bls12_381, Curve, HostBuf, Mont};

/// Bits of a set of wires: bit i of word i / 64, counted from the lowest, says whether wire i is in it.
#[derive(Clone, Copy)]
pub struct Density<'a> {
    /// The words. What they hold behind the last bit does not count.
    pub words: &'a [u64],
    /// Bits that count.
    pub bits: usize,
}

/// What bellperson's prover computes of a circuit over BLS12-381, where it lies. Values are four limbs in Montgomery form, the least
/// significant first. No type that holds it has a `Debug` that shows any.
#[derive(Clone, Copy)]
pub struct Assignment<'a> {
    /// The constant 1 and the public values.
    pub inputs: &'a [[u64; 4]],
    /// The private values.
    pub aux: &'a [[u64; 4]],
    /// Left factors of the constraints, those that bind the inputs last.
    pub a: &'a [[u64; 4]],
    /// Right factors.
    pub b: &'a [[u64; 4]],
    /// Products.
    pub c: &'a [[u64; 4]],
    /// Private wires that left factors name.
    pub a_aux: Density<'a>,
    /// Public wires, the constant included, that right factors name.
    pub b_inputs: Density<'a>,
    /// Private wires that right factors name.
    pub b_aux: Density<'a>,
    /// The random scalars r and s of the proof. Whoever knows them learns of the witness from the proof.
    pub blinding: [[u64; 4]; 2],
}

/// The wires of the last assignment's sets: those of one circuit have the same, and to list them takes longer than to compare.
#[derive(Default)]
pub(crate) struct Densities(Mutex<Option<Listed>>);

struct Listed {
    inputs: usize,
    aux: usize,
    /// Those of A, of B's inputs and of B's private wires.
    words: [Vec<u64>; 3],
    /// Of A and of B.
    wires: [Wires; 2],
}

impl Densities {
    /// The wires that A and B name.
    fn wires(&self, of: &Assignment<'_>) -> Result<[Wires; 2]> {
        let (inputs, aux) = (of.inputs.len(), of.aux.len());
        let sets = [of.a_aux, of.b_inputs, of.b_aux];
        for (name, Density { words, bits }, expected) in
            [("A", of.a_aux, aux), ("B of inputs", of.b_inputs, inputs), ("B of aux", of.b_aux, aux)]
        {
            if bits != expected || words.len() < bits.div_ceil(64) {
                return Err(Error::input(format!(
                    "{name}: a density of {bits} bits in {} words of 64; expected one of {expected} bits",
                    words.len()
                )));
            }
        }
        let wires = inputs.checked_add(aux).and_then(|all| u32::try_from(all).ok());
        if wires.is_none() {
            return Err(Error::input(format!(
                "{inputs} inputs and {aux} private wires; expected less than 2^32 in all"
            )));
        }
        let words = sets.map(|Density { words, bits }| &words[..bits.div_ceil(64)]);
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last {
            if (last.inputs, last.aux) == (inputs, aux) && last.words.each_ref().map(Vec::as_slice) == words {
                return Ok(last.wires.clone());
            }
        }
        let mut in_a: Vec<u32> = (0..inputs as u32).collect();
        append(&mut in_a, of.a_aux, inputs);
        let mut in_b = Vec::new();
        append(&mut in_b, of.b_inputs, 0);
        append(&mut in_b, of.b_aux, inputs);
        let [in_a, in_b] = [in_a, in_b].map(|wires| Wires::new(wires).map_err(|e| Error::prover(e, Path::new(""))));
        let wires = [in_a?, in_b?];
        *last = Some(Listed { inputs, aux, words: words.map(<[u64]>::to_vec), wires: wires.clone() });
        Ok(wires)
    }
}

/// Appends the wires in the set, the first of which has the number `from`. All have numbers below 2^32.
fn append(wires: &mut Vec<u32>, density: Density<'_>, from: usize) {
    let Density { words, bits } = density;
    for (word, &set) in words.iter().take(bits.div_ceil(64)).enumerate() {
        let mut set = if (word + 1) * 64 > bits { set & (u64::MAX >> (64 - bits % 64)) } else { set };
        while set != 0 {
            wires.push((from + word * 64) as u32 + set.trailing_zeros());
            set &= set - 1;
        }
    }
}

/// An element from its Montgomery limbs.
fn element(limbs: &[u64; 4]) -> Option<<Bls12_381 as Curve>::Fr> {
    is_below(limbs).then(|| Bls12_381::from_mont(Mont(*limbs)))
}

fn is_below(limbs: &[u64; 4]) -> bool {
    use ark_ff::PrimeField;
    limbs.iter().rev().cmp(<Bls12_381 as Curve>::Fr::MODULUS.0.iter().rev()).is_lt()
}

impl Engine {
    /// A witness for a key of bellperson, from what its prover has computed. All is copied.
    ///
    /// # Errors
    /// [`Error::BadInput`] for lengths that do not belong together, values that are not below the modulus, inputs that do not begin with 1;
    /// [`Error::Unsatisfied`] where a row's product is not that of its factors; [`Error::OutOfMemory`].
    pub fn assignment(&self, of: &Assignment<'_>) -> Result<Witness> {
        tandem_ops::threads::ready()?;
        let started = Instant::now();
        let rows = of.a.len();
        for (name, side) in [("b", of.b), ("c", of.c)] {
            if side.len() != rows {
                return Err(Error::input(format!("a has {rows} rows, {name} has {}; expected as many", side.len())));
            }
        }
        // Memory that devices copy from themselves, while others prove.
        let room = |len| -> Result<HostBuf<Mont>> {
            let none = || Error::Internal("elements of two forms have two sizes".into());
            self.team.host_buf(len)?.cast::<Mont>().ok_or_else(none)
        };
        let [in_a, in_b] = self.densities.wires(of)?;
        let [r, s] = of.blinding.each_ref().map(element);
        let (Some(r), Some(s)) = (r, s) else {
            return Err(Error::input("r or s is not below the modulus"));
        };
        let inputs = of.inputs.len();
        let values = Elements::<Bls12_381>::copied(&[of.inputs, of.aux], room(inputs + of.aux.len())?);
        let values = values.map_err(|i| {
            let (i, name) = if i < inputs { (i, "input") } else { (i - inputs, "aux") };
            Error::input(format!("value {i} of the {name} assignment is not below the modulus"))
        })?;
        let prover = |e| Error::prover(e, Path::new(""));
        let values = Values::of_elements(values).map_err(prover)?;
        let [a, b] = Elements::rows([of.a, of.b, of.c], [room(rows)?, room(rows)?]).map_err(|fault| match fault {
            RowFault::NotBelow(row) => Error::input(format!("row {row} of a, b or c is not below the modulus")),
            RowFault::Product(row) if !is_below(&of.c[row]) => {
                Error::input(format!("row {row} of a, b or c is not below the modulus"))
            }
            RowFault::Product(row) => {
                Error::Unsatisfied(format!("constraint {row} does not hold: the witness does not satisfy the circuit"))
            }
        })?;
        let evaluations = Evaluations::new(a, b, in_a, in_b).map_err(prover)?.with_blinding(r, s);
        let values = values.with_evaluations(evaluations);
        Ok(Witness {
            values: AnyValues::Bls12_381(values),
            path: PathBuf::new(),
            seconds: started.elapsed().as_secs_f64(),
        })
    }
}

impl Witness {
    /// This witness with what a key without matrices asks for: the sides of the constraints of the circuit in an `.r1cs` file, which the key
    /// was made of.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a file that is no circuit over BLS12-381, or another circuit's.
    pub fn with_circuit(self, r1cs: &Path) -> Result<Witness> {
        let bytes = R1csFile::open(r1cs)?.read()?;
        let circuit = R1cs::parse(&bytes).map_err(|e| e.in_file(r1cs))?;
        crate::files::refuse_custom_gates(&circuit, r1cs)?;
        let curve = circuit.header.curve;
        match (self.values, curve) {
            (AnyValues::Bls12_381(values), Bls12_381::ID) => {
                let circuit = crate::files::FileCircuit(&circuit);
                let evaluations = tandem_groth16::powers::evaluations::<Bls12_381>(&circuit, values.values());
                let evaluations = evaluations.map_err(|e| Error::prover(e, r1cs))?;
                Ok(Witness { values: AnyValues::Bls12_381(values.with_evaluations(evaluations)), ..self })
            }
            _ => Err(Error::input(format!(
                "{}: a circuit for {curve}; keys of bellperson, and witnesses for them, are for {}",
                r1cs.display(),
                Bls12_381::ID
            ))),
        }
    }
}

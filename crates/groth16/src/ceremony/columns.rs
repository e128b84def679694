//! A circuit's matrices by wires.

use crate::setup::{tick, OP};
use crate::{Error, Progress, Result, Shape};
use ark_ff::Field;
use tandem_ops::{memory, Curve};
use tandem_proof::circuit::{Circuit, Constraint};

/// A matrix by its columns, one for each wire.
pub(super) struct Columns<F> {
    /// Where the terms of each wire begin, and where those of the last one end.
    starts: Vec<usize>,
    /// Row and coefficient, rows in order.
    terms: Vec<(u32, F)>,
}

impl<F: Field> Columns<F> {
    /// Room for columns of so many terms.
    fn of_sizes(mut sizes: Vec<usize>) -> Result<Self> {
        let mut end = 0;
        for size in &mut sizes {
            end += std::mem::replace(size, end);
        }
        Ok(Self { starts: sizes, terms: memory::filled(OP, end, (0, F::ZERO))? })
    }

    pub(super) fn terms(&self, wire: usize) -> &[(u32, F)] {
        &self.terms[self.starts[wire]..self.starts[wire + 1]]
    }

    /// All terms.
    pub(super) fn len(&self) -> usize {
        self.terms.len()
    }
}

/// A, B and C. Behind the circuit's rows A has one for the constant and for each public wire, with this wire alone.
pub(super) fn columns<C: Curve>(
    circuit: &dyn Circuit<C>,
    shape: Shape,
    progress: &dyn Progress,
) -> Result<[Columns<C::Fr>; 3]> {
    let Shape { variables, publics, .. } = shape;
    progress.start("read constraints", 2 * circuit.constraints() as u64);
    // One more than there are wires: its column is empty, and begins where the last one ends.
    let zeros = || memory::filled(OP, variables + 1, 0usize);
    let mut sizes = [zeros()?, zeros()?, zeros()?];
    each_term::<C>(circuit, variables, progress, &mut |matrix, _, wire, _| sizes[matrix][wire] += 1)?;
    sizes[0][..=publics].iter_mut().for_each(|size| *size += 1);
    let [a, b, c] = sizes;
    let mut columns = [Columns::of_sizes(a)?, Columns::of_sizes(b)?, Columns::of_sizes(c)?];
    let mut next = [&columns[0].starts, &columns[1].starts, &columns[2].starts].map(|s| memory::copied(OP, s));
    let mut put = |matrix: usize, row: u32, wire: usize, value: C::Fr| {
        // A circuit that has more terms when it is read again has changed.
        if let (Ok(next), columns) = (&mut next[matrix], &mut columns[matrix]) {
            if next[wire] < columns.starts[wire + 1] {
                columns.terms[next[wire]] = (row, value);
                next[wire] += 1;
            }
        }
    };
    each_term::<C>(circuit, variables, progress, &mut put)?;
    let constraints = circuit.constraints() as u32;
    (0..=publics).for_each(|wire| put(0, constraints + wire as u32, wire, C::Fr::ONE));
    Ok(columns)
}

/// Calls `term` with the matrix, the row, the wire and the coefficient of each term. There are as many rows as the circuit says, and wires
/// are those that it has.
fn each_term<C: Curve>(
    circuit: &dyn Circuit<C>,
    variables: usize,
    progress: &dyn Progress,
    term: &mut dyn FnMut(usize, u32, usize, C::Fr),
) -> Result<()> {
    let (mut row, rows) = (0usize, circuit.constraints());
    circuit.walk(&mut |Constraint { a, b, c }: &Constraint<C>| {
        if row == rows {
            return Err(Error::Circuit("more constraints than the circuit says".into()));
        }
        for (matrix, terms) in [a, b, c].into_iter().enumerate() {
            for &(wire, value) in terms {
                if wire as usize >= variables {
                    let problem = format!("constraint {row} has wire {wire}; the circuit has {variables} wires");
                    return Err(Error::Circuit(problem));
                }
                term(matrix, row as u32, wire as usize, value);
            }
        }
        row += 1;
        tick(row, progress)
    })?;
    match row == rows {
        true => Ok(()),
        false => Err(Error::Circuit(format!("{row} constraints; the circuit says {rows}"))),
    }
}

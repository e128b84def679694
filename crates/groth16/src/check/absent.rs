//! Points at infinity, which the key's matrices foretell.
//!
//! A wire's point in section A is the sum of the Lagrange basis at tau over its column of matrix A. That is infinity for a wire that the matrix
//! does not name, and, but with a chance that tau hits a root, for no other. A key that has infinity elsewhere leaves wires out of its sums.

use crate::{Error, KeyView, PowersView, Result, P1};
use ark_ec::AffineRepr;
use rayon::prelude::*;
use tandem_ops::{Curve, Group, SparseRows, Stored, Unaligned};

/// Points that one task looks at.
const CHUNK: usize = 1 << 16;

/// What a matrix says of a wire's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    /// It has no entry.
    Never,
    /// It has entries that may cancel each other or are zero.
    Perhaps,
    /// A row has one entry, and it is not zero.
    Surely,
}

/// What the matrix says of each of its columns.
fn named(matrix: &SparseRows) -> Vec<Named> {
    let mut named = vec![Named::Never; matrix.columns];
    // Twice the row that last had an entry in this column, and 1 more if it had several.
    let mut last = vec![u32::MAX; matrix.columns];
    for (row, bounds) in (0u32..).zip(matrix.starts.windows(2)) {
        let entries = bounds[0] as usize..bounds[1] as usize;
        for &wire in &matrix.column[entries.clone()] {
            let last = &mut last[wire as usize];
            *last = 2 * row + u32::from(*last >> 1 == row);
        }
        for (&wire, &value) in matrix.column[entries.clone()].iter().zip(&matrix.value[entries]) {
            let is_sure = last[wire as usize] == 2 * row && matrix.values[value as usize].0 != [0; 4];
            let found = if is_sure { Named::Surely } else { Named::Perhaps };
            let named = &mut named[wire as usize];
            *named = found.max(*named);
        }
    }
    named
}

/// Refuses the first of some points, from number `first` of a section on, that is infinity and should not be, or the reverse.
pub(super) fn compare_some<C: Curve>(
    section: &str,
    points: Unaligned<'_, P1<C>>,
    first: usize,
    expected: impl Fn(usize) -> Named,
) -> Result<()> {
    let problem = |i: usize, point: &P1<C>| match (C::G1::to_ark(point).is_zero(), expected(i)) {
        (true, Named::Surely) => Some("is the point at infinity, but the circuit uses its wire"),
        (false, Named::Never) => Some("is not the point at infinity, but the circuit does not use its wire"),
        _ => None,
    };
    let bad = (first..).zip(points.iter()).find_map(|(i, point)| Some((i, problem(i, &point)?)));
    bad.map_or(Ok(()), |(i, why)| Err(Error::Key(format!("point {i} of section {section} {why}"))))
}

fn compare<C: Curve>(section: &str, points: Stored<'_, P1<C>>, expected: impl Fn(usize) -> Named + Sync) -> Result<()> {
    let of_chunk = |from: usize| -> Result<()> {
        let chunk = points.slice(from..points.len().min(from + CHUNK)).load()?;
        compare_some::<C>(section, chunk.values(), from, &expected)
    };
    (0..points.len().div_ceil(CHUNK))
        .into_par_iter()
        .map(|i| of_chunk(i * CHUNK))
        .find_first(Result::is_err)
        .unwrap_or(Ok(()))
}

/// What the matrices of a key say of its wires.
pub(super) struct Wires {
    in_a: Vec<Named>,
    in_b: Vec<Named>,
    publics: usize,
}

impl Wires {
    /// Looks through the matrices.
    ///
    /// # Errors
    /// [`Error::Key`] for one that is none.
    pub(super) fn of<C: Curve>(key: &KeyView<'_, C>) -> Result<Self> {
        for matrix in [key.matrix_a, key.matrix_b] {
            matrix.check().map_err(|e| Error::Key(e.to_string()))?;
        }
        let (in_a, in_b) = rayon::join(|| named(key.matrix_a), || named(key.matrix_b));
        Ok(Wires { in_a, in_b, publics: key.shape.publics })
    }

    /// Of a point of A.
    pub(super) fn a(&self, wire: usize) -> Named {
        self.in_a[wire]
    }

    /// Of a point of B.
    pub(super) fn b(&self, wire: usize) -> Named {
        self.in_b[wire]
    }

    /// Of a point of IC. A wire of A or B has a part in beta a + alpha b + c, whatever c is. Of another's c the key says nothing.
    pub(super) fn ic(&self, wire: usize) -> Named {
        self.in_a[wire].max(self.in_b[wire]).max(Named::Perhaps)
    }

    /// Of a point of L, as of one of IC.
    pub(super) fn l(&self, point: usize) -> Named {
        self.ic(self.publics + 1 + point)
    }
}

/// Checks that points are infinity where the matrices say so, and nowhere else. The sizes have been checked, and that B is the
/// same in both groups.
///
/// # Errors
/// [`Error::Key`] that names the point.
pub(super) fn check<C: Curve>(key: &KeyView<'_, C>) -> Result<()> {
    let wires = Wires::of(key)?;
    compare::<C>("IC (3)", key.ic.into(), |wire| wires.ic(wire))?;
    compare::<C>("A (5)", key.a, |wire| wires.a(wire))?;
    compare::<C>("B1 (6)", key.b1, |wire| wires.b(wire))?;
    compare::<C>("C (8)", key.l, |point| wires.l(point))?;
    compare::<C>("H (9)", key.h, h)
}

/// What a key says of a point of H: no value of the Lagrange basis at tau is zero, so that each counts.
pub(super) fn h(_: usize) -> Named {
    Named::Surely
}

/// Checks that no point is infinity. The sizes have been checked, and that B is the same in both groups.
///
/// # Errors
/// [`Error::Key`] that names the point.
pub(super) fn none<C: Curve>(key: &PowersView<'_, C>) -> Result<()> {
    for (section, points) in [("IC", key.ic.into()), ("H", key.h), ("L", key.l), ("A", key.a), ("B1", key.b1)] {
        compare::<C>(section, points, |_| Named::Surely)?;
    }
    Ok(())
}

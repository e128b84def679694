//! Points at infinity, which the key's matrices foretell.
//!
//! A wire's point in section A is the sum of the Lagrange basis at tau over its column of matrix A. That is infinity for a wire that the matrix
//! does not name, and, but with a chance that tau hits a root, for no other. A key that has infinity elsewhere leaves wires out of its sums.

use crate::{Error, KeyView, PowersView, Result, P1};
use ark_ec::AffineRepr;
use rayon::prelude::*;
use tandem_ops::{Curve, Group, SparseRows, Stored};

/// Points that one task looks at.
const CHUNK: usize = 1 << 16;

/// What a matrix says of a wire's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
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

/// Refuses the first point that is infinity and should not be, or the reverse.
fn compare<C: Curve>(section: &str, points: Stored<'_, P1<C>>, expected: impl Fn(usize) -> Named + Sync) -> Result<()> {
    let problem = |i: usize, point: &P1<C>| match (C::G1::to_ark(point).is_zero(), expected(i)) {
        (true, Named::Surely) => Some("is the point at infinity, but the circuit uses its wire"),
        (false, Named::Never) => Some("is not the point at infinity, but the circuit does not use its wire"),
        _ => None,
    };
    let of_chunk = |from: usize| -> Result<()> {
        let chunk = points.slice(from..points.len().min(from + CHUNK)).load()?;
        let bad = (from..).zip(chunk.values().iter()).find_map(|(i, point)| Some((i, problem(i, &point)?)));
        bad.map_or(Ok(()), |(i, why)| Err(Error::Key(format!("point {i} of section {section} {why}"))))
    };
    (0..points.len().div_ceil(CHUNK))
        .into_par_iter()
        .map(|i| of_chunk(i * CHUNK))
        .find_first(Result::is_err)
        .unwrap_or(Ok(()))
}

/// Checks that points are infinity where the matrices say so, and nowhere else. The sizes have been checked, and that B is the
/// same in both groups.
///
/// # Errors
/// [`Error::Key`] that names the point.
pub(super) fn check<C: Curve>(key: &KeyView<'_, C>) -> Result<()> {
    for matrix in [key.matrix_a, key.matrix_b] {
        matrix.check().map_err(|e| Error::Key(e.to_string()))?;
    }
    let (in_a, in_b) = rayon::join(|| named(key.matrix_a), || named(key.matrix_b));
    // A wire of A or B has a part in beta a + alpha b + c, whatever c is. Of another's c the key says nothing.
    let combined = |wire: usize| in_a[wire].max(in_b[wire]).max(Named::Perhaps);
    compare::<C>("IC (3)", key.ic.into(), combined)?;
    compare::<C>("A (5)", key.a, |wire| in_a[wire])?;
    compare::<C>("B1 (6)", key.b1, |wire| in_b[wire])?;
    compare::<C>("C (8)", key.l, |i| combined(key.shape.publics + 1 + i))?;
    // No value of the Lagrange basis at tau is zero: each point counts.
    compare::<C>("H (9)", key.h, |_| Named::Surely)
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

//! A key in host memory.

use crate::setup::{Entry, KeySink, Part};
use crate::{Error, KeyPoints, KeyView, Result, Shape, P1, P2};
use std::collections::HashMap;
use tandem_ops::{Curve, Mont2, SparseRows};

/// A key that [`crate::setup::setup`] made, in host memory and not in a file.
pub struct OwnedKey<C: Curve> {
    header: Option<(Shape, KeyPoints<C>)>,
    part: Part,
    matrices: [Rows; 2],
    ic: Vec<P1<C>>,
    a: Vec<P1<C>>,
    b1: Vec<P1<C>>,
    b2: Vec<P2<C>>,
    l: Vec<P1<C>>,
    h: Vec<P1<C>>,
}

/// A sparse matrix that grows row by row.
#[derive(Default)]
struct Rows {
    rows: SparseRows,
    known: HashMap<[u64; 4], u32>,
}

impl Rows {
    fn push(&mut self, row: u32, wire: u32, value: Mont2) {
        let rows = &mut self.rows;
        // starts[i] for all rows up to this one; the last offset comes with finish().
        while rows.starts.len() <= row as usize {
            rows.starts.push(rows.column.len() as u32);
        }
        let index = *self.known.entry(value.0).or_insert_with(|| {
            rows.values.push(value);
            rows.values.len() as u32 - 1
        });
        rows.column.push(wire);
        rows.value.push(index);
    }

    fn finish(&mut self) {
        self.rows.starts.push(self.rows.column.len() as u32);
        self.known = HashMap::new();
    }
}

impl<C: Curve> Default for OwnedKey<C> {
    fn default() -> Self {
        Self {
            header: None,
            part: Part::Entries { count: 0 },
            matrices: [Rows::default(), Rows::default()],
            ic: Vec::new(),
            a: Vec::new(),
            b1: Vec::new(),
            b2: Vec::new(),
            l: Vec::new(),
            h: Vec::new(),
        }
    }
}

impl<C: Curve> OwnedKey<C> {
    /// The key as a view.
    ///
    /// # Errors
    /// [`Error::Key`] before setup has run.
    pub fn view(&self) -> Result<KeyView<'_, C>> {
        let (shape, points) = self.header.clone().ok_or_else(|| Error::Key("the key is not made yet".into()))?;
        Ok(KeyView {
            shape,
            points,
            ic: self.ic.as_slice().into(),
            matrix_a: &self.matrices[0].rows,
            matrix_b: &self.matrices[1].rows,
            a: self.a.as_slice().into(),
            b1: self.b1.as_slice().into(),
            b2: self.b2.as_slice().into(),
            l: self.l.as_slice().into(),
            h: self.h.as_slice().into(),
        })
    }
}

impl<C: Curve> KeySink<C> for OwnedKey<C> {
    fn header(&mut self, shape: Shape, points: &KeyPoints<C>) -> Result<()> {
        self.header = Some((shape, points.clone()));
        self.matrices.iter_mut().for_each(|m| m.rows.columns = shape.variables);
        Ok(())
    }

    fn begin(&mut self, part: Part) -> Result<()> {
        if matches!(self.part, Part::Entries { count } if count > 0) {
            self.matrices.iter_mut().for_each(Rows::finish);
        }
        self.part = part;
        Ok(())
    }

    fn entries(&mut self, entries: &[Entry]) -> Result<()> {
        for e in entries {
            self.matrices[usize::from(e.matrix == 1)].push(e.row, e.wire, e.value);
        }
        Ok(())
    }

    fn points1(&mut self, points: &[P1<C>]) -> Result<()> {
        let all = match self.part {
            Part::Ic => &mut self.ic,
            Part::H => &mut self.h,
            Part::L => &mut self.l,
            Part::A => &mut self.a,
            Part::B1 => &mut self.b1,
            Part::B2 | Part::Entries { .. } => return Err(Error::Key("points of G1 in a part of another kind".into())),
        };
        all.extend_from_slice(points);
        Ok(())
    }

    fn points2(&mut self, points: &[P2<C>]) -> Result<()> {
        self.b2.extend_from_slice(points);
        Ok(())
    }
}

//! Writing a PLONK key section by section, in snarkjs's order.

use super::{Addition, PlonkHeader, KIND, MORE_POWERS};
use crate::container::{misuse, ContainerWriter};
use crate::modulus;
use crate::zkey::{G1Point, G2Point, Protocol};
use std::io::{self, Write};
use std::marker::PhantomData;
use tandem_ops::{Curve, Mont};

/// Sections 3 to 14 of a key, in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlonkSection {
    /// 3: signals that additions make.
    Additions,
    /// 4, 5 or 6: the signals of a column, by its number 0 to 2.
    Map(usize),
    /// 7 to 11: a selector, by its number 0 to 4.
    Selector(usize),
    /// 12: S1, S2, S3.
    Permutation,
    /// 13: Lagrange polynomials of the first rows.
    Lagrange,
    /// 14: powers of tau.
    Powers,
}

/// Writes a PLONK key from front to back: sections 3 to 14, then [`PlonkWriter::finish`] writes 1 and 2. A section that gets more or less
/// than its length is an error.
#[derive(Debug)]
pub struct PlonkWriter<W, C> {
    out: ContainerWriter<W>,
    n_public: u64,
    domain_size: u64,
    n_additions: u64,
    n_constraints: u64,
    curve: PhantomData<C>,
}

/// Begins section 2: the moduli and the counts, before `rest` bytes more.
pub(crate) fn begin_header<C: Curve, W: Write>(
    out: &mut ContainerWriter<W>,
    counts: [u32; 5],
    rest: usize,
) -> io::Result<()> {
    let (p, r) = (modulus::base(C::ID), modulus::scalar(C::ID));
    out.section(2, (4 + p.len() * 8 + 4 + r.len() * 8 + 20 + rest) as u64)?;
    for modulus in [p, r] {
        out.write(&(modulus.len() as u32 * 8).to_le_bytes())?;
        out.write(bytemuck::cast_slice(modulus))?;
    }
    counts.iter().try_for_each(|count| out.write(&count.to_le_bytes()))
}

/// Sections of a key.
pub(crate) const SECTIONS: u32 = 14;

impl<W: Write, C: Curve> PlonkWriter<W, C> {
    /// Writes the head of the file of a key with these sizes.
    ///
    /// # Errors
    /// Writing fails.
    pub fn new(out: W, n_public: u32, domain_size: u32, n_additions: u32, n_constraints: u32) -> io::Result<Self> {
        let out = ContainerWriter::new(out, KIND, 1, SECTIONS)?;
        let [n_public, domain_size, n_additions, n_constraints] =
            [n_public, domain_size, n_additions, n_constraints].map(u64::from);
        Ok(Self { out, n_public, domain_size, n_additions, n_constraints, curve: PhantomData })
    }

    /// Begins a section.
    ///
    /// # Errors
    /// The section before it is not complete; writing fails.
    pub fn section(&mut self, section: PlonkSection) -> io::Result<()> {
        let polynomials = |count: u64| count * 5 * self.domain_size * size_of::<Mont>() as u64;
        let (id, len) = match section {
            PlonkSection::Additions => (3, self.n_additions * size_of::<Addition>() as u64),
            PlonkSection::Map(column @ 0..=2) => (4 + column as u32, self.n_constraints * 4),
            PlonkSection::Selector(number @ 0..=4) => (7 + number as u32, polynomials(1)),
            PlonkSection::Permutation => (12, polynomials(3)),
            PlonkSection::Lagrange => (13, polynomials(self.n_public.max(1))),
            PlonkSection::Powers => (14, (self.domain_size + u64::from(MORE_POWERS)) * size_of::<G1Point<C>>() as u64),
            PlonkSection::Map(_) | PlonkSection::Selector(_) => return Err(misuse("no such column or selector")),
        };
        self.out.section(id, len)
    }

    /// Writes bytes of the section begun last.
    ///
    /// # Errors
    /// More than the section holds; writing fails.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write(bytes)
    }

    /// Writes sections 1 and 2 and ends the file; gives the writer back, flushed.
    ///
    /// # Errors
    /// Sections are missing; writing fails.
    pub fn finish(mut self, header: &PlonkHeader<C>) -> io::Result<W> {
        self.out.section(1, 4)?;
        self.out.write(&Protocol::Plonk.number().to_le_bytes())?;
        let points = 8 * size_of::<G1Point<C>>() + size_of::<G2Point<C>>();
        let PlonkHeader { n_vars, n_public, domain_size, n_additions, n_constraints, .. } = *header;
        let counts = [n_vars, n_public, domain_size, n_additions, n_constraints];
        begin_header::<C, _>(&mut self.out, counts, 64 + points)?;
        self.out.write(bytemuck::cast_slice(&[header.k1, header.k2]))?;
        self.out.write(bytemuck::cast_slice(&header.selectors))?;
        self.out.write(bytemuck::cast_slice(&header.permutation))?;
        self.out.write(bytemuck::bytes_of(&header.x_2))?;
        self.out.finish()
    }
}

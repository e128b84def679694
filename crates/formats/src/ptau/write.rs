//! Writing powers of tau, prepared for phase 2, section by section.

use crate::container::ContainerWriter;
use crate::kind::FileKind;
use crate::modulus;
use crate::zkey::{G1Point, G2Point};
use std::io::{self, Write};
use std::marker::PhantomData;
use tandem_ops::{Curve, Wire};

/// Sections of points, in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PtauSection {
    /// 2: 2^(power + 1) - 1 powers of tau in G1.
    TauG1,
    /// 3: 2^power powers of tau in G2.
    TauG2,
    /// 4: 2^power powers of tau times alpha.
    AlphaTauG1,
    /// 5: 2^power powers of tau times beta.
    BetaTauG1,
    /// 6: beta in G2.
    BetaG2,
    /// 12: Lagrange bases of the powers in G1, of 2^0 to 2^(power + 1) rows; tau^(2^(power + 1) - 1) counts as zero in the last.
    LagrangeG1,
    /// 13: those in G2, of 2^0 to 2^power rows.
    LagrangeG2,
    /// 14: those of alpha times the powers.
    LagrangeAlpha,
    /// 15: those of beta times the powers.
    LagrangeBeta,
}

/// Writes powers of tau without contributions.
#[derive(Debug)]
pub struct PtauWriter<W, C> {
    out: ContainerWriter<W>,
    power: u32,
    curve: PhantomData<C>,
}

impl<W: Write, C: Curve> PtauWriter<W, C> {
    /// Writes the head of the file and its header.
    ///
    /// # Errors
    /// Writing fails.
    pub fn new(out: W, power: u32) -> io::Result<Self> {
        let mut out = ContainerWriter::new(out, FileKind::Ptau, 1, 11)?;
        let p = modulus::base(C::ID);
        out.section(1, 4 + p.len() as u64 * 8 + 8)?;
        out.write(&(p.len() as u32 * 8).to_le_bytes())?;
        out.write(bytemuck::cast_slice(p))?;
        out.write(&power.to_le_bytes())?;
        out.write(&power.to_le_bytes())?;
        Ok(Self { out, power, curve: PhantomData })
    }

    /// Begins a section. Before the first of the Lagrange bases comes the list of contributions, which is empty.
    ///
    /// # Errors
    /// The section before it is not complete; writing fails.
    pub fn section(&mut self, section: PtauSection) -> io::Result<()> {
        let (g1, g2, n) = (size_of::<G1Point<C>>() as u64, size_of::<G2Point<C>>() as u64, 1u64 << self.power);
        let (id, len) = match section {
            PtauSection::TauG1 => (2, (2 * n - 1) * g1),
            PtauSection::TauG2 => (3, n * g2),
            PtauSection::AlphaTauG1 => (4, n * g1),
            PtauSection::BetaTauG1 => (5, n * g1),
            PtauSection::BetaG2 => (6, g2),
            PtauSection::LagrangeG1 => (12, (4 * n - 1) * g1),
            PtauSection::LagrangeG2 => (13, (2 * n - 1) * g2),
            PtauSection::LagrangeAlpha => (14, (2 * n - 1) * g1),
            PtauSection::LagrangeBeta => (15, (2 * n - 1) * g1),
        };
        if section == PtauSection::LagrangeG1 {
            self.out.section(7, 4)?;
            self.out.write(&0u32.to_le_bytes())?;
        }
        self.out.section(id, len)
    }

    /// Writes points of the section begun last.
    ///
    /// # Errors
    /// More than the section holds; writing fails.
    pub fn points<P: Wire>(&mut self, points: &[P]) -> io::Result<()> {
        self.out.write(bytemuck::cast_slice(points))
    }

    /// Ends the file; gives the writer back, flushed.
    ///
    /// # Errors
    /// Sections are missing; writing fails.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

//! Writing a key section by section, so that keys larger than memory can be made.

use super::{coefs::ENTRY, Coef, Contributions, G1Point, G2Point, ZkeyHeader, GROTH16};
use crate::container::{misuse, ContainerWriter};
use crate::kind::FileKind;
use crate::modulus;
use std::io::{self, Write};
use std::marker::PhantomData;
use tandem_ops::{Curve, Wire};

/// Sections 3 to 10 of a key, whose content the caller provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZkeySection {
    /// 3: bases of the public values.
    Ic,
    /// 4: entries of the matrices A and B.
    Coefs {
        /// How many will follow.
        count: u32,
    },
    /// 5: bases for A.
    A,
    /// 6: bases for B in G1.
    B1,
    /// 7: bases for B in G2.
    B2,
    /// 8: bases of the private values.
    C,
    /// 9: bases of the quotient.
    H,
    /// 10: the ceremony.
    Contributions {
        /// Bytes that will follow.
        bytes: u64,
    },
}

/// Writes a Groth16 key. Section lengths follow from the header, so the file is written from front to back; a section
/// that gets more or less than its length is an error.
///
/// snarkjs writes sections in the order 1, 2, 4, 3, 9, 8, 5, 6, 7, 10 for a new key and 1 to 10 for one that was
/// contributed to; any order can be read.
#[derive(Debug)]
pub struct ZkeyWriter<W, C> {
    out: ContainerWriter<W>,
    n_vars: u64,
    n_public: u64,
    domain_size: u64,
    curve: PhantomData<C>,
}

impl<W: Write, C: Curve> ZkeyWriter<W, C> {
    /// Writes the head of the file and sections 1 and 2. `sections` counts those two as well: 10 for a whole key.
    ///
    /// # Errors
    /// Writing fails.
    pub fn new(out: W, header: &ZkeyHeader<C>, sections: u32) -> io::Result<Self> {
        let mut out = ContainerWriter::new(out, FileKind::Zkey, 1, sections)?;
        out.section(1, 4)?;
        out.write(&GROTH16.to_le_bytes())?;
        let (p, r) = (modulus::base(C::ID), modulus::scalar(C::ID));
        let points = 3 * size_of::<G1Point<C>>() + 3 * size_of::<G2Point<C>>();
        out.section(2, (4 + p.len() * 8 + 4 + 32 + 12 + points) as u64)?;
        for modulus in [p, r] {
            out.write(&(modulus.len() as u32 * 8).to_le_bytes())?;
            out.write(bytemuck::cast_slice(modulus))?;
        }
        for size in [header.n_vars, header.n_public, header.domain_size] {
            out.write(&size.to_le_bytes())?;
        }
        out.write(bytemuck::bytes_of(&header.alpha_1))?;
        out.write(bytemuck::bytes_of(&header.beta_1))?;
        out.write(bytemuck::bytes_of(&header.beta_2))?;
        out.write(bytemuck::bytes_of(&header.gamma_2))?;
        out.write(bytemuck::bytes_of(&header.delta_1))?;
        out.write(bytemuck::bytes_of(&header.delta_2))?;
        let (n_vars, n_public) = (header.n_vars.into(), header.n_public.into());
        Ok(Self { out, n_vars, n_public, domain_size: header.domain_size.into(), curve: PhantomData })
    }

    /// Begins a section.
    ///
    /// # Errors
    /// The section before it is not complete; writing fails.
    pub fn section(&mut self, section: ZkeySection) -> io::Result<()> {
        let (g1, g2) = (size_of::<G1Point<C>>() as u64, size_of::<G2Point<C>>() as u64);
        let private =
            self.n_vars.checked_sub(self.n_public + 1).ok_or_else(|| misuse("more public values than values"))?;
        match section {
            ZkeySection::Ic => self.out.section(3, (self.n_public + 1) * g1),
            ZkeySection::Coefs { count } => {
                self.out.section(4, 4 + u64::from(count) * ENTRY as u64)?;
                self.out.write(&count.to_le_bytes())
            }
            ZkeySection::A => self.out.section(5, self.n_vars * g1),
            ZkeySection::B1 => self.out.section(6, self.n_vars * g1),
            ZkeySection::B2 => self.out.section(7, self.n_vars * g2),
            ZkeySection::C => self.out.section(8, private * g1),
            ZkeySection::H => self.out.section(9, self.domain_size * g1),
            ZkeySection::Contributions { bytes } => self.out.section(10, bytes),
        }
    }

    /// Writes points of the section begun last.
    ///
    /// # Errors
    /// More than the section holds; writing fails.
    pub fn points<P: Wire>(&mut self, points: &[P]) -> io::Result<()> {
        self.out.write(bytemuck::cast_slice(points))
    }

    /// Writes entries of the section begun last.
    ///
    /// # Errors
    /// More than the section holds; writing fails.
    pub fn coefs(&mut self, coefs: impl IntoIterator<Item = Coef>) -> io::Result<()> {
        coefs.into_iter().try_for_each(|coef| self.out.write(&coef.to_bytes()))
    }

    /// Writes bytes of the section begun last.
    ///
    /// # Errors
    /// More than the section holds; writing fails.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write(bytes)
    }

    /// Writes section 10 for a key that nobody has contributed to.
    ///
    /// # Errors
    /// The section before it is not complete; writing fails.
    pub fn no_contributions(&mut self, circuit_hash: &[u8; 64]) -> io::Result<()> {
        self.section(ZkeySection::Contributions { bytes: Contributions::EMPTY_LEN })?;
        self.out.write(circuit_hash)?;
        self.out.write(&0u32.to_le_bytes())
    }

    /// Ends the file; gives the writer back, flushed.
    ///
    /// # Errors
    /// Sections are missing; writing fails.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

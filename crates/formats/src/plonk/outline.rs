//! A PLONK key of which only what a proof takes is read.

use super::{PlonkHeader, PlonkZkey, Sections, KIND, VALUES};
use crate::container::{Heads, Input};
use crate::error::{FormatError, Place, Result};
use crate::zkey::{check_section, range, G1Point};
use std::ops::Range;
use tandem_ops::{Curve, Mont, Outside, Stored};

/// A PLONK proving key without values of polynomials and Lagrange polynomials, which a proof does not need and which are most of the file,
/// and without the powers of tau, of which it says where they lie.
#[derive(Debug)]
pub struct PlonkOutline<C: Curve> {
    /// Sizes and single points.
    pub header: PlonkHeader<C>,
    /// Bytes of the powers of tau.
    pub powers: Range<usize>,
    place: Place,
    heads: Heads,
}

impl<C: Curve> PlonkOutline<C> {
    /// Reads the header. All sections have the lengths that it says; their content has not been looked at.
    ///
    /// # Errors
    /// The first thing found that is not as the format says; `input` cannot be read.
    pub fn read(input: &impl Input) -> Result<Self> {
        let heads = Heads::starts(input, KIND)?;
        let (header, Sections { powers, .. }) = PlonkHeader::<C>::look(&heads.container())?;
        let (powers, place) = (range(&powers), powers.place());
        Ok(Self { header, powers, place, heads })
    }

    /// Reads additions, maps and coefficients into memory: some 268 bytes a row and 72 an addition.
    ///
    /// # Errors
    /// There is not so much memory; `input` cannot be read.
    pub fn load(&mut self, input: &impl Input) -> Result<()> {
        let one = self.header.domain_size as usize * size_of::<Mont>();
        self.heads.keep(input, |id, len| match id {
            1..=6 => std::iter::once(0..len).collect(),
            7..=12 => (0..len).step_by((1 + VALUES) * one).map(|start| start..start + one).collect(),
            _ => Vec::new(),
        })
    }

    /// The key as [`PlonkOutline::load`] read it, checked as by [`PlonkZkey::parse`] but for the coordinates of its powers, which stay in
    /// `file`.
    ///
    /// # Errors
    /// The first thing found that is not as the format says.
    pub fn key<'a>(&'a self, file: &'a dyn Outside) -> Result<PlonkZkey<'a, C>> {
        let (header, sections) = PlonkHeader::<C>::look(&self.heads.container())?;
        let powers = Stored::outside(file, self.powers.clone())
            .ok_or_else(|| FormatError::at(self.place.clone(), "expected whole points"))?;
        PlonkZkey::of(header, sections, powers)
    }

    /// Checks that all coordinates of the powers are below the modulus, in parallel.
    ///
    /// # Errors
    /// The first point that has one that is not; `input` cannot be read.
    pub fn check_coordinates(&self, input: &impl Input) -> Result<()> {
        check_section::<C, G1Point<C>>(input, &self.powers, &self.place)
    }
}

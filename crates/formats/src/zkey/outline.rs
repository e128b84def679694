//! A key whose sections of points stay where they are.

use super::coefs::{Coefs, Limits, Matrices};
use super::{coordinate_not_below, header_of, read_header, G1Point, G2Point, PointSections, ZkeyHeader, NOT_BELOW};
use crate::container::{Heads, Input, Reader};
use crate::error::{FormatError, Place, Result, MORE_MEMORY};
use crate::kind::FileKind;
use rayon::prelude::*;
use std::ops::Range;
use tandem_ops::memory;
use tandem_ops::{Curve, Wire};

/// Bytes of points that one task checks.
const TASK_BYTES: usize = 4 << 20;

/// A Groth16 proving key without its large sections, of which it says where they lie in the file. Lengths, counts and moduli have been checked
/// as by [`super::Zkey::parse`]; of the content of the large sections nothing has been looked at.
#[derive(Debug)]
pub struct ZkeyOutline<C: Curve> {
    /// Sizes and single points.
    pub header: ZkeyHeader<C>,
    /// Bases of the public values, `n_public + 1` of them.
    pub ic: Vec<G1Point<C>>,
    /// Bytes of the bases of the witness for A.
    pub a: Range<usize>,
    /// Bytes of the bases of the witness for B in G1.
    pub b1: Range<usize>,
    /// Bytes of the bases of the witness for B in G2.
    pub b2: Range<usize>,
    /// Bytes of the bases of the private values.
    pub c: Range<usize>,
    /// Bytes of the bases of the quotient's values.
    pub h: Range<usize>,
    /// The places of these five, in this order.
    places: [Place; 5],
    /// The entries of the matrices, and their place.
    coefs: (Range<usize>, Place),
}

/// The bytes of a section in its file.
pub(crate) fn range(section: &Reader<'_>) -> Range<usize> {
    section.offset()..section.offset() + section.rest()
}

impl<C: Curve> ZkeyOutline<C> {
    /// Reads the header and the bases of the public values.
    ///
    /// # Errors
    /// The first thing found that is not as the format says; `input` cannot be read.
    pub fn read(input: &impl Input) -> Result<Self> {
        let heads = Heads::starts(input, FileKind::Zkey)?;
        let file = heads.container();
        let (curve, mut section) = header_of(&file)?;
        if curve != C::ID {
            let problem = format!("expected a key for {}, found one for {curve}", C::ID);
            return Err(FormatError::whole(problem, Some("use files made for one curve")));
        }
        let header = read_header::<C>(&mut section)?;
        let sections = PointSections::of(&file, &header)?;
        let mut coefs = file.section(4)?;
        Coefs::count(&mut coefs)?;
        let large = [&sections.a, &sections.b1, &sections.b2, &sections.c, &sections.h];
        let [a, b1, b2, c, h] = large.map(range);
        let ic = sections.ic.rest() / size_of::<G1Point<C>>();
        let no_room = |e: tandem_ops::Error| FormatError::whole(e.to_string(), Some(MORE_MEMORY));
        let mut ic: Vec<G1Point<C>> = memory::filled("IC", ic, bytemuck::Zeroable::zeroed()).map_err(no_room)?;
        input.look(bytemuck::cast_slice_mut(&mut ic), sections.ic.offset() as u64)?;
        check::<C, G1Point<C>>(bytemuck::cast_slice(&ic), &sections.ic.place(), 0)?;
        let places = large.map(Reader::place);
        Ok(Self { header, ic, a, b1, b2, c, h, places, coefs: (range(&coefs), coefs.place()) })
    }

    /// Reads, checks and sorts the entries of the matrices ([`Coefs::matrices`]).
    ///
    /// # Errors
    /// As for [`Coefs::matrices`]; `input` cannot be read.
    pub fn matrices(&self, input: &impl Input) -> Result<Matrices> {
        let (range, place) = &self.coefs;
        Limits::of(place.clone(), &self.header).matrices(input, range.clone())
    }

    /// Checks that all coordinates of the large sections are below the modulus, in parallel.
    ///
    /// # Errors
    /// The first point that has one that is not; `input` cannot be read.
    pub fn check_coordinates(&self, input: &impl Input) -> Result<()> {
        let [a, b1, b2, c, h] = &self.places;
        check_section::<C, G1Point<C>>(input, &self.a, a)?;
        check_section::<C, G1Point<C>>(input, &self.b1, b1)?;
        check_section::<C, G2Point<C>>(input, &self.b2, b2)?;
        check_section::<C, G1Point<C>>(input, &self.c, c)?;
        check_section::<C, G1Point<C>>(input, &self.h, h)
    }
}

/// Checks the coordinates of a section, reading it piece by piece.
pub(crate) fn check_section<C: Curve, P: Wire>(input: &impl Input, bytes: &Range<usize>, place: &Place) -> Result<()> {
    let task = TASK_BYTES / size_of::<P>() * size_of::<P>();
    let check_task = |buffer: &mut Vec<u8>, number: usize| {
        let at = bytes.start + number * task;
        buffer.resize(task.min(bytes.end - at), 0);
        input.look(buffer, at as u64)?;
        check::<C, P>(buffer, place, number * task / size_of::<P>())
    };
    let tasks = (0..bytes.len().div_ceil(task)).into_par_iter();
    // The first that is bad, not the one that was found first.
    tasks.map_init(Vec::new, check_task).find_first(Result::is_err).unwrap_or(Ok(()))
}

/// Checks the coordinates of points, the first of which is number `first` of the section that begins at `place`.
fn check<C: Curve, P: Wire>(points: &[u8], place: &Place, first: usize) -> Result<()> {
    let Some(coordinate) = coordinate_not_below::<C>(points) else { return Ok(()) };
    let index = first + coordinate * crate::modulus::base(C::ID).len() * 8 / size_of::<P>();
    let offset = place.offset.map(|o| o + (index * size_of::<P>()) as u64);
    Err(FormatError::at(Place { index: Some(("point", index as u64)), offset, ..place.clone() }, NOT_BELOW))
}

//! What crosses from bellperson: pointers and lengths.

use crate::cuda::Error;
use tandem_engine::{Assignment as View, Density};

/// What bellperson has computed of one circuit. `Scalar` is an element of BLS12-381's scalar field in Montgomery form, of four limbs.
/// Densities are bits in words, the lowest first; wires whose bit is set have points in the key.
#[repr(C)]
pub struct Assignment<Scalar> {
    /// Private wires with points in A.
    pub a_aux_density: *const usize,
    /// How many bits.
    pub a_aux_bit_len: usize,
    /// How many of them are set.
    pub a_aux_popcount: usize,

    /// Public wires, the constant included, with points in B.
    pub b_inp_density: *const usize,
    /// How many bits.
    pub b_inp_bit_len: usize,
    /// How many of them are set.
    pub b_inp_popcount: usize,

    /// Private wires with points in B.
    pub b_aux_density: *const usize,
    /// How many bits.
    pub b_aux_bit_len: usize,
    /// How many of them are set.
    pub b_aux_popcount: usize,

    /// Left factors of the constraints.
    pub a: *const Scalar,
    /// Right factors.
    pub b: *const Scalar,
    /// Products.
    pub c: *const Scalar,
    /// How many constraints.
    pub abc_size: usize,

    /// The constant 1 and the public values.
    pub inp_assignment_data: *const Scalar,
    /// How many.
    pub inp_assignment_size: usize,

    /// The private values.
    pub aux_assignment_data: *const Scalar,
    /// How many.
    pub aux_assignment_size: usize,
}

type Scalar = [u64; 4];

/// `len` elements at an address, which the caller promises to be there unless it is null.
fn elements<'a, T>(name: &str, at: *const T, len: usize) -> Result<&'a [T], Error> {
    if len == 0 {
        return Ok(&[]);
    }
    if at.is_null() {
        return Err(Error::input(format!("{name}: a null pointer; expected {len} elements")));
    }
    if !at.is_aligned() || len.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Error::input(format!("{name}: {len} elements at {at:?}, where they cannot lie")));
    }
    // SAFETY: neither null nor unaligned, and no longer than memory. The callers' documents ask for as many elements there, which stay as
    // they are during the call.
    Ok(unsafe { std::slice::from_raw_parts(at, len) })
}

/// Scalars of the caller's type.
pub(crate) fn scalars<'a, S>(name: &str, at: *const S, len: usize) -> Result<&'a [Scalar], Error> {
    if size_of::<S>() != size_of::<Scalar>() {
        return Err(Error::input(format!("{name}: scalars of {} bytes; expected 32", size_of::<S>())));
    }
    elements(name, at.cast(), len)
}

/// The words of a density.
pub(crate) fn words<D>(density: &[D]) -> Result<&[u64], Error> {
    if size_of::<D>() != size_of::<u64>() {
        return Err(Error::input(format!("a density in words of {} bytes; expected 8", size_of::<D>())));
    }
    elements("density", density.as_ptr().cast(), density.len())
}

/// A density whose set bits are as many as the caller says.
fn density<'a>(name: &str, words: &'a [u64], bits: usize, set: usize) -> Result<Density<'a>, Error> {
    let whole: usize = words.iter().take(bits / 64).map(|word| word.count_ones() as usize).sum();
    let rest = words.get(bits / 64).map_or(0, |word| (word & ((1 << (bits % 64)) - 1)).count_ones() as usize);
    if whole + rest != set {
        return Err(Error::input(format!("{name}: {} bits of the density are set; expected {set}", whole + rest)));
    }
    Ok(Density { words, bits })
}

impl<S> Assignment<S> {
    /// What it points to, with r and s.
    pub(crate) fn view(&self, blinding: [Scalar; 2]) -> Result<View<'_>, Error> {
        let of = |name, at: *const usize, bits: usize, set| {
            density(name, elements(name, at.cast::<u64>(), bits.div_ceil(64))?, bits, set)
        };
        Ok(View {
            inputs: scalars("input assignment", self.inp_assignment_data, self.inp_assignment_size)?,
            aux: scalars("aux assignment", self.aux_assignment_data, self.aux_assignment_size)?,
            a: scalars("a", self.a, self.abc_size)?,
            b: scalars("b", self.b, self.abc_size)?,
            c: scalars("c", self.c, self.abc_size)?,
            a_aux: of("A of aux", self.a_aux_density, self.a_aux_bit_len, self.a_aux_popcount)?,
            b_inputs: of("B of inputs", self.b_inp_density, self.b_inp_bit_len, self.b_inp_popcount)?,
            b_aux: of("B of aux", self.b_aux_density, self.b_aux_bit_len, self.b_aux_popcount)?,
            blinding,
        })
    }
}

/// Sizes and densities that all circuits of a call have.
pub(crate) struct Shared<'a> {
    pub(crate) rows: usize,
    pub(crate) inputs: usize,
    pub(crate) aux: usize,
    pub(crate) in_a: (&'a [u64], usize),
    pub(crate) in_b_inputs: (&'a [u64], usize),
    pub(crate) in_b_aux: (&'a [u64], usize),
}

impl Shared<'_> {
    /// Fails where a density has fewer bits than there are wires.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let of = [
            ("A of aux", self.in_a.0, self.aux),
            ("B of inputs", self.in_b_inputs.0, self.inputs),
            ("B of aux", self.in_b_aux.0, self.aux),
        ];
        match of.iter().find(|(_, words, bits)| words.len() < bits.div_ceil(64)) {
            Some((name, words, bits)) => Err(Error::input(format!(
                "{name}: a density of {} words of 64 bits; expected {bits} bits",
                words.len()
            ))),
            None => Ok(()),
        }
    }

    /// One circuit, with pointers to a, b, c, its inputs and its private values.
    pub(crate) fn of<S>(&self, [a, b, c, inputs, aux]: [*const S; 5]) -> Assignment<S> {
        let words = |(words, _): (&[u64], usize)| words.as_ptr().cast::<usize>();
        Assignment {
            a_aux_density: words(self.in_a),
            a_aux_bit_len: self.aux,
            a_aux_popcount: self.in_a.1,
            b_inp_density: words(self.in_b_inputs),
            b_inp_bit_len: self.inputs,
            b_inp_popcount: self.in_b_inputs.1,
            b_aux_density: words(self.in_b_aux),
            b_aux_bit_len: self.aux,
            b_aux_popcount: self.in_b_aux.1,
            a,
            b,
            c,
            abc_size: self.rows,
            inp_assignment_data: inputs,
            inp_assignment_size: self.inputs,
            aux_assignment_data: aux,
            aux_assignment_size: self.aux,
        }
    }
}

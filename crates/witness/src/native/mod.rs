//! circom's field functions, done by the host.
//!
//! Most of a circuit's time goes into functions that circom puts into every module as they are. [`recognise`] finds them by their whole
//! code and makes their callers call the host instead; [`Function`] does what they do.

mod elements;
mod field;
mod inline;
mod invert;
mod observe;
mod recognise;
mod rewrite;
mod templates;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wires_tests;

pub(crate) use elements::Function;
pub(crate) use field::{divide, is_above, Field, Limbs};
pub(crate) use observe::{observe, Hook};
#[cfg(test)]
pub(crate) use recognise::{put, Parts};
pub(crate) use recognise::{recognise, Import, Native, Wires, IMPORT_MODULE};

/// The prime of a number that recordings give it.
pub(crate) fn prime(number: u8) -> Option<Limbs> {
    templates::TEMPLATES.get(usize::from(number)).map(|(prime, _)| *prime)
}

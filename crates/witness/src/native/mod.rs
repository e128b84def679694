//! circom's field functions, done by the host.
//!
//! Most of a circuit's time goes into functions that circom puts into every module as they are. [`recognise`] finds them by their whole
//! code and makes their callers call the host instead; [`Function`] does what they do.

mod elements;
mod field;
mod inline;
mod recognise;
mod rewrite;
mod templates;
#[cfg(test)]
mod tests;

pub(crate) use elements::Function;
pub(crate) use field::Field;
pub(crate) use recognise::{recognise, Native, IMPORT_MODULE};

//! Kernels over the fabric's device API that are no part of the product: the examples of the guide ([`shift`], [`Stencil`],
//! [`squares`], [`reverse`]), and what the tests of the API need ([`litmus`], [`single`], [`collective`], [`meet`]). A crate of your own with
//! kernels looks like this one: build.rs compiles native/src, a C header says what is there, and functions like these check
//! lengths and launch on a PE's queue.
//!
//! All but [`squares`] need GPUs.
#![deny(unsafe_code)]

/// The C functions themselves.
#[allow(unsafe_code)]
pub mod ffi;
#[allow(unsafe_code)]
mod kernels;

pub use kernels::{collective, litmus, meet, reverse, shift, single, squares, Litmus, Stencil};

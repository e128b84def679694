//! What is measured, and how: everything lies where it is worked on, results are checked, and only then times are told.

pub(crate) mod fft;
pub(crate) mod lagrange;
pub(crate) mod msm;
pub(crate) mod ntt;
pub(crate) mod ntt_batch;
pub(crate) mod ntt_cube;
mod ntt_input;
pub(crate) mod poseidon;
mod random;
pub(crate) mod reduce;
pub(crate) mod sort;
pub(crate) mod sumcheck;
pub(crate) mod vector;

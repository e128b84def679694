//! The primitives on a team of NVIDIA GPUs, each of which is a lane.
//!
//! [`Cuda`] owns devices, streams, events, memory and the schedule; the native code (native/include/tandem_ops.h)
//! only launches. Built without nvcc, [`Cuda::open`] says so.

mod all_gather;
mod backend;
mod batch_inverse;
mod cache;
mod gather;
mod lane;
mod msm;
mod ntt;
mod outside;
mod plonk_rows;
mod point_ntt;
mod poseidon;
mod reduce;
mod scan;
mod sort;
mod spans;
mod spmv;
mod sumcheck;
mod tuning;
mod vector;

pub(crate) mod ffi;

pub use backend::{Cuda, CudaBuf};
pub use gather::CudaMap;
pub use msm::{sum_bytes, MsmBases, MsmDigits, MsmPlan};
pub use poseidon::CudaHasher;
pub use spmv::CudaMatrix;
pub use tandem_cuda::{built_with, nvml, probe, Device, Found, Properties};

/// The status of a device whose driver had too little memory for what it keeps itself.
pub const OUT_OF_MEMORY: i32 = tandem_cuda::ffi::TANDEM_CUDA_OUT_OF_MEMORY;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! What a prover needs computed, and who may compute it.
//!
//! [`Backend`] owns memory and ordered queues of work ([`Lane`]s); one trait per primitive says what can be
//! enqueued on them. [`cpu::Cpu`] implements all of them with well-kept libraries and is the specification:
//! any other backend gives the same field elements and the same group elements. Beside each primitive stands
//! its naive definition, the oracle of both.
//!
//! Everything enqueues. Only [`Pending::wait`], [`Backend::synchronize`] and [`Timeline::take`] block.
#![forbid(unsafe_code)]

pub mod backend;
pub mod batch_inverse;
pub mod cpu;
pub mod curve;
pub mod error;
pub mod field;
pub mod gather;
pub mod host;
pub mod memory;
pub mod msm;
pub mod naive;
pub mod ntt;
pub mod pending;
pub mod plonk_rows;
pub mod point_ntt;
pub mod poseidon;
pub mod reduce;
pub mod scan;
pub mod sort;
pub mod spmv;
pub mod stored;
pub mod sumcheck;
pub mod threads;
pub mod timeline;
pub mod vector;
pub mod wire;
pub mod zcash;

pub use backend::{check_lanes_differ, check_room, Arriving, Backend, Buffer, Dealt, DeviceKind, Info, Lane, Pieces};
pub use batch_inverse::BatchInverse;
pub use curve::{Bls12_381, Bn254, Curve, CurveId, Group, G1, G2};
pub use error::{Error, Result};
pub use field::{FieldId, NttField};
pub use gather::Gather;
pub use host::{HostBuf, HostMemory};
pub use msm::{DealtScalars, Msm, MsmRequest, MsmSet, ScalarRecoding, Scalars, SplitMsm, SumBytes};
pub use ntt::{Complex, Coset, Direction, Fft, Ntt, NttOp, NttProducts, NttSpread, Order, Spread};
pub use pending::Pending;
pub use plonk_rows::{PlonkRows, QuotientAt, QuotientRows};
pub use point_ntt::PointNtt;
pub use poseidon::{Family, MerklePath, MerkleTree, Poseidon, PoseidonParams};
pub use reduce::{Element, ElementKind, HostData, Reduce, ReduceOp, ReduceWay};
pub use scan::Scan;
pub use sort::{Sort, SortKey, SortOptions, SortWay};
pub use spmv::{SpMv, SparseRows};
pub use stored::{Later, Loaded, Outside, Stored};
pub use sumcheck::{Sumcheck, SumcheckField, SumcheckProof};
pub use timeline::{Span, SpanId, Timeline};
pub use vector::VecOps;
pub use wire::{
    BabyBear, Canonical, Complex32, Complex64, Goldilocks, Goldilocks2, Mont, Mont2, Point, Unaligned, Wire,
};

/// Everything that proofs over `C` ask of a backend, of all proof systems.
pub trait ProofBackend<C: Curve>:
    Backend
    + Gather
    + NttProducts<C>
    + SpMv<C>
    + PlonkRows<C>
    + BatchInverse<C>
    + Scan<C>
    + PointNtt<C>
    + ScalarRecoding<C>
    + Msm<C::G1>
    + Msm<C::G2>
{
}

impl<C: Curve, B> ProofBackend<C> for B where
    B: Backend
        + Gather
        + NttProducts<C>
        + SpMv<C>
        + PlonkRows<C>
        + BatchInverse<C>
        + Scan<C>
        + PointNtt<C>
        + ScalarRecoding<C>
        + Msm<C::G1>
        + Msm<C::G2>
{
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

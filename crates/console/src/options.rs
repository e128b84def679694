//! Options that several commands take, and the words in which users write their values.

use crate::failure::{Failure, Outcome};
use crate::sizes;
use crate::values::{device, name, output};
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tandem_engine::{CurveId, DeviceChoice, Layout};
use tandem_ops::{ElementKind, Family, PoseidonParams, ReduceOp, SortOptions, SortWay};

/// Options of every command.
#[derive(Args)]
pub struct Common {
    /// Where to compute: auto (all usable GPUs, else the CPU), cpu, cuda (all GPUs), cuda:0,1, or sim:N for N pretend GPUs
    #[arg(long, global = true, value_name = "DEVICE", default_value = "auto", value_parser = device)]
    #[arg(env = "TANDEM_DEVICE", hide_env_values = true)]
    pub device: DeviceChoice,
    /// How several GPUs share the work
    #[arg(long, global = true, value_enum, default_value = "auto", env = "TANDEM_SCHEDULE", hide_env_values = true)]
    pub schedule: Schedule,
    /// Memory to take of each GPU, such as 16GiB, at most; what does not fit of keys of PLONK, FFLONK and bellperson comes in pieces
    #[arg(long, global = true, value_name = "SIZE", env = "TANDEM_GPU_MEMORY", hide_env_values = true)]
    #[arg(value_parser = sizes::gpu_memory)]
    pub gpu_memory: Option<u64>,
    /// Threads of the CPU; all processors unless set
    #[arg(long, global = true, value_name = "N", env = "TANDEM_THREADS", hide_env_values = true)]
    pub threads: Option<NonZeroUsize>,
    /// Write what ran when as a Chrome trace (for chrome://tracing or ui.perfetto.dev)
    #[arg(long, global = true, value_name = "FILE", value_parser = output())]
    pub trace: Option<PathBuf>,
    /// Say how long each part took
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Say nothing but errors and warnings on stderr
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Colour: on a terminal, always, or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        env = "TANDEM_COLOR",
        hide_env_values = true
    )]
    pub color: clap::ColorChoice,
}

/// Machine-readable output.
#[derive(Args)]
pub struct Json {
    /// Print the result as JSON on stdout
    #[arg(long)]
    pub json: bool,
}

/// A layout as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Schedule {
    /// As roles, over as many GPUs as make it faster
    Auto,
    /// The first GPU transforms and takes as many MSMs as fit, the others share the rest so that all end together
    Roles,
    /// Each transform runs whole on one GPU, different ones on different GPUs; every MSM is split by points over all
    Split,
    /// Each GPU makes proofs of its own, where there are several to make at a time
    Each,
    /// Two GPUs as a text on NVLink has them: one transforms, the other has all points; of Groth16 alone, for comparison
    Blueprint,
}

impl From<Schedule> for tandem_engine::Schedule {
    fn from(schedule: Schedule) -> Self {
        match schedule {
            Schedule::Auto => Self::Together(Layout::Auto),
            Schedule::Roles => Self::Together(Layout::Roles),
            Schedule::Split => Self::Together(Layout::Split),
            Schedule::Each => Self::Each,
            Schedule::Blueprint => Self::Together(Layout::Blueprint),
        }
    }
}

/// A curve as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Curve {
    /// BN254, the curve of Ethereum's precompiles
    #[value(name = "bn254", aliases = ["bn128", "bn-128", "bn-254", "alt_bn128", "altbn128", "BN254", "BN128"])]
    Bn254,
    /// BLS12-381
    #[value(name = "bls12-381", aliases = ["bls12381", "bls12_381", "BLS12-381", "BLS12381", "BLS12_381"])]
    Bls12381,
}

impl From<Curve> for CurveId {
    fn from(curve: Curve) -> Self {
        match curve {
            Curve::Bn254 => CurveId::Bn254,
            Curve::Bls12381 => CurveId::Bls12_381,
        }
    }
}

/// Which hash.
#[derive(Args)]
pub struct HashFunction {
    /// Elements that one hash takes: 2, 4, 8 or 11
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub arity: usize,
    /// Whose constants
    #[arg(long, value_enum, default_value = "circomlib")]
    pub family: FamilyName,
}

impl HashFunction {
    /// Its parameters.
    ///
    /// # Errors
    /// There are no constants for this arity.
    pub fn params(&self) -> Outcome<PoseidonParams> {
        PoseidonParams::new(self.family.into(), self.arity).map_err(|e| Failure::input(format!("--arity: {e}")))
    }
}

/// A family as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FamilyName {
    /// circomlib's, defined over BN254
    Circomlib,
    /// Filecoin's, defined over BLS12-381
    Filecoin,
}

impl From<FamilyName> for Family {
    fn from(name: FamilyName) -> Self {
        match name {
            FamilyName::Circomlib => Family::Circomlib,
            FamilyName::Filecoin => Family::Filecoin,
        }
    }
}

/// What is sorted, and how.
#[derive(Args)]
pub struct Sorting {
    /// What the keys are
    #[arg(long, value_enum, default_value = "u64")]
    pub key: KeyName,
    /// Behind each key stands a value of its size, which stays with it; values of equal keys keep their order
    #[arg(long)]
    pub pairs: bool,
    /// The greatest key first
    #[arg(long)]
    pub descending: bool,
    /// How several devices share the work [default: partition, where they reach each other's memory]
    #[arg(long, value_enum)]
    pub way: Option<WayName>,
}

/// A kind of keys as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyName {
    /// Unsigned integers of 32 bits
    U32,
    /// Unsigned integers of 64 bits
    U64,
}

/// A way as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WayName {
    /// Every key goes straight to the device that sorts it
    Partition,
    /// Every device sorts its own; sorted pieces are exchanged and merged
    Merge,
}

impl Sorting {
    /// The options of the primitive.
    pub fn options(&self) -> SortOptions {
        let way = self.way.map(|way| match way {
            WayName::Partition => SortWay::Partition,
            WayName::Merge => SortWay::Merge,
        });
        SortOptions { descending: self.descending, way }
    }

    /// Bytes of a key with its value.
    pub fn element_bytes(&self) -> usize {
        let key = match self.key {
            KeyName::U32 => 4,
            KeyName::U64 => 8,
        };
        key * if self.pairs { 2 } else { 1 }
    }
}

/// What is made of what.
#[derive(Args)]
pub struct Reduction {
    /// What the elements are
    #[arg(long, value_enum, default_value = "u64")]
    pub element: ElementName,
    /// What to make of them
    #[arg(long, value_enum, default_value = "sum")]
    pub op: OpName,
    /// The curve of --element scalar
    #[arg(long, value_enum, default_value = "bn254")]
    pub curve: Curve,
}

/// A kind of elements as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ElementName {
    /// Unsigned integers of 32 bits
    U32,
    /// Unsigned integers of 64 bits
    U64,
    /// Floating-point numbers of 32 bits
    F32,
    /// Floating-point numbers of 64 bits
    F64,
    /// Elements of a curve's scalar field, 32 bytes each, as integers below the modulus
    Scalar,
}

/// An operation as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OpName {
    /// Their sum: modulo 2^32 or 2^64, rounded in one order, or in the field
    Sum,
    /// The least
    Min,
    /// The greatest
    Max,
}

impl Reduction {
    /// The kind of the elements.
    pub fn kind(&self) -> ElementKind {
        match self.element {
            ElementName::U32 => ElementKind::U32,
            ElementName::U64 => ElementKind::U64,
            ElementName::F32 => ElementKind::F32,
            ElementName::F64 => ElementKind::F64,
            ElementName::Scalar => ElementKind::Scalar(self.curve.into()),
        }
    }

    /// The operation of the primitive.
    pub fn op(&self) -> ReduceOp {
        match self.op {
            OpName::Sum => ReduceOp::Sum,
            OpName::Min => ReduceOp::Min,
            OpName::Max => ReduceOp::Max,
        }
    }

    /// Such as `reduce_sum_u64`.
    pub fn name(&self) -> String {
        format!("reduce_{}_{}", name(&self.op), name(&self.element))
    }
}

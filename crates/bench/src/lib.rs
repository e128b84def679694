//! `tandem bench`: measures the fabric, the primitives and whole proofs, after checking that the results are right.
//!
//! [`Command`] is the command line and [`run`] the command. A benchmark prints a table for people and appends rows of JSON.
#![forbid(unsafe_code)]

mod bars;
mod bound;
mod chart;
mod fabric;
mod fft;
mod lagrange;
mod made;
mod measure;
mod msm;
mod ntt;
mod plot;
mod porep;
mod poseidon;
mod proofs;
mod reduce;
mod rows;
mod serve;
mod setup;
mod sort;
mod sumcheck;
mod vector;

use crate::plot::PlotFile;
use clap::{Args, Subcommand};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use tandem_console::failure::Outcome;
use tandem_console::files::Named;
use tandem_console::options::{Curve, HashFunction};
use tandem_console::session::Session;
use tandem_console::values::{range, share};
use tandem_engine::Protocol;

/// The command line of `tandem bench`.
#[derive(Args)]
pub struct Command {
    #[command(subcommand)]
    what: Bench,
}

/// What to measure.
#[derive(Subcommand)]
enum Bench {
    #[command(flatten)]
    Fabric(fabric::args::FabricBench),
    /// Number-theoretic transforms: natural order to bit-reversed over a curve's scalar field each on as many GPUs as is
    /// fastest, all others on the first
    #[command(after_help = "Examples:\n  tandem bench ntt --field bn254 --log-n 16..20\n  \
                            tandem bench ntt --field bls12-381 --log-n 32 --device cuda:0,1\n  \
                            tandem bench ntt --field baby-bear --log-n 12 --batch 1000 --order nn --coset shift\n  \
                            tandem bench ntt --log-n 24 --as spread,cube --exchange nvlink,host")]
    Ntt(ntt::NttBench),
    /// Discrete Fourier transforms of complex numbers, each dealt to all devices
    #[command(after_help = "Examples:\n  tandem bench fft --log-n 16..20\n  \
                            tandem bench fft --sides 4096x4096,256x256x256 --device cuda:0,1\n  \
                            tandem bench fft --precision f64 --log-n 20 --device sim:4 --lanes 2")]
    Fft(fft::FftBench),
    /// Multi-scalar multiplications in G1 or G2, each split by points over as many GPUs as is fastest
    #[command(
        after_help = "Examples:\n  tandem bench msm --curve bls12-381 --log-n 16..18 --runs 5 --json rows.jsonl\n  \
                            tandem bench msm --log-n 22 --scalars random,equal,one,sparse,two,window\n  \
                            tandem bench msm --log-n 8..18 --lanes 1"
    )]
    Msm(msm::MsmBench),
    /// Poseidon hashes of columns from host memory, or Merkle trees over leaves that lie on the device
    #[command(after_help = "The size is the number of columns, or of leaves.\n\nExamples:\n  \
                            tandem bench poseidon --arity 11 --log-n 16..18\n  tandem bench poseidon --tree --log-n 20")]
    Poseidon {
        #[command(flatten)]
        function: HashFunction,
        /// Build a Merkle tree
        #[arg(long)]
        tree: bool,
        /// Hash columns that lie in memory from which the devices copy themselves
        #[arg(long, conflicts_with = "tree")]
        pinned: bool,
        #[command(flatten)]
        options: BenchOptions,
    },
    /// Sums, least and greatest elements: on one device, on all, and from host memory, beside what the plan says
    #[command(after_help = "Examples:\n  tandem bench reduce --element u64 --log-n 24..26 --data lanes,pinned\n  \
                            tandem bench reduce --collective -b 4K -e 1G -f 4")]
    Reduce(reduce::ReduceBench),
    /// Keys that lie on the devices: on one of them, and on all by either way
    #[command(after_help = "Examples:\n  tandem bench sort --log-n 24..26\n  \
                            tandem bench sort --key u32 --pairs --keys zipf,heavy --log-n 24")]
    Sort(sort::BenchSort),
    /// Sumchecks of products of multilinear tables that are dealt to the devices
    #[command(after_help = "Examples:\n  tandem bench sumcheck --log-n 20..24\n  \
                            tandem bench sumcheck --field goldilocks --degree 1,2,3,4 --log-n 24 --device cuda:0")]
    Sumcheck(sumcheck::SumcheckBench),
    /// Inverses, prefix products, values, quotients and picks of scalars that lie on the first device
    #[command(after_help = "Examples:\n  tandem bench vector --log-n 16..20\n  \
                            tandem bench vector --op batch-inverse,divide --curve bls12-381 --log-n 22")]
    Vector(vector::VectorBench),
    /// Lagrange points of powers of tau that lie on the first device, as keys of PLONK have them made
    #[command(after_help = "Examples:\n  tandem bench lagrange --log-n 10..12\n  \
                            tandem bench lagrange --curve bls12-381 --log-n 20 --device cuda:0")]
    Lagrange(BenchOptions),
    /// Whole proofs: of circuits made up for the size, or of a key and a witness
    #[command(
        after_help = "Examples:\n  tandem bench groth16 --log-n 14..16\n  tandem bench groth16 --log-n 20 --compare\n  \
                            tandem bench groth16 circuit.zkey witness.wtns --runs 10"
    )]
    Groth16(proofs::BenchProofs),
    /// Whole PLONK proofs: of circuits made up for the rows, or of a key and a witness
    #[command(
        after_help = "Examples:\n  tandem bench plonk --log-n 14..16\n  tandem bench plonk circuit.zkey witness.wtns"
    )]
    Plonk(proofs::BenchPlonk),
    /// Whole FFLONK proofs: of circuits made up for the rows, or of a key and a witness
    #[command(
        after_help = "Examples:\n  tandem bench fflonk --log-n 14..16\n  tandem bench fflonk --log-n 14 --keep keys"
    )]
    Fflonk(proofs::BenchPlonk),
    /// Filecoin's proofs: made-up partitions of the real sizes, prepared, uploaded and proved one after the other
    #[command(after_help = "Examples:\n  tandem bench porep --log-n 16 --partitions 3\n  \
                            tandem bench porep --shape text -c 5 -j 3 --device cuda:0 --json rows.jsonl")]
    Porep(porep::BenchPorep),
    /// A running service: proofs a second, what callers wait for, and what binds
    #[command(after_help = "Examples:\n  tandem bench serve circuit.zkey witness.wtns -c 1,2,4,8\n  \
                            tandem bench serve circuit.zkey witness.wtns --rate 20 --jobs 1000")]
    Serve(serve::BenchServe),
    /// Test keys of circuits made up for the size, on the CPU
    #[command(after_help = "Examples:\n  tandem bench setup --log-n 14..16 --runs 1\n  \
                            tandem bench setup --log-n 20 --runs 1 --keep circuits\n  \
                            tandem bench setup --log-n 14 --ptau")]
    Setup {
        /// Share of the circuit's wires that hold values of full size; the others hold bits
        #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
        dense: f64,
        /// Keep circuit, witness and key of each size in this folder, as n16.r1cs, n16.wtns and n16.zkey
        #[arg(long, value_name = "FOLDER")]
        keep: Option<PathBuf>,
        /// Make the keys from powers of tau, as the first of a ceremony
        #[arg(long)]
        ptau: bool,
        #[command(flatten)]
        options: BenchOptions,
    },
}

#[derive(Args)]
pub(crate) struct BenchOptions {
    /// The curve
    #[arg(long, value_enum, default_value = "bn254")]
    pub(crate) curve: Curve,
    /// Binary logarithm of the size, or a range such as 16..20 with both ends
    #[arg(long, value_name = "RANGE", default_value = "16", value_parser = range)]
    pub(crate) log_n: RangeInclusive<u32>,
    /// How often each size is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// Append one JSON row for each size to this file, or print it on stdout for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plot: PlotFile,
}

/// Adds the files that a bench of proofs reads and keeps; gives where its rows go.
fn made_files<'a>(named: &mut Named, protocol: Protocol, args: &'a proofs::BenchPlonk) -> Option<&'a PathBuf> {
    let proofs::BenchPlonk { proofs, keep } = args;
    let log_n = &proofs.options.log_n;
    named.inputs.extend(proofs.zkey.iter().chain(&proofs.witness).cloned());
    if let Some(folder) = keep {
        named.outputs.push(made::ptau(folder, protocol, *log_n.end()));
        named.outputs.extend(log_n.clone().flat_map(|log_n| made::files(folder, protocol, log_n)));
    }
    proofs.options.json.as_ref()
}

/// Measures.
///
/// # Errors
/// The device or an option is at fault, a result is wrong, or a file cannot be written.
pub fn run(session: &Session, command: &Command) -> Outcome {
    match &command.what {
        Bench::Fabric(what) => fabric::run(session, what),
        Bench::Ntt(options) => ntt::run(session, options),
        Bench::Fft(args) => fft::run(session, args),
        Bench::Msm(args) => msm::run(session, args),
        Bench::Poseidon { function, tree, pinned, options } => {
            poseidon::run(session, options, function, (*tree, *pinned))
        }
        Bench::Reduce(args) => reduce::run(session, args),
        Bench::Sort(args) => sort::run(session, args),
        Bench::Sumcheck(args) => sumcheck::run(session, args),
        Bench::Vector(args) => vector::run(session, args),
        Bench::Lagrange(options) => lagrange::run(session, options),
        Bench::Groth16(args) => proofs::run(session, Protocol::Groth16, args, None),
        Bench::Plonk(args) => proofs::run(session, Protocol::Plonk, &args.proofs, args.keep.as_deref()),
        Bench::Fflonk(args) => proofs::run(session, Protocol::Fflonk, &args.proofs, args.keep.as_deref()),
        Bench::Porep(args) => porep::run(session, args),
        Bench::Serve(args) => serve::run(session, args),
        Bench::Setup { dense, keep, ptau, options } => setup::run(session, options, *dense, *ptau, keep.as_deref()),
    }
}

impl Command {
    /// The files that its options name.
    pub fn files(&self) -> Named {
        let mut named = Named::default();
        let rows = match &self.what {
            Bench::Fabric(what) => {
                let (calls, options) = what.options();
                named.inputs.extend(options.and_then(|options| options.nccl.clone()));
                calls.json.as_ref()
            }
            Bench::Reduce(a) => {
                named.inputs.extend(a.shared.options.nccl.clone());
                a.shared.options.sweep.calls.json.as_ref()
            }
            Bench::Groth16(a) => {
                named.inputs.extend(a.zkey.iter().chain(&a.witness).cloned());
                a.options.json.as_ref()
            }
            Bench::Plonk(a) => made_files(&mut named, Protocol::Plonk, a),
            Bench::Fflonk(a) => made_files(&mut named, Protocol::Fflonk, a),
            Bench::Setup { keep, options, .. } => {
                if let Some(folder) = keep {
                    named.outputs.extend(options.log_n.clone().flat_map(|log_n| setup::made(folder, log_n)));
                }
                options.json.as_ref()
            }
            Bench::Serve(a) => {
                named.inputs.extend(a.files.iter().cloned());
                a.json.as_ref()
            }
            Bench::Porep(a) => a.json.as_ref(),
            Bench::Ntt(a) => a.json.as_ref(),
            Bench::Fft(a) => a.json.as_ref(),
            Bench::Msm(a) => a.options.json.as_ref(),
            Bench::Poseidon { options, .. } => options.json.as_ref(),
            Bench::Sort(a) => a.json.as_ref(),
            Bench::Sumcheck(a) => a.json.as_ref(),
            Bench::Vector(a) => a.options.json.as_ref(),
            Bench::Lagrange(options) => options.json.as_ref(),
        };
        named.outputs.extend(self.plot().map(PathBuf::from));
        named.outputs.extend(rows.filter(|file| file.as_path() != Path::new(rows::STDOUT)).cloned());
        named
    }

    /// The file to draw to.
    fn plot(&self) -> Option<&Path> {
        let plot = match &self.what {
            Bench::Fabric(what) => &what.options().0.plot,
            Bench::Reduce(a) => &a.shared.options.sweep.calls.plot,
            Bench::Ntt(a) => &a.plot,
            Bench::Fft(a) => &a.plot,
            Bench::Sort(a) => &a.plot,
            Bench::Porep(_) => return None,
            Bench::Serve(a) => &a.plot,
            Bench::Groth16(a) => &a.options.plot,
            Bench::Plonk(a) | Bench::Fflonk(a) => &a.proofs.options.plot,
            Bench::Msm(a) => &a.options.plot,
            Bench::Sumcheck(a) => &a.plot,
            Bench::Vector(a) => &a.options.plot,
            Bench::Setup { options, .. } | Bench::Poseidon { options, .. } | Bench::Lagrange(options) => &options.plot,
        };
        plot.file.as_deref()
    }
}

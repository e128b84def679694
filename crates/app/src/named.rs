//! The files that a command line names. An output that is an input too, or another output, is refused before anything is opened.

use crate::bench;
use crate::bench_msm::MsmBench;
use crate::cli::{Bench, Cli, Command};
use crate::failure::Outcome;
use crate::files;
use crate::hash::Hash;
use crate::plot;
use std::path::{Path, PathBuf};

/// Fails where an output is an input or another output, under whatever name.
pub(crate) fn check(cli: &Cli) -> Outcome {
    let mut named = Named::of(&cli.command);
    named.outputs.extend(cli.common.trace.clone());
    named.outputs.extend(named.plot.clone());
    files::check(&named.outputs, &named.inputs)?;
    named.plot.as_deref().map_or(Ok(()), plot::check)
}

/// What a command reads and what it writes.
#[derive(Default)]
struct Named {
    inputs: Vec<PathBuf>,
    outputs: Vec<PathBuf>,
    /// An output whose suffix says what it is.
    plot: Option<PathBuf>,
}

impl Named {
    fn new<const I: usize, const O: usize>(inputs: [&PathBuf; I], outputs: [&PathBuf; O]) -> Self {
        Self { inputs: inputs.map(PathBuf::clone).into(), outputs: outputs.map(PathBuf::clone).into(), plot: None }
    }

    fn of(command: &Command) -> Self {
        match command {
            Command::Prove(a) => {
                let mut named = Self::new([&a.zkey, &a.witness], [&a.proof, &a.public]);
                for [witness, proof, public] in a.more() {
                    named.inputs.push(witness);
                    named.outputs.extend([proof, public]);
                }
                named
            }
            Command::Fullprove(a) => Self::new([&a.input, &a.wasm, &a.zkey], [&a.proof, &a.public]),
            Command::Witness(a) => Self::new([&a.wasm, &a.input], [&a.witness]),
            Command::Verify(a) => Self::new([&a.vkey, &a.public, &a.proof], []),
            Command::Check(a) => {
                let mut named = Self::new([&a.r1cs, &a.witness], []);
                named.inputs.extend(a.sym.clone());
                named
            }
            Command::Setup(a) => Self::new([&a.r1cs], [&a.zkey]),
            Command::ExportVkey(a) => Self::new([&a.zkey], [&a.vkey]),
            Command::Inspect(a) => Self::new([&a.file], []),
            Command::Topo(a) => Self {
                inputs: a.source.from.iter().cloned().collect(),
                outputs: a.format.svg.iter().cloned().collect(),
                plot: None,
            },
            Command::Plan(a) => Self {
                inputs: a.source.from.iter().cloned().collect(),
                outputs: a.format.svg.iter().cloned().collect(),
                plot: None,
            },
            Command::Hash { what: Hash::Poseidon(a) } => Self::new([&a.input], [&a.output]),
            Command::Reduce(a) => Self::new([&a.input], []),
            Command::Sort(a) => Self::new([&a.input], [&a.output]),
            Command::Bench { what } => Self::of_bench(what),
            Command::Doctor(_) | Command::Completions { .. } => Self::default(),
        }
    }

    fn of_bench(what: &Bench) -> Self {
        let mut named = Self::default();
        let rows = match what {
            Bench::Fabric(what) => {
                let (calls, options) = what.options();
                named.plot = calls.plot.file.clone();
                named.inputs.extend(options.and_then(|options| options.nccl.clone()));
                calls.json.as_ref()
            }
            Bench::Reduce(a) => {
                named.plot = a.options.sweep.calls.plot.file.clone();
                named.inputs.extend(a.options.nccl.clone());
                a.options.sweep.calls.json.as_ref()
            }
            Bench::Groth16(a) => {
                named.inputs.extend(a.zkey.iter().chain(&a.witness).cloned());
                named.plot = a.options.plot.file.clone();
                a.options.json.as_ref()
            }
            Bench::Setup { keep, options, .. } => {
                if let Some(folder) = keep {
                    named.outputs.extend(options.log_n.clone().flat_map(|log_n| bench::made(folder, log_n)));
                }
                named.plot = options.plot.file.clone();
                options.json.as_ref()
            }
            Bench::Ntt(a) => {
                named.plot = a.plot.file.clone();
                a.json.as_ref()
            }
            Bench::Msm(MsmBench { options, .. }) | Bench::Poseidon { options, .. } => {
                named.plot = options.plot.file.clone();
                options.json.as_ref()
            }
            Bench::Sort(a) => {
                named.plot = a.plot.file.clone();
                a.json.as_ref()
            }
        };
        named.outputs.extend(rows.filter(|file| file.as_path() != Path::new(bench::STDOUT)).cloned());
        named
    }
}

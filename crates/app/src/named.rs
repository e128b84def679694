//! The files that a command line names. An output that is an input too, or another output, is refused before anything is opened.

use crate::bench;
use crate::cli::{Bench, Cli, Command};
use crate::failure::Outcome;
use crate::files;
use crate::hash::Hash;
use std::path::{Path, PathBuf};

/// Fails where an output is an input or another output, under whatever name.
pub(crate) fn check(cli: &Cli) -> Outcome {
    let mut named = Named::of(&cli.command);
    named.outputs.extend(cli.common.trace.clone());
    files::check(&named.outputs, &named.inputs)
}

/// What a command reads and what it writes.
#[derive(Default)]
struct Named {
    inputs: Vec<PathBuf>,
    outputs: Vec<PathBuf>,
}

impl Named {
    fn new<const I: usize, const O: usize>(inputs: [&PathBuf; I], outputs: [&PathBuf; O]) -> Self {
        Self { inputs: inputs.map(PathBuf::clone).into(), outputs: outputs.map(PathBuf::clone).into() }
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
            Command::Fullprove(a) => {
                let mut named = Self::new([&a.input, &a.wasm, &a.zkey], [&a.proof, &a.public]);
                named.inputs.extend(a.limits.sym.clone());
                named
            }
            Command::Witness(a) => {
                let mut named = Self::new([&a.wasm, &a.input], [&a.witness]);
                named.inputs.extend(a.limits.sym.clone());
                named
            }
            Command::Verify(a) => Self::new([&a.vkey, &a.public, &a.proof], []),
            Command::Check(a) => {
                let mut named = Self::new([&a.r1cs, &a.witness], []);
                named.inputs.extend(a.sym.clone());
                named
            }
            Command::Setup(a) => Self::new([&a.r1cs], [&a.zkey]),
            Command::ExportVkey(a) => Self::new([&a.zkey], [&a.vkey]),
            Command::Inspect(a) => Self::new([&a.file], []),
            Command::Topo(a) => Self { inputs: a.source.from.iter().cloned().collect(), ..Self::default() },
            Command::Plan(a) => Self { inputs: a.source.from.iter().cloned().collect(), ..Self::default() },
            Command::Hash { what: Hash::Poseidon(a) } => Self::new([&a.input], [&a.output]),
            Command::Reduce(a) => Self::new([&a.input], []),
            Command::Sort(a) => Self::new([&a.input], [&a.output]),
            Command::Bench { what } => Self::of_bench(what),
            Command::Doctor(_) | Command::Completions { .. } | Command::Help { .. } | Command::Snarkjs(_) => {
                Self::default()
            }
        }
    }

    fn of_bench(what: &Bench) -> Self {
        let mut named = Self::default();
        let rows = match what {
            Bench::Fabric(what) => {
                let (calls, sweep, options) = what.options();
                named.outputs.extend(sweep.and_then(|sweep| sweep.plot.clone()));
                named.inputs.extend(options.and_then(|options| options.nccl.clone()));
                calls.json.as_ref()
            }
            Bench::Reduce(a) => {
                named.outputs.extend(a.options.sweep.plot.clone());
                named.inputs.extend(a.options.nccl.clone());
                a.options.sweep.calls.json.as_ref()
            }
            Bench::Groth16(a) => {
                named.inputs.extend(a.zkey.iter().chain(&a.witness).cloned());
                a.options.json.as_ref()
            }
            Bench::Setup { keep, options, .. } => {
                if let Some(folder) = keep {
                    named.outputs.extend(options.log_n.clone().flat_map(|log_n| bench::made(folder, log_n)));
                }
                options.json.as_ref()
            }
            Bench::Ntt(a) => a.json.as_ref(),
            Bench::Msm(a) => a.options.json.as_ref(),
            Bench::Poseidon { options, .. } => options.json.as_ref(),
            Bench::Sort(a) => a.json.as_ref(),
        };
        named.outputs.extend(rows.filter(|file| file.as_path() != Path::new(bench::STDOUT)).cloned());
        named
    }
}

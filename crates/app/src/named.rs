//! The files that a command line names. An output that is an input too, or another output, is refused before anything is opened.

use crate::cli::{Cli, Command, Source};
use crate::hash::Hash;
use std::path::{Path, PathBuf};
use tandem_console::failure::Outcome;
use tandem_console::files::{self, Named};

/// Fails where an output is an input or another output, under whatever name.
pub(crate) fn check(cli: &Cli) -> Outcome {
    let mut named = named(&cli.command);
    named.outputs.extend(cli.common.trace.clone());
    files::check(&named.outputs, &named.inputs)
}

/// What a command reads and what it writes.
fn named(command: &Command) -> Named {
    match command {
        Command::Prove(a) => {
            // Those of jobs that are waited for are looked at job by job.
            let Some(files) = a.files() else { return Named::default() };
            let owned = |paths: [&Path; 2]| paths.map(Path::to_path_buf).into();
            let inputs = owned([files.zkey, files.witness]);
            let mut named = Named { inputs, outputs: owned([files.proof, files.public]) };
            for [witness, proof, public] in a.more() {
                named.inputs.push(witness);
                named.outputs.extend([proof, public]);
            }
            named
        }
        Command::Fullprove(a) => {
            let mut named = new([&a.input, &a.wasm, &a.zkey], [&a.proof, &a.public]);
            named.inputs.extend(a.limits.sym.clone());
            named
        }
        Command::Witness(a) => {
            let mut named = new([&a.wasm, &a.input], [&a.witness]);
            named.inputs.extend(a.limits.sym.iter().chain(&a.r1cs).cloned());
            named
        }
        Command::Verify(a) => new([&a.vkey, &a.public, &a.proof], []),
        Command::Check(a) => {
            let mut named = new([&a.r1cs, &a.witness], []);
            named.inputs.extend(a.sym.clone());
            named
        }
        Command::Setup(a) => {
            let mut named = new([&a.r1cs], [&a.zkey]);
            named.inputs.extend(a.ptau.clone());
            named
        }
        Command::Ptau(a) => new([], [&a.ptau]),
        Command::ExportVkey(a) => new([&a.zkey], [&a.vkey]),
        Command::ExportSolidity(a) => new([&a.key], [&a.contract]),
        Command::Calldata(a) => new([&a.public, &a.proof], []),
        Command::Prepare(a) => new([&a.zkey], []),
        Command::Inspect(a) => new([&a.file], []),
        Command::Topo(a) => drawn(&a.source, a.format.draw.as_ref()),
        Command::Plan(a) => drawn(&a.source, a.format.draw.as_ref()),
        Command::Hash { what: Hash::Poseidon(a) } => new([&a.input], [&a.output]),
        Command::Reduce(a) => new([&a.input], []),
        Command::Sort(a) => new([&a.input], [&a.output]),
        Command::Bench(a) => a.files(),
        Command::Submit(a) => {
            Named { inputs: std::iter::once(&a.witness).chain(&a.r1cs).cloned().collect(), outputs: a.outputs() }
        }
        Command::Batch(a) => Named { inputs: a.files.clone(), outputs: a.outputs() },
        Command::Trace(a) => Named { inputs: vec![], outputs: vec![a.file.clone()] },
        Command::Wait(a) => Named { inputs: vec![], outputs: a.outputs() },
        Command::Serve(_)
        | Command::ServeWorker(_)
        | Command::ServeCalculator
        | Command::Status(_)
        | Command::Cancel(_)
        | Command::Keys { .. }
        | Command::Tokens { .. }
        | Command::Doctor(_)
        | Command::Run(_)
        | Command::Cache(_)
        | Command::Completions { .. }
        | Command::Help { .. }
        | Command::Snarkjs(_) => Named::default(),
    }
}

fn new<const I: usize, const O: usize>(inputs: [&PathBuf; I], outputs: [&PathBuf; O]) -> Named {
    Named { inputs: inputs.map(PathBuf::clone).into(), outputs: outputs.map(PathBuf::clone).into() }
}

/// The topology's file, and the drawing.
fn drawn(source: &Source, file: Option<&PathBuf>) -> Named {
    Named { inputs: source.from.iter().cloned().collect(), outputs: file.cloned().into_iter().collect() }
}

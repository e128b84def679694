//! The program `tandem`: reads the command line, calls the engine, says what happened.
//!
//! Results go to stdout or the named files, everything else to stderr. Exit status: 0 done; 1 the proof is not valid;
//! 2 bad usage or bad input; 3 the device or the program failed; 128 + N ended by signal N. An output file appears whole or not at
//! all.
#![forbid(unsafe_code)]

mod batch;
mod beside;
mod cache;
mod check;
mod circuit;
mod cli;
mod commands;
mod doctor;
mod environment;
mod explain;
mod hash;
mod inspect;
mod jobs;
mod last;
mod many;
mod named;
mod native;
mod plan;
mod prepare;
mod reduce;
mod run;
mod serve;
mod setup;
mod sort;
mod source;
mod tokens;
mod topo;
mod usage;
mod version;
mod wait;

use cli::{Cli, Command};
use std::process::ExitCode;
use tandem_console::failure::{self, Failure, Outcome};
use tandem_console::session::Session;
use tandem_console::{interrupt, report};

fn main() -> ExitCode {
    if let Some(status) = native::become_program() {
        return status;
    }
    last::install();
    tandem_formats::give_memory_back();
    let cli = match usage::parse() {
        Ok(cli) => cli,
        Err(end) => return failure::status([end]),
    };
    if matches!(cli.command, Command::Serve(_)) {
        // What callers send lies in such pieces.
        tandem_formats::keep_small_pieces();
    }
    environment::check();
    if let Some(threads) = cli.common.threads {
        tandem_ops::threads::limit(threads);
    }
    interrupt::install();
    let [command, trace] = run(&cli);
    failure::status([command, trace, report::printed()])
}

/// What became of the command and of its trace, which is written whatever the command's end.
fn run(cli: &Cli) -> [Outcome; 2] {
    match named::check(cli).and_then(|()| Session::new(&cli.common)) {
        Ok(session) => [command(&session, &cli.command), session.finish()],
        Err(failure) => [Err(failure), Ok(())],
    }
}

fn command(session: &Session, command: &Command) -> Outcome {
    match command {
        Command::Prove(args) => commands::prove(session, args),
        Command::Fullprove(args) => commands::fullprove(session, args),
        Command::Prepare(args) => prepare::run(session, args),
        Command::Witness(args) => commands::witness(session, args),
        Command::Verify(args) => commands::verify(session, args),
        Command::Check(args) => check::run(session, args),
        Command::Setup(args) => setup::run(session, args),
        Command::Ptau(args) => setup::ptau(session, args),
        Command::ExportVkey(args) => commands::export_vkey(session, args),
        Command::ExportSolidity(args) => commands::export_solidity(session, args),
        Command::Calldata(args) => commands::calldata(session, args),
        Command::Hash { what } => hash::run(session, what),
        Command::Reduce(args) => reduce::run(session, args),
        Command::Sort(args) => sort::run(session, args),
        Command::Inspect(args) => inspect::run(args),
        Command::Doctor(args) => doctor::run(session, args),
        Command::Cache(args) => cache::run(args),
        Command::Topo(args) => topo::run(args),
        Command::Plan(args) => plan::run(session, args),
        Command::Run(args) => run::run(args),
        Command::Bench(args) => tandem_bench::run(session, args),
        Command::Serve(args) => serve::run(session, args),
        Command::ServeWorker(args) => serve::worker(session, args),
        Command::ServeCalculator => serve::calculator(),
        Command::Submit(args) => jobs::submit(session, args),
        Command::Batch(args) => batch::run(session, args),
        Command::Trace(args) => batch::trace(args),
        Command::Status(args) => jobs::status(args),
        Command::Wait(args) => jobs::wait(session, args),
        Command::Cancel(args) => jobs::cancel(args),
        Command::Keys { what } => jobs::keys(what),
        Command::Tokens { what } => tokens::run(what),
        Command::Completions { shell } => cli::completions(*shell),
        Command::Help { topic } => usage::help(topic),
        // They have been put into our words.
        Command::Snarkjs(_) => Err(Failure::input("this is a command of snarkjs; see tandem help snarkjs")),
    }
}

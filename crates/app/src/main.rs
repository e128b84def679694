//! The program `tandem`: reads the command line, calls the engine, says what happened.
//!
//! Results go to stdout or the named files, everything else to stderr. Exit status: 0 done; 1 the proof is not valid;
//! 2 bad usage or bad input; 3 the device or the program failed; 128 + N ended by signal N. An output file appears whole or not at
//! all.
#![forbid(unsafe_code)]

mod check;
mod cli;
mod commands;
mod doctor;
mod hash;
mod inspect;
mod last;
mod many;
mod named;
mod plan;
mod reduce;
mod sort;
mod source;
mod topo;

use clap::error::ErrorKind;
use clap::Parser;
use cli::{Cli, Command};
use std::io::Write;
use std::process::ExitCode;
use tandem_console::failure::{self, Failure, Outcome};
use tandem_console::session::Session;
use tandem_console::{interrupt, report};

fn main() -> ExitCode {
    last::install();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
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
        Command::Witness(args) => commands::witness(session, args),
        Command::Verify(args) => commands::verify(session, args),
        Command::Check(args) => check::run(session, args),
        Command::Setup(args) => commands::setup(session, args),
        Command::ExportVkey(args) => commands::export_vkey(session, args),
        Command::Hash { what } => hash::run(session, what),
        Command::Reduce(args) => reduce::run(session, args),
        Command::Sort(args) => sort::run(session, args),
        Command::Inspect(args) => inspect::run(args),
        Command::Doctor(args) => doctor::run(session, args),
        Command::Topo(args) => topo::run(args),
        Command::Plan(args) => plan::run(args, session.quiet),
        Command::Bench(args) => tandem_bench::run(session, args),
        Command::Completions { shell } => cli::completions(*shell),
    }
}

/// Help and version are no errors; a usage error is one line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| std::io::stdout().flush());
        return failure::status([report::judge(printed.err().as_ref())]);
    }
    let text = error.to_string();
    let problem = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => "a command is missing",
        _ => text.split("\n\nUsage:").next().unwrap_or(&text),
    };
    let problem = problem.split("\n\nFor more information").next().unwrap_or(problem);
    let line = problem.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line).trim_end_matches('.');
    failure::status([Err(Failure::input(format!("{line}; see tandem --help")))])
}

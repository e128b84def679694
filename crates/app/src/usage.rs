//! How the command line is read: help, version, and what is said of a wrong one.

use crate::cli::{self, Cli};
use crate::environment;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::io::Write;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::{color, report};

/// Reads the command line. Where nothing more is to be done, that is the error: the outcome that the program ends with.
pub(crate) fn parse() -> Result<Cli, Outcome> {
    environment::forget_empty();
    let args: Vec<OsString> = std::env::args_os().collect();
    let choice = color::wanted(&args);
    color::choose(choice);
    // To say what there is takes longer than to read a command line, and which options are listed where longer still. Only help and what
    // is wrong need it.
    let word = args.iter().skip(1).filter_map(|arg| arg.to_str()).find(|arg| !arg.starts_with('-'));
    let alone = word.and_then(cli::alone).unwrap_or_else(Cli::command);
    let matches = alone
        .color(choice)
        .try_get_matches_from(&args)
        .or_else(|_| cli::command().color(choice).try_get_matches_from(&args));
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| end(&error, &args))?;
    cli.in_our_words().map_err(Err)
}

/// `tandem help`, of a command or of something else.
pub(crate) fn help(topic: &[String]) -> Outcome {
    match topic {
        [word] if word == "environment" => report::result(&environment::help()),
        [word] if word == "snarkjs" || word == "rapidsnark" => report::result(&cli::snarkjs::help()),
        words => {
            let args: Vec<OsString> =
                ["tandem"].iter().map(OsString::from).chain(words.iter().map(OsString::from)).collect();
            let asked = args.iter().cloned().chain(["--help".into()]);
            let choice = color::wanted(&std::env::args_os().collect::<Vec<_>>());
            if let Err(error) = cli::command().color(choice).try_get_matches_from(asked) {
                return end(&error, &args);
            }
        }
    }
    Ok(())
}

/// Help and version are no errors; a usage error is one line.
fn end(error: &clap::Error, args: &[OsString]) -> Outcome {
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| std::io::stdout().flush());
        return report::judge(printed.err().as_ref());
    }
    let text = error.to_string();
    let problem = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => "a command is missing",
        _ => text.split("\n\nUsage:").next().unwrap_or(&text),
    };
    let problem = problem.split("\n\nFor more information").next().unwrap_or(problem);
    let line = problem.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line).trim_end_matches('.').replace(" tip: ", "; ");
    let from = variable(error, args).map_or(String::new(), |name| format!(" (set by {name})"));
    Err(Failure::input(format!("{line}{from}; see {} --help", path(args))))
}

/// The variable of the environment that holds the wrong value, if it is not the command line.
fn variable(error: &clap::Error, args: &[OsString]) -> Option<&'static str> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let option = option.split([' ', '=']).next()?;
    let is_given = args.iter().filter_map(|arg| arg.to_str()).any(|arg| arg.split('=').next() == Some(option));
    environment::of_option(option).filter(|_| !is_given)
}

/// The command that a command line names, as far as there is one.
fn path(args: &[OsString]) -> String {
    let mut command = cli::command();
    let mut path = String::from("tandem");
    for word in args.iter().skip(1).filter_map(|arg| arg.to_str()).filter(|arg| !arg.starts_with('-')) {
        let Some(below) = command.find_subcommand(word).cloned() else { continue };
        path = format!("{path} {}", below.get_name());
        command = below;
    }
    path
}

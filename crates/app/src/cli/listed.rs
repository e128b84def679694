//! The command line, with each option listed only where it does something. It is taken everywhere, so that a script can give the same
//! options to all commands.

use super::{Cli, Fullprove, Prove, Verify, Witness};
use clap::{Arg, Args, CommandFactory};
use tandem_console::options::Common;

/// Options of every command that do nothing for some, with those for which they do something. A word stands for all below it.
const LISTED: [(&str, &[&str]); 6] = [
    ("device", &["prove", "fullprove", "prepare", "hash", "reduce", "sort", "bench", "doctor", "serve"]),
    ("schedule", &["prove", "fullprove", "bench groth16", "bench porep", "serve"]),
    ("gpu_memory", &["prove", "fullprove", "bench groth16", "bench plonk", "bench fflonk", "bench porep", "serve"]),
    (
        "threads",
        &[
            "prove",
            "fullprove",
            "prepare",
            "verify",
            "check",
            "setup",
            "ptau",
            "export-vkey",
            "export-solidity",
            "inspect",
            "hash",
            "reduce",
            "sort",
            "bench",
            "doctor",
            "serve",
        ],
    ),
    (
        "trace",
        &[
            "prove",
            "fullprove",
            "prepare",
            "witness",
            "verify",
            "check",
            "setup",
            "ptau",
            "export-vkey",
            "export-solidity",
            "hash",
            "reduce",
            "sort",
            "plan",
            "bench",
        ],
    ),
    ("verbose", &["prove", "fullprove", "prepare", "setup"]),
];

/// The command line as its help lists it. What it takes is the same.
pub(crate) fn command() -> clap::Command {
    let whole = Cli::command();
    let shared: Vec<Arg> = whole.get_arguments().cloned().collect();
    // What works in the words of snarkjs is listed as in ours.
    whole.mut_subcommands(|command| match command.is_hide_set() {
        true => command,
        false => hide(command, "", &shared),
    })
}

/// The command line of one command that takes little time itself. A right one is taken as by [`Cli`]; of a wrong one only the whole can say
/// what is wrong, and there is no help.
pub(crate) fn alone(command: &str) -> Option<clap::Command> {
    type Arguments = fn(clap::Command) -> clap::Command;
    const ALONE: [(&str, Arguments); 4] = [
        ("prove", Prove::augment_args),
        ("fullprove", Fullprove::augment_args),
        ("witness", Witness::augment_args),
        ("verify", Verify::augment_args),
    ];
    let (name, with_arguments) = ALONE.into_iter().find(|(name, _)| *name == command)?;
    let one = with_arguments(clap::Command::new(name));
    Some(Common::augment_args(clap::Command::new("tandem")).subcommand(one))
}

fn hide(command: clap::Command, path: &str, shared: &[Arg]) -> clap::Command {
    let path = format!("{path} {}", command.get_name()).trim().to_string();
    let is_below = |word: &str| path == word || path.starts_with(&format!("{word} "));
    let leads_to = |word: &str| word.starts_with(&format!("{path} "));
    let is_idle = |arg: &&Arg| {
        let listed = LISTED.iter().find(|(id, _)| arg.get_id() == id);
        listed.is_some_and(|(_, commands)| !commands.iter().any(|word| is_below(word) || leads_to(word)))
    };
    // An argument of a command comes before the one of that name for all.
    let idle: Vec<Arg> = shared.iter().filter(is_idle).map(|arg| arg.clone().hide(true)).collect();
    command.args(idle).mut_subcommands(|below| hide(below, &path, shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(path: &[&str]) -> String {
        let args = [&["tandem"], path, &["--help"]].concat();
        command().try_get_matches_from(args).unwrap_err().to_string()
    }

    #[test]
    fn options_are_listed_where_they_do_something() {
        let listed = |path: &[&str]| {
            let help = help(path);
            ["--device", "--schedule", "--threads", "--trace", "--verbose"].map(|option| help.contains(option))
        };
        assert_eq!(listed(&["prove"]), [true; 5]);
        assert_eq!(listed(&["verify"]), [false, false, true, true, false]);
        assert_eq!(listed(&["setup"]), [false, false, true, true, true]);
        assert_eq!(listed(&["completions"]), [false; 5]);
        assert_eq!(listed(&["plan"]), [false, false, false, true, false]);
        assert_eq!(listed(&["hash", "poseidon"]), [true, false, true, true, false]);
        assert_eq!(listed(&["bench", "groth16"]), [true, true, true, true, false]);
        assert_eq!(listed(&["bench", "ntt"]), [true, false, true, true, false]);
    }

    /// What a command takes alone is what it takes among the others.
    #[test]
    fn a_command_alone_is_the_same() {
        let whole = Cli::command();
        for name in ["prove", "fullprove", "witness", "verify"] {
            let alone = alone(name).unwrap();
            let [of_alone, of_whole] = [&alone, &whole].map(|cli| cli.find_subcommand(name).unwrap());
            let arguments =
                |command: &clap::Command| command.get_arguments().map(|a| format!("{a:?}")).collect::<Vec<_>>();
            let groups = |command: &clap::Command| command.get_groups().map(|g| format!("{g:?}")).collect::<Vec<_>>();
            assert_eq!((arguments(of_alone), groups(of_alone)), (arguments(of_whole), groups(of_whole)), "{name}");
            assert_eq!(arguments(&alone), arguments(&whole));
            alone.debug_assert();
        }
        assert!(super::alone("setup").is_none());
    }

    #[test]
    fn options_are_taken_everywhere() {
        use clap::FromArgMatches;
        for args in [
            &["--device", "sim:3", "verify", "a", "b", "c"][..],
            &["verify", "a", "b", "c", "--device", "sim:3"],
            &["verify", "--device", "sim:3", "a", "b", "c"],
            &["bench", "--device", "sim:3", "ntt"],
            &["hash", "poseidon", "a", "b", "--device", "sim:3"],
        ] {
            let matches = command().try_get_matches_from([&["tandem"], args].concat()).unwrap();
            let cli = Cli::from_arg_matches(&matches).unwrap();
            assert_eq!(cli.common.device, tandem_engine::DeviceChoice::Sim(3), "{args:?}");
        }
    }
}

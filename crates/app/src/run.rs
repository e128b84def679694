//! `tandem run`: starts a program several times, as the processes of one team.

use clap::Args;
use std::ffi::OsString;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::interrupt;
use tandem_fabric::{launch, Launch, Launched, Node};

#[derive(Args)]
pub(crate) struct Run {
    /// How many processes, 1 to 32 in all; of several nodes, on this one
    #[arg(short = 'n', long, value_name = "N")]
    processes: usize,
    /// How many nodes the processes are on, each with as many: run this on all of them
    #[arg(long, value_name = "N", requires_all = ["node", "at"])]
    nodes: Option<usize>,
    /// Which node this is, from 0
    #[arg(long, value_name = "I", requires = "nodes")]
    node: Option<usize>,
    /// Where the first process of node 0 listens for all others
    #[arg(long, value_name = "HOST:PORT", requires = "nodes")]
    at: Option<String>,
    /// The program, and all that it gets
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Run) -> Outcome {
    // The processes are ended before this one is.
    interrupt::drain();
    let node = match (args.node, args.nodes, &args.at) {
        (Some(index), Some(count), Some(address)) => Some(Node { index, count, address: address.clone() }),
        _ => None,
    };
    let what = Launch { command: args.command.clone(), processes: args.processes, node };
    match launch(&what, interrupt::asked).map_err(|error| Failure::input(error.to_string()))? {
        Launched::Done => Ok(()),
        Launched::Asked => interrupt::check(),
        end @ Launched::Failed(process, status) => {
            Err(Failure::ended(end.status(), format!("{process}: {status}; the others were ended")))
        }
    }
}

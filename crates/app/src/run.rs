//! `tandem run`: starts a program several times, as the processes of one team.

use clap::Args;
use std::ffi::OsString;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::interrupt;
use tandem_fabric::{launch, Launch, Launched};

#[derive(Args)]
pub(crate) struct Run {
    /// How many processes, 1 to 32
    #[arg(short = 'n', long, value_name = "N")]
    processes: usize,
    /// The program, and all that it gets
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Run) -> Outcome {
    // The processes are ended before this one is.
    interrupt::drain();
    let what = Launch { command: args.command.clone(), processes: args.processes };
    match launch(&what, interrupt::asked).map_err(|error| Failure::input(error.to_string()))? {
        Launched::Done => Ok(()),
        Launched::Asked => interrupt::check(),
        end @ Launched::Failed(process, status) => {
            Err(Failure::ended(end.status(), format!("{process}: {status}; the others were ended")))
        }
    }
}

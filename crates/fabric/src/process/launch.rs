//! Starts the processes of a team, passes on what they print, and sees that all of them end.

use super::meeting::Meeting;
use super::Process;
use crate::{Error, Result};
use rustix::process::{self, kill_process_group, waitid, Pid, Signal, WaitId, WaitIdOptions};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{channel, Sender};
use std::time::{Duration, Instant};

const OP: &str = "run processes";
/// Between two looks at the processes.
const LOOK: Duration = Duration::from_millis(5);
/// How long a process that was asked to end (SIGTERM) may take.
const GRACE: Duration = Duration::from_secs(2);
/// How long what was printed last may take to arrive when all have ended.
const DRAIN: Duration = Duration::from_secs(1);
/// Bytes of a line that are kept together.
const LINE: u64 = 64 << 10;

/// What is started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// How many processes of it, on this node.
    pub processes: usize,
    /// Which of several nodes this is.
    pub node: Option<Node>,
}

/// One of several nodes, each of which starts as many processes. The secret of the meeting is in the environment of all
/// ([`Meeting::NODES`]).
#[derive(Debug, Clone)]
pub struct Node {
    /// Its number, from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
    /// Where process 0, which is of node 0, listens: `HOST:PORT`.
    pub address: String,
}

/// How it ended; no process is left in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launched {
    /// Every process has ended well.
    Done,
    /// This one was the first that did not, and the others were ended.
    Failed(Process, ExitStatus),
    /// The caller asked to end them.
    Asked,
}

impl Launched {
    /// The exit status that it stands for; 128 and the signal's number for a process that was ended by one.
    pub fn status(&self) -> u8 {
        match self {
            Launched::Done => 0,
            Launched::Failed(_, status) => {
                let code = status.code().or(status.signal().map(|signal| 128 + signal));
                code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
            }
            Launched::Asked => 128 + Signal::TERM.as_raw() as u8,
        }
    }
}

/// Starts `what.processes` processes, each with the variables of [`Meeting::from_env`], without input, and in a process group of its own.
/// Each line that one prints goes to this process's output with the rank before it. When a process ends otherwise than with status 0, or
/// `asked` says so, all are asked to end by SIGTERM, and ended by SIGKILL two seconds later, with what they have started. They end with
/// the thread that calls this, too.
///
/// # Errors
/// No processes, or more than [`crate::MAX_PES`]; the program cannot be started: then none is left.
pub fn launch(what: &Launch, asked: impl Fn() -> bool) -> Result<Launched> {
    let Launch { command, processes, node } = what;
    let (node, nodes) = node.as_ref().map_or((0, 1), |node| (node.index, node.count));
    let all = processes.saturating_mul(nodes);
    if node >= nodes || all > crate::MAX_PES {
        let most = crate::MAX_PES;
        return Err(Error::processes(
            OP,
            format!("node {node} of {nodes} with {processes} processes; there are at most {most} in all"),
        ));
    }
    if !(1..=crate::MAX_PES).contains(processes) {
        return Err(Error::processes(OP, format!("{processes} processes; there are 1 to {}", crate::MAX_PES)));
    }
    let Some((program, args)) = command.split_first() else {
        return Err(Error::processes(OP, "there is no program to run"));
    };
    let place = Meeting::unique();
    let (ended, ends) = channel();
    let mut running = Running {
        children: Vec::new(),
        place: place.clone(),
        first: node * processes,
        node: what.node.as_ref().map(|_| node),
    };
    let (rank_name, size_name) = Meeting::RANK_AND_SIZE;
    let first = node * processes;
    // Found out here, and not once by each process.
    if let Some(node) = &what.node {
        let secret = std::env::var(Meeting::NODES.2).unwrap_or_default();
        Meeting::new(&place, first, all)?.across(nodes, &node.address, &secret)?;
    }
    for rank in first..first + processes {
        let mut command = Command::new(program);
        command.args(args).env(Meeting::PLACE, &place);
        command.env(rank_name, rank.to_string()).env(size_name, all.to_string());
        if let Some(node) = &what.node {
            command.env(Meeting::NODES.0, nodes.to_string()).env(Meeting::NODES.1, &node.address);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let parent = process::getpid();
        let with_parent = move || {
            // However this one ends, the other does with it; it may have ended before.
            process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if process::getppid() == Some(parent) {
                Ok(())
            } else {
                Err(std::io::ErrorKind::NotConnected.into())
            }
        };
        // SAFETY: between fork and exec it makes two system calls, and touches neither memory nor locks.
        unsafe { command.pre_exec(with_parent) };
        let failed = |error: std::io::Error| Error::processes(OP, format!("{}: {error}", program.to_string_lossy()));
        let mut child = command.spawn().map_err(failed)?;
        let streams = (child.stdout.take(), child.stderr.take());
        running.children.push(Some(child));
        let (out, err) = (
            streams.0.map(|out| pass_on(rank, out, false, ended.clone())),
            streams.1.map(|err| pass_on(rank, err, true, ended.clone())),
        );
        out.transpose().and(err.transpose()).map_err(failed)?;
    }
    drop(ended);
    let end = running.wait(asked);
    // One that has left its process group may still hold an output open.
    let until = Instant::now() + DRAIN;
    while ends.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
    Ok(end)
}

/// Passes lines on with the rank before each, in a thread, until there are no more.
fn pass_on(rank: usize, from: impl Read + Send + 'static, is_error: bool, ended: Sender<()>) -> std::io::Result<()> {
    let mut from = BufReader::new(from);
    let work = move || {
        let mut line = Vec::new();
        while from.by_ref().take(LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let mut text = format!("[{rank}] ").into_bytes();
            text.append(&mut line);
            if text.last() != Some(&b'\n') {
                text.push(b'\n');
            }
            // At once, so that lines stay whole; where nobody listens there is nobody to tell.
            let _ = match is_error {
                true => std::io::stderr().lock().write_all(&text),
                false => {
                    let mut out = std::io::stdout().lock();
                    out.write_all(&text).and_then(|()| out.flush())
                }
            };
        }
        let _ = ended.send(());
    };
    std::thread::Builder::new().name(format!("output {rank}")).spawn(work).map(drop)
}

/// Processes that have not all ended. When this goes they do.
struct Running {
    children: Vec<Option<Child>>,
    place: String,
    /// The rank of the first.
    first: usize,
    node: Option<usize>,
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id() as i32)
}

/// Whether a process has ended; its number stays taken.
fn has_ended(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    pid(child).is_none_or(|pid| waitid(WaitId::Pid(pid), options).is_ok_and(|status| status.is_some()))
}

impl Running {
    /// Waits for all; once one has failed, or `asked` says so, not for long.
    fn wait(&mut self, asked: impl Fn() -> bool) -> Launched {
        let mut end = Launched::Done;
        let mut last = None;
        while self.children.iter().any(Option::is_some) {
            for (i, slot) in self.children.iter_mut().enumerate() {
                let Some(child) = slot.take_if(|child| has_ended(child)) else { continue };
                let process = Process { rank: self.first + i, pid: child.id(), node: self.node };
                let status = reap(child);
                if end == Launched::Done && !status.is_some_and(|status| status.success()) {
                    end = Launched::Failed(process, status.unwrap_or_default());
                }
            }
            if end == Launched::Done && asked() {
                end = Launched::Asked;
            }
            if end != Launched::Done {
                let last = *last.get_or_insert_with(|| {
                    self.strike(Signal::TERM);
                    Instant::now() + GRACE
                });
                if Instant::now() >= last {
                    self.strike(Signal::KILL);
                }
            }
            std::thread::sleep(LOOK);
        }
        end
    }

    fn strike(&self, blow: Signal) {
        self.children.iter().flatten().filter_map(pid).for_each(|pid| _ = kill_process_group(pid, blow));
    }
}

/// Ends what a process that has ended has left in its group, which its number keeps from being another's, and how it ended.
fn reap(mut child: Child) -> Option<ExitStatus> {
    if let Some(pid) = pid(&child) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    child.wait().ok()
}

impl Drop for Running {
    fn drop(&mut self) {
        self.strike(Signal::KILL);
        self.children.iter_mut().filter_map(Option::take).for_each(|child| _ = reap(child));
        // Processes that did not all meet leave sockets there.
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

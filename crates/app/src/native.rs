//! Runs the program that circom --c made of a circuit.
//!
//! It is a program like any other and may do what the user may: the limits stop one that runs away, and are no sandbox. Inputs and
//! witness pass through memory that has no name in any folder (memfd), so nothing secret is on a disk, and nothing is left to remove.
//!
//! This program starts itself, takes limits upon itself and then becomes the circuit's ([`become_program`]): limits that must be there
//! before the first instruction are set with no unsafe code.

use crate::cli;
use nix::fcntl::{fcntl, FcntlArg, FdFlag};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::resource::{setrlimit, Resource};
use nix::sys::signal::{killpg, Signal};
use nix::sys::wait::{waitid, Id, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::session::Session;
use tandem_console::{files, interrupt};
use zeroize::Zeroizing;

/// The first argument of this program where it is to become a circuit's.
const WORD: &str = "--become-program";
/// The exit status of one that could not.
const CANNOT: u8 = 126;
/// How often the child is looked after.
const LOOK: Duration = Duration::from_millis(5);
/// How long what the child wrote last may take to arrive when it has ended.
const DRAIN: Duration = Duration::from_millis(500);
/// Lines that a program may print, and bytes of one.
const LINES_MAX: usize = 10_000;
const LINE_BYTES_MAX: u64 = 4096;
/// Lines that wait to be told; a program that prints more waits.
const LINES_WAITING: usize = 64;

/// The witness file that the program writes for these inputs.
pub(crate) fn run(
    session: &Session,
    program: &Path,
    json: Zeroizing<Vec<u8>>,
    limits: &cli::Limits,
) -> Outcome<Zeroizing<Vec<u8>>> {
    let cannot =
        |doing: &str, e: std::io::Error| Failure::device(format!("cannot {doing} for {}: {e}", program.display()));
    // circom's program finds its .dat file beside the name that it was started by.
    let whole = program.canonicalize().map_err(|e| Failure::file(program, format!("cannot open: {e}")))?;
    let mut input = unnamed(c"tandem-input").map_err(|e| cannot("make memory for the inputs", e))?;
    input.write_all(&json).map_err(|e| cannot("hand over the inputs", e))?;
    drop(json);
    let output = unnamed(c"tandem-witness").map_err(|e| cannot("make memory for the witness", e))?;

    let bytes = limits.max_memory << 20;
    let begun = Instant::now();
    let child = start(&whole, bytes, [&input, &output]).map_err(|e| cannot("start a process", e))?;
    let mut running = Running::new(session, child);
    let ended = running.wait(limits.max_seconds.map(|seconds| begun + Duration::from_secs(seconds)));
    let status = running.end().map_err(|e| cannot("wait", e))?;
    match ended {
        Ended::Asked => return Err(tandem_engine::Error::Interrupted.into()),
        Ended::Late => {
            let seconds = limits.max_seconds.unwrap_or(0);
            let why = format!("the circuit's program was stopped after {seconds} s; --max-seconds sets the limit");
            return Err(Failure::file(program, why));
        }
        Ended::ByItself => {}
    }
    if !status.success() {
        return Err(Failure::file(program, described(status, &running.last_words, limits.max_memory)));
    }
    files::read(Path::new(&path_of(&output)), bytes)
}

/// How the program ended, in words.
fn described(status: ExitStatus, last_words: &str, mib: u64) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(number)) => {
            let name = Signal::try_from(number).map_or("a signal", Signal::as_str);
            format!("was ended by {name}, with {mib} MiB of memory (--max-memory)")
        }
        (None, None) => "ended".into(),
    };
    let words = if last_words.is_empty() { "and said nothing".into() } else { format!("and said: {last_words}") };
    format!("the circuit's program {how} {words}")
}

/// Memory that is read and written as a file, and goes with the last who has it open.
fn unnamed(name: &CStr) -> std::io::Result<File> {
    Ok(memfd_create(name, MFdFlags::MFD_CLOEXEC)?.into())
}

fn path_of(file: &File) -> String {
    format!("/dev/fd/{}", file.as_raw_fd())
}

/// Starts the program in a group of its own, with the two files open and no other.
fn start(program: &Path, bytes: u64, files: [&File; 2]) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.args([WORD, &bytes.to_string(), &std::process::id().to_string()]).arg(program);
    command.args(files.map(path_of)).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let keep = |flags: FdFlag| files.iter().try_for_each(|file| fcntl(file, FcntlArg::F_SETFD(flags)).map(drop));
    keep(FdFlag::empty())?;
    let child = command.spawn();
    keep(FdFlag::FD_CLOEXEC)?;
    child
}

/// Where this process was started to become a circuit's program: limits itself and does. Returns only what came of it if that fails.
pub(crate) fn become_program() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != WORD {
        return None;
    }
    let rest: Vec<OsString> = args.collect();
    let why = limited(&rest).map_or_else(|error| error, |never| match never {});
    let _ = writeln!(std::io::stderr(), "cannot start: {why}");
    Some(CANNOT.into())
}

fn limited(args: &[OsString]) -> std::io::Result<std::convert::Infallible> {
    let [bytes, parent, program, input, output] = args else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let number =
        |text: &OsString| text.to_str().and_then(|text| text.parse::<u64>().ok()).ok_or(ErrorKind::InvalidInput);
    let (bytes, parent) = (number(bytes)?, number(parent)?);
    // However the parent ends, this one does with it; the parent may have ended before.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    if u64::from(std::os::unix::process::parent_id()) != parent {
        return Err(ErrorKind::NotConnected.into());
    }
    // Core files are off already: the parent's limit holds here.
    setrlimit(Resource::RLIMIT_FSIZE, bytes, bytes)?;
    setrlimit(Resource::RLIMIT_AS, bytes, bytes)?;
    let text = |word: &OsString| CString::new(word.as_bytes());
    let words = [text(program)?, text(input)?, text(output)?];
    // That of the standard library gives what is no program to a shell.
    match nix::unistd::execv(&words[0], &words)? {}
}

/// Why one waits no longer.
enum Ended {
    ByItself,
    Late,
    Asked,
}

/// The child, and what it prints.
struct Running<'a> {
    session: &'a Session,
    child: Child,
    lines: Receiver<(bool, String)>,
    told: usize,
    /// The last line of its stderr.
    last_words: String,
}

impl<'a> Running<'a> {
    fn new(session: &'a Session, mut child: Child) -> Self {
        let (sender, lines) = std::sync::mpsc::sync_channel(LINES_WAITING);
        if let Some(out) = child.stdout.take() {
            listen(out, false, sender.clone());
        }
        if let Some(err) = child.stderr.take() {
            listen(err, true, sender);
        }
        Self { session, child, lines, told: 0, last_words: String::new() }
    }

    fn wait(&mut self, until: Option<Instant>) -> Ended {
        loop {
            self.hear(LOOK);
            if interrupt::asked() {
                return Ended::Asked;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ended::Late;
            }
            if self.has_ended() {
                return Ended::ByItself;
            }
        }
    }

    /// Whether the child has ended; its number stays taken.
    fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(waitid(Id::Pid(self.pid()), flags), Ok(WaitStatus::StillAlive) | Err(nix::errno::Errno::EINTR))
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Ends the child with all that it started in its group, and hears what is left.
    fn end(&mut self) -> std::io::Result<ExitStatus> {
        let _ = killpg(self.pid(), Signal::SIGKILL);
        let status = self.child.wait();
        // A process that left the group may hold the pipes.
        let until = Instant::now() + DRAIN;
        while Instant::now() < until && self.hear(LOOK) {}
        status
    }

    /// Tells lines that come within `time`; whether there may be more.
    fn hear(&mut self, time: Duration) -> bool {
        let (is_error, line) = match self.lines.recv_timeout(time) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => {
                // Nothing more to wait for but the end.
                std::thread::sleep(time);
                return false;
            }
        };
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let line = line.trim_end();
        self.told += 1;
        match self.told {
            told if told <= LINES_MAX => self.session.note(&format!("circuit: {line}")),
            told if told == LINES_MAX + 1 => self.session.note("circuit: (more lines are not shown)"),
            _ => {}
        }
        if is_error && !line.is_empty() {
            self.last_words = line.chars().take(1000).collect();
        }
        true
    }
}

/// Whatever happens on the way, the child does not outlive the wait for it.
impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = killpg(self.pid(), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// Sends what comes line by line, of a long line piece by piece.
fn listen(from: impl Read + Send + 'static, is_error: bool, to: SyncSender<(bool, String)>) {
    let mut from = BufReader::new(from);
    let read = move || loop {
        let mut line = Vec::new();
        match (&mut from).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if to.send((is_error, String::from_utf8_lossy(&line).into_owned())).is_err() {
            return;
        }
    };
    // Without a thread its lines are not heard, and a program that prints many ends for lack of a reader.
    let _ = std::thread::Builder::new().name("listener".into()).spawn(read);
}

//! How the processes of a team find each other.
//!
//! Those of a node meet in a folder that only their user may enter. Each listens there at a socket with its rank for a name, and is joined
//! by all of higher rank; when all are there the sockets' names and the folder go. Then they meet those of other nodes ([`super::nodes`]).

use super::nodes::{Far, Me, Nodes};
use super::socket::{Line, Peer, Socket};
use super::stream::Secret;
use super::Process;
use crate::{Error, Result};
use std::fs::DirBuilder;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

const OP: &str = "meet the other processes";
/// What a greeting begins with.
const MAGIC: &[u8; 8] = b"TANDEMPE";
/// The version of all that processes tell each other, and of what they keep in each other's memory.
const PROTOCOL: u32 = 1;
/// Between two attempts to reach a process that is not there yet.
const RETRY: Duration = Duration::from_millis(5);
/// How long one that has knocked may take to say who it is.
const GREETING: Duration = Duration::from_secs(5);
/// Bytes that the name of a place may have.
const MOST_PLACE: u64 = 256;

/// Where the processes of a team meet, and which of them this one is.
///
/// The place is the same for all and of one team alone: a folder (made where there is none; it must be the user's own and closed to
/// others), or `tcp:HOST:PORT`, where process 0 listens and tells the others the folder. Whoever waits longer than
/// [`Meeting::within`] says for whom.
#[derive(Debug, Clone)]
pub struct Meeting {
    place: Place,
    rank: usize,
    size: usize,
    within: Duration,
    /// The nodes, if there are several.
    nodes: Option<Nodes>,
    /// What this process says that it is; tests say other things.
    pub(super) version: String,
}

#[derive(Debug, Clone)]
enum Place {
    Folder(PathBuf),
    Tcp(String),
}

/// All are there.
pub(super) struct Met {
    pub(super) me: usize,
    pub(super) processes: Vec<Process>,
    /// By rank; none to itself.
    pub(super) lines: Vec<Option<Line>>,
    /// By rank: for processes of other nodes, the streams on which this one asks, and those on which it is asked.
    pub(super) asks: Vec<Option<TcpStream>>,
    pub(super) serves: Vec<TcpStream>,
    /// The ranks of this node.
    pub(super) near: Range<usize>,
}

/// What a process says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Greeting {
    protocol: u32,
    size: u32,
    rank: u32,
    pid: u32,
    version: String,
}

fn failed(problem: impl Into<String>) -> Error {
    Error::processes(OP, problem)
}

/// The variables by which programs that start processes tell them their rank and how many they are.
const LAUNCHERS: [(&str, &str); 4] = [
    ("TANDEM_RANK", "TANDEM_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// Variables that say how many of the processes are on this host.
const HERE: [(&str, &str); 1] = [("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")];

impl Meeting {
    /// The variable that names the place.
    pub const PLACE: &str = "TANDEM_MEET";
    /// The variables that say which process this is, and how many there are.
    pub const RANK_AND_SIZE: (&str, &str) = LAUNCHERS[0];
    /// The variables that say how many nodes there are, where process 0 listens, and the secret ([`Meeting::across`]).
    pub const NODES: (&str, &str, &str) = ("TANDEM_NODES", "TANDEM_NODES_AT", "TANDEM_NODES_SECRET");

    /// Process `rank` of `size` that meet at `place`.
    ///
    /// # Errors
    /// There is no such rank; the place is neither an absolute path nor `tcp:HOST:PORT`.
    pub fn new(place: &str, rank: usize, size: usize) -> Result<Self> {
        if rank >= size || size > crate::MAX_PES {
            let most = crate::MAX_PES;
            return Err(failed(format!("rank {rank} of {size} processes; there are 1 to {most}, with ranks from 0")));
        }
        let place = match place.strip_prefix("tcp:") {
            Some(address) if address.contains(':') => Place::Tcp(address.into()),
            None if Path::new(place).is_absolute() => Place::Folder(place.into()),
            _ => {
                return Err(failed(format!("the place {place:?} is neither an absolute path nor tcp:HOST:PORT")));
            }
        };
        let version = env!("CARGO_PKG_VERSION").into();
        Ok(Meeting { place, rank, size, within: Duration::from_secs(60), nodes: None, version })
    }

    /// Of processes on `nodes` nodes, which are sets of processes that share memory: each has as many as every other, with ranks that
    /// follow each other, and a place of its own, a folder. Process 0 listens at `address` (`HOST:PORT`), where the others reach it by TCP; from
    /// there on each listens at a port that it is given. All know the `secret`, which lets no stranger in; it is not sent. What they send is
    /// not encrypted: use it in a network that you trust.
    ///
    /// # Errors
    /// No nodes, or processes that do not divide among them; a place that is no folder; an address without a port; a secret of fewer than 16
    /// characters.
    pub fn across(mut self, nodes: usize, address: &str, secret: &str) -> Result<Self> {
        if nodes == 0 || !self.size.is_multiple_of(nodes) {
            let problem = format!("{} processes on {nodes} nodes; each node has as many as every other", self.size);
            return Err(failed(problem));
        }
        if !matches!(self.place, Place::Folder(_)) {
            return Err(failed("the processes of a node meet in a folder where there are several nodes"));
        }
        if address.rsplit_once(':').is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err()) {
            return Err(failed(format!("the address {address:?} of process 0 is not HOST:PORT")));
        }
        let guessed =
            || failed("the secret of the meeting has fewer than 16 characters; make one with: openssl rand -hex 16");
        let secret = Secret::new(secret).ok_or_else(guessed)?;
        self.nodes = (nodes > 1).then(|| Nodes { count: nodes, address: address.into(), secret });
        Ok(self)
    }

    /// The meeting that the environment names; `None` where this process was started alone. `tandem run` sets `TANDEM_RANK`,
    /// `TANDEM_SIZE` and `TANDEM_MEET`. Without the first two, those of Open MPI, PMI and Slurm count; a place that is not named follows
    /// from the name of PMIx's job or the number of Slurm's step. Where there are several nodes `TANDEM_NODES`, `TANDEM_NODES_AT` and
    /// `TANDEM_NODES_SECRET` say so.
    ///
    /// # Errors
    /// A variable is no number, or is missing; processes on other hosts.
    pub fn from_env() -> Result<Option<Self>> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    pub(super) fn from_variables(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        let number = |name: &str| -> Result<Option<usize>> {
            let Some(text) = get(name) else { return Ok(None) };
            text.parse().map(Some).map_err(|_| failed(format!("{name} is {text:?}, and not a number")))
        };
        for (rank, size) in LAUNCHERS {
            let (here, of) = match (number(rank)?, number(size)?) {
                (Some(here), Some(of)) => (here, of),
                (None, None) => continue,
                _ => return Err(failed(format!("{rank} and {size} go together, and one of them is not set"))),
            };
            let nodes = number(Self::NODES.0)?.unwrap_or(1);
            let hint = format!("or {}, {} and {} are set", Self::NODES.0, Self::NODES.1, Self::NODES.2);
            for (all, local) in HERE.iter().filter(|(all, _)| *all == size) {
                if nodes == 1 && number(local)?.is_some_and(|local| local != of) {
                    return Err(failed(format!(
                        "{all} and {local} differ: all processes of a team are of one host, {hint}"
                    )));
                }
            }
            if nodes == 1 && size == "SLURM_NTASKS" && number("SLURM_NNODES")?.is_some_and(|nodes| nodes > 1) {
                return Err(failed(format!(
                    "SLURM_NNODES is above 1: all processes of a team are of one host, {hint}"
                )));
            }
            let slurm = || Some(format!("slurm-{}-{}", get("SLURM_JOB_ID")?, get("SLURM_STEP_ID")?));
            let named = || {
                let name = get("PMIX_NAMESPACE").or_else(slurm)?;
                let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
                Some(in_temporary(&name.chars().map(plain).collect::<String>()))
            };
            let unnamed =
                || failed(format!("{rank} is set, and {} is not: it names where the processes meet", Self::PLACE));
            let place = get(Self::PLACE).or_else(named).ok_or_else(unnamed)?;
            let meeting = Self::new(&place, here, of)?;
            if nodes == 1 {
                return Ok(Some(meeting));
            }
            let set = |name: &str| {
                get(name).ok_or_else(|| failed(format!("{} is above 1, and {name} is not set", Self::NODES.0)))
            };
            return meeting.across(nodes, &set(Self::NODES.1)?, &set(Self::NODES.2)?).map(Some);
        }
        Ok(None)
    }

    /// A new place that no other team has. Who starts processes, or one of them, makes it and tells it to all.
    pub fn unique() -> String {
        let random = || RandomState::new().build_hasher().finish();
        in_temporary(&format!("{}-{:016x}{:016x}", std::process::id(), random(), random()))
    }

    /// How long the others are waited for: a minute, unless this says otherwise.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.within = time;
        self
    }

    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many processes meet.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many nodes they are on.
    pub fn nodes(&self) -> usize {
        self.nodes.as_ref().map_or(1, |nodes| nodes.count)
    }

    /// The ranks of this process's node.
    fn near(&self) -> Range<usize> {
        let each = self.size / self.nodes();
        let first = self.rank / each * each;
        first..first + each
    }

    /// A process of this node.
    fn process(&self, rank: usize, pid: u32) -> Process {
        Process { rank, pid, node: self.nodes.is_some().then(|| self.rank * self.nodes() / self.size) }
    }

    /// Waits until all are there. `patience` is how long a message may take to leave later.
    pub(super) fn meet(self, patience: Duration) -> Result<Met> {
        let end = Instant::now() + self.within;
        let told = Arc::new(AtomicBool::new(false));
        let folder = match &self.place {
            Place::Folder(folder) => folder.clone(),
            Place::Tcp(address) if self.rank == 0 => {
                let folder = PathBuf::from(Self::unique());
                tell(address, &folder, told.clone())?;
                folder
            }
            Place::Tcp(address) => ask(address, end)?,
        };
        let met = self.meet_in(&folder, end, patience);
        told.store(true, Ordering::Relaxed);
        met
    }

    fn meet_in(&self, folder: &Path, end: Instant, patience: Duration) -> Result<Met> {
        let user = own_folder(folder)?;
        let name = folder.join(self.rank.to_string());
        let door = open_door(&name, self.rank)?;
        let found = self.gather(folder, &door, user, end, patience);
        // Nobody knocks any more; who has met the others leaves nothing behind. The last one's folder is empty.
        let _ = std::fs::remove_file(&name);
        let _ = std::fs::remove_dir(folder);
        found
    }

    fn gather(&self, folder: &Path, door: &Socket, user: u32, end: Instant, patience: Duration) -> Result<Met> {
        let near = self.near();
        let mut processes = vec![self.process(self.rank, std::process::id()); self.size];
        let mut sockets: Vec<Option<Socket>> = (0..self.size).map(|_| None).collect();
        for rank in near.start..self.rank {
            let (socket, other) = loop {
                let absent = || self.late(&[rank], folder);
                match Socket::connect(&folder.join(rank.to_string())) {
                    // One that closes before it has greeted is a process that is on its way out.
                    Ok(socket) => match self.greet(&socket, user, true, end)? {
                        Some(other) => break (socket, other),
                        None => pause(end).ok_or_else(absent)?,
                    },
                    // Its name is not there yet, or was left by a process that is gone.
                    Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                        pause(end).ok_or_else(absent)?;
                    }
                    Err(error) => return Err(failed(format!("{}: {error}", folder.join(rank.to_string()).display()))),
                }
            };
            self.admit(rank..rank + 1, &sockets, &other)?;
            processes[rank] = self.process(rank, other.pid);
            sockets[rank] = Some(socket);
        }
        while let Some(missing) = (self.rank + 1..near.end).find(|&rank| sockets[rank].is_none()) {
            let lost = |error: std::io::Error| failed(format!("{}: {error}", folder.display()));
            let Some(socket) = door.accept(end).map_err(lost)? else {
                let absent: Vec<usize> = (missing..near.end).filter(|&rank| sockets[rank].is_none()).collect();
                return Err(self.late(&absent, folder));
            };
            let Some(other) = self.greet(&socket, user, false, end)? else { continue };
            self.admit(self.rank + 1..near.end, &sockets, &other)?;
            let rank = other.rank as usize;
            processes[rank] = self.process(rank, other.pid);
            sockets[rank] = Some(socket);
        }
        let limited = sockets.iter().flatten().try_for_each(|socket| socket.limit(patience, None));
        limited.map_err(|error| failed(error.to_string()))?;
        let mut lines: Vec<Option<Line>> = sockets.into_iter().map(|socket| socket.map(Line::Near)).collect();
        let (mut asks, mut serves) = ((0..self.size).map(|_| None).collect::<Vec<_>>(), Vec::new());
        if let Some(nodes) = &self.nodes {
            let me = Me { rank: self.rank, size: self.size, version: &self.version, nodes };
            let found = me.gather(end, patience)?.into_iter().flatten();
            for (process, Far { control, asks: mine, serves: theirs }) in found {
                let rank = process.rank;
                processes[rank] = process;
                lines[rank] = Some(Line::Far(control));
                asks[rank] = Some(mine);
                serves.push(theirs);
            }
        }
        Ok(Met { me: self.rank, processes, lines, asks, serves, near })
    }

    fn late(&self, ranks: &[usize], folder: &Path) -> Error {
        let names = ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        failed(format!(
            "process {} waited {:.1?} in vain for process {names} at {}; {} must be started there",
            self.rank,
            self.within,
            folder.display(),
            self.size
        ))
    }

    /// Tells the other end who this is, and hears who it is; `None` where it says nothing. What knocks and is none of ours is let go, and
    /// what this process has knocked at must be one.
    fn greet(&self, socket: &Socket, user: u32, has_knocked: bool, end: Instant) -> Result<Option<Greeting>> {
        let broken = |error: std::io::Error| failed(format!("the other end of a socket: {error}"));
        is_own(socket.peer().map_err(broken)?, user)?;
        let left = end.saturating_duration_since(Instant::now());
        // Who was knocked at may wait for others first.
        let wait = if has_knocked { left } else { left.min(GREETING) };
        socket.limit(GREETING, Some(wait)).map_err(broken)?;
        let mine = Greeting {
            protocol: PROTOCOL,
            size: self.size as u32,
            rank: self.rank as u32,
            pid: std::process::id(),
            version: self.version.clone(),
        };
        if socket.send(&mine.encode(), &[]).is_err() {
            return Ok(None);
        }
        let Ok(Some((bytes, _))) = socket.receive() else { return Ok(None) };
        match Greeting::decode(&bytes) {
            Some(other) => Ok(Some(other)),
            None if has_knocked => Err(failed("who listens there is no process of Tandem")),
            None => Ok(None),
        }
    }

    /// Whether a process is one of those that are expected.
    fn admit(&self, expected: std::ops::Range<usize>, sockets: &[Option<Socket>], other: &Greeting) -> Result<()> {
        let me = self.process(self.rank, std::process::id());
        let it = self.process(other.rank as usize, other.pid);
        if (other.protocol, &other.version) != (PROTOCOL, &self.version) {
            return Err(failed(format!(
                "{me} is of Tandem {} (protocol {PROTOCOL}), {it} of Tandem {} (protocol {}); all must be of one version",
                self.version, other.version, other.protocol
            )));
        }
        if other.size as usize != self.size {
            return Err(failed(format!("{me} is one of {} processes, {it} one of {}", self.size, other.size)));
        }
        if !self.near().contains(&it.rank) {
            return Err(failed(format!(
                "{it} is of another node than {me}, and has come to its folder: each node has its own"
            )));
        }
        if !expected.contains(&it.rank) || sockets[it.rank].is_some() {
            return Err(failed(format!("{it} has come to {me}, which has another of this rank or expects none")));
        }
        Ok(())
    }
}

impl Greeting {
    fn encode(&self) -> Vec<u8> {
        let numbers = [self.protocol, self.size, self.rank, self.pid];
        let mut out = MAGIC.to_vec();
        numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        out.extend(self.version.as_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let number = |i: usize| Some(u32::from_le_bytes(rest.get(4 * i..4 * i + 4)?.try_into().ok()?));
        // Printed, so no more than a line of it.
        let version = std::str::from_utf8(rest.get(16..)?).ok()?.chars().filter(|c| !c.is_control()).take(40).collect();
        Some(Greeting { protocol: number(0)?, size: number(1)?, rank: number(2)?, pid: number(3)?, version })
    }
}

/// Waits a little; `None` where the time is over.
fn pause(end: Instant) -> Option<()> {
    (Instant::now() < end).then(|| std::thread::sleep(RETRY))
}

fn in_temporary(name: &str) -> String {
    let user = rustix::process::geteuid().as_raw();
    std::env::temp_dir().join(format!("tandem-{user}-{name}")).to_string_lossy().into_owned()
}

/// Refuses a socket of another user.
fn is_own(peer: Peer, user: u32) -> Result<()> {
    if peer.user == user {
        return Ok(());
    }
    Err(failed(format!(
        "a socket of user {} (pid {}); all processes are of one user, here {user}",
        peer.user, peer.pid
    )))
}

/// Makes the folder, or sees that it is the user's own and closed to others; the user.
fn own_folder(folder: &Path) -> Result<u32> {
    let problem = |what: String| failed(format!("{}: {what}", folder.display()));
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(problem(error.to_string())),
        _ => {}
    }
    let user = rustix::process::geteuid().as_raw();
    let found = std::fs::symlink_metadata(folder).map_err(|error| problem(error.to_string()))?;
    if !found.is_dir() {
        return Err(problem("is no folder".into()));
    }
    if found.uid() != user || found.mode() & 0o077 != 0 {
        let (owner, mode) = (found.uid(), found.mode() & 0o777);
        return Err(problem(format!("is of user {owner} with mode {mode:o}; expected user {user} and mode 700")));
    }
    Ok(user)
}

/// Listens at `name`. What a process that is gone has left there makes room; one that lives has the rank.
fn open_door(name: &Path, rank: usize) -> Result<Socket> {
    let problem = |error: std::io::Error| failed(format!("{}: {error}", name.display()));
    match Socket::listen(name) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {}
        door => return door.map_err(problem),
    }
    match Socket::connect(name) {
        Ok(socket) => {
            let pid = socket.peer().map_or(0, |peer| peer.pid);
            Err(failed(format!("{}: rank {rank} is taken by the process with pid {pid}", name.display())))
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(name).map_err(problem)?;
            Socket::listen(name).map_err(problem)
        }
        Err(error) => Err(problem(error)),
    }
}

/// Tells the folder to whoever asks at `address`, until `is_done`.
fn tell(address: &str, folder: &Path, is_done: Arc<AtomicBool>) -> Result<()> {
    let problem = |error: std::io::Error| failed(format!("tcp:{address}: {error}"));
    let listener = TcpListener::bind(address).map_err(problem)?;
    listener.set_nonblocking(true).map_err(problem)?;
    let text = folder.to_string_lossy().into_owned();
    let serve = move || {
        while !is_done.load(Ordering::Relaxed) {
            match listener.accept() {
                // Who asks and does not listen misses it.
                Ok((mut stream, _)) => {
                    let _ = stream.set_write_timeout(Some(GREETING));
                    let _ = stream.write_all(text.as_bytes());
                }
                Err(_) => std::thread::sleep(RETRY),
            }
        }
    };
    std::thread::Builder::new().name("meeting".into()).spawn(serve).map_err(problem)?;
    Ok(())
}

/// The folder that process 0 tells at `address`. [`own_folder`] refuses what is not the user's own.
fn ask(address: &str, end: Instant) -> Result<PathBuf> {
    loop {
        let mut text = String::new();
        let asked = TcpStream::connect(address).and_then(|stream| {
            stream.set_read_timeout(Some(GREETING))?;
            stream.take(MOST_PLACE).read_to_string(&mut text)
        });
        match asked {
            Ok(_) if Path::new(&text).is_absolute() => return Ok(text.into()),
            Ok(_) => return Err(failed(format!("tcp:{address}: who listens there is no process of Tandem"))),
            Err(error) => pause(end).ok_or_else(|| failed(format!("tcp:{address}: no process 0 in time: {error}")))?,
        }
    }
}

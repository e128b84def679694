//! How processes of several nodes find each other.
//!
//! Process 0 listens at an address that all know. The others tell it where they listen, and it tells all of all. Then of every two
//! processes of different nodes the one of higher rank dials the other, for three streams: messages, and requests in both directions.

use super::stream::{answer, knock, limit, Hello, Purpose, Secret, Stream, PROTOCOL};
use super::Process;
use crate::{Error, Result};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::time::{Duration, Instant};

const OP: &str = "meet the processes of other nodes";
/// Between two attempts to reach a process that is not there yet.
const RETRY: Duration = Duration::from_millis(20);
/// How long one that has knocked may take to say who it is.
const GREETING: Duration = Duration::from_secs(5);
/// How many may be about to say who they are.
const MOST_KNOCKERS: usize = 64;
/// Bytes that all addresses may have.
const MOST_ADDRESSES: usize = 4096;
/// Bytes that one of them may have.
const MOST_ADDRESS: usize = 64;

/// The nodes of a meeting: sets of processes that share memory. Each has as many processes as every other, with ranks that follow each other.
#[derive(Debug, Clone)]
pub(super) struct Nodes {
    pub(super) count: usize,
    /// Where process 0 listens.
    pub(super) address: String,
    pub(super) secret: Secret,
}

/// The streams to a process of another node.
pub(super) struct Far {
    pub(super) control: Stream,
    pub(super) asks: TcpStream,
    pub(super) serves: TcpStream,
}

/// Who asks, and for what.
pub(super) struct Me<'a> {
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) version: &'a str,
    pub(super) nodes: &'a Nodes,
}

fn failed(problem: impl Into<String>) -> Error {
    Error::processes(OP, problem)
}

fn list(ranks: &[usize]) -> String {
    ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// Listens, and lets in who knows the secret.
struct Door {
    at: SocketAddr,
    found: Receiver<(Hello, TcpStream)>,
    is_closed: Arc<AtomicBool>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

impl Door {
    fn open(address: impl ToSocketAddrs, mine: Hello, secret: Secret) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        let (tell, found) = channel();
        let (is_closed, knockers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let closed = is_closed.clone();
        let work = move || {
            while !closed.load(Ordering::Relaxed) {
                // Who comes when there are too many waits in the system's queue.
                let has_room = knockers.load(Ordering::Relaxed) < MOST_KNOCKERS;
                let Some((mut tcp, _)) = has_room.then(|| listener.accept().ok()).flatten() else {
                    std::thread::sleep(RETRY / 10);
                    continue;
                };
                knockers.fetch_add(1, Ordering::Relaxed);
                let (mine, secret, tell, count) = (mine.clone(), secret.clone(), tell.clone(), knockers.clone());
                // Each in a thread, so that one who says nothing keeps nobody waiting. Strangers are let go.
                let greet = move || {
                    let mut greet = || -> std::io::Result<Hello> {
                        tcp.set_nonblocking(false)?;
                        limit(&tcp, GREETING)?;
                        let hello = answer(&mut tcp, &mine, &secret, Instant::now() + GREETING)?;
                        limit(&tcp, GREETING)?;
                        Ok(hello)
                    };
                    if let Ok(hello) = greet() {
                        let _ = tell.send((hello, tcp));
                    }
                    count.fetch_sub(1, Ordering::Relaxed);
                };
                if std::thread::Builder::new().name("knocker".into()).spawn(greet).is_err() {
                    knockers.fetch_sub(1, Ordering::Relaxed);
                }
            }
        };
        std::thread::Builder::new().name("door".into()).spawn(work)?;
        Ok(Door { at, found, is_closed })
    }

    /// The next one who is let in before `end`.
    fn next(&self, end: Instant) -> Option<(Hello, TcpStream)> {
        self.found.recv_timeout(end.saturating_duration_since(Instant::now())).ok()
    }
}

impl Me<'_> {
    fn node(&self, rank: usize) -> usize {
        rank * self.nodes.count / self.size
    }

    fn hello(&self, purpose: Purpose) -> Hello {
        Hello {
            protocol: PROTOCOL,
            size: self.size as u32,
            nodes: self.nodes.count as u32,
            rank: self.rank as u32,
            pid: std::process::id(),
            purpose,
            version: self.version.into(),
        }
    }

    /// Dials until somebody listens and answers.
    fn dial(&self, address: &str, peer: usize, purpose: Purpose, end: Instant) -> Result<(Hello, TcpStream)> {
        let connect = || {
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let mut last = std::io::Error::new(ErrorKind::NotFound, "the name has no address");
            for at in address.to_socket_addrs()? {
                match TcpStream::connect_timeout(&at, left) {
                    Ok(tcp) => return Ok(tcp),
                    Err(error) => last = error,
                }
            }
            Err(last)
        };
        let (hello, tcp) = loop {
            let error = match connect() {
                Ok(mut tcp) => {
                    let (mine, until) = (self.hello(purpose), Instant::now() + GREETING);
                    let ready = limit(&tcp, GREETING);
                    match ready.and_then(|()| knock(&mut tcp, &mine, &self.nodes.secret, until)) {
                        Ok(hello) => break (hello, tcp),
                        // Who is refused says why; who is not heard comes again.
                        Err(error) if error.kind() == ErrorKind::InvalidData => {
                            return Err(failed(format!("process {peer} at {address}: {error}")));
                        }
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if Instant::now() >= end {
                let me = self.rank;
                return Err(failed(format!("process {me} waited in vain for process {peer} at {address}: {error}")));
            }
            std::thread::sleep(RETRY);
        };
        limit(&tcp, GREETING).map_err(|error| failed(format!("process {peer} at {address}: {error}")))?;
        self.check(&hello)?;
        if hello.rank as usize != peer {
            return Err(failed(format!("{address} is of process {}, expected process {peer}", hello.rank)));
        }
        Ok((hello, tcp))
    }

    /// Whether a process is one of this meeting; who it is.
    fn check(&self, other: &Hello) -> Result<usize> {
        let me = Process { rank: self.rank, pid: std::process::id(), node: Some(self.node(self.rank)) };
        let it = Process { rank: other.rank as usize, pid: other.pid, node: None };
        if (other.protocol, &*other.version) != (PROTOCOL, self.version) {
            return Err(failed(format!(
                "{me} is of Tandem {} (protocol {PROTOCOL}), {it} of Tandem {} (protocol {}); all must be of one version",
                self.version, other.version, other.protocol
            )));
        }
        let (size, nodes) = (self.size as u32, self.nodes.count as u32);
        if (other.size, other.nodes) != (size, nodes) {
            return Err(failed(format!(
                "{me} is one of {size} processes on {nodes} nodes, {it} one of {} on {}",
                other.size, other.nodes
            )));
        }
        if other.rank >= size || it.rank == self.rank {
            return Err(failed(format!("{it} has come to {me}, which expects none of this rank")));
        }
        Ok(it.rank)
    }

    fn late(&self, ranks: &[usize], at: &str) -> Error {
        failed(format!("process {} waited in vain for process {} at {at}", self.rank, list(ranks)))
    }

    /// Finds all others before `end`: by rank the process and the streams to it, for those of other nodes. `patience` is how long a step of
    /// a stream may take later.
    pub(super) fn gather(&self, end: Instant, patience: Duration) -> Result<Vec<Option<(Process, Far)>>> {
        let (door, addresses) = if self.rank == 0 { self.introduce(end)? } else { self.ask(end)? };
        let far = |rank: usize| self.node(rank) != self.node(self.rank);
        let mut streams: Vec<[Option<TcpStream>; 3]> = (0..self.size).map(|_| Default::default()).collect();
        let mut pids = vec![0; self.size];
        let purposes = [Purpose::Control, Purpose::Asks, Purpose::Serves];
        for rank in (0..self.rank).filter(|&rank| far(rank)) {
            for (slot, purpose) in purposes.into_iter().enumerate() {
                let (hello, tcp) = self.dial(&addresses[rank], rank, purpose, end)?;
                pids[rank] = hello.pid;
                streams[rank][slot] = Some(tcp);
            }
        }
        let missing = |streams: &[[Option<TcpStream>; 3]]| -> Vec<usize> {
            let later = (self.rank + 1..self.size).filter(|&rank| far(rank));
            later.filter(|&rank| streams[rank].iter().any(Option::is_none)).collect()
        };
        while !missing(&streams).is_empty() {
            let absent = || self.late(&missing(&streams), &door.at.to_string());
            let (hello, tcp) = door.next(end).ok_or_else(absent)?;
            let rank = self.check(&hello)?;
            // Who has dialled to ask is served here.
            let slot = match hello.purpose {
                Purpose::Control => 0,
                Purpose::Asks => 2,
                Purpose::Serves => 1,
                Purpose::Meet => {
                    return Err(failed(format!(
                        "there are two processes {rank}, the second one with pid {}",
                        hello.pid
                    )));
                }
            };
            if rank < self.rank || !far(rank) || streams[rank][slot].is_some() {
                let problem =
                    format!("process {rank} (pid {}) has come to process {}, which expects none", hello.pid, self.rank);
                return Err(failed(problem));
            }
            pids[rank] = hello.pid;
            streams[rank][slot] = Some(tcp);
        }
        let one = |(rank, streams): (usize, [Option<TcpStream>; 3])| -> Result<Option<(Process, Far)>> {
            let [Some(control), Some(asks), Some(serves)] = streams else { return Ok(None) };
            let set = [&control, &asks, &serves].into_iter().try_for_each(|tcp| limit(tcp, patience));
            // Who serves waits for the next request as long as it takes.
            let set = set.and_then(|()| serves.set_read_timeout(None));
            set.map_err(|error| failed(format!("process {rank}: {error}")))?;
            let process = Process { rank, pid: pids[rank], node: Some(self.node(rank)) };
            Ok(Some((process, Far { control: Stream::new(control), asks, serves })))
        };
        streams.into_iter().enumerate().map(one).collect()
    }

    /// Of process 0: hears where the others listen, and tells all.
    fn introduce(&self, end: Instant) -> Result<(Door, Vec<String>)> {
        let address = &self.nodes.address;
        let problem = |error: std::io::Error| failed(format!("process 0 cannot listen at {address}: {error}"));
        let door = Door::open(&**address, self.hello(Purpose::Meet), self.nodes.secret.clone()).map_err(problem)?;
        let mut found: Vec<Option<(String, TcpStream)>> = (0..self.size).map(|_| None).collect();
        while let Some(missing) = (1..self.size).find(|&rank| found[rank].is_none()) {
            let absent = || {
                let absent: Vec<usize> = (missing..self.size).filter(|&rank| found[rank].is_none()).collect();
                self.late(&absent, address)
            };
            let (hello, mut tcp) = door.next(end).ok_or_else(absent)?;
            let rank = self.check(&hello)?;
            if found[rank].is_some() || hello.purpose != Purpose::Meet {
                return Err(failed(format!("there are two processes {rank}, the second one with pid {}", hello.pid)));
            }
            let text = read_text(&mut tcp, MOST_ADDRESS).map_err(|error| failed(format!("process {rank}: {error}")))?;
            found[rank] = Some((text, tcp));
        }
        let mut addresses: Vec<String> = vec![address.clone()];
        addresses.extend(found.iter().flatten().map(|(text, _)| text.clone()));
        for (_, tcp) in found.iter_mut().flatten() {
            // Who is gone is missed when it does not dial.
            let _ = write_text(tcp, &addresses.join("\n"));
        }
        Ok((door, addresses))
    }

    /// Of the others: tells process 0 where this one listens, and hears where the others do.
    fn ask(&self, end: Instant) -> Result<(Door, Vec<String>)> {
        let address = &self.nodes.address;
        let (_, mut tcp) = self.dial(address, 0, Purpose::Meet, end)?;
        let gone = |error: std::io::Error| {
            failed(format!("process 0 at {address} has not said where the others are ({error}); look at what it says"))
        };
        // At the address by which this host reaches process 0 the other nodes reach this host.
        let here = tcp.local_addr().map_err(gone)?.ip();
        let door = Door::open((here, 0), self.hello(Purpose::Meet), self.nodes.secret.clone());
        let door = door.map_err(|error| failed(format!("process {} cannot listen at {here}: {error}", self.rank)))?;
        write_text(&mut tcp, &door.at.to_string()).map_err(gone)?;
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let text = tcp.set_read_timeout(Some(left)).and_then(|()| read_text(&mut tcp, MOST_ADDRESSES)).map_err(gone)?;
        let mut addresses: Vec<String> = text.lines().map(String::from).collect();
        if addresses.len() != self.size {
            return Err(failed(format!("process 0 names {} processes, expected {}", addresses.len(), self.size)));
        }
        // The name by which this one has reached it.
        addresses[0].clone_from(address);
        Ok((door, addresses))
    }
}

fn write_text(tcp: &mut TcpStream, text: &str) -> std::io::Result<()> {
    tcp.write_all(&[&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat())
}

/// A text of at most `most` bytes.
fn read_text(tcp: &mut TcpStream, most: usize) -> std::io::Result<String> {
    let mut len = [0; 4];
    tcp.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len) as usize;
    if len > most {
        return Err(std::io::Error::new(
            ErrorKind::InvalidData,
            format!("a text of {len} bytes, expected at most {}", most),
        ));
    }
    let mut bytes = vec![0; len];
    tcp.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| std::io::Error::new(ErrorKind::InvalidData, "no text"))
}

//! Memory of processes of other nodes: the interface, and TCP.

use super::lent::Lent;
use crate::ffi;
use crate::word::width;
use std::io::{Error, ErrorKind, Read, Result as IoResult, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are moved at a time through a buffer.
const PIECE: usize = 256 << 10;
/// Runs of fewer bytes go through the buffer: there each word is read and written whole, and many runs share a call of the system.
const LEAST_LENT: u64 = 16 << 10;
/// Bytes of a run that are handed to the system at a time.
const MOST_LENT: u64 = 4 << 20;
/// The rate below which a transfer is late, in bytes a microsecond.
const SLOWEST: u64 = 1;

/// Elements with gaps between them: `count` of `element` bytes, each `stride` bytes behind the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: u64,
    pub(crate) element: u64,
    pub(crate) stride: u64,
    pub(crate) count: u64,
}

/// A change of a word: the kind and the operation are those of TANDEM_WORD_* and TANDEM_AMO_*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) word: u64,
    pub(crate) kind: i32,
    pub(crate) op: i32,
    pub(crate) value: u64,
    pub(crate) expected: u64,
}

/// Why a process of another node did not do what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It is gone, or was, or does not understand.
    Closed,
    /// Nothing has moved for so long.
    Late(Duration),
}

/// Moves bytes to and from the memory of processes of other nodes, and changes words there. Each call is done at the target when it returns,
/// and comes there after all that the caller has done before. Processes are named by their rank. Both spans of a call have as many bytes.
pub(crate) trait Transport: Send + Sync {
    /// Writes to `to` what is at `from` here.
    fn put(&self, rank: usize, to: Span, here: &dyn Local, from: Span) -> Result<(), Failure>;
    /// Reads `from` to `to` here.
    fn get(&self, rank: usize, from: Span, here: &dyn Local, to: Span) -> Result<(), Failure>;
    /// Changes a word; what it was.
    fn change(&self, rank: usize, change: Change) -> Result<u64, Failure>;
}

/// Memory of this process.
pub(crate) trait Local {
    fn read(&self, at: u64, to: &mut [u8]);
    fn write(&self, at: u64, from: &[u8]);
    /// Calls `f` with the bytes from `at` on, `most` of them or as many as lie together; `None` where the system cannot have them.
    fn lend(&self, _at: u64, _most: usize, _f: &mut dyn FnMut(Lent<'_>) -> IoResult<usize>) -> Option<IoResult<usize>> {
        None
    }
}

/// The memory of this process that others ask for. Every access is checked first.
pub(crate) trait Target: Local + Send + Sync {
    /// Whether these bytes are memory of a PE of this process.
    fn has(&self, at: u64, bytes: u64) -> bool;
    /// What the word was.
    fn change(&self, change: Change) -> u64;
    /// What was done before is seen before what is done after.
    fn settle(&self);
}

impl Span {
    /// `bytes` bytes one after the other.
    pub(crate) fn plain(at: u64, bytes: u64) -> Self {
        Span { at, element: bytes, stride: bytes, count: 1 }
    }

    /// Bytes that are moved.
    pub(crate) fn bytes(&self) -> u64 {
        self.element.saturating_mul(self.count)
    }

    /// From the first byte to behind the last; `None` where there are no such numbers.
    fn hull(&self) -> Option<u64> {
        let last = self.stride.checked_mul(self.count.checked_sub(1)?)?;
        let hull = last.checked_add(self.element)?;
        let bytes = self.element.checked_mul(self.count)?;
        (self.count == 1 || self.stride >= self.element).then_some(hull.max(bytes))
    }

    /// Where byte `first` of all is, and how many lie together from there on.
    fn run(&self, first: u64) -> (u64, u64) {
        let element = self.element.max(1);
        let (index, skip) = (first / element, first % element);
        (self.at + index * self.stride + skip, self.element - skip)
    }

    /// How many bytes from `first` on go through a buffer before a run that need not, `PIECE` at most.
    fn piece(&self, first: u64) -> usize {
        let left = self.bytes() - first;
        let left = if self.element < LEAST_LENT { left } else { left.min(self.run(first).1) };
        left.min(PIECE as u64) as usize
    }

    /// Calls `f` for each run of bytes among those from `first` on that a piece of `len` has: where it is, and which bytes of the piece.
    pub(crate) fn runs(&self, first: u64, len: usize, mut f: impl FnMut(u64, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < len && self.element > 0 {
            let (at, together) = self.run(first + done as u64);
            let run = together.min((len - done) as u64) as usize;
            f(at, done..done + run);
            done += run;
        }
    }
}

const PUT: u32 = 1;
const GET: u32 = 2;
const CHANGE: u32 = 3;
/// Bytes of a request: what, kind, operation, none; then six numbers.
const REQUEST: usize = 64;
/// Bytes of an answer: [`DONE`], and the number that was asked for.
const ANSWER: usize = 16;
const DONE: u64 = 0x454e_4f44_0000_0001;

fn request(what: u32, kind: i32, op: i32, numbers: [u64; 6]) -> [u8; REQUEST] {
    let mut out = [0; REQUEST];
    let words = [what, kind as u32, op as u32, 0];
    out.chunks_exact_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    out[16..].chunks_exact_mut(8).zip(numbers).for_each(|(to, number)| to.copy_from_slice(&number.to_le_bytes()));
    out
}

fn of_span(what: u32, span: &Span) -> [u8; REQUEST] {
    request(what, 0, 0, [span.at, span.element, span.stride, span.count, 0, 0])
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failure(error: &Error, patience: Duration) -> Failure {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::Late(patience),
        _ => Failure::Closed,
    }
}

/// Streams of TCP, one to each process of another node. One request is under way on a stream at a time.
pub(crate) struct Tcp {
    streams: Vec<Option<Mutex<Client>>>,
    patience: Duration,
}

struct Client {
    tcp: TcpStream,
    buffer: Vec<u8>,
    /// What has ended it: nobody knows what would come next on the stream.
    broken: Option<Failure>,
}

impl Tcp {
    /// `streams` are by rank; each step of them takes `patience` at most.
    pub(crate) fn new(streams: Vec<Option<TcpStream>>, patience: Duration) -> Self {
        let client = |tcp| Mutex::new(Client { tcp, buffer: vec![0; PIECE + REQUEST], broken: None });
        Tcp { streams: streams.into_iter().map(|tcp| tcp.map(client)).collect(), patience }
    }

    fn ask<T>(
        &self,
        rank: usize,
        bytes: u64,
        work: impl FnOnce(&mut TcpStream, &mut [u8], &dyn Fn() -> IoResult<()>) -> IoResult<T>,
    ) -> Result<T, Failure> {
        let Some(Some(client)) = self.streams.get(rank) else { return Err(Failure::Closed) };
        let mut client = lock(client);
        if let Some(failure) = client.broken {
            return Err(failure);
        }
        let end = Instant::now() + self.patience + Duration::from_micros(bytes / SLOWEST);
        let in_time = || if Instant::now() > end { Err(ErrorKind::TimedOut.into()) } else { Ok(()) };
        let Client { tcp, buffer, broken } = &mut *client;
        work(tcp, buffer, &in_time).map_err(|error| {
            let failure = failure(&error, self.patience);
            *broken = Some(failure);
            let _ = tcp.shutdown(Shutdown::Both);
            failure
        })
    }
}

/// The number of an answer.
fn answered(tcp: &mut TcpStream) -> IoResult<u64> {
    let mut answer = [0; ANSWER];
    tcp.read_exact(&mut answer)?;
    let [done, value] = bytemuck::pod_read_unaligned::<[u64; 2]>(&answer);
    if done == DONE {
        Ok(value)
    } else {
        Err(ErrorKind::InvalidData.into())
    }
}

/// A run from byte `first` of a span on as the system may have it; `None` where it is to go through the buffer.
fn lend(
    here: &dyn Local,
    span: &Span,
    first: u64,
    f: &mut dyn FnMut(Lent<'_>) -> IoResult<usize>,
) -> Option<IoResult<usize>> {
    let (at, together) = span.run(first);
    (together >= LEAST_LENT).then(|| here.lend(at, together.min(MOST_LENT) as usize, f)).flatten()
}

/// Sends the first `head` bytes of the buffer, and then what is at `from` here.
fn send(
    mut tcp: &TcpStream,
    buffer: &mut [u8],
    mut head: usize,
    (here, from): (&dyn Local, &Span),
    in_time: &dyn Fn() -> IoResult<()>,
) -> IoResult<()> {
    let (mut done, bytes) = (0, from.bytes());
    while head > 0 || done < bytes {
        match lend(here, from, done, &mut |lent| lent.send(&buffer[..head], tcp)).transpose()? {
            Some(sent) if sent < head => {
                buffer.copy_within(sent..head, 0);
                head -= sent;
            }
            Some(sent) => {
                done += (sent - head) as u64;
                head = 0;
            }
            None => {
                // With the head, as a packet of its own would cost as much as small data do.
                let piece = from.piece(done).min(buffer.len() - head);
                from.runs(done, piece, |at, range| here.read(at, &mut buffer[head + range.start..head + range.end]));
                tcp.write_all(&buffer[..head + piece])?;
                done += piece as u64;
                head = 0;
            }
        }
        in_time()?;
    }
    Ok(())
}

/// Receives what belongs to `to` here.
fn receive(
    mut tcp: &TcpStream,
    buffer: &mut [u8],
    (here, to): (&dyn Local, &Span),
    in_time: &dyn Fn() -> IoResult<()>,
) -> IoResult<()> {
    let (mut done, bytes) = (0, to.bytes());
    while done < bytes {
        let got = match lend(here, to, done, &mut |lent| lent.receive(tcp)).transpose()? {
            Some(got) => got,
            None => {
                let piece = to.piece(done).min(buffer.len());
                let got = tcp.read(&mut buffer[..piece])?;
                to.runs(done, got, |at, range| here.write(at, &buffer[range]));
                got
            }
        };
        if got == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        in_time()?;
        done += got as u64;
    }
    Ok(())
}

impl Transport for Tcp {
    fn put(&self, rank: usize, to: Span, here: &dyn Local, from: Span) -> Result<(), Failure> {
        self.ask(rank, to.bytes(), |tcp, buffer, in_time| {
            buffer[..REQUEST].copy_from_slice(&of_span(PUT, &to));
            send(tcp, buffer, REQUEST, (here, &from), in_time)?;
            answered(tcp).map(drop)
        })
    }

    fn get(&self, rank: usize, from: Span, here: &dyn Local, to: Span) -> Result<(), Failure> {
        self.ask(rank, from.bytes(), |tcp, buffer, in_time| {
            tcp.write_all(&of_span(GET, &from))?;
            answered(tcp)?;
            receive(tcp, buffer, (here, &to), in_time)
        })
    }

    fn change(&self, rank: usize, change: Change) -> Result<u64, Failure> {
        let Change { word, kind, op, value, expected } = change;
        self.ask(rank, 0, |tcp, _, _| {
            tcp.write_all(&request(CHANGE, kind, op, [word, value, expected, 0, 0, 0]))?;
            answered(tcp)
        })
    }
}

/// How many requests of others are being done.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Busy {
    fn add(&self, change: isize) {
        let mut count = lock(&self.count);
        *count = count.wrapping_add_signed(change);
        self.changed.notify_all();
    }

    /// Waits until none is, for `patience` at most.
    pub(crate) fn wait(&self, patience: Duration) {
        let waiting = self.changed.wait_timeout_while(lock(&self.count), patience, |count| *count > 0);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Does what the other end of a stream asks for, until it is closed or asks for what is not there.
pub(crate) fn serve(mut tcp: TcpStream, target: &dyn Target, busy: &Arc<Busy>) {
    let mut buffer = vec![0; PIECE + REQUEST];
    let mut head = [0; REQUEST];
    while tcp.read_exact(&mut head).is_ok() {
        busy.add(1);
        let done = one(&mut tcp, target, &head, &mut buffer);
        busy.add(-1);
        if done.is_err() {
            break;
        }
    }
    let _ = tcp.shutdown(Shutdown::Both);
}

fn refused() -> Error {
    ErrorKind::InvalidData.into()
}

fn done(value: u64) -> [u8; ANSWER] {
    bytemuck::cast([DONE, value])
}

fn one(tcp: &mut TcpStream, target: &dyn Target, head: &[u8; REQUEST], buffer: &mut [u8]) -> IoResult<()> {
    let [what, kind, op, _] = bytemuck::pod_read_unaligned::<[u32; 4]>(&head[..16]);
    let numbers = bytemuck::pod_read_unaligned::<[u64; 6]>(&head[16..]);
    let [at, element, stride, count, ..] = numbers;
    let span = Span { at, element, stride, count };
    match what {
        PUT | GET => {
            if !span.hull().is_some_and(|hull| target.has(at, hull)) {
                return Err(refused());
            }
            let in_time = || Ok(());
            if what == GET {
                target.settle();
                buffer[..ANSWER].copy_from_slice(&done(0));
                return send(tcp, buffer, ANSWER, (target, &span), &in_time);
            }
            receive(tcp, buffer, (target, &span), &in_time)?;
            target.settle();
            tcp.write_all(&done(0))
        }
        CHANGE => {
            let [word, value, expected, ..] = numbers;
            let (kind, op) = (kind as i32, op as i32);
            let bytes = width(kind);
            if !KINDS.contains(&kind)
                || !OPERATIONS.contains(&op)
                || !word.is_multiple_of(bytes)
                || !target.has(word, bytes)
            {
                return Err(refused());
            }
            tcp.write_all(&done(target.change(Change { word, kind, op, value, expected })))
        }
        _ => Err(refused()),
    }
}

const KINDS: [i32; 4] = [ffi::TANDEM_WORD_U32, ffi::TANDEM_WORD_I32, ffi::TANDEM_WORD_U64, ffi::TANDEM_WORD_I64];
const OPERATIONS: [i32; 8] = [
    ffi::TANDEM_AMO_SET,
    ffi::TANDEM_AMO_ADD,
    ffi::TANDEM_AMO_INC,
    ffi::TANDEM_AMO_AND,
    ffi::TANDEM_AMO_OR,
    ffi::TANDEM_AMO_XOR,
    ffi::TANDEM_AMO_COMPARE_SWAP,
    ffi::TANDEM_AMO_FETCH,
];

//! Streams of TCP between processes of several nodes: who is at the other end, and messages.
//!
//! Both ends show that they know the meeting's secret without saying it: each sends a number used once, and each answers with a keyed hash
//! (BLAKE3) of both greetings, under its own role. Who does not know the secret learns nothing and is let go. What follows is neither
//! encrypted nor signed.

use super::socket::MOST_BYTES;
use rustix::net::sockopt;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const MAGIC: &[u8; 8] = b"TANDEMND";
/// The version of what processes of several nodes tell each other.
pub(super) const PROTOCOL: u32 = 1;
/// Bytes of the text of a version.
const VERSION: usize = 40;
const HELLO: usize = 8 + 6 * 4 + 16 + VERSION;
/// Characters that a secret has at least.
const LEAST_SECRET: usize = 16;

/// What all processes of a meeting of several nodes know, and nobody else.
#[derive(Clone)]
pub(super) struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a secret")
    }
}

impl Secret {
    /// `None` for a text that is easily guessed.
    pub(super) fn new(text: &str) -> Option<Self> {
        let is_long = text.trim().chars().count() >= LEAST_SECRET;
        is_long.then(|| {
            Secret(blake3::derive_key("tandem-fabric 2026-11 meeting of several nodes", text.trim().as_bytes()))
        })
    }

    fn sign(&self, role: u8, dialler: &[u8; HELLO], listener: &[u8; HELLO]) -> blake3::Hash {
        blake3::keyed_hash(&self.0, &[&[role][..], dialler, listener].concat())
    }
}

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To tell process 0 where one listens, and to hear where the others do.
    Meet = 0,
    /// Messages.
    Control = 1,
    /// Who has dialled asks for what the other one's memory holds.
    Asks = 2,
    /// Who has dialled is asked.
    Serves = 3,
}

/// What a process says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) size: u32,
    pub(super) nodes: u32,
    pub(super) rank: u32,
    pub(super) pid: u32,
    pub(super) purpose: Purpose,
    pub(super) version: String,
}

impl Hello {
    fn encode(&self) -> Result<[u8; HELLO]> {
        let mut out = MAGIC.to_vec();
        let numbers = [self.protocol, self.size, self.nodes, self.rank, self.pid, self.purpose as u32];
        numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        let mut once = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut once)?;
        out.extend(once);
        out.extend(self.version.bytes().take(VERSION));
        out.resize(HELLO, 0);
        out.try_into().map_err(|_| ErrorKind::InvalidData.into())
    }

    fn decode(bytes: &[u8; HELLO]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let number = |i: usize| Some(u32::from_le_bytes(rest.get(4 * i..4 * i + 4)?.try_into().ok()?));
        let purpose = [Purpose::Meet, Purpose::Control, Purpose::Asks, Purpose::Serves];
        let purpose = *purpose.get(number(5)? as usize)?;
        let text = std::str::from_utf8(rest.get(40..)?).ok()?;
        let version = text.chars().filter(|c| !c.is_control()).collect();
        let (protocol, size, nodes, rank, pid) = (number(0)?, number(1)?, number(2)?, number(3)?, number(4)?);
        Some(Hello { protocol, size, nodes, rank, pid, purpose, version })
    }
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

/// Reads all of `to` before `end`, however slowly it comes.
fn read_by(tcp: &mut TcpStream, to: &mut [u8], end: Instant) -> Result<()> {
    let mut done = 0;
    while done < to.len() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        tcp.set_read_timeout(Some(left))?;
        match tcp.read(&mut to[done..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(got) => done += got,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn hear(tcp: &mut TcpStream, end: Instant) -> Result<([u8; HELLO], Hello)> {
    let mut bytes = [0; HELLO];
    read_by(tcp, &mut bytes, end)?;
    let hello = Hello::decode(&bytes).ok_or_else(|| wrong("who answers there is no process of Tandem"))?;
    Ok((bytes, hello))
}

fn verify(tcp: &mut TcpStream, wanted: blake3::Hash, end: Instant) -> Result<()> {
    let mut found = [0; 32];
    read_by(tcp, &mut found, end)?;
    // The comparison takes the same time for every answer.
    if wanted == found {
        return Ok(());
    }
    Err(wrong("the other end does not know this meeting's secret"))
}

/// Greets the process that was dialled, before `end`: what it says of itself, once it has shown that it knows the secret. An error of another
/// kind than `InvalidData` says that nothing was heard, and that nothing follows from this attempt at the other end either.
pub(super) fn knock(tcp: &mut TcpStream, mine: &Hello, secret: &Secret, end: Instant) -> Result<Hello> {
    let mine = mine.encode()?;
    tcp.write_all(&mine)?;
    let (theirs, hello) = hear(tcp, end)?;
    tcp.write_all(secret.sign(b'd', &mine, &theirs).as_bytes())?;
    let answered = verify(tcp, secret.sign(b'l', &mine, &theirs), end);
    answered.map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
            wrong("the other end has closed the connection: the secrets differ, or it has given up")
        }
        // It may have let this one in.
        _ => wrong(&error.to_string()),
    })?;
    Ok(hello)
}

/// Answers a process that has dialled, before `end`, once it has shown that it knows the secret.
pub(super) fn answer(tcp: &mut TcpStream, mine: &Hello, secret: &Secret, end: Instant) -> Result<Hello> {
    let (theirs, hello) = hear(tcp, end)?;
    let mine = mine.encode()?;
    tcp.write_all(&mine)?;
    verify(tcp, secret.sign(b'd', &theirs, &mine), end)?;
    tcp.write_all(secret.sign(b'l', &theirs, &mine).as_bytes())?;
    Ok(hello)
}

/// No step of a stream takes longer than `patience`, and an end that is gone without a word is noticed about then.
pub(super) fn limit(tcp: &TcpStream, patience: Duration) -> Result<()> {
    // 0 would be without limit.
    let patience = patience.max(Duration::from_millis(1));
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(patience))?;
    tcp.set_write_timeout(Some(patience))?;
    sockopt::set_socket_keepalive(tcp, true)?;
    let third = (patience / 3).max(Duration::from_secs(1)).min(Duration::from_secs(600));
    sockopt::set_tcp_keepidle(tcp, third)?;
    sockopt::set_tcp_keepintvl(tcp, third)?;
    sockopt::set_tcp_keepcnt(tcp, 2)?;
    sockopt::set_tcp_user_timeout(tcp, u32::try_from(patience.as_millis()).unwrap_or(u32::MAX))?;
    Ok(())
}

/// Messages to a process of another node, each with its length (32 bits) before it.
#[derive(Debug)]
pub(super) struct Stream {
    tcp: TcpStream,
    sending: Mutex<()>,
}

impl Stream {
    pub(super) fn new(tcp: TcpStream) -> Self {
        Stream { tcp, sending: Mutex::default() }
    }

    pub(super) fn send(&self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() || bytes.len() > MOST_BYTES {
            return Err(Error::new(ErrorKind::InvalidInput, format!("a message of {} bytes", bytes.len())));
        }
        let all = [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
        let _whole = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = (&self.tcp).write_all(&all);
        // Half a message is none, and what follows it would be read as its rest.
        sent.inspect_err(|_| self.close())
    }

    /// The next message; `None` where the other end is closed.
    pub(super) fn receive(&self) -> Result<Option<Vec<u8>>> {
        let mut len = [0; 4];
        if let Err(error) = (&self.tcp).read_exact(&mut len) {
            return if error.kind() == ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
        }
        let len = u32::from_le_bytes(len) as usize;
        if len == 0 || len > MOST_BYTES {
            return Err(wrong("a message longer than any of ours"));
        }
        let mut bytes = vec![0; len];
        (&self.tcp).read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }

    pub(super) fn close(&self) {
        let _ = self.tcp.shutdown(Shutdown::Both);
    }

    pub(super) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let other = listener.accept().unwrap().0;
        for tcp in [&one, &other] {
            limit(tcp, Duration::from_secs(10)).unwrap();
        }
        (one, other)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    fn hello(rank: u32) -> Hello {
        let version = format!("1.{rank}.0-a");
        Hello { protocol: PROTOCOL, size: 4, nodes: 2, rank, pid: 77, purpose: Purpose::Asks, version }
    }

    fn meet(dialler: &str, listener: &str) -> (Result<Hello>, Result<Hello>) {
        let (mut one, mut other) = pair();
        let (a, b) = (Secret::new(dialler).unwrap(), Secret::new(listener).unwrap());
        std::thread::scope(|scope| {
            // Its end goes with it, as that of a process that lets a stranger go.
            let answered = scope.spawn(move || answer(&mut other, &hello(1), &b, soon()));
            (knock(&mut one, &hello(2), &a, soon()), answered.join().unwrap())
        })
    }

    #[test]
    fn those_who_know_the_secret_know_each_other() {
        let (a, b) = meet("a secret of both, long enough", "a secret of both, long enough\n");
        assert_eq!((a.unwrap(), b.unwrap()), (hello(1), hello(2)));
    }

    #[test]
    fn a_stranger_is_let_go_and_told_why() {
        let (a, b) = meet("a secret of both, long enough", "another secret, long enough");
        assert!(a.unwrap_err().to_string().contains("the secrets differ"));
        assert!(b.unwrap_err().to_string().contains("does not know this meeting's secret"));
        assert!(Secret::new("too short").is_none() && Secret::new(&" ".repeat(40)).is_none());
        assert!(!format!("{:?}", Secret::new("a secret of both, long enough")).contains("long"));
    }

    /// What was heard once opens nothing the next time: the numbers that are used once differ.
    #[test]
    fn an_answer_serves_once() {
        let (secret, mine) = (Secret::new("a secret of both, long enough").unwrap(), hello(2));
        let (a, b, c) = (mine.encode().unwrap(), mine.encode().unwrap(), hello(1).encode().unwrap());
        assert!(secret.sign(b'd', &a, &c) != secret.sign(b'd', &b, &c));
        // Nor does the listener's answer serve as the dialler's.
        assert!(secret.sign(b'd', &a, &c) != secret.sign(b'l', &a, &c));
    }

    #[test]
    fn nonsense_is_no_greeting() {
        for nonsense in [vec![0; HELLO], vec![255; HELLO], b"GET / HTTP/1.1\r\n".repeat(8)] {
            let (mut one, mut other) = pair();
            one.write_all(&nonsense).unwrap();
            let secret = Secret::new("a secret of both, long enough").unwrap();
            let text = answer(&mut other, &hello(1), &secret, soon()).unwrap_err().to_string();
            assert!(text.contains("no process of Tandem"), "{text}");
        }
    }

    /// Who says its greeting byte by byte has as long as any other.
    #[test]
    fn a_slow_greeting_is_not_waited_for() {
        let (mut one, mut other) = pair();
        let whole = hello(2).encode().unwrap();
        let slow = std::thread::spawn(move || {
            for byte in whole {
                if one.write_all(&[byte]).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let (begun, secret) = (Instant::now(), Secret::new("a secret of both, long enough").unwrap());
        let end = begun + Duration::from_millis(200);
        let late = answer(&mut other, &hello(1), &secret, end).unwrap_err().kind();
        assert!(matches!(late, ErrorKind::TimedOut | ErrorKind::WouldBlock), "{late}");
        assert!(begun.elapsed() < Duration::from_millis(1000), "{:?}", begun.elapsed());
        drop(other);
        slow.join().unwrap();
    }

    #[test]
    fn messages_come_whole_and_no_longer_than_ours() {
        let (one, other) = pair();
        let (one, other) = (Stream::new(one), Stream::new(other));
        for len in [1, 2, 1000, MOST_BYTES] {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
            one.send(&bytes).unwrap();
            assert_eq!(other.receive().unwrap(), Some(bytes));
        }
        assert!(one.send(&[]).is_err() && one.send(&vec![0; MOST_BYTES + 1]).is_err());
        for len in [0, MOST_BYTES as u32 + 1, u32::MAX] {
            (&one.tcp).write_all(&len.to_le_bytes()).unwrap();
            assert!(other.receive().unwrap_err().to_string().contains("longer than any of ours"), "{len}");
        }
        one.close();
        assert_eq!(other.receive().unwrap(), None);
    }
}

//! What the service and a worker say to each other: a length of four bytes, little-endian, and so many bytes of JSON.
//!
//! They speak over a pair of sockets, whose end is the worker's standard input: what a library prints cannot get between.

use crate::blobs::Source;
use crate::seal::BlobKey;
use crate::store::Times;
use rustix::io::Errno;
use rustix::net::{recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Mutex;
use zeroize::Zeroizing;

/// Bytes of a message at most: the public values of 2^17 outputs have room.
pub(crate) const MESSAGE_MAX: usize = 16 << 20;

/// What a worker is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToWorker {
    /// Make a proof.
    Prove(Box<Order>),
    /// Read a witness while it comes: its job may follow.
    Ahead(Ahead),
    /// Make no proof of this attempt any more.
    Stop { job: String, attempt: i64 },
    /// Put a key on the device.
    Load(KeyFile),
    /// Take the key of this hash off the device.
    Evict { hash: String },
}

/// The file of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeyFile {
    pub(crate) path: PathBuf,
    /// Where it is copied from, if it is not there.
    pub(crate) from: Option<Source>,
    /// BLAKE3 of it.
    pub(crate) hash: String,
}

/// A proof to be made.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) job: String,
    pub(crate) attempt: i64,
    /// Its place in the queue: of the jobs in hand, the least comes first.
    pub(crate) rank: i64,
    pub(crate) key: KeyFile,
    pub(crate) witness: Source,
    pub(crate) witness_bytes: u64,
    /// What the witness is sealed with.
    pub(crate) seal: Option<BlobKey>,
    /// The witness in memory, which came beside the message.
    #[serde(skip)]
    pub(crate) held: Mutex<Option<OwnedFd>>,
    /// Whether what [`ToWorker::Ahead`] gave is the witness of this attempt.
    pub(crate) is_ahead: bool,
}

/// A witness in memory that is still being written.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ahead {
    pub(crate) job: String,
    /// The hash of its key.
    pub(crate) key: String,
    pub(crate) bytes: u64,
    /// The memory and the pipe that says how far it is ([`crate::coming`]), which came beside the message.
    #[serde(skip)]
    pub(crate) memory: Mutex<Option<[OwnedFd; 2]>>,
}

/// What a worker tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromWorker {
    /// The device is open.
    Ready { device: String },
    /// The device cannot be had, and why.
    Broken { reason: String },
    /// It lives.
    Beat(Beat),
    /// The device turns to the proof of an attempt, which was read and uploaded before.
    Begun { job: String, attempt: i64 },
    /// The proof of an attempt.
    Done(Made),
    /// There is none.
    Failed(Failure),
    /// The key of this hash is on the device, or why it is not: a word and a sentence.
    Loaded { hash: String, refused: Option<(String, String)> },
}

/// What a worker is at.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Beat {
    /// The stage of each job in hand.
    pub(crate) stages: BTreeMap<String, String>,
    /// Hashes of the keys on the device.
    pub(crate) keys: Vec<String>,
    /// Bytes that they take.
    pub(crate) key_bytes: u64,
}

/// A proof that was verified.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) job: String,
    pub(crate) attempt: i64,
    pub(crate) proof: String,
    pub(crate) publics: String,
    pub(crate) times: Times,
    pub(crate) device: String,
    pub(crate) remark: Option<String>,
    /// What the device did wrong, where this proof is not its own.
    pub(crate) fault: Option<Fault>,
    /// Whether the witness was read while it came.
    pub(crate) is_ahead: bool,
}

/// Why a device's own proof was not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// The device failed, or was short of memory.
    DeviceFailed,
    /// Its proof failed the check.
    WrongProof,
}

/// Why there is no proof.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) job: String,
    pub(crate) attempt: i64,
    pub(crate) code: String,
    pub(crate) reason: String,
    /// Whether it may work at another time or elsewhere.
    pub(crate) is_retryable: bool,
}

/// Writes one message.
pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&frame(message)?)
}

/// File descriptors beside a message at most.
const BESIDE: usize = 2;

/// [`send`] with file descriptors beside the message.
pub(crate) fn send_with(mut to: &UnixStream, message: &impl Serialize, beside: &[BorrowedFd<'_>]) -> io::Result<()> {
    let frame = frame(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BESIDE))];
    let sent = loop {
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(beside)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match sendmsg(to, &[IoSlice::new(&frame)], &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            sent => break sent?,
        }
    };
    to.write_all(&frame[sent..])
}

fn frame(message: &impl Serialize) -> io::Result<Zeroizing<Vec<u8>>> {
    // It may have the key of a witness.
    let text = Zeroizing::new(serde_json::to_vec(message)?);
    if text.len() > MESSAGE_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a message of {} bytes; expected at most {MESSAGE_MAX}", text.len()),
        ));
    }
    let mut frame = Zeroizing::new(Vec::with_capacity(text.len() + 4));
    frame.extend((text.len() as u32).to_le_bytes());
    frame.extend_from_slice(&text);
    Ok(frame)
}

/// Reads one message; `None` where the other side has gone.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
        Ok(()) => rest(from, length),
    }
}

/// [`receive`] with the file descriptors that came beside the message.
pub(crate) fn receive_with<T: DeserializeOwned>(mut from: &UnixStream) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let (mut length, mut got, mut beside) = ([0; 4], 0, Vec::new());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BESIDE))];
    while got < length.len() {
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut place = [IoSliceMut::new(&mut length[got..])];
        let read = match recvmsg(from, &mut place, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => continue,
            read => read?.bytes,
        };
        let came = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        beside.extend(came.flatten());
        if read == 0 {
            return Ok(None);
        }
        got += read;
    }
    Ok(rest(&mut from, length)?.map(|message| (message, beside)))
}

/// The message behind its length.
fn rest<T: DeserializeOwned>(from: &mut impl Read, length: [u8; 4]) -> io::Result<Option<T>> {
    let length = u32::from_le_bytes(length) as usize;
    if length > MESSAGE_MAX {
        let problem = format!("a message of {length} bytes was announced; expected at most {MESSAGE_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    // As much as comes, and no more than was announced.
    let mut text = Zeroizing::new(Vec::new());
    if from.by_ref().take(length as u64).read_to_end(&mut text)? < length {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&text)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn messages_come_back_and_cut_ones_do_not() {
        let mut bytes = Vec::new();
        send(&mut bytes, &ToWorker::Evict { hash: "a".into() }).unwrap();
        send(&mut bytes, &ToWorker::Stop { job: "b".into(), attempt: 2 }).unwrap();
        let mut from = &bytes[..];
        assert!(matches!(receive(&mut from), Ok(Some(ToWorker::Evict { hash })) if hash == "a"));
        assert!(matches!(receive(&mut from), Ok(Some(ToWorker::Stop { attempt: 2, .. }))));
        assert!(matches!(receive::<ToWorker>(&mut from), Ok(None)));
        for end in 0..bytes.len() {
            let mut from = &bytes[..end];
            while let Some(message) = receive::<ToWorker>(&mut from).unwrap() {
                assert!(matches!(message, ToWorker::Evict { .. }), "{end}");
            }
        }
    }

    /// What a broken process may say is refused, and takes no more memory than it sends.
    #[test]
    fn damaged_messages_are_refused() {
        use rand::{Rng, SeedableRng};
        let mut random = rand::rngs::StdRng::seed_from_u64(25);
        let mut good = Vec::new();
        let beat = Beat { stages: BTreeMap::from([("a".into(), "key".into())]), keys: vec!["b".into()], key_bytes: 7 };
        send(&mut good, &FromWorker::Beat(beat)).unwrap();
        send(&mut good, &FromWorker::Begun { job: "a".into(), attempt: 1 }).unwrap();
        let failure = Failure { job: "a".into(), attempt: 1, code: "b".into(), reason: "c".into(), is_retryable: true };
        send(&mut good, &FromWorker::Failed(failure)).unwrap();
        let (mut read, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..random.gen_range(0..4) {
                let at = random.gen_range(0..bytes.len());
                bytes[at] = random.gen();
            }
            let mut from = &bytes[..];
            loop {
                match receive::<FromWorker>(&mut from) {
                    Ok(Some(_)) => read += 1,
                    Ok(None) => break,
                    Err(_) => {
                        refused += 1;
                        break;
                    }
                }
            }
        }
        assert!(read > 10_000 && refused > 1_000, "{read} {refused}");
    }

    /// What comes beside a message comes with that one, and with no other.
    #[test]
    fn a_file_comes_with_its_message() {
        let (to, from) = UnixStream::pair().unwrap();
        let evict =
            |hash: usize| ToWorker::Evict { hash: hash.to_string().repeat(if hash == 3 { 100_000 } else { 1 }) };
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(b"beside").unwrap();
        let other = tempfile::tempfile().unwrap();
        let number = |of: &dyn AsFd| rustix::fs::fstat(of.as_fd()).unwrap().st_ino;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for message in 0..6 {
                    match message % 3 {
                        0 => send(&mut &to, &evict(message)).unwrap(),
                        many => send_with(&to, &evict(message), &[file.as_fd(), other.as_fd()][..many]).unwrap(),
                    }
                }
                to.shutdown(std::net::Shutdown::Write).unwrap();
            });
            for message in 0..6 {
                let (found, beside) = receive_with::<ToWorker>(&from).unwrap().unwrap();
                assert!(matches!(found, ToWorker::Evict { hash } if hash.starts_with(&message.to_string())));
                let beside: Vec<_> = beside.iter().map(|beside| number(beside)).collect();
                assert_eq!(beside, [number(&file), number(&other)][..message % 3], "{message}");
            }
            assert!(receive_with::<ToWorker>(&from).unwrap().is_none());
        });
    }

    #[test]
    fn lengths_and_contents_are_checked() {
        let huge = [u32::MAX.to_le_bytes().to_vec(), vec![b'x'; 9]].concat();
        assert!(receive::<ToWorker>(&mut &huge[..]).unwrap_err().to_string().contains("expected at most"));
        let odd = [4u32.to_le_bytes().to_vec(), b"nope".to_vec()].concat();
        assert!(receive::<ToWorker>(&mut &odd[..]).is_err());
        assert!(send(&mut Vec::new(), &"x".repeat(MESSAGE_MAX)).is_err());
    }
}

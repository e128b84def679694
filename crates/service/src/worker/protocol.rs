//! What the service and a worker say to each other: a length of four bytes, little-endian, and so many bytes of JSON.
//!
//! They speak over a pair of sockets, whose end is the worker's standard input: what a library prints cannot get between.

use crate::blobs::Source;
use crate::seal::BlobKey;
use crate::store::Times;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Bytes of a message at most: the public values of 2^17 outputs have room.
pub(crate) const MESSAGE_MAX: usize = 16 << 20;

/// What a worker is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToWorker {
    /// Make a proof.
    Prove(Box<Order>),
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
    to.write_all(&frame)
}

/// Reads one message; `None` where the other side has gone.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
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

    #[test]
    fn lengths_and_contents_are_checked() {
        let huge = [u32::MAX.to_le_bytes().to_vec(), vec![b'x'; 9]].concat();
        assert!(receive::<ToWorker>(&mut &huge[..]).unwrap_err().to_string().contains("expected at most"));
        let odd = [4u32.to_le_bytes().to_vec(), b"nope".to_vec()].concat();
        assert!(receive::<ToWorker>(&mut &odd[..]).is_err());
        assert!(send(&mut Vec::new(), &"x".repeat(MESSAGE_MAX)).is_err());
    }
}

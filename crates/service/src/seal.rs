//! Witnesses and inputs as they lie in a folder: encrypted, so that a copy of the folder without the installation's key shows nothing of
//! them.
//!
//! ```text
//! piece 0 | tag | piece 1 | tag | ... | last piece | tag        64 KiB a piece, but for the last; 16 bytes a tag
//! ```
//!
//! Each blob has a key of its own: the BLAKE3 hash of its name under the installation's key. A blob under another name, even a good one,
//! is thus refused. A piece is sealed by AES-256-GCM. Its number, and whether it is the last, are its nonce: pieces that were moved, left
//! out or cut off are refused, too (the construction STREAM: Hoang, Reyhanitabar, Rogaway, Vizár, 2015). A name is used once, so that no
//! nonce is used twice under a key. Pieces do not depend on each other, so several threads open those of a file.

use crate::blobs::Content;
use ring::aead::{Aad, LessSafeKey, Nonce, Tag, UnboundKey, AES_256_GCM, NONCE_LEN};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of a piece.
pub(crate) const PIECE: usize = 64 << 10;

/// Bytes behind each piece.
const TAG: usize = 16;

/// Bytes of a piece and its tag.
const SEALED: usize = PIECE + TAG;

/// Threads that open the pieces of a file, and pieces that each takes at a time. One thread opens about 2 GB a second, and a GPU proves
/// as many of witnesses. More threads, or those of a pool, which look for work when they have none, take from each other what they gain
/// where several blobs are read at once.
const THREADS: usize = 4;
const TOGETHER: usize = 8;

/// Bytes of a key.
pub(crate) const KEY: usize = 32;

/// The installation's key.
pub(crate) struct Seal(Zeroizing<[u8; KEY]>);

/// The key of one blob.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub(crate) struct BlobKey([u8; KEY]);

impl std::fmt::Debug for BlobKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlobKey")
    }
}

impl Seal {
    pub(crate) fn new(key: [u8; KEY]) -> Seal {
        Seal(Zeroizing::new(key))
    }

    /// The key of the blob of this name.
    pub(crate) fn of(&self, name: &str) -> BlobKey {
        BlobKey(*blake3::keyed_hash(&self.0, name.as_bytes()).as_bytes())
    }
}

impl BlobKey {
    fn cipher(&self) -> io::Result<LessSafeKey> {
        let key =
            UnboundKey::new(&AES_256_GCM, &self.0[..]).map_err(|_| io::Error::other("the cipher takes no key"))?;
        Ok(LessSafeKey::new(key))
    }
}

fn nonce(number: u64, is_last: bool) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[0] = u8::from(is_last);
    nonce[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Pieces of so many bytes of content: at least one, which may be empty.
fn pieces(bytes: u64) -> u64 {
    bytes.div_ceil(PIECE as u64).max(1)
}

/// Bytes of a blob with so many bytes of content.
pub(crate) fn sealed_bytes(bytes: u64) -> u64 {
    bytes.saturating_add(pieces(bytes).saturating_mul(TAG as u64))
}

/// Seals what is pushed into it.
pub(crate) struct Sealer {
    cipher: LessSafeKey,
    /// With room for its tag.
    piece: Zeroizing<Vec<u8>>,
    number: u64,
}

impl Sealer {
    pub(crate) fn new(key: &BlobKey) -> io::Result<Sealer> {
        Ok(Sealer { cipher: key.cipher()?, piece: Zeroizing::new(Vec::with_capacity(SEALED)), number: 0 })
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        while !bytes.is_empty() {
            // A full one is written when it is known not to be the last.
            if self.piece.len() == PIECE {
                self.write(false, to)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        self.write(true, to)
    }

    fn write(&mut self, is_last: bool, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let tag = seal(&self.cipher, self.number, is_last, &mut self.piece)?;
        self.piece.extend_from_slice(tag.as_ref());
        to.write_all(&self.piece)?;
        self.piece.clear();
        self.number += 1;
        Ok(())
    }

    /// Seals content from `at` on, a multiple of [`PIECE`], into the place that it has in a blob of which nothing was pushed. Threads may
    /// do so beside each other, each of them other content: all of it once. Only the last has a length that is no multiple of a piece.
    pub(crate) fn place(
        &self,
        at: u64,
        is_last: bool,
        content: &[impl AsRef<[u8]>],
        to: &impl FileExt,
    ) -> io::Result<()> {
        let first = at / PIECE as u64;
        let bytes: usize = content.iter().map(|part| part.as_ref().len()).sum();
        let count = pieces(bytes as u64);
        let mut sealed = Vec::with_capacity(sealed_bytes(bytes as u64) as usize);
        let mut parts = content.iter().map(AsRef::as_ref);
        let mut part: &[u8] = &[];
        for number in 0..count {
            let begin = sealed.len();
            while sealed.len() < begin + PIECE {
                if part.is_empty() {
                    let Some(next) = parts.next() else { break };
                    part = next;
                }
                let (now, later) = part.split_at(part.len().min(begin + PIECE - sealed.len()));
                sealed.extend_from_slice(now);
                part = later;
            }
            let is_last = is_last && number + 1 == count;
            // What is sealed needs no wiping.
            let tag =
                seal(&self.cipher, first + number, is_last, &mut sealed[begin..]).inspect_err(|_| sealed.zeroize())?;
            sealed.extend_from_slice(tag.as_ref());
        }
        to.write_all_at(&sealed, first * SEALED as u64)
    }
}

fn seal(cipher: &LessSafeKey, number: u64, is_last: bool, piece: &mut [u8]) -> io::Result<Tag> {
    let sealed = cipher.seal_in_place_separate_tag(nonce(number, is_last), Aad::empty(), piece);
    sealed.map_err(|_| io::Error::other("a piece cannot be sealed"))
}

/// Reads the content of a blob. Pieces for which the reader has room are opened in that place.
pub(crate) struct Opener<'a> {
    from: Content<'a>,
    cipher: LessSafeKey,
    /// A piece for which there was no room, and from where to where it is still to be given.
    piece: Zeroizing<Vec<u8>>,
    given: usize,
    end: usize,
    number: u64,
    /// Bytes of content that are not read yet.
    rest: u64,
    /// What was wrong with the blob.
    failure: Option<(ErrorKind, String)>,
}

impl<'a> Opener<'a> {
    /// A blob that was opened, with `bytes` of content. One of another length is refused at once.
    pub(crate) fn open((from, found): (Content<'a>, u64), key: &BlobKey, bytes: u64) -> io::Result<Opener<'a>> {
        let expected = sealed_bytes(bytes);
        match found == expected {
            true => Opener::new(from, key, bytes),
            false => Err(damaged(&format!("{found} bytes, expected {expected}"))),
        }
    }

    /// What has `bytes` of content.
    pub(crate) fn new(from: Content<'a>, key: &BlobKey, bytes: u64) -> io::Result<Opener<'a>> {
        let piece = Zeroizing::new(vec![0; PIECE]);
        Ok(Opener { from, cipher: key.cipher()?, piece, given: 0, end: 0, number: 0, rest: bytes, failure: None })
    }

    /// What was wrong with the blob, if something was: who reads may say it in other words.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        self.failure.take().map(|(kind, why)| io::Error::new(kind, why))
    }

    /// Opens the next pieces into `to`, which has just their length.
    fn fill(&mut self, to: &mut [u8]) -> io::Result<()> {
        let filled = self.fill_all(to);
        filled.inspect_err(|e| self.failure = Some((e.kind(), e.to_string())))?;
        self.number += pieces(to.len() as u64);
        self.rest -= to.len() as u64;
        Ok(())
    }

    fn fill_all(&mut self, to: &mut [u8]) -> io::Result<()> {
        let (cipher, first, rest) = (&self.cipher, self.number, self.rest);
        let open = |at: usize, piece: &mut [u8], tag: [u8; TAG]| {
            let nonce = nonce(first + at as u64, rest <= (at as u64 + 1) * PIECE as u64);
            let opened = cipher.open_in_place_separate_tag(nonce, Aad::empty(), Tag::from(tag), piece, 0..);
            let why = "it was changed, or is that of another job, or the service's key is another one";
            opened.map(|_| ()).map_err(|_| damaged(why))
        };
        match &mut self.from {
            Content::Stream(from) => each_piece(to, 0, |at, piece| {
                let mut tag = [0; TAG];
                from.read_exact(piece).and_then(|()| from.read_exact(&mut tag)).map_err(cut)?;
                open(at, piece, tag)
            }),
            Content::File(file) => by_threads(to, |at, piece| {
                let (mut tag, place) = ([0; TAG], (first + at as u64) * SEALED as u64);
                let found = file.read_exact_at(piece, place);
                found.and_then(|()| file.read_exact_at(&mut tag, place + piece.len() as u64)).map_err(cut)?;
                open(at, piece, tag)
            }),
        }
    }
}

pub(crate) fn cut(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => damaged("it is cut off"),
        _ => error,
    }
}

/// Fills piece by piece: `fill` gets the number of each, from `first` on. What has no byte is a piece, too.
fn each_piece(to: &mut [u8], first: usize, mut fill: impl FnMut(usize, &mut [u8]) -> io::Result<()>) -> io::Result<()> {
    match to.is_empty() {
        true => fill(first, to),
        false => to.chunks_mut(PIECE).enumerate().try_for_each(|(at, piece)| fill(first + at, piece)),
    }
}

/// [`each_piece`] by [`THREADS`], of which the caller is one. Where fewer can be started, those that there are do it.
pub(crate) fn by_threads(to: &mut [u8], fill: impl Fn(usize, &mut [u8]) -> io::Result<()> + Sync) -> io::Result<()> {
    if to.len() <= TOGETHER * PIECE {
        return each_piece(to, 0, fill);
    }
    let more = (to.len().div_ceil(TOGETHER * PIECE) - 1).min(THREADS - 1);
    let parts = Mutex::new(to.chunks_mut(TOGETHER * PIECE).enumerate());
    let work = || loop {
        let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some((number, part)) = next else { return Ok(()) };
        each_piece(part, number * TOGETHER, &fill)?;
    };
    thread::scope(|scope| {
        let start = |_| thread::Builder::new().name("open".into()).spawn_scoped(scope, work).ok();
        let others: Vec<_> = (0..more).filter_map(start).collect();
        let ended = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        // All of them end before what one of them found is told.
        let own = work();
        ended.collect::<Vec<_>>().into_iter().fold(own, io::Result::and)
    })
}

impl Read for Opener<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        // An empty blob has a piece, too.
        if self.given == self.end && (self.rest > 0 || self.number == 0) {
            let next = self.rest.min(PIECE as u64) as usize;
            if next <= to.len() {
                let room = if to.len() as u64 >= self.rest { self.rest as usize } else { to.len() / PIECE * PIECE };
                return self.fill(&mut to[..room]).map(|()| room);
            }
            let mut piece = std::mem::take(&mut self.piece);
            let filled = self.fill(&mut piece[..next]);
            self.piece = piece;
            filled?;
            (self.given, self.end) = (0, next);
        }
        let count = to.len().min(self.end - self.given);
        to[..count].copy_from_slice(&self.piece[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("what is stored is damaged: {why}; submit it again"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngCore, SeedableRng};

    fn sealed(key: &BlobKey, content: &[u8], cuts: &mut impl Rng) -> Vec<u8> {
        let (mut sealer, mut out, mut rest) = (Sealer::new(key).unwrap(), Vec::new(), content);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(cuts.gen_range(1..=rest.len()));
            sealer.push(now, &mut out).unwrap();
            rest = later;
        }
        sealer.finish(&mut out).unwrap();
        out
    }

    /// As a stream, and as a file, which threads read.
    fn contents(blob: &[u8]) -> [Content<'_>; 2] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(blob).unwrap();
        [Content::Stream(Box::new(blob)), Content::File(file)]
    }

    /// Reads with room for many pieces, for a piece, and for less.
    fn opened_in_cuts(key: &BlobKey, bytes: usize, from: Content<'_>, cuts: &mut impl Rng) -> Vec<u8> {
        let (mut opener, mut content) = (Opener::new(from, key, bytes as u64).unwrap(), vec![0; bytes]);
        let mut at = 0;
        while at < bytes {
            let room = [PIECE - 1, PIECE, PIECE + 1, cuts.gen_range(1..=9 * PIECE)][cuts.gen_range(0..4)];
            at += opener.read(&mut content[at..bytes.min(at + room)]).unwrap();
        }
        assert_eq!(opener.read(&mut [0]).unwrap(), 0);
        content
    }

    /// At once, for which both ways give the same.
    fn opened(key: &BlobKey, bytes: u64, blob: &[u8]) -> io::Result<Vec<u8>> {
        let opened = contents(blob).map(|from| {
            let mut content = vec![0; bytes as usize];
            let mut opener = Opener::new(from, key, bytes)?;
            let found = if bytes == 0 { opener.read(&mut []).map(drop) } else { opener.read_exact(&mut content) };
            let failure = opener.failure().map(|e| e.to_string());
            assert_eq!(found.as_ref().err().map(|e| e.to_string()), failure);
            found.map(|()| content)
        });
        let [stream, file] = opened;
        assert_eq!(stream.as_ref().map_err(|e| e.kind()), file.as_ref().map_err(|e| e.kind()));
        file
    }

    #[test]
    fn what_is_sealed_comes_back_and_nothing_of_it_shows() {
        let mut random = rand::rngs::StdRng::seed_from_u64(1);
        let seal = Seal::new([7; KEY]);
        let (some, many) = (2 * PIECE, TOGETHER * PIECE);
        let of_pieces = [PIECE, some, many, 2 * many, 2 * many + 3 * PIECE];
        let around = of_pieces.iter().flat_map(|bytes| [bytes - 1, *bytes, bytes + 1]);
        for bytes in [0, 1, 2, 3, 31, 200_001].into_iter().chain(around) {
            let mut content = vec![0; bytes];
            random.fill_bytes(&mut content);
            let key = seal.of("a");
            let blob = sealed(&key, &content, &mut random);
            assert_eq!(blob.len() as u64, sealed_bytes(bytes as u64));
            assert!(opened(&key, bytes as u64, &blob).unwrap() == content, "{bytes}");
            for from in contents(&blob) {
                assert!(opened_in_cuts(&key, bytes, from, &mut random) == content, "{bytes}");
            }
            if bytes > 16 {
                assert!(!blob.windows(16).any(|window| window == &content[..16]), "{bytes}");
            }
        }
    }

    /// Parts that are sealed at their places, whichever comes first, give what is sealed from front to back.
    #[test]
    fn parts_are_sealed_in_any_order() {
        let mut random = rand::rngs::StdRng::seed_from_u64(3);
        let key = Seal::new([7; KEY]).of("a");
        for bytes in [1, PIECE - 1, PIECE, PIECE + 1, 4 * PIECE, 4 * PIECE + 1, 17 * PIECE + 5] {
            let mut content = vec![0; bytes];
            random.fill_bytes(&mut content);
            let (sealer, file) = (Sealer::new(&key).unwrap(), tempfile::tempfile().unwrap());
            let mut parts: Vec<_> = content.chunks(3 * PIECE).enumerate().collect();
            parts.reverse();
            for (at, part) in parts {
                // As several pieces that came.
                let (one, other) = part.split_at(random.gen_range(0..=part.len()));
                let at = at * 3 * PIECE;
                sealer.place(at as u64, at + part.len() == bytes, &[one, other], &file).unwrap();
            }
            let mut blob = vec![0; sealed_bytes(bytes as u64) as usize];
            file.read_exact_at(&mut blob, 0).unwrap();
            assert_eq!(file.metadata().unwrap().len(), blob.len() as u64);
            assert!(blob == sealed(&key, &content, &mut random), "{bytes}");
        }
    }

    #[test]
    fn what_is_not_the_blob_is_refused() {
        let mut random = rand::rngs::StdRng::seed_from_u64(2);
        let (seal, bytes) = (Seal::new([7; KEY]), 3 * PIECE as u64);
        let mut content = vec![0; bytes as usize];
        random.fill_bytes(&mut content);
        let key = seal.of("a");
        let blob = sealed(&key, &content, &mut random);
        let whole = PIECE + TAG;
        let fails = |key: &BlobKey, bytes: u64, blob: &[u8]| {
            let error = opened(key, bytes, blob).unwrap_err();
            assert!(error.to_string().contains("damaged"), "{error}");
        };
        // Another name, another installation.
        fails(&seal.of("b"), bytes, &blob);
        fails(&Seal::new([8; KEY]).of("a"), bytes, &blob);
        // A bit anywhere.
        for at in [0, PIECE - 1, PIECE, whole - 1, whole, 2 * whole + 5, blob.len() - 1] {
            let mut changed = blob.clone();
            changed[at] ^= 1 << (at % 8);
            fails(&key, bytes, &changed);
        }
        // Cut, also where a piece ends; pieces changed about, or left out.
        for end in [0, 1, whole - 1, whole, 2 * whole, blob.len() - 1] {
            fails(&key, bytes, &blob[..end]);
        }
        fails(&key, 2 * PIECE as u64, &blob[..2 * whole]);
        fails(&key, 2 * PIECE as u64, &[&blob[..whole], &blob[2 * whole..]].concat());
        fails(&key, bytes, &[&blob[whole..2 * whole], &blob[..whole], &blob[2 * whole..]].concat());
        // None at all has a tag, too.
        fails(&key, 0, &[0; TAG]);
    }

    /// Of a blob that several threads open, each piece once.
    #[test]
    fn whichever_thread_meets_a_change_tells_it() {
        let mut random = rand::rngs::StdRng::seed_from_u64(4);
        let (key, pieces) = (Seal::new([7; KEY]).of("a"), 5 * TOGETHER + 1);
        let mut content = vec![0; pieces * PIECE];
        random.fill_bytes(&mut content);
        let mut blob = sealed(&key, &content, &mut random);
        for piece in 0..pieces {
            let at = piece * SEALED + random.gen_range(0..SEALED);
            blob[at] ^= 1;
            let error = opened(&key, content.len() as u64, &blob).unwrap_err();
            assert!(error.to_string().contains("damaged"), "piece {piece}: {error}");
            blob[at] ^= 1;
        }
        assert!(opened(&key, content.len() as u64, &blob).unwrap() == content);
    }

    #[test]
    fn a_file_of_another_length_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("blob"), Seal::new([7; KEY]).of("a"));
        let blob = sealed(&key, b"content", &mut rand::rngs::StdRng::seed_from_u64(3));
        let source = crate::blobs::Source::File(path.clone());
        std::fs::write(&path, [&blob[..], b"x"].concat()).unwrap();
        let error = Opener::open(source.open(&|| true).unwrap(), &key, 7).err().unwrap().to_string();
        assert!(error.contains("24 bytes, expected 23"), "{error}");
        std::fs::write(&path, &blob).unwrap();
        let mut content = String::new();
        Opener::open(source.open(&|| true).unwrap(), &key, 7).unwrap().read_to_string(&mut content).unwrap();
        assert_eq!(content, "content");
        assert_eq!(format!("{key:?}"), "BlobKey");
    }
}

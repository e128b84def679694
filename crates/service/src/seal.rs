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
//! nonce is used twice under a key.

use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of a piece.
const PIECE: usize = 64 << 10;

/// Bytes behind each piece.
const TAG: usize = 16;

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
    piece: Zeroizing<Vec<u8>>,
    number: u64,
}

impl Sealer {
    pub(crate) fn new(key: &BlobKey) -> io::Result<Sealer> {
        Ok(Sealer { cipher: key.cipher()?, piece: Zeroizing::new(Vec::with_capacity(PIECE)), number: 0 })
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
        let nonce = nonce(self.number, is_last);
        let tag = self.cipher.seal_in_place_separate_tag(nonce, Aad::empty(), &mut self.piece);
        let tag = tag.map_err(|_| io::Error::other("a piece cannot be sealed"))?;
        to.write_all(&self.piece)?;
        to.write_all(tag.as_ref())?;
        self.piece.clear();
        self.number += 1;
        Ok(())
    }
}

/// Reads the content of a blob.
pub(crate) struct Opener<R> {
    from: R,
    cipher: LessSafeKey,
    /// A piece, and from where to where it is still to be given.
    piece: Zeroizing<Vec<u8>>,
    given: usize,
    end: usize,
    number: u64,
    /// Bytes of content that are not read yet.
    rest: u64,
    /// What was wrong with the blob.
    failure: Option<(ErrorKind, String)>,
}

impl<R: Read> Opener<R> {
    /// A blob that was opened, with `bytes` of content. One of another length is refused at once.
    pub(crate) fn open((from, found): (R, u64), key: &BlobKey, bytes: u64) -> io::Result<Opener<R>> {
        let expected = sealed_bytes(bytes);
        match found == expected {
            true => Opener::new(from, key, bytes),
            false => Err(damaged(&format!("{found} bytes, expected {expected}"))),
        }
    }

    /// What has `bytes` of content.
    pub(crate) fn new(from: R, key: &BlobKey, bytes: u64) -> io::Result<Opener<R>> {
        let piece = Zeroizing::new(vec![0; PIECE + TAG]);
        Ok(Opener { from, cipher: key.cipher()?, piece, given: 0, end: 0, number: 0, rest: bytes, failure: None })
    }

    /// What was wrong with the blob, if something was: who reads may say it in other words.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        self.failure.take().map(|(kind, why)| io::Error::new(kind, why))
    }

    fn fill(&mut self) -> io::Result<()> {
        let bytes = self.rest.min(PIECE as u64) as usize;
        let is_last = self.rest <= PIECE as u64;
        let piece = &mut self.piece[..bytes + TAG];
        self.from.read_exact(piece).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => damaged("it is cut off"),
            _ => e,
        })?;
        let opened = self.cipher.open_in_place(nonce(self.number, is_last), Aad::empty(), piece);
        if opened.is_err() {
            return Err(damaged("it was changed, or is that of another job, or the service's key is another one"));
        }
        (self.given, self.end, self.number, self.rest) = (0, bytes, self.number + 1, self.rest - bytes as u64);
        Ok(())
    }
}

impl<R: Read> Read for Opener<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        // An empty blob has a piece, too.
        if self.given == self.end && (self.rest > 0 || self.number == 0) {
            self.fill().inspect_err(|e| self.failure = Some((e.kind(), e.to_string())))?;
        }
        let count = to.len().min(self.end - self.given);
        let from = &mut self.piece[self.given..self.given + count];
        to[..count].copy_from_slice(from);
        from.zeroize();
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

    fn opened(key: &BlobKey, bytes: u64, blob: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        Opener::new(blob, key, bytes)?.read_to_end(&mut content).map(|_| content)
    }

    #[test]
    fn what_is_sealed_comes_back_and_nothing_of_it_shows() {
        let mut random = rand::rngs::StdRng::seed_from_u64(1);
        let seal = Seal::new([7; KEY]);
        for bytes in [0, 1, 2, 3, 31, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 1, 200_001] {
            let mut content = vec![0; bytes];
            random.fill_bytes(&mut content);
            let key = seal.of("a");
            let blob = sealed(&key, &content, &mut random);
            assert_eq!(blob.len() as u64, sealed_bytes(bytes as u64));
            assert_eq!(opened(&key, bytes as u64, &blob).unwrap(), content, "{bytes}");
            if bytes > 16 {
                assert!(!blob.windows(16).any(|window| window == &content[..16]), "{bytes}");
            }
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

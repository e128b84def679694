//! What is read of a file is what was hashed of it.

use super::*;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tandem_ops::threads;

/// Bytes of blocks that were read of each file since its last [`take_count`], by its inode.
static COUNTS: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

pub(super) fn count(file: &RegularFile, bytes: usize) {
    *COUNTS.lock().unwrap().entry(file.metadata().ino()).or_default() += bytes;
}

/// Bytes of blocks that were read of the file since this was last asked.
pub(crate) fn take_count(path: &Path) -> usize {
    COUNTS.lock().unwrap().remove(&fs::metadata(path).unwrap().ino()).unwrap_or(0)
}

/// As [`take_count`], and it goes on counting.
pub(crate) fn counted(path: &Path) -> usize {
    COUNTS.lock().unwrap().get(&fs::metadata(path).unwrap().ino()).copied().unwrap_or(0)
}

pub(crate) fn random(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    ChaCha8Rng::seed_from_u64(len as u64).fill_bytes(&mut bytes);
    bytes
}

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        threads::ready().unwrap();
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join("key");
        fs::write(&path, bytes).unwrap();
        path
    }
}

pub(crate) fn read(path: &Path) -> Blocks {
    Blocks::read(RegularFile::open(path).unwrap(), &[], || false).map_err(|e| e.to_string()).unwrap()
}

/// The hash is that of the bytes as a whole, and any part of them is found again by every way of reading.
#[test]
fn blocks_are_the_file() {
    let folder = Folder::new();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (blocks, more) in [
        (0, 1),
        (0, 1023),
        (0, 1025),
        (1, -1),
        (1, 0),
        (1, 1),
        (2, -1),
        (2, 0),
        (2, 1),
        (3, 0),
        (3, 5),
        (4, 0),
        (5, 77),
        (8, 0),
        (11, -1000),
        (13, 1),
        (32, 0),
        (64, -1),
        (290, 5),
    ] {
        let bytes = random((blocks * BLOCK as i64 + more) as usize);
        let held = read(&folder.write(&bytes));
        assert_eq!((held.content(), held.bytes()), (Content::of(&bytes), bytes.len()), "{blocks} {more}");
        let whole = (0, bytes.len());
        let draw = |rng: &mut ChaCha8Rng, most: usize| rng.next_u64() as usize % (most + 1);
        let parts: Vec<_> = (0..20)
            .map(|i| {
                let at = draw(&mut rng, bytes.len());
                let most = if i % 2 == 0 { 5000 } else { bytes.len() };
                (at, draw(&mut rng, (bytes.len() - at).min(most)))
            })
            .collect();
        for (at, len) in parts.into_iter().chain([whole, (bytes.len(), 0)]) {
            let mut found = [vec![0; len], vec![0; len]];
            Outside::read(&held, at, &mut found[0]).unwrap();
            held.look(&mut found[1], at as u64).unwrap();
            assert!(found[0] == bytes[at..at + len] && found[1] == found[0], "{len} at {at} of {}", bytes.len());
        }
        let past = Outside::read(&held, bytes.len(), &mut [0]).unwrap_err();
        assert!(past.to_string().contains("changed while it was read"), "{past}");
    }
    assert_eq!(read(&folder.write(&[])).content(), Content::of(&[]));
}

/// Whatever becomes of the file later, nobody gets other bytes than were hashed.
#[test]
fn bytes_that_change_are_not_handed_out() {
    let folder = Folder::new();
    let bytes = random(12 * BLOCK + 99);
    let path = folder.write(&bytes);
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    for at in [0, BLOCK - 1, BLOCK, 5 * BLOCK + 7, 12 * BLOCK, bytes.len() - 1] {
        let held = read(&path);
        let mut other = bytes.clone();
        other[at] ^= 0x10;
        fs::write(&path, &other).unwrap();
        // Nor does its date give it away.
        fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
        let block = at / BLOCK;
        for index in 0..13 {
            let Range { start, end } = range(index, bytes.len());
            // All of the block, its first byte, and its last byte with the next block.
            for (from, len) in
                [(start, end - start), (start, 1), (end - 1, 1), (end - 1, (bytes.len() + 1 - end).min(2))]
            {
                let touches = from / BLOCK == block || (from + len - 1) / BLOCK == block;
                let mut found = [vec![0; len], vec![0; len]];
                let read = Outside::read(&held, from, &mut found[0]).map_err(|e| e.to_string());
                let looked = held.look(&mut found[1], from as u64).map_err(|e| e.to_string());
                for (result, found) in [read, looked].into_iter().zip(found) {
                    match result {
                        Ok(()) => assert!(!touches && found == bytes[from..from + len], "{len} at {from}, not {at}"),
                        Err(why) => assert!(
                            touches
                                && why.ends_with(
                                    "key: the file changed while it was read; try again when nobody writes to it"
                                ),
                            "{len} at {from}, not {at}: {why}"
                        ),
                    }
                }
            }
        }
        let all = held.look(&mut vec![0; bytes.len()], 0);
        assert!(all.is_err_and(|e| e.to_string().contains("changed while it was read")));
        fs::write(&path, &bytes).unwrap();
    }
    let held = read(&path);
    fs::File::options().write(true).open(&path).unwrap().set_len(7 * BLOCK as u64 + 5).unwrap();
    let mut block = vec![0; BLOCK];
    Outside::read(&held, 6 * BLOCK, &mut block).unwrap();
    for at in [7, 8, 11] {
        let cut = Outside::read(&held, at * BLOCK, &mut block).unwrap_err().to_string();
        assert!(cut.contains("changed while it was read"), "{cut}");
    }
    // What has another file's name now is still this file.
    let held = read(&folder.write(&bytes));
    fs::rename(&path, path.with_extension("old")).unwrap();
    folder.write(&random(50));
    Outside::read(&held, 6 * BLOCK, &mut block).unwrap();
    assert!(block == bytes[6 * BLOCK..7 * BLOCK]);
}

#[test]
fn a_reading_is_stopped() {
    let folder = Folder::new();
    let file = RegularFile::open(folder.write(&random(3 * BLOCK))).unwrap();
    assert!(matches!(Blocks::read(file, &[], || true), Err(Error::Interrupted)));
}

/// It would be read for ever.
#[test]
fn a_file_of_holes_is_refused() {
    // A file system in memory takes files of any size.
    let folder = Folder(tempfile::tempdir_in("/dev/shm").unwrap());
    let path = folder.write(&[]);
    fs::File::options().write(true).open(&path).unwrap().set_len(1 << 60).unwrap();
    let refused = Blocks::read(RegularFile::open(&path).unwrap(), &[], || true).err().unwrap().to_string();
    assert!(
        refused.contains("key: the file needs 1152921504606846976 bytes of memory, more than there is"),
        "{refused}"
    );
}

//! Lists are found by their file as it is, and only whole ones of its size in a folder of this user's.

use super::*;
use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::PathBuf;

/// A cache folder, and a file with a list of three blocks in it.
struct Kept {
    folder: tempfile::TempDir,
    hashes: [ChainingValue; 3],
}

impl Kept {
    fn new() -> Self {
        let kept = Kept { folder: tempfile::tempdir().unwrap(), hashes: [[1; 32], [2; 32], [255; 32]] };
        fs::write(kept.key(), "a key").unwrap();
        keep_in(kept.folder.path(), &kept.metadata(), &kept.hashes).unwrap();
        assert!(kept.is_found());
        kept
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    fn metadata(&self) -> Metadata {
        fs::metadata(self.key()).unwrap()
    }

    fn list(&self) -> PathBuf {
        self.folder.path().join(LISTS).join(name_of(&self.metadata()))
    }

    fn is_found(&self) -> bool {
        find_in(self.folder.path(), &self.metadata(), 3).is_ok_and(|found| found == self.hashes)
    }

    fn count(&self) -> usize {
        fs::read_dir(self.folder.path().join(LISTS)).unwrap().count()
    }
}

#[test]
fn a_list_is_of_one_state_of_a_file() {
    let kept = Kept::new();
    let before = kept.metadata();
    assert_eq!((kept.count(), fs::metadata(kept.list()).unwrap().permissions().mode() & 0o777), (1, 0o600));
    let is_found = || find_in(kept.folder.path(), &kept.metadata(), 3).is_ok();
    // Other bytes of the same length, with the time of modification put back: the time of change tells.
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(kept.key(), "a kez").unwrap();
    fs::File::options().write(true).open(kept.key()).unwrap().set_modified(before.modified().unwrap()).unwrap();
    assert!(kept.metadata().modified().unwrap() == before.modified().unwrap() && !is_found());
    keep_in(kept.folder.path(), &kept.metadata(), &kept.hashes).unwrap();
    assert!(is_found() && kept.count() == 2);
    // Another file of the same name, and a copy.
    fs::rename(kept.key(), kept.folder.path().join("old")).unwrap();
    fs::copy(kept.folder.path().join("old"), kept.key()).unwrap();
    assert!(!is_found());
}

#[test]
fn what_is_no_whole_list_is_none() {
    let kept = Kept::new();
    let good = fs::read(kept.list()).unwrap();
    assert_eq!(good.len(), 16 + 3 * 32);
    let mut older = good.clone();
    older[14] = b'0';
    let longer = [&good[..], &[0; 32]].concat();
    for bad in [&[][..], &good[..16], &good[..good.len() - 1], &longer, &older] {
        fs::write(kept.list(), bad).unwrap();
        assert!(!kept.is_found(), "{} bytes", bad.len());
    }
    // It is replaced, not left for good.
    keep_in(kept.folder.path(), &kept.metadata(), &kept.hashes).unwrap();
    assert!(kept.is_found() && kept.count() == 1);
    // One that would take for ever to read is not read.
    fs::File::options().write(true).open(kept.list()).unwrap().set_len(1 << 40).unwrap();
    assert!(!kept.is_found());
}

#[test]
fn links_pipes_and_what_others_can_write_to_do_not_count() {
    let kept = Kept::new();
    let good = fs::read(kept.list()).unwrap();
    let elsewhere = kept.folder.path().join("elsewhere");
    fs::write(&elsewhere, &good).unwrap();
    fs::remove_file(kept.list()).unwrap();
    symlink(&elsewhere, kept.list()).unwrap();
    assert!(!kept.is_found());
    // A link gives way, and what it leads to stays.
    fs::write(&elsewhere, "precious").unwrap();
    keep_in(kept.folder.path(), &kept.metadata(), &kept.hashes).unwrap();
    assert!(kept.is_found() && fs::read(&elsewhere).unwrap() == b"precious");
    fs::remove_file(kept.list()).unwrap();
    nix::unistd::mkfifo(&kept.list(), Mode::S_IRWXU).unwrap();
    assert!(!kept.is_found());
    keep_in(kept.folder.path(), &kept.metadata(), &kept.hashes).unwrap();
    for open in [0o620, 0o602] {
        fs::set_permissions(kept.list(), fs::Permissions::from_mode(open)).unwrap();
        assert!(!kept.is_found());
    }
    fs::set_permissions(kept.list(), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(kept.is_found());
    fs::set_permissions(kept.folder.path().join(LISTS), fs::Permissions::from_mode(0o770)).unwrap();
    assert!(!kept.is_found() && keep_in(kept.folder.path(), &kept.metadata(), &kept.hashes).is_err());
}

/// A folder in the place of a list: nothing can be put there, and nothing unfinished is left.
#[test]
fn a_list_that_cannot_be_kept_leaves_nothing() {
    let kept = Kept::new();
    fs::remove_file(kept.list()).unwrap();
    fs::create_dir(kept.list()).unwrap();
    keep_in(kept.folder.path(), &kept.metadata(), &kept.hashes).unwrap_err();
    assert!(!kept.is_found() && kept.count() == 1);
}

/// Many at once: each finds a whole list or none, and one is left.
#[test]
fn lists_are_kept_by_many_at_once() {
    let kept = Kept::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    keep_in(kept.folder.path(), &kept.metadata(), &kept.hashes).unwrap();
                    assert!(kept.is_found());
                }
            });
        }
    });
    assert_eq!(kept.count(), 1);
}

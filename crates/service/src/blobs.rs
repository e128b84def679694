//! Files that are written once: witnesses, and keys that were uploaded. A file has its name only when it is whole and on the disk.

use crate::seal::{BlobKey, Sealer};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the name of a file that is being written ends with.
const PART: &str = ".part";

/// A folder of such files, for this user alone.
pub(crate) struct Blobs {
    folder: PathBuf,
    /// Whether files outlive a loss of power.
    syncs: bool,
}

/// A file that is being written. It is removed unless it is kept.
pub(crate) struct Part {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    hasher: blake3::Hasher,
    bytes: u64,
    /// What encrypts the content on its way to the disk.
    sealer: Option<Sealer>,
    syncs: bool,
    is_kept: bool,
}

/// Makes a folder for this user alone; one that others may look into is closed to them.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

/// 32 hexadecimal digits that nobody can guess.
pub(crate) fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Blobs {
    pub(crate) fn open(folder: PathBuf, syncs: bool) -> io::Result<Blobs> {
        private_folder(&folder)?;
        Ok(Blobs { folder, syncs })
    }

    /// Where a file of this name lies. Of a name that is a path, which a database may have, only the last part counts.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(Path::new(name).file_name().unwrap_or_default())
    }

    /// Begins a file; `hasher` is what its content goes through. With a key it is sealed.
    pub(crate) fn create(&self, hasher: blake3::Hasher, key: Option<&BlobKey>) -> io::Result<Part> {
        let sealer = key.map(Sealer::new).transpose()?;
        let path = self.folder.join(random_name()? + PART);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Part {
            folder: self.folder.clone(),
            path,
            file,
            hasher,
            bytes: 0,
            sealer,
            syncs: self.syncs,
            is_kept: false,
        })
    }

    /// Removes a file. That it is gone already is no error.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Copies a file in under a name.
    pub(crate) fn take_in(&self, path: &Path, name: &str) -> io::Result<()> {
        let (mut part, mut file) = (self.create(blake3::Hasher::new(), None)?, File::open(path)?);
        let mut piece = vec![0; 1 << 20];
        loop {
            match file.read(&mut piece)? {
                0 => break,
                count => part.write(&piece[..count])?,
            }
        }
        part.keep(name)
    }

    /// Removes everything but the files of these names, and those that are younger than `age`. Returns how many there were. To be called
    /// before anything is written here.
    pub(crate) fn sweep(&self, needed: &HashSet<String>, age: Duration) -> io::Result<usize> {
        let mut swept = 0;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // Another node may have removed it since.
            let Ok(changed) = entry.metadata().and_then(|file| file.modified()) else { continue };
            let is_old = age.is_zero() || changed.elapsed().is_ok_and(|since| since > age);
            if is_old && entry.file_name().to_str().is_none_or(|name| !needed.contains(name)) {
                swept += usize::from(fs::remove_file(entry.path()).is_ok() || age.is_zero());
            }
        }
        Ok(swept)
    }
}

impl Part {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.sealer {
            Some(sealer) => sealer.push(bytes, &mut self.file)?,
            None => self.file.write_all(bytes)?,
        }
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Bytes of the content.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn hash(&self) -> blake3::Hash {
        self.hasher.finalize()
    }

    /// Gives the file its name, when it is on the disk.
    pub(crate) fn keep(mut self, name: &str) -> io::Result<()> {
        if let Some(sealer) = &mut self.sealer {
            sealer.finish(&mut self.file)?;
        }
        if self.syncs {
            self.file.sync_data()?;
        }
        fs::rename(&self.path, self.folder.join(name))?;
        self.is_kept = true;
        match self.syncs {
            true => File::open(&self.folder)?.sync_all(),
            false => Ok(()),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_kept {
            // The next start sweeps what stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole_and_is_this_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("blobs");
        fs::create_dir(&at).unwrap();
        fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap();
        let blobs = Blobs::open(at.clone(), true).unwrap();
        assert_eq!(mode(&at), 0o700);
        let mut part = blobs.create(blake3::Hasher::new(), None).unwrap();
        part.write(b"half").unwrap();
        assert!(names(&at)[0].ends_with(PART) && mode(part.path()) == 0o600);
        part.write(b" and half").unwrap();
        assert_eq!((part.bytes(), part.hash()), (13, blake3::hash(b"half and half")));
        part.keep("whole").unwrap();
        assert_eq!((names(&at), mode(&blobs.path("whole"))), (vec!["whole".to_string()], 0o600));
        // What is given up leaves nothing.
        blobs.create(blake3::Hasher::new(), None).unwrap().write(b"x").unwrap();
        assert_eq!(names(&at), ["whole"]);
        blobs.remove("whole").unwrap();
        blobs.remove("whole").unwrap();
        assert!(names(&at).is_empty());
    }

    /// A name comes from a database, which others may write.
    #[test]
    fn names_do_not_lead_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(folder.path().join("blobs"), true).unwrap();
        let outside = folder.path().join("outside");
        fs::write(&outside, "x").unwrap();
        for name in ["../outside", outside.to_str().unwrap(), "a/../../outside"] {
            assert_eq!(blobs.path(name), folder.path().join("blobs/outside"));
            blobs.remove(name).unwrap();
        }
        assert!(outside.exists() && blobs.remove("..").is_err());
    }

    #[test]
    fn a_start_sweeps_what_nobody_needs() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(folder.path().into(), true).unwrap();
        for name in ["needed", "orphan", "half.part"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        assert_eq!(blobs.sweep(&HashSet::from(["needed".to_string()]), Duration::from_secs(60)).unwrap(), 0);
        assert_eq!(blobs.sweep(&HashSet::from(["needed".to_string()]), Duration::ZERO).unwrap(), 2);
        assert_eq!(names(folder.path()), ["needed"]);
    }
}

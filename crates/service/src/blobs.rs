//! What is written once: witnesses, and keys that were uploaded. It has its name only when it is whole: in a folder, on the disk; in a
//! bucket, as an object.

use crate::config::Config;
use crate::objects::{self, Bucket, Object, Upload};
use crate::seal::{BlobKey, Sealer};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What the name of a file that is being written ends with.
const PART: &str = ".part";

/// Bytes that are copied at a time.
const PIECE: usize = 1 << 20;

/// Blobs of one kind.
pub(crate) struct Blobs {
    place: Place,
}

#[derive(Clone)]
enum Place {
    /// For this user alone; `syncs`: files outlive a loss of power.
    Folder { folder: PathBuf, syncs: bool },
    /// Objects whose names begin with `at`. Those that are looked into before they have their names are first written to `staged`,
    /// where they stay as copies.
    Bucket { bucket: Arc<Bucket>, at: &'static str, staged: Option<PathBuf> },
}

/// The blobs of an installation.
pub(crate) struct Places {
    pub(crate) witnesses: Blobs,
    pub(crate) keys: Blobs,
    /// Where keys are copied to from `keys`, if nodes share that.
    pub(crate) key_cache: Option<Blobs>,
    pub(crate) root: Root,
}

/// What nodes share.
pub(crate) enum Root {
    Folder(PathBuf),
    Bucket(Arc<Bucket>),
}

/// Where a blob is read from, by another process, too.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    File(PathBuf),
    Object(Object),
    /// The blob itself, which came from the database.
    Here(#[serde(with = "base64_text")] Vec<u8>),
}

/// Bytes in a message.
mod base64_text {
    use base64::prelude::{Engine, BASE64_STANDARD};
    use serde::{de::Error, Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<u8>, D::Error> {
        BASE64_STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// The content of a blob, as it is stored.
pub(crate) enum Content<'a> {
    /// Read from any place in it, by any thread.
    File(File),
    Stream(Box<dyn Read + 'a>),
}

/// The content of a blob, and its bytes.
pub(crate) type Opened<'a> = (Content<'a>, u64);

impl Read for Content<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Content::File(file) => file.read(to),
            Content::Stream(stream) => stream.read(to),
        }
    }
}

/// A blob that is being written. It is removed unless it is kept.
pub(crate) struct Part {
    sink: Sink,
    hasher: blake3::Hasher,
    bytes: u64,
    /// What encrypts the content on its way.
    sealer: Option<Sealer>,
}

/// Where the content of a file is written by several threads, each of them other parts of it.
pub(crate) struct Placed {
    file: File,
    sealer: Option<Sealer>,
}

impl Placed {
    /// Writes content where it belongs: from `at` on, a multiple of a sealed piece ([`crate::seal::PIECE`]). Only the last ends elsewhere.
    pub(crate) fn write(&self, at: u64, is_last: bool, content: &[impl AsRef<[u8]>]) -> io::Result<()> {
        let Some(sealer) = &self.sealer else { return write_at(&self.file, at, content) };
        sealer.place(at, is_last, content, &self.file)
    }
}

/// Writes one part behind the other.
pub(crate) fn write_at(file: &File, mut at: u64, content: &[impl AsRef<[u8]>]) -> io::Result<()> {
    content.iter().map(AsRef::as_ref).try_for_each(|part| {
        file.write_all_at(part, at)?;
        at += part.len() as u64;
        Ok(())
    })
}

enum Sink {
    /// Nowhere yet: a place and a name for what turns out to be no small blob.
    Later(Place, String),
    File(FilePart),
    Upload {
        upload: Upload,
        name: String,
    },
}

struct FilePart {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    syncs: bool,
    is_kept: bool,
    /// Where it is to appear, too.
    publish: Option<(Arc<Bucket>, &'static str)>,
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

/// Of a name that is a path, which a database may have, only the last part counts.
fn last(name: &str) -> &Path {
    Path::new(Path::new(name).file_name().unwrap_or_default())
}

impl Places {
    /// # Errors
    /// One sentence: a folder cannot be made, a setting of the bucket is wrong.
    pub(crate) fn open(config: &Config) -> Result<Places, String> {
        let cannot = |path: &Path, e: &io::Error| format!("{}: cannot make the folder of blobs: {e}", path.display());
        let folder = |path: PathBuf| Blobs::open(path.clone(), config.survives.syncs()).map_err(|e| cannot(&path, &e));
        let cache = config.data.join("key-cache");
        let key_cache = config.blobs.is_some().then(|| folder(cache.clone())).transpose()?;
        if let Some(address) = config.blobs.as_deref().filter(|blobs| blobs.starts_with(objects::SCHEME)) {
            let bucket = Bucket::open(config, address)?;
            let of = |at, staged| Blobs { place: Place::Bucket { bucket: bucket.clone(), at, staged } };
            let (witnesses, keys) = (of("witnesses/", None), of("keys/", Some(cache)));
            return Ok(Places { witnesses, keys, key_cache, root: Root::Bucket(bucket) });
        }
        let root = config.blobs.as_ref().map_or_else(|| config.data.clone(), PathBuf::from);
        private_folder(&root).map_err(|e| cannot(&root, &e))?;
        let (witnesses, keys) = (folder(root.join("witnesses"))?, folder(root.join("keys"))?);
        Ok(Places { witnesses, keys, key_cache, root: Root::Folder(root) })
    }
}

impl Source {
    /// Opens it, and goes on as long as it is wanted.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`]: there is none.
    pub(crate) fn open<'a>(&'a self, wanted: &'a (dyn Fn() -> bool + Sync)) -> io::Result<Opened<'a>> {
        match self {
            Source::File(path) => {
                let file = File::open(path)?;
                let bytes = file.metadata()?.len();
                Ok((Content::File(file), bytes))
            }
            Source::Object(object) => {
                let content = object.open(wanted)?;
                let bytes = content.size();
                Ok((Content::Stream(Box::new(content)), bytes))
            }
            Source::Here(bytes) => Ok((Content::Stream(Box::new(&bytes[..])), bytes.len() as u64)),
        }
    }

    /// What an error calls it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Object(object) => format!("{object:?}"),
            Source::Here(_) => "what the database has".into(),
        }
    }
}

impl Blobs {
    pub(crate) fn open(folder: PathBuf, syncs: bool) -> io::Result<Blobs> {
        private_folder(&folder)?;
        Ok(Blobs { place: Place::Folder { folder, syncs } })
    }

    /// Where the file of this name lies: of those in a bucket, the copy that a node may have.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match &self.place {
            Place::Folder { folder, .. } | Place::Bucket { staged: Some(folder), .. } => folder.join(last(name)),
            Place::Bucket { staged: None, .. } => PathBuf::new(),
        }
    }

    /// Where the blob of this name is read from.
    pub(crate) fn source(&self, name: &str) -> Source {
        match &self.place {
            Place::Folder { .. } => Source::File(self.path(name)),
            Place::Bucket { bucket, at, .. } => Source::Object(bucket.object(&object(at, name))),
        }
    }

    /// Whether blobs are objects of a bucket.
    pub(crate) fn are_objects(&self) -> bool {
        matches!(self.place, Place::Bucket { .. })
    }

    /// Begins the blob of this name; `hasher` is what its content goes through. With a key it is sealed.
    pub(crate) fn create(&self, name: &str, hasher: blake3::Hasher, key: Option<&BlobKey>) -> io::Result<Part> {
        let sealer = key.map(Sealer::new).transpose()?;
        Ok(Part { sink: self.place.sink(name)?, hasher, bytes: 0, sealer })
    }

    /// [`Blobs::create`] for a blob that may turn out to be small, of one sealed piece: then [`Part::keep`] gives it instead of storing it.
    pub(crate) fn create_later(&self, name: &str, hasher: blake3::Hasher, key: &BlobKey) -> io::Result<Part> {
        let sink = Sink::Later(self.place.clone(), name.into());
        Ok(Part { sink, hasher, bytes: 0, sealer: Some(Sealer::new(key)?) })
    }

    /// Removes a blob, or sees to it that it is removed soon. That it is gone already is no error.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        if let Place::Bucket { bucket, at, .. } = &self.place {
            bucket.remove(&object(at, name));
            return Ok(());
        }
        match fs::remove_file(self.path(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Whether blobs are still to be removed.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(&self.place, Place::Bucket { bucket, .. } if bucket.is_busy())
    }

    /// Copies a file in under a name, unless its content has another hash than this.
    pub(crate) fn take_in(&self, path: &Path, name: &str, hash: &str) -> io::Result<()> {
        if let Place::Bucket { bucket, at, .. } = &self.place {
            return publish(bucket, path, &object(at, name), hash);
        }
        let mut part = self.create(name, blake3::Hasher::new(), None)?;
        copy(path, |piece| part.write(piece))?;
        same(part.hash(), hash)?;
        part.keep(name).map(drop)
    }

    /// Names and bytes of all blobs whose names begin so.
    pub(crate) fn list(&self, begin: &str) -> io::Result<Vec<(String, u64)>> {
        Ok(self.aged(begin)?.into_iter().map(|(name, bytes, _)| (name, bytes)).collect())
    }

    /// Names, bytes, and when they were last changed.
    fn aged(&self, begin: &str) -> io::Result<Vec<(String, u64, SystemTime)>> {
        let folder = match &self.place {
            Place::Folder { folder, .. } => folder,
            Place::Bucket { bucket, at, .. } => {
                let name = |name: &str| name.strip_prefix(at).unwrap_or(name).to_string();
                let listed = bucket.list(&format!("{at}{begin}"))?;
                return Ok(listed.into_iter().map(|of| (name(&of.name), of.bytes, of.changed)).collect());
            }
        };
        let mut all = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // Another node may have removed it since.
            let Ok(about) = entry.metadata() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(begin) {
                all.push((name, about.len(), about.modified()?));
            }
        }
        Ok(all)
    }

    /// Removes everything but the blobs of these names, and those that are younger than `age`. Returns how many there were. To be called
    /// before anything is written here.
    pub(crate) fn sweep(&self, needed: &HashSet<String>, age: Duration) -> io::Result<usize> {
        let mut swept = 0;
        for (name, _, changed) in self.aged("")? {
            let is_old = age.is_zero() || changed.elapsed().is_ok_and(|since| since > age);
            if is_old && !needed.contains(&name) {
                swept += usize::from(self.remove(&name).is_ok() || age.is_zero());
            }
        }
        Ok(swept)
    }
}

impl Place {
    /// Where the blob of this name is written.
    fn sink(&self, name: &str) -> io::Result<Sink> {
        let (folder, syncs, publish) = match self {
            Place::Folder { folder, syncs } => (folder, *syncs, None),
            // What is lost of a copy is read from the bucket again.
            Place::Bucket { bucket, at, staged: Some(folder) } => (folder, false, Some((bucket.clone(), *at))),
            Place::Bucket { bucket, at, staged: None } => {
                return Ok(Sink::Upload { upload: Upload::new(bucket, object(at, name)), name: name.into() });
            }
        };
        let path = folder.join(random_name()? + PART);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Sink::File(FilePart { folder: folder.clone(), path, file, syncs, is_kept: false, publish }))
    }
}

impl Sink {
    /// Makes the place that was put off.
    fn open(&mut self) -> io::Result<()> {
        if let Sink::Later(place, name) = self {
            *self = place.sink(name)?;
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open()?;
        match self {
            Sink::File(part) => part.file.write(bytes),
            Sink::Upload { upload, .. } => upload.write(bytes),
            Sink::Later(..) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(part) => part.file.flush(),
            Sink::Upload { upload, .. } => upload.flush(),
            Sink::Later(..) => Ok(()),
        }
    }
}

/// The name of an object.
fn object(at: &str, name: &str) -> String {
    format!("{at}{}", last(name).display())
}

/// Reads a file piece by piece.
fn copy(path: &Path, mut to: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; PIECE]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(()),
            count => to(&piece[..count])?,
        }
    }
}

/// Uploads a file, unless its content has another hash than this.
fn publish(bucket: &Arc<Bucket>, path: &Path, name: &str, hash: &str) -> io::Result<()> {
    let (mut upload, mut hasher) = (Upload::new(bucket, name.into()), blake3::Hasher::new());
    copy(path, |piece| {
        hasher.update(piece);
        upload.write_all(piece)
    })?;
    same(hasher.finalize(), hash)?;
    upload.finish()
}

fn same(found: blake3::Hash, hash: &str) -> io::Result<()> {
    match found.to_hex().as_str() == hash {
        true => Ok(()),
        false => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the file was changed while it was read; register it again"))
        }
    }
}

impl Part {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.store(bytes)
    }

    /// What its content goes through, for who hashes it beside [`Part::store`] and gives it back.
    pub(crate) fn hasher(&mut self) -> &mut blake3::Hasher {
        &mut self.hasher
    }

    /// [`Part::write`] of what is hashed elsewhere.
    pub(crate) fn store(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.sealer {
            Some(sealer) => sealer.push(bytes, &mut self.sink)?,
            None => self.sink.write_all(bytes)?,
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// [`Part::store`] of several pieces.
    pub(crate) fn store_all(&mut self, content: &[impl AsRef<[u8]>]) -> io::Result<()> {
        content.iter().try_for_each(|piece| self.store(piece.as_ref()))
    }

    /// Where its content is written in any order, if nothing of it is and it is a file; [`Part::placed`] ends that.
    pub(crate) fn begin_placed(&mut self) -> io::Result<Option<Placed>> {
        if self.bytes == 0 {
            self.sink.open()?;
        }
        match &self.sink {
            Sink::File(part) if self.bytes == 0 => {
                Ok(Some(Placed { file: part.file.try_clone()?, sealer: self.sealer.take() }))
            }
            _ => Ok(None),
        }
    }

    /// So many bytes of content are where they belong, all of them.
    pub(crate) fn placed(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// Bytes of the content.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file as far as it is written; empty where there is none.
    pub(crate) fn path(&self) -> &Path {
        match &self.sink {
            Sink::File(part) => &part.path,
            Sink::Upload { .. } | Sink::Later(..) => Path::new(""),
        }
    }

    pub(crate) fn hash(&self) -> blake3::Hash {
        self.hasher.finalize()
    }

    /// Gives the blob its name, when it is whole, or is given back itself where it is small. What is uploaded as it comes has the name that
    /// it began with.
    pub(crate) fn keep(self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let hash = self.hash().to_hex();
        let Part { sink, sealer, .. } = self;
        match sink {
            Sink::Later(..) => {
                let mut blob = Vec::new();
                sealer.map_or(Ok(()), |mut sealer| sealer.finish(&mut blob))?;
                return Ok(Some(blob));
            }
            Sink::Upload { mut upload, name: own } => {
                if own != name {
                    return Err(io::Error::other("a blob that is uploaded has its name from the beginning"));
                }
                sealer.map_or(Ok(()), |mut sealer| sealer.finish(&mut upload))?;
                upload.finish()?;
            }
            Sink::File(mut part) => {
                sealer.map_or(Ok(()), |mut sealer| sealer.finish(&mut part.file))?;
                part.keep(name)?;
                let publishes = part.publish.take();
                publishes.map_or(Ok(()), |(bucket, at)| {
                    publish(&bucket, &part.folder.join(name), &object(at, name), &hash)
                })?;
            }
        }
        Ok(None)
    }
}

impl FilePart {
    fn keep(&mut self, name: &str) -> io::Result<()> {
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

impl Drop for FilePart {
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
        let mut part = blobs.create("whole", blake3::Hasher::new(), None).unwrap();
        part.write(b"half").unwrap();
        assert!(names(&at)[0].ends_with(PART) && mode(part.path()) == 0o600);
        part.write(b" and half").unwrap();
        assert_eq!((part.bytes(), part.hash()), (13, blake3::hash(b"half and half")));
        part.keep("whole").unwrap();
        assert_eq!((names(&at), mode(&blobs.path("whole"))), (vec!["whole".to_string()], 0o600));
        // What is given up leaves nothing.
        blobs.create("whole", blake3::Hasher::new(), None).unwrap().write(b"x").unwrap();
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

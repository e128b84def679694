//! Keys by name, of which as many are on the device as a budget allows.

mod cache;

use crate::cache::Content;
use crate::key::device_bytes;
use crate::source::UNNAMED;
use crate::{key_info, Engine, Error, Key, KeyCheck, Progress, Result};
use cache::{Cache, Refused};
use std::collections::HashMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keys that are loaded when they are asked for and stay on the engine's device until others need the room: the least recently used one
/// goes first, and never one that somebody has. Any number of threads may ask at once; who asks for a key that is being loaded waits for
/// that load.
///
/// A key counts with [`KeyInfo::device_bytes`](crate::KeyInfo::device_bytes). So that it takes no more, the store loads keys without tables
/// of multiples, as [`Engine::for_proofs`] does for one proof.
///
/// ```
/// use tandem_engine::{DeviceChoice, Engine, KeyStore, Silent};
/// # fn main() -> tandem_engine::Result<()> {
/// # let file = format!("{}/../../demo/membership.zkey", env!("CARGO_MANIFEST_DIR"));
/// let store = KeyStore::new(Engine::open(&DeviceChoice::Cpu)?, 8 << 30);
/// store.add_file("membership", file.as_ref())?;
/// let key = store.get("membership", &Silent)?;
/// assert_eq!(key.info().publics, 1);
/// # Ok(())
/// # }
/// ```
pub struct KeyStore {
    engine: Engine,
    known: Mutex<HashMap<String, Known>>,
    /// What the files of keys held when they were loaded first.
    contents: Mutex<HashMap<String, Content>>,
    cache: Cache<Key, Error>,
    /// Bytes that a key counts with at least.
    least_bytes: u64,
}

/// Where a key is loaded from.
#[derive(Clone, PartialEq, Eq)]
enum Known {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

/// A key of a store. It stays on the device as long as this is held.
pub struct StoredKey(Arc<Key>);

impl Deref for StoredKey {
    type Target = Key;
    fn deref(&self) -> &Key {
        &self.0
    }
}

impl KeyStore {
    /// No keys yet, on the device of `engine`, of which they may take so many bytes together.
    pub fn new(engine: Engine, budget_bytes: u64) -> KeyStore {
        let (known, contents, cache) = (Mutex::default(), Mutex::default(), Cache::new(budget_bytes));
        KeyStore { engine: engine.for_proofs(1), known, contents, cache, least_bytes: 0 }
    }

    /// This store, for keys that make so many proofs each while they are on the device: with tables of multiples, which take up to
    /// nearly all of its memory. Such a key counts as the whole budget, so that one is there at a time. For one proof, nothing changes.
    #[must_use]
    pub fn for_proofs(self, proofs: u64) -> KeyStore {
        let least_bytes = if proofs > 1 { self.cache.budget() } else { 0 };
        KeyStore { engine: self.engine.for_proofs(proofs.max(1)), least_bytes, ..self }
    }

    /// The engine that proves with the keys.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, name: &str, key: Known) -> Result<()> {
        let mut known = self.known();
        match known.get(name) {
            Some(before) if *before != key => Err(Error::input(format!("another key is called '{name}' already"))),
            _ => {
                known.insert(name.into(), key);
                Ok(())
            }
        }
    }

    /// Names a `.zkey` file. Of it only the header is read now; a key that has been loaded from it and is needed again must be the same.
    ///
    /// # Errors
    /// [`Error::BadInput`] for what is no key by its header, or where another key has this name.
    pub fn add_file(&self, name: &str, path: &Path) -> Result<()> {
        key_info(path)?;
        self.add(name, Known::File(path.into()))
    }

    /// Names a `.zkey` file by the BLAKE3 hash of its content in hexadecimal, with which the caller has compared it. A file that was named so
    /// before has the same content; from now on this one is read.
    ///
    /// # Errors
    /// [`Error::BadInput`] for what is no key by its header.
    pub fn add_hashed_file(&self, hash: &str, path: &Path) -> Result<()> {
        key_info(path)?;
        self.known().insert(hash.into(), Known::File(path.into()));
        Ok(())
    }

    /// Names the bytes of a `.zkey`, which are kept. They are looked at when the key is first asked for.
    ///
    /// # Errors
    /// [`Error::BadInput`] where another key has this name.
    pub fn add_bytes(&self, name: &str, bytes: impl Into<Arc<[u8]>>) -> Result<()> {
        self.add(name, Known::Bytes(bytes.into()))
    }

    /// Names the bytes of a `.zkey` by their BLAKE3 hash, which is returned in hexadecimal: the same bytes have the same name.
    ///
    /// # Errors
    /// None of its own.
    pub fn add_hashed(&self, bytes: impl Into<Arc<[u8]>>) -> Result<String> {
        let bytes = bytes.into();
        let name = blake3::Hasher::new().update_rayon(&bytes).finalize().to_hex().to_string();
        self.add_bytes(&name, bytes)?;
        Ok(name)
    }

    /// A key, loaded if it is not on the device.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a name that nobody gave, and as [`Engine::load_key`]; [`Error::OutOfMemory`] for a key that is larger than
    /// the budget, or than what keys in use leave of it, with the figures; [`Error::Interrupted`].
    pub fn get(&self, name: &str, progress: &dyn Progress) -> Result<StoredKey> {
        let known = self.known().get(name).cloned();
        let known = known.ok_or_else(|| Error::input(format!("no key is called '{name}'")))?;
        let bytes = match &known {
            Known::File(path) => key_info(path)?.device_bytes(),
            Known::Bytes(bytes) => device_bytes(bytes).map_err(|e| e.in_file(Path::new(UNNAMED)))?,
        };
        let bytes = bytes.max(self.least_bytes);
        let load = || match &known {
            Known::File(path) => {
                self.engine.load_key(path, KeyCheck::Once, progress).and_then(|key| self.first(name, path, key))
            }
            Known::Bytes(bytes) => self.engine.load_key_bytes(bytes.clone(), KeyCheck::Once, progress),
        };
        // Who stops its own load stops nobody else's.
        let shared = |error: &Error| !matches!(error, Error::Interrupted);
        let got = self.cache.get(name, bytes, || progress.cancelled(), shared, load);
        got.map(StoredKey).map_err(|refused| match refused {
            Refused::TooLarge { bytes, budget } => Error::OutOfMemory(format!(
                "the key '{name}' needs {bytes} bytes of the device, the store may take {budget}; give it more"
            )),
            Refused::InUse { bytes, used, budget } => Error::OutOfMemory(format!(
                "the key '{name}' needs {bytes} bytes of the device, keys in use have {used} of the {budget} that the store may take; \
                 try again when they are done"
            )),
            Refused::Stopped => Error::Interrupted,
            Refused::Load(error) => error,
        })
    }

    /// The key, if it is the one that had this name before.
    fn first(&self, name: &str, path: &Path, key: Key) -> Result<Key> {
        let Some(content) = key.inner.content() else { return Ok(key) };
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        if *contents.entry(name.into()).or_insert(content) != content {
            let path = path.display();
            return Err(Error::input(format!(
                "{path}: the key changed since '{name}' was loaded; give what it is now a name of its own"
            )));
        }
        Ok(key)
    }

    /// Takes a key off the device, unless it is in use or not there: whether it did. Its name stays.
    pub fn evict(&self, name: &str) -> bool {
        self.cache.evict(name)
    }

    /// Names of the keys on the device, the least recently used first.
    pub fn resident(&self) -> Vec<String> {
        self.cache.resident()
    }

    /// Bytes that the keys on the device take of the budget, those that are being loaded included.
    pub fn used_bytes(&self) -> u64 {
        self.cache.used()
    }
}

//! What a key is read from: its file, block by block or whole, the bytes of one, or a key that was just made.

use crate::blocks::{Blocks, Known};
use crate::cache::Content;
use crate::system::System;
use crate::{Error, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use tandem_formats::RegularFile;
use tandem_groth16::partition::PartitionKey;
use tandem_groth16::OwnedKey;
use tandem_ops::Curve;
use tandem_plonk::fflonk;

/// What messages call a key without a file.
pub(crate) const UNNAMED: &str = "the key";

/// What a key is read from.
pub(crate) enum Source<C: Curve> {
    /// Its file, by what was loaded of it. The bytes are not kept.
    File {
        path: PathBuf,
        blocks: Known,
    },
    /// The bytes of a file.
    Bytes(Arc<[u8]>),
    Memory(Made<C>),
}

impl<C: Curve> Source<C> {
    /// Calls `work` with the key as it lies; a file is read again.
    pub(crate) fn with<S: System<C>, T>(&self, work: impl FnOnce(&S::View<'_>) -> Result<T>) -> Result<T> {
        match self {
            Source::Memory(made) => S::with_made(made, work),
            Source::Bytes(bytes) => S::with_view(Bytes::Memory(bytes), Path::new(UNNAMED), work),
            Source::File { path, blocks } => {
                let changed = || {
                    let path = path.display();
                    Error::input(format!("{path}: the key changed since it was loaded; load it again"))
                };
                let file = RegularFile::open(path)?;
                let blocks = blocks.of(file).ok_or_else(changed)?;
                let done = S::with_view(Bytes::File(&blocks), path, work);
                done.map_err(|error| if blocks.differs().load(Ordering::Relaxed) { changed() } else { error })
            }
        }
    }
}

/// A key that was made in memory.
#[derive(Clone)]
pub(crate) enum Made<C: Curve> {
    /// With matrices.
    Circuit(Arc<OwnedKey<C>>),
    /// Of a made-up partition, without.
    Partition(Arc<PartitionKey>),
    Plonk(Arc<tandem_plonk::setup::OwnedKey<C>>),
    Fflonk(Arc<fflonk::OwnedKey>),
}

impl<C: Curve> Made<C> {
    /// The key with matrices that it is.
    pub(crate) fn circuit(&self) -> Result<&OwnedKey<C>> {
        match self {
            Made::Circuit(key) => Ok(key),
            _ => Err(other("Groth16")),
        }
    }

    /// The partition's key that it is.
    pub(crate) fn partition(&self) -> Result<&PartitionKey> {
        match self {
            Made::Partition(key) => Ok(key),
            _ => Err(other("a partition")),
        }
    }

    /// The PLONK key that it is.
    pub(crate) fn plonk(&self) -> Result<&tandem_plonk::setup::OwnedKey<C>> {
        match self {
            Made::Plonk(key) => Ok(key),
            _ => Err(other("PLONK")),
        }
    }

    /// The FFLONK key that it is.
    pub(crate) fn fflonk(&self) -> Result<&fflonk::OwnedKey> {
        match self {
            Made::Fflonk(key) => Ok(key),
            _ => Err(other("FFLONK")),
        }
    }
}

/// A key in memory is loaded as what it is.
fn other(expected: &str) -> Error {
    Error::Internal(format!("{UNNAMED} in memory is not one for {expected}"))
}

/// The bytes of a key's file.
#[derive(Clone, Copy)]
pub(crate) enum Bytes<'a> {
    Memory(&'a [u8]),
    /// Where they are, to be read when they are needed.
    File(&'a Blocks),
}

impl<'a> Bytes<'a> {
    pub(crate) fn content(self) -> Content {
        match self {
            Bytes::Memory(bytes) => Content::of(bytes),
            Bytes::File(blocks) => blocks.content(),
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Bytes::Memory(bytes) => bytes.len(),
            Bytes::File(blocks) => blocks.bytes(),
        }
    }
}

/// What holds them.
pub(crate) enum Held {
    Given(Arc<[u8]>),
    Blocks(Arc<Blocks>),
}

impl Held {
    /// A key that stays in its file, of which the sections in `keep` are in memory too if there is room.
    pub(crate) fn of(file: RegularFile, keep: &[Range<usize>], cancelled: impl Fn() -> bool + Sync) -> Result<Self> {
        Ok(Held::Blocks(Arc::new(Blocks::read(file, keep, cancelled)?)))
    }

    /// Where the key is to be loaded from later.
    pub(crate) fn source<C: Curve>(&self, path: &Path) -> Source<C> {
        match self {
            Held::Given(bytes) => Source::Bytes(bytes.clone()),
            Held::Blocks(blocks) => Source::File { path: path.into(), blocks: blocks.known() },
        }
    }

    pub(crate) fn bytes(&self) -> Bytes<'_> {
        match self {
            Held::Given(bytes) => Bytes::Memory(bytes),
            Held::Blocks(blocks) => Bytes::File(blocks),
        }
    }
}

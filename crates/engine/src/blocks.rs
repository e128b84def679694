//! A key's file, read block by block.
//!
//! The first reading hashes every block. Whatever is read later is held against these hashes before anybody gets it, so that all that is used
//! of the file is what its content's hash stands for, though no copy of it is kept. The hashes are nodes of BLAKE3's tree, and their root is the
//! hash of the whole file ([`Content`]).
//!
//! The hashes are kept between runs ([`crate::cache::lists`]). Where their root is a content whose points have been checked, there is no first
//! reading: each block is read once, when it is used. A file that is another by then is found out by its first block that differs.

use crate::ahead::Ahead;
use crate::cache::{lists, Content, CHECK};
use crate::{Error, Result};
use blake3::hazmat::{
    hash_derive_key_context, merge_subtrees_non_root, merge_subtrees_root, ChainingValue, ContextKey, HasherExt, Mode,
};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tandem_formats::container::Input;
use tandem_formats::{FormatError, RegularFile};
use tandem_ops::Outside;

/// Bytes of a block, which is hashed by itself: a power of two of BLAKE3's chunks, as many as keep wide registers busy. Whoever wants a few bytes,
/// or the end of one section and not the start of the next, reads a block for them.
const BLOCK: usize = 32 << 10;

/// Bytes that are read at a time: what uploads go by (`SLOT_BYTES` of ops-cuda), so that blocks are read straight into a page-locked slot.
pub(crate) const READ: usize = 1 << 20;

/// Beyond this, several threads read.
const SERIAL: usize = 8 * READ;

/// A file by the hashes of its blocks.
pub(crate) struct Blocks {
    file: RegularFile,
    len: usize,
    tree: Tree,
    hashes: Arc<[ChainingValue]>,
    content: Content,
    /// Whether the hashes are of an earlier reading.
    is_recalled: bool,
    /// Whether anything was found that is not what the hashes say.
    differs: Arc<AtomicBool>,
    /// The block of which a part was looked at last: heads of sections lie side by side.
    last: Mutex<Option<(usize, Vec<u8>)>>,
    /// What is in memory already.
    ahead: OnceLock<Ahead>,
    /// Set where points are read when they are needed.
    me: OnceLock<Weak<Blocks>>,
}

/// A list of hashes is kept of files that have more bytes than this: others are read in no time.
const LISTED: usize = READ;

/// What a file held, by the hashes of its blocks.
#[derive(Clone)]
pub(crate) struct Known {
    len: u64,
    hashes: Arc<[ChainingValue]>,
    content: Content,
}

impl Known {
    /// The file, each block of which must be what it was; `None` for one of another length.
    pub(crate) fn of(&self, file: RegularFile) -> Option<Blocks> {
        (file.len() == self.len).then(|| Blocks::new(file, self.hashes.clone(), self.content, true))
    }

    /// What the file held.
    pub(crate) fn content(&self) -> Content {
        self.content
    }
}

/// Nodes above fewer blocks are one thread's.
const PARALLEL: usize = 1 << 10;

/// How blocks are hashed.
struct Tree(ContextKey);

impl Tree {
    fn new() -> Self {
        Tree(hash_derive_key_context(CHECK))
    }

    /// The node above a block's chunks.
    fn block(&self, index: usize, bytes: &[u8]) -> ChainingValue {
        let mut hasher = blake3::Hasher::new_from_context_key(&self.0);
        hasher.set_input_offset((index * BLOCK) as u64).update(bytes).finalize_non_root()
    }

    /// The children of the node above several blocks: the left one is above as many as a power of two can be, and leaves some.
    fn children(&self, blocks: &[ChainingValue]) -> (ChainingValue, ChainingValue) {
        let (left, right) = blocks.split_at(blocks.len().next_power_of_two() / 2);
        if blocks.len() < PARALLEL {
            return (self.node(left), self.node(right));
        }
        rayon::join(|| self.node(left), || self.node(right))
    }

    fn node(&self, blocks: &[ChainingValue]) -> ChainingValue {
        if let [one] = blocks {
            return *one;
        }
        let (left, right) = self.children(blocks);
        merge_subtrees_non_root(&left, &right, Mode::DeriveKeyMaterial(&self.0))
    }

    /// The hash of a file of several blocks.
    fn root(&self, blocks: &[ChainingValue]) -> blake3::Hash {
        let (left, right) = self.children(blocks);
        merge_subtrees_root(&left, &right, Mode::DeriveKeyMaterial(&self.0))
    }
}

impl Blocks {
    /// Reads all of a file once, in parallel. The bytes of the sections in `keep` stay in memory where there is room ([`Ahead::room`]).
    ///
    /// # Errors
    /// [`Error::BadInput`] where the file cannot be read, or changes meanwhile; [`Error::Interrupted`].
    pub(crate) fn read(file: RegularFile, keep: &[Range<usize>], cancelled: impl Fn() -> bool + Sync) -> Result<Self> {
        file.expect_room()?;
        let (len, tree) = (file.len() as usize, Tree::new());
        let read = |buffer: &mut Vec<u8>, (piece, place): (usize, Option<&mut [u8]>)| -> Result<Vec<ChainingValue>> {
            if cancelled() {
                return Err(Error::Interrupted);
            }
            let into = match place {
                Some(place) => &mut place[..READ.min(len - piece * READ)],
                None => {
                    buffer.resize(READ.min(len - piece * READ), 0);
                    &mut buffer[..]
                }
            };
            file.read_at(into, (piece * READ) as u64)?;
            let blocks = into.chunks(BLOCK).enumerate();
            Ok(blocks.map(|(i, block)| tree.block(piece * (READ / BLOCK) + i, block)).collect())
        };
        let mut kept = Ahead::room(len, keep);
        let (hashes, content) = if len <= BLOCK {
            let mut all = vec![0; len];
            file.read_at(&mut all, 0)?;
            let hashes = if all.is_empty() { Vec::new() } else { vec![tree.block(0, &all)] };
            (hashes, Content::of(&all))
        } else {
            let mut pieces: Vec<(usize, Option<&mut [u8]>)> = (0..len.div_ceil(READ)).map(|i| (i, None)).collect();
            let places = kept.iter_mut().flat_map(|(ahead, order)| ahead.places(order));
            places.for_each(|(piece, place)| pieces[piece].1 = Some(place));
            let pieces = pieces.into_par_iter();
            let hashes = pieces.map_init(Vec::new, read).collect::<Result<Vec<_>>>()?.concat();
            let content = Content::from_hash(tree.root(&hashes));
            (hashes, content)
        };
        file.unchanged()?;
        let blocks = Self::new(file, hashes.into(), content, false);
        if let Some((mut ahead, order)) = kept {
            ahead.are_there(&order);
            _ = blocks.ahead.set(ahead);
        }
        Ok(blocks)
    }

    fn new(file: RegularFile, hashes: Arc<[ChainingValue]>, content: Content, is_recalled: bool) -> Self {
        let (len, tree) = (file.len() as usize, Tree::new());
        Self {
            file,
            len,
            tree,
            hashes,
            content,
            is_recalled,
            differs: Arc::default(),
            last: Mutex::default(),
            ahead: OnceLock::new(),
            me: OnceLock::new(),
        }
    }

    /// A file that was read before, by the hashes of then, if these are of a content whose points have been checked. Nothing of it is read now.
    pub(crate) fn recalled(file: &RegularFile) -> Option<Known> {
        let blocks = usize::try_from(file.len()).ok()?.div_ceil(BLOCK);
        if file.len() <= LISTED as u64 || file.expect_room().is_err() {
            return None;
        }
        let hashes = lists::find(file.metadata(), blocks)?;
        // The list vouches for itself: no other has this root.
        let content = Content::from_hash(Tree::new().root(&hashes));
        content.is_known().then(|| Known { len: file.len(), hashes: hashes.into(), content })
    }

    /// What the file held when its blocks were hashed.
    pub(crate) fn known(&self) -> Known {
        Known { len: self.len as u64, hashes: self.hashes.clone(), content: self.content }
    }

    /// Keeps the hashes for later runs. Where that fails, the next one reads the file twice.
    pub(crate) fn remember(&self) {
        if !self.is_recalled && self.len > LISTED {
            lists::keep(self.file.metadata(), &self.hashes);
        }
    }

    /// Lets points stay in the file until a sum takes them.
    pub(crate) fn let_wait(self: &Arc<Self>) {
        _ = self.me.set(Arc::downgrade(self));
    }

    /// Reads pieces of sections before they are asked for, until `is_enough` ([`Ahead::read`]).
    pub(crate) fn read_ahead(&self, sections: &[Range<usize>], is_enough: impl Fn() -> bool + Sync) {
        if self.ahead.get().is_none() {
            _ = Ahead::read(self, sections, is_enough).map(|ahead| self.ahead.set(ahead));
        }
    }

    /// Whether something was found that is not what the hashes say, now or later.
    pub(crate) fn differs(&self) -> Arc<AtomicBool> {
        self.differs.clone()
    }

    /// What the file holds.
    pub(crate) fn content(&self) -> Content {
        self.content
    }

    /// The file's length.
    pub(crate) fn bytes(&self) -> usize {
        self.len
    }

    /// Fills `into` with whole blocks from `at` on.
    pub(crate) fn blocks(&self, at: usize, into: &mut [u8]) -> std::result::Result<(), FormatError> {
        if let Some(bytes) = self.ahead.get().and_then(|ahead| ahead.bytes(at..at + into.len())) {
            into.copy_from_slice(bytes);
            return Ok(());
        }
        #[cfg(test)]
        tests::count(&self.file, into.len());
        let are_those = |into: &[u8]| {
            let mut blocks = into.chunks(BLOCK).zip(at / BLOCK..);
            blocks.all(|(block, index)| self.tree.block(index, block) == self.hashes[index])
        };
        let read = self.file.read_at(into, at as u64);
        let compared = read.and_then(|()| if are_those(into) { Ok(()) } else { Err(self.file.changed()) });
        compared.inspect_err(|_| self.differs.store(true, Ordering::Relaxed))
    }

    /// Fills `into` with the bytes from `at` on.
    fn fill(&self, at: usize, into: &mut [u8]) -> std::result::Result<(), FormatError> {
        let Some(end) = at.checked_add(into.len()).filter(|end| *end <= self.len) else {
            return Err(self.file.changed());
        };
        let (mut at, mut rest) = (at, into);
        while at < end {
            let block = range(at / BLOCK, self.len);
            let whole = if end == self.len { rest.len() } else { rest.len() / BLOCK * BLOCK };
            let is_whole = at == block.start && whole > 0;
            let (part, others) = rest.split_at_mut(if is_whole { whole.min(READ) } else { block.end.min(end) - at });
            if is_whole {
                self.blocks(at, part)?;
            } else {
                self.part(block, at, part)?;
            }
            at += part.len();
            rest = others;
        }
        Ok(())
    }

    /// Fills `into` with bytes of the block that is at `block`.
    fn part(&self, block: Range<usize>, at: usize, into: &mut [u8]) -> std::result::Result<(), FormatError> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let held = last().take().filter(|(start, _)| *start == block.start);
        let bytes = match held {
            Some((_, bytes)) => bytes,
            None => {
                let mut bytes = vec![0; block.len()];
                self.blocks(block.start, &mut bytes)?;
                bytes
            }
        };
        into.copy_from_slice(&bytes[at - block.start..][..into.len()]);
        *last() = Some((block.start, bytes));
        Ok(())
    }
}

/// The bytes of a block of a file of `len` bytes.
fn range(index: usize, len: usize) -> Range<usize> {
    index * BLOCK..len.min((index + 1) * BLOCK)
}

impl Outside for Blocks {
    fn read(&self, at: usize, into: &mut [u8]) -> tandem_ops::Result<()> {
        self.fill(at, into).map_err(|e| tandem_ops::Error::Unread { reason: e.to_string() })
    }

    fn block_bytes(&self) -> usize {
        READ
    }

    fn later(&self) -> Option<Arc<dyn Outside>> {
        Some(self.me.get()?.upgrade()?)
    }
}

impl Input for Blocks {
    fn len(&self) -> u64 {
        self.len as u64
    }

    fn look(&self, bytes: &mut [u8], at: u64) -> std::result::Result<(), FormatError> {
        let at = usize::try_from(at).map_err(|_| self.file.changed())?;
        if bytes.len() <= SERIAL {
            return self.fill(at, bytes);
        }
        let (first, others) = bytes.split_at_mut((READ - at % READ) % READ);
        let from = at + first.len();
        self.fill(at, first)?;
        others.par_chunks_mut(READ).enumerate().try_for_each(|(i, part)| self.fill(from + i * READ, part))
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
pub(crate) mod tests;

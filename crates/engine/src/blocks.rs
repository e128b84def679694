//! A key's file, read block by block.
//!
//! The first reading hashes every block. Whatever is read later is held against these hashes before anybody gets it, so that all that is used
//! of the file is what its content's hash stands for, though no copy of it is kept. The hashes are nodes of BLAKE3's tree, and their root is the
//! hash of the whole file ([`Content`]).
//!
//! A block of which somebody wants a part is read as a whole. What is left of it is kept until somebody wants that, too, as where one section ends
//! and the next one begins, so that what is read piece by piece is read once.
//!
//! The hashes are kept between runs ([`crate::cache::lists`]). Where their root is a content whose points have been checked, there is no first
//! reading: each block is read once, when it is used. A file that is another by then is found out by its first block that differs.

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

/// Bytes of a block: a power of two of BLAKE3's chunks, and what uploads go by (`SLOT_BYTES` of ops-cuda), so that a block is read straight into
/// a page-locked slot.
const BLOCK: usize = 1 << 20;

/// Beyond this, several threads read.
const SERIAL: usize = 8 * BLOCK;

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
    /// What is left of blocks of which a part was read, the latest last.
    rests: Mutex<Vec<Rest>>,
    /// Set where points are read when they are needed.
    me: OnceLock<Weak<Blocks>>,
}

/// Bytes of a block that were compared and that nobody has asked for yet, the first of which is number `at` of the file.
struct Rest {
    at: usize,
    bytes: Vec<u8>,
}

/// Rests that are kept: as many as sections of points that begin or end in blocks of others.
const RESTS: usize = 4;

/// Parts up to this size are looked at, perhaps again and again, as heads of sections are: the rest is kept with them.
const HEAD: usize = 64 << 10;

impl Rest {
    /// Hands out the bytes from `at` on, if it has all of them, and keeps the others.
    fn hand_out(&mut self, at: usize, into: &mut [u8]) -> bool {
        let Some(from) = at.checked_sub(self.at) else { return false };
        let Some(part) = self.bytes.get(from..from + into.len()) else { return false };
        into.copy_from_slice(part);
        if into.len() <= HEAD && into.len() < self.bytes.len() {
            return true;
        }
        if from == 0 {
            self.bytes.drain(..into.len());
            self.at += into.len();
        } else if from + into.len() == self.bytes.len() {
            self.bytes.truncate(from);
        }
        self.bytes.shrink_to_fit();
        true
    }
}

/// Blocks of a file at least for a list of hashes to be kept of it: one is read in no time, and its hash is no node of the tree.
const LISTED: usize = 2;

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
        (self.node(left), self.node(right))
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
    /// Reads all of a file once, in parallel.
    ///
    /// # Errors
    /// [`Error::BadInput`] where the file cannot be read, or changes meanwhile; [`Error::Interrupted`].
    pub(crate) fn read(file: RegularFile, cancelled: impl Fn() -> bool + Sync) -> Result<Self> {
        file.expect_room()?;
        let (len, tree) = (file.len() as usize, Tree::new());
        let read = |buffer: &mut Vec<u8>, index: usize| -> Result<ChainingValue> {
            if cancelled() {
                return Err(Error::Interrupted);
            }
            let Range { start, end } = range(index, len);
            buffer.resize(end - start, 0);
            file.read_at(buffer, start as u64)?;
            Ok(tree.block(index, buffer))
        };
        let (hashes, content) = if len <= BLOCK {
            let mut all = vec![0; len];
            file.read_at(&mut all, 0)?;
            let hashes = if all.is_empty() { Vec::new() } else { vec![tree.block(0, &all)] };
            (hashes, Content::of(&all))
        } else {
            let blocks = (0..len.div_ceil(BLOCK)).into_par_iter();
            let hashes = blocks.map_init(Vec::new, read).collect::<Result<Vec<_>>>()?;
            let content = Content::from_hash(tree.root(&hashes));
            (hashes, content)
        };
        file.unchanged()?;
        Ok(Self::new(file, hashes.into(), content, false))
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
            rests: Mutex::default(),
            me: OnceLock::new(),
        }
    }

    /// A file that was read before, by the hashes of then, if these are of a content whose points have been checked. Nothing of it is read now.
    pub(crate) fn recalled(file: &RegularFile) -> Option<Known> {
        let blocks = usize::try_from(file.len()).ok()?.div_ceil(BLOCK);
        if blocks < LISTED || file.expect_room().is_err() {
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
        if !self.is_recalled && self.hashes.len() >= LISTED {
            lists::keep(self.file.metadata(), &self.hashes);
        }
    }

    /// Lets points stay in the file until a sum takes them.
    pub(crate) fn let_wait(self: &Arc<Self>) {
        _ = self.me.set(Arc::downgrade(self));
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

    /// Fills `into`, which has the length of a block.
    fn block(&self, index: usize, into: &mut [u8]) -> std::result::Result<(), FormatError> {
        #[cfg(test)]
        tests::count(&self.file, into.len());
        let read = self.file.read_at(into, (index * BLOCK) as u64);
        let compared = read.and_then(|()| match self.tree.block(index, into) == self.hashes[index] {
            true => Ok(()),
            false => Err(self.file.changed()),
        });
        compared.inspect_err(|_| self.differs.store(true, Ordering::Relaxed))
    }

    /// Fills `into` with the bytes from `at` on.
    fn fill(&self, at: usize, into: &mut [u8]) -> std::result::Result<(), FormatError> {
        let Some(end) = at.checked_add(into.len()).filter(|end| *end <= self.len) else {
            return Err(self.file.changed());
        };
        let (mut at, mut left) = (at, into);
        while at < end {
            let block = range(at / BLOCK, self.len);
            let (part, others) = left.split_at_mut(block.end.min(end) - at);
            if part.len() == block.len() {
                self.block(at / BLOCK, part)?;
            } else {
                self.part(at, part)?;
            }
            at += part.len();
            left = others;
        }
        Ok(())
    }

    /// Fills `into` with bytes of one block.
    fn part(&self, at: usize, into: &mut [u8]) -> std::result::Result<(), FormatError> {
        let rests = || self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        let keep = |rests: &mut Vec<Rest>, rest: Rest| {
            if !rest.bytes.is_empty() {
                rests.push(rest);
            }
        };
        {
            let mut rests = rests();
            if let Some(place) = rests.iter_mut().position(|rest| rest.hand_out(at, into)) {
                let rest = rests.remove(place);
                keep(&mut rests, rest);
                return Ok(());
            }
        }
        let Range { start, end } = range(at / BLOCK, self.len);
        let mut rest = Rest { at: start, bytes: vec![0; end - start] };
        self.block(at / BLOCK, &mut rest.bytes)?;
        rest.hand_out(at, into);
        let mut rests = rests();
        // What is left of a block that was read twice is kept once.
        rests.retain(|other| range(other.at / BLOCK, self.len).start != start);
        if rests.len() == RESTS {
            rests.remove(0);
        }
        keep(&mut rests, rest);
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
        BLOCK
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
        let (first, others) = bytes.split_at_mut((BLOCK - at % BLOCK) % BLOCK);
        let from = at + first.len();
        self.fill(at, first)?;
        others.par_chunks_mut(BLOCK).enumerate().try_for_each(|(i, part)| self.fill(from + i * BLOCK, part))
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
pub(crate) mod tests;

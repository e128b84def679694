//! The memory of pretend PEs.
//!
//! Every byte lies in an atomic word of 64 bits and is only ever accessed through it, whatever the width that was asked
//! for. So programs that race, as programs on several PEs may, have a defined meaning here: each word is read and
//! written whole, and what orders accesses is what the operations say. Long runs that go to and come from other nodes are
//! the exception ([`Lent`]): there the system moves bytes, and of a race bytes may be left.

use super::far::Far;
use super::range::AddressRange;
use crate::exec::protocol;
use crate::process::{Lent, Local};
use crate::word::{apply, width};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::io::Result as IoResult;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// A run of bytes with consecutive addresses: some words of what keeps them, in this process or in several.
struct Block<W> {
    words: Arc<dyn AsRef<[W]> + Send + Sync>,
    range: Range<usize>,
}

impl<W> Clone for Block<W> {
    fn clone(&self) -> Self {
        Block { words: self.words.clone(), range: self.range.clone() }
    }
}

impl<W> Deref for Block<W> {
    type Target = [W];

    fn deref(&self) -> &[W] {
        &(*self.words).as_ref()[self.range.clone()]
    }
}

const WORD: u64 = 8;
/// Bytes that are copied at a time.
const PIECE: usize = 4096;

/// Between blocks of [`Memory::map_free`].
const GAP: u64 = 4096;

/// A block of zeros, or `bytes` if there is no memory for them.
fn zeros<W: protocol::Word + Default>(bytes: u64) -> Result<Block<W>, u64> {
    let words = usize::try_from(bytes / WORD).map_err(|_| bytes)?;
    let mut block: Vec<W> = Vec::new();
    block.try_reserve_exact(words).map_err(|_| bytes)?;
    block.resize_with(words, W::default);
    Ok(Block { words: Arc::new(block), range: 0..words })
}

/// Blocks by the address of their first byte, which is a multiple of 8.
pub(crate) struct Memory<W = AtomicU64> {
    blocks: RwLock<BTreeMap<u64, Block<W>>>,
    /// Where the words of blocks are that are mapped at addresses from this one on.
    kept: OnceLock<(u64, Block<W>)>,
    far: OnceLock<Arc<Far>>,
}

impl<W> Default for Memory<W> {
    fn default() -> Self {
        Memory { blocks: RwLock::default(), kept: OnceLock::new(), far: OnceLock::new() }
    }
}

/// An access to addresses that have no memory. The checks before it make this a mistake of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unmapped(pub(crate) u64);

impl Memory {
    /// Memory of other nodes is reached so from here on.
    pub(super) fn reach(&self, far: Arc<Far>) {
        let _ = self.far.set(far);
    }

    /// The way to memory of other nodes, if there are such.
    pub(crate) fn far(&self) -> Option<&Arc<Far>> {
        self.far.get()
    }

    /// Blocks that are mapped from `at` on lie in `range` from here on, as far as that goes.
    pub(crate) fn keep(&self, at: u64, range: Arc<AddressRange>) {
        let words = 0..(*range).as_ref().len();
        let _ = self.kept.set((at, Block { words: range, range: words }));
    }

    /// Where in this process the `bytes` bytes at `at` are, if they are mapped, and in one piece.
    pub(crate) fn host_address(&self, at: u64, bytes: u64) -> Option<u64> {
        let (start, kept) = self.kept.get()?;
        self.pieces(at, usize::try_from(bytes).ok()?, |_, _, _| {}).ok()?;
        let offset = at.checked_sub(*start)?;
        let is_inside = offset.checked_add(bytes)? <= kept.len() as u64 * WORD;
        is_inside.then(|| kept.as_ptr() as u64 + offset)
    }
}

impl Local for Memory {
    fn read(&self, at: u64, to: &mut [u8]) {
        // Nothing is unmapped while others may ask for it, and what is not there reads as it was.
        let _ = Memory::read(self, at, to);
    }

    fn write(&self, at: u64, from: &[u8]) {
        let _ = Memory::write(self, at, from);
    }

    fn lend(&self, at: u64, most: usize, f: &mut dyn FnMut(Lent<'_>) -> IoResult<usize>) -> Option<IoResult<usize>> {
        let (block, offset) = self.block(at).ok()?;
        let end = offset.saturating_add(most).min(block.len() * WORD as usize);
        Lent::new(&block, offset..end).map(f)
    }
}

impl<W: protocol::Word + Default> Memory<W> {
    /// The words at `at` of what is kept there.
    fn kept(&self, at: u64, bytes: u64) -> Option<Block<W>> {
        let (start, kept) = self.kept.get()?;
        let first = at.checked_sub(*start)? / WORD;
        let end = first.saturating_add(bytes / WORD);
        let is_inside = end <= kept.len() as u64;
        is_inside.then(|| Block { words: kept.words.clone(), range: first as usize..end as usize })
    }

    /// A block of zeros for the address `at`: of what is kept there, or one of its own.
    fn block_for(&self, at: u64, bytes: u64) -> Result<Block<W>, u64> {
        let Some(block) = self.kept(at, bytes) else { return zeros(bytes) };
        // The range takes memory where it is written to, without a word: whether there is so much is asked otherwise.
        let mut asked: Vec<u8> = Vec::new();
        asked.try_reserve_exact(usize::try_from(bytes).map_err(|_| bytes)?).map_err(|_| bytes)?;
        block.iter().for_each(|word| word.store_relaxed(0));
        Ok(block)
    }

    /// Puts zeros at `bytes` bytes from `at` on; both are multiples of 8. The bytes, if the host has no memory for them.
    pub(crate) fn map(&self, at: u64, bytes: u64) -> Result<(), u64> {
        self.insert(at, self.block_for(at, bytes)?);
        Ok(())
    }

    /// Maps `bytes` bytes from `at` on as what is kept there has them.
    pub(super) fn show(&self, at: u64, bytes: u64) {
        self.kept(at, bytes).into_iter().for_each(|block| self.insert(at, block));
    }

    /// Puts words at `at`, a multiple of 8.
    pub(super) fn put(&self, at: u64, words: impl AsRef<[W]> + Send + Sync + 'static) {
        let range = 0..words.as_ref().len();
        self.insert(at, Block { words: Arc::new(words), range });
    }

    fn insert(&self, at: u64, block: Block<W>) {
        self.blocks.write().unwrap_or_else(PoisonError::into_inner).insert(at, block);
    }

    /// Maps a block at an address from `least` on behind everything that is mapped, which it returns. Addresses of blocks do
    /// not touch.
    pub(crate) fn map_free(&self, least: u64, bytes: u64) -> Result<u64, u64> {
        let block = zeros(bytes)?;
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let end = blocks.last_key_value().map_or(0, |(&at, block)| at + block.len() as u64 * WORD);
        let at = least.max(end + GAP).next_multiple_of(GAP);
        blocks.insert(at, block);
        Ok(at)
    }

    /// Takes away what `map` has put at `at`.
    pub(crate) fn unmap(&self, at: u64) {
        self.blocks.write().unwrap_or_else(PoisonError::into_inner).remove(&at);
    }

    /// The block that holds the byte at `at`, and which byte of it that is.
    fn block(&self, at: u64) -> Result<(Block<W>, usize), Unmapped> {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        let (&start, block) = blocks.range(..=at).next_back().ok_or(Unmapped(at))?;
        let offset = at - start;
        if offset >= block.len() as u64 * WORD {
            return Err(Unmapped(at));
        }
        Ok((block.clone(), offset as usize))
    }

    /// Calls `f` with words and bytes of them for each piece of the range, in order: the words of a block, the first
    /// byte in them, and which bytes of the range these are.
    fn pieces(
        &self,
        at: u64,
        bytes: usize,
        mut f: impl FnMut(&[W], usize, std::ops::Range<usize>),
    ) -> Result<(), Unmapped> {
        let mut done = 0;
        while done < bytes {
            let (block, offset) = self.block(at + done as u64)?;
            let here = (block.len() * WORD as usize - offset).min(bytes - done);
            f(&block, offset, done..done + here);
            done += here;
        }
        Ok(())
    }

    /// Whether all these bytes have memory.
    pub(crate) fn is_mapped(&self, at: u64, bytes: u64) -> bool {
        usize::try_from(bytes).is_ok_and(|bytes| self.pieces(at, bytes, |_, _, _| {}).is_ok())
    }

    pub(crate) fn read(&self, from: u64, to: &mut [u8]) -> Result<(), Unmapped> {
        self.pieces(from, to.len(), |words, offset, range| read(words, offset, &mut to[range]))
    }

    pub(crate) fn write(&self, to: u64, from: &[u8]) -> Result<(), Unmapped> {
        self.pieces(to, from.len(), |words, offset, range| write(words, offset, &from[range]))
    }

    /// Calls `f` with each of `count` words from `at` on, a multiple of 8, and its number among them.
    pub(crate) fn words(&self, at: u64, count: u64, mut f: impl FnMut(u64, &W)) -> Result<(), Unmapped> {
        let bytes = usize::try_from(count * WORD).map_err(|_| Unmapped(at))?;
        self.pieces(at, bytes, |words, offset, range| {
            let here = &words[offset / WORD as usize..][..range.len() / WORD as usize];
            here.iter().zip(range.start as u64 / WORD..).for_each(|(word, i)| f(i, word));
        })
    }

    pub(crate) fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Unmapped> {
        let mut piece = [0; PIECE];
        let mut done = 0;
        while done < bytes {
            // Pieces end where words of the target end.
            let room = PIECE as u64 - (to + done) % WORD;
            let here = room.min(bytes - done) as usize;
            self.read(from + done, &mut piece[..here])?;
            self.write(to + done, &piece[..here])?;
            done += here as u64;
        }
        Ok(())
    }

    pub(crate) fn fill(&self, to: u64, bytes: u64, value: u8) -> Result<(), Unmapped> {
        let piece = [value; PIECE];
        let mut done = 0;
        while done < bytes {
            let room = PIECE as u64 - (to + done) % WORD;
            let here = room.min(bytes - done) as usize;
            self.write(to + done, &piece[..here])?;
            done += here as u64;
        }
        Ok(())
    }

    /// A word that can be looked at again and again.
    pub(crate) fn word(&self, at: u64, kind: i32) -> Result<Word<W>, Unmapped> {
        let (block, offset) = self.block(at)?;
        Ok(Word { block, index: offset / WORD as usize, shift: offset as u32 % WORD as u32 * 8, kind })
    }
}

/// A word of 32 or 64 bits, aligned to its size.
pub(crate) struct Word<W = AtomicU64> {
    block: Block<W>,
    index: usize,
    /// Where its bits are in the word of 64 bits: bytes are in the order of a little-endian machine.
    shift: u32,
    kind: i32,
}

impl<W: protocol::Word> Word<W> {
    /// The word of 64 bits that it is or is in.
    pub(crate) fn whole(&self) -> &W {
        &self.block[self.index]
    }

    fn part(&self, whole: u64) -> u64 {
        match width(self.kind) {
            4 => (whole >> self.shift) & u64::from(u32::MAX),
            _ => whole,
        }
    }

    /// Its bits; what came before the change that it shows is seen after this.
    pub(crate) fn load(&self) -> u64 {
        let whole = self.whole().load_acquire();
        self.part(whole)
    }

    /// Changes it as TANDEM_AMO_* says, after all that this thread did before, and returns what it was.
    pub(crate) fn change(&self, op: i32, value: u64, expected: u64) -> u64 {
        let change = |whole: u64| {
            let new = apply(self.kind, op, self.part(whole), value, expected);
            match width(self.kind) {
                4 => (whole & !(u64::from(u32::MAX) << self.shift)) | (new << self.shift),
                _ => new,
            }
        };
        self.part(self.whole().change(Ordering::SeqCst, change))
    }
}

impl Borrow<AtomicU64> for Word {
    fn borrow(&self) -> &AtomicU64 {
        self.whole()
    }
}

/// Ends an operation: whoever sees a later one of this thread sees this one too.
pub(crate) fn settle() {
    <AtomicU64 as protocol::Word>::settle();
}

fn read(words: &[impl protocol::Word], offset: usize, to: &mut [u8]) {
    let (mut index, skip) = (offset / 8, offset % 8);
    let (head, rest) = to.split_at_mut(if skip == 0 { 0 } else { to.len().min(8 - skip) });
    if !head.is_empty() {
        let bytes = words[index].load_relaxed().to_le_bytes();
        head.copy_from_slice(&bytes[skip..skip + head.len()]);
        index += 1;
    }
    let mut chunks = rest.chunks_exact_mut(8);
    for (chunk, word) in (&mut chunks).zip(&words[index..]) {
        chunk.copy_from_slice(&word.load_relaxed().to_le_bytes());
        index += 1;
    }
    let tail = chunks.into_remainder();
    if !tail.is_empty() {
        tail.copy_from_slice(&words[index].load_relaxed().to_le_bytes()[..tail.len()]);
    }
}

fn write(words: &[impl protocol::Word], offset: usize, from: &[u8]) {
    let (mut index, skip) = (offset / 8, offset % 8);
    let (head, rest) = from.split_at(if skip == 0 { 0 } else { from.len().min(8 - skip) });
    if !head.is_empty() {
        write_part(&words[index], skip, head);
        index += 1;
    }
    let mut chunks = rest.chunks_exact(8);
    for (chunk, word) in (&mut chunks).zip(&words[index..]) {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(chunk);
        word.store_relaxed(u64::from_le_bytes(bytes));
        index += 1;
    }
    if !chunks.remainder().is_empty() {
        write_part(&words[index], 0, chunks.remainder());
    }
}

/// Changes some bytes of a word and leaves the others to whoever else writes them.
fn write_part(word: &impl protocol::Word, skip: usize, from: &[u8]) {
    let change = |whole: u64| {
        let mut bytes = whole.to_le_bytes();
        bytes[skip..skip + from.len()].copy_from_slice(from);
        u64::from_le_bytes(bytes)
    };
    word.change(Ordering::Relaxed, change);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi;
    use proptest::prelude::*;

    const AT: u64 = 1 << 40;

    fn bytes(memory: &Memory, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        memory.read(AT, &mut out).unwrap();
        out
    }

    proptest! {
        /// Against an array of bytes, across blocks that touch.
        #[test]
        fn is_an_array_of_bytes(is_kept: bool, seed in prop::collection::vec(any::<u8>(), 10_000), steps in prop::collection::vec((0usize..10_000, 0usize..10_000, 0usize..6000, any::<bool>()), 1..20)) {
            let memory = <Memory>::default();
            if is_kept {
                memory.keep(AT - 64, Arc::new(AddressRange::new(12_000).unwrap()));
            }
            for (at, len) in [(0, 4096), (4096, 8), (4104, 5896)] {
                memory.map(AT + at, len).unwrap();
            }
            let mut model = seed;
            memory.write(AT, &model).unwrap();
            for (to, from, len, fill) in steps {
                let len = len.min(10_000 - to.max(from));
                if fill {
                    memory.fill(AT + to as u64, len as u64, from as u8).unwrap();
                    model[to..to + len].fill(from as u8);
                } else if to + len <= from || from + len <= to {
                    memory.copy(AT + to as u64, AT + from as u64, len as u64).unwrap();
                    model.copy_within(from..from + len, to);
                }
                prop_assert!(bytes(&memory, 10_000) == model);
            }
        }
    }

    #[test]
    fn what_is_kept_is_in_one_piece_and_zero_when_it_is_mapped() {
        let memory = <Memory>::default();
        assert_eq!(memory.host_address(AT, 8), None);
        memory.keep(AT, Arc::new(AddressRange::new(64).unwrap()));
        assert_eq!(memory.host_address(AT, 8), None, "nothing is mapped there");
        memory.map(AT, 16).unwrap();
        memory.map(AT + 16, 40).unwrap();
        let at = memory.host_address(AT, 56).unwrap();
        assert_eq!(memory.host_address(AT + 21, 35), Some(at + 21));
        assert_eq!(memory.host_address(AT + 21, 36), None, "that leaves what is mapped");
        memory.write(AT + 16, &[7; 40]).unwrap();
        memory.unmap(AT + 16);
        memory.map(AT + 16, 48).unwrap();
        assert_eq!(bytes(&memory, 64), [0; 64]);
        // What does not lie in the range has a place of its own, and none that is said.
        memory.map(AT + 64, 8).unwrap();
        assert_eq!((memory.host_address(AT + 64, 8), memory.host_address(AT + 56, 16)), (None, None));
        assert_eq!(memory.map(AT - 8, 8), Ok(()));
        assert_eq!(memory.host_address(AT - 8, 8), None);
    }

    #[test]
    fn unmapped_addresses_are_refused() {
        let memory = <Memory>::default();
        memory.map(AT, 16).unwrap();
        assert_eq!(memory.write(AT + 12, &[1; 5]), Err(Unmapped(AT + 16)));
        assert_eq!(memory.read(AT - 1, &mut [0; 1]), Err(Unmapped(AT - 1)));
        assert_eq!(memory.read(AT + 16, &mut []), Ok(()));
        assert!(memory.word(AT + 16, ffi::TANDEM_WORD_U32).is_err());
        memory.unmap(AT);
        assert_eq!(memory.fill(AT, 1, 0), Err(Unmapped(AT)));
    }

    #[test]
    fn words_of_32_bits_share_one_of_64() {
        let memory = <Memory>::default();
        memory.map(AT, 8).unwrap();
        memory.write(AT, &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]).unwrap();
        let [low, high] = [0, 4].map(|i| memory.word(AT + i, ffi::TANDEM_WORD_U32).unwrap());
        assert_eq!((low.load(), high.load()), (u32::from_le_bytes([1, 0, 0, 0]).into(), u64::from(u32::MAX)));
        assert_eq!(high.change(ffi::TANDEM_AMO_INC, 0, 0), u64::from(u32::MAX));
        assert_eq!(bytes(&memory, 8), [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            low.change(ffi::TANDEM_AMO_COMPARE_SWAP, 7, low.load()),
            low.part(u32::from_le_bytes([1, 0, 0, 0]).into())
        );
        assert_eq!(low.load(), 7);
    }

    #[test]
    fn threads_do_not_lose_counts_or_bytes() {
        let memory = <Memory>::default();
        memory.map(AT, 16).unwrap();
        std::thread::scope(|scope| {
            for i in 0..4u64 {
                let memory = &memory;
                scope.spawn(move || {
                    let count = memory.word(AT + 8, ffi::TANDEM_WORD_U64).unwrap();
                    for n in 0..1000u32 {
                        count.change(ffi::TANDEM_AMO_ADD, 1, 0);
                        memory.write(AT + i, &[n as u8]).unwrap();
                    }
                });
            }
        });
        let out = bytes(&memory, 16);
        assert_eq!(out[..8], [231, 231, 231, 231, 0, 0, 0, 0]);
        assert_eq!(u64::from_le_bytes(out[8..].try_into().unwrap()), 4000);
    }
}

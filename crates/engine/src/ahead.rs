//! What is read of a key while its device is being opened.
//!
//! To open a device takes longer than to look at most keys. Meanwhile pieces of its sections come into memory, each compared with its hashes
//! as whoever reads it later would. What is there by then need not be read any more: it is copied from here to the device. Of a file that is
//! hashed as a whole they stay as they were hashed.

use crate::blocks::{Blocks, READ};
use rayon::prelude::*;
use std::ops::Range;
use tandem_ops::memory::{self, Pages};
use tandem_ops::threads;

/// Shorter files are read in no time.
const LEAST: usize = 8 << 20;

/// Pieces that a task reads one after the other, before others get its thread.
const PIECES: usize = 4;

/// Pieces of a file in memory, each of [`READ`] bytes but for the last.
pub(crate) struct Ahead {
    /// As long as the file. What was not read was never touched, and takes no memory.
    pages: Pages,
    /// Which pieces are there.
    has: Vec<bool>,
}

impl Ahead {
    /// The bytes at this place of the file, if all of them are there.
    pub(crate) fn bytes(&self, range: Range<usize>) -> Option<&[u8]> {
        let pieces = range.start / READ..range.end.div_ceil(READ);
        let is_there = self.has.get(pieces)?.iter().all(|has| *has);
        self.pages.get(range).filter(|_| is_there)
    }

    /// Memory for the pieces that sections lie in, of a file of `len` bytes, and which those are, in the order of the sections. `None` for
    /// files that are not worth it, and where memory is short.
    pub(crate) fn room(len: usize, sections: &[Range<usize>]) -> Option<(Ahead, Vec<usize>)> {
        let order = pieces(sections);
        let needed = order.len() as u64 * READ as u64;
        if order.is_empty() || len < LEAST || needed > memory::host().free / 2 {
            return None;
        }
        let (pages, has) = (Pages::zeros(len)?, vec![false; len.div_ceil(READ)]);
        Some((Ahead { pages, has }, order))
    }

    /// Where pieces go, each with its number.
    pub(crate) fn places<'a>(&'a mut self, order: &[usize]) -> Vec<(usize, &'a mut [u8])> {
        let len = self.pages.len().min(self.has.len() * READ);
        let mut places: Vec<Option<&mut [u8]>> = self.pages[..len].chunks_mut(READ).map(Some).collect();
        order.iter().filter_map(|piece| Some((*piece, places.get_mut(*piece)?.take()?))).collect()
    }

    /// Says that pieces are there.
    pub(crate) fn are_there(&mut self, pieces: &[usize]) {
        pieces.iter().for_each(|piece| self.has[*piece] = true);
    }

    /// Reads the pieces of `blocks` that sections lie in, in the order of the sections, until all are there or `is_enough`. Those that cannot be
    /// read, or are not what they were, are left to whoever needs them. `None` as of [`Ahead::room`].
    ///
    /// Half of the threads read: others open the device.
    pub(crate) fn read(
        blocks: &Blocks,
        sections: &[Range<usize>],
        is_enough: impl Fn() -> bool + Sync,
    ) -> Option<Ahead> {
        let (mut ahead, order) = Ahead::room(blocks.bytes(), sections)?;
        let mut work = ahead.places(&order);
        let mut there = Vec::new();
        let at_once = threads::count().div_ceil(2) * PIECES;
        for work in work.chunks_mut(at_once) {
            if is_enough() {
                break;
            }
            let of_task = |task: &mut [(usize, &mut [u8])]| -> Vec<usize> {
                let read = |(piece, into): &mut (usize, &mut [u8])| {
                    let is_read = !is_enough() && blocks.blocks(*piece * READ, into).is_ok();
                    is_read.then_some(*piece)
                };
                task.iter_mut().filter_map(read).collect()
            };
            there.extend(work.par_chunks_mut(PIECES).map(of_task).collect::<Vec<_>>().concat());
        }
        ahead.are_there(&there);
        Some(ahead)
    }
}

/// The pieces that sections lie in, in their order, each once.
fn pieces(sections: &[Range<usize>]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    for section in sections.iter().filter(|section| !section.is_empty()) {
        let of_section = section.start / READ..section.end.div_ceil(READ);
        // Only the ends of a section can be those of another.
        let others = [of_section.start, of_section.end - 1].map(|end| order.contains(&end).then_some(end));
        order.extend(of_section.filter(|piece| !others.contains(&Some(*piece))));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::tests::{random, read, take_count, Folder};
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use tandem_formats::RegularFile;
    use tandem_ops::Outside;

    #[test]
    fn pieces_are_in_the_order_of_the_sections() {
        let mib = |from: usize, to: usize| from * READ / 4..to * READ / 4;
        assert_eq!(pieces(&[mib(9, 14), mib(14, 15), mib(0, 9)]), [2, 3, 0, 1]);
        assert_eq!(pieces(&[mib(3, 3), 0..0, mib(4, 4)]), [] as [usize; 0]);
        assert_eq!(pieces(&[mib(1, 2), mib(2, 3)]), [0]);
    }

    /// Whatever was read ahead, everybody gets the bytes of the file, and none of those that were read ahead is read again.
    #[test]
    fn what_was_read_ahead_is_not_read_again() {
        let folder = Folder::new();
        let bytes = random(LEAST + 5 * READ / 2 + 77);
        let path = folder.write(&bytes);
        let (a, b) = (READ / 3..4 * READ + 5, 6 * READ + 9..bytes.len());
        for most in [0, 1, 3, usize::MAX] {
            let held = read(&path);
            take_count(&path);
            let asked = AtomicUsize::new(0);
            let is_enough = || asked.fetch_add(1, SeqCst) >= most;
            held.read_ahead(&[b.clone(), a.clone()], is_enough);
            let ahead = take_count(&path);
            let expected = 5 * READ + (bytes.len() - 6 * READ);
            assert!(if most == usize::MAX { ahead == expected } else { ahead <= most * READ }, "{ahead} of {most}");
            for range in [a.clone(), b.clone(), 0..bytes.len(), 4 * READ..5 * READ, bytes.len() - 1..bytes.len()] {
                let mut found = vec![0; range.len()];
                Outside::read(&held, range.start, &mut found).unwrap();
                assert!(found == bytes[range], "after {most}");
            }
            take_count(&path);
            let mut all = vec![0; bytes.len()];
            Outside::read(&held, 0, &mut all).unwrap();
            assert_eq!(take_count(&path) + ahead, bytes.len());
        }
    }

    /// What is not what it was is not kept, and who needs it is told.
    #[test]
    fn what_has_changed_is_not_kept() {
        let folder = Folder::new();
        let bytes = random(LEAST + 5);
        let path = folder.write(&bytes);
        let held = read(&path);
        let mut other = bytes.clone();
        other[3 * READ + 7] ^= 1;
        fs::write(&path, &other).unwrap();
        let all = 0..bytes.len();
        let ahead = Ahead::read(&held, &[all], || false).unwrap();
        for piece in 0..bytes.len().div_ceil(READ) {
            let range = piece * READ..bytes.len().min((piece + 1) * READ);
            assert_eq!(ahead.bytes(range.clone()), (piece != 3).then(|| &bytes[range]));
        }
        assert!(ahead.bytes(2 * READ + 5..3 * READ + 1).is_none() && ahead.bytes(2 * READ + 5..3 * READ).is_some());
        assert!(ahead.bytes(bytes.len() - 1..bytes.len() + READ).is_none());
    }

    /// What is kept of a file that is hashed is what was hashed, and is not read again.
    #[test]
    fn what_was_hashed_is_kept() {
        let folder = Folder::new();
        let bytes = random(LEAST + 5 * READ / 2 + 77);
        let path = folder.write(&bytes);
        let (a, b) = (READ / 3..4 * READ + 5, 6 * READ + 9..bytes.len());
        let open = |path: &Path| RegularFile::open(path).unwrap();
        let held = Blocks::read(open(&path), &[b.clone(), a.clone()], || false).map_err(|e| e.to_string()).unwrap();
        assert!(held.content() == read(&path).content());
        fs::write(&path, vec![7; bytes.len()]).unwrap();
        take_count(&path);
        let all = 0..bytes.len();
        held.read_ahead(&[all], || false);
        for range in [a, b] {
            let mut found = vec![0; range.len()];
            Outside::read(&held, range.start, &mut found).unwrap();
            assert!(found == bytes[range]);
        }
        assert_eq!(take_count(&path), 0);
        // The rest is where it was, and is compared.
        assert!(Outside::read(&held, 5 * READ, &mut [0; 9]).is_err());
        let (short, all) = (folder.write(&bytes[..LEAST - 1]), 0..LEAST - 1);
        let held = Blocks::read(open(&short), &[all], || false).map_err(|e| e.to_string()).unwrap();
        Outside::read(&held, 0, &mut [0; 9]).unwrap();
        assert!(take_count(&short) > 0);
    }

    #[test]
    fn little_is_not_read_ahead() {
        let folder = Folder::new();
        let held = read(&folder.write(&random(LEAST - 1)));
        let all = 0..LEAST - 1;
        assert!(Ahead::read(&held, &[all], || false).is_none());
    }
}

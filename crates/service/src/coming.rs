//! A witness in memory that is still being written ([`crate::held`]), and a pipe that says how far it is: its reader never reads further.
//!
//! A number of eight bytes, little-endian, says that all bytes before it are there. The end of the pipe says that the memory may be used for
//! something else from now on, so that nothing that is read counts unless the pipe was open afterwards.

use crate::seal::{by_threads, cut, PIECE};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Numbers that are read at a time.
const TOGETHER: usize = 512;

/// So many bytes behind what is there, several threads read.
const BEHIND: usize = 4 << 20;

/// How far memory is written by threads that write its parts in any order.
#[derive(Default)]
pub(crate) struct Progress(Mutex<State>);

#[derive(Default)]
struct State {
    /// All bytes before this one are there, and those of the parts behind it: from where to where.
    upto: u64,
    beyond: HashMap<u64, u64>,
    told: Told,
}

/// Who is told.
#[derive(Default)]
enum Told {
    #[default]
    Nobody,
    A(PipeWriter),
    /// Somebody was, and is no more.
    Over,
}

impl State {
    fn tell(&mut self) {
        let Told::A(pipe) = &mut self.told else { return };
        // The pipe has room for thousands of numbers. A reader that does not read has gone, or is as good as gone.
        if pipe.write_all(&self.upto.to_le_bytes()).is_err() {
            self.told = Told::Over;
        }
    }
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A part is written.
    pub(crate) fn add(&self, at: u64, bytes: u64) {
        let mut state = self.lock();
        state.beyond.insert(at, at.saturating_add(bytes));
        let before = state.upto;
        let mut upto = before;
        while let Some(end) = state.beyond.remove(&upto) {
            upto = end;
        }
        state.upto = upto;
        if upto > before {
            state.tell();
        }
    }

    /// Tells a reader from now on, if nobody ever was told.
    pub(crate) fn begin(&self) -> io::Result<Option<PipeReader>> {
        let mut state = self.lock();
        if !matches!(state.told, Told::Nobody) {
            return Ok(None);
        }
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        state.told = Told::A(writer);
        state.tell();
        Ok(Some(reader))
    }

    /// Tells nobody any more: the reader learns that what it has does not count.
    pub(crate) fn end(&self) {
        self.lock().told = Told::Over;
    }

    /// Whether somebody is told, and how far it is.
    pub(crate) fn told(&self) -> Option<u64> {
        let state = self.lock();
        matches!(state.told, Told::A(_)).then_some(state.upto)
    }
}

/// Reads a witness in memory from front to back.
pub(crate) struct Memory {
    file: File,
    /// What says how far it is; `None` where it is whole.
    pipe: Option<PipeReader>,
    /// All bytes before this one are there, and those before `at` are read.
    upto: u64,
    at: u64,
    bytes: u64,
    /// What was wrong with it.
    failure: Option<(ErrorKind, String)>,
}

impl Memory {
    /// One of so many bytes, that are all there or of which the pipe tells.
    pub(crate) fn new(file: File, pipe: Option<PipeReader>, bytes: u64) -> Memory {
        let upto = if pipe.is_some() { 0 } else { bytes };
        Memory { file, pipe, upto, at: 0, bytes, failure: None }
    }

    /// What was wrong with it, if something was: who reads may say it in other words.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        self.failure.take().map(|(kind, why)| io::Error::new(kind, why))
    }

    /// Waits until there is more to read, unless all was.
    fn wait(&mut self) -> io::Result<()> {
        let mut numbers = [0; 8 * TOGETHER];
        while self.upto <= self.at && self.at < self.bytes {
            let pipe = self.pipe.as_mut().ok_or(ErrorKind::UnexpectedEof)?;
            let count = pipe.read(&mut numbers)?;
            let (found, []) = numbers[..count].as_chunks() else { return Err(ErrorKind::InvalidData.into()) };
            let last = found.last().ok_or(ErrorKind::UnexpectedEof)?;
            self.upto = u64::from_le_bytes(*last).min(self.bytes);
        }
        Ok(())
    }

    fn next(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        let count = usize::try_from(self.upto - self.at).unwrap_or(usize::MAX).min(to.len());
        let (file, to, at) = (&self.file, &mut to[..count], self.at);
        let read = |number: usize, piece: &mut [u8]| file.read_exact_at(piece, at + (number * PIECE) as u64);
        // One that comes is read about as fast as it comes by one thread, and by several where it is behind.
        match self.pipe.is_some() && count < BEHIND {
            true => file.read_exact_at(to, at).map_err(cut)?,
            false => by_threads(to, |number, piece| read(number, piece).map_err(cut))?,
        }
        self.at += count as u64;
        Ok(count)
    }
}

impl Read for Memory {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.next(to).inspect_err(|e| self.failure = Some((e.kind(), e.to_string())))
    }
}

/// Waits until nobody tells any more.
pub(crate) fn wait_for_end(mut pipe: PipeReader) {
    while pipe.read(&mut [0; 8 * TOGETHER]).is_ok_and(|count| count > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::seq::SliceRandom;
    use rand::{Rng, RngCore, SeedableRng};

    fn random(seed: u64) -> rand::rngs::StdRng {
        rand::rngs::StdRng::seed_from_u64(seed)
    }

    /// A reader of nothing in particular, to see what it is told.
    fn told(progress: &Progress, bytes: u64) -> Memory {
        Memory::new(tempfile::tempfile().unwrap(), Some(progress.begin().unwrap().unwrap()), bytes)
    }

    /// Whatever the order in which parts are written, the reader never gets a byte that is not there, and in the end all.
    #[test]
    fn no_more_is_read_than_is_there() {
        let mut random = random(7);
        for round in 0..60 {
            let bytes =
                [1, PIECE, BEHIND, BEHIND + 1, 3 * BEHIND + 7][round % 5] - usize::from(round > 30 && round % 5 > 0);
            let mut content = vec![0; bytes];
            random.fill_bytes(&mut content);
            let mut cuts: Vec<_> =
                (0..random.gen_range(0..9)).map(|_| random.gen_range(0..bytes)).chain([0, bytes]).collect();
            cuts.sort_unstable();
            cuts.dedup();
            let mut parts: Vec<_> = cuts.windows(2).map(|ends| (ends[0], ends[1])).collect();
            parts.shuffle(&mut random);
            let (file, progress) = (tempfile::tempfile().unwrap(), Progress::default());
            // What is not written reads as what is not the content.
            file.write_all_at(&content.iter().map(|byte| !byte).collect::<Vec<_>>(), 0).unwrap();
            let told_after = random.gen_range(0..=parts.len());
            let write = |&(at, end): &(usize, usize)| {
                file.write_all_at(&content[at..end], at as u64).unwrap();
                progress.add(at as u64, (end - at) as u64);
            };
            parts[..told_after].iter().for_each(write);
            let pipe = progress.begin().unwrap().unwrap();
            let mut memory = Memory::new(file.try_clone().unwrap(), Some(pipe), bytes as u64);
            std::thread::scope(|scope| {
                let (mut found, room) = (vec![0; bytes], random.gen_range(1..=bytes));
                let reading = scope.spawn(move || {
                    found.chunks_mut(room).try_for_each(|part| memory.read_exact(part)).unwrap();
                    assert_eq!((memory.read(&mut [0]).unwrap(), memory.failure().is_none()), (0, true));
                    found
                });
                for part in &parts[told_after..] {
                    std::thread::sleep(std::time::Duration::from_micros(200));
                    write(part);
                }
                assert!(reading.join().unwrap() == content, "{bytes} {parts:?} {told_after}");
            });
        }
    }

    #[test]
    fn what_is_whole_is_read_as_it_is() {
        let mut random = random(4);
        for bytes in [0, 1, PIECE, 8 * PIECE + 1, 3 * BEHIND + 7] {
            let mut content = vec![0; bytes];
            random.fill_bytes(&mut content);
            // With room for more behind it.
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&[&content[..], &[0; 99]].concat(), 0).unwrap();
            for room in [1 + bytes / 7, bytes.max(1), bytes + 5] {
                let (mut memory, mut found) = (Memory::new(file.try_clone().unwrap(), None, bytes as u64), Vec::new());
                let mut part = vec![0; room];
                while found.len() < bytes {
                    let count = memory.read(&mut part).unwrap();
                    found.extend_from_slice(&part[..count]);
                }
                assert!(found == content && memory.read(&mut part).unwrap() == 0, "{bytes} {room}");
            }
        }
        // What is too short is damaged.
        let mut short = Memory::new(tempfile::tempfile().unwrap(), None, 5);
        assert!(short.read(&mut [0; 5]).is_err());
        assert_eq!(short.failure().unwrap().kind(), ErrorKind::InvalidData);
    }

    /// What has not come when the other side tells no more does not come.
    #[test]
    fn the_end_of_the_pipe_is_an_error_before_the_end_of_the_witness() {
        let progress = Progress::default();
        let mut memory = told(&progress, 10);
        memory.file.write_all_at(b"0123456789", 0).unwrap();
        progress.add(0, 5);
        let mut found = [0; 10];
        assert_eq!(memory.read(&mut found).unwrap(), 5);
        progress.end();
        progress.add(5, 5);
        assert_eq!(memory.read(&mut found).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(progress.told(), None);
    }

    /// One reader at most; one that has gone, or does not read, holds nobody up.
    #[test]
    fn a_reader_that_is_gone_is_told_nothing() {
        let progress = Progress::default();
        let reader = told(&progress, 20);
        assert!(progress.begin().unwrap().is_none());
        progress.add(0, 5);
        assert_eq!(progress.told(), Some(5));
        drop(reader);
        progress.add(5, 5);
        assert_eq!(progress.told(), None);
        assert!(progress.begin().unwrap().is_none());
        let full = Progress::default();
        let reader = told(&full, 1 << 20);
        (0..100_000).for_each(|at| full.add(at, 1));
        assert_eq!(full.told(), None);
        drop(reader);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut memory = Memory::new(tempfile::tempfile().unwrap(), Some(reader), 5);
        writer.write_all(&[1; 9]).unwrap();
        assert_eq!(memory.read(&mut [0; 5]).unwrap_err().kind(), ErrorKind::InvalidData);
        // More than there is to be is not read.
        let (reader, mut writer) = io::pipe().unwrap();
        let mut memory = Memory::new(tempfile::tempfile().unwrap(), Some(reader), 5);
        memory.file.write_all_at(b"0123456789", 0).unwrap();
        writer.write_all(&u64::MAX.to_le_bytes()).unwrap();
        assert_eq!((memory.read(&mut [0; 10]).unwrap(), memory.read(&mut [0; 10]).unwrap()), (5, 0));
    }
}

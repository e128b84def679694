//! Witnesses that came to this node, in memory that a worker of it gets beside their files.
//!
//! Each lies in a file without a name (`memfd_create(2)`), whose size nobody can change. Neither side maps it: the service writes, and the
//! worker, which may not, reads into the memory that its device copies from. So neither can end the other, what is checked is what is used,
//! and no core dump shows a witness. It is overwritten when the last that needs it lets go, and is used again: pages that are there are
//! filled several times as fast as fresh ones.

use crate::coming::Progress;
use rustix::fs::{fcntl_add_seals, memfd_create, MemfdFlags, SealFlags};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Files at most: each takes two descriptors.
const MOST: usize = 64;

/// So long a file that nobody needs is kept for the next witness.
const KEPT: Duration = Duration::from_secs(60);

/// Bytes that are overwritten at a time.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// What keeps the size of a file as it is.
const FIXED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// The memory of a node for witnesses.
pub(crate) struct Room {
    /// Bytes of all files at most.
    most: u64,
    state: Mutex<State>,
    used: Sender<Sheet>,
    inbox: Mutex<Option<Receiver<Sheet>>>,
}

#[derive(Default)]
struct State {
    /// All files, whoever has them, and their bytes.
    files: usize,
    bytes: u64,
    /// Those that have nothing in them, the one that has waited longest in front.
    idle: Vec<(Sheet, Instant)>,
    /// Those of jobs that wait for a worker, by the job.
    waiting: HashMap<String, (Arc<Held>, Instant)>,
}

/// A file without a name.
struct Sheet {
    file: File,
    /// Reads the file, and cannot write it.
    reader: File,
    bytes: u64,
    /// Up to where it was written.
    written: u64,
}

impl Sheet {
    fn new(bytes: u64) -> io::Result<Sheet> {
        let file = File::from(memfd_create("tandem-witness", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.set_len(bytes)?;
        fcntl_add_seals(&file, FIXED)?;
        let reader = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok(Sheet { file, reader, bytes, written: 0 })
    }

    fn wipe(&mut self) -> io::Result<()> {
        for at in (0..self.written).step_by(ZEROS.len()) {
            let count = (self.written - at).min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..count as usize], at)?;
        }
        self.written = 0;
        Ok(())
    }
}

/// The memory of one witness. It is overwritten when this is dropped.
pub(crate) struct Held {
    /// `None` when it is dropped.
    sheet: Option<Sheet>,
    written: AtomicU64,
    has_failed: AtomicBool,
    progress: Progress,
    room: Arc<Room>,
}

impl Held {
    /// Writes a part of the witness; [`Held::is_whole`] says whether all could be written.
    pub(crate) fn write(&self, at: u64, content: &[impl AsRef<[u8]>]) {
        let Some(sheet) = &self.sheet else { return };
        let bytes: usize = content.iter().map(|part| part.as_ref().len()).sum();
        self.written.fetch_max(at.saturating_add(bytes as u64).min(sheet.bytes), Ordering::SeqCst);
        match crate::blobs::write_at(&sheet.file, at, content) {
            Ok(()) => self.progress.add(at, bytes as u64),
            Err(_) => self.has_failed.store(true, Ordering::SeqCst),
        }
    }

    /// For a worker that reads it while it is written, if none ever was to; `None` where there is no pipe to be had, too.
    pub(crate) fn begin_ahead(&self) -> Option<PipeReader> {
        self.progress.begin().ok().flatten()
    }

    /// What a worker has read of it does not count any more.
    pub(crate) fn end_ahead(&self) {
        self.progress.end();
    }

    /// Before which byte it is all there, while a worker reads it.
    pub(crate) fn ahead(&self) -> Option<u64> {
        self.progress.told()
    }

    /// Whether everything that was to be written is there.
    pub(crate) fn is_whole(&self) -> bool {
        !self.has_failed.load(Ordering::SeqCst)
    }

    /// What a worker is given.
    pub(crate) fn reader(&self) -> Option<BorrowedFd<'_>> {
        self.sheet.as_ref().map(|sheet| sheet.reader.as_fd())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(mut sheet) = self.sheet.take() else { return };
        // Before the memory is used for another one.
        self.progress.end();
        sheet.written = self.written.load(Ordering::SeqCst);
        // To overwrite takes milliseconds: a thread does it. Where it has ended, the system takes the pages.
        if let Err(back) = self.room.used.send(sheet) {
            self.room.close(vec![back.0]);
        }
    }
}

impl Room {
    /// Memory of `most` bytes.
    pub(crate) fn new(most: u64) -> Arc<Room> {
        let (used, inbox) = channel();
        Arc::new(Room { most, state: Mutex::default(), used, inbox: Mutex::new(Some(inbox)) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for a witness of at most `bytes` bytes, where there is room for it.
    pub(crate) fn take(self: &Arc<Room>, bytes: u64) -> Option<Arc<Held>> {
        let (found, closed) = self.lock().find(bytes, self.most);
        self.close(closed);
        let sheet = match found? {
            Some(sheet) => sheet,
            None => match Sheet::new(bytes) {
                Ok(sheet) => sheet,
                Err(_) => {
                    self.lock().less(bytes);
                    return None;
                }
            },
        };
        let (written, has_failed, progress) = (AtomicU64::new(0), AtomicBool::new(false), Progress::default());
        Some(Arc::new(Held { sheet: Some(sheet), written, has_failed, progress, room: self.clone() }))
    }

    /// Keeps it for the worker that gets the job.
    pub(crate) fn keep(&self, job: &str, held: Arc<Held>) {
        if held.is_whole() {
            self.lock().waiting.insert(job.into(), (held, Instant::now()));
        }
    }

    /// What is kept for a job, once.
    pub(crate) fn hand(&self, job: &str) -> Option<Arc<Held>> {
        self.lock().waiting.remove(job).map(|(held, _)| held)
    }

    /// Nobody needs what is kept for a job.
    pub(crate) fn forget(&self, job: &str) {
        // Dropped without the lock.
        drop(self.hand(job));
    }

    /// Bytes of the files that have something of a witness, and of those that are kept for the next one.
    pub(crate) fn bytes(&self) -> [u64; 2] {
        let state = self.lock();
        let idle = state.idle_bytes();
        [state.bytes - idle, idle]
    }

    /// Jobs whose witnesses are kept for longer than `age`.
    pub(crate) fn older(&self, age: Duration) -> Vec<String> {
        let state = self.lock();
        let old = state.waiting.iter().filter(|(_, (_, since))| since.elapsed() > age);
        old.map(|(job, _)| job.clone()).collect()
    }

    /// Gives the memory back that nobody has needed for a while.
    pub(crate) fn tidy(&self) {
        let mut state = self.lock();
        let idle = std::mem::take(&mut state.idle);
        let (old, idle): (Vec<_>, Vec<_>) = idle.into_iter().partition(|(_, since)| since.elapsed() > KEPT);
        state.idle = idle;
        drop(state);
        self.close(old.into_iter().map(|(sheet, _)| sheet).collect());
    }

    /// Overwrites what was used, on a thread of its own.
    pub(crate) fn wipe(&self) {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        for mut sheet in inbox.iter().flatten() {
            match sheet.wipe() {
                Ok(()) => self.lock().idle.push((sheet, Instant::now())),
                Err(_) => self.close(vec![sheet]),
            }
        }
    }

    fn close(&self, sheets: Vec<Sheet>) {
        for sheet in sheets {
            let bytes = sheet.bytes;
            // First the memory, then what is said of it.
            drop(sheet);
            self.lock().less(bytes);
        }
    }
}

impl State {
    fn idle_bytes(&self) -> u64 {
        self.idle.iter().map(|(sheet, _)| sheet.bytes).sum()
    }

    fn less(&mut self, bytes: u64) {
        self.files -= 1;
        self.bytes -= bytes;
    }

    /// A file for so many bytes: one that is idle, or room for a new one; `None` where there is neither. Besides, those that are to be
    /// closed for it.
    fn find(&mut self, bytes: u64, most: u64) -> (Option<Option<Sheet>>, Vec<Sheet>) {
        // One that is much larger than it needs to be would keep others out.
        let fits = |sheet: &Sheet| (bytes..=bytes.saturating_mul(2)).contains(&sheet.bytes);
        if let Some(at) = self.idle.iter().position(|(sheet, _)| fits(sheet)) {
            return (Some(Some(self.idle.remove(at).0)), Vec::new());
        }
        let (busy, files) = (self.bytes - self.idle_bytes(), self.files - self.idle.len());
        if files >= MOST || busy.saturating_add(bytes) > most {
            return (None, Vec::new());
        }
        let mut closed = Vec::new();
        let mut left = (self.files, self.bytes);
        while left.0 >= MOST || left.1.saturating_add(bytes) > most {
            let (sheet, _) = self.idle.remove(0);
            left = (left.0 - 1, left.1 - sheet.bytes);
            closed.push(sheet);
        }
        self.files += 1;
        self.bytes += bytes;
        (Some(None), closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Memory whose used files are overwritten by a thread, as those of a service are.
    fn room(most: u64) -> Arc<Room> {
        let room = Room::new(most);
        let wiped = room.clone();
        std::thread::spawn(move || wiped.wipe());
        room
    }

    fn wait_for(room: &Room, bytes: [u64; 2]) {
        let begun = Instant::now();
        while room.bytes() != bytes {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}, expected {bytes:?}", room.bytes());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What a worker is given of it.
    fn reader(held: &Held) -> File {
        File::from(held.reader().unwrap().try_clone_to_owned().unwrap())
    }

    fn content(of: &File, bytes: u64) -> Vec<u8> {
        let mut content = vec![0xaa; bytes as usize];
        of.read_exact_at(&mut content, 0).unwrap();
        content
    }

    #[test]
    fn a_witness_is_read_by_who_gets_it_and_overwritten_when_all_let_go() {
        let room = room(4 * MIB);
        let bytes = 200_001;
        let held = room.take(bytes).unwrap();
        held.write(0, &[[1; 70_000]]);
        held.write(140_000, &[[3; 60_001]]);
        held.write(70_000, &[[2; 70_000]]);
        let expected = [vec![1; 70_000], vec![2; 70_000], vec![3; 60_001]].concat();
        let reader = reader(&held);
        room.keep("a", held.clone());
        assert!(content(&reader, bytes) == expected && room.hand("b").is_none());
        let given = room.hand("a").unwrap();
        assert!(room.hand("a").is_none());
        // One that still has it, such as a thread that writes, keeps it as it is.
        drop(given);
        assert_eq!(room.bytes(), [bytes, 0]);
        assert!(content(&reader, bytes) == expected);
        drop(held);
        wait_for(&room, [0, bytes]);
        assert!(content(&reader, bytes) == vec![0; bytes as usize]);
        // The same file serves the next one, also a smaller one, and none that is too large for it or much too small.
        let smaller = room.take(bytes / 2 + 1).unwrap();
        assert_eq!(room.bytes(), [bytes, 0]);
        smaller.write(5, &[[7]]);
        assert_eq!(content(&reader, bytes)[5], 7);
        drop(smaller);
        wait_for(&room, [0, bytes]);
        let (larger, tiny) = (room.take(bytes + 1).unwrap(), room.take(1000).unwrap());
        assert_eq!(room.bytes(), [bytes + 1001, bytes]);
        drop((larger, tiny));
    }

    /// The last that lets go waits here for its file to be counted, so that it is seen what came before.
    #[test]
    fn who_reads_hears_of_the_end_before_the_memory_is_used_again() {
        let room = Room::new(MIB);
        drop(room.inbox.lock().unwrap().take());
        let held = room.take(1000).unwrap();
        let pipe = held.begin_ahead().unwrap();
        let (heard, hears) = channel();
        let state = room.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(held));
            scope.spawn(move || {
                crate::coming::wait_for_end(pipe);
                let _ = heard.send(());
            });
            let was_heard = hears.recv_timeout(Duration::from_secs(10));
            drop(state);
            was_heard.unwrap();
        });
        assert_eq!(room.bytes(), [0, 0]);
    }

    #[test]
    fn nobody_changes_its_size_and_a_worker_nothing() {
        let room = room(MIB);
        let held = room.take(100_000).unwrap();
        held.write(0, &[[5; 1000]]);
        let reader = reader(&held);
        assert!(reader.write_all_at(&[6], 0).is_err() && reader.set_len(0).is_err());
        let own = &held.sheet.as_ref().unwrap().file;
        assert!(own.set_len(0).is_err() && own.set_len(1 << 30).is_err());
        assert_eq!(content(&reader, 1000), [5; 1000]);
        // What does not fit is not kept.
        assert!(held.is_whole());
        held.write(99_999, &[[1, 2]]);
        assert!(!held.is_whole());
        room.keep("a", held);
        assert!(room.hand("a").is_none());
        wait_for(&room, [0, 100_000]);
    }

    #[test]
    fn it_has_a_bound() {
        let room = room(4 * MIB);
        assert!(room.take(4 * MIB + 1).is_none() && room.take(u64::MAX).is_none());
        assert!(Room::new(0).take(1).is_none());
        let held: Vec<_> = (0..4).map(|_| room.take(MIB).unwrap()).collect();
        assert!(room.take(1).is_none());
        drop(held);
        wait_for(&room, [0, 4 * MIB]);
        // What is idle goes for what is needed.
        let large = room.take(3 * MIB).unwrap();
        assert_eq!(room.bytes(), [3 * MIB, MIB]);
        assert!(room.take(2 * MIB).is_none());
        drop(large);
        wait_for(&room, [0, 4 * MIB]);
        // So do files, of which each takes descriptors.
        let many: Vec<_> = std::iter::from_fn(|| room.take(1000)).collect();
        assert_eq!(many.len(), MOST);
    }

    #[test]
    fn what_is_kept_is_forgotten_and_what_is_idle_goes() {
        let room = room(4 * MIB);
        for job in ["a", "b"] {
            room.keep(job, room.take(MIB).unwrap());
        }
        assert!(room.older(Duration::from_secs(60)).is_empty());
        let mut old = room.older(Duration::ZERO);
        old.sort();
        assert_eq!(old, ["a", "b"]);
        room.forget("a");
        room.forget("none");
        wait_for(&room, [MIB, MIB]);
        room.tidy();
        assert_eq!(room.bytes(), [MIB, MIB]);
        room.lock().idle[0].1 = Instant::now().checked_sub(KEPT + Duration::from_secs(1)).unwrap();
        room.tidy();
        assert_eq!(room.bytes(), [MIB, 0]);
    }
}

//! What hashes and writes the parts of a body while more of it comes.

use super::body::{storage, Run};
use super::Refusal;
use crate::blobs::{Part, Placed};
use crate::held::Held;
use std::collections::VecDeque;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};

/// Threads that do so beside each other. One does a GB a second, and a caller sends several.
const LANES: usize = 4;

/// Parts that are in memory at a time.
const PARTS: usize = 16;

/// Parts that wait for a thread that is at work before another one is woken: who reads the body pays for each that wakes.
const WAITING: usize = 1;

/// Writes a body into its blob and its memory, and hashes it.
pub(super) struct Lanes {
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
    bytes: u64,
    threads: JoinSet<io::Result<()>>,
}

struct Shared {
    /// Where any thread writes any part; without it one thread writes one behind the other.
    places: Option<Placed>,
    part: Mutex<Option<Part>>,
    held: Option<Arc<Held>>,
    state: Mutex<State>,
}

struct State {
    to_write: VecDeque<(Arc<Taken>, bool)>,
    to_hash: VecDeque<Arc<Taken>>,
    /// `None` while a thread hashes, which does all that there is to hash.
    hasher: Option<blake3::Hasher>,
    /// Those that are at work, and look for more before they end.
    threads: usize,
    has_failed: bool,
}

/// A part that is in memory, until it is hashed and written.
struct Taken {
    run: Run,
    _room: OwnedSemaphorePermit,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Takes a part; whether a thread more is wanted, which [`Shared::work`]s.
    fn push(&self, taken: Taken, is_last: bool) -> bool {
        let (mut state, taken) = (lock(&self.state), Arc::new(taken));
        if state.has_failed {
            return false;
        }
        state.to_hash.push_back(taken.clone());
        state.to_write.push_back((taken, is_last));
        let most = if self.places.is_some() { LANES } else { 1 };
        let waiting = if is_last || state.threads == 0 { 0 } else { WAITING };
        let is_wanted = state.threads < most && state.to_write.len() > waiting;
        state.threads += usize::from(is_wanted);
        is_wanted
    }

    fn work(&self) -> io::Result<()> {
        let all = || -> io::Result<()> {
            while let Some((taken, is_last)) = self.next() {
                let Run { at, content, .. } = &taken.run;
                self.held.iter().for_each(|held| held.write(*at, content));
                self.hash();
                match &self.places {
                    Some(places) => places.write(*at, is_last, content)?,
                    None => lock(&self.part).iter_mut().try_for_each(|part| part.store_all(content))?,
                }
            }
            Ok(())
        };
        let done = catch_unwind(AssertUnwindSafe(all)).unwrap_or_else(|_| Err(defect()));
        if done.is_err() {
            // Who reads the body waits for room, and hears of it.
            let mut state = lock(&self.state);
            state.has_failed = true;
            state.to_write.clear();
            state.to_hash.clear();
        }
        done
    }

    fn next(&self) -> Option<(Arc<Taken>, bool)> {
        let mut state = lock(&self.state);
        let next = state.to_write.pop_front();
        state.threads -= usize::from(next.is_none());
        next
    }

    /// Hashes what is there, unless another thread does.
    fn hash(&self) {
        let mut state = lock(&self.state);
        let Some(mut hasher) = state.hasher.take() else { return };
        while let Some(taken) = state.to_hash.pop_front() {
            drop(state);
            for piece in &taken.run.content {
                hasher.update(piece);
            }
            drop(taken);
            state = lock(&self.state);
        }
        state.hasher = Some(hasher);
    }
}

impl Lanes {
    /// For a part of which nothing is written.
    pub(super) fn new(mut part: Part, held: Option<Arc<Held>>) -> io::Result<Lanes> {
        let (places, hasher) = (part.begin_placed()?, Some(part.hasher().clone()));
        let (to_write, to_hash, threads, has_failed) = (VecDeque::new(), VecDeque::new(), 0, false);
        let state = Mutex::new(State { to_write, to_hash, hasher, threads, has_failed });
        let shared = Arc::new(Shared { places, part: Mutex::new(Some(part)), held, state });
        Ok(Lanes { shared, room: Arc::new(Semaphore::new(PARTS)), bytes: 0, threads: JoinSet::new() })
    }

    /// Has a part hashed and written, soon. It waits while many are.
    pub(super) async fn write(&mut self, run: Run, is_last: bool) -> Result<(), Refusal> {
        let room = self.room.clone().acquire_owned().await.map_err(|_| storage(&defect()))?;
        while let Some(done) = self.threads.try_join_next() {
            written(done)?;
        }
        self.bytes += run.bytes as u64;
        if self.shared.push(Taken { run, _room: room }, is_last) {
            let shared = self.shared.clone();
            self.threads.spawn_blocking(move || shared.work());
        }
        Ok(())
    }

    /// The blob, when everything is hashed and written.
    pub(super) async fn end(mut self) -> Result<Part, Refusal> {
        while let Some(done) = self.threads.join_next().await {
            written(done)?;
        }
        let (part, hasher) = (lock(&self.shared.part).take(), lock(&self.shared.state).hasher.take());
        let (mut part, hasher) = part.zip(hasher).ok_or_else(|| storage(&defect()))?;
        if self.shared.places.is_some() {
            part.placed(self.bytes);
        }
        *part.hasher() = hasher;
        Ok(part)
    }
}

fn defect() -> io::Error {
    io::Error::other("a defect of tandem")
}

pub(super) fn written<T>(done: Result<io::Result<T>, JoinError>) -> Result<T, Refusal> {
    let done = done.unwrap_or_else(|_| Err(defect()));
    done.map_err(|error| storage(&error))
}

#[cfg(test)]
mod tests {
    use super::super::body::{Reader, Source};
    use super::*;
    use crate::blobs::{Blobs, Content};
    use crate::held::Room;
    use crate::seal::{Opener, Seal, PIECE};
    use hyper::body::{Body, Bytes, Frame};
    use rand::{Rng, RngCore, SeedableRng};
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::fs::FileExt;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// A body that comes in these pieces.
    struct Pieces(VecDeque<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
    }

    impl Source for Pieces {
        fn refusal(error: Infallible, _: &str) -> Refusal {
            match error {}
        }
    }

    fn cut(content: &[u8], random: &mut impl Rng) -> Pieces {
        let (mut pieces, mut rest) = (VecDeque::new(), content);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(random.gen_range(1..=5 * PIECE).min(rest.len()));
            pieces.push_back(Bytes::copy_from_slice(now));
            rest = later;
        }
        Pieces(pieces)
    }

    /// Whatever the pieces are, the blob, its hash and the memory have what came; so has a file that is not sealed.
    #[test]
    fn what_comes_is_written_as_it_is() {
        let (mut random, folder) = (rand::rngs::StdRng::seed_from_u64(5), tempfile::tempdir().unwrap());
        let blobs = Blobs::open(folder.path().join("blobs"), false).unwrap();
        let (key, room) = (Seal::new([9; 32]).of("a"), Room::new(64 << 20));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let around = [PIECE, 4 * PIECE, 8 * PIECE, 32 * PIECE].into_iter().flat_map(|of| [of - 1, of, of + 1]);
        for bytes in around.chain([1, 77 * PIECE + 13]) {
            let mut content = vec![0; bytes];
            random.fill_bytes(&mut content);
            for seal in [Some(&key), None] {
                let part = blobs.create("a", blake3::Hasher::new(), seal).unwrap();
                let reader = Reader::over(cut(&content, &mut random), "it", 10).within(bytes as u64).unwrap();
                let taken = runtime.block_on(reader.into_part(part, || room.take(bytes as u64)));
                let Ok((part, held)) = taken else { panic!("{bytes}") };
                assert_eq!((part.bytes(), part.hash()), (bytes as u64, blake3::hash(&content)), "{bytes}");
                part.keep("a").unwrap();
                let file = File::open(blobs.path("a")).unwrap();
                let mut found = vec![0; bytes];
                match seal {
                    Some(key) => {
                        let opened = (Content::File(file.try_clone().unwrap()), file.metadata().unwrap().len());
                        Opener::open(opened, key, bytes as u64).unwrap().read_exact(&mut found).unwrap();
                    }
                    None => {
                        assert_eq!(file.metadata().unwrap().len(), bytes as u64);
                        file.read_exact_at(&mut found, 0).unwrap();
                    }
                }
                assert!(found == content, "{bytes}");
                assert_eq!(held.is_some(), bytes >= PIECE, "{bytes}");
                if let Some(held) = held {
                    let mut found = vec![0; bytes];
                    let reader = File::from(held.reader().unwrap().try_clone_to_owned().unwrap());
                    reader.read_exact_at(&mut found, 0).unwrap();
                    assert!(found == content, "{bytes}");
                }
            }
        }
    }

    /// A body that is refused in the middle leaves neither a file nor something in memory.
    #[test]
    fn what_is_refused_leaves_nothing() {
        let (mut random, folder) = (rand::rngs::StdRng::seed_from_u64(6), tempfile::tempdir().unwrap());
        let blobs = Blobs::open(folder.path().join("blobs"), false).unwrap();
        let room = Room::new(64 << 20);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let bytes = 20 * PIECE;
        let part = blobs.create("a", blake3::Hasher::new(), Some(&Seal::new([9; 32]).of("a"))).unwrap();
        let reader = Reader::over(cut(&vec![1; bytes], &mut random), "it", 10).within(bytes as u64 - 1).unwrap();
        let refused = runtime.block_on(reader.into_part(part, || room.take(bytes as u64))).err().unwrap();
        assert_eq!(refused.code, "too_large");
        drop(runtime);
        assert_eq!(std::fs::read_dir(folder.path().join("blobs")).unwrap().count(), 0);
        let wiped = room.clone();
        std::thread::spawn(move || wiped.wipe());
        let begun = std::time::Instant::now();
        while room.bytes() != [0, bytes as u64] {
            assert!(begun.elapsed().as_secs() < 20, "{:?}", room.bytes());
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

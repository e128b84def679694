//! What writes the parts of a body while more of it comes.

use super::body::{storage, Run};
use super::Refusal;
use crate::blobs::{Part, Placed};
use crate::held::Held;
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc::{self, Sender};
use tokio::task::{JoinError, JoinHandle, JoinSet};

/// Parts of a body that are sealed and written beside each other. One thread does 1.3 GB a second, and a caller sends several.
const LANES: usize = 4;

/// Parts that wait for a thread which writes one behind the other.
const WAITING: usize = 8;

/// Writes a body into its blob and its memory.
pub(super) struct Lanes {
    to: To,
    held: Option<Arc<Held>>,
    bytes: u64,
    tasks: JoinSet<io::Result<()>>,
}

enum To {
    /// By any thread, each part at its place.
    Places(Arc<Placed>, Box<Part>),
    /// By a thread that has the blob.
    Order(Sender<Run>, JoinHandle<io::Result<Part>>),
}

impl Lanes {
    pub(super) fn new(placed: Option<Placed>, mut part: Part, held: Option<Arc<Held>>) -> Lanes {
        let to = match placed {
            Some(placed) => To::Places(Arc::new(placed), Box::new(part)),
            None => {
                let (runs, mut inbox) = mpsc::channel::<Run>(WAITING);
                let writer = tokio::task::spawn_blocking(move || {
                    while let Some(run) = inbox.blocking_recv() {
                        run.content.iter().try_for_each(|piece| part.store(piece))?;
                    }
                    Ok(part)
                });
                To::Order(runs, writer)
            }
        };
        Lanes { to, held, bytes: 0, tasks: JoinSet::new() }
    }

    /// Has a part written, soon. It waits while many are.
    pub(super) async fn write(&mut self, run: Run, is_last: bool) -> Result<(), Refusal> {
        while self.tasks.len() >= LANES {
            self.joined().await?;
        }
        self.bytes += run.bytes as u64;
        let held = self.held.clone();
        match &self.to {
            To::Places(placed, _) => {
                let placed = placed.clone();
                self.tasks.spawn_blocking(move || {
                    held.iter().for_each(|held| held.write(run.at, &run.content));
                    placed.write(run.at, is_last, &run.content)
                });
            }
            To::Order(runs, _) => {
                if let Some(held) = held {
                    let run = run.clone();
                    self.tasks.spawn_blocking(move || {
                        held.write(run.at, &run.content);
                        Ok(())
                    });
                }
                // Who writes has failed, and says why at the end.
                let _ = runs.send(run).await;
            }
        }
        Ok(())
    }

    async fn joined(&mut self) -> Result<(), Refusal> {
        match self.tasks.join_next().await {
            Some(done) => written(done),
            None => Ok(()),
        }
    }

    /// The blob, when everything is written.
    pub(super) async fn end(mut self) -> Result<Part, Refusal> {
        while !self.tasks.is_empty() {
            self.joined().await?;
        }
        match self.to {
            To::Places(_, mut part) => {
                part.placed(self.bytes);
                Ok(*part)
            }
            To::Order(runs, writer) => {
                drop(runs);
                written(writer.await)
            }
        }
    }
}

pub(super) fn written<T>(done: Result<io::Result<T>, JoinError>) -> Result<T, Refusal> {
    let done = done.unwrap_or_else(|_| Err(io::Error::other("a defect of tandem")));
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

//! Bodies: replies are whole, requests are read piece by piece and never held whole, within a length and a rate.

use super::lanes::{written, Lanes};
use super::Refusal;
use crate::blobs::Part;
use crate::held::Held;
use crate::seal;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::CONTENT_LENGTH;
use hyper::{Request, StatusCode};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Bytes a second that a body comes with at least, once the time to stall is over.
const RATE: u64 = 16 << 10;

/// Bytes of a body that are written at once, without a thread that writes while more comes.
const AT_ONCE: usize = 64 << 10;

/// Pieces of a body that wait for who reads it.
const PIECES: usize = 8;

/// Bytes of a body that are hashed, sealed and written at a time.
const RUN: usize = 4 * seal::PIECE;

/// A body that is there.
pub(crate) struct Whole(Option<Bytes>);

impl Whole {
    pub(crate) fn new(bytes: Bytes) -> Whole {
        Whole(Some(bytes))
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Where the content of a request comes from.
pub(crate) trait Source: Body<Data = Bytes> + Unpin + Send {
    /// What its end before its time means to the caller; `what` was on its way.
    fn refusal(error: Self::Error, what: &str) -> Refusal;
}

impl Source for Incoming {
    fn refusal(_: hyper::Error, what: &str) -> Refusal {
        cut(what)
    }
}

/// What is told of content that ended before its time.
pub(crate) fn cut(what: &str) -> Refusal {
    Refusal::bad(format!("{what} was cut off; send it again"))
}

/// A request's content, read within limits.
pub(crate) struct Reader<S = Incoming> {
    body: S,
    begun: Instant,
    stall: Duration,
    /// Bytes that it says it has.
    said: Option<u64>,
    bytes: u64,
    limit: u64,
    what: &'static str,
}

impl Reader {
    /// The body of a request. It may have no byte until [`Reader::within`] says how many.
    pub(crate) fn new(request: Request<Incoming>, what: &'static str, stall_seconds: u32) -> Reader {
        let said = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        Reader { said, ..Reader::over(request.into_body(), what, stall_seconds) }
    }
}

impl<S: Source> Reader<S> {
    /// Content from anywhere, as [`Reader::new`].
    pub(crate) fn over(body: S, what: &'static str, stall_seconds: u32) -> Reader<S> {
        let stall = Duration::from_secs(stall_seconds.into());
        Reader { body, begun: Instant::now(), stall, said: None, bytes: 0, limit: 0, what }
    }

    /// Content of at most `limit` bytes; what says that it has more is refused before anything of it is read.
    pub(crate) fn within(self, limit: u64) -> Result<Reader<S>, Refusal> {
        let reader = Reader { limit, ..self };
        match reader.said {
            Some(said) if said > limit => Err(reader.too_large()),
            _ => Ok(reader),
        }
    }

    /// Bytes that it says it has.
    pub(crate) fn said(&self) -> Option<u64> {
        self.said
    }

    fn too_large(&self) -> Refusal {
        let message = format!("{} has at most {} bytes here", self.what, self.limit);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    /// The next piece.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let until = self.begun + self.stall + Duration::from_secs(self.bytes / RATE);
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let frame = tokio::time::timeout_at(until.into(), frame).await.map_err(|_| {
                let message =
                    format!("{} came too slowly, at less than {RATE} bytes a second; send it again", self.what);
                Refusal::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
            })?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| S::refusal(error, self.what))?;
            // Trailers mean nothing here.
            let Ok(piece) = frame.into_data() else { continue };
            self.bytes += piece.len() as u64;
            if self.bytes > self.limit {
                return Err(self.too_large());
            }
            return Ok(Some(piece));
        }
    }

    /// The whole of a small body.
    pub(crate) async fn whole(mut self) -> Result<Vec<u8>, Refusal> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// Writes the body into a blob while it comes; a large one also into the memory for which `room` is asked.
    pub(crate) async fn into_part(
        mut self,
        part: Part,
        room: impl FnOnce() -> Option<Arc<Held>>,
    ) -> Result<(Part, Option<Arc<Held>>), Refusal> {
        let mut start = Vec::new();
        while start.len() < AT_ONCE {
            let Some(piece) = self.next().await? else {
                let part = written(tokio::task::spawn_blocking(move || at_once(part, &start)).await)?;
                return Ok((part, None));
            };
            start.extend_from_slice(&piece);
        }
        let held = room();
        let mut lanes = Lanes::new(part, held.clone()).map_err(|e| storage(&e))?;
        let mut next = Run::default();
        let read = async {
            let mut piece = Bytes::from(start);
            loop {
                // The last one is written when it is known to be the last.
                while !piece.is_empty() {
                    if next.bytes == RUN {
                        lanes.write(next.give(), false).await?;
                    }
                    next.take(&mut piece);
                }
                match self.next().await? {
                    Some(more) => piece = more,
                    None => break,
                }
            }
            lanes.write(next.give(), true).await
        };
        let read: Result<(), Refusal> = read.await;
        let part = lanes.end().await;
        read?;
        Ok((part?, held.filter(|held| held.is_whole())))
    }
}

/// A part of a body.
#[derive(Default)]
pub(super) struct Run {
    /// Its place in the body.
    pub(super) at: u64,
    pub(super) bytes: usize,
    pub(super) content: Vec<Bytes>,
}

impl Run {
    /// Takes of a piece what there is room for.
    fn take(&mut self, piece: &mut Bytes) {
        let now = piece.split_to(piece.len().min(RUN - self.bytes));
        self.bytes += now.len();
        self.content.push(now);
    }

    /// What it is, and begins the next.
    fn give(&mut self) -> Run {
        let at = self.at + self.bytes as u64;
        std::mem::replace(self, Run { at, ..Run::default() })
    }
}

impl<S: Source> Reader<S> {
    /// Gives the body to what reads it on a thread that may wait for the disk.
    pub(crate) async fn into_blocking<T: Send + 'static>(
        mut self,
        read: impl FnOnce(Pieces) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (pieces, inbox) = mpsc::channel::<Option<Bytes>>(PIECES);
        let reader = tokio::task::spawn_blocking(move || read(Pieces { inbox, piece: Bytes::new(), is_whole: false }));
        let came: Result<(), Refusal> = async {
            while let Some(piece) = self.next().await? {
                // Who reads has enough, and says why below.
                if pieces.send(Some(piece)).await.is_err() {
                    break;
                }
            }
            let _ = pieces.send(None).await;
            Ok(())
        }
        .await;
        // Of a body that was cut off, who reads sees no end, and keeps nothing.
        drop(pieces);
        let read = reader.await.unwrap_or_else(|_| Err(storage(&std::io::Error::other("a defect of tandem"))));
        came.and(read)
    }
}

/// The pieces of a body, for a thread that waits for them.
pub(crate) struct Pieces {
    /// With nothing at the end of a whole body.
    inbox: mpsc::Receiver<Option<Bytes>>,
    piece: Bytes,
    is_whole: bool,
}

impl std::io::Read for Pieces {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        while self.piece.is_empty() && !self.is_whole {
            match self.inbox.blocking_recv() {
                Some(Some(piece)) => self.piece = piece,
                Some(None) => self.is_whole = true,
                None => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let count = to.len().min(self.piece.len());
        to[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}

fn at_once(mut part: Part, bytes: &[u8]) -> std::io::Result<Part> {
    part.write(bytes).map(|()| part)
}

/// What a failure to write means to the caller.
pub(crate) fn storage(error: &std::io::Error) -> Refusal {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => Refusal::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "storage_full",
            format!("the service's disk is full: {error}; send it again when there is room"),
        ),
        _ => Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "storage_failed", format!("cannot be stored: {error}")),
    }
}

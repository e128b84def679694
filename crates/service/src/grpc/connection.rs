//! Connections of HTTP/2 and their limits.

use super::{Begun, Grpc};
use crate::http::body::Whole;
use crate::http::writes::Writes;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

/// Requests at a time over one connection.
const STREAMS: u32 = 32;

/// Bytes of a request's head, each line counted with 32 bytes more.
const HEAD_BYTES: u32 = 16 << 10;

/// Bytes that may be on their way in for one request, and for a connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 2 << 20;

/// Bytes of a frame.
const FRAME: u32 = 64 << 10;

/// Requests that a caller may take back before they are looked at, and frames of requests that are over: with more, the connection ends.
const RESETS: usize = 20;
const LOCAL_RESETS: usize = 64;

/// Bytes of replies that wait for one request's reader.
const SEND: usize = 256 << 10;

/// Bytes of a reply that are given at a time.
const PART: usize = 64 << 10;

/// A connection is asked for a sign of life so often, and ends if there is none within the second time.
const ALIVE: Duration = Duration::from_secs(20);
const ANSWER: Duration = Duration::from_secs(20);

/// How often a connection is looked at whether it is of use.
const LOOK: Duration = Duration::from_secs(1);

/// The requests of a connection that are under way.
pub(super) struct Flights(Mutex<Underway>);

struct Underway {
    /// By number; since when a part of the reply waits for its reader, if one does.
    requests: HashMap<u64, Option<Instant>>,
    next: u64,
    /// When one began or ended last.
    changed: Instant,
}

impl Flights {
    fn new() -> Arc<Flights> {
        Arc::new(Flights(Mutex::new(Underway { requests: HashMap::new(), next: 0, changed: Instant::now() })))
    }

    fn of(&self) -> MutexGuard<'_, Underway> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long there has been no request.
    fn idle(&self) -> Duration {
        let of = self.of();
        if of.requests.is_empty() {
            of.changed.elapsed()
        } else {
            Duration::ZERO
        }
    }

    /// How long a reader has taken nothing of a reply at most.
    fn stalled(&self) -> Duration {
        let of = self.of();
        of.requests.values().flatten().map(Instant::elapsed).max().unwrap_or_default()
    }
}

/// A request that is under way, until its reply is sent or not wanted any more.
pub(super) struct Flight {
    of: Arc<Flights>,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

impl Flight {
    pub(super) fn new(of: &Arc<Flights>, permit: OwnedSemaphorePermit) -> Flight {
        let mut all = of.of();
        let number = all.next;
        (all.next, all.changed) = (number + 1, Instant::now());
        all.requests.insert(number, None);
        Flight { of: of.clone(), number, _permit: permit }
    }

    /// Notes whether a part of the reply waits for its reader from now on; else the reader waits for the next part.
    fn waits(&self, waits: bool) {
        self.of.of().requests.insert(self.number, waits.then(Instant::now));
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut all = self.of.of();
        all.requests.remove(&self.number);
        all.changed = Instant::now();
    }
}

/// Serves a connection until it ends, is silent, or is of no use.
pub(crate) async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(grpc: Arc<Grpc>, stream: Begun<S>) {
    let stall = Duration::from_secs(grpc.core.config.stall_seconds.into());
    let flights = Flights::new();
    let (of, own) = (grpc.clone(), flights.clone());
    let answer = service_fn(move |request: Request<Incoming>| {
        let (grpc, flights) = (of.clone(), own.clone());
        async move { Ok::<_, Infallible>(grpc.answer(&flights, request).await) }
    });
    let mut server = http2::Builder::new(TokioExecutor::new());
    server
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_BYTES)
        .max_frame_size(FRAME)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(LOCAL_RESETS)
        .max_send_buf_size(SEND)
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ANSWER);
    let mut served = pin!(server.serve_connection(TokioIo::new(Writes::new(stream, stall)), answer));
    let mut is_asked_to_end = false;
    // What a caller does wrong with its connection concerns nobody else.
    while tokio::time::timeout(LOOK, served.as_mut()).await.is_err() {
        let idle = flights.idle();
        // A caller that takes nothing of a reply would hold its place for ever: HTTP/2 lets it stop one reply and go on with others.
        if idle > 2 * stall || flights.stalled() > stall {
            return;
        }
        if idle > stall && !is_asked_to_end {
            is_asked_to_end = true;
            served.as_mut().graceful_shutdown();
        }
    }
}

/// A reply's body, of HTTP or gRPC. The request is under way while it is there.
pub(crate) struct Sent {
    body: Either,
    /// What of its last part is not given yet: with large parts a slow reader could not be told from one that takes nothing.
    rest: Bytes,
    flight: Option<Arc<Flight>>,
}

pub(super) enum Either {
    Whole(Whole),
    Grpc(tonic::body::Body),
}

impl Sent {
    /// A reply while a request is under way.
    pub(super) fn with(reply: Response<Either>, flight: Option<Arc<Flight>>) -> Response<Sent> {
        if let Some(flight) = &flight {
            flight.waits(true);
        }
        reply.map(|body| Sent { body, rest: Bytes::new(), flight })
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let frame = match &mut this.body {
            _ if !this.rest.is_empty() => Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.rest))))),
            Either::Grpc(body) => Pin::new(body).poll_frame(context),
            Either::Whole(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
        };
        let frame = frame.map_ok(|frame| match frame.into_data() {
            Ok(mut part) => {
                this.rest = part.split_off(part.len().min(PART));
                Frame::data(part)
            }
            Err(frame) => frame,
        });
        // It is asked for a part only when the part before has room.
        if let Some(flight) = &this.flight {
            flight.waits(frame.is_ready());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        let is_end = match &self.body {
            Either::Grpc(body) => body.is_end_stream(),
            Either::Whole(body) => body.is_end_stream(),
        };
        is_end && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Either::Grpc(body) => body.size_hint(),
            Either::Whole(body) => body.size_hint(),
        }
    }
}

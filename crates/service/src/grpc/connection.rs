//! Connections of HTTP/2 and their limits.

use super::{Begun, Grpc};
use crate::http::body::Whole;
use crate::http::writes::Writes;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex, PoisonError};
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

/// A connection is asked for a sign of life so often, and ends if there is none within the second time.
const ALIVE: Duration = Duration::from_secs(20);
const ANSWER: Duration = Duration::from_secs(20);

/// How often a connection is looked at whether it is of use.
const LOOK: Duration = Duration::from_secs(1);

/// The requests of a connection that are under way, and when one began or ended last.
pub(super) struct Flights(Mutex<(usize, Instant)>);

impl Flights {
    fn new() -> Arc<Flights> {
        Arc::new(Flights(Mutex::new((0, Instant::now()))))
    }

    fn change(&self, change: impl FnOnce(usize) -> usize) {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *of = (change(of.0), Instant::now());
    }

    /// How long there has been no request.
    fn idle(&self) -> Duration {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            (0, since) => since.elapsed(),
            _ => Duration::ZERO,
        }
    }
}

/// A request that is under way, until its reply is sent or not wanted any more.
pub(super) struct Flight {
    of: Arc<Flights>,
    _permit: OwnedSemaphorePermit,
}

impl Flight {
    pub(super) fn new(of: &Arc<Flights>, permit: OwnedSemaphorePermit) -> Flight {
        of.change(|count| count + 1);
        Flight { of: of.clone(), _permit: permit }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.of.change(|count| count - 1);
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
        if idle > 2 * stall {
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
    pub(super) body: Either,
    pub(super) _flight: Option<Arc<Flight>>,
}

pub(super) enum Either {
    Whole(Whole),
    Grpc(tonic::body::Body),
}

impl Sent {
    /// A reply while a request is under way.
    pub(super) fn with(reply: Response<Either>, flight: Option<Arc<Flight>>) -> Response<Sent> {
        reply.map(|body| Sent { body, _flight: flight })
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut self.body {
            Either::Grpc(body) => Pin::new(body).poll_frame(context),
            Either::Whole(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Either::Grpc(body) => body.is_end_stream(),
            Either::Whole(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Either::Grpc(body) => body.size_hint(),
            Either::Whole(body) => body.size_hint(),
        }
    }
}

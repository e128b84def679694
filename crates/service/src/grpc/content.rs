//! What comes in pieces: a head first, then the content.

use crate::core::Core;
use crate::http::body::{cut, Reader, Source};
use crate::http::Refusal;
use crate::proto::{submit_request, upload_request, SubmitHead, SubmitRequest, UploadRequest};
use hyper::body::{Body, Bytes, Frame};
use hyper::StatusCode;
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::Duration;
use tokio_stream::Stream;
use tonic::{Code, Status, Streaming};

/// A message of such a stream.
pub(super) trait Part: Send + 'static {
    /// What comes first.
    type Head;

    /// What this message has.
    fn split(self) -> Option<Split<Self::Head>>;
}

pub(super) enum Split<H> {
    Head(H),
    Piece(Bytes),
}

impl Part for SubmitRequest {
    type Head = SubmitHead;

    fn split(self) -> Option<Split<SubmitHead>> {
        Some(match self.part? {
            submit_request::Part::Head(head) => Split::Head(head),
            submit_request::Part::Piece(piece) => Split::Piece(piece),
        })
    }
}

impl Part for UploadRequest {
    type Head = String;

    fn split(self) -> Option<Split<String>> {
        Some(match self.part? {
            upload_request::Part::Name(name) => Split::Head(name),
            upload_request::Part::Piece(piece) => Split::Piece(piece),
        })
    }
}

/// The pieces that follow the head, as a body.
pub(super) struct Content<M>(Streaming<M>);

impl<M: Part> Body for Content<M> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let message = ready!(Pin::new(&mut self.0).poll_next(context));
        Poll::Ready(message.map(|message| match message?.split() {
            Some(Split::Piece(piece)) => Ok(Frame::data(piece)),
            _ => Err(Status::invalid_argument("each message after the first is expected to have a piece")),
        }))
    }
}

impl<M: Part> Source for Content<M> {
    fn refusal(error: Status, what: &str) -> Refusal {
        match error.code() {
            Code::InvalidArgument => Refusal::bad(error.message()),
            Code::OutOfRange => Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", error.message()),
            Code::Internal => Refusal::bad(format!("a message is none of this call's: {}", error.message())),
            _ => cut(what),
        }
    }
}

/// The head of a stream, and the content behind it. The head may take as long as that of a request of HTTP.
pub(super) async fn begin<M: Part>(
    core: &Core,
    mut messages: Streaming<M>,
    what: impl FnOnce(&M::Head) -> Result<&'static str, Refusal>,
) -> Result<(M::Head, Reader<Content<M>>), Refusal> {
    let most = Duration::from_secs(core.config.header_seconds.into());
    let first = tokio::time::timeout(most, messages.message()).await.map_err(|_| {
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the first message came too slowly; send it again")
    })?;
    match first.map_err(|error| Content::<M>::refusal(error, "the first message"))?.and_then(M::split) {
        Some(Split::Head(head)) => {
            let what = what(&head)?;
            Ok((head, Reader::over(Content(messages), what, core.config.stall_seconds)))
        }
        _ => Err(Refusal::bad("the first message is expected to say what is wanted, and to have no piece")),
    }
}

//! What comes in pieces: a head first, then the content.

use crate::core::Core;
use crate::http::batch::{File, Files};
use crate::http::body::{cut, Pieces, Reader, Source};
use crate::http::submit::BATCH;
use crate::http::Refusal;
use crate::proto::{
    submit_batch_request, submit_request, upload_request, BatchFile, BatchHead, Content, SubmitBatchRequest,
    SubmitHead, SubmitRequest, UploadRequest,
};
use crate::store::{Form, NewJob};
use hyper::body::{Body, Bytes, Frame};
use hyper::StatusCode;
use prost::Message;
use std::io::Read;
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::Duration;
use tokio_stream::Stream;
use tonic::{Code, Status, Streaming};
use zeroize::Zeroizing;

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

/// What follows the head of a batch is written as a body of frames: a byte that says which, a length of four bytes, and a [`BatchFile`] or a
/// piece.
const FILE: u8 = 1;
const PIECE: u8 = 2;

/// Bytes of a frame beside its content.
const FRAME: u64 = 5;

/// How many times more bytes frames may have than their content: pieces may have a byte each.
pub(super) const FRAMED: u64 = 1 + FRAME;

fn frame(kind: u8, content: &[u8]) -> Bytes {
    // A message of gRPC is far shorter.
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    [&[kind], &length.to_le_bytes()[..], content].concat().into()
}

impl Part for SubmitBatchRequest {
    type Head = BatchHead;

    fn split(self) -> Option<Split<BatchHead>> {
        Some(match self.part? {
            submit_batch_request::Part::Head(head) => Split::Head(head),
            submit_batch_request::Part::File(file) => Split::Piece(frame(FILE, &file.encode_to_vec())),
            submit_batch_request::Part::Piece(piece) => Split::Piece(frame(PIECE, &piece)),
        })
    }
}

/// Makes a job of each file of a batch, whose frames come.
pub(super) fn unpack(mut files: Files<'_>, mut body: Pieces) -> Result<Vec<NewJob>, Refusal> {
    let (mut open, mut content) = (None::<File>, Zeroizing::new(Vec::new()));
    while let Some(kind) = next_frame(&mut body, &mut content).map_err(|_| cut(BATCH))? {
        if kind == PIECE {
            let open =
                open.as_mut().ok_or_else(|| Refusal::bad("a piece is expected behind the file that it is of"))?;
            open.write(&content)?;
            continue;
        }
        open.take().map_or(Ok(()), |whole| files.keep(whole))?;
        let file = BatchFile::decode(&content[..]).map_err(|_| cut(BATCH))?;
        open = Some(files.begin(&file.name, form(file.content)?)?);
    }
    open.map_or(Ok(()), |whole| files.keep(whole))?;
    files.finish()
}

/// Which frame comes, with its content; `None` at the end of the body.
fn next_frame(body: &mut impl Read, content: &mut Vec<u8>) -> std::io::Result<Option<u8>> {
    let mut head = [0; FRAME as usize];
    if body.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    body.read_exact(&mut head[1..])?;
    content.resize(u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize, 0);
    body.read_exact(content)?;
    Ok(Some(head[0]))
}

/// What the content of a submission is.
pub(super) fn form(content: i32) -> Result<Form, Refusal> {
    match Content::try_from(content) {
        Ok(Content::Unspecified | Content::Witness) => Ok(Form::Witness),
        Ok(Content::Inputs) => Ok(Form::Inputs),
        Err(_) => Err(Refusal::bad(format!("content={content}: expected CONTENT_WITNESS or CONTENT_INPUTS"))),
    }
}

/// The pieces that follow the head, as a body.
pub(super) struct Following<M>(Streaming<M>);

impl<M: Part> Body for Following<M> {
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

impl<M: Part> Source for Following<M> {
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
) -> Result<(M::Head, Reader<Following<M>>), Refusal> {
    let most = Duration::from_secs(core.config.header_seconds.into());
    let first = tokio::time::timeout(most, messages.message()).await.map_err(|_| {
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the first message came too slowly; send it again")
    })?;
    match first.map_err(|error| Following::<M>::refusal(error, "the first message"))?.and_then(M::split) {
        Some(Split::Head(head)) => {
            let what = what(&head)?;
            Ok((head, Reader::over(Following(messages), what, core.config.stall_seconds)))
        }
        _ => Err(Refusal::bad("the first message is expected to say what is wanted, and to have no piece")),
    }
}

//! A connection whose other end must take what it is sent: one that takes nothing for too long is closed.

use crate::grpc::Begun;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{sleep, Instant, Sleep};

/// The connection. Time counts while something waits to be written, from the last time that anything was.
pub(crate) struct Writes<S> {
    stream: S,
    /// What was read already, and how much of it was given on.
    read: Vec<u8>,
    given: usize,
    patience: Duration,
    waits: bool,
    over: Pin<Box<Sleep>>,
}

impl<S> Writes<S> {
    pub(crate) fn new(begun: Begun<S>, patience: Duration) -> Writes<S> {
        let Begun { stream, read } = begun;
        Writes { stream, read, given: 0, patience, waits: false, over: Box::pin(sleep(patience)) }
    }

    /// What came of an attempt to write, unless it has been in vain for too long.
    fn within<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        if !self.waits {
            self.waits = true;
            self.over.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.over.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the other end takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Writes<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.given < self.read.len() {
            let count = to.remaining().min(self.read.len() - self.given);
            to.put_slice(&self.read[self.given..self.given + count]);
            self.given += count;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Writes<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.within(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.within(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within(context, closed)
    }
}

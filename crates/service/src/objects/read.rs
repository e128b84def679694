//! An object as a stream: read from where it broke off, and never a mixture of two.

use super::wire::{self, Answer, Asked, Link};
use hyper::body::Bytes;
use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause after the first failure; each further one is three times as long.
const PAUSE: Duration = Duration::from_millis(100);

/// Failures one after the other without a byte between them.
const TRIES: u32 = 4;

/// An object that may be read: with its URL, for as long as that holds, and without credentials.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Object {
    /// Whoever knows it may read the object: it is in no message.
    pub(super) url: String,
    /// As people know it.
    pub(super) name: String,
    /// A file of the authorities that the store's certificate may be of.
    pub(super) authority: Option<PathBuf>,
    /// How long the store may be silent.
    pub(super) stall_seconds: u32,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// The content of an object.
pub(crate) struct Content<'a> {
    object: &'a Object,
    link: Arc<Link>,
    wanted: &'a (dyn Fn() -> bool + Sync),
    /// Bytes of all of it, and what stands for its content: an object that is another one meanwhile is refused.
    bytes: u64,
    etag: Option<String>,
    /// Bytes that were read.
    at: u64,
    answer: Option<Answer>,
    piece: Bytes,
}

/// Waits a little before the try of this number, and tells whether there is to be one.
pub(super) fn again(tries: u32, begun: Instant, stall: Duration, wanted: &(dyn Fn() -> bool + Sync)) -> bool {
    if tries >= TRIES || begun.elapsed() > stall || !wanted() {
        return false;
    }
    std::thread::sleep(PAUSE * 3u32.pow(tries.saturating_sub(1)));
    true
}

/// Whether asking again may help.
pub(super) fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status)
}

impl Object {
    /// Opens it, as long as that is wanted.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where there is none, [`ErrorKind::InvalidData`] where it was changed meanwhile; all others may pass.
    pub(crate) fn open<'a>(&'a self, wanted: &'a (dyn Fn() -> bool + Sync)) -> io::Result<Content<'a>> {
        let link = wire::link(&self.url, self.authority.as_deref()).map_err(|e| self.told(&e))?;
        let (answer, piece) = (None, Bytes::new());
        let mut content = Content { object: self, link, wanted, bytes: 0, etag: None, at: 0, answer, piece };
        content.ask()?;
        Ok(content)
    }

    fn told(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: cannot read: {error}", self.name))
    }
}

impl Content<'_> {
    /// Bytes of all of it.
    pub(crate) fn size(&self) -> u64 {
        self.bytes
    }

    fn stall(&self) -> Duration {
        Duration::from_secs(self.object.stall_seconds.into())
    }

    /// Asks for what was not read yet.
    fn ask(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        for tries in 1.. {
            match self.ask_once() {
                Ok(()) => break,
                Err((error, true)) if again(tries, begun, self.stall(), self.wanted) => drop(error),
                Err((error, _)) => return Err(self.object.told(&error)),
            }
        }
        Ok(())
    }

    /// An error, and whether asking again may help.
    fn ask_once(&mut self) -> Result<(), (io::Error, bool)> {
        let mut headers = Vec::new();
        if self.at > 0 {
            headers.push(("range", format!("bytes={}-", self.at)));
        }
        if let Some(etag) = &self.etag {
            headers.push(("if-match", etag.clone()));
        }
        let target = wire::target(&self.object.url);
        let (method, body) = (Method::GET, Bytes::new());
        let asked = Asked { method, target, headers, body, stall: self.stall(), wanted: self.wanted };
        let mut answer = self.link.ask(&asked).map_err(|e| (e, true))?;
        let status = answer.status;
        if !status.is_success() {
            let mut text = Vec::new();
            while let Ok(Some(piece)) = answer.next(self.wanted) {
                text.extend_from_slice(&piece[..piece.len().min(4096 - text.len())]);
                if text.len() == 4096 {
                    break;
                }
            }
            return Err((super::refused(status, &text), may_pass(status)));
        }
        let wrong = |why: &str| (io::Error::other(format!("the store answers wrongly: {why}")), false);
        if self.at == 0 {
            self.bytes =
                answer.header("content-length").and_then(|text| text.parse().ok()).ok_or_else(|| wrong("no length"))?;
            self.etag = answer.header("etag").map(String::from);
        } else {
            let range = answer.header("content-range").unwrap_or_default();
            if status != StatusCode::PARTIAL_CONTENT
                || range != format!("bytes {}-{}/{}", self.at, self.bytes - 1, self.bytes)
            {
                return Err(wrong("another part than that which was asked for"));
            }
        }
        self.answer = Some(answer);
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        for tries in 1.. {
            if self.answer.is_none() {
                self.ask()?;
            }
            let next = self.answer.as_mut().map_or(Ok(None), |answer| answer.next(self.wanted));
            match next {
                Ok(Some(piece)) if !piece.is_empty() => {
                    // More than it said that there is would be a length that nobody checked.
                    self.piece =
                        piece.slice(..piece.len().min(usize::try_from(self.bytes - self.at).unwrap_or(usize::MAX)));
                    return Ok(());
                }
                Ok(Some(_)) => {}
                Ok(None) => self.answer = None,
                Err(error) => {
                    self.answer = None;
                    if !again(tries, begun, self.stall(), self.wanted) {
                        return Err(self.object.told(&error));
                    }
                }
            }
            if tries > TRIES {
                return Err(self.object.told(&ErrorKind::UnexpectedEof.into()));
            }
        }
        Ok(())
    }
}

impl Read for Content<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() && self.at < self.bytes {
            self.fill()?;
        }
        let count = to.len().min(self.piece.len());
        to[..count].copy_from_slice(&self.piece.split_to(count));
        self.at += count as u64;
        if self.at == self.bytes {
            // The end of the body, so that the connection may be used again.
            if let Some(mut answer) = self.answer.take() {
                if let Ok(None) = answer.next(self.wanted) {
                    self.link.keep(answer);
                }
            }
        }
        Ok(count)
    }
}

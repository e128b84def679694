//! Which protocol a connection begins with.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What each connection of HTTP/2 begins with (RFC 9113, 3.4). No request of HTTP/1 begins with more than its first letter.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection of which something was read already.
pub(crate) struct Begun<S> {
    pub(crate) stream: S,
    pub(crate) read: Vec<u8>,
}

impl<S> From<S> for Begun<S> {
    fn from(stream: S) -> Begun<S> {
        Begun { stream, read: Vec::new() }
    }
}

/// Whether a connection begins as HTTP/2 does. It waits until that is sure.
pub(crate) async fn begun<S: AsyncRead + Unpin>(mut stream: S) -> io::Result<(bool, Begun<S>)> {
    let mut read = [0; PREFACE.len()];
    let mut count = 0;
    while count < PREFACE.len() && read[..count] == PREFACE[..count] {
        match stream.read(&mut read[count..]).await? {
            0 => break,
            more => count += more,
        }
    }
    let is_http2 = count == PREFACE.len() && read == PREFACE;
    Ok((is_http2, Begun { stream, read: read[..count].to_vec() }))
}

//! HTTP to an object store: each wait has a bound, and a connection stays for the next request.

use crate::http::Whole;
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HeaderMap, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::future::{poll_fn, Future};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// Bytes of a reply that is no object, at most: a list of a thousand names has some hundred KiB.
const REPLY_MAX: usize = 4 << 20;

/// How long a connection may be idle and still be used: not so long that the store may just be closing it.
const IDLE: Duration = Duration::from_secs(2);

/// Idle connections that are kept.
const KEPT: usize = 16;

/// Bytes a second that a request is sent with at least.
const RATE: u64 = 64 << 10;

/// Between two looks whether what is waited for is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// The way to a host: any thread that is not tokio's may use it.
pub(super) struct Link {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: Mutex<Vec<Connection>>,
}

/// A connection, and what drives it.
pub(super) struct Connection {
    runtime: Runtime,
    sender: SendRequest<Whole>,
    used: Instant,
}

/// What is asked.
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    /// Path and query.
    pub(super) target: &'a str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
    /// How long the store may be silent.
    pub(super) stall: Duration,
    /// Whether the answer is still wanted.
    pub(super) wanted: &'a (dyn Fn() -> bool + Sync),
}

/// An answer whose body is still to be read.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Incoming,
    connection: Connection,
    stall: Duration,
}

/// A URL in parts: whether by TLS, host, port, path and query.
fn parts(url: &str) -> Option<(bool, String, u16, &str)> {
    let (is_tls, rest) = match url.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, url.strip_prefix("http://")?),
    };
    let (authority, target) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let ends_in_port = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    let (host, port) = match ends_in_port {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, if is_tls { 443 } else { 80 }),
    };
    (!host.is_empty()).then(|| (is_tls, host.to_string(), port, if target.is_empty() { "/" } else { target }))
}

/// Path and query of a URL.
pub(super) fn target(url: &str) -> &str {
    parts(url).map_or("/", |(.., target)| target)
}

/// The links that were made, by what they lead to and which authorities they trust.
static LINKS: Mutex<Option<HashMap<Destination, Arc<Link>>>> = Mutex::new(None);

type Destination = (bool, String, u16, Option<PathBuf>);

/// The link to the host of a URL, that of the last time if there was one. A file of authorities is read once.
pub(super) fn link(url: &str, authority: Option<&Path>) -> io::Result<Arc<Link>> {
    let (is_tls, host, port, _) =
        parts(url).ok_or_else(|| io::Error::other("expected http://host or https://host, with a port or without"))?;
    let to = (is_tls, host.clone(), port, authority.map(Path::to_path_buf));
    let mut links = LINKS.lock().unwrap_or_else(PoisonError::into_inner);
    let links = links.get_or_insert_default();
    if let Some(link) = links.get(&to) {
        return Ok(link.clone());
    }
    let tls = match is_tls {
        false => None,
        true => {
            let name = host.trim_start_matches('[').trim_end_matches(']');
            let name =
                ServerName::try_from(name.to_string()).map_err(|e| io::Error::other(format!("'{name}': {e}")))?;
            Some((crate::tls::client(authority, None).map_err(io::Error::other)?.into(), name))
        }
    };
    let link = Arc::new(Link { host, port, tls, idle: Mutex::default() });
    links.insert(to, link.clone());
    Ok(link)
}

/// Waits so long for something, as long as it is wanted.
async fn within<T>(time: Duration, wanted: &(dyn Fn() -> bool + Sync), work: impl Future<Output = T>) -> io::Result<T> {
    let (mut work, until) = (pin!(work), Instant::now() + time);
    loop {
        let look = until.min(Instant::now() + LOOK);
        if let Ok(done) = tokio::time::timeout_at(look.into(), &mut work).await {
            return Ok(done);
        }
        if !wanted() {
            return Err(io::Error::new(ErrorKind::ConnectionAborted, "it is not wanted any more"));
        }
        if Instant::now() >= until {
            return Err(io::Error::new(
                ErrorKind::TimedOut,
                format!("no answer within {} s", time.as_secs_f64().ceil()),
            ));
        }
    }
}

fn cut(error: &hyper::Error) -> io::Error {
    io::Error::new(ErrorKind::ConnectionReset, format!("the connection broke: {error}"))
}

impl Link {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and returns when the head of the answer is there.
    pub(super) fn ask(&self, asked: &Asked<'_>) -> io::Result<Answer> {
        let is_default = self.port == if self.tls.is_some() { 443 } else { 80 };
        let host = if is_default { self.host.clone() } else { format!("{}:{}", self.host, self.port) };
        let request = || {
            let mut request = Request::builder().method(&asked.method).uri(asked.target).header(HOST, &host);
            for (name, value) in &asked.headers {
                request = request.header(*name, value);
            }
            request.body(Whole::new(asked.body.clone())).map_err(io::Error::other)
        };
        let time = asked.stall + Duration::from_secs(asked.body.len() as u64 / RATE);
        loop {
            let known = self.idle().pop();
            let is_new = known.is_none();
            let connection = match known.filter(|known| known.used.elapsed() < IDLE) {
                Some(connection) => connection,
                None if is_new => self.connect(asked.wanted)?,
                None => continue,
            };
            let Connection { runtime, mut sender, .. } = connection;
            let request = request()?;
            let answer = runtime.block_on(async {
                if !is_new {
                    // Nobody has looked at the connection since: whether it was closed is known after this.
                    tokio::task::yield_now().await;
                }
                within(time, asked.wanted, sender.try_send_request(request)).await
            })?;
            match answer {
                Ok(answer) => {
                    let (head, body) = answer.into_parts();
                    let connection = Connection { runtime, sender, used: Instant::now() };
                    return Ok(Answer {
                        status: head.status,
                        headers: head.headers,
                        body,
                        connection,
                        stall: asked.stall,
                    });
                }
                // The store closed a connection that was kept, and nothing was sent.
                Err(mut error) => match error.take_message() {
                    Some(_) if !is_new => {}
                    _ => return Err(cut(error.error())),
                },
            }
        }
    }

    /// [`Link::ask`], and the whole answer.
    pub(super) fn exchange(&self, asked: &Asked<'_>) -> io::Result<(StatusCode, HeaderMap, Vec<u8>)> {
        let mut answer = self.ask(asked)?;
        let mut whole = Vec::new();
        while let Some(piece) = answer.next(asked.wanted)? {
            if whole.len() + piece.len() > REPLY_MAX {
                return Err(io::Error::other(format!("the answer has more than {REPLY_MAX} bytes")));
            }
            whole.extend_from_slice(&piece);
        }
        let (status, headers) = (answer.status, std::mem::take(&mut answer.headers));
        self.keep(answer);
        Ok((status, headers, whole))
    }

    /// Keeps the connection of an answer that was read to its end.
    pub(super) fn keep(&self, answer: Answer) {
        let mut connection = answer.connection;
        let mut idle = self.idle();
        if idle.len() < KEPT && !connection.sender.is_closed() {
            connection.used = Instant::now();
            idle.push(connection);
        }
    }

    fn connect(&self, wanted: &(dyn Fn() -> bool + Sync)) -> io::Result<Connection> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connecting = async {
            let host = self.host.trim_start_matches('[').trim_end_matches(']');
            let addresses: Vec<_> = tokio::net::lookup_host((host, self.port)).await?.collect();
            let stream = TcpStream::connect(&addresses[..]).await?;
            let _ = stream.set_nodelay(true);
            match &self.tls {
                None => handshake(stream).await,
                Some((connector, name)) => {
                    let stream = connector.connect(name.clone(), stream).await;
                    let untrusted = |e| io::Error::new(ErrorKind::PermissionDenied, format!("no TLS: {e}"));
                    handshake(stream.map_err(untrusted)?).await
                }
            }
        };
        let sender = runtime.block_on(within(CONNECT, wanted, connecting))??;
        Ok(Connection { runtime, sender, used: Instant::now() })
    }
}

async fn handshake(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> io::Result<SendRequest<Whole>> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| cut(&e))?;
    tokio::spawn(connection);
    Ok(sender)
}

impl Answer {
    /// The next piece of the body; `None` at its end. An answer that is cut off is an error.
    pub(super) fn next(&mut self, wanted: &(dyn Fn() -> bool + Sync)) -> io::Result<Option<Bytes>> {
        let Answer { body, connection, stall, .. } = self;
        loop {
            let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            let Some(frame) = connection.runtime.block_on(within(*stall, wanted, frame))? else { return Ok(None) };
            // Trailers mean nothing here.
            if let Ok(piece) = frame.map_err(|e| cut(&e))?.into_data() {
                return Ok(Some(piece));
            }
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let of = |url| parts(url).map(|(is_tls, host, port, target)| (is_tls, host, port, target.to_string()));
        let whole = |is_tls, host: &str, port, target: &str| Some((is_tls, host.to_string(), port, target.to_string()));
        assert_eq!(of("https://a.b/c/d?e=f"), whole(true, "a.b", 443, "/c/d?e=f"));
        assert_eq!(of("http://a:90"), whole(false, "a", 90, "/"));
        assert_eq!(of("http://[::1]:90/x"), whole(false, "[::1]", 90, "/x"));
        assert_eq!(of("https://[::1]/x"), whole(true, "[::1]", 443, "/x"));
        for wrong in ["", "a", "ftp://a", "http://", "http://:80", "http://a:b/", "http://a:99999/"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}

//! The other side: calls a service, over connections that stay for the next request, and sends files piece by piece.

use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HeaderValue, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Read};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

pub use hyper::body::Bytes;
pub use hyper::Method;

/// Bytes of a file that are sent at a time.
const PIECE: usize = 64 << 10;

/// Bytes of a reply at most.
const REPLY_MAX: usize = 64 << 20;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// Why a call gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No service answers.
    #[error("{0}")]
    Unreachable(String),
    /// The service answers, and refuses.
    #[error("{message}")]
    Refused {
        /// HTTP's status.
        status: u16,
        /// A word, such as `no_key`.
        code: String,
        /// What is wrong, and what to do.
        message: String,
    },
    /// A file of the caller's cannot be read.
    #[error("{0}")]
    File(String),
}

impl CallError {
    /// Whether the caller has to change something; else the service is at fault, or away.
    pub fn is_callers(&self) -> bool {
        match self {
            CallError::Refused { status, .. } => *status < 500,
            CallError::File(_) => true,
            CallError::Unreachable(_) => false,
        }
    }
}

/// What is sent with a request.
pub enum Content<'a> {
    /// Nothing.
    Empty,
    /// A value as JSON.
    Json(&'a Value),
    /// Bytes, of which no copy is made.
    Bytes(&'a Bytes),
    /// A file, or a pipe.
    File(&'a Path),
    /// A file of JSON, such as a circuit's inputs.
    JsonFile(&'a Path),
    /// Files as a tar archive, by their own names.
    Archive(&'a [PathBuf]),
}

/// How long a connection may be idle and still be used: not so long that the service may just be closing it.
const IDLE: Duration = Duration::from_millis(500);

/// Idle connections that are kept.
const KEPT: usize = 64;

/// What a service wants of its callers.
#[derive(Default)]
pub struct Access {
    /// A token.
    pub token: Option<String>,
    /// A file of the authorities to trust; without it those of the system.
    pub authority: Option<PathBuf>,
    /// A certificate of the caller's own, and its private key.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// Where a service is.
#[derive(Clone)]
enum Place {
    /// Addresses of which one answers.
    Port(Vec<SocketAddr>),
    /// A Unix socket.
    Socket(PathBuf),
}

/// Who is called, as it stands in the `Host` of a request, and where that is.
fn addresses(server: &str, is_tls: bool) -> io::Result<(String, Vec<SocketAddr>)> {
    let found = server.to_socket_addrs().or_else(|error| match is_tls {
        true => format!("{server}:443").to_socket_addrs(),
        false => Err(error),
    });
    match found?.collect::<Vec<_>>() {
        none if none.is_empty() => Err(io::Error::other("the name has no address")),
        addresses => Ok((server.into(), addresses)),
    }
}

fn secure(host: &str, access: &Access) -> Result<(TlsConnector, ServerName<'static>), String> {
    let own = access.own.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
    let config = crate::tls::client(access.authority.as_deref(), own)?;
    // Without the port; an address of version 6 is in brackets.
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    let name = ServerName::try_from(name.to_string()).map_err(|e| format!("'{name}': {e}"))?;
    Ok((TlsConnector::from(config), name))
}

/// A service to be called, from any thread.
#[derive(Clone)]
pub struct Client {
    host: String,
    place: Place,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    token: Option<HeaderValue>,
    /// How long an answer may take.
    patience: Option<Duration>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

/// A connection, and what drives it.
struct Connection {
    runtime: Runtime,
    sender: SendRequest<Outgoing>,
    used: Instant,
}

impl Client {
    /// The service at an address such as `127.0.0.1:8555`, which may have `http://` or `https://` in front, or at a Unix socket,
    /// `unix:PATH`.
    ///
    /// # Errors
    /// It is no address; it is that of another machine without `https://`.
    pub fn new(server: &str) -> Result<Client, String> {
        Client::with(server, &Access::default())
    }

    /// [`Client::new`] with what the service wants of its callers.
    ///
    /// # Errors
    /// As there; the token can be none, a file of TLS is wrong.
    pub fn with(server: &str, access: &Access) -> Result<Client, String> {
        let client = Client::anywhere(server, access)?;
        let is_here = match &client.place {
            Place::Port(addresses) => addresses.iter().all(|address| address.ip().is_loopback()),
            Place::Socket(_) => true,
        };
        if client.tls.is_none() && !is_here {
            return Err(format!(
                "'{server}': another machine is called by https:// alone: without it, others read tokens and witnesses"
            ));
        }
        Ok(client)
    }

    /// A collector of traces, which have no secrets. An answer that takes longer than `patience` is none.
    pub(crate) fn to_collector(server: &str, patience: Duration) -> Result<Client, String> {
        Ok(Client { patience: Some(patience), ..Client::anywhere(server, &Access::default())? })
    }

    fn anywhere(server: &str, access: &Access) -> Result<Client, String> {
        let (host, is_tls) = match server.strip_prefix("https://") {
            Some(host) => (host, true),
            None => (server.strip_prefix("http://").unwrap_or(server), false),
        };
        let (host, place) = match server.strip_prefix("unix:") {
            Some(path) => ("localhost".into(), Place::Socket(path.into())),
            None => addresses(host.trim_end_matches('/'), is_tls)
                .map(|(host, addresses)| (host, Place::Port(addresses)))
                .map_err(|e| {
                    format!("'{server}': {e}; expected an address, such as http://127.0.0.1:8555, or unix:PATH")
                })?,
        };
        let tls = if is_tls { Some(secure(&host, access)?) } else { None };
        let token = access.token.as_ref().map(|token| {
            let header = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
            // What it is instead is not told.
            let mut header = header.map_err(|_| "the token: expected letters, digits and '_'")?;
            header.set_sensitive(true);
            Ok::<_, String>(header)
        });
        Ok(Client { host, place, tls, token: token.transpose()?, patience: None, idle: Arc::default() })
    }

    /// Reads a value.
    ///
    /// # Errors
    /// Nobody answers, or the service refuses.
    pub fn get(&self, path: &str) -> Result<Value, CallError> {
        self.call(Method::GET, path, &[], Content::Empty)
    }

    /// Reads a page that is no JSON, such as the metrics.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn text(&self, path: &str) -> Result<String, CallError> {
        let (status, text) = self.send(Method::GET, path, &[], Content::Empty)?;
        match status {
            200 => Ok(String::from_utf8_lossy(&text).into_owned()),
            _ => Err(refusal(status, &serde_json::from_slice(&text).unwrap_or(Value::Null))),
        }
    }

    /// Sees to it that the service has a key, and gives its name there, which is that of its content. `uploading` hears of a file that is
    /// sent.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn give_key(&self, file: &Path, uploading: impl FnOnce()) -> Result<String, CallError> {
        let hash =
            crate::hash_file(file).map_err(|e| CallError::File(format!("{}: cannot read: {e}", file.display())))?;
        let path = format!("/v1/keys/{hash}");
        match self.get(&path) {
            Err(CallError::Refused { status: 404, .. }) => {
                uploading();
                self.call(Method::PUT, &path, &[], Content::File(file))
            }
            known => known,
        }
        .map(|_| hash)
    }

    /// Calls the service; `method` is one of HTTP's.
    ///
    /// # Errors
    /// Nobody answers, or the service refuses; the file cannot be read.
    pub fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        content: Content<'_>,
    ) -> Result<Value, CallError> {
        let (status, text) = self.send(method, path, headers, content)?;
        let value = serde_json::from_slice::<Value>(&text).unwrap_or(Value::Null);
        match status {
            200..300 => Ok(value),
            _ => Err(refusal(status, &value)),
        }
    }

    /// Posts bytes of a kind. Returns the status and the answer.
    pub(crate) fn post(&self, path: &str, kind: &str, bytes: &[u8]) -> Result<(u16, Vec<u8>), CallError> {
        let request = Request::post(path).header(HOST, &self.host).header(CONTENT_TYPE, kind);
        let request = request.body(Outgoing::Whole(Some(bytes.to_vec().into())));
        self.exchange(request.map_err(|e| CallError::Unreachable(format!("no request can be made: {e}")))?)
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        content: Content<'_>,
    ) -> Result<(u16, Vec<u8>), CallError> {
        let mut request = Request::builder().method(method).uri(path).header(HOST, &self.host);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match content {
            Content::Empty => Outgoing::Whole(None),
            Content::Json(value) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Outgoing::Whole(Some(value.to_string().into()))
            }
            Content::Bytes(bytes) => Outgoing::Whole(Some(bytes.clone())),
            Content::File(path) | Content::JsonFile(path) => {
                if matches!(content, Content::JsonFile(_)) {
                    request = request.header(CONTENT_TYPE, "application/json");
                }
                let unread = |e: io::Error| CallError::File(format!("{}: cannot read: {e}", path.display()));
                let file = File::open(path).map_err(unread)?;
                let about = file.metadata().map_err(unread)?;
                Outgoing::File { file: Box::new(file), bytes: about.is_file().then_some(about.len()) }
            }
            Content::Archive(paths) => {
                request = request.header(CONTENT_TYPE, "application/x-tar");
                let (file, bytes) = archive(paths)?;
                Outgoing::File { file, bytes: Some(bytes) }
            }
        };
        let request = request.body(body).map_err(|e| CallError::Unreachable(format!("no request can be made: {e}")))?;
        self.exchange(request)
    }

    fn away(&self, why: &dyn std::fmt::Display) -> CallError {
        let host = match &self.place {
            Place::Port(_) => self.host.clone(),
            Place::Socket(path) => path.display().to_string(),
        };
        if self.patience.is_some() {
            return CallError::Unreachable(format!("no collector answers at {host}: {why}"));
        }
        CallError::Unreachable(format!("no service answers at {host}: {why}; is tandem serve running there?"))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exchange(&self, mut request: Request<Outgoing>) -> Result<(u16, Vec<u8>), CallError> {
        loop {
            let known = self.idle().pop();
            let is_new = known.is_none();
            let connection = known.filter(|known| known.used.elapsed() < IDLE);
            let Connection { runtime, mut sender, .. } = match connection {
                Some(connection) => connection,
                None if is_new => self.connect()?,
                // It is closed with the others that are as old.
                None => continue,
            };
            let exchanged = async {
                if !is_new {
                    // Nobody has looked at the connection since: whether it was closed is known after this.
                    tokio::task::yield_now().await;
                }
                let reply = match sender.try_send_request(request).await {
                    Ok(reply) => reply,
                    Err(mut error) => return Err((error.take_message(), self.away(error.error()))),
                };
                self.read(reply).await.map_err(|error| (None, error))
            };
            let reply = runtime.block_on(async {
                let Some(patience) = self.patience else { return exchanged.await };
                match tokio::time::timeout(patience, exchanged).await {
                    Ok(answered) => answered,
                    Err(_) => Err((None, self.away(&"it does not answer"))),
                }
            });
            match reply {
                Ok(reply) => {
                    let mut idle = self.idle();
                    if idle.len() < KEPT && !sender.is_closed() {
                        idle.push(Connection { runtime, sender, used: Instant::now() });
                    }
                    return Ok(reply);
                }
                // The service closed a connection that was kept, and nothing was sent.
                Err((Some(unsent), _)) if !is_new => request = unsent,
                Err((_, error)) => return Err(error),
            }
        }
    }

    fn connect(&self) -> Result<Connection, CallError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| CallError::Unreachable(format!("cannot start: {e}")))?;
        let sender = runtime.block_on(async {
            let connecting = async {
                let addresses = match &self.place {
                    Place::Port(addresses) => addresses,
                    Place::Socket(path) => {
                        let stream = UnixStream::connect(path).await;
                        return self.handshake(stream.map_err(|e| self.away(&e))?).await;
                    }
                };
                let stream = TcpStream::connect(&addresses[..]).await.map_err(|e| self.away(&e))?;
                let _ = stream.set_nodelay(true);
                match &self.tls {
                    None => self.handshake(stream).await,
                    Some((connector, name)) => {
                        let stream = connector.connect(name.clone(), stream).await;
                        self.handshake(stream.map_err(|e| self.untrusted(&e))?).await
                    }
                }
            };
            tokio::time::timeout(CONNECT, connecting).await.map_err(|e| self.away(&e))?
        })?;
        Ok(Connection { runtime, sender, used: Instant::now() })
    }

    async fn handshake(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<SendRequest<Outgoing>, CallError> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| self.away(&e))?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn untrusted(&self, why: &io::Error) -> CallError {
        let host = &self.host;
        CallError::Unreachable(format!(
            "no TLS with {host}: {why}; --ca names the file of the authority that signed its certificate"
        ))
    }

    async fn read(&self, reply: Response<Incoming>) -> Result<(u16, Vec<u8>), CallError> {
        let status = reply.status().as_u16();
        let mut body: Incoming = reply.into_body();
        let mut text = Vec::new();
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let Ok(piece) = frame.map_err(|e| self.away(&e))?.into_data() else { continue };
            if text.len() + piece.len() > REPLY_MAX {
                return Err(self.away(&format!("the reply has more than {REPLY_MAX} bytes")));
            }
            text.extend_from_slice(&piece);
        }
        Ok((status, text))
    }
}

fn refusal(status: u16, value: &Value) -> CallError {
    let said = |name: &str| value["error"][name].as_str().map(String::from);
    let message = said("message").unwrap_or_else(|| format!("the service answers with status {status}"));
    CallError::Refused { status, code: said("code").unwrap_or_default(), message }
}

/// Files as a tar archive, which is made while it is sent: nothing of a witness lies in another place meanwhile. And its bytes.
fn archive(paths: &[PathBuf]) -> Result<(Box<dyn Read + Send>, u64), CallError> {
    const BLOCK: u64 = 512;
    let mut all: Box<dyn Read + Send> = Box::new(io::empty());
    let mut bytes = 0;
    for path in paths {
        let unread = |e: io::Error| CallError::File(format!("{}: cannot read: {e}", path.display()));
        let file = File::open(path).map_err(unread)?;
        let about = file.metadata().map_err(unread)?;
        if !about.is_file() {
            return Err(CallError::File(format!("{}: expected a plain file", path.display())));
        }
        let mut header = tar::Header::new_gnu();
        header.set_path(path.file_name().unwrap_or_default()).map_err(unread)?;
        header.set_size(about.len());
        header.set_mode(0o600);
        header.set_cksum();
        let rest = about.len().next_multiple_of(BLOCK) - about.len();
        let head = io::Cursor::new(header.as_bytes().to_vec());
        all = Box::new(all.chain(head).chain(file.take(about.len())).chain(io::repeat(0).take(rest)));
        bytes += BLOCK + about.len() + rest;
    }
    Ok((Box::new(all.chain(io::repeat(0).take(2 * BLOCK))), bytes + 2 * BLOCK))
}

/// The body of a request.
enum Outgoing {
    Whole(Option<Bytes>),
    File { file: Box<dyn Read + Send>, bytes: Option<u64> },
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = match &mut *self {
            Outgoing::Whole(whole) => whole.take(),
            // The caller has nothing else to do than to wait for the file.
            Outgoing::File { file, .. } => {
                let mut piece = Vec::with_capacity(PIECE);
                match file.as_mut().take(PIECE as u64).read_to_end(&mut piece) {
                    Err(error) => return Poll::Ready(Some(Err(error))),
                    Ok(0) => None,
                    Ok(_) => Some(piece.into()),
                }
            }
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Outgoing::Whole(whole) => SizeHint::with_exact(whole.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Outgoing::File { bytes: Some(bytes), .. } => SizeHint::with_exact(*bytes),
            Outgoing::File { .. } => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_serves_the_next_request_and_a_closed_one_is_replaced() {
        use std::io::Write;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::new(&listener.local_addr().unwrap().to_string()).unwrap();
        let server = std::thread::spawn(move || {
            // Two on the first connection, which is closed then.
            for requests in [2, 1] {
                let (mut stream, _) = listener.accept().unwrap();
                for _ in 0..requests {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).unwrap();
                        head.push(byte[0]);
                    }
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"a\":1}").unwrap();
                }
            }
        });
        for request in 0..3 {
            if request == 2 {
                std::thread::sleep(Duration::from_millis(50));
            }
            assert_eq!(client.call(Method::POST, "/", &[], Content::Empty).unwrap()["a"], 1);
        }
        server.join().unwrap();
    }

    #[test]
    fn other_machines_are_called_by_tls_alone() {
        for server in ["http://127.0.0.1:1", "localhost:1", "http://[::1]:1/", "127.0.0.1:1"] {
            assert!(Client::new(server).is_ok(), "{server}");
        }
        for server in ["10.0.0.1:1", "http://10.0.0.1:1", "http://[fe80::1]:1"] {
            assert!(Client::new(server).err().unwrap().contains("https:// alone"), "{server}");
        }
        for server in ["127.0.0.1", "", "http://", "https://", "ftp://127.0.0.1:1"] {
            assert!(Client::new(server).err().unwrap().contains("expected an address"), "{server}");
        }
    }
}

//! A caller of gRPC by the generated client, and one that writes frames of HTTP/2 by hand.

use super::Service;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::future::Future;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::pin::Pin;
use std::process::Command;
use std::task::{Context, Poll};
use std::time::Duration;
use tandem_service::proto::prover_client::ProverClient;
use tandem_service::proto::{submit_request, Content, SubmitHead, SubmitRequest, SubmitResponse};
use tokio::runtime::Runtime;
use tonic::{Code, Status};

/// Runs the client in Python; it skips where gRPC's own client is not installed, and that is not asked for.
pub(crate) fn python(arguments: &[&str]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("../../.build/grpc-venv/bin/python");
    if !python.exists() {
        assert!(
            std::env::var_os("TANDEM_REQUIRE_GRPC").is_none(),
            "no client of gRPC; run sh scripts/proto.sh --tools"
        );
        eprintln!("skipped: no client of gRPC; sh scripts/proto.sh --tools installs it");
        return None;
    }
    let script = root.join("tests/service/support/grpc_client.py");
    let done = Command::new(python).arg(script).arg(root.join("proto")).args(arguments).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{out}{errors}");
    Some(out.into_owned())
}

/// One connection.
#[derive(Clone)]
pub(crate) struct Channel(SendRequest<tonic::body::Body>);

impl tonic::codegen::Service<Request<tonic::body::Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// A client, and what its connection runs on.
pub(crate) struct Caller {
    pub(crate) runtime: Runtime,
    pub(crate) client: ProverClient<Channel>,
    pub(crate) channel: Channel,
    token: Option<String>,
}

impl Caller {
    pub(crate) fn new(service: &Service, token: Option<&str>) -> Caller {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let channel = runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(service.address()).await.unwrap();
            let made = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
            let (sender, connection) = made.unwrap();
            tokio::spawn(connection);
            Channel(sender)
        });
        let origin: Uri = format!("http://{}", service.address()).parse().unwrap();
        let client = ProverClient::with_origin(channel.clone(), origin);
        Caller { runtime, client, channel, token: token.map(String::from) }
    }

    /// A request with the token.
    pub(crate) fn with<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        request
    }

    /// Sends these messages and ends the stream.
    pub(crate) fn send(&self, messages: Vec<SubmitRequest>) -> Result<SubmitResponse, Status> {
        let request = self.with(tokio_stream::iter(messages));
        self.runtime.block_on(self.client.clone().submit(request)).map(tonic::Response::into_inner)
    }

    /// Submits a witness of the key `small` under an id.
    pub(crate) fn submit(&self, service: &Service, id: &str) -> Result<SubmitResponse, Status> {
        self.send(messages(head("small", id), &std::fs::read(service.at("small.wtns")).unwrap(), 100))
    }
}

pub(crate) fn head(key: &str, id: &str) -> SubmitHead {
    SubmitHead { key: key.into(), request_id: id.into(), content: Content::Witness.into(), ..SubmitHead::default() }
}

pub(crate) fn first(head: SubmitHead) -> SubmitRequest {
    SubmitRequest { part: Some(submit_request::Part::Head(head)) }
}

pub(crate) fn piece(bytes: &[u8]) -> SubmitRequest {
    SubmitRequest { part: Some(submit_request::Part::Piece(bytes.to_vec().into())) }
}

/// A head, and the content in pieces.
pub(crate) fn messages(head: SubmitHead, content: &[u8], bytes: usize) -> Vec<SubmitRequest> {
    std::iter::once(first(head)).chain(content.chunks(bytes).map(piece)).collect()
}

/// The code of a refusal of gRPC, and the word that HTTP has for it.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>) -> (Code, String) {
    let status = outcome.expect_err("expected a refusal");
    assert!(!status.message().is_empty());
    let word = status.metadata().get("tandem-code").map_or("", |word| word.to_str().unwrap());
    (status.code(), word.into())
}

/// A connection of HTTP/2 by hand (RFC 9113): after the preface and empty settings.
pub(crate) struct Frames(pub(crate) TcpStream);

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_HEADERS: u8 = 4;

impl Frames {
    pub(crate) fn open(service: &Service) -> Frames {
        let mut stream = TcpStream::connect(service.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(PREFACE).unwrap();
        let mut frames = Frames(stream);
        frames.send(SETTINGS, 0, 0, &[]).unwrap();
        frames
    }

    /// Sends a frame.
    pub(crate) fn send(&mut self, kind: u8, flags: u8, stream: u32, content: &[u8]) -> std::io::Result<()> {
        let mut frame = (content.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(content);
        self.0.write_all(&frame)
    }

    /// The next frame: its kind, flags, stream and content. `None`: the service has closed.
    pub(crate) fn next(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let bytes = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut content = vec![0; bytes];
        self.0.read_exact(&mut content).ok()?;
        Some((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), content))
    }

    /// A second handle of the connection, for a thread that reads it.
    pub(crate) fn reader(&self) -> Frames {
        Frames(self.0.try_clone().unwrap())
    }

    /// Ends the connection, also for who reads it.
    pub(crate) fn close(self) {
        self.0.shutdown(std::net::Shutdown::Both).unwrap();
    }

    /// Whether the service ends the connection: what it is told with, if it is.
    pub(crate) fn end(&mut self) -> Option<u32> {
        let mut code = None;
        while let Some((kind, _, _, content)) = self.next() {
            if kind == GOAWAY {
                code = Some(u32::from_be_bytes(content[4..8].try_into().unwrap()));
            }
        }
        code
    }
}

/// A head in HPACK (RFC 7541) without tables and without Huffman's code.
pub(crate) fn hpack(lines: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes = Vec::new();
        let mut length = text.len();
        if length < 127 {
            bytes.push(length as u8);
        } else {
            bytes.push(127);
            length -= 127;
            while length >= 128 {
                bytes.push((length % 128 + 128) as u8);
                length /= 128;
            }
            bytes.push(length as u8);
        }
        bytes.extend(text.as_bytes());
        bytes
    };
    lines.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

/// The head of a call.
pub(crate) fn call(method: &str) -> Vec<u8> {
    hpack(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":path", &format!("/tandem.v1.Prover/{method}")),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ])
}

//! HTTP: connections and their limits, routes, who calls, errors.

pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod caller;
mod compat;
mod door;
pub(crate) mod jobs;
pub(crate) mod keys;
mod lanes;
mod overview;
mod page;
pub(crate) mod routes;
pub(crate) mod state;
pub(crate) mod submit;
mod trace;
pub(crate) mod writes;

pub(crate) use submit::witness_max;

use crate::config::Interface;
use crate::core::{Core, BLOCKING};
use crate::grpc::{self, Begun, Grpc};
use crate::log::log;
use crate::store::StoreError;
use crate::tls;
pub(crate) use body::Whole;
use caller::Caller;
pub(crate) use door::Socket;
use door::{Accepted, Listener};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use routes::{Found, Route};
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use writes::Writes;

/// Lines in the head of a request, and bytes of it.
const HEADERS: usize = 64;
const HEAD_BYTES: usize = 16 << 10;

/// Bytes of a connection that are read at a time: with fewer, large witnesses are bound by calls of the system.
const READ_BYTES: usize = 256 << 10;

/// Threads for connections at most: one takes in about a GB of witnesses a second.
const THREADS: usize = 4;

/// Between two looks whether the service ends.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) type Reply = Response<Whole>;

/// A request that is refused, and what its caller may do.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Seconds until it may be worth another try.
    pub(crate) again: u64,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { status, code, message: message.into(), again: 1 }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// Whether another try may help.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
    }

    pub(crate) fn reply(self) -> Reply {
        let text = serde_json::json!({"error": {"code": self.code, "message": self.message}});
        let mut reply = json(self.status, &text);
        if self.may_pass() {
            reply.headers_mut().insert(RETRY_AFTER, self.again.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        reply
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        let (status, code) = match &error {
            StoreError::OtherContent => (StatusCode::CONFLICT, "other_content"),
            StoreError::QueueFull(_) => (StatusCode::TOO_MANY_REQUESTS, "queue_full"),
            StoreError::Revoked => (StatusCode::UNAUTHORIZED, "unauthorized"),
            StoreError::TokenJobs(_) => (StatusCode::TOO_MANY_REQUESTS, "token_jobs"),
            StoreError::OtherProgram(_) => (StatusCode::CONFLICT, "other_program"),
            StoreError::NoProgram(_) => (StatusCode::CONFLICT, "no_program"),
            StoreError::OtherKey(_) => (StatusCode::CONFLICT, "other_key"),
            StoreError::NoKey(_) => (StatusCode::NOT_FOUND, "no_key"),
            StoreError::KeyInUse { .. } => (StatusCode::CONFLICT, "key_in_use"),
            _ if error.is_full() => (StatusCode::INSUFFICIENT_STORAGE, "storage_full"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "storage_failed"),
        };
        Refusal::new(status, code, error.to_string())
    }
}

/// A reply of JSON.
pub(crate) fn json(status: StatusCode, value: &serde_json::Value) -> Reply {
    text(status, "application/json", value.to_string())
}

fn text(status: StatusCode, kind: &'static str, text: String) -> Reply {
    let mut reply = Response::new(Whole::new(text.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// Serves until `until` says so, or the service has drained for too long.
pub(crate) fn run(
    core: &Arc<Core>,
    listener: TcpListener,
    socket: Option<&Socket>,
    ready: impl FnOnce(),
    until: impl Fn() -> bool,
) -> Result<(), String> {
    let connections = core.config.connections;
    // Each upload has a thread that writes and one that hashes, and what asks the database must not wait for uploads that stall.
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(THREADS);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(threads).enable_all();
    // With gRPC, what is uploaded over one connection besides.
    let runtime = runtime.max_blocking_threads(connections * 4 + BLOCKING).build();
    let runtime = runtime.map_err(|e| format!("cannot start: {e}"))?;
    let over = runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let grpc = core.config.interfaces.contains(&Interface::Grpc).then(|| Grpc::start(core)).transpose();
        let grpc = grpc.map_err(std::io::Error::other)?;
        let free = Arc::new(Semaphore::new(connections));
        let socket = socket.map(Socket::accepting).transpose()?;
        for listener in socket.into_iter().chain([Listener::Port(listener)]) {
            tokio::spawn(accept(core.clone(), grpc.clone(), listener, free.clone()));
        }
        ready();
        let mut drained = None;
        while !until() {
            let begun = *drained.get_or_insert_with(Instant::now);
            if !core.is_draining() {
                drained = None;
            } else if crate::drain_over(core, begun) {
                log("drain_over", &[("reason", "jobs that run still are begun again at the next start")]);
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        // Who waits for a job that has just ended is still answered.
        tokio::time::sleep(LOOK * 2).await;
        Ok(())
    });
    runtime.shutdown_background();
    over.map_err(|e: std::io::Error| format!("cannot listen: {e}"))
}

async fn accept(core: Arc<Core>, grpc: Option<Arc<Grpc>>, listener: Listener, free: Arc<Semaphore>) {
    loop {
        let Ok(permit) = free.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                // Too many open files, for one: others will be closed.
                log("accept_failed", &[("reason", &error.to_string())]);
                tokio::time::sleep(LOOK).await;
                continue;
            }
        };
        let (core, grpc, tls) = (core.clone(), grpc.clone(), core.tls().map(TlsAcceptor::from));
        tokio::spawn(async move {
            let _permit = permit;
            // A handshake, or what tells one protocol from another, may take as long as the head of a request.
            let most = Duration::from_secs(core.config.header_seconds.into());
            let (stream, tls) = match (stream, tls) {
                // Nobody is on the way.
                (Accepted::Unix(stream), _) => return plain(core, grpc, stream, most).await,
                (Accepted::Port(stream), None) => return plain(core, grpc, stream, most).await,
                (Accepted::Port(stream), Some(tls)) => (stream, tls),
            };
            let kind = match tokio::time::timeout(most, tls.accept(stream)).await {
                Ok(Ok(stream)) => match grpc.filter(|_| stream.get_ref().1.alpn_protocol() == Some(tls::HTTP2)) {
                    Some(grpc) => return grpc::connection(grpc, Begun::from(stream)).await,
                    None => return connection(core, Begun::from(stream)).await,
                },
                Ok(Err(_)) => "failed",
                Err(_) => "too_slow",
            };
            core.metrics.add("tandem_tls_refused_total", &[("kind", kind)], 1.0);
        });
    }
}

/// A connection without TLS.
async fn plain<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    core: Arc<Core>,
    grpc: Option<Arc<Grpc>>,
    stream: S,
    most: Duration,
) {
    let Some(grpc) = grpc else { return connection(core, Begun::from(stream)).await };
    match tokio::time::timeout(most, grpc::begun(stream)).await {
        Ok(Ok((true, stream))) => grpc::connection(grpc, stream).await,
        Ok(Ok((false, stream))) => connection(core, stream).await,
        // It came too slowly, or has gone.
        Ok(Err(_)) | Err(_) => {}
    }
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(core: Arc<Core>, stream: Begun<S>) {
    let head = Duration::from_secs(core.config.header_seconds.into());
    let stall = Duration::from_secs(core.config.stall_seconds.into());
    let stream = Writes::new(stream, stall);
    let answer = service_fn(|request| answer(core.clone(), request));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(head).max_headers(HEADERS).max_buf_size(READ_BYTES);
    // What a caller does wrong with its connection concerns nobody else.
    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
}

/// Answers a request of HTTP, of whichever version.
pub(crate) async fn answer(core: Arc<Core>, request: Request<Incoming>) -> Result<Reply, Infallible> {
    let method = request.method().clone();
    let (route, reply) = match check_head(&request).and_then(|()| caller::check_page(&core.config, request.headers())) {
        Err(refusal) => ("refused", Err(refusal)),
        Ok(()) => match routes::find(&core.config.interfaces, &method, request.uri().path()) {
            Found::Route(route, part) => {
                let part = part.to_string();
                let reply = match caller::check(&core, route, request.headers()).await {
                    Ok(caller) => dispatch(core.clone(), caller, route, part, request).await,
                    Err(refusal) => Err(refusal),
                };
                (routes::pattern(route), reply)
            }
            Found::OtherMethods(methods) => {
                let refusal = Refusal::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "method_not_allowed",
                    format!("this address takes {methods}"),
                );
                let mut reply = refusal.reply();
                reply
                    .headers_mut()
                    .insert(ALLOW, HeaderValue::from_str(&methods).unwrap_or(HeaderValue::from_static("")));
                ("unknown", Ok(reply))
            }
            Found::Nothing => {
                let message = "there is nothing at this address; GET /openapi.json lists what there is";
                ("unknown", Err(Refusal::new(StatusCode::NOT_FOUND, "not_found", message)))
            }
        },
    };
    let reply = reply.unwrap_or_else(Refusal::reply);
    core.metrics.add("tandem_http_requests_total", &[("route", route), ("status", reply.status().as_str())], 1.0);
    Ok(reply)
}

/// Refuses a head that is too long, as far as it was taken in at all.
fn check_head(request: &Request<Incoming>) -> Result<(), Refusal> {
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let bytes: usize = lines.sum::<usize>() + request.uri().to_string().len();
    match bytes <= HEAD_BYTES {
        true => Ok(()),
        false => Err(Refusal::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "head_too_large",
            format!("the head of the request has {bytes} bytes; expected at most {HEAD_BYTES}"),
        )),
    }
}

async fn dispatch(
    core: Arc<Core>,
    caller: Caller,
    route: Route,
    part: String,
    request: Request<Incoming>,
) -> Result<Reply, Refusal> {
    match route {
        Route::Page => page::page(),
        Route::Overview => blocking(&core, move |core| overview::overview(core, &caller)).await,
        Route::Trace => trace::trace(&core, caller, &request).await,
        Route::RapidsnarkInput => compat::rapidsnark_input(&core, caller, part, request).await,
        Route::RapidsnarkStatus => compat::rapidsnark_status(&core, caller).await,
        Route::RapidsnarkCancel => compat::rapidsnark_cancel(&core, caller).await,
        Route::RapidsnarkStart | Route::RapidsnarkStop => Ok(compat::rapidsnark_nothing()),
        Route::Iden3Status => Ok(compat::iden3_status()),
        Route::Iden3Generate => compat::iden3_generate(&core, caller, request).await,
        Route::Iden3Verify => compat::iden3_verify(&core, request).await,
        Route::Health => Ok(json(StatusCode::OK, &serde_json::json!({"status": "ok"}))),
        Route::Ready => state::ready(&core),
        Route::Version => {
            Ok(json(StatusCode::OK, &serde_json::json!({"version": env!("CARGO_PKG_VERSION"), "api": "v1"})))
        }
        Route::Openapi => Ok(text(StatusCode::OK, "application/json", crate::OPENAPI.into())),
        Route::Metrics => {
            blocking(&core, state::metrics).await.map(|page| text(StatusCode::OK, "text/plain; version=0.0.4", page))
        }
        Route::Workers => blocking(&core, move |core| state::workers(core, &caller)).await,
        Route::Nodes => blocking(&core, state::nodes).await,
        Route::Submit => submit::submit(core, caller, request).await,
        Route::SubmitBatch => submit::submit_batch(core, caller, request).await,
        Route::Batch => batch::status(&core, caller, part, &request).await,
        Route::BatchResults => batch::results(&core, caller, part).await,
        Route::BatchCancel => batch::cancel(&core, caller, part).await,
        Route::Jobs => jobs::list(&core, caller, &request).await,
        Route::Job => jobs::status(&core, caller, part, &request).await,
        Route::Result => jobs::result(&core, caller, part).await,
        Route::Cancel => jobs::cancel(&core, caller, part).await,
        Route::Keys => keys::list(&core).await,
        Route::Key => keys::one(&core, part).await,
        Route::Register => keys::register(&core, request).await,
        Route::Upload => keys::upload(core, part, request).await,
        Route::UploadProgram => keys::upload_program(core, part, request).await,
        Route::Remove => keys::remove(&core, part).await,
        Route::Preload => keys::preload(&core, part, &request).await,
        Route::Evict => keys::evict(&core, part).await,
    }
}

/// Does what waits for the disk on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(
    core: &Arc<Core>,
    body: impl FnOnce(&Core) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let core = core.clone();
    // Who gives up before there is room leaves nothing behind.
    let room = core.room.clone().acquire_owned().await;
    let done = tokio::task::spawn_blocking(move || {
        let _room = room;
        body(&core)
    });
    let done = done.await;
    done.unwrap_or_else(|_| {
        Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "a defect of tandem, please report it"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blobs::Places;
    use crate::config::Config;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Condvar, Mutex};

    /// A service that is not started.
    fn still(config: Config) -> Arc<Core> {
        let store = crate::open_store(&config).unwrap();
        let places = Places::open(&config).unwrap();
        let secrets = crate::installation::secrets(&config, &store, &places.root).unwrap();
        let command = Box::new(|_: crate::Role<'_>| std::process::Command::new("false"));
        Arc::new(Core::new(config, store, places, secrets, command).0)
    }

    /// Callers come, have something done that takes long, and go: no more is done for them than may be at a time.
    #[test]
    fn what_callers_have_left_does_not_pile_up() {
        let folder = tempfile::tempdir().unwrap();
        let core = still(Config { data: folder.path().join("data"), connections: 3, ..Config::default() });
        let room = 3 + BLOCKING;
        let (begun, go) = (Arc::new(AtomicUsize::new(0)), Arc::new((Mutex::new(false), Condvar::new())));
        let call = || {
            let (core, begun, go) = (core.clone(), begun.clone(), go.clone());
            tokio::spawn(async move {
                let slow = move |_: &Core| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    drop(go.1.wait_while(go.0.lock().unwrap(), |may| !*may).unwrap());
                    Ok(())
                };
                blocking(&core, slow).await.unwrap();
            })
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            for _ in 0..3 {
                let callers: Vec<_> = (0..5 * room).map(|_| call()).collect();
                while begun.load(Ordering::SeqCst) < room {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                for caller in callers {
                    caller.abort();
                    assert!(caller.await.unwrap_err().is_cancelled());
                }
            }
            *go.0.lock().unwrap() = true;
            go.1.notify_all();
            // Who stays is served, behind all that was begun.
            for _ in 0..room {
                blocking(&core, |_| Ok(())).await.unwrap();
            }
        });
        // Ends when everything that was begun has.
        drop(runtime);
        assert_eq!(begun.load(Ordering::SeqCst), room);
    }
}

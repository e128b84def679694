//! gRPC beside HTTP, over HTTP/2 on the same port: the same jobs, roles, limits and words. Where it is on, HTTP's own addresses answer
//! over HTTP/2, too, for a browser takes that where it is offered.

mod connection;
mod content;
mod preface;
mod prover;
mod views;

pub(crate) use connection::connection;
pub(crate) use preface::{begun, Begun};

use crate::core::Core;
use crate::http::routes::Route;
use crate::http::{self, caller, Refusal};
use crate::proto::prover_server::{ProverServer, SERVICE_NAME};
use crate::proto::DESCRIPTOR;
use connection::{Either, Flight, Flights, Sent};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, CONTENT_TYPE, HOST, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use prover::Prover;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tonic::codegen::Service;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::{Code, Status};
use tonic_health::server::{HealthReporter, HealthService};
use tonic_health::ServingStatus;

/// Bytes of a message at most: one that says that it has more is refused before it is taken in.
const MESSAGE_MAX: usize = 1 << 20;

/// How often it is looked whether the service is ready.
const LOOK: Duration = Duration::from_secs(1);

type Answer = Pin<Box<dyn Future<Output = Response<tonic::body::Body>> + Send>>;
type Served = Box<dyn Fn(Request<Incoming>) -> Answer + Send + Sync>;

/// The services of gRPC.
pub(crate) struct Grpc {
    core: Arc<Core>,
    /// What stands at the addresses that begin so.
    services: Vec<(String, Served)>,
    /// Requests that may be under way, over all connections.
    free: Arc<Semaphore>,
}

/// A service whatever its type.
fn served<S>(service: S) -> Served
where
    S: Service<Request<Incoming>, Response = Response<tonic::body::Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    Box::new(move |request| {
        let answered = service.clone().call(request);
        Box::pin(async move { answered.await.unwrap_or_else(|never| match never {}) })
    })
}

/// What is asked at an address of the service `tandem.v1.Prover`.
fn route(path: &str) -> Option<Route> {
    let method = path.strip_prefix('/')?.strip_prefix(SERVICE_NAME)?.strip_prefix('/')?;
    Some(match method {
        "GetVersion" => Route::Version,
        "Submit" => Route::Submit,
        "GetJob" | "WaitJob" => Route::Job,
        "ListJobs" => Route::Jobs,
        "CancelJob" => Route::Cancel,
        "GetResult" => Route::Result,
        "SubmitBatch" => Route::SubmitBatch,
        "GetBatch" | "WaitBatch" => Route::Batch,
        "GetBatchResults" => Route::BatchResults,
        "CancelBatch" => Route::BatchCancel,
        "ListKeys" => Route::Keys,
        "GetKey" => Route::Key,
        "RegisterKey" => Route::Register,
        "UploadKey" => Route::Upload,
        "UploadProgram" => Route::UploadProgram,
        "RemoveKey" => Route::Remove,
        "PreloadKey" => Route::Preload,
        "EvictKey" => Route::Evict,
        _ => return None,
    })
}

impl Grpc {
    /// Makes the services. To be called on a runtime, on which it looks from time to time whether the service is ready.
    pub(crate) fn start(core: &Arc<Core>) -> Result<Arc<Grpc>, String> {
        let health = HealthReporter::new();
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTOR)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let bad = |e: tonic_reflection::server::Error| format!("the description of gRPC: {e}");
        let prover = ProverServer::new(Prover::new(core)).max_decoding_message_size(MESSAGE_MAX);
        let healthy = HealthService::from_health_reporter(health.clone());
        let healthy =
            tonic_health::pb::health_server::HealthServer::new(healthy).max_decoding_message_size(MESSAGE_MAX);
        let (v1, v1alpha) = (reflection().build_v1().map_err(bad)?, reflection().build_v1alpha().map_err(bad)?);
        let (v1, v1alpha) = (v1.max_decoding_message_size(MESSAGE_MAX), v1alpha.max_decoding_message_size(MESSAGE_MAX));
        let services = vec![
            (format!("/{SERVICE_NAME}/"), served(prover)),
            ("/grpc.health.v1.Health/".into(), served(healthy)),
            ("/grpc.reflection.v1.ServerReflection/".into(), served(v1)),
            ("/grpc.reflection.v1alpha.ServerReflection/".into(), served(v1alpha)),
        ];
        let free = Arc::new(Semaphore::new(core.config.connections));
        tokio::spawn(report(core.clone(), health));
        Ok(Arc::new(Grpc { core: core.clone(), services, free }))
    }

    /// Answers a request that came over HTTP/2.
    async fn answer(&self, flights: &Arc<Flights>, mut request: Request<Incoming>) -> Response<Sent> {
        // HTTP/2 has it elsewhere.
        let authority = request.uri().authority().and_then(|name| HeaderValue::from_str(name.as_str()).ok());
        if let (Some(authority), false) = (authority, request.headers().contains_key(HOST)) {
            request.headers_mut().insert(HOST, authority);
        }
        let is_grpc =
            request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        let Ok(permit) = self.free.clone().try_acquire_owned() else {
            let message = "as many requests are under way as may; try again in a moment";
            let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
            return Sent::with(self.refused(refusal, is_grpc), None);
        };
        let flight = Arc::new(Flight::new(flights, permit));
        request.extensions_mut().insert(flight.clone());
        let reply = match is_grpc {
            true => self.call(request).await.map(Either::Grpc),
            false => match http::answer(self.core.clone(), request).await {
                Ok(reply) => reply.map(Either::Whole),
                Err(never) => match never {},
            },
        };
        Sent::with(reply, Some(flight))
    }

    fn refused(&self, refusal: Refusal, is_grpc: bool) -> Response<Either> {
        match is_grpc {
            true => Status::from(refusal).into_http::<tonic::body::Body>().map(Either::Grpc),
            false => refusal.reply().map(Either::Whole),
        }
    }

    /// Calls what is at the address, if the caller may.
    async fn call(&self, mut request: Request<Incoming>) -> Response<tonic::body::Body> {
        let path = request.uri().path().to_string();
        let service = self.services.iter().find(|(prefix, _)| path.starts_with(prefix.as_str()));
        let reply = match (service, self.admit(&mut request).await) {
            (_, Err(refusal)) => Status::from(refusal).into_http(),
            (Some((_, service)), Ok(())) => service(request).await,
            (None, Ok(())) => {
                let message = "there is no such service here; reflection lists what there is";
                Status::unimplemented(message).into_http()
            }
        };
        // Of a stream, how it began.
        let code = reply.headers().get(Status::GRPC_STATUS).map_or(Code::Ok, |code| Code::from_bytes(code.as_bytes()));
        let method = route(&path).map_or("other", |_| path.rsplit('/').next().unwrap_or_default());
        self.core.metrics.add("tandem_grpc_requests_total", &[("method", method), ("code", &format!("{code:?}"))], 1.0);
        reply
    }

    /// Whether the caller may call. The services find who it is in the request.
    async fn admit(&self, request: &mut Request<Incoming>) -> Result<(), Refusal> {
        caller::check_page(&self.core.config, request.headers())?;
        let Some(route) = route(request.uri().path()) else { return Ok(()) };
        let caller = caller::check(&self.core, route, request.headers()).await?;
        request.extensions_mut().insert(caller);
        Ok(())
    }
}

/// Tells those who ask for the health of the service whether it is ready.
async fn report(core: Arc<Core>, health: HealthReporter) {
    loop {
        let status = if http::state::ready(&core).is_ok() { ServingStatus::Serving } else { ServingStatus::NotServing };
        health.set_service_status("", status).await;
        health.set_service_status(SERVICE_NAME, status).await;
        tokio::time::sleep(LOOK).await;
    }
}

/// A refusal in gRPC's words.
impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        let code = match (refusal.status.as_u16(), refusal.code) {
            (400 | 413 | 422 | 431, _) => Code::InvalidArgument,
            (401, _) => Code::Unauthenticated,
            (403, _) => Code::PermissionDenied,
            (404, _) => Code::NotFound,
            (408, _) => Code::DeadlineExceeded,
            (409, "other_content" | "other_key" | "other_program") => Code::AlreadyExists,
            (409, _) => Code::FailedPrecondition,
            (429 | 507, _) => Code::ResourceExhausted,
            (503, _) => Code::Unavailable,
            _ => Code::Internal,
        };
        let mut metadata = MetadataMap::new();
        metadata.insert("tandem-code", AsciiMetadataValue::from_static(refusal.code));
        if refusal.may_pass() {
            metadata.insert(RETRY_AFTER.as_str(), refusal.again.into());
        }
        Status::with_metadata(code, refusal.message, metadata)
    }
}

//! The service `tandem.v1.Prover`. What a call does stands beside the address of HTTP that does the same.

use super::connection::Flight;
use super::content::{begin, form, unpack, FRAMED};
use super::views;
use crate::core::Core;
use crate::http::caller::Caller;
use crate::http::keys::{self, Register};
use crate::http::submit::{self, Wanted, DEADLINES, PRIORITIES};
use crate::http::{batch, blocking, jobs, Refusal};
use crate::proto::{self, *};
use crate::store::KeyRow;
use crate::traces::Parent;
use hyper::StatusCode;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{async_trait, Request, Response, Status, Streaming};

/// How often one that waits looks for what has changed.
const LOOK: Duration = Duration::from_millis(500);

/// What a reader is told that takes nothing.
const SLOW: &str = "the results were taken too slowly; ask again";

type Answer<T> = Result<Response<T>, Status>;

pub(super) struct Prover {
    core: Arc<Core>,
}

/// Who calls, and what was sent.
fn opened<T>(request: Request<T>) -> Result<(Caller, T), Refusal> {
    let (_, extensions, message) = request.into_parts();
    // Whoever comes here was let in.
    let caller = extensions
        .get::<Caller>()
        .cloned()
        .ok_or_else(|| Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", "the caller is unknown"))?;
    Ok((caller, message))
}

impl Prover {
    pub(super) fn new(core: &Arc<Core>) -> Prover {
        Prover { core: core.clone() }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Core) -> Result<T, Refusal> + Send + 'static,
    ) -> Answer<T> {
        Ok(Response::new(blocking(&self.core, body).await?))
    }

    /// Answers with what is sent by `send`, which goes on beside the answer.
    fn stream<T: Send + 'static, F: Future<Output = Result<(), Refusal>> + Send + 'static>(
        &self,
        flight: Option<Arc<Flight>>,
        send: impl FnOnce(Arc<Core>, mpsc::Sender<Result<T, Status>>) -> F,
    ) -> Response<ReceiverStream<Result<T, Status>>> {
        let (sender, receiver) = mpsc::channel(1);
        let sending = send(self.core.clone(), sender.clone());
        tokio::spawn(async move {
            let _flight = flight;
            if let Err(refusal) = sending.await {
                let _ = sender.send(Err(refusal.into())).await;
            }
        });
        Response::new(ReceiverStream::new(receiver))
    }

    async fn registered(&self, (key, is_new): (KeyRow, bool)) -> Answer<RegisterKeyResponse> {
        self.blocking(move |core| Ok(RegisterKeyResponse { key: Some(views::key(core, &key)?), is_new })).await
    }
}

fn wanted(head: SubmitHead, parent: Option<Parent>) -> Result<Wanted, Refusal> {
    let SubmitHead { key, priority, deadline_seconds, request_id, .. } = head;
    if key.is_empty() {
        return Err(Refusal::bad("say which key: the field `key` of the first message"));
    }
    let priority = jobs::number("priority", &priority.to_string(), PRIORITIES)?;
    let deadline = (deadline_seconds != 0).then(|| deadline_seconds.to_string());
    let deadline_seconds = deadline.map(|seconds| jobs::number("deadline_seconds", &seconds, DEADLINES)).transpose()?;
    let request = (!request_id.is_empty()).then(|| submit::request_id(request_id.as_bytes())).transpose()?;
    Ok(Wanted { key, priority, deadline_seconds, request, parent })
}

#[async_trait]
impl proto::prover_server::Prover for Prover {
    async fn get_version(&self, _: Request<GetVersionRequest>) -> Answer<GetVersionResponse> {
        Ok(Response::new(GetVersionResponse { version: env!("CARGO_PKG_VERSION").into() }))
    }

    async fn submit(&self, request: Request<Streaming<SubmitRequest>>) -> Answer<SubmitResponse> {
        let parent = submit::parent_of(request.metadata().as_ref());
        let (caller, messages) = opened(request)?;
        submit::check_open(&self.core)?;
        let (head, reader) = begin(&self.core, messages, |head: &SubmitHead| Ok(form(head.content)?.what())).await?;
        let (form, wanted) = (form(head.content)?, wanted(head, parent)?);
        let submitted = submit::take(&self.core, caller.clone(), wanted, form, reader).await?;
        self.blocking(move |core| {
            let job = jobs::seen_by(core, &caller, &submitted.id)?;
            Ok(SubmitResponse { job: Some(views::full(core, &job)?), is_new: submitted.is_new })
        })
        .await
    }

    async fn get_job(&self, request: Request<GetJobRequest>) -> Answer<Job> {
        let (caller, GetJobRequest { id }) = opened(request)?;
        self.blocking(move |core| views::full(core, &jobs::seen_by(core, &caller, &id)?)).await
    }

    type WaitJobStream = ReceiverStream<Result<Job, Status>>;

    async fn wait_job(&self, request: Request<WaitJobRequest>) -> Answer<Self::WaitJobStream> {
        let flight = request.extensions().get::<Arc<Flight>>().cloned();
        let (caller, WaitJobRequest { id }) = opened(request)?;
        // A job that is not there is told as the answer, not in the stream.
        let of = (caller.clone(), id.clone());
        blocking(&self.core, move |core| jobs::seen_by(core, &of.0, &of.1)).await?;
        let look = move |core: &Core| {
            let job = jobs::seen_by(core, &caller, &id)?;
            let open = if job.is_final() { Vec::new() } else { vec![id.clone()] };
            Ok((views::full(core, &job)?, open))
        };
        Ok(self.stream(flight, |core, sender| async move { follow(&core, look, &sender).await }))
    }

    async fn list_jobs(&self, request: Request<ListJobsRequest>) -> Answer<ListJobsResponse> {
        let (caller, wanted) = opened(request)?;
        let limit = match wanted.limit {
            0 => jobs::LISTED,
            limit => jobs::number("limit", &limit.to_string(), jobs::LIST)?,
        };
        let state = match State::try_from(wanted.state) {
            Ok(State::Unspecified) => None,
            Ok(state) => crate::store::State::ALL.into_iter().find(|known| views::state(*known) == state),
            Err(_) => return Err(Refusal::bad(format!("state={}: expected one of State", wanted.state)).into()),
        };
        self.blocking(move |core| {
            let jobs = core.store.jobs(state, caller.only(), limit as u32)?;
            Ok(ListJobsResponse { jobs: jobs.iter().map(views::summary).collect() })
        })
        .await
    }

    async fn cancel_job(&self, request: Request<CancelJobRequest>) -> Answer<Job> {
        let (caller, CancelJobRequest { id }) = opened(request)?;
        self.blocking(move |core| {
            jobs::cancelled(core, &caller, &id)?;
            views::full(core, &jobs::seen_by(core, &caller, &id)?)
        })
        .await
    }

    async fn get_result(&self, request: Request<GetResultRequest>) -> Answer<GetResultResponse> {
        let (caller, GetResultRequest { id }) = opened(request)?;
        self.blocking(move |core| {
            let result = jobs::result_of(core, &caller, &id)?;
            Ok(views::result(id, result))
        })
        .await
    }

    async fn submit_batch(&self, request: Request<Streaming<SubmitBatchRequest>>) -> Answer<SubmitBatchResponse> {
        let parent = submit::parent_of(request.metadata().as_ref());
        let (caller, messages) = opened(request)?;
        submit::check_open(&self.core)?;
        let (head, reader) = begin(&self.core, messages, |_| Ok(submit::BATCH)).await?;
        let BatchHead { key, priority, deadline_seconds, request_id } = head;
        let head = SubmitHead { key, priority, deadline_seconds, request_id, ..SubmitHead::default() };
        let (of, wanted) = (caller.clone(), wanted(head, parent)?);
        let (id, is_new) = submit::take_batch(&self.core, of, wanted, reader, FRAMED, unpack).await?;
        self.blocking(move |core| {
            let batch = views::batch(&id, &batch::known(core, &caller, &id)?);
            Ok(SubmitBatchResponse { batch: Some(batch), is_new })
        })
        .await
    }

    async fn get_batch(&self, request: Request<GetBatchRequest>) -> Answer<Batch> {
        let (caller, GetBatchRequest { id }) = opened(request)?;
        self.blocking(move |core| Ok(views::batch(&id, &batch::known(core, &caller, &id)?))).await
    }

    type WaitBatchStream = ReceiverStream<Result<Batch, Status>>;

    async fn wait_batch(&self, request: Request<WaitBatchRequest>) -> Answer<Self::WaitBatchStream> {
        let flight = request.extensions().get::<Arc<Flight>>().cloned();
        let (caller, WaitBatchRequest { id }) = opened(request)?;
        let of = (caller.clone(), id.clone());
        blocking(&self.core, move |core| batch::known(core, &of.0, &of.1)).await?;
        let look = move |core: &Core| {
            let jobs = batch::known(core, &caller, &id)?;
            let open = jobs.iter().filter(|job| !job.is_final()).map(|job| job.id.clone()).collect();
            Ok((views::batch(&id, &jobs), open))
        };
        Ok(self.stream(flight, |core, sender| async move { follow(&core, look, &sender).await }))
    }

    type GetBatchResultsStream = ReceiverStream<Result<BatchResult, Status>>;

    async fn get_batch_results(&self, request: Request<GetBatchResultsRequest>) -> Answer<Self::GetBatchResultsStream> {
        let flight = request.extensions().get::<Arc<Flight>>().cloned();
        let (caller, GetBatchResultsRequest { id }) = opened(request)?;
        let jobs = blocking(&self.core, move |core| batch::known(core, &caller, &id)).await?;
        Ok(self.stream(flight, |core, sender| async move {
            // One after the other: a reader that takes nothing holds its request for no longer than one that waits.
            let until = Instant::now() + Duration::from_secs(core.config.wait_seconds.into());
            for job in jobs {
                let result = blocking(&core, move |core| {
                    let result = core.store.result(&job.id)?.map(|result| views::result(job.id.clone(), result));
                    Ok(BatchResult { item: Some(views::item(&job)), result })
                });
                match tokio::time::timeout_at(until.into(), sender.send(Ok(result.await?))).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Ok(()),
                    Err(_) => return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "too_slow", SLOW)),
                }
            }
            Ok(())
        }))
    }

    async fn cancel_batch(&self, request: Request<CancelBatchRequest>) -> Answer<Batch> {
        let (caller, CancelBatchRequest { id }) = opened(request)?;
        self.blocking(move |core| Ok(views::batch(&id, &batch::cancelled(core, &caller, &id)?.0))).await
    }

    async fn list_keys(&self, _: Request<ListKeysRequest>) -> Answer<ListKeysResponse> {
        self.blocking(|core| {
            let keys = core.store.keys()?;
            Ok(ListKeysResponse { keys: keys.iter().map(|key| views::key(core, key)).collect::<Result<_, _>>()? })
        })
        .await
    }

    async fn get_key(&self, request: Request<GetKeyRequest>) -> Answer<Key> {
        let name = request.into_inner().name;
        self.blocking(move |core| views::key(core, &keys::known(core, &name)?)).await
    }

    async fn register_key(&self, request: Request<RegisterKeyRequest>) -> Answer<RegisterKeyResponse> {
        let RegisterKeyRequest { name, path, program_path } = request.into_inner();
        let program = (!program_path.is_empty()).then(|| program_path.into());
        let wanted = Register { name, path: path.into(), program };
        let registered = blocking(&self.core, move |core| keys::by_path(core, &wanted)).await?;
        self.registered(registered).await
    }

    async fn upload_key(&self, request: Request<Streaming<UploadRequest>>) -> Answer<RegisterKeyResponse> {
        let (name, reader) = begin(&self.core, request.into_inner(), |_| Ok(keys::KEY)).await?;
        self.registered(keys::take(&self.core, name, reader).await?).await
    }

    async fn upload_program(&self, request: Request<Streaming<UploadRequest>>) -> Answer<RegisterKeyResponse> {
        let (name, reader) = begin(&self.core, request.into_inner(), |_| Ok(keys::PROGRAM)).await?;
        self.registered(keys::take_program(&self.core, name, reader).await?).await
    }

    async fn remove_key(&self, request: Request<RemoveKeyRequest>) -> Answer<RemoveKeyResponse> {
        let name = request.into_inner().name;
        self.blocking(move |core| keys::removed(core, &name).map(|()| RemoveKeyResponse {})).await
    }

    async fn preload_key(&self, request: Request<PreloadKeyRequest>) -> Answer<PreloadKeyResponse> {
        let PreloadKeyRequest { name, wait_seconds } = request.into_inner();
        let (key, are_loaded) = keys::preloaded(&self.core, name, wait_seconds.into()).await?;
        let answer =
            move |core: &Core| Ok(PreloadKeyResponse { key: Some(views::key(core, &key)?), is_loading: !are_loaded });
        self.blocking(answer).await
    }

    async fn evict_key(&self, request: Request<EvictKeyRequest>) -> Answer<EvictKeyResponse> {
        let name = request.into_inner().name;
        self.blocking(move |core| keys::evicted(core, &name).map(|()| EvictKeyResponse {})).await
    }
}

/// Sends how something is whenever that changes, until no job of it is open, for as long as a request may wait, and while somebody reads.
/// `look` says how it is, and which jobs are open.
async fn follow<T: Clone + PartialEq + Send + 'static>(
    core: &Arc<Core>,
    look: impl Fn(&Core) -> Result<(T, Vec<String>), Refusal> + Send + Sync + 'static,
    to: &mpsc::Sender<Result<T, Status>>,
) -> Result<(), Refusal> {
    let until = Instant::now() + Duration::from_secs(core.config.wait_seconds.into());
    let look = Arc::new(look);
    // Before it is looked at, so that no end is missed.
    let mut ends = core.ends.subscribe();
    let mut sent = None;
    loop {
        let looks = look.clone();
        let (seen, open) = blocking(core, move |core| looks(core)).await?;
        let is_over = open.is_empty() || core.is_draining() || Instant::now() >= until;
        if sent.as_ref() != Some(&seen) {
            sent = Some(seen.clone());
            // A reader that takes nothing holds its request for no longer than one that waits.
            match tokio::time::timeout_at((until + LOOK).into(), to.send(Ok(seen))).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Ok(()),
            }
        }
        if is_over || to.is_closed() {
            return Ok(());
        }
        jobs::ends_of(open, &mut ends, until.min(Instant::now() + LOOK)).await?;
    }
}

//! The service `tandem.v1.Prover`. What a call does stands beside the address of HTTP that does the same.

use super::connection::Flight;
use super::content::begin;
use super::views;
use crate::core::Core;
use crate::http::caller::Caller;
use crate::http::keys::{self, Register};
use crate::http::submit::{self, request_id, Wanted, DEADLINES, PRIORITIES};
use crate::http::{blocking, jobs, Refusal};
use crate::proto::{self, *};
use crate::store::{Form, KeyRow};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{async_trait, Request, Response, Status, Streaming};

/// How often one that waits looks for what has changed.
const LOOK: Duration = Duration::from_millis(500);

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
        .ok_or_else(|| Refusal::new(hyper::StatusCode::UNAUTHORIZED, "unauthorized", "the caller is unknown"))?;
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

    async fn registered(&self, (key, is_new): (KeyRow, bool)) -> Answer<RegisterKeyResponse> {
        self.blocking(move |core| Ok(RegisterKeyResponse { key: Some(views::key(core, &key)?), is_new })).await
    }
}

/// What the content of a submission is.
fn form(head: &SubmitHead) -> Result<Form, Refusal> {
    match head.content() {
        Content::Unspecified | Content::Witness if Content::try_from(head.content).is_ok() => Ok(Form::Witness),
        Content::Inputs => Ok(Form::Inputs),
        _ => Err(Refusal::bad(format!("content={}: expected CONTENT_WITNESS or CONTENT_INPUTS", head.content))),
    }
}

fn wanted(head: SubmitHead) -> Result<Wanted, Refusal> {
    if head.key.is_empty() {
        return Err(Refusal::bad("say which key: the field `key` of the first message"));
    }
    let priority = jobs::number("priority", &head.priority.to_string(), PRIORITIES)?;
    let deadline = (head.deadline_seconds != 0).then(|| head.deadline_seconds.to_string());
    let deadline_seconds = deadline.map(|seconds| jobs::number("deadline_seconds", &seconds, DEADLINES)).transpose()?;
    let request = (!head.request_id.is_empty()).then(|| request_id(head.request_id.as_bytes())).transpose()?;
    Ok(Wanted { key: head.key, priority, deadline_seconds, request, parent: None })
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
        let (head, reader) = begin(&self.core, messages, |head| Ok(form(head)?.what())).await?;
        let (form, wanted) = (form(&head)?, Wanted { parent, ..wanted(head)? });
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
        let (sender, receiver) = mpsc::channel(1);
        let core = self.core.clone();
        tokio::spawn(async move {
            let _flight = flight;
            if let Err(refusal) = follow(&core, caller, id, &sender).await {
                let _ = sender.send(Err(refusal.into())).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
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

    async fn evict_key(&self, request: Request<EvictKeyRequest>) -> Answer<EvictKeyResponse> {
        let name = request.into_inner().name;
        self.blocking(move |core| keys::evicted(core, &name).map(|()| EvictKeyResponse {})).await
    }
}

/// Sends how a job is whenever that changes, until it ends, for as long as a request may wait, and while somebody reads.
async fn follow(
    core: &Arc<Core>,
    caller: Caller,
    id: String,
    to: &mpsc::Sender<Result<Job, Status>>,
) -> Result<(), Refusal> {
    let until = Instant::now() + Duration::from_secs(core.config.wait_seconds.into());
    // Before the job is looked at, so that no end is missed.
    let mut ends = core.ends.subscribe();
    let mut sent = None;
    loop {
        let (of, caller) = (id.clone(), caller.clone());
        let (job, is_over) = blocking(core, move |core| {
            let job = jobs::seen_by(core, &caller, &of)?;
            Ok((views::full(core, &job)?, job.is_final()))
        })
        .await?;
        let is_over = is_over || core.is_draining() || Instant::now() >= until;
        if sent.as_ref() != Some(&job) {
            sent = Some(job.clone());
            // A reader that takes nothing holds its request for no longer than one that waits.
            match tokio::time::timeout_at((until + LOOK).into(), to.send(Ok(job))).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Ok(()),
            }
        }
        if is_over || to.is_closed() {
            return Ok(());
        }
        jobs::end_of(&id, &mut ends, until.min(Instant::now() + LOOK)).await?;
    }
}

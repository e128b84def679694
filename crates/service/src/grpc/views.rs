//! Jobs, keys and results as messages.

use crate::core::Core;
use crate::http::keys::workers_with;
use crate::http::{jobs, Refusal};
use crate::proto;
use crate::store::{Attempt, Job, JobResult, KeyRow, State};

fn count(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(super) fn state(state: State) -> proto::State {
    match state {
        State::Pending => proto::State::Pending,
        State::Running => proto::State::Running,
        State::Done => proto::State::Done,
        State::Failed => proto::State::Failed,
        State::Cancelled => proto::State::Cancelled,
    }
}

/// A job without its attempts.
pub(super) fn summary(job: &Job) -> proto::Job {
    let error = job
        .reason
        .as_ref()
        .map(|reason| proto::JobError { code: job.code.clone().unwrap_or_default(), message: reason.clone() });
    proto::Job {
        id: job.id.clone(),
        request_id: job.request.clone().unwrap_or_default(),
        key: job.key.clone(),
        priority: i32::try_from(job.priority).unwrap_or_default(),
        state: state(job.state).into(),
        is_inputs: job.is_inputs,
        attempt: count(job.attempt),
        created_ms: job.created_ms,
        ended_ms: job.ended_ms,
        deadline_ms: job.deadline_ms,
        error,
        attempts: Vec::new(),
        stage: String::new(),
    }
}

/// A job with its attempts.
pub(super) fn full(core: &Core, job: &Job) -> Result<proto::Job, Refusal> {
    let attempt = |of: Attempt| proto::Attempt {
        attempt: count(of.attempt),
        worker: of.worker,
        begun_ms: of.begun_ms,
        ended_ms: of.ended_ms,
        code: of.code.unwrap_or_default(),
        message: of.reason.unwrap_or_default(),
    };
    let attempts = core.store.attempts(&job.id)?.into_iter().map(attempt).collect();
    Ok(proto::Job { attempts, stage: jobs::stage(core, job).unwrap_or_default(), ..summary(job) })
}

pub(super) fn result(id: String, result: JobResult) -> proto::GetResultResponse {
    let times = result.times.map(|of| proto::StageTimes {
        key: of.key,
        read: of.read,
        upload: of.upload,
        turn: of.turn,
        proof: of.proof,
    });
    proto::GetResultResponse {
        id,
        proof_json: result.proof,
        public_json: result.publics,
        seconds: result.seconds,
        times,
        device: result.device,
        remark: result.remark.unwrap_or_default(),
    }
}

/// A job of a batch.
pub(super) fn item(job: &Job) -> proto::BatchItem {
    let (number, name) = job.item.clone().unwrap_or_default();
    proto::BatchItem { number: u32::try_from(number).unwrap_or(u32::MAX), name, job: Some(summary(job)) }
}

pub(super) fn batch(id: &str, jobs: &[Job]) -> proto::Batch {
    let of = |state: State| jobs.iter().filter(|job| job.state == state).count() as u32;
    let counts = proto::BatchCounts {
        pending: of(State::Pending),
        running: of(State::Running),
        done: of(State::Done),
        failed: of(State::Failed),
        cancelled: of(State::Cancelled),
    };
    proto::Batch {
        id: id.into(),
        key: jobs.first().map_or(String::new(), |job| job.key.clone()),
        is_ended: jobs.iter().all(Job::is_final),
        counts: Some(counts),
        items: jobs.iter().map(item).collect(),
    }
}

pub(super) fn key(core: &Core, key: &KeyRow) -> Result<proto::Key, Refusal> {
    let program = core.store.program(&key.name)?;
    Ok(proto::Key {
        name: key.name.clone(),
        hash: key.hash.clone(),
        bytes: key.bytes,
        curve: key.curve.clone(),
        variables: key.variables,
        publics: key.publics,
        domain: key.domain,
        is_uploaded: key.is_own,
        on: workers_with(core, key).into_iter().map(String::from).collect(),
        program: program.map(|program| proto::Program { hash: program.hash, bytes: program.bytes }),
    })
}

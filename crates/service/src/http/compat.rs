//! The interfaces of two other provers, for callers that move by changing an address. They are there where the settings say so, and stand
//! over the same jobs, roles and limits. Requests and replies are those of their sources: iden3/rapidsnark's `proverapi.cpp` and
//! `fullprover.cpp`, iden3/prover-server's `pkg/app`.

use super::body::{storage, Reader};
use super::caller::Caller;
use super::jobs::view;
use super::submit::{submit_inputs, Wanted};
use super::{blocking, json, text, Refusal, Reply};
use crate::core::Core;
use crate::store::{Job, State};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{json, Value};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tandem_engine::{CurveId, Proof, Publics, Verifier};
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a request to verify at most.
const VERIFY: u64 = 16 << 20;

/// Bytes of a request beside its inputs.
const AROUND: u64 = 4096;

/// How often one that waits looks for a job whose end it may have missed.
const LOOK: Duration = Duration::from_secs(1);

fn ok() -> Reply {
    text(StatusCode::OK, "text/plain", String::new())
}

/// rapidsnark's prover has one job: a new input aborts the one before. Here each token has one.
pub(super) async fn rapidsnark_input(
    core: &Arc<Core>,
    caller: Caller,
    circuit: String,
    request: Request<Incoming>,
) -> Result<Reply, Refusal> {
    let limit = core.config.max_inputs_mib << 20;
    let inputs = Reader::new(request, "a job's inputs", core.config.stall_seconds).within(limit)?.whole().await?;
    blocking(core, move |core| {
        let inputs = Zeroizing::new(inputs);
        let mut current = core.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = current.remove(&caller.token) {
            core.cancel(&before)?;
        }
        let id = submit_inputs(core, &caller, &Wanted::plain(&circuit), &inputs)?;
        current.insert(caller.token, id);
        Ok(ok())
    })
    .await
}

/// The job of a caller of rapidsnark's interface.
fn current(core: &Core, caller: &Caller) -> Result<Option<Job>, Refusal> {
    let id = core.current.lock().unwrap_or_else(PoisonError::into_inner).get(&caller.token).cloned();
    Ok(id.map(|id| core.store.job(&id)).transpose()?.flatten())
}

pub(super) async fn rapidsnark_cancel(core: &Arc<Core>, caller: Caller) -> Result<Reply, Refusal> {
    blocking(core, move |core| {
        if let Some(job) = current(core, &caller)?.filter(|job| !job.is_final()) {
            core.cancel(&job.id)?;
        }
        Ok(ok())
    })
    .await
}

/// `/start` and `/stop` do nothing there, either.
pub(super) fn rapidsnark_nothing() -> Reply {
    ok()
}

pub(super) async fn rapidsnark_status(core: &Arc<Core>, caller: Caller) -> Result<Reply, Refusal> {
    let status = blocking(core, move |core| {
        let Some(job) = current(core, &caller)? else { return Ok(json!({"status": "ready"})) };
        Ok(match job.state {
            State::Pending | State::Running => json!({"status": "busy"}),
            State::Cancelled => json!({"status": "aborted"}),
            State::Failed => json!({"status": "failed", "error": job.reason}),
            State::Done => match core.store.result(&job.id)? {
                // Both are texts of JSON there.
                Some(result) => json!({
                    "status": "success", "proof": compact(&result.proof), "pubData": compact(&result.publics),
                }),
                None => json!({"status": "ready"}),
            },
        })
    })
    .await?;
    Ok(json(StatusCode::OK, &status))
}

fn compact(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.into(), |value| value.to_string())
}

/// A refusal as prover-server words it.
fn iden3_error(status: StatusCode, why: &str, details: &str) -> Reply {
    json(status, &json!({"code": 0, "error": why, "details": details}))
}

#[derive(Deserialize)]
struct Generate {
    circuit_name: String,
    inputs: Value,
}

#[derive(Deserialize)]
struct Verify {
    circuit_name: String,
    zkp: Zkp,
}

#[derive(Deserialize)]
struct Zkp {
    proof: Value,
    pub_signals: Value,
}

/// Overwrites the texts of a value: they are secrets.
fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(values) => values.iter_mut().for_each(wipe),
        Value::Object(values) => values.values_mut().for_each(wipe),
        _ => {}
    }
}

/// Cancels a job whose caller has gone, for nobody else asks for it.
struct Guard {
    core: Arc<Core>,
    job: Option<String>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Where the service ends, its jobs are begun again at the next start.
        if let (Some(job), Ok(runtime)) = (self.job.take(), tokio::runtime::Handle::try_current()) {
            let core = self.core.clone();
            runtime.spawn_blocking(move || drop(core.cancel(&job)));
        }
    }
}

pub(super) fn iden3_status() -> Reply {
    json(StatusCode::OK, &json!({"status": "up and running"}))
}

/// Proves, and answers when the proof is there.
pub(super) async fn iden3_generate(
    core: &Arc<Core>,
    caller: Caller,
    request: Request<Incoming>,
) -> Result<Reply, Refusal> {
    let limit = (core.config.max_inputs_mib << 20) + AROUND;
    let body = Reader::new(request, "a request for a proof", core.config.stall_seconds).within(limit)?.whole().await?;
    let body = Zeroizing::new(body);
    let wanted = match serde_json::from_slice::<Generate>(&body) {
        Ok(wanted) => wanted,
        // What is there instead is not told: it may be an input.
        Err(error) => {
            let why =
                format!("expected {{\"circuit_name\", \"inputs\"}}: line {}, column {}", error.line(), error.column());
            return Ok(iden3_error(StatusCode::BAD_REQUEST, &why, "can't bind request"));
        }
    };
    let mut ends = core.ends.subscribe();
    let submitted = blocking(core, move |core| {
        let Generate { circuit_name, mut inputs } = wanted;
        let text = Zeroizing::new(inputs.to_string());
        wipe(&mut inputs);
        if core.store.program(&circuit_name)?.is_none() {
            return Ok(None);
        }
        submit_inputs(core, &caller, &Wanted::plain(&circuit_name), text.as_bytes()).map(Some)
    });
    let Some(id) = submitted.await? else {
        return Ok(iden3_error(StatusCode::BAD_REQUEST, "circuitPath doesn't exist", "illegal circuitPath"));
    };
    let mut guard = Guard { core: core.clone(), job: Some(id.clone()) };
    loop {
        let of = id.clone();
        let reply = blocking(core, move |core| proof_of(core, &of)).await?;
        if let Some(reply) = reply {
            guard.job = None;
            return Ok(reply);
        }
        if core.is_draining() {
            return Ok(iden3_error(
                StatusCode::SERVICE_UNAVAILABLE,
                "the service is being stopped",
                "can't generate identifier",
            ));
        }
        let until = Instant::now() + LOOK;
        while let Ok(Ok(ended)) = tokio::time::timeout_at(until.into(), ends.recv()).await {
            if ended == id {
                break;
            }
        }
    }
}

/// What is answered of a job that has ended.
fn proof_of(core: &Core, id: &str) -> Result<Option<Reply>, Refusal> {
    let job = view(core, id)?;
    let failed = |why: &str| Ok(Some(iden3_error(StatusCode::INTERNAL_SERVER_ERROR, why, "can't generate identifier")));
    match job["state"].as_str() {
        Some("done") => {
            let Some(result) = core.store.result(id)? else { return failed("the result was forgotten") };
            let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
            let value = json!({"proof": parsed(&result.proof), "pub_signals": parsed(&result.publics)});
            Ok(Some(json(StatusCode::OK, &value)))
        }
        Some("failed") => failed(job["error"]["message"].as_str().unwrap_or("the proof failed")),
        Some("cancelled") => failed("the job was cancelled"),
        _ => Ok(None),
    }
}

pub(super) async fn iden3_verify(core: &Arc<Core>, request: Request<Incoming>) -> Result<Reply, Refusal> {
    let body = Reader::new(request, "a request to verify", core.config.stall_seconds).within(VERIFY)?.whole().await?;
    let wanted = match serde_json::from_slice::<Verify>(&body) {
        Ok(wanted) => wanted,
        Err(error) => return Ok(iden3_error(StatusCode::BAD_REQUEST, &error.to_string(), "can't bind request")),
    };
    blocking(core, move |core| {
        let Some(key) = core.store.key(&wanted.circuit_name)? else {
            return Ok(iden3_error(StatusCode::BAD_REQUEST, "circuitPath doesn't exist", "illegal circuitPath"));
        };
        let file = core.stored(&key.path, &key.hash, &|| true).map_err(|e| storage(&e))?;
        let verifier = tandem_engine::export_vkey(&file).and_then(|vkey| Verifier::from_json(vkey.as_bytes()));
        let verifier = match verifier {
            Ok(verifier) => verifier,
            Err(error) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                return Ok(iden3_error(status, &error.to_string(), "can't read the verification key"));
            }
        };
        let curve = if key.curve == "bn254" { CurveId::Bn254 } else { CurveId::Bls12_381 };
        let mut proof = wanted.zkp.proof;
        if let Some(fields) = proof.as_object_mut() {
            fields.entry("protocol").or_insert_with(|| "groth16".into());
        }
        let valid = Proof::from_json(curve, proof.to_string().as_bytes()).is_ok_and(|proof| {
            let publics = Publics::from_json(curve, wanted.zkp.pub_signals.to_string().as_bytes());
            publics.is_ok_and(|publics| verifier.verify(&publics, &proof).is_ok())
        });
        Ok(json(StatusCode::OK, &json!({"valid": valid})))
    })
    .await
}

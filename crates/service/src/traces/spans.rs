//! A job as spans: one for the job, in it one for each attempt, and in that which gave the proof its stages.

use super::otlp::{number, text, Code, Kind, Span, Status};
use super::parent::{hex, Parent};
use crate::store::{Attempt, Job, State, Times};

/// Nanoseconds of a millisecond. Times since 1970 are whole numbers of them: a float has too few digits.
const MS: u64 = 1_000_000;

/// The name of a span: the same, whoever makes it.
fn span_id(job: &str, what: &str) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new_derive_key("tandem span");
    hasher.update(job.as_bytes()).update(b" ").update(what.as_bytes());
    hasher.finalize().as_bytes()[..8].to_vec()
}

fn nanos(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0).saturating_mul(MS)
}

fn failed(code: &str) -> Option<Status> {
    Some(Status { message: code.into(), code: Code::Error.into() })
}

/// The spans of a job that has ended. Reasons are left out: a code says enough where many may look.
pub(super) fn spans(job: &Job, attempts: &[Attempt], times: Option<&Times>, parent: Option<&Parent>) -> Vec<Span> {
    // The trace of a job is called as the job, unless its caller has one.
    let own = || {
        hex::<16>(&job.id)
            .unwrap_or_else(|| *blake3::hash(job.id.as_bytes()).as_bytes().first_chunk().unwrap_or(&[1; 16]))
    };
    let trace_id = parent.map_or_else(own, |parent| parent.trace).to_vec();
    let root = span_id(&job.id, "job");
    let end = job.ended_ms.unwrap_or(job.created_ms);
    let span = |name: &str, id: &[u8], parent: Vec<u8>, kind: Kind, [begun, ended]: [u64; 2]| Span {
        trace_id: trace_id.clone(),
        span_id: id.to_vec(),
        parent_span_id: parent,
        name: name.into(),
        kind: kind.into(),
        start_time_unix_nano: begun,
        end_time_unix_nano: ended.max(begun),
        attributes: Vec::new(),
        status: None,
    };
    let from = parent.map_or_else(Vec::new, |parent| parent.span.to_vec());
    let mut all = vec![Span {
        attributes: vec![
            text("tandem.job", &job.id),
            text("tandem.key", &job.key),
            text("tandem.state", job.state.name()),
            number("tandem.priority", job.priority),
            number("tandem.attempts", attempts.len() as i64),
        ],
        status: match job.state {
            State::Failed => failed(job.code.as_deref().unwrap_or_default()),
            State::Done => Some(Status { message: String::new(), code: Code::Ok.into() }),
            _ => None,
        },
        ..span("job", &root, from, Kind::Server, [nanos(job.created_ms), nanos(end)])
    }];
    for of in attempts {
        let code = of.code.as_deref().unwrap_or_default();
        let (begun, ended) = (nanos(of.begun_ms), nanos(of.ended_ms.unwrap_or(end)));
        let id = span_id(&job.id, &of.attempt.to_string());
        all.push(Span {
            attributes: vec![
                number("tandem.attempt", of.attempt),
                text("tandem.worker", &of.worker),
                text("tandem.code", code),
            ],
            status: if ["done", "calculated"].contains(&code) { None } else { failed(code) },
            ..span("attempt", &id, root.clone(), Kind::Internal, [begun, ended])
        });
        let Some(times) = times.filter(|_| code == "done") else { continue };
        let stages = [
            ("key", times.key),
            ("read", times.read),
            ("upload", times.upload),
            ("turn", times.turn),
            ("proof", times.proof),
        ];
        // They follow one another and end before the attempt does: the rest is the way of the result.
        let mut from = begun;
        for (stage, seconds) in stages {
            let until = from.saturating_add((seconds * 1e9).max(0.0) as u64).min(ended).max(from);
            let own = span_id(&job.id, &format!("{} {stage}", of.attempt));
            all.push(span(stage, &own, id.clone(), Kind::Internal, [from, until]));
            from = until;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn job(state: State) -> Job {
        Job {
            token: Some("the token".into()),
            id: "0123456789abcdef0123456789abcdef".into(),
            is_inputs: false,
            item: None,
            request: Some("the caller's".into()),
            key: "k".into(),
            priority: -3,
            state,
            attempt: 2,
            created_ms: 1_000,
            ended_ms: Some(1_100),
            deadline_ms: None,
            code: (state == State::Failed).then(|| "unsatisfied".into()),
            reason: (state == State::Failed).then(|| "a reason".into()),
            traceparent: None,
        }
    }

    fn attempt(attempt: i64, begun_ms: i64, ended_ms: i64, code: &str) -> Attempt {
        let reason = (code != "done").then(|| "a reason".into());
        Attempt { attempt, worker: "0:cpu".into(), begun_ms, ended_ms: Some(ended_ms), code: Some(code.into()), reason }
    }

    #[test]
    fn a_job_is_a_tree_within_its_times() {
        let attempts = [attempt(1, 1_010, 1_020, "worker_died"), attempt(2, 1_030, 1_090, "done")];
        let times = Times { key: 0.001, read: 0.002, upload: 0.003, turn: 0.004, proof: 0.5 };
        let parent = Parent::read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        let all = spans(&job(State::Done), &attempts, Some(&times), Some(&parent));
        let names: Vec<_> = all.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["job", "attempt", "attempt", "key", "read", "upload", "turn", "proof"]);
        assert_eq!(all.iter().map(|span| &span.span_id).collect::<HashSet<_>>().len(), 8);
        assert!(all.iter().all(|span| span.trace_id == parent.trace && span.span_id.len() == 8));
        let parents: Vec<_> =
            all.iter().map(|span| all.iter().position(|of| of.span_id == span.parent_span_id)).collect();
        assert_eq!(parents, [None, Some(0), Some(0), Some(2), Some(2), Some(2), Some(2), Some(2)]);
        assert_eq!(all[0].parent_span_id, parent.span);
        let of = |at: usize| (all[at].start_time_unix_nano / 1_000_000, all[at].end_time_unix_nano / 1_000_000);
        assert_eq!(
            [of(0), of(1), of(2), of(3), of(4)],
            [(1000, 1100), (1010, 1020), (1030, 1090), (1030, 1031), (1031, 1033)]
        );
        // No stage goes beyond its attempt.
        assert_eq!((of(7), all[7].end_time_unix_nano), ((1040, 1090), 1_090_000_000));
        let code = |at: usize| all[at].status.as_ref().map(|status| (status.code, status.message.as_str()));
        assert_eq!([code(0), code(1), code(2)], [Some((1, "")), Some((2, "worker_died")), None]);
    }

    #[test]
    fn a_job_without_a_caller_s_trace_has_one_of_its_name() {
        let all = spans(&job(State::Failed), &[], None, None);
        assert_eq!((all.len(), all[0].trace_id[..4].to_vec()), (1, vec![0x01, 0x23, 0x45, 0x67]));
        assert!(all[0].parent_span_id.is_empty());
        assert_eq!(all[0].status.as_ref().unwrap().message, "unsatisfied");
        // Neither who called, nor under what name, nor a reason.
        let text = format!("{all:?}");
        assert!(!text.contains("the ") && !text.contains("a reason"), "{text}");
    }
}

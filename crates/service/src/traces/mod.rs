//! Traces for OpenTelemetry, over OTLP/HTTP: a job that has ended is told to a collector. What is told is read from the database, so that
//! a job costs the service its name in a queue; a collector that is slow or away costs traces, which are counted, and nothing else.

mod otlp;
mod parent;
mod spans;

pub(crate) use parent::Parent;

use crate::client::{CallError, Client};
use crate::core::Core;
use crate::log::log;
use crate::metrics::Metrics;
use crate::store::StoreError;
use otlp::{
    text, ExportTraceServiceRequest, ExportTraceServiceResponse, InstrumentationScope, Resource, ResourceSpans,
    ScopeSpans, Span,
};
use prost::Message;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Jobs that wait to be told; a name each.
const QUEUE: usize = 8192;

/// Jobs that are told together.
const TOGETHER: usize = 256;

/// How long the first of them waits for others.
const GATHER: Duration = Duration::from_millis(500);

/// How long a collector may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Pauses before further tries. With the last, the traces are dropped.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// Where traces are told, and what waits for that.
pub(crate) struct Traces {
    collector: Collector,
    queue: SyncSender<String>,
    inbox: Mutex<Option<Receiver<String>>>,
    waiting: AtomicUsize,
}

/// A collector's address: `http://HOST:PORT`, or with TLS, and perhaps a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collector {
    server: String,
    path: String,
}

impl Collector {
    /// Takes an address apart. The path of traces is added, as the standard says of a base.
    pub(crate) fn new(url: &str) -> Result<Collector, String> {
        // It may have a password.
        let wrong = "expected the address of an OTLP/HTTP collector, such as http://127.0.0.1:4318";
        let (scheme, rest) = url.split_once("://").ok_or(wrong)?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_plain = |text: &str, more: &[u8]| text.bytes().all(|b| b.is_ascii_alphanumeric() || more.contains(&b));
        if !["http", "https"].contains(&scheme)
            || host.is_empty()
            || !is_plain(host, b".-_:[]")
            || !is_plain(path, b"/._-~%")
        {
            return Err(wrong.into());
        }
        // Each has a port of its own.
        let has_port = host.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
        let port = if has_port { "" } else { [":80", ":443"][usize::from(scheme == "https")] };
        Ok(Collector {
            server: format!("{scheme}://{host}{port}"),
            path: format!("{}/v1/traces", path.trim_end_matches('/')),
        })
    }
}

/// Why a job is not told, as the label of a count; or how many spans of it there are.
enum Told {
    Sent,
    NotSampled,
    Forgotten,
    Unread,
}

impl Traces {
    pub(crate) fn new(collector: Collector) -> Traces {
        let (queue, inbox) = sync_channel(QUEUE);
        Traces { collector, queue, inbox: Mutex::new(Some(inbox)), waiting: AtomicUsize::new(0) }
    }

    /// Notes that a job has ended. It never waits.
    pub(crate) fn note(&self, metrics: &Metrics, job: &str) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        if self.queue.try_send(job.into()).is_err() {
            self.count(metrics, "queue_full", 1);
        }
    }

    fn count(&self, metrics: &Metrics, outcome: &str, jobs: usize) {
        self.waiting.fetch_sub(jobs, Ordering::SeqCst);
        metrics.add("tandem_traces_total", &[("outcome", outcome)], jobs as f64);
    }

    /// Waits until everything is told, or for so long.
    pub(crate) fn flush(&self, most: Duration) {
        let begun = Instant::now();
        while self.waiting.load(Ordering::SeqCst) > 0 && begun.elapsed() < most {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Tells jobs as they end. To be called once, on a thread of its own.
    pub(crate) fn run(&self, core: &Arc<Core>) {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(inbox) = inbox else { return };
        while let Ok(first) = inbox.recv() {
            let begun = Instant::now();
            let mut jobs = vec![first];
            while jobs.len() < TOGETHER && !core.is_draining() {
                match inbox.recv_timeout(GATHER.saturating_sub(begun.elapsed())) {
                    Ok(job) => jobs.push(job),
                    Err(_) => break,
                }
            }
            self.tell(core, &jobs);
        }
    }

    fn tell(&self, core: &Core, jobs: &[String]) {
        let (mut all, mut count) = (Vec::new(), 0);
        for job in jobs {
            match spans_of(core, job, &mut all) {
                Told::Sent => count += 1,
                Told::NotSampled => self.count(&core.metrics, "not_sampled", 1),
                Told::Forgotten => self.count(&core.metrics, "forgotten", 1),
                Told::Unread => self.count(&core.metrics, "unread", 1),
            }
        }
        if count == 0 {
            return;
        }
        let spans = all.len();
        let body = request(core, all).encode_to_vec();
        let mut pauses = PAUSES.iter();
        let (outcome, why) = loop {
            match self.post(&body) {
                Ok(0) => break ("sent", None),
                Ok(rejected) => break ("rejected", Some(format!("the collector took {spans} spans but {rejected}"))),
                Err((why, may_pass)) => match pauses.next().filter(|_| may_pass && !core.is_draining()) {
                    Some(pause) => std::thread::sleep(*pause),
                    None => break ("failed", Some(why)),
                },
            }
        };
        if let Some(why) = why {
            log("traces_dropped", &[("jobs", &count.to_string()), ("reason", &why)]);
        }
        self.count(&core.metrics, outcome, count);
    }

    /// Posts spans. Returns how many the collector refused; or why it has none, and whether that may pass.
    fn post(&self, body: &[u8]) -> Result<i64, (String, bool)> {
        // Its name may have another address by now.
        let client = Client::to_collector(&self.collector.server, ANSWER).map_err(|why| (why, true))?;
        match client.post(&self.collector.path, "application/x-protobuf", body) {
            Ok((200..300, reply)) => {
                let reply = ExportTraceServiceResponse::decode(&reply[..]).unwrap_or_default();
                Ok(reply.partial_success.map_or(0, |partial| partial.rejected_spans))
            }
            Ok((status, _)) => {
                Err((format!("the collector answers with status {status}"), [429, 502, 503, 504].contains(&status)))
            }
            Err(CallError::Unreachable(why)) => Err((why, true)),
            Err(other) => Err((other.to_string(), false)),
        }
    }
}

/// Adds the spans of a job that has ended.
fn spans_of(core: &Core, job: &str, all: &mut Vec<Span>) -> Told {
    let mut read = || {
        let Some(job) = core.store.job(job)? else { return Ok(Told::Forgotten) };
        let parent = job.traceparent.as_deref().and_then(Parent::read);
        if parent.is_some_and(|parent| !parent.is_sampled) {
            return Ok(Told::NotSampled);
        }
        let attempts = core.store.attempts(&job.id)?;
        let times = core.store.times(&job.id)?;
        all.extend(spans::spans(&job, &attempts, times.as_ref(), parent.as_ref()));
        Ok::<_, StoreError>(Told::Sent)
    };
    read().unwrap_or(Told::Unread)
}

/// What is posted of spans.
fn request(core: &Core, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let version = env!("CARGO_PKG_VERSION");
    let resource = Resource {
        attributes: vec![
            text("service.name", "tandem"),
            text("service.version", version),
            text("service.instance.id", &core.config.node),
        ],
    };
    let scope = InstrumentationScope { name: "tandem".into(), version: version.into() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { resource: Some(resource), scope_spans }] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_have_no_room_are_counted_and_nobody_waits() {
        let (traces, metrics) = (Traces::new(Collector::new("http://127.0.0.1:1").unwrap()), Metrics::default());
        (0..QUEUE + 7).for_each(|_| traces.note(&metrics, "a"));
        assert!(metrics.text(&[]).contains("{outcome=\"queue_full\"} 7\n"));
        assert_eq!(traces.waiting.load(Ordering::SeqCst), QUEUE);
    }

    #[test]
    fn addresses_of_collectors() {
        let of = |url: &str| Collector::new(url).map(|of| (of.server, of.path));
        let is = |server: &str, path: &str| Ok((server.to_string(), path.to_string()));
        assert_eq!(of("http://collector:4318"), is("http://collector:4318", "/v1/traces"));
        assert_eq!(of("http://collector:4318/"), is("http://collector:4318", "/v1/traces"));
        assert_eq!(of("https://c.example/otlp"), is("https://c.example:443", "/otlp/v1/traces"));
        assert_eq!(of("http://[::1]"), is("http://[::1]:80", "/v1/traces"));
        assert_eq!(of("http://[::1]:1"), is("http://[::1]:1", "/v1/traces"));
        for url in [
            "",
            "collector:4318",
            "grpc://c:4317",
            "http://",
            "http:///x",
            "http://u:p@c:1",
            "http://c:1/a b",
            "http://c\r\nx",
        ] {
            assert!(of(url).unwrap_err().contains("http://127.0.0.1:4318"), "{url}");
        }
    }
}

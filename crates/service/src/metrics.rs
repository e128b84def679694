//! Numbers that only grow, and their text for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

/// Bounds of the buckets of times, in seconds.
const BUCKETS: [f64; 10] = [0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0, 1800.0, f64::INFINITY];

/// All metrics and what they count.
const METRICS: [(&str, &str); 37] = [
    ("tandem_jobs", "Jobs by state and priority"),
    ("tandem_oldest_pending_seconds", "Age of the oldest job that waits, by priority"),
    ("tandem_worker_ready", "Whether the worker's device is open"),
    ("tandem_worker_busy", "Whether the worker has a job in hand"),
    ("tandem_worker_key_bytes", "Bytes of the keys on the worker's device"),
    ("tandem_worker_key_budget_bytes", "Bytes that keys may take on the worker's device"),
    ("tandem_worker_keys", "Keys on the worker's device"),
    ("tandem_calculators", "Places for calculators, by whether one is busy"),
    ("tandem_calculate_seconds", "Time of calculating a witness of inputs"),
    ("tandem_database_failures_total", "Writes that the database refused and that were tried again"),
    ("tandem_device_busy_seconds_total", "Time that the worker's device spent on proofs"),
    ("tandem_device_failures_total", "Times that the worker's device failed or was short of memory"),
    ("tandem_given_back_total", "Jobs that were not begun and went back to the queue"),
    (
        "tandem_held_memory_bytes",
        "Bytes of memory in which witnesses are handed to workers of this node, by whether one is in it",
    ),
    ("tandem_held_memory_budget_bytes", "Bytes that such memory may take"),
    ("tandem_http_requests_total", "Requests by route and status"),
    ("tandem_grpc_requests_total", "Calls of gRPC by method and code; of a stream, how it began"),
    ("tandem_job_seconds", "Time from a job's acceptance to its result"),
    ("tandem_jobs_ended_total", "Jobs that ended, by state"),
    ("tandem_jobs_submitted_total", "Jobs that were submitted, new or again"),
    ("tandem_key_evictions_total", "Keys that left the worker's device"),
    ("tandem_leases_expired_total", "Jobs of nodes that were not heard of any more, which this node gave to others"),
    ("tandem_leases_lost_total", "Jobs that this node lost while it was not heard of, or that another one ended"),
    ("tandem_nodes", "Nodes that take jobs from the database"),
    ("tandem_proof_seconds", "Time of a proof on its device"),
    ("tandem_retries_total", "Attempts that failed and were followed by another, by reason"),
    ("tandem_stage_seconds", "Time of the stages before a proof"),
    ("tandem_stale_writes_total", "Results of attempts that were over, which were refused"),
    ("tandem_submitted_bytes_total", "Bytes of witnesses and inputs that were accepted"),
    ("tandem_tls_refused_total", "Handshakes that failed or came too slowly"),
    ("tandem_traces_total", "Jobs that a collector was to be told of, by what became of that"),
    ("tandem_unwritten_results", "Results that wait for the database"),
    ("tandem_witness_bytes_total", "Bytes of witnesses that went to the worker's device"),
    ("tandem_witnesses_given_total", "Witnesses that workers were given, by whether from memory or from the blob"),
    ("tandem_witnesses_read_ahead_total", "Witnesses that were read while they came, and then proved"),
    ("tandem_worker_restarts_total", "Times that the worker was started again"),
    ("tandem_wrong_proofs_total", "Proofs of the worker's device that failed their check"),
];

/// Counters and times, by name and labels.
#[derive(Default)]
pub(crate) struct Metrics {
    counters: Mutex<BTreeMap<(&'static str, String), f64>>,
    times: Mutex<BTreeMap<(&'static str, String), Times>>,
}

/// How many times were at most so long, in each of the buckets, and the sum of all.
#[derive(Default)]
struct Times {
    counts: [u64; BUCKETS.len()],
    sum: f64,
}

/// Labels as Prometheus writes them.
pub(crate) fn labels(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

impl Metrics {
    pub(crate) fn add(&self, name: &'static str, of: &[(&str, &str)], value: f64) {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        *counters.entry((name, labels(of))).or_default() += value;
    }

    /// Counts a time into its histogram.
    pub(crate) fn time(&self, name: &'static str, of: &[(&str, &str)], seconds: f64) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let times = times.entry((name, labels(of))).or_default();
        times.sum += seconds;
        times.counts.iter_mut().zip(BUCKETS).for_each(|(count, bound)| *count += u64::from(seconds <= bound));
    }

    /// All of them, with `gauges` in front; those of one name stand together.
    pub(crate) fn text(&self, gauges: &[(&'static str, String, f64)]) -> String {
        let mut text = String::new();
        let mut last = "";
        let mut head = |text: &mut String, name: &'static str, kind: &str| {
            if name != last {
                if let Some((_, help)) = METRICS.iter().find(|(known, _)| *known == name) {
                    let _ = writeln!(text, "# HELP {name} {help}");
                }
                let _ = writeln!(text, "# TYPE {name} {kind}");
                last = name;
            }
        };
        for &(name, ref labels, value) in gauges {
            head(&mut text, name, "gauge");
            let _ = writeln!(text, "{name}{labels} {value}");
        }
        for (&(name, ref labels), value) in self.counters.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            head(&mut text, name, "counter");
            let _ = writeln!(text, "{name}{labels} {value}");
        }
        for (&(name, ref of), times) in self.times.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            head(&mut text, name, "histogram");
            let before = of.strip_suffix('}').map_or("{".to_string(), |of| format!("{of},"));
            for (bound, count) in BUCKETS.iter().zip(times.counts) {
                let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".into() };
                let _ = writeln!(text, "{name}_bucket{before}le=\"{bound}\"}} {count}");
            }
            let _ = writeln!(text, "{name}_sum{of} {}", times.sum);
            let _ = writeln!(text, "{name}_count{of} {}", times.counts[BUCKETS.len() - 1]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &'static str) -> std::collections::BTreeSet<&'static str> {
        let parts = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        let family = |name: &'static str| ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        parts.filter(|part| part.starts_with("tandem_")).map(|name| family(name).unwrap_or(name)).collect()
    }

    /// The dashboard and the guide name metrics that there are, and the guide all of them; so does the code.
    #[test]
    fn every_metric_that_is_named_exists() {
        let known: std::collections::BTreeSet<_> = METRICS.iter().map(|(name, _)| *name).collect();
        let shown = names(include_str!("../dashboard.json"));
        assert!(shown.len() > 15 && shown.is_subset(&known), "{:?}", shown.difference(&known).collect::<Vec<_>>());
        let guide = include_str!("../../../docs/guides/service.md");
        let missing: Vec<_> = known.iter().filter(|name| !guide.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "not in the guide: {missing:?}");
        let sources = [
            include_str!("core.rs"),
            include_str!("nodes.rs"),
            include_str!("traces/mod.rs"),
            include_str!("http/state.rs"),
            include_str!("http/mod.rs"),
            include_str!("http/submit.rs"),
            include_str!("grpc/mod.rs"),
            include_str!("worker/slot.rs"),
            include_str!("calculate/slot.rs"),
        ];
        let quoted = |source: &'static str| source.split('"').filter(|text| text.starts_with("tandem_"));
        let used: std::collections::BTreeSet<_> = sources.into_iter().flat_map(quoted).collect();
        assert_eq!(used, known);
    }

    #[test]
    fn text_is_that_of_prometheus() {
        let metrics = Metrics::default();
        metrics.add("a_total", &[("k", "x\"y")], 1.0);
        metrics.add("a_total", &[("k", "x\"y")], 1.0);
        metrics.time("t_seconds", &[], 1.5);
        metrics.time("t_seconds", &[("stage", "a")], 1.0);
        let text = metrics.text(&[("jobs", labels(&[("state", "done")]), 3.0)]);
        assert!(
            text.starts_with(
                "# TYPE jobs gauge\njobs{state=\"done\"} 3\n# TYPE a_total counter\na_total{k=\"x\\\"y\"} 2\n"
            ),
            "{text}"
        );
        assert!(text.contains("t_seconds_bucket{le=\"0.5\"} 0\n") && text.contains("t_seconds_bucket{le=\"2\"} 1\n"));
        assert!(text.contains("t_seconds_bucket{le=\"+Inf\"} 1\n"));
        assert!(text.contains("t_seconds_sum 1.5\n") && text.contains("t_seconds_count 1\n"), "{text}");
        assert!(
            text.contains("t_seconds_bucket{stage=\"a\",le=\"2\"} 1\n")
                && text.contains("t_seconds_sum{stage=\"a\"} 1\n")
        );
        assert_eq!(text.matches("# TYPE t_seconds histogram").count(), 1, "{text}");
    }
}

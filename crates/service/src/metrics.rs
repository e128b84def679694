//! Numbers that only grow, and their text for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

/// Bounds of the buckets of times, in seconds.
const BUCKETS: [f64; 10] = [0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0, 1800.0, f64::INFINITY];

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
                let _ = writeln!(text, "# TYPE {name} {kind}");
                last = name;
            }
        };
        for (name, labels, value) in gauges {
            head(&mut text, name, "gauge");
            let _ = writeln!(text, "{name}{labels} {value}");
        }
        for ((name, labels), value) in self.counters.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            head(&mut text, name, "counter");
            let _ = writeln!(text, "{name}{labels} {value}");
        }
        for ((name, of), times) in self.times.lock().unwrap_or_else(PoisonError::into_inner).iter() {
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
        assert!(text.contains("t_seconds_bucket{stage=\"a\",le=\"2\"} 1\n") && text.contains("t_seconds_sum{stage=\"a\"} 1\n"));
        assert_eq!(text.matches("# TYPE t_seconds histogram").count(), 1, "{text}");
    }
}

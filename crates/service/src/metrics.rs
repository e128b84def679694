//! Numbers that only grow, and their text for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

/// Bounds of the buckets of times, in seconds.
const BUCKETS: [f64; 10] = [0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0, 1800.0, f64::INFINITY];

/// Counters by name and labels.
#[derive(Default)]
pub(crate) struct Metrics {
    counters: Mutex<BTreeMap<(&'static str, String), f64>>,
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

    /// Counts a time into its histogram: `bucket`, `sum` and `count` are its three names.
    pub(crate) fn time(&self, [bucket, sum, count]: [&'static str; 3], seconds: f64) {
        for bound in BUCKETS {
            let text = if bound.is_finite() { bound.to_string() } else { "+Inf".into() };
            self.add(bucket, &[("le", &text)], f64::from(u8::from(seconds <= bound)));
        }
        self.add(sum, &[], seconds);
        self.add(count, &[], 1.0);
    }

    /// All of them, with `gauges` in front.
    pub(crate) fn text(&self, gauges: &[(&str, String, f64)]) -> String {
        let mut text = String::new();
        let mut last = String::new();
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let gauges = gauges.iter().map(|(name, labels, value)| (*name, labels, *value, "gauge"));
        let counters = counters.iter().map(|((name, labels), value)| {
            let is_time = name.ends_with("_bucket") || name.ends_with("_sum") || name.ends_with("_count");
            (*name, labels, *value, if is_time { "histogram" } else { "counter" })
        });
        for (name, labels, value, kind) in gauges.chain(counters) {
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let family = family.filter(|_| kind == "histogram").unwrap_or(name);
            if family != last {
                let _ = writeln!(text, "# TYPE {family} {kind}");
                last = family.into();
            }
            let _ = writeln!(text, "{name}{labels} {value}");
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
        metrics.time(["t_seconds_bucket", "t_seconds_sum", "t_seconds_count"], 1.5);
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
        assert_eq!(text.matches("# TYPE t_seconds histogram").count(), 1, "{text}");
    }
}

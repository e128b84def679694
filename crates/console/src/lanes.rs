//! Where the lanes' time went.

use serde_json::{json, Value};
use tandem_engine::Span;

/// Spans that move data; all others compute.
const COPIES: [&str; 8] = [
    "upload witness",
    "upload a",
    "upload b",
    "upload matrix A",
    "upload matrix B",
    "upload points",
    "exchange pieces",
    "copy to lane",
];

/// Whether it moves data.
pub fn is_copy(span: &Span) -> bool {
    COPIES.contains(&span.name)
}

/// What a lane did during one proof, in milliseconds. The three add up to the time of the proof.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneUse {
    /// Which.
    pub lane: usize,
    /// It computed.
    pub computes_ms: f64,
    /// It moved data.
    pub copies_ms: f64,
    /// It did neither.
    pub idle_ms: f64,
}

/// The lanes that had work, of a proof that took `seconds`.
pub fn uses(spans: &[Span], seconds: f64) -> Vec<LaneUse> {
    let mut lanes: Vec<usize> = spans.iter().map(|span| span.lane.0).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let of_lane = |lane: usize| {
        let total = |copies: bool| {
            let spans = spans.iter().filter(|s| s.lane.0 == lane && is_copy(s) == copies);
            covered(spans.map(|s| (s.start_us, s.start_us + s.duration_us)).collect()) / 1e3
        };
        let (computes_ms, copies_ms) = (total(false), total(true));
        LaneUse { lane, computes_ms, copies_ms, idle_ms: (seconds * 1e3 - computes_ms - copies_ms).max(0.0) }
    };
    lanes.into_iter().map(of_lane).collect()
}

/// How much of a line some intervals cover.
pub fn covered(mut intervals: Vec<(f64, f64)>) -> f64 {
    intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut end) = (0.0, f64::NEG_INFINITY);
    for (from, to) in intervals {
        sum += (to - from.max(end)).max(0.0);
        end = end.max(to);
    }
    sum
}

/// One line a lane.
pub fn text(uses: &[LaneUse]) -> String {
    let line = |u: &LaneUse| {
        let LaneUse { lane, computes_ms, copies_ms, idle_ms } = u;
        format!("  lane {lane}: computes {computes_ms:.2} ms, copies {copies_ms:.2} ms, idle {idle_ms:.2} ms\n")
    };
    uses.iter().map(line).collect()
}

/// What lanes did, as JSON.
pub fn to_json(uses: &[LaneUse]) -> Value {
    let round = crate::report::round;
    let lane = |u: &LaneUse| json!({"lane": u.lane, "computes_ms": round(u.computes_ms), "copies_ms": round(u.copies_ms), "idle_ms": round(u.idle_ms)});
    uses.iter().map(lane).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_engine::Lane;

    #[test]
    fn each_lanes_time_adds_up() {
        let span = |lane, name, start_us, duration_us| Span { lane: Lane(lane), queue: 0, name, start_us, duration_us };
        let spans = [
            span(1, "MSM A", 4000.0, 2000.0),
            span(0, "upload witness", 0.0, 1000.0),
            span(0, "MSM B2", 1000.0, 3000.0),
            span(0, "within it", 1500.0, 500.0),
            span(0, "copy to lane", 5000.0, 250.0),
        ];
        let lane = |lane, computes_ms, copies_ms, idle_ms| LaneUse { lane, computes_ms, copies_ms, idle_ms };
        assert_eq!(uses(&spans, 0.008), [lane(0, 3.0, 1.25, 3.75), lane(1, 2.0, 0.0, 6.0)]);
        assert_eq!(uses(&[], 1.0), []);
    }
}

//! Where the lanes' time went.

use serde_json::{json, Value};
use tandem_engine::{Span, WAIT};

/// Spans that move data; all others compute or wait.
const COPIES: [&str; 9] = [
    "upload witness",
    "upload publics",
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

/// From and to, in microseconds.
pub type Interval = (f64, f64);

/// From when to when it ran.
pub fn interval(span: &Span) -> Interval {
    (span.start_us, span.start_us + span.duration_us)
}

/// When a lane computed, of which these are the spans: not while its order waited for a copy.
pub fn computed(spans: &[&Span]) -> Vec<Interval> {
    let waits: Vec<Interval> = spans.iter().filter(|span| span.name == WAIT).map(|span| interval(span)).collect();
    let computing = spans.iter().filter(|span| span.name != WAIT && !is_copy(span));
    let of = |span: &&Span| match span.queue {
        0 => waits.iter().fold(vec![interval(span)], |parts, wait| {
            let around = |(from, to): Interval| [(from, to.min(wait.0)), (from.max(wait.1), to)];
            parts.into_iter().flat_map(around).filter(|(from, to)| from < to).collect()
        }),
        _ => vec![interval(span)],
    };
    computing.flat_map(of).collect()
}

/// What a lane did during one proof, in milliseconds. All but the wait add up to the time of the proof.
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
    /// It did neither, as it waited for a copy that ran elsewhere.
    pub waits_ms: f64,
}

/// The lanes that had work, of a proof that took `seconds`.
pub fn uses(spans: &[Span], seconds: f64) -> Vec<LaneUse> {
    let mut lanes: Vec<usize> = spans.iter().map(|span| span.lane.0).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let of_lane = |lane: usize| {
        let spans: Vec<&Span> = spans.iter().filter(|span| span.lane.0 == lane).collect();
        let named = |is: fn(&Span) -> bool| spans.iter().filter(move |span| is(span)).map(|span| interval(span));
        let computed = computed(&spans);
        let copied: Vec<_> = named(is_copy).collect();
        let busy = [&computed[..], &copied].concat();
        let with_waits: Vec<_> = busy.iter().copied().chain(named(|span| span.name == WAIT)).collect();
        let [computes_ms, copies_ms, busy, with_waits] =
            [computed, copied, busy, with_waits].map(|intervals| covered(intervals) / 1e3);
        let idle_ms = (seconds * 1e3 - computes_ms - copies_ms).max(0.0);
        LaneUse { lane, computes_ms, copies_ms, idle_ms, waits_ms: (with_waits - busy).min(idle_ms) }
    };
    lanes.into_iter().map(of_lane).collect()
}

/// How much of a line some intervals cover.
pub fn covered(mut intervals: Vec<Interval>) -> f64 {
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
        let LaneUse { lane, computes_ms, copies_ms, idle_ms, waits_ms } = u;
        let wait = if *waits_ms > 0.0 { format!(", waits {waits_ms:.2} ms") } else { String::new() };
        format!("  lane {lane}: computes {computes_ms:.2} ms, copies {copies_ms:.2} ms, idle {idle_ms:.2} ms{wait}\n")
    };
    uses.iter().map(line).collect()
}

/// What lanes did, as JSON.
pub fn to_json(uses: &[LaneUse]) -> Value {
    let round = crate::report::round;
    let lane = |u: &LaneUse| json!({"lane": u.lane, "computes_ms": round(u.computes_ms), "copies_ms": round(u.copies_ms), "idle_ms": round(u.idle_ms), "waits_ms": round(u.waits_ms)});
    uses.iter().map(lane).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_engine::{Lane, Moved};

    #[test]
    fn each_lanes_time_adds_up() {
        let span = |lane, name, start_us, duration_us| {
            let queue = if name == "aside" { 1 } else { 0 };
            Span { lane: Lane(lane), queue, name, start_us, duration_us, moved: Moved::default() }
        };
        let spans = [
            span(1, "MSM A", 4000.0, 2000.0),
            span(0, "upload witness", 0.0, 1000.0),
            span(0, "MSM B2", 1000.0, 3000.0),
            span(0, "within it", 1500.0, 500.0),
            span(0, "copy to lane", 5000.0, 250.0),
            // Within a phase, beside other work, beside a copy, and by itself.
            span(2, "phase", 0.0, 4000.0),
            span(2, WAIT, 1000.0, 2000.0),
            span(2, "aside", 2500.0, 250.0),
            span(2, "copy to lane", 1500.0, 125.0),
            span(2, WAIT, 6000.0, 500.0),
        ];
        let lane = |lane, [computes_ms, copies_ms, idle_ms, waits_ms]: [f64; 4]| LaneUse {
            lane,
            computes_ms,
            copies_ms,
            idle_ms,
            waits_ms,
        };
        let of_lanes =
            [lane(0, [3.0, 1.25, 3.75, 0.0]), lane(1, [2.0, 0.0, 6.0, 0.0]), lane(2, [2.25, 0.125, 5.625, 2.125])];
        assert_eq!(uses(&spans, 0.008), of_lanes);
        assert_eq!(uses(&[], 1.0), []);
        assert!(text(&of_lanes).ends_with("idle 5.62 ms, waits 2.12 ms\n"), "{}", text(&of_lanes));
    }
}

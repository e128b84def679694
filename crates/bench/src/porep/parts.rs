//! Where the time of partitions went: what ran on the lanes, in the words of Filecoin's provers.

use serde_json::{json, Value};
use tandem_console::lanes::{computed, covered, interval, is_copy, Interval};
use tandem_console::report;
use tandem_engine::{Span, WAIT};

/// A partition that was proved.
pub(super) struct Part {
    pub(super) proof: u32,
    pub(super) partition: u32,
    /// Until its values were on their way to the device.
    pub(super) prepare_ms: f64,
    /// From the call to the verified proof; the time in which others had their turn counts.
    pub(super) prove_ms: f64,
    /// Whether it was uploaded ahead.
    pub(super) is_staged: bool,
    pub(super) spans: Vec<Span>,
}

/// Milliseconds of a partition on the lanes. Where there are several, they are of all of them together, but for the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    /// From the first to the last of its work on a lane; copies ahead do not count.
    pub(super) gpu_total_ms: f64,
    /// Transforms and the sum over H.
    pub(super) ntt_msm_h_ms: f64,
    /// Sums over the witness: the additions to buckets.
    pub(super) batch_add_ms: f64,
    /// Buckets to points, beside the rest.
    pub(super) tail_msm_ms: f64,
    /// In which a copy of this partition was under way and its lane computed nothing.
    pub(super) copy_wait_ms: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Copy,
    Witness,
    Tail,
    Quotient,
}

fn kind(span: &Span) -> Kind {
    match span.name {
        _ if is_copy(span) || span.name == WAIT => Kind::Copy,
        "buckets to sums" => Kind::Tail,
        "convert witness" | "pick wires" | "witness digits" | "MSM A" | "MSM B1" | "MSM B2" | "MSM L" => Kind::Witness,
        _ => Kind::Quotient,
    }
}

/// All that was measured, on the clock of the lanes.
pub(super) struct Window {
    /// What each lane computed.
    computed: Vec<Vec<Interval>>,
    /// What was copied to or from each.
    copied: Vec<Vec<Interval>>,
    /// From the first to the last that was computed, in microseconds.
    all: Interval,
}

impl Window {
    pub(super) fn of(parts: &[Part]) -> Self {
        let spans = || parts.iter().flat_map(|part| &part.spans);
        let lanes = spans().map(|span| span.lane.0 + 1).max().unwrap_or(0);
        let of_lane = |lane: usize| spans().filter(move |span| span.lane.0 == lane);
        let computed: Vec<_> = (0..lanes).map(|lane| computed(&of_lane(lane).collect::<Vec<_>>())).collect();
        let copied =
            (0..lanes).map(|lane| of_lane(lane).filter(|span| is_copy(span)).map(interval).collect()).collect();
        let ends = |ends: Interval, of: &Interval| (ends.0.min(of.0), ends.1.max(of.1));
        let all = computed.iter().flatten().fold((f64::INFINITY, f64::NEG_INFINITY), ends);
        Window { computed, copied, all }
    }

    pub(super) fn lanes(&self) -> usize {
        self.computed.len()
    }

    /// Of all lanes together.
    fn microseconds(&self) -> f64 {
        (self.all.1 - self.all.0).max(0.0) * self.lanes() as f64
    }

    /// The share of the time between the first and the last computation in which the lanes computed nothing.
    pub(super) fn idle_share(&self) -> f64 {
        let busy: f64 = self.computed.iter().map(|lane| covered(lane.clone())).sum();
        share(self.microseconds() - busy, self.microseconds())
    }

    /// The share of it in which they computed nothing and a copy was under way.
    pub(super) fn copy_wait_share(&self) -> f64 {
        let within = |&(from, to): &Interval| (from.clamp(self.all.0, self.all.1), to.clamp(self.all.0, self.all.1));
        let lanes = self.computed.iter().zip(&self.copied);
        let waited: f64 = lanes.map(|(computed, copied)| beyond(copied.iter().map(within), computed)).sum();
        share(waited, self.microseconds())
    }

    pub(super) fn times(&self, part: &Part) -> Times {
        let of = |kinds: &[Kind]| -> f64 {
            let of_lane = |lane| {
                let spans = part.spans.iter().filter(|span| span.lane.0 == lane && kinds.contains(&kind(span)));
                covered(spans.map(interval).collect()) / 1e3
            };
            (0..self.lanes()).map(of_lane).sum()
        };
        let computed = || part.spans.iter().filter(|span| kind(span) != Kind::Copy).map(interval);
        let from = computed().map(|span| span.0).fold(f64::INFINITY, f64::min);
        let to = computed().map(|span| span.1).fold(f64::NEG_INFINITY, f64::max);
        let waits = |(lane, computed): (usize, &Vec<Interval>)| {
            let copies = part.spans.iter().filter(|span| span.lane.0 == lane && is_copy(span)).map(interval);
            beyond(copies, computed) / 1e3
        };
        Times {
            gpu_total_ms: ((to - from) / 1e3).max(0.0),
            ntt_msm_h_ms: of(&[Kind::Quotient]),
            batch_add_ms: of(&[Kind::Witness]),
            tail_msm_ms: of(&[Kind::Tail]),
            copy_wait_ms: self.computed.iter().enumerate().map(waits).sum(),
        }
    }

    /// The median of each over all partitions.
    pub(super) fn median(&self, parts: &[Part]) -> Times {
        let times: Vec<Times> = parts.iter().map(|part| self.times(part)).collect();
        let of = |which: fn(&Times) -> f64| crate::rows::median_and_min(&times.iter().map(which).collect::<Vec<_>>()).0;
        Times {
            gpu_total_ms: of(|t| t.gpu_total_ms),
            ntt_msm_h_ms: of(|t| t.ntt_msm_h_ms),
            batch_add_ms: of(|t| t.batch_add_ms),
            tail_msm_ms: of(|t| t.tail_msm_ms),
            copy_wait_ms: of(|t| t.copy_wait_ms),
        }
    }
}

fn share(part: f64, all: f64) -> f64 {
    if all > 0.0 {
        (part / all).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// How much the first cover that the others do not.
fn beyond(first: impl Iterator<Item = Interval>, others: &[Interval]) -> f64 {
    covered(first.chain(others.iter().copied()).collect()) - covered(others.to_vec())
}

/// The columns of [`Times::cells`]: a proof and its partition, and milliseconds.
pub(super) const HEADER: [&str; 9] =
    ["part", "prepare", "prove", "gpu_total", "ntt_msm_h", "batch_add", "tail_msm", "wait", "ahead"];

/// Four digits or so, in six places below 100 s.
fn cell(ms: f64) -> String {
    match ms {
        ..100.0 => format!("{ms:.2}"),
        ..10_000.0 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

impl Times {
    pub(super) fn cells(&self, part: &Part) -> Vec<String> {
        let ms = [
            part.prepare_ms,
            part.prove_ms,
            self.gpu_total_ms,
            self.ntt_msm_h_ms,
            self.batch_add_ms,
            self.tail_msm_ms,
            self.copy_wait_ms,
        ];
        let number = format!("{}/{}", part.proof, part.partition);
        let ahead = if part.is_staged { "yes" } else { "no" };
        [number].into_iter().chain(ms.map(cell)).chain([ahead.into()]).collect()
    }

    pub(super) fn to_json(self, part: &Part) -> Value {
        let round = report::round;
        json!({
            "proof": part.proof,
            "partition": part.partition,
            "prepare_ms": round(part.prepare_ms),
            "prove_ms": round(part.prove_ms),
            "gpu_total_ms": round(self.gpu_total_ms),
            "ntt_msm_h_ms": round(self.ntt_msm_h_ms),
            "batch_add_ms": round(self.batch_add_ms),
            "tail_msm_ms": round(self.tail_msm_ms),
            "copy_wait_ms": round(self.copy_wait_ms),
            "ahead": part.is_staged,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_engine::{Lane, Moved};

    #[test]
    fn the_table_fits_a_terminal() {
        let moved = Moved::default();
        let spans =
            vec![Span { lane: Lane(0), queue: 0, name: "MSM A", start_us: 0.0, duration_us: 3_085_142.843, moved }];
        let of =
            |proof, prove_ms, spans| Part { proof, partition: 9, prepare_ms: 0.5, prove_ms, is_staged: true, spans };
        let parts = [of(0, 99.994, vec![]), of(12, 99_999.4, spans)];
        let window = Window::of(&parts);
        let rows = parts.iter().map(|part| window.times(part).cells(part));
        let table: Vec<_> = [HEADER.map(String::from).to_vec()].into_iter().chain(rows).collect();
        let text = report::table(&table);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(table[1][..3], ["0/9", "0.50", "99.99"]);
        assert_eq!(table[2][..6], ["12/9", "0.50", "99999", "3085.1", "0.00", "3085.1"]);
    }

    #[test]
    fn times_are_those_of_the_spans() {
        let moved = Moved::default();
        let span = |lane, queue, name, start_us, duration_us| Span {
            lane: Lane(lane),
            queue,
            name,
            start_us,
            duration_us,
            moved,
        };
        let part =
            |partition, spans| Part { proof: 0, partition, prepare_ms: 1.0, prove_ms: 2.0, is_staged: true, spans };
        let parts = [
            part(
                0,
                vec![
                    span(0, 2, "upload a", 0.0, 4000.0),
                    span(0, 0, "MSM A", 1000.0, 2000.0),
                    span(0, 1, "buckets to sums", 2500.0, 1000.0),
                    span(0, 0, "MSM H", 4000.0, 1000.0),
                    span(1, 0, "inverse NTT a", 4000.0, 500.0),
                ],
            ),
            part(1, vec![span(0, 2, "upload a", 4500.0, 2000.0), span(0, 0, "MSM H", 7000.0, 1000.0)]),
        ];
        let window = Window::of(&parts);
        let first = window.times(&parts[0]);
        assert_eq!(
            (first.gpu_total_ms, first.ntt_msm_h_ms, first.batch_add_ms, first.tail_msm_ms),
            (4.0, 1.5, 2.0, 1.0)
        );
        // From 0 to 1 and from 3.5 to 4; then from 5 to 6.5.
        assert_eq!((first.copy_wait_ms, window.times(&parts[1]).copy_wait_ms), (1.5, 1.5));
        // Seven of each lane's: 2.5 + 1 + 1 and 0.5 are busy; of the copies one counts from 1 on.
        assert_eq!(window.lanes(), 2);
        assert!((window.idle_share() - (14.0 - 5.0) / 14.0).abs() < 1e-9);
        assert!((window.copy_wait_share() - (0.5 + 1.5) / 14.0).abs() < 1e-9);
        assert_eq!(window.median(&parts).copy_wait_ms, 1.5);
        assert_eq!(Window::of(&[]).idle_share(), 0.0);
    }
}

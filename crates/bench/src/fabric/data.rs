//! What the operations are given, and what they have to give: small whole numbers as f32, so that every sum is exact.

use std::ops::Range;
use tandem_fabric::plan::Operation;

/// What is measured: an operation from or to PE 0, if it has a root; a send is from PE 0 to PE 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) operation: Operation,
    /// A send, and one from PE 1 to PE 0 at the same time.
    pub(crate) both_ways: bool,
}

impl From<Operation> for Job {
    fn from(operation: Operation) -> Self {
        Self { operation, both_ways: false }
    }
}

/// PE 0 sends to PE 1.
pub(crate) const SEND: Job = Job { operation: Operation::Send, both_ways: false };
/// Each sends to the other.
pub(crate) const EXCHANGE: Job = Job { operation: Operation::Send, both_ways: true };

/// Elements by which the data of one PE is ahead of that of the one before.
const APART: usize = 97;
/// By so much the data is ahead that stands where results will be.
const POISON: usize = 5003;

/// Random numbers from 0 to 255 for all PEs.
pub(crate) struct Pattern(Vec<f32>);

impl Pattern {
    /// Enough for `len` elements of each of `pes` PEs.
    pub(crate) fn new(len: usize, pes: usize) -> Self {
        let mut values = vec![0f32; len + pes * APART + POISON];
        each_part(&mut values, |start, part| {
            for (i, value) in part.iter_mut().enumerate() {
                let hash = ((start + i) as u32).wrapping_mul(2_654_435_761);
                *value = ((hash ^ hash >> 15).wrapping_mul(2_246_822_519) >> 24) as f32;
            }
        });
        Pattern(values)
    }

    /// What PE `pe` has.
    pub(crate) fn of(&self, pe: usize, len: usize) -> &[f32] {
        &self.0[pe * APART..][..len]
    }

    /// What stands in the place of a result before.
    pub(crate) fn poison(&self, len: usize) -> &[f32] {
        &self.0[POISON..][..len]
    }

    /// Elements of `got`, the result of PE `pe`, that are wrong. `len` is what each PE gave.
    pub(crate) fn wrong(&self, job: Job, pes: usize, pe: usize, len: usize, got: &[f32]) -> u64 {
        self.wrong_from(job, (pes, pe), len, 0, got)
    }

    /// As [`Pattern::wrong`], where `got` is the result from element `first` on.
    pub(crate) fn wrong_from(&self, job: Job, (pes, pe): (usize, usize), len: usize, first: usize, got: &[f32]) -> u64 {
        let at = |from: usize, i: usize| self.0[from * APART + i];
        let sum = |i: usize| (0..pes).map(|from| at(from, i)).sum::<f32>();
        let part = len / pes;
        let expected = |i: usize| match job.operation {
            Operation::Send if job.both_ways => at(1 - pe, i),
            Operation::Send | Operation::Broadcast | Operation::Upload | Operation::Download => at(0, i),
            Operation::Reduce | Operation::AllReduce => sum(i),
            Operation::AllGather => at(i / len.max(1), i % len.max(1)),
            Operation::ReduceScatter => sum(pe * part + i),
            Operation::AllToAll => at(i / part.max(1), pe * part + i % part.max(1)),
        };
        differing(got, |i| expected(first + i))
    }
}

/// Elements of a copy that are compared with what was sent.
const COMPARED: usize = 1 << 26;
/// The pieces in which they lie where there are more.
const PIECES: usize = 64;

/// The elements that are compared of a copy of `len`: all, or pieces from the first element to the last.
pub(crate) fn compared(len: usize) -> Vec<Range<usize>> {
    pieces(len, COMPARED)
}

fn pieces(len: usize, most: usize) -> Vec<Range<usize>> {
    if len <= most {
        return std::iter::once(0..len).collect();
    }
    let piece = most / PIECES;
    (0..PIECES).map(|i| i * (len - piece) / (PIECES - 1)).map(|start| start..start + piece).collect()
}

impl Job {
    /// Elements that each PE gives and gets for a size of nccl-tests, which is that of the larger one; 0 where the size is too small.
    pub(crate) fn lens(self, elements: usize, pes: usize) -> (usize, usize) {
        let even = elements / pes * pes;
        match self.operation {
            Operation::AllGather => (even / pes, even),
            Operation::ReduceScatter => (even, even / pes),
            Operation::AllToAll => (even, even),
            _ => (elements, elements),
        }
    }

    /// Whether PE `pe` gets a result.
    pub(crate) fn has_result(self, pe: usize) -> bool {
        match self.operation {
            Operation::Send => pe == 1 || self.both_ways && pe == 0,
            Operation::Reduce => pe == 0,
            _ => true,
        }
    }

    /// nccl-tests' busbw over algbw.
    pub(crate) fn bus_factor(self, pes: usize) -> f64 {
        let n = pes as f64;
        match self.operation {
            Operation::AllReduce => 2.0 * (n - 1.0) / n,
            Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => (n - 1.0) / n,
            _ => 1.0,
        }
    }
}

/// Elements of `got` that are not what is expected at their index.
pub(crate) fn differing(got: &[f32], expected: impl Fn(usize) -> f32 + Sync) -> u64 {
    let size = got.len().div_ceil(threads()).max(1);
    let count = |(t, part): (usize, &[f32])| {
        part.iter().enumerate().filter(|(i, value)| **value != expected(t * size + i)).count() as u64
    };
    let count = &count;
    std::thread::scope(|scope| {
        let running: Vec<_> = got.chunks(size).enumerate().map(|part| scope.spawn(move || count(part))).collect();
        // A thread that panicked has compared nothing.
        running.into_iter().map(|t| t.join().unwrap_or(u64::MAX)).fold(0, u64::saturating_add)
    })
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(16)
}

/// Works on parts of a slice with several threads.
fn each_part(values: &mut [f32], f: impl Fn(usize, &mut [f32]) + Sync) {
    let size = values.len().div_ceil(threads()).max(1);
    std::thread::scope(|scope| {
        for (t, part) in values.chunks_mut(size).enumerate() {
            let f = &f;
            scope.spawn(move || f(t * size, part));
        }
    });
}

/// Lends threads, as [`tandem_cuda::Staging`] asks for them.
pub(crate) fn workers(work: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(work);
        }
    });
}

/// Copies with several threads.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    let size = to.len().div_ceil(threads()).max(1 << 20);
    std::thread::scope(|scope| {
        for (to, from) in to.chunks_mut(size).zip(from.chunks(size)) {
            scope.spawn(move || to.copy_from_slice(from));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, element by element.
    fn result(p: &Pattern, job: Job, pes: usize, pe: usize, len: usize) -> Vec<f32> {
        let all: Vec<&[f32]> = (0..pes).map(|from| p.of(from, len)).collect();
        let sum: Vec<f32> = (0..len).map(|i| all.iter().map(|a| a[i]).sum()).collect();
        let part = len / pes;
        match job.operation {
            Operation::Reduce | Operation::AllReduce => sum,
            Operation::AllGather => all.concat(),
            Operation::ReduceScatter => sum[pe * part..][..part].to_vec(),
            Operation::Send if job.both_ways => all[1 - pe].to_vec(),
            Operation::AllToAll => all.iter().flat_map(|a| a[pe * part..][..part].to_vec()).collect(),
            _ => all[0].to_vec(),
        }
    }

    #[test]
    fn right_results_are_right_and_wrong_ones_are_counted() {
        for pes in [2, 3, 8] {
            let p = Pattern::new(240, pes);
            for op in Operation::ALL.map(|(op, _)| Job::from(op)).into_iter().chain([EXCHANGE]) {
                let (len, out) = op.lens(240, pes);
                for pe in (0..pes).filter(|pe| op.has_result(*pe)) {
                    let mut got = result(&p, op, pes, pe, len);
                    assert_eq!(got.len(), out);
                    assert_eq!(p.wrong(op, pes, pe, len, &got), 0, "{op:?} {pes} {pe}");
                    got[out - 1] += 1.0;
                    got[0] -= 1.0;
                    assert_eq!(p.wrong(op, pes, pe, len, &got), 2, "{op:?} {pes} {pe}");
                    assert!(p.wrong(op, pes, pe, len, p.poison(out)) > out as u64 / 2);
                }
            }
        }
    }

    /// Pieces lie apart, and both ends are seen.
    #[test]
    fn much_is_compared_in_pieces() {
        for len in [0, 1, 6400] {
            assert!(pieces(len, 6400).into_iter().eq(std::iter::once(0..len)), "{len}");
        }
        for len in [6401, 10_000, 1 << 20] {
            let pieces = pieces(len, 6400);
            assert_eq!(pieces.iter().map(|piece| piece.len()).sum::<usize>(), 6400);
            assert!(pieces[0].start == 0 && pieces[PIECES - 1].end == len, "{len}");
            assert!(pieces.windows(2).all(|two| two[0].end <= two[1].start), "{len}");
        }
        // What a piece is compared with begins where it does.
        let p = Pattern::new(240, 2);
        let got = p.of(0, 240)[100..140].to_vec();
        assert_eq!(p.wrong_from(SEND, (2, 1), 240, 100, &got), 0);
        assert!(p.wrong_from(SEND, (2, 1), 240, 99, &got) > 20);
    }

    #[test]
    fn odd_sizes_are_cut() {
        assert_eq!(Job::from(Operation::AllGather).lens(7, 2), (3, 6));
        assert_eq!(Job::from(Operation::ReduceScatter).lens(7, 2), (6, 3));
        assert_eq!(Job::from(Operation::AllToAll).lens(1, 2), (0, 0));
        assert_eq!(Job::from(Operation::Broadcast).lens(7, 2), (7, 7));
        assert_eq!(Job::from(Operation::AllReduce).bus_factor(2), 1.0);
        assert_eq!(Job::from(Operation::AllToAll).bus_factor(4), 0.75);
    }

    #[test]
    fn copies_are_whole() {
        let from: Vec<u8> = (0..3_000_001u32).map(|i| i as u8).collect();
        let mut to = vec![0; from.len()];
        copy(&mut to, &from);
        assert!(to == from);
        copy(&mut [], &[]);
    }
}

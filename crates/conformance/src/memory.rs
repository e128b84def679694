//! Buffers, copies, and spans.

use crate::{samples, Outcome, Suite};
use std::sync::Arc;
use tandem_ops::{Backend, Bn254, Buffer, Canonical, Curve, HostBuf, Lane, Mont, Point, Timeline, Wire};
use zeroize::Zeroizing;

const SIZES: [usize; 9] = [0, 1, 2, 3, 31, 32, 33, 257, 4097];

impl<B: Backend> Suite<'_, B> {
    /// Memory: what goes in comes out, at any offset and from any lane to any other; nothing goes past an end.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn memory(&mut self) -> Outcome {
        let rng = &mut samples::rng(1);
        let elements = samples::elements::<Bn254>(4097, rng);
        let scalars: Vec<Mont> = samples::wire::<Bn254>(&elements);
        let points: Vec<Point<24>> =
            scalars.chunks_exact(6).map(|c| bytemuck::pod_read_unaligned(bytemuck::cast_slice(c))).collect();
        for lane in self.lanes() {
            self.round_trips(lane, &scalars)?;
            self.round_trips(lane, &samples::canonical::<Bn254>(&elements))?;
            self.round_trips(lane, &points)?;
        }
        self.joins(&scalars)?;
        self.dealt_copies(&scalars)?;
        self.uploads_to_all(&scalars)?;
        self.uploads_beside(&scalars)?;
        self.order(&scalars)?;
        self.past_the_ends(&scalars)?;
        self.spans()
    }

    fn round_trips<T: Wire>(&mut self, lane: Lane, values: &[T]) -> Outcome {
        let backend = self.backend;
        for n in SIZES.into_iter().filter(|&n| n <= values.len()) {
            let values = &values[..n];
            let fresh = backend.alloc::<T>(lane, n)?;
            self.that(fresh.len() == n && fresh.is_empty() == (n == 0) && fresh.lane() == lane, "alloc: its buffer")?;
            let zeros = vec![<T as bytemuck::Zeroable>::zeroed(); n];
            self.holds(&fresh, &zeros, format_args!("alloc of {n}"))?;

            let full = backend.upload(lane, values)?;
            self.that(full.lane() == lane, "upload: the buffer's lane")?;
            self.holds(&full, values, format_args!("upload of {n}"))?;
            // Memory that was used before is handed out as zeros again.
            drop((fresh, full));
            let fresh = backend.alloc::<T>(lane, n)?;
            self.holds(&fresh, &zeros, format_args!("alloc of {n} after use"))?;
            let full = backend.upload(lane, values)?;

            for (from, to) in [(0, n), (0, n / 2), (n / 3, n), (n / 3, n / 2), (n, n)] {
                for target in self.lanes() {
                    let part = backend.copy(&full, from.min(to)..to, target)?;
                    self.that(part.lane() == target, "copy: the buffer's lane")?;
                    let what = format_args!("copy of {from}..{to} of {n} from lane {} to {}", lane.0, target.0);
                    self.holds(&part, &values[from.min(to)..to], what)?;
                }
                let mut written = backend.alloc::<T>(lane, n)?;
                backend.write(&mut written, from.min(to), &values[from.min(to)..to])?;
                let mut expected = zeros.clone();
                expected[from.min(to)..to].copy_from_slice(&values[from.min(to)..to]);
                self.holds(&written, &expected, format_args!("write of {from}..{to} of {n}"))?;
            }
        }
        Ok(())
    }

    /// Pieces of each lane, one of them empty and one of them twice, to each lane at once, from memory that is used again meanwhile.
    fn joins(&mut self, values: &[Mont]) -> Outcome {
        let backend = self.backend;
        for n in SIZES {
            let rotated = |lane: Lane| [&values[lane.0 + 1..], &values[..lane.0 + 1]].concat();
            let whole = self.lanes().map(|lane| backend.upload(lane, &rotated(lane))).collect::<Result<Vec<_>, _>>()?;
            let range = |from: Lane, to: Lane| {
                let end = (n + 3 * to.0 + 2 * from.0).min(values.len());
                end - n.min(end)..end
            };
            // Of each lane, from another one on for each buffer.
            let of = |to: Lane| {
                let lanes: Vec<Lane> = (0..=whole.len()).map(|i| Lane((to.0 + i) % whole.len())).collect();
                let mut pieces: Vec<(Lane, _)> = lanes.into_iter().map(|from| (from, range(from, to))).collect();
                pieces.push((to, n..n));
                pieces.push((Lane(0), 0..n.min(5)));
                pieces
            };
            // An empty one, one of nothing, and two for each lane.
            let mut wanted = vec![(Lane(0), vec![(Lane(0), n..n)]), (Lane(whole.len() - 1), vec![])];
            wanted.extend(self.lanes().map(|to| (to, of(to))));
            wanted.extend(self.lanes().map(|to| (to, vec![(Lane(0), range(Lane(0), to))])));
            let pieces = |of: &Vec<(Lane, std::ops::Range<usize>)>| {
                of.iter().map(|(from, range)| (&whole[from.0], range.clone())).collect()
            };
            let joined = backend.join(&wanted.iter().map(|(to, of)| (*to, pieces(of))).collect::<Vec<_>>())?;
            self.that(joined.len() == wanted.len(), "joins: their number")?;
            drop(whole);
            let over = self.lanes().map(|lane| backend.upload(lane, &vec![Mont([7; 4]); values.len()]));
            let over = over.collect::<Result<Vec<_>, _>>()?;
            for (i, (buf, (to, of))) in joined.iter().zip(&wanted).enumerate() {
                self.that(buf.lane() == *to, "joins: the buffer's lane")?;
                let expected: Vec<Mont> =
                    of.iter().flat_map(|(from, range)| rotated(*from)[range.clone()].to_vec()).collect();
                self.holds(buf, &expected, format_args!("buffer {i} on lane {}, joined of {of:?}", to.0))?;
            }
            drop(over);
        }
        let (buf, nowhere) = (backend.upload(Lane(0), &values[..3])?, Lane(backend.lanes()));
        self.that(backend.join::<Mont>(&[])?.is_empty(), "nothing to join")?;
        #[allow(clippy::reversed_empty_ranges)]
        for past in [1..4, 4..4, 2..1, 3..usize::MAX, usize::MAX..usize::MAX] {
            for pieces in [vec![(&buf, past.clone())], vec![(&buf, 0..3), (&buf, past.clone()), (&buf, 0..1)]] {
                let joins = [(Lane(0), vec![(&buf, 0..3)]), (Lane(0), pieces)];
                self.refused(backend.join(&joins), format_args!("a piece {past:?} of 3"))?;
            }
        }
        self.refused(backend.join(&[(nowhere, vec![(&buf, 0..3)])]), "pieces for a lane that is not there")?;
        self.refused(backend.join::<Mont>(&[(nowhere, vec![])]), "nothing for a lane that is not there")?;
        self.holds(&buf, &values[..3], "a buffer after refused joins")
    }

    /// Vectors of each lane to all lanes, by ranges of different lengths, one of them empty, which arrive in another order than they were dealt in.
    fn dealt_copies(&mut self, values: &[Mont]) -> Outcome {
        let backend = self.backend;
        for n in SIZES {
            let of = |lane: Lane| [&values[lane.0 + 1..], &values[..lane.0 + 1]].concat();
            let whole = self.lanes().map(|lane| backend.upload(lane, &of(lane))).collect::<Result<Vec<_>, _>>()?;
            let ends = |to: Lane| (n + 3 * to.0).min(values.len());
            let mut shares: Vec<_> = self.lanes().map(|to| (ends(to) - n.min(ends(to))..ends(to), to)).collect();
            shares.push((n..n, Lane(0)));
            shares.push((0..n.min(5), Lane(0)));
            let timeline = backend.timeline();
            let dealt = backend.deal(whole, &shares, &timeline)?;
            self.that(dealt.len() == backend.lanes(), "deal: a list for each source")?;
            // Memory of the lanes is used again before the copies are looked at.
            let over = self.lanes().map(|lane| backend.upload(lane, &vec![Mont([7; 4]); values.len()]));
            let over = over.collect::<Result<Vec<_>, _>>()?;
            for (lane, of_source) in self.lanes().zip(dealt) {
                self.that(of_source.len() == shares.len(), "deal: a copy for each share")?;
                for (arriving, (range, to)) in of_source.into_iter().zip(&shares).rev() {
                    let buf = backend.arrived(arriving)?;
                    self.that(buf.lane() == *to, "deal: the buffer's lane")?;
                    let what = format_args!("{range:?} dealt from lane {} to {}", lane.0, to.0);
                    self.holds(&buf, &of(lane)[range.clone()], what)?;
                }
            }
            drop(over);
            let spans = timeline.take()?;
            let lanes = spans.iter().map(|span| span.lane).collect::<Vec<_>>();
            self.that(lanes.iter().copied().eq(self.lanes()), "deal: a span for each source")?;
        }
        let source = || backend.upload(Lane(0), &values[..3]);
        let none = Timeline::none();
        self.that(backend.deal::<Mont>(vec![], &[(0..1, Lane(0))], &none)?.is_empty(), "nothing to deal")?;
        self.that(backend.deal(vec![source()?], &[], &none)?.iter().all(Vec::is_empty), "dealt to nobody")?;
        // Of which one is never taken.
        drop(backend.deal(vec![source()?], &[(0..2, Lane(0))], &none)?);
        self.refused(backend.deal(vec![source()?], &[(0..3, Lane(0)), (1..4, Lane(0))], &none), "dealt past the end")?;
        let nowhere = backend.deal(vec![source()?], &[(0..3, Lane(backend.lanes()))], &none);
        self.refused(nowhere, "dealt to a lane that is not there")
    }

    /// One source for several lanes, in any order of them.
    fn uploads_to_all(&mut self, values: &[Mont]) -> Outcome {
        let mut lanes: Vec<Lane> = self.lanes().collect();
        for n in SIZES {
            lanes.reverse();
            // From memory of the backend's own and from any other.
            let mut source = self.backend.host_buf::<Mont>(n)?;
            self.that(source.len() == n && source.iter().all(|x| *x == Mont::default()), "host memory: zeros")?;
            source.copy_from_slice(&values[..n]);
            let bufs = self.backend.upload_to_all(&lanes, &Arc::new(source), &Timeline::none())?;
            for (buf, lane) in bufs.iter().zip(&lanes) {
                self.holds(buf, &values[..n], format_args!("upload of {n} to all lanes, {lane:?}"))?;
            }
            let source = Arc::new(HostBuf::from(Zeroizing::new(values[..n].to_vec())));
            let bufs = self.backend.upload_to_all(&lanes, &source, &Timeline::none())?;
            drop(source);
            self.that(
                bufs.iter().map(|buf| buf.lane()).eq(lanes.iter().copied()),
                "upload to all: the buffers' lanes",
            )?;
            for buf in &bufs {
                self.holds(buf, &values[..n], format_args!("upload of {n} to all lanes"))?;
            }
        }
        let none = self.backend.upload_to_all(&[], &Arc::new(self.backend.host_buf::<Mont>(9)?), &Timeline::none())?;
        self.that(none.is_empty(), "upload to no lane")?;
        let source = Arc::new(self.backend.host_buf::<Mont>(9)?);
        let twice = self.backend.upload_to_all(&[Lane(0), Lane(0)], &source, &Timeline::none());
        self.refused(twice, "upload to a lane twice")
    }

    /// Uploads beside a lane's order, used in another order than they were begun in, and one that nobody takes.
    fn uploads_beside(&mut self, values: &[Mont]) -> Outcome {
        for lane in self.lanes() {
            for n in SIZES {
                let mut locked = self.backend.host_buf::<Mont>(n)?;
                locked.copy_from_slice(&values[..n]);
                let pageable = HostBuf::from(Zeroizing::new(values[..n].to_vec()));
                let begun = [locked, pageable]
                    .map(|source| self.backend.upload_beside(lane, &Arc::new(source), n))
                    .into_iter()
                    .collect::<tandem_ops::Result<Vec<_>>>()?;
                self.that(begun.iter().all(|buf| buf.lane::<Mont>() == lane), "upload beside: the buffers' lane")?;
                drop(self.backend.upload_beside(lane, &Arc::new(self.backend.host_buf::<Mont>(n)?), n)?);
                // With zeros behind, in memory that held something before.
                let source = Arc::new(HostBuf::from(Zeroizing::new(values[..n].to_vec())));
                let longer = self.backend.upload_beside(lane, &source, n + 37)?;
                let longer = self.backend.arrived(longer)?;
                let expected = [&values[..n], &[Mont([0; 4]); 37]].concat();
                self.holds(&longer, &expected, format_args!("upload of {n} beside {lane:?}, with zeros behind"))?;
                if n > 0 {
                    let less = self.backend.upload_beside(lane, &source, n - 1);
                    self.that(less.is_err(), "upload beside: more than there is room for")?;
                }
                for arriving in begun.into_iter().rev() {
                    let buf = self.backend.arrived(arriving)?;
                    self.holds(&buf, &values[..n], format_args!("upload of {n} beside {lane:?}"))?;
                }
            }
        }
        Ok(())
    }

    /// Operations take effect in the order of the calls, and what was passed in may be reused at once.
    fn order(&mut self, values: &[Mont]) -> Outcome {
        let lane = Lane(self.backend.lanes() - 1);
        let mut source = values.to_vec();
        let mut buf = self.backend.upload(lane, &source)?;
        let before = self.backend.download(&buf)?;
        let mut memory = self.backend.host_buf(values.len())?;
        memory.fill(Mont([2; 4]));
        let before_to = self.backend.download_to(&buf, memory)?;
        // Not waited for: the memory is free again once the copy is there.
        drop(self.backend.download_to(&buf, self.backend.host_buf(values.len())?)?);
        let kept = self.backend.copy(&buf, 0..values.len(), Lane(0))?;
        source.fill(Mont([1; 4]));
        self.backend.write(&mut buf, 0, &source)?;
        let same = before.wait()? == values;
        self.that(same, "download: has what was written after it")?;
        self.that(before_to.wait()?[..] == *values, "download to memory: not what was there at the time")?;
        for other in [0, values.len() - 1, values.len() + 1] {
            let refused = self.backend.download_to(&buf, self.backend.host_buf(other)?);
            self.refused(refused, format_args!("{} elements to memory of {other}", values.len()))?;
        }
        let ordinary = tandem_ops::HostBuf::zeros(source.len())?;
        let after = self.backend.download_to(&buf, ordinary)?.wait()?;
        self.that(after[..] == *source, "download to ordinary memory")?;
        self.holds(&kept, values, "copy: what was there at the time")?;
        self.holds(&buf, &source, "write over an upload")
    }

    fn past_the_ends(&mut self, values: &[Mont]) -> Outcome {
        let backend = self.backend;
        let nowhere = Lane(backend.lanes());
        self.refused(backend.alloc::<Mont>(nowhere, 1), "alloc on a lane that is not there")?;
        self.refused(backend.upload(nowhere, values), "upload to a lane that is not there")?;
        for n in [0, 1, 33] {
            let mut buf = backend.upload(Lane(0), &values[..n])?;
            self.refused(backend.copy(&buf, 0..n, nowhere), "copy to a lane that is not there")?;
            for at in [1, n + 1, usize::MAX - 1, usize::MAX] {
                let what = format_args!("write of {} at {at} of {n}", n.max(1));
                self.refused(backend.write(&mut buf, at, &values[..n.max(1)]), what)?;
            }
            #[allow(clippy::reversed_empty_ranges)]
            for range in [0..n + 1, n + 1..n + 1, 1..0, n..usize::MAX, usize::MAX..usize::MAX] {
                self.refused(backend.copy(&buf, range.clone(), Lane(0)), format_args!("copy of {range:?} of {n}"))?;
            }
            self.holds(&buf, &values[..n], "a buffer after refused operations")?;
        }
        // More than any machine has: refused in whatever way, but refused.
        let refused = backend.alloc::<Canonical>(Lane(0), 1 << 58).is_err()
            && backend.alloc::<Mont>(Lane(0), usize::MAX).is_err();
        self.that(refused, "alloc of more bytes than there are")
    }

    fn spans(&mut self) -> Outcome {
        let backend = self.backend;
        let (timeline, other) = (backend.timeline(), backend.timeline());
        for lane in self.lanes() {
            let outer = timeline.begin(lane, "outer");
            let inner = timeline.begin(lane, "inner");
            let beside = other.begin(lane, "beside");
            let buf = backend.upload(lane, &[Bn254::mont(5u64.into()); 1000])?;
            timeline.end(inner);
            other.end(beside);
            drop(buf);
            timeline.end(outer);
            timeline.end(outer);
        }
        let spans = timeline.take()?;
        for lane in self.lanes() {
            let of = |name| spans.iter().filter(move |s| s.lane == lane && s.name == name).collect::<Vec<_>>();
            let (outer, inner) = (of("outer"), of("inner"));
            self.that(outer.len() == 1 && inner.len() == 1, "spans: each is there once")?;
            // Device clocks count in half microseconds.
            let nested =
                inner[0].start_us >= outer[0].start_us - 1.0 && inner[0].duration_us <= outer[0].duration_us + 1.0;
            self.that(nested && inner[0].duration_us >= 0.0, "spans: the inner is within the outer")?;
        }
        self.that(spans.iter().all(|s| s.name != "beside"), "spans: those of another request are not among them")?;
        let beside = other.take()?;
        let own = beside.len() == backend.lanes() && beside.iter().all(|s| s.name == "beside");
        self.that(own, "spans: another request has its own")?;
        let none = timeline.take()?.is_empty();
        self.that(none, "spans: taken once")?;
        let silent = Timeline::none();
        silent.end(silent.begin(Lane(0), "nothing"));
        self.that(silent.take()?.is_empty(), "spans: none without a timeline")
    }
}

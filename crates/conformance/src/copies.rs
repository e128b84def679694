//! What a backend tells of the copies that it makes.

use crate::{Failure, Outcome};
use std::sync::Arc;
use tandem_ops::timeline::Moved;
use tandem_ops::{Backend, Lane, Mont, Result, Timeline};

/// The bytes of each copy are in the span in which it was enqueued, by direction. No part of the suite: [`Dual`](crate::Dual) makes each copy
/// twice, and others to compare.
///
/// # Errors
/// The first check that fails.
pub fn copies<B: Backend>(backend: &B) -> Outcome {
    let lanes: Vec<Lane> = (0..backend.lanes()).map(Lane).collect();
    // Each of as many pieces as there are lanes is of one size.
    let len = 840 * lanes.len();
    let (bytes, values) = ((len * size_of::<Mont>()) as u64, vec![Mont([7; 4]); len]);
    let source = || -> Result<_> {
        let mut source = backend.host_buf::<Mont>(len)?;
        source.copy_from_slice(&values);
        Ok(Arc::new(source))
    };
    let none = Moved::default();
    for &lane in &lanes {
        let buf = backend.upload(lane, &values)?;
        let counted = |what: &str, expected: Moved, work: &dyn Fn() -> Result<()>| -> Outcome {
            let timeline = backend.timeline();
            let span = timeline.begin(lane, "copies");
            work()?;
            timeline.end(span);
            let moved: Moved = timeline.take()?.iter().map(|span| span.moved).sum();
            is(moved, expected, what)
        };
        counted("an upload", Moved { up: bytes, ..none }, &|| backend.upload(lane, &values).map(drop))?;
        counted("a write", Moved { up: bytes / 2, ..none }, &|| {
            let mut to = backend.alloc::<Mont>(lane, len)?;
            backend.write(&mut to, len / 4, &values[..len / 2])
        })?;
        counted("an upload beside", Moved { up: bytes, ..none }, &|| {
            backend.arrived(backend.upload_beside(lane, &source()?, len + 5)?).map(drop)
        })?;
        counted("a download", Moved { down: bytes, ..none }, &|| backend.download(&buf)?.wait().map(drop))?;
        counted("a copy on a lane", none, &|| backend.copy(&buf, 0..len, lane).map(drop))?;
        for &to in lanes.iter().filter(|to| **to != lane) {
            counted("a copy to another lane", Moved { across: bytes / 2, ..none }, &|| {
                backend.copy(&buf, 0..len / 2, to).map(drop)
            })?;
            let both = [(to, vec![(&buf, 0..len / 4), (&buf, 0..len / 2)]), (lane, vec![(&buf, 0..len)])];
            counted("pieces", Moved { across: bytes / 4 * 3, ..none }, &|| backend.join(&both).map(drop))?;
        }
        // Each source has a span of its own, also where several are of one lane.
        let timeline = backend.timeline();
        let sources = [len, len / 2].map(|len| backend.upload(lane, &values[..len]));
        let sources = sources.into_iter().collect::<Result<Vec<_>>>()?;
        let shares: Vec<_> = lanes.iter().map(|&to| (to.0..len / 4, to)).collect();
        drop(backend.deal(sources, &shares, &timeline)?);
        let sent = shares.iter().filter(|(_, to)| *to != lane).map(|(range, _)| range.len() * size_of::<Mont>());
        let sent = Moved { across: sent.sum::<usize>() as u64, ..none };
        for span in timeline.take()? {
            is(span.moved, sent, "a vector that is dealt")?;
        }
    }
    // Over each lane's own link, or a piece over each and the others' pieces from there.
    let timeline = backend.timeline();
    let spans: Vec<_> = lanes.iter().map(|&lane| timeline.begin(lane, "upload to all")).collect();
    drop(backend.upload_to_all(&lanes, &source()?, &timeline)?);
    spans.into_iter().for_each(|span| timeline.end(span));
    let all = bytes * lanes.len() as u64;
    let spans = timeline.take()?;
    let pieces = [Moved { up: bytes, across: all - bytes, ..none }, Moved { up: all, ..none }];
    let moved = spans.iter().map(|span| span.moved).sum::<Moved>();
    is(moved, pieces[usize::from(moved.up > bytes)], "an upload to all lanes")?;
    for lane in &lanes {
        let of_lane = spans.iter().filter(|span| span.lane == *lane).map(|span| span.moved).sum::<Moved>();
        is(Moved { up: of_lane.up + of_lane.across, ..none }, Moved { up: bytes, ..none }, "a lane's part of it")?;
    }
    // Nobody measures.
    let silent = Timeline::none();
    let span = silent.begin(Lane(0), "nothing");
    drop(backend.upload(Lane(0), &values)?);
    silent.end(span);
    Ok(())
}

fn is(moved: Moved, expected: Moved, what: &str) -> Outcome {
    match moved == expected {
        true => Ok(()),
        false => Err(Failure(format!("{what} moves {moved:?}, expected {expected:?}"))),
    }
}

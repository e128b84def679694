//! The checker of schedules refuses each thing that is wrong with one, made by hand: the damage is named, so that no rule stands in for
//! another.

use tandem_fabric::exec::{check, Call, Channel, Endpoint, Place, Ring, Schedule, Transfer, MAX_STAGING};
use tandem_fabric::plan::Operation;

fn endpoint(node: usize, place: Place, channel: Option<usize>) -> Endpoint {
    Endpoint { node, place, at: 0, channel }
}

/// A broadcast from node 0 by way of a helper, node 3, to nodes 1 and 2, in four chunks; node 4 is host memory.
fn good() -> Schedule {
    let call = Call { operation: Operation::Broadcast, root: 0, part: 64, unit: 4, in_place: true };
    let ring = |node| Some(Ring { node, at: 0 });
    let channel = |from, to, ring| Channel { from, to, chunks: 4, ring, path: Vec::new(), tree: 0 };
    let transfer =
        |at, source, targets| Transfer { at, sources: vec![source], targets, notifies: Vec::new(), bytes: 64 };
    Schedule {
        call,
        pes: 3,
        helpers: 1,
        chunk: 16,
        slots: 2,
        transfers: vec![
            transfer(0, endpoint(0, Place::Input, None), vec![endpoint(3, Place::Ring(0), Some(0))]),
            transfer(3, endpoint(3, Place::Ring(0), Some(0)), vec![endpoint(1, Place::Ring(1), Some(1))]),
            transfer(
                1,
                endpoint(1, Place::Ring(1), Some(1)),
                vec![endpoint(1, Place::Output, None), endpoint(2, Place::Output, Some(2))],
            ),
        ],
        channels: vec![channel(0, 3, ring(3)), channel(3, 1, ring(1)), channel(1, 2, None)],
        staging: vec![0, 32, 0, 32, 0],
    }
}

#[track_caller]
fn refused(part: &str, damage: impl Fn(&mut Schedule)) {
    let mut bad = good();
    damage(&mut bad);
    assert_ne!(bad, good());
    let error = check(&bad).unwrap_err().to_string();
    assert!(error.contains(part) && !error.contains('\n'), "expected {part:?} in {error:?}");
}

#[test]
fn what_is_right_passes() {
    check(&good()).unwrap();
}

#[test]
fn transfers_have_someone_to_do_them() {
    let nobody = "has nobody to do it, or nothing to do";
    refused(nobody, |s| s.transfers[0].at = 4);
    refused(nobody, |s| s.transfers[0].at = usize::MAX);
    refused(nobody, |s| s.transfers[0].sources.clear());
    refused(nobody, |s| s.transfers[0].bytes = 0);
    let unknown = "names a node or a channel that there is not";
    refused(unknown, |s| s.transfers[0].sources[0].node = 5);
    refused(unknown, |s| s.transfers[0].targets[0].channel = Some(3));
    refused(unknown, |s| s.transfers[2].targets[0].node = usize::MAX);
}

#[test]
fn channels_fit_their_transfers() {
    for (channel, transfer) in [(0, 0), (1, 1), (2, 2)] {
        let part = format!("channel {channel} does not fit transfer {transfer}");
        refused(&part, |s| s.channels[channel].from = 2);
        refused(&part, |s| s.channels[channel].chunks = 5);
        refused(&part, |s| s.channels[channel].chunks = 3);
    }
    refused("channel 0 does not fit transfer 1", |s| s.channels[0].to = 2);
    // Nobody fills it; two do.
    let unused = |chunks, ring| Channel { from: 0, to: 1, chunks, ring, path: Vec::new(), tree: 0 };
    refused("channel 3 has 0 writers and 0 readers", |s| s.channels.push(unused(0, None)));
    refused("channel 2 has 2 writers and 0 readers", |s| s.transfers[0].notifies.push(2));
    // A ring that nobody empties.
    refused("channel 3 has 1 writers and 0 readers", |s| {
        s.channels.push(unused(4, Some(Ring { node: 2, at: 0 })));
        s.staging[2] = 32;
        s.transfers[0].notifies.push(3);
    });
}

#[test]
fn rings_are_their_channels_own_and_apart() {
    let foreign = "uses a ring that is not its channel's";
    refused(foreign, |s| s.transfers[0].targets[0].place = Place::Ring(1));
    refused(foreign, |s| s.transfers[1].sources[0].node = 2);
    refused(foreign, |s| s.transfers[1].sources[0].channel = None);
    refused(foreign, |s| s.channels[0].ring = None);
    refused("the rings of node 3 overlap or leave", |s| s.staging[3] = 31);
    refused("the rings of node 3 overlap or leave", |s| s.channels[0].ring = Some(Ring { node: 3, at: 1 }));
    refused("the rings of node 3 take", |s| {
        s.channels[0].ring = Some(Ring { node: 3, at: MAX_STAGING });
        s.staging[3] = MAX_STAGING + 32;
    });
}

#[test]
fn relays_only_forward() {
    let foreign = "uses a buffer of a relay";
    refused(foreign, |s| s.transfers[0].targets.push(endpoint(3, Place::Output, None)));
    refused(foreign, |s| s.transfers[0].sources[0].node = 3);
    refused(foreign, |s| s.transfers[0].sources[0].node = 4);
    refused("is a relay's, and does more than forward", |s| {
        s.transfers[1].targets.push(endpoint(2, Place::Output, None))
    });
    refused("is a relay's, and does more than forward", |s| {
        let again = s.transfers[1].sources[0];
        s.transfers[1].sources.push(again);
    });
}

#[test]
fn data_is_there_before_it_is_read_and_stays_until_then() {
    refused("is read before it is there", |s| {
        // From the output of node 1, without waiting for it.
        s.transfers.insert(0, Transfer { sources: vec![endpoint(1, Place::Output, None)], ..s.transfers[2].clone() });
        s.transfers[0].targets.remove(0);
        s.transfers[3].targets.pop();
    });
    refused("an input of node 2 is written", |s| s.transfers[2].targets[1].place = Place::Input);
    refused("output 0 of node 1 is written twice", |s| {
        s.transfers[2].targets.push(endpoint(1, Place::Output, None));
    });
    refused("output 0 of node 0 is written and should not be", |s| {
        s.transfers[2].targets.push(endpoint(0, Place::Output, None));
    });
    refused("is never written", |s| s.transfers[2].targets = s.transfers[2].targets.split_off(1));
    refused("is never written", |s| s.transfers[2].targets[0].at = 16);
    refused("is never written", |s| s.call.part = 80);
    refused("holds", |s| s.transfers[0].sources[0].at = 16);
    refused("holds", |s| {
        let again = s.transfers[0].sources[0];
        s.transfers[0].sources.push(again);
    });
    refused("is past the end", |s| s.call.part = 56);
    // Each waits for what the other fills.
    refused("deadlock: node", |s| {
        s.transfers[0].sources[0].channel = Some(2);
        s.channels[2].to = 0;
    });
}

/// Chunks are taken as long as they were given.
#[test]
fn chunks_have_one_length() {
    refused("chunk 3 of channel 0 is read and not there, or of another length", |s| s.transfers[1].bytes = 56);
    refused("output 48 of node 1 is read before it is there", |s| {
        s.transfers[2].targets = vec![endpoint(1, Place::Output, Some(2))];
        let from = vec![endpoint(1, Place::Output, Some(2))];
        let targets = vec![endpoint(2, Place::Output, None)];
        s.channels[2].to = 2;
        s.transfers.push(Transfer { at: 2, sources: from, targets, notifies: Vec::new(), bytes: 56 });
    });
}

/// Where input and output are one buffer, nobody may need the input any more: here the sums of two nodes, which read both inputs.
#[test]
fn inputs_stay_until_they_are_read() {
    let sum = |at| Transfer {
        at,
        sources: vec![endpoint(0, Place::Input, None), endpoint(1, Place::Input, None)],
        targets: vec![endpoint(at, Place::Output, None)],
        notifies: Vec::new(),
        bytes: 64,
    };
    let schedule = |in_place| Schedule {
        call: Call { operation: Operation::AllReduce, root: 0, part: 64, unit: 4, in_place },
        pes: 2,
        helpers: 0,
        transfers: vec![sum(0), sum(1)],
        channels: Vec::new(),
        staging: vec![0; 3],
        ..good()
    };
    check(&schedule(false)).unwrap();
    let error = check(&schedule(true)).unwrap_err().to_string();
    assert!(error.contains("is overwritten before it is read"), "{error}");
}

/// What goes well in one order and not in another is wrong: here node 1 passes on its output without waiting for it, after it in the list.
#[test]
fn every_order_has_to_go_well() {
    refused("output 0 of node 1 is read before it is there", |s| {
        s.slots = 4;
        s.staging = vec![0, 64, 0, 64, 0];
        s.transfers[2].targets.pop();
        s.channels.pop();
        let (sources, targets) = (vec![endpoint(1, Place::Output, None)], vec![endpoint(2, Place::Output, None)]);
        s.transfers.push(Transfer { at: 1, sources, targets, notifies: Vec::new(), bytes: 64 });
    });
}

#[test]
fn channels_end_at_their_chunks() {
    refused("channel 3 ends at 4 of 5 chunks", |s| {
        s.channels.push(Channel { from: 0, to: 2, chunks: 5, ring: None, path: Vec::new(), tree: 0 });
        s.transfers[0].notifies.push(3);
    });
}

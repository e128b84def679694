//! Interleavings of the protocols of the executor, with every order of memory that C++ allows. Each model has a twin that must fail. Those of
//! one-sided operations are in src/sim/model.rs.

mod modelled;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use modelled::{only, until, Modelled};
use std::cell::RefCell;
use tandem_fabric::exec::mail::Layout;
use tandem_fabric::exec::protocol::{has_room, is_there, notify, post, posted, turn, whole, Word};
use tandem_fabric::exec::sim::{Bound, Bytes};
use tandem_fabric::exec::worker::{Words, Worker};
use tandem_fabric::exec::{messages, Call};
use tandem_fabric::plan::Operation;

struct Ring<const ORDERED: bool> {
    slots: Vec<UnsafeCell<u64>>,
    there: Modelled<ORDERED>,
    read: Modelled<ORDERED>,
}

impl<const ORDERED: bool> Ring<ORDERED> {
    fn new(slots: usize) -> Arc<Self> {
        let slots = (0..slots).map(|_| UnsafeCell::new(u64::MAX)).collect();
        Arc::new(Self { slots, there: Modelled::default(), read: Modelled::default() })
    }

    /// loom fails where two threads are in a slot at once, or where no order says who comes first.
    fn fill(&self, c: u64, value: u64) {
        until(|| has_room(&self.read, c, self.slots.len() as u64));
        // SAFETY: the protocol gives the slot to this thread alone, which is what loom looks at.
        self.slots[c as usize % self.slots.len()].with_mut(|slot| unsafe { *slot = value });
        notify(&self.there, c);
    }

    fn empty(&self, c: u64) -> u64 {
        until(|| is_there(&self.there, c));
        // SAFETY: as above.
        let value = self.slots[c as usize % self.slots.len()].with(|slot| unsafe { *slot });
        notify(&self.read, c);
        value
    }
}

#[test]
fn a_ring_between_two() {
    fn run<const ORDERED: bool>(slots: usize) {
        let ring = Ring::<ORDERED>::new(slots);
        let filled = ring.clone();
        let writer = thread::spawn(move || (0..3).for_each(|c| filled.fill(c, 10 + c)));
        for c in 0..3 {
            assert_eq!(ring.empty(c), 10 + c);
        }
        writer.join().unwrap();
    }
    for slots in [1, 2] {
        only(None, move || run::<true>(slots), move || run::<false>(slots));
    }
}

/// What a relay passes on is seen whole at the end.
#[test]
fn a_relay_between_two_rings() {
    fn run<const ORDERED: bool>() {
        let (first, second) = (Ring::<ORDERED>::new(1), Ring::<ORDERED>::new(1));
        let (from, to) = (first.clone(), second.clone());
        let relay = thread::spawn(move || to.fill(0, from.empty(0)));
        first.fill(0, 10);
        assert_eq!(second.empty(0), 10);
        relay.join().unwrap();
    }
    only(None, run::<true>, run::<false>);
}

/// What a PE sees: words that all use, and buffers of its own, the input from byte 0 on and the output from [`OUTPUT`] on.
struct View {
    words: Arc<Vec<Modelled<true>>>,
    own: RefCell<[u8; 32]>,
}

const OUTPUT: u64 = 16;
const WORDS: u64 = 1 << 60;

impl Bytes for View {
    fn read(&self, from: u64, to: &mut [u8]) {
        to.copy_from_slice(&self.own.borrow()[from as usize..][..to.len()]);
    }
    fn write(&self, to: u64, from: &[u8]) {
        self.own.borrow_mut()[to as usize..][..from.len()].copy_from_slice(from);
    }
}

impl Words for View {
    type Word = Modelled<true>;
    fn words(&self, at: u64, count: u64, mut f: impl FnMut(u64, &Modelled<true>)) {
        let first = (at - WORDS) / 8;
        (0..count).for_each(|i| f(i, &self.words[(first + i) as usize]));
    }
}

/// Three rounds of an operation between two PEs, 8 bytes each, by the code of the sim and its table: neither sees a word of another round,
/// whatever order the stores have. A sender that was told at first that all was read would overtake the receiver.
fn mailed(operation: Operation, told: u64) {
    const ROUNDS: u64 = 3;
    let call = Call { operation, root: 0, part: 8, unit: 8, in_place: false };
    let schedule = messages(&call, 2, 1).unwrap();
    let layout = Layout::new(&schedule, 1).unwrap();
    let bound = Bound {
        schedule: schedule.into(),
        numbers: None,
        pes: vec![0, 1, 2],
        input: vec![0; 3],
        output: vec![OUTPUT; 3],
        staging: Vec::new(),
    };
    let base = [0, 1].map(|pe| WORDS + 8 * (pe * layout.words) as u64);
    let words: Arc<Vec<_>> = Arc::new((0..2 * layout.words).map(|_| Modelled::default()).collect());
    for read in [0, 1].map(|pe| pe * layout.words + layout.consumed) {
        words[read..][..bound.schedule.channels.len()].iter().for_each(|word| word.store_relaxed(told));
    }
    let value = |pe: u64, round: u64| (1 + pe + 10 * round) << 32 | (2 + pe + 10 * round);
    let side = move |pe: usize, own: Vec<u64>, rows: usize, words| {
        let view = View { words, own: RefCell::new([0; 32]) };
        for round in 1..=ROUNDS {
            view.write(0, &value(pe as u64, round).to_le_bytes());
            let mut worker = Worker::new(own.clone(), rows, round, None);
            while !worker.is_done() {
                if let Err(missing) = worker.step(&view, 1) {
                    assert!(missing.seen <= missing.wanted, "overtaken");
                    thread::yield_now();
                }
            }
            let found = [0, 8].map(|i| {
                let mut bytes = [0; 8];
                view.read(OUTPUT + i, &mut bytes);
                u64::from_le_bytes(bytes)
            });
            match operation {
                Operation::AllGather => assert_eq!(found, [value(0, round), value(1, round)]),
                _ => assert!(pe == 0 || found[0] == value(0, round)),
            }
        }
    };
    let [(mine, rows), (theirs, their_rows)] = [0, 1].map(|pe| layout.own(&bound, pe, &base));
    let other = words.clone();
    let peer = thread::spawn(move || side(1, theirs, their_rows, other));
    side(0, mine, rows, words);
    peer.join().unwrap();
}

/// Who needs the other's messages is never two rounds ahead; so the twin sends one way.
#[test]
fn low_latency_messages() {
    only(Some(2), || mailed(Operation::AllGather, 0), || mailed(Operation::Send, 1000));
}

#[test]
fn low_latency_messages_one_way() {
    only(Some(2), || mailed(Operation::Send, 0), || mailed(Operation::Send, 1000));
}

/// Collectives inside kernels, between two PEs: in each round everyone sends to everyone, into one of two boxes in turns, and then waits for
/// all. `boxes` of one are too few; and so are two where PE 1 does not answer, `answers` being false, and PE 0 runs ahead.
fn boxes<const ORDERED: bool>(boxes: u64, answers: bool) {
    const ROUNDS: u64 = 3;
    type Box<const ORDERED: bool> = [Modelled<ORDERED>; 2];
    let made = || -> Arc<Vec<Box<ORDERED>>> { Arc::new((0..2).map(|_| Default::default()).collect()) };
    // Those that each PE has for the other.
    let all = [made(), made()];
    let side = move |me: usize, mine: &[Box<ORDERED>], theirs: &[Box<ORDERED>]| {
        let value = |pe: usize, round: u64| 10 * round + pe as u64 + 1;
        for round in 1..=ROUNDS {
            let place = if boxes == 2 { turn(round) as usize } else { 0 };
            if me == 0 || answers {
                post(&theirs[place][0], &theirs[place][1], value(me, round), round);
            }
            if me == 0 && !answers {
                continue;
            }
            let found = loop {
                match posted(&mine[place][0], &mine[place][1], round) {
                    Ok(found) => break found,
                    Err(seen) => assert!(seen < round, "overtaken"),
                }
                thread::yield_now();
            };
            assert_eq!(found, value(1 - me, round));
        }
    };
    let other = all.clone();
    let peer = thread::spawn(move || side(1, &other[1], &other[0]));
    side(0, &all[0], &all[1]);
    peer.join().unwrap();
}

#[test]
fn boxes_of_collectives_inside_kernels() {
    only(Some(3), || boxes::<true>(2, true), || boxes::<false>(2, true));
}

#[test]
fn one_box_would_be_too_few() {
    only(Some(3), || boxes::<true>(2, true), || boxes::<true>(1, true));
}

#[test]
fn two_boxes_are_too_few_without_answers() {
    only(Some(3), || boxes::<true>(2, true), || boxes::<true>(2, false));
}

/// The mailbox of a resident kernel, which there is on GPUs alone: who takes commands never takes half a command, whether the host has written
/// them or the first block has passed them on; and what the host wrote before is seen.
#[test]
fn commands_of_a_mailbox() {
    #[derive(Default)]
    struct Mailbox<const ORDERED: bool> {
        data: Modelled<ORDERED>,
        words: [Modelled<ORDERED>; 2],
        done: Modelled<ORDERED>,
    }
    fn run<const ORDERED: bool>(is_host: bool, looked_at: usize) {
        let mailbox = Arc::new(Mailbox::<ORDERED>::default());
        let other = mailbox.clone();
        let taker = thread::spawn(move || {
            for last in 0..2 {
                let number = loop {
                    match whole(&other.words[..looked_at], last) {
                        Some(number) => break number,
                        None => thread::yield_now(),
                    }
                };
                let halves = [0, 1].map(|i| other.words[i].load_relaxed() as u32);
                assert_eq!((number, halves), (last + 1, [10 + number, 20 + number]));
                assert!(!is_host || other.data.load_relaxed() == u64::from(number));
                other.done.store_release(number.into());
            }
        });
        for number in 1..=2u32 {
            mailbox.data.store_relaxed(number.into());
            for (word, half) in mailbox.words.iter().zip([10 + number, 20 + number]) {
                let value = u64::from(half) | u64::from(number) << 32;
                if is_host {
                    word.store_release(value)
                } else {
                    word.store_relaxed(value)
                }
            }
            until(|| mailbox.done.load_acquire() == u64::from(number));
        }
        taker.join().unwrap();
    }
    only(None, || run::<true>(true, 2), || run::<false>(true, 2));
    only(None, || run::<true>(false, 2), || run::<true>(false, 1));
}

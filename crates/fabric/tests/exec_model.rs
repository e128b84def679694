//! Every interleaving, and every order of memory that C++ allows, of the protocols of the executor and of one-sided operations.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;
use tandem_fabric::exec::protocol::{has_room, is_there, may_send, receive, send, tell, whole, Word, HALVES};

#[derive(Default)]
struct Modelled(AtomicU64);

impl Word for Modelled {
    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
    fn store_release(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }
    fn load_relaxed(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn store_relaxed(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

struct Ring {
    slots: Vec<UnsafeCell<u64>>,
    there: Modelled,
    read: Modelled,
}

impl Ring {
    fn new(slots: usize) -> Arc<Self> {
        let slots = (0..slots).map(|_| UnsafeCell::new(u64::MAX)).collect();
        Arc::new(Self { slots, there: Modelled::default(), read: Modelled::default() })
    }

    /// loom fails where two threads are in a slot at once, or where no order says who comes first.
    fn fill(&self, c: u64, value: u64) {
        until(|| has_room(&self.read, c, self.slots.len() as u64));
        // SAFETY: the protocol gives the slot to this thread alone, which is what loom looks at.
        self.slots[c as usize % self.slots.len()].with_mut(|slot| unsafe { *slot = value });
        tell(&self.there, c);
    }

    fn empty(&self, c: u64) -> u64 {
        until(|| is_there(&self.there, c));
        // SAFETY: as above.
        let value = self.slots[c as usize % self.slots.len()].with(|slot| unsafe { *slot });
        tell(&self.read, c);
        value
    }
}

#[test]
fn a_ring_between_two() {
    for slots in [1, 2] {
        loom::model(move || {
            let ring = Ring::new(slots);
            let filled = ring.clone();
            let writer = thread::spawn(move || (0..3).for_each(|c| filled.fill(c, 10 + c)));
            for c in 0..3 {
                assert_eq!(ring.empty(c), 10 + c);
            }
            writer.join().unwrap();
        });
    }
}

/// What a relay passes on is seen whole at the end.
#[test]
fn a_relay_between_two_rings() {
    loom::model(|| {
        let (first, second) = (Ring::new(1), Ring::new(1));
        let (from, to) = (first.clone(), second.clone());
        let relay = thread::spawn(move || to.fill(0, from.empty(0)));
        first.fill(0, 10);
        assert_eq!(second.empty(0), 10);
        relay.join().unwrap();
    });
}

/// Two PEs send each other two words a round; neither sees a word of another round, whatever order the stores have.
#[test]
fn low_latency_messages() {
    struct Mailbox {
        words: [[Modelled; 2]; HALVES as usize],
        read: Modelled,
    }
    fn mailbox() -> Mailbox {
        Mailbox { words: Default::default(), read: Modelled::default() }
    }
    fn side(out: &Mailbox, inward: &Mailbox, mine: u32, theirs: u32, rounds: u64) {
        for round in 1..=rounds {
            until(|| may_send(&out.read, round));
            let half = (round % HALVES) as usize;
            for (i, word) in out.words[half].iter().enumerate() {
                send(word, mine + 10 * round as u32 + i as u32, round);
            }
            for (i, word) in inward.words[half].iter().enumerate() {
                let value = loop {
                    match receive(word, round) {
                        Some(value) => break value,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(value, theirs + 10 * round as u32 + i as u32);
            }
            tell(&inward.read, round - 1);
        }
    }
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let boxes = Arc::new((mailbox(), mailbox()));
        let other = boxes.clone();
        let peer = thread::spawn(move || side(&other.1, &other.0, 2000, 1000, 3));
        side(&boxes.0, &boxes.1, 1000, 2000, 3);
        peer.join().unwrap();
    });
}

/// The mailbox of a resident kernel: who takes commands never takes half a command, whether the host has written them or the first
/// block has passed them on; and what the host wrote before is seen.
#[test]
fn commands_of_a_mailbox() {
    #[derive(Default)]
    struct Mailbox {
        data: Modelled,
        words: [Modelled; 2],
        done: Modelled,
    }
    fn run(is_host: bool) {
        let mailbox = Arc::new(Mailbox::default());
        let other = mailbox.clone();
        let taker = thread::spawn(move || {
            for last in 0..2 {
                let number = loop {
                    match whole(&other.words, last) {
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
    loom::model(|| run(true));
    loom::model(|| run(false));
}

/// Messages one way: without the receiver's word the sender would overtake it.
#[test]
fn low_latency_messages_one_way() {
    fn run(waits: bool) {
        let shared = Arc::new(([Modelled::default(), Modelled::default()], Modelled::default()));
        let other = shared.clone();
        let sender = thread::spawn(move || {
            for round in 1..=3 {
                if waits {
                    until(|| may_send(&other.1, round));
                }
                send(&other.0[(round % HALVES) as usize], round as u32, round);
            }
        });
        for round in 1..=3 {
            let word = &shared.0[(round % HALVES) as usize];
            loop {
                match receive(word, round) {
                    Some(value) => break assert_eq!(value, round as u32),
                    // Overtaken: the word of this round will never come.
                    None => assert!(waits || word.load_relaxed() >> 32 <= round + 1, "overtaken"),
                }
                thread::yield_now();
            }
            tell(&shared.1, round - 1);
        }
        sender.join().unwrap();
    }
    loom::model(|| run(true));
    let overtaken = std::panic::catch_unwind(|| loom::model(|| run(false)));
    assert!(overtaken.is_err(), "the model does not notice a sender that does not wait");
}

/// put, fence, signal; wait, read. Without the fence the model finds the old value.
#[test]
fn signal_after_data() {
    fn run(has_fence: bool) {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let other = shared.clone();
        let writer = thread::spawn(move || {
            other.0.store(42, Ordering::Relaxed);
            if has_fence {
                fence(Ordering::Release);
            }
            other.1.store(1, Ordering::Relaxed);
        });
        until(|| shared.1.load(Ordering::Acquire) == 1);
        assert_eq!(shared.0.load(Ordering::Relaxed), 42);
        writer.join().unwrap();
    }
    loom::model(|| run(true));
    assert!(std::panic::catch_unwind(|| loom::model(|| run(false))).is_err(), "the model does not notice");
}

/// put, quiet, read of the other's word, on both sides: at least one sees the other (store buffering).
#[test]
fn quiet_orders_reads_after_writes() {
    loom::model(|| {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let other = shared.clone();
        let peer = thread::spawn(move || {
            other.0.store(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            other.1.load(Ordering::Relaxed)
        });
        shared.1.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let seen = shared.0.load(Ordering::Relaxed);
        assert!(seen == 1 || peer.join().unwrap() == 1);
    });
}

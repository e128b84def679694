//! Every interleaving, and every order of memory that C++ allows, of what pretend PEs do for puts, signals and quiet. Each model has a twin
//! that must fail, the same code on words without order.

#[path = "../../tests/modelled/mod.rs"]
mod modelled;

use super::access::access;
use super::memory::Memory;
use super::records;
use crate::exec::protocol::Word;
use crate::fault::Record;
use crate::ffi;
use crate::op::Op;
use loom::thread;
use modelled::{only, until, Modelled};
use std::sync::Arc;

const DATA: u64 = 1 << 20;
const WORDS: u64 = 1 << 21;

fn memory<const ORDERED: bool>() -> Arc<Memory<Modelled<ORDERED>>> {
    let memory = Memory::default();
    [DATA, WORDS].into_iter().for_each(|at| memory.map(at, 8).unwrap());
    Arc::new(memory)
}

fn put(memory: &Memory<impl Word + Default>, to: u64, value: u64) {
    let args = ffi::tandem_fabric_store_args { to, value: [value, 0], bytes: 8 };
    access(memory, &Op::Store(args)).unwrap();
}

fn signal(memory: &Memory<impl Word + Default>, word: u64, value: u64) {
    let (op, kind) = (ffi::TANDEM_AMO_SET, ffi::TANDEM_WORD_U64);
    let args = ffi::tandem_fabric_atomic_args { word, value, expected: 0, fetched: 0, op, kind };
    access(memory, &Op::Atomic(args)).unwrap();
}

fn get(memory: &Memory<impl Word + Default>, from: u64) -> u64 {
    let mut bytes = [0; 8];
    memory.read(from, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// put, then what `tell` does; a wait, a read: who sees what was told sees the data.
fn told<const ORDERED: bool>(tell: impl Fn(&Memory<Modelled<ORDERED>>)) {
    let memory = memory::<ORDERED>();
    let other = memory.clone();
    // Not the other way round: loom shows a thread that has waited no values that it has made before.
    let reader = thread::spawn(move || {
        let word = other.word(WORDS, ffi::TANDEM_WORD_U64).unwrap();
        until(|| word.load() == 1);
        assert_eq!(get(&other, DATA), 42);
    });
    put(&memory, DATA, 42);
    tell(&memory);
    reader.join().unwrap();
}

#[test]
fn signal_after_data() {
    only(None, || told::<true>(|memory| signal(memory, WORDS, 1)), || told::<false>(|memory| signal(memory, WORDS, 1)));
}

/// What a fence promises ends every operation of a pretend PE.
#[test]
fn fence_orders_puts() {
    only(None, || told::<true>(|memory| put(memory, WORDS, 1)), || told::<false>(|memory| put(memory, WORDS, 1)));
}

/// put, quiet, read of the other's word, on both sides: at least one sees the other (store buffering).
#[test]
fn quiet_orders_reads_after_writes() {
    fn run<const ORDERED: bool>() {
        let memory = memory::<ORDERED>();
        let other = memory.clone();
        let side = |memory: &Memory<Modelled<ORDERED>>, mine: u64, theirs: u64| {
            put(memory, mine, 1);
            get(memory, theirs)
        };
        let peer = thread::spawn(move || side(&other, DATA, WORDS));
        let seen = side(&memory, WORDS, DATA);
        assert!(peer.join().unwrap() + seen > 0, "neither has seen the other");
    }
    only(None, run::<true>, run::<false>);
}

/// Two write a record in one place, a third reads it: it is whole, and one of the two.
#[test]
fn records_of_faults_are_whole() {
    fn record(of: u32) -> Record {
        let all = u64::from(of) * 0x1_0000_0001;
        Record { what: of, waiter: of, peer: of, place: all, seen: all, wanted: all }
    }
    fn run<const ORDERED: bool>() {
        let words: Arc<[Modelled<ORDERED>; 7]> = Arc::default();
        let writer = |of: u32| {
            let words = words.clone();
            thread::spawn(move || records::put(words.each_ref(), record(of)))
        };
        let writers = [writer(1), writer(2)];
        if let Some(found) = records::get(words.each_ref()) {
            assert!(found == record(1) || found == record(2), "{found:?}");
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert!(records::get(words.each_ref()).is_some(), "neither has written");
    }
    only(Some(3), run::<true>, run::<false>);
}

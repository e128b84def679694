//! Where pretend PEs write down their faults: words in the memory of each, which every process of the team reads.

use super::memory::{Memory, Unmapped, Word};
use crate::exec::protocol;
use crate::fault::Record;
use crate::{ffi, machine};
use std::sync::atomic::Ordering;

/// Words of a record: whether somebody writes it, whether it is there, what and waiter, peer, place, seen, wanted.
const WORDS: usize = machine::RECORD_WORDS as usize;
/// Records by PE.
pub(super) struct Records(Vec<[Word; WORDS]>);

impl Records {
    /// At these addresses, by PE. Those of PEs whose memory is not here (`is_far`) are this process's alone.
    pub(super) fn at(memory: &Memory, places: &[u64], is_far: impl Fn(u64) -> bool) -> Result<Self, Unmapped> {
        let own = Memory::default();
        let one = |&place: &u64| -> Result<[Word; WORDS], Unmapped> {
            let memory = if is_far(place) {
                own.map(place, 8 * WORDS as u64).map_err(|_| Unmapped(place))?;
                &own
            } else {
                memory
            };
            let words = (0..WORDS as u64).map(|i| memory.word(place + 8 * i, ffi::TANDEM_WORD_U64));
            let words: Vec<Word> = words.collect::<Result<_, _>>()?;
            words.try_into().map_err(|_| Unmapped(place))
        };
        Ok(Records(places.iter().map(one).collect::<Result<_, _>>()?))
    }
}

impl machine::Faults for Records {
    fn get(&self, pe: usize) -> Option<Record> {
        get(self.0[pe].each_ref().map(Word::whole))
    }

    fn put(&self, pe: usize, record: Record) {
        put(self.0[pe].each_ref().map(Word::whole), record);
    }
}

/// Writes a record, unless there is one or somebody else writes one. A process that is killed in between leaves none.
pub(super) fn put(words: [&impl protocol::Word; WORDS], record: Record) {
    let Record { what, waiter, peer, place, seen, wanted } = record;
    // Who comes first has it; nothing is read that another has written.
    if words[0].change(Ordering::Relaxed, |_| 1) != 0 {
        return;
    }
    let two = u64::from(what) | u64::from(waiter) << 32;
    for (word, value) in words[2..].iter().zip([two, peer.into(), place, seen, wanted]) {
        word.store_relaxed(value);
    }
    words[1].store_release(1);
}

/// The record, once it is there.
pub(super) fn get(words: [&impl protocol::Word; WORDS]) -> Option<Record> {
    if words[1].load_acquire() == 0 {
        return None;
    }
    let word = |i: usize| words[i].load_relaxed();
    let (two, peer) = (word(2), word(3) as u32);
    Some(Record { what: two as u32, waiter: (two >> 32) as u32, peer, place: word(4), seen: word(5), wanted: word(6) })
}

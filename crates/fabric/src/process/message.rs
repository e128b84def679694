//! What processes tell each other, as bytes.

use super::socket::MOST_BYTES;
use crate::fault::Record;
use std::os::fd::OwnedFd;

/// What a process says in an exchange.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    /// What it is about: the same for all, or they do not do the same.
    pub(crate) text: String,
    /// What only this process says, in words.
    pub(crate) note: String,
    /// What only this process says, in numbers.
    pub(crate) numbers: Vec<u64>,
    /// Memory that it gives to the others.
    pub(crate) memory: Vec<OwnedFd>,
}

/// Numbers that one parcel has room for, beside texts of ordinary length.
pub(crate) const MOST_NUMBERS: usize = 4096;
/// Bytes of a text, behind which it is cut.
const MOST_TEXT: usize = 8 << 10;

/// A message.
#[derive(Debug)]
pub(super) enum Message {
    /// What a process says in the exchange of this number.
    Parcel(u64, Parcel),
    /// It takes part no longer, and all that it did is done.
    Bye,
    /// It takes part in no exchange any more, as it waited in vain.
    GaveUp(String),
    /// A fault of a team, from a process of another node.
    Fault(Told),
}

/// A fault that processes of other nodes are told, which do not see the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    /// Where in the windows the team's state is: each team has its own.
    pub(crate) team: u64,
    /// The PE of the team that had it.
    pub(crate) pe: usize,
    pub(crate) record: Record,
}

const PARCEL: u32 = 1;
const BYE: u32 = 2;
const GAVE_UP: u32 = 3;
const FAULT: u32 = 4;
/// Kind, length of the text, of the note, count of numbers, and the number of the exchange.
const HEAD: usize = 24;

fn cut(text: &str) -> &str {
    let mut end = text.len().min(MOST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn encode(kind: u32, step: u64, text: &str, note: &str, numbers: &[u64]) -> Vec<u8> {
    let (text, note) = (cut(text), cut(note));
    let numbers = &numbers[..numbers.len().min(MOST_NUMBERS)];
    let mut out = Vec::with_capacity(HEAD + text.len() + note.len() + 8 * numbers.len());
    for part in [kind, text.len() as u32, note.len() as u32, numbers.len() as u32] {
        out.extend(part.to_le_bytes());
    }
    out.extend(step.to_le_bytes());
    out.extend(text.as_bytes());
    out.extend(note.as_bytes());
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
    out
}

impl Parcel {
    /// About something.
    pub(crate) fn about(text: impl Into<String>) -> Self {
        Parcel { text: text.into(), ..Parcel::default() }
    }

    /// As bytes, without its memory.
    pub(super) fn encode(&self, step: u64) -> Vec<u8> {
        encode(PARCEL, step, &self.text, &self.note, &self.numbers)
    }
}

pub(super) fn bye() -> Vec<u8> {
    encode(BYE, 0, "", "", &[])
}

pub(super) fn gave_up(reason: &str) -> Vec<u8> {
    encode(GAVE_UP, 0, reason, "", &[])
}

pub(super) fn fault(told: &Told) -> Vec<u8> {
    let Record { what, waiter, peer, place, seen, wanted } = told.record;
    let numbers = [told.pe as u64, what.into(), waiter.into(), peer.into(), place, seen, wanted];
    encode(FAULT, told.team, "", "", &numbers)
}

/// The fault that these numbers are.
fn told(team: u64, numbers: &[u64]) -> Option<Told> {
    let &[pe, what, waiter, peer, place, seen, wanted] = numbers else { return None };
    let small = |number: u64| u32::try_from(number).ok();
    let record = Record { what: small(what)?, waiter: small(waiter)?, peer: small(peer)?, place, seen, wanted };
    let pe = usize::try_from(pe).ok().filter(|&pe| pe < crate::MAX_PES)?;
    Some(Told { team, pe, record })
}

/// The message that the bytes are; `None` where they are none.
pub(super) fn decode(bytes: &[u8], memory: Vec<OwnedFd>) -> Option<Message> {
    let word = |i: usize| -> Option<u32> { Some(u32::from_le_bytes(bytes.get(4 * i..4 * i + 4)?.try_into().ok()?)) };
    let (kind, text, note, numbers) = (word(0)?, word(1)? as usize, word(2)? as usize, word(3)? as usize);
    let step = u64::from_le_bytes(bytes.get(16..HEAD)?.try_into().ok()?);
    if bytes.len() > MOST_BYTES || text > MOST_TEXT || note > MOST_TEXT || numbers > MOST_NUMBERS {
        return None;
    }
    let rest = &bytes[HEAD..];
    if rest.len() != text + note + 8 * numbers || !(memory.is_empty() || kind == PARCEL) {
        return None;
    }
    let string = |from: usize, len: usize| Some(std::str::from_utf8(&rest[from..from + len]).ok()?.to_string());
    let (words, (text, note)) = (&rest[text + note..], (string(0, text)?, string(text, note)?));
    let numbers: Vec<u64> = words.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
    match kind {
        PARCEL => Some(Message::Parcel(step, Parcel { text, note, numbers, memory })),
        BYE => Some(Message::Bye),
        GAVE_UP => Some(Message::GaveUp(text)),
        FAULT => told(step, &numbers).map(Message::Fault),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parcels_come_as_they_went(text in ".{0,200}", note in ".{0,50}", numbers in prop::collection::vec(any::<u64>(), 0..50), step in any::<u64>()) {
            let parcel = Parcel { text: text.clone(), note: note.clone(), numbers: numbers.clone(), memory: Vec::new() };
            let Some(Message::Parcel(at, got)) = decode(&parcel.encode(step), Vec::new()) else { panic!("no parcel") };
            prop_assert_eq!((at, got.text, got.note, got.numbers), (step, text, note, numbers));
        }

        /// Whatever comes, it is a message or none.
        #[test]
        fn nonsense_is_none(mut bytes in prop::collection::vec(any::<u8>(), 0..100), kind in 0u8..6) {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            let _ = decode(&bytes, Vec::new());
        }

        #[test]
        fn faults_come_as_they_went(team: u64, pe in 0..crate::MAX_PES, three: [u32; 3], rest: [u64; 3]) {
            let ([what, waiter, peer], [place, seen, wanted]) = (three, rest);
            let sent = Told { team, pe, record: Record { what, waiter, peer, place, seen, wanted } };
            let bytes = fault(&sent);
            let Some(Message::Fault(got)) = decode(&bytes, Vec::new()) else { panic!("no fault") };
            prop_assert_eq!(got, sent);
            // A PE that no team has.
            let none = decode(&fault(&Told { pe: crate::MAX_PES, ..sent }), Vec::new());
            prop_assert!(none.is_none());
        }

        #[test]
        fn a_message_with_a_wrong_length_is_none(step in any::<u64>(), change in 1usize..20) {
            let bytes = Parcel::about("grow").encode(step);
            prop_assert!(decode(&bytes[..bytes.len() - change.min(bytes.len())], Vec::new()).is_none());
            prop_assert!(decode(&[&bytes[..], &vec![0; change]].concat(), Vec::new()).is_none());
        }
    }

    #[test]
    fn the_longest_parcel_is_a_message() {
        let long = Parcel {
            text: "é".repeat(1 << 16),
            note: "x".repeat(1 << 16),
            numbers: vec![7; 1 << 16],
            memory: Vec::new(),
        };
        let bytes = long.encode(1);
        assert!(bytes.len() <= MOST_BYTES);
        let Some(Message::Parcel(1, got)) = decode(&bytes, Vec::new()) else { panic!("no parcel") };
        assert_eq!((got.text.len(), got.note.len(), got.numbers.len()), (MOST_TEXT, MOST_TEXT, MOST_NUMBERS));
        assert!(matches!(decode(&bye(), Vec::new()), Some(Message::Bye)));
        assert!(matches!(decode(&gave_up("why"), Vec::new()), Some(Message::GaveUp(why)) if why == "why"));
    }
}

//! What is known of each word of the module's memory: whether it depends on the inputs, and of which value it is a part.

use super::{Refused, Value};

/// Bytes of a word.
pub(super) const WORD: usize = 4;

/// Words of an element: its number, its flags, and eight of limbs.
pub(super) const ELEMENT: usize = 10;
pub(super) const LIMBS: usize = 2;

/// What a word holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// What every run has whose guards hold.
    Clean,
    /// This word of an element that has this value, in whatever form.
    Element(Value, u8),
    /// This word of the value's limbs, not in Montgomery's form.
    Limb(Value, u8),
    /// Something that depends on the inputs.
    Opaque,
}

/// A tag for each word. Pages that hold none but clean ones take no memory.
pub(super) struct Shadow {
    tags: Vec<u64>,
}

const OPAQUE: u64 = u64::MAX;
const IS_LIMB: u64 = 1 << 4;

/// 0 is clean.
fn packed(tag: Tag) -> u64 {
    let value = |value| match value {
        Value::Input(i) => u64::from(i) << 2 | 1,
        Value::Constant(i) => u64::from(i) << 2 | 2,
        Value::Result(i) => u64::from(i) << 2 | 3,
    };
    match tag {
        Tag::Clean => 0,
        Tag::Opaque => OPAQUE,
        Tag::Element(of, word) => value(of) << 5 | u64::from(word),
        Tag::Limb(of, word) => value(of) << 5 | IS_LIMB | u64::from(word),
    }
}

fn unpacked(tag: u64) -> Tag {
    let index = (tag >> 7) as u32;
    let value = match tag >> 5 & 3 {
        1 => Value::Input(index),
        2 => Value::Constant(index),
        3 => Value::Result(index),
        _ => return Tag::Clean,
    };
    let word = (tag & 15) as u8;
    match tag {
        OPAQUE => Tag::Opaque,
        _ if tag & IS_LIMB != 0 => Tag::Limb(value, word),
        _ => Tag::Element(value, word),
    }
}

impl Shadow {
    /// Of a memory of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { tags: vec![0; bytes.div_ceil(WORD)] }
    }

    /// Of a memory that has grown.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.tags.resize(bytes.div_ceil(WORD).max(self.tags.len()), 0);
    }

    /// Bytes that a shadow takes of a memory of `bytes`.
    pub(super) fn bytes_of(bytes: usize) -> usize {
        bytes.div_ceil(WORD).saturating_mul(size_of::<u64>())
    }

    pub(super) fn get(&self, word: usize) -> Tag {
        self.tags.get(word).map_or(Tag::Clean, |&tag| unpacked(tag))
    }

    pub(super) fn set(&mut self, word: usize, tag: Tag) {
        if let Some(place) = self.tags.get_mut(word) {
            *place = packed(tag);
        }
    }

    pub(super) fn fill(&mut self, words: std::ops::Range<usize>, tag: Tag) {
        words.for_each(|word| self.set(word, tag));
    }

    /// Whether no byte in a range depends on the inputs.
    pub(super) fn are_clean(&self, at: usize, bytes: usize) -> bool {
        let end = (at + bytes).div_ceil(WORD).min(self.tags.len());
        self.tags.get(at / WORD..end).is_none_or(|tags| tags.iter().all(|&tag| tag == 0))
    }

    /// Bytes are written that do not depend on the inputs. A word of which others stay is not known any more.
    pub(super) fn clean(&mut self, at: usize, bytes: usize) {
        for word in at / WORD..(at + bytes).div_ceil(WORD) {
            let is_whole = at <= word * WORD && (word + 1) * WORD <= at + bytes;
            if is_whole {
                self.set(word, Tag::Clean);
            } else if self.get(word) != Tag::Clean {
                self.set(word, Tag::Opaque);
            }
        }
    }

    /// Bytes are moved to another place, with what is known of them.
    pub(super) fn copy(&mut self, to: usize, from: usize, bytes: usize) -> Result<(), Refused> {
        if self.are_clean(from, bytes) {
            self.clean(to, bytes);
            return Ok(());
        }
        if (to % WORD, from % WORD, bytes % WORD) != (0, 0, 0) {
            return Err(Refused("it moves parts of a value to a place that is no word"));
        }
        // Forward and word by word, what overlaps is repeated.
        if to > from && to < from + bytes {
            return Err(Refused("it moves a value over itself"));
        }
        let (from, words) = (from / WORD, bytes / WORD);
        if (to / WORD).max(from) + words > self.tags.len() {
            return Err(Refused("its memory has grown"));
        }
        self.tags.copy_within(from..from + words, to / WORD);
        Ok(())
    }

    /// The element at a word has this value, in a form that depends on the inputs.
    pub(super) fn set_element(&mut self, word: usize, value: Value) -> Result<(), Refused> {
        let first = packed(Tag::Element(value, 0));
        // Where an element goes beyond the end of 4 GiB, addresses wrap.
        let tags = self.tags.get_mut(word..word + ELEMENT).ok_or(Refused("an element lies outside of the memory"))?;
        for (i, tag) in tags.iter_mut().enumerate() {
            *tag = first | i as u64;
        }
        Ok(())
    }

    pub(super) fn set_limbs(&mut self, word: usize, value: Value) {
        (0..8).for_each(|i| self.set(word + i, Tag::Limb(value, i as u8)));
    }

    /// The value of which these are the eight words of limbs.
    pub(super) fn limbs(&self, word: usize) -> Option<Value> {
        let Tag::Limb(value, 0) = self.get(word) else { return None };
        (1..8).all(|i| self.get(word + i) == Tag::Limb(value, i as u8)).then_some(value)
    }

    /// The value that the whole element has.
    pub(super) fn element(&self, word: usize) -> Option<Value> {
        let tags = self.tags.get(word..word + ELEMENT)?;
        let Tag::Element(value, 0) = unpacked(tags[0]) else { return None };
        tags.iter().enumerate().all(|(i, &tag)| tag == tags[0] | i as u64).then_some(value)
    }

    /// How many words there are tags for.
    pub(super) fn len(&self) -> usize {
        self.tags.len()
    }
}

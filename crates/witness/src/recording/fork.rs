//! Both ways of a branch.
//!
//! An `if` whose two ways do no more than calculate is run both ways, and each element that they leave is chosen by the condition:
//!
//! ```text
//! c ? a : b  =  b + c (a - b)        c is 0 or 1
//! ```
//!
//! So it needs no guard, and says nothing of the inputs. circomlib's `IsZero`, `in != 0 ? 1 / in : 0`, becomes `(in != 0) (1 / in)`.

use super::operation::Operation;
use super::recorder::{Recorder, ELEMENT_BYTES};
use super::shadow::{Tag, ELEMENT, WORD};
use super::{Refused, Value};

/// Elements that both ways together may touch.
pub(super) const ELEMENTS_MAX: usize = 64;

/// A branch that is being run.
pub(super) enum Fork {
    /// One way is that of every run whose guards hold: the first, or the second.
    One(bool),
    Both {
        condition: Value,
        /// Whether the first way is this run's.
        is_first: bool,
        /// Whether the second is being run.
        is_second: bool,
        touched: Vec<Touched>,
    },
}

/// An element that a way may have changed.
pub(super) struct Touched {
    at: usize,
    before: Element,
    /// As the first way has left it; `None` where that did not touch it.
    first: Option<Element>,
}

#[derive(Clone)]
struct Element {
    bytes: [u8; ELEMENT_BYTES],
    tags: [Tag; ELEMENT],
    /// `None` where it is made of parts.
    value: Option<Value>,
}

impl Recorder {
    /// The module branches on the element there. Returns whether the first way is to be run now.
    pub(crate) fn fork(&mut self, at: u32, is_true: bool, memory: &[u8]) -> Result<bool, Refused> {
        let condition = self.value(memory, at as usize)?;
        let (fork, runs) = match self.decided(condition, is_true) {
            Some(is_first) => (Fork::One(is_first), is_first),
            None => (Fork::Both { condition, is_first: is_true, is_second: false, touched: Vec::new() }, true),
        };
        self.fork = Some(fork);
        Ok(runs)
    }

    /// Elements that are about to be used or written.
    pub(crate) fn touch(&mut self, elements: &[u32], memory: &[u8]) -> Result<(), Refused> {
        for &at in elements {
            self.save_element(memory, at)?;
            let Some(Fork::Both { touched, .. }) = &self.fork else { continue };
            let at = at as usize;
            if touched.iter().any(|touched| touched.at == at) {
                continue;
            }
            if !at.is_multiple_of(WORD) {
                return Err(Refused("a branch has an element at no word"));
            }
            if touched.iter().any(|touched| touched.at.abs_diff(at) < ELEMENT_BYTES) {
                return Err(Refused("a branch has elements that overlap"));
            }
            if touched.len() >= ELEMENTS_MAX {
                return Err(Refused("a branch has too many elements"));
            }
            let before = self.element(memory, at)?;
            if let Some(Fork::Both { touched, .. }) = &mut self.fork {
                touched.push(Touched { at, before, first: None });
            }
        }
        Ok(())
    }

    /// The first way is at its end. Returns whether the second is to be run, from where the first began.
    pub(crate) fn turn(&mut self, memory: &mut [u8]) -> Result<bool, Refused> {
        match self.fork.take() {
            Some(Fork::Both { condition, is_first, mut touched, .. }) => {
                for Touched { at, before, first } in &mut touched {
                    *first = Some(self.element(memory, *at)?);
                    self.put_back(memory, *at, before)?;
                }
                self.fork = Some(Fork::Both { condition, is_first, is_second: true, touched });
                Ok(true)
            }
            Some(Fork::One(is_first)) => Ok(!is_first),
            None => Err(Refused("a branch ends that has not begun")),
        }
    }

    /// Both ways are at their end: the memory is as this run's has left it, and values are chosen.
    pub(crate) fn join(&mut self, memory: &mut [u8]) -> Result<(), Refused> {
        let Some(Fork::Both { condition, is_first, touched, .. }) = self.fork.take() else { return Ok(()) };
        for Touched { at, before, first } in touched {
            let (first, second) = (first.unwrap_or(before), self.element(memory, at)?);
            if is_first {
                self.put_back(memory, at, &first)?;
            }
            if first.bytes == second.bytes && first.tags == second.tags {
                continue;
            }
            match (first.value, second.value) {
                (Some(first), Some(second)) => {
                    let value = self.chosen(condition, first, second)?;
                    self.shadow.set_element(at / WORD, value)?;
                }
                _ => self.shadow.fill(at / WORD..at / WORD + ELEMENT, Tag::Opaque),
            }
        }
        Ok(())
    }

    /// The first value where the condition is true, else the second.
    pub(super) fn chosen(&mut self, condition: Value, first: Value, second: Value) -> Result<Value, Refused> {
        use Operation::{Add, Mul, Neq, Sub};
        if first == second {
            return Ok(first);
        }
        let zero = self.constant([0; 4])?;
        let truth = if self.is_bit(condition) { condition } else { self.compute(Neq, condition, zero)? };
        let apart = self.compute(Sub, first, second)?;
        let more = self.compute(Mul, truth, apart)?;
        self.compute(Add, second, more)
    }

    fn element(&mut self, memory: &[u8], at: usize) -> Result<Element, Refused> {
        let bytes = memory.get(at..at.saturating_add(ELEMENT_BYTES)).and_then(|bytes| bytes.try_into().ok());
        let bytes = bytes.ok_or(Refused("an element lies outside of the memory"))?;
        let tags = std::array::from_fn(|i| self.shadow.get(at / WORD + i));
        Ok(Element { bytes, tags, value: self.value(memory, at).ok() })
    }

    fn put_back(&mut self, memory: &mut [u8], at: usize, element: &Element) -> Result<(), Refused> {
        let place = memory.get_mut(at..at + ELEMENT_BYTES).ok_or(Refused("an element lies outside of the memory"))?;
        place.copy_from_slice(&element.bytes);
        element.tags.iter().enumerate().for_each(|(i, &tag)| self.shadow.set(at / WORD + i, tag));
        Ok(())
    }
}

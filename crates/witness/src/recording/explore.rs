//! All ways through a circuit's function.
//!
//! A `function` of circom's works on its arguments and variables in the module's memory, leaves its result there, and returns at one place. So
//! where it branches on values that depend on the inputs, the host has it called again and again from the memory that it began with, until
//! each way through it has been gone. What the ways leave differently is chosen by the conditions, as behind an `if` ([`super::fork`]).
//!
//! ```text
//! a > b ? ──yes──► return 1                  result = a > b ? 1 : (a < b ? 0 : ...)
//!   no ──► a < b ? ──yes──► return 0
//!            no ──► ...
//! ```
//!
//! One way is this run's. On the others the module calculates with numbers that no run need have. What would end a run there, an assertion or
//! a division of integers by zero, becomes a *failure*, a value that must be 0 wherever the conditions of its way hold.
//!
//! A loop whose condition depends on the inputs is not gone both ways: that it ends at once is asserted.

use super::fork::Fork;
use super::operation::Operation;
use super::recorder::{Plan, Recorder, STEP_BYTES};
use super::shadow::{Tag, ELEMENT, WORD};
use super::{Refused, Value};
use crate::kept::FAILED;
use crate::native::Function;
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

type Result<T, E = Refused> = std::result::Result<T, E>;

/// Ways through one call of a function.
const WAYS_MAX: usize = 256;

/// Calls within each other.
const DEPTH_MAX: usize = 64;

/// Writes behind conditions, words that ways leave, and entries of arrays, of a whole recording: some seconds.
const STRAYS_MAX: usize = 1 << 26;

/// Words that are saved together.
const CHUNK: usize = 32;

/// Elements whose last writer is known.
const RECENT: usize = 64;

/// What a chunk takes, with its words as one way leaves them, and a word that another way leaves, in bytes of a step.
const CHUNK_STEPS: usize = (size_of::<Chunk>() + CHUNK * size_of::<(usize, Word)>()) / STEP_BYTES;
const WORDS_A_STEP: usize = STEP_BYTES / size_of::<(usize, Word)>();

/// Why a function's ways cannot all be gone.
pub(crate) const TOO_MANY: &str = "its functions have too many ways";
pub(crate) const STRAYED: &str = "on other inputs one of its functions ends otherwise";

/// Calls of functions that have not returned, the innermost last.
pub(super) struct Calls {
    frames: Vec<Frame>,
    /// Conditions that they have met.
    met: usize,
    /// For each chunk the number of the call that has saved it last.
    saved_by: Vec<u32>,
    /// Calls with a word at which they have written an element.
    recent: [(u32, usize); RECENT],
    /// How many calls there were.
    count: u32,
    /// Work behind conditions.
    strays: usize,
    /// What is saved, in steps by what they take.
    held: usize,
}

/// A call of a function.
struct Frame {
    number: u32,
    /// From this word on lie the function's own variables, which nobody reads after it.
    base: usize,
    /// Bytes of the memory.
    memory: usize,
    /// What it has written, as it was before.
    saved: HashMap<usize, Box<Chunk>, RandomState>,
    /// Words at which elements were written.
    elements: HashSet<usize, RandomState>,
    /// The conditions of the way that is being gone, and how many of them it has met.
    conditions: Vec<Condition>,
    met: usize,
    /// Whether the run goes this way.
    is_runs: bool,
    /// What must be 0 on this way.
    failure: Option<Value>,
    ways: Vec<Way>,
    result: Option<u32>,
}

#[derive(Clone)]
struct Condition {
    value: Value,
    outcome: bool,
    /// The other outcome has been gone.
    is_last: bool,
}

/// A way to its end.
struct Way {
    conditions: Vec<(Value, bool)>,
    is_runs: bool,
    failure: Option<Value>,
    /// Words that are others than at the beginning.
    words: Vec<(usize, Word)>,
}

type Word = ([u8; WORD], Tag);

type Chunk = [Word; CHUNK];

impl Calls {
    pub(super) fn new() -> Self {
        let saved_by = Vec::new();
        Self { frames: Vec::new(), met: 0, saved_by, recent: [(0, 0); RECENT], count: 0, strays: 0, held: 0 }
    }

    /// Bytes that watching a memory of `bytes` takes here.
    pub(super) fn bytes_of(bytes: usize) -> usize {
        bytes / (CHUNK * WORD) * size_of::<u32>()
    }

    /// Whether the module does what the run does.
    pub(super) fn are_runs(&self) -> bool {
        self.frames.iter().all(|frame| frame.is_runs)
    }

    /// Whether no function of the circuit's is being run.
    pub(super) fn are_none(&self) -> bool {
        self.frames.is_empty()
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    pub(super) fn stray(&mut self, work: usize) -> Result<()> {
        self.strays += work;
        match self.strays > STRAYS_MAX {
            true => Err(Refused(TOO_MANY)),
            false => Ok(()),
        }
    }
}

/// Whether a word is the same for whoever reads it. Bytes of a value depend on the inputs.
fn are_alike(one: Word, other: Word) -> bool {
    one.1 == other.1 && (one.1 != Tag::Clean || one.0 == other.0)
}

impl Recorder {
    /// A function is called. `memory` begins with the address where its variables will be.
    pub(crate) fn enter(&mut self, memory: &[u8]) -> Result<()> {
        if self.calls.frames.len() >= DEPTH_MAX {
            return Err(Refused("its functions call each other too deep"));
        }
        let stack =
            memory.first_chunk().filter(|_| self.shadow.are_clean(0, WORD)).map(|&bytes| u32::from_le_bytes(bytes));
        self.calls.count = self.calls.count.checked_add(1).ok_or(Refused(TOO_MANY))?;
        self.calls.frames.push(Frame {
            number: self.calls.count,
            base: stack.map_or(usize::MAX, |stack| (stack as usize).div_ceil(WORD)),
            memory: memory.len(),
            saved: HashMap::default(),
            elements: HashSet::default(),
            conditions: Vec::new(),
            met: 0,
            is_runs: true,
            failure: None,
            ways: Vec::new(),
            result: None,
        });
        Ok(())
    }

    /// The bytes there are about to be written.
    pub(crate) fn save(&mut self, memory: &[u8], at: usize, bytes: usize) -> Result<()> {
        let Self { calls, shadow, .. } = self;
        let Some(frame) = calls.frames.last_mut().filter(|_| bytes > 0) else { return Ok(()) };
        for chunk in at / (CHUNK * WORD)..=(at + bytes - 1) / (CHUNK * WORD) {
            if calls.saved_by.get(chunk) == Some(&frame.number) {
                continue;
            }
            let start = chunk * CHUNK;
            // An access outside of the memory traps.
            let Some(all) = memory.get(start * WORD..(start + CHUNK) * WORD) else { continue };
            if calls.saved_by.len() <= chunk {
                calls.saved_by.resize(memory.len() / (CHUNK * WORD), 0);
            }
            calls.saved_by[chunk] = frame.number;
            frame.saved.entry(chunk).or_insert_with(|| {
                calls.held += CHUNK_STEPS;
                Box::new(std::array::from_fn(|i| (std::array::from_fn(|j| all[i * WORD + j]), shadow.get(start + i))))
            });
        }
        match calls.met > 0 {
            true => calls.stray(1),
            false => Ok(()),
        }
    }

    /// An element is about to be written.
    pub(crate) fn save_element(&mut self, memory: &[u8], at: u32) -> Result<()> {
        let word = at as usize / WORD;
        let Some(frame) = self.calls.frames.last_mut() else { return Ok(()) };
        let recent = &mut self.calls.recent[word / ELEMENT % RECENT];
        if *recent != (frame.number, word) && (at as usize).is_multiple_of(WORD) {
            *recent = (frame.number, word);
            frame.elements.insert(word);
        }
        self.save(memory, at as usize, ELEMENT * WORD)
    }

    /// Elements that lie one behind another are about to be written.
    pub(crate) fn save_elements(&mut self, memory: &[u8], at: u32, bytes: usize) -> Result<()> {
        let at = at as usize;
        if at + bytes > memory.len() {
            // The module traps.
            return Ok(());
        }
        if let Some(frame) = self.calls.frames.last_mut().filter(|_| at.is_multiple_of(WORD)) {
            frame.elements.extend((at / WORD..(at + bytes) / WORD).step_by(ELEMENT));
        }
        self.save(memory, at, bytes)
    }

    /// Whether a function is a division that goes on where it would be by zero.
    pub(crate) fn divides_anyway(&self, plan: &Plan, function: Function) -> bool {
        matches!(plan, Plan::Of(..)) && matches!(function, Function::Idiv | Function::Mod) && self.is_conditional()
    }

    /// Whether a value is known to be true or not where the module is now.
    pub(super) fn decided(&self, value: Value, is_true: bool) -> Option<bool> {
        if matches!(value, Value::Constant(_)) {
            return Some(is_true);
        }
        let known = |outcome| self.is_guarded(value, outcome).then_some(outcome);
        let met = self.calls.frames.iter().flat_map(|frame| &frame.conditions[..frame.met]);
        let mut met = met.filter(|condition| condition.value == value).map(|condition| condition.outcome);
        known(true).or_else(|| known(false)).or_else(|| met.next())
    }

    /// A function branches on a value that is not decided: how it is to go on. `None` outside of functions.
    pub(super) fn chooses(&mut self, value: Value, is_true: bool) -> Result<Option<bool>> {
        let Some(frame) = self.calls.frames.last_mut() else { return Ok(None) };
        if frame.met >= WAYS_MAX {
            return Err(Refused(TOO_MANY));
        }
        if frame.met == frame.conditions.len() {
            // Always the same first, so that the recording is the same for all inputs.
            frame.conditions.push(Condition { value, outcome: true, is_last: false });
        }
        let condition = &frame.conditions[frame.met];
        if condition.value != value {
            return Err(Refused("a function does not do the same twice"));
        }
        frame.met += 1;
        self.calls.met += 1;
        frame.is_runs &= condition.outcome == is_true;
        Ok(Some(condition.outcome))
    }

    /// Whether what the module does now, not every run does.
    pub(super) fn is_conditional(&self) -> bool {
        self.calls.met > 0 || matches!(self.fork, Some(Fork::Both { .. }))
    }

    /// Where the module is now, this value must be 0.
    pub(super) fn must_not(&mut self, value: Value) -> Result<()> {
        let zero = self.constant([0; 4])?;
        if value == zero {
            return Ok(());
        }
        let value = match &self.fork {
            Some(Fork::Both { condition, is_second, .. }) => {
                let (condition, is_second) = (*condition, *is_second);
                let way = if is_second { self.compute(Operation::Lnot, condition, condition)? } else { condition };
                self.compute(Operation::Land, way, value)?
            }
            _ => value,
        };
        let Some(frame) = self.calls.frames.last() else {
            return match value {
                Value::Constant(_) => Err(Refused(FAILED)),
                _ => self.assert_zero(value),
            };
        };
        let failure = match frame.failure {
            Some(failure) => self.compute(Operation::Lor, failure, value)?,
            None => value,
        };
        if let Some(frame) = self.calls.frames.last_mut() {
            frame.failure = Some(failure);
        }
        Ok(())
    }

    /// A function has returned. Whether it is to be called again, from the memory that it began with; where not, the memory is as the run
    /// leaves it, and values are chosen.
    pub(crate) fn leave(&mut self, result: u32, memory: &mut [u8]) -> Result<bool> {
        let mut frame = self.calls.frames.pop().ok_or(Refused("a function ends that has not begun"))?;
        if *frame.result.get_or_insert(result) != result {
            return Err(Refused(STRAYED));
        }
        if frame.conditions.is_empty() {
            return self.hand_on(frame).map(|()| false);
        }
        // What it would do with less memory is not known.
        if memory.len() != frame.memory || frame.met != frame.conditions.len() {
            return Err(Refused(STRAYED));
        }
        self.calls.met -= frame.met;
        let way = self.way(&mut frame, memory)?;
        frame.ways.push(way);
        while frame.conditions.last().is_some_and(|condition| condition.is_last) {
            frame.conditions.pop();
        }
        let Some(last) = frame.conditions.last_mut() else {
            self.merge(&mut frame, memory)?;
            return self.hand_on(frame).map(|()| false);
        };
        if frame.ways.len() >= WAYS_MAX {
            return Err(Refused(TOO_MANY));
        }
        (last.outcome, last.is_last) = (!last.outcome, true);
        (frame.met, frame.is_runs, frame.failure) = (0, true, None);
        self.calls.frames.push(frame);
        Ok(true)
    }

    /// The way that has been gone, and undone.
    fn way(&mut self, frame: &mut Frame, memory: &mut [u8]) -> Result<Way> {
        let mut words = Vec::new();
        for (chunk, before) in &frame.saved {
            for (i, &before) in before.iter().enumerate() {
                let word = chunk * CHUNK + i;
                let after = self.word(memory, word)?;
                if before != after {
                    self.put_word(memory, word, before)?;
                    if word < frame.base {
                        words.push((word, after));
                    }
                }
            }
        }
        self.calls.held += words.len() / WORDS_A_STEP;
        self.calls.stray(words.len())?;
        let conditions = frame.conditions.iter().map(|condition| (condition.value, condition.outcome)).collect();
        Ok(Way { conditions, is_runs: frame.is_runs, failure: frame.failure.take(), words })
    }

    /// All ways have been gone: what they leave.
    fn merge(&mut self, frame: &mut Frame, memory: &mut [u8]) -> Result<()> {
        let ways = std::mem::take(&mut frame.ways);
        let before = |word: usize| {
            frame.saved.get(&(word / CHUNK)).map_or(([0; WORD], Tag::Opaque), |chunk| chunk[word % CHUNK])
        };
        // Words of which some way leaves something else than another does.
        let mut found: BTreeMap<usize, (Word, usize)> = BTreeMap::new();
        let mut differ = BTreeSet::new();
        for &(word, after) in
            ways.iter().flat_map(|way| &way.words).filter(|(word, after)| !are_alike(before(*word), *after))
        {
            let (first, count) = found.entry(word).or_insert((after, 0));
            *count += 1;
            if !are_alike(*first, after) {
                differ.insert(word);
            }
        }
        differ.extend(found.iter().filter(|(_, (_, count))| *count < ways.len()).map(|(&word, _)| word));

        let mut elements: Vec<usize> =
            frame.elements.iter().copied().filter(|start| start + ELEMENT <= frame.base).collect();
        elements.sort_unstable();
        elements.retain(|&start| differ.range(start..start + ELEMENT).next().is_some());
        self.calls.stray(ways.len() * elements.len() * ELEMENT)?;
        let mut values = vec![Vec::new(); elements.len()];
        for way in &ways {
            way.words.iter().try_for_each(|&(word, after)| self.put_word(memory, word, after))?;
            for (start, values) in elements.iter().zip(&mut values) {
                values.extend(self.value(memory, start * WORD));
            }
            way.words.iter().try_for_each(|&(word, _)| self.put_word(memory, word, before(word)))?;
        }
        let run = ways.iter().find(|way| way.is_runs).ok_or(Refused(STRAYED))?;
        run.words.iter().try_for_each(|&(word, after)| self.put_word(memory, word, after))?;
        for (start, values) in elements.into_iter().zip(values) {
            let words = start..start + ELEMENT;
            // An element that overlaps with the one before it, or is none on some way.
            if values.len() < ways.len() || differ.range(words.clone()).next().is_none() {
                continue;
            }
            let value = self.choice(&ways, &values, 0)?;
            self.shadow.set_element(start, value)?;
            differ.retain(|word| !words.contains(word));
        }
        differ.into_iter().for_each(|word| self.shadow.set(word, Tag::Opaque));
        let words = frame.saved.keys().flat_map(|chunk| chunk * CHUNK..(chunk + 1) * CHUNK);
        words.filter(|&word| word >= frame.base).for_each(|word| self.shadow.set(word, Tag::Opaque));

        if ways.iter().any(|way| way.failure.is_some()) {
            let zero = self.constant([0; 4])?;
            let failures: Vec<Value> = ways.iter().map(|way| way.failure.unwrap_or(zero)).collect();
            frame.failure = Some(self.choice(&ways, &failures, 0)?);
        }
        self.calls.held -= ways.iter().map(|way| way.words.len() / WORDS_A_STEP).sum::<usize>();
        Ok(())
    }

    /// The value of the way that is gone, of ways with the same first `depth` conditions.
    fn choice(&mut self, ways: &[Way], values: &[Value], depth: usize) -> Result<Value> {
        let ([first, _, ..], [value, ..]) = (ways, values) else {
            return values.first().copied().ok_or(Refused(STRAYED));
        };
        if values.iter().all(|other| other == value) {
            return Ok(*value);
        }
        let &(condition, outcome) = first.conditions.get(depth).ok_or(Refused(STRAYED))?;
        let turn = ways
            .iter()
            .position(|way| way.conditions.get(depth) != Some(&(condition, outcome)))
            .ok_or(Refused(STRAYED))?;
        let one = self.choice(&ways[..turn], &values[..turn], depth + 1)?;
        let other = self.choice(&ways[turn..], &values[turn..], depth + 1)?;
        self.chosen(condition, one, other)
    }

    /// What is left of a call: its writes are its caller's, and so is what must not be.
    fn hand_on(&mut self, frame: Frame) -> Result<()> {
        let (Calls { frames, held, .. }, mut kept) = (&mut self.calls, 0);
        let chunks = frame.saved.len();
        if let Some(caller) = frames.last_mut() {
            let had = caller.saved.len();
            for (chunk, before) in frame.saved {
                caller.saved.entry(chunk).or_insert(before);
            }
            caller.elements.extend(frame.elements.into_iter().filter(|&word| word < frame.base));
            kept = caller.saved.len() - had;
        }
        *held -= (chunks - kept) * CHUNK_STEPS;
        frame.failure.map_or(Ok(()), |failure| self.must_not(failure))
    }

    fn word(&self, memory: &[u8], word: usize) -> Result<Word> {
        let bytes = memory.get(word * WORD..).and_then(|rest| rest.first_chunk()).ok_or(Refused(STRAYED))?;
        Ok((*bytes, self.shadow.get(word)))
    }

    fn put_word(&mut self, memory: &mut [u8], word: usize, (bytes, tag): Word) -> Result<()> {
        *memory.get_mut(word * WORD..).and_then(|rest| rest.first_chunk_mut()).ok_or(Refused(STRAYED))? = bytes;
        self.shadow.set(word, tag);
        Ok(())
    }
}

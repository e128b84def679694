//! A run of a circuit's module, recorded as a straight line of field operations, kept, and replayed on other inputs.
//!
//! [`Recorder`] watches one run: which bytes of the module's memory depend on the inputs, and of what values they are made. Where
//! the module's own control hangs on such a value, the recording has a *guard*: the run goes the same way as long as the guards
//! hold. Where both ways only calculate, it takes both ([`fork`]), and within a function of the circuit's all ([`explore`]). Where a value is
//! a place in an array of constants, the entry is a value ([`table`]).
//! [`write`] leaves out what nothing needs, and [`Recording`] reads what was kept and computes it again.

mod constants;
mod explore;
#[cfg(test)]
mod explore_tests;
mod file;
mod fork;
#[cfg(test)]
mod fork_tests;
#[cfg(test)]
mod hostile_tests;
mod operation;
mod recorder;
#[cfg(test)]
mod recorder_tests;
mod replay;
mod shadow;
mod table;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod way_tests;

use operation::Operation;

pub(crate) use explore::{STRAYED, TOO_MANY};
pub(crate) use file::{write, About, Recording, VERSION};
pub(crate) use recorder::{Recorder, STEP_BYTES};
pub(crate) use replay::replay;

use crate::native::Limbs;

/// The number of a value in a recording: of an operation, an input, or a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Input(u32),
    Constant(u32),
    /// Of the operation of this number.
    Result(u32),
}

/// One step of a recording, on earlier values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// A value; operations of one value have it twice.
    Compute(Operation, Value, Value),
    /// The entry of this number, or 0 where there is none.
    Select(Value, Table),
    /// The value must be something else than 0.
    IsTrue(Value),
    IsFalse(Value),
}

/// Constants that lie one behind another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Table {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// What a recorder has found.
#[derive(Default)]
pub(crate) struct Line {
    pub(crate) steps: Vec<Step>,
    pub(crate) constants: Vec<Limbs>,
    /// The value of each wire.
    pub(crate) wires: Vec<Value>,
}

/// Why a run cannot be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) &'static str);

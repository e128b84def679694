//! What is said of a module that failed.

use super::Host;
use crate::{list, Error, Limit, Limits};

/// The circuit's own report that something is wrong.
pub(super) fn explain_exception(code: i32, trace: &[String], limits: Limits) -> Error {
    let why = match code {
        1 => "the circuit has no such input".into(),
        2 => "more values are given than the circuit has inputs".into(),
        3 => "it is set twice".into(),
        4 if trace.is_empty() => format!("{ASSERTION}: an assertion failed"),
        4 => format!("{ASSERTION}: an assertion failed: {}", list(trace.iter().cloned())),
        5 => return too_large(limits, "the circuit's program"),
        6 => "more values are given than the signal has".into(),
        7 => return failed("it reached outside of an array"),
        code => return failed(&format!("it stopped with the unknown code {code}")),
    };
    Error::inputs(why)
}

/// How the message of a failed assertion begins.
pub(crate) const ASSERTION: &str = "the inputs do not satisfy the circuit";

pub(crate) fn not_circom(why: &str) -> Error {
    Error::circuit(format!("not a circuit that circom 2 compiled to WebAssembly: {why}"))
}

pub(crate) fn failed(why: &str) -> Error {
    Error::circuit(format!("the circuit's program failed: {why}"))
}

pub(super) fn refused_memory(host: &Host, limits: Limits) -> Error {
    if host.budget.is_system_short {
        return Error::System("the system has no memory left for the circuit's program".into());
    }
    too_large(limits, "the circuit's program")
}

pub(crate) fn too_large(limits: Limits, what: &str) -> Error {
    let most = limits.memory_bytes >> 20;
    Error::limit(Limit::Memory, format!("{what} needs more than what is left of {most} MiB of memory for all together"))
}

//! The fabric's errors as Python's exceptions. Their classes are in `tandem/_errors.py`.

use crate::process::Process;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use tandem_fabric::{Error, FaultKind, Team};

/// An exception of the class `name`, with attributes.
fn raise(py: Python<'_>, name: &str, text: String, attributes: &Bound<'_, PyDict>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("tandem._errors")?.getattr(name)?;
        let value = class.call1((&text,))?;
        for (key, attribute) in attributes {
            value.setattr(key.extract::<String>()?, attribute)?;
        }
        Ok(PyErr::from_value(value))
    };
    made().unwrap_or_else(|_| PyRuntimeError::new_err(text.clone()))
}

/// An exception of the class `name` that says no more than its text.
pub(crate) fn plain(name: &str, text: String) -> PyErr {
    Python::attach(|py| raise(py, name, text, &PyDict::new(py)))
}

/// The world is closed.
pub(crate) fn closed(text: String) -> PyErr {
    plain("ClosedError", text)
}

/// `PE 1 (sim:1)`.
pub(crate) fn named(team: &Team, pe: usize) -> String {
    format!("PE {pe} ({})", team.name(pe))
}

/// The exception of an error; `team` is the one whose PEs it numbers.
pub(crate) fn of(team: &Team, error: Error) -> PyErr {
    let text = error.to_string();
    Python::attach(|py| match error {
        Error::Fault(fault) => {
            let peer = fault.peer.map(|peer| team.name(peer));
            let kind = match fault.kind {
                FaultKind::Wait => "wait",
                FaultKind::Barrier => "barrier",
                FaultKind::Bounds => "bounds",
                FaultKind::Command => "command",
                FaultKind::Copy => "copy",
                FaultKind::Process => "process",
                FaultKind::Collective => "collective",
                FaultKind::Overlap => "overlap",
                FaultKind::Apart => "apart",
            };
            let names = match &peer {
                Some(peer) => format!("{} and {peer}", team.name(fault.waiter)),
                None => team.name(fault.waiter),
            };
            let attributes = [
                ("kind", kind.into_pyobject(py).map(Bound::into_any)),
                ("place", fault.place.as_str().into_pyobject(py).map(Bound::into_any)),
            ];
            let attributes: PyResult<Vec<_>> =
                attributes.into_iter().map(|(key, value)| Ok((key, value.map_err(PyErr::from)?))).collect();
            let dict = attributes.and_then(|attributes| attributes.into_py_dict(py));
            let dict = dict.unwrap_or_else(|_| PyDict::new(py));
            let _ = dict.set_item("pe", fault.waiter);
            let _ = dict.set_item("peer", fault.peer);
            let _ = dict.set_item("process", fault.process.map(Process::from));
            raise(py, "FaultError", format!("{text} ({names})"), &dict)
        }
        Error::OutOfMemory { pe, device, .. } => {
            let dict = PyDict::new(py);
            let _ = dict.set_item("pe", pe);
            let _ = dict.set_item("device", device);
            raise(py, "OutOfMemoryError", text, &dict)
        }
        Error::NoPeer { from, to, .. } => {
            let dict = PyDict::new(py);
            let _ = dict.set_item("pe", from);
            let _ = dict.set_item("peer", to);
            raise(py, "NoPeerError", format!("{text} ({} and {})", team.name(from), team.name(to)), &dict)
        }
        Error::Invalid { .. } | Error::Job(_) | Error::Plan(_) | Error::Topology(_) => {
            raise(py, "InvalidError", text, &PyDict::new(py))
        }
        Error::Processes { .. } => raise(py, "ProcessError", text, &PyDict::new(py)),
        Error::Device(_) | Error::Late { .. } | Error::NotResident(_) | Error::WrongSchedule(_) => {
            raise(py, "DeviceError", text, &PyDict::new(py))
        }
    })
}

/// The exception of an error that numbers no PE of a team.
pub(crate) fn bare(error: impl std::fmt::Display) -> PyErr {
    plain("InvalidError", error.to_string())
}

/// The exception of an error that comes before there is a team.
pub(crate) fn bare_error(error: Error) -> PyErr {
    let text = error.to_string();
    Python::attach(|py| {
        let dict = PyDict::new(py);
        let class = match error {
            Error::OutOfMemory { pe, device, .. } => {
                let _ = dict.set_item("pe", pe);
                let _ = dict.set_item("device", device);
                "OutOfMemoryError"
            }
            Error::Device(_) | Error::Late { .. } => "DeviceError",
            Error::Processes { .. } => "ProcessError",
            _ => "InvalidError",
        };
        raise(py, class, text, &dict)
    })
}

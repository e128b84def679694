//! Worlds of several processes: where they meet, which of them has a PE, and how they are started.

use crate::errors;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tandem_fabric::{Launch, Launched};

/// A process that has PEs of a world.
#[pyclass(frozen, eq, hash, module = "tandem", name = "Process")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Process {
    /// Its number among them, from 0.
    #[pyo3(get)]
    rank: usize,
    /// Its number in the operating system.
    #[pyo3(get)]
    pid: u32,
}

impl From<tandem_fabric::Process> for Process {
    fn from(process: tandem_fabric::Process) -> Self {
        Process { rank: process.rank, pid: process.pid }
    }
}

#[pymethods]
impl Process {
    fn __repr__(&self) -> String {
        format!("<tandem.Process {}, pid {}>", self.rank, self.pid)
    }
}

/// Where the processes of a world meet, and which of them this one is.
///
/// The place is the same for all, and of one world alone: an absolute path of a folder, made where there is none, which must be the
/// user's own and closed to others, or "tcp:HOST:PORT", where process 0 listens. A process that the others wait for longer than `within`
/// seconds is named.
#[pyclass(frozen, module = "tandem", name = "Meeting")]
pub(crate) struct Meeting(pub(crate) tandem_fabric::Meeting);

fn within(meeting: tandem_fabric::Meeting, seconds: f64) -> PyResult<Meeting> {
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("within {seconds}: expected seconds above 0")))?;
    Ok(Meeting(meeting.within(time)))
}

#[pymethods]
impl Meeting {
    #[new]
    #[pyo3(signature = (place, rank, size, *, within = 60.0))]
    fn new(place: &str, rank: usize, size: usize, within: f64) -> PyResult<Self> {
        let meeting = tandem_fabric::Meeting::new(place, rank, size).map_err(errors::bare_error)?;
        self::within(meeting, within)
    }

    /// The meeting that the environment names, as `tandem run`, Open MPI, PMI and Slurm set it; None where this process was started
    /// alone.
    #[staticmethod]
    #[pyo3(signature = (*, within = 60.0))]
    fn from_env(within: f64) -> PyResult<Option<Self>> {
        let meeting = tandem_fabric::Meeting::from_env().map_err(errors::bare_error)?;
        meeting.map(|meeting| self::within(meeting, within)).transpose()
    }

    /// A place that no other world has. One process makes it and tells it to all.
    #[staticmethod]
    fn unique() -> String {
        tandem_fabric::Meeting::unique()
    }

    /// The number of this process.
    #[getter]
    fn rank(&self) -> usize {
        self.0.rank()
    }

    /// How many processes meet.
    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    fn __repr__(&self) -> String {
        format!("<tandem.Meeting of process {} of {}>", self.0.rank(), self.0.size())
    }
}

/// Runs a program so many times, as the processes of one world, and puts the rank before each line that one prints. When one fails the
/// others are ended. Returns the exit status; Ctrl-C ends all.
#[pyfunction]
pub(crate) fn launch(py: Python<'_>, processes: usize, command: Vec<OsString>) -> PyResult<u8> {
    let interrupt = Mutex::new(None);
    let asked = || {
        let signals = Python::attach(|py| py.check_signals());
        let is_asked = signals.is_err();
        *interrupt.lock().unwrap_or_else(PoisonError::into_inner) = signals.err();
        is_asked
    };
    let end = py.detach(|| tandem_fabric::launch(&Launch { command, processes, node: None }, asked));
    if let Some(error) = interrupt.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let end = end.map_err(errors::bare_error)?;
    if let Launched::Failed(process, status) = &end {
        eprintln!("{process}: {status}; the others were ended");
    }
    Ok(end.status())
}

//! PEs: each with an ordered queue of work.

use crate::array::Array;
use crate::dtype::with_word;
use crate::errors::{self, named};
use crate::life::{Life, Slot};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use tandem_cuda::Stream;
use tandem_fabric::{Atomic, Compare, Error, OneSided, Queue, Result, Signal, Symmetric, Team, Word};

/// A queue of a PE: the team's own, or one on a stream of the caller's.
#[derive(Clone)]
struct Held {
    team: Team,
    me: usize,
    on_stream: Option<Arc<Queue>>,
}

impl Held {
    fn queue(&self) -> &Queue {
        self.on_stream.as_deref().unwrap_or_else(|| self.team.queue(self.me))
    }
}

/// A PE of a team: a GPU, or a pretend one. What it is told is done in order, on its stream where it is a GPU, and has not
/// happened yet when the call returns.
#[pyclass(frozen, module = "tandem", name = "PE")]
pub(crate) struct Pe {
    held: Slot<Held>,
    me: usize,
    /// The caller's stream, kept alive.
    _stream: Option<Py<PyAny>>,
}

/// The comparison that is written so.
pub(crate) fn comparison(text: &str) -> PyResult<Compare> {
    match text {
        "==" => Ok(Compare::Eq),
        "!=" => Ok(Compare::Ne),
        ">" => Ok(Compare::Gt),
        ">=" => Ok(Compare::Ge),
        "<" => Ok(Compare::Lt),
        "<=" => Ok(Compare::Le),
        other => Err(PyValueError::new_err(format!("compare {other:?}: expected ==, !=, >, >=, < or <="))),
    }
}

/// A number as a word.
pub(crate) fn word<T: TryFrom<i128>>(value: i128, op: &str) -> PyResult<T> {
    T::try_from(value).map_err(|_| {
        let of = std::any::type_name::<T>();
        PyValueError::new_err(format!("{op}: the value {value} is outside the words' range, which is that of {of}"))
    })
}

/// The handle of a stream: a number, an object with `__cuda_stream__`, or a stream of PyTorch, CuPy or numba.
pub(crate) fn stream(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(raw) = object.extract() {
        return Ok(raw);
    }
    if let Ok((_, raw)) = object.call_method0("__cuda_stream__").and_then(|pair| pair.extract::<(u32, u64)>()) {
        return Ok(raw);
    }
    for name in ["cuda_stream", "ptr", "handle"] {
        let Ok(value) = object.getattr(name) else { continue };
        // numba's is a pointer of ctypes, which is None for the default stream.
        let value = value.getattr("value").unwrap_or(value);
        if value.is_none() {
            return Ok(0);
        }
        if let Ok(raw) = value.extract().or_else(|_| value.call_method0("__int__").and_then(|value| value.extract())) {
            return Ok(raw);
        }
    }
    let found = object.get_type().name()?;
    Err(PyTypeError::new_err(format!("{found} is no stream: expected its handle, or an object with __cuda_stream__")))
}

impl Pe {
    /// The PE with the team's queue.
    pub(crate) fn of(life: &Arc<Life>, team: Team, me: usize) -> Self {
        Pe { held: Slot::new(life, Held { team, me, on_stream: None }), me, _stream: None }
    }

    /// Tells the queue something, and names the PE where it is refused. A full stream blocks, so it is done without the interpreter's lock.
    fn tell(&self, py: Python<'_>, f: impl FnOnce(&Queue) -> Result<()> + Send) -> PyResult<()> {
        let held = self.held.get()?;
        py.detach(|| f(held.queue())).map_err(|error| match error {
            Error::Invalid { op, problem } => {
                let problem = format!("{problem} (told to {})", named(&held.team, self.me));
                errors::of(&held.team, Error::Invalid { op, problem })
            }
            error => errors::of(&held.team, error),
        })
    }

    /// Both arrays as bytes, if a copy between them has a meaning.
    fn copy(&self, op: &str, to: &Array, source: &Array, other: usize) -> PyResult<(Symmetric<u8>, Symmetric<u8>)> {
        if to.dtype != source.dtype || to.shape != source.shape {
            let held = self.held.get()?;
            let me = named(&held.team, self.me);
            let (kinds, to_dtype) = (format!("from an array {} to one {}", source.kind(), to.kind()), to.dtype);
            let text = format!("{op} of {me} with {}: {kinds}", named(&held.team, other));
            return Err(if to_dtype == source.dtype {
                PyValueError::new_err(text)
            } else {
                PyTypeError::new_err(text)
            });
        }
        Ok((to.bytes()?, source.bytes()?))
    }
}

fn change<T: Word>(op: &str, value: T, expected: Option<T>) -> PyResult<Atomic<T>> {
    let atomic = match (op, expected) {
        ("set", None) => Atomic::Set(value),
        ("add", None) => Atomic::Add(value),
        ("and", None) => Atomic::And(value),
        ("or", None) => Atomic::Or(value),
        ("xor", None) => Atomic::Xor(value),
        ("compare_swap", Some(expected)) => Atomic::CompareSwap { expected, value },
        ("compare_swap", None) => return Err(PyTypeError::new_err("compare_swap takes what it expects, too")),
        (_, Some(_)) => return Err(PyTypeError::new_err(format!("{op} expects nothing: compare_swap does"))),
        _ => {
            return Err(PyValueError::new_err(format!(
                "op {op:?}: expected \"set\", \"add\", \"and\", \"or\", \"xor\" or \"compare_swap\""
            )))
        }
    };
    Ok(atomic)
}

fn signal(value: u64, add: bool) -> Signal {
    if add {
        Signal::Add(value)
    } else {
        Signal::Set(value)
    }
}

/// A signal word: one element of uint64.
fn signal_word(op: &str, word: &Array) -> PyResult<Symmetric<u64>> {
    if word.dtype.name() != "uint64" {
        return Err(PyTypeError::new_err(format!("{op}: a signal word {}; expected uint64", word.kind())));
    }
    word.elements()
}

#[pymethods]
impl Pe {
    /// Its number in the team.
    #[getter]
    fn number(&self) -> usize {
        self.me
    }

    /// What it is, such as "cuda:0" or "sim:0".
    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.held.get()?.team.name(self.me))
    }

    /// The handle of its stream; None for a pretend PE.
    #[getter]
    fn stream(&self) -> PyResult<Option<u64>> {
        Ok(self.held.get()?.queue().stream().map(|stream| stream.raw() as u64))
    }

    /// The number of its GPU among those of CUDA; None for a pretend PE.
    #[getter]
    fn device(&self) -> PyResult<Option<u32>> {
        Ok(self.held.get()?.queue().stream().map(|stream| stream.device().index()))
    }

    /// This PE with another queue: a stream of the caller's, of the PE's device, which the caller keeps as long as the world.
    fn on(&self, stream: &Bound<'_, PyAny>) -> PyResult<Pe> {
        let held = self.held.get()?;
        let raw = self::stream(stream)?;
        let pe = named(&held.team, self.me);
        let Some(own) = held.team.queue(self.me).stream() else {
            return Err(errors::plain("InvalidError", format!("on: {pe} is a pretend PE and has no streams")));
        };
        // PyTorch's and CuPy's streams know their device.
        let theirs = stream.getattr("device_id").or_else(|_| stream.getattr("device")?.getattr("index"));
        let theirs: Option<u32> = theirs.ok().and_then(|index| index.extract().ok());
        if theirs.is_some_and(|index| index != own.device().index()) {
            let text = format!("on: the stream is of cuda:{}, the PE is {pe}", theirs.unwrap_or_default());
            return Err(errors::plain("InvalidError", text));
        }
        // SAFETY: the caller keeps the stream, as the documentation asks for; its object is kept here.
        let borrowed = unsafe { Stream::borrowed(own.device(), raw as *mut _) };
        let queue = held.team.queue_on(self.me, Arc::new(borrowed)).map_err(|e| errors::of(&held.team, e))?;
        let on_stream = Some(Arc::new(queue));
        let held = Held { on_stream, ..held };
        Ok(Pe { held: Slot::new(&self.held.life, held), me: self.me, _stream: Some(stream.clone().unbind()) })
    }

    /// Copies this PE's `source` to `to` of PE `pe`.
    fn put(&self, py: Python<'_>, to: &Array, source: &Array, pe: usize) -> PyResult<()> {
        let (to, source) = self.copy("put", to, source, pe)?;
        self.tell(py, |queue| queue.put(&to, &source, pe))
    }

    /// Copies `source` of PE `pe` to this PE's `to`.
    fn get(&self, py: Python<'_>, to: &Array, source: &Array, pe: usize) -> PyResult<()> {
        let (to, source) = self.copy("get", to, source, pe)?;
        self.tell(py, |queue| queue.get(&to, &source, pe))
    }

    /// A put, then a signal: who has waited for the signal sees what was put.
    #[pyo3(signature = (to, source, pe, word, value = 1, add = false))]
    #[allow(clippy::too_many_arguments)] // each is one thing, and Python names them
    fn put_signal(
        &self,
        py: Python<'_>,
        to: &Array,
        source: &Array,
        pe: usize,
        word: &Array,
        value: u64,
        add: bool,
    ) -> PyResult<()> {
        let (to, source) = self.copy("put_signal", to, source, pe)?;
        let word = signal_word("put_signal", word)?;
        self.tell(py, |queue| queue.put_signal(&to, &source, &word, signal(value, add), pe))
    }

    /// Sets PE `pe`'s signal word, or adds to it, after all that this queue did before.
    #[pyo3(signature = (word, pe, value = 1, add = false))]
    fn signal(&self, py: Python<'_>, word: &Array, pe: usize, value: u64, add: bool) -> PyResult<()> {
        let word = signal_word("signal", word)?;
        self.tell(py, |queue| queue.signal_op(&word, self::signal(value, add), pe))
    }

    /// Waits, on the queue, until every one of this PE's words compares with `value`. `source` is the PE that is to change
    /// them, for the message of a wait that takes longer than the world's timeout.
    #[pyo3(signature = (words, compare, value, source = None))]
    fn wait(&self, py: Python<'_>, words: &Array, compare: &str, value: i128, source: Option<usize>) -> PyResult<()> {
        let compare = comparison(compare)?;
        macro_rules! wait {
            ($t:ty) => {{
                let (words, value) = (words.elements::<$t>()?, word::<$t>(value, "wait")?);
                self.tell(py, |queue| queue.wait_until(&words, compare, value, source))
            }};
        }
        with_word!(words.dtype, "wait", wait)
    }

    /// Changes one word of PE `pe` by `op`: "set", "add", "and", "or", "xor" or "compare_swap". This PE's `into`, where it is
    /// given, gets what the word was before.
    #[pyo3(signature = (word, op, value, pe, *, expected = None, into = None))]
    #[allow(clippy::too_many_arguments)] // each is one thing, and Python names them
    fn atomic(
        &self,
        py: Python<'_>,
        word: &Array,
        op: &str,
        value: i128,
        pe: usize,
        expected: Option<i128>,
        into: Option<&Array>,
    ) -> PyResult<()> {
        if let Some(into) = into.filter(|into| into.dtype != word.dtype) {
            let text = format!("atomic: from a word {} into one {}", word.kind(), into.kind());
            return Err(PyTypeError::new_err(text));
        }
        macro_rules! atomic {
            ($t:ty) => {{
                let expected = expected.map(|expected| self::word::<$t>(expected, op)).transpose()?;
                let atomic = change(op, self::word::<$t>(value, op)?, expected)?;
                let (word, into) = (word.elements::<$t>()?, into.map(Array::elements::<$t>).transpose()?);
                self.tell(py, |queue| match &into {
                    Some(into) => queue.fetch_atomic(&word, atomic, pe, into),
                    None => queue.atomic(&word, atomic, pe),
                })
            }};
        }
        with_word!(word.dtype, "atomic", atomic)
    }

    /// Waits, on the queue, until every PE of the team has got to its barrier of the same number. `Team.barrier` adds one to
    /// all queues.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        self.tell(py, OneSided::barrier)
    }

    /// Waits until the queue has done what it was told.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.held.get()?;
        py.detach(|| held.queue().synchronize()).map_err(|e| errors::of(&held.team, e))
    }

    fn __repr__(&self) -> String {
        self.held
            .get()
            .map_or_else(|_| "<tandem.PE, closed>".into(), |held| format!("<tandem.{}>", named(&held.team, self.me)))
    }
}

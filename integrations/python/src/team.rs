//! Worlds and teams.

use crate::array::{count, Array, Shape};
use crate::dtype::{with_element, with_number, DType};
use crate::errors::{self, named};
use crate::global::{Dealt, GlobalArray};
use crate::life::{Life, Slot};
use crate::open;
use crate::pe::{self, Pe};
use crate::process::{Meeting, Process};
use crate::topology::Topology;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tandem_fabric::exec::{Combine, Tuning};
use tandem_fabric::{Collectives, Error, Options};

/// A team, and the plans of its collectives.
pub(crate) struct Ground {
    pub(crate) team: tandem_fabric::Team,
    topology: tandem_fabric::topology::Topology,
    /// By job: the PEs that take part.
    collectives: Mutex<BTreeMap<Vec<usize>, Collectives>>,
}

impl Ground {
    fn new(team: tandem_fabric::Team, topology: tandem_fabric::topology::Topology) -> Arc<Self> {
        Arc::new(Ground { team, topology, collectives: Mutex::default() })
    }

    fn collectives(&self, job: Option<Vec<usize>>) -> Result<Collectives, Error> {
        let job = job.unwrap_or_else(|| (0..self.team.size()).collect());
        let mut known = self.collectives.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(collectives) = known.get(&job) {
            return Ok(collectives.clone());
        }
        let made = Collectives::of(&self.team, &self.topology, &job, Tuning::default())?;
        known.insert(job, made.clone());
        Ok(made)
    }
}

/// PEs that share memory and barriers.
#[pyclass(frozen, subclass, module = "tandem", name = "Team")]
pub(crate) struct Team {
    pub(crate) ground: Slot<Arc<Ground>>,
}

fn combine(op: &str) -> PyResult<Combine> {
    match op {
        "sum" => Ok(Combine::Sum),
        "min" => Ok(Combine::Min),
        "max" => Ok(Combine::Max),
        other => Err(PyValueError::new_err(format!("op {other:?}: expected \"sum\", \"min\" or \"max\""))),
    }
}

/// Raises unless two arrays have elements of one type.
fn alike(op: &str, to: &Array, source: &Array) -> PyResult<()> {
    if to.dtype == source.dtype {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!("{op}: from an array {} to one {}; expected one dtype", source.kind(), to.kind())))
}

impl Team {
    fn open(life: &Arc<Life>, ground: Arc<Ground>) -> Self {
        Team { ground: Slot::new(life, ground) }
    }

    /// Does `f` without the interpreter's lock.
    fn run<T: Send>(&self, py: Python<'_>, f: impl FnOnce(&Ground) -> Result<T, Error> + Send) -> PyResult<T> {
        let ground = self.ground.get()?;
        py.detach(|| f(&ground)).map_err(|e| errors::of(&ground.team, e))
    }

    /// The collectives of a job, each done on return where `wait` says so.
    fn collective(
        &self,
        py: Python<'_>,
        pes: Option<Vec<usize>>,
        wait: bool,
        f: impl FnOnce(&Collectives) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        self.run(py, |ground| {
            let collectives = ground.collectives(pes)?;
            f(&if wait { collectives.now() } else { collectives })
        })
    }
}

#[pymethods]
impl Team {
    /// Number of PEs.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.ground.get()?.team.size())
    }

    fn __len__(&self) -> PyResult<usize> {
        self.size()
    }

    /// What each PE is, such as "cuda:0" or "sim:0".
    #[getter]
    fn names(&self) -> PyResult<Vec<String>> {
        let team = self.ground.get()?.team.clone();
        Ok((0..team.size()).map(|pe| team.name(pe)).collect())
    }

    /// By PE: its number in the world.
    #[getter]
    fn members(&self) -> PyResult<Vec<usize>> {
        Ok(self.ground.get()?.team.members().to_vec())
    }

    /// The numbers of the PEs that this process has: all, unless the world is of several processes.
    #[getter]
    fn local(&self) -> PyResult<Vec<usize>> {
        Ok(self.ground.get()?.team.local())
    }

    /// The process that has PE `pe`; None in a world of one process.
    fn process_of(&self, pe: usize) -> PyResult<Option<Process>> {
        let team = self.ground.get()?.team.clone();
        if pe >= team.size() {
            return Err(PyIndexError::new_err(format!("there is no PE {pe}; the team has {}", team.size())));
        }
        Ok(team.process_of(pe).map(Process::from))
    }

    /// Whether the PEs are GPUs.
    #[getter]
    fn is_cuda(&self) -> PyResult<bool> {
        Ok(self.ground.get()?.team.is_cuda())
    }

    /// The links over which collectives are planned.
    #[getter]
    fn topology(&self) -> PyResult<Topology> {
        Ok(Topology(self.ground.get()?.topology.clone()))
    }

    /// Bytes of each PE's heap that have memory, and those in use.
    #[getter]
    fn heap_bytes(&self) -> PyResult<(u64, u64)> {
        Ok(self.ground.get()?.team.heap_bytes())
    }

    fn __getitem__(&self, pe: isize) -> PyResult<Pe> {
        let ground = self.ground.get()?;
        let size = ground.team.size() as isize;
        let place = if pe < 0 { pe + size } else { pe };
        if !(0..size).contains(&place) {
            return Err(PyIndexError::new_err(format!("there is no PE {pe}; the team has {size}")));
        }
        let place = place as usize;
        if let Some(process) = ground.team.process_of(place).filter(|_| !ground.team.local().contains(&place)) {
            let text = format!("{} is of {process}, which tells it what to do", named(&ground.team, place));
            return Err(errors::plain("InvalidError", text));
        }
        Ok(Pe::of(&self.ground.life, ground.team.clone(), place))
    }

    /// The PEs of this process.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ground = self.ground.get()?;
        let pe = |pe| Bound::new(py, Pe::of(&self.ground.life, ground.team.clone(), pe));
        let pes = ground.team.local().into_iter().map(pe).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, pes)?.into_any().call_method0("__iter__")
    }

    /// A team of some PEs, in this order, with queues, barriers and faults of its own.
    fn split(&self, py: Python<'_>, pes: Vec<usize>) -> PyResult<Team> {
        let ground = self.run(py, |ground| {
            let team = ground.team.split(&pes)?;
            let topology = open::topology(&team)?;
            Ok(Ground::new(team, topology))
        })?;
        Ok(Team::open(&self.ground.life, ground))
    }

    /// An array of zeros on every PE of the world.
    #[pyo3(signature = (shape, dtype = None))]
    fn zeros(&self, py: Python<'_>, shape: Shape, dtype: Option<DType>) -> PyResult<Array> {
        let dtype = match dtype {
            Some(dtype) => dtype,
            None => "float64".into_pyobject(py)?.into_any().extract()?,
        };
        let size = count(&shape.0).and_then(|count| count.checked_mul(dtype.size()));
        let size = size.filter(|&size| size <= isize::MAX as usize).ok_or_else(|| {
            PyValueError::new_err(format!("shape {:?} of {}: too many bytes to count", shape.0, dtype.name()))
        })?;
        let held = self.run(py, |ground| Ok((ground.team.clone(), ground.team.alloc::<u8>(size)?)))?;
        Ok(Array::new(Slot::new(&self.ground.life, held), shape.0, dtype))
    }

    /// One array of `length` zeros over all PEs, which kernels index from any of them. `distribution` is "block", "cyclic"
    /// or the length of blocks that are dealt in turn.
    #[pyo3(signature = (length, dtype = None, distribution = None))]
    fn global_array(
        &self,
        py: Python<'_>,
        length: usize,
        dtype: Option<DType>,
        distribution: Option<Dealt>,
    ) -> PyResult<GlobalArray> {
        let dtype = match dtype {
            Some(dtype) => dtype,
            None => "float64".into_pyobject(py)?.into_any().extract()?,
        };
        let distribution = distribution.unwrap_or(Dealt::block()).0;
        let (team, array) = self.run(py, |ground| {
            macro_rules! make {
                ($t:ty) => {
                    tandem_fabric::GlobalArray::<$t>::new(&ground.team, length, distribution)?.into()
                };
            }
            Ok((ground.team.clone(), with_element!(dtype, make)))
        })?;
        Ok(GlobalArray::new(&self.ground.life, team, array, dtype))
    }

    /// Adds a barrier to the queue of every PE.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |ground| ground.team.barrier())
    }

    /// Waits until the queues of all PEs have done what they were told.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |ground| ground.team.synchronize())
    }

    /// Raises the fault that the team has had, if it has.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |ground| ground.team.check())
    }

    /// Waits until every one of PE `pe`'s words compares with `value`: the host looks at them.
    #[pyo3(signature = (pe, words, compare, value, source = None))]
    fn wait_until(
        &self,
        py: Python<'_>,
        pe: usize,
        words: &Array,
        compare: &str,
        value: i128,
        source: Option<usize>,
    ) -> PyResult<()> {
        let compare = pe::comparison(compare)?;
        macro_rules! wait {
            ($t:ty) => {{
                let (words, value) = (words.elements::<$t>()?, pe::word::<$t>(value, "wait_until")?);
                self.run(py, |ground| ground.team.wait_until(pe, &words, compare, value, source))
            }};
        }
        crate::dtype::with_word!(words.dtype, "wait_until", wait)
    }

    /// PE `root`'s `source` to everyone's `to`.
    #[pyo3(signature = (source, root, to = None, *, pes = None, wait = false))]
    fn broadcast(
        &self,
        py: Python<'_>,
        source: &Array,
        root: usize,
        to: Option<&Array>,
        pes: Option<Vec<usize>>,
        wait: bool,
    ) -> PyResult<()> {
        let to = to.unwrap_or(source);
        alike("broadcast", to, source)?;
        macro_rules! call {
            ($t:ty) => {{
                let (source, to) = (source.elements::<$t>()?, to.elements::<$t>()?);
                self.collective(py, pes, wait, |c| c.broadcast(root, &source, &to))
            }};
        }
        with_element!(source.dtype, call)
    }

    /// PE `root`'s `to` gets the combination of the `source` of all.
    #[pyo3(signature = (source, root, to = None, op = "sum", *, pes = None, wait = false))]
    #[allow(clippy::too_many_arguments)] // each is one thing, and Python names them
    fn reduce(
        &self,
        py: Python<'_>,
        source: &Array,
        root: usize,
        to: Option<&Array>,
        op: &str,
        pes: Option<Vec<usize>>,
        wait: bool,
    ) -> PyResult<()> {
        let (to, how) = (to.unwrap_or(source), combine(op)?);
        alike("reduce", to, source)?;
        macro_rules! call {
            ($t:ty) => {{
                let (source, to) = (source.elements::<$t>()?, to.elements::<$t>()?);
                self.collective(py, pes, wait, |c| c.reduce(how, root, &source, &to))
            }};
        }
        with_number!(source.dtype, "reduce", call)
    }

    /// Everyone's `to` gets the combination of the `source` of all.
    #[pyo3(signature = (source, to = None, op = "sum", *, pes = None, wait = false))]
    fn all_reduce(
        &self,
        py: Python<'_>,
        source: &Array,
        to: Option<&Array>,
        op: &str,
        pes: Option<Vec<usize>>,
        wait: bool,
    ) -> PyResult<()> {
        let (to, how) = (to.unwrap_or(source), combine(op)?);
        alike("all_reduce", to, source)?;
        macro_rules! call {
            ($t:ty) => {{
                let (source, to) = (source.elements::<$t>()?, to.elements::<$t>()?);
                self.collective(py, pes, wait, |c| c.all_reduce(how, &source, &to))
            }};
        }
        with_number!(source.dtype, "all_reduce", call)
    }

    /// The `to` of the i-th PE gets the combination of the i-th part of the `source` of all.
    #[pyo3(signature = (source, to, op = "sum", *, pes = None, wait = false))]
    fn reduce_scatter(
        &self,
        py: Python<'_>,
        source: &Array,
        to: &Array,
        op: &str,
        pes: Option<Vec<usize>>,
        wait: bool,
    ) -> PyResult<()> {
        let how = combine(op)?;
        alike("reduce_scatter", to, source)?;
        macro_rules! call {
            ($t:ty) => {{
                let (source, to) = (source.elements::<$t>()?, to.elements::<$t>()?);
                self.collective(py, pes, wait, |c| c.reduce_scatter(how, &source, &to))
            }};
        }
        with_number!(source.dtype, "reduce_scatter", call)
    }

    /// Everyone's `to` gets the `source` of all, one after the other.
    #[pyo3(signature = (source, to, *, pes = None, wait = false))]
    fn all_gather(
        &self,
        py: Python<'_>,
        source: &Array,
        to: &Array,
        pes: Option<Vec<usize>>,
        wait: bool,
    ) -> PyResult<()> {
        alike("all_gather", to, source)?;
        macro_rules! call {
            ($t:ty) => {{
                let (source, to) = (source.elements::<$t>()?, to.elements::<$t>()?);
                self.collective(py, pes, wait, |c| c.all_gather(&source, &to))
            }};
        }
        with_element!(source.dtype, call)
    }

    /// The j-th part of the `to` of the i-th PE gets the i-th part of the `source` of the j-th.
    #[pyo3(signature = (source, to, *, pes = None, wait = false))]
    fn all_to_all(
        &self,
        py: Python<'_>,
        source: &Array,
        to: &Array,
        pes: Option<Vec<usize>>,
        wait: bool,
    ) -> PyResult<()> {
        alike("all_to_all", to, source)?;
        macro_rules! call {
            ($t:ty) => {{
                let (source, to) = (source.elements::<$t>()?, to.elements::<$t>()?);
                self.collective(py, pes, wait, |c| c.all_to_all(&source, &to))
            }};
        }
        with_element!(source.dtype, call)
    }

    fn __repr__(&self) -> String {
        match self.ground.get() {
            Ok(ground) => {
                let names: Vec<String> = (0..ground.team.size()).map(|pe| named(&ground.team, pe)).collect();
                format!("<tandem.Team of {}>", names.join(", "))
            }
            Err(_) => "<tandem.Team, closed>".into(),
        }
    }
}

/// The PEs of a machine, opened: a team of all, and the memory that they share.
///
/// `devices` is "sim:4" for pretend PEs, "cuda:0,1" for GPUs, "cuda" for all of them. A GPU that is named several times is as
/// many PEs, where the environment's CUDA_DEVICE_MAX_CONNECTIONS is 32.
///
/// window: bytes of addresses for each PE's heap, the most that it can have; 0 is 256 GiB on GPUs and 16 GiB for pretend PEs.
/// initial: bytes that each heap has at once; it grows when more is needed.
/// timeout: seconds after which a wait ends in a FaultError.
/// memory: by PE, the bytes that its heap may have.
/// topology: what collectives are planned on, instead of what the machine says. PE i is its GPU i.
/// streams: one for each GPU, which become the PEs' queues. A stream that is passed as a number has to outlive the world.
/// meeting: where the processes of the world meet; the devices are this process's PEs then. All processes open it with the same options.
#[pyclass(frozen, extends = Team, module = "tandem", name = "World")]
pub(crate) struct World;

impl World {
    /// Closes the world; `is_well` where what the others count on is done.
    fn end(slf: &PyRef<'_, Self>, is_well: bool) -> PyResult<()> {
        let ground = &slf.as_super().ground;
        if ground.life.is_closed() {
            return Ok(());
        }
        let team = ground.get()?.team.clone();
        ground.life.close()?;
        team.says_farewell(is_well);
        drop(team);
        slf.py().detach(|| ground.life.release());
        Ok(())
    }
}

#[pymethods]
impl World {
    #[new]
    #[pyo3(signature = (devices, *, window = 0, initial = 0, timeout = 10.0, memory = None, topology = None, streams = None, meeting = None))]
    #[allow(clippy::too_many_arguments)] // each is one thing, and Python names them
    fn new(
        py: Python<'_>,
        devices: &str,
        window: u64,
        initial: u64,
        timeout: f64,
        memory: Option<BTreeMap<usize, u64>>,
        topology: Option<&Topology>,
        streams: Option<Vec<Bound<'_, PyAny>>>,
        meeting: Option<&Meeting>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let timeout = Duration::try_from_secs_f64(timeout)
            .map_err(|_| PyValueError::new_err(format!("timeout {timeout}: expected seconds above 0")))?;
        let options = Options {
            window,
            initial,
            timeout,
            memory: memory.unwrap_or_default().into_iter().collect(),
            ..Options::default()
        };
        let raw = |streams: &Vec<Bound<'_, PyAny>>| streams.iter().map(pe::stream).collect::<PyResult<Vec<u64>>>();
        let (raw, streams) = (streams.as_ref().map(raw).transpose()?, streams.unwrap_or_default());
        let given = topology.map(|topology| topology.0.clone());
        let meeting = meeting.map(|meeting| meeting.0.clone());
        let ground = py.detach(|| {
            let team = open::team(devices, options, raw.as_deref(), meeting)?;
            // Closing says it: a value of Python goes when a program has failed, too.
            team.says_farewell(false);
            let topology = match given {
                Some(topology) => topology,
                None => open::topology(&team).map_err(|e| errors::of(&team, e))?,
            };
            PyResult::Ok(Ground::new(team, topology))
        })?;
        let life = Life::new(format!("World({devices:?})"), streams.into_iter().map(Bound::unbind).collect());
        Ok(PyClassInitializer::from(Team::open(&life, ground)).add_subclass(World))
    }

    /// Gives the memory back. Whatever stands on the world raises ClosedError from then on. The other processes of the world go on; one
    /// that ends without closing its world is lost to them.
    ///
    /// Raises BufferError, and closes nothing, while a view of an array is in use.
    fn close(slf: PyRef<'_, Self>) -> PyResult<()> {
        Self::end(&slf, true)
    }

    /// Whether the world was closed.
    #[getter]
    fn closed(slf: PyRef<'_, Self>) -> bool {
        slf.as_super().ground.life.is_closed()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Waits for what was told, then closes; after an exception it only closes, if it can.
    #[pyo3(signature = (kind, *_others))]
    fn __exit__(slf: PyRef<'_, Self>, kind: Bound<'_, PyAny>, _others: &Bound<'_, PyTuple>) -> PyResult<()> {
        let py = slf.py();
        if !kind.is_none() {
            let _ = Self::end(&slf, false);
            return Ok(());
        }
        if slf.as_super().ground.life.is_closed() {
            return Ok(());
        }
        let done = slf.as_super().synchronize(py);
        let closed = Self::close(slf);
        done.and(closed)
    }
}

/// What the library was built with, for reports of faults.
#[pyfunction]
pub(crate) fn built_with(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("version", env!("CARGO_PKG_VERSION"))?;
    let (nvcc, archs) = tandem_cuda::built_with().unzip();
    dict.set_item("nvcc", nvcc)?;
    dict.set_item("architectures", archs)?;
    Ok(dict)
}

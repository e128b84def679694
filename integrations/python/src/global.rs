//! Arrays over all PEs.

use crate::array::{host, numpy, Array};
use crate::dtype::DType;
use crate::errors;
use crate::life::{Life, Slot};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PySlice;
use std::sync::Arc;
use tandem_fabric::{Distribution, Error, Layout, Symmetric, Team};

/// How elements are dealt: "block", "cyclic", or the length of blocks.
pub(crate) struct Dealt(pub(crate) Distribution);

impl Dealt {
    pub(crate) fn block() -> Self {
        Dealt(Distribution::Block)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Dealt {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(length) = object.extract() {
            return Ok(Dealt(Distribution::BlockCyclic(length)));
        }
        match object.extract::<String>().as_deref() {
            Ok("block") => Ok(Dealt::block()),
            Ok("cyclic") => Ok(Dealt(Distribution::Cyclic)),
            _ => Err(PyValueError::new_err("distribution: expected \"block\", \"cyclic\" or the length of blocks")),
        }
    }
}

/// An array of elements of any type, which has the size of one of these.
#[derive(Clone)]
pub(crate) enum Global {
    One(tandem_fabric::GlobalArray<u8>),
    Two(tandem_fabric::GlobalArray<u16>),
    Four(tandem_fabric::GlobalArray<u32>),
    Eight(tandem_fabric::GlobalArray<u64>),
    Sixteen(tandem_fabric::GlobalArray<[u64; 2]>),
}

macro_rules! from {
    ($($t:ty, $variant:ident;)*) => {$(
        impl From<tandem_fabric::GlobalArray<$t>> for Global {
            fn from(array: tandem_fabric::GlobalArray<$t>) -> Self {
                Global::$variant(array)
            }
        }
    )*};
}

from! {
    u8, One;
    u16, Two;
    u32, Four;
    u64, Eight;
    [u64; 2], Sixteen;
}

/// `$e` with `$array` as the array of its own type.
macro_rules! with {
    ($global:expr, $array:ident => $e:expr) => {
        match $global {
            Global::One($array) => $e,
            Global::Two($array) => $e,
            Global::Four($array) => $e,
            Global::Eight($array) => $e,
            Global::Sixteen($array) => $e,
        }
    };
}

impl Global {
    fn layout(&self) -> Layout {
        with!(self, array => array.layout())
    }

    fn part(&self) -> Result<Symmetric<u8>, Error> {
        with!(self, array => array.part().cast())
    }

    fn read(&self, range: std::ops::Range<usize>) -> Result<Vec<u8>, Error> {
        with!(self, array => Ok(bytemuck::cast_slice(&array.read(range)?).to_vec()))
    }

    fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Error> {
        // Bytes of Python are aligned to nothing in particular.
        with!(self, array => array.write(at, &bytemuck::pod_collect_to_vec::<u8, _>(bytes)))
    }

    fn assign(&self, from: &Self) -> Result<(), Error> {
        match (self, from) {
            (Global::One(to), Global::One(from)) => to.assign(from),
            (Global::Two(to), Global::Two(from)) => to.assign(from),
            (Global::Four(to), Global::Four(from)) => to.assign(from),
            (Global::Eight(to), Global::Eight(from)) => to.assign(from),
            (Global::Sixteen(to), Global::Sixteen(from)) => to.assign(from),
            _ => Err(Error::Invalid { op: "assign an array", problem: "elements of two sizes".into() }),
        }
    }
}

/// One array over all PEs of a team, dealt to them in blocks.
#[pyclass(frozen, module = "tandem", name = "GlobalArray")]
pub(crate) struct GlobalArray {
    held: Slot<(Team, Global)>,
    layout: Layout,
    length: usize,
    dtype: DType,
}

impl GlobalArray {
    pub(crate) fn new(life: &Arc<Life>, team: Team, array: Global, dtype: DType) -> Self {
        let layout = array.layout();
        let length = with!(&array, array => array.len());
        GlobalArray { held: Slot::new(life, (team, array)), layout, length, dtype }
    }

    /// What an index of the host picks, and whether it is one element.
    fn range(&self, index: &Bound<'_, PyAny>) -> PyResult<(std::ops::Range<usize>, bool)> {
        let length = self.length as isize;
        if let Ok(slice) = index.cast::<PySlice>() {
            let slice = slice.indices(length)?;
            if slice.step != 1 {
                return Err(PyValueError::new_err("a global array is read and written in steps of 1"));
            }
            let start = slice.start as usize;
            return Ok((start..start + slice.slicelength, false));
        }
        let index: isize =
            index.extract().map_err(|_| PyTypeError::new_err("an index of a global array is a number or a slice"))?;
        let place = if index < 0 { index + length } else { index };
        if !(0..length).contains(&place) {
            return Err(PyIndexError::new_err(format!("index {index} of a global array of {length}")));
        }
        Ok((place as usize..place as usize + 1, true))
    }

    fn inside(&self, index: usize) -> PyResult<()> {
        if index < self.length {
            return Ok(());
        }
        Err(PyIndexError::new_err(format!("index {index} of a global array of {}", self.length)))
    }
}

#[pymethods]
impl GlobalArray {
    fn __len__(&self) -> usize {
        self.length
    }

    /// The name of the elements' type.
    #[getter(dtype)]
    fn dtype_name(&self) -> &'static str {
        self.dtype.name()
    }

    /// The memory of the parts: as many elements on every PE, some of them unused.
    #[getter]
    fn part(&self) -> PyResult<Array> {
        let (team, array) = self.held.get()?;
        let part = array.part().map_err(errors::bare)?;
        let room = part.len() / self.dtype.size();
        Ok(Array::new(Slot::new(&self.held.life, (team, part)), vec![room], self.dtype))
    }

    /// The PE that has an element, and where in its part.
    fn owner(&self, index: usize) -> PyResult<(usize, usize)> {
        self.inside(index)?;
        Ok(self.layout.owner(index))
    }

    /// Which element is at `place` of PE `pe`'s part.
    fn index_of(&self, pe: usize, place: usize) -> PyResult<usize> {
        if pe >= self.held.get()?.0.size() || place >= self.layout.local_len(pe) {
            return Err(PyIndexError::new_err(format!("PE {pe} has no element {place} of this array")));
        }
        Ok(self.layout.index_of(pe, place))
    }

    /// Elements of PE `pe`.
    fn local_length(&self, pe: usize) -> PyResult<usize> {
        let (team, _) = self.held.get()?;
        if pe >= team.size() {
            return Err(PyIndexError::new_err(format!("there is no PE {pe}; the team has {}", team.size())));
        }
        Ok(self.layout.local_len(pe))
    }

    /// An element, or a NumPy array with a copy of some. In no order with what queues do meanwhile.
    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (range, is_one) = self.range(index)?;
        let (team, array) = self.held.get()?;
        let bytes = py.detach(|| array.read(range)).map_err(|e| errors::of(&team, e))?;
        let elements = numpy(py, &bytes, self.dtype)?;
        if is_one {
            return elements.get_item(0);
        }
        Ok(elements)
    }

    /// Overwrites elements from the host. In no order with what queues do meanwhile.
    fn __setitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let (range, is_one) = self.range(index)?;
        let (team, array) = self.held.get()?;
        let what = || format!("write to a global array of {}", self.dtype.name());
        let data =
            if is_one { py.import("numpy")?.call_method1("full", (1, data, self.dtype.name()))? } else { data.clone() };
        let (data, shape) = host(py, &data, self.dtype, what)?;
        if shape != [range.len()] {
            return Err(PyValueError::new_err(format!(
                "{}: data of shape {shape:?} for {} elements",
                what(),
                range.len()
            )));
        }
        let bytes = data.as_bytes();
        py.detach(|| array.write(range.start, bytes)).map_err(|e| errors::of(&team, e))
    }

    /// Copies all of `source` here, whatever the distributions, in the order of the queues.
    fn assign(&self, py: Python<'_>, source: &GlobalArray) -> PyResult<()> {
        if self.dtype != source.dtype {
            let text = format!("assign: {} from {}; expected one dtype", self.dtype.name(), source.dtype.name());
            return Err(PyTypeError::new_err(text));
        }
        let ((team, to), (_, from)) = (self.held.get()?, source.held.get()?);
        py.detach(|| to.assign(&from)).map_err(|e| errors::of(&team, e))
    }

    /// The array as kernels of PE `pe` get it: a `GlobalView`. The world cannot be closed while there is one.
    fn on<'py>(&self, py: Python<'py>, pe: usize) -> PyResult<Bound<'py, PyAny>> {
        let (team, array) = self.held.get()?;
        if pe >= team.size() {
            return Err(PyIndexError::new_err(format!("there is no PE {pe}; the team has {}", team.size())));
        }
        let part = array.part().map_err(errors::bare)?;
        let at = |pe: usize| {
            if team.is_cuda() {
                part.address(team.members()[pe])
            } else {
                part.host_address(team.members()[pe])
            }
        };
        let missing = || errors::plain("InvalidError", "the parts are not at addresses that kernels reach".into());
        let base = at(0).ok_or_else(missing)?;
        let stride = if team.size() > 1 { at(1).ok_or_else(missing)?.wrapping_sub(base) } else { 0 };
        for other in 0..team.size() {
            if team.is_cuda() {
                team.reaches(pe, other).map_err(|e| errors::of(&team, e))?;
            }
            if at(other).ok_or_else(missing)? != base.wrapping_add(stride.wrapping_mul(other as u64)) {
                let text = "kernels reach the parts of a team whose PEs are evenly spaced in the world".into();
                return Err(errors::plain("InvalidError", text));
            }
        }
        let rule = (base, stride, self.length, self.layout.block(), team.size(), pe);
        let kernel = py.import("tandem._kernel")?;
        kernel.call_method1("view", (rule, self.dtype.name(), self.part()?.on(pe)?, team.is_cuda()))
    }

    fn __repr__(&self) -> String {
        format!("<tandem.GlobalArray of {} {}>", self.length, self.dtype.name())
    }
}

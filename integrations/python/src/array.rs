//! Symmetric arrays, and their parts on one PE, which other libraries see.

use crate::dlpack;
use crate::dtype::DType;
use crate::errors::{self, named};
use crate::life::{Slot, View};
use crate::open::near;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PySlice, PyTuple};
use tandem_fabric::{Queue, Symmetric, Team};

/// An array that every PE of a world has, at the same place of its memory.
#[pyclass(frozen, module = "tandem", name = "Array")]
pub(crate) struct Array {
    /// The team on which it was made, and its bytes.
    held: Slot<(Team, Symmetric<u8>)>,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: DType,
}

/// Elements of a shape.
pub(crate) fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
}

impl Array {
    pub(crate) fn new(held: Slot<(Team, Symmetric<u8>)>, shape: Vec<usize>, dtype: DType) -> Self {
        Array { held, shape, dtype }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> PyResult<Symmetric<u8>> {
        Ok(self.held.get()?.1)
    }

    /// As elements of `T`, which has the size of the array's.
    pub(crate) fn elements<T: bytemuck::Pod>(&self) -> PyResult<Symmetric<T>> {
        self.bytes()?.cast().map_err(errors::bare)
    }

    fn size(&self) -> usize {
        count(&self.shape).unwrap_or(usize::MAX)
    }

    /// `float32 of shape (2, 3)`.
    pub(crate) fn kind(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let comma = if shape.len() == 1 { "," } else { "" };
        format!("{} of shape ({}{comma})", self.dtype.name(), shape.join(", "))
    }

    /// What an index picks, as a shape and a range of elements. Only what lies in one piece can be picked.
    fn pick(&self, index: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, std::ops::Range<usize>)> {
        let indices: Vec<Bound<'_, PyAny>> = match index.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![index.clone()],
        };
        if indices.len() > self.shape.len() {
            return Err(PyIndexError::new_err(format!("{} indices for an array {}", indices.len(), self.kind())));
        }
        let (mut at, mut shape) = (0, Vec::new());
        let mut is_cut = false;
        for (axis, index) in indices.iter().enumerate() {
            let length = self.shape[axis];
            let below: usize = self.shape[axis + 1..].iter().product();
            if let Ok(slice) = index.cast::<PySlice>() {
                let slice = slice.indices(length as isize)?;
                let is_whole = slice.slicelength == length;
                if slice.step != 1 && slice.slicelength > 1 || is_cut && !is_whole {
                    return Err(PyValueError::new_err(format!(
                        "elements of an array {} that do not follow each other: a transfer takes them in one piece, so index leading \
                         axes, and slice one of them by steps of 1",
                        self.kind()
                    )));
                }
                at += slice.start.max(0) as usize * below;
                is_cut = true;
                shape.push(slice.slicelength);
                continue;
            }
            if is_cut {
                return Err(PyValueError::new_err(
                    "a number after a slice picks elements that do not follow each other",
                ));
            }
            let index: isize = index.extract().map_err(|_| {
                PyTypeError::new_err("an index of a symmetric array is a number, a slice, or a tuple of them")
            })?;
            let place = if index < 0 { index + length as isize } else { index };
            if !(0..length as isize).contains(&place) {
                return Err(PyIndexError::new_err(format!("index {index} of axis {axis} of an array {}", self.kind())));
            }
            at += place as usize * below;
        }
        shape.extend(&self.shape[indices.len()..]);
        let length = count(&shape).unwrap_or(0);
        // An empty part may begin behind the end.
        let at = if length == 0 { 0 } else { at };
        Ok((shape, at..at + length))
    }
}

#[pymethods]
impl Array {
    /// Lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The name of the elements' type.
    #[getter(dtype)]
    fn dtype_name(&self) -> &'static str {
        self.dtype.name()
    }

    /// Number of elements on each PE.
    #[getter(size)]
    fn size_of(&self) -> usize {
        self.size()
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Bytes on each PE.
    #[getter]
    fn nbytes(&self) -> usize {
        self.size() * self.dtype.size()
    }

    /// Bytes from where one PE of the team has the array to where the next one has it, for kernels that compute addresses; None
    /// where that differs, or there is one PE.
    #[getter]
    fn stride(&self) -> PyResult<Option<i64>> {
        let (team, memory) = self.held.get()?;
        let at: Option<Vec<u64>> = team.members().iter().map(|&pe| memory.address(pe)).collect();
        let steps: Vec<i64> =
            at.unwrap_or_default().windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) as i64).collect();
        Ok(steps.first().copied().filter(|first| steps.iter().all(|step| step == first)))
    }

    /// What lies on PE `pe` of the team on which the array was made.
    pub(crate) fn on(&self, pe: usize) -> PyResult<Part> {
        let (team, memory) = self.held.get()?;
        if pe >= team.size() {
            return Err(PyIndexError::new_err(format!("there is no PE {pe}; the team has {}", team.size())));
        }
        Ok(Part { view: View::new(&self.held.life)?, team, memory, pe, shape: self.shape.clone(), dtype: self.dtype })
    }

    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Array> {
        let (shape, range) = self.pick(index)?;
        let size = self.dtype.size();
        let (team, memory) = self.held.get()?;
        let part = memory.slice(range.start * size..range.end * size).map_err(errors::bare)?;
        Ok(Array::new(Slot::new(&self.held.life, (team, part)), shape, self.dtype))
    }

    /// The elements in another shape.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>) -> PyResult<Array> {
        let shape = match shape.get_item(0) {
            Ok(first) if shape.len() == 1 => first.extract::<Shape>()?.0,
            _ => shape.extract()?,
        };
        if count(&shape) != Some(self.size()) {
            return Err(PyValueError::new_err(format!("an array {} in the shape {shape:?}", self.kind())));
        }
        Ok(Array::new(Slot::new(&self.held.life, self.held.get()?), shape, self.dtype))
    }

    /// A NumPy array with a copy of PE `pe`'s elements.
    fn read<'py>(&self, py: Python<'py>, pe: usize) -> PyResult<Bound<'py, PyAny>> {
        let (team, memory) = self.held.get()?;
        let bytes = py.detach(|| team.read(pe, &memory)).map_err(|e| errors::of(&team, e))?;
        numpy(py, &bytes, self.dtype)?.call_method1("reshape", (self.shape(py)?,))
    }

    /// Overwrites PE `pe`'s elements with a NumPy array or what becomes one, of the same shape and type.
    fn write(&self, py: Python<'_>, pe: usize, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let (team, memory) = self.held.get()?;
        let what = || format!("write to {} of an array {}", named(&team, pe), self.kind());
        let (data, shape) = host(py, data, self.dtype, what)?;
        if shape != self.shape {
            return Err(PyValueError::new_err(format!("{}: data of shape {shape:?}", what())));
        }
        let bytes = data.as_bytes();
        py.detach(|| team.write(pe, &memory, bytes)).map_err(|e| errors::of(&team, e))
    }

    fn __len__(&self) -> PyResult<usize> {
        self.shape.first().copied().ok_or_else(|| PyTypeError::new_err("an array without axes has no length"))
    }

    fn __repr__(&self) -> String {
        // What is in it may be secret.
        format!("<tandem.Array {}>", self.kind())
    }
}

/// A shape: a number or a tuple of numbers.
pub(crate) struct Shape(pub(crate) Vec<usize>);

impl<'a, 'py> FromPyObject<'a, 'py> for Shape {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(length) = object.extract() {
            return Ok(Shape(vec![length]));
        }
        let shape = object.extract().map_err(|_| {
            let found = object.repr().map_or_else(|_| String::from("?"), |repr| repr.to_string());
            PyValueError::new_err(format!("shape {found}: expected numbers from 0 on"))
        });
        shape.map(Shape)
    }
}

/// A NumPy array of one axis with these bytes.
pub(crate) fn numpy<'py>(py: Python<'py>, bytes: &[u8], dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    if bytes.is_empty() {
        return numpy.call_method1("zeros", (0, dtype.name()));
    }
    numpy.call_method1("frombuffer", (PyByteArray::new(py, bytes), dtype.name()))
}

/// The bytes and the shape of host data, which has this type of elements.
pub(crate) fn host<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dtype: DType,
    what: impl Fn() -> String,
) -> PyResult<(Bound<'py, PyBytes>, Vec<usize>)> {
    let array = py.import("numpy")?.call_method1("asarray", (data,))?;
    let found: String = array.getattr("dtype")?.str()?.extract()?;
    if found != dtype.name() {
        return Err(PyTypeError::new_err(format!("{}: data of the type {found}", what())));
    }
    let shape = array.getattr("shape")?.extract()?;
    Ok((array.call_method0("tobytes")?.cast_into::<PyBytes>()?, shape))
}

/// What of an array lies on one PE, for libraries of arrays: NumPy where the PE is a pretend one, CuPy, PyTorch, numba and
/// JAX where it is a GPU. Nothing is copied. The world cannot be closed while there is a part, or what was made of it.
#[pyclass(frozen, module = "tandem", name = "Part")]
pub(crate) struct Part {
    team: Team,
    memory: Symmetric<u8>,
    // Dropped behind them.
    view: View,
    /// The PE of the team.
    #[pyo3(get)]
    pe: usize,
    shape: Vec<usize>,
    dtype: DType,
}

impl Part {
    fn pe_of_world(&self) -> usize {
        self.team.members()[self.pe]
    }

    /// The address for the device, or for this process.
    fn at(&self) -> PyResult<u64> {
        let at = if self.team.is_cuda() {
            self.memory.address(self.pe_of_world())
        } else {
            self.memory.host_address(self.pe_of_world())
        };
        at.ok_or_else(|| {
            PyBufferError::new_err(format!("{} has no part of it in one piece", named(&self.team, self.pe)))
        })
    }

    /// DLPack's kind of device, and which one.
    fn device(&self) -> (i32, i32) {
        let stream = near(&self.team, self.pe).and_then(Queue::stream);
        let index = stream.map(|stream| stream.device().index() as i32);
        index.map_or((dlpack::CPU, 0), |index| (dlpack::CUDA, index))
    }

    fn interface<'py>(&self, py: Python<'py>, version: u8) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        dict.set_item("typestr", self.dtype.typestr())?;
        dict.set_item("data", (self.at()?, false))?;
        dict.set_item("strides", py.None())?;
        dict.set_item("version", version)?;
        Ok(dict)
    }

    fn other(&self, wanted: &str) -> PyErr {
        PyAttributeError::new_err(format!("{} has no {wanted}", named(&self.team, self.pe)))
    }
}

#[pymethods]
impl Part {
    /// Lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The name of the elements' type.
    #[getter(dtype)]
    fn dtype_name(&self) -> &'static str {
        self.dtype.name()
    }

    /// The address of the first element: of this process for a pretend PE, else of every GPU.
    #[getter]
    fn ptr(&self) -> PyResult<u64> {
        self.at()
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.team.is_cuda() {
            return Err(self.other("__array_interface__: it is a GPU"));
        }
        self.interface(py, 3)
    }

    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if !self.team.is_cuda() {
            return Err(self.other("__cuda_array_interface__: it is a pretend PE"));
        }
        let dict = self.interface(py, 3)?;
        // What the PE's queue was told comes first.
        let stream = near(&self.team, self.pe).and_then(Queue::stream).map(|stream| stream.raw() as u64);
        dict.set_item("stream", stream.filter(|&raw| raw != 0).unwrap_or(1))?;
        Ok(dict)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        self.device()
    }

    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let device = self.device();
        if dl_device.is_some_and(|wanted| wanted != device) || copy == Some(true) {
            let pe = named(&self.team, self.pe);
            return Err(PyBufferError::new_err(format!("a part on {pe} is shared where it is, and not copied")));
        }
        dlpack::order(&self.team, self.pe, stream)?;
        let tensor = dlpack::Tensor {
            at: self.at()?,
            device,
            dtype: self.dtype.dlpack(),
            shape: self.shape.iter().map(|&n| n as i64).collect(),
            keep: (self.memory.clone(), self.view.clone()),
        };
        tensor.capsule(py, max_version.is_some_and(|(major, _)| major >= 1))
    }

    fn __repr__(&self) -> String {
        format!("<tandem.Part on {}>", named(&self.team, self.pe))
    }
}

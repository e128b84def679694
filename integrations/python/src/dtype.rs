//! Types of elements.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DType(&'static Row);

#[derive(Debug, PartialEq, Eq)]
struct Row {
    /// NumPy's name.
    name: &'static str,
    /// Bytes of an element.
    size: usize,
    /// The letter of `__array_interface__`, and the code of DLPack.
    kind: (char, u8),
}

const fn row(name: &'static str, size: usize, letter: char, code: u8) -> Row {
    Row { name, size, kind: (letter, code) }
}

/// DLPack's codes: 0 signed, 1 unsigned, 2 floating point, 5 complex, 6 boolean.
static ROWS: [Row; 14] = [
    row("bool", 1, 'b', 6),
    row("int8", 1, 'i', 0),
    row("int16", 2, 'i', 0),
    row("int32", 4, 'i', 0),
    row("int64", 8, 'i', 0),
    row("uint8", 1, 'u', 1),
    row("uint16", 2, 'u', 1),
    row("uint32", 4, 'u', 1),
    row("uint64", 8, 'u', 1),
    row("float16", 2, 'f', 2),
    row("float32", 4, 'f', 2),
    row("float64", 8, 'f', 2),
    row("complex64", 8, 'c', 5),
    row("complex128", 16, 'c', 5),
];

impl DType {
    fn named(name: &str) -> Option<Self> {
        let name = match name {
            "float" => "float64",
            "int" => "int64",
            "complex" => "complex128",
            name => name,
        };
        ROWS.iter().find(|row| row.name == name).map(DType)
    }

    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }

    /// Bytes of an element.
    pub(crate) fn size(self) -> usize {
        self.0.size
    }

    /// As `__array_interface__` and `__cuda_array_interface__` say it.
    pub(crate) fn typestr(self) -> String {
        let order = if self.0.size == 1 { '|' } else { '<' };
        format!("{order}{}{}", self.0.kind.0, self.0.size)
    }

    /// DLPack's code and bits.
    pub(crate) fn dlpack(self) -> (u8, u8) {
        (self.0.kind.1, self.0.size as u8 * 8)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for DType {
    type Error = PyErr;

    /// From a name, a type of Python, NumPy or PyTorch, or an object with a name, such as `numpy.dtype`.
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let name: String = if let Ok(name) = object.extract() {
            name
        } else if let Ok(class) = object.cast::<PyType>() {
            class.name()?.extract()?
        } else if let Ok(name) = object.getattr("name").and_then(|name| name.extract()) {
            name
        } else {
            object.str()?.extract()?
        };
        let last = name.rsplit('.').next().unwrap_or(&name);
        DType::named(last).ok_or_else(|| {
            let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            PyTypeError::new_err(format!("dtype {name:?}: expected one of {}", known.join(", ")))
        })
    }
}

/// Calls `$f::<T>($($args),*)` with the numbers that collectives combine, or raises.
macro_rules! with_number {
    ($dtype:expr, $op:expr, $call:ident) => {
        match $dtype.name() {
            "uint32" => $call!(u32),
            "int32" => $call!(i32),
            "uint64" => $call!(u64),
            "int64" => $call!(i64),
            "float32" => $call!(f32),
            "float64" => $call!(f64),
            other => {
                return Err(pyo3::exceptions::PyTypeError::new_err(format!(
                    "{}: numbers of the type {other}; it combines uint32, int32, uint64, int64, float32 and float64",
                    $op
                )))
            }
        }
    };
}

/// Calls `$call!(T)` with the word of that many bytes.
macro_rules! with_element {
    ($dtype:expr, $call:ident) => {
        match $dtype.size() {
            1 => $call!(u8),
            2 => $call!(u16),
            4 => $call!(u32),
            8 => $call!(u64),
            _ => $call!([u64; 2]),
        }
    };
}

/// Calls `$call!(T)` with the type of words that atomics and waits work on, or raises.
macro_rules! with_word {
    ($dtype:expr, $op:expr, $call:ident) => {
        match $dtype.name() {
            "uint32" => $call!(u32),
            "int32" => $call!(i32),
            "uint64" => $call!(u64),
            "int64" => $call!(i64),
            other => {
                return Err(pyo3::exceptions::PyTypeError::new_err(format!(
                    "{}: a word of the type {other}; expected uint32, int32, uint64 or int64",
                    $op
                )))
            }
        }
    };
}

pub(crate) use {with_element, with_number, with_word};

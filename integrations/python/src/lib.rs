//! The fabric in Python: the module `tandem._fabric`, of which the package `tandem` shows the public part. `_fabric.pyi` has
//! the types.
//!
//! An object of Python holds a handle of the fabric in a slot (`life.rs`), which closing the world empties. What blocks does
//! so without the interpreter's lock. A panic becomes Python's `PanicException`.

mod array;
mod dlpack;
mod dtype;
mod errors;
mod global;
mod life;
mod open;
mod pe;
mod process;
mod team;
mod topology;

use pyo3::prelude::*;

/// Panics, for the test that shows what becomes of it.
#[cfg(debug_assertions)]
#[pyfunction]
fn _panic() {
    panic!("asked to");
}

#[pymodule]
fn _fabric(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<team::Team>()?;
    module.add_class::<team::World>()?;
    module.add_class::<pe::Pe>()?;
    module.add_class::<array::Array>()?;
    module.add_class::<array::Part>()?;
    module.add_class::<global::GlobalArray>()?;
    module.add_class::<topology::Topology>()?;
    module.add_class::<topology::Plan>()?;
    module.add_class::<process::Meeting>()?;
    module.add_class::<process::Process>()?;
    module.add_function(wrap_pyfunction!(process::launch, module)?)?;
    module.add_function(wrap_pyfunction!(team::built_with, module)?)?;
    #[cfg(debug_assertions)]
    module.add_function(wrap_pyfunction!(_panic, module)?)?;
    Ok(())
}

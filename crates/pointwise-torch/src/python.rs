//! The Python module `pointwise._native`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::describe::describe;
use crate::export::implement_all;
use crate::kernel::Library;
use crate::registry::family;

/// The ops as JSON.
#[pyfunction(name = "describe")]
fn describe_family() -> String {
    describe(Library::get_or_init(family))
}

/// Gives torch, whose `libtorch_cpu.so` lies at a path, kernels for ops of a namespace: lines of a dispatch key, a name
/// with its overload, and a number.
#[pyfunction(name = "implement")]
fn implement_family(torch: &str, namespace: &str, kernels: &str) -> PyResult<()> {
    Library::get_or_init(family);
    implement_all(torch, namespace, kernels).map_err(PyRuntimeError::new_err)
}

/// The module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(describe_family, module)?)?;
    module.add_function(wrap_pyfunction!(implement_family, module)?)
}

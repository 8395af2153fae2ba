//! The Python module `pointwise._native`.

use pointwise::DType;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::abi::Api;
use crate::arrays;
use crate::describe::describe;
use crate::export::implement_all;
use crate::fusion;
use crate::kernel::Library;
use crate::overriding::{Keys, calls, choose, find};
use crate::rope::tables;
use crate::tensor::Tensor;

/// The ops as JSON.
#[pyfunction(name = "describe")]
fn describe_family() -> String {
    describe(Library::family())
}

/// Gives torch, whose `libtorch_cpu.so` lies at a path, kernels for ops of a namespace: lines of a dispatch key, a name
/// with its overload, and a number.
#[pyfunction(name = "implement")]
fn implement_family(torch: &str, namespace: &str, kernels: &str) -> PyResult<()> {
    Library::family();
    implement_all(torch, namespace, kernels).map_err(PyRuntimeError::new_err)
}

/// Finds aten's ops. Returns the names of those that are there with the numbers of their kernels, as [`implement_family`]
/// takes them. `cpu` and `cuda` are bits of torch's dispatch keys; `ask` takes the handle of a tensor and returns its keys:
/// see [`Keys`].
#[pyfunction]
fn override_find(torch: &str, cpu: u64, cuda: u64, ask: Py<PyAny>) -> PyResult<Vec<(&'static str, usize)>> {
    let api = Api::load(torch).map_err(PyRuntimeError::new_err)?;
    let ask = move |tensor: Tensor| {
        let keys = Python::attach(|py| {
            // SAFETY: a capsule without a name and a destructor; the handle in it is `ask`'s.
            let handle = unsafe {
                let capsule = pyo3::ffi::PyCapsule_New(tensor.into_handle(), std::ptr::null(), None);
                Bound::from_owned_ptr_or_err(py, capsule)
            }?;
            ask.call1(py, (handle,))?.extract::<u64>(py)
        });
        keys.map_err(|e| e.to_string())
    };
    let keys = Keys { cpu, cuda, ask: Box::new(ask) };
    find(api, keys, Library::family().overrides()).map_err(PyRuntimeError::new_err)
}

/// Lets calls of some ops run pointwise's kernels, by aten's names with their overloads. Calls of all others run torch's.
#[pyfunction]
fn override_choose(names: Vec<String>) {
    choose(&names, Library::family().overrides());
}

/// Returns the number of calls of aten's ops that have run pointwise's kernels.
#[pyfunction]
fn override_calls() -> usize {
    calls()
}

/// Returns the number of a program, whose text is JSON.
#[pyfunction]
fn fusion_program(text: &str) -> PyResult<usize> {
    fusion::program(text).map_err(PyValueError::new_err)
}

/// Gives torch, whose `libtorch_cpu.so` lies at a path, the op `pointwise::fused`, which runs programs.
#[pyfunction]
fn fusion_implement(torch: &str) -> PyResult<()> {
    let number = Library::family().fused().ok_or_else(|| PyRuntimeError::new_err("there is no kernel of programs"))?;
    let kernels = format!("CPU fused {number}\nCUDA fused {number}");
    implement_all(torch, "pointwise", &kernels).map_err(PyRuntimeError::new_err)
}

/// Cosines and sines of a named rotary embedding for positions from 0 to `length`, one row after another: bytes of f32.
#[pyfunction]
fn rope_tables<'py>(
    py: Python<'py>,
    name: &str,
    settings: Vec<(String, String)>,
    head_dim: usize,
    length: u32,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (cos, sin) = tables(name, &settings, head_dim, length).map_err(PyValueError::new_err)?;
    let bytes = |table: Vec<f32>| {
        let bytes: Vec<u8> = table.iter().flat_map(|x| x.to_ne_bytes()).collect();
        PyBytes::new(py, &bytes)
    };
    Ok((bytes(cos), bytes(sin)))
}

/// The module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    // torch's name of each element type, and pointwise's.
    module.add("element_types", DType::ALL.map(|dtype| (dtype.torch_name(), dtype.name())).to_vec())?;
    module.add_function(wrap_pyfunction!(describe_family, module)?)?;
    module.add_function(wrap_pyfunction!(implement_family, module)?)?;
    module.add_function(wrap_pyfunction!(override_find, module)?)?;
    module.add_function(wrap_pyfunction!(override_choose, module)?)?;
    module.add_function(wrap_pyfunction!(override_calls, module)?)?;
    module.add_function(wrap_pyfunction!(fusion_program, module)?)?;
    module.add_function(wrap_pyfunction!(fusion_implement, module)?)?;
    module.add_function(wrap_pyfunction!(rope_tables, module)?)?;
    arrays::add_to(module)
}

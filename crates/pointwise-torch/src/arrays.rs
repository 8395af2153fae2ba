//! Calls of ops from Python without torch: on NumPy's arrays and on every object that speaks DLPack.

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use pointwise::interop::dlpack::{
    DLDataType, DLManagedTensor, DLManagedTensorVersioned, Managed, VERSION, export, export_versioned,
};
use pointwise::kernel::{Rng, result_type};
use pointwise::tensor::RawPointer;
use pointwise::{DType, Device, Number, Operand, Philox, Stream, Tensor, TensorView, kernels};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt};

use crate::abi::Element;
use crate::call::launch_on;
use crate::kernel::Library;
use crate::layout;
use crate::operand::Known;
use crate::registry::OpSpec;
use crate::results::{layout_of_results, own_layouts};
use crate::tensor::{Place, Raw};

mod rope;

const VERSIONED: &CStr = c"dltensor_versioned";
const UNVERSIONED: &CStr = c"dltensor";
/// DLPack's number of CUDA.
const CUDA: i32 = 2;
/// DLPack's f64, which has no tensors in pointwise: memory of i64 holds it.
const F64: DLDataType = DLDataType { code: 2, bits: 64, lanes: 1 };

fn runtime(error: impl ToString) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A result: an array of pointwise's own memory. Other libraries take it over by DLPack (`numpy.from_dlpack`,
/// `torch.from_dlpack`), to be read.
#[pyclass(frozen, module = "pointwise")]
pub(crate) struct Array {
    /// None once it was given away.
    tensor: Mutex<Option<Tensor>>,
    element: Element,
    /// True if its memory is given away, also to be written.
    given: bool,
}

impl Array {
    fn tensor(&self) -> PyResult<Tensor> {
        let held = self.tensor.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone().ok_or_else(|| PyBufferError::new_err("the array was given away already"))
    }
}

#[pymethods]
impl Array {
    /// The sizes.
    #[getter]
    fn shape(&self) -> PyResult<Vec<usize>> {
        Ok(self.tensor()?.shape().to_vec())
    }

    /// The name of the element type, as torch has it.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.element.name()
    }

    /// `cpu` or `cuda:N`.
    #[getter]
    fn device(&self) -> PyResult<String> {
        Ok(self.tensor()?.device().to_string())
    }

    fn __repr__(&self) -> PyResult<String> {
        let (shape, dtype, device) = (self.shape()?, self.dtype(), self.device()?);
        Ok(format!("pointwise.Array(shape={shape:?}, dtype={dtype}, device={device})"))
    }

    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        Ok(self.tensor()?.device().ordinal().map_or((1, 0), |ordinal| (CUDA, ordinal as i32)))
    }

    /// The array as a DLPack capsule. A consumer that does not know versions gets a copy, as it could not be told that
    /// the memory is to be read alone.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if dl_device.is_some_and(|device| self.__dlpack_device__().is_ok_and(|own| own != device)) {
            return Err(PyBufferError::new_err("an array of pointwise is not moved to another device by __dlpack__"));
        }
        let mut tensor = match self.given {
            true => self.tensor.lock().unwrap_or_else(PoisonError::into_inner).take(),
            false => None,
        };
        if tensor.is_none() {
            tensor = Some(self.tensor()?);
        }
        let Some(mut tensor) = tensor else { return Err(PyBufferError::new_err("the array was given away already")) };
        let is_versioned = max_version.is_some_and(|(major, _)| major >= VERSION.major);
        if !self.given && (copy == Some(true) || !is_versioned) {
            tensor = tensor.copy().map_err(runtime)?;
        }
        let stream = match (tensor.device().is_cuda(), stream) {
            // -1: the consumer takes care of the order, so all is done when it has the array.
            (true, Some(-1)) => {
                tensor.device().synchronize().map_err(runtime)?;
                None
            }
            // 1 is the legacy default stream, and so is none; 2 the default stream of the thread, by the driver's number.
            (true, stream) => {
                let raw = match stream {
                    None | Some(1) => 0,
                    Some(raw) => raw as usize,
                };
                // SAFETY: the protocol demands a stream of the device that lives while the consumer has the array.
                Some(
                    unsafe { Stream::from_raw(tensor.device(), std::ptr::without_provenance_mut(raw)) }
                        .map_err(runtime)?,
                )
            }
            (false, _) => None,
        };
        let set = |dtype: &mut DLDataType| {
            if self.element == Element::F64 {
                *dtype = F64;
            }
        };
        if is_versioned {
            let mut given = export_versioned(tensor, stream.as_ref()).map_err(runtime)?;
            // SAFETY: just made, and nobody else has it.
            set(unsafe { &mut given.as_mut().dl_tensor.dtype });
            capsule(py, given.cast(), VERSIONED, delete_versioned)
        } else {
            let mut given = export(tensor, stream.as_ref()).map_err(runtime)?;
            // SAFETY: as above.
            set(unsafe { &mut given.as_mut().dl_tensor.dtype });
            capsule(py, given.cast(), UNVERSIONED, delete_unversioned)
        }
    }
}

/// A capsule of a struct that was just made.
fn capsule<'py>(
    py: Python<'py>,
    given: NonNull<std::ffi::c_void>,
    name: &'static CStr,
    delete: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the pointer is not null, the name static; a new reference or an error.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(given.as_ptr(), name.as_ptr(), Some(delete))) }
}

/// Gives back what nobody took: who takes it changes the capsule's name.
unsafe extern "C" fn delete_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this once with the capsule; the pointer under this name is the struct.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            let given = ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast::<DLManagedTensorVersioned>();
            drop(NonNull::new(given).map(|given| Managed::from_versioned(given)));
        }
    }
}

/// [`delete_versioned`] for the older structure.
unsafe extern "C" fn delete_unversioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) != 0 {
            let given = ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast::<DLManagedTensor>();
            drop(NonNull::new(given).map(|given| Managed::from_unversioned(given)));
        }
    }
}

/// An operand's memory.
struct Memory {
    managed: Managed,
    element: Element,
    place: Place,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    /// The converted tensor.
    converted: Option<Tensor>,
}

impl Memory {
    /// Takes the memory of an object that speaks DLPack.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        let py = object.py();
        let (kind, index): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        let options = PyDict::new(py);
        if kind == CUDA {
            let device = Device::cuda(usize::try_from(index).unwrap_or(usize::MAX)).map_err(runtime)?;
            options.set_item("stream", device.stream().raw().addr())?;
        }
        let older = options.copy()?;
        options.set_item("max_version", (VERSION.major, VERSION.minor))?;
        let capsule = match object.call_method("__dlpack__", (), Some(&options)) {
            // A producer of before version 1.0 has no such argument.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                object.call_method("__dlpack__", (), Some(&older))?
            }
            capsule => capsule?,
        };
        let managed = taken(&capsule)?;
        let tensor = managed.tensor();
        let element = match tensor.dtype {
            F64 => Element::F64,
            dtype => Element::Of(dtype.dtype().map_err(|e| PyTypeError::new_err(e.to_string()))?),
        };
        let place = match tensor.device.device().map_err(runtime)?.ordinal() {
            None => Place::Cpu,
            Some(ordinal) => Place::Cuda(ordinal as i32),
        };
        let sizes = managed.sizes().map_err(runtime)?.to_vec();
        if sizes.iter().any(|size| *size < 0) {
            return Err(PyValueError::new_err(format!("an array of sizes {sizes:?}")));
        }
        let strides = managed.strides().map_err(runtime)?.map_or_else(|| layout::contiguous(&sizes), <[i64]>::to_vec);
        Ok(Memory { managed, element, place, sizes, strides, converted: None })
    }

    fn raw(&self) -> Raw<'_> {
        let Memory { element, place, .. } = *self;
        match &self.converted {
            None => Raw { data: self.managed.data(), element, sizes: &self.sizes, strides: &self.strides, place },
            Some(tensor) => {
                let data = pointer(tensor);
                Raw { data, element: Element::Of(tensor.dtype()), sizes: &self.sizes, strides: tensor.strides(), place }
            }
        }
    }

    /// Its elements as pointwise sees them.
    fn view(&self, device: &Device) -> PyResult<TensorView<'_>> {
        let Element::Of(dtype) = self.element else {
            return Err(PyTypeError::new_err("float64 goes with float64 alone: convert the arrays to one type"));
        };
        let sizes: Vec<usize> = self.sizes.iter().map(|size| *size as usize).collect();
        let data = RawPointer::from(self.managed.data());
        // SAFETY: the producer vouches for its memory until it is given back.
        unsafe { TensorView::from_raw_parts(device, data, dtype, sizes, &self.strides) }
            .map_err(|e| PyValueError::new_err(e.to_string()))
    }
}

/// A tensor's first element, on whichever device.
fn pointer(tensor: &Tensor) -> *mut u8 {
    tensor.as_ptr().cast_mut()
}

/// Takes over the struct in a capsule.
fn taken(capsule: &Bound<'_, PyAny>) -> PyResult<Managed> {
    let raw = capsule.as_ptr();
    // SAFETY: `capsule` is a live object; the functions take any.
    let has = |name: &CStr| -> c_int { unsafe { ffi::PyCapsule_IsValid(raw, name.as_ptr()) } };
    let (name, used) = match (has(VERSIONED), has(UNVERSIONED)) {
        (0, 0) => return Err(PyTypeError::new_err("__dlpack__() gave no capsule of a tensor, or one that was used")),
        (0, _) => (UNVERSIONED, c"used_dltensor"),
        _ => (VERSIONED, c"used_dltensor_versioned"),
    };
    // SAFETY: the capsule is valid under this name, so that the pointer is not null.
    let given = unsafe { ffi::PyCapsule_GetPointer(raw, name.as_ptr()) };
    // SAFETY: as above; the new name is static. From here on the struct is ours.
    if unsafe { ffi::PyCapsule_SetName(raw, used.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    let given = NonNull::new(given).ok_or_else(|| PyTypeError::new_err("an empty capsule"))?;
    // SAFETY: by the protocol, a capsule of this name has such a struct, whose deleter works on any thread.
    unsafe {
        match name == VERSIONED {
            true => Managed::from_versioned(given.cast()).map_err(runtime),
            false => Ok(Managed::from_unversioned(given.cast())),
        }
    }
}

/// An operand.
enum Given {
    Memory(Box<Memory>),
    Number(Number),
}

fn to_number(object: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
    Ok(if object.is_none() {
        Some(Number::Default)
    } else if object.is_instance_of::<PyBool>() {
        Some(Number::Bool(object.extract()?))
    } else if object.is_instance_of::<PyInt>() {
        Some(Number::Int(object.extract()?))
    } else if object.is_instance_of::<PyFloat>() {
        Some(Number::Float(object.extract()?))
    } else {
        None
    })
}

/// Runs an op on arrays and numbers, in the order of its operands, with its parameters and a place in a random sequence.
/// A generator takes `shape` and `dtype` instead. Results that are `given` are given away by their `__dlpack__`. With
/// `outs`, results go there, and nothing is returned.
#[pyfunction]
#[pyo3(signature = (name, operands, params, *, seed=(0, 0), shape=None, dtype=None, given=false, outs=None))]
#[expect(clippy::too_many_arguments, reason = "a call in all its parts")]
fn call(
    py: Python<'_>,
    name: &str,
    operands: Vec<Bound<'_, PyAny>>,
    params: Vec<Bound<'_, PyAny>>,
    seed: (u64, u64),
    shape: Option<Vec<i64>>,
    dtype: Option<&str>,
    given: bool,
    outs: Option<Vec<Bound<'_, PyAny>>>,
) -> PyResult<Vec<Array>> {
    let op = (Library::family().ops.iter()).find(|op| op.name == name);
    let op = op.ok_or_else(|| PyValueError::new_err(format!("pointwise has no op {name:?}")))?;
    if operands.len() != op.operands.len() {
        let (takes, got) = (op.operands.len(), operands.len());
        return Err(PyTypeError::new_err(format!("{name}() takes {takes} operands, and got {got}")));
    }
    let mut all = Vec::with_capacity(operands.len());
    for (object, spec) in operands.iter().zip(&op.operands) {
        all.push(match to_number(object)? {
            Some(Number::Default) | None if object.hasattr("__dlpack__")? => {
                Given::Memory(Box::new(Memory::of(object)?))
            }
            Some(number) if spec.takes_number && !object.is_none() => Given::Number(number),
            _ => {
                let kind = if spec.takes_number { "an array or a number" } else { "an array" };
                let (argument, got) = (spec.name, object.get_type().name()?);
                return Err(PyTypeError::new_err(format!("{name}(): argument '{argument}' must be {kind}, not {got}")));
            }
        });
    }
    let params = (params.iter())
        .map(|param| to_number(param)?.ok_or_else(|| PyTypeError::new_err(format!("{name}(): {param} is no number"))))
        .collect::<PyResult<Vec<Number>>>()?;
    let outs = outs.map(|outs| outs.iter().map(|out| to_write(name, out)).collect::<PyResult<Vec<_>>>()).transpose()?;
    let rng = Rng::Philox(Philox::new(seed.0).at(seed.1));
    // SAFETY: it sees memory and numbers alone, whose owners `all` and `outs` keep.
    let tensors = unsafe { released(py, || run(op, &mut all, outs.as_deref(), &params, rng, (shape, dtype))) }?;
    let array = |(tensor, element)| Array { tensor: Mutex::new(Some(tensor)), element, given };
    Ok(tensors.into_iter().map(array).collect())
}

/// Calls `run` while other threads of Python go on.
///
/// # Safety
/// `run` touches no object of Python.
unsafe fn released<T>(py: Python<'_>, run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    struct Run<F>(F);
    // SAFETY: `detach` calls it on this thread. It asks for `Send` to keep Python's objects out, as the caller does.
    unsafe impl<F> Send for Run<F> {}
    impl<T, F: FnOnce() -> PyResult<T>> Run<F> {
        fn call(self) -> Run<PyResult<T>> {
            Run(self.0())
        }
    }
    let run = Run(run);
    py.detach(move || run.call()).0
}

/// Memory for a result.
fn to_write(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Memory> {
    if !object.hasattr("__dlpack__")? {
        let got = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{name}(): argument 'out' must be an array, not {got}")));
    }
    let memory = Memory::of(object)?;
    if memory.managed.is_read_only() {
        return Err(PyValueError::new_err(format!("{name}(): `out` may only be read")));
    }
    Ok(memory)
}

/// Checks that a result can go to this memory.
fn check_out(op: &OpSpec, known: &[Known<'_>], out: &Raw<'_>, expected: &Raw<'_>) -> PyResult<()> {
    if (out.element, out.sizes, out.place) != (expected.element, expected.sizes, expected.place) {
        return Err(PyValueError::new_err(format!(
            "{}(): `out` is {:?} of sizes {:?} on {:?}, the result {:?} of sizes {:?} on {:?}",
            op.name, out.element, out.sizes, out.place, expected.element, expected.sizes, expected.place
        )));
    }
    // pointwise's views tell overlaps exactly; there are none of f64.
    for known in known {
        if let Known::Tensor(raw) = known
            && raw.element == Element::F64
            && (raw.data, raw.sizes, raw.strides, raw.element) != (out.data, out.sizes, out.strides, out.element)
            && let ((a, b), (c, d)) = (extent(raw), extent(out))
            && a < d
            && c < b
        {
            return Err(PyValueError::new_err(format!("{}(): `out` overlaps an operand", op.name)));
        }
    }
    Ok(())
}

/// The addresses from the first byte to behind the last.
fn extent(raw: &Raw<'_>) -> (usize, usize) {
    let (mut low, mut high) = (0, raw.element.size() as i64);
    for (size, stride) in raw.sizes.iter().zip(raw.strides) {
        match (size - 1) * stride * raw.element.size() as i64 {
            _ if *size == 0 => return (0, 0),
            reach if reach < 0 => low += reach,
            reach => high += reach,
        }
    }
    let first = raw.data.addr();
    (first.wrapping_add_signed(low as isize), first.wrapping_add_signed(high as isize))
}

fn run(
    op: &OpSpec,
    operands: &mut [Given],
    outs: Option<&[Memory]>,
    params: &[Number],
    rng: Rng<'_>,
    (shape, dtype): (Option<Vec<i64>>, Option<&str>),
) -> PyResult<Vec<(Tensor, Element)>> {
    let memories =
        || operands.iter().filter_map(|x| if let Given::Memory(memory) = x { Some(&**memory) } else { None });
    let place = memories().map(|memory| memory.place).next().unwrap_or(Place::Cpu);
    if let Some(other) = memories().find(|memory| memory.place != place) {
        let words = format!("{}: arrays on {place:?} and on {:?}", op.name, other.place);
        return Err(runtime(words));
    }
    let device = match place {
        Place::Cpu => Device::cpu(),
        Place::Cuda(index) => Device::cuda(index as usize).map_err(runtime)?,
    };
    let is_made = op.operands.is_empty();
    if !is_made && memories().next().is_none() {
        return Err(PyTypeError::new_err(format!("{}(): one argument at least must be an array", op.name)));
    }
    let element = match dtype {
        _ if !is_made => common(op, operands, &device)?,
        None => Element::Of(DType::F32),
        Some(name) => (op.dtypes.iter())
            .find(|dtype| dtype.torch_name() == name)
            .map(|dtype| Element::Of(*dtype))
            .ok_or_else(|| PyTypeError::new_err(format!("{} does not make {name}", op.name)))?,
    };
    convert(op, operands, element, &device)?;
    let known = (operands.iter())
        .map(|operand| match operand {
            Given::Memory(memory) => Known::Tensor(memory.raw()),
            Given::Number(number) => Known::Number(*number),
        })
        .collect::<Vec<_>>();
    let sizes = match shape {
        _ if !is_made => layout_of_results(op, &known).map_err(runtime)?.0,
        Some(shape) => shape,
        None => return Err(PyTypeError::new_err(format!("{}() needs a shape", op.name))),
    };
    if sizes.iter().any(|size| *size < 0) {
        return Err(PyValueError::new_err(format!("sizes {sizes:?} must not be negative")));
    }
    let strides = layout::contiguous(&sizes);
    let own = own_layouts(op, &known, &sizes);
    let layout_of = |k: usize| match own.get(k) {
        Some(Some((sizes, strides))) => (&sizes[..], &strides[..]),
        _ => (&sizes[..], &strides[..]),
    };
    let mut results = Vec::new();
    let mut raws = Vec::with_capacity(op.results.len());
    if let Some(outs) = outs {
        if outs.len() != op.results.len() {
            let (results, got) = (op.results.len(), outs.len());
            return Err(PyTypeError::new_err(format!("{} has {results} results, and `out` {got}", op.name)));
        }
        for (k, (out, result)) in outs.iter().zip(&op.results).enumerate() {
            let (data, (sizes, strides)) = (std::ptr::null_mut(), layout_of(k));
            let expected = Raw { data, element: result.element(element), sizes, strides, place };
            check_out(op, &known, &out.raw(), &expected)?;
            let (first, behind) = extent(&out.raw());
            if raws.iter().map(extent).any(|(low, high)| low < behind && first < high) {
                return Err(PyValueError::new_err(format!("{}(): two of `out` share memory", op.name)));
            }
            raws.push(out.raw());
        }
    } else {
        for (k, result) in op.results.iter().enumerate() {
            let element = result.element(element);
            let dtype = if let Element::Of(dtype) = element { dtype } else { DType::I64 };
            let dims: Vec<usize> = layout_of(k).0.iter().map(|size| *size as usize).collect();
            results.push((Tensor::empty(&device, dtype, &dims).map_err(runtime)?, element));
        }
        raws.extend(results.iter().enumerate().map(|(k, (tensor, element))| {
            let (sizes, strides) = layout_of(k);
            Raw { data: pointer(tensor), element: *element, sizes, strides, place }
        }));
    }
    // SAFETY: producers vouch for their memory until it is given back, below, and that of `outs` is to be written; other
    // results are new.
    unsafe { launch_on(None, op, &known, &raws, element, &device, None, params, rng) }.map_err(runtime)?;
    if place != Place::Cpu {
        // The producers may use their memory again at once.
        device.stream().synchronize().map_err(runtime)?;
    }
    Ok(results)
}

/// Returns the element type of an op's computation for these operands.
fn common(op: &OpSpec, operands: &[Given], device: &Device) -> PyResult<Element> {
    let values =
        || operands.iter().zip(&op.operands).filter(|(_, spec)| spec.dtype.is_none()).map(|(operand, _)| operand);
    if values().next().is_none() {
        return Ok(Element::Of(op.dtypes[0]));
    }
    if values().any(|operand| matches!(operand, Given::Memory(memory) if memory.element == Element::F64)) {
        return Ok(Element::F64);
    }
    let mut all = Vec::with_capacity(operands.len());
    for operand in values() {
        all.push(match operand {
            Given::Memory(memory) => Operand::View(memory.view(device)?),
            Given::Number(number) => Operand::Number(*number),
        });
    }
    let is_bool = |operand: &Operand<'_>| match operand {
        Operand::View(view) => view.dtype() == DType::Bool,
        Operand::Number(number) => matches!(number, Number::Bool(_)),
        _ => false,
    };
    if op.refuses_bool && all.iter().any(is_bool) {
        return Err(runtime(format!("{} takes no bool: convert it, or use logical_not()", op.name)));
    }
    let mut dtype = result_type(&all).map_err(runtime)?;
    if op.int_to_float && !dtype.is_float() {
        dtype = DType::F32;
    }
    if !op.dtypes.contains(&dtype) {
        let names: Vec<_> = op.dtypes.iter().map(|dtype| dtype.torch_name()).collect();
        let got = dtype.torch_name();
        return Err(PyTypeError::new_err(format!("{} does not take {got}: it takes {}", op.name, names.join(", "))));
    }
    Ok(Element::Of(dtype))
}

/// Converts operands of other types than the call's.
fn convert(op: &OpSpec, operands: &mut [Given], element: Element, device: &Device) -> PyResult<()> {
    for (operand, spec) in operands.iter_mut().zip(&op.operands) {
        let Given::Memory(memory) = operand else { continue };
        let expected = spec.element(element);
        if memory.element == expected {
            continue;
        }
        let Element::Of(dtype) = expected else {
            return Err(PyTypeError::new_err("float64 goes with float64 alone: convert the arrays to one type"));
        };
        if let Some(fixed) = spec.dtype {
            let fixed = if fixed == DType::Bool { "bools" } else { fixed.torch_name() };
            return Err(runtime(format!("{}: {} must be of {fixed}", op.name, spec.name)));
        }
        if !op.promotes && !op.int_to_float {
            return Err(runtime(format!("{}: expected arrays of one element type", op.name)));
        }
        memory.converted = Some(kernels::to_dtype().run(memory.view(device)?, dtype).map_err(runtime)?);
    }
    Ok(())
}

/// Adds what is here to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Array>()?;
    module.add_function(wrap_pyfunction!(rope::rope, module)?)?;
    module.add_function(wrap_pyfunction!(call, module)?)
}

//! Rotary embedding without torch.

use std::sync::Mutex;

use pointwise::rope::RopeKernel;
use pointwise::{Device, Tensor, TensorView, TensorViewMut};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{Array, Memory, pointer, released, runtime, to_write};
use crate::abi::Element;
use crate::layout;
use crate::rope::Settings;
use crate::tensor::{Place, Raw};
use crate::view::view_mut;

/// Rotates q, and k if there is one, by tables. Results that are `given` are given away by their `__dlpack__`. With
/// `outs`, results go there, and nothing is returned.
#[pyfunction]
#[pyo3(signature = (
    q, k, cos, sin, position_ids=None, *, offset=0, rotary_dim=None, layout="bshd", pairs="half", rotated_lanes="lead",
    q_scale=1.0, k_scale=1.0, backward=false, given=false, outs=None
))]
#[expect(clippy::too_many_arguments, reason = "the arguments of pointwise.rope")]
pub(super) fn rope(
    py: Python<'_>,
    q: Bound<'_, PyAny>,
    k: Option<Bound<'_, PyAny>>,
    cos: Bound<'_, PyAny>,
    sin: Bound<'_, PyAny>,
    position_ids: Option<Bound<'_, PyAny>>,
    offset: i64,
    rotary_dim: Option<i64>,
    layout: &str,
    pairs: &str,
    rotated_lanes: &str,
    q_scale: f64,
    k_scale: f64,
    backward: bool,
    given: bool,
    outs: Option<Vec<Bound<'_, PyAny>>>,
) -> PyResult<Vec<Array>> {
    let array = |name: &str, object: &Bound<'_, PyAny>| {
        if !object.hasattr("__dlpack__")? {
            let got = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!("rope(): argument '{name}' must be an array, not {got}")));
        }
        Memory::of(object)
    };
    let mut inputs = vec![array("q", &q)?];
    if let Some(k) = &k {
        inputs.push(array("k", k)?);
    }
    let (cos, sin) = (array("cos", &cos)?, array("sin", &sin)?);
    let ids = position_ids.map(|ids| array("position_ids", &ids)).transpose()?;
    let outs =
        outs.map(|outs| outs.iter().map(|out| to_write("rope", out)).collect::<PyResult<Vec<_>>>()).transpose()?;

    let settings = Settings {
        offset,
        rotary_dim,
        layout: layout.to_owned(),
        pairs: pairs.to_owned(),
        rotated_lanes: rotated_lanes.to_owned(),
        scales: [q_scale, k_scale],
        backward,
    };
    // SAFETY: it sees memory and numbers alone, whose owners are kept here.
    let made = unsafe { released(py, || rotate(&inputs, [&cos, &sin], ids.as_ref(), outs.as_deref(), &settings)) }?;
    let array = |tensor: Tensor| {
        let element = Element::Of(tensor.dtype());
        Array { tensor: Mutex::new(Some(tensor)), element, given }
    };
    Ok(made.into_iter().map(array).collect())
}

/// The rotation of arrays. Returns the results that `outs` does not give memory for.
fn rotate(
    inputs: &[Memory],
    tables: [&Memory; 2],
    ids: Option<&Memory>,
    outs: Option<&[Memory]>,
    settings: &Settings,
) -> PyResult<Vec<Tensor>> {
    let place = inputs[0].place;
    let all = || inputs.iter().chain(tables).chain(ids).chain(outs.into_iter().flatten());
    if let Some(other) = all().find(|memory| memory.place != place) {
        return Err(runtime(format!("rope: arrays on {place:?} and on {:?}", other.place)));
    }
    if all().any(|memory| memory.element == Element::F64) {
        return Err(PyTypeError::new_err("rope takes float32, float16 and bfloat16, not float64: convert the arrays"));
    }
    let device = match place {
        Place::Cpu => Device::cpu(),
        Place::Cuda(index) => Device::cuda(index as usize).map_err(runtime)?,
    };
    let [cos, sin] = tables;
    let ids = ids.map(|ids| ids.view(&device)).transpose()?;
    let kernel = settings.kernel(cos.view(&device)?, sin.view(&device)?, ids).map_err(PyValueError::new_err)?;
    let views = inputs.iter().map(|input| input.view(&device)).collect::<PyResult<Vec<_>>>()?;

    let mut made = Vec::new();
    match outs {
        Some(outs) => {
            if outs.len() != inputs.len() {
                let (results, got) = (inputs.len(), outs.len());
                return Err(PyTypeError::new_err(format!("rope has {results} results here, and `out` {got}")));
            }
            let raws: Vec<Raw<'_>> = outs.iter().map(Memory::raw).collect();
            run(&kernel, &device, &views, &raws)?;
        }
        None => {
            for input in inputs {
                let Element::Of(dtype) = input.element else { continue };
                let sizes: Vec<usize> = input.sizes.iter().map(|size| *size as usize).collect();
                made.push(Tensor::empty(&device, dtype, &sizes).map_err(runtime)?);
            }
            let strides: Vec<Vec<i64>> = inputs.iter().map(|input| layout::contiguous(&input.sizes)).collect();
            let raws: Vec<Raw<'_>> = (made.iter().zip(inputs).zip(&strides))
                .map(|((tensor, input), strides)| {
                    let (data, element) = (pointer(tensor), Element::Of(tensor.dtype()));
                    Raw { data, element, sizes: &input.sizes, strides, place }
                })
                .collect();
            run(&kernel, &device, &views, &raws)?;
        }
    }
    if place != Place::Cpu {
        // The producers may use their memory again at once.
        device.stream().synchronize().map_err(runtime)?;
    }
    Ok(made)
}

fn run(kernel: &RopeKernel<'_>, device: &Device, views: &[TensorView<'_>], results: &[Raw<'_>]) -> PyResult<()> {
    let mut targets: Vec<TensorViewMut<'_>> = Vec::with_capacity(results.len());
    for raw in results {
        // SAFETY: producers vouch for their memory until it is given back, and let it be written; other results are new.
        let target = unsafe { view_mut(device, raw.data, raw.element, raw.sizes, raw.strides) };
        targets.push(target.map_err(PyValueError::new_err)?);
    }
    let mut targets = targets.into_iter();
    let (Some(q), Some(of_q)) = (views.first(), targets.next()) else { return Ok(()) };
    kernel.run_into(*q, views.get(1).copied(), of_q, targets.next()).map_err(runtime)
}

//! Programs of fused kernels: a text becomes a kernel with a number, which one boxed op of torch runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pointwise::fusion::{Fused, Graph, Reduction, Value};
use pointwise::{DType, Number};
use serde_json::Value as Json;

use crate::abi::{Api, Element, Handle, Word};
use crate::arguments::Arguments;
use crate::call::{Stage, draws};
use crate::kernel::Library;
use crate::layout;
use crate::tensor::{Raw, Tensor};
use crate::view::{say, view, view_mut};

/// A program of which kernels are made.
struct Program {
    fused: Fused<'static>,
    operands: Vec<DType>,
    /// The masks of dropout: each has a tensor of seed and offset behind the operands.
    masks: usize,
    results: Vec<Made>,
    /// The dimensions of the results in the order of memory; by itself, row-major.
    order: Option<Vec<usize>>,
}

/// A result.
struct Made {
    dtype: DType,
    /// True if each row has it once.
    is_row: bool,
    /// How many of the kernel's results it is made of, side by side along a dimension.
    parts: usize,
    /// That dimension, counted from the last.
    dim: usize,
}

/// The programs of the process.
#[derive(Default)]
struct Programs {
    numbers: HashMap<String, usize>,
    list: Vec<Arc<Program>>,
}

static PROGRAMS: OnceLock<Mutex<Programs>> = OnceLock::new();

/// Runs `f` on the programs of the process.
fn with_programs<T>(f: impl FnOnce(&mut Programs) -> T) -> T {
    // A table is whole after each of the two steps that change it.
    f(&mut PROGRAMS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the number of a program, the same for the same text.
///
/// # Errors
/// Fails for a text that is no program, and for one that cannot be a kernel.
pub(crate) fn program(text: &str) -> Result<usize, String> {
    if let Some(number) = with_programs(|programs| programs.numbers.get(text).copied()) {
        return Ok(number);
    }
    let json = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let program = Arc::new(Program::parse(&json)?);
    Ok(with_programs(|programs| {
        let list = &mut programs.list;
        *programs.numbers.entry(text.to_owned()).or_insert_with(|| {
            list.push(program);
            list.len() - 1
        })
    }))
}

/// The element type of a name.
fn dtype(json: &Json) -> Result<DType, String> {
    json.as_str().and_then(DType::from_name).ok_or_else(|| format!("{json} is no element type of a program"))
}

/// A number: infinities and NaN are text, a parameter's default is null.
fn number(json: &Json) -> Result<Number, String> {
    let known = match json {
        Json::Null => Some(Number::Default),
        Json::Bool(value) => Some(Number::Bool(*value)),
        Json::Number(value) => value.as_i64().map(Number::Int).or_else(|| value.as_f64().map(Number::Float)),
        Json::String(text) => text.parse().ok().map(Number::Float),
        _ => None,
    };
    known.ok_or_else(|| format!("{json} is no number"))
}

fn list<'a>(json: &'a Json, key: &str) -> Result<&'a [Json], String> {
    json[key].as_array().map(Vec::as_slice).ok_or_else(|| format!("a program has a list {key}: {json}"))
}

/// A place in a list.
fn index(json: &Json) -> Result<usize, String> {
    json.as_u64().map(|at| at as usize).ok_or_else(|| format!("{json} is no index"))
}

impl Program {
    fn parse(json: &Json) -> Result<Program, String> {
        let mut graph = Graph::new();
        // The values, and which of them each row has once.
        let (mut values, mut rows): (Vec<Value>, Vec<bool>) = Default::default();
        let (mut operands, mut masks) = (Vec::new(), 0);
        for operand in list(json, "operands")? {
            let dtype = dtype(&operand["dtype"])?;
            values.push(graph.operand(dtype, operand["scalar"].as_bool().unwrap_or(false)).map_err(say)?);
            operands.push(dtype);
            rows.push(false);
        }
        for step in list(json, "steps")? {
            let mut args = Vec::new();
            let mut is_row = true;
            for arg in list(step, "args")? {
                if let Some(value) = arg.get("n") {
                    args.push(graph.number(number(value)?));
                    continue;
                }
                let at = index(&arg["v"])?;
                args.push(*values.get(at).ok_or_else(|| format!("there is no value {at} yet"))?);
                is_row &= rows[at];
            }
            let made = match (&step["op"], &step["to"], &step["reduce"], &args[..]) {
                (Json::Null, Json::Null, Json::Null, [value]) if step["dropout_mask"].is_number() => {
                    masks += 1;
                    let p = step["dropout_mask"].as_f64().unwrap_or(0.0);
                    vec![graph.dropout_mask(*value, p).map_err(say)?]
                }
                (Json::String(name), Json::Null, Json::Null, args) => {
                    let known = Library::family().ops.iter().find(|op| op.name == *name);
                    let def = known.ok_or_else(|| format!("pointwise has no op {name}"))?.def;
                    let params = list(step, "params")?.iter().map(number).collect::<Result<Vec<_>, _>>()?;
                    graph.op(def, args, &params).map_err(say)?
                }
                (Json::Null, to, Json::Null, [value]) => vec![graph.to_dtype(*value, dtype(to)?).map_err(say)?],
                (Json::Null, Json::Null, Json::String(name), [value]) => {
                    is_row = true;
                    let reduction = match name.as_str() {
                        "sum" => Reduction::Sum,
                        "mean" => Reduction::Mean,
                        "amax" => Reduction::Max,
                        "amin" => Reduction::Min,
                        _ => return Err(format!("{name} is no reduction")),
                    };
                    vec![graph.reduce(reduction, *value).map_err(say)?]
                }
                _ => return Err(format!("{step} is no step")),
            };
            rows.resize(rows.len() + made.len(), is_row);
            values.extend(made);
        }
        let (mut wanted, mut results) = (Vec::new(), Vec::new());
        for result in list(json, "results")? {
            let (parts, dim) = match result.get("parts") {
                None => (std::slice::from_ref(&result["v"]), 0),
                Some(_) => (list(result, "parts")?, index(&result["dim"])?),
            };
            let mut is_row = false;
            for part in parts {
                let at = index(part)?;
                wanted.push(*values.get(at).ok_or_else(|| format!("there is no value {at}"))?);
                is_row |= rows[at];
            }
            if parts.is_empty() || is_row && parts.len() > 1 {
                return Err(format!("{result} is no result"));
            }
            results.push((wanted.len() - 1, is_row, parts.len(), dim));
        }
        let fused = graph.fuse(&wanted).map_err(say)?;
        let made = |(k, is_row, parts, dim)| Made { dtype: fused.result_type(k), is_row, parts, dim };
        let results = results.into_iter().map(made).collect();
        let order = match json.get("order") {
            None => None,
            Some(_) => Some(list(json, "order")?.iter().map(index).collect::<Result<Vec<_>, _>>()?),
        };
        Ok(Program { fused, operands, masks, results, order })
    }

    /// Runs the program on its operands, and a seed for each mask behind them. Returns its results: new tensors, dense with their dimensions in the program's order.
    fn run(&self, api: &Api, operands: &[Tensor]) -> Result<Vec<Tensor>, String> {
        let (given, wanted) = (operands.len(), self.operands.len() + self.masks);
        let (operands, seeds) = operands.split_at(self.operands.len().min(given));
        let raws = operands.iter().map(|operand| operand.raw(api)).collect::<Result<Vec<_>, _>>()?;
        let (Some(first), true) = (raws.first(), given == wanted) else {
            return Err(format!("a program of {wanted} operands, but {given} are given"));
        };
        let mut rngs = Vec::with_capacity(seeds.len());
        for seed in seeds {
            // SAFETY: torch vouches for its tensors, which the caller holds until this call has returned; on a device torch keeps memory
            // for the stream's work.
            rngs.push(unsafe { draws(api, seed) }?);
        }
        for (raw, dtype) in raws.iter().zip(&self.operands) {
            if raw.place != first.place || raw.element != Element::Of(*dtype) {
                let (wanted, given) = (dtype.torch_name(), (raw.element, raw.place));
                return Err(format!("a program of {wanted} on {:?}, but an operand is {given:?}", first.place));
            }
        }
        let sizes = layout::broadcast(raws.iter().map(|raw| raw.sizes))?;
        let stage = Stage::new(api, first.place)?;
        let order = self.order_of(sizes.len())?;
        let mut views = Vec::with_capacity(raws.len());
        for raw in &raws {
            let (sizes, strides) = in_order(raw, &order);
            // SAFETY: torch vouches for its tensors, which the caller holds until this call has returned.
            views.push(unsafe { view(&stage.device, raw.data, raw.element, &sizes, &strides) }?);
        }
        let (mut made, mut targets) = (Vec::new(), Vec::new());
        for wanted in &self.results {
            let mut part = sizes.clone();
            if let (true, Some(last)) = (wanted.is_row, part.last_mut()) {
                *last = 1;
            }
            let mut own = part.clone();
            let along = match wanted.parts {
                1 => None,
                _ => Some(own.len().checked_sub(1 + wanted.dim).ok_or("parts of a result along no dimension")?),
            };
            if let Some(dim) = along {
                own[dim] *= wanted.parts as i64;
            }
            let dense: Vec<i64> = order.iter().map(|dim| own[*dim]).collect();
            let steps = layout::contiguous(&dense);
            let mut strides = vec![0; own.len()];
            for (dim, step) in order.iter().zip(&steps) {
                strides[*dim] = *step;
            }
            let element = Element::Of(wanted.dtype);
            let result = Tensor::empty(api, &own, &strides, element, first.place)?;
            let inner: Vec<i64> = order.iter().map(|dim| part[*dim]).collect();
            for k in 0..wanted.parts {
                let start = along.map_or(0, |dim| k as i64 * part[dim] * strides[dim]) as usize;
                let data = result.data(api)?.wrapping_add(start * wanted.dtype.size());
                // SAFETY: new memory, which lives as long as the result; parts of it share no element.
                targets.push(unsafe { view_mut(&stage.device, data, element, &inner, &steps) }?);
            }
            made.push(result);
        }
        self.fused.clone().on_stream(stage.stream.as_ref()).rngs(rngs).run_into(&views, &mut targets).map_err(say)?;
        Ok(made)
    }

    /// The dimensions in the order that a call goes through them.
    fn order_of(&self, rank: usize) -> Result<Vec<usize>, String> {
        match &self.order {
            None => Ok((0..rank).collect()),
            Some(order) if order.len() == rank && (0..rank).all(|dim| order.contains(&dim)) => Ok(order.clone()),
            Some(order) => Err(format!("a program for dimensions {order:?}, but operands have {rank}")),
        }
    }
}

/// Sizes and strides of an operand, broadcast to the dimensions of an order.
fn in_order(raw: &Raw<'_>, order: &[usize]) -> (Vec<i64>, Vec<i64>) {
    let new = order.len() - raw.sizes.len();
    let at = |dim: &usize| dim.checked_sub(new).map_or((1, 0), |dim| (raw.sizes[dim], raw.strides[dim]));
    order.iter().map(at).unzip()
}

/// Takes the arguments of `fused(int program, Tensor[] operands) -> Tensor[]` off the stack, and puts the results there.
///
/// # Errors
/// Fails for a number of no program, and with the errors of its kernel.
pub(crate) fn run(api: &Api, words: &mut [Word], count: usize) -> Result<(), String> {
    let mut stack = Arguments { api, words: words[..count].iter() };
    let number = stack.next() as usize;
    let operands = take_list(api, stack.next() as Handle)?;
    let program = with_programs(|programs| programs.list.get(number).cloned());
    let results = program.ok_or_else(|| format!("there is no program {number}"))?.run(api, &operands)?;
    words[0] = new_list(api, results)? as Word;
    Ok(())
}

/// The tensors of a `Tensor[]` argument, which is dropped.
fn take_list(api: &Api, handle: Handle) -> Result<Vec<Tensor>, String> {
    let mut size = 0;
    // SAFETY: the schema has a list here, which is the kernel's, and whose elements are handles of tensors.
    unsafe {
        let mut code = (api.torch.list_size)(handle, &mut size);
        let mut tensors = Vec::with_capacity(size);
        for k in 0..size {
            let mut word = 0;
            code |= (api.torch.list_item)(handle, k, &mut word);
            tensors.push(Tensor::from_handle(word as Handle));
        }
        code |= (api.torch.delete_list)(handle);
        if code == 0 { Ok(tensors) } else { Err("torch could not give a list of tensors".to_owned()) }
    }
}

/// A `Tensor[]` result.
fn new_list(api: &Api, tensors: Vec<Tensor>) -> Result<Handle, String> {
    let mut handle = std::ptr::null_mut();
    // SAFETY: the list is new, and takes the handles.
    unsafe {
        let mut code = (api.torch.new_list)(tensors.len(), &mut handle);
        for tensor in tensors {
            code |= (api.torch.list_push)(handle, tensor.into_handle() as Word);
        }
        if code == 0 { Ok(handle) } else { Err("torch could not make a list of tensors".to_owned()) }
    }
}

//! Fused kernels against their ops in f64, within a bound that is composed of the ops' own.

use pointwise_core::formula::{MAX_WORDS, ParamWords};
use pointwise_core::rows::Reduction;
use pointwise_core::{DType, OpInfo, ParamKind, Philox};

use super::graph::{Arg, StepKind, unsupported};
use super::{Fused, plan};
use crate::device::Device;
use crate::element::Format;
use crate::error::Result;
use crate::kernel::Rng;
use crate::shape::Shape;
use crate::tensor::{Tensor, TensorView};

/// The comparison of a result with its formula in f64. ULP are those of the result's element type at the value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FusedReport {
    /// Elements that were compared.
    pub elements: usize,
    /// Elements whose error is beyond the bound.
    pub beyond: usize,
    /// The largest error, in ULP.
    pub largest_error: f64,
    /// The largest share of its bound that an error has.
    pub largest_share: f64,
}

/// A number in f64, and how far the kernel's may be from it.
#[derive(Clone, Copy, Debug, Default)]
struct Near {
    value: f64,
    error: f64,
}

impl Fused<'_> {
    /// Runs the kernel and compares each result with the ops' formulas in f64. The bound of an element is composed: of each step that of
    /// its op, and the errors of its arguments as the formula passes them on. For tests: it computes element by element.
    ///
    /// # Errors
    /// Fails as [`Fused::run`], and for operands and ops of integers, which have no formula in f64.
    pub fn check(&self, operands: &[TensorView<'_>]) -> Result<Vec<FusedReport>> {
        let results = self.run(operands)?;
        let shape = plan::check_operands(&self.program, operands)?;
        let exact = Reference::new(self, operands, &shape)?;
        let mut reports = Vec::with_capacity(results.len());
        for (result, value) in results.iter().zip(&self.program.results) {
            let dtype = result.dtype();
            let mut report = FusedReport::default();
            for (got, near) in numbers(&result.view())?.into_iter().zip(&exact.values[*value]) {
                let stored = near.error + rounding(dtype, near.value);
                report.elements += 1;
                let off = (got - near.value).abs();
                let is_same = got == near.value || got.is_nan() && near.value.is_nan();
                if is_same || !near.error.is_finite() {
                    continue;
                }
                let beyond_range = got.is_infinite() && near.value.abs() + stored >= Format::of(dtype).largest;
                if !(off <= stored || beyond_range) {
                    report.beyond += 1;
                }
                if off.is_finite() {
                    report.largest_error = report.largest_error.max(off / ulp(dtype, near.value));
                    report.largest_share = report.largest_share.max(off / stored);
                }
            }
            reports.push(report);
        }
        Ok(reports)
    }
}

/// The values of a program in f64: an element for each of the operands' common shape, or for each row.
struct Reference {
    values: Vec<Vec<Near>>,
}

impl Reference {
    fn new(fused: &Fused<'_>, operands: &[TensorView<'_>], shape: &Shape) -> Result<Reference> {
        let program = &*fused.program;
        let graph = &program.graph;
        let n = shape.numel();
        let len = shape.last().copied().unwrap_or(1).max(1);
        let mut values: Vec<Vec<Near>> = vec![Vec::new(); graph.values.len()];
        for (operand, values) in operands.iter().zip(&mut values) {
            *values = numbers(&operand.expand(shape)?)?.into_iter().map(|value| Near { value, error: 0.0 }).collect();
        }
        for step in &graph.steps {
            let is_row = graph.values[step.first].is_row;
            let count = if is_row { n / len } else { n };
            // The argument of an element: a value of each row is that of its row.
            let at = |arg: &Arg, i: usize| match arg {
                Arg::Word(word) => Near { value: f64::from(f32::from_bits(graph.words[*word] as u32)), error: 0.0 },
                Arg::Value(value) if graph.values[*value].is_row && !is_row => values[*value][i / len],
                Arg::Value(value) => values[*value][i],
            };
            let mut results = vec![Vec::with_capacity(count); step.results];
            match step.kind {
                StepKind::Op { def, words } => {
                    let info = &def.info;
                    let Some(oracle) = def.oracle_of(of_floats(info, &graph.words[words..])) else {
                        let what = format!("{} of integers in f64", info.name);
                        return Err(unsupported(what, "compare it with the op itself"));
                    };
                    for i in 0..count {
                        let mut args = Vec::with_capacity(step.args.len());
                        for (k, arg) in step.args.iter().enumerate() {
                            args.push(match arg {
                                Arg::Word(word) if info.is_bool(k) => {
                                    Near { value: graph.words[*word] as f64, error: 0.0 }
                                }
                                arg => at(arg, i),
                            });
                        }
                        let mut point: Vec<f64> = args.iter().map(|arg| arg.value).collect();
                        let exact = oracle.at(&point, 0);
                        let mut errors = vec![0.0; exact.len()];
                        for (k, arg) in args.iter().enumerate().filter(|(_, arg)| arg.error > 0.0) {
                            let mut most = vec![0.0_f64; exact.len()];
                            for moved in [arg.value - arg.error, arg.value + arg.error] {
                                point[k] = moved;
                                for (most, (moved, exact)) in
                                    most.iter_mut().zip(oracle.at(&point, 0).iter().zip(&exact))
                                {
                                    *most = most.max(distance(*moved, *exact));
                                }
                            }
                            point[k] = arg.value;
                            errors.iter_mut().zip(most).for_each(|(error, most)| *error += most);
                        }
                        for (k, (value, error)) in exact.into_iter().zip(errors).enumerate() {
                            let own = own_error(info, info.result_type(k, step.dtype), value);
                            // A slope that changes within the error of an argument: twice the first order.
                            results[k].push(Near { value, error: 2.0 * error + own });
                        }
                    }
                }
                StepKind::Convert { to } => {
                    for i in 0..count {
                        results[0].push(converted(at(&step.args[0], i), to));
                    }
                }
                StepKind::DropoutMask { draw, limit } => {
                    let place = place(&fused.rngs[draw])?;
                    for i in 0..count {
                        let is_kept = u64::from(place.word(i as u64)) < graph.words[limit];
                        results[0].push(Near { value: f64::from(u8::from(is_kept)), error: 0.0 });
                    }
                }
                StepKind::Len => results[0].resize(count, Near { value: len as f64, error: 0.0 }),
                StepKind::Reduce(reduction) => {
                    // A thread's vectors one after another, then two butterflies of a warp.
                    let (lanes, threads) = plan::tree(program, len);
                    let additions = len.div_ceil(lanes).div_ceil(threads) * lanes + 10;
                    for row in 0..count {
                        let elements: Vec<Near> = (0..len)
                            .map(|i| match step.args[0] {
                                Arg::Value(value) => values[value][row * len + i],
                                Arg::Word(_) => Near::default(),
                            })
                            .collect();
                        results[0].push(reduced(reduction, &elements, additions));
                    }
                }
            }
            for (k, result) in results.into_iter().enumerate() {
                values[step.first + k] = result;
            }
        }
        Ok(Reference { values })
    }
}

/// Reads a place to draw from.
fn place(rng: &Rng<'_>) -> Result<Philox> {
    match rng.view() {
        None => rng.on_cpu(),
        Some(view) => Rng::from(&view.to_tensor()?.to_device(&Device::cpu())?).on_cpu(),
    }
}

/// A number in another type.
fn converted(Near { value, error }: Near, to: DType) -> Near {
    match to {
        DType::Bool => Near { value: f64::from(u8::from(value != 0.0)), error },
        // The error may reach the next whole number, or the end of the range.
        _ if !to.is_float() => {
            let bits = to.bits() - usize::from(to != DType::U8);
            let is_within =
                value.abs() + error < 2.0_f64.powi(bits as i32) && (to != DType::U8 || value - error > -1.0);
            let error = if error == 0.0 { 0.0 } else { error + 1.0 };
            Near { value: value.trunc(), error: if is_within { error } else { f64::INFINITY } }
        }
        DType::F32 => Near { value, error },
        _ => {
            let Format { largest, has_infinity, .. } = Format::of(to);
            let error = error + rounding(to, value);
            let value = if has_infinity { value } else { value.clamp(-largest, largest) };
            Near { value, error }
        }
    }
}

/// The distance of two numbers; 0 of two that are not there.
fn distance(a: f64, b: f64) -> f64 {
    if a == b || a.is_nan() && b.is_nan() {
        0.0
    } else if (a - b).is_nan() {
        f64::INFINITY
    } else {
        (a - b).abs()
    }
}

/// A reduction of a row. A sum of f32 loses half an ULP of what it has at each addition: at most so much of the size of all terms.
fn reduced(reduction: Reduction, elements: &[Near], additions: usize) -> Near {
    let errors = || elements.iter().map(|it| it.error);
    let values = || elements.iter().map(|it| it.value);
    match reduction {
        Reduction::Sum | Reduction::Mean => {
            let size: f64 = values().map(f64::abs).sum();
            let error = errors().sum::<f64>() + additions as f64 * size * 2.0_f64.powi(-24);
            let sum: f64 = values().sum();
            let by = if reduction == Reduction::Mean { elements.len() as f64 } else { 1.0 };
            let value = sum / by;
            Near { value, error: error / by + rounding(DType::F32, value) }
        }
        Reduction::Max => {
            Near { value: values().fold(f64::NEG_INFINITY, largest_of), error: errors().fold(0.0, f64::max) }
        }
        Reduction::Min => Near {
            value: -values().map(|it| -it).fold(f64::NEG_INFINITY, largest_of),
            error: errors().fold(0.0, f64::max),
        },
    }
}

/// The larger number; NaN if one is.
fn largest_of(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// Returns the error that an op itself may have. Values of 16 bits are computed by functions that survive one rounding to their type.
fn own_error(info: &OpInfo, dtype: DType, value: f64) -> f64 {
    if dtype == DType::Bool {
        return 0.0;
    }
    let bound = info.accuracy.bound(dtype);
    let ulps = match dtype {
        DType::F32 => f64::from(bound),
        // The bound has the rounding of the result, which a chain has not.
        _ => (f64::from(bound) - 0.5).max(2.0_f64.powi(-13)),
    };
    ulps * ulp(dtype, value)
}

/// Half an ULP: what a rounding to a type is off by at most.
fn rounding(dtype: DType, value: f64) -> f64 {
    if dtype == DType::Bool { 0.0 } else { 0.5 * ulp(dtype, value) }
}

/// The distance of neighbours of a float type at a value.
fn ulp(dtype: DType, value: f64) -> f64 {
    let Format { digits, least, .. } = Format::of(dtype);
    let exponent = if value == 0.0 || !value.is_finite() { least } else { value.abs().log2().floor() as i32 };
    2.0_f64.powi(exponent.max(least) - digits)
}

/// The words of parameters, floats as f64.
fn of_floats(info: &OpInfo, words: &[u64]) -> ParamWords {
    let mut own: ParamWords = [0; MAX_WORDS];
    let mut at = 0;
    let float = |word: u64| f64::from(f32::from_bits(word as u32)).to_bits();
    for param in info.params {
        match param.kind {
            ParamKind::Whole | ParamKind::Flag => own[at] = words[at],
            ParamKind::Open => (own[at], own[at + 1]) = (words[at], float(words[at + 1])),
            _ => own[at] = float(words[at]),
        }
        at += param.kind.words();
    }
    own
}

/// The elements of a tensor of floats or bools, in f64.
fn numbers(view: &TensorView<'_>) -> Result<Vec<f64>> {
    if !view.dtype().is_float() && view.dtype() != DType::Bool {
        return Err(unsupported(format!("{} in f64", view.dtype()), "compare integers with the ops themselves"));
    }
    let tensor: Tensor = view.to_tensor()?.view().to_dtype(DType::F32)?.to_device(&Device::cpu())?;
    Ok(tensor.to_vec::<f32>()?.into_iter().map(f64::from).collect())
}

//! Gradients: calls by definition, and what must come out.

use pointwise::{
    DType, Number, Operand, Result, Shape, Strategy, Tensor, TensorView, TensorViewMut,
    info::{Accuracy, OpInfo},
    kernel::{MapDef, OpDef},
};
use pointwise_core::{Element, Kind};

use crate::judge::{self, Expected, Report};
use crate::map::wrong_count;
use crate::with_element;

/// The gradients of every op of several operands.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    pointwise::info::GRADIENTS.iter().copied()
}

/// Runs the op on operands that are broadcast as they are: also the weight of a channel and the halves of a gate.
///
/// # Errors
/// Those of the library.
pub fn run_into(
    def: &'static OpDef,
    set: &[Number],
    strategy: Strategy,
    operands: &[TensorView<'_>],
    results: Vec<TensorViewMut<'_>>,
) -> Result<()> {
    let kernel = def.kernel(set).strategy(strategy);
    if def.info.kind != Kind::ChannelGradients {
        let operands: Vec<Operand<'_>> = operands.iter().map(Operand::from).collect();
        let mut results = results;
        return kernel.run_into(&operands, &mut results);
    }
    // A weight of x's rank is broadcast as it lies.
    let rank = operands.iter().map(|view| view.shape().rank()).max().unwrap_or(0).max(2);
    let mut lifted = Vec::new();
    for operand in operands {
        let mut view = *operand;
        while view.shape().rank() < rank {
            view = view.unsqueeze(0)?;
        }
        lifted.push(Operand::View(view));
    }
    let mut results = results;
    let lines = results.first().map_or(rank, |result| result.shape().rank());
    for _ in 0..rank.saturating_sub(lines) {
        results = results.into_iter().map(|view| view.unsqueeze(0)).collect::<Result<_>>()?;
    }
    kernel.run_into(&lifted, &mut results)
}

/// Runs the op on whole tensors of one shape.
///
/// # Errors
/// Those of the library.
pub fn run(def: &'static OpDef, set: &[Number], strategy: Strategy, operands: &[Tensor]) -> Result<Vec<Tensor>> {
    let views: Vec<TensorView<'_>> = operands.iter().map(Tensor::view).collect();
    let Some(last) = operands.last() else { return Err(wrong_count(&def.info, 0)) };
    let shape: Shape = *last.shape();
    let mut results = Vec::new();
    for _ in def.info.results {
        results.push(Tensor::zeros(last.device(), last.dtype(), shape)?);
    }
    run_into(def, set, strategy, &views, results.iter_mut().map(TensorViewMut::from).collect())?;
    Ok(results)
}

/// The error of a result beside its bound: what cancels, and what is lost where a factor is subnormal and another huge.
/// `scale` is what the derivative at `x` is multiplied with.
fn allowed(accuracy: Accuracy, dtype: DType, scale: f64, x: f64) -> f64 {
    let smallest = f64::from(f32::from_bits(1));
    let lost = match accuracy {
        Accuracy::Exact => 0.0,
        Accuracy::Ulp(ulp) => f64::from(ulp) * smallest,
        // The subnormal factor is multiplied with x, or with the slope of the argument, below 512 where it is not 0.
        Accuracy::Cancels(_) => 512.0 * smallest,
    };
    // The zeros of the derivatives lie between -2 and 0; the tails must keep their relative accuracy.
    let slack = if x.abs() < 4.0 { accuracy.slack(dtype) } else { 0.0 };
    let allowed = (slack + lost) * scale.abs();
    if allowed.is_finite() { allowed } else { 0.0 }
}

/// How the gradients of a unary op compare with the formula of which every step is an f32.
///
/// # Errors
/// An element type or a parameter that the op does not take; other operands than `grad` and `x`.
pub fn backward_report(def: &MapDef, dtype: DType, set: &[Number], operands: &[Vec<u8>], y: &[u8]) -> Result<Report> {
    let stepped = def.stepped_for(dtype, set)?;
    let (Some(stepped), [grad, x]) = (stepped, operands) else { return Err(wrong_count(&def.info, operands.len())) };
    judge::same_length(&[(dtype, grad), (dtype, x), (dtype, y)])?;
    let mut report = Report::default();
    with_element!(dtype, E => {
        let pairs = grad.chunks_exact(size_of::<E>()).zip(x.chunks_exact(size_of::<E>()));
        for ((grad, x), y) in pairs.zip(y.chunks_exact(size_of::<E>())) {
            let [grad, x] = [grad, x].map(|code| judge::from_bytes::<E>(code).to_f64());
            let exact = f64::from(stepped([grad as f32, x as f32]));
            let allowed = allowed(def.info.accuracy, dtype, grad, x);
            report.add(&[grad, x], Expected { right: exact, exact, allowed }, judge::from_bytes::<E>(y), dtype);
        }
    });
    Ok(report)
}

/// How each of the gradients of an op of several operands compares with the formula of which every step is an f32.
///
/// # Errors
/// An element type or a parameter that the op does not take; another number of operands or of results than it has.
pub fn reports(
    def: &OpDef,
    dtype: DType,
    set: &[Number],
    operands: &[Vec<u8>],
    results: &[Vec<u8>],
) -> Result<Vec<Report>> {
    let info = &def.info;
    let Some(stepped) = def.stepped(dtype, set)? else { return Err(wrong_count(info, operands.len())) };
    if operands.len() != info.operands.len() || results.len() != info.results.len() {
        return Err(wrong_count(info, operands.len()));
    }
    let typed = operands.iter().enumerate().map(|(k, bytes)| (info.operand_type(k, dtype), &**bytes));
    judge::same_length(&typed.chain(results.iter().map(|y| (dtype, &**y))).collect::<Vec<_>>())?;
    let mut reports = vec![Report::default(); results.len()];
    with_element!(dtype, E => {
        let at = |bytes: &[u8], i: usize| {
            judge::from_bytes::<E>(bytes.get(i * size_of::<E>()..(i + 1) * size_of::<E>()).unwrap_or_default())
        };
        for i in 0..results[0].len() / size_of::<E>() {
            let mut x = [0.0_f64; 4];
            for (k, x) in x.iter_mut().enumerate().take(operands.len()) {
                *x = match info.operand_type(k, dtype) {
                    DType::Bool => f64::from(operands[k].get(i).copied().unwrap_or_default()),
                    _ => at(&operands[k], i).to_f64(),
                };
            }
            // In 16 bits exponents from 2^16 on count as even, which one less than them need not be.
            if info.name == "pow_backward" && dtype != DType::F32 && x[2].abs() >= 65536.0 && x[1].is_sign_negative() {
                continue;
            }
            let exact = stepped.at(&x[..operands.len()], 0);
            for (k, report) in reports.iter_mut().enumerate() {
                let exact = exact[k];
                let allowed = allowed(info.accuracy, dtype, scale(info, k, x), x[1]);
                let shown = &x[..operands.len().min(3)];
                report.add(shown, Expected { right: exact, exact, allowed }, at(&results[k], i), dtype);
            }
        }
    });
    Ok(reports)
}

/// What derivative `k` is multiplied with, or may be.
fn scale(info: &OpInfo, k: usize, [grad, _, b, _]: [f64; 4]) -> f64 {
    match (info.kind, k) {
        (Kind::GatedGradients, 0) => grad * b,
        // The exponent, and the largest logarithm.
        _ if info.name == "pow_backward" => grad * b.abs().max(104.0),
        _ => grad,
    }
}

/// That results are what must come out; says what is wrong.
///
/// # Errors
/// The bound that is not kept, or what [`reports`] refuses.
pub fn check(
    def: &OpDef,
    dtype: DType,
    set: &[Number],
    operands: &[Vec<u8>],
    results: &[Vec<u8>],
) -> std::result::Result<(), String> {
    let reports = reports(def, dtype, set, operands, results).map_err(|error| error.to_string())?;
    for (name, report) in def.info.results.iter().zip(reports) {
        if !report.keeps(def.info.accuracy, dtype, false) {
            return Err(format!("{name} of {} {dtype} {set:?}: {report}", def.info.name));
        }
    }
    Ok(())
}

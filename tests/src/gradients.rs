//! Gradients: calls by definition, and what must come out.

use pointwise::{
    Accuracy, DType, GradientDef, MapDef, Number, OpInfo, Operand, Result, Shape, Strategy, Tensor, TensorView,
    TensorViewMut,
};
use pointwise_core::op::MAX_PARAMS;
use pointwise_core::{Element, Kind};

use crate::judge::{self, Report};
use crate::map::operand_type;
use crate::with_element;

/// The gradients of every op of several operands.
pub fn all() -> impl Iterator<Item = &'static GradientDef> {
    pointwise::GRADIENTS.iter().copied()
}

/// Runs the op on operands that are broadcast as they are: also the weight of a channel and the halves of a gate.
///
/// # Errors
/// Those of the library.
pub fn run_into(
    def: &'static GradientDef,
    set: &[Number; MAX_PARAMS],
    strategy: Strategy,
    operands: &[TensorView<'_>],
    results: Vec<TensorViewMut<'_>>,
) -> Result<()> {
    let kernel = def.gradients_with(set).strategy(strategy);
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
    for _ in 0..rank.saturating_sub(results[0].shape().rank()) {
        results = results.into_iter().map(|view| view.unsqueeze(0)).collect::<Result<_>>()?;
    }
    kernel.run_into(&lifted, &mut results)
}

/// Runs the op on whole tensors of one shape.
///
/// # Errors
/// Those of the library.
pub fn run(
    def: &'static GradientDef,
    set: &[Number; MAX_PARAMS],
    strategy: Strategy,
    operands: &[Tensor],
) -> Result<Vec<Tensor>> {
    let views: Vec<TensorView<'_>> = operands.iter().map(Tensor::view).collect();
    let last = &operands[operands.len() - 1];
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

/// Compares the gradients of a unary op with the formula of which every step is an f32.
///
/// # Errors
/// A bound that is not kept.
///
/// # Panics
/// On parameters the op does not take.
pub(crate) fn check_backward(
    def: &MapDef,
    dtype: DType,
    set: &[Number; MAX_PARAMS],
    operands: &[Vec<u8>],
    y: &[u8],
) -> std::result::Result<(), String> {
    let report = backward_report(def, dtype, set, operands, y);
    if report.keeps(def.info.accuracy, dtype, false) {
        Ok(())
    } else {
        Err(format!("{} {dtype} {set:?}: {report}", def.info.name))
    }
}

/// How the gradients of a unary op compare with the formula of which every step is an f32.
///
/// # Panics
/// On parameters the op does not take.
#[must_use]
pub fn backward_report(
    def: &MapDef,
    dtype: DType,
    set: &[Number; MAX_PARAMS],
    operands: &[Vec<u8>],
    y: &[u8],
) -> Report {
    let stepped = def.stepped_for(dtype, set).expect("the parameters are valid").expect("gradients are of floats");
    let mut report = Report::default();
    with_element!(dtype, E => {
        let at = |bytes: &[u8], i: usize| judge::from_bytes::<E>(&bytes[i * size_of::<E>()..(i + 1) * size_of::<E>()]);
        for i in 0..y.len() / size_of::<E>() {
            let x = [at(&operands[0], i).to_f64(), at(&operands[1], i).to_f64()];
            let exact = f64::from(stepped(x.map(|x| x as f32)));
            report.add_within([x[0], x[1], 0.0], exact, at(y, i), dtype, allowed(def.info.accuracy, dtype, x[0], x[1]));
        }
    });
    report
}

/// How each of the gradients of an op of several operands compares with the formula of which every step is an f32.
///
/// # Panics
/// On parameters the op does not take.
#[must_use]
pub fn reports(
    def: &GradientDef,
    dtype: DType,
    set: &[Number; MAX_PARAMS],
    operands: &[Vec<u8>],
    results: &[Vec<u8>],
) -> Vec<Report> {
    let stepped = def.stepped_for(dtype, set).expect("the parameters are valid");
    let info = &def.info;
    let mut reports = vec![Report::default(); results.len()];
    with_element!(dtype, E => {
        for i in 0..results[0].len() / size_of::<E>() {
            let mut x = [0.0_f64; 4];
            for (k, x) in x.iter_mut().enumerate().take(operands.len()) {
                *x = match operand_type(info, dtype, k) {
                    DType::Bool => f64::from(operands[k][i]),
                    _ => judge::from_bytes::<E>(&operands[k][i * size_of::<E>()..(i + 1) * size_of::<E>()]).to_f64(),
                };
            }
            // In 16 bits exponents from 2^16 on count as even, which one less than them need not be.
            if info.name == "pow_backward" && dtype != DType::F32 && x[2].abs() >= 65536.0 && x[1].is_sign_negative() {
                continue;
            }
            let exact = stepped(x.map(|x| x as f32));
            for (k, report) in reports.iter_mut().enumerate() {
                let got = judge::from_bytes::<E>(&results[k][i * size_of::<E>()..(i + 1) * size_of::<E>()]);
                let allowed = allowed(info.accuracy, dtype, scale(info, k, x), x[1]);
                report.add_within([x[0], x[1], x[2]], f64::from(exact[k]), got, dtype, allowed);
            }
        }
    });
    reports
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

/// Compares results with what must come out.
///
/// # Errors
/// A bound that is not kept.
pub fn check(
    def: &GradientDef,
    dtype: DType,
    set: &[Number; MAX_PARAMS],
    operands: &[Vec<u8>],
    results: &[Vec<u8>],
) -> std::result::Result<(), String> {
    for (name, report) in def.info.results.iter().zip(reports(def, dtype, set, operands, results)) {
        if !report.keeps(def.info.accuracy, dtype, false) {
            return Err(format!("{name} of {} {dtype} {set:?}: {report}", def.info.name));
        }
    }
    Ok(())
}

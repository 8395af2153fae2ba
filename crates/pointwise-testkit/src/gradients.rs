//! The expected values of gradients.

use pointwise::{DType, Number, Result, info::Accuracy, kernel::OpDef};
use pointwise_core::Element;

use crate::judge::{self, Expected, Report};
use crate::with_element;

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

/// Compares the gradients of a unary op with the formula, each step rounded to f32.
///
/// # Errors
/// An element type or a parameter that the op does not take; other operands than `grad` and `x`.
pub(crate) fn of_one(def: &OpDef, dtype: DType, set: &[Number], operands: &[Vec<u8>], y: &[u8]) -> Result<Report> {
    let stepped = def.stepped(dtype, set)?;
    let (Some(stepped), [grad, x]) = (stepped, operands) else {
        return Err(judge::wrong_count(&def.info, operands.len()));
    };
    let mut report = Report::default();
    with_element!(dtype, E => {
        let pairs = grad.chunks_exact(size_of::<E>()).zip(x.chunks_exact(size_of::<E>()));
        for ((grad, x), y) in pairs.zip(y.chunks_exact(size_of::<E>())) {
            let [grad, x] = [grad, x].map(|code| judge::from_bytes::<E>(code).to_f64());
            let exact = stepped.of(&[grad, x]);
            let allowed = allowed(def.info.accuracy, dtype, grad, x);
            report.add(&[grad, x], Expected { right: exact, exact, allowed }, judge::from_bytes::<E>(y), dtype);
        }
    });
    Ok(report)
}

/// Compares each gradient of an op of several operands with the formula, each step rounded to f32.
///
/// # Errors
/// An element type or a parameter that the op does not take.
pub(crate) fn of_several(
    def: &OpDef,
    dtype: DType,
    set: &[Number],
    operands: &[Vec<u8>],
    results: &[Vec<u8>],
) -> Result<Vec<Report>> {
    let info = &def.info;
    let Some(stepped) = def.stepped(dtype, set)? else { return Err(judge::wrong_count(info, operands.len())) };
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
                let allowed = allowed(info.accuracy, dtype, scale(def, k, x), x[1]);
                let shown = &x[..operands.len().min(3)];
                report.add(shown, Expected { right: exact, exact, allowed }, at(&results[k], i), dtype);
            }
        }
    });
    Ok(reports)
}

/// Returns the factor of derivative `k`, or a bound of it.
fn scale(def: &OpDef, k: usize, [grad, _, b, _]: [f64; 4]) -> f64 {
    match k {
        0 if def.takes_halves() => grad * b,
        // The exponent, and the largest logarithm.
        _ if def.info.name == "pow_backward" => grad * b.abs().max(104.0),
        _ => grad,
    }
}

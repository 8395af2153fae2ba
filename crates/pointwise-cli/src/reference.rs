//! What ops of several operands must give, element by element.

use pointwise::{Accuracy, DType, GradientDef, MapDef, OpInfo};
use pointwise_core::Kind;

use crate::check::{self, Elements, Operands, Verdict};
use crate::error::Result;
use crate::formulas;
use crate::tour::DEFAULTS;

/// Compares results of type `result` of an op on operands of type `dtype` with what they must be.
///
/// # Errors
/// A type that the op does not take.
pub(crate) fn compare(
    def: &MapDef,
    dtype: DType,
    result: DType,
    got: &Elements,
    operands: &Operands<'_>,
) -> Result<Verdict> {
    let name = def.info.name;
    let each: Vec<&Elements> = operands.iter().map(|(_, elements)| *elements).collect();
    if def.info.kind == Kind::Select {
        return Ok(chosen(got, operands));
    }
    if let [Elements::Whole(a), rest @ ..] = each.as_slice() {
        let at = |k: usize, i: usize| match rest.get(k) {
            Some(Elements::Whole(values)) => i128::from(values[i]),
            _ => 0,
        };
        let right = |i: usize| formulas::integer(name, dtype, [i128::from(a[i]), at(0, i), at(1, i)], 1);
        let wanted: Option<Vec<i64>> = (0..a.len()).map(|i| right(i).map(|value| check::wrap(result, value))).collect();
        return Ok(match (got, wanted) {
            (Elements::Whole(got), Some(wanted)) => check::compare_whole(got, &wanted, operands),
            _ => Verdict::broken("nothing to check it against"),
        });
    }
    let Some(oracle) = def.oracle_for(dtype, &DEFAULTS)? else {
        return Ok(Verdict::broken("an op on bits took a float"));
    };
    let mut accuracy = def.info.accuracy;
    let mut exact = Vec::with_capacity(got.len());
    for i in 0..each.first().map_or(0, |a| a.len()) {
        let at = |k: usize| each.get(k).map_or(0.0, |elements| elements.number(i));
        let x = [at(0), at(1), at(2)];
        exact.push(if def.info.kind == Kind::Gated {
            gated(oracle([x[0], 1.0, 0.0]), x, got.number(i))
        } else if let Some(value) = formulas::stepped(name, x.map(|x| x as f32), 1.0) {
            accuracy = Accuracy::Exact;
            f64::from(value)
        } else if accuracy == Accuracy::Exact && result.is_float() {
            // Rounded to f32, in which the op computes, and then to the type.
            f64::from(oracle(x) as f32)
        } else {
            oracle(x)
        });
    }
    Ok(check::compare(result, accuracy, got, &exact, operands))
}

/// Compares the gradients of a unary op with the formula of which every step is an f32.
///
/// # Errors
/// A type that the op does not take.
pub(crate) fn backward(def: &MapDef, dtype: DType, got: &Elements, operands: &Operands<'_>) -> Result<Verdict> {
    let (Some(stepped), [(_, grad), (_, x)]) = (def.stepped_for(dtype, &DEFAULTS)?, operands) else {
        return Ok(Verdict::broken("nothing to check it against"));
    };
    let wanted = (0..got.len()).map(|i| {
        let (grad, x) = (grad.number(i), x.number(i));
        settled(&def.info, dtype, f64::from(stepped([grad as f32, x as f32])), got.number(i), grad, x)
    });
    Ok(check::compare(dtype, def.info.accuracy, got, &wanted.collect::<Vec<_>>(), operands))
}

/// As [`backward`], of the gradients of an op of several operands.
///
/// # Errors
/// As there.
pub(crate) fn gradients(def: &GradientDef, dtype: DType, got: &[Elements], operands: &Operands<'_>) -> Result<Verdict> {
    let stepped = def.stepped_for(dtype, &DEFAULTS)?;
    let info = &def.info;
    if got.len() != info.results.len() {
        return Ok(Verdict::broken(format!("{} results, not {}", got.len(), info.results.len())));
    }
    let mut all = Verdict::default();
    for (k, (got, name)) in got.iter().zip(info.results).enumerate() {
        let wanted = (0..got.len()).map(|i| {
            let at = |k: usize| operands.get(k).map_or(0.0, |(_, elements)| elements.number(i));
            let x = [at(0), at(1), at(2), at(3)];
            let exact = f64::from(stepped(x.map(|x| x as f32))[k]);
            match info.name {
                // In 16 bits exponents from 2^16 on count as even, which one less than them need not be.
                "pow_backward" if dtype != DType::F32 && x[2].abs() >= 65536.0 && x[1].is_sign_negative() => {
                    got.number(i)
                }
                // The exponent, and the largest logarithm.
                "pow_backward" => settled(info, dtype, exact, got.number(i), x[0] * x[2].abs().max(104.0), x[1]),
                _ if info.kind == Kind::GatedGradients && k == 0 => {
                    settled(info, dtype, exact, got.number(i), x[0] * x[2], x[1])
                }
                _ => settled(info, dtype, exact, got.number(i), x[0], x[1]),
            }
        });
        let verdict = check::compare(dtype, info.accuracy, got, &wanted.collect::<Vec<_>>(), operands);
        all.error = all.error.into_iter().chain(verdict.error).reduce(f64::max);
        all.fault = all.fault.or(verdict.fault.map(|fault| format!("{name}: {fault}")));
    }
    Ok(all)
}

/// The exact value, or the result where it is within what is allowed beside the bound: a part of `scale`, with which
/// the derivative at `x` is multiplied, where its terms cancel; and what is lost where a factor is subnormal.
fn settled(info: &OpInfo, dtype: DType, exact: f64, got: f64, scale: f64, x: f64) -> f64 {
    let smallest = f64::from(f32::from_bits(1));
    let lost = match info.accuracy {
        Accuracy::Exact => 0.0,
        Accuracy::Ulp(ulp) => f64::from(ulp) * smallest,
        // The subnormal factor is multiplied with x, or with the slope of the argument, below 512 where it is not 0.
        Accuracy::Cancels(_) => 512.0 * smallest,
    };
    // The derivatives have their zeros between -2 and 0.
    let slack = if x.abs() < 4.0 { info.accuracy.slack(dtype) } else { 0.0 };
    let allowed = (slack + lost) * scale.abs();
    if allowed > 0.0 && allowed.is_finite() && (got - exact).abs() <= allowed { got } else { exact }
}

/// `activation(gate) value`. The activation is an f32, whose overflow and rounding are the formula's. Of a subnormal
/// one few digits are left, which the value may blow up: then a result near zero is taken as it is, and any of a huge
/// value.
fn gated(activation: f64, [gate, value, _]: [f64; 3], got: f64) -> f64 {
    let activation = activation as f32;
    let product = f64::from(activation) * value;
    let is_tiny = activation.is_subnormal() || (activation == 0.0 && gate != 0.0);
    if is_tiny && product != 0.0 && (value.abs() >= 1e30 || got.abs() <= 1e-7) { got } else { product }
}

/// The elements that the condition chooses, with their bits but for whether a NaN signals.
fn chosen(got: &Elements, operands: &Operands<'_>) -> Verdict {
    let [(_, Elements::Whole(condition)), (_, a), (_, b)] = operands else {
        return Verdict::broken("a condition must be bool");
    };
    let bits = |elements: &Elements, i: usize| match elements {
        Elements::Float(values) => values[i].to_bits() as i64,
        Elements::Whole(values) => values[i],
    };
    let wanted: Vec<i64> = (0..condition.len()).map(|i| bits(if condition[i] != 0 { a } else { b }, i)).collect();
    let got: Vec<i64> = (0..got.len()).map(|i| bits(got, i)).collect();
    check::compare_whole(&got, &wanted, operands)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operation of a table with a right result, and with a wrong one.
    #[test]
    fn a_wrong_result_is_a_fault() {
        let (a, b) = (Elements::Float(vec![1.0, 7.0]), Elements::Float(vec![3.0, -2.0]));
        let floats = [("a", &a), ("b", &b)];
        let (i, j) = (Elements::Whole(vec![-7, i64::MAX]), Elements::Whole(vec![2, 1]));
        let whole = [("a", &i), ("b", &j)];
        let mask = Elements::Whole(vec![0, 1]);
        let select = [("condition", &mask), ("a", &a), ("b", &b)];
        let f32s = |values: [f32; 2]| Elements::Float(values.map(f64::from).to_vec());
        let third = 1.0_f32 / 3.0;
        let cases: [(&str, DType, &Operands<'_>, Elements, Elements); 6] = [
            ("div", DType::F32, &floats, f32s([third, -3.5]), f32s([third.next_up(), -3.5])),
            ("floor_divide", DType::F32, &floats, f32s([0.0, -4.0]), f32s([0.0, -3.0])),
            ("add", DType::I64, &whole, Elements::Whole(vec![-5, i64::MIN]), Elements::Whole(vec![-5, i64::MAX])),
            ("floor_divide", DType::I64, &whole, Elements::Whole(vec![-4, i64::MAX]), Elements::Whole(vec![-3, 0])),
            ("where", DType::F32, &select, f32s([3.0, 7.0]), f32s([1.0, -2.0])),
            ("silu_and_mul", DType::F32, &floats, f32s([2.193_175_8, -13.987_246]), f32s([2.193_2, -13.987_246])),
        ];
        for (name, dtype, operands, right, wrong) in cases {
            let def = pointwise::map_op(name).unwrap();
            let fault = |got: &Elements| compare(def, dtype, dtype, got, operands).unwrap().fault;
            assert_eq!(fault(&right), None, "{name}");
            assert!(fault(&wrong).is_some(), "{name}");
        }
    }
}

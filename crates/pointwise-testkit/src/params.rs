//! Parameters to test an op with.

use pointwise::{
    DType, Number,
    info::{OpInfo, ParamInfo, ParamKind},
};
use pointwise_core::op::MAX_PARAMS;

/// The defaults, and where the op has parameters a second set that differs in each of them but `decimals`.
#[must_use]
pub fn sets(info: &OpInfo, dtype: DType) -> Vec<[Number; MAX_PARAMS]> {
    let mut sets = vec![[Number::Default; MAX_PARAMS]];
    if !info.params.is_empty() {
        let mut other = [Number::Default; MAX_PARAMS];
        for (slot, param) in other.iter_mut().zip(info.params) {
            *slot = other_value(param.name, dtype);
        }
        sets.push(other);
    }
    sets
}

/// The defaults of an op that `#[op]` made, then other values of all its parameters: smaller ones, larger ones, the ends of
/// a probability.
pub(crate) fn several(info: &OpInfo, dtype: DType) -> Vec<Vec<Number>> {
    let others: Vec<Vec<Number>> = info.params.iter().map(|param| other_values(param, dtype)).collect();
    let most = others.iter().map(Vec::len).max().unwrap_or(0);
    let set = |k: usize| others.iter().map(|values| values[k % values.len()]).collect();
    std::iter::once(vec![Number::Default; info.params.len()]).chain((0..most).map(set)).collect()
}

/// Values of a parameter beside its default. A default between 0 and 1 may be a rate: the values stay there, too.
fn other_values(param: &ParamInfo, dtype: DType) -> Vec<Number> {
    let default = param.default;
    match param.kind {
        ParamKind::Flag => vec![Number::Bool(default == 0.0)],
        ParamKind::Whole => vec![Number::Int(default as i64 + 1), Number::Int(default as i64 / 2)],
        ParamKind::Probability => [0.0, 0.5, 1.0].map(Number::Float).to_vec(),
        ParamKind::Open => vec![in_type(0.625, dtype), Number::Default],
        _ => {
            let above =
                if default.abs() < 1.0 { default.signum() * (1.0 + default.abs()) / 2.0 } else { default * 1.5 };
            [default / 2.0, above].map(|value| in_type(value, dtype)).to_vec()
        }
    }
}

/// A number as a type has it.
fn in_type(value: f64, dtype: DType) -> Number {
    match dtype {
        DType::Bool => Number::Bool(value != 0.0),
        _ if dtype.is_float() => Number::Float(value),
        _ => Number::Int(value.round() as i64),
    }
}

/// Parameters in words, if there are any: `, with a = 0.5`.
pub(crate) fn shown(info: &OpInfo, set: &[Number]) -> String {
    let each = info.params.iter().zip(set).map(|(param, number)| match number {
        Number::Default if param.kind == ParamKind::Open => format!("{} = none", param.name),
        Number::Default => format!("{} = {:?}", param.name, param.default),
        Number::Float(value) => format!("{} = {value:?}", param.name),
        Number::Int(value) => format!("{} = {value}", param.name),
        Number::Bool(value) => format!("{} = {value}", param.name),
        other => format!("{} = {other:?}", param.name),
    });
    let all = each.collect::<Vec<_>>().join(", ");
    if all.is_empty() { all } else { format!(" (with {all})") }
}

fn other_value(name: &str, dtype: DType) -> Number {
    let (float, int) = match name {
        // In other digits the steps of PyTorch's formula are rounded, which the oracle's are not: the tests `special` have
        // them.
        "decimals" => (0.0, 0),
        "negative_slope" => (0.2, 0),
        // Not a decimal fraction: f32's nearest to one lies so close to ties of bf16 that the oracle sees another side.
        "alpha" => (std::f64::consts::SQRT_2, 2),
        "min_val" | "min" => (-0.75, 1),
        "max_val" | "max" => (2.5, 5),
        // A power of two: with others the rounding of beta x is an error of the argument, not of the function.
        "beta" => (2.0, 2),
        "threshold" => (5.0, 5),
        "nan" => (1.5, 1),
        "posinf" => (100.0, 100),
        "neginf" => (-100.0, 3),
        _ => (0.625, 1),
    };
    match dtype {
        DType::Bool => Number::Bool(int != 0),
        _ if dtype.is_float() => Number::Float(float),
        _ => Number::Int(int),
    }
}

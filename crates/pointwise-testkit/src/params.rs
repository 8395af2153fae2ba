//! Parameters to test an op with.

use pointwise::{DType, Number, info::OpInfo};
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

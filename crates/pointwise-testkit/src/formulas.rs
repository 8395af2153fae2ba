//! Formulas from their definitions, for ops that f64 gives other results for: the formulas that PyTorch rounds to f32
//! at every step, and formulas on integers and bool.

use pointwise::DType;

/// Computes the op named `name` of up to three f32, with every step rounded to f32; `None` for an op whose exact value
/// counts. `alpha` is the parameter of `add` and `sub`, which round once.
#[must_use]
pub fn stepped(name: &str, [a, b, c]: [f32; 3], alpha: f32) -> Option<f32> {
    // `%` of f32 is C's fmod, exact.
    let remainder = a % b;
    let opposed = remainder != 0.0 && (b < 0.0) != (remainder < 0.0);
    Some(match name {
        "add" => b.mul_add(alpha, a),
        "sub" => (-b).mul_add(alpha, a),
        "div_trunc" => (a / b).trunc(),
        "remainder" if opposed => remainder + b,
        "remainder" => remainder,
        "floor_divide" if b == 0.0 => a / b,
        "floor_divide" => {
            let quotient = (a - remainder) / b - if opposed { 1.0 } else { 0.0 };
            let floor = quotient.floor();
            match quotient {
                0.0 => 0.0_f32.copysign(a / b),
                _ if quotient - floor > 0.5 => floor + 1.0,
                _ => floor,
            }
        }
        "lerp" if c.abs() < 0.5 => c.mul_add(b - a, a),
        "lerp" => (-(b - a)).mul_add(1.0 - c, b),
        "prelu" if a > 0.0 => a,
        "prelu" => b * a,
        _ => return None,
    })
}

/// True if an op's results must equal [`stepped`], bit for bit, whatever the bound of its row.
#[must_use]
pub fn is_stepped(name: &str) -> bool {
    stepped(name, [1.0; 3], 1.0).is_some()
}

/// True if the op's results are also its exact value, rounded once. Then [`stepped`] gives the same, and distances are
/// measured from the exact value.
pub(crate) fn is_rounded_once(name: &str) -> bool {
    !matches!(name, "div_trunc" | "floor_divide" | "lerp")
}

/// Computes the op named `name` of an element of an integer type or bool, before wrapping. Only for ops without a
/// formula at f64.
#[must_use]
pub fn unary_integer(name: &str, dtype: DType, x: i128) -> Option<i128> {
    match (name, dtype) {
        ("bitwise_not", DType::Bool) => Some(1 - x),
        // Two's complement: not x is -x - 1.
        ("bitwise_not", _) => Some(-x - 1),
        _ => None,
    }
}

/// Computes the op named `name` of up to three elements of an integer type or bool, before wrapping to its result's
/// type; `None` for an op that is not known here.
#[must_use]
pub fn integer(name: &str, dtype: DType, [a, b, c]: [i128; 3], alpha: i128) -> Option<i128> {
    // Division by zero is defined as 0.
    let floor = || if b == 0 { 0 } else { a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0) };
    Some(match name {
        "add" if dtype == DType::Bool => i128::from(a != 0 || alpha * b != 0),
        "add" => a + alpha * b,
        "sub" => a - alpha * b,
        "mul" => a * b,
        "div_trunc" => a.checked_div(b).unwrap_or(0),
        "floor_divide" => floor(),
        "remainder" if b == 0 => 0,
        "remainder" => a - b * floor(),
        "pow" => power(a as i64, b),
        "maximum" => a.max(b),
        "minimum" => a.min(b),
        "eq" => i128::from(a == b),
        "ne" => i128::from(a != b),
        "gt" => i128::from(a > b),
        "lt" => i128::from(a < b),
        "ge" => i128::from(a >= b),
        "le" => i128::from(a <= b),
        "logical_and" => i128::from(a != 0 && b != 0),
        "logical_or" => i128::from(a != 0 || b != 0),
        "bitwise_and" => a & b,
        "bitwise_or" => a | b,
        "bitwise_xor" => a ^ b,
        "clamp_tensor" => a.max(b).min(c),
        _ => return None,
    })
}

/// Computes a power that wraps: its low bits depend only on the low bits of the base.
fn power(mut base: i64, exponent: i128) -> i128 {
    let Ok(mut exponent) = u64::try_from(exponent) else {
        return match base {
            1 => 1,
            -1 => 1 - 2 * (exponent & 1),
            _ => 0,
        };
    };
    let mut power = 1_i64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    i128::from(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of PyTorch.
    #[test]
    fn divisions() {
        let of = |name, a, b| stepped(name, [a, b, 0.0], 1.0).unwrap();
        assert_eq!([of("floor_divide", 1.0, 0.1), of("remainder", 1.0, 0.1)], [9.0, 0.099_999_99]);
        assert_eq!([of("remainder", -7.0, 2.0), of("remainder", 7.0, -2.0)], [1.0, -1.0]);
        assert_eq!([of("floor_divide", -7.0, 2.0), of("div_trunc", -7.0, 2.0)], [-4.0, -3.0]);
        assert!(of("floor_divide", -0.0, 2.0).is_sign_negative() && of("floor_divide", 1.0, 0.0) == f32::INFINITY);
        assert_eq!(stepped("exp", [0.0; 3], 1.0), None);
        let of = |name, a, b| integer(name, DType::I32, [a, b, 0], 1).unwrap();
        assert_eq!([of("floor_divide", -7, 2), of("remainder", -7, 2), of("div_trunc", -7, 2)], [-4, 1, -3]);
        assert_eq!([of("floor_divide", 7, 0), of("remainder", 7, 0), of("div_trunc", 7, 0)], [0; 3]);
        assert_eq!(integer("add", DType::I32, [1, 2, 0], 3), Some(7));
        assert_eq!(integer("exp", DType::I32, [0; 3], 1), None);
        assert_eq!([DType::I8, DType::Bool].map(|dtype| unary_integer("bitwise_not", dtype, 1)), [Some(-2), Some(0)]);
        assert!(is_stepped("lerp") && !is_stepped("mul"));
    }

    #[test]
    fn powers() {
        assert_eq!([power(3, 4), power(-1, -3), power(-1, -2), power(2, -1), power(0, 0)], [81, -1, 1, 0, 1]);
        assert_eq!(power(2, 63), i128::from(i64::MIN));
    }

    #[test]
    fn every_op_is_known() {
        let several = |def: &&pointwise::kernel::OpDef| def.info.operands.len() > 1 && !def.info.is_gradient();
        for def in pointwise::info::all().filter(several) {
            let whole = def.info.types.iter().any(|dtype| !dtype.is_float());
            if whole && !def.info.properties.moves {
                assert!(integer(def.info.name, DType::I32, [3, 2, 1], 1).is_some(), "{}", def.info.name);
            }
        }
    }
}

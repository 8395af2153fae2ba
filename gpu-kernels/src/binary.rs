//! Arithmetic of two operands.
//!
//! Formulas and special values: PyTorch's (`torch.*`). `div` is `div(rounding_mode=None)`, `div_trunc` is
//! `div(rounding_mode='trunc')`, and `floor_divide` also `div(rounding_mode='floor')`. An integer divided by zero gives
//! 0, as does its remainder.

use pointwise::__family::*;

/// `a + alpha b`, with one rounding to f32; bool: or.
#[op(
    floats,
    ints,
    bool,
    exact,
    __rules(factor_alpha),
    saves(alpha),
    __grad(exact),
    grad_doc = "`grad` and `alpha grad`."
)]
pub fn add<T: Num>(a: T, b: T, #[param(default = 1.0)] alpha: T) -> T {
    b.scaled_add(alpha, a)
}

/// `a - alpha b`, with one rounding to f32.
#[op(
    floats,
    ints,
    exact,
    __rules(factor_alpha, refuses_bool),
    saves(alpha),
    __grad(exact),
    grad_doc = "`grad` and `-alpha grad`."
)]
pub fn sub<T: Num>(a: T, b: T, #[param(default = 1.0)] alpha: T) -> T {
    (-b).scaled_add(alpha, a)
}

/// `a b`; bool: and.
#[op(floats, ints, bool, exact, __grad(exact), grad_doc = "`grad b` and `grad a`.")]
pub fn mul<T: Num>(a: T, b: T) -> T {
    a * b
}

/// `a / b`; infinite or NaN for a zero divisor, as in IEEE 754.
#[op(
    floats,
    exact,
    __rules(int_to_float),
    __hints(quotient),
    __pairs(f8e5m2 = 26),
    __grad(exact),
    grad_doc = "`grad / b` and `-grad a / b / b`."
)]
pub fn div<T: Real>(a: T, b: T) -> T {
    a / b
}

/// The quotient, rounded to f32, cut towards zero; integers: that of C, 0 for a zero divisor.
#[op(
    floats,
    ints,
    exact,
    __hints(truncated_quotient),
    __pairs(f8e5m2 = 26, i8 = 20),
    saves(),
    __grad(exact, constant),
    grad_doc = "0 and 0."
)]
pub fn div_trunc<T: Num>(a: T, b: T) -> T {
    a.trunc_divide(b)
}

/// The quotient rounded down, through the exact remainder; integers: 0 for a zero divisor.
#[op(
    floats,
    ints,
    ulp = 2,
    __hints(floored_quotient),
    __pairs(f8e4m3 = 26, f8e5m2 = 23, i8 = 20),
    saves(),
    __grad(exact, constant),
    grad_doc = "0 and 0."
)]
pub fn floor_divide<T: Num>(a: T, b: T) -> T {
    a.floor_divide(b)
}

/// The remainder of the quotient rounded down, exact but for one rounding; the sign of b. Integers: 0 for a zero
/// divisor.
#[op(
    floats,
    ints,
    exact,
    __hints(modulo),
    __pairs(f8e4m3 = 23, f8e5m2 = 22, i8 = 20),
    __grad(exact),
    grad_doc = "`grad` and `-grad floor(a / b)`."
)]
pub fn remainder<T: Num>(a: T, b: T) -> T {
    a.remainder(b)
}

/// `a` to the power `b`, with the special cases of C99; integers wrap, and a negative exponent leaves 1, -1 or 0.
#[op(
    floats,
    ints,
    ulp = 1,
    __hints(power),
    __rewrite(power),
    __pairs(f8e4m3 = 23, f8e5m2 = 22, i8 = 20, u8 = 23),
    __grad(ulp = 6, few_registers),
    grad_doc = "`grad b a^(b - 1)`, 0 for `b = 0`; and `grad a^b ln(a)`, `grad * 0` for `a = 0` and `b >= 0`. In \
                16 bits exponents of magnitude 2^16 and more count as even."
)]
pub fn pow<T: Num>(a: T, b: T) -> T {
    a.pow(b)
}

/// The larger; NaN if either is NaN; +0 above -0; bool: or.
#[op(
    floats,
    ints,
    bool,
    exact,
    __pairs(i8 = 26),
    __grad(exact),
    grad_doc = "`grad` to the larger and 0 to the other, halves where they are equal; `grad` to both for NaN."
)]
pub fn maximum<T: Num>(a: T, b: T) -> T {
    a.maximum(b)
}

/// The smaller; NaN if either is NaN; -0 below +0; bool: and.
#[op(
    floats,
    ints,
    bool,
    exact,
    __pairs(i8 = 26),
    __grad(exact),
    grad_doc = "`grad` to the smaller and 0 to the other, halves where they are equal; `grad` to both for NaN."
)]
pub fn minimum<T: Num>(a: T, b: T) -> T {
    a.minimum(b)
}

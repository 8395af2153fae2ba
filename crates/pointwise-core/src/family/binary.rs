//! Arithmetic of two operands.
//!
//! Formulas and special values: PyTorch's (`torch.*`). `div` is `div(rounding_mode=None)`, `div_trunc` is
//! `div(rounding_mode='trunc')`, and `floor_divide` also `div(rounding_mode='floor')`. An integer divided by zero gives
//! 0, as does its remainder.

pointwise_macros::table! { binary_family Binary;
    /// `a + alpha b`, with one rounding to f32; bool: or.
    add: Add { alpha = 1.0 } (a, b: Num) -> T, [floats ints bool factor_alpha], Exact => b.scaled_add(alpha, a);
    /// `a - alpha b`, with one rounding to f32.
    sub: Sub { alpha = 1.0 } (a, b: Num) -> T, [floats ints factor_alpha refuses_bool], Exact => (-b).scaled_add(alpha, a);
    /// `a b`; bool: and.
    mul: Mul (a, b: Num) -> T, [floats ints bool], Exact => a * b;
    /// `a / b`; infinite or NaN for a zero divisor, as in IEEE 754.
    div: Div (a, b: Real) -> T, [floats int_to_float quotient], Exact => a / b;
    /// The quotient, rounded to f32, cut towards zero; integers: that of C, 0 for a zero divisor.
    div_trunc: DivTrunc (a, b: Num) -> T, [floats ints truncated_quotient], Exact => a.trunc_divide(b);
    /// The quotient rounded down, through the exact remainder; integers: 0 for a zero divisor.
    floor_divide: FloorDivide (a, b: Num) -> T, [floats ints floored_quotient], Ulp(2.0) => a.floor_divide(b);
    /// What rounding the quotient down leaves, exact but for one rounding; the sign of b. Integers: 0 for a zero
    /// divisor.
    remainder: Remainder (a, b: Num) -> T, [floats ints modulo], Exact => a.remainder(b);
    /// `a` to the power `b`, with the special cases of C99; integers wrap, and a negative exponent leaves 1, -1 or 0.
    pow: Pow (a, b: Num) -> T, [floats ints power], Ulp(1.0) => a.pow(b);
    /// The larger; NaN if either is NaN; +0 above -0; bool: or.
    maximum: Maximum (a, b: Num) -> T, [floats ints bool], Exact => a.maximum(b);
    /// The smaller; NaN if either is NaN; -0 below +0; bool: and.
    minimum: Minimum (a, b: Num) -> T, [floats ints bool], Exact => a.minimum(b);
}

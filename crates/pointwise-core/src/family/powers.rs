//! What `pow` by a number is where a product serves: ops of their own beneath, which PyTorch has no name for.

use crate::num::Real;

pointwise_macros::table! { powers_family Unary;
    /// `x^3`, correctly rounded in f32 above 2^-101, and below it within 1 ULP.
    cube: Cube (x: Real) -> T, [floats], Ulp(1.0) => cube(x);
}

/// `x x x` with what the rounding of `x x` lost.
#[inline(always)]
fn cube<T: Real>(x: T) -> T {
    let square = x * x;
    let lost = x.mul_add(x, -square);
    let rest = lost * x;
    // Of a product far out of range the rest is, too, with any sign, or it is NaN.
    if rest.abs() < T::constant(f64::INFINITY) { square.mul_add(x, rest) } else { square * x }
}

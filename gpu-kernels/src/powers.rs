//! Products that `pow` by a number runs. PyTorch has no names for them.

use pointwise::__family::*;

/// `x^3`, correctly rounded in f32 above 2^-101, and below it within 1 ULP.
#[op(floats, ulp = 1, grad = none, __rules(beneath))]
pub fn cube<T: Real>(x: T) -> T {
    // With what the rounding of `x x` lost.
    let square = x * x;
    let lost = x.mul_add(x, -square);
    let rest = lost * x;
    // If the product is far out of range, so is the rest, with any sign, or it is NaN.
    if rest.abs() < T::constant(f64::INFINITY) { square.mul_add(x, rest) } else { square * x }
}

//! The ops.

use pointwise::prelude::*;

/// By a feature that is set, and one that is not.
#[op(f32, exact, grad = none)]
pub fn by_feature<T: Num>(x: T) -> T {
    let y = if cfg!(feature = "extra") { x + x + x } else { x };
    if cfg!(feature = "other") { y + y } else { y }
}

/// By a cfg of the build script.
#[op(f32, ulp = 2, grad = none)]
pub fn by_cfg<T: Num>(x: T) -> T {
    #[cfg(cubes)]
    let x = x * x * x;
    x
}

/// There with a feature.
#[cfg(feature = "extra")]
#[op(f32, exact, grad = none)]
pub fn of_a_feature<T: Num>(x: T) -> T {
    x - T::ONE
}

/// Not there.
#[cfg(feature = "other")]
#[op(f32, exact, grad = none)]
pub fn of_another_feature<T: Num>(x: T) -> T {
    x - T::ONE
}

/// An op with a feature.
#[cfg_attr(feature = "extra", op(f32, exact, grad = none))]
pub fn by_attribute<T: Num>(x: T) -> T {
    x + T::ONE
}

macro_rules! scaled {
    ($($name:ident $factor:literal)*) => {
        $(
            /// A product with a number.
            #[op(f32, exact, grad = none)]
            pub fn $name<T: Real>(x: T) -> T {
                x * T::constant($factor)
            }
        )*
    };
}

// The second is called as the gradients of the first are, if it has any.
scaled! { halved 0.5 halved_backward 2.0 doubled_backward 2.0 }

/// True if a whole number is odd. The default is odd only if nothing rounds it to f64.
#[op(f32, exact, grad = none)]
pub fn is_odd<T: Num>(x: T, #[param(default = 9007199254740993)] n: i64) -> (T, bool) {
    (x, n & 1 == 1)
}

/// A norm times a whole number of each element: its vectors have two elements, as i64 has 8 bytes.
#[op(f32, ulp = 8, grad_ulp = 64)]
pub fn counted_norm<T: Real>(x: T, #[stored(i64)] count: T, #[weight] weight: T, row: Row<T>) -> T {
    x * (row.mean(x * x) + T::constant(1e-6)).rsqrt() * weight * count
}

//! Comparisons and logic: two operands of any type, a bool out.

use pointwise::__family::*;

/// `a == b`; false with NaN, and +0 equals -0.
#[op(floats, ints, bool, exact)]
pub fn eq<T: Value>(a: T, b: T) -> bool {
    a == b
}

/// `a != b`; true with NaN.
#[op(floats, ints, bool, exact)]
pub fn ne<T: Value>(a: T, b: T) -> bool {
    a != b
}

/// `a > b`; false with NaN.
#[op(floats, ints, bool, exact)]
pub fn gt<T: Value>(a: T, b: T) -> bool {
    a > b
}

/// `a < b`; false with NaN.
#[op(floats, ints, bool, exact)]
pub fn lt<T: Value>(a: T, b: T) -> bool {
    a < b
}

/// `a >= b`; false with NaN.
#[op(floats, ints, bool, exact)]
pub fn ge<T: Value>(a: T, b: T) -> bool {
    a >= b
}

/// `a <= b`; false with NaN.
#[op(floats, ints, bool, exact)]
pub fn le<T: Value>(a: T, b: T) -> bool {
    a <= b
}

/// Neither is zero; NaN counts as true.
#[op(floats, ints, bool, exact, __hints(truths))]
pub fn logical_and<T: Value>(a: T, b: T) -> bool {
    a.truth() & b.truth()
}

/// Not both are zero; NaN counts as true.
#[op(floats, ints, bool, exact, __hints(truths))]
pub fn logical_or<T: Value>(a: T, b: T) -> bool {
    a.truth() | b.truth()
}

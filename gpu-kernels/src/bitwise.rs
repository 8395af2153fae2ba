//! Whole-word logic of two operands.

use pointwise::__family::*;

/// Each bit and; bool: and.
#[op(ints, bool, exact)]
pub fn bitwise_and<T: Bits>(a: T, b: T) -> T {
    a & b
}

/// Each bit or; bool: or.
#[op(ints, bool, exact)]
pub fn bitwise_or<T: Bits>(a: T, b: T) -> T {
    a | b
}

/// Each bit exclusive or; bool: not equal.
#[op(ints, bool, exact)]
pub fn bitwise_xor<T: Bits>(a: T, b: T) -> T {
    a ^ b
}

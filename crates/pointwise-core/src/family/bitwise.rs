//! Whole-word logic of two operands.

pointwise_macros::table! { bitwise_family Binary;
    /// Each bit and; bool: and.
    bitwise_and: BitwiseAnd (a, b: Bits) -> T, [ints bool], Exact => a & b;
    /// Each bit or; bool: or.
    bitwise_or: BitwiseOr (a, b: Bits) -> T, [ints bool], Exact => a | b;
    /// Each bit exclusive or; bool: not equal.
    bitwise_xor: BitwiseXor (a, b: Bits) -> T, [ints bool], Exact => a ^ b;
}

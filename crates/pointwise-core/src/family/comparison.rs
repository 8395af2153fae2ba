//! Comparisons and logic: two operands of any type, a bool out.

pointwise_macros::table! { comparison_family Binary;
    /// `a == b`; false with NaN, and +0 equals -0.
    eq: Equal (a, b: Value) -> bool, [floats ints bool], Exact => a == b;
    /// `a != b`; true with NaN.
    ne: NotEqual (a, b: Value) -> bool, [floats ints bool], Exact => a != b;
    /// `a > b`; false with NaN.
    gt: Greater (a, b: Value) -> bool, [floats ints bool], Exact => a > b;
    /// `a < b`; false with NaN.
    lt: Less (a, b: Value) -> bool, [floats ints bool], Exact => a < b;
    /// `a >= b`; false with NaN.
    ge: GreaterEqual (a, b: Value) -> bool, [floats ints bool], Exact => a >= b;
    /// `a <= b`; false with NaN.
    le: LessEqual (a, b: Value) -> bool, [floats ints bool], Exact => a <= b;
    /// Neither is zero; NaN counts as true.
    logical_and: LogicalAnd (a, b: Value) -> bool, [floats ints bool truths], Exact => a.truth() & b.truth();
    /// Not both are zero; NaN counts as true.
    logical_or: LogicalOr (a, b: Value) -> bool, [floats ints bool truths], Exact => a.truth() | b.truth();
}

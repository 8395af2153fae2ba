//! Elements chosen by a condition. Their bits pass through: NaN payloads, signs of zeros.

pointwise_macros::table! { select_family Select;
    /// `condition ? a : b`.
    where: Where (condition, a, b: Value) -> T, [floats ints bool], Exact => if condition.0 { a } else { b };
}

//! Elements chosen by a condition. Their bits pass through: NaN payloads, signs of zeros.

crate::select_ops! { select_family;
    /// `condition ? a : b`.
    where: Where (condition, a, b: Value) -> T, [floats ints bool], Exact => if condition.0 { a } else { b };
}

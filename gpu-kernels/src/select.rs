//! Elements chosen by a condition. Their bits pass through: NaN payloads, signs of zeros.

use pointwise::__family::*;

/// `condition ? a : b`.
#[op(
    floats,
    ints,
    bool,
    exact,
    __hints(moves),
    saves(condition),
    __grad(exact),
    grad_doc = "`condition ? grad : 0` and `condition ? 0 : grad`."
)]
pub fn r#where<T: Value>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}

//! The ops of the family as functions, which other formulas call.
//!
//! ```
//! use pointwise_core::{Real, formulas};
//!
//! fn gate<T: Real>(x: T, y: T) -> T {
//!     formulas::elu(x, T::constant(1.0)) * formulas::hardsigmoid(y)
//! }
//!
//! assert_eq!(gate(2.0_f64, 3.0), 2.0);
//! ```
//!
//! A module of [`op`](macro@pointwise_macros::op) functions has them by `use pointwise::formulas;`. A function is the
//! formula of the op of its name: it takes operands and parameters of the formula's type, so that a number is
//! `T::constant(1.0)`, or `T::whole(1)` in a formula of integers. A parameter has no default here. `where` is a
//! keyword: its function is [`where_cond`].
//!
//! The gradient of a formula that calls them is derived from theirs. Some ops have a gradient by hand, for themselves
//! alone: it may differ at kinks, at NaN and where a step overflows.
//!
//! Ops on rows (norms, softmax, reductions) are not here: `#[op]` finds reductions in the text of the formula itself.
//! Dropout is [`Real::dropout`](crate::Real::dropout).

// Here, and not in the host crate and the device crate: each has one `__family`, where an op is more than its
// function. A package without the family's ops has these functions, too.

// The gradients by hand in these files are for the ops.
#![allow(dead_code)]

#[path = "formulas/binary.rs"]
mod binary;
#[path = "formulas/bitwise.rs"]
mod bitwise;
#[path = "formulas/channel.rs"]
mod channel;
#[path = "formulas/comparison.rs"]
mod comparison;
#[path = "formulas/gated.rs"]
mod gated;
#[path = "formulas/select.rs"]
mod select;
#[path = "formulas/ternary.rs"]
mod ternary;
#[path = "formulas/unary.rs"]
mod unary;

pub use select::r#where as where_cond;
pub use {binary::*, bitwise::*, channel::*, comparison::*, gated::*, ternary::*, unary::*};

#[cfg(test)]
mod tests {
    use std::num::Wrapping;
    use std::path::Path;
    use std::{format, fs};

    use super::*;
    use crate::{Coarse, Dual, Logic, Real, Rough};

    #[test]
    fn a_function_has_the_values_of_its_op() {
        assert_eq!(elu(-1.0, 2.0), 2.0 * f64::exp_m1(-1.0));
        assert_eq!((elu(3.0, 2.0), hardswish(1.5), hardsigmoid(-4.0)), (3.0, 1.125, 0.0));
        assert_eq!((lerp(1.0, 3.0, 0.25), lerp(1.0, 3.0, 0.75)), (1.5, 2.5));
        assert_eq!((leaky_relu(-2.0, 0.5), prelu(-2.0, 0.25), gelu_and_mul(0.0, 7.0)), (-1.0, -0.5, 0.0));
        assert_eq!((where_cond(true, 1.0, 2.0), gt(1.0, 2.0)), (1.0, false));
    }

    #[test]
    fn a_function_is_of_every_compute_type() {
        fn gate<T: Real>(x: T) -> T {
            lerp(selu(x), mish(x), T::constant(0.5))
        }
        let exact = gate(0.75_f64);
        assert!((f64::from(gate(0.75_f32)) - exact).abs() < 1e-6);
        assert!((gate(Coarse::constant(0.75)).to_f64() - exact).abs() < 1e-3);
        assert!((gate(Rough::constant(0.75)).to_f64() - exact).abs() < 1e-2);
        assert_eq!(clamp(Wrapping(9_i8), Wrapping(-2), Wrapping(5)), Wrapping(5));
        assert_eq!(floor_divide(Wrapping(-7_i32), Wrapping(2)), Wrapping(-4));
        assert_eq!((bitwise_xor(Wrapping(6_u8), Wrapping(3)), bitwise_not(Logic(true))), (Wrapping(5), Logic(false)));
    }

    #[test]
    fn a_gradient_goes_through_a_function() {
        let at = |x: f64| Dual::<f64, 1>::variable(x, 0, 1.0);
        let slope = elu(at(-1.0), Real::constant(2.0)).gradient(0);
        assert!((slope - 2.0 * f64::exp(-1.0)).abs() < 1e-15, "{slope}");
        let slope = (hardswish(at(1.5)) * leaky_relu(at(-2.0), Real::constant(0.5))).gradient(0);
        assert!((slope - (-1.0 + 1.125 * 0.5)).abs() < 1e-15, "{slope}");
    }

    /// The attribute makes a function of each op, so that the modules are all that could be left out.
    #[test]
    fn every_module_of_ops_on_elements_is_here() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formulas");
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let has_ops = text.contains("#[op(") && !text.contains("row: Row<T>") && !text.contains("__rules(beneath)");
            assert_eq!(include_str!("formulas.rs").contains(&format!("formulas/{name}")), has_ops, "{name}");
        }
    }
}

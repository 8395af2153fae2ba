//! The operators of tensors, views and numbers: they run the ops of their names, with broadcasting and type promotion.
//! A number on the left is an `f64` or an `i64`; one on the right is of any type.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use duplicate::duplicate_item;

use crate::error::Result;
use crate::kernel::Operand;
use crate::{Tensor, TensorView, ops};

#[duplicate_item(
    name  Operator op;
    [add] [Add]    [add];
    [sub] [Sub]    [sub];
    [mul] [Mul]    [mul];
    [div] [Div]    [div];
    [rem] [Rem]    [remainder];
)]
mod name {
    use super::*;

    #[duplicate_item(A; [&'a Tensor]; [TensorView<'a>])]
    impl<'a, B: Into<Operand<'a>>> Operator<B> for A {
        type Output = Result<Tensor>;
        fn name(self, b: B) -> Result<Tensor> {
            ops::op(self, b)
        }
    }

    impl<'a, B: Into<Operand<'a>>> Operator<B> for Tensor {
        type Output = Result<Tensor>;
        fn name(self, b: B) -> Result<Tensor> {
            let b: Operand<'a> = b.into();
            ops::op(&self, b)
        }
    }

    // Numbers are one float and one integer type, so that a literal's type is known at once: `(2.0 * &x)?.view()`
    // compiles.
    #[duplicate_item(A; [&Tensor]; [TensorView<'_>]; [f64]; [i64])]
    impl Operator<Tensor> for A {
        type Output = Result<Tensor>;
        fn name(self, b: Tensor) -> Result<Tensor> {
            ops::op(self, &b)
        }
    }

    impl Operator<Tensor> for Tensor {
        type Output = Result<Tensor>;
        fn name(self, b: Tensor) -> Result<Tensor> {
            ops::op(&self, &b)
        }
    }

    #[duplicate_item(A B; [f64] [&Tensor]; [f64] [TensorView<'_>]; [i64] [&Tensor]; [i64] [TensorView<'_>])]
    impl Operator<B> for A {
        type Output = Result<Tensor>;
        fn name(self, b: B) -> Result<Tensor> {
            ops::op(self, b)
        }
    }
}

#[duplicate_item(A; [&Tensor]; [TensorView<'_>])]
impl Neg for A {
    type Output = Result<Tensor>;
    fn neg(self) -> Result<Tensor> {
        ops::neg(self)
    }
}

impl Neg for Tensor {
    type Output = Result<Tensor>;
    fn neg(self) -> Result<Tensor> {
        ops::neg(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, f16};

    fn of(data: &[f32]) -> Tensor {
        Tensor::from_slice(&Device::cpu(), data, [data.len()]).unwrap()
    }

    fn values(y: Result<Tensor>) -> Vec<f32> {
        y.unwrap().to_vec().unwrap()
    }

    #[test]
    fn operators_are_the_ops_of_their_names() {
        let (a, b) = (of(&[7.0, -7.0]), of(&[2.0, 2.0]));
        assert_eq!(values(&a + &b), [9.0, -5.0]);
        assert_eq!(values(&a - &b), [5.0, -9.0]);
        assert_eq!(values(&a * &b), [14.0, -14.0]);
        assert_eq!(values(&a / &b), [3.5, -3.5]);
        // The sign of the divisor, unlike Rust's `%` of numbers.
        assert_eq!(values(&a % &b), [1.0, 1.0]);
        assert_eq!(values(-&a), [-7.0, 7.0]);
    }

    #[test]
    fn numbers_stand_on_either_side() {
        let a = of(&[1.0, 4.0]);
        assert_eq!(values(&a * 2.0), [2.0, 8.0]);
        assert_eq!((2.0 * &a).unwrap().to_vec::<f32>().unwrap(), [2.0, 8.0]);
        assert_eq!(values(1 - &a), [0.0, -3.0]);
        assert_eq!(values(1 / a.view()), [1.0, 0.25]);
        assert_eq!(values(a.narrow(0, 1, 1).unwrap() + f16::from_f32(2.0)), [6.0]);
    }

    #[test]
    fn results_are_operands() {
        fn formula(a: &Tensor, b: &Tensor) -> Result<Tensor> {
            let product = ((a + b)? * (a - b)?)?;
            (product - (2 * b)?)? + (-a)?
        }
        assert_eq!(values(formula(&of(&[5.0]), &of(&[3.0]))), [5.0]);
        let error = (of(&[1.0, 2.0]) + &of(&[1.0, 2.0, 3.0])).unwrap_err();
        assert!(error.is_shape(), "{error}");
    }
}

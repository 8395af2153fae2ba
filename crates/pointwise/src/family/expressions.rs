//! The operators of [`Expr`], by the ops of their names. Its methods come from the ops' functions.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::fusion::Expr;
use crate::kernel::Rng;

macro_rules! operators {
    ($($Trait:ident $method:ident;)*) => { $(
        impl<'a, T: Into<Expr<'a>>> $Trait<T> for Expr<'a> {
            type Output = Expr<'a>;
            fn $method(self, other: T) -> Expr<'a> {
                Expr::$method(&self, other)
            }
        }

        impl<'a, T: Into<Expr<'a>>> $Trait<T> for &Expr<'a> {
            type Output = Expr<'a>;
            fn $method(self, other: T) -> Expr<'a> {
                Expr::$method(self, other)
            }
        }

        impl<'a> $Trait<Expr<'a>> for f64 {
            type Output = Expr<'a>;
            fn $method(self, other: Expr<'a>) -> Expr<'a> {
                Expr::$method(&Expr::from(self), other)
            }
        }

        impl<'a> $Trait<&Expr<'a>> for f64 {
            type Output = Expr<'a>;
            fn $method(self, other: &Expr<'a>) -> Expr<'a> {
                Expr::$method(&Expr::from(self), other)
            }
        }
    )* };
}
operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl<'a> Expr<'a> {
    /// Returns `torch.nn.functional.dropout` of the formula with probability `p`, with the mask of
    /// [`ops::dropout`](crate::ops::dropout) at the same place. For the backward pass take the same place again.
    ///
    /// ```
    /// use pointwise::prelude::*;
    /// use pointwise::Philox;
    /// use pointwise::fusion::Lazy;
    ///
    /// let [x, residual] = [1.0_f32, 3.0].map(|value| Tensor::full(&Device::cpu(), value, [8]).unwrap());
    /// let rng = Philox::new(42);
    /// let y = (x.lazy().gelu().dropout(0.5, rng) + residual.lazy()).eval()?;
    /// let two_passes = ops::add(&ops::dropout(&ops::gelu(&x)?, 0.5, rng)?, &residual)?;
    /// assert_eq!(y.to_vec::<f32>()?, two_passes.to_vec::<f32>()?);
    /// # Ok::<(), pointwise::Error>(())
    /// ```
    #[must_use]
    pub fn dropout(&self, p: f64, rng: impl Into<Rng<'a>>) -> Expr<'a> {
        let scale = (1.0 / (1.0 - f64::from(p as f32))) as f32;
        self.dropout_mask(p, rng).where_cond(self.mul(scale), 0.0)
    }
}

impl<'a> Neg for Expr<'a> {
    type Output = Expr<'a>;
    fn neg(self) -> Expr<'a> {
        Expr::neg(&self)
    }
}

impl<'a> Neg for &Expr<'a> {
    type Output = Expr<'a>;
    fn neg(self) -> Expr<'a> {
        Expr::neg(self)
    }
}

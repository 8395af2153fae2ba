//! The operators of [`Expr`], dropout, norms and softmax, by the ops of their names. Its other methods come from the ops' functions.

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

/// Over the last dimension. Sums have the tree of the fused kernel, and so other last bits than the ops of these names.
impl<'a> Expr<'a> {
    /// Returns [`ops::rms_norm`](crate::ops::rms_norm) of the formula: `x / sqrt(mean(x^2) + eps) * weight`.
    ///
    /// ```
    /// use pointwise::prelude::*;
    /// use pointwise::fusion::{Lazy, eval_all};
    ///
    /// let [x, residual, weight] = [1.0_f32, 2.0, 0.5].map(|value| Tensor::full(&Device::cpu(), value, [4, 64]).unwrap());
    /// let sum = x.lazy() + &residual;
    /// let both = eval_all([&sum.rms_norm(&weight, 1e-6), &sum])?;
    /// assert_eq!(both[0].shape().dims(), [4, 64]);
    /// # Ok::<(), pointwise::Error>(())
    /// ```
    #[must_use]
    pub fn rms_norm(&self, weight: impl Into<Expr<'a>>, eps: f64) -> Expr<'a> {
        self * ((self * self).row_mean() + eps).rsqrt() * weight
    }

    /// Returns [`ops::layer_norm`](crate::ops::layer_norm) of the formula: `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, by the
    /// biased variance.
    #[must_use]
    pub fn layer_norm(&self, weight: impl Into<Expr<'a>>, bias: impl Into<Expr<'a>>, eps: f64) -> Expr<'a> {
        let centred = self - self.row_mean();
        &centred * ((&centred * &centred).row_mean() + eps).rsqrt() * weight + bias
    }

    /// Returns [`ops::l2_normalize`](crate::ops::l2_normalize) of the formula: `x / max(sqrt(sum(x^2)), eps)`.
    #[must_use]
    pub fn l2_normalize(&self, eps: f64) -> Expr<'a> {
        self / (self * self).row_sum().sqrt().maximum(eps)
    }

    /// Returns [`ops::softmax`](crate::ops::softmax) of the formula. A row of minus infinities alone gives NaN.
    #[must_use]
    pub fn softmax(&self) -> Expr<'a> {
        let shares = (self - self.row_max()).exp();
        &shares / shares.row_sum()
    }

    /// Returns [`ops::log_softmax`](crate::ops::log_softmax) of the formula.
    #[must_use]
    pub fn log_softmax(&self) -> Expr<'a> {
        let below = self - self.row_max();
        &below - below.exp().row_sum().log()
    }

    /// Returns [`ops::logsumexp`](crate::ops::logsumexp) of the formula: one for each row, whose last dimension has size 1.
    #[must_use]
    pub fn logsumexp(&self) -> Expr<'a> {
        let largest = self.row_max();
        let total = (self - &largest).exp().row_sum().log() + &largest;
        largest.isinf().where_cond(&largest, total)
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

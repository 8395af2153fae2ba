//! The operators of [`Expr`], by the ops of their names. Its methods come from the ops' functions.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::fusion::Expr;

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

//! Comparison, words, and the arithmetic operators.

use core::cmp::Ordering;
use core::ops::{Add, Div, Mul, Neg, Sub};

use super::{Dual, Tangent};
use crate::num::{Real, Value};
use crate::op::Word;

/// Compares only the values.
impl<T: PartialEq, const K: usize> PartialEq for Dual<T, K> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Compares only the values.
impl<T: PartialOrd, const K: usize> PartialOrd for Dual<T, K> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
    #[inline(always)]
    fn lt(&self, other: &Self) -> bool {
        self.value < other.value
    }
    #[inline(always)]
    fn le(&self, other: &Self) -> bool {
        self.value <= other.value
    }
    #[inline(always)]
    fn gt(&self, other: &Self) -> bool {
        self.value > other.value
    }
    #[inline(always)]
    fn ge(&self, other: &Self) -> bool {
        self.value >= other.value
    }
}

/// A parameter is a constant.
impl<T: Value, const K: usize> Word for Dual<T, K> {
    #[inline(always)]
    fn to_word(self) -> u64 {
        self.value.to_word()
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Dual::constant(T::from_word(word))
    }
}

impl<T: Value, const K: usize> Value for Dual<T, K> {
    const ZERO: Self = Dual::constant(T::ZERO);
    const ONE: Self = Dual::constant(T::ONE);
    #[inline(always)]
    fn whole(number: i64) -> Self {
        Dual::constant(T::whole(number))
    }
    #[inline(always)]
    fn truth(self) -> bool {
        self.value.truth()
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.value.is_nan()
    }
    #[inline(always)]
    fn is_infinite(self) -> bool {
        self.value.is_infinite()
    }
}

impl<T: Real, const K: usize> Add for Dual<T, K> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.with(other, T::add, Tangent::plus)
    }
}

impl<T: Real, const K: usize> Sub for Dual<T, K> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.with(other, T::sub, Tangent::minus)
    }
}

impl<T: Real, const K: usize> Mul for Dual<T, K> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let (a, b) = (self.value, other.value);
        self.with(other, T::mul, |t, u| t.map(|t| t * b).plus_product(u, a))
    }
}

impl<T: Real, const K: usize> Div for Dual<T, K> {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let (b, quotient) = (other.value, self.value / other.value);
        self.with(other, |_, _| quotient, |t, u| t.over(u, quotient, b))
    }
}

impl<T: Real, const K: usize> Neg for Dual<T, K> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.then(T::neg, T::neg)
    }
}

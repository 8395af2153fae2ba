//! Formulas.
use pointwise_macros::op;

#[op(floats, exact)]
pub fn asserts<T: Real>(x: T) -> T { assert!(x > T::ZERO, "not positive"); x }

#[op(floats, exact)]
pub fn panics<T: Real>(x: T) -> T { if x != T::ZERO { x } else { panic!() } }

#[op(floats, exact)]
pub fn divides_by_a_whole_number<T: Real>(a: T, #[param(default = 2)] n: i64) -> T { a / n }

#[op(floats, exact)]
pub fn number_on_the_left<T: Real>(x: T) -> T { 2 * x }

#[op(floats, exact)]
pub fn number_on_the_right<T: Real>(x: T) -> T { (x + 0.5).abs() }

#[op(ints, exact)]
pub fn adds_a_whole_number<T: Num>(a: T, #[param(default = 2)] n: i64) -> T { a + n }

#[op(floats, exact)]
pub fn t<T: Real>(x: T) -> T { x }

pub struct Own;

impl Own {
    #[op(floats, exact)]
    pub fn method<T: Real>(&self, x: T) -> T { x }
}

fn main() {}

//! Words of the attribute.
use pointwise_macros::op;

#[op(floats, fast, ulp = 8)]
pub fn unknown<T: Real>(x: T) -> T { x }

#[op(floats, ulp)]
pub fn no_value<T: Real>(x: T) -> T { x }

#[op(floats, ulp = 0)]
pub fn zero_ulp<T: Real>(x: T) -> T { x }

#[op(floats, ulp = many)]
pub fn no_number<T: Real>(x: T) -> T { x }

#[op(floats, exact, ulp = 8)]
pub fn two_bounds<T: Real>(x: T) -> T { x }

#[op(floats)]
pub fn no_bound<T: Real>(x: T) -> T { x }

#[op(ulp = 8)]
pub fn no_types<T: Real>(x: T) -> T { x }

#[op(floats, f32, exact)]
pub fn twice<T: Real>(x: T) -> T { x }

#[op(floats exact)]
pub fn no_comma<T: Real>(x: T) -> T { x }

#[op(floats, "exact")]
pub fn no_word<T: Real>(x: T) -> T { x }

#[op(floats, ints, exact)]
pub fn integers<T: Real>(x: T) -> T { x }

#[op(floats, bool, exact)]
pub fn bools<T: Num>(x: T) -> T { x }

#[op(f32, exact)]
pub fn floats<T: Bits>(x: T) -> T { x }

#[op(floats, exact, grad)]
pub fn no_gradient<T: Real>(x: T) -> T { x }

#[op(floats, exact, grad = none, grad_ulp = 4)]
pub fn bound_of_nothing<T: Real>(x: T) -> T { x }

#[op(ints, grad = function)]
pub fn gradient_of_integers<T: Num>(x: T) -> T { x }

#[op(floats, exact, results)]
pub fn no_names<T: Real>(x: T) -> (T, T) { (x, x) }

#[op(floats, exact, results(a))]
pub fn too_few_names<T: Real>(x: T) -> (T, T) { (x, x) }

#[op(floats, exact, results(a, a))]
pub fn one_name<T: Real>(x: T) -> (T, T) { (x, x) }

fn main() {}

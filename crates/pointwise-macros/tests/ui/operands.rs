//! Operands, results and the function itself.
use pointwise_macros::op;

#[op(floats, exact)]
pub fn of_f32<T: Real>(x: f32) -> T { x }

#[op(floats, exact)]
pub fn no_operand<T: Real>() -> T { T::ONE }

#[op(floats, exact)]
pub fn only_bools<T: Real>(mask: bool) -> T { T::ONE }

#[op(floats, exact)]
pub fn nine<T: Real>(a: T, b: T, c: T, d: T, e: T, f: T, g: T, h: T, i: T) -> T { a }

#[op(floats, exact)]
pub fn no_result<T: Real>(x: T) {}

#[op(floats, exact)]
pub fn another_result<T: Real>(x: T) -> u32 { 1 }

#[op(floats, exact)]
pub fn five_results<T: Real>(x: T) -> (T, T, T, T, T) { (x, x, x, x, x) }

#[op(floats, exact)]
pub fn tuple_of_one<T: Real>(x: T) -> (T,) { (x,) }

#[op(floats, exact)]
pub fn not_generic(x: f32) -> f32 { x }

#[op(floats, exact)]
pub fn two_types<T: Real, U: Real>(x: T, y: U) -> T { x }

#[op(floats, exact)]
pub fn no_bound<T>(x: T) -> T { x }

#[op(floats, exact)]
pub fn foreign_bound<T: Copy>(x: T) -> T { x }

#[op(floats, exact)]
pub fn where_clause<T>(x: T) -> T
where
    T: Real,
{
    x
}

#[op(floats, exact)]
pub unsafe fn is_unsafe<T: Real>(x: T) -> T { x }

#[op(floats, exact)]
pub const fn is_const<T: Real>(x: T) -> T { x }

#[op(floats, exact)]
pub fn Capital<T: Real>(x: T) -> T { x }

#[op(floats, exact)]
pub fn größe<T: Real>(x: T) -> T { x }

#[op(floats, exact)]
pub fn pattern<T: Real>((a, b): (T, T)) -> T { a }

#[op(floats, exact)]
pub fn same_name<T: Real>(x: T, x: T) -> T { x }

#[op(floats, exact)]
pub fn three_words<T: Real>(x: T, bits: RandomWord, more: RandomWord, most: RandomWord) -> T { x }

#[op(floats, exact)]
pub fn word_of_a_batch<T: Real>(x: T, #[each(batch)] bits: RandomWord) -> T { x }

#[op(floats, exact)]
pub fn word_of_nothing<T: Real>(x: T, #[each] bits: RandomWord) -> T { x }

#[op(floats, exact)]
pub fn word_of_each_twice<T: Real>(x: T, #[each(row)] #[each(row)] bits: RandomWord) -> T { x }

#[op(floats, exact)]
pub fn each_operand<T: Real>(#[each(row)] x: T) -> T { x }

#[op(floats, exact)]
pub fn name_of_the_gradient<T: Real>(grad: T) -> T { grad }

#[op(floats, ints, exact)]
pub fn stored_beside_integers<T: Num>(x: T, #[stored(f32)] scale: T) -> T { x * scale }

#[op(floats, exact)]
pub fn stored_as_nothing<T: Real>(x: T, #[stored] scale: T) -> T { x * scale }

#[op(floats, exact)]
pub fn stored_as_what_no_tensor_has<T: Real>(x: T, #[stored(f64)] scale: T) -> T { x * scale }

#[op(floats, exact)]
pub fn stored_as_bool<T: Real>(x: T, #[stored(bool)] keep: T) -> T { x * keep }

#[op(floats, exact)]
pub fn stored_parameter<T: Real>(x: T, #[stored(f32)] #[param(default = 1.0)] scale: T) -> T { x * scale }

#[op(floats, exact, gated)]
pub fn stored_gate<T: Real>(#[stored(f32)] gate: T, value: T) -> T { gate * value }

#[op(floats, exact)]
pub struct NoFunction;

fn main() {}

//! Gated ops, channels, indices, ops by hand.
use pointwise_macros::op;

#[op(floats, exact, gated)]
pub fn three_halves<T: Real>(gate: T, value: T, more: T) -> T { gate * value * more }

#[op(floats, exact, gated)]
pub fn gated_by_bool<T: Real>(gate: bool, value: T) -> T { value }

#[op(floats, exact, gated, gated)]
pub fn gated_twice<T: Real>(gate: T, value: T) -> T { gate * value }

#[op(floats, exact)]
pub fn channels_alone<T: Real>(#[channel] scale: T) -> T { scale }

#[op(floats, exact)]
pub fn channel_of_a_parameter<T: Real>(x: T, #[channel] #[param(default = 1.0)] scale: T) -> T { x * scale }

#[op(floats, exact)]
pub fn channel_with_a_value<T: Real>(x: T, #[channel(1)] scale: T) -> T { x * scale }

#[op(floats, exact, gated)]
pub fn indices_of_halves<T: Real>(gate: T, value: T, column: Index) -> T { gate }

#[op(floats, exact)]
pub fn too_many_indices<T: Real>(a: Index, b: Index, c: Index, d: Index) -> T { T::ONE }

#[op(floats, ints, exact)]
pub fn index_of_integers<T: Num>(column: Index) -> T { T::ONE }

#[op(floats, exact)]
pub fn truth_of_an_index<T: Real>(column: Index) -> bool { column > 1 }

#[op(floats, exact, grad = none)]
pub fn nothing_of_an_index<T: Real>(row: Index, column: Index, bits: RandomWord) -> T { T::ONE }

#[op(floats, exact, params(slope = 0.5))]
pub fn parameters_of_a_function<T: Real>(x: T) -> T { x }

pub struct Own;

#[op(floats, exact)]
impl Own {}

#[op(floats, exact)]
impl<T: Real> Display for Own {}

#[op(floats, exact)]
impl<T: Real> TernaryOp<T, bool> for Own {}

#[op(floats, exact)]
impl<T: Real> UnaryOp<T> for Own { type Output = T; }

#[op(floats, exact)]
impl UnaryOp<f32> for Own { type Output = f32; fn apply(self, x: f32) -> f32 { x } }

#[op(floats, exact, params)]
impl<T: Real> UnaryOp<T> for Own { type Output = T; fn apply(self, x: T) -> T { x } }

pub struct Generic<T>(T);

#[op(floats, exact)]
impl<T: Real> UnaryOp<T> for Generic<T> { type Output = T; fn apply(self, x: T) -> T { x } }

#[op(floats, exact, params(slope = 0.5))]
impl<T: Real> UnaryOp<T> for Own { type Output = T; fn apply(self, x: T) -> T { x } }

#[op(floats, exact)]
pub struct NoFunction;

fn main() {}

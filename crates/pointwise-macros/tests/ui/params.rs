//! Parameters.
use pointwise_macros::op;

#[op(floats, exact)]
pub fn no_default<T: Real>(x: T, #[param] a: T) -> T { x * a }

#[op(floats, exact)]
pub fn no_default_of_a_flag<T: Real>(x: T, #[param()] a: bool) -> T { x }

#[op(floats, exact)]
pub fn unknown_word<T: Real>(x: T, #[param(defualt = 1.0)] a: T) -> T { x * a }

#[op(floats, exact)]
pub fn no_word<T: Real>(x: T, #[param = 1.0] a: T) -> T { x * a }

#[op(floats, exact)]
pub fn another_attribute<T: Real>(x: T, #[parameter(default = 1.0)] a: T) -> T { x * a }

#[op(floats, exact)]
pub fn twice<T: Real>(x: T, #[param(default = 1.0)] #[param(default = 2.0)] a: T) -> T { x * a }

#[op(floats, exact)]
pub fn of_f32<T: Real>(x: T, #[param(default = 1.0)] a: f32) -> T { x }

#[op(floats, exact)]
pub fn whole_probability<T: Real>(x: T, #[param(default = 1, probability)] p: i64) -> T { x }

#[op(floats, exact)]
pub fn default_of_an_option<T: Real>(x: T, #[param(default = 1.0)] limit: Option<T>) -> T { x }

#[op(floats, exact)]
pub fn nine_words<T: Real>(
    x: T,
    #[param] a: Option<T>,
    #[param] b: Option<T>,
    #[param] c: Option<T>,
    #[param(default = 1)] d: i64,
    #[param] e: Option<T>,
) -> T {
    x
}

#[op(floats, exact)]
pub fn whole_without_param<T: Real>(x: T, n: i64) -> T { x }

#[op(floats, exact)]
pub fn whole_of_32_bits<T: Real>(x: T, n: u32) -> T { x }

#[op(floats, exact)]
pub fn option_without_param<T: Real>(x: T, limit: Option<T>) -> T { x }

#[op(floats, exact)]
pub fn value_alone<T: Real>(x: T, #[param(1.0)] a: T) -> T { x * a }

#[op(floats, exact)]
pub fn default_of_text<T: Real>(x: T, #[param(default = "a")] a: T) -> T { x * a }

#[op(floats, exact)]
pub fn default_of_a_fraction<T: Real>(x: T, #[param(default = -1.5)] n: i64) -> T { x }

#[op(floats, exact)]
pub fn default_of_a_flag<T: Real>(x: T, #[param(default = 1)] flag: bool) -> T { x }

fn main() {}

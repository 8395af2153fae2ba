//! Formulas that reduce over rows.
use pointwise_macros::op;

#[op(f32, ulp = 4)]
pub fn asks_nothing<T: Real>(x: T, row: Row<T>) -> T { x * row.len() }

#[op(f32, ulp = 4)]
pub fn asks_in_a_branch<T: Real>(x: T, row: Row<T>) -> T { if x > T::ZERO { row.sum(x) } else { x } }

#[op(f32, ulp = 4)]
pub fn asks_behind_a_condition<T: Real>(x: T, row: Row<T>) -> T { if x > row.mean(x) && x < row.max(x) { x } else { T::ZERO } }

#[op(f32, ulp = 4)]
pub fn asks_too_often<T: Real>(x: T, row: Row<T>) -> T { row.sum(x) + row.max(x) + row.min(x) + row.mean(x) }

#[op(f32, ulp = 4)]
pub fn gives_its_row_away<T: Real>(x: T, row: Row<T>) -> T { helper(row, x) }

#[op(f32, ulp = 4)]
pub fn returns_early<T: Real>(x: T, row: Row<T>) -> T { if x > T::ZERO { return x; } row.sum(x) }

#[op(f32, ulp = 4)]
pub fn has_no_row<T: Real>(x: T) -> PerRow<T> { PerRow(x) }

#[op(f32, ulp = 4)]
pub fn has_an_operand_of_rows_and_no_row<T: Real>(x: T, #[stored(i64)] label: PerRow<T>) -> T { x + label.0 }

#[op(f32, ulp = 4)]
pub fn has_a_gradient_of_each_row<T: Real>(x: T, scale: PerRow<T>, row: Row<T>) -> T { row.sum(x) * scale.0 }

#[op(floats, ints, exact)]
pub fn is_of_integers<T: Num>(x: T, row: Row<T>) -> T { row.sum(x) }

#[op(f32, ulp = 4)]
pub fn is_random<T: Real>(x: T, row: Row<T>, bits: RandomWord) -> T { row.sum(x) * T::uniform(bits) }

#[op(f32, ulp = 4, results(y: u32))]
pub fn is_stored_as_a_type_that_no_tensor_has<T: Real>(x: T, row: Row<T>) -> T { row.sum(x) }

#[op(f32, ulp = 4, results(y, total: f32), saves(x, total))]
pub fn keeps_a_result_without_a_function<T: Real>(x: T, row: Row<T>) -> (T, PerRow<T>) {
    let total = row.sum(x);
    (x / total, PerRow(total))
}

#[op(f32, ulp = 4)]
pub fn has_a_weight_and_no_row<T: Real>(x: T, #[weight] scale: T) -> T { x * scale }

#[op(f32, ulp = 4)]
pub fn has_a_weight_of_bools<T: Real>(x: T, #[weight] keep: bool, row: Row<T>) -> T { if keep { row.sum(x) } else { x } }

#[op(f32, ulp = 4)]
pub fn has_a_weight_without_a_gradient<T: Real>(x: T, #[weight] #[stored(i8)] scale: T, row: Row<T>) -> T { row.sum(x) * scale }

#[op(f32, ulp = 4, saves(x))]
pub fn does_not_save_its_weight<T: Real>(x: T, #[weight] bias: T, row: Row<T>) -> T { x / row.sum(x) + bias }

#[op(f32, ulp = 4, row = 8)]
pub fn has_groups_that_are_too_small<T: Real>(x: T, row: Row<T>) -> T { x / row.sum(x) }

#[op(f32, ulp = 4, row = 2048)]
pub fn has_groups_that_are_too_large<T: Real>(x: T, row: Row<T>) -> T { x / row.sum(x) }

#[op(f32, ulp = 4, row = GROUP)]
pub fn has_groups_of_a_constant<T: Real>(x: T, row: Row<T>) -> T { x / row.sum(x) }

#[op(f32, ulp = 4, row(128))]
pub fn has_groups_in_brackets<T: Real>(x: T, row: Row<T>) -> T { x / row.sum(x) }

#[op(f32, ulp = 4, row = 128, row = 64)]
pub fn has_groups_twice<T: Real>(x: T, row: Row<T>) -> T { x / row.sum(x) }

#[op(f32, ulp = 4, row = 128)]
pub fn has_groups_and_no_row<T: Real>(x: T) -> T { x }

#[op(f32, ulp = 4, row = 128)]
pub fn has_groups_and_a_weight<T: Real>(x: T, #[weight] weight: T, row: Row<T>) -> T { x / row.sum(x) * weight }

fn main() {}

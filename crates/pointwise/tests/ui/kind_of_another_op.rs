//! An op's kind says of what types its operands are: that of a selection would make the first one a bool.
#![forbid(unsafe_code)]

use pointwise::{embed, info::OpInfo};
use pointwise_core::{BinaryOp, Formula, GeneratorOp, Kind, Num, OpData, ParamWords, RandomWord, Real, TableOp, Words, family};

#[derive(Clone, Copy)]
pub struct First;

impl TableOp for First {
    const INFO: OpInfo =
        OpInfo { kind: Kind::Select, name: "first", ..<family::binary::Maximum as TableOp>::INFO };
    fn from_words(_: Words) -> Self {
        First
    }
}

impl<T: Num> BinaryOp<T> for First {
    type Output = T;
    fn apply(self, a: T, _: T) -> T {
        a
    }
}

mod binary {
    use super::{First, KERNELS};
    pointwise::host_binary! { first: First (a, b: Num) -> T, [i64], Exact => a; }
}

#[derive(Clone, Copy)]
pub struct Same;

impl OpData for Same {
    const INFO: OpInfo = OpInfo {
        kind: Kind::Binary,
        name: "same",
        ..<family::gradients::MulBackward as OpData>::INFO
    };
    fn from_words(_: &ParamWords) -> Self {
        Same
    }
}

impl<T: Real> Formula<T, 3, 2> for Same {
    fn apply(self, [first, ..]: [T; 3], _: [bool; 3], _: RandomWord<'_>) -> ([T; 2], [bool; 2]) {
        ([first; 2], [false; 2])
    }
}

mod gradients {
    use super::{KERNELS, Same};
    pointwise::host_gradients! { same: Same (grad, a, b: Real) -> (grad_a, grad_b), [f32], Exact => (grad, grad); }
}

#[derive(Clone, Copy)]
pub struct Column;

impl TableOp for Column {
    const INFO: OpInfo = OpInfo { kind: Kind::Unary, ..<family::generator::Alibi as TableOp>::INFO };
    fn from_words(_: Words) -> Self {
        Column
    }
}

impl GeneratorOp for Column {
    type Column = u32;
    fn column(self, _: u32, column: u32) -> u32 {
        column
    }
    fn element(self, column: u32, _: u32) -> f32 {
        column as f32
    }
}

mod generators {
    use super::{Column, KERNELS};
    pointwise::host_generator! { column: Column (plane, row, column) [f32], Exact => 0.0; }
}

static KERNELS: embed::Kernels = embed::Kernels::empty("none are needed");

fn main() {}

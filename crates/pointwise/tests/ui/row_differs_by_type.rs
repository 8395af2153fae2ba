//! An op's row is the same for every type of its parameters: the definition has one of them, the loops have others.
#![forbid(unsafe_code)]

use std::num::Wrapping;

use pointwise::{DType, embed, info::{OpInfo, ParamInfo}};
use pointwise_core::{ResultType, TableOp, UnaryOp, Word, Words, family::unary::Relu};

#[derive(Clone, Copy)]
pub struct Plus<T> {
    p: T,
}

const BOOL: OpInfo = OpInfo {
    name: "plus",
    result: ResultType::Bool,
    types: &[DType::I32],
    params: &[ParamInfo::number("p", 1.0)],
    ..<Relu as TableOp>::INFO
};

impl TableOp for Plus<f32> {
    const INFO: OpInfo = BOOL;
    fn from_words(words: Words) -> Self {
        Plus { p: f32::from_word(words[0]) }
    }
}

impl TableOp for Plus<f64> {
    const INFO: OpInfo = BOOL;
    fn from_words(words: Words) -> Self {
        Plus { p: f64::from_word(words[0]) }
    }
}

impl TableOp for Plus<Wrapping<i32>> {
    const INFO: OpInfo = OpInfo { result: ResultType::Same, ..BOOL };
    fn from_words(words: Words) -> Self {
        Plus { p: Wrapping::from_word(words[0]) }
    }
}

impl UnaryOp<Wrapping<i32>> for Plus<Wrapping<i32>> {
    type Output = Wrapping<i32>;
    fn apply(self, x: Wrapping<i32>) -> Wrapping<i32> {
        x + self.p
    }
}

impl UnaryOp<f64> for Plus<f64> {
    type Output = f64;
    fn apply(self, x: f64) -> f64 {
        x + self.p
    }
}

static KERNELS: embed::Kernels = embed::Kernels::empty("none are needed");

pointwise::host_unary! { plus: Plus { p = 1.0 } (x: Num) -> T, [i32], Exact => x; }

fn main() {}

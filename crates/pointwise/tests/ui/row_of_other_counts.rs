//! A row says as many operands and results as its op has, and the type of the result.
#![forbid(unsafe_code)]

use pointwise::{embed, info::OpInfo};
use pointwise_core::{BinaryOp, Formula, Num, OpData, ParamWords, RandomWord, Real, ResultType, TableOp, Words, family};

macro_rules! op {
    ($name:ident: $row:expr) => {
        #[derive(Clone, Copy)]
        pub struct $name;

        impl TableOp for $name {
            const INFO: OpInfo = $row;
            fn from_words(_: Words) -> Self {
                $name
            }
        }

        impl<T: Num> BinaryOp<T> for $name {
            type Output = T;
            fn apply(self, a: T, _: T) -> T {
                a
            }
        }
    };
}

macro_rules! gradients {
    ($name:ident: $row:expr) => {
        #[derive(Clone, Copy)]
        pub struct $name;

        impl OpData for $name {
            const INFO: OpInfo = $row;
            fn from_words(_: &ParamWords) -> Self {
                $name
            }
        }

        impl<T: Real> Formula<T, 3, 2> for $name {
            fn apply(self, [first, ..]: [T; 3], _: [bool; 3], _: RandomWord<'_>) -> ([T; 2], [bool; 2]) {
                ([first; 2], [false; 2])
            }
        }
    };
}

const MAXIMUM: OpInfo = <family::binary::Maximum as TableOp>::INFO;
const MUL: OpInfo = <family::gradients::MulBackward as OpData>::INFO;

op!(One: OpInfo { operands: &["a"], ..MAXIMUM });
op!(Two: OpInfo { results: &["y", "z"], ..MAXIMUM });
op!(Truth: OpInfo { result: ResultType::Bool, ..MAXIMUM });
gradients!(Five: OpInfo { operands: &["grad", "a", "b", "c", "d"], ..MUL });
gradients!(Four: OpInfo { results: &["a", "b", "c", "d"], ..MUL });

mod one {
    use super::{KERNELS, One};
    pointwise::host_binary! { one: One (a, b: Num) -> T, [f32], Exact => a; }
}

mod two {
    use super::{KERNELS, Two};
    pointwise::host_binary! { two: Two (a, b: Num) -> T, [f32], Exact => a; }
}

mod truth {
    use super::{KERNELS, Truth};
    pointwise::host_binary! { truth: Truth (a, b: Num) -> bool, [f32], Exact => a; }
}

mod five {
    use super::{Five, KERNELS};
    pointwise::host_gradients! { five: Five (grad, a, b: Real) -> (x, y), [f32], Exact => [grad; 2]; }
}

mod four {
    use super::{Four, KERNELS};
    pointwise::host_gradients! { four: Four (grad, a, b: Real) -> (x, y), [f32], Exact => [grad; 2]; }
}

static KERNELS: embed::Kernels = embed::Kernels::empty("none are needed");

fn main() {}

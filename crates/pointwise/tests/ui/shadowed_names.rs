//! `#[op]` names this crate by a name that a program may give to itself. Its `unsafe` then gives no kernels of the program's:
//! it declares that a type implements an unsafe trait, which no code without `unsafe` can have another of.
#![forbid(unsafe_code)]

extern crate pointwise as real;
extern crate self as pointwise;

pub use real::*;

pub mod __private {
    pub use real::__private::{Declared, Kernels, OpDef, Pack, Typed, core, inventory, oracle, reference, result, source};

    pub trait Packed {
        const POINTWISE_PACK: Pack;
    }
}

#[real::op(f32, exact, grad = none)]
fn same<T: real::prelude::Num>(x: T) -> T {
    x
}

fn main() {}

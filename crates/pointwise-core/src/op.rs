//! The op traits: one for each number of operands, one for dropout, one for generators. They are the whole DSL.
//!
//! A trait is implemented for every compute type the formula is written for, usually by one generic `impl`:
//!
//! ```
//! use pointwise_core::{Real, UnaryOp};
//!
//! #[derive(Clone, Copy)]
//! struct SquaredRelu;
//!
//! impl<T: Real> UnaryOp<T> for SquaredRelu { type Output = T; fn apply(self, x: T) -> T { let r = x.maximum(T::ZERO); r * r } }
//! assert_eq!(SquaredRelu.apply(3.0_f32), 9.0);
//! ```
//!
//! The bound chooses the op's element types ([`Real`]: floats; [`Num`]: floats and integers; [`Bits`]: integers and
//! bool; [`Value`]: all). `Output` is the result's type: `T`, or `bool` for a predicate or a comparison. A parameter is
//! a field of the compute type (`LeakyRelu<T> { negative_slope: T }`).

use core::num::Wrapping;

use duplicate::duplicate_item;

use crate::info::OpInfo;
use crate::num::{Coarse, Logic, Rough, Stepped};

#[cfg(doc)]
use crate::num::{Bits, Num, Real, Value};

/// `x -> y`.
pub trait UnaryOp<T>: Copy {
    /// `T`, or `bool` for a predicate.
    type Output;
    /// The formula.
    fn apply(self, x: T) -> Self::Output;
}

/// `(a, b) -> y`.
pub trait BinaryOp<T>: Copy {
    /// `T`, or `bool` for a comparison.
    type Output: Copy;
    /// The formula.
    fn apply(self, a: T, b: T) -> Self::Output;
}

/// `(a, b, c) -> y`; `C` is the type of the first operand (`bool` for `where`).
pub trait TernaryOp<T, C = T>: Copy {
    /// `T` for every op of the family.
    type Output;
    /// The formula.
    fn apply(self, a: C, b: T, c: T) -> Self::Output;
}

/// `(x, random word) -> y` by a threshold: dropout. An element with a larger word is dropped: +0.
///
/// The word of an element depends only on seed, offset and the element's index ([`crate::philox::Philox`]), so that
/// every kernel, element type and device keeps the same elements.
pub trait RandomOp<T>: Copy {
    /// Returns the largest word that keeps its element.
    fn last_kept(self) -> u32;
    /// Returns the result of an element that is kept.
    fn kept(self, x: T) -> T;
}

/// The plane, row or column of an element that a generator makes.
pub type Index = u32;

/// The rows of a group: in a result of 16 bits they are made one from another, after the first.
pub const GROUP: u32 = 4;

/// The rows of a run of [`GeneratorOp::next`].
pub const RUN: u32 = 32;

/// `index -> y`: makes planes of rows and columns from the indices alone, evaluated in f32 and rounded once.
pub trait GeneratorOp: Copy {
    /// The state that the elements of a column share. A thread computes it once for all its rows.
    type Column: Copy;
    /// True if no element becomes an infinity in any type: then no conversion checks for one.
    const IS_BOUNDED: bool = false;
    /// The rows of a thread in a large tensor of 8, 16 and 32 bits, powers of two up to [`RUN`]: the fewest that make
    /// up for a column's cost, as the stores of many rows lie far apart.
    const ROWS: [u32; 3] = [8, 4, 4];
    /// Returns the column of a plane.
    fn column(self, plane: u32, column: u32) -> Self::Column;
    /// Returns the element of a row.
    fn element(self, column: Self::Column, row: u32) -> f32;
    /// For a result of 16 bits: returns the column, ready for the [`GROUP`] rows from `row` on. `row` is a multiple of
    /// [`GROUP`].
    #[inline(always)]
    fn begin_group(self, column: Self::Column, row: u32) -> Self::Column {
        let _ = row;
        column
    }
    /// For a result of 16 bits: returns the element, and the column ready for the next row of the group.
    #[inline(always)]
    fn next_of_group(self, column: Self::Column, row: u32) -> (f32, Self::Column) {
        (self.element(column, row), column)
    }
    /// For a result of 8 bits: returns the column, ready for the rows from `row` on. `row` is a multiple of [`RUN`].
    #[inline(always)]
    fn begin(self, column: Self::Column, row: u32) -> Self::Column {
        let _ = row;
        column
    }
    /// For a result of 8 bits: returns the element, and the column ready for the next row. The rows of a run come in
    /// order, and a new run begins after [`RUN`] rows: so an element is the same whichever thread computes it.
    #[inline(always)]
    fn next(self, column: Self::Column, row: u32) -> (f32, Self::Column) {
        (self.element(column, row), column)
    }
}

/// Kernel parameters travel as 64-bit words, so that all kernels of a template have one signature.
pub trait Word: Copy {
    /// Returns the value's bits. For an integer the word is its value as an i64.
    fn to_word(self) -> u64;
    /// Returns the value of a word: the inverse of [`Word::to_word`]. Ignores upper bits.
    fn from_word(word: u64) -> Self;
}

/// Dropout or a generator: an op that describes itself by its data, and has a way to its parameters. An op of a formula has
/// [`OpData`](crate::OpData) instead.
pub trait DescribedOp: Copy {
    /// The row as data, the same for all types of the op's parameters. If its kind, operands or results contradict the
    /// op trait's impl, neither the host's definition nor the op's kernels compile ([`crate::row`]).
    const INFO: OpInfo;
    /// Returns the op with the parameters of a call.
    fn from_words(words: Words) -> Self;
}

/// The most parameters an op can have.
pub const MAX_PARAMS: usize = 4;

/// The parameters of a call, in the order of the op's fields, converted to its compute type.
pub type Words = [u64; MAX_PARAMS];

#[duplicate_item(
    Type             to                     value;
    [f32]            [self.to_bits()]       [f32::from_bits(word as u32)];
    [f64]            [self.to_bits()]       [f64::from_bits(word)];
    [Coarse]         [self.0.to_word()]     [Coarse(f32::from_word(word))];
    [Rough]          [self.0.to_word()]     [Rough(f32::from_word(word))];
    [Stepped]        [self.0.to_word()]     [Stepped(f32::from_word(word))];
    [Logic]          [self.0]               [Logic(word as u8 != 0)];
    [Wrapping<i8>]   [self.0]               [Wrapping(word as i8)];
    [Wrapping<i16>]  [self.0]               [Wrapping(word as i16)];
    [Wrapping<i32>]  [self.0]               [Wrapping(word as i32)];
    [Wrapping<i64>]  [self.0]               [Wrapping(word as i64)];
    [Wrapping<u8>]   [self.0]               [Wrapping(word as u8)];
)]
impl Word for Type {
    #[inline(always)]
    fn to_word(self) -> u64 {
        to as u64
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        // By a function pointer: inlined at once, the conversion makes LLVM select among floats as among integers.
        let from: fn(u64) -> Self = |word| value;
        from(word)
    }
}

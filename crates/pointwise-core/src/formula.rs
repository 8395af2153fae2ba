//! Ops with any number of operands and results: `#[op]` makes them from functions.
//!
//! An operand is of the op's element type, a bool, or of another fixed type, which is converted to the compute type; so is
//! a result. Templates and loops pass all operands in two
//! arrays: `values[k]` is operand `k` if it is of the element type, `truths[k]` if it is a bool. The other place of an
//! operand is zero or false, and costs nothing once the formula is inlined.

use crate::info::{Kind, OpInfo, Properties};
use crate::launch::GROUPED_TENSORS;
use crate::op::Index;
use crate::philox::{Draw, MAX_RANDOM_WORDS, RandomWord};

/// The most operands of an op.
pub const MAX_OPERANDS: usize = 8;
/// The most results of an op.
pub const MAX_RESULTS: usize = 4;
/// The most operands of an op of gradients: a gradient of each result, and the operands.
pub const MAX_INPUTS: usize = MAX_OPERANDS + MAX_RESULTS;
/// The most results of an op of gradients: a gradient of each operand.
pub const MAX_OUTPUTS: usize = MAX_OPERANDS;
/// The most tensors of a launch, reached by an op of gradients.
pub const MAX_TENSORS: usize = MAX_INPUTS + MAX_OUTPUTS;
/// The most words that the parameters of an op take: one each, two for one that may be left out.
pub const MAX_WORDS: usize = 8;

/// The parameters of a call: an element of the compute type as its bits, a flag as 0 or 1, a whole number as an `i64`,
/// an optional one as 1 and its word, or as two zeros.
pub type ParamWords = [u64; MAX_WORDS];

/// The facts of an element that a formula may know besides its operands.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// Its random words, in a random op.
    pub words: [RandomWord<'a>; MAX_RANDOM_WORDS],
    /// Its plane, row and column in the result, in an op that takes indices.
    pub index: [Index; 3],
}

impl At<'_> {
    /// Returns an element with these words and plane, row and column.
    #[inline(always)]
    #[must_use]
    pub fn new(words: [u32; MAX_RANDOM_WORDS], index: [Index; 3]) -> Self {
        At { words: words.map(RandomWord::from), index }
    }

    /// Returns the element that is `i` behind the first of a call, with all that a formula may know of it.
    #[must_use]
    pub fn of(draw: &Draw, i: u64) -> Self {
        At::new(draw.words(i), draw.index(i))
    }
}

impl From<u32> for At<'_> {
    /// An element with one random word, and without indices.
    #[inline(always)]
    fn from(word: u32) -> Self {
        At::new([word, 0], [0; 3])
    }
}

/// A formula from `N` operands to `R` results, in the compute type `T`. A conversion's results have another type, `U`.
pub trait Formula<T, const N: usize, const R: usize, U = T>: Copy {
    /// Computes the results, not yet rounded.
    fn apply(self, values: [T; N], truths: [bool; N], at: At<'_>) -> ([U; R], [bool; R]);
}

/// An op: its parameters, and its data, which are the same in every compute type.
pub trait OpData: Copy {
    /// Name, operands, results, types, bounds.
    const INFO: OpInfo;
    /// Returns the op with the parameters of a call.
    fn from_words(words: &ParamWords) -> Self;
}

/// Returns the elements of a vector in kernels of `tensors` tensors: 16 bytes. With more than four tensors it has fewer
/// if a thread's vectors would not stay in registers.
#[must_use]
pub const fn lanes(element: usize, tensors: usize) -> usize {
    let mut lanes = 16 / element;
    while tensors > 4 && lanes * tensors > 48 && lanes * element > 4 {
        lanes /= 2;
    }
    lanes
}

/// Returns if a kernel of whole vectors, of elements of `element` bytes, promises loads and stores of 16 bytes. The build
/// checks that its code has them. Bools are narrower than other elements.
#[must_use]
pub const fn vectors(info: &OpInfo, element: usize) -> [bool; 2] {
    let tensors = info.operands.len() + info.results.len();
    let widest = info.widest(element);
    let is_whole = lanes(widest, tensors) * widest == 16;
    let (mut loads, mut stores, mut k) = (info.bool_operands() == 0, false, 0);
    if info.has_stored() {
        loads = false;
        while k < info.operands.len() {
            loads |= info.operand_size(k, element) == widest;
            k += 1;
        }
        k = 0;
    }
    while k < info.results.len() {
        stores |= !info.is_bool_result(k) && info.result_size(k, element) == widest;
        k += 1;
    }
    [is_whole && loads, is_whole && stores]
}

/// True if a thread of the op's flat kernel may take several vectors in turn: for formulas of one operand and one
/// result that know nothing of their place. Elements of 8 bits have tables instead, or are computed a word at a time.
#[must_use]
pub const fn takes_turns(info: &OpInfo, element: usize) -> bool {
    let is_formula = !matches!(info.kind, Kind::Convert);
    is_formula
        && info.operands.len() == 1
        && info.results.len() == 1
        && info.bool_operands() == 0
        && !info.has_stored()
        && element > 1
        && !info.has_place()
}

/// True if the op's kernels have vectors that go across the ends of rows: see [`ACROSS`](crate::launch::ACROSS). False
/// if the formula has a long path for few elements, or the op has many tensors.
#[must_use]
pub const fn goes_across(info: &OpInfo) -> bool {
    let Properties { function, angle, .. } = info.properties;
    let tensors = info.operands.len() + info.results.len();
    info.operands.len() > 1 && tensors <= GROUPED_TENSORS && function.is_none() && !angle && !info.has_stored()
}

/// Reads the hash of the sources that an op was compiled from. The builder passes it to both compilations as 16 digits;
/// without a builder it is 0.
#[must_use]
pub const fn source(digits: Option<&str>) -> u64 {
    let Some(digits) = digits else { return 0 };
    match u64::from_str_radix(digits, 16) {
        Ok(hash) => hash,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn a_hash_is_passed_as_digits() {
        assert_eq!([None, Some("00000000000000ff"), Some("x"), Some("")].map(source), [0, 255, 0, 0]);
    }

    #[test]
    fn vectors_are_promised_if_they_are_whole() {
        let info = OpInfo { operands: &["x"], ..OpInfo::FORMULA };
        assert_eq!(vectors(&info, 4), [true; 2]);
        assert_eq!(vectors(&OpInfo { result_types: &[Some(DType::Bool)], ..info }, 4), [true, false]);
        let many = OpInfo { operands: &["a", "b", "c", "d", "e", "f"], ..info };
        assert_eq!([vectors(&many, 4), vectors(&many, 2)], [[true; 2], [false; 2]]);
    }

    #[test]
    fn many_operands_have_shorter_vectors() {
        assert_eq!([2, 4, 12, 13, 20].map(|tensors| lanes(4, tensors)), [4, 4, 4, 2, 2]);
        assert_eq!([2, 6, 7, 12, 13, 20].map(|tensors| lanes(2, tensors)), [8, 8, 4, 4, 2, 2]);
        assert_eq!([2, 3, 4, 6, 7, 12, 20].map(|tensors| lanes(1, tensors)), [16, 16, 16, 8, 4, 4, 4]);
        assert_eq!(lanes(8, MAX_TENSORS), 2);
    }
}

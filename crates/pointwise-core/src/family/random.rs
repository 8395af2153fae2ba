//! Ops with a random word for each element.

use crate::num::Value;
use crate::op::{RandomOp, TableOp, Word, Words};
use crate::philox::words_kept;
use crate::{DType, Kind, OpInfo, ParamInfo};

/// The element types.
const TYPES: &[DType] = &DType::FLOATS;

/// The ops.
pub const OPS: &[OpInfo] = &[Dropout::<f32>::INFO];

/// `torch.nn.functional.dropout`: an element is kept with probability `1 - p` and multiplied by `1 / (1 - p)`, or it
/// is +0.
///
/// `u < 1 - p`, for a `u` uniform over the multiples of 2^-32 below 1, is a comparison of the random word itself: see
/// [`last_kept`].
#[derive(Clone, Copy, Debug)]
pub struct Dropout<T> {
    /// The largest random word that keeps its element.
    pub last_kept: u32,
    /// `1 / (1 - p)`, rounded to f32.
    pub scale: T,
}

/// The largest random word that keeps its element at dropout probability `p`, for `0 < p < 1`: words `w` with
/// `w / 2^32 < 1 - p` keep.
pub fn last_kept(p: f64) -> u32 {
    words_kept(p).saturating_sub(1) as u32
}

impl<T: Value + core::ops::Mul<Output = T>> RandomOp<T> for Dropout<T> {
    #[inline(always)]
    fn last_kept(self) -> u32 {
        self.last_kept
    }
    #[inline(always)]
    fn kept(self, x: T) -> T {
        x * self.scale
    }
}

impl<T: Word> TableOp for Dropout<T> {
    const INFO: OpInfo = OpInfo {
        name: "dropout",
        kind: Kind::Random,
        operands: &["x"],
        params: &[ParamInfo::number("p", 0.5)],
        types: TYPES,
        doc: "Each element times `1 / (1 - p)`, or +0 with probability p (Philox4x32-10).\n",
        formula: "if u < 1 - p { x * (1 / (1 - p)) } else { 0 }",
        ..OpInfo::FORMULA
    };
    #[inline(always)]
    fn from_words([last_kept, scale, ..]: Words) -> Self {
        Dropout { last_kept: last_kept as u32, scale: T::from_word(scale) }
    }
}

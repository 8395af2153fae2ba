//! Ops with a random word for each element.

use crate::num::Value;
use crate::op::{DescribedOp, RandomOp, Word, Words};
use crate::{DType, Each, Kind, OpInfo, ParamInfo, ParamKind, Properties};

/// The element types.
const TYPES: &[DType] = &DType::FLOATS;

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

impl Dropout<f32> {
    /// Returns the op with a probability between 0 and 1.
    pub fn new(p: f32) -> Dropout<f32> {
        Dropout { last_kept: last_kept(p), scale: (1.0 / (1.0 - f64::from(p))) as f32 }
    }
}

/// The largest random word that keeps its element at dropout probability `p`, for `0 < p < 1`: see
/// [`philox::last_kept`](crate::philox::last_kept).
pub fn last_kept(p: f32) -> u32 {
    crate::philox::last_kept(p).unwrap_or(0)
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

impl<T: Word> DescribedOp for Dropout<T> {
    const INFO: OpInfo = DROPOUT;
    #[inline(always)]
    fn from_words([last_kept, scale, ..]: Words) -> Self {
        Dropout { last_kept: last_kept as u32, scale: T::from_word(scale) }
    }
}

/// Dropout as data.
pub const DROPOUT: OpInfo = OpInfo {
    name: "dropout",
    kind: Kind::Random,
    operands: &["x"],
    random: &[Each::Element],
    params: &[ParamInfo { kind: ParamKind::Probability, ..ParamInfo::number("p", 0.5) }],
    types: TYPES,
    doc: "Each element times `1 / (1 - p)`, or +0 with probability p (Philox4x32-10).\n",
    formula: "if u < 1 - p { x * (1 / (1 - p)) } else { 0 }",
    properties: Properties { of_family: true, ..Properties::NONE },
    ..OpInfo::FORMULA
};

/// [`DROPOUT`] with the mask as a second result.
pub const DROPOUT_WITH_MASK: OpInfo = OpInfo {
    name: "dropout_with_mask",
    results: &["y", "mask"],
    result_types: &[None, Some(DType::Bool)],
    doc: "`dropout`, and the mask: true where the element was kept.\n",
    ..DROPOUT
};

/// The gradient of [`DROPOUT`]: the same words again.
pub const DROPOUT_BACKWARD: OpInfo = OpInfo {
    name: "dropout_backward",
    gradient_of: Some("dropout"),
    operands: &["grad"],
    doc: "The gradient of `dropout`, which draws the mask again.\n",
    ..DROPOUT
};

//! The operations of each kind of instruction, and the special registers.

use crate::numerics::narrow::Fp8;

/// Word from one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum One {
    Move,
    Popc,
    Clz,
    Brev,
    /// Sign-extends the low 8 or 16 bits.
    Signed8,
    Signed16,
    /// Zero-extends the low 8 or 16 bits.
    Unsigned8,
    Unsigned16,
    /// Sign-extends the low 8 bits to 16.
    Signed8To16,
    AbsS32,
    AbsS16,
    /// Flushes a subnormal f32 to zero, or both halves.
    Flush,
    /// `f32` of an integer, rounded to nearest.
    F32OfS32,
    F32OfU32,
    /// `f32` to the nearest integer of a rounding, as `f32`.
    Nearest,
    Floor,
    Ceil,
    Trunc,
    F32OfF16,
    F32OfBf16,
    F16OfF32,
    Bf16OfF32,
    /// Both halves at once, from two bytes.
    F16x2OfFp8x2(Fp8),
    /// Two bytes, from both halves.
    Fp8x2OfF16x2(Fp8),
    /// f32 to an integer, by truncation. Other roundings come before it as an operation of their own.
    S32OfF32,
    U32OfF32,
    S16OfF32,
    U16OfF32,
    S8OfF32,
    U8OfF32,
    Sqrt,
    Rcp,
}

/// Word from two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Two {
    Add,
    Sub,
    Mul,
    MulHiU,
    MulHiS,
    DivU,
    DivS,
    RemU,
    RemS,
    MinU,
    MinS,
    MaxU,
    MaxS,
    And,
    Or,
    Xor,
    Shl,
    ShrU,
    ShrS,
    Add16,
    Sub16,
    Mul16,
    MulHiU16,
    MulHiS16,
    MulWideS16,
    DivU16,
    DivS16,
    RemU16,
    RemS16,
    MinS16,
    MaxS16,
    Shl16,
    ShrS16,
    FAdd,
    FSub,
    FMul,
    FDiv,
    FMin,
    FMax,
    FMinNan,
    FMaxNan,
    Copysign,
    /// Halves from two f32, the first one in the upper half.
    F16x2OfF32,
    Bf16x2OfF32,
    /// Two bytes from two f32, the first one in the upper byte.
    Fp8x2OfF32(Fp8),
    /// Low halves of both, the first one in the lower half.
    Pack16,
    /// Both halves at once, here and below.
    AddF16x2,
    SubF16x2,
    MulF16x2,
    MinF16x2,
    MaxF16x2,
    MinNanF16x2,
    MaxNanF16x2,
    AddBf16x2,
    SubBf16x2,
    MulBf16x2,
    MinBf16x2,
    MaxBf16x2,
    MinNanBf16x2,
    MaxNanBf16x2,
}

/// Word from three words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Three {
    Mad,
    Mad16,
    Fma,
    FmaF16x2,
    FmaBf16x2,
    Prmt,
    BfeU,
    BfeS,
    ShfLeftWrap,
    ShfLeftClamp,
    ShfRightWrap,
    ShfRightClamp,
    /// With the table of the operation.
    Lop3(u8),
}

/// f32 arithmetic whose rounding, flushing or saturation is not the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatOperation {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Sqrt,
    Rcp,
    Min,
    Max,
    MinNan,
    MaxNan,
}

/// Long from one long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OneLong {
    Move,
    AbsS64,
    Signed8,
    Signed16,
    Signed32,
    Unsigned8,
    Unsigned16,
    Unsigned32,
    Brev,
    DSqrt,
    DRcp,
    DNearest,
    DFloor,
    DCeil,
    DTrunc,
    F64OfS64,
    F64OfU64,
    S64OfF64,
    U64OfF64,
}

/// Long from two longs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TwoLong {
    Add,
    Sub,
    Mul,
    MulHiU,
    MulHiS,
    DivU,
    DivS,
    RemU,
    RemS,
    MinU,
    MinS,
    MaxU,
    MaxS,
    And,
    Or,
    Xor,
    DAdd,
    DSub,
    DMul,
    DDiv,
    DMin,
    DMax,
    DCopysign,
}

/// Long from three longs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreeLong {
    Mad,
    DFma,
}

/// Long from a long and one or two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShiftLong {
    Shl,
    ShrU,
    ShrS,
    /// Bits from a position on, of a length.
    BfeU,
    BfeS,
}

/// Long from one or two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Widen {
    /// Zero-extends the first.
    U32,
    S32,
    S16,
    S8,
    /// The product.
    MulU,
    MulS,
    /// The first in the lower half, the second one in the upper half.
    Pack,
    F64OfF32,
    F64OfS32,
    F64OfU32,
    S64OfF32,
    U64OfF32,
}

/// Word from a long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Narrow {
    Low,
    High,
    Low16,
    /// Sign-extends the low byte to 16 bits, or to 32.
    Signed8To16,
    Signed8,
    Signed16,
    Unsigned8,
    /// Bits 0, 16, 32 or 48 and the 15 above.
    Quarter(u8),
    Popc,
    Clz,
    F32OfS64,
    F32OfU64,
    F32OfF64,
    F16OfF64,
    Bf16OfF64,
    S32OfF64,
    U32OfF64,
}

/// A relation between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// The same six, and also true if a value is NaN.
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// True if both values are numbers; `Nan`: if at least one is NaN.
    Num,
    Nan,
}

/// The type of the values that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    U32,
    S32,
    S16,
    F32,
    F32Flushed,
    F16,
    Bf16,
    U64,
    S64,
    F64,
}

/// An operation on two predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

/// The change that an atomic operation makes to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicOperation {
    Add,
    AddF32,
    MinU,
    MinS,
    MaxU,
    MaxS,
    And,
    Or,
    Xor,
    Exchange,
    CompareSwap,
}

/// The choice of the lane that a shuffle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// The question of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

impl Compared {
    /// True if longs are compared.
    #[inline(always)]
    pub(crate) fn is_long(self) -> bool {
        matches!(self, Compared::U64 | Compared::S64 | Compared::F64)
    }
}

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Special {
    Thread(u8),
    Block(u8),
    ThreadCount(u8),
    BlockCount(u8),
    Lane,
    Warp,
    WarpCount,
    LaneMask(LaneRelation),
    DynamicShared,
}

/// The lanes in a lane mask, compared with the lane that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum LaneRelation {
    Eq,
    Lt,
    Le,
    Gt,
    Ge,
}

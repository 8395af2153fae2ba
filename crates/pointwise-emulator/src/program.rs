//! A kernel as the machine executes it: instructions whose operands are numbers of register slots.
//!
//! A slot holds the value of one register for the 32 lanes of a warp. There are three files of slots: words (32 bits,
//! which also hold 16-bit registers, zero-extended), longs (64 bits) and predicates (one bit a lane). Numbers in the
//! text and special registers have slots of their own, filled before the warp starts, so that every operand is a slot.

use std::ops::Range;

use crate::numerics::{FloatMode, approx::Function};

/// Number of a register slot, within its file.
pub(crate) type Slot = u16;

/// The predicate slot that holds true in every lane.
pub(crate) const TRUE: Slot = 0;

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    /// What it does.
    pub(crate) operation: Operation,
    /// The predicate that says which lanes take part.
    pub(crate) guard: Slot,
    /// All ones if it says which lanes do not.
    pub(crate) flip: u32,
    /// Whether it does more than to change registers: then its guard must have a value.
    pub(crate) acts: bool,
}

/// Where an instruction stands in the text.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) text: Range<u32>,
}

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
    F16x2OfE4m3x2,
    F16x2OfE5m2x2,
    /// Two bytes, from both halves.
    E4m3x2OfF16x2,
    E5m2x2OfF16x2,
    /// f32 to an integer by truncation; others round before.
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
    E4m3x2OfF32,
    E5m2x2OfF32,
    /// Low halves of both, the first one in the lower half.
    Pack16,
    /// Low half of the first, upper half of the second one: `prmt` and moves.
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

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// As above, and true if one is NaN.
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// Both are numbers; one is NaN.
    Num,
    Nan,
}

/// The type of what is compared.
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

/// How predicates are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

/// Which memory an access reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Shared,
    /// Global or shared memory, as the address says.
    Generic,
    Parameter,
}

/// The address and shape of an access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) space: Space,
    /// Where the address is: a long, or a word if not `wide`.
    pub(crate) address: Slot,
    pub(crate) wide: bool,
    pub(crate) offset: i64,
    /// Bytes of one element: 1, 2, 4 or 8.
    pub(crate) size: u8,
    /// Elements: 1, 2 or 4.
    pub(crate) count: u8,
    /// Whether a loaded element is sign-extended.
    pub(crate) signed: bool,
    /// Whether the registers are longs.
    pub(crate) long: bool,
    /// Whether the register has 16 bits.
    pub(crate) half: bool,
    pub(crate) registers: [Slot; 4],
}

impl Access {
    /// How many bytes one lane touches.
    pub(crate) fn bytes(&self) -> u32 {
        u32::from(self.size) * u32::from(self.count)
    }
}

/// What an atomic operation does to memory.
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

/// Which lane another lane's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// What a vote asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// What a predicate or word register is given by [`Operation::Vote`] and [`Operation::Shuffle`].
pub(crate) const NOWHERE: Slot = Slot::MAX;

/// What an instruction does. `d` is the result; `a`, `b`, `c` are operands; `p` and `q` are predicates.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    One {
        op: One,
        d: Slot,
        a: Slot,
    },
    Two {
        op: Two,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Three {
        op: Three,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// `bfi`: `a` into `b` at position `c`, of length `e`.
    Insert {
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
        e: Slot,
    },
    Float {
        op: FloatOperation,
        mode: FloatMode,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    Approx {
        function: Function,
        flush: bool,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    OneLong {
        op: OneLong,
        d: Slot,
        a: Slot,
    },
    TwoLong {
        op: TwoLong,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    ThreeLong {
        op: ThreeLong,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    ShiftLong {
        op: ShiftLong,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    Widen {
        op: Widen,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// The wide product and a long.
    MadWide {
        signed: bool,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    Narrow {
        op: Narrow,
        d: Slot,
        a: Slot,
    },
    /// `p` and, if it is not [`TRUE`], its opposite in `q`; combined with `c` if there is one.
    Compare {
        of: Compared,
        relation: Relation,
        p: Slot,
        q: Slot,
        a: Slot,
        b: Slot,
        with: Option<(Logic, Slot, bool)>,
    },
    /// Both halves compared: all ones in the halves where it holds.
    SetHalves {
        bf16: bool,
        relation: Relation,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// A predicate as a word: `yes` or zero.
    SetWord {
        d: Slot,
        p: Slot,
        yes: u32,
    },
    Select {
        d: Slot,
        a: Slot,
        b: Slot,
        p: Slot,
    },
    SelectLong {
        d: Slot,
        a: Slot,
        b: Slot,
        p: Slot,
    },
    PredicateTwo {
        op: Logic,
        p: Slot,
        a: Slot,
        b: Slot,
    },
    PredicateMove {
        p: Slot,
        a: Slot,
        negate: bool,
    },
    Load(Box<Access>),
    Store(Box<Access>),
    /// A parameter at a place that the text says; `access.address` has no meaning.
    LoadParameter {
        access: Box<Access>,
        at: u32,
    },
    Atomic {
        op: AtomicOperation,
        access: Box<Access>,
        value: Slot,
        second: Slot,
    },
    /// `cp.async`: `bytes` from global memory at `b` to shared memory at `a`; only `source` of them are read.
    CopyAsync {
        access: Box<Access>,
        from: Slot,
        from_offset: i64,
        source: Slot,
    },
    /// All copies but the latest groups have arrived.
    CopyWait {
        groups: u32,
    },
    CopyCommit,
    Branch {
        target: u32,
    },
    BranchIndexed {
        table: u32,
        a: Slot,
    },
    Exit,
    /// All threads of the block, or `threads` (a word) if not [`NOWHERE`].
    Barrier {
        a: Slot,
        threads: Slot,
        aligned: bool,
    },
    WarpBarrier {
        a: Slot,
    },
    Shuffle {
        op: Shuffle,
        d: Slot,
        p: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
        members: Slot,
    },
    /// The answer in predicate `p` or, of a ballot, in word `d`.
    Vote {
        op: Vote,
        d: Slot,
        p: Slot,
        a: Slot,
        negate: bool,
        members: Slot,
    },
    ActiveMask {
        d: Slot,
    },
    /// `griddepcontrol.wait`.
    WaitForEarlier,
    Nothing,
}

impl Operation {
    /// Whether it does more than to change registers.
    pub(crate) fn acts(&self) -> bool {
        matches!(
            self,
            Operation::Load(_)
                | Operation::Store(_)
                | Operation::Atomic { .. }
                | Operation::CopyAsync { .. }
                | Operation::CopyWait { .. }
                | Operation::CopyCommit
                | Operation::Branch { .. }
                | Operation::BranchIndexed { .. }
                | Operation::Exit
                | Operation::Barrier { .. }
                | Operation::WarpBarrier { .. }
                | Operation::Shuffle { .. }
                | Operation::Vote { .. }
                | Operation::ActiveMask { .. }
                | Operation::WaitForEarlier
        )
    }
}

/// What a special register holds.
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

/// Which lanes a lane mask has, compared with the lane that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum LaneRelation {
    Eq,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the PTX.
    pub name: String,
    /// Where its first byte is among the arguments.
    pub offset: usize,
    /// How many bytes it has.
    pub bytes: usize,
}

/// A decoded kernel.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    /// The entry's text, which the places point into.
    pub(crate) text: String,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) parameter_bytes: usize,
    pub(crate) code: Vec<Instruction>,
    pub(crate) places: Vec<Place>,
    pub(crate) tables: Vec<Vec<u32>>,
    /// How many slots each file has.
    pub(crate) words: usize,
    pub(crate) longs: usize,
    pub(crate) predicates: usize,
    /// Slots that hold numbers.
    pub(crate) word_numbers: Vec<(Slot, u32)>,
    pub(crate) long_numbers: Vec<(Slot, u64)>,
    /// Word slots that hold special registers.
    pub(crate) specials: Vec<(Slot, Special)>,
    /// Bytes of shared memory that the text asks for, beside those that the launch adds.
    pub(crate) shared: u32,
    /// Whether threads of a block wait for each other.
    pub(crate) barriers: bool,
    /// The most threads in a block, if the text limits it.
    pub(crate) most_threads: Option<u32>,
}

impl Compared {
    /// Whether longs are compared.
    #[inline(always)]
    pub(crate) fn is_long(self) -> bool {
        matches!(self, Compared::U64 | Compared::S64 | Compared::F64)
    }
}

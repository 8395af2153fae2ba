//! A kernel as the machine executes it: instructions whose operands are numbers of register slots.
//!
//! A slot holds the value of one register for the 32 lanes of a warp. There are three files of slots: words (32 bits,
//! which also hold 16-bit registers, zero-extended), longs (64 bits) and predicates (one bit a lane). Numbers in the
//! text and special registers have slots of their own, filled before the warp starts, so that every operand is a slot.

mod operations;

use std::ops::Range;

pub(crate) use operations::{
    AtomicOperation, Compared, FloatOperation, LaneRelation, Logic, Narrow, One, OneLong, Relation, ShiftLong, Shuffle,
    Special, Three, ThreeLong, Two, TwoLong, Vote, Widen,
};

use crate::numerics::{FloatMode, approx::Function};

/// Number of a register slot, within its file.
pub(crate) type Slot = u16;

/// The predicate slot that holds true in every lane.
pub(crate) const TRUE: Slot = 0;

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    /// Its operation.
    pub(crate) operation: Operation,
    /// The predicate that chooses the lanes that take part.
    pub(crate) guard: Slot,
    /// All ones if the guard is negated, else zero.
    pub(crate) flip: u32,
    /// True if it does more than change registers: then its guard must have a value.
    pub(crate) acts: bool,
}

/// The place of an instruction in the text.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) text: Range<u32>,
}

/// The memory that an access reaches.
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
    /// The slot of the address: a long, or a word if not `wide`.
    pub(crate) address: Slot,
    pub(crate) wide: bool,
    pub(crate) offset: i64,
    /// Bytes of one element: 1, 2, 4 or 8.
    pub(crate) size: u8,
    /// Elements: 1, 2 or 4.
    pub(crate) count: u8,
    /// True if a loaded element is sign-extended.
    pub(crate) signed: bool,
    /// True if the registers are longs.
    pub(crate) long: bool,
    /// True if the register has 16 bits.
    pub(crate) half: bool,
    pub(crate) registers: [Slot; 4],
}

impl Access {
    /// Returns the bytes that one lane touches.
    pub(crate) fn bytes(&self) -> u32 {
        u32::from(self.size) * u32::from(self.count)
    }
}

/// Stands for an operand or a result that the instruction does not have.
pub(crate) const NOWHERE: Slot = Slot::MAX;

/// The operation of an instruction. `d` is the result; `a`, `b`, `c` are operands; `p` and `q` are predicates.
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
    /// `bfi`: puts the low `e` bits of `a` into `b` at position `c`.
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
    /// The wide product plus a long.
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
    /// Compares `a` and `b`. The answer goes to `p` and, unless `q` is [`TRUE`], its opposite to `q`; both are combined
    /// with the predicate of `with`, if there is one.
    Compare {
        of: Compared,
        relation: Relation,
        p: Slot,
        q: Slot,
        a: Slot,
        b: Slot,
        with: Option<(Logic, Slot, bool)>,
    },
    /// Compares both halves: all ones in the halves where the relation holds, else zeros.
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
    /// Loads a parameter from the offset `at`, which the text gives; `access.address` has no meaning.
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
    /// `cp.async`: copies from global memory at `from` to shared memory at `access`. Reads only `source` bytes, unless
    /// that is [`NOWHERE`].
    CopyAsync {
        access: Box<Access>,
        from: Slot,
        from_offset: i64,
        source: Slot,
    },
    /// Waits until all copies but those in the latest `groups` have arrived.
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
    /// Waits for all threads of the block, or for `threads` (a word) if that is not [`NOWHERE`].
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
    /// The answer goes to predicate `p`; a ballot's goes to word `d`.
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
    /// True if it does more than change registers.
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

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the PTX.
    pub name: String,
    /// The offset of its first byte in the arguments.
    pub offset: usize,
    /// The bytes that it has.
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
    /// The numbers of slots of the three files.
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
    /// True if threads of a block wait for each other.
    pub(crate) barriers: bool,
    /// The most threads in a block, if the text limits it.
    pub(crate) most_threads: Option<u32>,
}

//! The errors of a launch.

use std::fmt;

/// The reason why a launch did not start or did not finish.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The arguments have another size than the parameters.
    #[error("kernel `{kernel}` takes {needed} bytes of arguments, and was given {given}")]
    Arguments {
        /// The kernel's name.
        kernel: String,
        /// The bytes of its parameters.
        needed: usize,
        /// The bytes that the launch gave.
        given: usize,
    },
    /// No device launches this many threads.
    #[error("kernel `{kernel}` cannot be launched: {why}")]
    Shape {
        /// The kernel's name.
        kernel: String,
        /// The mistake in the grid, the block or the shared memory.
        why: String,
    },
    /// An instruction did something wrong.
    #[error(transparent)]
    Found(Box<Finding>),
}

/// An instruction that did something wrong, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kernel's name.
    pub kernel: String,
    /// The instruction's text.
    pub instruction: String,
    /// Its line in the PTX, from 1.
    pub line: u32,
    /// The block.
    pub block: [u32; 3],
    /// The thread, within its block.
    pub thread: [u32; 3],
    /// The mistake.
    pub problem: Problem,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { kernel, instruction, line, block: [bx, by, bz], thread: [tx, ty, tz], problem } = self;
        write!(f, "kernel `{kernel}`, PTX line {line}, `{instruction}`, block ({bx}, {by}, {bz}), ")?;
        write!(f, "thread ({tx}, {ty}, {tz}): {problem}")
    }
}

impl std::error::Error for Finding {}

/// The kind of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads and writes at once.
    Atomic,
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Touch::Read => "reads",
            Touch::Write => "writes",
            Touch::Atomic => "atomically changes",
        })
    }
}

/// A mistake of an instruction. `place` describes the memory at the address or beside it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It touches memory outside of all allocations.
    #[error("it {touch} {bytes} bytes at {address:#x}, which is {place}")]
    Outside {
        /// The kind of access.
        touch: Touch,
        /// The number of bytes.
        bytes: u32,
        /// The address.
        address: u64,
        /// The memory there, in words.
        place: String,
    },
    /// It touches an address that is no multiple of its own size.
    #[error("it {touch} {bytes} bytes at {address:#x}, which is no multiple of {bytes}: {place}")]
    Misaligned {
        /// The kind of access.
        touch: Touch,
        /// The number of bytes.
        bytes: u32,
        /// The address.
        address: u64,
        /// The memory there, in words.
        place: String,
    },
    /// It reads memory that nobody wrote.
    #[error("it reads {bytes} bytes at {address:#x}, which nobody has written: {place}")]
    Unwritten {
        /// The number of bytes.
        bytes: u32,
        /// The address.
        address: u64,
        /// The memory there, in words.
        place: String,
    },
    /// It writes to memory that is no result of the call.
    #[error("it writes {bytes} bytes at {address:#x}, which is no result of this call: {place}")]
    NotAResult {
        /// The number of bytes.
        bytes: u32,
        /// The address.
        address: u64,
        /// The memory there, in words.
        place: String,
    },
    /// Another thread touches the same byte, and no barrier orders the two.
    #[error("it {touch} {address:#x}, which {other} {other_touch} without a barrier between: {place}")]
    Race {
        /// The kind of access.
        touch: Touch,
        /// The address.
        address: u64,
        /// The other thread.
        other: String,
        /// The kind of the other thread's access.
        other_touch: Touch,
        /// The memory there, in words.
        place: String,
    },
    /// A launch that may start early touches memory of an earlier launch before it waits.
    #[error(
        "it {touch} {bytes} bytes at {address:#x} before `griddepcontrol.wait`, which an earlier launch {earlier}: {place}"
    )]
    BeforeWait {
        /// The kind of access.
        touch: Touch,
        /// The number of bytes.
        bytes: u32,
        /// The address.
        address: u64,
        /// The kind of the earlier launch's access.
        earlier: Earlier,
        /// The memory there, in words.
        place: String,
    },
    /// It reads shared memory that `cp.async` still fills.
    #[error(
        "it {touch} {bytes} bytes at shared address {address:#x}, which {other} copies to by `cp.async` and has not waited for"
    )]
    BeforeCopied {
        /// The kind of access.
        touch: Touch,
        /// The number of bytes.
        bytes: u32,
        /// The address.
        address: u64,
        /// The thread that copies.
        other: String,
    },
    /// A register without a value decides something or is stored.
    #[error("{what} has no value: {why}")]
    Undefined {
        /// The operand.
        what: &'static str,
        /// The likely cause.
        why: &'static str,
    },
    /// It waits at a barrier that not all threads reach.
    #[error("it waits at a barrier that {0}")]
    Barrier(String),
    /// It waits for threads of its warp, and one of them never comes.
    #[error("it waits for threads of its warp of which {0}")]
    Members(String),
    /// The index of an indexed branch is not in its table.
    #[error("its index {index} is outside of the {length} targets")]
    Index {
        /// The index.
        index: u32,
        /// The number of targets.
        length: usize,
    },
    /// The warp has executed as many instructions as the settings allow.
    #[error("its warp has executed {0} instructions, the limit (`POINTWISE_EMULATOR_LIMIT`): does it never end?")]
    Limit(u64),
}

/// The kind of an earlier launch's access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It read.
    Read,
    /// It wrote.
    Wrote,
}

impl fmt::Display for Earlier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Earlier::Read => "may still read",
            Earlier::Wrote => "may still write",
        })
    }
}

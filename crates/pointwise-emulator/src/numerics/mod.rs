//! Arithmetic of one lane, as the PTX ISA defines it.
//!
//! Everything here works on bits (`u32`, `u64`), as registers hold them, and depends on nothing of the project, so that
//! an error of the kernels' own maths cannot hide behind the same error here. The functions are inlined into the
//! machine's loops over lanes; those without branches become vector code there.

pub(crate) mod approx;
pub(crate) mod convert;
pub(crate) mod double;
pub(crate) mod halves;
pub(crate) mod integer;
pub(crate) mod narrow;
pub(crate) mod single;

/// The NaN that f32 instructions give.
pub(crate) const NAN: u32 = 0x7fff_ffff;

/// The NaN that f16 and bf16 instructions give.
pub(crate) const NAN_16: u32 = 0x7fff;

/// A rounding mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// `.rn`: to nearest, ties to even.
    #[default]
    Nearest,
    /// `.rz`: towards zero.
    Zero,
    /// `.rm`: downwards.
    Down,
    /// `.rp`: upwards.
    Up,
}

/// How an f32 instruction treats its operands and result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FloatMode {
    pub(crate) rounding: Rounding,
    /// `.ftz`: subnormal operands and results become zeros of the same sign.
    pub(crate) flush: bool,
    /// `.sat`: the result is clamped to 0 to 1, and NaN becomes 0.
    pub(crate) saturate: bool,
}

impl FloatMode {
    /// Whether the mode is that of an instruction without suffixes.
    pub(crate) fn is_plain(self) -> bool {
        self == FloatMode::default()
    }
}

//! Arithmetic of one lane, as the PTX ISA defines it.
//!
//! Everything here works on bits (`u32`, `u64`), as registers hold them. Nothing depends on the project's maths, so an
//! error there cannot hide behind the same error here. The functions are inlined into the machine's loops over lanes;
//! those without branches become vector code there.

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

/// The suffixes that change an f32 instruction: rounding, flushing and saturation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FloatMode {
    pub(crate) rounding: Rounding,
    /// `.ftz`: subnormal operands and results become zeros of the same sign.
    pub(crate) flush: bool,
    /// `.sat`: the result is clamped to 0 to 1, and NaN becomes 0.
    pub(crate) saturate: bool,
}

impl FloatMode {
    /// True for an instruction without suffixes.
    pub(crate) fn is_plain(self) -> bool {
        self == FloatMode::default()
    }
}

//! The types that opcodes name.

use crate::numerics::narrow::Fp8;

/// A type, by its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
    Fp8x2(Fp8),
}

impl Type {
    /// Reads a suffix without its dot.
    pub(crate) fn of(suffix: &str) -> Option<Type> {
        Some(match suffix {
            "pred" => Type::Pred,
            "b8" => Type::B8,
            "b16" => Type::B16,
            "b32" => Type::B32,
            "b64" => Type::B64,
            "u8" => Type::U8,
            "u16" => Type::U16,
            "u32" => Type::U32,
            "u64" => Type::U64,
            "s8" => Type::S8,
            "s16" => Type::S16,
            "s32" => Type::S32,
            "s64" => Type::S64,
            "f16" => Type::F16,
            "f16x2" => Type::F16x2,
            "bf16" => Type::Bf16,
            "bf16x2" => Type::Bf16x2,
            "f32" => Type::F32,
            "f64" => Type::F64,
            other => return other.strip_suffix("x2").and_then(Fp8::of).map(Type::Fp8x2),
        })
    }

    pub(crate) fn bytes(self) -> u8 {
        match self {
            Type::Pred | Type::B8 | Type::U8 | Type::S8 => 1,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::Bf16 | Type::Fp8x2(_) => 2,
            Type::B32 | Type::U32 | Type::S32 | Type::F16x2 | Type::Bf16x2 | Type::F32 => 4,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 => 8,
        }
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }

    /// True for integers and for bits without a type.
    pub(crate) fn is_integer(self) -> bool {
        !self.is_float() && self != Type::Pred
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32 | Type::F64 | Type::Fp8x2(_))
    }
}

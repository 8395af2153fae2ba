//! The element types a tensor can hold, as values ([`DType`]) and as Rust types ([`Scalar`]).

use core::fmt;
use core::str::FromStr;

use duplicate::duplicate_item;

use crate::float16::{bf16, f16};

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper 16 bits of an `f32`.
    BF16,
    /// 8 bits: 4 exponent, 3 mantissa, no infinity (`float8_e4m3fn`).
    F8E4M3,
    /// 8 bits: 5 exponent, 2 mantissa, with infinities.
    F8E5M2,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// One byte, 0 or 1.
    Bool,
}

impl DType {
    /// Every element type, in the order of declaration.
    pub const ALL: [DType; 11] = [
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::F8E4M3,
        DType::F8E5M2,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::Bool,
    ];

    /// The floating-point types, in the same order.
    pub const FLOATS: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2];

    /// Returns the bits that an element takes in memory.
    #[inline]
    pub const fn bits(self) -> usize {
        match self {
            DType::I64 => 64,
            DType::F32 | DType::I32 => 32,
            DType::F16 | DType::BF16 | DType::I16 => 16,
            DType::F8E4M3 | DType::F8E5M2 | DType::I8 | DType::U8 | DType::Bool => 8,
        }
    }

    /// Returns the bytes that an element takes; also its alignment. The memory of several is [`DType::bytes_of`].
    #[inline]
    pub const fn size(self) -> usize {
        self.bits() / 8
    }

    /// Returns the bytes that elements take, one after another: whole bytes, rounded up. `None` if a `usize` does not
    /// hold them.
    #[inline]
    pub fn bytes_of(self, elements: usize) -> Option<usize> {
        // Eight elements have as many bytes as one has bits.
        (elements / 8).checked_mul(self.bits())?.checked_add((elements % 8 * self.bits()).div_ceil(8))
    }

    /// Returns the bytes from an element to the one that is `elements` behind it, or before it if that is negative. They fit an `i64`.
    #[inline]
    pub const fn offset(self, elements: i64) -> i64 {
        let bits = self.bits() as i64;
        (elements >> 3).wrapping_mul(bits).wrapping_add(((elements & 7) * bits) >> 3)
    }

    /// Returns the name that is used everywhere: `f32`, `f16`, `bf16`, `f8e4m3`, `f8e5m2`, `i8`, `i16`, `i32`, `i64`,
    /// `u8`, `bool`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E5M2 => "f8e5m2",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }

    /// Returns the type with a [name](DType::name); `None` for any other word.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Returns PyTorch's name, without `torch.`: `float32`, `bfloat16`, `float8_e4m3fn`.
    pub const fn torch_name(self) -> &'static str {
        match self {
            DType::F32 => "float32",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F8E4M3 => "float8_e4m3fn",
            DType::F8E5M2 => "float8_e5m2",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U8 => "uint8",
            DType::Bool => "bool",
        }
    }

    /// Returns the name in the header of a safetensors file: `F32`, `BF16`, `F8_E4M3`, `BOOL`.
    pub const fn safetensors_name(self) -> &'static str {
        match self {
            DType::F32 => "F32",
            DType::F16 => "F16",
            DType::BF16 => "BF16",
            DType::F8E4M3 => "F8_E4M3",
            DType::F8E5M2 => "F8_E5M2",
            DType::I8 => "I8",
            DType::I16 => "I16",
            DType::I32 => "I32",
            DType::I64 => "I64",
            DType::U8 => "U8",
            DType::Bool => "BOOL",
        }
    }

    /// True for the floating-point types.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2)
    }

    /// True for the integers; bool is not one.
    #[inline]
    pub const fn is_int(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U8)
    }

    /// Returns the type that holds the elements of both (`torch.promote_types`). Bool is below integers, integers are
    /// below floats. Two integers give the wider one, u8 with i8 gives i16, f16 with bf16 gives f32. `None` for an fp8
    /// type with any other type: PyTorch does not promote them.
    pub const fn promote_types(self, other: DType) -> Option<DType> {
        use DType::{BF16, Bool, F8E4M3, F8E5M2, F16, F32, I8, I16, U8};
        Some(match (self, other) {
            (a, b) if a as u8 == b as u8 => a,
            (F8E4M3 | F8E5M2, _) | (_, F8E4M3 | F8E5M2) => return None,
            (Bool, other) | (other, Bool) => other,
            (F16, BF16) | (BF16, F16) => F32,
            (a, b) if a.is_float() && b.is_float() => F32,
            (float, _) | (_, float) if float.is_float() => float,
            (U8, I8) | (I8, U8) => I16,
            (a, b) if a.size() > b.size() => a,
            (_, b) => b,
        })
    }

    /// True if a result of this type may be written to a tensor of type `to` (`torch.can_cast`): not a float to an
    /// integer, and nothing but a bool to a bool.
    pub const fn can_cast(self, to: DType) -> bool {
        match (self, to) {
            (DType::Bool, _) => true,
            (_, DType::Bool) => false,
            (from, to) => !from.is_float() || to.is_float(),
        }
    }
}

/// Reads a [name](DType::name), PyTorch's name, as configurations of models have it, or safetensors' name, as their files
/// have it.
///
/// ```
/// use pointwise_core::DType;
///
/// assert_eq!(["bf16", "bfloat16", "BF16"].map(str::parse), [Ok(DType::BF16); 3]);
/// let error = "float".parse::<DType>().unwrap_err().to_string();
/// assert!(error.starts_with("no such element type: it is one of f32, f16, bf16"));
/// ```
impl FromStr for DType {
    type Err = NoDType;

    fn from_str(name: &str) -> Result<DType, NoDType> {
        let names = |dtype: DType| [dtype.name(), dtype.torch_name(), dtype.safetensors_name()];
        DType::ALL.into_iter().find(|dtype| names(*dtype).contains(&name)).ok_or(NoDType)
    }
}

/// The error for a word that names no element type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoDType;

impl fmt::Display for NoDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such element type: it is one of ")?;
        let separator = |i| if i > 0 { ", " } else { "" };
        DType::ALL.iter().enumerate().try_for_each(|(i, dtype)| write!(f, "{}{dtype}", separator(i)))
    }
}

impl core::error::Error for NoDType {}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A Rust type that can read and write a tensor's elements.
///
/// Sealed: the host crate turns memory of element type [`Scalar::DTYPE`] into slices of the Rust type, which is sound
/// only for types of exactly that representation.
pub trait Scalar: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The element type with the same representation.
    const DTYPE: DType;
}

pub(crate) mod sealed {
    /// Keeps [`Scalar`](super::Scalar) to the types of this crate.
    pub trait Sealed {}
}

#[duplicate_item(
    Type                  dtype;
    [f32]                 [F32];
    [f16]                 [F16];
    [bf16]                [BF16];
    [crate::fp8::F8E4M3]  [F8E4M3];
    [crate::fp8::F8E5M2]  [F8E5M2];
    [i8]                  [I8];
    [i16]                 [I16];
    [i32]                 [I32];
    [i64]                 [I64];
    [u8]                  [U8];
    [bool]                [Bool];
)]
const _: () = {
    impl sealed::Sealed for Type {}

    impl Scalar for Type {
        const DTYPE: DType = DType::dtype;
    }

    assert!(size_of::<Type>() == DType::dtype.size());
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
        assert_eq!(DType::from_name("f64"), None);
        assert_eq!(DType::from_name("F32"), None);
        for dtype in DType::ALL {
            let names = [dtype.name(), dtype.torch_name(), dtype.safetensors_name()];
            assert_eq!(names.map(str::parse), [Ok(dtype); 3]);
        }
        let words = ["f64", "F64", "f8_e4m3", "Bool", "torch.float32", ""];
        assert_eq!(words.map(str::parse::<DType>), [Err(NoDType); 6]);
    }

    #[test]
    fn bits_are_those_of_the_bytes() {
        for dtype in DType::ALL {
            assert_eq!(dtype.bits(), 8 * dtype.size(), "{dtype}");
        }
        assert_eq!([DType::U8, DType::BF16, DType::F32, DType::I64].map(DType::bits), [8, 16, 32, 64]);
    }

    #[test]
    fn bytes_of_elements_are_checked() {
        for dtype in DType::ALL {
            let most = usize::MAX / dtype.size();
            assert_eq!([0, 1, 5].map(|n| dtype.bytes_of(n)), [0, 1, 5].map(|n| Some(n * dtype.size())), "{dtype}");
            assert_eq!(dtype.bytes_of(most), Some(most * dtype.size()), "{dtype}");
            assert_eq!(most.checked_add(1).and_then(|n| dtype.bytes_of(n)), None, "{dtype}");
        }
    }

    #[test]
    fn offsets_go_both_ways() {
        for dtype in DType::ALL {
            let (size, far) = (dtype.size() as i64, i64::MAX / 8);
            assert_eq!(
                [-far, -3, 0, 7, far].map(|n| dtype.offset(n)),
                [-far, -3, 0, 7, far].map(|n| n * size),
                "{dtype}"
            );
        }
    }

    #[test]
    fn every_type_is_float_int_or_bool() {
        for dtype in DType::ALL {
            let classes = [dtype.is_float(), dtype.is_int(), dtype == DType::Bool];
            assert_eq!(classes.into_iter().filter(|&c| c).count(), 1, "{dtype}");
        }
    }
}

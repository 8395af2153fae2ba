//! The 16-bit floats: those of `half` on the host. Kernels convert by [`crate::convert`], so that on the device they
//! are bits.

#[cfg(not(target_arch = "nvptx64"))]
pub use half::{bf16, f16};

#[cfg(target_arch = "nvptx64")]
#[duplicate::duplicate_item(
    name    format;
    [f16]   ["IEEE 754 binary16."];
    [bf16]  ["The upper half of a binary32."];
)]
#[doc = format]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct name(u16);

#[cfg(target_arch = "nvptx64")]
#[duplicate::duplicate_item(name; [f16]; [bf16])]
impl name {
    /// Of these bits.
    #[inline(always)]
    pub const fn from_bits(bits: u16) -> Self {
        name(bits)
    }

    /// Its bits.
    #[inline(always)]
    pub const fn to_bits(self) -> u16 {
        self.0
    }
}

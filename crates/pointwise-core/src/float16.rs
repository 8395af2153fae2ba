//! The 16-bit floats: on the host the types of `half`, on the device plain bits, which kernels convert by
//! [`crate::convert`].

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
    /// Returns the number with these bits.
    #[inline(always)]
    pub const fn from_bits(bits: u16) -> Self {
        name(bits)
    }

    /// Returns its bits.
    #[inline(always)]
    pub const fn to_bits(self) -> u16 {
        self.0
    }
}

//! Tensors of one value: on a GPU most of a large one is copied from its own beginning.

use pointwise::{Device, F8E4M3, Scalar, Tensor, f16};

use crate::Outcome;

pub(crate) fn full(device: &Device) -> Outcome {
    every_size(device, F8E4M3::from_f32(-0.0))?;
    every_size(device, true)?;
    every_size(device, f16::from_f32(0.1))?;
    every_size(device, f32::from_bits(0x7FC0_1234))?;
    every_size(device, 0x0123_4567_89AB_CDEF_i64)
}

/// Fills no elements, one, and around the 65,536 bytes that come from the host and twice as many.
fn every_size<T: Scalar>(device: &Device, value: T) -> Outcome {
    let at_once = 65_536 / size_of::<T>();
    for n in [0, 1, at_once - 1, at_once, at_once + 1, 2 * at_once, 2 * at_once + 1, 7 * at_once + 3] {
        let expected = Tensor::from_slice(&Device::cpu(), &vec![value; n], [n])?;
        if Tensor::full(device, value, [n])?.to_bytes()? != expected.to_bytes()? {
            return Err(format!("{n} elements of {}", T::DTYPE).into());
        }
    }
    Ok(())
}

//! The common parts of the benchmarks: times on a device, and values.

mod timing;

use pointwise::{DType, Device, Tensor};
pub use timing::{median, quantile, times, times_after};

/// `n` elements of a float type between -8 and 8, no two neighbours alike: never zeros, which run faster. i32: 2^20
/// times that.
///
/// # Errors
/// Out of memory; errors of the driver.
pub fn random(device: &Device, dtype: DType, n: usize) -> pointwise::Result<Tensor> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let block: Vec<f32> = (0..1 << 20)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 20) as f32 - 8.0
        })
        .collect();
    let bytes: Vec<u8> = match dtype {
        DType::F32 => block.iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::F16 => block.iter().flat_map(|x| pointwise::f16::from_f32(*x).to_le_bytes()).collect(),
        DType::BF16 => block.iter().flat_map(|x| pointwise::bf16::from_f32(*x).to_le_bytes()).collect(),
        DType::F8E4M3 => block.iter().map(|x| pointwise::F8E4M3::from_f32(*x).to_bits()).collect(),
        DType::F8E5M2 => block.iter().map(|x| pointwise::F8E5M2::from_f32(*x).to_bits()).collect(),
        DType::I32 => block.iter().flat_map(|x| ((x * (1 << 20) as f32) as i32).to_le_bytes()).collect(),
        _ => block.iter().flat_map(|x| x.to_le_bytes()).collect(),
    };
    let total = n * dtype.size();
    let mut all = Vec::with_capacity(total + bytes.len());
    while all.len() < total {
        all.extend_from_slice(&bytes);
    }
    all.truncate(total);
    Tensor::from_bytes(device, dtype, &all, [n])
}

//! A decoder in the form of candle_transformers' Llama and Qwen3, of candle's parts or of pointwise's.
#![forbid(unsafe_code)]

pub mod model;
pub mod parts;

use std::time::Instant;

use candle_core::{Device, Result};

/// Returns the device that the arguments ask for.
///
/// # Errors
/// Fails where there is no such device, or the program was built without the feature `cuda`.
pub fn device() -> Result<Device> {
    if has("--cuda") { Device::new_cuda(0) } else { Ok(Device::Cpu) }
}

/// True if the program was called with a word.
pub fn has(word: &str) -> bool {
    std::env::args().any(|arg| arg == word)
}

/// Measures the seconds of a call: the least of several groups of calls, the device idle before and after each.
///
/// # Errors
/// Fails as the call does.
pub fn seconds(device: &Device, calls: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    call()?;
    let mut least = f64::INFINITY;
    for _ in 0..GROUPS {
        least = least.min(group(device, calls, &mut call)?);
    }
    Ok(least)
}

/// Measures the seconds of two calls, groups of them in turns: see [`seconds`].
///
/// # Errors
/// Fails as the calls do.
pub fn in_turns(
    device: &Device,
    calls: usize,
    mut a: impl FnMut() -> Result<()>,
    mut b: impl FnMut() -> Result<()>,
) -> Result<(f64, f64)> {
    a()?;
    b()?;
    let mut least = (f64::INFINITY, f64::INFINITY);
    for _ in 0..GROUPS {
        least.0 = least.0.min(group(device, calls, &mut a)?);
        least.1 = least.1.min(group(device, calls, &mut b)?);
    }
    Ok(least)
}

const GROUPS: usize = 7;

/// Returns the seconds of one of several calls.
fn group(device: &Device, calls: usize, call: &mut impl FnMut() -> Result<()>) -> Result<f64> {
    device.synchronize()?;
    let start = Instant::now();
    for _ in 0..calls {
        call()?;
    }
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64() / calls as f64)
}

//! One formula as one kernel, and as three ops: the same values; on a GPU also times, beside a copy: `fused-block [ELEMENTS]`.

use fused_block::{one_by_one, ops};
use pointwise::cuda::Event;
use pointwise::{DType, Device, Philox, Result, Tensor, bf16};

/// The same number in f32 and f64, so that all versions draw the same mask.
const P: f32 = 0.25;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let n = match std::env::args().nth(1) {
        None => 1 << 26,
        Some(text) => text.parse().map_err(|_| format!("{text:?} is no number of elements, such as 67108864"))?,
    };
    compare(&Device::cpu(), n.min(1 << 20), DType::F32)?;
    compare(&Device::cpu(), n.min(1 << 20), DType::BF16)?;
    let device = Device::best()?;
    if device.is_cpu() {
        println!("no GPU, so nothing to time");
        return Ok(());
    }
    for dtype in [DType::F32, DType::BF16] {
        compare(&device, n, dtype)?;
        measure(&device, n, dtype)?;
    }
    Ok(())
}

/// Returns `n` numbers between -4 and 4, no two neighbours the same.
fn numbers(device: &Device, n: usize, dtype: DType, seed: u32) -> Result<Tensor> {
    let number = |i: usize| ((i as u32 ^ seed).wrapping_mul(0x9E37_79B9) >> 8) as f32 / (1 << 21) as f32 - 4.0;
    if dtype == DType::BF16 {
        let values: Vec<bf16> = (0..n).map(|i| bf16::from_f32(number(i))).collect();
        return Tensor::from_slice(device, &values, [n]);
    }
    Tensor::from_slice(device, &(0..n).map(number).collect::<Vec<f32>>(), [n])
}

/// Returns the values of an f32 or bf16 tensor.
fn values(x: &Tensor) -> Result<Vec<f32>> {
    if x.dtype() == DType::BF16 {
        return Ok(x.to_vec::<bf16>()?.into_iter().map(bf16::to_f32).collect());
    }
    x.to_vec::<f32>()
}

/// Compares both versions, element by element.
fn compare(device: &Device, n: usize, dtype: DType) -> Result<()> {
    let [residual, gate, value] = [1, 2, 3].map(|seed| numbers(device, n, dtype, seed));
    let (residual, gate, value) = (residual?, gate?, value?);
    let (mut y, mut scratch) = (Tensor::zeros(device, dtype, [n])?, Tensor::zeros(device, dtype, [n])?);
    let rng = Philox::new(42);
    one_by_one(&residual, &gate, &value, &mut y, &mut scratch, P, rng)?;
    let fused = values(&ops::silu_dropout_add(&residual, &gate, &value, P, rng)?)?;
    // The three ops round three times, the fused one once.
    let epsilon = if dtype == DType::BF16 { 1.0 / 128.0 } else { f32::EPSILON };
    let (residual, scratch) = (values(&residual)?, values(&scratch)?);
    let (mut same, mut worst, mut zeros) = (0_usize, 0.0_f32, 0_usize);
    for (i, (one, other)) in fused.iter().zip(values(&y)?).enumerate() {
        let size = residual[i].abs() + scratch[i].abs();
        let error = (one - other).abs() / (epsilon * size.max(f32::MIN_POSITIVE));
        (same, worst) = (same + usize::from(*one == other), worst.max(error));
        zeros += usize::from(scratch[i] == 0.0);
    }
    println!(
        "{device}, {dtype}: {n} elements, {zeros} dropped to 0; {same} have the same bits, the largest difference is \
         {worst:.2} steps of the summands"
    );
    assert!(worst < 4.0, "the fused op has other values than the three");
    Ok(())
}

/// Returns the median of the times of single launches, in milliseconds.
fn milliseconds(device: &Device, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let stream = device.stream();
    let mut times = Vec::new();
    for run in 0..12 {
        let (start, end) = (Event::new(device)?, Event::new(device)?);
        start.record(&stream)?;
        work()?;
        end.record(&stream)?;
        end.synchronize()?;
        // The first runs load the kernels and warm up.
        if run > 2 {
            times.push(f64::from(end.milliseconds_since(&start)?));
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Prints times and bandwidths beside a copy of the same type. From 2^26 elements on a tensor does not fit in a cache.
fn measure(device: &Device, n: usize, dtype: DType) -> Result<()> {
    let [residual, gate, value] = [1, 2, 3].map(|seed| numbers(device, n, dtype, seed));
    let (residual, gate, value) = (residual?, gate?, value?);
    let (mut y, mut scratch) = (Tensor::zeros(device, dtype, [n])?, Tensor::zeros(device, dtype, [n])?);
    let rng = Philox::new(42);
    let pass = (n * dtype.size()) as f64;
    let copy = milliseconds(device, || y.copy_from(&residual))?;
    let copied = 2.0 * pass / copy / 1e6;
    let report = |name: &str, time: f64, passes: f64| {
        let moved = passes * pass / time / 1e6;
        println!("  {name:28} {time:8.4} ms  {moved:7.1} GB/s  {:.3} of the copy's {copied:.1} GB/s", moved / copied);
    };
    println!("{device}, {dtype}, {n} elements");
    report("copy", copy, 2.0);
    let fused = milliseconds(device, || ops::silu_dropout_add_into(&residual, &gate, &value, &mut y, P, rng))?;
    report("fused: 3 reads, 1 write", fused, 4.0);
    let steps = milliseconds(device, || one_by_one(&residual, &gate, &value, &mut y, &mut scratch, P, rng))?;
    report("three ops: 5 reads, 3 writes", steps, 8.0);
    println!("  one kernel instead of three: {:.2} times as fast", steps / fused);
    let [bias, scale, shift] = [4, 5, 6].map(|seed| numbers(device, n, dtype, seed));
    let (bias, scale, shift) = (bias?, scale?, shift?);
    let block_end = milliseconds(device, || {
        ops::block_end_into(&value, &bias, &gate, &residual, &scale, &shift, &mut y, &mut scratch, P, rng)
    })?;
    report("block_end: 6 reads, 2 writes", block_end, 8.0);
    Ok(())
}
